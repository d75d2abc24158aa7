/* SPDX-License-Identifier: BSD-3-Clause */
/* S13 - S15: how the Newton-Raphson iteration converges, and whether there is an inverse. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <certified.h>
#include <newton.h>

#include "claims/claims.h"
#include "claims/direct.h"
#include "claims/miniature.h"
#include "common/report.h"

/* ---- S13 ---- */

enum { S13_SIZE = 3, S13_STEPS = 90, S13_EXACT_STEPS = 8, S13_SHOWN = 10 };

/* Singular, though no two rows are equal: (1, -3/2, 1) is in its null space. It maps (1, 0, -1) to
 * 7/8 and w = (3, 4, 3)/3 to 17/8 times itself, so that A+ = (4/7)(1, 0, -1)(1, 0, -1)^T + (36/289)
 * w w^T. It meets the assumptions of App. B, but is no matrix of SOFT's: kernel matrices are
 * singular only if two landmarks are equal (S15), and sqrt(-ln a_ij), the distance up to a factor,
 * violates the triangle inequality. */
static const double s13_matrix[S13_SIZE * S13_SIZE] = {1,    0.75,  0.125, 0.75, 1,
                                                       0.75, 0.125, 0.75,  1};
static const double s13_eigenvalues[S13_SIZE] = {17.0 / 8, 7.0 / 8, 0};

static void s13_pinv(double *pinv)
{
    static const double v[S13_SIZE] = {1, 0, -1}, w[S13_SIZE] = {1, 4.0 / 3, 1};
    for (int i = 0; i < S13_SIZE; i++)
        for (int j = 0; j < S13_SIZE; j++)
            pinv[i * S13_SIZE + j] = 4.0 / 7 * v[i] * v[j] + 36.0 / 289 * w[i] * w[j];
}

/* Both errors of Prop. 2 in f64, relative, from the paper's start. */
typedef struct {
    double residuals[S13_STEPS + 1], errors[S13_STEPS + 1];
    int count, best; /* best: the k of the smallest error */
    double most;     /* the largest error after it; infinite if an iterate overflows */
} rounded_run;

static int run_rounded(const claim_run *run, const double *a, const double *pinv, rounded_run *r)
{
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    atn_inverse_info info;
    atn_trace trace = {
        .capacity = S13_STEPS + 1,
        .values = {[ATN_METRIC_RESIDUAL] = r->residuals, [ATN_METRIC_INVERSE_ERROR] = r->errors},
        .pinv = pinv};
    desc.iterations = S13_STEPS;
    int code = direct_invert(run, &desc, S13_SIZE, a, NULL, &info, &trace);
    r->count = trace.length;
    r->best = 0;
    for (int k = 1; k < r->count; k++)
        if (r->errors[k] < r->errors[r->best])
            r->best = k;
    r->most = info.stop == ATN_STOP_NONFINITE ? INFINITY : 0;
    for (int k = r->best + 1; k < r->count; k++)
        r->most = direct_worst(r->most, r->errors[k]);
    return code;
}

/* ---- Kernel matrices that are positive definite ---- */

/* Three landmarks on a line, equally spaced: A = [1 t t^4; t 1 t; t^4 t 1] with t = exp(-s h^2) =
 * 1 - 2^-j, which f64 holds for j <= 13. Its determinant is (1 - t^4)(1 - t^2)^2. */
static const int s13_spacings[] = {4, 6, 8, 10, 13};
enum { S13_SPACINGS = sizeof s13_spacings / sizeof *s13_spacings };

/* A and its inverse. 1 - t and thus all factors are exact, and there is no cancellation. */
static void make_line(int j, double a[S13_SIZE * S13_SIZE], double inverse[S13_SIZE * S13_SIZE])
{
    double gap = ldexp(1, -j), t = 1 - gap, t2 = t * t, t4 = t2 * t2;
    double one_t2 = gap * (1 + t), one_t4 = one_t2 * (1 + t2);
    double corner = 1 / (one_t4 * one_t2), side = -t / (one_t2 * one_t2);
    double middle = (1 + t4) / (one_t2 * one_t2), far = t2 * corner;
    const double matrix[] = {1, t, t4, t, 1, t, t4, t, 1};
    const double inverted[] = {corner, side, far, side, middle, side, far, side, corner};
    memcpy(a, matrix, sizeof matrix);
    memcpy(inverse, inverted, sizeof inverted);
}

/* The error after it has reached its minimum. */
typedef struct {
    double least_lowest, most_lowest; /* lambda_min */
    double least_jitter, most_jitter; /* the largest error after the smallest, over the smallest */
    double most;                      /* the largest error after the smallest */
} line_summary;

static int tabulate_lines(const claim_run *run, verdict *v, line_summary *s)
{
    *s = (line_summary){INFINITY, 0, INFINITY, 0, 0};
    fprintf(v->notes,
            "| t | λ_min | smallest ‖X_k − A⁻¹‖₂/‖A⁻¹‖₂ | at k | largest after it, to "
            "k = %d | ratio |\n|---|---|---|---|---|---|\n",
            S13_STEPS);
    for (int i = 0; i < S13_SPACINGS; i++) {
        double a[S13_SIZE * S13_SIZE], inverse[S13_SIZE * S13_SIZE];
        rounded_run r;
        make_line(s13_spacings[i], a, inverse);
        int code = run_rounded(run, a, inverse, &r);
        if (code != EXIT_PASS)
            return code;
        /* (1, 0, -1) has the eigenvalue 1 - t^4; the other two have product (1 - t^2)^2 and sum 2 +
         * t^4 */
        double t = a[1], product = pow((1 - t) * (1 + t), 2), half = 1 + pow(t, 4) / 2;
        double lowest = product / (half + sqrt(half * half - product));
        double jitter = r.most / r.errors[r.best];
        fprintf(v->notes, "| 1 − 2^−%d | %.2g | %.2g | %d | %.2g | %.3g |\n", s13_spacings[i],
                lowest, r.errors[r.best], r.best, r.most, jitter);
        s->least_lowest = direct_least(s->least_lowest, lowest);
        s->most_lowest = direct_worst(s->most_lowest, lowest);
        s->least_jitter = direct_least(s->least_jitter, jitter);
        s->most_jitter = direct_worst(s->most_jitter, jitter);
        s->most = direct_worst(s->most, r.most);
    }
    fprintf(v->notes, "\nA = [1 t t⁴; t 1 t; t⁴ t 1], three landmarks on a line, from α = 2/‖A‖₁², "
                      "f64. On a mode with λ > 0 a step squares the error, rounding included: the "
                      "error jitters above its floor and does not grow.\n\n");
    return EXIT_PASS;
}

