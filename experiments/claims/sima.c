/* SPDX-License-Identifier: BSD-3-Clause */
/* M01 - M08: SimA. */
#include <data.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims/claims.h"
#include "claims/direct.h"
#include "common/report.h"

/* ---- M01 ---- */

/* The attention matrix Q^ K^^T (n x n), as the operator's output for V = I. */
static int attention_matrix(const claim_run *run, int64_t n, int64_t d, const double *q,
                            const double *k, double *matrix)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F64);
    double *identity = must_allocate((size_t)(n * n), sizeof *identity);
    for (int64_t i = 0; i < n; i++)
        identity[i * n + i] = 1;
    int code = direct_forward(run, &desc, n, d, n, q, k, identity, matrix);
    free(identity);
    return code;
}

static double largest_entry(int64_t count, const double *matrix)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fabs(matrix[i]) <= largest ? largest : fabs(matrix[i]);
    return largest;
}

/* Tokens of d channels of which one is 1 and the others are `rest`, q = k. */
static int one_row(const claim_run *run, int64_t n, int64_t d, double rest, double *largest,
                   double *sum)
{
    double *q = must_allocate((size_t)(n * d), sizeof *q);
    double *matrix = must_allocate((size_t)(n * n), sizeof *matrix);
    for (int64_t i = 0; i < n * d; i++)
        q[i] = i < d ? 1 : rest;
    int code = attention_matrix(run, n, d, q, q, matrix);
    *largest = largest_entry(n * n, matrix);
    *sum = 0;
    for (int64_t i = 0; i < n * n; i++)
        *sum += fabs(matrix[i]);
    free(matrix);
    free(q);
    return code;
}

/* The entry of one token, two channels: the smallest case of a single row each. With an epsilon, as
 * published, a dead channel is 0. */
static int single_entry(const claim_run *run, const double q[2], const double k[2], double *entry)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F64);
    const double one = 1;
    desc.sima.epsilon = 1e-12;
    return direct_forward(run, &desc, 1, 2, 1, q, k, &one, entry);
}

static int judge_m01(const claim_run *run, verdict *v)
{
    enum { TOKENS = 49, WIDTH = 32 };
    static const double ones[] = {1, 1}, signs[] = {1, -1}, one_dead[] = {1, 0};
    double opposed, dead;
    int code = single_entry(run, ones, signs, &opposed);
    if (code == EXIT_PASS)
        code = single_entry(run, ones, one_dead, &dead);
    if (code != EXIT_PASS)
        return code;
    static const double rests[] = {0, 1e-3, 1e-2, 0.1, 1};
    const double rounding = 4 * (TOKENS + WIDTH) * 0x1p-53 * WIDTH;
    double most = 0, at_zero = 0, beside = 0, most_sum = 0;
    fprintf(v->notes, "| the other rows of Q and K | largest entry | sum of all absolute values "
                      "|\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        double largest, sum;
        code = one_row(run, TOKENS, WIDTH, rests[i], &largest, &sum);
        if (code != EXIT_PASS)
            return code;
        fprintf(v->notes, "| %g | %.6g | %.6g |\n", rests[i], largest, sum);
        most = largest <= most ? most : largest;
        most_sum = sum <= most_sum ? most_sum : sum;
        if (rests[i] == 0)
            at_zero = largest;
        else
            beside = largest <= beside ? beside : largest;
    }
    fprintf(v->notes, "\nOne row of Q = K is 1 in all %d channels, %d tokens.\n", WIDTH, TOKENS);
    bool bounded = most <= WIDTH + rounding && most_sum <= WIDTH + rounding * TOKENS;
    bool attained = fabs(at_zero - WIDTH) <= rounding && beside < WIDTH - rounding;
    /* what the two rows must be besides the only ones */
    bool enough = fabs(opposed) > 2 - rounding && fabs(dead) > 2 - rounding;
    v->kind = !bounded || !attained ? VERDICT_FAILS : enough ? VERDICT_HOLDS : VERDICT_HOLDS_IF;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "no channel of the two rows is zero, and q_c k_c has the same "
                                   "sign in every channel c");
    verdict_set(&v->measured,
                "largest entry %.10g with a single non-zero row, %.6g otherwise; D = 2, one token: "
                "q = (1, 1) has the entry %g with k = (1, −1) and %g with k = (1, 0)",
                at_zero, beside, opposed, dead);
    verdict_set(&v->bound, "D = %d", WIDTH);
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "an entry of %.17g with D = %d (table)", most, WIDTH);
    else
        verdict_set(&v->counterexample,
                    "D = 2, one token, q = (1, 1), k = (1, −1): its entry is %g, not ±2", opposed);
    return EXIT_PASS;
}

/* ---- SimA in a narrow type ---- */

/* One value channel of the operator in f32, what it stores rounded to `storage`. */
typedef struct {
    atn_storage storage;
    atn_sima_options options;
} narrow_sima;

/* y (n) of q, k (n x d) and v (n), which the storage must hold; not finite if anything is not.
 * Returns an exit code. */
