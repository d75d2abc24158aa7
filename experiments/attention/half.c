/* SPDX-License-Identifier: BSD-3-Clause */
/* SimA's two orders in half precision: (Q^ K^^T) V and Q^ (K^^T V) in f64, f32, and emulated bf16
 * and f16, with l1 norms (paper), l2 norms and none (section 4.6).
 *
 * A point is one input, n, d and norm. Q^ and K^ are normalised here, so that the norms can be
 * formed as a half-precision program forms them; the library multiplies, for `queries` of the n
 * tokens, which makes either order linear in n. The definition in long double is the reference, on
 * the numbers that the type can hold. */
#include "attention/half.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ruler.h>

#include "common/experiment.h"
#include "common/fit.h"
#include "common/inputs.h"
#include "common/random.h"
#include "common/report.h"
#include "registry.h"
#include "spectral/landmarks.h"

static const double EPSILON = 1e-12; /* published code, blocks */
enum { QUERIES = 128, WIDTHS_TOKENS = 784, MOST_TOKENS = 4000000 };

/* ---- Norms and numbers in a narrow type ---- */

double half_round(atn_storage storage, double x)
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

#define NAMED_ENTRY(code, name, description) [code] = name,
static const char *const form_names[] = {HALF_NORM_LIST(NAMED_ENTRY)};
static const char *const norm_names[] = {ATN_SIMA_NORM_LIST(NAMED_ENTRY)};
static const char *const order_names[] = {ATN_ORDER_LIST(NAMED_ENTRY)};
#undef NAMED_ENTRY

static double smallest_normal(atn_dtype dtype, atn_storage storage)
{
    if (storage == ATN_STORAGE_F16)
        return 0x1p-14;
    return dtype == ATN_F64 ? 0x1p-1022 : 0x1p-126;
}

static double largest_finite(atn_dtype dtype, atn_storage storage)
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

/* ---- What there is to do ---- */

static const struct input_case {
    const char *name;
    double scale;
    bool aligned, dead, photos;
    bool widths; /* also against d */
} cases[] = {
    {.name = "normal", .scale = 1, .widths = true},
    {.name = "aligned", .scale = 1, .aligned = true, .widths = true},
    {.name = "normal-x8", .scale = 8},
    {.name = "normal-x64", .scale = 64},
    {.name = "dead-channel", .scale = 1, .dead = true},
    {.name = "photos", .scale = 1, .photos = true},
};
enum { CASES = sizeof cases / sizeof *cases };

static const struct half_type {
    const char *name;
    atn_dtype dtype;
    atn_storage storage;
    half_norm form;
} types[] = {
    {"f64", ATN_F64, ATN_STORAGE_NATIVE, HALF_WIDE},
    {"f32", ATN_F32, ATN_STORAGE_NATIVE, HALF_WIDE},
    {"bf16", ATN_F32, ATN_STORAGE_BF16, HALF_WIDE},
    {"bf16", ATN_F32, ATN_STORAGE_BF16, HALF_STORED},
    {"bf16", ATN_F32, ATN_STORAGE_BF16, HALF_SUMMED},
    {"f16", ATN_F32, ATN_STORAGE_F16, HALF_WIDE},
    {"f16", ATN_F32, ATN_STORAGE_F16, HALF_STORED},
    {"f16", ATN_F32, ATN_STORAGE_F16, HALF_SUMMED},
};
enum { TYPES = sizeof types / sizeof *types };

/* Sides of the grid of n tokens; widths at n = 784. Lists end with 0. */
static const struct {
    int64_t sides[8], widths[8];
} efforts[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {{7, 14, 28, 56}, {16, 32, 64}},
    [EFFORT_DEFAULT] = {{7, 14, 28, 56, 112, 224}, {16, 32, 64, 128, 256}},
    [EFFORT_FULL] = {{7, 14, 28, 56, 112, 224, 448}, {16, 32, 64, 128, 256, 512, 1024}},
};
/* Photographs: all of one crop of 224 x 224 pixels. */
enum { CROP = 224, SMALLEST_PATCH = 4 };

typedef struct {
    const struct input_case *input;
    atn_sima_norm norm;
    int64_t side, d;
    uint64_t seed;
} half_point;

typedef struct {
    half_point *points;
    int64_t count;
    input *photos;
} sweep;

