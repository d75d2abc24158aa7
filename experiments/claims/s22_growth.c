/* SPDX-License-Identifier: BSD-3-Clause */
#include "claims/s22_growth.h"

#include <certified.h>
#include <inttypes.h>
#include <linear_algebra.h>
#include <math.h>
#include <stdlib.h>

#include "claims/direct.h"
#include "common/report.h"

/* ---- S22, S23: tokens on a line ---- */

enum { MOST_BITS = 4096, FIELD_SIZES = 6, CLOSE_SIZES = 4, DENSE_SIZES = 2, LARGEST = 12 };
static const int64_t field_sizes[FIELD_SIZES] = {2, 3, 4, 6, 8, LARGEST};

/* The certified norms of one kernel matrix of tokens on a line, d = 1, s = 1/2. */
typedef struct {
    int64_t m;
    double spacing;
    ref_certified_spectrum spectrum;
    bool certified;
} line_matrix;

static int certify_tokens(int64_t m, const double *tokens, double spacing, line_matrix *line)
{
    ref_exact_matrix a = {.m = m, .d = 1, .tokens = tokens};
    *line = (line_matrix){.m = m, .spacing = spacing};
    atn_status status = ref_certify_spectrum(&a, MOST_BITS, &line->spectrum);
    line->certified = status == ATN_OK;
    if (status >= 0 || status == ATN_ERR_UNSUPPORTED)
        return EXIT_PASS;
    report_error("certificate of a %" PRId64 " x %" PRId64 " matrix: %s", m, m,
                 atn_status_message(status));
    return EXIT_ENVIRONMENT;
}

/* Certifies m tokens 0, spacing, 2 spacing, ... */
static int certify_line(int64_t m, double spacing, line_matrix *line)
{
    double *tokens = must_allocate((size_t)m, sizeof *tokens);
    for (int64_t i = 0; i < m; i++)
        tokens[i] = (double)i * spacing;
    int code = certify_tokens(m, tokens, spacing, line);
    free(tokens);
    return code;
}

/* field: m tokens on a segment of length 2; dense: the largest m on segments of length 1 and 1/2;
 * close: two tokens at smaller and smaller distances. */
typedef struct {
    line_matrix field[FIELD_SIZES], dense[DENSE_SIZES], close[CLOSE_SIZES];
} line_family;

static int certify_family(line_family *family)
{
    int code = EXIT_PASS;
    for (int i = 0; i < FIELD_SIZES; i++)
        code = exit_worst(code, certify_line(field_sizes[i], 2.0 / (double)(field_sizes[i] - 1),
                                             &family->field[i]));
    for (int i = 0; i < DENSE_SIZES; i++)
        code = exit_worst(code,
                          certify_line(LARGEST, ldexp(1, -i) / (LARGEST - 1), &family->dense[i]));
    for (int i = 0; i < CLOSE_SIZES; i++)
        code = exit_worst(code, certify_line(2, ldexp(1, -4 * i), &family->close[i]));
    return code;
}

typedef const ref_enclosure *(*norm_of)(const line_matrix *line);

static const ref_enclosure *plain_norm(const line_matrix *line)
{
    return &line->spectrum.inverse_norm;
}

static const ref_enclosure *normalised_norm(const line_matrix *line)
{
    return &line->spectrum.normalised_norm;
}

/* The least exponent p of m^p with which a norm can have grown from one enclosure to another. */
static double least_exponent(norm_of norm, const line_matrix *from, const line_matrix *to)
{
    return log(norm(to)->lower / norm(from)->upper) / log((double)to->m / (double)from->m);
}

/* A lower bound, with the (m-1)-th difference c_j = (-1)^j C(m-1, j) as test vector. A_jl is the
 * characteristic function of N(0, 2s) at (j - l) h, so c^T A c = E |2 sin(w h / 2)|^(2m-2) <= (2 s
 * h^2)^(m-1) (2m-3)!!, and |c|^2 = C(2m-2, m-1). So lambda_min <= (s h^2)^(m-1) (m-1)!, and the
 * norm of the inverse is at least its reciprocal. Normalised, it is at least 1/m times that, as D
 * <= m I. s = 1/2. */
static double segment_bound(int64_t m, double h, bool normalised)
{
    double least = normalised ? 1 / (double)m : 1;
    for (int64_t k = 1; k < m; k++)
        least *= 2 / (h * h * (double)k);
    return least;
}

static bool is_bounded(norm_of norm, bool normalised, const line_matrix *line)
{
    return norm(line)->upper >= segment_bound(line->m, line->spacing, normalised) * (1 - 1e-12);
}

