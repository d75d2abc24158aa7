/* SPDX-License-Identifier: BSD-3-Clause */
#include "attention/products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/landmarks.h"
#include "common/random.h"
#include "common/report.h"
#include "common/staging.h"

static const double EPSILON = 1e-12; /* as in the blocks of the published code */

/* ---- Norms and numbers in a narrow type ---- */

/* x rounded to the storage; native: unchanged. */
static double half_round(atn_storage storage, double x)
{
    if (storage == ATN_STORAGE_NATIVE)
        return x;
    float narrow = (float)x;
    atn_storage_round(storage, 1, &narrow);
    return (double)narrow;
}

double half_divisor(half_norm form, atn_storage storage, atn_sima_norm norm, double epsilon,
                    int64_t n, int64_t d, const double *x)
{
    atn_storage partial = form == HALF_SUMMED ? storage : ATN_STORAGE_NATIVE;
    atn_storage whole = form == HALF_WIDE ? ATN_STORAGE_NATIVE : storage;
    double sum = 0;
    if (norm == ATN_SIMA_NONE)
        return 1;
    for (int64_t i = 0; i < n; i++) {
        double term = norm == ATN_SIMA_L1 ? fabs(x[i * d]) : x[i * d] * x[i * d];
        sum = half_round(partial, sum + half_round(partial, term));
    }
    double size = half_round(whole, norm == ATN_SIMA_L1 ? sum : sqrt(sum));
    double least = half_round(whole, epsilon);
    return size < least ? least : size;
}

static double smallest_normal(atn_dtype dtype, atn_storage storage)
{
    if (storage == ATN_STORAGE_F16)
        return 0x1p-14;
    return dtype == ATN_F64 ? 0x1p-1022 : 0x1p-126;
}

double half_limit(atn_dtype dtype, atn_storage storage)
{
    if (storage == ATN_STORAGE_F16)
        return 65504;
    if (storage == ATN_STORAGE_BF16)
        return 0x1.fep127;
    return dtype == ATN_F64 ? 0x1.fffffffffffffp1023 : 0x1.fffffep127;
}

/* Rounded to dtype, then to the storage. */
static double hold(atn_dtype dtype, atn_storage storage, double x)
{
    return half_round(storage, dtype == ATN_F64 ? x : (double)(float)x);
}

void half_count(half_census *census, atn_dtype dtype, atn_storage storage, double x)
{
    double held = hold(dtype, storage, x);
    census->count++;
    census->nonfinite += !isfinite(held);
    census->subnormal += held != 0 && fabs(held) < smallest_normal(dtype, storage);
    census->vanished += held == 0 && x != 0;
    if (isfinite(x) && fabs(x) > census->largest)
        census->largest = fabs(x);
}

/* ---- The tokens ---- */

static double *matrix(int64_t rows, int64_t cols)
{
    return must_allocate((size_t)rows, (size_t)cols * sizeof(double));
}

/* x R with a random orthogonal R (d x d), which keeps the tokens' lengths. */
static double *rotate(const half_tokens *g, const double *x, const char *purpose)
{
    double *rotation = matrix(g->d, g->d), *out = matrix(g->n, g->d);
    random_stream *r = random_create(g->point->seed, purpose, 0);
    random_orthonormal(r, g->d, g->d, rotation);
    random_free(r);
    for (int64_t i = 0; i < g->n; i++)
        for (int64_t k = 0; k < g->d; k++)
            for (int64_t c = 0; c < g->d; c++)
                out[i * g->d + c] += x[i * g->d + k] * rotation[k * g->d + c];
    free(rotation);
    return out;
}

static int draw_tokens(const half_tokens *g, const input *photos, const char *purpose, double *x)
{
    const half_point *p = g->point;
    if (p->input->photos)
        return input_tokens(photos, p->side, p->side, HALF_CROP / p->side, p->seed, 0, x);
    random_stream *r = random_create(p->seed, purpose, (uint64_t)g->n);
    for (int64_t i = 0; i < g->n * g->d; i++)
        x[i] = p->input->scale * random_normal(r);
    random_free(r);
    return EXIT_PASS;
}

int half_draw(half_tokens *g, const half_point *p, const input *photos)
{
    int64_t n = p->side * p->side;
    *g = (half_tokens){
        .point = p, .n = n, .d = p->d, .queries = n < HALF_QUERIES ? n : HALF_QUERIES};
    double *x = matrix(n, p->d);
    int code = draw_tokens(g, photos, "half tokens", x);
    g->q = rotate(g, x, p->input->aligned ? "half" : "half queries");
    if (p->input->independent)
        code = exit_worst(code, draw_tokens(g, photos, "half tokens of keys", x));
    g->k = rotate(g, x, p->input->aligned ? "half" : "half keys");
    if (p->input->independent)
        code = exit_worst(code, draw_tokens(g, photos, "half tokens of values", x));
    g->v = rotate(g, x, p->input->aligned ? "half" : "half values");
    for (int64_t i = 0; p->input->dead && i < n; i++)
        g->q[i * g->d] = g->k[i * g->d] = 0;
    free(x);
    return code;
}

