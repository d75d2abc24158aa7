/* SPDX-License-Identifier: BSD-3-Clause */
/* Gaussian kernel matrices against ref_gaussian, SOFT (IJCV) Eq. 4, 5, 8. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>

#include "data.h"
#include "fixture.h"
#include "soft.h"

static double squared_distance(int64_t d, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++)
        sum += (x[c] - y[c]) * (x[c] - y[c]);
    return sum;
}

static double squared_norm(int64_t d, const double *x)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++)
        sum += x[c] * x[c];
    return sum;
}

/* The relative error K_ij may have, in u: the exponent's absolute error plus exp's own (2) and the
 * rounding of s (1).
 *   direct    d rounding errors in the sum of d squares, 1 in each difference counted twice, 1 in
 *             the product with s: (d + 4) s |x-y|^2
 *   expanded  d + 1 in each of |x|^2, |y|^2 and 2 x.y, 3 in putting them together */
static double error_units(atn_distance distance, int64_t d, const double *x, const double *y,
                          double s)
{
    double apart = squared_distance(d, x, y), norms = squared_norm(d, x) + squared_norm(d, y);
    double exponent = distance == ATN_DISTANCE_DIRECT ? (double)(d + 4) * apart
                                                      : 2 * (double)(d + 4) * norms + 2 * apart;
    return s * exponent + 3;
}

typedef struct {
    atn_dtype dtype;
    atn_distance distance;
    guarded_layout layout;
    int64_t p, q, d;
    double s;
} kernel_case;

/* The worst ratio of error to bound. Below the smallest normal number only the absolute error
 * counts; where a bound is over 1e-2 first order does not hold and the entry is not judged. */
static double worst_ratio(const kernel_case *c, const guarded *k, int64_t head, const double *x,
                          const double *y)
{
    double u = atn_dtype_roundoff(c->dtype), worst = 0;
    double tiny = c->dtype == ATN_F32 ? 0x1p-126 : 0x1p-1022;
    double *want = data_allocate(c->p * c->q);
    ref_gaussian(c->p, c->q, c->d, x, y, c->s, want);
    for (int64_t i = 0; i < c->p; i++)
        for (int64_t j = 0; j < c->q; j++) {
            double got = guarded_at(k, head / 3, head % 3, i, j), exact = want[i * c->q + j];
            double units = error_units(c->distance, c->d, x + i * c->d, y + j * c->d, c->s);
            double ratio = fabs(got - exact) / (units * u * exact + tiny);
            if (units * u > 1e-2)
                continue;
            if (!(ratio <= worst))
                worst = ratio;
        }
    free(want);
    return worst;
}

static guarded_layout layout_of(int i)
{
    return (guarded_layout)(i % GUARDED_LAYOUT_COUNT);
}

static void check_cross(atn_context *context, const kernel_case *c)
{
    double *x = data_allocate(6 * c->p * c->d), *y = data_allocate(6 * c->q * c->d);
    guarded gx = guarded_make(c->dtype, c->layout, 2, 3, c->p, c->d);
    guarded gy = guarded_make(c->dtype, c->layout, 2, 3, c->q, c->d);
    guarded k = guarded_make(c->dtype, c->layout, 2, 3, c->p, c->q);
    data_normal((uint64_t)(c->p * 31 + c->d), 6 * c->p * c->d, x);
    data_normal((uint64_t)(c->q * 17 + c->d), 6 * c->q * c->d, y);
    data_round(c->dtype, 6 * c->p * c->d, x);
    data_round(c->dtype, 6 * c->q * c->d, y);
    guarded_set(&gx, x);
    guarded_set(&gy, y);
    atn_status status =
        fixture_gaussian_cross(context, c->distance, c->s, &gx.view, &gy.view, &k.view);
    double worst = 0;
    for (int64_t head = 0; status == ATN_OK && head < 6; head++) {
        double ratio = worst_ratio(c, &k, head, x + head * c->p * c->d, y + head * c->q * c->d);
        worst = isnan(worst) || ratio <= worst ? worst : ratio;
    }
    cr_expect(status == ATN_OK && ref_judge(REF_ROUNDING, worst) == REF_PASS &&
                  guarded_unwritten(&k) == 0 && guarded_damaged(&k) == 0,
              "cross %s %s layout=%d p=%ld q=%ld d=%ld s=%g: %s ratio=%.3g unwritten=%ld "
              "damaged=%ld",
              atn_distance_name(c->distance), atn_dtype_name(c->dtype), c->layout, (long)c->p,
              (long)c->q, (long)c->d, c->s, atn_status_name(status), worst,
              (long)guarded_unwritten(&k), (long)guarded_damaged(&k));
    guarded_free(&k);
    guarded_free(&gy);
    guarded_free(&gx);
    free(y);
    free(x);
}

