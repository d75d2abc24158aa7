/* SPDX-License-Identifier: BSD-3-Clause */
/* M17 - M20: what can be tested without training about SimA and its rivals in a network: heads,
 * activations, maps. */
#include <data.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention/magnitudes.h"
#include "claims/direct.h"
#include "claims/m01_sima.h"
#include "common/report.h"
#include "networks/network.h"

/* ---- M17 ---- */

enum { MODEL_TOKEN = 384 }; /* D of DeiT-S */
enum { HEADS = 6, HEAD_WIDTH = 8, MODEL_WIDTH = HEADS * HEAD_WIDTH, HEAD_TOKENS = 196 };

/* Columns first, first + 1, ... of x (n x width), `taken` of them. */
static void copy_columns(int64_t n, int64_t width, int64_t first, int64_t taken, const double *x,
                         double *columns)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < taken; c++)
            columns[i * taken + c] = x[i * width + first + c];
}

/* The largest difference between the attention matrix of one head and the sum of those of two heads
 * of half the width, for whole numbers. */
static int sum_of_heads(const claim_run *run, double *apart)
{
    enum { HALF = WHOLE_WIDTH / 2, SIZE = WHOLE_TOKENS * WHOLE_TOKENS };
    double q[WHOLE_TOKENS * WHOLE_WIDTH], k[WHOLE_TOKENS * WHOLE_WIDTH], single[SIZE];
    double q_head[WHOLE_TOKENS * HALF], k_head[WHOLE_TOKENS * HALF], head[2][SIZE];
    sima_fill_whole(0, q);
    sima_fill_whole(1, k);
    int code = direct_attention_matrix(run, ATN_SIMA, WHOLE_TOKENS, WHOLE_WIDTH, q, k, single);
    for (int h = 0; h < 2; h++) {
        copy_columns(WHOLE_TOKENS, WHOLE_WIDTH, (int64_t)h * HALF, HALF, q, q_head);
        copy_columns(WHOLE_TOKENS, WHOLE_WIDTH, (int64_t)h * HALF, HALF, k, k_head);
        code = exit_worst(code, direct_attention_matrix(run, ATN_SIMA, WHOLE_TOKENS, HALF, q_head,
                                                        k_head, head[h]));
    }
    *apart = 0;
    for (int i = 0; i < SIZE; i++)
        *apart = direct_worst(*apart, fabs(single[i] - head[0][i] - head[1][i]));
    return code;
}

/* The change of the output with one head instead of six, with the same Q, K and V of normal tokens,
 * over the size of the output with six. */
static int change_of_heads(const claim_run *run, atn_operator op, double *changed_by)
{
    enum { COUNT = HEAD_TOKENS * MODEL_WIDTH, HEAD_COUNT = HEAD_TOKENS * HEAD_WIDTH };
    const atn_attention_desc desc = atn_attention_defaults(op, ATN_F64);
    double *x = must_allocate((size_t)4 * COUNT, sizeof *x), *y = x + 3 * COUNT;
    double *head = must_allocate((size_t)4 * HEAD_COUNT, sizeof *head);
    double changed = 0, size = 0;
    data_normal(run->seed, (int64_t)3 * COUNT, x);
    int code = direct_forward(run, &desc, HEAD_TOKENS, MODEL_WIDTH, MODEL_WIDTH, x, x + COUNT,
                              x + (ptrdiff_t)2 * COUNT, y);
    for (int64_t h = 0; h < HEADS; h++) {
        for (int64_t i = 0; i < 3; i++)
            copy_columns(HEAD_TOKENS, MODEL_WIDTH, h * HEAD_WIDTH, HEAD_WIDTH, x + i * COUNT,
                         head + i * HEAD_COUNT);
        code =
            exit_worst(code, direct_forward(run, &desc, HEAD_TOKENS, HEAD_WIDTH, HEAD_WIDTH, head,
                                            head + HEAD_COUNT, head + (ptrdiff_t)2 * HEAD_COUNT,
                                            head + (ptrdiff_t)3 * HEAD_COUNT));
        for (int64_t i = 0; i < HEAD_COUNT; i++) {
            double of_head = head[3 * HEAD_COUNT + i];
            double of_one = y[i / HEAD_WIDTH * MODEL_WIDTH + h * HEAD_WIDTH + i % HEAD_WIDTH];
            changed += (of_one - of_head) * (of_one - of_head);
            size += of_head * of_head;
        }
    }
    *changed_by = sqrt(changed / size);
    free(head);
    free(x);
    return code;
}

