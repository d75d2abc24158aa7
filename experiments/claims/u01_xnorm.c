/* SPDX-License-Identifier: BSD-3-Clause */
/* U01 - U11: UFO-ViT's XNorm; its networks are in u12_network.c. */
#include <data.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims/claims.h"
#include "claims/direct.h"
#include "claims/miniature.h"
#include "common/report.h"

/* XNorm with K^T V normalised along `axis`, gamma 1, no epsilon. */
static atn_attention_desc xnorm_along(atn_xnorm_axis axis)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_XNORM, ATN_F64);
    desc.xnorm.axis = axis;
    desc.xnorm.epsilon = 0;
    return desc;
}

/* ---- U01 ---- */

/* The largest |Y_ic - cos(q_i, T_:c)| for iid tokens, T = K^T V: Eq. 5-8 with gamma = 1. */
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
            *defect = direct_worst(*defect, apart);
        }
    free(dots);
    free(state);
    free(y);
    free(v);
    free(k);
    free(q);
    return code;
}

/* One token with q = k = 1 and v = (3, 4): the clusters are (3) and (4), and every cosine is 1. */
static int one_token(const claim_run *run, atn_xnorm_axis axis, double y[2])
{
    atn_attention_desc desc = xnorm_along(axis);
    const double q = 1, v[2] = {3, 4};
    return direct_forward(run, &desc, 1, 1, 2, &q, &q, v, y);
}

/* Whether normalising K^T V along an axis gives cosines, for normal tokens and for one token. */
static int judge_cosines(const claim_run *run, atn_xnorm_axis axis, verdict *v)
{
    enum { TOKENS = 196, WIDTH = 32 };
    /* T sums n products of size 1, with a result of about sqrt(n): relative errors are at most
     * sqrt(n) n u */
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

/* Eq. 4 taken literally: the sum over i = 0 .. h of the whole vector's squared norm. */
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
    verdict_set(&v->bound, "1, a unit vector, for every a ≠ 0");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "h = 1, a = (1), γ = 1: XN(a) = 1/√(1² + 1²) = %.6g",
                    1 / printed_length(1, (const double[]){1}));
    return EXIT_PASS;
}

/* ---- U02 ---- */

/* A function is affine in n if its second differences are 0; counts are exact. */
static int judge_u02(const claim_run *run, verdict *v)
{
    enum { STEP = 784, WIDTH = 32, COUNTS = 4 };
    const atn_attention_desc desc = xnorm_along(ATN_XNORM_COLUMNS);
    double counts[COUNTS], bend = 0;
    for (int i = 0; i < COUNTS; i++) {
        int code = direct_flops(run, &desc, 1, (i + 1) * STEP, WIDTH, WIDTH, &counts[i]);
        if (code != EXIT_PASS)
            return code;
    }
    for (int i = 2; i < COUNTS; i++)
        bend = direct_worst(bend, fabs(counts[i] - 2 * counts[i - 1] + counts[i - 2]));
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

/* The bytes that the operator holds between its passes over n tokens. */
static int state_bytes(const claim_run *run, int64_t n, double *bytes)
{
    enum { WIDTH = 32 };
    const atn_attention_desc desc = xnorm_along(ATN_XNORM_COLUMNS);
    atn_attention_shape shape = {
        .batch = 1, .heads = 1, .tokens = n, .dim = WIDTH, .value_dim = WIDTH};
    atn_cost cost = {0};
    int code = direct_cost(run, &desc, &shape, &cost);
    *bytes = cost.state_bytes;
    return code;
}

static bool is_total(const table *t, int64_t row, const void *data)
{
    return cell_is(t, row, "operator", "xnorm") && cell_is(t, row, "quantity", "bytes_total") &&
           !cell_missing(t, row, "exponent");
}

/* All bytes for the operator, variant, mode and heads of a fit at n tokens; *held: those of neither
 * inputs nor outputs. NaN if there is no such row. */
static double bytes_at(const table *points, const table *fits, int64_t fit, int64_t n, double *held)
{
    static const char *const same[] = {"operator", "variant", "mode"};
    for (int64_t row = 0; row < table_rows(points); row++) {
        bool found = cell_integer(points, row, "n") == n &&
                     cell_integer(points, row, "heads") == cell_integer(fits, fit, "heads");
        for (int i = 0; i < 3; i++)
            found = found && cell_is(points, row, same[i], cell_text(fits, fit, same[i]));
        if (!found)
            continue;
        *held = (double)cell_integer(points, row, "bytes_measured");
        return (double)cell_integer(points, row, "bytes_io") + *held;
    }
    return *held = NAN;
}

/* The exponent if everything that is held at the fewest tokens, besides inputs and outputs, stayed
 * constant. If memory is linear in n, no constant part can make the exponent smaller. */
static double least_exponent(const table *points, const table *fits, int64_t fit)
{
    int64_t few = cell_integer(fits, fit, "n_min"), many = cell_integer(fits, fit, "n_max");
    double held, total = bytes_at(points, fits, fit, few, &held);
    double growth = (double)many / (double)few;
    return log((held + growth * (total - held)) / total) / log(growth);
}

/* Inputs, the output and what the call itself holds; only the last does not grow. */
static int judge_u03(const claim_run *run, verdict *v)
{
    enum { FEW = 784, MANY = 2352 };
    const table *points = evidence_table(run, "memory", 0),
                *fits = evidence_table(run, "memory", 1);
    int64_t worst = largest_row(fits, "exponent", is_total, NULL);
    double bytes[2];
    int code = state_bytes(run, FEW, &bytes[0]);
    code = exit_worst(code, state_bytes(run, MANY, &bytes[1]));
    if (worst < 0) {
        v->kind = VERDICT_NOT_TESTABLE;
        verdict_set(&v->measured, "this machine does not tell resident memory");
        return code;
    }
    /* Memory with a linear and a constant part has an exponent below 1 that tends to 1. */
    bool linear = bytes[0] == bytes[1];
    for (int64_t row = 0; row < table_rows(fits) && linear; row++) {
        if (!is_total(fits, row, NULL))
            continue;
        double slack = 3 * cell_real(fits, row, "std_error") + 1e-3,
               fitted = cell_real(fits, row, "exponent");
        linear = fitted <= 1 + slack && fitted >= least_exponent(points, fits, row) - slack;
        if (!linear)
            worst = row;
    }
    double exponent = cell_real(fits, worst, "exponent"),
           error = cell_real(fits, worst, "std_error"), least = least_exponent(points, fits, worst);
    v->kind = linear ? VERDICT_OBSERVED : VERDICT_FAILS;
    verdict_set(&v->measured,
                "by a fit to measured bytes of the operator, on a CPU: n^%.4f ± %.1g over n = %lld "
                "to %lld (%s); by count: KᵀV of a head of 32 channels has %g bytes for %d tokens "
                "and %g for %d",
                exponent, error, (long long)cell_integer(fits, worst, "n_min"),
                (long long)cell_integer(fits, worst, "n_max"), cell_text(fits, worst, "mode"),
                bytes[0], FEW, bytes[1], MANY);
    verdict_set(&v->bound,
                "exponent 1, or down to %.4f by what a call holds of any number of tokens; as many "
                "bytes of KᵀV for more tokens",
                least);
    if (exponent < 1)
        fprintf(v->notes, "%.4f is below 1 by a constant part (affine, not proportional).\n",
                exponent);
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "the fit above, or the bytes of KᵀV");
    return code;
}