static const int64_t sizes[] = {0, 1, 2, 3, 15, 16, 17, 31, 33, 49};
static const int64_t widths[] = {1, 3, 32, 33};
enum { SIZES = sizeof sizes / sizeof *sizes, WIDTHS = sizeof widths / sizeof *widths };

Test(kernel, cross_matches_the_reference)
{
    atn_context *context = fixture_context(2, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int distance = 0; distance < ATN_DISTANCE_COUNT; distance++)
            for (int i = 0; i < SIZES; i++)
                for (int w = 0; w < WIDTHS; w++) {
                    kernel_case c = {.dtype = (atn_dtype)dtype, .distance = (atn_distance)distance};
                    c.layout = layout_of(i + w);
                    c.p = sizes[(i * 3 + w) % SIZES];
                    c.q = sizes[i];
                    c.d = widths[w];
                    c.s = w % 2 ? 1 / (2 * sqrt((double)c.d)) : 0.7;
                    check_cross(context, &c);
                }
    atn_context_free(context);
}

static void check_self(atn_context *context, const kernel_case *c)
{
    int64_t m = c->p;
    double *l = data_allocate(6 * m * c->d);
    guarded landmarks = guarded_make(c->dtype, c->layout, 2, 3, m, c->d);
    guarded a = guarded_make(c->dtype, c->layout, 2, 3, m, m);
    data_normal((uint64_t)(m + c->d), 6 * m * c->d, l);
    data_round(c->dtype, 6 * m * c->d, l);
    guarded_set(&landmarks, l);
    atn_status status = fixture_gaussian_self(context, c->distance, c->s, &landmarks.view, &a.view);
    double worst = 0;
    int64_t asymmetric = 0, off_one = 0, out_of_range = 0;
    for (int64_t head = 0; status == ATN_OK && head < 6; head++) {
        const double *tokens = l + head * m * c->d;
        double ratio = worst_ratio(c, &a, head, tokens, tokens);
        worst = isnan(worst) || ratio <= worst ? worst : ratio;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j <= i; j++) {
                double lower = guarded_at(&a, head / 3, head % 3, i, j);
                asymmetric += lower != guarded_at(&a, head / 3, head % 3, j, i);
                off_one += i == j && lower != 1;
                out_of_range += !(lower >= 0 && lower <= 1);
            }
    }
    bool exact = c->distance != ATN_DISTANCE_EXPANDED;
    cr_expect(status == ATN_OK && ref_judge(REF_ROUNDING, worst) == REF_PASS && asymmetric == 0 &&
                  (!exact || (off_one == 0 && out_of_range == 0)) && guarded_unwritten(&a) == 0 &&
                  guarded_damaged(&a) == 0,
              "self %s %s m=%ld d=%ld: %s ratio=%.3g asymmetric=%ld diagonal=%ld range=%ld",
              atn_distance_name(c->distance), atn_dtype_name(c->dtype), (long)m, (long)c->d,
              atn_status_name(status), worst, (long)asymmetric, (long)off_one, (long)out_of_range);
    guarded_free(&a);
    guarded_free(&landmarks);
    free(l);
}

Test(kernel, self_matches_the_reference_and_is_exactly_symmetric)
{
    atn_context *context = fixture_context(2, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int distance = 0; distance < ATN_DISTANCE_COUNT; distance++)
            for (int i = 0; i < SIZES; i++)
                for (int w = 0; w < WIDTHS; w++) {
                    kernel_case c = {.dtype = (atn_dtype)dtype, .distance = (atn_distance)distance};
                    c.layout = layout_of(i + w);
                    c.p = c.q = sizes[i];
                    c.d = widths[w];
                    c.s = 1 / (2 * sqrt((double)c.d));
                    check_self(context, &c);
                }
    atn_context_free(context);
}

/* Tokens with a large common part: |x|^2 + |y|^2 - 2 x.y cancels. */
static guarded self_of_shifted(atn_context *context, atn_distance distance, int64_t m, int64_t d)
{
    double *l = data_allocate(m * d);
    guarded landmarks = guarded_make(ATN_F32, GUARDED_DENSE, 1, 1, m, d);
    guarded a = guarded_make(ATN_F32, GUARDED_DENSE, 1, 1, m, m);
    data_normal(5, m * d, l);
    for (int64_t i = 0; i < m * d; i++)
        l[i] = 300 + 0.01 * l[i];
    guarded_set(&landmarks, l);
    cr_assert_eq(fixture_gaussian_self(context, distance, 0.1, &landmarks.view, &a.view), ATN_OK);
    guarded_free(&landmarks);
    free(l);
    return a;
}