static int narrow_forward(const claim_run *run, const narrow_sima *sima, int64_t n, int64_t d,
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

static void say_number(double x, char text[32])
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

/* One line of the table; what is null, or 0, is left open. */
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

/* Whole numbers whose columns have a power of two as their l1 norm: Q^ and K^ and all that follows
 * from them is held by f64 without rounding. */
enum { WHOLE_TOKENS = 8, WHOLE_WIDTH = 4, WHOLE_VALUES = 3 };
static const int64_t whole_norms[2] = {32, 64}; /* of Q and of K */

static void fill_whole(int side, double x[WHOLE_TOKENS * WHOLE_WIDTH])
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

/* The largest distance of either order from the exact Y, in f64. Products of whole numbers are
 * exact in any order, and so are divisions by a power of two. */
static int exact_orders(const claim_run *run, double *apart)
{
    double q[WHOLE_TOKENS * WHOLE_WIDTH], k[WHOLE_TOKENS * WHOLE_WIDTH];
    double v[WHOLE_TOKENS * WHOLE_VALUES], state[WHOLE_WIDTH * WHOLE_VALUES];
    double want[WHOLE_TOKENS * WHOLE_VALUES], y[WHOLE_TOKENS * WHOLE_VALUES];
    int code = EXIT_PASS;
    fill_whole(0, q);
    fill_whole(1, k);
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
 * tokens first, y[1] channels first. Q^ = K^ = (1, 2^-13) there, and the second token's weight for
 * itself, 2^-26, is 0. */
static int two_tokens(const claim_run *run, double y[2])
{
    static const float x[2] = {1, 0x1p-13f}, v[2] = {0, 8192};
    static const atn_order orders[2] = {ATN_ORDER_TOKENS, ATN_ORDER_CHANNELS};
    int code = EXIT_PASS;
    for (int i = 0; i < 2; i++) {
        float out[2] = {0, 0};
        narrow_sima sima = {ATN_STORAGE_F16, {.norm = ATN_SIMA_L1, .order = orders[i]}};
        code = exit_worst(code, narrow_forward(run, &sima, 2, 1, x, x, v, out));
        y[i] = (double)out[1];
    }
    return code;
}

static bool has_underflow(const table *t, int64_t row)
{
    return !(
        cell_real(t, row, "first_subnormal") == 0 && cell_real(t, row, "first_vanished") == 0 &&
        cell_real(t, row, "factors_subnormal") == 0 && cell_real(t, row, "factors_vanished") == 0);
}

/* How far the orders are apart in one row, in units of the rounding of one of them. */
static double order_ratio(const table *t, int64_t row)
{
    return cell_missing(t, row, "order_difference")
               ? NAN
               : cell_real(t, row, "order_difference") /
                     (cell_real(t, row, "kappa") * cell_real(t, row, "rounding"));
}

/* The largest ratio of rows without underflow; -1 if there are none. */
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
}

/* Correct digits of one value channel in f16, channels first, d = 32: tokens N(0, 1), the values
 * either drawn, too, or the first channel of K. */
static int digits_left(const claim_run *run, int64_t n, bool own_values, double *digits)
{
    enum { WIDTH = 32 };
    static const narrow_sima sima = {ATN_STORAGE_F16,
                                     {.norm = ATN_SIMA_L1, .order = ATN_ORDER_CHANNELS}};
    double *drawn = must_allocate((size_t)((2 * WIDTH + 1) * n), sizeof *drawn);
    float *q = must_allocate((size_t)((2 * WIDTH + 2) * n), sizeof *q), *k = q + WIDTH * n;
    float *v = k + WIDTH * n, *y = v + n;
    long double norms[2][WIDTH] = {{0}}, state[WIDTH] = {0}, error = 0, size = 0;
    data_normal(run->seed, (2 * WIDTH + 1) * n, drawn);
    for (int64_t i = 0; i < (2 * WIDTH + 1) * n; i++)
        q[i] = (float)drawn[i];
    for (int64_t i = 0; !own_values && i < n; i++)
        v[i] = k[i * WIDTH];
    atn_storage_round(ATN_STORAGE_F16, (2 * WIDTH + 1) * n, q);
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < WIDTH; c++) {
            norms[0][c] += fabsl((long double)q[i * WIDTH + c]);
            norms[1][c] += fabsl((long double)k[i * WIDTH + c]);
            state[c] += (long double)k[i * WIDTH + c] * (long double)v[i];
        }
    int code = narrow_forward(run, &sima, n, WIDTH, q, k, v, y);
    for (int64_t i = 0; i < n; i++) {
        long double want = 0;
        for (int c = 0; c < WIDTH; c++)
            want += (long double)q[i * WIDTH + c] / norms[0][c] * state[c] / norms[1][c];
        error += (y[i] - want) * (y[i] - want);
        size += want * want;
    }
    *digits = (double)-log10l(sqrtl(error / size));
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
        double following;
        code = exit_worst(code, digits_left(run, digit_sizes[i], false, &following));
        code = exit_worst(code, digits_left(run, digit_sizes[i], true, &independent[i]));
        fprintf(notes, "| %" PRId64 " | %.1f | %.1f |\n", digit_sizes[i], following,
                independent[i]);
    }
    return code;
}

/* Y of so many tokens of one channel, Q = K = V = 1, in f16, channels first; exactly 1/N. */
static int equal_tokens(const claim_run *run, int64_t n, double *y)
{
    const narrow_sima sima = {ATN_STORAGE_F16, {.norm = ATN_SIMA_L1, .order = ATN_ORDER_CHANNELS}};
    float *ones = must_allocate((size_t)n, sizeof *ones);
    float *out = must_allocate((size_t)n, sizeof *out);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1;
    int code = narrow_forward(run, &sima, n, 1, ones, ones, ones, out);
    *y = (double)out[0];
    free(out);
    free(ones);
    return code;
}

