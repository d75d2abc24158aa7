/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensors with all of their bytes checked: memory is filled with a NaN pattern before use, so that
 * an element that was never written and a write outside the view both show. */
#ifndef TESTS_GUARDED_H
#define TESTS_GUARDED_H

#include <attnum/tensor.h>

#include "ruler.h"

/* DENSE: nothing between rows, a margin after. HEADS: gaps between heads and batches, rows side by
 * side. STRIDED: gaps between rows, heads and batches. TOKENS: batch x rows x heads x cols, the
 * same gaps. */
typedef enum {
    GUARDED_DENSE,
    GUARDED_HEADS,
    GUARDED_STRIDED,
    GUARDED_TOKENS,
    GUARDED_LAYOUT_COUNT
} guarded_layout;

typedef struct {
    atn_tensor view;
    unsigned char *memory;
    int64_t elements; /* held by memory, margins included */
    int64_t first;    /* the element the view starts at */
} guarded;

guarded guarded_make(atn_dtype dtype, guarded_layout layout, int64_t batch, int64_t heads,
                     int64_t rows, int64_t cols);
void guarded_free(guarded *tensor);

/* Fills everything with the pattern again. */
void guarded_poison(guarded *tensor);

/* To and from dense f64, batch x heads x rows x cols. */
void guarded_set(guarded *tensor, const double *values);
void guarded_get(const guarded *tensor, double *values);

/* The number of elements outside of the view without the pattern; and of those in the view that
 * still have it. */
int64_t guarded_damaged(const guarded *tensor);
int64_t guarded_unwritten(const guarded *tensor);

/* Whether two tensors of one dtype and shape agree bit for bit inside their views. */
bool guarded_same_bits(const guarded *a, const guarded *b);

/* Matrix (batch, head) against want (dense rows x cols). */
ref_difference guarded_compare(const guarded *tensor, int64_t batch, int64_t head,
                               const double *want);

/* One element. */
double guarded_at(const guarded *tensor, int64_t batch, int64_t head, int64_t row, int64_t col);

#endif
