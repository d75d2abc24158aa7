/* SPDX-License-Identifier: BSD-3-Clause */
/* U01 - U07: UFO-ViT. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims/claims.h"
#include "claims/direct.h"
#include "common/report.h"

/* The operator with K^T V normalised along `axis`, gamma 1, no epsilon. */
static atn_attention_desc xnorm_along(atn_xnorm_axis axis)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_XNORM, ATN_F64);
    desc.xnorm.axis = axis;
    desc.xnorm.epsilon = 0;
    return desc;
}

/* ---- U01 ---- */

/* The largest |Y_ic - cos(q_i, T_:c)| over an iid problem, T = K^T V: Eq. 5-8 with gamma = 1. */
static int cosine_defect(const claim_run *run, atn_xnorm_axis axis, int64_t n, int64_t d,
                         double *defect)
{
    atn_attention_desc desc = xnorm_along(axis);
    double *q = direct_normal(run, "U01 q", n * d), *k = direct_normal(run, "U01 k", n * d);
    double *v = direct_normal(run, "U01 v", n * d), *y = must_allocate((size_t)(n * d), sizeof *y);
    double *state = must_allocate((size_t)(d * d), sizeof *state);
    double *dots = must_allocate((size_t)(n * d), sizeof *dots);
    int code = direct_forward(run, &desc, n, d, d, q, k, v, y);
    direct_multiply_transposed(d, n, d, k, v, state);
    direct_multiply(n, d, d, q, state, dots);
    *defect = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < d; c++) {
            double lengths = direct_norm(d, 1, q + i * d) * direct_norm(d, d, state + c);
            double apart = fabs(y[i * d + c] - dots[i * d + c] / lengths);
            *defect = apart <= *defect ? *defect : apart;
        }
    free(dots);
    free(state);
    free(y);
    free(v);
    free(k);
    free(q);
    return code;
}

/* One token with q = k = 1 and v = (3, 4): clusters (3) and (4), and every cosine is 1. */
static int one_token(const claim_run *run, atn_xnorm_axis axis, double y[2])
{
    atn_attention_desc desc = xnorm_along(axis);
    const double q = 1, v[2] = {3, 4};
    return direct_forward(run, &desc, 1, 1, 2, &q, &q, v, y);
}

/* Whether an axis of K^T V gives cosines, on normal tokens and on one. */
static int judge_cosines(const claim_run *run, atn_xnorm_axis axis, verdict *v)
{
    enum { TOKENS = 196, WIDTH = 32 };
    /* T sums n products of size 1 into about sqrt(n): relative errors of sqrt(n) n u at most. */
    const double rounding = TOKENS * sqrt(TOKENS) * 0x1p-53;
    double defect, y[2];
    int code = cosine_defect(run, axis, TOKENS, WIDTH, &defect);
    if (code == EXIT_PASS)
        code = one_token(run, axis, y);
    if (code != EXIT_PASS)
        return code;
    bool one = fabs(y[0] - 1) <= rounding && fabs(y[1] - 1) <= rounding;
    v->kind = defect <= rounding && one ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "largest |Y − cosine|: %.2g for %d normal tokens; one token, q = k = 1, v = (3, "
                "4), whose cosines are 1: Y = (%.6g, %.6g)",
                defect, TOKENS, y[0], y[1]);
    verdict_set(&v->bound, "rounding, %.2g", rounding);
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample,
                    "one token, q = k = 1, v = (3, 4): Y = (%g, %g), both cosines are 1", y[0],
                    y[1]);
    return EXIT_PASS;
}

static int judge_u01(const claim_run *run, verdict *v)
{
    return judge_cosines(run, ATN_XNORM_COLUMNS, v);
}

/* ---- U06 ---- */

static int judge_u06(const claim_run *run, verdict *v)
{
    return judge_cosines(run, ATN_XNORM_ROWS, v);
}

/* ---- U07 ---- */

/* Eq. 4 to the letter: sum over i = 0 .. h of the whole vector's squared norm. */
static double printed_length(int64_t h, const double *a)
{
    double norm = direct_norm(h, 1, a), sum = 0;
    for (int64_t i = 0; i <= h; i++)
        sum += norm * norm;
    return sqrt(sum);
}

