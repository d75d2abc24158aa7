/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the operators that work head by head, for one `real`. */
#include "cuda/heads.cuh"

#define HEADS_ROW(name)              &R(cuda_operator_##name),
#define SOFT_ROW(name)               &R(cuda_operator_soft),
#define CUDA_ROW(code, name, family) family##_ROW(name)
static const head_operator *const operators[] = {OPERATOR_LIST(CUDA_ROW)};

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  head_sizes *sizes)
{
    operators[desc->op]->sizes(desc, shape, sizes);
}

/* ---- Around every call ---- */

/* The positions of the tokens that are not padding, in order; returns how many. One warp. */
static __device__ int64_t list_present(int64_t length, const unsigned char *mask,
                                       int64_t *positions)
{
    int64_t count = 0;
    unsigned lane = threadIdx.x;
    for (int64_t i = 0; i < length; i += 32) {
        bool present = i + lane < length && (!mask || mask[i + lane]);
        unsigned all = __ballot_sync(0xffffffffu, present);
        if (present)
            positions[count + __popc(all & ((1u << lane) - 1))] = i + lane;
        count += __popc(all);
    }
    return count;
}

/* One warp for each entry of the batch. */
static __global__ void list_positions(const __grid_constant__ head_call c)
{
    const atn_attention_shape &s = c.plan.shape;
    for (int64_t b = blockIdx.x; b < s.batch; b += gridDim.x) {
        int64_t *positions = c.plan.positions + b * (s.tokens + s.key_tokens);
        int64_t n =
            list_present(s.tokens, c.query_mask ? c.query_mask + b * s.tokens : NULL, positions);
        int64_t n_k = list_present(s.key_tokens, c.key_mask ? c.key_mask + b * s.key_tokens : NULL,
                                   positions + s.tokens);
        if (threadIdx.x == 0) {
            c.plan.counts[2 * b] = n;
            c.plan.counts[2 * b + 1] = n_k;
        }
    }
}

static __device__ bool rows_bad(const token_rows &rows, int64_t first, int64_t end, int64_t cols)
{
    bool bad = false;
    BLOCK_EACH (e, (end - first) * cols)
        bad |= !isfinite(rows_get(rows, first + e / cols, e % cols));
    return bad;
}

/* Sets the flags of heads for which bad(chunk) is true. */
template <bool (*bad)(const head &)>
static __global__ void __launch_bounds__(BLOCK_THREADS)
    note_bad(const __grid_constant__ head_call c, int64_t chunks)
{
    __shared__ head h;
    int64_t pieces = c.plan.shape.batch * c.plan.shape.heads;
    for (int64_t i = blockIdx.x; i < pieces * chunks; i += gridDim.x) {
        if (threadIdx.x == 0)
            head_open(c, i / chunks, i % chunks, chunks, &h);
        __syncthreads();
        if (__syncthreads_or(bad(h)) && threadIdx.x == 0)
            c.plan.nonfinite[i / chunks] = 1;
    }
}

static __device__ bool inputs_bad(const head &h)
{
    return rows_bad(h.q, h.first, h.end, h.d) || rows_bad(h.k, h.first_key, h.end_key, h.d) ||
           rows_bad(h.v, h.first_key, h.end_key, h.dv);
}

static __device__ bool gradient_of_output_bad(const head &h)
{
    return rows_bad(h.grad_out, h.first, h.end, h.dv);
}

static __device__ bool output_bad(const head &h)
{
    return rows_bad(h.out, h.first, h.end, h.dv);
}

static __device__ bool gradients_bad(const head &h)
{
    return rows_bad(h.grad_q, h.first, h.end, h.d) ||
           rows_bad(h.grad_k, h.first_key, h.end_key, h.d) ||
           rows_bad(h.grad_v, h.first_key, h.end_key, h.dv);
}

/* ---- All rows, padded ones included ---- */

/* Calls f(index of the head, row, column) for every entry of a tensor. */
template <class F> static __device__ void each_entry(const atn_tensor &t, F f)
{
    int64_t each = t.rows * t.cols, pieces = t.batch * t.heads;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < pieces * each;
         e += (int64_t)gridDim.x * blockDim.x)
        f(e / each, e % each / t.cols, e % t.cols);
}

