/* SPDX-License-Identifier: BSD-3-Clause */
/* Dense SOFT on cases worked out by hand, and the samplings on tiny grids. */
#include <criterion/criterion.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dense_soft.h"
#include "linear_algebra.h"
#include "ratios.h"

static void expect_all(const char *what, int64_t rows, int64_t cols, const double *got,
                       const double *want, double tolerance)
{
    ref_difference d = ref_compare_f64(rows, cols, got, cols, want, cols);
    cr_expect(d.max_abs <= tolerance, "%s max_abs=%g at (%d,%d) got=%.17g want=%.17g", what,
              d.max_abs, (int)d.worst_row, (int)d.worst_col, d.worst_got, d.worst_want);
}

/* Deterministic, nowhere 0, nowhere equal. */
static void fill_wave(int64_t count, double amplitude, double *x)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = amplitude * sin(1 + 2.385 * (double)i);
}

Test(soft, gaussian)
{
    /* squared distances 0, 25; 25, 0; 1, 18 */
    static const double x[6] = {0, 0, 3, 4, 0, 1}, y[4] = {0, 0, 3, 4};
    const double want[6] = {1, exp(-12.5), exp(-12.5), 1, exp(-0.5), exp(-9)};
    double k[6];
    ref_gaussian(3, 2, 2, x, y, 0.5, k);
    for (int i = 0; i < 6; i++)
        cr_expect(fabs(k[i] - want[i]) <= DBL_EPSILON * want[i], "%d got=%.17g want=%.17g", i, k[i],
                  want[i]);
    ref_gaussian(2, 2, 0, x, y, 0.5, k);
    cr_expect(k[0] == 1 && k[3] == 1, "no dimensions, no distance");
    ref_gaussian(1, 1, 2, x, x + 2, 1e4, k);
    cr_expect(k[0] == 0, "underflow");
}

/* L = Q: P = A = S, and S A^-1 S = S. */
Test(soft, all_tokens_as_landmarks)
{
    enum { N = 12, D = 3, DV = 2 };
    double tokens[N * D], values[N * DV], s[N * N], s_hat[N * N], out[N * DV], want[N * DV];
    double condition, ratio;
    fill_wave(N * D, 2, tokens);
    fill_wave(N * DV, 1, values);
    ref_gaussian(N, N, D, tokens, tokens, 0.5, s);
    cr_assert(ref_condition(N, N, s, &condition, NULL) == ATN_OK && condition < 1e6, "%g",
              condition);
    cr_expect(ref_soft(N, N, D, DV, tokens, tokens, values, 0.5, NULL, false, s_hat, out) ==
              ATN_OK);
    product(N, N, DV, s, values, want);
    ref_difference d = ref_compare_f64(N, N, s_hat, N, s, N);
    cr_expect(ref_judge_forward(&d, condition, N, UNIT_ROUNDOFF, &ratio) == REF_PASS, "ratio=%g",
              ratio);
    expect_ratio(REF_FORWARD, ratio, "S^ = S");
    d = ref_compare_f64(N, DV, out, DV, want, DV);
    cr_expect(ref_judge_forward(&d, condition, N, UNIT_ROUNDOFF, &ratio) == REF_PASS, "ratio=%g",
              ratio);
    expect_ratio(REF_FORWARD, ratio, "S^ V = S V");
    cr_expect(ref_discriminates(N, N, s, 1e-6) && ref_discriminates(N, DV, want, 1e-6));
    log_worst("soft/all landmarks");
}

/* One landmark: A = 1, S^_ij = p_i p_j, out_i = p_i sum p_j v_j; D = 1 changes nothing. */
Test(soft, one_landmark)
{
    static const double tokens[3] = {0, 1, 2}, landmark[1] = {1}, values[6] = {1, 10, 2, 20, 3, 30};
    const double p[3] = {exp(-0.5), 1, exp(-0.5)}, sum = p[0] + 2 * p[1] + 3 * p[2];
    double want[9], s_hat[9], out[6], want_out[6];
    for (int i = 0; i < 9; i++)
        want[i] = p[i / 3] * p[i % 3];
    for (int i = 0; i < 6; i++)
        want_out[i] = p[i / 2] * sum * (i % 2 ? 10 : 1);
    for (int normalise = 0; normalise < 2; normalise++) {
        cr_expect(ref_soft(3, 1, 1, 2, tokens, landmark, values, 0.5, NULL, normalise, s_hat,
                           out) == ATN_OK);
        expect_all("S^", 3, 3, s_hat, want, 1e-15);
        expect_all("out", 3, 2, out, want_out, 1e-13);
    }
}