static int judge_u07(const claim_run *run, verdict *v)
{
    enum { WIDEST = 64 };
    const double rounding = 4 * WIDEST * 0x1p-53; /* of sums of h squares */
    value_range lengths = range_empty;
    fprintf(v->notes, "| h | ‖XN(a)‖₂, γ = 1, as printed | 1/√(h + 1) |\n|---|---|---|\n");
    for (int64_t h = 1; h <= WIDEST; h *= 4) {
        double *a = direct_normal(run, "U07", h);
        double length = direct_norm(h, 1, a) / printed_length(h, a);
        range_widen(&lengths, length);
        fprintf(v->notes, "| %" PRId64 " | %.9g | %.9g |\n", h, length, 1 / sqrt((double)h + 1));
        free(a);
    }
    bool unit = fabs(lengths.least - 1) <= rounding && fabs(lengths.most - 1) <= rounding;
    v->kind = unit ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured, "length of XN(a) as printed, h = 1 to %d: %.6g to %.6g", WIDEST,
                lengths.least, lengths.most);
    verdict_set(&v->bound, "1, a unit vector");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "h = 1, a = (1), γ = 1: XN(a) = 1/√(1² + 1²) = %.6g",
                    1 / printed_length(1, (const double[]){1}));
    return EXIT_PASS;
}

/* ---- U02 ---- */

static int count_flops(const claim_run *run, int64_t n, int64_t d, double *flops)
{
    atn_attention_desc desc = xnorm_along(ATN_XNORM_COLUMNS);
    atn_attention_shape shape = {.batch = 1, .heads = 1, .tokens = n, .dim = d, .value_dim = d};
    atn_cost cost;
    atn_status status = atn_attention_cost(run->context, &desc, &shape, &cost);
    if (status < 0) {
        report_error("U02: %s", atn_status_message(status));
        return EXIT_ENVIRONMENT;
    }
    *flops = cost.flops;
    return EXIT_PASS;
}

/* A function is affine in n if its second differences vanish; counts are exact. */
static int judge_u02(const claim_run *run, verdict *v)
{
    enum { STEP = 784, WIDTH = 32, COUNTS = 4 };
    double counts[COUNTS], bend = 0;
    for (int i = 0; i < COUNTS; i++) {
        int code = count_flops(run, (i + 1) * STEP, WIDTH, &counts[i]);
        if (code != EXIT_PASS)
            return code;
    }
    for (int i = 2; i < COUNTS; i++)
        bend = fmax(bend, fabs(counts[i] - 2 * counts[i - 1] + counts[i - 2]));
    double slope = (counts[1] - counts[0]) / STEP / WIDTH / WIDTH;
    v->kind = bend == 0 && slope > 0 ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "%.4g flops per token, cluster and channel; second differences over n = %d, %d, "
                "%d, %d: %g",
                slope, STEP, 2 * STEP, 3 * STEP, 4 * STEP, bend);
    verdict_set(&v->bound, "4 flops for the two products; 0 for a function that is linear in N");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "n = %d to %d: second difference %g", STEP, 3 * STEP, bend);
    fprintf(v->notes, "h, the number of clusters, is the width of V: with h = d, as in the models, "
                      "O(hNd) is quadratic in a head's width.\n");
    return EXIT_PASS;
}

/* ---- U03 ---- */

static bool is_total(const table *t, int64_t row, const void *data)
{
    return cell_is(t, row, "operator", "xnorm") && cell_is(t, row, "quantity", "bytes_total") &&
           !cell_missing(t, row, "exponent");
}

/* Inputs, output and what the call itself holds; the last alone does not grow. */
static int judge_u03(const claim_run *run, verdict *v)
{
    const table *fits = evidence_table(run, "memory", 1);
    int64_t worst = largest_row(fits, "exponent", is_total, NULL);
    if (worst < 0) {
        v->kind = VERDICT_NOT_TESTABLE;
        verdict_set(&v->measured, "this machine does not tell resident memory");
        return EXIT_PASS;
    }
    double exponent = cell_real(fits, worst, "exponent"),
           error = cell_real(fits, worst, "std_error");
    /* A linear part and a constant one: an exponent below 1 that tends to it. */
    v->kind = exponent <= 1 + 3 * error + 1e-3 ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured, "bytes ~ n^%.4f ± %.1g over n = %lld to %lld (%s)", exponent, error,
                (long long)cell_integer(fits, worst, "n_min"),
                (long long)cell_integer(fits, worst, "n_max"), cell_text(fits, worst, "mode"));
    verdict_set(&v->bound, "exponent 1");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "the fit above");
    return EXIT_PASS;
}

