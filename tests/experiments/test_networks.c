/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks: layers and parts against counts made by hand, totals against those known otherwise. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "networks/configurations.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(networks, .init = scratch_begin, .fini = scratch_end);

/* ---- Layers ---- */

static void expect_count(const char *what, layer_count got, int64_t parameters, double macs)
{
    cr_expect(got.parameters == parameters, "%s: %" PRId64 " parameters, want %" PRId64, what,
              got.parameters, parameters);
    cr_expect(got.macs == macs, "%s: %.17g macs, want %.17g", what, got.macs, macs);
}

Test(networks, layers_are_those_made_by_hand)
{
    /* 3 x 3 from 3 to 32 channels with bias, to 112 x 112 */
    expect_count("conv", layer_conv(3, 32, 3, 1, true, 112), 27 * 32 + 32, 864. * 12544);
    expect_count("conv, no bias", layer_conv(48, 96, 3, 1, false, 56), 9 * 4608, 41472. * 3136);
    expect_count("depthwise", layer_conv(384, 384, 3, 384, true, 14), 10 * 384, 3456. * 196);
    expect_count("two groups", layer_conv(4, 6, 1, 2, false, 1), 12, 12);
    expect_count("linear", layer_linear(384, 1000, true, 1), 385000, 384000);
    expect_count("linear, no bias", layer_linear(5, 7, false, 11), 35, 385);
    expect_count("norm", layer_norm(512), 1024, 0);
    expect_count("embedding", layer_embedding(197, 384), 75648, 0);
    expect_count("mlp", layer_mlp(64, 4, 3136), 2 * 16384 + 256 + 64, 32768. * 3136);
    layer_count sum = layer_add((layer_count){1, 2, 3}, layer_times(5, (layer_count){7, 11, 13}));
    expect_count("sum", sum, 36, 57);
    cr_expect(sum.inverse_macs == 68);
}

enum { M49 = 49 * 49 * 49 };

