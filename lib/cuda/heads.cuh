/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of an operator that works head by head, for one `real`: passes, each run by one block
 * per head, or per head and chunk of its tokens. heads.cu runs the operator: it checks for NaN,
 * removes padding, rounds gradients and adds up those of parameters. */
#ifndef CUDA_HEADS_CUH
#define CUDA_HEADS_CUH

#include "cuda/block.cuh"
#include "cuda/device.h"
#include "cuda/heads.h"
#include "cuda/launch.cuh"
#include "operators/list.h"

/* Tokens that a block works on at a time. */
enum { HEAD_TILE = 64 };

/* One head of a call, and one chunk of it. Padding has been removed: n and n_k count the remaining
 * tokens. In a pass over heads the only chunk is the whole head. */
typedef struct {
    const atn_attention_desc *desc;
    bool tf32;
    int64_t index, heads, batch; /* which of the h heads, for parameters; which entry */
    int64_t piece;               /* batch * heads + index */
    int64_t n, n_k, d, dv;       /* queries, keys (either may be 0), widths */
    int64_t length, key_length;  /* with padding */
    int64_t chunk, chunks;       /* which chunk, of how many the plan cut the head into */
    int64_t step;                /* of a pass that runs more than once (head_call) */
    int64_t chunk_tokens;        /* tokens of a chunk; the last may have fewer */
    int64_t first, end;          /* this chunk's queries */
    int64_t first_key, end_key;  /* and keys */
    token_rows q, k, v;
    token_rows out; /* forward: every row of the chunk is to be overwritten */
    token_rows grad_out, grad_q, grad_k, grad_v; /* backward: gradients are added to. grad_k may be
                                                    the same memory as grad_q */
    real *grad_parameters[ATN_PARAMETER_COUNT];  /* of this head and entry, dense, to be added to;
                                                    null: not wanted */
    real *state;    /* head_reals, kept from the first pass to the last */
    real *partials; /* of the head's chunks, chunk_reals each, kept likewise */
    int64_t chunk_reals;
    real *work; /* block_reals, uninitialised */
} head;

/* The position that token i had before padding was removed. */
static __device__ __forceinline__ int64_t head_position(const token_rows &rows, int64_t i)
{
    return rows.positions ? rows.positions[i] : i;
}

static __host__ __device__ __forceinline__ int64_t head_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The next `count` elements of a head's memory. */
static __host__ __device__ __forceinline__ real *head_take(real **free, int64_t count)
{
    real *taken = *free;
    *free += count;
    return taken;
}

/* Elements that hold so many doubles. */
static __host__ __device__ __forceinline__ int64_t double_reals(int64_t count)
{
    return count * (int64_t)(sizeof(double) / sizeof(real));
}

/* This head's matrix of a 1 x (1 or h) x rows x cols parameter. */
static __device__ __forceinline__ token_rows head_parameter(const atn_tensor &t, int64_t index)
{
    int64_t size = type_bytes(t.dtype);
    int64_t offset = t.heads == 1 ? 0 : index * t.head_stride;
    token_rows rows = {(char *)t.data + offset * size, t.dtype, t.row_stride, NULL};
    return rows;
}

/* Adds up `count` partial sums of all chunks, from `offset` on in each, in order, and stores the
 * sums in `to`. */
static __device__ void head_add_chunks(const head &h, int64_t offset, int64_t count, real *to)
{
    BLOCK_EACH (e, count) {
        real sum = 0;
        for (int64_t c = 0; c < h.chunks; c++)
            sum += h.partials[c * h.chunk_reals + offset + e];
        to[e] = sum;
    }
    __syncthreads();
}

/* The partial sums of this chunk. */
static __device__ __forceinline__ real *head_partial(const head &h)
{
    return h.partials + h.chunk * h.chunk_reals;
}

/* The arguments of a kernel. */
typedef struct {
    cuda_heads plan;
    atn_tensor q, k, v, out, grad_out, grad_q, grad_k, grad_v; /* k is q where the call has none */
    const unsigned char *query_mask, *key_mask;
    bool masked, backward;
    unsigned wanted; /* bit p: parameter p's gradient */
    int64_t step;    /* set before each launch of a pass that runs more than once */
} head_call;

/* A call that is being launched; after a failure nothing more is launched. */
typedef struct {
    atn_context *context;
    const cuda_heads *heads;        /* the plan, which may be the first member of a larger one */
    const atn_gradients *gradients; /* backward */
    head_call call;
    atn_status status;
} head_launch;