Test(kernel, expanded_loses_what_clamped_repairs)
{
    enum { M = 40, D = 32 };
    atn_context *context = fixture_context(1, NULL);
    double largest[ATN_DISTANCE_COUNT], diagonal[ATN_DISTANCE_COUNT];
    for (int k = 0; k < ATN_DISTANCE_COUNT; k++) {
        guarded a = self_of_shifted(context, (atn_distance)k, M, D);
        largest[k] = diagonal[k] = 0;
        for (int64_t i = 0; i < M; i++)
            for (int64_t j = 0; j < M; j++) {
                double value = guarded_at(&a, 0, 0, i, j);
                largest[k] = fmax(largest[k], value);
                diagonal[k] = fmax(diagonal[k], i == j ? fabs(value - 1) : 0);
            }
        guarded_free(&a);
    }
    cr_expect(largest[ATN_DISTANCE_EXPANDED] > 1.01, "largest %g", largest[ATN_DISTANCE_EXPANDED]);
    /* CUDA sums norms and products in one order, and so does a set that fuses neither with its sum:
     * 0 exactly where x = y */
    bool exact = fixture_device() != ATN_CPU || atn_context_isa(context) == ATN_ISA_BASE;
    cr_expect(exact || diagonal[ATN_DISTANCE_EXPANDED] > 1e-3, "diagonal is off by %g",
              diagonal[ATN_DISTANCE_EXPANDED]);
    cr_expect(largest[ATN_DISTANCE_CLAMPED] == 1 && diagonal[ATN_DISTANCE_CLAMPED] == 0,
              "clamped: largest %g, diagonal off by %g", largest[ATN_DISTANCE_CLAMPED],
              diagonal[ATN_DISTANCE_CLAMPED]);
    cr_expect(largest[ATN_DISTANCE_DIRECT] == 1 && diagonal[ATN_DISTANCE_DIRECT] == 0);
    atn_context_free(context);
}

/* P is clamped too: equal tokens of large norm give at most 1. */
Test(kernel, clamped_cross_stays_within_1)
{
    enum { M = 40, D = 32 };
    atn_context *context = fixture_context(1, NULL);
    double l[M * D], largest[ATN_DISTANCE_COUNT] = {0};
    guarded x = guarded_make(ATN_F32, GUARDED_DENSE, 1, 1, M, D);
    guarded y = guarded_make(ATN_F32, GUARDED_DENSE, 1, 1, M, D);
    guarded k = guarded_make(ATN_F32, GUARDED_DENSE, 1, 1, M, M);
    data_normal(6, M * D, l);
    for (int64_t i = 0; i < M * D; i++)
        l[i] = 300 + 0.01 * l[i];
    guarded_set(&x, l);
    guarded_set(&y, l);
    for (int c = 0; c < ATN_DISTANCE_COUNT; c++) {
        cr_assert_eq(
            fixture_gaussian_cross(context, (atn_distance)c, 0.1, &x.view, &y.view, &k.view),
            ATN_OK);
        for (int64_t i = 0; i < M * M; i++)
            largest[c] = fmax(largest[c], guarded_at(&k, 0, 0, i / M, i % M));
    }
    cr_expect(largest[ATN_DISTANCE_DIRECT] == 1 && largest[ATN_DISTANCE_CLAMPED] == 1 &&
                  largest[ATN_DISTANCE_EXPANDED] > 1,
              "direct %g, clamped %g, expanded %g", largest[ATN_DISTANCE_DIRECT],
              largest[ATN_DISTANCE_CLAMPED], largest[ATN_DISTANCE_EXPANDED]);
    guarded_free(&k);
    guarded_free(&y);
    guarded_free(&x);
    atn_context_free(context);
}

/* Far apart: exactly 0 off the diagonal. Equal: exactly 1 everywhere. */
Test(kernel, extremes)
{
    enum { M = 18, D = 4 };
    atn_context *context = fixture_context(1, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int equal = 0; equal < 2; equal++) {
            guarded l = guarded_make((atn_dtype)dtype, GUARDED_STRIDED, 1, 1, M, D);
            guarded a = guarded_make((atn_dtype)dtype, GUARDED_STRIDED, 1, 1, M, M);
            double tokens[M * D];
            int64_t wrong = 0;
            for (int64_t i = 0; i < M * D; i++)
                tokens[i] = equal ? 0.3 + (double)(i % D) : 1e3 * (double)(i / D);
            guarded_set(&l, tokens);
            cr_assert_eq(fixture_gaussian_self(context, ATN_DISTANCE_DIRECT, 1, &l.view, &a.view),
                         ATN_OK);
            for (int64_t i = 0; i < M * M; i++)
                wrong += guarded_at(&a, 0, 0, i / M, i % M) != (equal || i / M == i % M);
            cr_expect_eq(wrong, 0, "%s equal=%d: %ld entries", atn_dtype_name((atn_dtype)dtype),
                         equal, (long)wrong);
            guarded_free(&a);
            guarded_free(&l);
        }
    atn_context_free(context);
}

