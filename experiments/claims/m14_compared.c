/* SPDX-License-Identifier: BSD-3-Clause */
/* M14 - M16, M21: SimA's statements about other methods. */
#include <inttypes.h>
#include <math.h>

#include "claims/claims.h"
#include "claims/direct.h"
#include "common/report.h"
#include "cost/operators.h"

/* ---- M14 ---- */

enum { GRID = 14, TERMS = 4 }; /* 224 x 224 pixels in patches of 16; the expansion's terms */

static atn_attention_desc products_alone(atn_order order)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F32);
    desc.sima = (atn_sima_options){.norm = ATN_SIMA_NONE, .order = order};
    return desc;
}

static atn_attention_desc cosformer_on(int64_t height, int64_t width, atn_dtype dtype)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_COSFORMER, dtype);
    desc.cosformer = (atn_cosformer_options){
        .weighting = ATN_COSINE_2D, .height = height, .width = width, .epsilon = 1e-6};
    return desc;
}

/* CosFormer's flops over SimA's: of the products of Q, K and V alone, and of the whole operators.
 */
typedef struct {
    double products[2]; /* by order: tokens first, channels first */
    double whole;       /* features, norms and denominators included; channels first */
} flop_ratios;

/* The four terms of the expansion, concatenated, are products of queries and keys that are 4 d
 * wide. */
static int compare_flops(const claim_run *run, int64_t side, int64_t d, flop_ratios *r)
{
    static const atn_order orders[2] = {ATN_ORDER_TOKENS, ATN_ORDER_CHANNELS};
    const int64_t n = side * side;
    double four = NAN, one = NAN;
    int code = EXIT_PASS;
    for (int i = 0; i < 2; i++) {
        const atn_attention_desc desc = products_alone(orders[i]);
        code = exit_worst(code, direct_flops(run, &desc, 1, n, TERMS * d, d, &four));
        code = exit_worst(code, direct_flops(run, &desc, 1, n, d, d, &one));
        r->products[i] = four / one;
    }
    const atn_attention_desc cosformer = cosformer_on(side, side, ATN_F32);
    atn_attention_desc sima = atn_attention_defaults(ATN_SIMA, ATN_F32);
    sima.sima.order = ATN_ORDER_CHANNELS;
    code = exit_worst(code, direct_flops(run, &cosformer, 1, n, d, d, &four));
    code = exit_worst(code, direct_flops(run, &sima, 1, n, d, d, &one));
    r->whole = four / one;
    return code;
}

/* The largest difference between the library's CosFormer, for 2 x 2 tokens of two channels, and one
 * dot product for every pair times its weight. */
static int one_dot_product(const claim_run *run, double *apart)
{
    enum { SIDE = 2, TOKENS = SIDE * SIDE, WIDTH = 2 };
    static const double q[TOKENS * WIDTH] = {1, 2, 3, 1, 2, 2, 1, 3};
    static const double k[TOKENS * WIDTH] = {2, 1, 1, 1, 3, 2, 1, 4};
    static const double v[TOKENS] = {1, -2, 3, 5};
    const atn_attention_desc desc = cosformer_on(SIDE, SIDE, ATN_F64);
    const double quarter = acos(0);
    double y[TOKENS];
    int code = direct_forward(run, &desc, TOKENS, WIDTH, 1, q, k, v, y);
    *apart = 0;
    for (int i = 0; i < TOKENS; i++) {
        double sum = 0, weights = 0;
        for (int j = 0; j < TOKENS; j++) {
            double dot = q[i * WIDTH] * k[j * WIDTH] + q[i * WIDTH + 1] * k[j * WIDTH + 1];
            double weight = dot * cos(quarter * (i / SIDE - j / SIDE) / SIDE) *
                            cos(quarter * (i % SIDE - j % SIDE) / SIDE);
            sum += weight * v[j];
            weights += weight;
        }
        *apart = direct_worst(*apart, fabs(y[i] - sum / weights));
    }
    return code;
}

