/* SPDX-License-Identifier: BSD-3-Clause */
/* Orthogonal random features: what makes them orthogonal, how long they are, and every status. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>

#include "data.h"
#include "fixture.h"

/* Features and what they were made of, all m x d. */
typedef struct {
    int64_t m, d;
    atn_dtype dtype;
    double *numbers, *norms, *w; /* f64, as the dtype holds them */
    guarded number_view, norm_view, w_view;
} features;

static features make(atn_dtype dtype, int64_t m, int64_t d)
{
    features f = {.m = m, .d = d, .dtype = dtype};
    double *filled[2];
    guarded *views[] = {&f.number_view, &f.norm_view, &f.w_view};
    for (int i = 0; i < 2; i++) {
        filled[i] = data_allocate(m * d);
        data_normal((uint64_t)(100 * m + 10 * d + i), m * d, filled[i]);
        data_round(dtype, m * d, filled[i]);
    }
    for (int i = 0; i < 3; i++)
        *views[i] = guarded_make(dtype, GUARDED_DENSE, 1, 1, m, d);
    f.numbers = filled[0];
    f.norms = filled[1];
    f.w = data_allocate(m * d);
    guarded_set(&f.number_view, f.numbers);
    guarded_set(&f.norm_view, f.norms);
    return f;
}

static void release(features *f)
{
    guarded_free(&f->number_view);
    guarded_free(&f->norm_view);
    guarded_free(&f->w_view);
    free(f->numbers);
    free(f->norms);
    free(f->w);
}

static atn_status run(features *f, atn_context *context, bool chi)
{
    guarded_poison(&f->w_view);
    atn_status status = atn_orthogonal_features(context, &f->number_view.view,
                                                chi ? &f->norm_view.view : NULL, &f->w_view.view);
    guarded_get(&f->w_view, f->w);
    return status;
}

static double dot(int64_t d, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++)
        sum += x[c] * y[c];
    return sum;
}

/* Row r should be this long. */
static double length(const features *f, int64_t r, bool chi)
{
    const double *row = f->norms + r * f->d;
    return chi ? sqrt(dot(f->d, row, row)) : sqrt((double)f->d);
}

/* |I - U U^T|_1 / (d u) for the rows of one block over the lengths they should have: off its
 * diagonal the angles, on it the lengths. */
static double gram_ratio(const features *f, int64_t first, bool chi)
{
    int64_t rows = f->m - first < f->d ? f->m - first : f->d;
    double worst = 0;
    for (int64_t i = first; i < first + rows; i++) {
        double sum = 0;
        for (int64_t j = first; j < first + rows; j++) {
            double product = dot(f->d, f->w + i * f->d, f->w + j * f->d);
            sum += fabs((i == j) - product / (length(f, i, chi) * length(f, j, chi)));
        }
        worst = isnan(worst) || sum <= worst ? worst : sum;
    }
    return worst / ((double)f->d * atn_dtype_roundoff(f->dtype));
}

/* Row i of numbers is in the span of rows up to i of its block: the largest |cosine| with a later
 * one, over d u. Distinguishes orthogonal rows from orthogonal columns. */
static double span_ratio(const features *f)
{
    double worst = 0;
    for (int64_t i = 0; i < f->m; i++)
        for (int64_t j = i + 1; j < f->m && j / f->d == i / f->d; j++) {
            const double *x = f->numbers + i * f->d, *w = f->w + j * f->d;
            double cosine = fabs(dot(f->d, x, w)) / sqrt(dot(f->d, x, x) * dot(f->d, w, w));
            worst = isnan(worst) || cosine <= worst ? worst : cosine;
        }
    return worst / ((double)f->d * atn_dtype_roundoff(f->dtype));
}