/* ---- U04 ---- */

/* |Y V+ V - Y| / |Y| for one token with the values (3, 4), onto which V+ V projects. */
static double one_token_residual(const double y[2])
{
    double along = (3 * y[0] + 4 * y[1]) / 25;
    double rest[2] = {y[0] - 3 * along, y[1] - 4 * along};
    return direct_norm(2, 1, rest) / direct_norm(2, 1, y);
}

/* The largest residual in xnorm's rows of one variant, with V of full column rank or not. */
static double largest_residual(const table *t, const char *variant, bool full_rank)
{
    double largest = -1;
    for (int64_t row = 0; row < table_rows(t); row++) {
        bool full = cell_integer(t, row, "rank") == cell_integer(t, row, "value_dim");
        if (!cell_is(t, row, "operator", "xnorm") || !cell_is(t, row, "variant", variant) ||
            full != full_rank)
            continue;
        double residual = cell_real(t, row, "residual");
        largest = direct_worst(largest, residual);
    }
    return largest;
}

/* Relative differences between the rows of M and those of the attention matrix, for operators that
 * have one. */
typedef struct {
    int64_t rows, least, most; /* their number; least, most: indices of rows, -1 if none */
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
    const double rounding = 1e-12; /* above cond(V) u, which is `rounding` of the CSV */
    double full = largest_residual(t, "paper", true), lost = largest_residual(t, "paper", false);
    double port =
        direct_worst(largest_residual(t, "port", true), largest_residual(t, "port", false));
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

/* What a normalisation is applied to: tokens (rows) of Q are its lines, and clusters (columns) of
 * K^T V. LN normalises a line, IN a channel over all lines, GN a group of channels over all lines.
 */
typedef struct {
    const char *name;
    bool query, state;
    bool by_line;
    int64_t channels; /* of a group; 0: all */
    bool standardise; /* to mean 0 and variance 1, else to length 1 */
} range_kind;

enum { RANGE_BOTH, RANGE_QUERY, RANGE_STATE, RANGE_LN, RANGE_GN, RANGE_IN, RANGES };
static const range_kind range_kinds[RANGES] = {
    [RANGE_BOTH] = {"XNorm of Q and of KᵀV", true, true, true, 0, false},
    [RANGE_QUERY] = {"ℓ2 norm of Q alone", true, false, true, 0, false},
    [RANGE_STATE] = {"ℓ2 norm of KᵀV alone", false, true, true, 0, false},
    [RANGE_LN] = {"LN of Q and of KᵀV", true, true, true, 0, true},
    [RANGE_GN] = {"GN, 4 groups", true, true, false, 8, true},
    [RANGE_IN] = {"IN", true, true, false, 1, true},
};

/* Lines and channels that are normalised together: x[line * line_step + channel * step]. */
typedef struct {
    int64_t first_line, lines, first_channel, channels;
} range_group;

static void normalise_group(const range_group *g, bool standardise, int64_t line_step, int64_t step,
                            double *x)
{
    double *start = x + g->first_line * line_step + g->first_channel * step;
    double mean = 0, sum = 0, count = (double)(g->lines * g->channels);
    for (int64_t i = 0; standardise && i < g->lines; i++)
        for (int64_t c = 0; c < g->channels; c++)
            mean += start[i * line_step + c * step] / count;
    for (int64_t i = 0; i < g->lines; i++)
        for (int64_t c = 0; c < g->channels; c++) {
            double *value = &start[i * line_step + c * step];
            *value -= mean;
            sum += *value * *value;
        }
    double divisor = sqrt(standardise ? sum / count : sum);
    for (int64_t i = 0; i < g->lines; i++)
        for (int64_t c = 0; c < g->channels; c++)
            start[i * line_step + c * step] /= divisor;
}

static void normalise(const range_kind *kind, int64_t lines, int64_t channels, int64_t line_step,
                      int64_t step, double *x)
{
    int64_t high = kind->by_line ? 1 : lines, wide = kind->channels ? kind->channels : channels;
    for (int64_t i = 0; i < lines; i += high)
        for (int64_t c = 0; c < channels; c += wide) {
            range_group g = {i, high, c, wide};
            normalise_group(&g, kind->standardise, line_step, step, x);
        }
}

/* The largest |Y| for n normal tokens of standard deviation `size`, d channels; V = K or
 * independent. */
static double output_range(const claim_run *run, const range_kind *kind, bool own_values, int64_t n,
                           int64_t d, double size)
{
    double *q = must_allocate((size_t)(3 * n * d), sizeof *q), *k = q + n * d;
    double *v = own_values ? k + n * d : k;
    double *state = must_allocate((size_t)(d * d), sizeof *state), largest = 0;
    double *y = must_allocate((size_t)(n * d), sizeof *y);
    data_normal(run->seed, 3 * n * d, q);
    for (int64_t i = 0; i < 3 * n * d; i++)
        q[i] *= size;
    direct_multiply_transposed(d, n, d, k, v, state);
    if (kind->query)
        normalise(kind, n, d, d, 1, q);
    if (kind->state)
        normalise(kind, d, d, 1, d, state);
    direct_multiply(n, d, d, q, state, y);
    for (int64_t i = 0; i < n * d; i++)
        largest = direct_worst(largest, fabs(y[i]));
    free(y);
    free(state);
    free(q);
    return largest;
}

enum { U05_WIDTH = 32, U05_FEW = 196, U05_MANY = 3136 };

/* The factors by which more tokens, and larger tokens, enlarge the largest output. */
typedef struct {
    double more, larger;
} range_growth;

static void tabulate_ranges(const claim_run *run, bool own_values, verdict *v,
                            range_growth growth[RANGES])
{
    for (int i = 0; i < RANGES; i++) {
        const range_kind *kind = &range_kinds[i];
        double few = output_range(run, kind, own_values, U05_FEW, U05_WIDTH, 1);
        double many = output_range(run, kind, own_values, U05_MANY, U05_WIDTH, 1);
        double large = output_range(run, kind, own_values, U05_FEW, U05_WIDTH, 10);
        growth[i] = (range_growth){many / few, large / few};
        fprintf(v->notes, "| %s | %s | %.3g | %.3g | %.3g |\n", kind->name,
                own_values ? "independent" : "K", few, many, large);
    }
}

static const miniature_change u05_trained[] = {{"none", "XNorm"},
                                               {"layer-norm", "LN"},
                                               {"group-norm", "GN of 4 groups"},
                                               {"instance-norm", "IN"},
                                               {0}};

static int judge_u05(const claim_run *run, verdict *v)
{
    range_growth own[RANGES], same[RANGES];
    fprintf(v->notes,
            "Largest |Y|, %d channels, normal Q and K:\n\n| normalisation | V | n = %d | "
            "n = %d | n = %d, tokens × 10 |\n|---|---|---|---|---|\n",
            U05_WIDTH, U05_FEW, U05_MANY, U05_FEW);
    tabulate_ranges(run, true, v, own);
    tabulate_ranges(run, false, v, same);
    fprintf(v->notes, "\nWith V = K the sums KᵀV do not cancel: it is the extreme case, not the "
                      "usual one.\n");
    char *trained = miniature_trained(v, "xnorm", u05_trained);
    v->kind = VERDICT_OBSERVED;
    verdict_set(
        &v->measured,
        "that training fails is not testable here (A18). Largest output, %d to %d tokens, V "
        "independent: XNorm × %.2g, LN × %.2g, GN × "
        "%.2g, IN × %.2g; ℓ2 of Q alone × %.2g (V = K: × %.2g), of KᵀV alone × %.2g. Tokens "
        "× 10: × %.2g, × %.2g, × %.2g, × %.2g; × %.2g, × %.2g. %s",
        U05_FEW, U05_MANY, own[RANGE_BOTH].more, own[RANGE_LN].more, own[RANGE_GN].more,
        own[RANGE_IN].more, own[RANGE_QUERY].more, same[RANGE_QUERY].more, own[RANGE_STATE].more,
        own[RANGE_BOTH].larger, own[RANGE_LN].larger, own[RANGE_GN].larger, own[RANGE_IN].larger,
        own[RANGE_QUERY].larger, own[RANGE_STATE].larger, trained);
    free(trained);
    verdict_set(&v->bound, "γ² for XNorm, d for LN; none for one side alone");
    return EXIT_PASS;
}

/* ---- U08 ---- */

/* Tokens X (n x c) and the weights from which Q, K and V are computed (c x c each). */
enum { LAYER_TOKENS = 49, LAYER_WIDTH = 8, LAYER_OUTPUTS = LAYER_TOKENS * LAYER_WIDTH };
enum { WEIGHTS_Q, WEIGHTS_K, WEIGHTS_V, WEIGHTS };
typedef struct {
    double x[LAYER_OUTPUTS], w[WEIGHTS][LAYER_WIDTH * LAYER_WIDTH];
} drawn_layer;

/* Other values of `apart` draw other weights and the same tokens. */
static void draw_layer(const claim_run *run, uint64_t apart, drawn_layer *l)
{
    data_normal(run->seed, LAYER_OUTPUTS, l->x);
    data_normal(run->seed + 1000 + apart, (int64_t)WEIGHTS * LAYER_WIDTH * LAYER_WIDTH, l->w[0]);
}

static void scale_weights(const double factors[WEIGHTS], drawn_layer *l)
{
    for (int i = 0; i < WEIGHTS; i++)
        for (int j = 0; j < LAYER_WIDTH * LAYER_WIDTH; j++)
            l->w[i][j] *= factors[i];
}

static int layer_outputs(const claim_run *run, const atn_attention_desc *desc, const drawn_layer *l,
                         double y[LAYER_OUTPUTS])
{
    double made[WEIGHTS][LAYER_OUTPUTS];
    for (int i = 0; i < WEIGHTS; i++)
        direct_multiply(LAYER_TOKENS, LAYER_WIDTH, LAYER_WIDTH, l->x, l->w[i], made[i]);
    return direct_forward(run, desc, LAYER_TOKENS, LAYER_WIDTH, LAYER_WIDTH, made[WEIGHTS_Q],
                          made[WEIGHTS_K], made[WEIGHTS_V], y);
}

static double largest_difference(int64_t count, const double *a, const double *b)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = direct_worst(largest, fabs(a[i] - b[i]));
    return largest;
}

