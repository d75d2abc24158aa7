/* SPDX-License-Identifier: BSD-3-Clause */
/* The samplings that depend on the tokens, as in sampling/cpu_choice.c, one block for each head:
 * k-means++ and Lloyd's steps, ridge leverage scores, randomly pivoted and greedily pivoted
 * Cholesky (attnum/sampling.h). All in f64. */
#include "sampling/cuda.cuh"

/* The weights of tokens that must not be drawn: landmarks, and tokens equal to one. */
enum { TAKEN = -2, EQUAL = -1 };

typedef struct {
    const atn_sampling *sampling;
    int64_t n, d, m;
    token_rows tokens;
    double s;
    int64_t *taken;    /* m */
    double *weights;   /* n: the weights by which tokens are drawn */
    double *distances; /* n: squared, to the token taken last */
    double *work;
} job;

static __device__ __forceinline__ double coordinate(const job &j, int64_t token, int64_t c)
{
    return (double)rows_get(j.tokens, token, c);
}

/* ---- Drawing ---- */

static __device__ __noinline__ double squared_distance(const job &j, int64_t x, int64_t y)
{
    double sum = 0;
    for (int64_t c = 0; c < j.d; c++) {
        double step = coordinate(j, x, c) - coordinate(j, y, c);
        sum += step * step;
    }
    return sum;
}

/* Whether token i goes before token best (-1: none): by weight, of equals the first. */
static __device__ __forceinline__ bool outweighs(const job &j, int64_t i, int64_t best)
{
    if (i < 0 || best < 0)
        return best < 0;
    return j.weights[i] > j.weights[best] || (j.weights[i] == j.weights[best] && i < best);
}

/* The first token with the largest weight. */
static __device__ __noinline__ int64_t heaviest(const job &j)
{
    __shared__ int64_t candidates[BLOCK_THREADS];
    int64_t best = -1;
    BLOCK_EACH (i, j.n)
        best = outweighs(j, i, best) ? i : best;
    candidates[threadIdx.x] = best;
    __syncthreads();
    best = candidates[0];
#pragma unroll 1
    for (int t = 1; t < BLOCK_THREADS; t++)
        best = outweighs(j, candidates[t], best) ? candidates[t] : best;
    __syncthreads();
    return best;
}

/* The first token i of first .. end - 1 with sum + w_first + ... + w_i > goal, or the last with a
 * positive weight. */
static __device__ int64_t find_token(const job &j, int64_t first, int64_t end, double sum,
                                     double goal)
{
    int64_t last = first;
    for (int64_t i = first; i < end && !(sum > goal); i++)
        if (j.weights[i] > 0) {
            sum += j.weights[i];
            last = i;
        }
    return last;
}

/* The first token with w_1 + ... + w_i > u (w_1 + ... + w_n); rounding may leave only the last.
 * Each thread adds up a range of tokens; these sums give the range, in which the token is then
 * found. */
static __device__ __noinline__ int64_t draw(const job &j, double u)
{
    __shared__ double sums[BLOCK_THREADS];
    int64_t each = (j.n + BLOCK_THREADS - 1) / BLOCK_THREADS;
    int64_t first = threadIdx.x * each, stretch = 0;
    double sum = 0, total = 0, before = 0;
    for (int64_t i = first; i < first + each && i < j.n; i++)
        sum += j.weights[i] > 0 ? j.weights[i] : 0;
    sums[threadIdx.x] = sum;
    __syncthreads();
#pragma unroll 1
    for (int t = 0; t < BLOCK_THREADS; t++)
        total += sums[t];
    if (total > 0 && isfinite(total)) {
        sum = 0;
#pragma unroll 1
        for (int t = 0; t < BLOCK_THREADS && !(sum > u * total); t++)
            if (sums[t] > 0) {
                stretch = t;
                before = sum;
                sum += sums[t];
            }
    }
    __syncthreads();
    if (!(total > 0 && isfinite(total)))
        return heaviest(j);
    return find_token(j, stretch * each, head_smaller(stretch * each + each, j.n), before,
                      u * total);
}

static __device__ __noinline__ void take(const job &j, int64_t l, int64_t token)
{
    __syncthreads();
    BLOCK_EACH (i, j.n) {
        j.distances[i] = squared_distance(j, token, i);
        if (j.distances[i] == 0 && j.weights[i] > EQUAL)
            j.weights[i] = EQUAL;
        if (i == token)
            j.weights[i] = TAKEN;
    }
    if (threadIdx.x == 0)
        j.taken[l] = token;
    __syncthreads();
}

static __device__ void nothing(const job &, int64_t, double) {}

/* Takes m tokens one after the other by their weights, which have been computed: draws each or, if
 * uniforms is null, takes the one with the largest weight. After each, `update` gets its weight and
 * changes those of the others. */