static const int64_t shapes[][2] = {{1, 1},   {3, 1},    {1, 2}, {2, 2},    {5, 2},
                                    {3, 7},   {7, 7},    {9, 7}, {64, 64},  {63, 64},
                                    {65, 64}, {266, 64}, {0, 4}, {130, 33}, {40, 100}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

Test(features_orthogonal, rows_of_a_block_are_orthogonal_and_as_long_as_told)
{
    atn_context *context = fixture_context(2, NULL);
    int blocks = 0;
    for (int i = 0; i < 4 * SHAPES; i++) {
        bool chi = i / SHAPES % 2;
        features f =
            make((atn_dtype)(i / (2 * SHAPES)), shapes[i % SHAPES][0], shapes[i % SHAPES][1]);
        atn_status status = run(&f, context, chi);
        double angles = 0, spans = span_ratio(&f);
        for (int64_t first = 0; first < f.m; first += f.d, blocks++) {
            double ratio = gram_ratio(&f, first, chi);
            angles = ratio <= angles ? angles : ratio;
        }
        cr_expect(status == ATN_OK && ref_judge(REF_ORTHOGONALITY, angles) == REF_PASS &&
                      ref_judge(REF_BACKWARD, spans) == REF_PASS &&
                      guarded_unwritten(&f.w_view) == 0 && guarded_damaged(&f.w_view) == 0,
                  "%s m=%ld d=%ld chi=%d: %s, angles %.3g, spans %.3g", atn_dtype_name(f.dtype),
                  (long)f.m, (long)f.d, chi, atn_status_name(status), angles, spans);
        release(&f);
    }
    cr_expect(blocks > 60, "%d blocks", blocks);
    atn_context_free(context);
}

/* A reflection turns a block's first row to the side its first number is not on. */
Test(features_orthogonal, signs_are_as_the_reflections_leave_them)
{
    atn_context *context = fixture_context(1, NULL);
    features f = make(ATN_F64, 40, 4);
    cr_assert_eq(run(&f, context, false), ATN_OK);
    for (int64_t r = 0; r < f.m; r += f.d) {
        const double *x = f.numbers + r * f.d;
        cr_expect(dot(f.d, x, f.w + r * f.d) * x[0] < 0, "row %ld", (long)r);
    }
    release(&f);
    atn_context_free(context);
}

/* Orthonormal rows exist whatever the numbers. */
Test(features_orthogonal, equal_rows_and_zeros)
{
    atn_context *context = fixture_context(1, NULL);
    for (int kind = 0; kind < 2; kind++) {
        features f = make(ATN_F64, 8, 5);
        for (int64_t i = 0; i < f.m * f.d; i++)
            f.numbers[i] = kind ? f.numbers[i % f.d] : 0;
        guarded_set(&f.number_view, f.numbers);
        cr_expect_eq(run(&f, context, false), ATN_OK);
        for (int64_t first = 0; first < f.m; first += f.d) {
            double ratio = gram_ratio(&f, first, false);
            cr_expect_eq(ref_judge(REF_ORTHOGONALITY, ratio), REF_PASS, "kind %d: %.3g", kind,
                         ratio);
        }
        release(&f);
    }
    atn_context_free(context);
}

Test(features_orthogonal, what_is_not_finite)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 6; i++) {
        features f = make(i % 2 ? ATN_F64 : ATN_F32, 7, 3);
        double *values = i < 3 ? f.numbers : f.norms;
        values[20] = bad[i % 3];
        guarded_set(i < 3 ? &f.number_view : &f.norm_view, values);
        cr_expect_eq(run(&f, context, true), ATN_NONFINITE);
        for (int64_t e = 0; e < f.m * f.d; e++)
            cr_expect(isnan(f.w[e]), "element %ld is %g", (long)e, f.w[e]);
        cr_expect(guarded_unwritten(&f.w_view) == 0 && guarded_damaged(&f.w_view) == 0);
        cr_expect_eq(run(&f, context, false), i < 3 ? ATN_NONFINITE : ATN_OK);
        release(&f);
    }
    atn_context_free(context);
}

static atn_tensor changed(atn_tensor t, int64_t batch, int64_t rows, int64_t cols, int64_t stride)
{
    t.batch = batch, t.rows = rows, t.cols = cols, t.row_stride = stride;
    return t;
}