/* Whether every norm of the field is at least the proved bound; false for NaN. */
static bool field_is_bounded(norm_of norm, bool normalised, const line_family *family)
{
    bool all = true;
    for (int i = 0; i < FIELD_SIZES; i++)
        all = all && is_bounded(norm, normalised, &family->field[i]);
    for (int i = 0; i < DENSE_SIZES; i++)
        all = all && is_bounded(norm, normalised, &family->dense[i]);
    return all;
}

static void note_family(FILE *notes, norm_of norm, bool normalised, const char *name,
                        const line_family *family)
{
    fprintf(
        notes,
        "Tokens on a line, d = 1, s = 1/2; all connected (k = 1).\n\n| m | spacing | %s, "
        "certified | proved: at least | local exponent in m, at least |\n|---|---|---|---|---|\n",
        name);
    for (int i = 0; i < FIELD_SIZES; i++) {
        const line_matrix *line = &family->field[i];
        fprintf(notes, "| %" PRId64 " | 2/%" PRId64 " | [%.8g, %.8g] | %.4g |", line->m,
                line->m - 1, norm(line)->lower, norm(line)->upper,
                segment_bound(line->m, line->spacing, normalised));
        if (i)
            fprintf(notes, " %.3g |\n", least_exponent(norm, &family->field[i - 1], line));
        else
            fprintf(notes, " |\n");
    }
    for (int i = 0; i < DENSE_SIZES; i++)
        fprintf(notes, "| %d | 1/%d | [%.8g, %.8g] | %.4g | |\n", (int)LARGEST, (LARGEST - 1) << i,
                norm(&family->dense[i])->lower, norm(&family->dense[i])->upper,
                segment_bound(LARGEST, family->dense[i].spacing, normalised));
    for (int i = 0; i < CLOSE_SIZES; i++)
        fprintf(notes, "| 2 | 2^-%d | [%.8g, %.8g] | %.8g | |\n", 4 * i,
                norm(&family->close[i])->lower, norm(&family->close[i])->upper,
                segment_bound(2, family->close[i].spacing, normalised));
    fprintf(notes, "\n");
}

static bool family_certified(const line_family *family)
{
    bool all = true;
    for (int i = 0; i < FIELD_SIZES; i++)
        all = all && family->field[i].certified;
    for (int i = 0; i < DENSE_SIZES; i++)
        all = all && family->dense[i].certified;
    for (int i = 0; i < CLOSE_SIZES; i++)
        all = all && family->close[i].certified;
    return all;
}

/* |A^-1|_2 = 1/(1 - a) and |D^-1/2 A^-1 D^-1/2|_2 = 1/(1 - a^2) for A = [1 a; a 1], a =
 * exp(-spacing^2/2). Used in place of a certificate where there is none, and compared with it where
 * there is one. */
static double close_norm(bool normalised, double spacing)
{
    double rest = -expm1(-spacing * spacing / 2);
    return 1 / (normalised ? rest * (2 - rest) : rest);
}

/* Whether the enclosures and the closed forms of the close pairs agree, up to the rounding of the
 * closed forms. */
static bool close_pairs_agree(norm_of norm, bool normalised, const line_family *family)
{
    for (int i = 0; i < CLOSE_SIZES; i++) {
        double closed = close_norm(normalised, family->close[i].spacing), slack = 16 * 0x1p-53;
        if (!(norm(&family->close[i])->lower <= closed * (1 + slack) &&
              norm(&family->close[i])->upper >= closed * (1 - slack)))
            return false;
    }
    return true;
}

/* ---- S22, S23: fields ---- */

/* The paper's fields: similarity 1 within a field, 0 between fields. m = 12, k = 2 fields of 5 and
 * 7 tokens. */
enum { FIELDS = 2, FIELD_SPREADS = 3 };
static const int64_t fields[FIELDS] = {5, LARGEST - 5};
static const double spreads[FIELD_SPREADS] = {0.5, 0.25, 0.125};

/* |A+|_2, or |D^-1/2 A+ D^-1/2|_2, of A = diag(11^T, 11^T), by its pseudo-inverse; and |I - D^-1
 * A|_1, which is less than (m - k)/m according to the proof. Returns an exit code. */