/* What the smallest example says, or which number is in the way of the verdict. */
static void show_orders(verdict *v, const table *t, double exact, double ratio, int64_t worst,
                        const double y[2])
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
                    "two tokens of one channel, Q = K = (1, 2⁻¹³), V = (0, 8192), in f16: the "
                    "second output is %g tokens first and %g channels first, exactly "
                    "2⁻¹³/(1 + 2⁻¹³)² = %.6g: its weight for itself, 2⁻²⁶, is 0 in f16",
                    y[0], y[1], want);
}

static int judge_m02(const claim_run *run, verdict *v)
{
    /* Either order is within its rounding, so both are within twice that of each other. */
    const double most = 2, narrow = 4 * atn_storage_roundoff(ATN_STORAGE_F16);
    const table *t = evidence_table(run, "half", 0);
    enum { MILLION = 1000000 };
    double exact, y[2], independent[DIGIT_SIZES], million;
    int64_t worst = -1;
    int code = exact_orders(run, &exact);
    code = exit_worst(code, two_tokens(run, y));
    code = exit_worst(code, equal_tokens(run, MILLION, &million));
    double ratio = largest_order_ratio(t, &worst), gap = fabs(y[0] - y[1]);
    bool same = exact == 0 && ratio >= 0 && ratio <= most;
    bool apart = gap > narrow * fabs(y[1]), together = gap <= narrow * fabs(y[1]);
    note_orders(run, t, v->notes);
    code = exit_worst(code, note_digits(run, v->notes, independent));
    v->kind = ratio < 0          ? VERDICT_NONE
              : same && apart    ? VERDICT_HOLDS_IF
              : same && together ? VERDICT_HOLDS
                                 : VERDICT_FAILS;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "arithmetic is exact; with rounding, to its accuracy, if no "
                                   "entry of Q̂, K̂ and of the product formed first underflows");
    verdict_set(&v->measured,
                "whole numbers over powers of two, both orders in f64: off the exact Y by %g. "
                "Without underflow: apart by at most %.2g of a rounding bound. "
                "f16, two tokens: apart by %.3g %% of the output. f16, channels first: %.1f digits "
                "of independent tokens for N = %" PRId64 ", %.1f for %" PRId64 "; Q = K = V = 1, N "
                "= 10⁶: %.5g for 10⁻⁶",
                exact, ratio, 100 * gap / fabs(y[1]), independent[1], digit_sizes[1],
                independent[2], digit_sizes[2], million);
    verdict_set(&v->bound, "0; %g, the rounding of both orders; %.2g, four roundings of f16", most,
                narrow);
    if (v->kind != VERDICT_HOLDS)
        show_orders(v, t, exact, ratio, worst, y);
    return code;
}

/* ---- M03 ---- */

/* Exact flops of the heads, their norms included. */
static int order_flops(const claim_run *run, atn_order order, int64_t heads, int64_t n, int64_t d,
                       double *flops)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F32);
    desc.sima.order = order;
    atn_attention_shape shape = {.batch = 1, .heads = heads, .tokens = n, .dim = d, .value_dim = d};
    atn_cost cost;
    atn_status status = atn_attention_cost(run->context, &desc, &shape, &cost);
    if (status < 0) {
        report_error("M03: %s", atn_status_message(status));
        return EXIT_ENVIRONMENT;
    }
    *flops = cost.flops;
    return EXIT_PASS;
}

/* flops[0] tokens first, flops[1] channels first. */
static int both_flops(const claim_run *run, int64_t heads, int64_t n, int64_t d, double flops[2])
{
    int code = order_flops(run, ATN_ORDER_TOKENS, heads, n, d, &flops[0]);
    return exit_worst(code, order_flops(run, ATN_ORDER_CHANNELS, heads, n, d, &flops[1]));
}

/* The n at which both orders take as many flops, tokens first fewer below it; -1 if there is none
 * up to twice the width of all heads. */
static int find_crossing(const claim_run *run, int64_t heads, int64_t d, int64_t *crossing)
{
    *crossing = -1;
    for (int64_t n = 1; n <= 2 * heads * d; n++) {
        double flops[2];
        int code = both_flops(run, heads, n, d, flops);
        if (code != EXIT_PASS)
            return code;
        if (flops[0] < flops[1])
            continue;
        *crossing = flops[0] == flops[1] ? n : -1;
        return EXIT_PASS;
    }
    return EXIT_PASS;
}

/* The smallest D and then N < D of two heads for which tokens first, the paper's choice, takes more
 * flops than channels first; n = 0 if there are none up to D = 16. */
static int wrong_choice(const claim_run *run, int64_t *n, int64_t *width, double flops[2])
{
    for (*width = 2; *width <= 16; *width += 2)
        for (*n = 1; *n < *width; ++*n) {
            int code = both_flops(run, 2, *n, *width / 2, flops);
            if (code != EXIT_PASS || flops[0] > flops[1])
                return code;
        }
    *n = 0;
    return EXIT_PASS;
}

/* Whether the second difference is positive in the one order and 0 in the other: over the tokens
 * for `in_tokens`, over the channels else. */
static int is_quadratic(const claim_run *run, bool in_tokens, bool *quadratic)
{
    enum { STEP = 64 };
    double flops[3][2];
    for (int i = 0; i < 3; i++) {
        int64_t size = (i + 1) * STEP;
        int code = both_flops(run, 2, in_tokens ? size : STEP, in_tokens ? STEP : size, flops[i]);
        if (code != EXIT_PASS)
            return code;
    }
    double tokens = flops[2][0] - 2 * flops[1][0] + flops[0][0];
    double channels = flops[2][1] - 2 * flops[1][1] + flops[0][1];
    *quadratic = in_tokens ? tokens > 0 && channels == 0 : tokens == 0 && channels > 0;
    return EXIT_PASS;
}

