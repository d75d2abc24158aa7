/* SPDX-License-Identifier: BSD-3-Clause */
/* M02, M04 and M06: SimA in half precision; their rows are in m01_sima.c. */
#include "claims/m01_sima.h"
#include "claims/miniature.h"

#include <data.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "claims/direct.h"
#include "common/report.h"

/* ---- SimA in a narrow type ---- */

int sima_narrow_forward(const claim_run *run, const sima_narrow *sima, int64_t n, int64_t d,
                        const float *q, const float *k, const float *v, float *y)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F32);
    desc.storage = sima->storage;
    desc.sima = sima->options;
    atn_attention_shape shape = {.batch = 1, .heads = 1, .tokens = n, .dim = d, .value_dim = 1};
    atn_tensor tq = atn_tensor_dense((void *)q, ATN_F32, 1, 1, n, d);
    atn_tensor tk = atn_tensor_dense((void *)k, ATN_F32, 1, 1, n, d);
    atn_tensor tv = atn_tensor_dense((void *)v, ATN_F32, 1, 1, n, 1);
    atn_tensor ty = atn_tensor_dense(y, ATN_F32, 1, 1, n, 1);
    atn_attention_inputs inputs = {.q = &tq, .k = &tk, .v = &tv};
    atn_plan *plan = NULL;
    atn_status status = atn_attention_plan(run->context, &desc, &shape, &plan);
    if (status == ATN_OK)
        status = atn_attention_forward(plan, &inputs, &ty, NULL);
    atn_plan_free(plan);
    if (status >= 0)
        return EXIT_PASS;
    report_error("sima in %s: %s", atn_storage_name(sima->storage), atn_status_message(status));
    return EXIT_ENVIRONMENT;
}

static void format_number(double x, char text[32])
{
    snprintf(text, 32, isfinite(x) ? "%g" : "not finite", x);
}

static float in_f16(float x)
{
    atn_storage_round(ATN_STORAGE_F16, 1, &x);
    return x;
}

/* ---- Rows of attention/half ---- */

static const char *const text_ok = "ATN_OK";

/* Selects rows of the table; null or 0 accepts any. */
typedef struct {
    const char *input, *norm, *storage, *form, *order;
    int64_t n;
    uint64_t seed;
} half_choice;

static bool is_open_or(const table *t, int64_t row, const char *name, const char *text)
{
    return !text || cell_is(t, row, name, text);
}

static bool is_chosen(const table *t, int64_t row, const half_choice *c)
{
    return is_open_or(t, row, "input", c->input) && is_open_or(t, row, "norm", c->norm) &&
           is_open_or(t, row, "storage", c->storage) && is_open_or(t, row, "norm_form", c->form) &&
           is_open_or(t, row, "order", c->order) &&
           (c->n == 0 || cell_integer(t, row, "n") == c->n) &&
           (c->seed == 0 || cell_integer(t, row, "seed") == (int64_t)c->seed);
}

/* A column of the first chosen row; NaN if there is none, or it is missing. */
static double chosen_cell(const table *t, const half_choice *c, const char *name)
{
    for (int64_t row = 0; row < table_rows(t); row++)
        if (is_chosen(t, row, c))
            return cell_missing(t, row, name) ? NAN : cell_real(t, row, name);
    return NAN;
}

/* ---- M02 ---- */

/* The l1 norms of the columns of Q, and of K. */
static const int64_t whole_norms[2] = {32, 64};

void sima_fill_whole(int side, double x[WHOLE_TOKENS * WHOLE_WIDTH])
{
    for (int64_t c = 0; c < WHOLE_WIDTH; c++) {
        int64_t left = whole_norms[side];
        for (int64_t i = 0; i < WHOLE_TOKENS; i++) {
            int64_t size = i + 1 < WHOLE_TOKENS ? 1 + (3 * i + 5 * c + side) % 4 : left;
            x[i * WHOLE_WIDTH + c] = (double)((i + 2 * c + side) % 3 == 0 ? -size : size);
            left -= size;
        }
    }
}

/* The largest difference of either order from the exact Y, in f64. Products of whole numbers are
 * exact in any order, and so are divisions by a power of two. */