static int judge_m14(const claim_run *run, verdict *v)
{
    static const int64_t widths[] = {32, 48, 64};
    enum { WIDTHS = sizeof widths / sizeof *widths };
    value_range tokens = range_empty, channels = range_empty, whole = range_empty;
    char text[3][RANGE_TEXT];
    flop_ratios smallest;
    int code = compare_flops(run, 1, 1, &smallest);
    fprintf(v->notes,
            "CosFormer's flops over SimA's, N = %d, a head of d channels:\n\n"
            "| d | products, KᵀV first | products, QKᵀ first | all, KᵀV first "
            "|\n|---|---|---|---|\n",
            GRID * GRID);
    for (int i = 0; i < WIDTHS; i++) {
        flop_ratios r;
        code = exit_worst(code, compare_flops(run, GRID, widths[i], &r));
        if (code != EXIT_PASS)
            return code;
        range_widen(&tokens, r.products[0]);
        range_widen(&channels, r.products[1]);
        range_widen(&whole, r.whole);
        fprintf(v->notes, "| %" PRId64 " | %.6g | %.6g | %.4g |\n", widths[i], r.products[1],
                r.products[0], r.whole);
    }
    bool linear = channels.least == TERMS && channels.most == TERMS;
    v->kind = linear && smallest.products[1] == TERMS ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "flops of the products, CosFormer over SimA: %s with KᵀV first, %s with QKᵀ first "
                "and four terms; with all that the operators do, %s, KᵀV first; one token, one "
                "channel, one value: %.6g with KᵀV first, %.6g with QKᵀ first",
                range_text(&channels, 6, text[0]), range_text(&tokens, 6, text[1]),
                range_text(&whole, 4, text[2]), smallest.products[1], smallest.products[0]);
    verdict_set(&v->bound, "4, with KᵀV first as in CosFormer's Eq. 12, which App. A.3 names");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample,
                    "one token, one channel, one value: %.6g times the flops with KᵀV first",
                    smallest.products[1]);
    return EXIT_PASS;
}

/* ---- M21 ---- */

/* The attention value of a pair whose indices differ by 1 in both directions of a 2 x 2 grid, with
 * the angles of CosFormer: from the four dot products of the expansion, and from one dot product.
 */
typedef struct {
    double four, one;
} pair_value;

static pair_value value_of_pair(const double q[2], const double k[2])
{
    const double eighth = acos(0) / 2;
    /* cos and sin of the query's indices, 1 and 1, and of the key's, 0 and 0 */
    const double query[2] = {cos(eighth), sin(eighth)}, key[2] = {1, 0};
    pair_value value = {0, (q[0] * k[0] + q[1] * k[1]) * cos(eighth) * cos(eighth)};
    for (int x = 0; x < 2; x++)
        for (int y = 0; y < 2; y++)
            for (int c = 0; c < 2; c++)
                value.four += q[c] * query[x] * query[y] * (k[c] * key[x] * key[y]);
    return value;
}

static int judge_m21(const claim_run *run, verdict *v)
{
    static const double q[2] = {1, 2}, k[2] = {1, 1};
    const double rounding = 0x1p-44; /* sums of fewer than 2^6 products, of size 2^3 at most */
    const pair_value pair = value_of_pair(q, k);
    double apart;
    int code = one_dot_product(run, &apart);
    if (code != EXIT_PASS)
        return code;
    bool enough = apart <= rounding && fabs(pair.four - pair.one) <= rounding;
    v->kind = enough ? VERDICT_FAILS : VERDICT_HOLDS;
    verdict_set(&v->measured,
                "2 × 2 tokens of whole numbers: one dot product a pair, times its weight, is off "
                "the library's CosFormer, of four terms, by %.1g",
                apart);
    verdict_set(&v->bound, "0 but for rounding, %.1g", rounding);
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample,
                    "q = (1, 2), k = (1, 1), i − j = m − n = π/4: the four dot products add up to "
                    "%.6g, and q·k cos²(π/4) is %.6g, with one",
                    pair.four, pair.one);
    return EXIT_PASS;
}

/* ---- M15 ---- */