/* Flops of the products with one head over those with six, D = 384. */
static int flops_of_heads(const claim_run *run, atn_order order, double *times)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F32);
    desc.sima = (atn_sima_options){.norm = ATN_SIMA_NONE, .order = order};
    double flops[2];
    int code = EXIT_PASS;
    for (int i = 0; i < 2; i++) {
        int64_t heads = i == 0 ? 1 : HEADS, d = MODEL_TOKEN / heads;
        code = exit_worst(code, direct_flops(run, &desc, heads, HEAD_TOKENS, d, d, &flops[i]));
    }
    *times = flops[0] / flops[1];
    return code;
}

static int judge_m17(const claim_run *run, verdict *v)
{
    double apart, sima, softmax, tokens, channels;
    int code = sum_of_heads(run, &apart);
    code = exit_worst(code, change_of_heads(run, ATN_SIMA, &sima));
    code = exit_worst(code, change_of_heads(run, ATN_SOFTMAX, &softmax));
    code = exit_worst(code, flops_of_heads(run, ATN_ORDER_TOKENS, &tokens));
    code = exit_worst(code, flops_of_heads(run, ATN_ORDER_CHANNELS, &channels));
    if (code != EXIT_PASS)
        return code;
    v->kind = VERDICT_OBSERVED;
    verdict_set(&v->measured,
                "the accuracies are not testable here (A15). Whole numbers: the attention matrix "
                "of one head is off the sum of those of two "
                "by %g. %d normal tokens, one head for %d with the same Q, K and V: the output "
                "changes by %.2g of its size, that of softmax attention by %.2g; the products take "
                "%.3g times the flops with QKᵀ first, %.3g with KᵀV first",
                apart, HEAD_TOKENS, HEADS, sima, softmax, tokens, channels);
    verdict_set(&v->bound, "0 for the matrix");
    if (apart == 0)
        return EXIT_PASS;
    report_error("M17: the matrix of one head is off the sum of the heads' by %g, which is proved "
                 "not to be",
                 apart);
    return EXIT_CHECK;
}

/* ---- M18 ---- */

/* exps of DeiT-S's blocks for one image: of softmax attention, of SimA in its place, and of GELU,
 * one for every activation. */
typedef struct {
    double softmax, sima, gelu;
} block_exps;

static int count_exps(const claim_run *run, int64_t pixels, block_exps *e)
{
    enum { PATCH = 16, LAYERS = 12 };
    int64_t n = (pixels / PATCH) * (pixels / PATCH) + 1; /* with the class token */
    atn_attention_shape shape = {.batch = 1,
                                 .heads = HEADS,
                                 .tokens = n,
                                 .dim = MODEL_TOKEN / HEADS,
                                 .value_dim = MODEL_TOKEN / HEADS};
    static const atn_operator operators[2] = {ATN_SOFTMAX, ATN_SIMA};
    double *const counts[2] = {&e->softmax, &e->sima};
    int code = EXIT_PASS;
    for (int i = 0; i < 2; i++) {
        atn_attention_desc desc = atn_attention_defaults(operators[i], ATN_F32);
        atn_cost cost = {0};
        code = exit_worst(code, direct_cost(run, &desc, &shape, &cost));
        *counts[i] = LAYERS * cost.exps;
    }
    e->gelu = (double)(LAYERS * n * MLP_RATIO * MODEL_TOKEN);
    return code;
}