/* Wrong arguments, and the detail that the context must then give. */
Test(features_orthogonal, statuses)
{
    atn_context *context = fixture_context(1, NULL);
    features f = make(ATN_F64, 6, 4);
    const atn_tensor good = f.number_view.view, length_view = f.norm_view.view;
    atn_tensor w = f.w_view.view, f32 = good, overlapping = w, null = good;
    f32.dtype = ATN_F32;
    overlapping.data = (double *)good.data + 3;
    null.data = NULL;
    const atn_tensor short_w = changed(w, 1, 5, 4, 4), narrow = changed(good, 1, 6, 3, 3);
    const atn_tensor gaps = changed(good, 1, 5, 3, 4), empty = changed(good, 1, 6, 0, 0);
    const atn_tensor two = changed(good, 2, 3, 4, 4);
    const struct {
        const atn_tensor *numbers, *norms, *w;
        atn_status want;
    } cases[] = {
        {NULL, NULL, &w, ATN_ERR_NULL},
        {&null, NULL, &w, ATN_ERR_NULL},
        {&good, NULL, NULL, ATN_ERR_NULL},
        {&good, &null, &w, ATN_ERR_NULL},
        {&good, NULL, &short_w, ATN_ERR_SHAPE},
        {&good, &narrow, &w, ATN_ERR_SHAPE},
        {&narrow, NULL, &w, ATN_ERR_SHAPE},
        {&empty, NULL, &empty, ATN_ERR_SHAPE},
        {&two, NULL, &w, ATN_ERR_SHAPE},
        {&gaps, NULL, &w, ATN_ERR_STRIDE},
        {&f32, NULL, &w, ATN_ERR_DTYPE},
        {&good, &f32, &w, ATN_ERR_DTYPE},
        {&good, NULL, &good, ATN_ERR_ALIAS},
        {&good, NULL, &overlapping, ATN_ERR_ALIAS},
        {&good, &length_view, &length_view, ATN_ERR_ALIAS},
    };
    atn_tensor none = atn_tensor_dense(NULL, ATN_F64, 1, 1, 0, 4);
    cr_expect_eq(atn_orthogonal_features(context, &none, NULL, &none), ATN_OK);
    cr_expect_eq(atn_orthogonal_features(NULL, &good, NULL, &w), ATN_ERR_NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        atn_tensor *out = (atn_tensor *)cases[i].w;
        atn_status status = atn_orthogonal_features(context, cases[i].numbers, cases[i].norms, out);
        cr_expect_eq(status, cases[i].want, "case %zu: %s (%s)", i, atn_status_name(status),
                     atn_last_error(context));
        cr_expect_eq(guarded_unwritten(&f.w_view), 24, "case %zu: written", i);
    }
    release(&f);
    atn_context_free(context);
}

Test(features_orthogonal, one_allocation_that_may_fail)
{
    allocator_counts counts = {0};
    atn_context *context = fixture_context(1, &counts);
    features f = make(ATN_F32, 70, 20);
    int64_t before = counts.calls;
    cr_expect_eq(run(&f, context, true), ATN_OK);
    cr_expect(counts.calls == before + 1 && counts.live == 1 && counts.overruns == 0,
              "%ld allocations, %ld live, %ld overruns", (long)(counts.calls - before),
              (long)counts.live, (long)counts.overruns);
    cr_expect(counts.last_bytes >= 33 * 20 * sizeof(float) &&
                  counts.last_bytes < 33 * 20 * sizeof(float) + 64,
              "%zu bytes", counts.last_bytes);
    counts.fail_at = counts.calls + 1;
    cr_expect_eq(run(&f, context, true), ATN_ERR_MEMORY);
    cr_expect_eq(guarded_unwritten(&f.w_view), 70 * 20);
    cr_expect_eq(counts.live, 1);
    release(&f);
    atn_context_free(context);
}