/* What an operator costs: half the flops that <attnum/operators.h> and atn_cost name. */
static const struct {
    const char *what;
    attention_layer layer;
    int64_t parameters;
    double macs, inverse; /* of one head */
} operators[] = {
    {"softmax",
     {ATN_SOFTMAX, "attention", 197, 197, 6, 64, .stride = 1},
     0,
     197. * 197 * (64 + 1 + 64) + 197 * 32,
     0},
    {"class token",
     {ATN_SOFTMAX, "attention", 1, 197, 8, 48, .stride = 1},
     0,
     197. * (48 + 1 + 48) + 24,
     0},
    {"fewer keys",
     {ATN_SOFTMAX, "attention", 3136, 784, 1, 64, .stride = 1},
     0,
     3136. * 784 * 129 + 3136 * 32,
     0},
    /* convolution, distances of d, 20 times two products of m^3, P^T V, P A+ and their product, the
     * filter; weights, LayerNorm, a 9 x 9 filter for each head */
    {"soft, stage 1",
     {ATN_SOFT, "code", 3136, 3136, 2, 32, 56, true, ATN_SAMPLING_CONV_CODE, 8, 49, 9},
     32 * 32 * 64 + 64 + 2 * 81,
     49. * 64 * 1024 + (2401 + 3136. * 49) * 32 + 40. * M49 + 2 * 3136. * 49 * 32 + 3136. * 2401 +
         3136. * 32 * 81,
     40. * M49},
    {"soft, convolution alone",
     {ATN_SOFT, "paper", 196, 196, 10, 32, 14, true, ATN_SAMPLING_CONV, 2, 49, 0},
     32 * 32 * 4,
     49. * 4 * 1024 + (2401 + 196. * 49) * 32 + 40. * M49 + 2 * 196. * 49 * 32 + 196. * 2401,
     40. * M49},
    /* average: 64 additions and a division, half of each */
    {"soft, pool",
     {ATN_SOFT, "code", 3136, 3136, 2, 32, 56, true, ATN_SAMPLING_POOL, 8, 49, 9},
     2 * 81,
     49. * 65 * 16 + (2401 + 3136. * 49) * 32 + 40. * M49 + 2 * 3136. * 49 * 32 + 3136. * 2401 +
         3136. * 32 * 81,
     40. * M49},
    {"softpp",
     {ATN_SOFTPP, "paper", 196, 196, 10, 32, 14, true, ATN_SAMPLING_FIRST, 2, 49, 0},
     0,
     (2401 + 196. * 49) * 32 + 40. * M49 + 2 * 196. * 49 * 32 + 196. * 2401 + 1.5 * 2401,
     40. * M49},
    /* sp. 1x1: a linear map for landmarks, all pairs */
    {"soft, stage 4",
     {ATN_GAUSSIAN, "exact", 50, 50, 16, 32, 7, true, ATN_SAMPLING_CONV_CODE, 1, 49, 0},
     1024 + 64,
     50. * 1024 + 2500 * (32 + 32),
     0},
    {"sima, channels",
     {ATN_SIMA, "code", 197, 197, 6, 64, .stride = 1},
     0,
     2 * 197. * 64 * 64 + 2 * 197. * 64,
     0},
    {"sima, tokens",
     {ATN_SIMA, "tokens", 197, 197, 6, 64, .stride = 1},
     0,
     2 * 197. * 197 * 64 + 2 * 197. * 64,
     0},
    {"xca",
     {ATN_XCA, "code", 196, 196, 8, 48, .stride = 1},
     8,
     3 * 196. * 48 + 2 * 196. * 48 * 48 + 1.5 * 48 * 48,
     0},
    {"xnorm",
     {ATN_XNORM, "paper", 196, 196, 8, 16, .stride = 1},
     8,
     2 * 196. * 16 * 16 + 1.5 * 16 * (196 + 16),
     0},
    {"linformer",
     {ATN_LINFORMER, "projected", 784, 784, 4, 32, .stride = 4, .landmarks = 49},
     784 * 49,
     2 * 784. * 49 * 32 + 784. * 49 * 65 + 784 * 16,
     0},
    {"nystromformer",
     {ATN_NYSTROMFORMER, "original", 784, 784, 4, 32, .stride = 4, .landmarks = 49},
     0,
     784. * 32 + 2401. * 33.5 + 24. * M49 + 2401. * 32 + 2 * 784. * 49 * 65 + (784 + 49) * 16.,
     24. * M49},
};
enum { OPERATORS = sizeof operators / sizeof *operators };

Test(networks, operators_are_those_made_by_hand)
{
    atn_context *context = make_context();
    for (int i = 0; i < OPERATORS; i++) {
        layer_count got;
        double heads = (double)operators[i].layer.heads;
        cr_assert(layer_attention(context, &operators[i].layer, &got) == EXIT_PASS);
        expect_count(operators[i].what, got, operators[i].parameters, heads * operators[i].macs);
        cr_expect(got.inverse_macs == heads * operators[i].inverse, "%s: %.17g of the inverse",
                  operators[i].what, got.inverse_macs);
    }
    atn_context_free(context);
}

Test(networks, an_operator_that_cannot_be_planned_is_reported)
{
    atn_context *context = make_context();
    attention_layer layer = {ATN_SOFT,          "code",     50, 50, 2, 32, 7, true,
                             ATN_SAMPLING_POOL, .stride = 1};
    layer_count count;
    capture();
    cr_expect(layer_attention(context, &layer, &count) == EXIT_ENVIRONMENT);
    const char *text = captured();
    cr_expect(is_one_line_with(text, "soft/code n=50 h=2"), "%s", text);
    atn_context_free(context);
}

/* ---- Totals ---- */

/* The one row of a paper's table under a reading. */
static const printed_row *find_row(const char *paper, const char *where, const char *name,
                                   const char *reading)
{
    const printed_row *found = NULL;
    for (int i = 0; i < printed_row_count; i++) {
        const printed_row *row = &printed_rows[i];
        if (strcmp(row->paper, paper) != 0 || strcmp(row->table, where) != 0 ||
            strcmp(row->name, name) != 0 || strcmp(row->reading, reading) != 0)
            continue;
        cr_expect(!found, "%s %s %s %s twice", paper, where, name, reading);
        found = row;
    }
    cr_assert(found, "%s %s %s %s", paper, where, name, reading);
    return found;
}

