/* SPDX-License-Identifier: BSD-3-Clause */
#include "sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ref_memory.h"

typedef struct {
    const atn_sampling *sampling;
    int64_t n, d, m;
    const double *tokens;
    bool *is_taken;       /* n */
    bool *is_equal;       /* n: to one that is taken */
    long double *weights; /* n */
    long double *kernel;  /* n x n */
    long double *inverse; /* m x m */
    long double *means;   /* m x d */
    int64_t *pilot;       /* m */
} landmark_choice;

bool ref_sampling_chooses(atn_sampling_kind kind)
{
    return kind == ATN_SAMPLING_KMEANS || kind == ATN_SAMPLING_LEVERAGE ||
           kind == ATN_SAMPLING_RPCHOLESKY || kind == ATN_SAMPLING_GREEDY;
}

static long double squared_distance(const landmark_choice *c, int64_t i, int64_t j)
{
    long double sum = 0;
    for (int64_t k = 0; k < c->d; k++)
        sum += powl((long double)c->tokens[i * c->d + k] - c->tokens[j * c->d + k], 2);
    return sum;
}

static void fill_kernel(const landmark_choice *c)
{
    double s = c->sampling->scale;
    for (int64_t i = 0; i < c->n; i++)
        for (int64_t j = 0; j < c->n; j++)
            c->kernel[i * c->n + j] =
                expl(-(s > 0 ? (long double)s : 0.5L / sqrtl((long double)c->d)) *
                     squared_distance(c, i, j));
}

/* ---- Drawing ---- */

static bool can_be_drawn(const landmark_choice *c, int64_t i)
{
    return !c->is_taken[i] && !c->is_equal[i] && c->weights[i] > 0;
}

/* The token to take if none can be drawn: one that equals no landmark, or any if there is none. */
static int64_t best_of_the_rest(const landmark_choice *c)
{
    int64_t best = -1;
    for (int64_t i = 0; i < c->n; i++)
        if (!c->is_taken[i] && !c->is_equal[i] && (best < 0 || c->weights[i] > c->weights[best]))
            best = i;
    for (int64_t i = 0; i < c->n && best < 0; i++)
        if (!c->is_taken[i])
            return i;
    return best;
}

static int64_t pick(const landmark_choice *c, const double *u)
{
    long double total = 0, probability = 0;
    int64_t last = -1;
    for (int64_t i = 0; i < c->n; i++)
        total += can_be_drawn(c, i) ? c->weights[i] : 0;
    if (!u || !(total > 0))
        return best_of_the_rest(c);
    for (int64_t i = 0; i < c->n; i++) {
        if (!can_be_drawn(c, i))
            continue;
        last = i;
        probability += c->weights[i] / total;
        if (probability > *u)
            break;
    }
    return last;
}

static void take(const landmark_choice *c, int64_t token)
{
    const double *row = c->tokens + token * c->d;
    c->is_taken[token] = true;
    for (int64_t i = 0; i < c->n; i++) {
        bool equal = true;
        for (int64_t k = 0; k < c->d; k++)
            equal = equal && c->tokens[i * c->d + k] == row[k];
        c->is_equal[i] = c->is_equal[i] || equal;
    }
}

static void start(const landmark_choice *c)
{
    memset(c->is_taken, 0, (size_t)c->n * sizeof *c->is_taken);
    memset(c->is_equal, 0, (size_t)c->n * sizeof *c->is_equal);
    for (int64_t i = 0; i < c->n; i++)
        c->weights[i] = 1;
}

static const double *uniform(const landmark_choice *c, int64_t i)
{
    return c->sampling->kind == ATN_SAMPLING_GREEDY ? NULL : &c->sampling->uniforms[i];
}

/* ---- The four samplings ---- */

static void weigh_by_distance(const landmark_choice *c, int64_t count, const int64_t *taken)
{
    for (int64_t i = 0; i < c->n; i++) {
        c->weights[i] = squared_distance(c, i, taken[0]);
        for (int64_t l = 1; l < count; l++)
            c->weights[i] = fminl(c->weights[i], squared_distance(c, i, taken[l]));
    }
}