static void add_norms(sweep *w, half_point p)
{
    w->points = must_resize(w->points, (size_t)w->count + ATN_SIMA_NORM_COUNT, sizeof *w->points);
    for (int norm = 0; norm < ATN_SIMA_NORM_COUNT; norm++) {
        p.norm = (atn_sima_norm)norm;
        w->points[w->count++] = p;
    }
}

static int64_t root_of(int64_t n)
{
    return (int64_t)llround(sqrt((double)n));
}

static void add_side(sweep *w, half_point p, int64_t side)
{
    p.side = side;
    p.d = TOKEN_DIM;
    if (!p.input->photos || (CROP % side == 0 && CROP / side >= SMALLEST_PATCH))
        add_norms(w, p);
}

static void add_points(sweep *w, const settings *s, half_point p)
{
    const int64_t *sides = efforts[s->effort].sides, *widths = efforts[s->effort].widths;
    for (int i = 0; i < s->tokens.count; i++)
        add_side(w, p, root_of(s->tokens.items[i]));
    if (s->tokens.count > 0)
        return;
    for (int i = 0; sides[i]; i++)
        add_side(w, p, sides[i]);
    for (int i = 0; p.input->widths && widths[i]; i++) {
        p.side = root_of(WIDTHS_TOKENS);
        p.d = widths[i];
        if (p.d != TOKEN_DIM)
            add_norms(w, p);
    }
}

static int check_tokens(const settings *s)
{
    for (int i = 0; i < s->tokens.count; i++) {
        int64_t n = s->tokens.items[i];
        if (n < 4 || n > MOST_TOKENS || root_of(n) * root_of(n) != n) {
            report_error("--n %" PRId64 ": expected a square number, 4 to %d: tokens stand on a "
                         "square grid",
                         n, MOST_TOKENS);
            return EXIT_USAGE;
        }
    }
    return EXIT_PASS;
}

static int prepare(const settings *s, void **state, int64_t *points)
{
    if (check_tokens(s) != EXIT_PASS)
        return EXIT_USAGE;
    sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    for (int i = 0; i < CASES; i++)
        for (int j = 0; j < s->seeds.count; j++)
            add_points(w, s, (half_point){.input = &cases[i], .seed = (uint64_t)s->seeds.items[j]});
    *points = w->count;
    return input_open("photos", 0, 0, &w->photos);
}

static void release(void *state)
{
    sweep *w = state;
    input_free(w->photos);
    free(w->points);
    free(w);
}

static bool input_at(const void *state, int index, const char **name, const char **sha256)
{
    const sweep *w = state;
    *name = input_name(w->photos);
    *sha256 = input_sha256(w->photos);
    return index == 0;
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const half_point *p = &((const sweep *)state)->points[point];
    snprintf(buffer, size, "%s n=%" PRId64 " d=%" PRId64 " %s seed=%" PRIu64, p->input->name,
             p->side * p->side, p->d, norm_names[p->norm], p->seed);
}

static void replay(const void *state, int64_t point, settings_point *options)
{
    const half_point *p = &((const sweep *)state)->points[point];
    *options = (settings_point){.input = "",
                                .seed = (int64_t)p->seed,
                                .tokens = p->d == TOKEN_DIM ? p->side * p->side : 0,
                                .by_effort = true};
}

static double weight(const void *state, int64_t point)
{
    const half_point *p = &((const sweep *)state)->points[point];
    return (double)(p->side * p->side) * (double)p->d * (double)(p->d + QUERIES);
}

/* ---- Columns ---- */