static int exact_orders(const claim_run *run, double *apart)
{
    double q[WHOLE_TOKENS * WHOLE_WIDTH], k[WHOLE_TOKENS * WHOLE_WIDTH];
    double v[WHOLE_TOKENS * WHOLE_VALUES], state[WHOLE_WIDTH * WHOLE_VALUES];
    double want[WHOLE_TOKENS * WHOLE_VALUES], y[WHOLE_TOKENS * WHOLE_VALUES];
    int code = EXIT_PASS;
    sima_fill_whole(0, q);
    sima_fill_whole(1, k);
    for (int i = 0; i < WHOLE_TOKENS * WHOLE_VALUES; i++)
        v[i] = 7 * i % 11 - 5;
    direct_multiply_transposed(WHOLE_WIDTH, WHOLE_TOKENS, WHOLE_VALUES, k, v, state);
    direct_multiply(WHOLE_TOKENS, WHOLE_WIDTH, WHOLE_VALUES, q, state, want);
    *apart = 0;
    for (int order = ATN_ORDER_TOKENS; order <= ATN_ORDER_CHANNELS; order++) {
        atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F64);
        desc.sima.order = (atn_order)order;
        code = exit_worst(
            code, direct_forward(run, &desc, WHOLE_TOKENS, WHOLE_WIDTH, WHOLE_VALUES, q, k, v, y));
        for (int i = 0; i < WHOLE_TOKENS * WHOLE_VALUES; i++)
            *apart = direct_worst(*apart,
                                  fabs(y[i] - want[i] / (double)(whole_norms[0] * whole_norms[1])));
    }
    return code;
}

/* Two tokens of one channel, Q = K = (1, 2^-13), V = (0, 8192), in f16: y[0] is the second output
 * with tokens first, y[1] with channels first. Q^ = K^ = (1, 2^-13) in f16, and the second token's
 * weight for itself, 2^-26, is 0. */
static int two_tokens(const claim_run *run, double y[2])
{
    static const float x[2] = {1, 0x1p-13f}, v[2] = {0, 8192};
    static const atn_order orders[2] = {ATN_ORDER_TOKENS, ATN_ORDER_CHANNELS};
    int code = EXIT_PASS;
    for (int i = 0; i < 2; i++) {
        float out[2] = {0, 0};
        sima_narrow sima = {ATN_STORAGE_F16, {.norm = ATN_SIMA_L1, .order = orders[i]}};
        code = exit_worst(code, sima_narrow_forward(run, &sima, 2, 1, x, x, v, out));
        y[i] = (double)out[1];
    }
    return code;
}

/* Two tokens in four channels, Q = (1; 0), K = (1; -1) in all of them, V = (3e38, 3e38), in f32:
 * the first output, exactly 0, with tokens first and with channels first. The first row of Q^K^^T
 * is (2, -2), and 6e38 is too large for f32. */
static int huge_values(const claim_run *run, double y[2])
{
    static const float q[8] = {1, 1, 1, 1}, k[8] = {1, 1, 1, 1, -1, -1, -1, -1};
    static const float v[2] = {3e38f, 3e38f};
    static const atn_order orders[2] = {ATN_ORDER_TOKENS, ATN_ORDER_CHANNELS};
    int code = EXIT_PASS;
    for (int i = 0; i < 2; i++) {
        float out[2] = {-1, -1};
        sima_narrow sima = {ATN_STORAGE_NATIVE, {.norm = ATN_SIMA_L1, .order = orders[i]}};
        code = exit_worst(code, sima_narrow_forward(run, &sima, 2, 4, q, k, v, out));
        y[i] = (double)out[0];
    }
    return code;
}

static bool has_underflow(const table *t, int64_t row)
{
    return !(
        cell_real(t, row, "first_subnormal") == 0 && cell_real(t, row, "first_vanished") == 0 &&
        cell_real(t, row, "factors_subnormal") == 0 && cell_real(t, row, "factors_vanished") == 0);
}

/* The difference of the two orders in a row, in units of the rounding of one of them. */
static double order_ratio(const table *t, int64_t row)
{
    return cell_missing(t, row, "order_difference")
               ? NAN
               : cell_real(t, row, "order_difference") /
                     (cell_real(t, row, "kappa") * cell_real(t, row, "rounding"));
}

