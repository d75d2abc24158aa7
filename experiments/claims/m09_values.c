/* SPDX-License-Identifier: BSD-3-Clause */
/* M09 - M13: properties of SimA's attention values: they are comparable, have either sign, do not
 * depend on the order of the tokens, and can be scaled. */
#include <data.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "attention/magnitudes.h"
#include "claims/direct.h"
#include "claims/m01_sima.h"
#include "claims/miniature.h"
#include "common/report.h"

static const double roundoff = 0x1p-53;

/* ---- M09 ---- */

/* One channel of Q and K: the sum of all |q_i k_j| without norms; and of the channel's part q^_i
 * k^_j of the attention matrix, the sum of absolute values and the largest one. */
typedef struct {
    double bare, sum, largest;
} channel_share;

static int share_of_channel(const claim_run *run, int64_t n, const double *q, const double *k,
                            channel_share *share)
{
    double *matrix = must_allocate((size_t)(n * n), sizeof *matrix), sums[2] = {0, 0};
    int code = direct_attention_matrix(run, ATN_SIMA, n, 1, q, k, matrix);
    *share = (channel_share){0, 0, 0};
    for (int64_t i = 0; i < n * n; i++) {
        share->sum += fabs(matrix[i]);
        share->largest = direct_worst(share->largest, fabs(matrix[i]));
    }
    for (int64_t i = 0; i < n; i++) {
        sums[0] += fabs(q[i]);
        sums[1] += fabs(k[i]);
    }
    share->bare = sums[0] * sums[1];
    free(matrix);
    return code;
}

enum { CHANNELS = 4, SHARE_TOKENS = 49 };
static const char *const channel_names[CHANNELS] = {"normal", "normal, 1000 times as large",
                                                    "one token of 49", "all tokens equal"};

static void fill_channel(int channel, const double *normal, double x[SHARE_TOKENS])
{
    for (int64_t i = 0; i < SHARE_TOKENS; i++)
        x[i] = channel == 0   ? normal[i]
               : channel == 1 ? 1000 * normal[i]
               : channel == 2 ? i == 0
                              : 1;
}

/* The four channels of the table, and the ranges of their numbers. */
static int compare_channels(const claim_run *run, value_range *bare, value_range *sums,
                            value_range *largest, FILE *notes)
{
    double drawn[4 * SHARE_TOKENS], q[SHARE_TOKENS], k[SHARE_TOKENS];
    int code = EXIT_PASS;
    data_normal(run->seed, 4 * SHARE_TOKENS, drawn);
    *bare = *sums = *largest = range_empty;
    fprintf(notes, "| channel | Σ\\|q_i k_j\\| | Σ\\|q̂_i k̂_j\\| | largest \\|q̂_i k̂_j\\| "
                   "|\n|---|---|---|---|\n");
    for (int channel = 0; channel < CHANNELS; channel++) {
        channel_share share;
        const double *normal = drawn + (channel % 2) * 2 * SHARE_TOKENS;
        fill_channel(channel, normal, q);
        fill_channel(channel, normal + SHARE_TOKENS, k);
        code = exit_worst(code, share_of_channel(run, SHARE_TOKENS, q, k, &share));
        range_widen(bare, share.bare);
        range_widen(sums, share.sum);
        range_widen(largest, share.largest);
        fprintf(notes, "| %s | %.4g | %.12g | %.4g |\n", channel_names[channel], share.bare,
                share.sum, share.largest);
    }
    return code;
}

static int judge_m09(const claim_run *run, verdict *v)
{
    static const double alone[2] = {1, 0}, equal[2] = {1, 1};
    const double rounding =
        4 * SHARE_TOKENS * roundoff; /* two norms and a sum over N tokens each */
    value_range bare, sums, largest;
    channel_share first, second;
    char text[3][RANGE_TEXT];
    int code = compare_channels(run, &bare, &sums, &largest, v->notes);
    code = exit_worst(code, share_of_channel(run, 2, alone, alone, &first));
    code = exit_worst(code, share_of_channel(run, 2, equal, equal, &second));
    if (code != EXIT_PASS)
        return code;
    bool same = sums.least >= 1 - rounding && sums.most <= 1 + rounding &&
                fabs(first.sum - 1) <= rounding && fabs(second.sum - 1) <= rounding;
    bool more = sums.most - sums.least < bare.most - bare.least;
    v->kind = same && more ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "Σ|q̂_i k̂_j| of a channel over all pairs of tokens: %s, without norms %s; its "
                "largest |q̂_i k̂_j|: %s. Two tokens, channels (1, 0) and (1, 1) in Q and K: their "
                "parts of the first entry are %g and %g, without norms %g and %g",
                range_text(&sums, 10, text[0]), range_text(&bare, 3, text[1]),
                range_text(&largest, 3, text[2]), first.largest, second.largest,
                alone[0] * alone[0], equal[0] * equal[0]);
    verdict_set(&v->bound, "1 for the sum; 1/N² to 1 for the largest");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "a channel of the table");
    return EXIT_PASS;
}

/* ---- M10 ---- */

/* The first tokens of Q and K are the pair. */
typedef struct {
    int64_t n, d;
    double q[4], k[4];
} sign_example;

