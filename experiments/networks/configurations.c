/* SPDX-License-Identifier: BSD-3-Clause */
/* Sources: the papers' tables; the published code of SOFT for what its papers leave out (biases,
 * the filter on V, LayerNorm on landmarks, softmax in stage 4); for SimA's hosts and what UFO-ViT
 * is compared with DeiT (arXiv:2012.12877), XCiT (arXiv:2106.09681) and CvT (arXiv:2103.15808); and
 * for what SOFT is compared with PVT (arXiv:2102.12122). */
#include "networks/configurations.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- What stages are made of ---- */

#define STEPS(array) .steps = array, .count = sizeof array / sizeof *array

/* "C33-BN-ReLU: three 3x3 Conv-BN-ReLU, with the stride of 2, 1, 2"; the first two are 32 wide in
 * the published code. Its convolutions have biases. */
static const embedding_step soft_stem_steps[] = {{3, 2, 32, 0}, {3, 1, 32, 0}, {3, 2, 0, 1}};
static const embedding_step soft_down_steps[] = {{3, 2, 0, 1}};
static const embedding soft_stem = {STEPS(soft_stem_steps), .bias = true, .norm = true};
static const embedding soft_down = {STEPS(soft_down_steps), .bias = true, .norm = true};
/* XCiT, section 4: 3x3 convolutions of stride 2, BatchNorm, no bias. */
static const embedding_step xcit16_steps[] = {
    {3, 2, 0, 8}, {3, 2, 0, 4}, {3, 2, 0, 2}, {3, 2, 0, 1}};
static const embedding_step xcit8_steps[] = {{3, 2, 0, 4}, {3, 2, 0, 2}, {3, 2, 0, 1}};
static const embedding xcit16 = {STEPS(xcit16_steps), .norm = true};
static const embedding xcit8 = {STEPS(xcit8_steps), .norm = true};
static const embedding_step deit_steps[] = {{16, 16, 0, 1}};
static const embedding deit_patches = {STEPS(deit_steps), .bias = true};
/* CvT Tab. 2: overlapping patches of 7, 3, 3 pixels, stride 4, 2, 2, LayerNorm. */
static const embedding_step cvt_first_steps[] = {{7, 4, 0, 1}};
static const embedding_step cvt_next_steps[] = {{3, 2, 0, 1}};
static const embedding cvt_first = {STEPS(cvt_first_steps), .bias = true, .norm = true};
static const embedding cvt_next = {STEPS(cvt_next_steps), .bias = true, .norm = true};

static const block_form plain = {.norms = 2};
/* XCiT: a third LayerNorm before LPI, LayerScale after each module. */
static const block_form xcit_block = {
    .norms = 3, .vectors = 3, .local = LOCAL_LPI, .local_kernel = 3};
static const block_form xcit_class = {.norms = 2, .vectors = 2};
/* UFO-ViT Fig. 2: "affine layers are following each module": a scale and a shift. */
static const block_form ufo_block = {
    .norms = 3, .vectors = 6, .local = LOCAL_DEPTHWISE, .local_kernel = 3};
static const block_form ufo_lpi = {.norms = 3, .vectors = 6, .local = LOCAL_LPI, .local_kernel = 3};
static const block_form ufo_class = {.norms = 2, .vectors = 4};
static const block_form cvt_block = {.norms = 2, .projection_kernel = 3, .key_stride = 2};

/* ---- SOFT ---- */

/* Stages 1 to 3: d_h = 32, landmarks by convolution of window and stride 8, 4, 2, filters on V of
 * 9, 5, 3. Stage 4 is either softmax attention, as in the published code, or what the tables say:
 * sp. 1x1, K = Q, S V without an inverse. */
#define SOFT_STAGE(stem, d, layers, window, filter)                                                \
    {                                                                                              \
        .embed = &stem, .block = &plain, .depth = layers, .dim = d, .heads = (d) / 32,             \
        .attention = {ATN_SOFT, "code"}, .stride = window, .residual = filter, .positions = true   \
    }
#define LAST_STAGE(d, layers, ...)                                                                 \
    {                                                                                              \
        .embed = &soft_down, .block = &plain, .depth = layers, .dim = d, .heads = (d) / 32,        \
        .attention = {__VA_ARGS__}, .stride = 1, .class_token = true, .positions = true            \
    }