/* The largest of these ratios over the rows without underflow; -1 if there are none. */
static double largest_order_ratio(const table *t, int64_t *worst)
{
    const half_choice both = {.norm = "l1", .form = "wide"};
    double largest = -1;
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!is_chosen(t, row, &both) || has_underflow(t, row))
            continue;
        double ratio = order_ratio(t, row);
        if (!(ratio <= largest) && !isnan(largest)) {
            largest = ratio;
            *worst = row;
        }
    }
    return largest;
}

/* Explains the inputs of attention/half below its tables. */
static void note_inputs(FILE *notes)
{
    fprintf(notes, "\nnormal: Q, K and V are three rotations of one matrix of tokens, so that V "
                   "follows K; independent: each is of tokens of its own. As emulated, sums are "
                   "accumulated in f32; only Q, K, V, Q̂, K̂, the first product and Y are rounded "
                   "to f16 or bf16.\n");
}

static void note_orders(const claim_run *run, const table *t, FILE *notes)
{
    const half_choice tokens = {
        .input = "normal", .norm = "l1", .form = "wide", .order = "tokens", .seed = run->seed};
    fprintf(notes,
            "Normal tokens, d = 32. The difference is that of both orders over the size of the "
            "output, in f64, f32, and bf16 and f16 as emulated.\n\n"
            "| type | n | difference | entries of Q̂K̂ᵀ subnormal | 0 |\n|---|---|---|---|---|\n");
    for (int64_t row = 0; row < table_rows(t); row++)
        if (is_chosen(t, row, &tokens) && !cell_missing(t, row, "order_difference"))
            fprintf(notes, "| %s | %lld | %.2g | %.1f %% | %.1f %% |\n",
                    cell_text(t, row, "storage"), (long long)cell_integer(t, row, "n"),
                    cell_real(t, row, "order_difference"),
                    100 * cell_real(t, row, "first_subnormal"),
                    100 * cell_real(t, row, "first_vanished"));
    note_inputs(notes);
}

/* Correct digits of one value channel in f16, channels first, d = 32: tokens are N(0, 1), and the
 * values are the first channel of K, or drawn as well. */
static int digits_left(const claim_run *run, int64_t n, double digits[2])
{
    enum { WIDTH = 32 };
    static const sima_narrow sima = {ATN_STORAGE_F16,
                                     {.norm = ATN_SIMA_L1, .order = ATN_ORDER_CHANNELS}};
    double *drawn = must_allocate((size_t)((2 * WIDTH + 1) * n), sizeof *drawn);
    float *q = must_allocate((size_t)((2 * WIDTH + 3) * n), sizeof *q), *k = q + WIDTH * n;
    float *v[2] = {k + (WIDTH + 1) * n, k + WIDTH * n}, *y = v[0] + n;
    long double norms[2][WIDTH] = {{0}}, state[2][WIDTH] = {{0}};
    data_normal(run->seed, (2 * WIDTH + 1) * n, drawn);
    for (int64_t i = 0; i < (2 * WIDTH + 1) * n; i++)
        q[i] = (float)drawn[i];
    for (int64_t i = 0; i < n; i++)
        v[0][i] = k[i * WIDTH];
    atn_storage_round(ATN_STORAGE_F16, (2 * WIDTH + 2) * n, q);
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < WIDTH; c++) {
            norms[0][c] += fabsl((long double)q[i * WIDTH + c]);
            norms[1][c] += fabsl((long double)k[i * WIDTH + c]);
            for (int own = 0; own < 2; own++)
                state[own][c] += (long double)k[i * WIDTH + c] * (long double)v[own][i];
        }
    int code = EXIT_PASS;
    for (int own = 0; own < 2; own++) {
        long double error = 0, size = 0;
        code = exit_worst(code, sima_narrow_forward(run, &sima, n, WIDTH, q, k, v[own], y));
        for (int64_t i = 0; i < n; i++) {
            long double want = 0;
            for (int c = 0; c < WIDTH; c++)
                want += (long double)q[i * WIDTH + c] / norms[0][c] * state[own][c] / norms[1][c];
            error += (y[i] - want) * (y[i] - want);
            size += want * want;
        }
        digits[own] = (double)-log10l(sqrtl(error / size));
    }
    free(q);
    free(drawn);
    return code;
}

enum { DIGIT_SIZES = 3 };
static const int64_t digit_sizes[DIGIT_SIZES] = {3136, 12544, 147456};