enum { NEGATIVE, NEGATIVE_OF_TWO, POSITIVE, OPPOSITE, SIGN_EXAMPLES };
static const sign_example sign_examples[SIGN_EXAMPLES] = {
    [NEGATIVE] = {1, 3, {2, 1, 1}, {2, -1, -1}},
    [NEGATIVE_OF_TWO] = {2, 2, {2, 1, 2, 0}, {2, -1, 2, 0}},
    [POSITIVE] = {1, 3, {2, 1, 1}, {-2, 1, 1}},
    [OPPOSITE] = {1, 1, {1}, {-1}},
};

typedef struct {
    double dot, angle, value; /* q.k, the angle in degrees, the attention value */
} sign_result;

static double dot_product(int64_t d, const double *q, const double *k)
{
    long double sum = 0;
    for (int64_t c = 0; c < d; c++)
        sum += (long double)q[c] * k[c];
    return (double)sum;
}

static int judge_sign(const claim_run *run, const sign_example *e, sign_result *r)
{
    double matrix[4];
    int code = direct_attention_matrix(run, ATN_SIMA, e->n, e->d, e->q, e->k, matrix);
    double cosine =
        dot_product(e->d, e->q, e->k) / (direct_norm(e->d, 1, e->q) * direct_norm(e->d, 1, e->k));
    *r = (sign_result){dot_product(e->d, e->q, e->k),
                       acos(fmax(-1, fmin(1, cosine))) * 180 / acos(-1), matrix[0]};
    return code;
}

/* Counts over random tokens: pairs whose value differs in sign from q.k and from q^.k^; and the
 * least weight of softmax attention. */
typedef struct {
    int64_t pairs, raw, normalised;
    double least_softmax;
} sign_counts;

/* For tokens N(0, 1) with the first channel of Q and K multiplied by `times`. */
static int count_signs(const claim_run *run, double times, sign_counts *found)
{
    enum { TOKENS = 49, WIDTH = 32 };
    double *q = must_allocate((size_t)2 * TOKENS * WIDTH, sizeof *q), *k = q + TOKENS * WIDTH;
    double *matrix = must_allocate((size_t)2 * TOKENS * TOKENS, sizeof *matrix);
    double *softmax = matrix + TOKENS * TOKENS;
    double raw[TOKENS * TOKENS];
    data_normal(run->seed, (int64_t)2 * TOKENS * WIDTH, q);
    for (int64_t i = 0; i < 2 * TOKENS; i++)
        q[i * WIDTH] *= times;
    int code = direct_attention_matrix(run, ATN_SIMA, TOKENS, WIDTH, q, k, matrix);
    code =
        exit_worst(code, direct_attention_matrix(run, ATN_SOFTMAX, TOKENS, WIDTH, q, k, softmax));
    for (int64_t i = 0; i < TOKENS * TOKENS; i++)
        raw[i] = dot_product(WIDTH, q + i / TOKENS * WIDTH, k + i % TOKENS * WIDTH);
    divide_by_norms(TOKENS, WIDTH, q);
    divide_by_norms(TOKENS, WIDTH, k);
    *found = (sign_counts){.least_softmax = INFINITY};
    for (int64_t i = 0; i < TOKENS * TOKENS; i++) {
        double own = dot_product(WIDTH, q + i / TOKENS * WIDTH, k + i % TOKENS * WIDTH);
        found->pairs++;
        found->raw += !(raw[i] * matrix[i] > 0);
        found->normalised += !(own * matrix[i] > 0) && fabs(own) > 64 * WIDTH * roundoff;
        found->least_softmax = isnan(softmax[i]) || softmax[i] < found->least_softmax
                                   ? softmax[i]
                                   : found->least_softmax;
    }
    free(matrix);
    free(q);
    return code;
}

static void note_signs(const sign_result *r, const sign_counts *even, const sign_counts *uneven,
                       FILE *notes)
{
    fprintf(notes,
            "The first three rows are counterexamples to it if it is read as: whenever the angle "
            "between q_i and k_j is large, and only then.\n\n"
            "| Q | K | q_1·k_1 | angle | value |\n|---|---|---|---|---|\n"
            "| (2, 1, 1) | (2, −1, −1) | %g | %.1f° | %g |\n"
            "| (2, 1), (2, 0) | (2, −1), (2, 0) | %g | %.1f° | %g |\n"
            "| (2, 1, 1) | (−2, 1, 1) | %g | %.1f° | %g |\n"
            "| (1) | (−1) | %g | %.1f° | %g |\n",
            r[NEGATIVE].dot, r[NEGATIVE].angle, r[NEGATIVE].value, r[NEGATIVE_OF_TWO].dot,
            r[NEGATIVE_OF_TWO].angle, r[NEGATIVE_OF_TWO].value, r[POSITIVE].dot, r[POSITIVE].angle,
            r[POSITIVE].value, r[OPPOSITE].dot, r[OPPOSITE].angle, r[OPPOSITE].value);
    fprintf(notes,
            "\n49 normal tokens in 32 channels, all channels alike and one of them 100 times as "
            "large: %" PRId64 " and %" PRId64 " of %" PRId64
            " attention values do not have the sign of q_i·k_j.\n",
            even->raw, uneven->raw, even->pairs);
}