/* ---- U04 ---- */

/* |Y V+ V - Y| / |Y| for one token of the values (3, 4): V+ V projects on them. */
static double one_token_residual(const double y[2])
{
    double along = (3 * y[0] + 4 * y[1]) / 25;
    double rest[2] = {y[0] - 3 * along, y[1] - 4 * along};
    return direct_norm(2, 1, rest) / direct_norm(2, 1, y);
}

/* The largest residual of xnorm's rows of one variant, V of full column rank or not. */
static double largest_residual(const table *t, const char *variant, bool full_rank)
{
    double largest = -1;
    for (int64_t row = 0; row < table_rows(t); row++) {
        bool full = cell_integer(t, row, "rank") == cell_integer(t, row, "value_dim");
        if (!cell_is(t, row, "operator", "xnorm") || !cell_is(t, row, "variant", variant) ||
            full != full_rank)
            continue;
        double residual = cell_real(t, row, "residual");
        largest = isnan(largest) || residual <= largest ? largest : residual;
    }
    return largest;
}

/* How far the rows of M are from those of the attention matrix, relative to these: the operators
 * that have one and for which that is least and most. */
typedef struct {
    int64_t rows, least, most; /* rows of the table; -1 if there is none */
} row_differences;

static row_differences find_differences(const table *t)
{
    row_differences d = {0, -1, -1};
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (cell_missing(t, row, "row_difference") ||
            cell_integer(t, row, "rank") != cell_integer(t, row, "value_dim"))
            continue;
        double value = cell_real(t, row, "row_difference");
        d.rows++;
        if (d.least < 0 || value < cell_real(t, d.least, "row_difference"))
            d.least = row;
        if (d.most < 0 || !(value <= cell_real(t, d.most, "row_difference")))
            d.most = row;
    }
    return d;
}

static int judge_u04(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "maps", 3);
    const double rounding = 1e-12; /* cond(V) u stays below it: `rounding` of the CSV */
    double full = largest_residual(t, "paper", true), lost = largest_residual(t, "paper", false);
    double port = fmax(largest_residual(t, "port", true), largest_residual(t, "port", false));
    row_differences d = find_differences(t);
    double y[2];
    int code = one_token(run, ATN_XNORM_COLUMNS, y);
    if (code != EXIT_PASS)
        return code;
    v->kind = d.rows > 0 ? VERDICT_OBSERVED : VERDICT_NOT_TESTABLE;
    if (d.rows > 0)
        verdict_set(&v->measured,
                    "a row of M is %.2g (%s) to %.2g (%s) away from the attention matrix's, "
                    "relative to it, for the operators that have one; |MV − Y|/|Y|: %.2g where V "
                    "has full column rank, else %.2g along columns; along rows %.2g",
                    cell_real(t, d.least, "row_difference"), cell_text(t, d.least, "operator"),
                    cell_real(t, d.most, "row_difference"), cell_text(t, d.most, "operator"), full,
                    lost, port);
    else
        verdict_set(&v->measured, "an operator with an attention matrix");
    verdict_set(&v->bound, "0 for a map that is the attention matrix");
    verdict_set(&v->counterexample,
                "no matrix at all: one token, q = k = 1, v = (3, 4): Y = (%g, %g), and no multiple "
                "of v is less than %.0f %% away",
                y[0], y[1], 100 * one_token_residual(y));
    if (full >= 0 && full <= rounding)
        return EXIT_PASS;
    report_error("U04: YV+V differs from Y by %.2g where V has full column rank, which is proved "
                 "not to be",
                 full);
    return EXIT_CHECK;
}

/* ---- U05 ---- */

typedef enum { RANGE_BOTH, RANGE_QUERY, RANGE_STATE, RANGE_LAYER_NORM, RANGES } range_kind;

static const char *const range_names[RANGES] = {
    [RANGE_BOTH] = "XNorm of Q and of KᵀV",
    [RANGE_QUERY] = "ℓ2 norm of Q alone",
    [RANGE_STATE] = "ℓ2 norm of KᵀV alone",
    [RANGE_LAYER_NORM] = "LayerNorm of Q and of KᵀV",
};