/* In how many columns (clusters) the largest output belongs to the same token. */
static int same_regions(const double *a, const double *b)
{
    int same = 0;
    for (int c = 0; c < LAYER_WIDTH; c++) {
        int first = 0, second = 0;
        for (int i = 1; i < LAYER_TOKENS; i++) {
            first = a[i * LAYER_WIDTH + c] > a[first * LAYER_WIDTH + c] ? i : first;
            second = b[i * LAYER_WIDTH + c] > b[second * LAYER_WIDTH + c] ? i : second;
        }
        same += first == second;
    }
    return same;
}

/* The changes of an operator's outputs if the weights are multiplied by powers of two, multiplied
 * by other positive numbers, or drawn again. */
typedef struct {
    double exact, rounded, redrawn; /* largest differences */
    int kept, lost;                 /* regions: kept when multiplied, lost when drawn again */
} start_effects;

static int observe_start(const claim_run *run, const atn_attention_desc *desc, start_effects *e)
{
    static const double powers[WEIGHTS] = {4, 0.125, 16}, factors[WEIGHTS] = {3, 0.1, 7};
    double y[LAYER_OUTPUTS], other[LAYER_OUTPUTS];
    drawn_layer l;
    draw_layer(run, 0, &l);
    int code = layer_outputs(run, desc, &l, y);
    scale_weights(powers, &l);
    code = exit_worst(code, layer_outputs(run, desc, &l, other));
    e->exact = largest_difference(LAYER_OUTPUTS, y, other);
    draw_layer(run, 0, &l);
    scale_weights(factors, &l);
    code = exit_worst(code, layer_outputs(run, desc, &l, other));
    e->rounded = largest_difference(LAYER_OUTPUTS, y, other);
    e->kept = same_regions(y, other);
    draw_layer(run, 1, &l);
    code = exit_worst(code, layer_outputs(run, desc, &l, other));
    e->redrawn = largest_difference(LAYER_OUTPUTS, y, other);
    e->lost = LAYER_WIDTH - same_regions(y, other);
    return code;
}