static int judge_m10(const claim_run *run, verdict *v)
{
    sign_result r[SIGN_EXAMPLES];
    sign_counts even, uneven;
    int code = count_signs(run, 1, &even);
    code = exit_worst(code, count_signs(run, 100, &uneven));
    for (int i = 0; i < SIGN_EXAMPLES; i++)
        code = exit_worst(code, judge_sign(run, &sign_examples[i], &r[i]));
    if (code != EXIT_PASS)
        return code;
    double least = direct_least(even.least_softmax, uneven.least_softmax);
    bool negative = r[OPPOSITE].value < 0 && least >= 0;
    bool normalised = even.normalised == 0 && uneven.normalised == 0;
    note_signs(r, &even, &uneven, v->notes);
    v->kind = negative && normalised ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "one token: q = (1), k = (−1), at an angle of %.0f°, has the value %g; q·k = %g, "
                "at %.1f°, has the value %g, q·k = %g, at %.1f°, the value %g. %" PRId64 " normal "
                "pairs, one of 32 channels 100 times as large: %.0f %% of the values have another "
                "sign than q_i·k_j, %" PRId64 " than q̂_i·k̂_j. Softmax attention: least weight "
                "%.1g",
                r[OPPOSITE].angle, r[OPPOSITE].value, r[NEGATIVE].dot, r[NEGATIVE].angle,
                r[NEGATIVE].value, r[POSITIVE].dot, r[POSITIVE].angle, r[POSITIVE].value,
                uneven.pairs, 100 * (double)uneven.raw / (double)uneven.pairs,
                even.normalised + uneven.normalised, least);
    verdict_set(&v->bound, "0, where the sign changes");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample,
                    "q = (1), k = (−1) has the value %g, softmax attention the weight %g, or a "
                    "value another sign than q̂·k̂",
                    r[OPPOSITE].value, least);
    return EXIT_PASS;
}

/* ---- M11 ---- */

/* Row i of the result is row (3 i + 1) mod n: a permutation if 3 does not divide n. */
static void permute(int64_t n, int64_t width, const double *x, double *permuted)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < width; c++)
            permuted[i * width + c] = x[(3 * i + 1) % n * width + c];
}

/* Q, K and V of one head, and room for as many permuted. */
typedef struct {
    int64_t n, d, dv;
    double *q, *k, *v;
} head_inputs;

static head_inputs inputs_allocate(int64_t n, int64_t d, int64_t dv)
{
    head_inputs x = {n, d, dv, must_allocate((size_t)(n * (2 * d + dv)), sizeof(double)), 0, 0};
    x.k = x.q + n * d;
    x.v = x.k + n * d;
    return x;
}

static int forward(const claim_run *run, const atn_attention_desc *desc, const head_inputs *x,
                   double *y)
{
    return direct_forward(run, desc, x->n, x->d, x->dv, x->q, x->k, x->v, y);
}

static atn_attention_desc sima_with(atn_sima_norm norm, atn_order order)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F64);
    desc.sima = (atn_sima_options){.norm = norm, .order = order};
    return desc;
}

/* The largest |Y of permuted tokens - permuted Y|, over `limit` if that is given. */
static int permuted_apart(const claim_run *run, atn_order order, const head_inputs *x,
                          const double *limit, double *apart)
{
    const atn_attention_desc sima = sima_with(ATN_SIMA_L1, order);
    size_t size = (size_t)(x->n * x->dv);
    double *y = must_allocate(3 * size, sizeof *y), *moved = y + size, *want = moved + size;
    head_inputs p = inputs_allocate(x->n, x->d, x->dv);
    permute(x->n, x->d, x->q, p.q);
    permute(x->n, x->d, x->k, p.k);
    permute(x->n, x->dv, x->v, p.v);
    int code = forward(run, &sima, x, y);
    code = exit_worst(code, forward(run, &sima, &p, moved));
    permute(x->n, x->dv, y, want);
    *apart = 0;
    for (size_t i = 0; i < size; i++)
        *apart = direct_worst(*apart, fabs(moved[i] - want[i]) / (limit ? limit[i] : 1));
    free(p.q);
    free(y);
    return code;
}

static void fill_whole_inputs(const head_inputs *x, int64_t repeats)
{
    double q[WHOLE_TOKENS * WHOLE_WIDTH], k[WHOLE_TOKENS * WHOLE_WIDTH];
    sima_fill_whole(0, q);
    sima_fill_whole(1, k);
    for (int64_t i = 0; i < repeats * WHOLE_TOKENS; i++) {
        int64_t from = i % WHOLE_TOKENS;
        for (int64_t c = 0; c < WHOLE_WIDTH; c++) {
            x->q[i * WHOLE_WIDTH + c] = q[from * WHOLE_WIDTH + c];
            x->k[i * WHOLE_WIDTH + c] = k[from * WHOLE_WIDTH + c];
        }
        for (int64_t e = 0; e < WHOLE_VALUES; e++)
            x->v[i * WHOLE_VALUES + e] = (double)(7 * (from * WHOLE_VALUES + e) % 11 - 5);
    }
}

/* For whole numbers, in which nothing is rounded; both orders. */
static int permute_whole(const claim_run *run, double *apart)
{
    head_inputs x = inputs_allocate(WHOLE_TOKENS, WHOLE_WIDTH, WHOLE_VALUES);
    double first, second;
    fill_whole_inputs(&x, 1);
    int code = permuted_apart(run, ATN_ORDER_TOKENS, &x, NULL, &first);
    code = exit_worst(code, permuted_apart(run, ATN_ORDER_CHANNELS, &x, NULL, &second));
    *apart = direct_worst(first, second);
    free(x.q);
    return code;
}