/* All tokens equal: A = J, A+ = J / m^2, P = 1: S^ = 1 everywhere; normalised, D = m I: 1 / m. */
Test(soft, equal_tokens)
{
    enum { N = 5, M = 3 };
    const double tokens[N * 2] = {7, 8, 7, 8, 7, 8, 7, 8, 7, 8}, values[N] = {1, 2, 3, 4, 5};
    double s_hat[N * N], out[N], want[N * N], want_out[N];
    for (int normalise = 0; normalise < 2; normalise++) {
        double each = normalise ? 1. / M : 1;
        for (int i = 0; i < N * N; i++)
            want[i] = each;
        for (int i = 0; i < N; i++)
            want_out[i] = 15 * each;
        cr_expect(ref_soft(N, M, 2, 1, tokens, tokens, values, 0.5, NULL, normalise, s_hat, out) ==
                  ATN_OK);
        expect_all("S^", N, N, s_hat, want, 1e-14);
        expect_all("out", N, 1, out, want_out, 1e-13);
    }
}

/* A given X, not symmetric, is used unchanged: S^_ij = sum_ab P_ai X_ab P_bj, weighed by
 * D_a^-1/2 D_b^-1/2 if normalised. Three landmarks, so that D is not a multiple of I. */
Test(soft, given_inverse)
{
    static const double tokens[2] = {0.5, -1}, landmarks[3] = {0, 1, 3}, values[4] = {1, 2, 3, 5};
    static const double x[9] = {1, 2, -1, 0.5, 3, 4, -2, 0.25, 1};
    double s_hat[4], out[4], want[4], want_out[4];
    for (int normalise = 0; normalise < 2; normalise++) {
        for (int i = 0; i < 4; i++) {
            want[i] = 0;
            for (int ab = 0; ab < 9; ab++) {
                double la = landmarks[ab / 3], lb = landmarks[ab % 3], da = 0, db = 0;
                for (int c = 0; c < 3; c++) {
                    da += exp(-0.25 * pow(la - landmarks[c], 2));
                    db += exp(-0.25 * pow(lb - landmarks[c], 2));
                }
                double pa = exp(-0.25 * pow(la - tokens[i / 2], 2));
                double pb = exp(-0.25 * pow(lb - tokens[i % 2], 2));
                want[i] += pa * x[ab] * pb / (normalise ? sqrt(da) * sqrt(db) : 1);
            }
        }
        product(2, 2, 2, want, values, want_out);
        cr_expect(ref_soft(2, 3, 1, 2, tokens, landmarks, values, 0.25, x, normalise, s_hat, out) ==
                  ATN_OK);
        expect_all("S^", 2, 2, s_hat, want, 1e-14);
        expect_all("out", 2, 2, out, want_out, 1e-13);
        cr_expect(fabs(want[1] - want[2]) > 0.1, "S^ is not symmetric here: %g %g", want[1],
                  want[2]);
    }
}

/* out is linear in V, and is S^ V. */
Test(soft, linear_in_values)
{
    enum { N = 20, M = 5, D = 4, DV = 3 };
    double tokens[N * D], v[3][N * DV], out[3][N * DV], sum[N * DV], s_hat[N * N], direct[N * DV];
    fill_wave(N * D, 1.5, tokens);
    fill_wave(N * DV, 1, v[0]);
    for (int i = 0; i < N * DV; i++) {
        v[1][i] = cos(3.1 * i);
        v[2][i] = 2 * v[0][i] - 0.5 * v[1][i];
    }
    for (int i = 0; i < 3; i++)
        cr_expect(ref_soft(N, M, D, DV, tokens, tokens, v[i], 0.25, NULL, true, i ? NULL : s_hat,
                           out[i]) == ATN_OK);
    for (int i = 0; i < N * DV; i++)
        sum[i] = 2 * out[0][i] - 0.5 * out[1][i];
    expect_all("linearity", N, DV, out[2], sum, 1e-12);
    product(N, N, DV, s_hat, v[0], direct);
    expect_all("S^ V", N, DV, out[0], direct, 1e-12);
    cr_expect(ref_discriminates(N, DV, direct, 1e-6));
}