static __device__ token_rows rows_of(const atn_tensor &t, int64_t piece, const int64_t *positions)
{
    int64_t size = type_bytes(t.dtype);
    int64_t offset = piece / t.heads * t.batch_stride + piece % t.heads * t.head_stride;
    token_rows rows = {(char *)t.data + offset * size, t.dtype, t.row_stride, positions};
    return rows;
}

/* Fills in the block's head, by one thread. chunks: those of this pass, 1 or the plan's. */
static __device__ void head_open(const head_call &c, int64_t piece, int64_t chunk, int64_t chunks,
                                 head *h)
{
    const cuda_heads &p = c.plan;
    const atn_attention_shape &s = p.shape;
    int64_t b = piece / s.heads, both = s.tokens + s.key_tokens;
    const int64_t *positions = c.masked ? p.positions + b * both : NULL;
    const int64_t *key_positions = c.masked ? positions + s.tokens : NULL;
    h->desc = &p.desc;
    h->tf32 = p.desc.dtype == ATN_TF32;
    h->index = piece % s.heads;
    h->heads = s.heads;
    h->batch = b;
    h->piece = piece;
    h->n = c.masked ? p.counts[2 * b] : s.tokens;
    h->n_k = c.masked ? p.counts[2 * b + 1] : s.key_tokens;
    h->d = s.dim;
    h->dv = s.value_dim;
    h->length = s.tokens;
    h->key_length = s.key_tokens;
    h->chunk = chunk;
    h->step = c.step;
    h->chunks = p.chunks;
    int64_t tokens = chunks == 1 ? INT64_MAX / 2 : p.chunk;
    h->chunk_tokens = tokens;
    h->first = head_smaller(chunk * tokens, h->n);
    h->end = head_smaller(chunk * tokens + tokens, h->n);
    h->first_key = head_smaller(chunk * tokens, h->n_k);
    h->end_key = head_smaller(chunk * tokens + tokens, h->n_k);
    h->q = rows_of(c.q, piece, positions);
    h->k = rows_of(c.k, piece, key_positions);
    h->v = rows_of(c.v, piece, key_positions);
    if (c.backward) {
        h->grad_out = rows_of(c.grad_out, piece, positions);
        h->grad_q = rows_of(c.grad_q, piece, positions);
        h->grad_k = rows_of(c.grad_k, piece, key_positions);
        h->grad_v = rows_of(c.grad_v, piece, key_positions);
    } else {
        h->out = rows_of(c.out, piece, positions);
    }
    for (int i = 0; i < ATN_PARAMETER_COUNT; i++)
        h->grad_parameters[i] =
            c.wanted & 1u << i ? (real *)p.sums[i] + piece * p.sum_sizes[i] : NULL;
    h->state = (real *)p.state + piece * p.sizes.head_reals;
    h->chunk_reals = p.sizes.chunk_reals;
    h->partials = (real *)p.partials + piece * p.chunks * p.sizes.chunk_reals;
    h->work = p.work_is_shared ? cuda_shared<real>()
                               : (real *)p.work + (int64_t)blockIdx.x * p.sizes.block_reals;
}

/* ---- Passes ---- */

/* One block for each head and chunk; heads that are not finite are skipped unless `always`. */
template <void (*pass)(const head &), bool always>
static __global__ void __launch_bounds__(BLOCK_THREADS)
    run_pass(const __grid_constant__ head_call c, int64_t chunks)
{
    __shared__ head h; /* shared, to save the threads' registers */
    int64_t pieces = c.plan.shape.batch * c.plan.shape.heads;
    for (int64_t i = blockIdx.x; i < pieces * chunks; i += gridDim.x) {
        if (threadIdx.x == 0)
            head_open(c, i / chunks, i % chunks, chunks, &h);
        __syncthreads();
        if (always || !c.plan.nonfinite[h.piece])
            pass(h);
        __syncthreads();
    }
}

/* The same for passes with an argument besides the head. */
template <class T, void (*pass)(const head &, const T &), bool always>
static __global__ void __launch_bounds__(BLOCK_THREADS)
    run_pass_with(const __grid_constant__ head_call c, const __grid_constant__ T more,
                  int64_t chunks)
{
    __shared__ head h;
    int64_t pieces = c.plan.shape.batch * c.plan.shape.heads;
    for (int64_t i = blockIdx.x; i < pieces * chunks; i += gridDim.x) {
        if (threadIdx.x == 0)
            head_open(c, i / chunks, i % chunks, chunks, &h);
        __syncthreads();
        if (always || !c.plan.nonfinite[h.piece])
            pass(h, more);
        __syncthreads();
    }
}

