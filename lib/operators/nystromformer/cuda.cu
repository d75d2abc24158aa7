/* SPDX-License-Identifier: BSD-3-Clause */
/* Nystromformer (Xiong et al. 2021): Y = F Z (B V), with three softmax attentions: tokens to
 * landmarks (F), landmarks among themselves (A, which Z inverts), landmarks to tokens (B). F and B
 * are heads for operators/softmax/cuda.cuh; B's keys are cut into chunks, whose softmaxes are
 * merged. */
#include "inverse/nystrom/cuda.cuh"
#include "operators/softmax/cuda.cuh"

/* ---- Memory ---- */

/* Per head. Sums over tokens have partial sums in the chunks, too. */
typedef struct {
    bool exact; /* m = n = n_k: softmax attention itself */
    int64_t m;
    nystrom_numbers *numbers;
    real *a, *query_means, *key_means;
    real *grad_a, *grad_query_means, *grad_key_means;
    real *summary, *grad_summary; /* U = B V */
    real *solved, *grad_solved;   /* Z U */
    real *grad_z, *inverse;       /* nystrom_inverse_reals */
    real *token_statistics, *landmark_statistics;
} head_memory;

static __host__ __device__ bool is_exact(const atn_attention_desc *desc, int64_t n, int64_t n_k)
{
    return desc->nystromformer.landmarks == n && n == n_k;
}

/* Elements of a chunk's part of B V: each landmark's largest logit, sum and row. */
static __host__ __device__ int64_t summary_part(int64_t m, int64_t dv)
{
    return double_reals(m) + m + m * dv;
}

/* Elements of a chunk's part of the landmarks' gradients: keys, values, queries. */
static __host__ __device__ int64_t gradient_part(int64_t m, int64_t d, int64_t dv)
{
    return m * (2 * d + dv);
}

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape, head_sizes *s)
{
    int64_t m = desc->nystromformer.landmarks, d = shape->dim, dv = shape->value_dim;
    s->block_reals = softmax_work_reals(d, dv);
    s->head_reals = SOFTMAX_STATISTICS * shape->tokens + NYSTROM_NUMBER_REALS;
    s->chunk_reals = desc->residual.rows;
    if (is_exact(desc, shape->tokens, shape->key_tokens))
        return;
    s->head_reals += 3 * m * m + 4 * m * (d + dv) + SOFTMAX_STATISTICS * m +
                     nystrom_inverse_reals(desc->nystromformer, m);
    s->chunk_reals += larger_of(summary_part(m, dv), gradient_part(m, d, dv));
    s->chunk_reals = (s->chunk_reals + 3) / 4 * 4;
}

static __device__ head_memory memory_of(const head &h)
{
    head_memory p = {};
    int64_t m = h.desc->nystromformer.landmarks;
    real *free = h.state;
    p.m = m;
    p.exact = is_exact(h.desc, h.length, h.key_length);
    p.numbers = (nystrom_numbers *)head_take(&free, NYSTROM_NUMBER_REALS);
    p.token_statistics = head_take(&free, SOFTMAX_STATISTICS * h.length);
    if (p.exact)
        return p;
    p.a = head_take(&free, m * m);
    p.grad_a = head_take(&free, m * m);
    p.grad_z = head_take(&free, m * m);
    p.query_means = head_take(&free, m * h.d);
    p.key_means = head_take(&free, m * h.d);
    p.grad_query_means = head_take(&free, m * h.d);
    p.grad_key_means = head_take(&free, m * h.d);
    p.summary = head_take(&free, m * h.dv);
    p.grad_summary = head_take(&free, m * h.dv);
    p.solved = head_take(&free, m * h.dv);
    p.grad_solved = head_take(&free, m * h.dv);
    p.landmark_statistics = head_take(&free, SOFTMAX_STATISTICS * m);
    p.inverse = free;
    return p;
}

static __device__ token_rows rows_in(real *memory, int64_t cols)
{
    token_rows rows = {memory, sizeof(real) == sizeof(double) ? ATN_F64 : ATN_F32, cols, NULL};
    return rows;
}

