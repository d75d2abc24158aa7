/* SPDX-License-Identifier: BSD-3-Clause */
/* S10 - S12: the starts of the Newton-Raphson iteration for the inverse of the bottleneck matrix.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <certified.h>
#include <linear_algebra.h>

#include "claims/claims.h"
#include "claims/direct.h"
#include "common/report.h"

/* |A X A - A|_F / |A|_F; infinite if an iterate overflowed, not that of the last finite one. */
static double residual_of(const atn_inverse_info *info)
{
    return info->stop == ATN_STOP_NONFINITE ? INFINITY : info->residual;
}

/* ---- S10 ---- */

/* A = [1 a; a 1] has the eigenvalues 1 + a and 1 - a. */
static const double pair_coupling = 0.5;

/* The residual after `iterations` steps from alpha A. Returns an exit code. */
static int pair_residual(const claim_run *run, double alpha, int iterations, double *residual)
{
    const double a[4] = {1, pair_coupling, pair_coupling, 1};
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR);
    atn_inverse_info info = {0};
    desc.alpha = alpha;
    desc.iterations = iterations;
    int code = direct_invert(run, &desc, 2, a, NULL, &info, NULL);
    *residual = residual_of(&info);
    return code;
}

/* log10 of the closed form |sum of e_i^2 l_i^2|^(1/2) / |A|_F, e_i = (1 - alpha l_i^2)^(2^k), which
 * is beyond the range of every type. */
static double pair_predicted(double alpha, int iterations)
{
    long double largest = -INFINITY, parts[2], sum = 0, norm = 0;
    for (int i = 0; i < 2; i++) {
        long double lambda = 1 + (2 * i - 1) * pair_coupling;
        long double error = log10l(fabsl(1 - alpha * lambda * lambda));
        parts[i] = ldexpl(error, iterations) + log10l(lambda);
        largest = fmaxl(largest, parts[i]);
        norm += lambda * lambda;
    }
    for (int i = 0; i < 2; i++)
        sum += powl(10, 2 * (parts[i] - largest));
    return (double)(largest + log10l(sum / norm) / 2);
}

/* Prop. 1 requires a small enough alpha, and the judge determines the bound, in terms of x = alpha
 * lambda_max^2. */
static int judge_s10(const claim_run *run, verdict *v)
{
    static const double starts[] = {0.01, 0.5, 1, 1.5, 1.9, 1.99, 2, 2.01, 2.1, 3};
    enum { STARTS = sizeof starts / sizeof *starts, STEPS = 16 };
    double most_inside = 0, least_outside = INFINITY, square = pow(1 + pair_coupling, 2);
    fprintf(v->notes, "| αλ_max² | residual after %d steps | exact arithmetic |\n|---|---|---|\n",
            STEPS);
    for (int i = 0; i < STARTS; i++) {
        double residual;
        int code = pair_residual(run, starts[i] / square, STEPS, &residual);
        if (code != EXIT_PASS)
            return code;
        double predicted = pair_predicted(starts[i] / square, STEPS), power = floor(predicted);
        fprintf(v->notes, "| %g | %.3g | %.6ge%+.0f |\n", starts[i], residual,
                pow(10, predicted - power), power);
        if (starts[i] < 2)
            most_inside = direct_worst(most_inside, residual);
        else
            least_outside = direct_least(least_outside, residual);
    }
    bool converges_inside = most_inside <= 1e-12, fails_outside = least_outside > 0.1;
    v->kind = converges_inside ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "largest residual after %d steps for αλ_max² < 2: %.2g; smallest for αλ_max² ≥ 2: "
                "%.2g",
                STEPS, most_inside, least_outside);
    verdict_set(&v->bound, "|1 − αλ²|^(2^k) for every eigenvalue λ ≠ 0");
    verdict_set(&v->counterexample,
                "where α is not small enough: A = [1 %g; %g 1], αλ_max² = 2: residual %.2g after "
                "%d steps",
                pair_coupling, pair_coupling, least_outside, STEPS);
    if (fails_outside)
        return EXIT_PASS;
    report_error("S10: steps from a start of 2/lambda_max^2 or more leave a residual of %.2g, less "
                 "than is proved",
                 least_outside);
    return EXIT_CHECK;
}

