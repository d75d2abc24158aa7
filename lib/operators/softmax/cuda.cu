/* SPDX-License-Identifier: BSD-3-Clause */
/* Softmax attention (Vaswani et al. 2017, Eq. 1); operators/softmax/cuda.cuh has the arithmetic.
 * Backward keeps a few numbers of each query, so that passes over queries and keys are
 * independent. */
#include "operators/softmax/cuda.cuh"

static void sizes(const atn_attention_desc *, const atn_attention_shape *shape, head_sizes *s)
{
    s->head_reals = SOFTMAX_STATISTICS * shape->tokens;
    s->chunk_reals = 0;
    s->block_reals = softmax_work_reals(shape->dim, shape->value_dim);
}

static __device__ void write_output(const head &h)
{
    softmax_forward(h);
}

static __device__ void measure(const head &h)
{
    softmax_measure(h, h.state);
}

static __device__ void backward_queries(const head &h)
{
    softmax_grad_queries(h, h.state);
}

static __device__ void backward_keys(const head &h)
{
    softmax_grad_keys(h, h.state, 0, h.n);
}

static void forward(head_launch *l)
{
    OVER_CHUNKS(l, write_output);
}

static void backward(head_launch *l)
{
    OVER_CHUNKS(l, measure);
    OVER_CHUNKS(l, backward_queries);
    OVER_CHUNKS(l, backward_keys);
}

extern "C" const head_operator R(cuda_operator_softmax) = {sizes, forward, backward};