#define SOFT_NETWORK(details, d1, d2, d3, d4, n1, n2, n3, n4, ...)                                 \
    {                                                                                              \
        .stages = {SOFT_STAGE(soft_stem, d1, n1, 8, 9), SOFT_STAGE(soft_down, d2, n2, 4, 5),       \
                   SOFT_STAGE(soft_down, d3, n3, 2, 3), LAST_STAGE(d4, n4, __VA_ARGS__)},          \
        .stage_count = 4, .assumption = details                                                    \
    }
#define SOFTMAX  ATN_SOFTMAX, "attention"
#define SOFT_1X1 ATN_GAUSSIAN, "exact"
#define NIPS_DETAILS                                                                               \
    "stem of 32 channels, biases, filters on V, positions and LayerNorm of landmarks as in the "   \
    "published code"
#define IJCV_DETAILS                                                                               \
    NIPS_DETAILS "; embeddings as wide as their stage: the 64-d, 128-d, 256-d, 512-d printed "     \
                 "between the stages of Tab. 1 are not"
/* A network with softmax in stage 4, and the same network with SOFT there. */
#define SOFT_PAIR(name, ...)                                                                       \
    static const network name = SOFT_NETWORK(__VA_ARGS__, SOFTMAX);                                \
    static const network name##_1x1 = SOFT_NETWORK(__VA_ARGS__, SOFT_1X1)

/* SOFT (NeurIPS) Tab. 2 */
SOFT_PAIR(tiny, NIPS_DETAILS, 64, 128, 320, 512, 1, 2, 3, 2);
SOFT_PAIR(small, NIPS_DETAILS, 64, 128, 320, 512, 1, 3, 7, 4);
SOFT_PAIR(medium, NIPS_DETAILS, 64, 128, 288, 512, 1, 3, 29, 5);
SOFT_PAIR(large, NIPS_DETAILS, 64, 128, 320, 512, 1, 3, 40, 5);
SOFT_PAIR(huge, NIPS_DETAILS, 64, 128, 352, 512, 1, 5, 49, 5);
static const network small_code =
    SOFT_NETWORK(NIPS_DETAILS, 64, 128, 320, 512, 1, 3, 20, 4, SOFTMAX);
/* SOFT (IJCV) Tab. 1 */
SOFT_PAIR(ijcv_tiny, IJCV_DETAILS, 64, 128, 320, 512, 2, 2, 5, 2);
SOFT_PAIR(ijcv_small, IJCV_DETAILS, 96, 192, 384, 768, 2, 2, 5, 2);
SOFT_PAIR(ijcv_medium, IJCV_DETAILS, 96, 192, 384, 768, 2, 2, 18, 2);
SOFT_PAIR(ijcv_large, IJCV_DETAILS, 128, 256, 512, 1024, 2, 2, 18, 2);

/* ---- PVT ---- */

/* PVT Tab. 1: patches of 4 pixels, then of 2, each with a LayerNorm; MLP ratios 8, 8, 4, 4; the
 * convolution before K and V has kernel and stride 8, 4, 2; a class token in stage 4. */
static const embedding_step pvt_first_steps[] = {{4, 4, 0, 1}};
static const embedding_step pvt_next_steps[] = {{2, 2, 0, 1}};
static const embedding pvt_first = {STEPS(pvt_first_steps), .bias = true, .norm = true};
static const embedding pvt_next = {STEPS(pvt_next_steps), .bias = true, .norm = true};

#define PVT_STAGE(stem, d, layers, h, shorter, ratio, token)                                       \
    {                                                                                              \
        .embed = &stem, .block = &plain, .depth = layers, .dim = d, .heads = h,                    \
        .attention = {ATN_SOFTMAX, "attention"}, .reduction = shorter, .mlp_ratio = ratio,         \
        .class_token = token, .positions = true                                                    \
    }