static int measure_ideal_fields(bool normalised, double *norm, double *defect)
{
    double a[LARGEST * LARGEST] = {0}, x[LARGEST * LARGEST], d[LARGEST];
    for (int i = 0; i < LARGEST; i++) {
        bool second = i >= fields[0];
        d[i] = (double)fields[second];
        for (int64_t j = second ? fields[0] : 0; j < (second ? LARGEST : fields[0]); j++)
            a[i * LARGEST + j] = 1;
    }
    *defect = 0;
    for (int j = 0; j < LARGEST; j++) {
        double sum = 0;
        for (int i = 0; i < LARGEST; i++)
            sum += fabs((i == j ? 1 : 0) - a[i * LARGEST + j] / d[i]);
        *defect = direct_worst(*defect, sum);
    }
    atn_status status = ref_symmetric_pinv(LARGEST, a, -1, x, NULL, NULL, NULL);
    for (int i = 0; i < LARGEST * LARGEST && normalised; i++)
        x[i] /= sqrt(d[i / LARGEST] * d[i % LARGEST]);
    if (status >= 0)
        status = ref_spectral_norm(LARGEST, LARGEST, x, norm);
    if (status >= 0)
        return EXIT_PASS;
    report_error("S22: %s", atn_status_message(status));
    return EXIT_ENVIRONMENT;
}

/* Certifies the same fields with tokens at distance `spread` and the fields 1000 apart, so that
 * similarities between fields are at most exp(-500000). */
static int certify_fields(double spread, line_matrix *line)
{
    double tokens[LARGEST];
    for (int i = 0; i < LARGEST; i++)
        tokens[i] = i < fields[0] ? i * spread : 1000 + (double)(i - fields[0]) * spread;
    return certify_tokens(LARGEST, tokens, spread, line);
}

static int note_ideal_fields(norm_of norm, bool normalised, const char *name, double *ideal,
                             double *defect, verdict *v)
{
    int code = measure_ideal_fields(normalised, ideal, defect);
    fprintf(
        v->notes,
        "The fields of the text: m = 12, two fields of %" PRId64 " and %" PRId64
        " equal tokens, nothing across. The norm is %.4g, 1/(smallest field)%s; ‖I − D⁻¹A‖₁, "
        "which the proof has at most at (m − k)/m = %.4g, is %.4g.\n\n| tokens of a field apart | "
        "%s, certified |\n|---|---|\n| 0 | %.4g |\n",
        fields[0], fields[1], *ideal, normalised ? "²" : "", (double)(LARGEST - FIELDS) / LARGEST,
        *defect, name, *ideal);
    for (int i = 0; i < FIELD_SPREADS && code == EXIT_PASS; i++) {
        line_matrix line;
        code = certify_fields(spreads[i], &line);
        if (line.certified)
            fprintf(v->notes, "| %g | [%.6g, %.6g] |\n", spreads[i], norm(&line)->lower,
                    norm(&line)->upper);
        else
            fprintf(v->notes, "| %g | no certificate |\n", spreads[i]);
    }
    fprintf(v->notes, "\n");
    return code;
}

/* ---- S22, S23: the judge ---- */

/* O(m^power) is refuted if the norm has no bound at fixed m: if, as m tokens come closer, their
 * norm grows nearly as fast as the proved bound. */