/* The line x[0], x[step], ... made to unit length, or to mean 0 and variance 1. */
static void normalise_line(bool layer_norm, int64_t count, int64_t step, double *x)
{
    double mean = 0;
    for (int64_t i = 0; layer_norm && i < count; i++)
        mean += x[i * step] / (double)count;
    for (int64_t i = 0; i < count; i++)
        x[i * step] -= mean;
    double divisor = direct_norm(count, step, x) / (layer_norm ? sqrt((double)count) : 1);
    for (int64_t i = 0; i < count; i++)
        x[i * step] /= divisor;
}

/* The largest |Y| of n equal-law tokens of deviation `size`, d channels. */
static double output_range(const claim_run *run, range_kind kind, int64_t n, int64_t d, double size)
{
    double *q = direct_normal(run, "U05 q", n * d), *k = direct_normal(run, "U05 k", n * d);
    double *state = must_allocate((size_t)(d * d), sizeof *state), largest = 0;
    double *y = must_allocate((size_t)(n * d), sizeof *y);
    for (int64_t i = 0; i < n * d; i++) {
        q[i] *= size;
        k[i] *= size;
    }
    direct_multiply_transposed(d, n, d, k, k, state); /* V = K: a sum that does not cancel */
    for (int64_t i = 0; i < n && kind != RANGE_STATE; i++)
        normalise_line(kind == RANGE_LAYER_NORM, d, 1, q + i * d);
    for (int64_t c = 0; c < d && kind != RANGE_QUERY; c++)
        normalise_line(kind == RANGE_LAYER_NORM, d, d, state + c);
    direct_multiply(n, d, d, q, state, y);
    for (int64_t i = 0; i < n * d; i++)
        largest = isnan(largest) || fabs(y[i]) <= largest ? largest : fabs(y[i]);
    free(y);
    free(state);
    free(k);
    free(q);
    return largest;
}

static int judge_u05(const claim_run *run, verdict *v)
{
    enum { WIDTH = 32, FEW = 196, MANY = 3136 };
    double ranges[RANGES][3];
    fprintf(v->notes,
            "| normalisation | n = %d | n = %d | n = %d, tokens × 10 |\n|---|---|---|---|\n", FEW,
            MANY, FEW);
    for (int kind = 0; kind < RANGES; kind++) {
        ranges[kind][0] = output_range(run, (range_kind)kind, FEW, WIDTH, 1);
        ranges[kind][1] = output_range(run, (range_kind)kind, MANY, WIDTH, 1);
        ranges[kind][2] = output_range(run, (range_kind)kind, FEW, WIDTH, 10);
        fprintf(v->notes, "| %s | %.3g | %.3g | %.3g |\n", range_names[kind], ranges[kind][0],
                ranges[kind][1], ranges[kind][2]);
    }
    fprintf(
        v->notes,
        "\nThe table shows the largest |Y| with V = K, %d channels. LayerNorm bounds the output "
        "as XNorm does, so range alone does not tell why it failed.\n",
        WIDTH);
    v->kind = VERDICT_OBSERVED;
    verdict_set(&v->measured,
                "largest output, %d to %d tokens: XNorm × %.2g, Q alone × %.2g, KᵀV alone × %.2g; "
                "tokens × 10: × %.2g, × %.2g, × %.2g",
                FEW, MANY, ranges[RANGE_BOTH][1] / ranges[RANGE_BOTH][0],
                ranges[RANGE_QUERY][1] / ranges[RANGE_QUERY][0],
                ranges[RANGE_STATE][1] / ranges[RANGE_STATE][0],
                ranges[RANGE_BOTH][2] / ranges[RANGE_BOTH][0],
                ranges[RANGE_QUERY][2] / ranges[RANGE_QUERY][0],
                ranges[RANGE_STATE][2] / ranges[RANGE_STATE][0]);
    verdict_set(&v->bound, "γ² for XNorm, d for LayerNorm; none for one side alone. That training "
                           "fails would need training");
    return EXIT_PASS;
}