/* B: the landmarks attend to the tokens. */
static __device__ head landmarks_to_tokens(const head &h, const head_memory &p)
{
    head b = h;
    b.first = 0;
    b.n = b.end = p.m;
    b.q = rows_in(p.query_means, h.d);
    b.grad_out = rows_in(p.grad_summary, h.dv);
    return b;
}

/* F: the tokens attend to the landmarks, whose values are Z B V. */
static __device__ head tokens_to_landmarks(const head &h, const head_memory &p)
{
    head f = h;
    f.first_key = 0;
    f.n_k = f.end_key = p.m;
    f.k = rows_in(p.key_means, h.d);
    f.v = rows_in(p.solved, h.dv);
    return f;
}

/* The rows from `first` on. */
static __device__ token_rows rows_from(token_rows rows, int64_t first)
{
    int64_t size = type_bytes(rows.type);
    if (rows.positions)
        rows.positions += first;
    else
        rows.memory = (char *)rows.memory + first * rows.stride * size;
    return rows;
}

/* ---- Segment means ---- */

/* m segments of `length` positions: the first `few` hold `size` of them, the others one more. */
typedef struct {
    int64_t size, few;
} segments;

static __device__ segments segments_of(int64_t m, int64_t length)
{
    segments s = {length / m, m - length % m};
    return s;
}

static __device__ int64_t segment_start(const segments &s, int64_t segment)
{
    int64_t extra = segment - s.few;
    return segment * s.size + (extra > 0 ? extra : 0);
}

static __device__ int64_t segment_of(const segments &s, int64_t position)
{
    int64_t in_few = s.few * s.size;
    return position < in_few ? position / s.size : s.few + (position - in_few) / (s.size + 1);
}

static __device__ int64_t segment_size(const segments &s, int64_t segment)
{
    return s.size + (segment >= s.few);
}