/* ---- S11 ---- */

/* Kernel matrices in closed form. Entries ½ belong to tokens whose squared distance is ln(2)/s, ¼
 * to twice that, 1/16 to four times. The last two occur with ordinary inputs. */
static const struct {
    const char *name;
    int64_t m;
    double a[DIRECT_SMALL * DIRECT_SMALL];
} s11_matrices[] = {
    {"[1]", 1, {1}},
    {"[1 ½; ½ 1]", 2, {1, 0.5, 0.5, 1}},
    {"square: rows of 1, ½, ¼, ½",
     4,
     {1, 0.5, 0.25, 0.5, 0.5, 1, 0.5, 0.25, 0.25, 0.5, 1, 0.5, 0.5, 0.25, 0.5, 1}},
    {"line of 3: [1 ½ 1/16; ½ 1 ½; 1/16 ½ 1]", 3, {1, 0.5, 0.0625, 0.5, 1, 0.5, 0.0625, 0.5, 1}},
    {"right angle: [1 ½ ¼; ½ 1 ½; ¼ ½ 1]", 3, {1, 0.5, 0.25, 0.5, 1, 0.5, 0.25, 0.5, 1}},
    {"blank image: 3 equal landmarks", 3, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {"landmarks far apart: 2⁻⁶⁰, 2⁻⁶¹, 2⁻⁶² off the diagonal",
     3,
     {1, 0x1p-60, 0x1p-61, 0x1p-60, 1, 0x1p-62, 0x1p-61, 0x1p-62, 1}},
};
enum {
    S11_MATRICES = sizeof s11_matrices / sizeof *s11_matrices,
    S11_EXAMPLE = 1,
    S11_ORDINARY = S11_MATRICES - 2, /* index of the first of those two */
};

/* Sums of entries such as these are exact. */
static bool has_equal_row_sums(int64_t m, const double *a)
{
    double first = 0;
    for (int64_t i = 0; i < m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < m; j++)
            sum += a[i * m + j];
        if (i > 0 && sum != first)
            return false;
        first = sum;
    }
    return true;
}

/* lambda_max over |A|_1, for entries that are not negative. */
static int largest_share(int64_t m, const double *a, double *share)
{
    double norm = 0, lambda[DIRECT_SMALL];
    for (int64_t i = 0; i < m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < m; j++)
            sum += a[i * m + j];
        norm = direct_worst(norm, sum);
    }
    atn_status status = ref_eigenvalues(m, a, lambda, NULL, NULL);
    *share = lambda[0] / norm;
    if (status >= 0)
        return EXIT_PASS;
    report_error("S11: %s", atn_status_message(status));
    return EXIT_ENVIRONMENT;
}

/* The residual after 20 steps of nr-paper, from its own start or from numerator/|A|_1^2. */
static int start_residual(const claim_run *run, int64_t m, const double *a, double numerator,
                          double *residual)
{
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    atn_inverse_info info = {0};
    if (numerator > 0)
        desc.numerator = numerator;
    int code = direct_invert(run, &desc, m, a, NULL, &info, NULL);
    *residual = residual_of(&info);
    return code;
}

/* Rows of convergence/initialisation with a rule, in f64, for matrices on the boundary or off it.
 */
typedef struct {
    int64_t rows;
    double least, most; /* residual after 20 steps */
} start_summary;

/* Whether the margin 1 - alpha l_max^2 is -1 up to rounding: alpha and l_max both have relative
 * errors of m u, which squaring l_max and |A|_1 doubles. */
static bool on_boundary(const table *t, int64_t row)
{
    double m = (double)cell_integer(t, row, "m");
    return fabs(cell_real(t, row, "margin") + 1) <= 4 * m * atn_dtype_roundoff(ATN_F64);
}