const claim ufo_vit_claims[] = {
    {
        .id = "U01",
        .source = "UFO-ViT § 3.2, Eq. 3, 5–8, with Eq. 4 as the L2-norm that its text says (U07)",
        .statement =
            "Relational features are defined by the cosine similarity between patches and "
            "clusters: the output is γ² times the cosine between a query and a cluster, a column "
            "of KᵀV.",
        .method = "The operator against cosines in long double, independent normal Q, K, V, "
                  "n = 196, d = 32, no query and no cluster zero.",
        .corrected = "",
        .proof = "Y_ic = Σ_r q_ir T_rc / (|q_i| |T_:c|) is the cosine of q_i and T_:c by "
                 "definition, T = KᵀV.",
        .judge = judge_u01,
    },
    {
        .id = "U02",
        .source = "UFO-ViT § 3.1",
        .statement = "Both products have a complexity of O(hNd): linear in N.",
        .method = "Exact counts at N = 784, 1568, 2352, 3136, d = h = 32.",
        .corrected = "",
        .proof = "KᵀV and Q(KᵀV) take 2Nhd flops each, the norms O((N + h)d): an affine function "
                 "of N with h and d fixed.",
        .judge = judge_u02,
    },
    {
        .id = "U03",
        .source = "UFO-ViT Fig. 8",
        .statement = "Memory is linear in the number of tokens.",
        .method = "Resident memory of a forward call measured in a process of its own, and a power "
                  "law fitted to inputs, output and what the call holds together.",
        .corrected = "Inputs and output are linear in n; what the operator itself holds does not "
                     "depend on n.",
        .proof = "The state KᵀV is d × d_v and is summed over blocks of tokens; nothing else is "
                 "kept between the passes.",
        .evidence = {"memory"},
        .judge = judge_u03,
    },
    {
        .id = "U04",
        .source = "UFO-ViT § 4.1, Fig. 6",
        .statement =
            "Because [attention maps] could not be computed directly, a pseudo-inverse algorithm "
            "was used to approximate them (read here as M = YV†).",
        .method = "How near M's rows come to the attention matrix's for operators that have one, "
                  "and whether M reproduces the output, MV = Y: on a photograph's tokens, whose "
                  "values span 31 of 32 dimensions, and on 31 of the channels, which are "
                  "independent.",
        .corrected =
            "For an operator with an attention matrix S, M = S·VV†: it agrees with S on the "
            "columns of V and is 0 on all that is orthogonal to them. MV = Y if and only if the "
            "rows of Y lie in the row space of V: always where V has full column rank. XNorm "
            "along columns weighs every channel of V by a factor of its own, and where V has not "
            "full column rank need have no single matrix.",
        .proof =
            "For Y = SV, M = SVV†; VV† is the orthogonal projector on V's column space; V†V is "
            "that on V's row space, and MV = YV†V. Along columns Y = Q̂KᵀVD, D = diag(γ/|T_:c|): "
            "its rows lie in V's row space for every Q if and only if D maps the row space of "
            "KᵀV into it, as it does if that space is everything. Along rows Y = Q̂EKᵀV, E = "
            "diag(γ/|T_r:|), lies in it always.",
        .evidence = {"maps"},
        .judge = judge_u04,
    },
    {
        .id = "U05",
        .source = "UFO-ViT Tab. 3",
        .statement = "With LN, GN or IN instead of XNorm, or a single ℓ2 norm, training fails.",
        .method = "The range of the output against the number and the size of tokens, V = K.",
        .corrected = "",
        .proof = "",
        .judge = judge_u05,
    },
    {
        .id = "U06",
        .source = "a port of UFO-ViT (External-Attention-pytorch)",
        .statement = "With KᵀV normalised along its rows, as the port has it, the output is γ² "
                     "times the cosine between a query and a column of KᵀV.",
        .method = "As for U01, along the other axis.",
        .corrected =
            "The port's outputs are in general no cosines; those of Eq. 8, which normalises "
            "columns, are (U01).",
        .proof =
            "With rows, T_rc is divided by |T_r:|, which depends on the index summed over: one "
            "token, q = k = 1, v = (3, 4), has T = (3, 4) and the output (3/5, 4/5), where both "
            "cosines are 1.",
        .judge = judge_u06,
    },
    {
        .id = "U07",
        .source = "UFO-ViT Eq. 4",
        .statement = "XN(a) := γa/√(Σ_{i=0}^{h} ‖a‖²), a common L2-norm.",
        .method = "The formula to the letter, h = 1 to 64.",
        .corrected =
            "XN(a) = γa/√(Σ_i a_i²), the sum over the entries of a (Eq. 7 and 8 number them 0 to "
            "h): of length |γ|, as the text has it.",
        .proof =
            "The printed summand does not depend on i, and i takes h + 1 values: the root is √(h "
            "+ 1)·‖a‖, and for a ≠ 0 XN(a) has the length |γ|/√(h + 1). Outputs would be γ²/(h + "
            "1) times cosines.",
        .judge = judge_u07,
    },
    {0},
};