static network_count count_row(const printed_row *row)
{
    atn_context *context = make_context();
    network_count sheet;
    cr_assert(network_counts(context, row->network, &row->change, &sheet) == EXIT_PASS);
    atn_context_free(context);
    return sheet;
}

#define NIPS "SOFT (NeurIPS)"
#define IJCV "SOFT (IJCV)"

/* Parameters by other means: of the published code of SOFT, to the digits given; to the last one of
 * what frameworks' model summaries say of DeiT-S, XCiT and CvT-13. */
static const struct {
    const char *paper, *table, *name, *reading;
    double parameters, unit;
} totals[] = {
    {NIPS, "Tab. 3", "SOFT-Tiny", "stage 4 softmax", 13.07e6, 1e4},
    {NIPS, "Tab. 3", "SOFT-Small", "stage 4 softmax", 24.11e6, 1e4},
    {NIPS, "Tab. 3", "SOFT-Small", "stage 3 x 20 (code)", 38.86e6, 1e4},
    {NIPS, "Tab. 3", "SOFT-Medium", "stage 4 softmax", 45.81e6, 1e4},
    {NIPS, "Tab. 3", "SOFT-Large", "stage 4 softmax", 64.70e6, 1e4},
    {NIPS, "Tab. 3", "SOFT-Huge", "stage 4 softmax", 87.11e6, 1e4},
    {NIPS, "Tab. 4b", "Tiny with average pooling", "stage 4 softmax", 12.96e6, 1e4},
    {NIPS, "Tab. 4b", "Tiny with random sampling", "stage 4 softmax", 12.96e6, 1e4},
    {IJCV, "Tab. 3", "SOFT-Tiny", "stage 4 softmax", 15.45e6, 1e4},
    {IJCV, "Tab. 3", "SOFT-Small", "stage 4 softmax", 28.38e6, 1e4},
    {IJCV, "Tab. 3", "SOFT-Medium", "stage 4 softmax", 49.58e6, 1e4},
    {IJCV, "Tab. 3", "SOFT-Large", "stage 4 softmax", 87.29e6, 1e4},
    {"SimA", "Tab. 1", "DeiT-S", "as described", 22050664, 1},
    {"SimA", "Tab. 1", "XCiT-S12/16", "as described", 26253304, 1},
    {"SimA", "Tab. 1", "XCiT-T24/16", "as described", 12116896, 1},
    {"SimA", "Tab. 1", "XCiT-T12/8", "as described", 6706504, 1},
    {"SimA", "Tab. 1", "CvT-13", "as described", 19997480, 1},
    {"UFO-ViT", "Tab. 4", "DeiT-Ti", "as described", 5717416, 1},
    {"UFO-ViT", "Tab. 4", "DeiT-B", "as described", 86567656, 1},
    {"UFO-ViT", "Tab. 4", "XCiT-T12/16", "as described", 6716272, 1},
    {"UFO-ViT", "Tab. 4", "XCiT-S24/16", "as described", 47671384, 1},
    {"UFO-ViT", "Tab. 4", "XCiT-M24", "as described", 84395752, 1},
    {NIPS, "Tab. 3", "PVT-Tiny", "as described", 13.2e6, 1e5},
    {NIPS, "Tab. 3", "PVT-Small", "as described", 24.5e6, 1e5},
    {NIPS, "Tab. 3", "PVT-Medium", "as described", 44.2e6, 1e5},
    {NIPS, "Tab. 3", "PVT-Large", "as described", 61.4e6, 1e5},
    /* less tau of 8 heads in 12 blocks */
    {"SimA", "Tab. 1", "XCiT-S12/16 → SimA", "as described", 26253304 - 96, 1},
};
enum { TOTALS = sizeof totals / sizeof *totals };