/* Summarises the rows of a rule for matrices on which the paper's start is on the boundary, or is
 * not; the paper's row of a matrix comes before the others. */
static start_summary summarise_starts(const table *t, const char *rule, bool boundary)
{
    start_summary s = {0, INFINITY, 0};
    bool paper_on_boundary = false;
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!cell_is(t, row, "dtype", "f64"))
            continue;
        if (cell_is(t, row, "rule", "paper"))
            paper_on_boundary = on_boundary(t, row);
        if (!cell_is(t, row, "rule", rule) || paper_on_boundary != boundary)
            continue;
        double residual = cell_real(t, row, "residual_t20");
        s.rows++;
        s.least = direct_least(s.least, residual);
        s.most = direct_worst(s.most, residual);
    }
    return s;
}

/* Proves X_1 1 = 0 in rational arithmetic: then all later iterates are 0 along 1, too, and rounding
 * cannot be the cause. */
static bool certify_s11(verdict *v, int64_t m, const double *a)
{
    static const double ones[DIRECT_SMALL] = {1, 1, 1, 1};
    ref_exact_newton exact;
    atn_status status =
        ref_exact_newton_steps(m, a, (ref_rational_start){2, 1, true}, 1, ones, &exact, NULL, NULL);
    bool proved = status == ATN_OK && exact.iterate_is_zero && exact.residual_is_full;
    v->certified = proved ? CERTIFIED_YES : CERTIFIED_NO;
    if (proved)
        verdict_set(&v->certificate,
                    "rational arithmetic (%s): X_1·1 = 0, so X_k·1 = 0 for every k ≥ 1, and the "
                    "residual along 1 is all of A·1",
                    ref_certify_library());
    else
        verdict_set(&v->certificate, "%s",
                    status == ATN_ERR_UNSUPPORTED
                        ? "this build has no exact arithmetic (feature certify); the proof below "
                          "needs none"
                        : "exact arithmetic does not confirm it");
    return proved || status == ATN_ERR_UNSUPPORTED;
}

static int tabulate_s11(const claim_run *run, verdict *v, double paper[S11_MATRICES],
                        double *repaired)
{
    *repaired = 0;
    fprintf(v->notes, "| A | equal row sums | λ_max/‖A‖₁ | residual after 20 steps, 2/‖A‖₁² | "
                      "1.8/‖A‖₁² |\n|---|---|---|---|---|\n");
    for (int i = 0; i < S11_MATRICES; i++) {
        double safe, share;
        int code = largest_share(s11_matrices[i].m, s11_matrices[i].a, &share);
        if (code == EXIT_PASS)
            code = start_residual(run, s11_matrices[i].m, s11_matrices[i].a, 0, &paper[i]);
        if (code == EXIT_PASS)
            code = start_residual(run, s11_matrices[i].m, s11_matrices[i].a, 1.8, &safe);
        if (code != EXIT_PASS)
            return code;
        fprintf(v->notes, "| %s | %s | %.4f | %.2g | %.2g |\n", s11_matrices[i].name,
                has_equal_row_sums(s11_matrices[i].m, s11_matrices[i].a) ? "yes" : "no", share,
                paper[i], safe);
        *repaired = direct_worst(*repaired, safe);
    }
    fprintf(v->notes, "\nf64, ‖A X A − A‖_F/‖A‖_F; with X = 0 it is 1. In f64 the row sums of the "
                      "last matrix are all 1, in exact arithmetic they are not.\n\n");
    return EXIT_PASS;
}