static int judge_growth(const claim_run *run, norm_of norm, bool normalised, int power,
                        const char *name, verdict *v)
{
    (void)run;
    line_family family;
    double ideal, defect;
    int code = certify_family(&family);
    if (code == EXIT_PASS)
        code = note_ideal_fields(norm, normalised, name, &ideal, &defect, v);
    if (code != EXIT_PASS)
        return code;
    const line_matrix *far = &family.close[0], *near = &family.close[CLOSE_SIZES - 1];
    const line_matrix *last = &family.field[FIELD_SIZES - 1];
    const line_matrix *dense = &family.dense[DENSE_SIZES - 1];
    bool certified = family_certified(&family) && close_pairs_agree(norm, normalised, &family) &&
                     field_is_bounded(norm, normalised, &family);
    double ratio =
        certified ? norm(near)->lower / norm(far)->upper
                  : close_norm(normalised, near->spacing) / close_norm(normalised, far->spacing);
    double segment =
        certified ? norm(last)->lower : segment_bound(last->m, last->spacing, normalised);
    double closer =
        certified ? norm(dense)->lower : segment_bound(dense->m, dense->spacing, normalised);
    /* The norm of two tokens grows like 1/spacing^2, that of m tokens faster. A bound in terms of m
     * alone would give a ratio of 1. */
    double expected = 0.25 * pow(far->spacing / near->spacing, 2);
    bool unbounded = ratio > expected && closer / segment > 1e6;
    bool known = isfinite(ratio) && isfinite(closer / segment);
    v->kind = unbounded ? VERDICT_FAILS : known ? VERDICT_HOLDS : VERDICT_OBSERVED;
    verdict_set(&v->measured,
                "%" PRId64 " tokens, all connected (k = 1): %s is at least %.3g on a segment of "
                "length 2, %.3g on one of length 1/2 (%s). m = 2: it grows %.4g-fold while the "
                "tokens' distance goes from 1 to 2^-%d. Two fields of equal tokens, m = 12: %.3g",
                last->m, name, segment, closer, certified ? "certified" : "proved", ratio,
                4 * (CLOSE_SIZES - 1), ideal);
    verdict_set(&v->bound, "a constant times m%s, of m = 12: %d", power == 2 ? "²" : "",
                power == 2 ? LARGEST * LARGEST : LARGEST);
    if (unbounded)
        verdict_set(
            &v->counterexample,
            "d = 1, s = ½, k = 1: m = 12 tokens at 0, 1/22, ..., 11/22: %s ≥ %.4g. The "
            "smallest is m = 2 (where k ≪ m no longer holds): tokens 0 and 2^-%d, A = [1 a; a "
            "1], a = exp(−2^-%d), %s = %.9g",
            name, closer, 4 * (CLOSE_SIZES - 1), 8 * (CLOSE_SIZES - 1) + 1, name,
            close_norm(normalised, near->spacing));
    v->certified = certified ? CERTIFIED_YES : CERTIFIED_NO;
    if (certified)
        verdict_set(&v->certificate,
                    "%s: %s in [%.12g, %.12g] for m = 12, [%.17g, %.17g] for m = 2, %d bits",
                    ref_certify_library(), name, norm(dense)->lower, norm(dense)->upper,
                    norm(near)->lower, norm(near)->upper, norm(dense)->bits);
    else
        verdict_set(&v->certificate, "%s",
                    ref_certify_library() ? "not certified within the budget of bits"
                                          : "this build has no ball arithmetic");
    if (certified)
        note_family(v->notes, norm, normalised, name, &family);
    return EXIT_PASS;
}

/* ---- Inputs ---- */

static const char *const growth_evidence[] = {"norm-growth", "norm-growth-published",
                                              "norm-growth-trained"};
enum { GROWTH_EVIDENCE = sizeof growth_evidence / sizeof *growth_evidence };

/* The fitted exponents of one quantity of norm-growth, as rows of Markdown. */
static void note_fits(const claim_run *run, const char *quantity, verdict *v)
{
    fprintf(v->notes,
            "Fitted to inputs (`norm_growth_fit.csv`), %s ~ m^p:\n\n| input | sampling | p | ± | "
            "m |\n|---|---|---|---|---|\n",
            quantity);
    for (int i = 0; i < GROWTH_EVIDENCE; i++) {
        const table *fits = evidence_table(run, growth_evidence[i], 1);
        for (int64_t row = 0; row < table_rows(fits); row++)
            if (cell_is(fits, row, "quantity", quantity) && cell_is(fits, row, "law", "power") &&
                !cell_missing(fits, row, "exponent"))
                fprintf(v->notes, "| %s | %s | %.3g | %.1g | %" PRId64 " to %" PRId64 " |\n",
                        cell_text(fits, row, "input"), cell_text(fits, row, "sampling"),
                        cell_real(fits, row, "exponent"), cell_real(fits, row, "std_error"),
                        cell_integer(fits, row, "m_min"), cell_integer(fits, row, "m_max"));
    }
    fprintf(v->notes, "\n");
}

int judge_s22(const claim_run *run, verdict *v)
{
    int code = judge_growth(run, plain_norm, false, 2, "‖A⁻¹‖₂", v);
    note_fits(run, "pinv_norm", v);
    return code;
}

int judge_s23(const claim_run *run, verdict *v)
{
    int code = judge_growth(run, normalised_norm, true, 1, "‖D^-½A⁻¹D^-½‖₂", v);
    note_fits(run, "normalised_norm", v);
    return code;
}

/* ---- S26 ---- */

/* Matrices of one sampling whose norms f64 resolves or that are certified. */
typedef struct {
    /* all matrices; those whose normalised norm is smaller; whose iterate's norm is below half */
    int64_t rows, smaller, capped;
    double least_gain, most_gain; /* of |A^-1| over the normalised norm, divided by m */
    double most_of_cap;
} gain_summary;