/* How many of the sweep's crossings are at D with one head, at D with more, at d_h = D/H. */
typedef struct {
    int single, many, at_width, at_width_many, at_head;
} crossings;

static int count_crossings(const claim_run *run, crossings *found, FILE *notes)
{
    static const struct {
        int64_t heads, d;
    } shapes[] = {{1, 32}, {1, 64}, {2, 32}, {4, 32}, {6, 64}, {12, 32}};
    *found = (crossings){0};
    fprintf(notes, "Exact counts:\n\n| H | d_h = D/H | D | as many flops at N = |\n"
                   "|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int64_t heads = shapes[i].heads, d = shapes[i].d, at;
        int code = find_crossing(run, heads, d, &at);
        if (code != EXIT_PASS)
            return code;
        fprintf(notes, "| %lld | %lld | %lld | %lld |\n", (long long)heads, (long long)d,
                (long long)(heads * d), (long long)at);
        found->single += heads == 1;
        found->many += heads > 1;
        found->at_width += heads == 1 && at == d;
        found->at_width_many += heads > 1 && at == heads * d;
        found->at_head += at == d;
    }
    return EXIT_PASS;
}

/* Where times cross, beside. */
static void note_times(const table *fits, FILE *notes)
{
    fprintf(notes, "\nMeasured (this library, f32, one thread, one head):\n\n");
    for (int64_t row = 0; row < table_rows(fits); row++)
        if (cell_is(fits, row, "statement", "M03") && cell_missing(fits, row, "crossover_n"))
            fprintf(notes, "- d = %lld: times do not cross once between n = %lld and %lld\n",
                    (long long)cell_integer(fits, row, "d"),
                    (long long)cell_integer(fits, row, "from"),
                    (long long)cell_integer(fits, row, "to"));
        else if (cell_is(fits, row, "statement", "M03"))
            fprintf(notes, "- d = %lld: times cross at n = %.0f\n",
                    (long long)cell_integer(fits, row, "d"), cell_real(fits, row, "crossover_n"));
}

static int judge_m03(const claim_run *run, verdict *v)
{
    crossings found;
    bool in_tokens = false, in_channels = false;
    int64_t n = 0, width = 0;
    double flops[2] = {NAN, NAN};
    int code = count_crossings(run, &found, v->notes);
    if (code == EXIT_PASS)
        code =
            exit_worst(is_quadratic(run, true, &in_tokens), is_quadratic(run, false, &in_channels));
    if (code == EXIT_PASS)
        code = wrong_choice(run, &n, &width, flops);
    if (code != EXIT_PASS)
        return code;
    note_times(evidence_table(run, "time", 1), v->notes);
    bool one_head = in_tokens && in_channels && found.at_width == found.single;
    bool per_head = found.at_head == found.single + found.many;
    v->kind = one_head && found.at_width_many == found.many && n == 0 ? VERDICT_HOLDS
              : one_head && per_head && n > 0                         ? VERDICT_HOLDS_IF
                                                                      : VERDICT_FAILS;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "there is one head, or D is read as the width d_h of a head");
    verdict_set(&v->measured,
                "tokens first is %squadratic in N and linear in D, channels first %sthe reverse; "
                "flops cross at N = D in %d of %d shapes of one head and %d of %d of more, at "
                "N = d_h in %d of %d",
                in_tokens ? "" : "NOT ", in_channels ? "" : "NOT ", found.at_width, found.single,
                found.at_width_many, found.many, found.at_head, found.single + found.many);
    verdict_set(&v->bound, "exact counts");
    if (n > 0)
        verdict_set(&v->counterexample,
                    "H = 2, D = %lld (d_h = %lld), N = %lld: N < D, but tokens first takes %g "
                    "flops and channels first %g, norms included in both",
                    (long long)width, (long long)width / 2, (long long)n, flops[0], flops[1]);
    else if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "a shape in the table");
    return EXIT_PASS;
}

/* ---- M04 ---- */

/* What the judge computes itself, in f16, exact answers 1/2, 0 and D v. */
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
    const narrow_sima normed = {ATN_STORAGE_F16, {.norm = ATN_SIMA_L1, .epsilon = 1e-12}};
    const narrow_sima factors = {ATN_STORAGE_F16, {.norm = ATN_SIMA_NONE}};
    const narrow_sima rounded = {ATN_STORAGE_F16,
                                 {.norm = ATN_SIMA_L1, .epsilon = (double)in_f16(epsilon)}};
    float divided[2] = {in_f16(large[0] / norm), in_f16(large[1] / norm)}, y[2] = {-1, -1};
    int code = narrow_forward(run, &normed, 2, 1, large, large, ones, y);
    s->wide = (double)y[0];
    code = exit_worst(code, narrow_forward(run, &factors, 2, 1, divided, divided, ones, y));
    s->stored = (double)y[0];
    code = exit_worst(code, narrow_forward(run, &normed, 1, 1, &zero, &zero, &one, y));
    s->dead_wide = (double)y[0];
    code = exit_worst(code, narrow_forward(run, &rounded, 1, 1, &zero, &zero, &one, y));
    s->dead_stored = (double)y[0];
    for (int i = 0; i < 2; i++) {
        code = exit_worst(code, narrow_forward(run, &normed, 1, 2, ones, ones, &values[i], y));
        s->values[i] = (double)y[0];
    }
    return code;
}

