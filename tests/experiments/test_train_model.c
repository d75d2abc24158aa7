/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "scratch.h"
#include "train/model.h"

static model make(const char *name)
{
    model m;
    model_shape shape;
    cr_assert(model_defaults(name, &shape));
    cr_assert_eq(model_create(&shape, &m), EXIT_PASS);
    return m;
}

/* By hand: 64 (4 + 1) + 196 64 + 2 64 + 10 (64 + 1) around blocks of 4 64 + 64 (3 64) + 3 64 + 64
 * 64 + 64 + 64 128 + 128 + 128 64 + 64, and what each operator has besides. */
Test(train_model, sizes_by_hand)
{
    enum {
        AROUND = 64 * 5 + 196 * 64 + 128 + 10 * 65,
        KEYS = 64 * 65,
        BLOCK = 4 * 64 + 2 * 64 * 65 + 64 * 65 + 128 * 65 + 64 * 129
    };
    static const struct {
        const char *name;
        int keys, more; /* whether they are the block's own; of a block */
    } rows[] = {
        {"softmax", 1, 0},
        {"gaussian", 0, 0},
        {"soft", 0, 32 * 32 * 4 + 2 * 32 + 2 * 9},
        {"softpp", 0, 32 * 32 * 4 + 2 * 32 + 2 * 9},
        {"sima", 1, 128},
        {"xnorm", 1, 2},
        {"xca", 1, 2},
        {"linformer", 1, 196 * 49},
        {"nystromformer", 1, 0},
        {"performer", 1, 64 * 32},
        {"rff", 1, 64 * 32},
        {"efficient", 1, 0},
        {"elu", 1, 0},
        {"cosformer", 1, 0},
        {"lsh", 0, 4 * 32 * 7},
    };
    cr_assert_eq(sizeof rows / sizeof *rows, ATN_OPERATOR_COUNT);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        model m = make(rows[i].name);
        int64_t want = AROUND + 4 * (BLOCK + rows[i].keys * KEYS + rows[i].more);
        cr_expect_eq(m.size, want, "%s: %d, expected %d", rows[i].name, (int)m.size, (int)want);
        int64_t next = 0;
        for (int64_t p = 0; p < m.parameter_count; p++) {
            const model_parameter *of = &m.parameters[p];
            bool drawn = strstr(of->name, "projection") || strstr(of->name, "rotations");
            cr_expect_eq(of->offset, next, "%s", of->name);
            cr_expect_eq(of->fixed, drawn, "%s %s", rows[i].name, of->name);
            bool matrix = of->dimensions > 1 && strcmp(of->name, "position") != 0;
            cr_expect_eq(of->decays, matrix && !drawn, "%s %s", rows[i].name, of->name);
            for (int64_t other = 0; other < p; other++)
                cr_expect_str_neq(m.parameters[other].name, of->name);
            next += of->count;
        }
        cr_expect_eq(m.norm_after, i == 2 || i == 3, "%s", rows[i].name);
        model_free(&m);
    }
}

static bool samples(const char *name)
{
    return strncmp(name, "soft", 4) == 0 && strncmp(name, "softmax", 7) != 0;
}

static model make_changed(const char *name, const char *change_name, uint64_t seed)
{
    model m;
    model_shape shape;
    cr_assert(model_defaults(name, &shape) && model_change(&shape, change_find(change_name)),
              "%s %s", name, change_name);
    shape.seed = seed;
    cr_assert_eq(model_create(&shape, &m), EXIT_PASS);
    return m;
}