static gain_summary summarise_gains(const claim_run *run, const char *sampling)
{
    gain_summary s = {.least_gain = INFINITY};
    for (int i = 0; i < GROWTH_EVIDENCE; i++) {
        const table *t = evidence_table(run, growth_evidence[i], 0);
        for (int64_t row = 0; row < table_rows(t); row++) {
            double exact = cell_real(t, row, "pinv_norm");
            double iterate = cell_real(t, row, "iterate_norm");
            double gain = exact / cell_real(t, row, "normalised_norm");
            double of_m = gain / (double)cell_integer(t, row, "m");
            if (cell_boolean(t, row, "below_floor") || !cell_is(t, row, "sampling", sampling))
                continue;
            s.rows++;
            s.smaller += gain > 1;
            s.capped += iterate < exact / 2;
            s.least_gain = direct_least(s.least_gain, of_m);
            s.most_gain = direct_worst(s.most_gain, of_m);
            s.most_of_cap = direct_worst(s.most_of_cap, iterate / cell_real(t, row, "iterate_cap"));
        }
    }
    return s;
}

/* The fitted exponents of m of both norms for each input and sampling, and the differences between
 * them. */
typedef struct {
    int64_t fits;
    value_range plain, normalised, fall;
} exponent_fall;

/* The exponent of a quantity for the input and sampling of a row; NaN if there is none. */
static double power_exponent(const table *fits, int64_t like, const char *quantity)
{
    for (int64_t row = 0; row < table_rows(fits); row++)
        if (cell_is(fits, row, "quantity", quantity) && cell_is(fits, row, "law", "power") &&
            cell_is(fits, row, "input", cell_text(fits, like, "input")) &&
            cell_is(fits, row, "sampling", cell_text(fits, like, "sampling")) &&
            !cell_missing(fits, row, "exponent"))
            return cell_real(fits, row, "exponent");
    return NAN;
}

static exponent_fall measure_fall(const claim_run *run)
{
    exponent_fall f = {.plain = range_empty, .normalised = range_empty, .fall = range_empty};
    for (int i = 0; i < GROWTH_EVIDENCE; i++) {
        const table *fits = evidence_table(run, growth_evidence[i], 1);
        for (int64_t row = 0; row < table_rows(fits); row++) {
            if (!cell_is(fits, row, "quantity", "pinv_norm") || !cell_is(fits, row, "law", "power"))
                continue;
            double plain = power_exponent(fits, row, "pinv_norm");
            double normalised = power_exponent(fits, row, "normalised_norm");
            if (isnan(plain) || isnan(normalised))
                continue;
            f.fits++;
            range_widen(&f.plain, plain);
            range_widen(&f.normalised, normalised);
            range_widen(&f.fall, plain - normalised);
        }
    }
    return f;
}

int judge_s26(const claim_run *run, verdict *v)
{
    exponent_fall f = measure_fall(run);
    char *list = must_format("%s", "");
    double most_gain = 0, most_of_cap = 0;
    fprintf(v->notes, "| sampling | matrices | normalisation lowers the norm | by a factor, over m "
                      "| less than half of ‖A⁻¹‖₂ after 20 steps |\n|---|---|---|---|---|\n");
    for (int i = 0; i < SAMPLING_COUNT; i++) {
        const char *name = sampling_name((sampling_kind)i);
        gain_summary s = summarise_gains(run, name);
        if (s.rows == 0)
            continue;
        fprintf(v->notes, "| %s | %" PRId64 " | %" PRId64 " | %.2g to %.4g | %" PRId64 " |\n", name,
                s.rows, s.smaller, s.least_gain, s.most_gain, s.capped);
        char *shorter = list;
        list = must_format("%s%s %s %" PRId64 " of %" PRId64 " (after 20 steps the iterate has "
                           "less than half of it in %" PRId64 ")",
                           shorter, *shorter ? "," : "", name, s.smaller, s.rows, s.capped);
        free(shorter);
        most_gain = direct_worst(most_gain, s.most_gain);
        most_of_cap = direct_worst(most_of_cap, s.most_of_cap);
    }
    fprintf(v->notes, "\n");
    v->kind = VERDICT_OBSERVED;
    verdict_set(
        &v->measured,
        "fitted to norm ~ m^p, normalisation lowers p by %.2f to %.2f (%" PRId64 " inputs and "
        "samplings; %.2f to %.2f without, %.2f to %.2f with). It lowers ‖A⁻¹‖₂ itself (as it must, "
        "S30) in:%s; by a factor of at most %.4g·m",
        f.fall.least, f.fall.most, f.fits, f.plain.least, f.plain.most, f.normalised.least,
        f.normalised.most, list, most_gain);
    verdict_set(&v->bound,
                "a factor of m for the gain; 0.638·√(2²¹)/‖A‖₁ for the iterate's norm, of which "
                "it reaches a share of up to %.3g",
                most_of_cap);
    free(list);
    note_fits(run, "pinv_norm", v);
    note_fits(run, "normalised_norm", v);
    return EXIT_PASS;
}