/* The outputs of two tokens X = I, W_K = I, W_V = (1, 0), for which the cluster is (1, 0): W_Q is
 * I, or swaps the channels. */
static int move_region(const claim_run *run, double y[2][2])
{
    static const double identity[4] = {1, 0, 0, 1}, swap[4] = {0, 1, 1, 0}, values[2] = {1, 0};
    const atn_attention_desc desc = xnorm_along(ATN_XNORM_COLUMNS);
    int code = direct_forward(run, &desc, 2, 2, 1, identity, identity, values, y[0]);
    return exit_worst(code, direct_forward(run, &desc, 2, 2, 1, swap, identity, values, y[1]));
}

static int judge_u08(const claim_run *run, verdict *v)
{
    enum { OPERATORS = 3 };
    static const char *const names[OPERATORS] = {"XNorm", "Q(KᵀV)", "softmax(QKᵀ/√d)V"};
    /* As in U01, with the rounding of Q, K and V as well. */
    const double rounding = 8 * LAYER_TOKENS * sqrt(LAYER_TOKENS) * 0x1p-53;
    atn_attention_desc descs[OPERATORS] = {xnorm_along(ATN_XNORM_COLUMNS),
                                           atn_attention_defaults(ATN_SIMA, ATN_F64),
                                           atn_attention_defaults(ATN_SOFTMAX, ATN_F64)};
    start_effects e[OPERATORS];
    double moved[2][2];
    descs[1].sima = (atn_sima_options){.norm = ATN_SIMA_NONE, .order = ATN_ORDER_CHANNELS};
    int code = move_region(run, moved);
    fprintf(v->notes,
            "%d normal tokens, %d channels. Regions: the token with the largest output "
            "in each of the %d columns.\n\n| operator | W_Q, W_K, W_V × 4, 1/8, 16: Y "
            "changes by | × 3, 0.1, 7 | regions kept | drawn anew | regions lost "
            "|\n|---|---|---|---|---|---|\n",
            LAYER_TOKENS, LAYER_WIDTH, LAYER_WIDTH);
    for (int i = 0; i < OPERATORS; i++) {
        code = exit_worst(code, observe_start(run, &descs[i], &e[i]));
        fprintf(v->notes, "| %s | %.3g | %.3g | %d | %.3g | %d |\n", names[i], e[i].exact,
                e[i].rounded, e[i].kept, e[i].redrawn, e[i].lost);
    }
    if (code != EXIT_PASS)
        return code;
    bool scales = e[0].exact == 0 && e[0].rounded <= rounding;
    bool redrawn = e[0].redrawn <= rounding && moved[0][0] == moved[1][0];
    v->kind = !scales ? VERDICT_FAILS : redrawn ? VERDICT_HOLDS : VERDICT_HOLDS_IF;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "initialisations differ by positive factors of W_Q, W_K and W_V "
                                   "and a common rotation of W_Q and W_K alone");
    verdict_set(&v->measured,
                "XNorm, W_Q, W_K and W_V × 4, 1/8 and 16: outputs change by %g, × 3, 0.1 and 7 by "
                "%.2g; drawn anew by %.2g, with the largest output at another token in %d of %d "
                "columns. Without norms Q(KᵀV) has its largest outputs at the same tokens in %d of "
                "%d columns × 3, 0.1, 7, softmax attention in %d",
                e[0].exact, e[0].rounded, e[0].redrawn, e[0].lost, LAYER_WIDTH, e[1].kept,
                LAYER_WIDTH, e[2].kept);
    verdict_set(&v->bound, "0; rounding, %.2g", rounding);
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->counterexample,
                    "two tokens X = I, W_K = I, W_V = (1, 0)ᵀ, γ = 1: the output is (%g, %g) with "
                    "W_Q = I and (%g, %g) with W_Q = ((0, 1), (1, 0)): attention moves from one "
                    "token to the other",
                    moved[0][0], moved[0][1], moved[1][0], moved[1][1]);
    else if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "49 normal tokens: outputs change by %g and %g", e[0].exact,
                    e[0].rounded);
    return EXIT_PASS;
}