/* exps of a head of SOFT as the library counts them: with P evaluated in both passes, and once. */
static int soft_exps(const claim_run *run, int64_t n, int64_t m, double exps[2])
{
    const cost_setting s = {.op = ATN_SOFT,
                            .variant = cost_variant(ATN_SOFT, "paper"),
                            .tokens = n,
                            .heads = 1,
                            .dim = HEAD_DIM,
                            .landmarks = m,
                            .as_they_are = true};
    atn_cost cost;
    int code = cost_count(run->context, &s, &cost);
    exps[0] = cost.exps;
    exps[1] = cost.exps - (double)n * (double)m;
    return code;
}

/* The smallest N, and the smallest m for it, with fewer exps than N^2; found[0] = 0 if there is
 * none up to 16. */
static int smallest_reduction(const claim_run *run, bool kept, int64_t found[2], double *exps)
{
    for (found[0] = 1; found[0] <= 16; found[0]++)
        for (found[1] = 1; found[1] <= found[0]; found[1]++) {
            double both[2];
            int code = soft_exps(run, found[0], found[1], both);
            *exps = both[kept];
            if (code != EXIT_PASS || *exps < (double)(found[0] * found[0]))
                return code;
        }
    found[0] = 0;
    return EXIT_PASS;
}

static int judge_m15(const claim_run *run, verdict *v)
{
    static const int64_t stages[] = {56 * 56, 28 * 28, 14 * 14, 7 * 7};
    enum { STAGES = sizeof stages / sizeof *stages };
    value_range share = range_empty, share_twice = range_empty;
    double last = NAN;
    int64_t twice[2], once[2];
    double exps[2], exps_twice, exps_once;
    char text[2][RANGE_TEXT];
    int code = smallest_reduction(run, false, twice, &exps_twice);
    code = exit_worst(code, smallest_reduction(run, true, once, &exps_once));
    fprintf(v->notes,
            "exps of a head, m = %d, at the four stages of SOFT-Tiny:\n\n| N | N² | SOFT | of N² "
            "| this library, where it forms P twice |\n|---|---|---|---|---|\n",
            PAPER_LANDMARKS);
    for (int i = 0; i < STAGES; i++) {
        double pairs = (double)(stages[i] * stages[i]);
        code = exit_worst(code, soft_exps(run, stages[i], PAPER_LANDMARKS, exps));
        last = exps[1] / pairs;
        if (stages[i] > PAPER_LANDMARKS) {
            range_widen(&share, exps[1] / pairs);
            range_widen(&share_twice, exps[0] / pairs);
        }
        fprintf(v->notes, "| %" PRId64 " | %.9g | %.9g | %.3g | %.9g |\n", stages[i], pairs,
                exps[1], exps[1] / pairs, exps[0]);
    }
    if (code != EXIT_PASS)
        return code;
    bool reduces = once[0] > 0 || share.least < 1;
    v->kind = reduces ? VERDICT_FAILS : VERDICT_HOLDS;
    verdict_set(
        &v->measured,
        "SOFT's exps over N² at stages 1 to 3 of SOFT-Tiny, m = %d: %s, by this library "
        "where it forms P twice, %s; in stage 4 (49 tokens, m = 49) nothing is reduced: %.3g",
        PAPER_LANDMARKS, range_text(&share, 3, text[0]), range_text(&share_twice, 3, text[1]),
        last);
    verdict_set(&v->bound, "1");
    if (reduces && once[0] > 0)
        verdict_set(&v->counterexample,
                    "N = %" PRId64 ", m = %" PRId64 ", one head: %g exps for N² = %" PRId64
                    "; by this library N = %" PRId64 ", m = %" PRId64 ": %g for %" PRId64,
                    once[0], once[1], exps_once, once[0] * once[0], twice[0], twice[1], exps_twice,
                    twice[0] * twice[0]);
    else if (reduces)
        verdict_set(&v->counterexample, "a stage in the table");
    return EXIT_PASS;
}

/* ---- M16 ---- */