static int judge_s11(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "initialisation", 0);
    start_summary boundary = summarise_starts(t, "paper", true);
    start_summary interior = summarise_starts(t, "paper", false);
    start_summary safe = summarise_starts(t, "safe", true);
    double paper[S11_MATRICES], repaired;
    int code = tabulate_s11(run, v, paper, &repaired);
    if (code != EXIT_PASS)
        return code;
    fprintf(v->notes,
            "| larger matrices, f64 | number | residual after 20 steps |\n|---|---|---|\n"
            "| 2/‖A‖₁², αλ_max² = 2 but for rounding | %" PRId64 " | %.3g to %.3g |\n"
            "| 1.8/‖A‖₁², the same matrices | %" PRId64 " | %.2g to %.2g |\n"
            "| 2/‖A‖₁², αλ_max² < 2 | %" PRId64 " | %.2g to %.2g |\n",
            boundary.rows, boundary.least, boundary.most, safe.rows, safe.least, safe.most,
            interior.rows, interior.least, interior.most);
    bool fails = !(paper[S11_EXAMPLE] <= 0.5),
         confirmed = certify_s11(v, 2, s11_matrices[S11_EXAMPLE].a);
    const double *ordinary = &paper[S11_ORDINARY];
    bool of_ordinary_inputs = !(ordinary[0] <= 0.5) && !(ordinary[1] <= 0.5);
    v->kind = !fails               ? VERDICT_HOLDS
              : !confirmed         ? VERDICT_OBSERVED
              : of_ordinary_inputs ? VERDICT_FAILS
                                   : VERDICT_HOLDS_IF;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "not all row sums of A are equal");
    verdict_set(&v->measured,
                "residual after 20 steps: %.3g for [1 ½; ½ 1], between %.3g and %.3g for %" PRId64
                " larger matrices with λ_max = ‖A‖₁. Of ordinary inputs: %.3g for a blank image, "
                "%.3g for landmarks so far apart that row sums round to 1. At most %.2g for all "
                "of these from 1.8/‖A‖₁²",
                paper[S11_EXAMPLE], boundary.least, boundary.most, boundary.rows, ordinary[0],
                ordinary[1], direct_worst(repaired, safe.most));
    verdict_set(&v->bound, "|1 − αλ²| < 1 for every eigenvalue λ; here it is 1");
    verdict_set(&v->counterexample,
                "A = [1 ½; ½ 1], ‖A‖₁ = 3/2, α = 8/9: X_0·1 = αA·1 = (4/3)·1 and X_1·1 = 2X_0·1 − "
                "X_0AX_0·1 = (8/3)·1 − (8/3)·1 = 0, so X_k·1 = 0 for ever, while A⁻¹·1 = (2/3)·1");
    return EXIT_PASS;
}

/* ---- S12 ---- */

/* Matrices B/4 with whole B, so that the test is in whole numbers. */
static const struct {
    const char *name;
    int64_t m, b[9];
} s12_matrices[] = {
    {"[1 ½; ½ 1]", 2, {4, 2, 2, 4}},
    {"[1 ¾ ¾; ¾ 1 ¾; ¾ ¾ 1]", 3, {4, 3, 3, 3, 4, 3, 3, 3, 4}},
};
enum { S12_MATRICES = 2, S12_EXAMPLE = 1, S12_LIMIT = 48 };

/* |I - 2 (1/2)^n A/|A|_1^2|_1 for A = B/4, without rounding: it is |N^2 2^n I - 8 B|_1 / (N^2 2^n)
 * with N = |B|_1. N <= 12 and n <= 48 keep both within 64 bits. */
typedef struct {
    int64_t numerator, denominator;
} exact_norm;

static exact_norm start_norm(int64_t m, const int64_t *b, int n)
{
    int64_t norm = 0, largest = 0;
    for (int64_t j = 0; j < m; j++) {
        int64_t sum = 0;
        for (int64_t i = 0; i < m; i++)
            sum += b[i * m + j];
        norm = sum > norm ? sum : norm;
    }
    int64_t unit = (norm * norm) << n;
    for (int64_t j = 0; j < m; j++) {
        int64_t sum = 0;
        for (int64_t i = 0; i < m; i++)
            sum += llabs((i == j ? unit : 0) - 8 * b[i * m + j]);
        largest = sum > largest ? sum : largest;
    }
    return (exact_norm){largest, unit};
}