/* ---- The norm ---- */

/* A = B/4 for landmarks at the origin and on four axes, with entries 1/2 and 1/4; A^-1 = N/3. */
enum { STAR = 5, STAR_STARTS = 8 };

static void fill_star(int64_t b[STAR][STAR], int64_t n[STAR][STAR])
{
    for (int i = 0; i < STAR; i++)
        for (int j = 0; j < STAR; j++) {
            bool centre = i == 0 || j == 0;
            b[i][j] = i == j ? 4 : centre ? 2 : 1;
            n[i][j] = i == j ? (i == 0 ? 7 : 4) : centre ? -2 : 0;
        }
}

static int64_t star_norm(int64_t x[STAR][STAR])
{
    int64_t largest = 0;
    for (int j = 0; j < STAR; j++) {
        int64_t sum = 0;
        for (int i = 0; i < STAR; i++)
            sum += llabs(x[i][j]);
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

static void multiply_stars(int64_t a[STAR][STAR], int64_t b[STAR][STAR], int64_t c[STAR][STAR])
{
    for (int i = 0; i < STAR; i++)
        for (int j = 0; j < STAR; j++) {
            c[i][j] = 0;
            for (int k = 0; k < STAR; k++)
                c[i][j] += a[i][k] * b[k][j];
        }
}

/* |X_0 - A^-1|_1 and |X_1 - A^-1|_1 from alpha = 1/p, as whole numbers over denominators:
 * X_0 - A^-1 = (3 B - 4 p N)/(12 p), X_1 - A^-1 = (96 p B - 3 B^3 - 64 p^2 N)/(192 p^2). */
typedef struct {
    int64_t first, first_of, second, second_of;
    bool inverts, grows; /* B N = 12 I; the second norm is larger */
} star_step;

/* Reduces a fraction to lowest terms. */
static void reduce(int64_t *over, int64_t *under)
{
    int64_t a = *over, b = *under;
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    *over /= a;
    *under /= a;
}

static star_step step_star(int64_t p)
{
    int64_t b[STAR][STAR], n[STAR][STAR], squared[STAR][STAR], cubed[STAR][STAR];
    int64_t first[STAR][STAR], second[STAR][STAR], unit[STAR][STAR];
    star_step s = {.first_of = 12 * p, .second_of = 192 * p * p, .inverts = true};
    fill_star(b, n);
    multiply_stars(b, b, squared);
    multiply_stars(squared, b, cubed);
    multiply_stars(b, n, unit);
    for (int i = 0; i < STAR; i++)
        for (int j = 0; j < STAR; j++) {
            s.inverts &= unit[i][j] == (i == j ? 12 : 0);
            first[i][j] = 3 * b[i][j] - 4 * p * n[i][j];
            second[i][j] = 96 * p * b[i][j] - 3 * cubed[i][j] - 64 * p * p * n[i][j];
        }
    s.first = star_norm(first);
    s.second = star_norm(second);
    s.grows = s.second > s.first * 16 * p;
    reduce(&s.first, &s.first_of);
    reduce(&s.second, &s.second_of);
    return s;
}

/* For how many of the starts 1/18, 1/36, 1/72, ... the first step increases the norm. */
static int count_growing_stars(void)
{
    int growing = 0;
    for (int i = 0; i < STAR_STARTS; i++) {
        star_step s = step_star((int64_t)18 << i);
        growing += s.inverts && s.grows;
    }
    return growing;
}

/* |A X_k A e_1 - A e_1|_2 in rational arithmetic; certified if each is below the one before. */
typedef struct {
    double lower[S13_EXACT_STEPS + 1], upper[S13_EXACT_STEPS + 1];
    bool known, falls;
} exact_run;

static atn_status run_exact(exact_run *r)
{
    static const double first[S13_SIZE] = {1, 0, 0};
    double lower[S13_SIZE], upper[S13_SIZE];
    ref_exact_newton ignored;
    *r = (exact_run){.known = true, .falls = true};
    for (int k = 0; k <= S13_EXACT_STEPS; k++) {
        atn_status status =
            ref_exact_newton_steps(S13_SIZE, s13_matrix, (ref_rational_start){2, 1, true}, k, first,
                                   &ignored, lower, upper);
        if (status != ATN_OK) {
            r->known = r->falls = false;
            return status;
        }
        double least = 0, most = 0;
        for (int i = 0; i < S13_SIZE; i++) {
            bool across = lower[i] <= 0 && upper[i] >= 0;
            least = hypot(least, across ? 0 : fmin(fabs(lower[i]), fabs(upper[i])));
            most = hypot(most, fmax(fabs(lower[i]), fabs(upper[i])));
        }
        /* hypot's rounding is a few u, and steps differ by far more */
        r->lower[k] = least * (1 - 0x1p-48);
        r->upper[k] = most * (1 + 0x1p-48);
        r->falls &= k == 0 || r->upper[k] < r->lower[k - 1];
    }
    return ATN_OK;
}

/* Whether the closed form of |A X_k A - A|_2 never rises from k to k + 1 for 40 steps, from alpha
 * lambda_max^2 = x. It may stay equal, where it underflows or differs from 1 by less than f64
 * resolves. */
static bool filter_falls(double x)
{
    double alpha = x / (s13_eigenvalues[0] * s13_eigenvalues[0]), last = INFINITY;
    bool falls = true;
    for (int k = 0; k <= 40; k++) {
        double residual = ref_filter_residual(S13_SIZE, s13_eigenvalues, alpha, 0, k);
        falls &= residual <= last;
        last = residual;
    }
    return falls;
}

/* How many starts with 0 < alpha lambda_max^2 < 2 let it rise (inside), and how many above 2 do not
 * (outside). */
static void count_filters(int *inside, int *outside)
{
    enum { STARTS = 399 };
    *inside = *outside = 0;
    for (int i = 1; i <= STARTS; i++) {
        *inside += !filter_falls(2.0 * i / (STARTS + 1));
        *outside += filter_falls(2 + 2.0 * i / (STARTS + 1));
    }
}

static void tabulate_s13(verdict *v, const rounded_run *rounded, const exact_run *exact)
{
    fprintf(v->notes, "| k | ‖A X_k A e₁ − A e₁‖₂, exact | ‖A X_k A − A‖₂/‖A‖₂, f64 | "
                      "‖X_k − A†‖₂/‖A†‖₂, f64 |\n|---|---|---|---|\n");
    for (int i = 0; i < 2 * S13_SHOWN; i++) {
        int k = i < S13_SHOWN ? i : S13_SHOWN + 7 * (i - S13_SHOWN);
        if (k >= rounded->count)
            break;
        fprintf(v->notes, "| %d | ", k);
        if (exact->known && k <= S13_EXACT_STEPS)
            fprintf(v->notes, "%.4g", exact->lower[k]);
        fprintf(v->notes, " | %.2g | %.2g |\n", rounded->residuals[k], rounded->errors[k]);
    }
    double apart = sqrt(-log(s13_matrix[2])), near = sqrt(-log(s13_matrix[1]));
    fprintf(v->notes,
            "\nA = [1 ¾ ⅛; ¾ 1 ¾; ⅛ ¾ 1], of rank 2, from α = 2/‖A‖₁². Rounding puts a part along "
            "its null vector (1, −3/2, 1) into X_k, which A X_k A hardly sees and every step "
            "doubles. A is what App. B assumes (positive semidefinite, A_ii = 1, A_ij ≤ 1), but no "
            "kernel matrix of SOFT's: its distances would be in the ratio %.3f to %.3f + %.3f, "
            "%s the triangle inequality. SOFT's are singular only for equal landmarks, and what "
            "near ones do is this:\n\n",
            apart, near, near, apart > 2 * near ? "against" : "within");
}

/* The effects of rounding on the matrices of convergence/precision, in one precision (null: all).
 */
typedef struct {
    /* all matrices; those whose residual grows; at k <= k*; tenfold past k*; whose error grows */
    int64_t rows, residual, early, diverged, error;
    double level; /* the largest residual just before it first grows, over sqrt(u) */
} rise_summary;

/* The residual of iterate k of a row's matrix; NaN if the curves do not have it. */
static double curve_at(const table *curves, const table *t, int64_t row, int64_t k)
{
    for (int64_t i = 0; i < table_rows(curves); i++)
        if (cell_integer(curves, i, "iteration") == k &&
            cell_integer(curves, i, "m") == cell_integer(t, row, "m") &&
            cell_is(curves, i, "input", cell_text(t, row, "input")) &&
            cell_is(curves, i, "precision", cell_text(t, row, "precision")))
            return cell_real(curves, i, "residual");
    return NAN;
}

static rise_summary summarise_rises(const claim_run *run, const char *precision)
{
    const table *t = evidence_table(run, "precision", 0);
    const table *curves = evidence_table(run, "precision", 1);
    rise_summary s = {0};
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (precision && !cell_is(t, row, "precision", precision))
            continue;
        bool grows = !cell_missing(t, row, "residual_rise");
        s.rows++;
        s.residual += grows;
        s.early += grows &&
                   cell_integer(t, row, "residual_rise") <= cell_integer(t, row, "best_iteration");
        s.diverged += !cell_missing(t, row, "divergence");
        s.error += !cell_missing(t, row, "inverse_error_rise");
        /* the curves have the first sample and seed only */
        if (!grows || cell_integer(t, row, "sample") != 0 ||
            cell_integer(t, row, "seed") != (int64_t)run->seed)
            continue;
        double before = curve_at(curves, t, row, cell_integer(t, row, "residual_rise") - 1);
        s.level = direct_worst(s.level, before / sqrt(cell_real(t, row, "u")));
    }
    return s;
}

static const char *const precisions[] = {"f64", "f32", "tf32", "f16", "bf16"};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

static void tabulate_rises(const claim_run *run, verdict *v)
{
    fprintf(v->notes, "| precision | matrices | the residual grows | of these at k ≤ k* | tenfold "
                      "past k* | largest residual before it grew, over √u | ‖X_k − A†‖₂ grows |\n"
                      "|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < PRECISIONS; i++) {
        rise_summary s = summarise_rises(run, precisions[i]);
        fprintf(v->notes,
                "| %s | %" PRId64 " | %" PRId64 " | %" PRId64 " | %" PRId64 " | %.2g | %" PRId64
                " |\n",
                precisions[i], s.rows, s.residual, s.early, s.diverged, s.level, s.error);
    }
    fprintf(v->notes, "\nMatrices of eight inputs, from 1.8/‖A‖₁²; X_k* has the smallest residual; "
                      "growth by more than m·u of ‖A‖₂ or ‖A†‖₂ (which leaves out |λ| ≤ "
                      "m·u·‖A‖₂).\n");
}

static void certify_s13(verdict *v, const exact_run *exact, atn_status status)
{
    v->certified = exact->falls ? CERTIFIED_YES : CERTIFIED_NO;
    if (exact->falls)
        verdict_set(&v->certificate,
                    "the example in ‖·‖₁ is in whole numbers; rational arithmetic (%s): without "
                    "rounding ‖A X_k A e₁ − A e₁‖₂ of the singular A falls in each of the first %d "
                    "steps, to %.3g",
                    ref_certify_library(), S13_EXACT_STEPS, exact->upper[S13_EXACT_STEPS]);
    else
        verdict_set(&v->certificate, "%s",
                    status == ATN_ERR_UNSUPPORTED
                        ? "this build has no exact arithmetic (feature certify); the proof below "
                          "needs none"
                        : "exact arithmetic does not confirm it");
}

/* The verdict is about exact arithmetic, as the proposition is; the effects of rounding are
 * reported in addition. */
static void conclude_s13(verdict *v, const rounded_run *rounded, const line_summary *lines,
                         bool exact_falls, int inside, int outside, const rise_summary *rises)
{
    star_step star = step_star(18);
    int growing = count_growing_stars();
    v->kind = !exact_falls             ? VERDICT_FAILS
              : growing == STAR_STARTS ? VERDICT_HOLDS_IF
              : growing == 0           ? VERDICT_HOLDS
                                       : VERDICT_OBSERVED;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition,
                    "a small α gives ‖AA† − AA_0‖ < 1, which App. B takes for granted: it does in "
                    "‖·‖₂, § 4.4's metric, but not in ‖·‖₁, and Prop. 2 names no norm");
    verdict_set(
        &v->measured,
        "without rounding: %d of 399 starts with αλ_max² < 2 at which the residual grows, "
        "%d of 399 between 2 and 4 at which it does not; in ‖·‖₁ ‖X_k − A†‖ grows from all %d of "
        "%d ever smaller starts of the example. Rounded: the residual grows for %" PRId64
        " of %" PRId64 " matrices, from a level of at most %.2g·√u on, ‖X_k − A†‖₂ for %" PRId64
        "; for positive definite kernel matrices, λ_min = %.2g to %.2g, in %d steps to at most "
        "%.2g to %.3g times its floor, for a singular matrix that is no kernel matrix, without end",
        inside, outside, growing, STAR_STARTS, rises->residual, rises->rows, rises->level,
        rises->error, lines->least_lowest, lines->most_lowest, S13_STEPS, lines->least_jitter,
        lines->most_jitter);
    verdict_set(&v->bound, "max λ|1 − αλ²|^(2^k), which falls while |1 − αλ²| < 1");
    verdict_set(
        &v->counterexample,
        "in ‖·‖₁: one landmark coupled by ½ to four others, these by ¼ to each other, α = 1/18: "
        "‖X_k − A⁻¹‖₁ is %" PRId64 "/%" PRId64 " for k = 0 and %" PRId64 "/%" PRId64
        ", %s, for k = 1. Rounded, inside App. B's hypothesis but outside SOFT: A = [1 ¾ ⅛; ¾ 1 ¾; "
        "⅛ ¾ 1], α = 2/‖A‖₁² = 0.32, f64: ‖X_k − A†‖₂/‖A†‖₂ is %.2g for k = %d, and %.2g for k = "
        "%d; A† = (4/7)vvᵀ + (36/289)wwᵀ with v = (1, 0, −1), w = (1, 4/3, 1)",
        star.first, star.first_of, star.second, star.second_of, star.grows ? "more" : "less",
        rounded->errors[rounded->best], rounded->best, rounded->errors[rounded->count - 1],
        rounded->count - 1);
}