/* For normal tokens, in units of a bound on rounding: (N + D) u |Q^||K^|^T|V|, times 8. */
static int permute_normal(const claim_run *run, double *apart)
{
    enum { TOKENS = 196, WIDTH = 32, VALUES = 8 };
    head_inputs x = inputs_allocate(TOKENS, WIDTH, VALUES);
    head_inputs sizes = inputs_allocate(TOKENS, WIDTH, VALUES);
    double *limit = must_allocate((size_t)TOKENS * VALUES, sizeof *limit);
    int64_t count = (int64_t)TOKENS * (2 * WIDTH + VALUES);
    data_normal(run->seed, count, x.q);
    for (int64_t i = 0; i < count; i++)
        sizes.q[i] = fabs(x.q[i]);
    const atn_attention_desc sima = sima_with(ATN_SIMA_L1, ATN_ORDER_AUTO);
    int code = forward(run, &sima, &sizes, limit);
    for (int64_t i = 0; i < (int64_t)TOKENS * VALUES; i++)
        limit[i] *= 8 * (TOKENS + WIDTH) * roundoff;
    code = exit_worst(code, permuted_apart(run, ATN_ORDER_AUTO, &x, limit, apart));
    free(limit);
    free(sizes.q);
    free(x.q);
    return code;
}

/* The largest and the least quotient of the outputs when every token is repeated over the outputs
 * of the tokens themselves. */
static int repeat_tokens(const claim_run *run, const atn_attention_desc *desc,
                         value_range *quotients)
{
    enum { TWICE = 2 * WHOLE_TOKENS };
    double y[WHOLE_TOKENS * WHOLE_VALUES], twice[TWICE * WHOLE_VALUES];
    head_inputs x = inputs_allocate(TWICE, WHOLE_WIDTH, WHOLE_VALUES);
    fill_whole_inputs(&x, 2);
    int code = forward(run, desc, &x, twice);
    free(x.q);
    x = inputs_allocate(WHOLE_TOKENS, WHOLE_WIDTH, WHOLE_VALUES);
    fill_whole_inputs(&x, 1);
    code = exit_worst(code, forward(run, desc, &x, y));
    free(x.q);
    *quotients = range_empty;
    for (int i = 0; i < WHOLE_TOKENS * WHOLE_VALUES; i++)
        if (y[i] != 0)
            range_widen(quotients, twice[i] / y[i]);
    return code;
}

/* Two tokens (1) and (2) mixed by the fixed weights ((0, 1), (0, 0)), as an MLP over tokens does:
 * the outputs of the swapped tokens minus the swapped outputs. */
static void mix_swapped(double apart[2])
{
    static const double mix[4] = {0, 1, 0, 0}, tokens[2] = {1, 2}, swapped[2] = {2, 1};
    double y[2], z[2];
    direct_multiply(2, 2, 1, mix, tokens, y);
    direct_multiply(2, 2, 1, mix, swapped, z);
    apart[0] = z[0] - y[1];
    apart[1] = z[1] - y[0];
}

static int judge_m11(const claim_run *run, verdict *v)
{
    double whole, normal, mixed[2];
    char text[2][RANGE_TEXT];
    value_range sima, softmax;
    const atn_attention_desc one = sima_with(ATN_SIMA_L1, ATN_ORDER_AUTO);
    const atn_attention_desc other = atn_attention_defaults(ATN_SOFTMAX, ATN_F64);
    int code = permute_whole(run, &whole);
    code = exit_worst(code, permute_normal(run, &normal));
    code = exit_worst(code, repeat_tokens(run, &one, &sima));
    code = exit_worst(code, repeat_tokens(run, &other, &softmax));
    if (code != EXIT_PASS)
        return code;
    mix_swapped(mixed);
    bool equivariant = whole == 0 && normal <= 1, unlike = mixed[0] != 0 || mixed[1] != 0;
    v->kind = equivariant && unlike ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "8 tokens of whole numbers, both orders, f64: Y of the permuted tokens is off the "
                "permuted Y by %g; 196 normal tokens: by %.2g of a rounding bound. Weights ((0, "
                "1), (0, 0)) that mix two tokens: off by (%g, %g) for (1), (2). All tokens twice: "
                "SimA's outputs are %s of what they were, those of softmax attention %s",
                whole, normal, mixed[0], mixed[1], range_text(&sima, 10, text[0]),
                range_text(&softmax, 10, text[1]));
    verdict_set(&v->bound, "0; 1, the rounding of both");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample,
                    "whole numbers: off by %g; normal tokens: %g of a rounding bound; the mixture "
                    "is off by (%g, %g)",
                    whole, normal, mixed[0], mixed[1]);
    return EXIT_PASS;
}

/* ---- M12 ---- */

/* The largest difference between X W_v / D and X (W_v / D) after the same attention, D = 4, whole
 * numbers. */