static int note_digits(const claim_run *run, FILE *notes, double independent[DIGIT_SIZES])
{
    int code = EXIT_PASS;
    fprintf(notes,
            "\nCorrect digits of a value channel in f16, channels first, norms wide, d = 32, "
            "normal tokens:\n\n| N | V a channel of K | V independent |\n|---|---|---|\n");
    for (int i = 0; i < DIGIT_SIZES; i++) {
        double digits[2];
        code = exit_worst(code, digits_left(run, digit_sizes[i], digits));
        independent[i] = digits[1];
        fprintf(notes, "| %" PRId64 " | %.1f | %.1f |\n", digit_sizes[i], digits[0], digits[1]);
    }
    return code;
}

/* Y of n tokens of one channel, Q = K = V = 1, in f16, channels first; exactly 1/N. */
static int equal_tokens(const claim_run *run, int64_t n, double *y)
{
    const sima_narrow sima = {ATN_STORAGE_F16, {.norm = ATN_SIMA_L1, .order = ATN_ORDER_CHANNELS}};
    float *ones = must_allocate((size_t)n, sizeof *ones);
    float *out = must_allocate((size_t)n, sizeof *out);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1;
    int code = sima_narrow_forward(run, &sima, n, 1, ones, ones, ones, out);
    *y = (double)out[0];
    free(out);
    free(ones);
    return code;
}

/* N beyond 2^14, where 1/N is f16's smallest normal number, and beyond 2^20. */
enum { EQUAL_SIZES = 2 };
static const int64_t equal_sizes[EQUAL_SIZES] = {1000000, 3 << 20};

/* 1/N, the entry of Q^ for equal tokens, rounded to f16. */
static double stored_share(int64_t n)
{
    float share = 1 / (float)n;
    atn_storage_round(ATN_STORAGE_F16, 1, &share);
    return (double)share;
}

/* Sets the counterexample: the number that contradicts the verdict, or else the smallest examples.
 */
static void show_orders(verdict *v, const table *t, double exact, double ratio, int64_t worst,
                        const double y[2], const double huge[2])
{
    double want = 0x1p-13 / ((1 + 0x1p-13) * (1 + 0x1p-13));
    if (exact != 0)
        verdict_set(&v->counterexample,
                    "8 tokens of whole numbers (method): an output is off the exact Y by %g",
                    exact);
    else if (worst >= 0 && !(ratio <= 2))
        verdict_set(&v->counterexample,
                    "%s, n = %lld, d = %lld, %s: the orders are apart by %.3g of a rounding bound",
                    cell_text(t, worst, "input"), (long long)cell_integer(t, worst, "n"),
                    (long long)cell_integer(t, worst, "d"), cell_text(t, worst, "storage"), ratio);
    else
        verdict_set(&v->counterexample,
                    "underflow: two tokens of one channel, Q = K = (1, 2⁻¹³), V = (0, 8192), in "
                    "f16: the second output is %g tokens first and %g channels first, exactly "
                    "2⁻¹³/(1 + 2⁻¹³)² = %.6g: its weight for itself, 2⁻²⁶, is 0 in f16. Overflow: "
                    "two tokens, Q = (1; 0), K = (1; −1) in each of four channels, V = (3·10³⁸, "
                    "3·10³⁸), in f32: the first output is %s tokens first and %g channels first, "
                    "exactly 0: its weights are 2 and −2, and 6·10³⁸ is infinite in f32",
                    y[0], y[1], want, isfinite(huge[0]) ? "finite" : "not finite", huge[1]);
}