static int judge_s13(const claim_run *run, verdict *v)
{
    rounded_run rounded;
    exact_run exact;
    line_summary lines;
    double pinv[S13_SIZE * S13_SIZE];
    s13_pinv(pinv);
    int inside, outside, code = run_rounded(run, s13_matrix, pinv, &rounded);
    if (code != EXIT_PASS)
        return code;
    atn_status status = run_exact(&exact);
    count_filters(&inside, &outside);
    tabulate_s13(v, &rounded, &exact);
    code = tabulate_lines(run, v, &lines);
    if (code != EXIT_PASS)
        return code;
    tabulate_rises(run, v);
    certify_s13(v, &exact, status);
    rise_summary rises = summarise_rises(run, NULL);
    bool exact_falls = inside == 0 && (exact.falls || status == ATN_ERR_UNSUPPORTED);
    conclude_s13(v, &rounded, &lines, exact_falls, inside, outside, &rises);
    return EXIT_PASS;
}

/* ---- S14 ---- */

/* 2 x 2 matrices with the condition number kappa: measured and predicted results of 20 steps from
 * 1.8/|A|_1^2 (2/|A|_1^2 would be on the boundary, S11). */
static int tabulate_conditions(const claim_run *run, verdict *v)
{
    static const double kappas[] = {10, 100, 400, 1600, 1e4, 1e6};
    static const double identity[4] = {1, 0, 0, 1};
    fprintf(v->notes, "| κ(A), 2 × 2 | ‖A X A − A‖₂/‖A‖₂ | exactly | ‖I − A X‖₂ | exactly |\n"
                      "|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof kappas / sizeof *kappas; i++) {
        double coupling = (kappas[i] - 1) / (kappas[i] + 1), lambda[2];
        double a[4] = {1, coupling, coupling, 1};
        double residual[STEPS_OF_PAPER + 1], range[STEPS_OF_PAPER + 1];
        residual[STEPS_OF_PAPER] = range[STEPS_OF_PAPER] = NAN; /* there may be fewer iterates */
        atn_trace trace = {.capacity = STEPS_OF_PAPER + 1, .projector = identity};
        trace.values[ATN_METRIC_RESIDUAL] = residual;
        trace.values[ATN_METRIC_RANGE_RESIDUAL] = range;
        atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
        atn_inverse_info info;
        desc.numerator = 1.8;
        int code = direct_invert(run, &desc, 2, a, NULL, &info, &trace);
        if (code != EXIT_PASS)
            return code;
        lambda[0] = 1 + coupling;
        lambda[1] = 1 - coupling;
        double kept = 1 - info.alpha * lambda[1] * lambda[1];
        double first = 1 - info.alpha * lambda[0] * lambda[0];
        fprintf(
            v->notes, "| %g | %.2g | %.2g | %.2g | %.2g |\n", kappas[i], residual[STEPS_OF_PAPER],
            ref_filter_residual(2, lambda, info.alpha, 0, STEPS_OF_PAPER), range[STEPS_OF_PAPER],
            pow(fmax(fabs(kept), fabs(first)), ldexp(1, STEPS_OF_PAPER)));
    }
    fprintf(v->notes, "\n");
    return EXIT_PASS;
}

