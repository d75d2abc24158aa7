/* SPDX-License-Identifier: BSD-3-Clause */
/* Squares are summed in long double, whose exponent holds the square of every double. */
#include "ruler.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

static const double most_digits = 15.95; /* -log10 of the roundoff of f64 */

/* One side of a comparison, in f32 or f64. */
typedef struct {
    const double *f64;
    const float *f32;
    int64_t stride;
} compared_side;

static double element(compared_side from, int64_t row, int64_t col)
{
    int64_t at = row * from.stride + col;
    return from.f64 ? from.f64[at] : (double)from.f32[at];
}

/* |got - want|, or infinity if one of them is not finite. */
static long double distance(double got, double want)
{
    if (!isfinite(got) || !isfinite(want))
        return INFINITY;
    return fabsl((long double)got - want);
}

static long double size_of(double value)
{
    return isfinite(value) ? fabsl((long double)value) : INFINITY;
}

/* Sums over one row or column, of got - want and of want. */
typedef struct {
    long double difference, want, difference_squares, want_squares;
} line_sums;

static line_sums sum_line(compared_side got, compared_side want, bool is_row, int64_t line,
                          int64_t count)
{
    line_sums sums = {0, 0, 0, 0};
    for (int64_t i = 0; i < count; i++) {
        int64_t row = is_row ? line : i, col = is_row ? i : line;
        double expected = element(want, row, col);
        long double apart = distance(element(got, row, col), expected), size = size_of(expected);
        sums.difference += apart;
        sums.want += size;
        sums.difference_squares += apart * apart;
        sums.want_squares += size * size;
    }
    return sums;
}

/* The rank of a difference: NaN is worse than infinity, infinity worse than any number. */
static long double badness(double got, double want)
{
    if (isnan(got) || isnan(want))
        return INFINITY;
    if (isinf(got) || isinf(want))
        return LDBL_MAX;
    return distance(got, want);
}

/* The worst element, the largest magnitudes and the count of nonfinite mismatches. */
static void scan_elements(int64_t rows, int64_t cols, compared_side got, compared_side want,
                          ref_difference *result)
{
    long double worst = -1, largest = 0, want_largest = 0;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            double have = element(got, i, j), expected = element(want, i, j);
            result->nonfinite += isfinite(have) != isfinite(expected);
            largest = fmaxl(largest, distance(have, expected));
            want_largest = fmaxl(want_largest, size_of(expected));
            if (badness(have, expected) > worst) {
                worst = badness(have, expected);
                result->worst_row = i;
                result->worst_col = j;
                result->worst_got = have;
                result->worst_want = expected;
            }
        }
    }
    result->max_abs = (double)largest;
    result->want_max = (double)want_largest;
}

static double agreeing_digits(double relative)
{
    if (!(relative < 1))
        return 0;
    return relative > 0 ? fmin(-log10(relative), most_digits) : most_digits;
}

static ref_difference compare(int64_t rows, int64_t cols, compared_side got, compared_side want)
{
    ref_difference result = {.worst_row = -1, .worst_col = -1};
    long double norm1 = 0, norm_inf = 0, squares = 0, want1 = 0, want_inf = 0, want_squares = 0;
    scan_elements(rows, cols, got, want, &result);
    for (int64_t i = 0; i < rows; i++) {
        line_sums row = sum_line(got, want, true, i, cols);
        norm_inf = fmaxl(norm_inf, row.difference);
        want_inf = fmaxl(want_inf, row.want);
        squares += row.difference_squares;
        want_squares += row.want_squares;
    }
    for (int64_t j = 0; j < cols; j++) {
        line_sums col = sum_line(got, want, false, j, rows);
        norm1 = fmaxl(norm1, col.difference);
        want1 = fmaxl(want1, col.want);
    }
    result.norm1 = (double)norm1;
    result.norm_inf = (double)norm_inf;
    result.frobenius = (double)sqrtl(squares);
    result.want_norm1 = (double)want1;
    result.want_inf = (double)want_inf;
    result.want_frobenius = (double)sqrtl(want_squares);
    if (isinf(squares))
        result.relative_frobenius = INFINITY;
    else if (squares > 0)
        result.relative_frobenius = (double)(sqrtl(squares) / sqrtl(want_squares));
    result.digits = agreeing_digits(result.relative_frobenius);
    return result;
}

/* The result for arrays that cannot be compared: it must not look like agreement. */
static ref_difference incomparable(void)
{
    const double inf = INFINITY;
    return (ref_difference){
        .norm1 = inf,
        .norm_inf = inf,
        .frobenius = inf,
        .max_abs = inf,
        .relative_frobenius = inf,
        .worst_row = -1,
        .worst_col = -1,
        .worst_got = NAN,
        .worst_want = NAN,
    };
}