static int absorb_exactly(const claim_run *run, double *apart)
{
    enum { INPUTS = 2 };
    double x[WHOLE_TOKENS * INPUTS], w[INPUTS * WHOLE_VALUES], y[2][WHOLE_TOKENS * WHOLE_VALUES];
    const atn_attention_desc sima = sima_with(ATN_SIMA_L1, ATN_ORDER_AUTO);
    head_inputs head = inputs_allocate(WHOLE_TOKENS, WHOLE_WIDTH, WHOLE_VALUES);
    fill_whole_inputs(&head, 1);
    for (int i = 0; i < WHOLE_TOKENS * INPUTS; i++)
        x[i] = 5 * i % 9 - 4;
    for (int i = 0; i < INPUTS * WHOLE_VALUES; i++)
        w[i] = 3 * i % 7 - 3;
    direct_multiply(WHOLE_TOKENS, INPUTS, WHOLE_VALUES, x, w, head.v);
    int code = forward(run, &sima, &head, y[0]);
    for (int i = 0; i < INPUTS * WHOLE_VALUES; i++)
        w[i] /= WHOLE_WIDTH;
    direct_multiply(WHOLE_TOKENS, INPUTS, WHOLE_VALUES, x, w, head.v);
    code = exit_worst(code, forward(run, &sima, &head, y[1]));
    *apart = 0;
    for (int i = 0; i < WHOLE_TOKENS * WHOLE_VALUES; i++)
        *apart = direct_worst(*apart, fabs(y[0][i] / WHOLE_WIDTH - y[1][i]));
    free(head.q);
    return code;
}

/* The same with D = 3 and normal tokens, V itself being divided, in units of the bound of M11. */
static int absorb_rounded(const claim_run *run, double *apart)
{
    enum { TOKENS = 49, WIDTH = 3, VALUES = 8 };
    const atn_attention_desc sima = sima_with(ATN_SIMA_L1, ATN_ORDER_AUTO);
    head_inputs head = inputs_allocate(TOKENS, WIDTH, VALUES);
    int64_t count = (int64_t)TOKENS * (2 * WIDTH + VALUES);
    double y[3][TOKENS * VALUES];
    data_normal(run->seed, count, head.q);
    int code = forward(run, &sima, &head, y[0]);
    for (int64_t i = 0; i < (int64_t)TOKENS * VALUES; i++)
        head.v[i] /= WIDTH;
    code = exit_worst(code, forward(run, &sima, &head, y[1]));
    for (int64_t i = 0; i < count; i++)
        head.q[i] = fabs(head.q[i]);
    code = exit_worst(code, forward(run, &sima, &head, y[2]));
    *apart = 0;
    for (int64_t i = 0; i < (int64_t)TOKENS * VALUES; i++)
        *apart = direct_worst(*apart, fabs(y[0][i] / WIDTH - y[1][i]) /
                                          (8 * (TOKENS + WIDTH) * roundoff * y[2][i]));
    free(head.q);
    return code;
}

/* Weights N(0, 0.02^2) divided by D and rounded to f16: the exact share of subnormal ones, and the
 * relative error of a sample. */
static void divide_weights(const claim_run *run, int64_t d, double *subnormal, double *error)
{
    enum { WEIGHTS = 4096 };
    double drawn[WEIGHTS], lost = 0, size = 0;
    data_normal(run->seed, WEIGHTS, drawn);
    *subnormal = erf(0x1p-14 * (double)d / 0.02 / sqrt(2));
    for (int i = 0; i < WEIGHTS; i++) {
        float weight = (float)(0.02 * drawn[i] / (double)d), rounded = weight;
        atn_storage_round(ATN_STORAGE_F16, 1, &rounded);
        lost += pow((double)rounded - (double)weight, 2);
        size += pow((double)weight, 2);
    }
    *error = sqrt(lost / size);
}

/* One token of two channels, Q = K = (1, 1), in f16: the outputs for V = 40000, which is 80000
 * exactly, and for V / 2. */
static int absorb_in_f16(const claim_run *run, double y[2])
{
    static const float ones[2] = {1, 1}, values[2] = {40000, 20000};
    const sima_narrow sima = {ATN_STORAGE_F16, {.norm = ATN_SIMA_L1}};
    int code = EXIT_PASS;
    for (int i = 0; i < 2; i++) {
        float out = -1;
        code =
            exit_worst(code, sima_narrow_forward(run, &sima, 1, 2, ones, ones, &values[i], &out));
        y[i] = (double)out;
    }
    return code;
}

/* One token of three channels, Q = K = (1, 1, 1), V = 65504 / 3, in f16: V as rounded, and the
 * output, which is three times V. */
static int absorb_without_room(const claim_run *run, float *value, double *y)
{
    static const float ones[3] = {1, 1, 1};
    const sima_narrow sima = {ATN_STORAGE_F16, {.norm = ATN_SIMA_L1}};
    float out = -1;
    *value = 65504.f / 3;
    atn_storage_round(ATN_STORAGE_F16, 1, value);
    int code = sima_narrow_forward(run, &sima, 1, 3, ones, ones, value, &out);
    *y = (double)out;
    return code;
}