/* The smallest n up to S12_LIMIT that meets the test; -1 if none does. */
static int find_start(int64_t m, const int64_t *b)
{
    for (int n = 0; n <= S12_LIMIT; n++) {
        exact_norm norm = start_norm(m, b, n);
        if (norm.numerator <= norm.denominator)
            return n;
    }
    return -1;
}

/* The outcome of the search in floating point for matrices for which no n exists. */
typedef struct {
    int64_t matrices, without; /* matrices, in f32 and f64; those for which no n exists */
    int64_t found;             /* of these, those for which rounding finds one */
    double least_n, most_n, least_residual, most_residual, most_safe;
} search_summary;

static void add_search(search_summary *s, const table *t, int64_t row, double safe)
{
    s->matrices++;
    if (cell_boolean(t, row, "search_exact"))
        return;
    s->without++;
    if (!cell_boolean(t, row, "search_found"))
        return;
    double n = (double)cell_integer(t, row, "search_n");
    double residual = cell_real(t, row, "residual_t20");
    bool first = s->found++ == 0;
    s->least_n = first ? n : fmin(s->least_n, n);
    s->most_n = first ? n : fmax(s->most_n, n);
    s->least_residual = first ? residual : direct_least(s->least_residual, residual);
    s->most_residual = direct_worst(s->most_residual, residual);
    s->most_safe = direct_worst(s->most_safe, safe);
}

/* Summarises the searches in both dtypes; writes a line for each one in f64. */
static search_summary tabulate_searches(const claim_run *run, verdict *v, const char *rule)
{
    const table *t = evidence_table(run, "initialisation", 0);
    search_summary s = {0};
    double safe = NAN;
    bool shown = strcmp(rule, "adaptive") == 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (cell_is(t, row, "rule", "safe"))
            safe = cell_real(t, row, "residual_t20");
        if (!cell_is(t, row, "rule", rule))
            continue;
        add_search(&s, t, row, safe);
        if (!shown || !cell_is(t, row, "dtype", "f64"))
            continue;
        fprintf(v->notes, "| %s | %" PRId64 " | %.4g | %s | ", cell_text(t, row, "matrix"),
                cell_integer(t, row, "m"), cell_real(t, row, "norm1"),
                cell_boolean(t, row, "search_exact") ? "yes" : "no");
        if (cell_boolean(t, row, "search_found"))
            fprintf(v->notes, "%" PRId64, cell_integer(t, row, "search_n"));
        fprintf(v->notes, " | %.2g | %.2g |\n", cell_real(t, row, "residual_t20"), safe);
    }
    return s;
}

static int judge_s12(const claim_run *run, verdict *v)
{
    const int64_t *b = s12_matrices[S12_EXAMPLE].b;
    int pair = find_start(2, s12_matrices[0].b), triple = find_start(3, b);
    exact_norm first = start_norm(3, b, 0), second = start_norm(3, b, 1);
    fprintf(v->notes, "| A | m | ‖A‖₁ | an n exists | n found in f64 | residual after 20 steps | "
                      "from 1.8/‖A‖₁² |\n|---|---|---|---|---|---|---|\n");
    search_summary s = tabulate_searches(run, v, "adaptive");
    search_summary squared = tabulate_searches(run, v, "adaptive-squared");
    fprintf(v->notes,
            "\nWhere no n exists, the search ends when 1 + c(‖A‖₁ − 2) rounds to 1: in f32 and "
            "f64 at n = %g to %g. Read with A² in place of A, no n exists for %" PRId64
            " of %" PRId64
            " either; the published code has A² and the limit 1.01, for which a small "
            "enough α always exists.\n",
            s.least_n, s.most_n, squared.without, squared.matrices);
    bool none = triple < 0;
    v->kind = none ? VERDICT_FAILS : VERDICT_OBSERVED;
    v->certified = none ? CERTIFIED_YES : CERTIFIED_NOT_NEEDED;
    if (none)
        verdict_set(&v->certificate,
                    "whole-number arithmetic for n = 0 to %d, the proof below for every n",
                    S12_LIMIT);
    verdict_set(&v->measured,
                "no n exists for %" PRId64 " of %" PRId64
                " cases (matrices in f32 and in f64); rounding "
                "finds one for "
                "%" PRId64 " of them, and 20 steps from it leave a residual of %.2g to %.2g, where "
                "1.8/‖A‖₁² leaves at most %.2g. Example: the norm is exactly %" PRId64 "/%" PRId64
                " for n = 0, %" PRId64 "/%" PRId64 " for n = 1",
                s.without, s.matrices, s.found, s.least_residual, s.most_residual, s.most_safe,
                first.numerator, first.denominator, second.numerator, second.denominator);
    verdict_set(&v->bound, "‖I − cA‖₁ = 1 + c(‖A‖₁ − 2) for c ≤ 1");
    verdict_set(&v->counterexample,
                "A = %s, ‖A‖₁ = 5/2, c = 0.32/2ⁿ: ‖I − cA‖₁ = 1 − c + 3c/2 = 1 + c/2 > 1 for every "
                "n (smallest n up to %d: %s). For [1 ½; ½ 1] n = %d is found, which leaves α as "
                "it was",
                s12_matrices[S12_EXAMPLE].name, S12_LIMIT, none ? "none" : "there is one", pair);
    return EXIT_PASS;
}