static int judge_m18(const claim_run *run, verdict *v)
{
    static const int64_t pixels[] = {224, 384, 1536};
    enum { SIZES = sizeof pixels / sizeof *pixels };
    block_exps e[SIZES];
    double share[SIZES];
    fprintf(v->notes, "exps of the 12 blocks of DeiT-S for one image:\n\n| pixels | softmax | SimA "
                      "| GELU | share that SimA removes |\n|---|---|---|---|---|\n");
    for (int i = 0; i < SIZES; i++) {
        int code = count_exps(run, pixels[i], &e[i]);
        if (code != EXIT_PASS)
            return code;
        share[i] = (e[i].softmax - e[i].sima) / (e[i].softmax + e[i].gelu);
        fprintf(v->notes, "| %" PRId64 " | %.9g | %g | %.9g | %.1f %% |\n", pixels[i], e[i].softmax,
                e[i].sima, e[i].gelu, 100 * share[i]);
    }
    bool attention = e[0].sima == 0 && e[SIZES - 1].sima == 0, gelu = e[0].gelu > 0;
    v->kind = !attention ? VERDICT_FAILS : gelu ? VERDICT_HOLDS_IF : VERDICT_HOLDS;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition,
                    "\"our method\" is the variation with ReLU, not that of the main results");
    verdict_set(&v->measured,
                "exps of SimA's attention: %g. DeiT-S → SimA with GELU at 224 pixels: %.0f, where "
                "DeiT-S has %.0f; %.0f %% are removed, at 1536 pixels %.0f %%",
                e[0].sima, e[0].sima + e[0].gelu, e[0].softmax + e[0].gelu, 100 * share[0],
                100 * share[SIZES - 1]);
    verdict_set(&v->bound, "0 exps; one for every GELU, which § 4.5 says uses exp");
    if (v->kind != VERDICT_HOLDS)
        verdict_set(&v->counterexample,
                    "DeiT-S → SimA at 224 pixels: %g exps in attention, and %.0f activations by "
                    "GELU (12 layers of 197 tokens and 1536 channels)",
                    e[0].sima, e[0].gelu);
    return EXIT_PASS;
}

/* ---- M19 ---- */

/* Correlations of |q^_i| |k^_j| with the entries of the attention matrix, and with their absolute
 * values, for normal tokens scaled by factors exp(g / 2), g ~ N(0, 1). */
typedef struct {
    double entries, sizes;
} magnitude_correlation;

static int correlate(const claim_run *run, bool shared, magnitude_correlation *m)
{
    enum { TOKENS = 96, WIDTH = 32, PAIRS = TOKENS * TOKENS };
    double *x = must_allocate((size_t)2 * TOKENS * (WIDTH + 1), sizeof *x);
    double *k = x + TOKENS * WIDTH, *factors = k + TOKENS * WIDTH;
    double *matrix = must_allocate((size_t)3 * PAIRS, sizeof *matrix);
    double *sizes = matrix + PAIRS, *products = sizes + PAIRS, lengths[2][TOKENS];
    data_normal(run->seed, (int64_t)2 * TOKENS * (WIDTH + 1), x);
    for (int64_t i = 0; i < (int64_t)2 * TOKENS * WIDTH; i++)
        x[i] *= exp(0.5 * factors[i / WIDTH]);
    k = shared ? x : k;
    int code = direct_attention_matrix(run, ATN_SIMA, TOKENS, WIDTH, x, k, matrix);
    normalised_lengths(TOKENS, WIDTH, x, lengths[0]);
    normalised_lengths(TOKENS, WIDTH, k, lengths[1]);
    for (int64_t i = 0; i < PAIRS; i++) {
        sizes[i] = fabs(matrix[i]);
        products[i] = lengths[0][i / TOKENS] * lengths[1][i % TOKENS];
    }
    *m = (magnitude_correlation){correlation(PAIRS, matrix, products),
                                 correlation(PAIRS, sizes, products)};
    free(matrix);
    free(x);
    return code;
}

static int judge_m19(const claim_run *run, verdict *v)
{
    static const double ones[2] = {1, 1}, signs[2] = {1, -1};
    magnitude_correlation apart, shared;
    double same, opposed, lengths[2];
    int code = correlate(run, false, &apart);
    code = exit_worst(code, correlate(run, true, &shared));
    code = exit_worst(code, direct_attention_matrix(run, ATN_SIMA, 1, 2, ones, ones, &same));
    code = exit_worst(code, direct_attention_matrix(run, ATN_SIMA, 1, 2, ones, signs, &opposed));
    if (code != EXIT_PASS)
        return code;
    normalised_lengths(1, 2, ones, &lengths[0]);
    normalised_lengths(1, 2, signs, &lengths[1]);
    v->kind = VERDICT_OBSERVED;
    verdict_set(&v->measured,
                "whether it is so in a trained network is not testable here. 96 normal tokens "
                "whose lengths differ by exp(g/2), correlation with |q̂_i||k̂_j| "
                "over all pairs: of |entries| %.2f, of the entries %.2f; with K = Q %.2f and %.2f",
                apart.sizes, apart.entries, shared.sizes, shared.entries);
    verdict_set(&v->bound, "1 for one that decides the other, 0 for none");
    verdict_set(&v->counterexample,
                "not pair by pair: one token, q = (1, 1): the entry is %g with k = (1, 1) and %g "
                "with k = (1, −1), where |q̂||k̂| is %.3g and %.3g",
                same, opposed, lengths[0] * lengths[0], lengths[0] * lengths[1]);
    return EXIT_PASS;
}