/* Curves of nr-paper at k = 20. A matrix counts as converged if a metric is at most 1e-3, which the
 * paper's own metric reaches wherever |A|_1 / lambda_max is at most 3.3, inverted or not (see the
 * proof). */
typedef struct {
    /* curves; those whose matrices have all converged in the papers' metric, and on the range */
    int64_t curves, reached, converged;
    int64_t matrices, on_range;
    int64_t worst_row;
    const table *worst;
    double residual, most_range, rounding;
    /* medians of the condition number: the largest of a curve on which all matrices converge on
     * the range, and the smallest of a curve on which none does */
    double converged_condition, open_condition;
} stage_summary;

static const double s14_level = 1e-3;

static void add_stage(stage_summary *s, const table *t, int64_t row)
{
    double residual = cell_real(t, row, "residual_max");
    double range = cell_real(t, row, "range_residual_max");
    double condition = cell_real(t, row, "condition_median");
    if (s->curves++ == 0 || !(residual <= s->residual)) {
        s->worst = t;
        s->worst_row = row;
    }
    s->residual = direct_worst(s->residual, residual);
    s->rounding = direct_worst(s->rounding, cell_real(t, row, "rounding_ratio_max"));
    s->reached += residual <= s14_level && !isnan(range);
    s->matrices += cell_integer(t, row, "samples");
    s->on_range += cell_integer(t, row, "samples_on_range");
    if (range <= s14_level) {
        s->converged++;
        s->converged_condition = direct_worst(s->converged_condition, condition);
        return;
    }
    if (cell_integer(t, row, "samples_on_range") == 0)
        s->open_condition = direct_least(s->open_condition, condition);
    s->most_range = direct_worst(s->most_range, range);
}

