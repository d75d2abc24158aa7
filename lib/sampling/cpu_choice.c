/* SPDX-License-Identifier: BSD-3-Clause */
/* The samplings that depend on the tokens: k-means++ and Lloyd's steps, ridge leverage scores,
 * randomly pivoted and greedily pivoted Cholesky (attnum/sampling.h). All in f64: the choice is
 * then the same for f32 and f64 tokens that hold the same numbers. */
#include "cpu/blocks.h"
#include "sampling/plan.h"

/* The weights of tokens that must not be drawn: landmarks, and tokens equal to one. */
enum { TAKEN = -2, EQUAL = -1 };

typedef struct {
    const atn_sampling *sampling;
    int64_t n, d, m, stride;
    const real *tokens;
    double s;
    int64_t *taken;    /* m */
    double *weights;   /* n: the weights by which tokens are drawn */
    double *distances; /* n: squared, to the token taken last */
    double *work;
} job;

/* ---- Drawing ---- */

static double squared_distance(const job *j, const real *x, int64_t token)
{
    const real *y = j->tokens + token * j->stride;
    double sum = 0;
    for (int64_t c = 0; c < j->d; c++) {
        double step = (double)x[c] - (double)y[c];
        sum += step * step;
    }
    return sum;
}

/* The first token with the largest weight. */
static int64_t heaviest(const job *j)
{
    int64_t best = 0;
    for (int64_t i = 1; i < j->n; i++)
        best = j->weights[i] > j->weights[best] ? i : best;
    return best;
}

/* The first token with w_1 + ... + w_i > u (w_1 + ... + w_n); rounding may leave only the last. */
static int64_t draw(const job *j, double u)
{
    double total = 0, sum = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < j->n; i++)
        total += j->weights[i] > 0 ? j->weights[i] : 0;
    if (!(total > 0 && isfinite(total)))
        return heaviest(j);
    for (int64_t i = 0; i < j->n && !(sum > u * total); i++)
        if (j->weights[i] > 0) {
            sum += j->weights[i];
            last = i;
        }
    return last;
}

static void take(const job *j, int64_t l, int64_t token)
{
    const real *x = j->tokens + token * j->stride;
    j->taken[l] = token;
    for (int64_t i = 0; i < j->n; i++) {
        j->distances[i] = squared_distance(j, x, i);
        if (j->distances[i] == 0 && j->weights[i] > EQUAL)
            j->weights[i] = EQUAL;
    }
    j->weights[token] = TAKEN;
}

/* Takes m tokens one after the other by their weights, which have been computed: draws each or, if
 * uniforms is null, takes the one with the largest weight. After each, `update` gets its weight and
 * changes those of the others. */
static void choose_tokens(const job *j, const double *uniforms,
                          void (*update)(const job *j, int64_t l, double weight))
{
    for (int64_t l = 0; l < j->m; l++) {
        int64_t token = uniforms ? draw(j, uniforms[l]) : heaviest(j);
        double weight = j->weights[token];
        take(j, l, token);
        if (update)
            update(j, l, weight);
    }
}

static void fill_ones(const job *j)
{
    for (int64_t i = 0; i < j->n; i++)
        j->weights[i] = 1;
}

/* ---- k-means ---- */

static void approach(const job *j, int64_t l, double weight)
{
    (void)weight;
    for (int64_t i = 0; i < j->n; i++)
        if (j->weights[i] >= 0 && (l == 0 || j->distances[i] < j->weights[i]))
            j->weights[i] = j->distances[i];
}

static int64_t nearest(const job *j, const double *centroids, int64_t token)
{
    const real *x = j->tokens + token * j->stride;
    double least = INFINITY;
    int64_t best = 0;
    for (int64_t l = 0; l < j->m; l++) {
        double sum = 0;
        for (int64_t c = 0; c < j->d; c++) {
            double step = (double)x[c] - centroids[l * j->d + c];
            sum += step * step;
        }
        if (sum < least) {
            least = sum;
            best = l;
        }
    }
    return best;
}

static void add_token(const job *j, int64_t token, double *row)
{
    for (int64_t c = 0; c < j->d; c++)
        row[c] += (double)j->tokens[token * j->stride + c];
}

/* Centroids from the assignment of tokens; a centroid without tokens is its seed. */
static void find_means(const job *j, const int64_t *assigned, int64_t *counts, double *centroids)
{
    for (int64_t l = 0; l < j->m; l++)
        counts[l] = 0;
    for (int64_t i = 0; i < j->m * j->d; i++)
        centroids[i] = 0;
    for (int64_t i = 0; i < j->n; i++) {
        add_token(j, i, centroids + assigned[i] * j->d);
        counts[assigned[i]]++;
    }
    for (int64_t l = 0; l < j->m; l++) {
        for (int64_t c = 0; c < j->d && counts[l] > 0; c++)
            centroids[l * j->d + c] /= (double)counts[l];
        if (counts[l] == 0)
            add_token(j, j->taken[l], centroids + l * j->d);
    }
}

static const double *kmeans(const job *j)
{
    double *centroids = j->work;
    int64_t *counts = j->taken + j->m, *assigned = counts + j->m;
    fill_ones(j);
    choose_tokens(j, j->sampling->uniforms, approach);
    if (j->sampling->steps == 0)
        return NULL;
    for (int64_t i = 0; i < j->m * j->d; i++)
        centroids[i] = 0;
    for (int64_t l = 0; l < j->m; l++)
        add_token(j, j->taken[l], centroids + l * j->d);
    for (int64_t step = 0; step < j->sampling->steps; step++) {
        for (int64_t i = 0; i < j->n; i++)
            assigned[i] = nearest(j, centroids, i);
        find_means(j, assigned, counts, centroids);
    }
    return centroids;
}