/* ---- M20 ---- */

static int flops_of_call(const claim_run *run, atn_operator op, int64_t n, int64_t heads,
                         int64_t width, double *flops)
{
    const atn_attention_desc desc = atn_attention_defaults(op, ATN_F32);
    return direct_flops(run, &desc, heads, n, width / heads, width / heads, flops);
}

/* The smallest N for which XCA takes no more flops than softmax attention; 0 if there is none up to
 * 2 D. *later: whether it takes fewer for all larger N up to 16 D, in steps of D. */
static int find_crossing(const claim_run *run, int64_t heads, int64_t *crossing, bool *later)
{
    *crossing = 0;
    *later = true;
    for (int64_t n = 1; n <= 16 * MODEL_TOKEN; n += *crossing ? MODEL_TOKEN : 1) {
        double softmax, xca;
        int code = flops_of_call(run, ATN_SOFTMAX, n, heads, MODEL_TOKEN, &softmax);
        code = exit_worst(code, flops_of_call(run, ATN_XCA, n, heads, MODEL_TOKEN, &xca));
        if (code != EXIT_PASS || (*crossing == 0 && n > 2 * MODEL_TOKEN))
            return code;
        if (*crossing > 0)
            *later = *later && xca < softmax;
        else if (xca <= softmax)
            *crossing = n;
    }
    return EXIT_PASS;
}

static int judge_m20(const claim_run *run, verdict *v)
{
    static const int64_t heads[] = {1, 2, 6, 12};
    enum { SHAPES = sizeof heads / sizeof *heads, FAR = 8 }; /* N << D: N < D/8; N >> D: N > 8 D */
    int64_t crossing[SHAPES];
    bool far_below[SHAPES], far_above[SHAPES];
    fprintf(v->notes,
            "D = %d, exact counts:\n\n| H | D/H | XCA takes no more flops from N = "
            "|\n|---|---|---|\n",
            MODEL_TOKEN);
    for (int i = 0; i < SHAPES; i++) {
        int code = find_crossing(run, heads[i], &crossing[i], &far_above[i]);
        if (code != EXIT_PASS)
            return code;
        far_below[i] = crossing[i] >= MODEL_TOKEN / FAR;
        far_above[i] = far_above[i] && crossing[i] > 0 && crossing[i] <= FAR * MODEL_TOKEN;
        fprintf(v->notes, "| %" PRId64 " | %" PRId64 " | %" PRId64 " |\n", heads[i],
                MODEL_TOKEN / heads[i], crossing[i]);
    }
    enum { BASE_TOKEN = 768, BASE_HEADS = 12 }; /* DeiT-B */
    double softmax, xca;
    int code = flops_of_call(run, ATN_SOFTMAX, BASE_TOKEN / FAR, BASE_HEADS, BASE_TOKEN, &softmax);
    code = exit_worst(code,
                      flops_of_call(run, ATN_XCA, BASE_TOKEN / FAR, BASE_HEADS, BASE_TOKEN, &xca));
    if (code != EXIT_PASS)
        return code;
    fprintf(v->notes,
            "\nWith D as the width of all heads it would fail: DeiT-B, D = %d, H = %d, N = %d: N "
            "is D/%d, and XCA takes %.0f flops, softmax attention %.0f.\n",
            BASE_TOKEN, BASE_HEADS, BASE_TOKEN / FAR, FAR, xca, softmax);
    /* the paper's formula has one head: A = K^T Q is D x D */
    v->kind = far_below[0] && far_above[0] ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "D = %d: XCA takes no more flops than softmax attention from N = %" PRId64
                " on with one head, %" PRId64 " with %" PRId64 ", %" PRId64 " with %" PRId64,
                MODEL_TOKEN, crossing[0], crossing[2], heads[2], crossing[SHAPES - 1],
                heads[SHAPES - 1]);
    verdict_set(&v->bound, "D/%d to %dD, read as far from D", FAR, FAR);
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample,
                    "D = %d, one head: XCA takes no more flops from N = %" PRId64, MODEL_TOKEN,
                    crossing[0]);
    return EXIT_PASS;
}