static bool comparable(int64_t rows, int64_t cols, const void *got, int64_t got_stride,
                       const void *want, int64_t want_stride)
{
    if (rows < 0 || cols < 0)
        return false;
    if (rows == 0 || cols == 0)
        return true;
    return got && want && got_stride >= cols && want_stride >= cols;
}

ref_difference ref_compare_f64(int64_t rows, int64_t cols, const double *got, int64_t got_stride,
                               const double *want, int64_t want_stride)
{
    if (!comparable(rows, cols, got, got_stride, want, want_stride))
        return incomparable();
    return compare(rows, cols, (compared_side){got, NULL, got_stride},
                   (compared_side){want, NULL, want_stride});
}

ref_difference ref_compare_f32(int64_t rows, int64_t cols, const float *got, int64_t got_stride,
                               const double *want, int64_t want_stride)
{
    if (!comparable(rows, cols, got, got_stride, want, want_stride))
        return incomparable();
    return compare(rows, cols, (compared_side){NULL, got, got_stride},
                   (compared_side){want, NULL, want_stride});
}

const char *ref_verdict_name(ref_verdict verdict)
{
    static const char *const names[] = {
        [REF_PASS] = "pass",
        [REF_MARGINAL] = "marginal",
        [REF_FAIL] = "FAIL",
        [REF_SKIPPED] = "skipped",
    };
    return (unsigned)verdict <= REF_SKIPPED ? names[verdict] : NULL;
}

const ref_threshold *ref_threshold_get(ref_rule rule)
{
#define THRESHOLD(code, name, pass, fail, statistic, reason) {name, pass, fail, statistic, reason},
    static const ref_threshold thresholds[] = {REF_RULE_LIST(THRESHOLD)};
#undef THRESHOLD
    return (unsigned)rule < REF_RULE_COUNT ? &thresholds[rule] : NULL;
}

ref_verdict ref_judge(ref_rule rule, double ratio)
{
    const ref_threshold *threshold = ref_threshold_get(rule);
    if (!threshold || !(ratio >= 0) || !(ratio < threshold->fail))
        return REF_FAIL;
    return ratio < threshold->pass ? REF_PASS : REF_MARGINAL;
}

static ref_verdict with_ratio(double value, double *ratio, ref_verdict verdict)
{
    if (ratio)
        *ratio = value;
    return verdict;
}

ref_verdict ref_judge_forward(const ref_difference *difference, double kappa, int64_t n, double u,
                              double *ratio)
{
    double relative = difference->relative_frobenius;
    if (difference->nonfinite != 0 || !isfinite(difference->frobenius) || isnan(relative))
        return with_ratio(INFINITY, ratio, REF_FAIL);
    double expected = kappa * (double)n * u;
    if (!isfinite(kappa) || !(expected <= 0.1))
        return with_ratio(NAN, ratio, REF_SKIPPED);
    double value = relative == 0 ? 0 : relative / expected;
    return with_ratio(value, ratio, ref_judge(REF_FORWARD, value));
}

ref_verdict ref_judge_baseline(const ref_difference *difference, const ref_difference *plain,
                               double u, double *ratio)
{
    double error = difference->max_abs, most = difference->want_max;
    if (difference->nonfinite != 0 || !isfinite(error))
        return with_ratio(INFINITY, ratio, REF_FAIL);
    if (plain->nonfinite != 0 || !isfinite(plain->max_abs))
        return with_ratio(NAN, ratio, REF_SKIPPED);
    double ulp = most > 0 ? ldexp(2 * u, ilogb(most)) : 0;
    double value = error == 0 ? 0 : error / (2 * plain->max_abs + 2 * ulp);
    return with_ratio(value, ratio, ref_judge(REF_BASELINE, value));
}

ref_verdict ref_judge_regression(double error, double kept, double *ratio)
{
    double value = kept >= 0 ? error / (2 * kept + 2) : NAN;
    if (kept == INFINITY && error >= 0)
        value = 0;
    return with_ratio(value, ratio, ref_judge(REF_REGRESSION, value));
}

bool ref_discriminates(int64_t rows, int64_t cols, const double *want, double tolerance)
{
    long double spread = 0, squares = 0;
    for (int64_t j = 0; j < cols; j++) {
        long double mean = 0;
        for (int64_t i = 0; i < rows; i++)
            mean += want[i * cols + j] / (long double)rows;
        for (int64_t i = 0; i < rows; i++) {
            long double value = want[i * cols + j];
            spread += (value - mean) * (value - mean);
            squares += value * value;
        }
    }
    /* Zeros have the relative error 1, the means a smaller one, so these decide. NaN gives
     * false. */
    return squares > 0 && sqrtl(spread / squares) > tolerance;
}