Test(networks, parameters_are_those_known_otherwise)
{
    for (int i = 0; i < TOTALS; i++) {
        network_count sheet = count_row(
            find_row(totals[i].paper, totals[i].table, totals[i].name, totals[i].reading));
        double got = (double)network_total(&sheet).parameters;
        cr_expect(fabs(got - totals[i].parameters) <= totals[i].unit / 2, "%s %s: %.0f, want %.0f",
                  totals[i].name, totals[i].reading, got, totals[i].parameters);
    }
}

/* ---- Parts ---- */

static layer_count part_of(const network_count *sheet, int number, const char *name)
{
    for (int i = 0; i < sheet->count; i++)
        if (sheet->parts[i].stage == number && strcmp(sheet->parts[i].part, name) == 0)
            return sheet->parts[i].count;
    cr_assert_fail("no part %s in stage %d", name, number);
    return (layer_count){0};
}

#define TOKENS 3136.

static const struct {
    const char *paper, *table, *name, *reading, *part;
    int stage;
    int64_t parameters;
    double macs;
} parts[] = {
    /* 3 -> 32 -> 32 -> 64, biases and BatchNorms */
    {NIPS, "Tab. 3", "SOFT-Tiny", "stage 4 softmax", "embedding", 1,
     864 + 9216 + 18432 + 3 * (32 + 32 + 64), (864. + 9216) * 12544 + 18432 * TOKENS},
    {NIPS, "Tab. 3", "SOFT-Tiny", "stage 4 softmax", "embedding", 4, 9 * 320 * 512 + 3 * 512,
     9 * 320 * 512 * 49.},
    {NIPS, "Tab. 3", "SOFT-Tiny", "stage 4 softmax", "positions", 1, 3136 * 64, 0},
    {NIPS, "Tab. 3", "SOFT-Tiny", "stage 4 softmax", "positions", 4, 51 * 512, 0},
    {NIPS, "Tab. 3", "SOFT-Tiny", "stage 4 softmax", "norms", 2, 2 * 4 * 128, 0},
    /* Q = K, V and out of two layers */
    {NIPS, "Tab. 3", "SOFT-Tiny", "stage 4 softmax", "projections", 2, 2 * 3 * (16384 + 128),
     2 * 3 * 16384 * 784.},
    {NIPS, "Tab. 3", "SOFT-Tiny", "stage 4 softmax", "projections", 4, 2 * 4 * (262144 + 512),
     2 * 4 * 262144 * 50.},
    {NIPS, "Tab. 3", "SOFT-Tiny", "stage 4 SOFT", "projections", 4, 2 * 3 * (262144 + 512),
     2 * 3 * 262144 * 50.},
    {NIPS, "Tab. 3", "SOFT-Tiny", "stage 4 softmax", "mlp", 3, 3 * (8 * 102400 + 5 * 320),
     3 * 8 * 102400 * 196.},
    {NIPS, "Tab. 3", "SOFT-Tiny", "stage 4 softmax", "mlp", 4, 2 * (8 * 262144 + 5 * 512),
     2 * 8 * 262144 * 50.},
    {NIPS, "Tab. 3", "SOFT-Tiny", "stage 4 softmax", "classifier", 5, 1024 + 513000, 512000},
    /* the operator changes in stages 1 to 3 alone, and with it the shared K */
    {NIPS, "Tab. 1", "Transformer", "in stages 1 to 3 of Tiny", "attention", 1, 0,
     2 * (TOKENS * TOKENS * 65 + TOKENS * 16)},
    {NIPS, "Tab. 1", "Linformer", "in stages 1 to 3 of Tiny", "projections", 1, 4 * (4096 + 64),
     4 * 4096 * TOKENS},
    {NIPS, "Tab. 1", "Linformer", "in stages 1 to 3 of Tiny", "attention", 4, 0,
     2 * 16 * (2500 * 65. + 50 * 16)},
    {NIPS, "Tab. 4a", "Tiny with m = 81", "landmarks given", "attention", 3, 3 * 10 * 9,
     30 * ((6561 + 196. * 81) * 32 + 40. * 81 * 81 * 81 + 2 * 196. * 81 * 32 + 196. * 6561 +
           196. * 32 * 9)},
    /* PVT: 8 x 8 tokens make one key; none in stage 4, which has a class token */
    {NIPS, "Tab. 3", "PVT-Small", "as described", "projections", 1,
     3 * (4 * (4096 + 64) + 64 * 4096 + 3 * 64),
     3 * (4096 * (2 * TOKENS + 2 * 49) + 4096 * TOKENS)},
    {NIPS, "Tab. 3", "PVT-Small", "as described", "mlp", 2, 4 * (2 * 8 * 16384 + (8 + 1) * 128),
     4 * 2 * 8 * 16384 * 784.},
    {NIPS, "Tab. 3", "PVT-Small", "as described", "attention", 1, 0,
     3 * (TOKENS * 49 * 129 + TOKENS * 32)},
    {NIPS, "Tab. 3", "PVT-Small", "as described", "projections", 4, 3 * 4 * (262144 + 512),
     3 * 4 * 262144 * 50.},
    /* XCiT: 3 -> 48 -> 96 -> 192 -> 384, 64 sines and cosines, LPI */
    {"SimA", "Tab. 1", "XCiT-S12/16", "as described", "embedding", 1,
     9 * (144 + 4608 + 18432 + 73728) + 2 * 720,
     9 * (144 * 12544. + 4608 * 3136. + 18432 * 784. + 73728 * 196.)},
    {"SimA", "Tab. 1", "XCiT-S12/16", "as described", "positions", 1, 65 * 384, 64 * 384 * 196.},
    {"SimA", "Tab. 1", "XCiT-S12/16", "as described", "norms", 1, 12 * 9 * 384, 0},
    {"SimA", "Tab. 1", "XCiT-S12/16", "as described", "local", 1, 12 * 22 * 384,
     12 * 18 * 384 * 196.},
    {"SimA", "Tab. 1", "XCiT-S12/16", "as described", "class attention", 2,
     2 * (12 * 147456 + (4 + 5 + 4 + 2) * 384) + 384,
     2 * (147456 * (3 * 197. + 1 + 8) + 8 * (197 * 97. + 24))},
    {"SimA", "Tab. 1", "XCiT-S12/16 → SimA", "as described", "class attention", 2,
     2 * (12 * 147456 + (4 + 5 + 4 + 2) * 384) + 384,
     2 * (147456 * (3 * 197. + 1 + 8) + 8 * (2 * 197 * 48. + 198 * 48))},
    {"SimA", "Tab. 2", "XCiT w/ Efficient Attention", "in XCiT-S12/16", "class attention", 2,
     2 * (12 * 147456 + (4 + 5 + 4 + 2) * 384) + 384,
     2 * (147456 * (3 * 197. + 1 + 8) + 8 * (197 * 97. + 24))},
    {"SimA", "Tab. 1", "XCiT-T12/8", "as described", "positions", 1, 65 * 192, 64 * 192 * 784.},
    {"SimA", "Tab. 1", "DeiT-S", "as described", "embedding", 1, 769 * 384, 768 * 384 * 196.},
    {"SimA", "Tab. 1", "DeiT-S → SimA with one head", "as described", "attention", 1, 0,
     12 * (2 * 197. * 197 * 384 + 2 * 197. * 384)},
    {"SimA", "Tab. 1", "XCiT-T24/16 → SimA", "as described", "attention", 1, 0,
     24 * 4 * (2 * 196. * 48 * 48 + 2 * 196. * 48)},
    {"SimA", "Tab. 1", "XCiT-T12/8 → SimA", "as described", "attention", 1, 0,
     12 * 4 * (2 * 784. * 48 * 48 + 2 * 784. * 48)},
    {"SimA", "Tab. 2", "XCiT-T20/16 → SimA", "as described", "mlp", 1, 20 * (8 * 36864 + 5 * 192),
     20 * 8 * 36864 * 196.},
    /* CvT: convolutions of Q to 14 x 14, of K and V to 7 x 7, then the class token */
    {"SimA", "Tab. 1", "CvT-13", "as described", "projections", 3,
     10 * (4 * (147456 + 384) + 33 * 384),
     10 * (147456 * (2 * 197. + 2 * 50) + 9 * 384 * (196. + 2 * 49))},
    {"SimA", "Tab. 1", "CvT-13", "as described", "attention", 2, 0,
     2 * 3 * (784. * 196 * 129 + 784 * 32)},
    {"SimA", "Tab. 1", "CvT-13 → SimA", "fewer flops first", "attention", 3, 0,
     10 * 6 * ((197. + 50) * 64 * 64 + (197. + 50) * 64)},
    {"SimA", "Tab. 1", "CvT-13", "as described", "embedding", 1, 147 * 64 + 3 * 64,
     147 * 64 * TOKENS},
    {"SimA", "Tab. 1", "CvT-13", "as described", "positions", 3, 384, 0},
    /* UFO-ViT: Q, K and V are 128 wide */
    {"UFO-ViT", "Tab. 1", "UFO-ViT-S", "depthwise", "projections", 1,
     12 * (4 * 384 * 128 + 3 * 128 + 384), 12 * 4 * 384 * 128 * 196.},
    {"UFO-ViT", "Tab. 1", "UFO-ViT-S", "depthwise", "attention", 1, 12 * 8,
     12 * 8 * (2 * 196. * 256 + 24 * 212.)},
    {"UFO-ViT", "Tab. 1", "UFO-ViT-S", "depthwise", "norms", 1, 12 * 12 * 384, 0},
    {"UFO-ViT", "Tab. 1", "UFO-ViT-S", "depthwise", "local", 1, 12 * 10 * 384, 12 * 9 * 384 * 196.},
    {"UFO-ViT", "Tab. 1", "UFO-ViT-S", "LPI", "local", 1, 12 * 22 * 384, 12 * 18 * 384 * 196.},
    {"UFO-ViT", "Tab. 1", "UFO-ViT-S", "depthwise", "class attention", 2,
     2 * (4 * 384 * 128 + 3 * 128 + 384 + 8 + 8 * 147456 + 5 * 384 + 8 * 384) + 384,
     2 * (384 * 128 * (3 * 197. + 1) + 8 * 147456 + 8 * ((1 + 197) * 256. + 24 * 17))},
    {"UFO-ViT", "Tab. 1", "UFO-ViT-T", "depthwise", "attention", 1, 24 * 4,
     24 * 4 * (2 * 196. * 576 + 36 * 220.)},
    {"UFO-ViT", "Tab. 1", "UFO-ViT-T", "LPI", "mlp", 1, 24 * (8 * 36864 + 5 * 192),
     24 * 8 * 36864 * 196.},
    {"UFO-ViT", "Tab. 1", "UFO-ViT-M", "depthwise", "attention", 1, 24 * 8,
     24 * 8 * (2 * 196. * 256 + 24 * 212.)},
    {"UFO-ViT", "Tab. 1", "UFO-ViT-M", "LPI", "local", 1, 24 * 22 * 384, 24 * 18 * 384 * 196.},
    {"UFO-ViT", "Tab. 1", "UFO-ViT-B", "depthwise", "attention", 1, 24 * 8,
     24 * 8 * (2 * 196. * 256 + 24 * 212.)},
    {"UFO-ViT", "Tab. 1", "UFO-ViT-B", "LPI", "local", 1, 24 * 22 * 512, 24 * 18 * 512 * 196.},
    {"UFO-ViT", "Tab. 4", "UFO-ViT-B/384", "depthwise", "positions", 1, 576 * 512, 0},
    {"UFO-ViT", "Tab. 4", "UFO-ViT-B/384", "depthwise", "mlp", 1, 24 * (8 * 262144 + 5 * 512),
     24 * 8 * 262144 * 576.},
};
enum { PARTS = sizeof parts / sizeof *parts };