static int judge_m12(const claim_run *run, verdict *v)
{
    static const int64_t widths[3] = {1, 64, 384};
    double exact, rounded, narrow[2], subnormal[3], error[3], third;
    float value;
    int code = absorb_exactly(run, &exact);
    code = exit_worst(code, absorb_rounded(run, &rounded));
    code = exit_worst(code, absorb_in_f16(run, narrow));
    code = exit_worst(code, absorb_without_room(run, &value, &third));
    if (code != EXIT_PASS)
        return code;
    fprintf(v->notes, "Weights N(0, 0.02²), divided by D, in f16; subnormal: erf(2⁻¹⁴D/(0.02√2)), "
                      "error: of a sample of 4096.\n\n| D | subnormal | error over size "
                      "|\n|---|---|---|\n");
    for (int i = 0; i < 3; i++) {
        divide_weights(run, widths[i], &subnormal[i], &error[i]);
        fprintf(v->notes, "| %" PRId64 " | %.1f %% | %.2g |\n", widths[i], 100 * subnormal[i],
                error[i]);
    }
    v->kind = exact == 0 && rounded <= 1 ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "whole numbers, D = 4, f64: outputs over D are off those with W_v/D by %g; D = 3: "
                "by %.2g of a rounding bound. f16: the output 80000 is %s, with V/2 it is %g; D = "
                "3, one token, Q = K = (1, 1, 1), V = 65504: V/3 is rounded to %g, and the output, "
                "%g, is %s; of weights N(0, 0.02²), %.1f %% are subnormal after division by 64 and "
                "%.1f %% by 384, and rounding costs %.2g and %.2g of their size (%.2g undivided)",
                exact, rounded, isfinite(narrow[0]) ? "finite" : "not finite", narrow[1],
                (double)value, 3 * (double)value, isfinite(third) ? "finite" : "not finite",
                100 * subnormal[1], 100 * subnormal[2], error[1], error[2], error[0]);
    verdict_set(&v->bound, "0; 1, the rounding of both");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample,
                    "whole numbers: off by %g; normal tokens: %g of a rounding bound", exact,
                    rounded);
    return EXIT_PASS;
}

/* ---- M13 ---- */

/* Two tokens of one channel, Q = (s, s), K = (s, -s), V = (1, 1), QK^T first: the first output, 0
 * in exact arithmetic whatever the norms are. */
static int cancelling_tokens(const claim_run *run, atn_storage storage, atn_sima_norm norm,
                             float size, double *y)
{
    const float q[2] = {size, size}, k[2] = {size, -size}, v[2] = {1, 1};
    const sima_narrow sima = {storage, {.norm = norm, .order = ATN_ORDER_TOKENS}};
    float out[2] = {-1, -1};
    int code = sima_narrow_forward(run, &sima, 2, 1, q, k, v, out);
    *y = (double)out[0];
    return code;
}

/* The largest output for n tokens of one channel, Q = 1 in the first token and 0 in the others, K =
 * V = 1: D max|V| with l1 norms, D sqrt(n) max|V| with l2. */
static int largest_output(const claim_run *run, atn_sima_norm norm, int64_t n, double *largest)
{
    const atn_attention_desc desc = sima_with(norm, ATN_ORDER_AUTO);
    head_inputs x = inputs_allocate(n, 1, 1);
    double *y = must_allocate((size_t)n, sizeof *y);
    x.q[0] = 1;
    for (int64_t i = 0; i < n; i++)
        x.k[i] = x.v[i] = 1;
    int code = forward(run, &desc, &x, y);
    *largest = y[0];
    free(y);
    free(x.q);
    return code;
}

static void format_output(double x, char text[32])
{
    snprintf(text, 32, isnan(x) ? "NaN" : "%g", x);
}

/* The effects of a norm on outputs. */
typedef struct {
    double f16, f32, largest;
    value_range repeated;
} norm_effects;

static int observe_norm(const claim_run *run, atn_sima_norm norm, int64_t tokens, norm_effects *e)
{
    const atn_attention_desc desc = sima_with(norm, ATN_ORDER_AUTO);
    int code = cancelling_tokens(run, ATN_STORAGE_F16, norm, 256, &e->f16);
    code = exit_worst(code, cancelling_tokens(run, ATN_STORAGE_NATIVE, norm, 0x1p64f, &e->f32));
    code = exit_worst(code, largest_output(run, norm, tokens, &e->largest));
    return exit_worst(code, repeat_tokens(run, &desc, &e->repeated));
}

static const miniature_change m13_trained[] = {
    {"none", "ℓ1 norms"}, {"l2", "ℓ2 norms"}, {"no-norm", "no norms, in f32"}, {0}};