/* Sets all rows of a head that has NaN or infinity to NaN, and padded rows to 0. */
static __global__ void finish_rows(const __grid_constant__ head_call c, atn_tensor t,
                                   const unsigned char *mask)
{
    each_entry(t, [&](int64_t piece, int64_t i, int64_t col) {
        bool present = !mask || mask[piece / t.heads * t.rows + i];
        bool bad = c.plan.nonfinite[piece];
        if (bad || !present)
            rows_set(rows_of(t, piece, NULL), i, col, bad ? (real)NAN : (real)0);
    });
}

static __global__ void round_rows(atn_tensor from, atn_tensor to)
{
    each_entry(to, [&](int64_t piece, int64_t i, int64_t col) {
        rows_set(rows_of(to, piece, NULL), i, col, rows_get(rows_of(from, piece, NULL), i, col));
    });
}

/* Flags the heads whose sums for a parameter are not finite. */
static __global__ void note_bad_sums(const __grid_constant__ head_call c, int p)
{
    int64_t size = c.plan.sum_sizes[p];
    int64_t piece = blockIdx.x;
    const real *sums = (const real *)c.plan.sums[p] + piece * size;
    bool bad = false;
    BLOCK_EACH (e, size)
        bad |= !isfinite(sums[e]);
    if (__syncthreads_or(bad) && threadIdx.x == 0)
        c.plan.nonfinite[piece] = 1;
}

/* A parameter's gradient: the heads' sums over the batch, and over the heads where they share it.
 */
static __global__ void add_parameter(const __grid_constant__ head_call c, int p, atn_tensor to)
{
    const atn_attention_shape &s = c.plan.shape;
    int64_t size = c.plan.sum_sizes[p], members = to.heads == 1 ? s.heads : 1;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < to.heads * size;
         e += (int64_t)gridDim.x * blockDim.x) {
        real sum = 0;
        for (int64_t m = 0; m < members; m++)
            for (int64_t b = 0; b < s.batch; b++) {
                int64_t piece = b * s.heads + (members == 1 ? e / size : m);
                sum += ((const real *)c.plan.sums[p])[piece * size + e % size];
            }
        real_store(to.data, to.dtype, e, sum);
    }
}

/* Whether piece i of the batch contributes to a matrix of a parameter's gradient: all heads share
 * one, or each has its own. */
static __device__ bool has_share(const head_call &c, const atn_tensor &to, int64_t i,
                                 int64_t matrix)
{
    return to.heads == 1 || i % c.plan.shape.heads == matrix;
}

/* Flags all heads that contribute to an entry that is not finite, unless one of them is flagged
 * already. (It may have been flagged by another thread, which then flags the others.) */
static __global__ void note_bad_parameter(const __grid_constant__ head_call c, atn_tensor to)
{
    int64_t pieces = c.plan.shape.batch * c.plan.shape.heads, size = to.rows * to.cols;
    THREAD_EACH (e, to.heads * size) {
        bool known = isfinite(real_load(to.data, to.dtype, e));
        for (int64_t i = 0; i < pieces && !known; i++)
            known = has_share(c, to, i, e / size) && c.plan.nonfinite[i];
        for (int64_t i = 0; i < pieces && !known; i++)
            if (has_share(c, to, i, e / size))
                c.plan.nonfinite[i] = 1;
    }
}

/* Sets the matrices to NaN that flagged heads contribute to; a row of blocks for each matrix. */
static __global__ void spoil_parameter(const __grid_constant__ head_call c, atn_tensor to)
{
    int64_t pieces = c.plan.shape.batch * c.plan.shape.heads, size = to.rows * to.cols;
    for (int64_t matrix = blockIdx.y; matrix < to.heads; matrix += gridDim.y) {
        bool bad = false;
        BLOCK_EACH (i, pieces)
            bad |= has_share(c, to, i, matrix) && c.plan.nonfinite[i];
        if (__syncthreads_or(bad))
            THREAD_EACH (e, size)
                real_store(to.data, to.dtype, matrix * size + e, (real)NAN);
    }
}