void half_free_tokens(half_tokens *g)
{
    free(g->q);
    free(g->k);
    free(g->v);
}

/* The token whose output is the i-th of those that are computed. */
static int64_t query_of(const half_tokens *g, int64_t i)
{
    return i * g->n / g->queries;
}

/* ---- The reference ---- */

/* What a column is divided by. */
static long double long_divisor(atn_sima_norm norm, int64_t n, int64_t d, const double *x)
{
    long double sum = 0;
    if (norm == ATN_SIMA_NONE)
        return 1;
    for (int64_t i = 0; i < n; i++)
        sum += norm == ATN_SIMA_L1 ? fabsl(x[i * d]) : (long double)x[i * d] * x[i * d];
    long double size = norm == ATN_SIMA_L1 ? sum : sqrtl(sum);
    return size < EPSILON ? EPSILON : size;
}

/* K^^T V and |K^|^T |V|, d x d each. Sums stay in registers: long double sums in memory would cost
 * more than reading with a stride does. */
static void sum_states(const half_tokens *g, const double *k, const double *v, long double *state,
                       long double *sizes)
{
    int64_t d = g->d;
    for (int64_t c = 0; c < d; c++) {
        long double divisor = long_divisor(g->point->norm, g->n, d, k + c);
        for (int64_t e = 0; e < d; e++) {
            long double sum = 0, size = 0;
            for (int64_t j = 0; j < g->n; j++) {
                long double term = (long double)k[j * d + c] * v[j * d + e];
                sum += term;
                size += fabsl(term);
            }
            state[c * d + e] = sum / divisor;
            sizes[c * d + e] = size / divisor;
        }
    }
}

/* Q^ (K^^T V) in long double, for q, k and v as rounded to a type. */
half_answer half_find_answer(const half_tokens *g, const double *q, const double *k,
                             const double *v)
{
    int64_t d = g->d;
    half_answer a = {.out = matrix(g->queries, d)};
    long double *state = must_allocate((size_t)(2 * d * d + 2 * d), sizeof *state), total = 0,
                bound = 0;
    long double *sizes = state + d * d, *divisors = sizes + d * d, *factors = divisors + d;
    sum_states(g, k, v, state, sizes);
    for (int64_t c = 0; c < d; c++)
        divisors[c] = long_divisor(g->point->norm, g->n, d, q + c);
    for (int64_t i = 0; i < g->queries; i++) {
        for (int64_t c = 0; c < d; c++)
            factors[c] = q[query_of(g, i) * d + c] / divisors[c];
        for (int64_t e = 0; e < d; e++) {
            long double sum = 0, size = 0;
            for (int64_t c = 0; c < d; c++) {
                sum += factors[c] * state[c * d + e];
                size += fabsl(factors[c]) * sizes[c * d + e];
            }
            a.out[i * d + e] = (double)sum;
            a.largest = fmax(a.largest, fabs((double)sum));
            total += sum * sum;
            bound += size * size;
        }
    }
    a.kappa = (double)sqrtl(bound / total);
    free(state);
    return a;
}

/* ---- One type ---- */

static double *hold_all(const half_tokens *g, const half_type *type, const double *x)
{
    double *out = matrix(g->n, g->d);
    for (int64_t i = 0; i < g->n * g->d; i++)
        out[i] = hold(type->dtype, type->storage, x[i]);
    return out;
}

/* In f32 the library multiplies by the reciprocal, in double. 0/0 stays NaN. */
static double divide(atn_dtype dtype, double x, double divisor)
{
    return dtype == ATN_F32 ? x * (1 / divisor) : x / divisor;
}

/* Column c of x^ (n x d). */
static void normalise_column(const half_tokens *g, half_factors *h, const double *x, int64_t c,
                             double *normalised)
{
    const half_type *type = h->type;
    atn_sima_norm norm = g->point->norm;
    double divisor = half_divisor(type->form, type->storage, norm, EPSILON, g->n, g->d, x + c);
    double exact = half_divisor(HALF_WIDE, type->storage, norm, EPSILON, g->n, g->d, x + c);
    double error = isfinite(divisor) ? fabs(divisor - exact) / exact : INFINITY;
    h->norm_largest = fmax(h->norm_largest, divisor);
    h->norm_error = fmax(h->norm_error, error);
    for (int64_t i = c; i < g->n * g->d; i += g->d) {
        double value = divide(type->dtype, x[i], divisor);
        half_count(&h->factors, type->dtype, type->storage, value);
        h->factors.vanished += value == 0 && x[i] != 0; /* divided by infinity */
        normalised[i] = hold(type->dtype, type->storage, value);
    }
}