/* ---- U09 ---- */

/* A W_proj, and Eq. 9 taken literally: [.]_ij = sum over m of w_mj A_ij. */
static void project(int64_t n, int64_t h, const double *a, const double *w, double *right,
                    double *printed)
{
    direct_multiply(n, h, h, a, w, right);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < h; j++) {
            printed[i * h + j] = 0;
            for (int64_t m = 0; m < h; m++)
                printed[i * h + j] += w[m * h + j] * a[i * h + j];
        }
}

/* Relative differences of the printed form, and of W_proj A (n = h), from A W_proj, for normal
 * tokens. */
static int projection_defects(const claim_run *run, double *printed, double *left)
{
    enum { SIDE = 8, COUNT = SIDE * SIDE };
    const atn_attention_desc desc = xnorm_along(ATN_XNORM_COLUMNS);
    double x[4][COUNT], a[COUNT], want[COUNT], y[COUNT];
    data_normal(run->seed, (int64_t)4 * COUNT, x[0]);
    int code = direct_forward(run, &desc, SIDE, SIDE, SIDE, x[0], x[1], x[2], a);
    project(SIDE, SIDE, a, x[3], want, y);
    double size = direct_norm(COUNT, 1, want);
    for (int i = 0; i < COUNT; i++)
        y[i] -= want[i];
    *printed = direct_norm(COUNT, 1, y) / size;
    direct_multiply(SIDE, SIDE, SIDE, x[3], a, y);
    for (int i = 0; i < COUNT; i++)
        y[i] -= want[i];
    *left = direct_norm(COUNT, 1, y) / size;
    return code;
}