/* Whether a row is the last iterate of a variant in f64. */
static bool is_last(const table *t, int64_t row, const char *variant)
{
    return cell_is(t, row, "variant", variant) && cell_is(t, row, "dtype", "f64") &&
           cell_integer(t, row, "iteration") == STEPS_OF_PAPER;
}

static void tabulate_stages(const table *t, stage_summary *s, verdict *v)
{
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!is_last(t, row, "nr-paper"))
            continue;
        add_stage(s, t, row);
        fprintf(v->notes,
                "| %s | %s | %" PRId64 " | %.2g | %.2g | %.2g | %.2g | %" PRId64 " of %" PRId64
                " | %.2g | %.2g |\n",
                cell_text(t, row, "input"), cell_text(t, row, "sampling"),
                cell_integer(t, row, "stage"), cell_real(t, row, "condition_median"),
                cell_real(t, row, "residual_mean"), cell_real(t, row, "predicted_residual_mean"),
                cell_real(t, row, "range_residual_mean"), cell_integer(t, row, "samples_on_range"),
                cell_integer(t, row, "samples"), cell_real(t, row, "attention_error_mean"),
                cell_real(t, row, "attention_error_max"));
    }
}

static const char *const s14_evidence[] = {"curves", "curves-published", "curves-fields"};
enum { S14_EVIDENCE = sizeof s14_evidence / sizeof *s14_evidence };