/* Whether all is finite in a row. */
static bool is_finite_row(const table *t, int64_t row)
{
    return cell_is(t, row, "outcome", text_ok) && cell_real(t, row, "first_nonfinite") == 0 &&
           cell_real(t, row, "factors_nonfinite") == 0;
}

/* Rows in f16 with norms of one form, and of them: where something is not finite, and where the
 * output has no correct digit. */
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
    static const char *const inputs[] = {"normal", "normal-x64", "dead-channel"};
    fprintf(notes,
            "Correct digits of the output in f16, d = 32. Weights are the entries of Q̂K̂ᵀ. The "
            "last column stores norms and ε = 10⁻¹² in f16; 0 digits: the output is 0 or not "
            "finite.\n\n| tokens | n | norms wide, channels "
            "first | norms wide, tokens first | weights that are 0 | norms in f16, channels first "
            "|\n|---|---|---|---|---|---|\n");
    for (int i = 0; i < 3; i++)
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
}

static void show_norms(verdict *v, const table *t, const small_norms *s, const f16_rows *wide)
{
    char text[5][32];
    const double shown[5] = {s->stored, s->wide, s->dead_stored, s->dead_wide, s->values[1]};
    for (int i = 0; i < 5; i++)
        say_number(shown[i], text[i]);
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

static int judge_m04(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "half", 0);
    small_norms s;
    int code = judge_small_norms(run, &s);
    f16_rows wide = count_f16(t, "wide"), stored = count_f16(t, "stored");
    /* Numbers that f16 holds: no rounding. */
    bool good = s.wide == 0.5 && s.dead_wide == 0 && s.values[0] == 40000;
    bool safe = good && wide.nonfinite == 0;
    /* Both sides of every part of the condition. */
    bool shown = !(s.stored == 0.5) && !(s.dead_stored == 0) && !(s.values[1] == 80000);
    bool always = s.stored == 0.5 && s.dead_stored == 0 && s.values[1] == 80000 &&
                  stored.nonfinite + stored.lost == 0;
    note_norms(run, t, v->notes);
    v->kind = wide.rows == 0   ? VERDICT_NONE
              : safe && shown  ? VERDICT_HOLDS_IF
              : safe && always ? VERDICT_HOLDS
                               : VERDICT_FAILS;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition,
                    "norms and ε are summed and kept in f32 or wider, and D max|V| is "
                    "below f16's largest number, 65504, with room for rounding");
    verdict_set(&v->measured,
                "norms wide: %d of %d outputs in f16 are not finite; norms in f16: %d of %d not "
                "finite, %d finite without a correct digit. The price: up to %.0f %% of the "
                "weights are 0 in f16 (norms wide)",
                wide.nonfinite, wide.rows, stored.nonfinite, stored.rows, stored.lost,
                100 * wide.vanished);
    verdict_set(&v->bound, "|Q̂K̂ᵀ| ≤ D, |K̂ᵀV| ≤ max|V|, |Y| ≤ D max|V|");
    if (v->kind != VERDICT_HOLDS)
        show_norms(v, t, &s, &wide);
    return code;
}

/* ---- M05 ---- */

/* What a pair of cost/time says about a share of A's time, in A's own: 1 - B/A, or B/A for exps. */
typedef struct {
    int points;
    double first, last; /* by the swept size, ascending */
    double least, most;
} time_shares;

static double share_of(double ratio, bool exps)
{
    return exps ? 1 / ratio : 1 - 1 / ratio;
}

/* Rows of one operator A against SimA or its own exps, in the order of the table: n or d rising. */
static time_shares collect_shares(const table *t, const char *a, bool exps, FILE *notes)
{
    time_shares found = {.least = INFINITY, .most = -INFINITY};
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!cell_is(t, row, "statement", "M05") || !cell_is(t, row, "a", a) ||
            cell_is(t, row, "b_work", "exps") != exps ||
            !isfinite(cell_real(t, row, "ratio_median")))
            continue;
        double share = share_of(cell_real(t, row, "ratio_median"), exps);
        double ends[2] = {share_of(cell_real(t, row, "ratio_min"), exps),
                          share_of(cell_real(t, row, "ratio_max"), exps)};
        fprintf(notes, "| %s | %lld | %lld | %s | %.1f %% | %.1f to %.1f %% |\n", a,
                (long long)cell_integer(t, row, "n"), (long long)cell_integer(t, row, "d"),
                exps ? "its exps alone" : "all that SimA does not do", 100 * share,
                100 * fmin(ends[0], ends[1]), 100 * fmax(ends[0], ends[1]));
        found.first = found.points++ == 0 ? share : found.first;
        found.last = share;
        found.least = fmin(found.least, fmin(ends[0], ends[1]));
        found.most = fmax(found.most, fmax(ends[0], ends[1]));
    }
    return found;
}