template <void (*update)(const job &, int64_t, double)>
static __device__ void choose_tokens(const job &j, const double *uniforms)
{
    for (int64_t l = 0; l < j.m; l++) {
        int64_t token = uniforms ? draw(j, uniforms[l]) : heaviest(j);
        double weight = j.weights[token];
        take(j, l, token);
        update(j, l, weight);
        __syncthreads();
    }
}

static __device__ void fill_ones(const job &j)
{
    BLOCK_EACH (i, j.n)
        j.weights[i] = 1;
    __syncthreads();
}

/* ---- k-means ---- */

static __device__ void approach(const job &j, int64_t l, double)
{
    BLOCK_EACH (i, j.n)
        if (j.weights[i] >= 0 && (l == 0 || j.distances[i] < j.weights[i]))
            j.weights[i] = j.distances[i];
}

static __device__ int64_t nearest(const job &j, const double *centroids, int64_t token)
{
    double least = HUGE_VAL;
    int64_t best = 0;
    for (int64_t l = 0; l < j.m; l++) {
        double sum = 0;
        for (int64_t c = 0; c < j.d; c++) {
            double step = coordinate(j, token, c) - centroids[l * j.d + c];
            sum += step * step;
        }
        if (sum < least) {
            least = sum;
            best = l;
        }
    }
    return best;
}

/* Centroids from the assignment of tokens; a centroid without tokens is its seed. */
static __device__ void find_means(const job &j, const int64_t *assigned, int64_t *counts,
                                  double *centroids)
{
    BLOCK_EACH (e, j.m * j.d) {
        int64_t l = e / j.d, c = e % j.d, count = 0;
        double sum = 0;
        for (int64_t i = 0; i < j.n; i++)
            if (assigned[i] == l) {
                sum += coordinate(j, i, c);
                count++;
            }
        centroids[e] = count > 0 ? sum / (double)count : coordinate(j, j.taken[l], c);
        if (c == 0)
            counts[l] = count;
    }
    __syncthreads();
}

/* Returns the centroids, or null where landmarks are tokens. */
static __device__ const double *kmeans(const job &j)
{
    double *centroids = j.work;
    int64_t *counts = j.taken + j.m, *assigned = counts + j.m;
    fill_ones(j);
    choose_tokens<approach>(j, j.sampling->uniforms);
    if (j.sampling->steps == 0)
        return NULL;
    BLOCK_EACH (e, j.m * j.d)
        centroids[e] = coordinate(j, j.taken[e / j.d], e % j.d);
    __syncthreads();
    for (int64_t step = 0; step < j.sampling->steps; step++) {
        BLOCK_EACH (i, j.n)
            assigned[i] = nearest(j, centroids, i);
        __syncthreads();
        find_means(j, assigned, counts, centroids);
    }
    return centroids;
}

/* ---- Pivoted Cholesky ---- */

/* A diagonal entry below this after m downdates is rounding: 8 u for each. */
static __device__ double noise(const job &j)
{
    return (double)j.m * 0x1p-50;
}

/* Column l of the factor, F_l = (K_l - sum_k F_k F_k[pivot]) / sqrt(residual), and the downdate of
 * the residuals; the column is 0 if there was no residual. work: the columns, n elements each. */
static __device__ void eliminate(const job &j, int64_t l, double residual)
{
    double *column = j.work + l * j.n;
    double root = residual > 0 ? 1 / sqrt(residual) : 0;
    BLOCK_EACH (i, j.n) {
        double entry = exp(-j.s * j.distances[i]);
        for (int64_t k = 0; k < l; k++)
            entry -= j.work[k * j.n + j.taken[l]] * j.work[k * j.n + i];
        column[i] = entry * root;
        double left = j.weights[i] - column[i] * column[i];
        if (j.weights[i] >= 0)
            j.weights[i] = left > noise(j) ? left : 0;
    }
}

/* ---- Ridge leverage scores ---- */

/* The Cholesky factor of A + lambda I, in the lower triangle of a, column by column; A is the
 * kernel matrix of the tokens taken. */
static __device__ void factor_pilot(const job &j, double lambda, double *a)
{
    int64_t m = j.m;
    for (int64_t k = 0; k < m; k++) {
        BLOCK_EACH (e, m - k) {
            int64_t i = k + e;
            double sum =
                e == 0 ? 1 + lambda : exp(-j.s * squared_distance(j, j.taken[i], j.taken[k]));
            for (int64_t c = 0; c < k; c++)
                sum -= a[i * m + c] * a[k * m + c];
            a[i * m + k] = e == 0 ? sqrt(sum) : sum;
        }
        __syncthreads();
        BLOCK_EACH (e, m - k - 1)
            a[(k + 1 + e) * m + k] /= a[k * m + k];
        __syncthreads();
    }
}

