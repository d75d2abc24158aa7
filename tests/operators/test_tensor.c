/* SPDX-License-Identifier: BSD-3-Clause */
/* Types, and views of memory. */
#include <criterion/criterion.h>
#include <float.h>
#include <inttypes.h>
#include <string.h>

#include <attnum/attnum.h>

Test(tensor, dtypes)
{
    cr_expect_str_eq(atn_dtype_name(ATN_F32), "f32");
    cr_expect_str_eq(atn_dtype_name(ATN_F64), "f64");
    cr_expect_eq(atn_dtype_size(ATN_F32), sizeof(float));
    cr_expect_eq(atn_dtype_size(ATN_F64), sizeof(double));
    cr_expect_eq(atn_dtype_roundoff(ATN_F32), FLT_EPSILON / 2.0);
    cr_expect_eq(atn_dtype_roundoff(ATN_F64), DBL_EPSILON / 2);
    cr_expect_str_eq(atn_dtype_name(ATN_TF32), "tf32");
    cr_expect_str_eq(atn_dtype_name(ATN_BF16), "bf16");
    cr_expect_str_eq(atn_dtype_name(ATN_F16), "f16");
    cr_expect_eq(atn_dtype_size(ATN_TF32), 4);
    cr_expect_eq(atn_dtype_size(ATN_BF16), 2);
    cr_expect_eq(atn_dtype_size(ATN_F16), 2);
    cr_expect_eq(atn_dtype_roundoff(ATN_TF32), 0x1p-11);
    cr_expect_eq(atn_dtype_roundoff(ATN_BF16), 0x1p-8);
    cr_expect_eq(atn_dtype_roundoff(ATN_F16), 0x1p-11);
    static const int unknown[] = {-1, ATN_DTYPE_COUNT, 77};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        cr_expect_eq(atn_dtype_size((atn_dtype)unknown[i]), 0);
        cr_expect_eq(atn_dtype_roundoff((atn_dtype)unknown[i]), 0);
        cr_expect_not_null(atn_dtype_name((atn_dtype)unknown[i]));
    }
}

Test(tensor, dense_views_and_matrices)
{
    static double memory[2 * 3 * 4 * 5];
    for (int dtype = 0; dtype < ATN_DTYPE_COUNT; dtype++) {
        atn_tensor t = atn_tensor_dense(memory, (atn_dtype)dtype, 2, 3, 4, 5);
        cr_expect(t.row_stride == 5 && t.head_stride == 20 && t.batch_stride == 60);
        cr_expect_eq(atn_tensor_check(&t), ATN_OK);
        const char *at = atn_tensor_matrix(&t, 1, 2);
        cr_expect_eq(at - (const char *)memory, 100 * (long)atn_dtype_size((atn_dtype)dtype),
                     "dtype=%d", dtype);
    }
}

/* Sizes, strides and what atn_tensor_check must say; data is a pointer nobody may follow. */
/* Strides that do not fit stay as large as can be, and the view is refused. */
Test(tensor, dense_views_of_any_size)
{
    static const int64_t huge = (int64_t)1 << 40;
    static double x;
    static const struct {
        int64_t sizes[4], batch_stride, head_stride;
        atn_status status;
    } views[] = {
        {{1, 1, huge, huge}, INT64_MAX, INT64_MAX, ATN_ERR_STRIDE},
        {{1, huge, huge, 2}, INT64_MAX, huge * 2, ATN_ERR_STRIDE},
        {{huge, huge, 1, 1}, huge, 1, ATN_ERR_STRIDE},
        {{2, (int64_t)1 << 31, (int64_t)1 << 30, 2},
         (int64_t)1 << 62,
         (int64_t)1 << 31,
         ATN_ERR_STRIDE},
        {{1, 1, huge, (int64_t)1 << 22}, (int64_t)1 << 62, (int64_t)1 << 62, ATN_ERR_SHAPE},
        {{0, huge, huge, huge}, INT64_MAX, INT64_MAX, ATN_OK},
        {{1, INT64_MIN, INT64_MIN, 2}, INT64_MAX, INT64_MAX, ATN_ERR_SHAPE},
        {{1, 1, -1, INT64_MIN}, INT64_MAX, INT64_MAX, ATN_ERR_SHAPE},
    };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        const int64_t *s = views[i].sizes;
        atn_tensor t = atn_tensor_dense(&x, ATN_F64, s[0], s[1], s[2], s[3]);
        cr_expect(t.batch_stride == views[i].batch_stride && t.head_stride == views[i].head_stride,
                  "view %zu: strides %" PRId64 " and %" PRId64, i, t.batch_stride, t.head_stride);
        cr_expect_eq(atn_tensor_check(&t), views[i].status, "view %zu: %s", i,
                     atn_status_name(atn_tensor_check(&t)));
    }
}