#define PVT(n1, n2, n3, n4)                                                                        \
    {                                                                                              \
        .stages = {PVT_STAGE(pvt_first, 64, n1, 1, 8, 8, false),                                   \
                   PVT_STAGE(pvt_next, 128, n2, 2, 4, 8, false),                                   \
                   PVT_STAGE(pvt_next, 320, n3, 5, 2, 4, false),                                   \
                   PVT_STAGE(pvt_next, 512, n4, 8, 0, 4, true)},                                   \
        .stage_count = 4, .assumption = "all sizes from PVT Tab. 1 (arXiv:2102.12122)"             \
    }
static const network pvt_tiny = PVT(2, 2, 2, 2);
static const network pvt_small = PVT(3, 4, 6, 3);
static const network pvt_medium = PVT(3, 4, 18, 3);
static const network pvt_large = PVT(3, 8, 27, 3);

/* ---- SimA's hosts, and what UFO-ViT is compared with ---- */

#define XCIT(stem, d, layers, h)                                                                   \
    {                                                                                              \
        .stages = {{.embed = &stem,                                                                \
                    .block = &xcit_block,                                                          \
                    .depth = layers,                                                               \
                    .dim = d,                                                                      \
                    .heads = h,                                                                    \
                    .attention = {ATN_XCA, "code"}}},                                              \
        .stage_count = 1, .fourier = 64, .class_layers = 2,                                        \
        .class_attention = {ATN_SOFTMAX, "attention"}, .class_block = &xcit_class,                 \
        .assumption = "stem, positions, LPI, LayerScale and class attention of XCiT "              \
                      "(arXiv:2106.09681) and its code"                                            \
    }
static const network xcit_t24_16 = XCIT(xcit16, 192, 24, 4);
static const network xcit_t20_16 = XCIT(xcit16, 192, 20, 4);
static const network xcit_t12_8 = XCIT(xcit8, 192, 12, 4);
static const network xcit_s12_16 = XCIT(xcit16, 384, 12, 8);
static const network xcit_t12_16 = XCIT(xcit16, 192, 12, 4);
static const network xcit_s24_16 = XCIT(xcit16, 384, 24, 8);
static const network xcit_m24_16 = XCIT(xcit16, 512, 24, 8);
static const network xcit_s24_8 = XCIT(xcit8, 384, 24, 8);

#define DEIT(d, h)                                                                                 \
    {                                                                                              \
        .stages = {{.embed = &deit_patches,                                                        \
                    .block = &plain,                                                               \
                    .depth = 12,                                                                   \
                    .dim = d,                                                                      \
                    .heads = h,                                                                    \
                    .attention = {ATN_SOFTMAX, "attention"},                                       \
                    .class_token = true,                                                           \
                    .positions = true}},                                                           \
        .stage_count = 1,                                                                          \
        .assumption = "biases, positions and class token of DeiT (arXiv:2012.12877)"               \
    }
static const network deit_ti = DEIT(192, 3);
static const network deit_s = DEIT(384, 6);
static const network deit_b = DEIT(768, 12);

#define CVT_STAGE(stem, d, layers, h, token)                                                       \
    {                                                                                              \
        .embed = &stem, .block = &cvt_block, .depth = layers, .dim = d, .heads = h,                \
        .attention = {ATN_SOFTMAX, "attention"}, .class_token = token                              \
    }
static const network cvt_13 = {.stages = {CVT_STAGE(cvt_first, 64, 1, 1, false),
                                          CVT_STAGE(cvt_next, 192, 2, 3, false),
                                          CVT_STAGE(cvt_next, 384, 10, 6, true)},
                               .stage_count = 3,
                               .assumption = "all sizes from CvT Tab. 2 (arXiv:2103.15808) and its "
                                             "code"};

/* ---- UFO-ViT ---- */

#define UFO(form, d, layers, embed_width, h)                                                       \
    {                                                                                              \
        .stages = {{.embed = &xcit16,                                                              \
                    .block = &form,                                                                \
                    .depth = layers,                                                               \
                    .dim = d,                                                                      \
                    .heads = h,                                                                    \
                    .width = embed_width,                                                          \
                    .attention = {ATN_XNORM, "paper"},                                             \
                    .positions = true}},                                                           \
        .stage_count = 1, .class_layers = 2, .class_attention = {ATN_XNORM, "paper"},              \
        .class_block = &ufo_class,                                                                 \
        .assumption =                                                                              \
            "no code is published: XCiT's stem, MLP ratio 4, 3x3 filters, LayerNorms, two "        \
            "class attention layers that make Q, K and V of all tokens; #Embed read as "           \
            "the width of Q, K and V, all heads together"                                          \
    }