/* One block for all heads of the batch. */
template <void (*pass)(const head_call &)>
static __global__ void __launch_bounds__(BLOCK_THREADS)
    run_join(const __grid_constant__ head_call c)
{
    pass(c);
}

/* Blocks for `count` threads' work. */
static inline dim3 blocks_for(int64_t count)
{
    int64_t blocks = (count + BLOCK_THREADS - 1) / BLOCK_THREADS;
    return dim3((unsigned)(blocks < 1 ? 1 : head_smaller(blocks, 1 << 20)));
}

/* This thread's share of count things to do, when blocks_for(count) were launched. */
#define THREAD_EACH(i, count)                                                                      \
    for (int64_t i = (int64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x, i##_count = (count);       \
         i < i##_count; i += (int64_t)gridDim.x * BLOCK_THREADS)

static inline void head_note(head_launch *l, cudaError_t error, const char *name)
{
    if (l->status == ATN_OK)
        l->status = device_result(l->context, error, name);
}

/* Launches a pass's kernel, if nothing has failed. */
template <class... P, class... A>
static void launch_blocks(head_launch *l, int64_t chunks, const char *name, void (*kernel)(P...),
                          A... arguments)
{
    const cuda_heads *p = &l->call.plan;
    int64_t blocks = head_smaller(p->shape.batch * p->shape.heads * chunks, p->blocks);
    size_t shared = p->work_is_shared ? (size_t)p->sizes.block_reals * sizeof(real) : 0;
    if (l->status == ATN_OK)
        head_note(l,
                  cuda_launch(kernel, dim3((unsigned)blocks), dim3(BLOCK_THREADS), shared,
                              (cudaStream_t)device_stream(l->context), l->call, arguments...,
                              chunks),
                  name);
}

template <void (*pass)(const head &), bool always>
static void launch_pass(head_launch *l, int64_t chunks, const char *name)
{
    launch_blocks(l, chunks, name, run_pass<pass, always>);
}

template <class T, void (*pass)(const head &, const T &), bool always>
static void launch_pass_with(head_launch *l, const T &more, int64_t chunks, const char *name)
{
    launch_blocks(l, chunks, name, run_pass_with<T, pass, always>, more);
}

/* A launch runs one pass over all heads and chunks; the next pass may read its results. */
#define OVER_HEADS(launch, pass) launch_pass<pass, false>(launch, 1, #pass)
#define OVER_CHUNKS(launch, pass)                                                                  \
    launch_pass<pass, false>(launch, (launch)->call.plan.chunks, #pass)

/* For passes across heads: the pass gets the call, and reads head_state of the heads that are
 * finite (plan.nonfinite). */
#define OVER_ALL(launch, pass)                                                                     \
    do {                                                                                           \
        if ((launch)->status == ATN_OK)                                                            \
            head_note(launch,                                                                      \
                      cuda_launch(run_join<pass>, dim3(1), dim3(BLOCK_THREADS), 0,                 \
                                  (cudaStream_t)device_stream((launch)->context), (launch)->call), \
                      #pass);                                                                      \
    } while (0)

static __device__ __forceinline__ real *head_state(const head_call &c, int64_t piece)
{
    return (real *)c.plan.state + piece * c.plan.sizes.head_reals;
}

/* An operator. Both launch passes; backward recomputes what it needs. */
struct head_operator {
    void (*sizes)(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  head_sizes *sizes);
    void (*forward)(head_launch *launch);
    void (*backward)(head_launch *launch);
    /* Whether forward itself checks inputs and outputs for NaN; null: never. */
    bool (*inspects)(const head_launch *launch) = NULL;
    /* What backward computes first, of the inputs alone; null: nothing. A head whose dY is not
     * finite takes part: its dY does not change what forward computes of the others. */
    void (*before_backward)(head_launch *launch) = NULL;
};

/* One for each operator, in the cuda.cu of its folder; SOFT++ uses SOFT's. */
extern "C" {
#define HEADS_EXTERN(name) extern const head_operator R(cuda_operator_##name);
#define SOFT_EXTERN(name)
#define CUDA_EXTERN(code, name, family) family##_EXTERN(name)
OPERATOR_LIST(CUDA_EXTERN)
extern const head_operator R(cuda_operator_soft);
}

#endif