Test(networks, parts_are_those_made_by_hand)
{
    for (int i = 0; i < PARTS; i++) {
        network_count sheet =
            count_row(find_row(parts[i].paper, parts[i].table, parts[i].name, parts[i].reading));
        char *what = must_format("%s, %s, stage %d, %s", parts[i].name, parts[i].reading,
                                 parts[i].stage, parts[i].part);
        expect_count(what, part_of(&sheet, parts[i].stage, parts[i].part), parts[i].parameters,
                     parts[i].macs);
        free(what);
    }
}

/* ---- Verdicts ---- */

static const struct {
    double counted;
    const char *printed, *verdict;
} verdicts[] = {
    {13.069056, "13.07", "agrees"},
    {13.0649, "13.07", "within 2 %"},
    {13.5, "13", "agrees"},
    {12.5, "13", "agrees"},
    {13.51, "13", "disagrees"},
    {45.5, "45", "agrees"},
    {45.51, "45", "within 2 %"},
    {45.89, "45", "within 2 %"},
    {45.91, "45", "disagrees"},
    {44.11, "45", "within 2 %"},
    {44.09, "45", "disagrees"},
    {11.04, "11.0", "agrees"},
    {11.06, "11.0", "within 2 %"},
    {(double)NAN, "13", "disagrees"},
    {(double)INFINITY, "13", "disagrees"},
};