/* The first of `count` rows at `position` or later. */
static __device__ int64_t rows_before(const token_rows &rows, int64_t count, int64_t position)
{
    int64_t low = 0, high = count;
    if (!rows.positions)
        return head_smaller(position, count);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (rows.positions[middle] < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* This chunk's partial sums over the segments, in double; padded tokens count as zeros. */
static __device__ void find_means(const head &h, int64_t m, int64_t length, int64_t count,
                                  const token_rows &x, real *means)
{
    segments s = segments_of(m, length);
    for (int64_t i = h.chunk; i < m; i += h.chunks) {
        int64_t first = rows_before(x, count, segment_start(s, i));
        int64_t last = rows_before(x, count, segment_start(s, i + 1));
        BLOCK_EACH (c, h.d) {
            double sum = 0;
            for (int64_t t = first; t < last; t++)
                sum += (double)rows_get(x, t, c);
            means[i * h.d + c] = (real)(sum / (double)segment_size(s, i));
        }
    }
    __syncthreads();
}

static __device__ void all_means(const head &h)
{
    head_memory p = memory_of(h);
    if (p.exact)
        return;
    find_means(h, p.m, h.length, h.n, h.q, p.query_means);
    find_means(h, p.m, h.key_length, h.n_k, h.k, p.key_means);
}

static __device__ void means_backward(const head &h, int64_t m, int64_t length, int64_t first,
                                      int64_t end, const real *grad, const token_rows &to)
{
    segments s = segments_of(m, length);
    BLOCK_EACH (e, (end - first) * h.d) {
        int64_t t = first + e / h.d, c = e % h.d;
        int64_t segment = segment_of(s, head_position(to, t));
        rows_set(to, t, c,
                 rows_get(to, t, c) + grad[segment * h.d + c] / (real)segment_size(s, segment));
    }
    __syncthreads();
}

/* ---- A and its norm ---- */

/* |A|_1: the largest column sum (A >= 0), and the first column that has it. */
static __device__ double column_norm(int64_t m, const real *a, int64_t *column)
{
    __shared__ double sums[BLOCK_THREADS];
    __shared__ int64_t columns[BLOCK_THREADS];
    double largest = 0;
    int64_t at = 0;
    BLOCK_EACH (j, m) {
        double sum = 0;
        for (int64_t i = 0; i < m; i++)
            sum += (double)a[i * m + j];
        if (sum > largest) {
            largest = sum;
            at = j;
        }
    }
    sums[threadIdx.x] = largest;
    columns[threadIdx.x] = at;
    __syncthreads();
    for (int i = 0; i < BLOCK_THREADS; i++)
        if (sums[i] > largest || (sums[i] == largest && columns[i] < at)) {
            largest = sums[i];
            at = columns[i];
        }
    __syncthreads();
    *column = at;
    return largest;
}

static __device__ void find_a(const head &h)
{
    head_memory p = memory_of(h);
    int64_t m = p.m, column;
    if (p.exact)
        return;
    block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, m, m, h.d, p.query_means, h.d, p.key_means, h.d, false,
               p.a, m);
    softmax_rows(m, m, softmax_scale(h), p.a, m);
    double norm = (double)(real)column_norm(m, p.a, &column);
    if (threadIdx.x == 0) {
        nystrom_numbers numbers = {norm, norm, 0, 1};
        *p.numbers = numbers;
    }
    __syncthreads();
}

/* The published code starts all heads of a batch from one norm, the largest. */
static __device__ void join(const head_call &c)
{
    int64_t pieces = c.plan.shape.batch * c.plan.shape.heads, largest = -1;
    for (int64_t i = 0; i < pieces; i++)
        if (!c.plan.nonfinite[i]) {
            double norm = ((nystrom_numbers *)head_state(c, i))->own_norm;
            if (largest < 0 || norm > ((nystrom_numbers *)head_state(c, largest))->own_norm)
                largest = i;
        }
    BLOCK_EACH (i, pieces) {
        nystrom_numbers *numbers = (nystrom_numbers *)head_state(c, i);
        if (largest >= 0 && !c.plan.nonfinite[i]) {
            numbers->norm = ((nystrom_numbers *)head_state(c, largest))->own_norm;
            numbers->is_largest = i == largest;
        }
    }
}

/* The derivatives of all heads by the norm are added to that of the head that attains it, except
 * those that are not finite: they affect their own head only. */
static __device__ void backward_join(const head_call &c)
{
    int64_t pieces = c.plan.shape.batch * c.plan.shape.heads;
    double sum = 0;
    for (int64_t i = 0; i < pieces; i++) {
        double slope = ((nystrom_numbers *)head_state(c, i))->slope;
        sum += !c.plan.nonfinite[i] && isfinite(slope) ? slope : 0;
    }
    __syncthreads();
    BLOCK_EACH (i, pieces) {
        nystrom_numbers *numbers = (nystrom_numbers *)head_state(c, i);
        if (!c.plan.nonfinite[i])
            numbers->slope = numbers->is_largest ? sum : 0;
    }
}

static bool is_coupled(const head_launch *l)
{
    const atn_attention_shape *s = &l->call.plan.shape;
    const atn_attention_desc *desc = &l->call.plan.desc;
    return desc->nystromformer.inverse == ATN_NYSTROM_ORIGINAL &&
           !is_exact(desc, s->tokens, s->key_tokens);
}

/* ---- U = B V and Z U ---- */

static __device__ void invert(const head &h)
{
    head_memory p = memory_of(h);
    if (!p.exact)
        nystrom_inverse(*h.desc, h.tf32, p.m, p.a, p.numbers->norm, p.inverse);
}

/* A chunk's part of B V: landmark i's largest logit, its sum, its row. */
typedef struct {
    double *sums;
    real *largest, *rows;
} summary_parts;

static __device__ summary_parts summary_parts_of(const head &h, int64_t m, int64_t chunk)
{
    real *part = h.partials + chunk * h.chunk_reals;
    summary_parts s = {(double *)part, part + double_reals(m), part + double_reals(m) + m};
    return s;
}

static __device__ void summarise_tile(const head &b, const summary_parts &part, int64_t i,
                                      int64_t rows)
{
    softmax_tiles t = softmax_tiles_of(b);
    softmax_state state = softmax_open(t.rest);
    real *out = part.rows + i * b.dv;
    block_load(b.q, i, rows, b.d, t.q);
    block_fill(rows * b.dv, 0, out);
    for (int64_t j = b.first_key; j < b.end_key; j += HEAD_TILE) {
        int64_t keys = head_smaller(HEAD_TILE, b.end_key - j);
        block_load(b.k, j, keys, b.d, t.k);
        softmax_logits(b, t, rows, keys);
        softmax_advance(state, rows, keys, t.weights, b.dv, out,
                        [](int64_t, int64_t) { return true; });
        block_load(b.v, j, keys, b.dv, t.k);
        block_gemm(b.tf32, AS_IT_IS, AS_IT_IS, rows, b.dv, keys, t.weights, HEAD_TILE, t.k, b.dv,
                   true, out, b.dv);
    }
    BLOCK_EACH (r, rows) {
        part.largest[i + r] = state.largest[r];
        part.sums[i + r] = state.sum[r];
    }
    __syncthreads();
}

static __device__ void summarise(const head &h)
{
    head_memory p = memory_of(h);
    if (p.exact)
        return;
    head b = landmarks_to_tokens(h, p);
    summary_parts part = summary_parts_of(h, p.m, h.chunk);
    for (int64_t i = 0; i < p.m; i += HEAD_TILE)
        summarise_tile(b, part, i, head_smaller(HEAD_TILE, p.m - i));
}

/* Merges the chunks' softmaxes. Of landmark i's statistics it stores the largest logit and 1 / the
 * sum, not the pivot. No keys: U = 0. */
static __device__ void join_summaries(const head &h, const head_memory &p)
{
    BLOCK_EACH (i, p.m) {
        real largest = -REAL_INFINITY;
        double sum = 0;
        for (int64_t c = 0; c < h.chunks; c++)
            largest = larger(largest, summary_parts_of(h, p.m, c).largest[i]);
        for (int64_t c = 0; c < h.chunks; c++) {
            summary_parts part = summary_parts_of(h, p.m, c);
            if (part.sums[i] != 0)
                sum += part.sums[i] * exp((double)part.largest[i] - (double)largest);
        }
        p.landmark_statistics[SOFTMAX_STATISTICS * i] = largest;
        p.landmark_statistics[SOFTMAX_STATISTICS * i + 1] = (real)(sum != 0 ? 1 / sum : 0);
    }
    __syncthreads();
    BLOCK_EACH (e, p.m * h.dv) {
        int64_t i = e / h.dv;
        double largest = (double)p.landmark_statistics[SOFTMAX_STATISTICS * i], sum = 0;
        for (int64_t c = 0; c < h.chunks; c++) {
            summary_parts part = summary_parts_of(h, p.m, c);
            if (part.sums[i] != 0)
                sum += (double)part.rows[e] * exp((double)part.largest[i] - largest);
        }
        p.summary[e] = (real)(sum * (double)p.landmark_statistics[SOFTMAX_STATISTICS * i + 1]);
    }
    __syncthreads();
}

static __device__ void solve(const head &h)
{
    head_memory p = memory_of(h);
    if (p.exact)
        return;
    join_summaries(h, p);
    block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, p.m, h.dv, p.m, nystrom_z(*h.desc, p.m, p.inverse), p.m,
               p.summary, h.dv, false, p.solved, h.dv);
}

