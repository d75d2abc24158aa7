/* SPDX-License-Identifier: BSD-3-Clause */
/* Norms of SimA's columns as half precision forms them, and what a narrow type makes of numbers. */
#ifndef EXPERIMENTS_HALF_H
#define EXPERIMENTS_HALF_H

#include <attnum/attnum.h>

/* What max(|x|, epsilon) is formed in. X(code, name, description) */
#define HALF_NORM_LIST(X)                                                                          \
    X(HALF_WIDE, "wide", "f64, as in the library; the published code's autocast: f32")             \
    X(HALF_STORED, "stored", "summed in f64; the norm and epsilon are then stored in the type")    \
    X(HALF_SUMMED, "summed", "each term, each partial sum and epsilon are rounded to the type")

#define HALF_ENTRY(code, name, description) code,
typedef enum { HALF_NORM_LIST(HALF_ENTRY) HALF_NORM_COUNT } half_norm;
#undef HALF_ENTRY

/* x as the storage holds it; native: as it is. */
double half_round(atn_storage storage, double x);

/* What a column x of n elements, d apart, is divided by: max(|x|, epsilon), 1 for no norm. */
double half_divisor(half_norm form, atn_storage storage, atn_sima_norm norm, double epsilon,
                    int64_t n, int64_t d, const double *x);

/* What became of numbers in a type. */
typedef struct {
    int64_t count;
    int64_t nonfinite; /* infinite or NaN there */
    int64_t subnormal; /* not 0, below the smallest normal number */
    int64_t vanished;  /* 0 there, but not before */
    double largest;    /* |x| before, of those that are finite */
} half_census;

/* Counts x, which dtype (and the storage, if not native) is to hold. */
void half_count(half_census *census, atn_dtype dtype, atn_storage storage, double x);

#endif