/* What each change adds to the parameters of a block, by hand, and to its description. */
Test(train_model, a_change_is_in_the_network)
{
    enum { CONVOLUTION = 32 * 32 * 4, NORM = 2 * 32, KEYS = 64 * 65 };
    static const struct {
        const char *name, *change;
        int more, heads, steps, count; /* count: of the landmarks that are no convolution's */
        atn_inverse_method inverse;
        atn_sampling_kind sampling;
    } rows[] = {
        {"soft", "none", 0, 2, 20, 0, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_CONV_CODE},
        {"soft", "steps-5", 0, 2, 5, 0, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_CONV_CODE},
        {"soft", "exact", 0, 2, 0, 0, ATN_INVERSE_PIVOTED_CHOLESKY, ATN_SAMPLING_CONV_CODE},
        {"soft", "pool", -CONVOLUTION - NORM, 2, 20, 49, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_POOL},
        {"soft", "first", -CONVOLUTION - NORM, 2, 20, 49, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_FIRST},
        {"softpp/paper", "random", -CONVOLUTION - NORM, 2, 20, 49, ATN_INVERSE_NR_PAPER,
         ATN_SAMPLING_INDICES},
        {"soft", "m-4", 32 * 32 * 45, 2, 20, 0, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_CONV_CODE},
        {"soft", "m-196", -32 * 32 * 3, 2, 20, 0, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_CONV_CODE},
        {"soft", "code-kernel", 0, 2, 20, 0, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_CONV_CODE},
        {"sima", "l2", 0, 2, 20, 0, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_CONV_CODE},
        {"sima", "no-norm", 0, 2, 20, 0, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_CONV_CODE},
        {"softmax", "symmetric", -KEYS, 2, 20, 0, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_CONV_CODE},
        {"sima", "one-head", 0, 1, 20, 0, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_CONV_CODE},
        {"xnorm", "l2-queries", 0, 2, 20, 0, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_CONV_CODE},
        {"xnorm", "p-norm", 2, 2, 20, 0, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_CONV_CODE},
        {"xnorm", "layer-norm", 4 * 64 - 2, 2, 20, 0, ATN_INVERSE_NR_PAPER, ATN_SAMPLING_CONV_CODE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static float values[1 << 19];
        model without = make(rows[i].name), m = make_changed(rows[i].name, rows[i].change, 1);
        atn_attention_desc desc = model_attention(&m, 1, ATN_F32, values);
        cr_expect_eq(m.size - without.size, 4 * rows[i].more, "%s %s: %d", rows[i].name,
                     rows[i].change, (int)(m.size - without.size));
        cr_expect_eq(m.shape.heads, rows[i].heads);
        cr_expect_eq(desc.sampling.kind, rows[i].sampling, "%s", rows[i].change);
        cr_expect_eq(desc.sampling.count, rows[i].count, "%s", rows[i].change);
        atn_sima_norm norm = strcmp(rows[i].change, "l2") == 0        ? ATN_SIMA_L2
                             : strcmp(rows[i].change, "no-norm") == 0 ? ATN_SIMA_NONE
                                                                      : ATN_SIMA_L1;
        cr_expect_eq(desc.sima.norm, norm, "%s", rows[i].change);
        double scale = atn_kernel_scale(desc.scale, desc.scale_value, 2, 32);
        cr_expect_float_eq(scale, strcmp(rows[i].change, "code-kernel") == 0 ? 0.5 : 0.5 / sqrt(32),
                           1e-15, "%s", rows[i].change);
        if (samples(rows[i].name)) {
            cr_expect_eq(desc.inverse.method, rows[i].inverse, "%s", rows[i].change);
            cr_expect(rows[i].steps == 0 || desc.inverse.iterations == rows[i].steps, "%s",
                      rows[i].change);
        }
        model_free(&without);
        model_free(&m);
    }
}

/* In rising order, each block and seed its own. */
Test(train_model, drawn_landmarks)
{
    model a = make_changed("soft", "random", 1), b = make_changed("soft", "random", 2);
    for (int64_t block = 0; block < a.shape.depth; block++) {
        const int64_t *places = a.blocks[block].landmarks;
        for (int i = 0; i < 49; i++)
            cr_expect(places[i] >= 0 && places[i] < 196 && (i == 0 || places[i] > places[i - 1]));
        cr_expect_arr_neq(places, b.blocks[block].landmarks, 49 * sizeof *places);
        cr_expect(block == 0 || memcmp(places, a.blocks[0].landmarks, 49 * sizeof *places) != 0);
    }
    model_free(&a);
    model_free(&b);
}

Test(train_model, starts_by_the_seed)
{
    model m = make("soft");
    double *a = must_allocate((size_t)m.size, sizeof *a),
           *b = must_allocate((size_t)m.size, sizeof *b);
    model_initialise(&m, 1, a);
    model_initialise(&m, 2, b);
    for (int64_t p = 0; p < m.parameter_count; p++) {
        const model_parameter *of = &m.parameters[p];
        if (of->waves)
            continue;
        double squares = 0, most = 0;
        int64_t same = 0;
        for (int64_t i = of->offset; i < of->offset + of->count; i++) {
            squares += pow(a[i] - of->start, 2);
            most = fmax(most, fabs(a[i] - of->start));
            same += a[i] == b[i];
        }
        /* normal numbers cut off at two deviations have 0.88 of the deviation */
        double deviation = sqrt(squares / (double)of->count),
               tolerance = 4 / sqrt((double)of->count);
        cr_expect(fabs(deviation - 0.88 * of->spread) <= tolerance * of->spread, "%s: %g", of->name,
                  deviation);
        cr_expect(most <= 2 * of->spread, "%s: %g", of->name, most);
        cr_expect_eq(same, of->spread > 0 ? 0 : of->count, "%s", of->name);
    }
    free(a);
    free(b);
    model_free(&m);
}

/* 0.7 sin and cos of the row and the column of each token, for 16 frequencies from 1 down to
 * 100^(-15/16), row and column side by side. */
Test(train_model, positions_start_as_waves)
{
    model m = make("softmax");
    double *a = must_allocate((size_t)m.size, sizeof *a);
    model_initialise(&m, 1, a);
    for (int i = 0; i < 196; i++)
        for (int f = 0; f < 16; f++) {
            double row = i / 14 / pow(100, f / 16.0), column = i % 14 / pow(100, f / 16.0);
            double want[] = {sin(row), sin(column), cos(row), cos(column)};
            for (int j = 0; j < 4; j++)
                cr_expect_float_eq(a[m.position + i * 64 + 4 * f + j], 0.7 * want[j], 1e-12,
                                   "token %d, channel %d", i, 4 * f + j);
        }
    free(a);
    model_free(&m);
}

Test(train_model, names)
{
    model_shape shape;
    cr_expect(model_defaults("soft", &shape) && shape.attention->op == ATN_SOFT &&
              shape.variant == 0);
    cr_expect(model_defaults("soft/code", &shape) &&
              strcmp(shape.attention->variants[shape.variant].name, "code") == 0);
    static const char *const none[] = {"",         "/",          "softer", "soft/",
                                       "soft/cod", "soft/code/", "Soft"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        cr_expect(!model_defaults(none[i], &shape), "%s", none[i]);
}

Test(train_model, resized_shapes)
{
    static const struct {
        const char *name, *change;
        int64_t step, side, landmarks, patch; /* 0: the usual one */
    } rows[] = {{"soft/code", "none", 4, 20, 25, 1},
                {"soft/code", "none", 1, 32, 64, 4},
                {"soft/code", "none", 2, 40, 100, 0},
                {"soft/code", "m-4", 2, 40, 4, 0},
                {"softmax", "none", 1, 2, 49, 0},
                {"linformer", "none", 0, 28, 49, 0},
                {"nystromformer/exact", "none", 7, 42, 49, 0},
                {"soft/code", "random", 0, 28, 49, 0},
                {"lsh", "none", 7, 42, 49, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        model m;
        model_shape shape;
        cr_assert(model_defaults(rows[i].name, &shape));
        if (strcmp(rows[i].change, "none") != 0)
            cr_assert(model_change(&shape, change_find(rows[i].change)));
        shape.patch = rows[i].patch ? rows[i].patch : shape.patch;
        int64_t residual = shape.patch == 1 ? 5 : 3;
        cr_expect_eq(model_grid_step(&shape), rows[i].step, "%s", rows[i].name);
        model_shape resized = model_resized(&shape, rows[i].side);
        cr_expect(resized.side == rows[i].side && resized.landmarks == rows[i].landmarks &&
                      resized.residual == residual,
                  "%s %s: %" PRId64, rows[i].name, rows[i].change, resized.landmarks);
        cr_expect_eq(model_create(&resized, &m), EXIT_PASS);
        model_free(&m);
    }
}

Test(train_model, shapes_that_do_not_fit)
{
    static const struct {
        int64_t side, patch, width, heads, landmarks;
        const char *expected;
    } rows[] = {
        {28, 3, 64, 2, 49, "whole numbers of patches"},
        {28, 2, 64, 3, 49, "whole numbers of patches"},
        {28, 2, 64, 2, 48, "48 landmarks on a grid of 14 x 14"},
        {28, 2, 64, 2, 25, "25 landmarks on a grid of 14 x 14"},
        {28, 14, 64, 2, 49, "49 landmarks on a grid of 2 x 2"},
        {28, 2, 64, 2, 50, "50 landmarks on a grid of 14 x 14"},
        {0, 2, 64, 2, 49, "from 1 to 4096, not 0"},
        {28, 2, 8192, 2, 49, "from 1 to 4096, not 8192"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        model m;
        model_shape shape;
        cr_assert(model_defaults("soft", &shape));
        shape.side = rows[i].side;
        shape.patch = rows[i].patch;
        shape.width = rows[i].width;
        shape.heads = rows[i].heads;
        shape.landmarks = rows[i].landmarks;
        capture();
        cr_expect_eq(model_create(&shape, &m), EXIT_USAGE);
        const char *text = captured();
        cr_expect(is_one_line_with(text, rows[i].expected), "%zu: %s", i, text);
        model_free(&m);
    }
    model m; /* softmax has no landmarks, but their number must be a square all the same */
    model_shape shape;
    cr_assert(model_defaults("softmax", &shape));
    shape.landmarks = 50;
    capture();
    cr_expect_eq(model_create(&shape, &m), EXIT_USAGE);
    cr_expect(is_one_line_with(captured(), "50 landmarks"));
    model_free(&m);
}