/* ---- Pivoted Cholesky ---- */

/* A diagonal entry below this after m downdates is rounding: 8 u for each. */
static double noise(const job *j)
{
    return (double)j->m * 0x1p-50;
}

/* Column l of the factor, F_l = (K_l - sum_k F_k F_k[pivot]) / sqrt(residual), and the downdate of
 * the residuals; the column is 0 if there was no residual. work: the columns, n elements each. */
static void eliminate(const job *j, int64_t l, double residual)
{
    double *column = j->work + l * j->n;
    double root = residual > 0 ? 1 / sqrt(residual) : 0;
    for (int64_t i = 0; i < j->n; i++)
        column[i] = exp(-j->s * j->distances[i]);
    for (int64_t k = 0; k < l; k++) {
        const double *earlier = j->work + k * j->n;
        double factor = earlier[j->taken[l]];
        for (int64_t i = 0; i < j->n; i++)
            column[i] -= factor * earlier[i];
    }
    for (int64_t i = 0; i < j->n; i++) {
        column[i] *= root;
        double left = j->weights[i] - column[i] * column[i];
        if (j->weights[i] >= 0)
            j->weights[i] = left > noise(j) ? left : 0;
    }
}

static const double *rpcholesky(const job *j)
{
    fill_ones(j);
    choose_tokens(j, j->sampling->uniforms, eliminate);
    return NULL;
}

static const double *greedy(const job *j)
{
    fill_ones(j);
    choose_tokens(j, NULL, eliminate);
    return NULL;
}

/* ---- Ridge leverage scores ---- */

/* The Cholesky factor of A + lambda I, in the lower triangle of a; A is the kernel matrix of the
 * tokens taken. */
static void factor_pilot(const job *j, double lambda, double *a)
{
    int64_t m = j->m;
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k <= i; k++) {
            const real *x = j->tokens + j->taken[i] * j->stride;
            double sum = i == k ? 1 + lambda : exp(-j->s * squared_distance(j, x, j->taken[k]));
            for (int64_t c = 0; c < k; c++)
                sum -= a[i * m + c] * a[k * m + c];
            a[i * m + k] = i == k ? sqrt(sum) : sum / a[k * m + k];
        }
}

/* Stores r_i = 1 - |F^-1 k_i|^2 of every token in weights; returns the sum. work: F, then m. */
static double find_residuals(const job *j, double lambda)
{
    int64_t m = j->m;
    double *a = j->work, *row = a + m * m, total = 0;
    factor_pilot(j, lambda, a);
    for (int64_t i = 0; i < j->n; i++) {
        const real *x = j->tokens + i * j->stride;
        double residual = 1;
        for (int64_t k = 0; k < m; k++) {
            double sum = exp(-j->s * squared_distance(j, x, j->taken[k]));
            for (int64_t c = 0; c < k; c++)
                sum -= a[k * m + c] * row[c];
            row[k] = sum / a[k * m + k];
            residual -= row[k] * row[k];
        }
        j->weights[i] = residual > 0 ? residual : 0;
        total += j->weights[i];
    }
    return total;
}

/* A + lambda I has a Cholesky factor in floating point if lambda is more than about m (m + 1) u
 * (Higham 2002, Theorem 10.7), u = 2^-53. */
static const double *leverage(const job *j)
{
    double m = (double)j->m, least = m * m * 0x1p-50, lambda = j->sampling->ridge;
    fill_ones(j);
    choose_tokens(j, j->sampling->uniforms, NULL);
    if (lambda == 0)
        lambda = find_residuals(j, least) / m;
    lambda = lambda > least ? lambda : least;
    find_residuals(j, lambda);
    for (int64_t i = 0; i < j->n; i++)
        j->weights[i] = j->weights[i] < lambda ? j->weights[i] / lambda : 1;
    choose_tokens(j, j->sampling->uniforms + j->m, NULL);
    return NULL;
}

/* ---- The table ---- */

static int64_t centroid_work(int64_t n, int64_t d, int64_t m)
{
    (void)n;
    return m * d;
}

static int64_t pilot_work(int64_t n, int64_t d, int64_t m)
{
    (void)n, (void)d;
    return m * m + m;
}

static int64_t factor_work(int64_t n, int64_t d, int64_t m)
{
    (void)d;
    return n * m;
}

static const struct {
    const double *(*choose)(const job *);
    int64_t (*work)(int64_t n, int64_t d, int64_t m);
} choosers[ATN_SAMPLING_COUNT] = {
    [ATN_SAMPLING_KMEANS] = {kmeans, centroid_work},
    [ATN_SAMPLING_LEVERAGE] = {leverage, pilot_work},
    [ATN_SAMPLING_RPCHOLESKY] = {rpcholesky, factor_work},
    [ATN_SAMPLING_GREEDY] = {greedy, factor_work},
};

int64_t R(choose_work)(const atn_sampling *sampling, int64_t n, int64_t d)
{
    return core_sampling_chooses(sampling->kind)
               ? 2 * n + choosers[sampling->kind].work(n, d, sampling->count)
               : 0;
}

const double *R(choose)(const atn_sampling *sampling, int64_t n, int64_t d, const real *tokens,
                        int64_t stride, int64_t *choices, double *work)
{
    double s = sampling->scale > 0 ? sampling->scale : 1 / (2 * sqrt((double)d));
    job j = {sampling, n,       d,    sampling->count, stride,      tokens,
             s,        choices, work, work + n,        work + 2 * n};
    return choosers[sampling->kind].choose(&j);
}