half_factors half_make_factors(const half_tokens *g, const half_type *type)
{
    half_factors h = {.type = type,
                      .q = hold_all(g, type, g->q),
                      .k = hold_all(g, type, g->k),
                      .v = hold_all(g, type, g->v),
                      .queries = matrix(g->queries, g->d),
                      .keys = matrix(g->n, g->d)};
    double *all = matrix(g->n, g->d);
    for (int64_t c = 0; c < g->d; c++) {
        normalise_column(g, &h, h.q, c, all);
        normalise_column(g, &h, h.k, c, h.keys);
    }
    for (int64_t i = 0; i < g->queries; i++)
        memcpy(h.queries + i * g->d, all + query_of(g, i) * g->d, (size_t)g->d * sizeof *all);
    free(all);
    return h;
}

void half_free_factors(half_factors *h)
{
    free(h->q);
    free(h->k);
    free(h->v);
    free(h->queries);
    free(h->keys);
}

/* Counts the entries of the first product, which are summed in f64 from the factors as rounded to
 * the type. */
half_census half_count_first(const half_tokens *g, const half_factors *h, atn_order order)
{
    int64_t d = g->d, inner = order == ATN_ORDER_TOKENS ? d : g->n;
    int64_t rows = order == ATN_ORDER_TOKENS ? g->queries : d;
    int64_t cols = order == ATN_ORDER_TOKENS ? g->n : d;
    const double *right = order == ATN_ORDER_TOKENS ? h->keys : h->v;
    half_census census = {0};
    double *sums = matrix(1, cols);
    for (int64_t i = 0; i < rows; i++) {
        memset(sums, 0, (size_t)cols * sizeof *sums);
        for (int64_t j = 0; order == ATN_ORDER_TOKENS && j < cols; j++)
            for (int64_t c = 0; c < inner; c++)
                sums[j] += h->queries[i * d + c] * right[j * d + c];
        for (int64_t t = 0; order == ATN_ORDER_CHANNELS && t < inner; t++)
            for (int64_t j = 0; j < cols; j++)
                sums[j] += h->keys[t * d + i] * right[t * d + j];
        for (int64_t j = 0; j < cols; j++)
            half_count(&census, h->type->dtype, h->type->storage, sums[j]);
    }
    free(sums);
    return census;
}

/* The values as an array of the dtype, to be freed. */
static void *as_dtype(atn_dtype dtype, int64_t count, const double *values)
{
    double *out = must_allocate((size_t)count, sizeof *out);
    float *narrow = (float *)(void *)out;
    for (int64_t i = 0; i < count; i++)
        if (dtype == ATN_F32)
            narrow[i] = (float)values[i];
        else
            out[i] = values[i];
    return out;
}

/* Computes Y by the library in the type, and returns it in f64. Returns an exit code. */
int half_multiply(const half_tokens *g, const half_factors *h, atn_order order,
                  atn_context *context, double *out, atn_status *status)
{
    atn_dtype dtype = h->type->dtype;
    int64_t d = g->d, count = g->queries * d;
    atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, dtype);
    desc.sima = (atn_sima_options){.norm = ATN_SIMA_NONE, .order = order};
    desc.storage = h->type->storage;
    atn_attention_shape shape = {1, 1, g->queries, d, d, g->n};
    void *q = as_dtype(dtype, count, h->queries), *k = as_dtype(dtype, g->n * d, h->keys);
    void *v = as_dtype(dtype, g->n * d, h->v), *y = as_dtype(dtype, count, out);
    atn_tensor tq = atn_tensor_dense(q, dtype, 1, 1, g->queries, d);
    atn_tensor tk = atn_tensor_dense(k, dtype, 1, 1, g->n, d);
    atn_tensor tv = atn_tensor_dense(v, dtype, 1, 1, g->n, d);
    atn_tensor ty = atn_tensor_dense(y, dtype, 1, 1, g->queries, d);
    atn_attention_inputs inputs = {.q = &tq, .k = &tk, .v = &tv};
    *status = staged_forward(context, &desc, &shape, &inputs, &ty, NULL);
    for (int64_t i = 0; i < count; i++)
        out[i] = dtype == ATN_F32 ? (double)((float *)y)[i] : ((double *)y)[i];
    free(y);
    free(v);
    free(k);
    free(q);
    return check_status(context, *status, "attention/half");
}