int sima_judge_m02(const claim_run *run, verdict *v)
{
    /* Each order is within its rounding of the exact answer, so that they differ by at most twice
     * that. */
    const double most = 2, narrow = 4 * atn_storage_roundoff(ATN_STORAGE_F16);
    const table *t = evidence_table(run, "half", 0);
    enum { VANISHED = (1 << 25) + 2 };
    double exact, y[2], huge[2], independent[DIGIT_SIZES], equal[EQUAL_SIZES];
    int64_t worst = -1;
    int code = exact_orders(run, &exact);
    code = exit_worst(code, two_tokens(run, y));
    code = exit_worst(code, huge_values(run, huge));
    for (int i = 0; i < EQUAL_SIZES; i++)
        code = exit_worst(code, equal_tokens(run, equal_sizes[i], &equal[i]));
    double ratio = largest_order_ratio(t, &worst), gap = fabs(y[0] - y[1]);
    bool same = exact == 0 && ratio >= 0 && ratio <= most;
    bool overflows = !isfinite(huge[0]) && huge[1] == 0;
    bool apart = gap > narrow * fabs(y[1]) && overflows;
    bool together = gap <= narrow * fabs(y[1]) && huge[0] == huge[1];
    note_orders(run, t, v->notes);
    code = exit_worst(code, note_digits(run, v->notes, independent));
    v->kind = ratio < 0          ? VERDICT_NONE
              : same && apart    ? VERDICT_HOLDS_IF
              : same && together ? VERDICT_HOLDS
                                 : VERDICT_FAILS;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition,
                    "arithmetic is exact; with rounding, to its accuracy, if nothing underflows or "
                    "overflows (entries of Q̂, K̂, the product formed first, Y, and sums on the "
                    "way)");
    verdict_set(
        &v->measured,
        "whole numbers over powers of two, both orders in f64: off the exact Y by %g. "
        "Without underflow: apart by at most %.2g of a rounding bound. "
        "f16, two tokens: apart by %.3g %% of the second output. f32, huge values: %s "
        "tokens first, %g channels first. f16, channels first: %.1f digits "
        "of independent tokens for N = %" PRId64 ", %.1f for %" PRId64 "; Q = K = V = 1: %.5g "
        "instead of 10⁻⁶ for N = 10⁶, %.3g instead of %.3g for %" PRId64 ", and in f16 1/N "
        "itself is %g for %d",
        exact, ratio, 100 * gap / fabs(y[1]), isfinite(huge[0]) ? "finite" : "not finite", huge[1],
        independent[1], digit_sizes[1], independent[2], digit_sizes[2], equal[0], equal[1],
        1 / (double)equal_sizes[1], equal_sizes[1], stored_share(VANISHED), VANISHED);
    verdict_set(&v->bound, "0; %g, the rounding of both orders; %.2g, four roundings of f16", most,
                narrow);
    if (v->kind != VERDICT_HOLDS)
        show_orders(v, t, exact, ratio, worst, y, huge);
    return code;
}

/* Where a running sum of ones in f32 stops growing: the first power of two that adding 1 does not
 * change. */
static float where_sums_stop(void)
{
    volatile float sum = 1;
    while (sum + 1 > sum)
        sum *= 2;
    return sum;
}

/* ---- M04 ---- */

/* A bound on the factor by which rounding enlarges |Y| <= D max|V|, from the proof of M04. */
static double largest_enlargement(double tokens, double width)
{
    const double f16 = 0x1p-11, f32 = 0x1p-24, subnormal = 0x1p-25;
    double keys = (1 + f16) * (1 + f32) / (1 - tokens * f32) + tokens * subnormal;
    return (1 + f16) * (1 + tokens * f32) * (1 + width * f32) * keys;
}

/* The range of the corrected statement: D max|V| up to ROOM. */
enum { MOST_TOKENS = 1 << 19, MOST_WIDTH = 1 << 13, ROOM = 60000 };

/* Computed by the judge itself, in f16; the exact answers are 1/2, 0 and D v. */
typedef struct {
    double wide, stored;           /* two tokens, Q = K = (32768, 32768), V = (1, 1) */
    double dead_wide, dead_stored; /* one token, Q = K = (0), V = (1), epsilon 1e-12 */
    double values[2];              /* one token, Q = K = (1, 1), V = (20000) and (40000) */
} small_norms;