/* Stores r_i = 1 - |F^-1 k_i|^2 of every token in weights; returns their sum. work: F, then m
 * elements per thread. */
static __device__ __noinline__ double find_residuals(const job &j, double lambda)
{
    int64_t m = j.m;
    double *a = j.work, *row = a + m * m + threadIdx.x, total = 0; /* strided */
    factor_pilot(j, lambda, a);
    BLOCK_EACH (i, j.n) {
        double residual = 1;
        for (int64_t k = 0; k < m; k++) {
            double sum = exp(-j.s * squared_distance(j, i, j.taken[k]));
            for (int64_t c = 0; c < k; c++)
                sum -= a[k * m + c] * row[c * BLOCK_THREADS];
            sum /= a[k * m + k];
            row[k * BLOCK_THREADS] = sum;
            residual -= sum * sum;
        }
        j.weights[i] = residual > 0 ? residual : 0;
        total += j.weights[i];
    }
    return block_sum(total);
}

/* A + lambda I has a Cholesky factor in floating point if lambda is more than about m (m + 1) u
 * (Higham 2002, Theorem 10.7), u = 2^-53. */
static __device__ void leverage(const job &j)
{
    double m = (double)j.m, least = m * m * 0x1p-50, lambda = j.sampling->ridge;
    fill_ones(j);
    choose_tokens<nothing>(j, j.sampling->uniforms);
    if (lambda == 0)
        lambda = find_residuals(j, least) / m;
    lambda = lambda > least ? lambda : least;
    find_residuals(j, lambda);
    BLOCK_EACH (i, j.n)
        j.weights[i] = j.weights[i] < lambda ? j.weights[i] / lambda : 1;
    __syncthreads();
    choose_tokens<nothing>(j, j.sampling->uniforms + j.m);
}

/* ---- All heads ---- */

/* Returns the centroids, or null if landmarks are tokens. */
static __device__ const double *choose(const job &j)
{
    if (j.sampling->kind == ATN_SAMPLING_KMEANS)
        return kmeans(j);
    if (j.sampling->kind == ATN_SAMPLING_LEVERAGE) {
        leverage(j);
        return NULL;
    }
    fill_ones(j);
    choose_tokens<eliminate>(j, j.sampling->kind == ATN_SAMPLING_RPCHOLESKY ? j.sampling->uniforms
                                                                            : NULL);
    return NULL;
}

static __device__ bool tokens_finite(const job &j)
{
    bool bad = false;
    BLOCK_EACH (e, j.n * j.d)
        bad |= !isfinite(rows_get(j.tokens, e / j.d, e % j.d));
    return !__syncthreads_or(bad);
}

/* Sets the landmarks to NaN, and the choices to valid ones. */
static __device__ void reject_tokens(const job &j, int64_t choices, const token_rows &landmarks)
{
    BLOCK_EACH (i, choices)
        j.taken[i] = i < j.m ? i : 0;
    BLOCK_EACH (e, j.m * j.d)
        rows_set(landmarks, e / j.d, e % j.d, (real)NAN);
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
    choose_all(const __grid_constant__ cuda_sampling s, atn_tensor tokens, atn_tensor landmarks)
{
    double *work = s.work + blockIdx.x * s.doubles;
    double scale = s.desc.scale > 0 ? s.desc.scale : 1 / (2 * sqrt((double)s.d));
    for (int64_t piece = blockIdx.x; piece < s.heads; piece += gridDim.x) {
        token_rows from = rows_of(tokens, piece, NULL), to = rows_of(landmarks, piece, NULL);
        job j = {&s.desc,
                 s.n,
                 s.d,
                 s.m,
                 from,
                 scale,
                 s.choices + piece * s.choice_count,
                 work,
                 work + s.n,
                 work + 2 * s.n};
        bool usable = tokens_finite(j);
        if (usable) {
            const double *centroids = choose(j);
            BLOCK_EACH (e, s.m * s.d) {
                int64_t l = e / s.d, c = e % s.d;
                rows_set(to, l, c, centroids ? (real)centroids[e] : rows_get(from, j.taken[l], c));
            }
        } else {
            reject_tokens(j, s.choice_count, to);
        }
        if (threadIdx.x == 0)
            s.nonfinite[piece] = !usable;
        __syncthreads();
    }
}

atn_status R(cuda_choose)(atn_context *context, const cuda_sampling *s, const atn_tensor *tokens,
                          const atn_tensor *landmarks)
{
    return device_result(context,
                         cuda_launch(choose_all, dim3((unsigned)s->blocks), dim3(BLOCK_THREADS), 0,
                                     (cudaStream_t)device_stream(context), *s, *tokens, *landmarks),
                         "sampling");
}