Test(tensor, check_table)
{
    static const int64_t big = INT64_MAX;
    static const struct {
        const char *what;
        int64_t batch, heads, rows, cols, batch_stride, head_stride, row_stride;
        atn_status want;
    } rows[] = {
        {"one element", 1, 1, 1, 1, 1, 1, 1, ATN_OK},
        {"empty batch", 0, 1, 1, 1, 0, 0, 0, ATN_OK},
        {"empty heads", 3, 0, 1, 1, 0, 0, 0, ATN_OK},
        {"empty rows", 3, 2, 0, 4, 0, 0, 0, ATN_OK},
        {"empty cols", 3, 2, 5, 0, 0, 0, 0, ATN_OK},
        {"empty and enormous", big, big, 0, big, big, big, big, ATN_OK},
        {"gaps everywhere", 2, 2, 2, 4, 30, 13, 6, ATN_OK},
        {"negative batch", -1, 1, 1, 1, 1, 1, 1, ATN_ERR_SHAPE},
        {"negative heads", 1, -1, 1, 1, 1, 1, 1, ATN_ERR_SHAPE},
        {"negative rows", 1, 1, -1, 1, 1, 1, 1, ATN_ERR_SHAPE},
        {"negative cols", 1, 1, 1, -1, 1, 1, 1, ATN_ERR_SHAPE},
        {"negative and empty", 0, 1, -1, 1, 1, 1, 1, ATN_ERR_SHAPE},
        {"rows overlap", 1, 1, 2, 4, 0, 0, 3, ATN_ERR_STRIDE},
        {"rows broadcast", 1, 1, 2, 4, 0, 0, 0, ATN_ERR_STRIDE},
        {"rows backwards", 1, 1, 2, 4, 0, 0, -4, ATN_ERR_STRIDE},
        {"heads overlap by one", 1, 2, 3, 4, 0, 13, 5, ATN_ERR_STRIDE},
        {"heads touch", 1, 2, 3, 4, 0, 14, 5, ATN_OK},
        {"batches overlap by one", 2, 2, 3, 4, 27, 14, 5, ATN_ERR_STRIDE},
        {"batches touch", 2, 2, 3, 4, 28, 14, 5, ATN_OK},
        {"heads between rows", 2, 2, 3, 4, 24, 4, 8, ATN_OK},
        {"heads between rows, gaps", 2, 2, 3, 4, 33, 5, 11, ATN_OK},
        {"heads between rows overlap by one", 1, 2, 3, 4, 0, 3, 8, ATN_ERR_STRIDE},
        {"rows around heads overlap by one", 1, 2, 3, 4, 0, 4, 7, ATN_ERR_STRIDE},
        {"batches of rows of heads overlap by one", 2, 2, 3, 4, 23, 4, 8, ATN_ERR_STRIDE},
        {"batches innermost", 2, 3, 5, 4, 4, 8, 24, ATN_OK},
        {"one stride twice", 1, 2, 3, 4, 0, 8, 8, ATN_ERR_STRIDE},
        {"batches backwards", 2, 1, 1, 1, -1, 1, 1, ATN_ERR_STRIDE},
        {"1e8 rows", 1, 1, 100000000, 32, 0, 0, 32, ATN_OK},
        {"1e8 rows in 1e3 heads", 10, 1000, 100000000, 32, 3200000000000, 3200000000, 32, ATN_OK},
        {"steps overflow", 1, 1, big, 1, 0, 0, 2, ATN_ERR_STRIDE},
        {"span overflows", 1, 1, 2, 2, 0, 0, big, ATN_ERR_STRIDE},
        {"bytes overflow", 1, 1, 1, big, 0, 0, big, ATN_ERR_SHAPE},
        {"bytes overflow by strides", 1, 1, 2, 1, 0, 0, big / 2, ATN_ERR_SHAPE},
        {"heads overflow", 1, big, 2, 2, 0, big / 2, 2, ATN_ERR_STRIDE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        atn_tensor t = {(void *)64,        ATN_F64,      rows[i].batch,        rows[i].heads,
                        rows[i].rows,      rows[i].cols, rows[i].batch_stride, rows[i].head_stride,
                        rows[i].row_stride};
        cr_expect_eq(atn_tensor_check(&t), rows[i].want, "%s: %s", rows[i].what,
                     atn_status_name(atn_tensor_check(&t)));
    }
    cr_expect_eq(atn_tensor_check(NULL), ATN_ERR_NULL);
    atn_tensor t = atn_tensor_dense(NULL, ATN_F32, 1, 1, 2, 2);
    cr_expect_eq(atn_tensor_check(&t), ATN_ERR_NULL);
    t = atn_tensor_dense(NULL, ATN_F32, 1, 1, 0, 2);
    cr_expect_eq(atn_tensor_check(&t), ATN_OK, "an empty view needs no data");
    t = atn_tensor_dense(&t, (atn_dtype)7, 1, 1, 1, 1);
    cr_expect_eq(atn_tensor_check(&t), ATN_ERR_DTYPE);
}