static int judge_small_norms(const claim_run *run, small_norms *s)
{
    static const float large[2] = {32768, 32768}, ones[2] = {1, 1}, zero = 0, one = 1;
    static const float values[2] = {20000, 40000};
    const float epsilon = 1e-12f, norm = in_f16(large[0] + large[1]);
    const sima_narrow normed = {ATN_STORAGE_F16, {.norm = ATN_SIMA_L1, .epsilon = 1e-12}};
    const sima_narrow factors = {ATN_STORAGE_F16, {.norm = ATN_SIMA_NONE}};
    const sima_narrow rounded = {ATN_STORAGE_F16,
                                 {.norm = ATN_SIMA_L1, .epsilon = (double)in_f16(epsilon)}};
    float divided[2] = {in_f16(large[0] / norm), in_f16(large[1] / norm)}, y[2] = {-1, -1};
    int code = sima_narrow_forward(run, &normed, 2, 1, large, large, ones, y);
    s->wide = (double)y[0];
    code = exit_worst(code, sima_narrow_forward(run, &factors, 2, 1, divided, divided, ones, y));
    s->stored = (double)y[0];
    code = exit_worst(code, sima_narrow_forward(run, &normed, 1, 1, &zero, &zero, &one, y));
    s->dead_wide = (double)y[0];
    code = exit_worst(code, sima_narrow_forward(run, &rounded, 1, 1, &zero, &zero, &one, y));
    s->dead_stored = (double)y[0];
    for (int i = 0; i < 2; i++) {
        code = exit_worst(code, sima_narrow_forward(run, &normed, 1, 2, ones, ones, &values[i], y));
        s->values[i] = (double)y[0];
    }
    return code;
}

/* Whether everything in a row is finite. */
static bool is_finite_row(const table *t, int64_t row)
{
    return cell_is(t, row, "outcome", text_ok) && cell_real(t, row, "first_nonfinite") == 0 &&
           cell_real(t, row, "factors_nonfinite") == 0;
}

/* Rows in f16 with one form of the norms: how many there are, how many have something that is not
 * finite, and how many have no correct digit in the output. */
typedef struct {
    int rows, nonfinite, lost;
    double vanished; /* the largest share of entries of the first product that are 0 */
    int64_t example; /* a row that is not finite, or -1 */
} f16_rows;

static f16_rows count_f16(const table *t, const char *form)
{
    const half_choice c = {.norm = "l1", .storage = "f16", .form = form};
    f16_rows found = {.example = -1};
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!is_chosen(t, row, &c))
            continue;
        bool finite = is_finite_row(t, row);
        found.rows++;
        found.nonfinite += !finite;
        found.lost += finite && !(cell_real(t, row, "digits") > 0);
        if (cell_is(t, row, "order", "tokens"))
            found.vanished = direct_worst(found.vanished, cell_real(t, row, "first_vanished"));
        if (!finite)
            found.example = row;
    }
    return found;
}

static void note_norms(const claim_run *run, const table *t, FILE *notes)
{
    static const char *const inputs[] = {"normal", "independent", "normal-x64", "dead-channel"};
    enum { INPUTS = sizeof inputs / sizeof *inputs };
    fprintf(notes,
            "Correct digits of the output in f16, d = 32. Weights are the entries of Q̂K̂ᵀ. The "
            "last column stores norms and ε = 10⁻¹² in f16; 0 digits: the output is 0 or not "
            "finite.\n\n| tokens | n | norms wide, channels "
            "first | norms wide, tokens first | weights that are 0 | norms in f16, channels first "
            "|\n|---|---|---|---|---|---|\n");
    for (int i = 0; i < INPUTS; i++)
        for (int64_t row = 0; row < table_rows(t); row++) {
            half_choice c = {inputs[i], "l1", "f16", "wide", "tokens", 0, run->seed};
            if (!is_chosen(t, row, &c))
                continue;
            c.n = cell_integer(t, row, "n");
            double tokens = cell_real(t, row, "digits"), zero = cell_real(t, row, "first_vanished");
            c.order = "channels";
            double channels = chosen_cell(t, &c, "digits");
            c.form = "stored";
            fprintf(notes, "| %s | %lld | %.1f | %.1f | %.1f %% | %.1f |\n", inputs[i],
                    (long long)c.n, channels, tokens, 100 * zero, chosen_cell(t, &c, "digits"));
        }
    note_inputs(notes);
    fprintf(notes, "Mixed precision, as by PyTorch's autocast, which takes norms in f32, is the "
                   "columns \"norms wide\".\n");
}