/* The Schur complement of one more pivot, K - K_p K_p^T / K_pp; its diagonal gives the weights. */
static void weigh_by_residual(const landmark_choice *c, int64_t pivot)
{
    int64_t n = c->n;
    long double held = c->kernel[pivot * n + pivot], noise = (long double)c->m * 0x1p-50L;
    for (int64_t i = 0; i < n && held > noise; i++)
        for (int64_t j = 0; j < n; j++)
            if (i != pivot && j != pivot)
                c->kernel[i * n + j] -= c->kernel[i * n + pivot] * c->kernel[pivot * n + j] / held;
    for (int64_t i = 0; i < n && held > noise; i++)
        c->kernel[i * n + pivot] = c->kernel[pivot * n + i] = 0;
    for (int64_t i = 0; i < n; i++) {
        long double left = c->kernel[i * n + i];
        c->weights[i] = left > noise ? left : 0;
    }
}

static void choose_one_by_one(const landmark_choice *c, int64_t first_uniform, int64_t *taken)
{
    for (int64_t l = 0; l < c->m; l++) {
        taken[l] = pick(c, uniform(c, first_uniform + l));
        take(c, taken[l]);
        if (c->sampling->kind == ATN_SAMPLING_KMEANS)
            weigh_by_distance(c, l + 1, taken);
        else if (c->sampling->kind != ATN_SAMPLING_LEVERAGE)
            weigh_by_residual(c, taken[l]);
    }
}

/* (A + lambda I)^-1 of the pilot by Gauss-Jordan elimination, without pivoting because it is
 * positive definite. */
static void invert_pilot(const landmark_choice *c, long double lambda)
{
    int64_t m = c->m;
    long double *a = c->inverse;
    for (int64_t i = 0; i < m * m; i++)
        a[i] = c->kernel[c->pilot[i / m] * c->n + c->pilot[i % m]] + (i / m == i % m ? lambda : 0);
    for (int64_t p = 0; p < m; p++) {
        long double pivot = a[p * m + p];
        a[p * m + p] = 1;
        for (int64_t j = 0; j < m; j++)
            a[p * m + j] /= pivot;
        for (int64_t i = 0; i < m; i++) {
            long double factor = a[i * m + p];
            if (i == p)
                continue;
            a[i * m + p] = 0;
            for (int64_t j = 0; j < m; j++)
                a[i * m + j] -= factor * a[p * m + j];
        }
    }
}

/* Stores r_i = K_ii - k_i^T (A + lambda I)^-1 k_i in weights; returns their sum. */
static long double weigh_by_pilot(const landmark_choice *c, long double lambda)
{
    long double total = 0;
    invert_pilot(c, lambda);
    for (int64_t i = 0; i < c->n; i++) {
        long double form = 0;
        for (int64_t k = 0; k < c->m; k++)
            for (int64_t l = 0; l < c->m; l++)
                form += c->inverse[k * c->m + l] * c->kernel[i * c->n + c->pilot[k]] *
                        c->kernel[i * c->n + c->pilot[l]];
        c->weights[i] = fmaxl(0, c->kernel[i * c->n + i] - form);
        total += c->weights[i];
    }
    return total;
}

static void score(const landmark_choice *c)
{
    long double m = (long double)c->m, least = m * m * 0x1p-50L, lambda = c->sampling->ridge;
    choose_one_by_one(c, 0, c->pilot);
    if (lambda == 0)
        lambda = weigh_by_pilot(c, least) / m;
    lambda = fmaxl(lambda, least);
    weigh_by_pilot(c, lambda);
    memset(c->is_taken, 0, (size_t)c->n * sizeof *c->is_taken);
    memset(c->is_equal, 0, (size_t)c->n * sizeof *c->is_equal);
    for (int64_t i = 0; i < c->n; i++)
        c->weights[i] = fminl(1, c->weights[i] / lambda);
}

static long double centroid_distance(const landmark_choice *c, int64_t token, int64_t l)
{
    long double sum = 0;
    for (int64_t k = 0; k < c->d; k++)
        sum += powl(c->tokens[token * c->d + k] - c->means[l * c->d + k], 2);
    return sum;
}