static stage_summary tabulate_samplings(const claim_run *run, verdict *v)
{
    stage_summary s = {.open_condition = INFINITY};
    fprintf(v->notes, "| tokens | sampling | stage | κ(A), median | ‖A X A − A‖₂/‖A‖₂, mean | "
                      "exactly | ‖Π − A X‖₂, mean | at most 10⁻³ | ‖Pᵀ(X − A†)P‖₂/‖PᵀA†P‖₂, mean "
                      "| largest |\n|---|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < S14_EVIDENCE; i++)
        tabulate_stages(evidence_table(run, s14_evidence[i], 0), &s, v);
    return s;
}

/* Photographs with one sampling and variant, all stages. */
typedef struct {
    int64_t matrices, converged;
    double least_error, most_error; /* means of |P^T (X - A+) P| / |P^T A+ P| */
} photograph_summary;

static photograph_summary summarise_photographs(const claim_run *run, const char *sampling,
                                                const char *variant)
{
    photograph_summary s = {.least_error = INFINITY};
    for (int i = 0; i < S14_EVIDENCE; i++) {
        const table *t = evidence_table(run, s14_evidence[i], 0);
        for (int64_t row = 0; row < table_rows(t); row++) {
            if (!is_last(t, row, variant) || !cell_is(t, row, "input", "photos") ||
                !cell_is(t, row, "sampling", sampling))
                continue;
            double error = cell_real(t, row, "attention_error_mean");
            s.matrices += cell_integer(t, row, "samples");
            s.converged += cell_integer(t, row, "samples_on_range");
            s.least_error = direct_least(s.least_error, error);
            s.most_error = direct_worst(s.most_error, error);
        }
    }
    return s;
}

/* A line for each sampling and start. Returns the text " pool 0 of 30 (error of Ŝ 0.004 to 0.01),
 * ..." about nr-paper, to be freed. */
static char *tabulate_photographs(const claim_run *run, verdict *v)
{
    static const char *const variants[] = {"nr-paper", "nr-soft"};
    char *list = must_format("%s", "");
    fprintf(v->notes, "\n| photographs, all stages | start | ‖Π − A X‖₂ ≤ 10⁻³ | "
                      "‖Pᵀ(X − A†)P‖₂/‖PᵀA†P‖₂, means |\n|---|---|---|---|\n");
    for (int i = 0; i < SAMPLING_COUNT; i++)
        for (int j = 0; j < 2; j++) {
            const char *name = sampling_name((sampling_kind)i);
            photograph_summary s = summarise_photographs(run, name, variants[j]);
            if (s.matrices == 0)
                continue;
            fprintf(v->notes, "| %s | %s | %" PRId64 " of %" PRId64 " | %.2g to %.2g |\n", name,
                    variants[j], s.converged, s.matrices, s.least_error, s.most_error);
            if (j > 0)
                continue;
            char *shorter = list;
            list = must_format("%s%s %s %" PRId64 " of %" PRId64 " (Ŝ off by %.2g to %.2g)",
                               shorter, *shorter ? "," : "", name, s.converged, s.matrices,
                               s.least_error, s.most_error);
            free(shorter);
        }
    return list;
}

static void conclude_s14(const stage_summary *s, const char *photographs, verdict *v)
{
    bool reached = s->curves > 0 && s->reached == s->curves;
    v->kind = !reached                   ? VERDICT_FAILS
              : s->converged < s->curves ? VERDICT_HOLDS_IF
                                         : VERDICT_HOLDS;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(
            &v->condition,
            "converged means ‖A X A − A‖₂/‖A‖₂ ≤ 3.0·10⁻⁴·‖A‖₁/λ_max, where 20 steps take every A with 2 − αλ_max² ≥ 8·10⁻⁶; on all of A's range it needs κ(A)·‖A‖₁/λ_max below about 550 for a residual of 10⁻³");
    verdict_set(
        &v->measured,
        "%" PRId64 " of %" PRId64 " stages, inputs and samplings end below %g in the "
        "paper's metric (largest %.2g); on A's range %" PRId64 " of %" PRId64
        " matrices do: all of %" PRId64 " stages, with median κ(A) up to %.2g, some or none of the "
        "others (none from κ(A) = %.2g on in some), with residuals up to %.2g. Photographs converged on "
        "the whole range:%s. Differs from the closed form by at most %.2g times the bound for rounding",
        s->reached, s->curves, s14_level, s->residual, s->on_range, s->matrices, s->converged,
        s->converged_condition, s->open_condition, s->most_range, photographs, s->rounding);
    verdict_set(
        &v->bound,
        "paper's metric: 0.3033·2^(−T/2)·‖A‖₁/λ_max for every A; on the range: below ε if and only "
        "if (1 − αλ²)^(2^T) ≤ ε for every λ ≠ 0, about κ(A)·‖A‖₁/λ_max ≤ √(2^(T+1)/ln(1/ε))");
    if (s->curves > 0)
        verdict_set(&v->counterexample,
                    "%s, %s, stage %" PRId64 ": residual up to %.2g, ‖Π − A X‖₂ up to %.2g, Ŝ off "
                    "by up to %.2g",
                    cell_text(s->worst, s->worst_row, "input"),
                    cell_text(s->worst, s->worst_row, "sampling"),
                    cell_integer(s->worst, s->worst_row, "stage"),
                    cell_real(s->worst, s->worst_row, "residual_max"),
                    cell_real(s->worst, s->worst_row, "range_residual_max"),
                    cell_real(s->worst, s->worst_row, "attention_error_max"));
    else
        verdict_set(&v->counterexample, "no curve was measured");
}

static int judge_s14(const claim_run *run, verdict *v)
{
    int code = tabulate_conditions(run, v);
    stage_summary s = tabulate_samplings(run, v);
    char *photographs = tabulate_photographs(run, v);
    fprintf(v->notes,
            "\nX after 20 steps from 2/‖A‖₁² (2 × 2: 1.8/‖A‖₁²; nr-soft: of A + 0.01·I, from "
            "0.9·2/‖A‖₁², whose residual on the range of A is at least 0.01/(λ + 0.01)), f64; "
            "\"exactly\" is the closed form without rounding. Π projects on the range of A, "
            "P = K(L, Q). `published` landmarks are GELU(LayerNorm(convolution)) of the tokens "
            "with the published scales and random weights, `published-centred` the same of tokens "
            "less their mean. Modes that have not converged may hardly enter Ŝ or be a good part "
            "of it: the last columns say which.\n");
    conclude_s14(&s, photographs, v);
    miniature_matrices(run, v);
    free(photographs);
    return code;
}

/* ---- S15 ---- */

/* Two landmarks 2^-power apart (0: they coincide), d = 1, s = 1/2. */
typedef struct {
    double distance, lambda_min; /* as computed, 1 - A_12 */
    ref_enclosure exact;
    atn_status status;
} landmark_pair;

enum { PAIR_APART, PAIR_CLOSE, PAIR_EQUAL, LANDMARK_PAIRS };
static const double s15_distances[LANDMARK_PAIRS] = {1, 0x1p-30, 0};

static int measure_pair(const claim_run *run, double distance, landmark_pair *pair)
{
    double tokens[2] = {0, distance}, a[4];
    atn_tensor from = atn_tensor_dense(tokens, ATN_F64, 1, 1, 2, 1);
    atn_tensor to = atn_tensor_dense(a, ATN_F64, 1, 1, 2, 2);
    ref_certified_spectrum spectrum = {.lambda_min = {NAN, NAN, 0, false}};
    atn_status status = atn_gaussian_self(run->context, ATN_DISTANCE_DIRECT, 0.5, &from, &to);
    if (status != ATN_OK) {
        report_error("kernel: %s", atn_last_error(run->context));
        return EXIT_ENVIRONMENT;
    }
    const ref_exact_matrix exact = {.m = 2, .d = 1, .tokens = tokens, .scale = 0.5};
    *pair = (landmark_pair){.distance = distance, .lambda_min = 1 - a[1]};
    pair->status = ref_certify_spectrum(&exact, 1024, &spectrum);
    pair->exact = spectrum.lambda_min;
    return EXIT_PASS;
}

static int tabulate_landmark_pairs(const claim_run *run, verdict *v,
                                   landmark_pair pairs[LANDMARK_PAIRS])
{
    fprintf(v->notes, "| two landmarks, distance | λ_min of A in f64 | λ_min of the exact A, "
                      "certified |\n|---|---|---|\n");
    for (int i = 0; i < LANDMARK_PAIRS; i++) {
        int code = measure_pair(run, s15_distances[i], &pairs[i]);
        if (code != EXIT_PASS)
            return code;
        fprintf(v->notes, "| %.3g | %.4g | ", pairs[i].distance, pairs[i].lambda_min);
        if (pairs[i].exact.certified)
            fprintf(v->notes, "%.4g |\n", pairs[i].exact.lower);
        else
            fprintf(v->notes, "no certificate |\n");
    }
    fprintf(v->notes, "\nd = 1, s = 1/2. All tokens of a constant patch are equal: there A = "
                      "[1 1; 1 1], of rank 1.\n\n");
    return EXIT_PASS;
}

/* Matrices of convergence/precision without landmarks that coincide. */
typedef struct {
    int64_t rows, deficient, photographs, photographs_deficient, indefinite;
    double condition; /* the largest */
} rank_summary;

static rank_summary summarise_ranks(const table *t, const char *precision)
{
    rank_summary s = {0};
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!cell_is(t, row, "precision", precision) || cell_boolean(t, row, "coincident"))
            continue;
        bool deficient = !(cell_integer(t, row, "rank") == cell_integer(t, row, "m"));
        bool photograph = cell_is(t, row, "input", "photos");
        s.rows++;
        s.deficient += deficient;
        s.photographs += photograph;
        s.photographs_deficient += photograph && deficient;
        s.indefinite += cell_integer(t, row, "negative") > 0;
        s.condition = direct_worst(s.condition, cell_real(t, row, "condition"));
    }
    return s;
}

/* Returns "f64 0 of 7, f32 1 of 7", to be freed. */
static char *tabulate_ranks(const table *t, verdict *v)
{
    char *list = must_format("%s", "");
    fprintf(v->notes, "| precision | matrices | of rank < m | photographs | of rank < m | with "
                      "negative eigenvalues | largest κ(A) |\n|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < PRECISIONS; i++) {
        rank_summary s = summarise_ranks(t, precisions[i]);
        char *shorter = list;
        fprintf(v->notes,
                "| %s | %" PRId64 " | %" PRId64 " | %" PRId64 " | %" PRId64 " | %" PRId64
                " | %.2g |\n",
                precisions[i], s.rows, s.deficient, s.photographs, s.photographs_deficient,
                s.indefinite, s.condition);
        list = must_format("%s%s %s %" PRId64 " of %" PRId64, shorter, i ? "," : "", precisions[i],
                           s.deficient, s.rows);
        free(shorter);
    }
    fprintf(v->notes, "\nPooled landmarks, m = 49, no two equal; rank: |λ| > m·u·‖A‖₂ of A rounded "
                      "to the precision. The published SOFT code inverts A + 0.01·I.\n\n");
    return list;
}

/* Landmarks that are tokens of photographs: how often two of them coincide. */
typedef struct {
    int64_t rows, coincident, example; /* row with the fewest different ones, or -1 */
} coincidence;