static int judge_m13(const claim_run *run, verdict *v)
{
    enum { TOKENS = 196, NORMS = 3 };
    static const atn_sima_norm norms[NORMS] = {ATN_SIMA_L1, ATN_SIMA_L2, ATN_SIMA_NONE};
    static const char *const names[NORMS] = {"ℓ1", "ℓ2", "none"};
    const double rounding = 8 * TOKENS * roundoff; /* of norms and a sum over N tokens */
    norm_effects e[NORMS];
    int code = EXIT_PASS;
    fprintf(v->notes,
            "| norms | f16: s = 256 | f32: s = 2⁶⁴ | largest output, %d tokens | all "
            "tokens twice |\n|---|---|---|---|---|\n",
            TOKENS);
    for (int i = 0; i < NORMS; i++) {
        char f16[32], f32[32], repeated[RANGE_TEXT];
        code = exit_worst(code, observe_norm(run, norms[i], TOKENS, &e[i]));
        format_output(e[i].f16, f16);
        format_output(e[i].f32, f32);
        fprintf(v->notes, "| %s | %s | %s | %.6g | × %s |\n", names[i], f16, f32, e[i].largest,
                range_text(&e[i].repeated, 6, repeated));
    }
    if (code != EXIT_PASS)
        return code;
    bool without = isnan(e[2].f16) && isnan(e[2].f32);
    bool normed = e[0].f16 == 0 && e[1].f16 == 0 && e[0].f32 == 0 && e[1].f32 == 0;
    v->kind = VERDICT_OBSERVED;
    char *trained = miniature_trained(v, "sima", m13_trained);
    verdict_set(&v->measured,
                "the printed result, of training, is not testable here. Of numbers alone: NaN "
                "without norms is %s: two tokens, Q = (s, s), K = (s, −s), V = (1, 1), s = 256 "
                "in f16 and 2⁶⁴ in f32; with norms the output is %s. Largest output of %d tokens, "
                "Q = (1, 0, 0, …), K = V = (1, 1, …): %.6g with ℓ1 norms, %.6g with ℓ2. All tokens "
                "twice: the outputs × %.3g with ℓ1 norms, × %.3g with ℓ2. %s",
                without ? "seen" : "not seen", normed ? "0, which is exact" : "NOT 0", TOKENS,
                e[0].largest, e[1].largest, e[0].repeated.most, e[1].repeated.most, trained);
    free(trained);
    verdict_set(&v->bound, "D max|V| with ℓ1 norms, D√N max|V| with ℓ2");
    if (without)
        verdict_set(&v->counterexample,
                    "NaN: two tokens of one channel in f16, Q = (256, 256), K = (256, −256), V = "
                    "(1, 1): QKᵀ has the entries ±65536, infinite in f16, and ∞ − ∞ is NaN; the "
                    "exact output is 0");
    if (normed && fabs(e[0].largest - 1) <= rounding &&
        fabs(e[1].largest / sqrt(TOKENS) - 1) <= rounding)
        return EXIT_PASS;
    report_error("M13: normalised outputs are %g, %g (f16), %g and %g, which is proved not to be",
                 e[0].f16, e[1].f16, e[0].largest, e[1].largest);
    return EXIT_CHECK;
}