static int judge_u09(const claim_run *run, verdict *v)
{
    static const double one = 1, values[2] = {1, -1}, swap[4] = {0, 1, 1, 0};
    const double rounding = 64 * 0x1p-53; /* sums of 8 products */
    const atn_attention_desc desc = xnorm_along(ATN_XNORM_COLUMNS);
    double a[2], right[2], printed[2], defect, left;
    int code = direct_forward(run, &desc, 1, 1, 2, &one, &one, values, a);
    code = exit_worst(code, projection_defects(run, &defect, &left));
    if (code != EXIT_PASS)
        return code;
    project(1, 2, a, swap, right, printed);
    double apart = largest_difference(2, right, printed);
    v->kind =
        defect <= rounding && left <= rounding && apart <= rounding ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "8 normal tokens, h = 8: the printed sum is off A(x)W_proj by %.2g of its size, "
                "W_proj A(x) by %.2g; one token, h = 2: off by %g",
                defect, left, apart);
    verdict_set(&v->bound, "0 but for rounding, %.1g", rounding);
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample,
                    "one token, q = k = 1, v = (1, −1): A(x) = (%g, %g). With W_proj = ((0, 1), "
                    "(1, 0)) A(x)W_proj = (%g, %g); Eq. 9 gives (%g, %g)",
                    a[0], a[1], right[0], right[1], printed[0], printed[1]);
    return EXIT_PASS;
}

/* ---- U10 ---- */

static double potential(double k, double x)
{
    return 0.5 * k * x * x;
}

/* The width of the potential at a height, by bisection. */
static double width_at(double k, double height)
{
    double inside = 0, outside = 64;
    for (int i = 0; i < 60; i++) {
        double middle = (inside + outside) / 2;
        if (potential(k, middle) < height)
            inside = middle;
        else
            outside = middle;
    }
    return 2 * outside;
}

/* The position of a particle that starts at x = 1 after `steps` steps of Eq. 11, f(x) = -k x. */
static double particle_after(int steps, double k)
{
    double x = 1;
    for (int i = 0; i < steps; i++)
        x += -k * x;
    return x;
}

/* The least value of the potential at x = -4, -3.75, ... 4. */
static double depth_of(double k)
{
    double least = INFINITY; /* gcc 12 for aarch64 fails on fmin here */
    for (int i = -16; i <= 16; i++)
        if (potential(k, 0.25 * i) < least)
            least = potential(k, 0.25 * i);
    return least;
}

static int judge_u10(const claim_run *run, verdict *v)
{
    (void)run;
    enum { SIZES = 6, STEPS = 4 };
    const double height = 0.5;
    double widths[SIZES], depths[SIZES], places[SIZES];
    bool wider = true, deeper = true, kept = true;
    fprintf(v->notes,
            "| k | least U | width where U = 1/2 | U at x = 1 | x after %d steps of Eq. 11 "
            "from x = 1 |\n|---|---|---|---|---|\n",
            STEPS);
    for (int i = 0; i < SIZES; i++) {
        double k = ldexp(1, 2 * i);
        widths[i] = width_at(k, height);
        depths[i] = depth_of(k);
        wider = wider && (i == 0 || widths[i] > widths[i - 1]);
        deeper = deeper && (i == 0 || depths[i] < depths[i - 1]);
        places[i] = particle_after(STEPS, k);
        kept = kept && fabs(places[i]) <= 1;
        fprintf(v->notes, "| %g | %g | %g | %g | %g |\n", k, depths[i], widths[i], potential(k, 1),
                places[i]);
    }
    v->kind = wider && deeper && kept ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "k = 1, 4, … %g: the width at U = 1/2 goes from %g to %g, the least U from %g to "
                "%g. Eq. 11 takes a particle from x = 1 to %g in %d steps with k = 1, to %g with k "
                "= 4",
                ldexp(1, 2 * (SIZES - 1)), widths[0], widths[SIZES - 1], depths[0],
                depths[SIZES - 1], places[0], STEPS, places[1]);
    verdict_set(&v->bound, "a width that rises with k, a least U that falls, |x| ≤ 1");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample,
                    "at U = 1/2 the potential is %g wide for k = 1 and %g for k = 4; its least "
                    "value is %g and %g. k = 4 and Eq. 11: x = 1, %g, %g, …",
                    widths[0], widths[1], depths[0], depths[1], particle_after(1, 4),
                    particle_after(2, 4));
    return EXIT_PASS;
}

/* ---- U11 ---- */

/* One token, q = k = 1, v = (3, 4), with K normalised over the tokens: of the factors of K^T V only
 * K has a spatial dimension. */
static void over_space(double y[2])
{
    const double q = 1, k = 1, values[2] = {3, 4};
    double unit = k / direct_norm(1, 1, &k), state[2];
    direct_multiply_transposed(1, 1, 2, &unit, values, state);
    for (int c = 0; c < 2; c++)
        y[c] = q / direct_norm(1, 1, &q) * state[c];
}