static const network ufo_t = UFO(ufo_block, 192, 24, 96, 4);
static const network ufo_s = UFO(ufo_block, 384, 12, 128, 8);
static const network ufo_m = UFO(ufo_block, 384, 24, 128, 8);
static const network ufo_b = UFO(ufo_block, 512, 24, 128, 8);
static const network ufo_t_lpi = UFO(ufo_lpi, 192, 24, 96, 4);
static const network ufo_s_lpi = UFO(ufo_lpi, 384, 12, 128, 8);
static const network ufo_m_lpi = UFO(ufo_lpi, 384, 24, 128, 8);
static const network ufo_b_lpi = UFO(ufo_lpi, 512, 24, 128, 8);

/* ---- What the papers print ---- */

#define NIPS            "SOFT (NeurIPS)"
#define IJCV            "SOFT (IJCV)"
#define SIMA            "SimA"
#define UFO_VIT         "UFO-ViT"
#define CODE            "stage 4 softmax" /* as in the published code */
#define TABLE           "stage 4 SOFT"    /* as the tables say: sp. 1x1 */
#define AS_PRINTED      "as described"
#define IN_TINY         "in stages 1 to 3 of Tiny"
#define LANDMARKS_GIVEN "landmarks given" /* counted as random landmarks, which cost nothing */

#define UNCHANGED                                                                                  \
    {                                                                                              \
        .heads = 0                                                                                 \
    }
#define AVERAGES                                                                                   \
    {                                                                                              \
        .resampled = true, .sampling = ATN_SAMPLING_POOL                                           \
    }
#define GIVEN(m)                                                                                   \
    {                                                                                              \
        .resampled = true, .sampling = ATN_SAMPLING_FIRST, .landmarks = m                          \
    }
#define WITH(op, variant)                                                                          \
    {                                                                                              \
        .attention = { op, variant }                                                               \
    }
#define TO_SIMA(order)                                                                             \
    {                                                                                              \
        .attention = {ATN_SIMA, order}, .class_attention = { ATN_SIMA, "class-attention" }         \
    }

#define STEPS_LEFT_OUT "the printed FLOPs have no room for the 20 Newton-Raphson steps"
#define NIPS_FLOPS     STEPS_LEFT_OUT "; which of the attention's products they hold is not said"
#define CUT            "the printed parameters are cut, not rounded; " NIPS_FLOPS
#define NOT_1X1        "Small's and Tab. 4b's parameters speak for softmax in stage 4; " NIPS_FLOPS
#define OTHER_TINY                                                                                 \
    "the printed numbers are of the NeurIPS paper's Tiny (depths 1, 2, 3, 2), not of this "        \
    "paper's Tab. 1 (2, 2, 5, 2)"
#define STAGE_4                                                                                    \
    "the printed parameters agree with K = Q in stage 4 too: three linear maps, not four; the "    \
    "printed FLOPs are the ones that the table prints for Swin-T, -S and -B; " STEPS_LEFT_OUT
#define HOSTS_FLOPS                                                                                \
    "the printed FLOPs are the host's: with fewer flops first, K^T V, they would be lower"
#define SAME_FLOPS                                                                                 \
    HOSTS_FLOPS                                                                                    \
    "; the appendix's rule N < D, D of all heads, takes Q K^T first, which costs what "            \
    "the host costs"
#define CVT_FLOPS                                                                                  \
    HOSTS_FLOPS                                                                                    \
    "; the appendix's rule N < D, D of all heads, takes Q K^T first in stage 3 alone: "            \
    "4.17e9"
#define OTHER_HOST "Tab. 1 prints 26M for this network; 22M are DeiT-S's"
#define DINO       "Tab. 1 prints 4.8e9 for the same network"
#define UFO_DETAILS                                                                                \
    "stem, norms, affine layers and class attention are not specified, and parameters depend on "  \
    "them"