/* ---- Calls ---- */

static cudaStream_t stream_of(const head_launch *l)
{
    return (cudaStream_t)device_stream(l->context);
}

static int64_t entries(const atn_tensor *t)
{
    return t->batch * t->heads * t->rows * t->cols;
}

template <bool (*bad)(const head &)> static void find_bad(head_launch *l)
{
    const cuda_heads *p = &l->call.plan;
    int64_t blocks = head_smaller(p->shape.batch * p->shape.heads * p->chunks, 1 << 20);
    if (l->status == ATN_OK)
        head_note(l,
                  cuda_launch(note_bad<bad>, dim3((unsigned)blocks), dim3(BLOCK_THREADS), 0,
                              stream_of(l), l->call, p->chunks),
                  "the search for NaN");
}

static void finish(head_launch *l, const atn_tensor *t, const unsigned char *mask)
{
    if (l->status == ATN_OK)
        head_note(l,
                  cuda_launch(finish_rows, blocks_for(entries(t)), dim3(BLOCK_THREADS), 0,
                              stream_of(l), l->call, *t, mask),
                  "the end of a call");
}

static head_launch open_call(atn_context *context, const cuda_heads *heads,
                             const atn_attention_inputs *in)
{
    head_launch l = {};
    head_call *c = &l.call;
    l.context = context;
    l.heads = heads;
    c->plan = *heads;
    c->q = *in->q;
    c->k = in->k ? *in->k : *in->q;
    c->v = *in->v;
    c->query_mask = in->query_mask;
    c->key_mask = in->key_mask;
    c->masked = in->query_mask || in->key_mask;
    int64_t pieces = heads->shape.batch * heads->shape.heads;
    l.status = device_clear(context, heads->nonfinite, (size_t)pieces * sizeof(int));
    if (l.status == ATN_OK && c->masked)
        head_note(&l,
                  cuda_launch(list_positions,
                              dim3((unsigned)head_smaller(heads->shape.batch, 65535)), dim3(32), 0,
                              stream_of(&l), *c),
                  "the masks");
    return l;
}

static atn_status forward(atn_context *context, const cuda_heads *heads,
                          const atn_attention_inputs *inputs, atn_tensor *out)
{
    head_launch l = open_call(context, heads, inputs);
    const head_operator *op = operators[heads->desc.op];
    l.call.out = *out;
    if (op->inspects && op->inspects(&l)) {
        op->forward(&l);
        return l.status;
    }
    find_bad<inputs_bad>(&l);
    op->forward(&l);
    find_bad<output_bad>(&l);
    finish(&l, out, inputs->query_mask);
    return l.status;
}

/* Gradients are summed in the type of the arithmetic: for bf16 and f16 in memory of the plan. */
static atn_tensor gradient_memory(const cuda_heads *heads, const atn_tensor *caller, real **free)
{
    if (heads->desc.dtype != ATN_BF16 && heads->desc.dtype != ATN_F16)
        return *caller;
    return atn_tensor_dense(head_take(free, entries(caller)), ATN_F32, caller->batch, caller->heads,
                            caller->rows, caller->cols);
}

static void round_gradient(head_launch *l, const atn_tensor *from, const atn_tensor *to)
{
    if (l->status == ATN_OK && from->data != to->data)
        head_note(l,
                  cuda_launch(round_rows, blocks_for(entries(to)), dim3(BLOCK_THREADS), 0,
                              stream_of(l), *from, *to),
                  "rounding gradients");
}

static void open_parameters(head_launch *l, const atn_gradients *gradients)
{
    const cuda_heads *heads = &l->call.plan;
    int64_t pieces = heads->shape.batch * heads->shape.heads;
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        if (gradients->parameters[p] && heads->sum_sizes[p] > 0 && l->status == ATN_OK) {
            l->call.wanted |= 1u << p;
            l->status = device_clear(l->context, heads->sums[p],
                                     (size_t)(pieces * heads->sum_sizes[p]) * sizeof(real));
        }
}