static const column columns[] = {
    {"input", COLUMN_TEXT, "",
     "normal: tokens N(0, 1), Q, K and V of three random rotations of them; aligned: Q = K = V; "
     "-x8, -x64: so many times normal; dead-channel: the first channel of Q and K is 0; photos: "
     "rotations of a photograph's tokens"},
    {"n", COLUMN_INTEGER, "", "tokens"},
    {"d", COLUMN_INTEGER, "", "width of queries, keys and values"},
    {"norm", COLUMN_TEXT, "", "of the columns of Q and K: l1 (paper), l2, none (section 4.6)"},
    {"storage", COLUMN_TEXT, "",
     "f64, f32: the arithmetic; bf16, f16: Q, K, V, Q^, K^, the first product and the output are "
     "rounded to it, sums of products are in f32"},
    {"norm_form", COLUMN_TEXT, "",
     "how the norms are formed; wide: in f64; stored: summed so, then norm and epsilon are "
     "rounded to the storage; summed: so is every partial sum, token by token"},
    {"order", COLUMN_TEXT, "", "tokens: (Q^ K^^T) V; channels: Q^ (K^^T V)"},
    {"outcome", COLUMN_TEXT, "", "the status that the library returned"},
    {"digits", COLUMN_REAL, "", "-log10 of relative_error, within 0 .. 15.95; 0 if not finite"},
    {"relative_error", COLUMN_REAL, "",
     "|Y - reference|_F / |reference|_F over `queries` rows of Y; the reference is the definition "
     "in long double, on Q, K and V as the type holds them"},
    {"order_difference", COLUMN_REAL, "",
     "|Y_tokens - Y_channels|_F / |reference|_F; missing if one of them is not finite"},
    {"kappa", COLUMN_REAL, "", "||Q^| (|K^|^T |V|)|_F / |reference|_F"},
    {"ratio", COLUMN_REAL, "",
     "relative_error / (kappa rounding): above 1, range or the norms' sums explain what rounding "
     "of the factors and products does not"},
    {"rounding", COLUMN_REAL, "",
     "f64: (3 n + d + 8) u; f32: (n + d + 8) u; narrow types: the latter and 4 times their own u"},
    {"first_largest", COLUMN_REAL, "",
     "largest |entry| of the first product, Q^ K^^T (of `queries` rows) or K^^T V, before rounding"},
    {"first_nonfinite", COLUMN_REAL, "", "share of its entries that are not finite in the type"},
    {"first_subnormal", COLUMN_REAL, "", "share that is subnormal"},
    {"first_vanished", COLUMN_REAL, "", "share that is 0 in the type, but not before"},
    {"factors_subnormal", COLUMN_REAL, "", "share of the entries of Q^ and K^ that is subnormal"},
    {"factors_vanished", COLUMN_REAL, "", "share of them that is 0 in the type, but not before"},
    {"factors_nonfinite", COLUMN_REAL, "", "share of them that is not finite"},
    {"output_largest", COLUMN_REAL, "", "largest |entry| of the reference"},
    {"norm_largest", COLUMN_REAL, "",
     "what columns of Q and K are divided by, the largest; infinite: the norm overflows, and the "
     "column becomes 0; missing without norms"},
    {"norm_error", COLUMN_REAL, "",
     "largest relative difference of a norm from that in f64; missing without norms, infinite if "
     "not finite"},
    {"limit", COLUMN_REAL, "", "the largest finite number of the type"},
    {"queries", COLUMN_INTEGER, "", "rows of Y that are computed, spread evenly over the tokens"},
    {"seed", COLUMN_INTEGER, "", "the seed of the tokens and the rotations"},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static const column fit_columns[] = {
    {"quantity", COLUMN_TEXT, "",
     "the fitted column of half.csv: first_largest of either order, output_largest, "
     "order_difference"},
    {"order", COLUMN_TEXT, "", "the rows it is taken from; missing for what both orders share"},
    {"input", COLUMN_TEXT, "", "as in half.csv"},
    {"norm", COLUMN_TEXT, "", "as in half.csv"},
    {"storage", COLUMN_TEXT, "", "as in half.csv; norms are wide"},
    {"against", COLUMN_TEXT, "", "n, with d = 32; or d, with n = 784"},
    {"exponent", COLUMN_REAL, "", "p of c n^p or c d^p, by least squares on the logarithms"},
    {"std_error", COLUMN_REAL, "", "standard error of p, from the residuals"},
    {"points", COLUMN_INTEGER, "", "rows fitted"},
    {"from", COLUMN_INTEGER, "", "the smallest n or d"},
    {"to", COLUMN_INTEGER, "", "the largest n or d"},
};
enum { FIT_COLUMNS = sizeof fit_columns / sizeof *fit_columns };

/* ---- The tokens ---- */

typedef struct {
    const half_point *point;
    int64_t n, d, queries;
    double *q, *k, *v; /* n x d, as drawn */
} drawing;

static double *matrix(int64_t rows, int64_t cols)
{
    return must_allocate((size_t)rows, (size_t)cols * sizeof(double));
}

/* x R, R random with orthonormal columns: a projection that keeps the tokens' lengths. */
static double *rotate(const drawing *g, const double *x, const char *purpose)
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

static int draw_tokens(const drawing *g, const input *photos, double *x)
{
    const half_point *p = g->point;
    if (p->input->photos)
        return input_tokens(photos, p->side, p->side, CROP / p->side, p->seed, 0, x);
    random_stream *r = random_create(p->seed, "half tokens", (uint64_t)g->n);
    for (int64_t i = 0; i < g->n * g->d; i++)
        x[i] = p->input->scale * random_normal(r);
    random_free(r);
    return EXIT_PASS;
}

static int draw(drawing *g, const half_point *p, const input *photos)
{
    int64_t n = p->side * p->side;
    *g = (drawing){.point = p, .n = n, .d = p->d, .queries = n < QUERIES ? n : QUERIES};
    double *x = matrix(n, p->d);
    int code = draw_tokens(g, photos, x);
    g->q = rotate(g, x, p->input->aligned ? "half" : "half queries");
    g->k = rotate(g, x, p->input->aligned ? "half" : "half keys");
    g->v = rotate(g, x, p->input->aligned ? "half" : "half values");
    for (int64_t i = 0; p->input->dead && i < n; i++)
        g->q[i * g->d] = g->k[i * g->d] = 0;
    free(x);
    return code;
}

static void free_drawing(drawing *g)
{
    free(g->q);
    free(g->k);
    free(g->v);
}

/* Row `i` of those that are computed. */
static int64_t query_of(const drawing *g, int64_t i)
{
    return i * g->n / g->queries;
}

/* ---- The reference ---- */

typedef struct {
    double *out; /* queries x d */
    double kappa, largest;
} answer;

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

/* K^^T V and |K^|^T |V|, d x d each. */
static void sum_states(const drawing *g, const double *k, const double *v, long double *state,
                       long double *sizes)
{
    int64_t d = g->d;
    for (int64_t j = 0; j < g->n; j++)
        for (int64_t c = 0; c < d; c++)
            for (int64_t e = 0; e < d; e++) {
                long double term = (long double)k[j * d + c] * v[j * d + e];
                state[c * d + e] += term;
                sizes[c * d + e] += fabsl(term);
            }
    for (int64_t c = 0; c < d; c++) {
        long double divisor = long_divisor(g->point->norm, g->n, d, k + c);
        for (int64_t e = 0; e < d; e++) {
            state[c * d + e] /= divisor;
            sizes[c * d + e] /= divisor;
        }
    }
}

/* Q^ (K^^T V) in long double, of q, k and v as a type holds them. */
static answer find_answer(const drawing *g, const double *q, const double *k, const double *v)
{
    int64_t d = g->d;
    answer a = {.out = matrix(g->queries, d)};
    long double *state = must_allocate((size_t)(2 * d * d + d), sizeof *state), total = 0,
                bound = 0;
    long double *sizes = state + d * d, *divisors = sizes + d * d;
    sum_states(g, k, v, state, sizes);
    for (int64_t c = 0; c < d; c++)
        divisors[c] = long_divisor(g->point->norm, g->n, d, q + c);
    for (int64_t i = 0; i < g->queries; i++)
        for (int64_t e = 0; e < d; e++) {
            long double sum = 0, size = 0;
            for (int64_t c = 0; c < d; c++) {
                long double factor = q[query_of(g, i) * d + c] / divisors[c];
                sum += factor * state[c * d + e];
                size += fabsl(factor) * sizes[c * d + e];
            }
            a.out[i * d + e] = (double)sum;
            a.largest = fmax(a.largest, fabs((double)sum));
            total += sum * sum;
            bound += size * size;
        }
    a.kappa = (double)sqrtl(bound / total);
    free(state);
    return a;
}

/* ---- One type ---- */

/* Q, K and V as a type holds them, and Q^ and K^ as it forms them. */
typedef struct {
    const struct half_type *type;
    double *q, *k, *v;
    double *queries, *keys; /* queries x d rows of Q^; K^ */
    half_census factors;
    double norm_largest, norm_error;
} held;

static double *hold_all(const drawing *g, const struct half_type *type, const double *x)
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
static void normalise_column(const drawing *g, held *h, const double *x, int64_t c,
                             double *normalised)
{
    const struct half_type *type = h->type;
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

static held hold_drawing(const drawing *g, const struct half_type *type)
{
    held h = {.type = type,
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

static void free_held(held *h)
{
    free(h->q);
    free(h->k);
    free(h->v);
    free(h->queries);
    free(h->keys);
}

/* The first product's entries, as sums of the factors that the type holds. */
static half_census count_first(const drawing *g, const held *h, atn_order order)
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

/* Values as the dtype's own array, to be freed. */
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

/* Y by the library, in f64 whatever the type. Returns an exit code. */
static int multiply(const drawing *g, const held *h, atn_order order, atn_context *context,
                    double *out, atn_status *status)
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
    atn_plan *plan = NULL;
    *status = atn_attention_plan(context, &desc, &shape, &plan);
    if (*status == ATN_OK)
        *status = atn_attention_forward(plan, &(atn_attention_inputs){.q = &tq, .k = &tk, .v = &tv},
                                        &ty, NULL);
    atn_plan_free(plan);
    for (int64_t i = 0; i < count; i++)
        out[i] = dtype == ATN_F32 ? (double)((float *)y)[i] : ((double *)y)[i];
    free(y);
    free(v);
    free(k);
    free(q);
    return check_status(context, *status, "attention/half");
}

/* ---- Rows ---- */

typedef struct {
    const drawing *g;
    const held *h;
    const answer *want;
    atn_order order;
    atn_status outcome;
    const double *out;
    double difference; /* of the orders; NaN if one is not finite */
} result;

static double rounding_of(const drawing *g, const struct half_type *type)
{
    double terms = (double)((type->dtype == ATN_F64 ? 3 : 1) * g->n + g->d + 8);
    return terms * atn_dtype_roundoff(type->dtype) + 4 * atn_storage_roundoff(type->storage);
}

static double share(int64_t part, const half_census *census)
{
    return (double)part / (double)census->count;
}

static void put_key(table *raw, const result *r)
{
    const half_point *p = r->g->point;
    table_text(raw, p->input->name);
    table_integer(raw, r->g->n);
    table_integer(raw, r->g->d);
    table_text(raw, norm_names[p->norm]);
    table_text(raw, r->h->type->name);
    table_text(raw, form_names[r->h->type->form]);
    table_text(raw, order_names[r->order]);
    table_text(raw, atn_status_name(r->outcome));
}

static void put_range(table *raw, const result *r)
{
    const held *h = r->h;
    half_census first = count_first(r->g, h, r->order);
    bool normed = r->g->point->norm != ATN_SIMA_NONE;
    table_real(raw, first.largest);
    table_real(raw, share(first.nonfinite, &first));
    table_real(raw, share(first.subnormal, &first));
    table_real(raw, share(first.vanished, &first));
    table_real(raw, share(h->factors.subnormal, &h->factors));
    table_real(raw, share(h->factors.vanished, &h->factors));
    table_real(raw, share(h->factors.nonfinite, &h->factors));
    table_real(raw, r->want->largest);
    table_real_if(raw, normed, h->norm_largest);
    table_real_if(raw, normed, h->norm_error);
    table_real(raw, largest_finite(h->type->dtype, h->type->storage));
}

/* Rounding must explain native types: the bound holds for every input without overflow. */
static int put_result(table *raw, const result *r)
{
    int64_t rows = r->g->queries, cols = r->g->d;
    ref_difference difference = ref_compare_f64(rows, cols, r->out, cols, r->want->out, cols);
    double rounding = rounding_of(r->g, r->h->type);
    double ratio = difference.relative_frobenius / (r->want->kappa * rounding);
    put_key(raw, r);
    table_real(raw, difference.digits);
    table_real(raw, difference.relative_frobenius);
    table_real_if(raw, isfinite(r->difference), r->difference);
    table_real(raw, r->want->kappa);
    table_real(raw, ratio);
    table_real(raw, rounding);
    put_range(raw, r);
    table_integer(raw, rows);
    table_integer(raw, (int64_t)r->g->point->seed);
    if (r->h->type->storage != ATN_STORAGE_NATIVE || ref_judge(REF_ROUNDING, ratio) != REF_FAIL)
        return EXIT_PASS;
    report_error("sima %s %s: relative error %.3g, %.3g times what rounding explains",
                 order_names[r->order], r->h->type->name, difference.relative_frobenius, ratio);
    return EXIT_CHECK;
}

static int run_type(const drawing *g, const held *h, const answer *want, atn_context *context,
                    table *raw)
{
    int64_t count = g->queries * g->d;
    double *out[2] = {matrix(1, count), matrix(1, count)};
    result r = {.g = g, .h = h, .want = want};
    static const atn_order orders[2] = {ATN_ORDER_TOKENS, ATN_ORDER_CHANNELS};
    atn_status outcomes[2];
    int code = EXIT_PASS;
    for (int i = 0; i < 2; i++)
        code = exit_worst(code, multiply(g, h, orders[i], context, out[i], &outcomes[i]));
    double sum = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += (out[0][i] - out[1][i]) * (out[0][i] - out[1][i]);
        size += want->out[i] * want->out[i];
    }
    r.difference = sqrt(sum / size);
    for (int i = 0; i < 2 && code != EXIT_ENVIRONMENT; i++) {
        r.order = orders[i];
        r.outcome = outcomes[i];
        r.out = out[i];
        code = exit_worst(code, put_result(raw, &r));
    }
    free(out[0]);
    free(out[1]);
    return code;
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const sweep *w = state;
    const half_point *p = &w->points[point];
    drawing g;
    int code = draw(&g, p, w->photos);
    answer want = {0};
    for (int i = 0; i < TYPES && code != EXIT_ENVIRONMENT; i++) {
        if (types[i].form != HALF_WIDE && p->norm == ATN_SIMA_NONE)
            continue;
        held h = hold_drawing(&g, &types[i]);
        if (types[i].form == HALF_WIDE) { /* the first of a storage: they hold the same numbers */
            free(want.out);
            want = find_answer(&g, h.q, h.k, h.v);
        }
        code = exit_worst(code, run_type(&g, &h, &want, context, raw));
        free_held(&h);
    }
    free(want.out);
    free_drawing(&g);
    return code;
}

/* ---- The fits ---- */

static const struct fitted {
    const char *quantity, *order, *storage;
    bool every_norm; /* or l1 alone */
} fitted[] = {
    {"first_largest", "tokens", "f64", true},     {"first_largest", "channels", "f64", true},
    {"output_largest", "tokens", "f64", true},    {"order_difference", "tokens", "f64", false},
    {"order_difference", "tokens", "f32", false}, {"order_difference", "tokens", "bf16", false},
    {"order_difference", "tokens", "f16", false},
};
enum { FITTED = sizeof fitted / sizeof *fitted };

static bool has_text(const table *t, int64_t row, const char *name, const char *text)
{
    return strcmp(table_get_text(t, row, table_column(t, name)), text) == 0;
}

static int64_t get_integer(const table *t, int64_t row, const char *name)
{
    return table_get_integer(t, row, table_column(t, name));
}

typedef struct {
    int64_t count, from, to;
    double *x, *y;
} series;

/* The values of a quantity against n (at d = 32) or d (at n = 784); seeds are further points. */
static series collect_series(const table *raw, const struct fitted *f, const char *name,
                             const char *norm, bool widths)
{
    size_t rows = (size_t)table_rows(raw);
    series s = {.from = INT64_MAX,
                .x = must_allocate(rows, sizeof(double)),
                .y = must_allocate(rows, sizeof(double))};
    for (int64_t row = 0; row < table_rows(raw); row++) {
        int64_t fixed = get_integer(raw, row, widths ? "n" : "d");
        int64_t x = get_integer(raw, row, widths ? "d" : "n");
        int col = table_column(raw, f->quantity);
        if (!has_text(raw, row, "input", name) || !has_text(raw, row, "norm", norm) ||
            !has_text(raw, row, "storage", f->storage) || !has_text(raw, row, "order", f->order) ||
            !has_text(raw, row, "norm_form", form_names[HALF_WIDE]) ||
            fixed != (widths ? WIDTHS_TOKENS : TOKEN_DIM) || table_is_missing(raw, row, col))
            continue;
        s.x[s.count] = (double)x;
        s.y[s.count++] = table_get_real(raw, row, col);
        s.from = x < s.from ? x : s.from;
        s.to = x > s.to ? x : s.to;
    }
    return s;
}

static void add_fit(const table *raw, const struct fitted *f, const char *name, const char *norm,
                    bool widths, table *fits)
{
    series s = collect_series(raw, f, name, norm, widths);
    growth_fit fit = {0};
    if (s.from < s.to) {
        bool found = fit_growth(LAW_POWER, s.count, s.x, s.y, &fit);
        table_text(fits, f->quantity);
        if (strcmp(f->quantity, "first_largest") == 0)
            table_text(fits, f->order);
        else
            table_missing(fits);
        table_text(fits, name);
        table_text(fits, norm);
        table_text(fits, f->storage);
        table_text(fits, widths ? "d" : "n");
        table_real_if(fits, found, fit.exponent);
        table_real_if(fits, found, fit.std_error);
        table_integer(fits, s.count);
        table_integer(fits, s.from);
        table_integer(fits, s.to);
    }
    free(s.x);
    free(s.y);
}

static void add_fits(const table *raw, table *fits)
{
    for (int i = 0; i < FITTED; i++)
        for (int j = 0; j < CASES; j++)
            for (int norm = 0; norm < ATN_SIMA_NORM_COUNT; norm++)
                for (int widths = 0; widths < 2; widths++)
                    if (cases[j].scale == 1 && !cases[j].dead &&
                        (fitted[i].every_norm || norm == ATN_SIMA_L1))
                        add_fit(raw, &fitted[i], cases[j].name, norm_names[norm], widths, fits);
}

/* ---- For people ---- */

static const column summary_columns[] = {
    {"input", COLUMN_TEXT, "", ""},
    {"norm", COLUMN_TEXT, "", ""},
    {"norm_form", COLUMN_TEXT, "", ""},
    {"n", COLUMN_INTEGER, "", ""},
    {"tokens_digits", COLUMN_REAL, "", ""},
    {"channels_digits", COLUMN_REAL, "", ""},
    {"order_difference", COLUMN_REAL, "", ""},
    {"weights_vanished", COLUMN_REAL, "", ""},
    {"weights_nonfinite", COLUMN_REAL, "", ""},
    {"outcome", COLUMN_TEXT, "", ""},
};

static double get_real(const table *t, int64_t row, const char *name)
{
    return table_get_real(t, row, table_column(t, name));
}

/* f16 at the largest n of an input; the row after that of tokens is that of channels. */
static void print_half(const table *raw)
{
    table *t = table_create(summary_columns, sizeof summary_columns / sizeof *summary_columns);
    for (int64_t row = 0; row + 1 < table_rows(raw); row++) {
        bool last = true;
        for (int64_t other = row + 1; other < table_rows(raw) && last; other++)
            last = !has_text(raw, other, "input", table_get_text(raw, row, 0)) ||
                   get_integer(raw, other, "n") <= get_integer(raw, row, "n");
        if (!last || !has_text(raw, row, "storage", "f16") ||
            !has_text(raw, row, "order", "tokens") || get_integer(raw, row, "d") != TOKEN_DIM)
            continue;
        table_text(t, table_get_text(raw, row, 0));
        table_text(t, table_get_text(raw, row, table_column(raw, "norm")));
        table_text(t, table_get_text(raw, row, table_column(raw, "norm_form")));
        table_integer(t, get_integer(raw, row, "n"));
        table_real(t, get_real(raw, row, "digits"));
        table_real(t, get_real(raw, row + 1, "digits"));
        double difference = get_real(raw, row, "order_difference");
        table_real_if(t, !isnan(difference), difference);
        table_real(t, get_real(raw, row, "first_vanished"));
        table_real(t, get_real(raw, row, "first_nonfinite"));
        table_text(t, table_get_text(raw, row, table_column(raw, "outcome")));
    }
    table_print(t, table_rows(t), stdout);
    table_free(t);
}

static int finish(const settings *s, const void *state, const table *raw, table **tables)
{
    (void)s;
    (void)state;
    add_fits(raw, tables[1]);
    printf("f16 at the largest n\n");
    print_half(raw);
    return EXIT_PASS;
}

static const output_spec outputs[] = {
    {"half", "SimA's two orders in f64, f32, bf16 and f16.", columns, COLUMNS},
    {"half_fit", "Power laws in n and d fitted to half.csv.", fit_columns, FIT_COLUMNS},
};

const experiment attention_half = {
    .name = "attention/half",
    .summary = "SimA's two orders in half precision: how far apart, what over- and underflows",
    .source = "SimA sections 1, 2.2, 4.6; M02, M04, M06",
    .example = "attnum run attention/half --seed 1:3",
    .options = USES_TOKENS,
    .defaults = "n = 49 ... 50176 with d = 32 (--quick: to 3136, --full: to 200704; photos: to "
                "3136), and d = 16 ... 256 with n = 784 (--quick: to 64, --full: to 1024); --n: "
                "these n (photos: if their grid divides 224 pixels), d = 32",
    .outputs = outputs,
    .output_count = 2,
    .plot = "attention/half.gp",
    .prepare = prepare,
    .describe = describe,
    .replay = replay,
    .weight = weight,
    .input = input_at,
    .run = run,
    .finish = finish,
    .release = release,
};