static void show_norms(verdict *v, const table *t, const small_norms *s, const f16_rows *wide)
{
    char text[5][32];
    const double shown[5] = {s->stored, s->wide, s->dead_stored, s->dead_wide, s->values[1]};
    for (int i = 0; i < 5; i++)
        format_number(shown[i], text[i]);
    if (wide->example >= 0)
        verdict_set(&v->counterexample, "norms wide, %s, n = %lld, %s first: not finite",
                    cell_text(t, wide->example, "input"),
                    (long long)cell_integer(t, wide->example, "n"),
                    cell_text(t, wide->example, "order"));
    else
        verdict_set(&v->counterexample,
                    "two tokens, one channel, Q = K = (32768, 32768), V = (1, 1): the norm 65536 "
                    "is infinite in f16, and Y is %s instead of 1/2 (%s with a wide norm). One "
                    "token, Q = K = (0): ε = 10⁻¹² is 0 in f16, and Y is %s instead of 0 (%s). One "
                    "token, two channels, Q = K = (1, 1), V = (40000): Y is %s instead of 80000",
                    text[0], text[1], text[2], text[3], text[4]);
}

int sima_judge_m04(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "half", 0);
    small_norms s;
    int code = judge_small_norms(run, &s);
    f16_rows wide = count_f16(t, "wide"), stored = count_f16(t, "stored");
    /* f16 holds these numbers without rounding. */
    bool good = s.wide == 0.5 && s.dead_wide == 0 && s.values[0] == 40000;
    double enlarged = largest_enlargement(MOST_TOKENS, MOST_WIDTH);
    /* with channels first, subnormal numbers add less than 2^-14 per channel; f16 rounds 65520 to
     * infinity */
    bool room = ROOM * enlarged + MOST_WIDTH * 0x1p-14 < 65520;
    bool safe = good && room && wide.nonfinite == 0;
    /* Every part of the condition is needed: each example that violates it fails. */
    bool shown = !(s.stored == 0.5) && !(s.dead_stored == 0) && !(s.values[1] == 80000);
    bool always = s.stored == 0.5 && s.dead_stored == 0 && s.values[1] == 80000 &&
                  stored.nonfinite + stored.lost == 0;
    note_norms(run, t, v->notes);
    v->kind = wide.rows == 0   ? VERDICT_NONE
              : safe && shown  ? VERDICT_HOLDS_IF
              : safe && always ? VERDICT_HOLDS
                               : VERDICT_FAILS;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(
            &v->condition,
            "norms and ε are kept and all sums taken in f32 or wider, and D max|V| is below f16's "
            "largest number, 65504, with room for rounding: at most %d, for N ≤ 2¹⁹ and D "
            "≤ 2¹³",
            ROOM);
    verdict_set(
        &v->measured,
        "norms wide: %d of %d outputs in f16 are not finite; norms in f16: %d of %d not finite, %d "
        "finite without a correct digit. Rounding enlarges D max|V| at most %.4g times for N = "
        "2¹⁹, D = 2¹³ (proof), %.4g times for N = 2¹⁴; a running sum of ones in f32 stops at %.9g. "
        "The price: up to %.0f %% of the weights are 0 in f16 (norms wide)",
        wide.nonfinite, wide.rows, stored.nonfinite, stored.rows, stored.lost, enlarged,
        largest_enlargement(1 << 14, MOST_WIDTH), (double)where_sums_stop(), 100 * wide.vanished);
    verdict_set(&v->bound, "|Q̂K̂ᵀ| ≤ D, |K̂ᵀV| ≤ max|V|, |Y| ≤ D max|V| but for rounding");
    if (v->kind != VERDICT_HOLDS)
        show_norms(v, t, &s, &wide);
    return code;
}

/* ---- M06 ---- */

/* One token of one channel, q = k = scale, v = 1: Y is the one entry of QK^T, or of Q^ K^^T. */
static int one_entry(const claim_run *run, atn_storage storage, atn_sima_norm norm, float scale,
                     double *entry)
{
    static const float value = 1;
    sima_narrow sima = {storage, {.norm = norm, .order = ATN_ORDER_TOKENS}};
    float y = -1;
    int code = sima_narrow_forward(run, &sima, 1, 1, &scale, &scale, &value, &y);
    *entry = (double)y;
    return code;
}

/* Whether the entry is scale^2 without norms and 1 with them, for the scales 1, 2^15, ... 2^60.
 * *in_the_way: the first scale for which it is not, or 0. */
static int entries_grow(const claim_run *run, float *in_the_way)
{
    *in_the_way = 0;
    for (int power = 0; power <= 60; power += 15) {
        double bare, normed;
        float scale = ldexpf(1, power);
        int code = one_entry(run, ATN_STORAGE_NATIVE, ATN_SIMA_NONE, scale, &bare);
        code = exit_worst(code, one_entry(run, ATN_STORAGE_NATIVE, ATN_SIMA_L1, scale, &normed));
        if (code != EXIT_PASS)
            return code;
        if (!(bare == ldexp(1, 2 * power) && normed == 1) && *in_the_way == 0)
            *in_the_way = scale;
    }
    return EXIT_PASS;
}