static void prepare(head_launch *l)
{
    OVER_CHUNKS(l, all_means);
    OVER_HEADS(l, find_a);
    if (is_coupled(l))
        OVER_ALL(l, join);
    OVER_HEADS(l, invert);
    OVER_CHUNKS(l, summarise);
    OVER_HEADS(l, solve);
}

/* ---- The residual on V ---- */

/* Adds the values under the filter to every query's row of Y. */
static __device__ void add_residual(const head &h)
{
    const atn_tensor &filter = h.desc->residual;
    token_rows taps = head_parameter(filter, h.index);
    int64_t half = filter.rows / 2;
    BLOCK_EACH (e, (h.end - h.first) * h.dv) {
        int64_t i = h.first + e / h.dv, c = e % h.dv, start = head_position(h.q, i) - half;
        real sum = rows_get(h.out, i, c);
        for (int64_t j = rows_before(h.v, h.n_k, start < 0 ? 0 : start); j < h.n_k; j++) {
            int64_t tap = head_position(h.v, j) - start;
            if (tap >= filter.rows)
                break;
            sum += rows_get(taps, tap, 0) * rows_get(h.v, j, c);
        }
        rows_set(h.out, i, c, sum);
    }
    __syncthreads();
}

/* dV of the chunk's keys, from the queries within the filter around each. */
static __device__ void residual_values(const head &h)
{
    const atn_tensor &filter = h.desc->residual;
    token_rows taps = head_parameter(filter, h.index);
    int64_t half = filter.rows / 2;
    BLOCK_EACH (e, (h.end_key - h.first_key) * h.dv) {
        int64_t j = h.first_key + e / h.dv, c = e % h.dv, at = head_position(h.v, j);
        real sum = rows_get(h.grad_v, j, c);
        for (int64_t i = rows_before(h.q, h.n, at - half < 0 ? 0 : at - half); i < h.n; i++) {
            int64_t tap = at - head_position(h.q, i) + half;
            if (tap < 0)
                break;
            sum += rows_get(taps, tap, 0) * rows_get(h.grad_out, i, c);
        }
        rows_set(h.grad_v, j, c, sum);
    }
    __syncthreads();
}