static coincidence count_coincidences(const table *t)
{
    coincidence c = {.example = -1};
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!cell_is(t, row, "sampler", "random"))
            continue;
        int64_t kept = cell_integer(t, row, "pivots");
        c.rows++;
        if (kept >= cell_integer(t, row, "m"))
            continue;
        c.coincident++;
        if (c.example < 0 || kept < cell_integer(t, c.example, "pivots"))
            c.example = row;
    }
    return c;
}

static void certify_s15(verdict *v, const landmark_pair pairs[LANDMARK_PAIRS])
{
    bool proved = pairs[PAIR_CLOSE].exact.certified && pairs[PAIR_CLOSE].exact.lower > 0 &&
                  pairs[PAIR_EQUAL].status == ATN_SINGULAR;
    v->certified = proved ? CERTIFIED_YES : CERTIFIED_NO;
    if (proved)
        verdict_set(&v->certificate,
                    "ball arithmetic (%s): at distance %.3g, %.6g ≤ λ_min ≤ %.6g; 0 where both "
                    "coincide",
                    ref_certify_library(), pairs[PAIR_CLOSE].distance,
                    pairs[PAIR_CLOSE].exact.lower, pairs[PAIR_CLOSE].exact.upper);
    else
        verdict_set(&v->certificate, "%s",
                    pairs[PAIR_CLOSE].status == ATN_ERR_UNSUPPORTED
                        ? "this build certifies nothing; the proof below does not need it"
                        : "ball arithmetic does not confirm it");
}

/* Photographs of spectral/norm-growth with one sampling: for how many A a precision cannot tell the
 * least eigenvalue from 0, lambda_min <= m u lambda_max. */
typedef struct {
    int64_t matrices, lost[PRECISIONS];
    double least_condition, most_condition;
} floor_summary;

static floor_summary summarise_floors(const claim_run *run, const char *sampling)
{
    static const double roundoff[PRECISIONS] = {0x1p-53, 0x1p-24, 0x1p-11, 0x1p-11, 0x1p-8};
    static const char *const from[] = {"norm-growth", "norm-growth-published"};
    floor_summary s = {.least_condition = INFINITY};
    for (int i = 0; i < 2; i++) {
        const table *t = evidence_table(run, from[i], 0);
        for (int64_t row = 0; row < table_rows(t); row++) {
            if (!cell_is(t, row, "input", "photos") || !cell_is(t, row, "sampling", sampling))
                continue;
            double least = cell_real(t, row, "lambda_min"), most = cell_real(t, row, "lambda_max");
            double floor = (double)cell_integer(t, row, "m") * most;
            s.matrices++;
            for (int j = 0; j < PRECISIONS; j++)
                s.lost[j] += !(least > floor * roundoff[j]);
            s.least_condition =
                direct_least(s.least_condition, most * cell_real(t, row, "pinv_norm"));
            s.most_condition =
                direct_worst(s.most_condition, most * cell_real(t, row, "pinv_norm"));
        }
    }
    return s;
}

/* Returns " pool 2 of 20 in f64 and 12 in f32, ...", to be freed. */
static char *tabulate_floors(const claim_run *run, verdict *v)
{
    char *list = must_format("%s", "");
    fprintf(v->notes, "| photographs, landmarks | matrices | κ(A) |");
    for (int i = 0; i < PRECISIONS; i++)
        fprintf(v->notes, " λ_min ≤ m·u·λ_max in %s |", precisions[i]);
    fprintf(v->notes, "\n|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < SAMPLING_COUNT; i++) {
        const char *name = sampling_name((sampling_kind)i);
        floor_summary s = summarise_floors(run, name);
        if (s.matrices == 0)
            continue;
        fprintf(v->notes, "| %s | %" PRId64 " | %.2g to %.2g |", name, s.matrices,
                s.least_condition, s.most_condition);
        for (int j = 0; j < PRECISIONS; j++)
            fprintf(v->notes, " %" PRId64 " |", s.lost[j]);
        fprintf(v->notes, "\n");
        char *shorter = list;
        list = must_format("%s%s %s %" PRId64 " in f64 and %" PRId64 " in f32 of %" PRId64, shorter,
                           *shorter ? "," : "", name, s.lost[0], s.lost[1], s.matrices);
        free(shorter);
    }
    fprintf(v->notes, "\nm = 4 to 256 pooled, 16 to 144 by the published operator with random "
                      "weights, of tokens as they are and centred; A in f64, not rounded.\n\n");
    return list;
}

static int judge_s15(const claim_run *run, verdict *v)
{
    landmark_pair pairs[LANDMARK_PAIRS];
    int code = tabulate_landmark_pairs(run, v, pairs);
    if (code != EXIT_PASS)
        return code;
    char *ranks = tabulate_ranks(evidence_table(run, "precision", 0), v);
    char *floors = tabulate_floors(run, v);
    const table *photographs = evidence_table(run, "sampling-photos", 0);
    coincidence c = count_coincidences(photographs);
    certify_s15(v, pairs);
    bool confirmed =
        v->certified == CERTIFIED_YES || pairs[PAIR_CLOSE].status == ATN_ERR_UNSUPPORTED;
    bool apart = confirmed && pairs[PAIR_APART].lambda_min > 0;
    v->kind = apart ? VERDICT_OBSERVED : VERDICT_FAILS;
    verdict_set(&v->measured,
                "of rank < m though no two pooled landmarks coincide, rounded to:%s. Photographs "
                "with a least eigenvalue below m·u·λ_max:%s. Random tokens of photographs as "
                "landmarks: two coincide in %" PRId64 " of %" PRId64 " draws",
                ranks, floors, c.coincident, c.rows);
    free(floors);
    free(ranks);
    miniature_matrices(run, v);
    if (c.example >= 0)
        fprintf(v->notes,
                "Of %" PRId64 " draws of %" PRId64 " of %" PRId64 " tokens of photographs, %" PRId64
                " hold tokens that are equal, from flat patches; in one only %" PRId64
                " are different. A network's position embeddings, or a convolution, would tell "
                "such patches apart.\n",
                c.rows, cell_integer(photographs, c.example, "m"),
                cell_integer(photographs, c.example, "n"), c.coincident,
                cell_integer(photographs, c.example, "pivots"));
    verdict_set(&v->bound, "λ_min > 0; in floating point λ_min > m·u·λ_max");
    verdict_set(
        &v->counterexample,
        "two equal tokens as landmarks: A = [1 1; 1 1], λ_min = %.3g. Two at distance 2⁻³⁰: "
        "λ_min = 1 − exp(−2⁻⁶¹) > 0, but in f64 A is the same, λ_min = %.3g",
        pairs[PAIR_EQUAL].lambda_min, pairs[PAIR_CLOSE].lambda_min);
    return EXIT_PASS;
}