Test(networks, verdicts)
{
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
        const char *got = printed_verdict(verdicts[i].counted, verdicts[i].printed);
        cr_expect(strcmp(got, verdicts[i].verdict) == 0, "%g against %s: %s", verdicts[i].counted,
                  verdicts[i].printed, got);
    }
}

/* ---- The CSV ---- */

static bool same_network(const table *a, int64_t i, const table *b, int64_t j)
{
    static const char *const names[] = {"paper", "table", "network", "reading"};
    bool same = true;
    for (int k = 0; k < 4; k++)
        same = same && cell_is(a, i, names[k], cell_text(b, j, names[k]));
    return same;
}

Test(networks, parts_add_up_to_the_totals)
{
    cr_assert(run_experiment(&networks_counts, "--out out") == EXIT_PASS);
    table *t = read_output(&networks_counts, "out", 0),
          *p = read_output(&networks_counts, "out", 1);
    cr_assert(table_rows(t) == printed_row_count);
    for (int64_t i = 0; i < table_rows(t); i++) {
        double parameters = 0, macs = 0, inverse = 0;
        for (int64_t j = 0; j < table_rows(p); j++)
            if (same_network(t, i, p, j)) {
                parameters += (double)cell_integer(p, j, "parameters");
                macs += cell_real(p, j, "macs");
                inverse += cell_real(p, j, "inverse_macs");
            }
        const char *name = cell_text(t, i, "network");
        cr_expect(cell_real(t, i, "counted_params_m") == parameters / 1e6, "%s", name);
        cr_expect(cell_real(t, i, "counted_gmacs") == macs / 1e9, "%s", name);
        double rest = cell_real(t, i, "counted_gmacs_no_inverse");
        /* exact multiples of 1/2: the difference rounds once more */
        cr_expect(inverse > 0 ? fabs(rest - (macs - inverse) / 1e9) <= 4 * 0x1p-53 * rest
                              : isnan(rest),
                  "%s", name);
        for (int64_t j = 0; j < i; j++)
            cr_expect(!same_network(t, i, t, j), "%s twice", name);
    }
    table_free(t);
    table_free(p);
}