const claim sima_network_claims[] = {
    {
        .id = "M17",
        .source = "SimA § 4.4",
        .statement =
            "[D]ifferent channels become more comparable in the dot product QKᵀ, so multi-head "
            "attention may not have a large effect anymore.",
        .method = "What needs no training: one head's attention matrix against the sum of the "
                  "heads', whole numbers; outputs of one head and of six of the same Q, K and V; "
                  "exact counts, D = 384.",
        .corrected =
            "For given weights one head is not six: its attention matrix is the sum of those of "
            "the heads, Q̂K̂ᵀ = Σ_h Q̂_hK̂_hᵀ, since ℓ1 norms are of single channels, and every "
            "value channel gets all of it. Its products take H times the flops of theirs with KᵀV "
            "first, and as many with QKᵀ first.",
        .proof = "Q̂K̂ᵀ = Σ_c q̂_c k̂_cᵀ over all channels, each in one head, and q̂_c, k̂_c do "
                 "not depend on the heads. KᵀV and Q(KᵀV) take 4ND² flops in one head, H·4N(D/H)² "
                 "in H; QKᵀ and the product with V 4N²D and H·4N²D/H.",
        .judge = judge_m17,
    },
    {
        .id = "M18",
        .source = "SimA Tab. 1, § 4.5",
        .statement = "Our method is a exp(·) free transformer and has on-par accuracy with SOTA "
                     "transformers. … GELU activation function also uses exp(·) operation, which "
                     "is costly.",
        .method = "Exact counts of the exps of DeiT-S's blocks with softmax attention and with "
                  "SimA, and of GELU as one for every activation (§ 4.5); 224, 384, 1536 pixels. "
                  "\"Our method\" is what the caption keeps apart from the variation with ReLU, "
                  "which alone \"does not need any exp(·) operation\". The accuracies are A13 and "
                  "A16.",
        .corrected =
            "SimA's attention has no exp, and with ReLU for GELU neither has DeiT-S → SimA. With "
            "GELU, as in the main results, 4D activations a token remain: SimA removes HN of "
            "DeiT's HN + 4D exps a token and layer, less than half while N < 4D/H.",
        .proof = "A block has HN² exps in softmax attention and 4ND activations in the MLP; ratio "
                 "HN/(HN + 4D), below 1/2 if and only if HN < 4D. Sums, |x|, products, divisions "
                 "and max(0, x) need no exp; LayerNorm has a square root.",
        .judge = judge_m18,
    },
    {
        .id = "M19",
        .source = "SimA § 4.7",
        .statement = "The dot product Q̂K̂ᵀ is correlated with the magnitude of Q̂ and K̂ vectors.",
        .method = "Correlation over all pairs of 96 normal tokens of different lengths, K "
                  "independent of Q and K = Q; one token by hand. Photographs' tokens are M07's.",
        .corrected =
            "Observed on random tokens: the sizes of the entries are correlated with |q̂_i||k̂_j|, "
            "the entries themselves hardly. Where cosines are independent of lengths and 0 in the "
            "mean this must be so.",
        .proof = "The entry is l·c, l = |q̂_i||k̂_j|, c the cosine. If c is independent of l, "
                 "Cov(l|c|, l) = E|c|·Var l > 0 unless l is constant or c = 0, and Cov(lc, l) = "
                 "E c·Var l, 0 where cosines of both signs balance.",
        .judge = judge_m19,
    },
    {
        .id = "M20",
        .source = "SimA § 2.1",
        .statement =
            "Compared to vanilla self-attention (MSA), XCA has complexity of O(D²N). Since "
            "XCA is linear on N, it is more efficient when N ≫ D and it is less efficient "
            "when N ≪ D.",
        .method = "Exact counts of softmax attention and XCA, D = 384, 1 to 12 heads: the smallest "
                  "N for which XCA takes no more flops; ≪ and ≫ read as a factor of 8.",
        .corrected = "One head is printed (A = KᵀQ is D × D). With H heads the products of XCA "
                     "take 4ND²/H flops and those of softmax attention 4N²D: they cross at N = "
                     "D/H, the width of a head, which is N = D only for one head.",
        .proof = "A head of d = D/H channels takes 2Nd² for KᵀQ and as many for the product with "
                 "V, softmax attention 2N²d twice. The quotient is N/d. What else the two do is "
                 "O(Nd + d²) and O(N²) a head, and moves the crossing little (table).",
        .judge = judge_m20,
    },
    {0},
};