/* Tokens without coordinates are all equal; nothing may be printed or left unwritten. */
Test(kernel, width_0)
{
    enum { P = 3, Q = 5 };
    atn_context *context = fixture_context(1, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int distance = 0; distance < ATN_DISTANCE_COUNT; distance++) {
            guarded x = guarded_make((atn_dtype)dtype, GUARDED_DENSE, 1, 1, P, 0);
            guarded y = guarded_make((atn_dtype)dtype, GUARDED_DENSE, 1, 1, Q, 0);
            guarded k = guarded_make((atn_dtype)dtype, GUARDED_DENSE, 1, 1, P, Q);
            atn_status status = fixture_gaussian_cross(context, (atn_distance)distance, 1, &x.view,
                                                       &y.view, &k.view);
            int64_t ones = 0;
            for (int64_t i = 0; i < P * Q; i++)
                ones += guarded_at(&k, 0, 0, i / Q, i % Q) == 1;
            cr_expect(status == ATN_OK ? ones == P * Q : guarded_unwritten(&k) == P * Q,
                      "%s %s: %s, %ld ones", atn_distance_name((atn_distance)distance),
                      atn_dtype_name((atn_dtype)dtype), atn_status_name(status), (long)ones);
            guarded_free(&k);
            guarded_free(&y);
            guarded_free(&x);
        }
    atn_context_free(context);
}

/* One row may have any row stride; a view of one token is valid for any strides. */
Test(kernel, one_token_with_an_odd_row_stride)
{
    enum { Q = 5, D = 4 };
    static const int64_t strides[] = {D, D + 3, (int64_t)1 << 33};
    atn_context *context = fixture_context(1, NULL);
    float x[D] = {1, 2, 3, 4}, y[Q * D] = {0}, k[Q], want[Q];
    for (int i = 0; i < Q * D; i++)
        y[i] = (float)(i % 3);
    atn_tensor one = atn_tensor_dense(x, ATN_F32, 1, 1, 1, D);
    atn_tensor many = atn_tensor_dense(y, ATN_F32, 1, 1, Q, D);
    atn_tensor out = atn_tensor_dense(want, ATN_F32, 1, 1, 1, Q);
    for (int distance = 0; distance < ATN_DISTANCE_COUNT; distance++) {
        one.row_stride = D;
        out.data = want;
        cr_assert_eq(
            fixture_gaussian_cross(context, (atn_distance)distance, 0.1, &one, &many, &out),
            ATN_OK);
        out.data = k;
        for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
            one.row_stride = strides[i];
            atn_status status =
                fixture_gaussian_cross(context, (atn_distance)distance, 0.1, &one, &many, &out);
            int different = 0;
            for (int j = 0; j < Q; j++)
                different += k[j] != want[j];
            cr_expect(status == ATN_ERR_STRIDE || (status == ATN_OK && different == 0),
                      "%s row_stride=%ld: %s, %d different",
                      atn_distance_name((atn_distance)distance), (long)strides[i],
                      atn_status_name(status), different);
            for (int j = 0; j < Q; j++)
                k[j] = -1;
        }
    }
    atn_context_free(context);
}

Test(kernel, scales)
{
    cr_expect_eq(atn_kernel_scale(ATN_SCALE_HEAD, 7, 4, 16), 0.125);
    cr_expect_eq(atn_kernel_scale(ATN_SCALE_EMBED, 7, 4, 16), 0.0625);
    cr_expect_eq(atn_kernel_scale(ATN_SCALE_VALUE, 7, 4, 16), 7);
    cr_expect_eq(atn_kernel_scale(ATN_SCALE_EMBED, 0, 1, 16), 0.125);
}

Test(kernel, names)
{
    cr_expect_str_eq(atn_distance_name(ATN_DISTANCE_DIRECT), "direct");
    cr_expect_str_eq(atn_distance_name(ATN_DISTANCE_EXPANDED), "expanded");
    cr_expect_str_eq(atn_distance_name(ATN_DISTANCE_CLAMPED), "clamped");
    cr_expect_null(atn_distance_name(ATN_DISTANCE_COUNT));
    cr_expect_null(atn_distance_name((atn_distance)-1));
    cr_expect_str_eq(atn_scale_name(ATN_SCALE_HEAD), "head");
    cr_expect_str_eq(atn_scale_name(ATN_SCALE_EMBED), "embed");
    cr_expect_str_eq(atn_scale_name(ATN_SCALE_VALUE), "value");
    cr_expect_null(atn_scale_name(ATN_SCALE_COUNT));
}
