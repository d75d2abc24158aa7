/* SPDX-License-Identifier: BSD-3-Clause */
/* SimA's factors and products in half precision: the tokens, norms computed in a narrow type, the
 * library's products of rounded numbers, and the definition in long double. */
#ifndef EXPERIMENTS_PRODUCTS_H
#define EXPERIMENTS_PRODUCTS_H

#include <attnum/attnum.h>

#include "common/inputs.h"

/* ---- Numbers in a narrow type ---- */

/* The arithmetic of max(|x|, epsilon). X(code, name, description) */
#define HALF_NORM_LIST(X)                                                                          \
    X(HALF_WIDE, "wide", "f64, as in the library; the published code's autocast: f32")             \
    X(HALF_STORED, "stored", "summed in f64; the norm and epsilon are then stored in the type")    \
    X(HALF_SUMMED, "summed", "each term, each partial sum and epsilon are rounded to the type")

#define HALF_ENTRY(code, name, description) code,
typedef enum { HALF_NORM_LIST(HALF_ENTRY) HALF_NORM_COUNT } half_norm;
#undef HALF_ENTRY

/* The divisor of a column x of n elements, d apart: max(|x|, epsilon), 1 for no norm. */
double half_divisor(half_norm form, atn_storage storage, atn_sima_norm norm, double epsilon,
                    int64_t n, int64_t d, const double *x);

/* Counts of what rounding to a type does to numbers. */
typedef struct {
    int64_t count;
    int64_t nonfinite; /* infinite or NaN in the type */
    int64_t subnormal; /* not 0, but below the smallest normal number */
    int64_t vanished;  /* 0 in the type, but not before */
    double largest;    /* the largest finite |x| before */
} half_census;

/* Counts x as rounded to dtype (and to the storage, if not native). */
void half_count(half_census *census, atn_dtype dtype, atn_storage storage, double x);

/* The largest finite number. */
double half_limit(atn_dtype dtype, atn_storage storage);

/* ---- The tokens ---- */

/* HALF_QUERIES: rows of the output that are computed, at most. */
enum { HALF_QUERIES = 128, HALF_CROP = 224 };

/* Where tokens come from. */
typedef struct {
    const char *name;
    double scale;
    bool aligned;     /* Q = K = V, one rotation of the tokens; else three */
    bool independent; /* Q, K and V of different tokens: K^T V is then a sum of random signs */
    bool dead;        /* the first channel of Q and K is 0 */
    bool photos;      /* of one crop of HALF_CROP pixels a side; else N(0, 1), times scale */
    bool widths;      /* also run for several d */
} half_input;

typedef struct {
    const half_input *input;
    atn_sima_norm norm;
    int64_t side, d;
    uint64_t seed;
} half_point;

typedef struct {
    const half_point *point;
    int64_t n, d, queries;
    double *q, *k, *v; /* n x d, as drawn */
} half_tokens;

/* Returns an exit code; must be freed in any case. */
int half_draw(half_tokens *g, const half_point *p, const input *photos);
void half_free_tokens(half_tokens *g);

/* ---- The definition ---- */

typedef struct {
    double *out;  /* queries x d, to be freed */
    double kappa; /* ||Q^| (|K^|^T |V|)|_F / |out|_F */
    double largest;
} half_answer;

/* Q^ (K^^T V) in long double, for q, k and v as rounded to a type. */
half_answer half_find_answer(const half_tokens *g, const double *q, const double *k,
                             const double *v);

/* ---- In a type ---- */

typedef struct {
    const char *name;
    atn_dtype dtype;
    atn_storage storage;
    half_norm form;
} half_type;

/* Q, K and V rounded to a type, and Q^ and K^ computed in it. */
typedef struct {
    const half_type *type;
    double *q, *k, *v;
    double *queries, *keys; /* the computed rows of Q^ (queries x d), and K^ */
    half_census factors;
    double norm_largest, norm_error;
} half_factors;

half_factors half_make_factors(const half_tokens *g, const half_type *type);
void half_free_factors(half_factors *h);

/* Counts the entries of the first product, which are summed in f64 from the factors as rounded to
 * the type. */
half_census half_count_first(const half_tokens *g, const half_factors *h, atn_order order);

/* Computes Y by the library in the type, and returns it in f64. Returns an exit code. */
int half_multiply(const half_tokens *g, const half_factors *h, atn_order order,
                  atn_context *context, double *out, atn_status *status);

#endif