/* ---- The table ---- */

const claim soft_start_claims[] = {
    {
        .id = "S10",
        .source = "IJCV Prop. 1, NeurIPS Theorem 1",
        .statement = "When α is sufficiently small, A_{k+1} = 2A_k − A_kAA_k, A_k converges to A†.",
        .method = "A 2 × 2 matrix with eigenvalues 1 ± 1/2 in f64, from starts on both sides of "
                  "the limit.",
        .corrected = "For symmetric A ≠ 0 and A_0 = αA, A_k → A† if and only if 0 < α < 2/λ_max², "
                     "λ_max the largest eigenvalue in size.",
        .proof = "All iterates are polynomials in A. On an eigenvector with λ ≠ 0, where A_k has "
                 "the eigenvalue x_k, e_k = 1 − λx_k obeys e_{k+1} = e_k², so e_k = (1 − "
                 "αλ²)^(2^k): it goes to 0 if and only if |1 − αλ²| < 1 for every λ ≠ 0, that is 0 "
                 "< αλ_max² < 2. On the null space A_0 = αA is 0 and stays 0.",
        .judge = judge_s10,
    },
    {
        .id = "S11",
        .source = "IJCV § 3.2, Alg. 2, App. B",
        .statement = "[α = 2/‖A‖₁²] ensures good convergence behavior in Algorithm 2 (§ 3.2). We "
                     "set α = 2/‖A‖₁² to ensure it is small enough. Then the ‖AA† − AA_k‖ → 0, "
                     "when k → ∞ (App. B).",
        .method = "20 steps from 2/‖A‖₁² and from 1.8/‖A‖₁² (published SOFT code) on kernel "
                  "matrices with and without equal row sums, f64, of a blank image and of "
                  "landmarks far apart among them; the smallest one exactly.",
        .corrected =
            "From α = 2/‖A‖₁² the iteration converges to A† if and only if λ_max < ‖A‖₁, that "
            "is, for a matrix of positive entries, unless all row sums are equal: one "
            "landmark, two landmarks, the corners of a regular polygon. Such matrices are "
            "rare among all, but two kinds are ordinary. For a blank image, whose "
            "landmarks are equal, X_1 = 0 and stays so; for landmarks so far apart that A "
            "is I to f64's rounding, ε ≪ 2⁻²⁰/m, X_20 is O(2²⁰ε), practically 0. Any α = "
            "c/‖A‖₁² with 0 < c < 2 converges to A† for every A.",
        .proof = "λ_max ≤ ‖A‖₁, so αλ_max² ≤ c, and S10 gives convergence for c < 2. For c = 2 it "
                 "fails if and only if λ_max = ‖A‖₁, which for positive entries holds if and only "
                 "if all row sums are equal (Perron–Frobenius). Then A·1 = r·1, α = 2/r², and "
                 "X_1·1 = αr(2 − αr²)·1 = 0. Equal landmarks: A = 11ᵀ, r = m, and X_1 is a "
                 "multiple of 11ᵀ, hence 0. If A = I + E with |E_ij| ≤ ε, m fixed, then α = 2 + "
                 "O(ε), λ = 1 + O(ε), and 1 − αλ² = −1 + O(ε), whose 2²⁰th power is 1 + O(2²⁰ε): "
                 "X_20 = O(2²⁰ε).",
        .evidence = {"initialisation"},
        .judge = judge_s11,
    },
    {
        .id = "S12",
        .source = "IJCV § 3.2",
        .statement = "[I]n practice, we find that using an alternative form ... In ‖I − "
                     "A·2βⁿ/‖A‖₁²‖₁ ≤ 1, β = 0.5, we find the smallest n_i that holds this "
                     "inequality; α = 2β^n_i/‖A‖₁² gives more stable training and faster "
                     "convergence.",
        .method = "Whether an n exists: without rounding for small matrices, by the proof below "
                  "for named ones and inputs with m up to 49; what the search finds in f32 and "
                  "f64 when it may halve 64 times, and where 20 steps from there end. Training is "
                  "not tested.",
        .corrected =
            "If ‖A‖₁ ≤ 2, n_i = 0: the start of Algorithm 2, and nothing changes. If ‖A‖₁ > 2, "
            "no n_i exists, nor with A² for A. On every mode with 0 < αλ² ≤ 1 a smaller start "
            "leaves a larger error after every number of steps; over all modes, in ‖Π − AX_k‖₂, it "
            "can be faster only if α(λ_max² + λ_min²) > 2, λ_min the least eigenvalue that is not "
            "0: from α = 2/‖A‖₁² only if λ_max² + λ_min² > ‖A‖₁². In § 4.4's metric, which weighs "
            "a mode by λ, it can be faster otherwise, too: for landmarks (0, 0), (.01, 0), (0, 1), "
            "(.01, 1.01), s = ½, where λ_max² + λ_min² is 0.9962‖A‖₁², it is 4.5·10⁻⁴ after ten "
            "steps from 2/‖A‖₁² and 2.9·10⁻⁵ from half of it.",
        .proof =
            "Let c = 2βⁿ/‖A‖₁² and r_j the sum of column j, entries not negative, A_jj = 1. "
            "Column j of I − cA has the sum |1 − c| + c(r_j − 1). If c ≤ 1 that is 1 + c(r_j "
            "− 2), which is ≤ 1 if and only if r_j ≤ 2, whatever c is; if c > 1 it is cr_j − 1 "
            "≤ 1, because cr_j ≤ 2/‖A‖₁ ≤ 2. For ‖A‖₁ > 2, c < 1/2 for every n, and the "
            "largest column fails. With A² for A, r_j and 1 become the sum and the diagonal "
            "entry of a column of A², again without c where c(A²)_jj ≤ 1, as ‖A‖₁ > 2 implies: "
            "(A²)_jj ≤ ‖A‖₁. For r_j = ‖A‖₁ that column sums to Σ_k A_kj r_k ≥ 2r_j − 1 + q, q = "
            "Σ_{k≠j} A_kj², as r_k ≥ 1 + A_kj; to be at most 2(A²)_jj = 2 + 2q it needs 2r_j − 3 ≤ "
            "q ≤ r_j − 1, that is r_j ≤ 2. The error of a mode is |1 − αλ²|^(2^k) "
            "(S10), which falls as α grows to 1/λ²; the largest of |1 − αλ²| over λ ≠ 0 falls as "
            "α grows to 2/(λ_max² + λ_min²), and rises after it.",
        .evidence = {"initialisation"},
        .judge = judge_s12,
    },
    {0},
};