/* The chunk's partial sums of the filter's gradient, the last of its partials. */
static __device__ real *filter_part(const head &h, int64_t chunk)
{
    return h.partials + (chunk + 1) * h.chunk_reals - h.desc->residual.rows;
}

static __device__ void residual_taps(const head &h)
{
    int64_t half = h.desc->residual.rows / 2;
    for (int64_t tap = 0; tap < h.desc->residual.rows; tap++) {
        double sum = 0;
        BLOCK_EACH (e, (h.end - h.first) * h.dv) {
            int64_t i = h.first + e / h.dv, c = e % h.dv;
            int64_t position = head_position(h.q, i) + tap - half;
            int64_t j = position < 0 ? h.n_k : rows_before(h.v, h.n_k, position);
            if (j < h.n_k && head_position(h.v, j) == position)
                sum += (double)rows_get(h.grad_out, i, c) * (double)rows_get(h.v, j, c);
        }
        sum = block_sum(sum);
        if (threadIdx.x == 0)
            filter_part(h, h.chunk)[tap] = (real)sum;
    }
    __syncthreads();
}

static __device__ void add_taps(const head &h)
{
    real *grad = h.grad_parameters[ATN_PARAMETER_RESIDUAL];
    BLOCK_EACH (tap, h.desc->residual.rows) {
        real sum = grad[tap];
        for (int64_t c = 0; c < h.chunks; c++)
            sum += filter_part(h, c)[tap];
        grad[tap] = sum;
    }
    __syncthreads();
}

/* ---- Forward ---- */

static __device__ void write_output(const head &h)
{
    head_memory p = memory_of(h);
    softmax_forward(p.exact ? h : tokens_to_landmarks(h, p));
}

static void forward(head_launch *l)
{
    prepare(l);
    OVER_CHUNKS(l, write_output);
    if (l->call.plan.desc.residual.data)
        OVER_CHUNKS(l, add_residual);
}

/* ---- Backward ---- */

/* The statistics of F, by queries. */
static __device__ void measure_queries(const head &h)
{
    head_memory p = memory_of(h);
    softmax_measure(p.exact ? h : tokens_to_landmarks(h, p), p.token_statistics);
}

static __device__ void backward_queries(const head &h)
{
    head_memory p = memory_of(h);
    softmax_grad_queries(p.exact ? h : tokens_to_landmarks(h, p), p.token_statistics);
}

/* The contribution of the chunk's queries to the gradients of the landmarks' keys and values; if
 * exact, the gradients of the chunk's keys. */
static __device__ void backward_landmarks(const head &h)
{
    head_memory p = memory_of(h);
    if (p.exact) {
        softmax_grad_keys(h, p.token_statistics, 0, h.n);
        return;
    }
    head f = tokens_to_landmarks(h, p);
    real *part = head_partial(h);
    f.grad_k = rows_in(part, h.d);
    f.grad_v = rows_in(part + p.m * h.d, h.dv);
    block_fill(p.m * (h.d + h.dv), 0, part);
    softmax_grad_keys(f, p.token_statistics, h.first, h.end);
}