static int judge_u11(const claim_run *run, verdict *v)
{
    enum { FEW = 196, MANY = 784 };
    double bytes[2], eight[2], space[2];
    int code = state_bytes(run, FEW, &bytes[0]);
    code = exit_worst(code, state_bytes(run, MANY, &bytes[1]));
    code = exit_worst(code, one_token(run, ATN_XNORM_COLUMNS, eight));
    if (code != EXIT_PASS)
        return code;
    over_space(space);
    bool grows = bytes[1] > bytes[0], same = space[0] == eight[0] && space[1] == eight[1];
    v->kind = grows || same ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "KᵀV of %d and of %d tokens has %g and %g bytes (d = h = 32, f64). One token, q = "
                "k = 1, v = (3, 4): (%g, %g) with K normalised over the tokens, (%g, %g) by Eq. 8",
                FEW, MANY, bytes[0], bytes[1], space[0], space[1], eight[0], eight[1]);
    verdict_set(&v->bound, "it would hold if the bytes grew with N, as those of an array with a "
                           "spatial dimension do, or if both readings had one output");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample,
                    "one token of one channel, two values: KᵀV is 1 × 2, and neither side is that "
                    "of space; K over the tokens gives (%g, %g), Eq. 8 (%g, %g)",
                    space[0], space[1], eight[0], eight[1]);
    return EXIT_PASS;
}