static int judge_m05(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "time", 0);
    fprintf(v->notes, "Shares of the operator's time, f32, one thread, with the spread over "
                      "repetitions. SimA multiplies in the same order: tokens first beside "
                      "softmax, channels first beside XCA.\n\n"
                      "| operator | n | d | what | share | spread |\n|---|---|---|---|---|---|\n");
    time_shares softmax = collect_shares(t, "softmax", false, v->notes);
    time_shares exps = collect_shares(t, "softmax", true, v->notes);
    time_shares xca = collect_shares(t, "xca", false, v->notes);
    time_shares xca_exps = collect_shares(t, "xca", true, v->notes);
    bool all = softmax.points && exps.points && xca.points && xca_exps.points;
    v->kind = all ? VERDICT_OBSERVED : VERDICT_NOT_TESTABLE;
    if (!all) {
        verdict_set(&v->measured, "no finite times");
        verdict_set(&v->bound, "it would need a clock");
        return EXIT_PASS;
    }
    verdict_set(&v->measured,
                "what SimA leaves out takes %.0f %% of softmax attention's time at the first "
                "resolution and %.0f %% at the last, the exps by themselves %.0f and %.0f %%; of "
                "XCA's time %.0f %% at the first width and %.0f %% at the last, the exps %.0f and "
                "%.0f %%",
                100 * softmax.first, 100 * softmax.last, 100 * exps.first, 100 * exps.last,
                100 * xca.first, 100 * xca.last, 100 * xca_exps.first, 100 * xca_exps.last);
    verdict_set(
        &v->bound,
        "printed: networks 58 %% and 22 %% slower, which is 37 and 18 %% of their own time, on a "
        "GPU, at 9216 tokens and 8192 dimensions, which are not reached here. Here operators "
        "alone, on one "
        "thread of this CPU. Spread of what SimA leaves out: softmax %.0f to %.0f %%, XCA "
        "%.0f to %.0f %%",
        100 * softmax.least, 100 * softmax.most, 100 * xca.least, 100 * xca.most);
    return EXIT_PASS;
}

/* ---- M06 ---- */

/* One token of one channel, q = k = scale, v = 1: Y is the one entry of QK^T, or of Q^ K^^T. */
static int one_entry(const claim_run *run, atn_storage storage, atn_sima_norm norm, float scale,
                     double *entry)
{
    static const float value = 1;
    narrow_sima sima = {storage, {.norm = norm, .order = ATN_ORDER_TOKENS}};
    float y = -1;
    int code = narrow_forward(run, &sima, 1, 1, &scale, &scale, &value, &y);
    *entry = (double)y;
    return code;
}

/* Whether the entry is scale^2 without norms and 1 with them, for scales 1, 2^15, ... 2^60. The
 * scale that is first in the way, or 0. */
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

/* The largest |entry| of QK^T (or Q^ K^^T) for tokens 8 and 64 times as large, over that of the
 * tokens themselves, in f64: powers of two, so 64, 4096 and 1, 1 without any rounding. How many
 * rows say otherwise; the rows seen in *seen. */
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

static int judge_m06(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "half", 0);
    const half_choice bare = {.norm = "none", .storage = "f16"};
    float in_the_way;
    double bare_f16, normed_f16;
    int seen, overflown = 0, rows = 0, code = entries_grow(run, &in_the_way);
    code = exit_worst(code, one_entry(run, ATN_STORAGE_F16, ATN_SIMA_NONE, 256, &bare_f16));
    code = exit_worst(code, one_entry(run, ATN_STORAGE_F16, ATN_SIMA_L1, 256, &normed_f16));
    char bare_text[32];
    say_number(bare_f16, bare_text);
    int otherwise = scaled_otherwise(run, t, &seen, v->notes);
    for (int64_t row = 0; row < table_rows(t); row++) {
        rows += is_chosen(t, row, &bare);
        overflown += is_chosen(t, row, &bare) && !is_finite_row(t, row);
    }
    v->kind = seen == 0                           ? VERDICT_NONE
              : otherwise == 0 && in_the_way == 0 ? VERDICT_HOLDS
                                                  : VERDICT_FAILS;
    verdict_set(&v->measured,
                "one token, q = k = s: the entry is s² for s up to 2⁶⁰ in f32, with ℓ1 norms 1. In "
                "f16, s = 256: %s, with ℓ1 norms %g. Tokens 8 and 64 times as large: other than "
                "64 and 4096 times in %d of %d rows. Without norms f16 overflows in %d of %d rows",
                bare_text, normed_f16, otherwise, seen, overflown, rows);
    verdict_set(&v->bound, "none for QKᵀ, D for Q̂K̂ᵀ (M01). Only the range is judged: that "
                           "training "
                           "ends in NaN would need training");
    if (v->kind == VERDICT_FAILS && in_the_way != 0)
        verdict_set(&v->counterexample, "one token, q = k = %g, v = 1: not the square, or not 1",
                    (double)in_the_way);
    else if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "a row of the table with another growth");
    return code;
}

/* ---- M07 ---- */

static int judge_m07(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "maps", 2);
    double least = INFINITY, most = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!cell_is(t, row, "operator", "sima") || cell_is(t, row, "kind", "row"))
            continue;
        double ratio = cell_real(t, row, "largest") / cell_real(t, row, "least");
        least = fmin(least, ratio);
        most = fmax(most, ratio);
        fprintf(v->notes, "- %s, %s: norms from %.3g to %.3g\n", cell_text(t, row, "photo"),
                cell_text(t, row, "kind"), cell_real(t, row, "least"),
                cell_real(t, row, "largest"));
    }
    fprintf(v->notes, "\nThe maps are in the plot. LayerNorm has given all tokens the same norm "
                      "before; what differs is how unusual a token's channels are.\n");
    v->kind = most > 0 ? VERDICT_OBSERVED : VERDICT_NOT_TESTABLE;
    verdict_set(&v->measured,
                "largest over least token norm: %.2g to %.2g, on tokens that are no "
                "trained features",
                least, most);
    verdict_set(&v->bound, "1 is a flat map. Whether the norms of a trained network mark what "
                           "matters would need that network");
    return EXIT_PASS;
}