/* ---- The table ---- */

const claim soft_convergence_claims[] = {
    {
        .id = "S13",
        .source = "IJCV Prop. 2, App. B",
        .statement = "‖A A_k A − A‖ and ‖A_k − A†‖ decreases to 0 monotonously, if α is "
                     "sufficiently small.",
        .method =
            "The closed form for 798 starts on both sides of the limit. In ‖·‖₁ one step from "
            "eight starts, in whole numbers. Rounded: 8 steps over the rationals and 90 in f64 on "
            "a singular 3 × 3 matrix that App. B allows, 90 in f64 on positive definite kernel "
            "matrices of three landmarks on a line; matrices of inputs in five precisions.",
        .corrected =
            "For 0 < α < 2/λ_max² both fall in every step, in ‖·‖₂ and ‖·‖_F, until they are "
            "0. In ‖·‖₁ they need not, however small α is: for A = [1 ½ ½ ½ ½; ½ 1 ¼ ¼ ¼; ½ ¼ 1 ¼ "
            "¼; ½ ¼ ¼ 1 ¼; ½ ¼ ¼ ¼ 1], a kernel matrix, the first step makes ‖X_k − A⁻¹‖₁ larger "
            "from every α < 8/71, and from α = 1/18 the third step makes ‖A X_k A − A‖₁ larger "
            "(0.82112, 0.83814). Where ‖AA† − AA_0‖ < 1 both fall in every norm with ‖XY‖ ≤ "
            "‖X‖‖Y‖. Observed, rounded: both may grow once the residual is about √u; "
            "‖X_k − A†‖ without end only where A is singular to rounding.",
        .proof =
            "In the eigenbasis of A the norms are max λ|e_k| and max |e_k|/λ over λ ≠ 0, or roots "
            "of sums of their squares, with |e_k| = |1 − αλ²|^(2^k), e_{k+1} = e_k² and |e_0| < 1. "
            "In ‖·‖₁: A has the entries exp(−|x_i − x_j|²) for x_1 = 0 and four vectors of squared "
            "length ln 2 on the axes. A⁻¹ = [7 −2 −2 −2 −2; −2 4 0 0 0; ...]/3, A³ has the first "
            "column (152, 109, 109, 109, 109)/32, so for α ≤ 1/8 the first columns of X_0 − A⁻¹ "
            "and X_1 − A⁻¹ sum to 5 + α and 5 + 2α − (71/8)α² in absolute value; the other "
            "columns of X_0 − A⁻¹ to 2 + α/4. In any such norm: E_{k+1} = E_k² for E_k = AA† − "
            "AA_k, A − AA_{k+1}A = E_k(A − AA_kA) and A† − A_{k+1} = (A† − A_k)E_k, and ‖E_k‖ ≤ "
            "‖E_0‖ < 1. (App. B means ‖AA† − AA_0‖ < 1 by small: in ‖·‖₁ no "
            "α is, as the first column of I − αA² sums to 1 + (7/2)α.)",
        .evidence = {"precision"},
        .judge = judge_s13,
    },
    {
        .id = "S14",
        .source = "IJCV § 4.4, Fig. 5; NeurIPS § 4.4 (there Fig. 4)",
        .statement =
            "We use ‖AA_kA − A‖_p/‖A‖_p with p = 2 (see Proposition 2) as the convergence metric to quantify the difference between A_k and A†. "
            "Figure 5 shows that our approximation converges within 20 iterations across "
            "all stages.",
        .method = "20 steps of Algorithm 2 in f64, m = 49, on photographs and synthetic tokens at "
                  "the three stages, with landmarks by pooling and by the published operator "
                  "(random weights; tokens as they are and centred): in the paper's metric, on all "
                  "of A's range, and in Ŝ = PᵀXP; 2 × 2 matrices of given condition beside the "
                  "closed form. These are not trained features; in miniature, the matrices of "
                  "a small network after training. A fourth stage has softmax attention in the "
                  "published code.",
        .corrected =
            "After T steps the paper's metric is at most 0.3033·2^(−T/2)·‖A‖₁/λ_max for "
            "every A with 2 − αλ_max² ≥ (0.35T + 1.2)/2^T (S11): it cannot tell whether A was "
            "inverted. ‖Π − A X_T‖₂ = max |1 − αλ²|^(2^T) over λ ≠ 0 can.",
        .proof = "On an eigenvalue λ the paper's metric is λ(1 − αλ²)^N/λ_max, N = 2^T. Where αλ² "
                 "≤ 1 that is at most λ·exp(−Nαλ²)/λ_max, largest at λ² = 1/(2Nα), where it is "
                 "1/(λ_max·√(2eNα)); α = 2/‖A‖₁² gives the bound. Where αλ² > 1 it is (αλ² − 1)^N, "
                 "below the bound unless 2 − αλ² < (0.35T + 1.2)/2^T, 8·10⁻⁶ for T = 20.",
        .evidence = {"curves", "curves-published", "curves-fields", MINIATURE_MATRICES},
        .judge = judge_s14,
    },
    {
        .id = "S15",
        .source = "IJCV § 3.2",
        .statement = "In training stage, we find that bottleneck matrix A is always non-singular "
                     "in practice and its inverse A⁻¹ thus exists.",
        .method = "Two landmarks apart, 2⁻³⁰ apart and equal; the numerical rank of matrices of "
                  "inputs rounded to five precisions; the least eigenvalue with pooled landmarks "
                  "and with those of the published operator (random weights); how often random "
                  "tokens of photographs are equal. Of trained features, those of a small "
                  "network, in miniature.",
        .corrected = "A is non-singular if and only if no two landmarks coincide. In floating "
                     "point it need not be, nor positive definite.",
        .proof = "The Gaussian kernel matrix of different points is positive definite (Bochner: "
                 "its Fourier transform is positive). Equal landmarks give equal rows. Rounding A "
                 "moves its eigenvalues by up to m·u, so those below may become 0 or negative.",
        .evidence = {"precision", "sampling-photos", "norm-growth", "norm-growth-published",
                     MINIATURE_MATRICES},
        .judge = judge_s15,
    },
    {0},
};