/* Weights of the tokens at distances 0 to GRID - 1 along a row, over the weight of the token
 * itself, from the library's CosFormer attention matrix for Q = K = 1. */
static int cosformer_weights(const claim_run *run, double weights[GRID])
{
    const atn_attention_desc desc = cosformer_on(1, GRID, ATN_F64);
    double ones[GRID], identity[GRID * GRID] = {0}, matrix[GRID * GRID];
    for (int i = 0; i < GRID; i++)
        ones[i] = identity[i * GRID + i] = 1;
    int code = direct_forward(run, &desc, GRID, 1, GRID, ones, ones, identity, matrix);
    for (int j = 0; j < GRID; j++)
        weights[j] = matrix[j] / matrix[0];
    return code;
}

/* The first distance at which the weights are negative, and at which they rise; 0: none. */
static void judge_locality(const double weights[GRID], int *negative, int *rising)
{
    *negative = *rising = 0;
    for (int j = GRID - 1; j > 0; j--) {
        *negative = weights[j] >= 0 ? *negative : j;
        *rising = weights[j] <= weights[j - 1] ? *rising : j;
    }
}

static int judge_m16(const claim_run *run, verdict *v)
{
    double printed[GRID], cosformer[GRID];
    int negative, rising, negative_there, rising_there;
    int code = cosformer_weights(run, cosformer);
    if (code != EXIT_PASS)
        return code;
    fprintf(v->notes, "| distance | cos(i − j), as printed | CosFormer, M = %d |\n|---|---|---|\n",
            GRID);
    for (int j = 0; j < GRID; j++) {
        printed[j] = cos(j);
        fprintf(v->notes, "| %d | %.4f | %.4f |\n", j, printed[j], cosformer[j]);
    }
    judge_locality(printed, &negative, &rising);
    judge_locality(cosformer, &negative_there, &rising_there);
    bool local = negative == 0 && rising == 0;
    bool local_there = negative_there == 0 && rising_there == 0;
    v->kind = local ? VERDICT_HOLDS : local_there ? VERDICT_HOLDS_IF : VERDICT_FAILS;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition,
                    "each difference of positions is multiplied by a factor ω, 0 < ω(M − 1) ≤ π/2 "
                    "for M positions in its direction, as by the π/2M of CosFormer's Eq. 10; none "
                    "is printed here");
    verdict_set(&v->measured,
                "cos(i − j) at distances 0 to %d: negative first at %d, rising first at %d, %.3f "
                "at %d where it is %.3f at 1; the library's CosFormer, angle π(i − j)/2M: %s",
                GRID - 1, negative, rising, printed[6], 6, printed[1],
                local_there ? "neither" : "negative or rising");
    verdict_set(&v->bound, "weights that are not negative and fall with the distance");
    if (v->kind != VERDICT_HOLDS)
        verdict_set(&v->counterexample,
                    "three tokens in a row, i − j = 2: the weight is cos 2 = %.3f; seven in a row: "
                    "cos 6 = %.3f is above cos 1 = %.3f",
                    printed[2], printed[6], printed[1]);
    return EXIT_PASS;
}