/* ---- M08 ---- */

/* Rows of Table 1 that the statement is about, and what the paper charges them with. */
static bool is_counted(const table *t, int64_t row, const char *operator)
{
    return cell_is(t, row, "statement", "M08") && cell_is(t, row, "operator", operator) &&
           cell_is(t, row, "quantity", "exps");
}

/* Whether printed = counted in every row of an operator that reads D as a head's width. */
static bool counts_agree(const table *t, const char *operator)
{
    bool any = false;
    for (int64_t row = 0; row < table_rows(t); row++)
        if (is_counted(t, row, operator) && cell_boolean(t, row, "exact")) {
            any = true;
            if (!(cell_real(t, row, "printed") == cell_real(t, row, "counted")))
                return false;
        }
    return any;
}

static int judge_m08(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "counts", 1);
    double largest = 0;
    int64_t found = -1;
    fprintf(v->notes, "| operator | printed | n | m | D | H | printed exps | counted | ratio |\n"
                      "|---|---|---|---|---|---|---|---|---|\n");
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!cell_is(t, row, "statement", "M08") || cell_integer(t, row, "n") != 784 ||
            cell_integer(t, row, "heads") != 12 || !cell_is(t, row, "quantity", "exps"))
            continue;
        fprintf(v->notes, "| %s | %s | 784 | %s | %lld | 12 | %.9g | %.9g | %.3g |\n",
                cell_text(t, row, "operator"), cell_text(t, row, "formula"),
                cell_missing(t, row, "m") ? "" : "49", (long long)cell_integer(t, row, "d"),
                cell_real(t, row, "printed"), cell_real(t, row, "counted"),
                cell_real(t, row, "ratio"));
        if (is_counted(t, row, "soft") && cell_real(t, row, "ratio") > largest) {
            largest = cell_real(t, row, "ratio");
            found = row;
        }
    }
    bool others = counts_agree(t, "softmax") && counts_agree(t, "xca") && counts_agree(t, "sima");
    bool charged = found >= 0 && largest >= 1;
    v->kind = others && charged ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "softmax HN², XCA HD² (D of a head) and SimA 0 %s; SOFT evaluates %.3g of the HN² "
                "it is charged with",
                others ? "agree to the unit" : "DISAGREE", largest);
    verdict_set(&v->bound, "1");
    if (v->kind == VERDICT_FAILS && found >= 0)
        verdict_set(&v->counterexample, "SOFT, n = 784, m = 49, 12 heads: %.9g exps, printed %.9g",
                    cell_real(t, found, "counted"), cell_real(t, found, "printed"));
    else if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "the table");
    return EXIT_PASS;
}