static void expect_judged(const table *t, int64_t row, const char *counted, const char *ratio,
                          const char *verdict, const char *printed, const char *digits)
{
    double value = cell_real(t, row, counted);
    if (!digits || isnan(value)) {
        cr_expect(isnan(cell_real(t, row, ratio)) && !*cell_text(t, row, verdict));
        return;
    }
    cr_expect(cell_real(t, row, printed) == strtod(digits, NULL));
    cr_expect(cell_real(t, row, ratio) == value / strtod(digits, NULL));
    cr_expect(cell_is(t, row, verdict, printed_verdict(value, digits)), "%s: %s",
              cell_text(t, row, "network"), cell_text(t, row, verdict));
}

Test(networks, every_row_is_judged_and_explained)
{
    cr_assert(run_experiment(&networks_counts, "--out out") == EXIT_PASS);
    table *t = read_output(&networks_counts, "out", 0);
    for (int64_t row = 0; row < table_rows(t); row++) {
        const printed_row *from = &printed_rows[row];
        expect_judged(t, row, "counted_params_m", "params_ratio", "params_verdict",
                      "printed_params_m", from->parameters_m);
        expect_judged(t, row, "counted_gmacs", "gmacs_ratio", "gmacs_verdict", "printed_gflops",
                      from->gflops);
        expect_judged(t, row, "counted_gmacs_no_inverse", "no_inverse_ratio", "no_inverse_verdict",
                      "printed_gflops", from->gflops);
        double difference = cell_real(t, row, "params_difference_m");
        if (from->parameters_m)
            cr_expect(difference == cell_real(t, row, "counted_params_m") -
                                        cell_real(t, row, "printed_params_m"));
        static const char *const names[] = {"params_verdict", "gmacs_verdict",
                                            "no_inverse_verdict"};
        for (int i = 0; i < 3; i++) {
            const char *verdict = cell_text(t, row, names[i]);
            cr_expect(!*verdict || strcmp(verdict, "agrees") == 0 ||
                          *cell_text(t, row, "explanation"),
                      "%s, %s: %s %s", from->name, from->reading, names[i], verdict);
        }
        cr_expect(*cell_text(t, row, "assumption"), "%s", from->name);
    }
    table_free(t);
}