/* Means of the assigned tokens, or the seed itself if none is assigned. */
static void find_means(const landmark_choice *c, const int64_t *seeds, const int64_t *assigned)
{
    for (int64_t l = 0; l < c->m; l++)
        for (int64_t k = 0; k < c->d; k++) {
            long double sum = 0;
            int64_t held = 0;
            for (int64_t i = 0; i < c->n; i++)
                if (assigned[i] == l) {
                    sum += c->tokens[i * c->d + k];
                    held++;
                }
            c->means[l * c->d + k] =
                held > 0 ? sum / (long double)held : c->tokens[seeds[l] * c->d + k];
        }
}

static void lloyd(const landmark_choice *c, const int64_t *seeds, int64_t *assigned)
{
    for (int64_t l = 0; l < c->m; l++)
        for (int64_t k = 0; k < c->d; k++)
            c->means[l * c->d + k] = c->tokens[seeds[l] * c->d + k];
    for (int64_t step = 0; step < c->sampling->steps; step++) {
        for (int64_t i = 0; i < c->n; i++) {
            assigned[i] = 0;
            for (int64_t l = 1; l < c->m; l++)
                if (centroid_distance(c, i, l) < centroid_distance(c, i, assigned[i]))
                    assigned[i] = l;
        }
        find_means(c, seeds, assigned);
    }
}

/* ---- Memory ---- */

static void *zeros(int64_t count, size_t size)
{
    return ref_take((size_t)(count > 0 ? count : 0), size);
}

static void free_choice(landmark_choice *c)
{
    free(c->pilot);
    free(c->means);
    free(c->inverse);
    free(c->kernel);
    free(c->weights);
    free(c->is_equal);
    free(c->is_taken);
}

static bool make_choice(landmark_choice *c)
{
    int64_t n = c->n, m = c->m;
    c->is_taken = zeros(n, sizeof *c->is_taken);
    c->is_equal = zeros(n, sizeof *c->is_equal);
    c->weights = zeros(n, sizeof *c->weights);
    c->kernel = zeros(n * n, sizeof *c->kernel);
    c->inverse = zeros(m * m, sizeof *c->inverse);
    c->means = zeros(m * c->d, sizeof *c->means);
    c->pilot = zeros(m, sizeof *c->pilot);
    return c->is_taken && c->is_equal && c->weights && c->kernel && c->inverse && c->means &&
           c->pilot;
}

static void choose(const landmark_choice *c, int64_t *taken, int64_t *assigned)
{
    bool scores = c->sampling->kind == ATN_SAMPLING_LEVERAGE;
    if (c->sampling->kind != ATN_SAMPLING_KMEANS)
        fill_kernel(c);
    start(c);
    if (scores)
        score(c);
    choose_one_by_one(c, scores ? c->m : 0, taken);
    if (c->sampling->kind == ATN_SAMPLING_KMEANS && c->sampling->steps > 0)
        lloyd(c, taken, assigned);
}

atn_status ref_choose(const atn_sampling *sampling, int64_t n, int64_t d, const double *tokens,
                      int64_t *taken, int64_t *assigned)
{
    landmark_choice c = {
        .sampling = sampling, .n = n, .d = d, .m = sampling->count, .tokens = tokens};
    bool made = make_choice(&c);
    if (made)
        choose(&c, taken, assigned);
    free_choice(&c);
    return made ? ATN_OK : ATN_ERR_MEMORY;
}

atn_status ref_chosen_landmarks(const atn_sampling *sampling, int64_t n, int64_t d,
                                const double *tokens, double *landmarks)
{
    landmark_choice c = {
        .sampling = sampling, .n = n, .d = d, .m = sampling->count, .tokens = tokens};
    int64_t *taken = zeros(c.m, sizeof *taken), *assigned = zeros(n, sizeof *assigned);
    bool made = make_choice(&c) && taken && assigned;
    if (made)
        choose(&c, taken, assigned);
    bool means = sampling->kind == ATN_SAMPLING_KMEANS && sampling->steps > 0;
    for (int64_t i = 0; made && i < c.m * d; i++)
        landmarks[i] = means ? (double)c.means[i] : tokens[taken[i / d] * d + i % d];
    free(assigned);
    free(taken);
    free_choice(&c);
    return made ? ATN_OK : ATN_ERR_MEMORY;
}