const claim sima_compared_claims[] = {
    {
        .id = "M14",
        .source = "SimA Tab. 2, App. A.3",
        .statement =
            "CosFormer with cosine re-weighting requires 4× more FLOPs compared to SimA in "
            "multiplying Q, K, and V matrices. … Hence, following Eq. 12 of the CosFormer paper, "
            "CosFormer needs 4 times more FLOPS compared to our method in calculating the "
            "attention values (multiplying Q, K, and V matrices).",
        .method =
            "Exact counts: the products of Q, K and V with queries and keys 4d wide, the "
            "four terms side by side, over those with d, in both orders; the operators with "
            "all they do. KᵀV first is the order of CosFormer's Eq. 12, which App. A.3 names; the 4 dot "
            "products are M21.",
        .corrected =
            "With KᵀV first, as in Eq. 12 of CosFormer, the products take exactly 4 times the "
            "flops (read as 4 times as many). With QKᵀ first four terms would take (4d + d_v)/(d + "
            "d_v) times the flops, 2.5 for d_v = d; but there one dot product is enough (M21).",
        .proof =
            "The four terms are a product of queries and keys of 4d features. KᵀV and Q(KᵀV) take "
            "2N·4d·d_v flops each for 2N·d·d_v. QKᵀ takes 2N²·4d for 2N²d, its product with V "
            "2N²d_v in both.",
        .judge = judge_m14,
    },
    {
        .id = "M15",
        .source = "SimA § 3",
        .statement = "All these methods either use exponential function. For example, SOFT … "
                     "removes Softmax without reducing the number of exp(·) operations.",
        .method =
            "The second sentence is judged. Exact counts of SOFT's exps, P formed once and kept, against N² "
            "of a head: the smallest N and m, and the stages of SOFT-Tiny with m = 49. This "
            "library forms P in both of its passes, where it has not kept it.",
        .corrected =
            "SOFT evaluates Nm + m² exps a head (2Nm + m² where P is formed twice): "
            "fewer than N² if and only if N > (1 + √5)m/2 (with P twice N > (1 + √2)m). With "
            "all tokens as landmarks (m = N) it does not reduce them.",
        .proof = "The exps are the entries of P (m × N), once or in both passes, and of A (m × m). "
                 "N² − Nm − m² > 0 if and only if N/m > (1 + √5)/2; N² − 2Nm − m² > 0 if and only "
                 "if N/m > 1 + √2.",
        .judge = judge_m15,
    },
    {
        .id = "M16",
        .source = "SimA App. A.3",
        .statement =
            "[W]e need to index the tokens with two indices to take advantage of the induced "
            "locality. To do so, one may introduce two cosine weights to Eq 10 of CosFormer …: one "
            "in x direction and the other one in y direction to come up with: "
            "Q_{i,m}K_{j,n}ᵀ cos(i−j)cos(m−n)",
        .method = "The printed weights of a row of 14 tokens by their distance, and those of the "
                  "library's CosFormer.",
        .corrected =
            "With a factor ω in each direction, 0 < ω(M − 1) ≤ π/2 for its M positions, cos(ω(i − "
            "j)) is not negative and falls with the distance, and the product of both is not negative "
            "and falls with either distance where it is not 0. "
            "CosFormer's π/2M is such a factor; as printed, 1, it is one for M = 2 alone. The "
            "expansion into four terms holds with any factor.",
        .proof = "|i − j| ≤ M − 1 keeps ω|i − j| in [0, π/2], where the cosine is not negative and "
                 "falls. π(M − 1)/2M < π/2, and ω = 1 satisfies M − 1 ≤ π/2 for M = 2 and for no "
                 "larger one: cos 2 < 0, as π/2 < 2 < 3π/2. Nor do the printed weights fall: cos 6 "
                 "= cos(2π − 6) > cos 1, as 0 < 2π − 6 < 1. cos(a − b) = cos a cos b + sin a sin b "
                 "for all a and b.",
        .judge = judge_m16,
    },
    {0},
};

const claim sima_reweighting_claims[] = {
    {
        .id = "M21",
        .source = "SimA App. A.3",
        .statement = "Hence, for every attention value, CosFormer needs 4 dot products between Q "
                     "and K vectors while our method needs only one dot product.",
        .method = "2 × 2 tokens of whole numbers: the library's CosFormer, of four terms, against "
                  "one dot product a pair, times its weight. One pair by hand.",
        .corrected =
            "One dot product is enough: the weight of a pair is a number known beforehand, so that "
            "an attention value takes one multiplication more than SimA's: 1 + 1/(2(d + d_v)) "
            "times the flops with QKᵀ first. With KᵀV first, where four terms are needed (M14; two on a single row or column of tokens), no "
            "attention value is formed.",
        .proof = "cos(i − j)cos(m − n) does not depend on Q and K, and the four terms of the "
                 "expansion add up to (q·k) times it. SimA takes 2d flops for q·k and 2d_v for its "
                 "product with V, a pair.",
        .judge = judge_m21,
    },
    {0},
};