Test(soft, statuses)
{
    static const double one[4] = {1, 2, 3, 4}, bad[4] = {1, NAN, 3, 4};
    static const double far_apart[4] = {1e308, -1e308, 0, 1};
    double s_hat[4], out[4];
    const struct {
        int64_t n, m, d, dv;
        const double *tokens, *landmarks, *values, *inverse;
        double s;
        atn_status want;
    } cases[] = {
        {2, 2, 1, 1, one, one, one, NULL, 0.5, ATN_OK},
        {0, 2, 1, 1, NULL, one, NULL, NULL, 0.5, ATN_OK},
        {2, 2, 1, 0, one, one, NULL, NULL, 0.5, ATN_OK},
        {2, 2, 1, 1, one, one, one, NULL, 0, ATN_OK},
        {2, 2, 1, 1, far_apart, far_apart, one, NULL, 1, ATN_OK},
        {-1, 2, 1, 1, one, one, one, NULL, 0.5, ATN_ERR_SHAPE},
        {2, -1, 1, 1, one, one, one, NULL, 0.5, ATN_ERR_SHAPE},
        {2, 2, -1, 1, one, one, one, NULL, 0.5, ATN_ERR_SHAPE},
        {2, 2, 1, -1, one, one, one, NULL, 0.5, ATN_ERR_SHAPE},
        {INT64_MAX, 2, 1, 1, one, one, one, NULL, 0.5, ATN_ERR_SHAPE},
        {20000, 2, 1, 1, one, one, one, NULL, 0.5, ATN_ERR_SHAPE}, /* S^ would not fit */
        {2, 2, 1, 1, NULL, one, one, NULL, 0.5, ATN_ERR_NULL},
        {2, 2, 1, 1, one, NULL, one, NULL, 0.5, ATN_ERR_NULL},
        {2, 2, 1, 1, one, one, NULL, NULL, 0.5, ATN_ERR_NULL},
        {2, 2, 1, 1, one, one, one, NULL, -1, ATN_ERR_VALUE},
        {2, 2, 1, 1, one, one, one, NULL, NAN, ATN_ERR_VALUE},
        {2, 2, 1, 1, one, one, one, NULL, INFINITY, ATN_ERR_VALUE},
        {2, 2, 1, 1, bad, one, one, NULL, 0.5, ATN_NONFINITE},
        {2, 2, 1, 1, one, bad, one, NULL, 0.5, ATN_NONFINITE},
        {2, 2, 1, 1, one, one, bad, NULL, 0.5, ATN_NONFINITE},
        {2, 2, 1, 1, one, one, one, bad, 0.5, ATN_NONFINITE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s_hat[0] = out[0] = -7;
        double *wide = cases[i].n == 20000 ? new_numbers(20000) : NULL;
        atn_status status =
            ref_soft(cases[i].n, cases[i].m, cases[i].d, cases[i].dv, wide ? wide : cases[i].tokens,
                     cases[i].landmarks, wide ? wide : cases[i].values, cases[i].s,
                     cases[i].inverse, false, s_hat, out);
        free(wide);
        cr_expect(status == cases[i].want, "case %zu %s want %s", i, atn_status_name(status),
                  atn_status_name(cases[i].want));
        if (status < 0)
            cr_expect(s_hat[0] == -7 && out[0] == -7, "case %zu touched its outputs", i);
        if (status == ATN_NONFINITE)
            cr_expect(isnan(s_hat[0]) && isnan(s_hat[3]) && isnan(out[0]) && isnan(out[1]),
                      "case %zu", i);
    }
    cr_expect(ref_soft(2, 2, 1, 1, one, one, NULL, 0.5, NULL, false, s_hat, NULL) == ATN_OK);
    cr_expect(ref_soft(2, 2, 1, 1, one, one, bad, 0.5, NULL, false, s_hat, NULL) == ATN_OK,
              "values are not read without out");
    /* no landmarks: S^ = 0 */
    cr_expect(ref_soft(2, 0, 1, 1, one, NULL, one, 0.5, NULL, true, s_hat, out) == ATN_OK &&
              s_hat[3] == 0 && out[1] == 0);
}

/* A smooth kernel whose spectrum runs through the cut: OK or BELOW_FLOOR, never NaN. */
Test(soft, smooth_kernel_is_defined)
{
    enum { N = 40, M = 20 };
    double tokens[N], values[N], out[N];
    for (int i = 0; i < N; i++) {
        tokens[i] = i / (double)N;
        values[i] = cos(i);
    }
    atn_status status = ref_soft(N, M, 1, 1, tokens, tokens, values, 0.5, NULL, false, NULL, out);
    cr_expect(status == ATN_OK || status == ATN_BELOW_FLOOR, "%s", atn_status_name(status));
    for (int i = 0; i < N; i++)
        cr_expect(isfinite(out[i]), "%d %g", i, out[i]);
}

/* 3 x 5 grid, stride 2: one row and one column are dropped. Token (y, x) holds 10 y + x, then its
 * negative. */
Test(soft, pool)
{
    double tokens[30], got[4];
    static const double want[4] = {5.5, -5.5, 7.5, -7.5};
    for (int i = 0; i < 15; i++) {
        tokens[2 * i] = 10 * (i / 5) + i % 5;
        tokens[2 * i + 1] = -tokens[2 * i];
    }
    ref_pool(3, 5, 2, 2, tokens, got);
    expect_all("pool", 2, 2, got, want, 0);
    double copy[30];
    ref_pool(3, 5, 2, 1, tokens, copy);
    expect_all("stride 1", 15, 2, copy, tokens, 0);
    got[0] = -7;
    ref_pool(3, 5, 2, 4, tokens, got); /* no whole window */
    ref_pool(3, 5, 2, 0, tokens, got);
    ref_pool(0, 0, 2, 2, NULL, got);
    cr_expect(got[0] == -7);
}

Test(soft, window)
{
    static const double tokens[10] = {1, 10, 2, 20, 3, 30, 4, 40, 6, 60};
    static const double pairs[6] = {1.5, 15, 3.5, 35, 6, 60}, threes[4] = {2, 20, 5, 50};
    static const double all[2] = {3.2, 32};
    double got[10] = {-7};
    ref_window(5, 2, 2, tokens, got);
    expect_all("k=2", 3, 2, got, pairs, 0);
    ref_window(5, 2, 3, tokens, got);
    expect_all("k=3", 2, 2, got, threes, 0);
    ref_window(5, 2, 1, tokens, got);
    expect_all("k=1", 5, 2, got, tokens, 0);
    ref_window(5, 2, 9, tokens, got);
    expect_all("k=9", 1, 2, got, all, 1e-14);
    got[0] = -7;
    ref_window(5, 2, 0, tokens, got);
    ref_window(0, 2, 3, NULL, got);
    cr_expect(got[0] == -7);
}

/* 2 x 3 grid (last column dropped), d = 2, k = 2. Weights 1 .. 16 in their order out, in, row,
 * column; tokens (1, 2), (3, 4), -; (5, 6), (7, 8), -: out 0 = 1 1 + 2 3 + 3 5 + 4 7 + 5 2 + 6 4 +
 * 7 6 + 8 8 = 50 + 140, out 1 = 50 + 140 + 8 (1 + .. + 8). */
Test(soft, conv)
{
    static const double tokens[12] = {1, 2, 3, 4, 99, 99, 5, 6, 7, 8, 99, 99};
    static const double want[2] = {190, 478};
    double weights[16], got[2];
    for (int i = 0; i < 16; i++)
        weights[i] = i + 1;
    ref_conv(2, 3, 2, 2, weights, tokens, got);
    expect_all("conv", 1, 2, got, want, 0);
    /* constant weights 1/k^2 from a channel to itself are average pooling */
    double grid[48], pooled[8], convolved[8];
    static const double averages[16] = {0.25, 0.25, 0.25, 0.25, 0,    0,    0,    0,
                                        0,    0,    0,    0,    0.25, 0.25, 0.25, 0.25};
    fill_wave(48, 1, grid);
    ref_pool(4, 6, 2, 3, grid, pooled);
    ref_pool(4, 5, 2, 2, grid, pooled);
    ref_conv(4, 5, 2, 2, averages, grid, convolved);
    expect_all("conv = pool", 4, 2, convolved, pooled, 1e-16);
    got[0] = -7;
    ref_conv(2, 3, 2, 0, weights, tokens, got);
    ref_conv(2, 3, 2, 3, weights, tokens, got);
    cr_expect(got[0] == -7);
}

/* Row (1, 3): mean 2, variance 1: z = -+1 / sqrt(1 + 1e-5); then z Phi(z). */
Test(soft, norm_gelu)
{
    const double z = 1 / sqrt(1 + 1e-5), upper = 0.5 * (1 + erf(z / sqrt(2)));
    const double plain[2] = {-z * (1 - upper), z * upper};
    double x[4] = {1, 3, 5, 5};
    ref_norm_gelu(2, 2, NULL, NULL, x);
    expect_all("plain", 1, 2, x, plain, 1e-15);
    cr_expect(x[2] == 0 && x[3] == 0, "a constant row has no variance");
    cr_expect(fabs(plain[1] - 0.84134) < 1e-4, "Phi(1) = 0.84134: %g", plain[1]);
    static const double weight[2] = {2, -3}, bias[2] = {2, 1};
    const double a = -2 * z + 2, b = -3 * z + 1;
    const double affine[2] = {a / 2 * (1 + erf(a / sqrt(2))), b / 2 * erfc(-b / sqrt(2))};
    double y[2] = {1, 3};
    ref_norm_gelu(1, 2, weight, bias, y);
    expect_all("affine", 1, 2, y, affine, 1e-15);
    /* far in the tail, where 1 + erf would cancel */
    static const double zero[2] = {0, 0}, tail[2] = {-12, 12};
    double t[2] = {4, 4};
    ref_norm_gelu(1, 2, zero, tail, t);
    double want = -6 * erfc(12 / sqrt(2));
    cr_expect(want < 0 && fabs(t[0] - want) <= 1e-13 * fabs(want) && t[1] == 12, "%g want %g", t[0],
              want);
}

/* 2 x 3 grid, 3 x 3 filter 1 .. 9: token (0, 0) sees 5 6; 8 9 of the filter on (0,0) (0,1); (1,0)
 * (1,1). Added to what out holds. Two channels, the second ten times the first. */
Test(soft, depthwise)
{
    static const double filter[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, first[6] = {1, 2, 3, 4, 5, 6};
    static const double want[6] = {94, 154, 106, 58, 91, 58};
    double values[12], out[12], expected[12];
    for (int i = 0; i < 6; i++) {
        values[2 * i] = first[i];
        values[2 * i + 1] = 10 * first[i];
        out[2 * i] = out[2 * i + 1] = 1000;
        expected[2 * i] = 1000 + want[i];
        expected[2 * i + 1] = 1000 + 10 * want[i];
    }
    ref_depthwise(2, 3, 2, 3, filter, values, out);
    expect_all("3x3", 6, 2, out, expected, 0);
    static const double two = 2;
    ref_depthwise(2, 3, 2, 1, &two, values, out);
    for (int i = 0; i < 12; i++)
        expected[i] += 2 * values[i];
    expect_all("1x1", 6, 2, out, expected, 0);
    ref_depthwise(2, 3, 2, 0, filter, values, out);
    ref_depthwise(0, 0, 2, 3, filter, NULL, out);
    expect_all("nothing", 6, 2, out, expected, 0);
}