const claim sima_claims[] = {
    {
        .id = "M01",
        .source = "SimA § 2.2",
        .statement = "The attention values are bounded between −D and D. The extremes happen when "
                     "only a single row of Q and a single row of K are nonzero.",
        .method = "The attention matrix of 49 tokens in 32 channels, one of them 1 everywhere, the "
                  "others 0, 0.001, ... 1; one token of two channels with a zero, and with two "
                  "signs.",
        .corrected = "|entries| ≤ D. An entry is ±D if and only if Q and K have a single non-zero "
                     "row each, without a zero channel, and q_c k_c has the same sign in every "
                     "channel. Sharper: the absolute values of all N² entries sum to at most D, so "
                     "their mean is at most D/N².",
        .proof =
            "Σ_i |q̂_ic| ≤ 1 in every channel c (1 without ε; 0 in a zero channel, taken as 0), "
            "and the same for k̂. So "
            "Σ_ij |Σ_c q̂_ic k̂_jc| ≤ Σ_c Σ_i |q̂_ic| Σ_j |k̂_jc| = D. An entry is ±D if "
            "and only if |q̂_ic| = |k̂_jc| = 1 for all c, which leaves 0 for all other rows, "
            "and the D products ±1 have one sign; for the only non-zero row, |q̂_ic| is 1 "
            "where q_ic ≠ 0, and 0 elsewhere.",
        .judge = judge_m01,
    },
    {
        .id = "M02",
        .source = "SimA § 1, 2.2",
        .statement = "Due to the associative property of multiplication, there are two possible "
                     "orderings at the test time, (Q̂K̂ᵀ)V and Q̂(K̂ᵀV). One is chosen "
                     "dynamically, "
                     "without affecting the training process.",
        .method =
            "Exactly: 8 tokens of whole numbers whose columns have ℓ1 norms 32 and 64, both orders "
            "in f64 against whole-number arithmetic. Rounded: random tokens and photographs, "
            "both orders in f64, f32, bf16, f16, with wide norms. The smallest example in "
            "f16 by the library.",
        .corrected =
            "As long as nothing underflows or overflows the orders agree to the accuracy of the "
            "arithmetic, relative to |Q̂||K̂|ᵀ|V|. In f64, f32 and bf16 only extreme tokens "
            "underflow; in f16 many tokens are enough, in either order. |q̂_ic| and |k̂_jc| "
            "average 1/N in channels that are not zero, below f16's smallest normal number for N "
            "> 2¹⁴; for N ≥ 2²⁵ equal tokens they are 0. Tokens first, moreover, entries of "
            "Q̂K̂ᵀ average at most D/N² in size (M01), and those of 2⁻²⁵ or less in size are 0. "
            "How many digits are left before depends on the tokens: more where V follows K, so "
            "that K̂ᵀV is of the size of V, fewer where they are independent.",
        .proof = "Multiplication of matrices is associative. If every rounding is a factor 1 + δ, "
                 "|δ| ≤ u, either order is within c u |Q̂||K̂|ᵀ|V| of the exact Y, c depending "
                 "on N "
                 "and D alone; underflow is no such factor. Σ_i |q̂_ic| = 1 over N tokens; f16's "
                 "smallest normal number is 2⁻¹⁴, and it rounds 2⁻²⁵ to 0.",
        .evidence = {"half"},
        .judge = judge_m02,
    },
    {
        .id = "M03",
        .source = "SimA § 1, 2.2, 5",
        .statement = "Depending on the ordering, the computation is quadratic in the number of "
                     "tokens, N, or that of channels, D: O(DN²) or O(D²N). The ordering is decided "
                     "by comparing N and D.",
        .method = "Exact counts of both orders: crossing sought for every N up to 2D, for six "
                  "shapes of 1 to 12 heads; second differences over N and over D; the smallest "
                  "shape of two heads in which comparing N and D goes wrong. Measured times beside "
                  "them.",
        .corrected =
            "With H heads of d_h = D/H channels the orders cost 4HN²d_h and 4HNd_h² flops: "
            "they cross at N = d_h, not at N = D.",
        .proof = "Tokens first, a head takes 2N²d_h for Q̂K̂ᵀ and as many for the product with V; "
                 "channels first, 2Nd_h² twice. The quotient is N/d_h, whatever H.",
        .evidence = {"time"},
        .judge = judge_m03,
    },
    {
        .id = "M04",
        .source = "SimA § 1",
        .statement = "Since we normalize the vectors before multiplying, our method is numerically "
                     "more stable, so we use half-precision floating point without overflowing.",
        .method = "f16 emulated, norms wide or stored in f16: random tokens, 8 and 64 times as "
                  "large, with a dead channel, and photographs. The smallest examples by the "
                  "library.",
        .corrected =
            "Nothing overflows if norms and ε are kept in f32 or wider and D max|V| < 65504 "
            "with room for rounding (divide V by D if not). A norm stored in f16 is infinite "
            "once Σ|x| ≥ 65520, which takes its channel out of the output without a warning "
            "(all channels: Y = 0), and ε = 10⁻¹² is 0 in f16, which makes "
            "it NaN for a dead channel. The price is underflow: tokens first from N ≈ 2⁷√D on, "
            "in both orders from N ≈ 2¹⁴ on (M02).",
        .proof = "Σ_i |q̂_ic| ≤ 1 and Σ_j |k̂_jc| ≤ 1 in every channel. So |q̂_ic| ≤ 1, "
                 "|(Q̂K̂ᵀ)_ij| ≤ D, |(K̂ᵀV)_ce| ≤ max|V| and |Y_ie| ≤ D max|V|, attained by one "
                 "token "
                 "with all channels 1.",
        .evidence = {"half"},
        .judge = judge_m04,
    },
    {
        .id = "M05",
        .source = "SimA § 2.2, Fig. 1",
        .statement = "Softmax will be bottleneck when increasing the number of tokens in softmax "
                     "attention and the number of channels in XCA: at 1536 × 1536 pixels DeiT is "
                     "58 % slower than SimA, with 8192 dimensions XCiT 22 %, due to the overhead "
                     "of exp.",
        .method =
            "Times of softmax attention and SimA tokens first, of XCA and SimA channels "
            "first, taken side by side, and of nothing but as many exps by the operators' own "
            "loop: a head of 64 channels as N grows, 196 tokens as a head's width grows.",
        .corrected = "",
        .proof = "",
        .evidence = {"time"},
        .judge = judge_m05,
    },
    {
        .id = "M06",
        .source = "SimA § 4.6",
        .statement = "Without normalization, the range of QKᵀ can be from −∞ to +∞. (None of "
                     "several trials converged, as the training becomes unstable and results in a "
                     "frequent NaN loss.)",
        .method = "Entries of QKᵀ and Q̂K̂ᵀ for one token, and for random tokens 8 and 64 times as "
                  "large; f16 emulated beside f32 and f64.",
        .corrected = "",
        .proof = "(sQ)(tK)ᵀ = st QKᵀ for all s, t, of either sign: an entry that is not 0 takes "
                 "every value. ℓ1 norms make Q̂ and K̂ independent of |s| and |t|, and their "
                 "entries "
                 "at most D (M01).",
        .evidence = {"half"},
        .judge = judge_m06,
    },
    {
        .id = "M07",
        .source = "SimA § 4.7, Fig. 3",
        .statement =
            "We believe the magnitude of the tokens of Q̂ and K̂ can highlight the important "
            "regions of an image.",
        .method = "Token norms of a photograph's patches, as maps.",
        .corrected = "",
        .proof = "",
        .evidence = {"maps"},
        .judge = judge_m07,
    },
    {
        .id = "M08",
        .source = "SimA Tab. 1, 2",
        .statement = "exp operations of an attention block: HN² for softmax attention, HD² for "
                     "XCA, 0 for SimA, and HN² for SOFT.",
        .method = "Exact counts of the operators beside the printed formulas.",
        .corrected = "SOFT evaluates H(Nm + m²) exponentials with P kept, H(2Nm + m²) with P made "
                     "twice; with m fixed that is linear in N. The other three are right, with D "
                     "the width of a head.",
        .proof = "SOFT's exponentials are the entries of P (m × N) and A (m × m) of each head; no "
                 "N × N matrix is formed.",
        .evidence = {"counts"},
        .judge = judge_m08,
    },
    {0},
};