#define ANOTHER_XCIT "26M are those of XCiT-S12/16, in the same table"
#define DEIT_CUT     "the printed parameters are cut, not rounded"
#define XCIT_LAST    "the last printed digit: why the printed FLOPs differ is not known"
#define PVT_TWICE                                                                                  \
    "counted with the products of attention, which the table says its FLOPs were corrected for"
#define UFO_384 "positions are counted for 24 x 24 tokens, printed for 14 x 14; " UFO_DETAILS

/* A table's row with both readings of stage 4. */
#define BOTH(paper_, table_, name_, net, params, flops, with_code, with_table)                     \
    {paper_, table_, name_, &net, params, flops, UNCHANGED, CODE, with_code},                      \
    {                                                                                              \
        paper_, table_, name_, &net##_1x1, params, flops, UNCHANGED, TABLE, with_table             \
    }
#define SOFT_TWICE(name_, net, params, flops, with_code, with_table)                               \
    BOTH(IJCV, "Tab. 3", "SOFT-" name_, net, params, flops, with_code, with_table),                \
    {                                                                                              \
        IJCV, "Tab. 3", "SOFT++-" name_, &net##_1x1, params, flops, WITH(ATN_SOFTPP, "paper"),     \
            TABLE, with_table                                                                      \
    }

/* Tables 1, 4 (NeurIPS) and 2, 9, 10 (IJCV) print the same numbers. */
#define SOFT_LINEAR(paper_, table_, net, why)                                                      \
    {paper_,                                                                                       \
     table_,                                                                                       \
     "Transformer",                                                                                \
     &net,                                                                                         \
     "13",                                                                                         \
     "3.9",                                                                                        \
     WITH(ATN_SOFTMAX, "attention"),                                                               \
     IN_TINY,                                                                                      \
     why "what the printed FLOPs include in addition to the products is not said"},                \
        {paper_,                                                                                   \
         table_,                                                                                   \
         "Linformer",                                                                              \
         &net,                                                                                     \
         "13",                                                                                     \
         "1.9",                                                                                    \
         WITH(ATN_LINFORMER, "projected"),                                                         \
         IN_TINY,                                                                                  \
         why "E, n x 49 in each layer here, is not specified: without it parameters are the "      \
             "Transformer's"},                                                                     \
        {paper_,                                                                                   \
         table_,                                                                                   \
         "Performer",                                                                              \
         &net,                                                                                     \
         "13",                                                                                     \
         "2.2",                                                                                    \
         WITH(ATN_PERFORMER, "favor"),                                                             \
         IN_TINY,                                                                                  \
         why "features are not specified, floor(d ln d) of a head here"},                          \
        {paper_,                                                                                   \
         table_,                                                                                   \
         "Nyströmformer",                                                                          \
         &net,                                                                                     \
         "13",                                                                                     \
         "2.0",                                                                                    \
         WITH(ATN_NYSTROMFORMER, "original"),                                                      \
         IN_TINY,                                                                                  \
         why "the printed FLOPs have no room for the 6 steps of its inverse"},                     \
    {                                                                                              \
        paper_, table_, "SOFT", &net, "13", "1.9", UNCHANGED, CODE, why STEPS_LEFT_OUT             \
    }
#define SOFT_LANDMARKS(paper_, table_, net, why)                                                   \
    {paper_, table_, "Tiny with m = 36", &net, NULL, "1.9", GIVEN(36), LANDMARKS_GIVEN, why},      \
        {paper_, table_, "Tiny with m = 49", &net, NULL, "1.9", GIVEN(49), LANDMARKS_GIVEN, why},  \
        {paper_, table_, "Tiny with m = 64", &net, NULL, "2.0", GIVEN(64), LANDMARKS_GIVEN, why},  \
    {                                                                                              \
        paper_, table_, "Tiny with m = 81", &net, NULL, "2.1", GIVEN(81), LANDMARKS_GIVEN, why     \
    }