/* The largest |entry| of QK^T (or Q^ K^^T) for tokens 8 and 64 times as large, over that for the
 * tokens themselves, in f64. Scaling by powers of two is exact: 64 and 4096 without norms, 1 and 1
 * with them. Returns how many rows differ from that; *seen: how many there are. */
static int scaled_otherwise(const claim_run *run, const table *t, int *seen, FILE *notes)
{
    static const struct {
        const char *norm, *input;
        double growth;
    } scaled[] = {{"none", "normal-x8", 64},
                  {"none", "normal-x64", 4096},
                  {"l1", "normal-x8", 1},
                  {"l1", "normal-x64", 1}};
    int otherwise = 0;
    *seen = 0;
    fprintf(notes, "| norms | tokens | n | largest entry of the product of Q and Kᵀ | over that of "
                   "`normal` |\n|---|---|---|---|---|\n");
    for (int i = 0; i < 4; i++)
        for (int64_t row = 0; row < table_rows(t); row++) {
            half_choice c = {scaled[i].input, scaled[i].norm, "f64", "wide", "tokens", 0, 0};
            if (!is_chosen(t, row, &c))
                continue;
            c.input = "normal";
            c.n = cell_integer(t, row, "n");
            c.seed = (uint64_t)cell_integer(t, row, "seed");
            double largest = cell_real(t, row, "first_largest");
            double growth = largest / chosen_cell(t, &c, "first_largest");
            ++*seen;
            if (c.seed == run->seed || !(growth == scaled[i].growth))
                fprintf(notes, "| %s | %s | %lld | %.4g | %.10g |\n", scaled[i].norm,
                        scaled[i].input, (long long)c.n, largest, growth);
            otherwise += !(growth == scaled[i].growth);
        }
    return otherwise;
}

static const miniature_change m06_changes[] = {
    {"none", "as trained"}, {"no-norm", "without norms after training"}, {0}};

int sima_judge_m06(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "half", 0);
    const half_choice bare = {.norm = "none", .storage = "f16"};
    float in_the_way;
    double bare_f16, normed_f16;
    int seen, overflown = 0, rows = 0, code = entries_grow(run, &in_the_way);
    code = exit_worst(code, one_entry(run, ATN_STORAGE_F16, ATN_SIMA_NONE, 256, &bare_f16));
    code = exit_worst(code, one_entry(run, ATN_STORAGE_F16, ATN_SIMA_L1, 256, &normed_f16));
    char bare_text[32];
    format_number(bare_f16, bare_text);
    int otherwise = scaled_otherwise(run, t, &seen, v->notes);
    for (int64_t row = 0; row < table_rows(t); row++) {
        rows += is_chosen(t, row, &bare);
        overflown += is_chosen(t, row, &bare) && !is_finite_row(t, row);
    }
    v->kind = seen == 0                           ? VERDICT_NONE
              : otherwise == 0 && in_the_way == 0 ? VERDICT_HOLDS
                                                  : VERDICT_FAILS;
    char *miniature = miniature_accuracies(run, v, "sima", m06_changes);
    verdict_set(&v->measured,
                "one token, q = k = s: the entry is s² for s up to 2⁶⁰ in f32, with ℓ1 norms 1. In "
                "f16, s = 256: %s, with ℓ1 norms %g. Tokens 8 and 64 times as large: the largest "
                "entry is 64 and 4096 times as large without norms, 1 with them, in %d of %d rows. "
                "Without norms f16 overflows in %d of %d rows. %s",
                bare_text, normed_f16, seen - otherwise, seen, overflown, rows, miniature);
    free(miniature);
    verdict_set(&v->bound, "none for QKᵀ, D for Q̂K̂ᵀ (M01). Training is M13");
    if (v->kind == VERDICT_FAILS && in_the_way != 0)
        verdict_set(&v->counterexample, "one token, q = k = %g, v = 1: not the square, or not 1",
                    (double)in_the_way);
    else if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "a row of the table with another growth");
    return code;
}