/* What the explanations say. */
static const struct {
    const char *paper, *table, *name, *reading, *parameters, *gmacs, *no_inverse;
} findings[] = {
    {NIPS, "Tab. 3", "SOFT-Small", "stage 4 softmax", "agrees", "disagrees", "disagrees"},
    {NIPS, "Tab. 3", "SOFT-Small", "stage 4 SOFT", "disagrees", "disagrees", "within 2 %"},
    {NIPS, "Tab. 4a", "Tiny with m = 81", "landmarks given", "", "disagrees", "agrees"},
    {NIPS, "Tab. 3", "SOFT-Small", "stage 3 x 20 (code)", "disagrees", "disagrees", "disagrees"},
    {NIPS, "Tab. 3", "SOFT-Medium", "stage 4 softmax", "within 2 %", "disagrees", "disagrees"},
    {NIPS, "Tab. 4b", "Tiny with convolution", "stage 4 softmax", "agrees", "disagrees", "agrees"},
    {IJCV, "Tab. 3", "SOFT-Tiny", "stage 4 SOFT", "disagrees", "disagrees", "disagrees"},
    {IJCV, "Tab. 3", "SOFT-Large", "stage 4 softmax", "disagrees", "disagrees", "within 2 %"},
    {IJCV, "Tab. 3", "SOFT++-Large", "stage 4 SOFT", "agrees", "disagrees", "agrees"},
    {"SimA", "Tab. 1", "DeiT-S → SimA", "fewer flops first", "agrees", "disagrees", ""},
    {"SimA", "Tab. 1", "DeiT-S → SimA", "Q K^T first", "agrees", "agrees", ""},
    {"SimA", "Tab. 2", "XCiT-S12/16 → SimA", "as described", "disagrees", "within 2 %", ""},
    {"UFO-ViT", "Tab. 1", "UFO-ViT-S", "depthwise", "agrees", "agrees", ""},
};

Test(networks, findings)
{
    cr_assert(run_experiment(&networks_counts, "--out out") == EXIT_PASS);
    table *t = read_output(&networks_counts, "out", 0);
    for (size_t i = 0; i < sizeof findings / sizeof *findings; i++) {
        int64_t row =
            find_row(findings[i].paper, findings[i].table, findings[i].name, findings[i].reading) -
            printed_rows;
        const char *const want[] = {findings[i].parameters, findings[i].gmacs,
                                    findings[i].no_inverse};
        static const char *const names[] = {"params_verdict", "gmacs_verdict",
                                            "no_inverse_verdict"};
        for (int j = 0; j < 3; j++)
            cr_expect(cell_is(t, row, names[j], want[j]), "%s, %s: %s is %s", findings[i].name,
                      findings[i].reading, names[j], cell_text(t, row, names[j]));
    }
    table_free(t);
}