static void check_parameter(head_launch *l, int p)
{
    int64_t pieces = l->call.plan.shape.batch * l->call.plan.shape.heads;
    head_note(l,
              cuda_launch(note_bad_sums, dim3((unsigned)pieces), dim3(BLOCK_THREADS), 0,
                          stream_of(l), l->call, p),
              "the search for NaN");
}

/* A parameter's gradient, viewed as one matrix that all heads contribute to if the operator itself
 * adds up the heads' parts. */
static atn_tensor shares_of(const head_launch *l, int p, const atn_tensor *to)
{
    atn_tensor shares = *to;
    if (l->call.plan.sum_sizes[p] == 0) {
        shares.rows *= shares.heads;
        shares.heads = 1;
    }
    return shares;
}

static void add_heads(head_launch *l, int p, const atn_tensor *to)
{
    dim3 blocks = blocks_for(entries(to)), threads(BLOCK_THREADS);
    if (l->call.plan.sum_sizes[p] > 0)
        head_note(l, cuda_launch(add_parameter, blocks, threads, 0, stream_of(l), l->call, p, *to),
                  "parameters' gradients");
    if (l->status == ATN_OK)
        head_note(l,
                  cuda_launch(note_bad_parameter, blocks, threads, 0, stream_of(l), l->call,
                              shares_of(l, p, to)),
                  "the search for NaN");
}

static void finish_parameter(head_launch *l, int p, const atn_tensor *to)
{
    atn_tensor shares = shares_of(l, p, to);
    dim3 blocks = blocks_for(shares.rows * shares.cols);
    blocks.y = (unsigned)(shares.heads < 1 ? 1 : head_smaller(shares.heads, 65535));
    head_note(
        l,
        cuda_launch(spoil_parameter, blocks, dim3(BLOCK_THREADS), 0, stream_of(l), l->call, shares),
        "parameters' gradients");
}

static atn_status backward(atn_context *context, const cuda_heads *heads,
                           const atn_attention_inputs *inputs, const atn_tensor *dout,
                           atn_gradients *gradients)
{
    head_launch l = open_call(context, heads, inputs);
    head_call *c = &l.call;
    real *free = (real *)heads->gradients;
    l.gradients = gradients;
    c->backward = true;
    c->grad_out = *dout;
    c->grad_q = gradient_memory(heads, gradients->q, &free);
    c->grad_v = gradient_memory(heads, gradients->v, &free);
    c->grad_k = gradients->k ? gradient_memory(heads, gradients->k, &free) : c->grad_q;
    if (l.status == ATN_OK && free != heads->gradients)
        l.status = device_clear(context, heads->gradients,
                                (size_t)(free - (real *)heads->gradients) * sizeof(real));
    open_parameters(&l, gradients);
    const head_operator *op = operators[heads->desc.op];
    find_bad<inputs_bad>(&l);
    if (op->before_backward)
        op->before_backward(&l);
    find_bad<gradient_of_output_bad>(&l);
    op->backward(&l);
    round_gradient(&l, &c->grad_q, gradients->q);
    round_gradient(&l, &c->grad_v, gradients->v);
    if (gradients->k)
        round_gradient(&l, &c->grad_k, gradients->k);
    /* Rounding to the caller's type may overflow, so the final gradients are checked, too. */
    c->grad_q = *gradients->q;
    c->grad_v = *gradients->v;
    c->grad_k = gradients->k ? *gradients->k : c->grad_q;
    find_bad<gradients_bad>(&l);
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        if (c->wanted & 1u << p && l.status == ATN_OK)
            check_parameter(&l, p);
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        if (gradients->parameters[p] && l.status == ATN_OK)
            add_heads(&l, p, gradients->parameters[p]);
    finish(&l, gradients->q, NULL);
    finish(&l, gradients->v, NULL);
    if (gradients->k)
        finish(&l, gradients->k, NULL);
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        if (gradients->parameters[p] && l.status == ATN_OK)
            finish_parameter(&l, p, gradients->parameters[p]);
    return l.status;
}

extern "C" const cuda_heads_table R(cuda_heads) = {sizes, forward, backward};
