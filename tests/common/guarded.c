/* SPDX-License-Identifier: BSD-3-Clause */
#include "guarded.h"

#include <stdlib.h>
#include <string.h>

enum { MARGIN = 16 };

static const uint16_t pattern16 = 0x7fde; /* NaN in bf16 and in f16 */
static const uint32_t pattern32 = 0x7fc0dead;
static const uint64_t pattern64 = 0x7ff80000dead5a5a;

static const void *pattern_of(atn_dtype dtype)
{
    size_t size = atn_dtype_size(dtype);
    return size == 2 ? (const void *)&pattern16 : size == 4 ? (const void *)&pattern32 : &pattern64;
}

void guarded_poison(guarded *t)
{
    size_t size = atn_dtype_size(t->view.dtype);
    for (int64_t i = 0; i < t->elements; i++)
        memcpy(t->memory + (size_t)i * size, pattern_of(t->view.dtype), size);
}

guarded guarded_make(atn_dtype dtype, guarded_layout layout, int64_t batch, int64_t heads,
                     int64_t rows, int64_t cols)
{
    guarded t = {.view = atn_tensor_dense(NULL, dtype, batch, heads, rows, cols), .first = MARGIN};
    if (layout == GUARDED_STRIDED)
        t.view.row_stride = cols + 3;
    if (layout != GUARDED_DENSE) {
        t.view.head_stride = rows * t.view.row_stride + 5;
        t.view.batch_stride = heads * t.view.head_stride + 7;
    }
    if (layout == GUARDED_TOKENS) {
        t.view.head_stride = cols + 3;
        t.view.row_stride = heads * t.view.head_stride + 5;
        t.view.batch_stride = rows * t.view.row_stride + 7;
    }
    t.elements = batch * t.view.batch_stride + 2 * MARGIN;
    t.memory = malloc((size_t)t.elements * atn_dtype_size(dtype));
    if (!t.memory)
        abort();
    t.view.data = t.memory + MARGIN * atn_dtype_size(dtype);
    guarded_poison(&t);
    return t;
}

void guarded_free(guarded *t)
{
    free(t->memory);
    *t = (guarded){0};
}

/* The element's place in memory for item i of the dense order. */
static unsigned char *place(const guarded *t, int64_t i)
{
    const atn_tensor *v = &t->view;
    int64_t col = i % v->cols, row = i / v->cols % v->rows;
    int64_t head = i / (v->cols * v->rows) % v->heads, batch = i / (v->cols * v->rows * v->heads);
    int64_t at = t->first + batch * v->batch_stride + head * v->head_stride + row * v->row_stride;
    return t->memory + (size_t)(at + col) * atn_dtype_size(v->dtype);
}

static int64_t item_count(const guarded *t)
{
    return t->view.batch * t->view.heads * t->view.rows * t->view.cols;
}

static double read_element(atn_dtype dtype, const unsigned char *from)
{
    double value;
    atn_convert(ATN_F64, &value, dtype, from, 1);
    return value;
}

void guarded_set(guarded *t, const double *values)
{
    for (int64_t i = 0; i < item_count(t); i++)
        atn_convert(t->view.dtype, place(t, i), ATN_F64, &values[i], 1);
}

void guarded_get(const guarded *t, double *values)
{
    for (int64_t i = 0; i < item_count(t); i++)
        values[i] = read_element(t->view.dtype, place(t, i));
}

double guarded_at(const guarded *t, int64_t batch, int64_t head, int64_t row, int64_t col)
{
    const atn_tensor *v = &t->view;
    int64_t item = ((batch * v->heads + head) * v->rows + row) * v->cols + col;
    return read_element(v->dtype, place(t, item));
}

int64_t guarded_unwritten(const guarded *t)
{
    int64_t count = 0;
    for (int64_t i = 0; i < item_count(t); i++)
        count += !memcmp(place(t, i), pattern_of(t->view.dtype), atn_dtype_size(t->view.dtype));
    return count;
}

int64_t guarded_damaged(const guarded *t)
{
    size_t size = atn_dtype_size(t->view.dtype);
    int64_t whole = 0;
    for (int64_t i = 0; i < t->elements; i++)
        whole += !memcmp(t->memory + (size_t)i * size, pattern_of(t->view.dtype), size);
    return t->elements - item_count(t) - (whole - guarded_unwritten(t));
}

bool guarded_same_bits(const guarded *a, const guarded *b)
{
    for (int64_t i = 0; i < item_count(a); i++)
        if (memcmp(place(a, i), place(b, i), atn_dtype_size(a->view.dtype)) != 0)
            return false;
    return true;
}

ref_difference guarded_compare(const guarded *t, int64_t batch, int64_t head, const double *want)
{
    const atn_tensor *v = &t->view;
    int64_t first = (batch * v->heads + head) * v->rows * v->cols;
    double *got = malloc((size_t)(v->rows * v->cols + 1) * sizeof *got);
    if (!got)
        abort();
    for (int64_t i = 0; i < v->rows * v->cols; i++)
        got[i] = read_element(v->dtype, place(t, first + i));
    ref_difference difference = ref_compare_f64(v->rows, v->cols, got, v->cols, want, v->cols);
    free(got);
    return difference;
}