const claim ufo_vit_claims[] = {
    {
        .id = "U01",
        .source = "UFO-ViT § 3.2, Eq. 3, 5–8, with Eq. 4 as the L2-norm that its text says (U07)",
        .statement =
            "[R]elational features are defined by the cosine similarity between patches and "
            "clusters. (Read here as: the output is γ² times the cosine between a query and a "
            "cluster, a column of KᵀV.)",
        .method = "The operator against cosines in long double, independent normal Q, K, V, "
                  "n = 196, d = 32, no query and no cluster zero.",
        .corrected = "",
        .proof = "T = KᵀV. Y_ic = Σ_r (γq_ir/|q_i|)(γT_rc/|T_:c|) is γ² times the cosine of q_i "
                 "and T_:c by definition, where neither is zero; a zero vector has no cosine, and "
                 "its output is 0/0.",
        .judge = judge_u01,
    },
    {
        .id = "U02",
        .source = "UFO-ViT § 3.1",
        .statement = "Both multiplication operations have a complexity of O(hNd), so this process "
                     "is linear to N.",
        .method = "Exact counts at N = 784, 1568, 2352, 3136, d = h = 32.",
        .corrected = "",
        .proof = "KᵀV and Q(KᵀV) take 2Nhd flops each, the norms O((N + h)d): an affine function "
                 "of N with h and d fixed.",
        .judge = judge_u02,
    },
    {
        .id = "U03",
        .source = "UFO-ViT Fig. 8",
        .statement = "For a batch size of 64, the memory consumption of our models showed "
                     "linearity with the number of tokens.",
        .method = "Resident memory of a forward and a backward call measured in a process of its "
                  "own, and a power law fitted to inputs, output and what the call holds together.",
        .corrected =
            "Observed: that a call's memory is linear in n rests on the proof for its arrays and, "
            "for what a process really takes, on the fit: inputs, outputs and their gradients are "
            "linear in n, and what the operator itself holds between its passes over the tokens "
            "does not depend on n. The networks' memory on the GPU of Fig. 8 is not measured.",
        .proof = "Forward, the state KᵀV is d × d_v and is summed over blocks of tokens; nothing "
                 "else is kept between the passes. Backward keeps Q, K and V and makes gradients "
                 "of their size: linear in n. The other layers of a network act on single tokens "
                 "or on windows of a fixed size, or have one query for all tokens (class "
                 "attention), so that what they keep is linear in n, too.",
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
        .source = "UFO-ViT Tab. 3, § 4.1",
        .statement = "We show that most of the other normalization methods failed to train. … "
                     "[Tab. 3:] XNorm → LN, GN, IN Failed",
        .method =
            "The range of the output against the number and the size of tokens: XNorm, LN, "
            "GN of 4 groups and IN in its place, and one ℓ2 norm alone; V independent of K, "
            "and V = K for comparison. In miniature: small networks that are trained with each.",
        .corrected =
            "LN bounds the output whatever the number and the size of the tokens, as XNorm does: "
            "range does not tell why it failed. With one ℓ2 norm the output is not bounded: tokens "
            "c times as large make it c² times (Q normalised) or c times as large (KᵀV).",
        .proof =
            "XNorm: Y_ic is γ² times a cosine. LN: a line has the length √d or less, so |Y_ic| "
            "≤ d by Cauchy–Schwarz. Scaling: Q̂ and the normalised KᵀV do not change with c > "
            "0; KᵀV takes c², Q takes c.",
        .judge = judge_u05,
    },
    {
        .id = "U06",
        .source = "ours, of a port of UFO-ViT (External-Attention-pytorch)",
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
            "h): of length |γ| for a ≠ 0, as the text has it.",
        .proof =
            "The printed summand does not depend on i, and i takes h + 1 values: the root is √(h + "
            "1)·‖a‖, and for a ≠ 0 XN(a) has the length |γ|/√(h + 1). Outputs would be γ²/(h + 1) "
            "times cosines.",
        .judge = judge_u07,
    },
    {
        .id = "U08",
        .source = "UFO-ViT § 1, 3.2",
        .statement = "[T]his scheme prevents SA from being dependent on initialization. … If they "
                     "have arbitrary values, the region of attention is dependent on the "
                     "initialization.",
        .method = "Normal tokens and weights: W_Q, W_K and W_V multiplied by positive numbers, and "
                  "drawn anew; XNorm beside Q(KᵀV) and softmax attention; two tokens by hand.",
        .corrected =
            "XNorm's output does not change under W_Q → aW_Q, W_K → bW_K, W_V → W_V·diag(c), a, b, "
            "c_e > 0, nor under a rotation of both, W_QR and W_KR; a negative factor changes "
            "signs. Other weights give other outputs, and attention at other tokens. The region "
            "does not depend on such a, b and c without norms either: Q(KᵀV) is multiplied by "
            "abc_e, column by column. It is softmax attention whose region depends on the size of "
            "the weights.",
        .proof =
            "q_i → aq_i and T_:e → bc_e T_:e, T = KᵀV, and XN(tx) = XN(x) for t > 0, x ≠ 0 "
            "(without ε). With QR and KR, RᵀR = I, T becomes RᵀT: its columns keep their lengths, "
            "and (q_iR)·(RᵀT_:e) = q_i·T_:e. Q(KᵀV)_ie becomes abc_e times itself, so that the "
            "order of the tokens in a column stays. All heads alike; γ is not scaled. The example "
            "shows the rest.",
        .judge = judge_u08,
    },
    {
        .id = "U09",
        .source = "UFO-ViT Eq. 9",
        .statement = "Finally, the projection weight scales and aggregates the dot product terms "
                     "using a weighted sum. [W_proj A(x)]_ij = Σ_{m=1}^{h} w_mj q̂_i·k̂_j.",
        .method = "The printed sum to the letter against A(x)W_proj, and W_proj A(x): one token of "
                  "two clusters, and 8 normal tokens of 8, where all three are defined.",
        .corrected = "[A(x)W_proj]_ij = Σ_m w_mj q̂_i·k̂_m. As printed the sum is (Σ_m w_mj) "
                     "q̂_i·k̂_j: it scales the clusters and aggregates nothing. W_proj A(x) is not "
                     "defined unless W_proj has N columns.",
        .proof = "[A(x)]_im = q̂_i·k̂_m (Eq. 6), and the product of matrices sums over the inner "
                 "index. q̂_i·k̂_j does not depend on m. The two agree if and only if Σ_m w_mj "
                 "(q̂_i·k̂_m − q̂_i·k̂_j) = 0 for all i and j: always for h = 1 or a diagonal "
                 "W_proj.",
        .judge = judge_u09,
    },
    {
        .id = "U10",
        .source = "UFO-ViT § 3.2, Eq. 14",
        .statement = "U = ½kx². … Assume that a small number of k values are too large. The shape "
                     "of their potentials is wide and deep. (See Eq.14.) If a certain particle "
                     "moves around them, it cannot easily escape.",
        .method =
            "Width and minimum of the parabola for k = 1, 4, … 1024, and the steps of Eq. 11 where "
            "f(x) is the force, −kx (Eq. 12, 13).",
        .corrected = "A large k makes the potential narrow, not wide: its width at a height U is "
                     "2√(2U/k). Deep it is only in the sense that leaving a radius r takes ½kr²; "
                     "its minimum is 0 for every k. And by Eq. 11 with f(x) = −kx a particle is "
                     "drawn to 0 only for 0 < k < 2; for k > 2 it is not held.",
        .proof = "½kx² = U at x = ±√(2U/k), k > 0, U > 0, and ½kx² ≥ 0 = ½k·0². x_{t+1} = x_t − "
                 "kx_t, so x_t = (1 − k)^t x_0, and |1 − k| < 1 for 0 < k < 2, |1 − k| > 1 for k > "
                 "2.",
        .judge = judge_u10,
    },
    {
        .id = "U11",
        .source = "UFO-ViT § 3.1, Eq. 3",
        .statement = "It is a common L2-norm, but it is applied along two dimensions: the spatial "
                     "dimension of KᵀV and the channel dimension of Q.",
        .method = "The size of KᵀV as N grows; one token with K normalised over the tokens, and by "
                  "Eq. 8.",
        .corrected = "KᵀV has no spatial dimension: it is summed over the tokens (Eq. 5). What "
                     "Eq. 8 normalises are its columns, along the channels of K, so that both "
                     "norms are along the dimension in which Q and KᵀV are multiplied.",
        .proof = "K is N × d and V N × h: KᵀV is d × h for every N. Normalising K over the tokens "
                 "instead leaves V's size in the output: v → cv multiplies it by c, where a cosine "
                 "(Eq. 8) does not change for c > 0.",
        .judge = judge_u11,
    },
    {0},
};