#define SOFT_SAMPLINGS(paper_, table_, net, why)                                                   \
    {paper_, table_, "Tiny with convolution", &net, "13.07", "2.0", UNCHANGED, CODE, why},         \
        {paper_, table_, "Tiny with random sampling", &net, "12.96", "1.9", GIVEN(49), CODE, why}, \
        {paper_, table_, "Tiny with biased sampling", &net, "12.96", "1.9", GIVEN(49), CODE, why}, \
    {                                                                                              \
        paper_, table_, "Tiny with average pooling", &net, "12.96", "1.9", AVERAGES, CODE, why     \
    }

#define PVT_ROW(paper_, name_, net, params, flops)                                                 \
    {                                                                                              \
        paper_, "Tab. 3", name_, &net, params, flops, UNCHANGED, AS_PRINTED, PVT_TWICE             \
    }
#define HOST_ROW(name_, net, params, flops, why)                                                   \
    {                                                                                              \
        UFO_VIT, "Tab. 4", name_, &net, params, flops, UNCHANGED, AS_PRINTED, why                  \
    }

const printed_row printed_rows[] = {
    SOFT_LINEAR(NIPS, "Tab. 1", tiny, ""),
    BOTH(NIPS, "Tab. 3", "SOFT-Tiny", tiny, "13", "1.9", NIPS_FLOPS, NIPS_FLOPS),
    {NIPS, "Tab. 3", "SOFT-Small", &small, "24", "3.3", UNCHANGED, CODE, NIPS_FLOPS},
    {NIPS, "Tab. 3", "SOFT-Small", &small_1x1, "24", "3.3", UNCHANGED, TABLE, NOT_1X1},
    {NIPS, "Tab. 3", "SOFT-Small", &small_code, "24", "3.3", UNCHANGED, "stage 3 x 20 (code)",
     "the published code's Small has depths 1, 3, 20, 4, the table's 1, 3, 7, 4: the printed "
     "numbers are the table's"},
    BOTH(NIPS, "Tab. 3", "SOFT-Medium", medium, "45", "7.2", CUT, NOT_1X1),
    BOTH(NIPS, "Tab. 3", "SOFT-Large", large, "64", "11.0", CUT, NOT_1X1),
    BOTH(NIPS, "Tab. 3", "SOFT-Huge", huge, "87", "16.3", NIPS_FLOPS, NOT_1X1),
    PVT_ROW(NIPS, "PVT-Tiny", pvt_tiny, "13", "1.9"),
    PVT_ROW(NIPS, "PVT-Small", pvt_small, "24", "4.0"),
    PVT_ROW(NIPS, "PVT-Medium", pvt_medium, "44", "7.0"),
    PVT_ROW(NIPS, "PVT-Large", pvt_large, "61", "10.1"),
    SOFT_LANDMARKS(NIPS, "Tab. 4a", tiny, STEPS_LEFT_OUT),
    SOFT_SAMPLINGS(NIPS, "Tab. 4b", tiny, STEPS_LEFT_OUT),
    SOFT_LINEAR(IJCV, "Tab. 2", ijcv_tiny, OTHER_TINY "; "),
    {IJCV, "Tab. 2", "SOFT++", &ijcv_tiny_1x1, "13", "1.9", WITH(ATN_SOFTPP, "paper"), TABLE,
     OTHER_TINY},
    SOFT_TWICE("Tiny", ijcv_tiny, "13", "1.9", OTHER_TINY, OTHER_TINY),
    SOFT_TWICE("Small", ijcv_small, "27", "4.5", STAGE_4, STAGE_4),
    SOFT_TWICE("Medium", ijcv_medium, "48", "8.7", STAGE_4, STAGE_4),
    SOFT_TWICE("Large", ijcv_large, "85", "15.4", STAGE_4, STAGE_4),
    PVT_ROW(IJCV, "PVT-Tiny", pvt_tiny, "13", "1.9"),
    PVT_ROW(IJCV, "PVT-Small", pvt_small, "24", "4.0"),
    PVT_ROW(IJCV, "PVT-Medium", pvt_medium, "44", "7.0"),
    SOFT_LANDMARKS(IJCV, "Tab. 9", ijcv_tiny, OTHER_TINY),
    SOFT_SAMPLINGS(IJCV, "Tab. 10", ijcv_tiny, OTHER_TINY),
    {SIMA, "Tab. 1", "XCiT-T24/16", &xcit_t24_16, "12", "2.3", UNCHANGED, AS_PRINTED, ""},
    {SIMA, "Tab. 1", "XCiT-T24/16 → SimA", &xcit_t24_16, "12", "2.3", TO_SIMA("code"), AS_PRINTED,
     ""},
    {SIMA, "Tab. 1", "XCiT-T12/8", &xcit_t12_8, "7", "4.8", UNCHANGED, AS_PRINTED, ""},
    {SIMA, "Tab. 1", "XCiT-T12/8 → SimA", &xcit_t12_8, "7", "4.8", TO_SIMA("code"), AS_PRINTED, ""},
    {SIMA, "Tab. 1", "CvT-13", &cvt_13, "20", "4.5", UNCHANGED, AS_PRINTED,
     "why the printed FLOPs are fewer is not known"},
    {SIMA, "Tab. 1", "CvT-13 → SimA", &cvt_13, "20", "4.5", TO_SIMA("code"), "fewer flops first",
     CVT_FLOPS},
    {SIMA, "Tab. 1", "CvT-13 → SimA", &cvt_13, "20", "4.5", TO_SIMA("tokens"), "Q K^T first",
     CVT_FLOPS},
    {SIMA, "Tab. 1", "DeiT-S", &deit_s, "22", "4.6", UNCHANGED, AS_PRINTED, ""},
    {SIMA, "Tab. 1", "XCiT-S12/16", &xcit_s12_16, "26", "4.8", UNCHANGED, AS_PRINTED,
     "Tab. 4 prints 4.9e9 for the same network"},
    {SIMA, "Tab. 1", "DeiT-S → SimA", &deit_s, "22", "4.6", TO_SIMA("code"), "fewer flops first",
     SAME_FLOPS},
    {SIMA, "Tab. 1", "DeiT-S → SimA", &deit_s, "22", "4.6", TO_SIMA("tokens"), "Q K^T first",
     SAME_FLOPS},
    {SIMA, "Tab. 1", "XCiT-S12/16 → SimA", &xcit_s12_16, "26", "4.8", TO_SIMA("code"), AS_PRINTED,
     "Tab. 4 prints 4.9e9 for the same network"},
    {SIMA,
     "Tab. 1",
     "DeiT-S → SimA with one head",
     &deit_s,
     "22",
     "4.6",
     {.attention = {ATN_SIMA, "code"}, .heads = 1},
     AS_PRINTED,
     ""},
    {SIMA, "Tab. 1", "DeiT-S → SimA with ReLU", &deit_s, "22", "4.6", TO_SIMA("tokens"),
     "Q K^T first", "activations are not counted: as with GELU"},
    {SIMA, "Tab. 2", "XCiT-T20/16 → SimA", &xcit_t20_16, "12", "1.9", TO_SIMA("code"), AS_PRINTED,
     "the printed parameters are those of T24 in Tab. 1"},
    {SIMA, "Tab. 2", "XCiT w/ Efficient Attention", &xcit_s12_16, "22", "4.8",
     WITH(ATN_EFFICIENT, "paper"), "in XCiT-S12/16", OTHER_HOST},
    {SIMA, "Tab. 2", "CosFormer w/o re-weighting", &xcit_s12_16, "22", "4.8",
     WITH(ATN_COSFORMER, "none"), "in XCiT-S12/16", OTHER_HOST},
    {SIMA, "Tab. 2", "XCiT-S12/16 → SimA", &xcit_s12_16, "22", "4.8", TO_SIMA("code"), AS_PRINTED,
     OTHER_HOST},
    {SIMA, "Tab. 4", "XCiT-S12/16", &xcit_s12_16, "26", "4.9", UNCHANGED, AS_PRINTED, DINO},
    {SIMA, "Tab. 4", "XCiT-S12/16 → SimA", &xcit_s12_16, "26", "4.9", TO_SIMA("code"), AS_PRINTED,
     DINO},
    {UFO_VIT, "Tab. 1", "UFO-ViT-T", &ufo_t, "10.0", "1.9", UNCHANGED, "depthwise", UFO_DETAILS},
    {UFO_VIT, "Tab. 1", "UFO-ViT-T", &ufo_t_lpi, "10.0", "1.9", UNCHANGED, "LPI", UFO_DETAILS},
    {UFO_VIT, "Tab. 1", "UFO-ViT-S", &ufo_s, "20.7", "3.7", UNCHANGED, "depthwise", UFO_DETAILS},
    {UFO_VIT, "Tab. 1", "UFO-ViT-S", &ufo_s_lpi, "20.7", "3.7", UNCHANGED, "LPI", UFO_DETAILS},
    {UFO_VIT, "Tab. 1", "UFO-ViT-M", &ufo_m, "37.3", "7.0", UNCHANGED, "depthwise", UFO_DETAILS},
    {UFO_VIT, "Tab. 1", "UFO-ViT-M", &ufo_m_lpi, "37.3", "7.0", UNCHANGED, "LPI", UFO_DETAILS},
    {UFO_VIT, "Tab. 1", "UFO-ViT-B", &ufo_b, "63.7", "11.9", UNCHANGED, "depthwise", UFO_DETAILS},
    {UFO_VIT, "Tab. 1", "UFO-ViT-B", &ufo_b_lpi, "63.7", "11.9", UNCHANGED, "LPI", UFO_DETAILS},
    HOST_ROW("DeiT-Ti", deit_ti, "5", "1.3", DEIT_CUT),
    HOST_ROW("XCiT-T12/16", xcit_t12_16, "26", "1.2", ANOTHER_XCIT),
    HOST_ROW("DeiT-S", deit_s, "22", "4.6", ""),
    HOST_ROW("XCiT-S12/16", xcit_s12_16, "26", "4.8", XCIT_LAST),
    HOST_ROW("XCiT-S24/16", xcit_s24_16, "48", "9.1", ""),
    HOST_ROW("DeiT-B", deit_b, "86", "17.5", DEIT_CUT),
    HOST_ROW("XCiT-M24", xcit_m24_16, "84", "16.2", ""),
    HOST_ROW("XCiT-S24/8", xcit_s24_8, "48", "36.0", XCIT_LAST),
    {UFO_VIT, "Tab. 4", "UFO-ViT-T", &ufo_t, "10", "1.9", UNCHANGED, "depthwise", UFO_DETAILS},
    {UFO_VIT, "Tab. 4", "UFO-ViT-S", &ufo_s, "21", "3.7", UNCHANGED, "depthwise", UFO_DETAILS},
    {UFO_VIT, "Tab. 4", "UFO-ViT-M", &ufo_m, "37", "7.0", UNCHANGED, "depthwise", UFO_DETAILS},
    {UFO_VIT, "Tab. 4", "UFO-ViT-B", &ufo_b, "64", "11.9", UNCHANGED, "depthwise", UFO_DETAILS},
    {UFO_VIT,
     "Tab. 4",
     "UFO-ViT-M/384",
     &ufo_m,
     "37",
     "20.5",
     {.resolution = 384},
     "depthwise",
     UFO_384},
    {UFO_VIT,
     "Tab. 4",
     "UFO-ViT-B/384",
     &ufo_b,
     "64",
     "35.1",
     {.resolution = 384},
     "depthwise",
     UFO_384},
};

const int printed_row_count = sizeof printed_rows / sizeof *printed_rows;

const printed_row *printed_row_find(const char *paper, const char *number, const char *name)
{
    const printed_row *row = printed_rows;
    while (strcmp(row->paper, paper) != 0 || strcmp(row->table, number) != 0 ||
           strcmp(row->name, name) != 0) {
        row++;
        assert(row < printed_rows + printed_row_count);
    }
    return row;
}

/* The last digit's unit: "13.07" gives 0.01. */
static double unit_of(const char *printed)
{
    const char *point = strchr(printed, '.');
    return point ? pow(10, -(double)strlen(point + 1)) : 1;
}

#define NEAR 0.02

const char *printed_verdict(double counted, const char *printed)
{
    double value = strtod(printed, NULL), difference = fabs(counted - value);
    if (difference <= unit_of(printed) / 2)
        return "agrees";
    return difference <= NEAR * value ? "within 2 %" : "disagrees";
}