const claim sima_values_claims[] = {
    {
        .id = "M09",
        .source = "SimA § 2.2",
        .statement = "[If a channel in Q and/or K has large values, that channel may dominate the "
                     "dot product QKᵀ.] … we can normalize each channel in Q and K across tokens "
                     "so that different channels become more comparable.",
        .method = "Each of four channels of 49 tokens alone, their parts of the attention matrix "
                  "from the operator with V = I; two tokens by hand.",
        .corrected =
            "Every channel without a zero norm has the same share of the attention matrix: "
            "Σ_ij |q̂_ic k̂_jc| = 1, whatever Q and K are. This is so over all pairs, not in each "
            "of them: the largest |q̂_ic k̂_jc| of a channel is anything from 1/N² (all |q_ic| "
            "equal, all |k_jc| equal) to 1 (one token each). In one entry the norms may do the "
            "opposite of what they are for: channels (1, 0) and (1, 1) in Q and in K contribute 1 "
            "and 1 to the first entry without norms, 1 and 1/4 with them. There one channel may "
            "still outweigh another N² times, and more where the other's part of that entry is "
            "below its largest.",
        .proof =
            "Σ_ij |q̂_ic k̂_jc| = (Σ_i |q̂_ic|)(Σ_j |k̂_jc|) = 1; without norms it is "
            "|Q^c|₁|K^c|₁, which grows with the channel. The largest entry is max_i |q̂_ic| · "
            "max_j |k̂_jc|, and N numbers of sum 1 have a maximum from 1/N to 1. A channel that is "
            "zero in Q or K has no part, with or without norms (0/0 taken as 0).",
        .judge = judge_m09,
    },
    {
        .id = "M10",
        .source = "SimA § 2.2",
        .statement = "Interestingly, if the query and key vectors have a large angle, the "
                     "attention values can become negative … This is in contrast to regular "
                     "transformers where the attention is always non-negative.",
        .method = "The smallest pairs whose value has another sign than q·k, and 49 normal tokens "
                  "of 32 channels, alike and one of them 100 times as large: signs of the values "
                  "against those of q_i·k_j and of q̂_i·k̂_j; the weights of softmax attention.",
        .corrected =
            "As printed (can) it holds, for rows of Q and K and for those of Q̂ and K̂. A "
            "criterion it is only for Q̂ and K̂: a value is negative if and only if q̂_i and k̂_j "
            "are more than 90° apart. Between q_i and k_j a value may be negative at any angle "
            "above 0°: only 0° and 180° decide, at 0° it is positive, at 180° negative. With two "
            "or more channels, at every angle between them there are q_i and k_j whose value is "
            "negative or positive, depending on the other tokens.",
        .proof =
            "The value is q̂_i·k̂_j = Σ_c w_c q_ic k_jc with w_c = 1/(|Q^c|₁|K^c|₁) > 0 (channels "
            "without a zero norm). Where q_i = ±t k_j, t > 0, k_j ≠ 0, it is ±t Σ_c w_c k_jc². At "
            "an angle 0 < θ < 180° take q = (cos θ/2, sin θ/2), k = (cos θ/2, −sin θ/2): the value "
            "is w_1 cos² θ/2 − w_2 sin² θ/2, and a second token with Q = K = (x, y) makes w_1/w_2 "
            "as small or large as one likes. Smallest: one channel has q·k and its value of one "
            "sign; one token of two channels has w_c = 1/|q_c k_c|, hence the value 0 where the "
            "signs differ; so it takes one token of three channels or two tokens of two. exp > 0.",
        .judge = judge_m10,
    },
    {
        .id = "M11",
        .source = "SimA § 1",
        .statement =
            "The attention mechanism deals with the tokens without considering their ordering. … "
            "this permutation equivariance property does not exist in some other models like "
            "MLP-Mixer … we are interested in removing Softmax from the original transformers to "
            "keep this permutation equivariance property.",
        .method =
            "Q, K and V of 8 tokens of whole numbers, whose ℓ1 norms are powers of two, and of 196 "
            "normal tokens, permuted: f64, both orders. Two tokens mixed by fixed weights. All "
            "tokens twice.",
        .corrected =
            "Y(ΠQ, ΠK, ΠV) = ΠY(Q, K, V) for every permutation Π, and Y does not change if K and V "
            "alone are permuted together. What SimA does not keep of softmax attention is that "
            "repeated tokens change nothing: with every token r times SimA's outputs are 1/r of "
            "what they were. So the number of tokens matters (masking, resolution), their order "
            "does not. All this is said of the attention block: position encodings, XCiT's LPI and "
            "CvT's convolutions are not equivariant.",
        .proof =
            "Columns of ΠQ have the norms of those of Q, so ΠQ normalised is ΠQ̂, and ΠQ̂(ΠK̂)ᵀΠV "
            "= ΠQ̂K̂ᵀΠᵀΠV = ΠQ̂K̂ᵀV; likewise (ΠK̂)ᵀΠV = K̂ᵀV. r copies make all norms r times as "
            "large: q̂ and k̂ are divided by r, and the sum over keys has r equal terms: 1/r; a "
            "weight of softmax is divided by r and there are r of them: 1. MLP-Mixer's block that "
            "mixes two tokens, X + W_2 GELU(W_1 LN(X)) with W_1 = (0, 1), W_2 = (1, 0)ᵀ: of the "
            "tokens (1, −1) and (−1, 1), which LN leaves as they are, the second stays; swapped, "
            "the second place stays too, so that the token (−1, 1), now first, becomes (−1 + "
            "GELU(1), 1 + GELU(−1)), and GELU(1) ≠ 0.",
        .judge = judge_m11,
    },
    {
        .id = "M12",
        .source = "SimA § 2.2",
        .statement = "One may divide the attention by D to bound it between −1 and 1. This "
                     "constant scalar multiplier can be absorbed into W_v, the projection matrix "
                     "for V.",
        .method = "Outputs divided by D against those with W_v/D: whole numbers, D = 4; V/D, D = 3 "
                  "and normal tokens. f16: the output of M04 with V/D, V = 65504 with D = 3, and "
                  "weights divided by D.",
        .corrected =
            "With H heads D is the width of one. A bias of V, which the pseudo-code allows, must "
            "be divided too. In f64 and f32 the two agree bit by bit if D is a power of two and "
            "nothing underflows or overflows, else to rounding. In f16 |Y| ≤ max|V| of the V "
            "before the division, but for rounding: the condition of M04 falls to max|V| at most "
            "60000, for its N and D. Without room for rounding it is false: D = 3, one "
            "token, Q = K = (1, 1, 1), V = 65504 has V/3 rounded to 21840 and the output 65520, "
            "infinite in f16. The price is that weights below 2⁻¹⁴D are subnormal after it.",
        .proof =
            "(Q̂K̂ᵀ/D)(XW_v) = Q̂K̂ᵀ(X(W_v/D)): a number commutes with matrices; |entries of "
            "Q̂K̂ᵀ| ≤ D (M01). Division by a power of two is exact and commutes with every "
            "rounding that neither underflows nor overflows. |Y| ≤ D max|V/D| (M04), and rounded "
            "V/D is at most (1 + 2⁻¹¹)max|V|/D + 2⁻²⁵: 1.083·60000 + 1 < 65520. f16's "
            "smallest normal number is 2⁻¹⁴.",
        .judge = judge_m12,
    },
    {
        .id = "M13",
        .source = "SimA § 4.6",
        .statement = "None of our several trials converged as the training becomes unstable and "
                     "results in a frequent NaN loss. Moreover, we replace ℓ1 with ℓ2 "
                     "normalization, results in 2.9 points drop in accuracy (82.1% vs 79.2%).",
        .method = "What needs no training: the smallest tokens whose output is NaN without norms, "
                  "in f16 and f32; the range of outputs with ℓ1 and ℓ2 norms; all tokens twice. In "
                  "miniature: small networks that are trained in f32 with either norm and without.",
        .corrected =
            "In the range of numbers: without norms and QKᵀ first, an output is NaN if two entries "
            "of a row of QKᵀ overflow, with different signs, and V is positive there: from two "
            "tokens of one channel on. With either norm |entries of Q̂K̂ᵀ| ≤ D. The two norms "
            "differ in what they do with many tokens: |Y| ≤ D max|V| with ℓ1 norms, D√N max|V| "
            "with ℓ2, both attained; with every token r times ℓ1's outputs are 1/r of what they "
            "were, ℓ2's the same. D: the channels of one head (D/H of § 2.1's D).",
        .proof =
            "|q̂_ic|, |k̂_jc| ≤ 1 with either norm. Y_ie = Σ_c q̂_ic Σ_j k̂_jc v_je, and Σ_j "
            "|k̂_jc| is 1 with ℓ1 norms, at most √N with ℓ2 (Cauchy). Attained by Q = 1 in one "
            "token and 0 in all others, K = V = 1. r copies make ℓ1 norms r times, ℓ2 norms √r "
            "times as large, and the sum over keys has r equal terms: r/r² and r/(√r)².",
        .judge = judge_m13,
    },
    {0},
};