/* The landmarks' part: dU = Z^T d(ZU), dZ = d(ZU) U^T, and the statistics of B. */
static __device__ void through_z(const head &h)
{
    head_memory p = memory_of(h);
    int64_t m = p.m;
    if (p.exact)
        return;
    head_add_chunks(h, 0, m * h.d, p.grad_key_means);
    head_add_chunks(h, m * h.d, m * h.dv, p.grad_solved);
    block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, m, h.dv, m, nystrom_z(*h.desc, m, p.inverse), m,
               p.grad_solved, h.dv, false, p.grad_summary, h.dv);
    block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, m, m, h.dv, p.grad_solved, h.dv, p.summary, h.dv,
               false, p.grad_z, m);
    block_fill(m * m, 0, p.grad_a);
    nystrom_inverse_backward(*h.desc, h.tf32, m, p.a, p.numbers, p.inverse, p.grad_z, p.grad_a);
    softmax_measure(landmarks_to_tokens(h, p), p.landmark_statistics);
}

/* Backward through B, by keys: their gradients, and partial sums for the landmarks' queries. */
static __device__ void backward_keys(const head &h)
{
    head_memory p = memory_of(h);
    if (p.exact)
        return;
    head b = landmarks_to_tokens(h, p);
    softmax_grad_keys(b, p.landmark_statistics, 0, p.m);
    /* for the chunk's keys alone */
    real *part = head_partial(h);
    int64_t count = h.end_key - h.first_key;
    block_fill(p.m * h.d, 0, part);
    b.grad_q = rows_in(part, h.d);
    b.k = rows_from(b.k, h.first_key);
    b.v = rows_from(b.v, h.first_key);
    b.n_k = count;
    if (count > 0)
        softmax_grad_queries(b, p.landmark_statistics);
}

/* Backward through A, its softmax and the means, once the derivative by the norm is known. */
static __device__ void through_a(const head &h)
{
    head_memory p = memory_of(h);
    int64_t m = p.m, column;
    if (p.exact)
        return;
    head_add_chunks(h, 0, m * h.d, p.grad_query_means);
    column_norm(m, p.a, &column);
    BLOCK_EACH (i, m)
        p.grad_a[i * m + column] += (real)p.numbers->slope;
    __syncthreads();
    softmax_rows_backward(m, m, softmax_scale(h), p.a, p.grad_a, m);
    block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, m, h.d, m, p.grad_a, m, p.key_means, h.d, true,
               p.grad_query_means, h.d);
    block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, m, h.d, m, p.grad_a, m, p.query_means, h.d, true,
               p.grad_key_means, h.d);
}

static __device__ void backward_query_means(const head &h)
{
    head_memory p = memory_of(h);
    if (!p.exact)
        means_backward(h, p.m, h.length, h.first, h.end, p.grad_query_means, h.grad_q);
}

static __device__ void backward_key_means(const head &h)
{
    head_memory p = memory_of(h);
    if (!p.exact)
        means_backward(h, p.m, h.key_length, h.first_key, h.end_key, p.grad_key_means, h.grad_k);
}

static void residual_backward(head_launch *l)
{
    OVER_CHUNKS(l, residual_values);
    if (l->call.wanted & 1u << ATN_PARAMETER_RESIDUAL) {
        OVER_CHUNKS(l, residual_taps);
        OVER_HEADS(l, add_taps);
    }
}

static void backward(head_launch *l)
{
    if (l->call.plan.desc.residual.data)
        residual_backward(l);
    OVER_CHUNKS(l, measure_queries);
    OVER_CHUNKS(l, backward_queries);
    OVER_CHUNKS(l, backward_landmarks);
    OVER_HEADS(l, through_z);
    OVER_CHUNKS(l, backward_keys);
    if (is_coupled(l))
        OVER_ALL(l, backward_join);
    OVER_HEADS(l, through_a);
    OVER_CHUNKS(l, backward_query_means);
    OVER_CHUNKS(l, backward_key_means);
}

extern "C" const head_operator R(cuda_operator_nystromformer) = {sizes, forward, backward, NULL,
                                                                 prepare};
