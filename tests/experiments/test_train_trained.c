/* SPDX-License-Identifier: BSD-3-Clause */
/* Tokens of a trained network: which picture, head, block and part, on which grid. */
#define REAL_F64
#include <attention.h>
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/npz.h"
#include "common/random.h"
#include "common/report.h"
#include "common/resources.h"
#include "scratch.h"
#include "train/fashion.h"
#include "train/model.h"
#include "train/pass.h"
#include "train/trained.h"

TestSuite(train_trained, .init = scratch_begin, .fini = scratch_end);

/* 7 x 7 tokens of two heads, all of them landmarks. */
enum { PATCH = 4, GRID = 7, HEADS = 2, WIDTH = HEADS * TOKEN_DIM, DEPTH = 2, LANDMARKS = 49 };

typedef struct {
    model m;
    double *data;
} network;

static network make(const char *name)
{
    network w;
    model_shape shape;
    cr_assert(model_defaults(name, &shape));
    shape.patch = PATCH;
    shape.depth = DEPTH;
    cr_assert_eq(model_create(&shape, &w.m), EXIT_PASS);
    w.data = must_allocate((size_t)w.m.size, sizeof *w.data);
    model_initialise(&w.m, 3, w.data);
    return w;
}

static void release(network *w)
{
    free(w->data);
    model_free(&w->m);
}

/* As attnum train writes them; without the array `without`, unless that is null. */
static void write_weights(const network *w, const char *metadata, const char *without)
{
    npz_array *arrays = must_allocate((size_t)w->m.parameter_count, sizeof *arrays);
    int64_t count = 0;
    for (int64_t i = 0; i < w->m.parameter_count; i++) {
        const model_parameter *p = &w->m.parameters[i];
        if (!without || strcmp(p->name, without) != 0)
            arrays[count++] =
                (npz_array){p->name, ATN_F64, p->dimensions, p->shape, w->data + p->offset};
    }
    cr_assert_eq(npz_write(".", "w.npz", count, arrays, metadata), EXIT_PASS);
    free(arrays);
}

#define SIZES(depth, landmarks)                                                                    \
    "\"side\": 28, \"patch\": 4, \"width\": 64, \"heads\": 2, \"depth\": " depth                   \
    ", \"hidden\": 128, \"landmarks\": " landmarks "}"
#define METADATA(op, variant)                                                                      \
    "{\"operator\": \"" op "\", \"variant\": \"" variant "\", " SIZES("2", "49")

static trained *open_trained(const char *text)
{
    trained *t;
    cr_assert_eq(trained_open(text, &t), EXIT_PASS, "%s", text);
    return t;
}

static void draw_tokens(const trained *t, int64_t side, uint64_t seed, int64_t sample,
                        double *tokens)
{
    const input_draw draw = {.height = side, .width = side, .seed = seed, .sample = sample};
    cr_assert_eq(trained_tokens(t, &draw, tokens), EXIT_PASS);
}

static void read_pictures(fashion_set *set)
{
    char *path = resource_path("trained", "pictures-images-idx3-ubyte.gz");
    *strrchr(path, '/') = '\0';
    cr_assert_eq(fashion_read(path, "pictures", set), EXIT_PASS);
    free(path);
}

/* Q, K and V of a block for a picture, by the network itself. */
static void run_network(network *w, const fashion_set *set, int64_t picture, int block,
                        double parts[3][GRID * GRID * WIDTH])
{
    enum { SIDE = FASHION_SIDE };
    static float narrow[SIDE * SIDE];
    static double pixels[SIDE * SIDE], logits[FASHION_CLASSES];
    atn_context *context;
    pass *p;
    fashion_image(set, picture, FASHION_WHOLE, SIDE, narrow);
    for (int i = 0; i < SIDE * SIDE; i++)
        pixels[i] = (double)narrow[i];
    cr_assert_eq(atn_context_create(NULL, &context), ATN_OK);
    cr_assert_eq(pass_create(&w->m, w->data, context, 1, &p), EXIT_PASS);
    cr_assert_geq(pass_forward(p, pixels, logits), 0);
    for (int part = 0; part < 3; part++) {
        atn_tensor t = pass_tokens(p, block, part);
        for (int i = 0; t.data && i < GRID * GRID * WIDTH; i++)
            parts[part][i] =
                ((double *)t.data)[i / WIDTH * t.row_stride +
                                   i % WIDTH / TOKEN_DIM * t.head_stride + i % TOKEN_DIM];
    }
    pass_free(p);
    atn_context_free(context);
}

Test(train_trained, samples_are_heads_of_pictures)
{
    static const char *const texts[2][3] = {
        {"w.npz/block0", "w.npz/block0/keys", "w.npz/block0/values"},
        {"w.npz", "w.npz/block1/keys", "w.npz/values"}};
    static double tokens[GRID * GRID * TOKEN_DIM], parts[3][GRID * GRID * WIDTH];
    network w = make("sima");
    fashion_set set;
    read_pictures(&set);
    write_weights(&w, METADATA("sima", "paper"), NULL);
    for (uint64_t seed = 1; seed < 3; seed++) {
        random_stream *r = random_create(seed, "trained", 0);
        int64_t picture = random_below(r, set.count);
        random_free(r);
        for (int block = 0; block < DEPTH; block++)
            for (int part = 0; part < 3; part++) {
                trained *t = open_trained(texts[block][part]);
                for (int64_t sample = 0; sample < 4; sample++) {
                    run_network(&w, &set, (picture + sample / HEADS) % set.count, block, parts);
                    draw_tokens(t, GRID, seed, sample, tokens);
                    for (int i = 0; i < GRID * GRID * TOKEN_DIM; i++) {
                        double want = parts[part][i / TOKEN_DIM * WIDTH +
                                                  sample % HEADS * TOKEN_DIM + i % TOKEN_DIM];
                        cr_assert_eq(tokens[i], (double)(float)tokens[i]);
                        cr_assert(fabs(tokens[i] - want) <= 0x1p-22 * fabs(want), "%s: %g, %g",
                                  texts[block][part], tokens[i], want);
                    }
                }
                trained_free(t);
            }
    }
    fashion_free(&set);
    release(&w);
}

/* A head of a block, whichever was named, has the network's own rows, and with its own parameters
 * gives what it gives among all heads with theirs. */
Test(train_trained, a_head_has_its_own_parameters)
{
    static const char *const names[][2] = {
        {"soft/code", METADATA("soft", "code")},
        {"softpp/paper", METADATA("softpp", "paper")},
        {"xnorm/paper", METADATA("xnorm", "paper")},
        {"xca/code", METADATA("xca", "code")},
        {"linformer/projected", METADATA("linformer", "projected")}};
    enum { N = GRID * GRID, SIZE = N * TOKEN_DIM };
    static double all[3][HEADS * SIZE], outs[HEADS * SIZE], out[SIZE], want[3][N * WIDTH];
    fashion_set set;
    read_pictures(&set);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        network w = make(names[i][0]);
        const model_block *block = &w.m.blocks[1];
        for (int k = 0; k < ATN_PARAMETER_COUNT; k++) /* heads are initially equal */
            for (int64_t j = 0; block->attention[k] >= 0 && j < HEADS; j++)
                w.data[block->attention[k] + j] += 0.25 * (double)(j + 1);
        write_weights(&w, names[i][1], NULL);
        trained *t = open_trained("w.npz/block0");
        trained_head h[HEADS];
        for (int64_t j = 0; j < HEADS; j++) {
            const input_draw draw = {.height = GRID, .width = GRID, .seed = 4, .sample = j};
            cr_assert_eq(trained_head_open(t, 1, &draw, &h[j]), EXIT_PASS);
            const double *const parts[] = {h[j].q, h[j].k, h[j].v};
            run_network(&w, &set, h[j].picture, 1, want);
            for (int part = 0; part < 3; part++)
                for (int64_t c = 0; parts[part] && c < SIZE; c++) {
                    int64_t column = j * TOKEN_DIM + c % TOKEN_DIM;
                    all[part][j * SIZE + c] = parts[part][c];
                    cr_assert_eq(parts[part][c], want[part][c / TOKEN_DIM * WIDTH + column]);
                }
            cr_expect(h[j].head == j && h[j].picture == h[0].picture);
            cr_expect_eq(!h[j].k, !model_has_keys(&w.m.shape));
        }
        atn_attention_desc desc = model_attention(&w.m, 1, ATN_F64, w.data);
        ref_attention_problem whole = {.desc = &desc,
                                       .shape = {1, HEADS, N, TOKEN_DIM, TOKEN_DIM, N},
                                       .q = all[0],
                                       .k = h[0].k ? all[1] : NULL,
                                       .v = all[2]};
        cr_assert_eq(ref_attention(&whole, outs), ATN_OK, "%s", names[i][0]);
        for (int64_t j = 0; j < HEADS; j++) {
            ref_attention_problem one = {.desc = &h[j].desc,
                                         .shape = {1, 1, N, TOKEN_DIM, TOKEN_DIM, N},
                                         .q = h[j].q,
                                         .k = h[j].k,
                                         .v = h[j].v};
            cr_assert_eq(ref_attention(&one, out), ATN_OK, "%s", names[i][0]);
            cr_expect(memcmp(out, outs + j * SIZE, sizeof out) == 0, "%s, head %d", names[i][0],
                      (int)j);
            trained_head_free(&h[j]);
        }
        trained_free(t);
        release(&w);
    }
    fashion_free(&set);
}

/* Patches that count for nothing, and queries that are the block's input: the positions. In the
 * first two channels they are the token's row and column, of which the middle of a pixel twice as
 * large is taken; in the third one token of seven rows is marked. */
Test(train_trained, positions_are_interpolated)
{
    enum { LARGE = 2 * GRID };
    static double tokens[LARGE * LARGE * TOKEN_DIM];
    network w = make("soft/code");
    const model_block *b = &w.m.blocks[0];
    memset(w.data + w.m.patch_weight, 0, PATCH * PATCH * WIDTH * sizeof *w.data);
    memset(w.data + w.m.position, 0, GRID * GRID * WIDTH * sizeof *w.data);
    for (int i = 0; i < WIDTH * WIDTH; i++)
        w.data[b->input_weight + i] = i / WIDTH == i % WIDTH;
    for (int i = 0; i < GRID * GRID; i++) {
        w.data[w.m.position + i * WIDTH] = i / GRID;
        w.data[w.m.position + i * WIDTH + 1] = i % GRID;
        w.data[w.m.position + i * WIDTH + 2] = i == 2 * GRID + 3;
    }
    write_weights(&w, METADATA("soft", "code"), NULL);
    trained *t = open_trained("w.npz/block0");
    cr_expect_eq(trained_side(t), GRID);
    draw_tokens(t, LARGE, 1, 0, tokens);
    for (int i = 0; i < LARGE * LARGE; i++) {
        const double *token = tokens + i * TOKEN_DIM;
        double row = fmin(fmax((i / LARGE + 0.5) / 2 - 0.5, 0), GRID - 1);
        double column = fmin(fmax((i % LARGE + 0.5) / 2 - 0.5, 0), GRID - 1);
        double near = fmax(0, 1 - fabs(row - 2)) * fmax(0, 1 - fabs(column - 3));
        cr_expect(token[0] == row && token[1] == column && token[2] == near, "%d: %g %g %g", i,
                  token[0], token[1], token[2]);
    }
    draw_tokens(t, GRID, 1, 0, tokens);
    for (int i = 0; i < GRID * GRID; i++)
        cr_expect(tokens[i * TOKEN_DIM] == i / GRID && tokens[i * TOKEN_DIM + 1] == i % GRID);
    trained_free(t);
    release(&w);
}

static void expect_refused(const char *text, const char *expected, int want);

/* A network for larger pictures keeps the windows of its convolutions, as its metadata say: on its
 * grid of 28 x 28 tokens that of V would otherwise be 5 x 5. */
Test(train_trained, a_network_of_larger_pictures)
{
#define LARGER(more)                                                                               \
    "{\"operator\": \"soft\", \"variant\": \"code\", \"side\": 56, \"patch\": 2, \"width\": 64, "  \
    "\"heads\": 2, \"depth\": 2, \"hidden\": 128, \"landmarks\": 196" more "}"
    network w;
    model_shape shape;
    cr_assert(model_defaults("soft/code", &shape));
    shape.depth = DEPTH;
    shape = model_resized(&shape, 56);
    cr_assert_eq(model_create(&shape, &w.m), EXIT_PASS);
    w.data = must_allocate((size_t)w.m.size, sizeof *w.data);
    write_weights(&w, LARGER(", \"residual\": 3"), NULL);
    trained *t = open_trained("w.npz");
    cr_expect(trained_side(t) == 28 && trained_shape(t)->residual == 3 &&
              trained_shape(t)->landmarks == 196);
    cr_expect_str_eq(trained_path(t), "w.npz");
    trained_free(t);
    write_weights(&w, LARGER(""), NULL);
    expect_refused("w.npz", "attention.residual has another shape", EXIT_ENVIRONMENT);
    write_weights(&w, LARGER(", \"residual\": 5"), NULL);
    expect_refused("w.npz", "attention.residual has another shape", EXIT_ENVIRONMENT);
    write_weights(&w, LARGER(", \"residual\": 0"), NULL);
    expect_refused("w.npz", "metadata.json is not that of a network", EXIT_ENVIRONMENT);
    release(&w);
}

/* Landmarks at drawn places are not in the file, but the seed that drew them is. */
Test(train_trained, a_network_with_drawn_landmarks)
{
#define CHANGED(more)                                                                              \
    "{\"operator\": \"soft\", \"variant\": \"code\", " more ", \"side\": 28, \"patch\": 2, "       \
    "\"width\": 64, \"heads\": 2, \"depth\": 2, \"hidden\": 128, \"landmarks\": 49}"
    enum { SIDE = 14 };
    network w;
    model_shape shape;
    trained_head h;
    cr_assert(model_defaults("soft/code", &shape) && model_change(&shape, change_find("random")));
    shape.depth = DEPTH;
    shape.seed = 6;
    cr_assert_eq(model_create(&shape, &w.m), EXIT_PASS);
    w.data = must_allocate((size_t)w.m.size, sizeof *w.data);
    model_initialise(&w.m, 3, w.data);
    write_weights(&w, CHANGED("\"change\": \"random\", \"seed\": 6"), NULL);
    trained *t = open_trained("w.npz");
    const input_draw draw = {.height = SIDE, .width = SIDE, .seed = 1};
    cr_assert_eq(trained_head_open(t, 1, &draw, &h), EXIT_PASS);
    cr_expect_eq(h.desc.sampling.kind, ATN_SAMPLING_INDICES);
    cr_expect_eq(h.desc.sampling.count, LANDMARKS);
    cr_expect_arr_eq(h.desc.sampling.indices, w.m.blocks[1].landmarks,
                     LANDMARKS * sizeof *w.m.blocks[1].landmarks);
    trained_head_free(&h);
    trained_free(t);
    cr_assert_eq(trained_open("w.npz", &t), EXIT_PASS);
    capture(); /* drawn on the trained grid */
    cr_expect_eq(trained_head_open(t, 1, &(input_draw){.height = 28, .width = 28, .seed = 1}, &h),
                 EXIT_USAGE);
    cr_expect(is_one_line_with(captured(), "of which its landmarks were drawn"));
    trained_head_free(&h);
    trained_free(t);
    write_weights(&w, CHANGED("\"change\": \"first\", \"seed\": 9007199254740994"), NULL);
    trained_free(open_trained("w.npz")); /* a change that draws nothing needs no seed */
    static const char *const wrong[] = {
        CHANGED("\"change\": \"random\""),
        CHANGED("\"change\": \"random\", \"seed\": -1"),
        CHANGED("\"change\": \"random\", \"seed\": 0.5"),
        CHANGED("\"change\": \"random\", \"seed\": 9007199254740994"),
        CHANGED("\"change\": \"random\", \"seed\": \"6\""),
        CHANGED("\"change\": \"nothing\", \"seed\": 6"),
        CHANGED("\"change\": \"side-56\", \"seed\": 6"),
        CHANGED("\"change\": \"l2\", \"seed\": 6"),
        CHANGED("\"change\": 1, \"seed\": 6"),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_weights(&w, wrong[i], NULL);
        expect_refused("w.npz", "metadata.json is not that of a network", EXIT_ENVIRONMENT);
    }
    release(&w);
}

static void expect_refused(const char *text, const char *expected, int want)
{
    trained *t;
    capture();
    int code = trained_open(text, &t);
    const char *said = captured();
    cr_expect(code == want && is_one_line_with(said, expected), "%s: %d %s", text, code, said);
    trained_free(t);
}

Test(train_trained, names_that_are_not_there)
{
    network w = make("soft/code");
    write_weights(&w, METADATA("soft", "code"), NULL);
    release(&w);
    expect_refused("w.npz/block2", "block 2 of w.npz, expected 0 to 1", EXIT_USAGE);
    expect_refused("w.npz/block", "'block', expected a block such as block3", EXIT_USAGE);
    expect_refused("w.npz/block99999", "'block99999', expected a block", EXIT_USAGE);
    expect_refused("w.npz/keys", "whose keys are its queries", EXIT_USAGE);
    expect_refused("x.npz", "x.npz", EXIT_ENVIRONMENT);
    expect_refused("nobody/block1", "nobody.npz", EXIT_ENVIRONMENT);
    trained *t = open_trained("w.npz/block1/values");
    double token;
    enum { OVER = 4096 / FASHION_SIDE + 1 }; /* times the trained grid: pictures over 4096 pixels */
    static const input_draw draws[] = {{7, 8, 4, 1, 0}, {OVER * GRID, OVER * GRID, 4, 1, 0}};
    static const char *const texts[] = {"a square", "from 1 to 4096, not 4116"};
    for (int i = 0; i < 2; i++) {
        capture();
        cr_expect_eq(trained_tokens(t, &draws[i], &token), EXIT_USAGE);
        const char *said = captured();
        cr_expect(is_one_line_with(said, texts[i]), "%s", said);
    }
    trained_free(t);
}

Test(train_trained, files_that_are_no_network)
{
    static const char *const wrong[] = {
        "{}",
        "[",
        METADATA("soft", "unheard-of"),
        METADATA("nobody", "code"),
        "{\"operator\": \"soft\", \"variant\": \"code\", " SIZES("0", "49"),
        "{\"operator\": \"soft\", \"variant\": \"code\", " SIZES("1.5", "49"),
        "{\"operator\": \"soft\", \"variant\": \"code\", " SIZES("5000", "49"),
        "{\"operator\": \"soft\", \"variant\": \"code\", " SIZES("\"2\"", "49"),
        "{\"operator\": \"soft\", \"variant\": \"code\", \"side\": 28, \"patch\": 4, \"width\": "
        "64, \"heads\": 4, \"depth\": 2, \"hidden\": 128, \"landmarks\": 49}",
        "{\"operator\": \"soft\", \"variant\": \"code\", \"side\": 30, \"patch\": 4, \"width\": "
        "64, \"heads\": 2, \"depth\": 2, \"hidden\": 128, \"landmarks\": 49}"};
    network w = make("soft/code");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_weights(&w, wrong[i], NULL);
        expect_refused("w.npz", "metadata.json is not that of a network", EXIT_ENVIRONMENT);
    }
#define HIDDEN(hidden)                                                                             \
    "{\"operator\": \"soft\", \"variant\": \"code\", \"side\": 28, \"patch\": 4, \"width\": "      \
    "64, \"heads\": 2, \"depth\": 2, \"hidden\": " hidden ", \"landmarks\": 49}"
    write_weights(&w, HIDDEN("4097"), NULL);
    expect_refused("w.npz", "metadata.json is not that of a network", EXIT_ENVIRONMENT);
    write_weights(&w, HIDDEN("4096"), NULL); /* may be one, but not with these weights */
    expect_refused("w.npz", "has another shape", EXIT_ENVIRONMENT);
    write_weights(&w, METADATA("soft", "code"), "blocks.1.mlp.weight");
    expect_refused("w.npz", "blocks.1.mlp.weight is missing", EXIT_ENVIRONMENT);
    write_weights(&w, "{\"operator\": \"soft\", \"variant\": \"code\", " SIZES("3", "49"), NULL);
    expect_refused("w.npz", "blocks.2.norm1.weight is missing", EXIT_ENVIRONMENT);
    write_weights(&w, "{\"operator\": \"soft\", \"variant\": \"code\", " SIZES("1", "49"), NULL);
    expect_refused("w.npz",
                   "blocks.1.norm1.weight is no parameter of a network of soft/code with 1 blocks",
                   EXIT_ENVIRONMENT);
    write_weights(
        &w,
        "{\"operator\": \"soft\", \"variant\": \"code\", \"change\": \"pool\", " SIZES("2", "49"),
        NULL);
    expect_refused("w.npz",
                   "blocks.0.attention.conv is no parameter of a network of soft/code pool",
                   EXIT_ENVIRONMENT);
    write_weights(&w, "{\"operator\": \"soft\", \"variant\": \"code\", " SIZES("2", "48"), NULL);
    expect_refused("w.npz", "48 landmarks", EXIT_USAGE);
    write_weights(&w, "{\"operator\": \"soft\", \"variant\": \"code\", " SIZES("2", "1"), NULL);
    expect_refused("w.npz", "blocks.0.attention.conv has another shape", EXIT_ENVIRONMENT);
    release(&w);
}

/* A network in the shape of another operator, of fewer blocks, and of one that is trained without
 * the convolution of landmarks, which alone explains that arrays are left out. */
Test(train_trained, arrays_that_a_network_lacks)
{
    static const struct {
        const char *from, *metadata, *name, *change, *expected; /* expected: null for none */
        int64_t depth;
        const char *note; /* null: none */
    } cases[] = {
        {"sima", METADATA("sima", "paper"), "softmax", "none",
         "blocks.0.scale1 is no parameter of a network of softmax/attention with 2 blocks", DEPTH,
         NULL},
        {"sima", METADATA("sima", "paper"), "sima", "relu", NULL, DEPTH, NULL},
        {"sima", METADATA("sima", "paper"), "sima", "relu",
         "blocks.1.norm1.weight is no parameter of a network of sima/paper relu with 1 blocks", 1,
         NULL},
        {"softmax", METADATA("softmax", "attention"), "sima", "none", "scale1 is missing", DEPTH,
         NULL},
        {"soft/code", METADATA("soft", "code"), "soft/code", "none", NULL, DEPTH, NULL},
        {"soft/code", METADATA("soft", "code"), "soft/code", "pool", NULL, DEPTH,
         "6 of its arrays are left out, which pool does without: blocks.0.attention.conv, ..."},
        {"soft/code", METADATA("soft", "code"), "softpp/paper", "first", NULL, DEPTH,
         "6 of its arrays are left out"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network w = make(cases[i].from);
        model m;
        model_shape shape;
        double *data;
        write_weights(&w, cases[i].metadata, NULL);
        release(&w);
        trained *t = open_trained("w.npz");
        cr_assert(model_defaults(cases[i].name, &shape) &&
                  model_change(&shape, change_find(cases[i].change)));
        shape.patch = PATCH;
        shape.depth = cases[i].depth;
        capture();
        int code = trained_network(t, &shape, &m, &data);
        const char *said = captured();
        cr_expect(cases[i].expected
                      ? code == EXIT_ENVIRONMENT && is_one_line_with(said, cases[i].expected)
                      : code == EXIT_PASS && !*said,
                  "%d: %d %s", (int)i, code, said);
        capture();
        if (code == EXIT_PASS)
            trained_note_left_out(t, &m);
        said = captured();
        cr_expect(cases[i].note ? is_one_line_with(said, cases[i].note) : !*said, "%d: %s", (int)i,
                  said);
        free(data);
        model_free(&m);
        trained_free(t);
    }
}

/* Heads of all pictures, of which none is another's. */
Test(train_trained, samples_are_as_many_as_heads_of_pictures)
{
    input *in;
    cr_assert_eq(input_open("trained:sima", 0, 0, &in), EXIT_PASS);
    const trained *t = input_network(in);
    int64_t count = input_samples(in);
    cr_expect_eq(count, trained_heads(t) * trained_pictures(t)->count);
    for (int64_t sample = count - 1; sample <= count; sample++) {
        const input_draw draw = {.height = 14, .width = 14, .seed = 1, .sample = sample};
        trained_head first, h;
        cr_assert_eq(trained_head_open(t, 0, &(input_draw){14, 14, 4, 1, 0}, &first), EXIT_PASS);
        cr_assert_eq(trained_head_open(t, 0, &draw, &h), EXIT_PASS);
        cr_expect_eq(h.picture == first.picture && h.head == first.head, sample == count);
        trained_head_free(&first);
        trained_head_free(&h);
    }
    input_free(in);
    cr_assert_eq(input_open("smooth", 0, 0, &in), EXIT_PASS);
    cr_expect_eq(input_samples(in), INT64_MAX);
    input_free(in);
}

Test(train_trained, an_input_of_a_network)
{
    network w = make("sima");
    write_weights(&w, METADATA("sima", "paper"), NULL);
    release(&w);
    input *in;
    cr_assert_eq(input_open("trained:./w.npz/block1/keys", 0, 0, &in), EXIT_PASS);
    cr_expect_str_eq(input_name(in), "trained:w.npz/block1/keys");
    cr_expect_eq(strlen(input_sha256(in)), 64);
    cr_expect(!input_is_file(in) && input_side(in, 49) == GRID && input_side(in, 50) == 2 * GRID);
    cr_expect(trained_has_side(input_network(in), 9) && !trained_has_keys(input_network(in)) &&
              trained_landmark_count(input_network(in), GRID) == 0);
    static double tokens[2][GRID * GRID * TOKEN_DIM];
    cr_assert_eq(input_tokens(in, GRID, GRID, 4, 1, 3, tokens[0]), EXIT_PASS);
    input_free(in);
    trained *t = open_trained("w.npz/block1/keys");
    draw_tokens(t, GRID, 1, 3, tokens[1]);
    cr_expect(memcmp(tokens[0], tokens[1], sizeof tokens[0]) == 0);
    trained_free(t);
}

/* Any grid for an operator without landmarks, multiples of the stride for a convolution, and of 7
 * for 49 landmarks of Nystromformer. */
Test(train_trained, grids_that_a_network_has)
{
    static const struct {
        const char *text;
        int64_t side;
        bool has;
    } cases[] = {{"sima", 1, true},           {"sima", 9, true},
                 {"sima", 0, false},          {"soft", 20, true},
                 {"soft", 21, false},         {"softpp", 2, true},
                 {"linformer", 14, true},     {"linformer", 28, false},
                 {"nystromformer", 21, true}, {"nystromformer", 20, false},
                 {"sima", -14, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trained *t = open_trained(cases[i].text);
        int64_t side = cases[i].side;
        const input_draw draw = {.height = side, .width = side, .seed = 1};
        trained_head h;
        cr_expect_eq(trained_has_side(t, side), cases[i].has, "%s %" PRId64, cases[i].text, side);
        capture();
        int code = trained_head_open(t, 0, &draw, &h);
        const char *said = captured();
        cr_expect(cases[i].has ? code == EXIT_PASS && h.side == 2 * side
                               : code == EXIT_USAGE && is_one_line_with(said, "expected 14 x 14"),
                  "%s %" PRId64 ": %d %s", cases[i].text, side, code, said);
        trained_head_free(&h);
        trained_free(t);
    }
}

/* Landmarks on every grid that the network has, of queries alone; keys whatever part is chosen. */
Test(train_trained, landmarks_and_keys_of_a_block)
{
    static const struct {
        const char *text;
        int64_t side, landmarks;
    } cases[] = {{"soft", 14, 49},       {"soft", 28, 196},    {"soft", 20, 100},
                 {"soft", 21, 0},        {"soft", 0, 0},       {"softpp/block0", 14, 49},
                 {"soft/values", 14, 0}, {"linformer", 14, 0}, {"nystromformer", 14, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trained *t = open_trained(cases[i].text);
        cr_expect_eq(trained_landmark_count(t, cases[i].side), cases[i].landmarks, "%s",
                     cases[i].text);
        trained_free(t);
    }
    enum { SIDE = 14 };
    static double keys[2][SIDE * SIDE * TOKEN_DIM];
    const input_draw draw = {.height = SIDE, .width = SIDE, .seed = 2, .sample = 1};
    trained *t = open_trained("softmax/block1/values"),
            *of_keys = open_trained("softmax/block1/keys");
    cr_assert_eq(trained_keys(t, &draw, keys[0]), EXIT_PASS);
    cr_assert_eq(trained_tokens(of_keys, &draw, keys[1]), EXIT_PASS);
    cr_expect(memcmp(keys[0], keys[1], sizeof keys[0]) == 0);
    trained_free(of_keys);
    trained_free(t);
    t = open_trained("linformer");
    cr_expect(trained_has_side(t, 14) && !trained_has_side(t, 28));
    const input_draw larger = {.height = 28, .width = 28, .seed = 2};
    capture();
    cr_expect_eq(trained_tokens(t, &larger, keys[0]), EXIT_USAGE);
    cr_expect(is_one_line_with(captured(), "expected 14 x 14, of which its matrix E is"));
    trained_free(t);
}

/* What `--input trained` means without a name must be among the networks in data/trained. */
Test(train_trained, the_usual_network_is_shipped)
{
    input *in;
    cr_assert_eq(input_open("trained", 0, 0, &in), EXIT_PASS);
    cr_expect_str_eq(input_name(in), "trained");
    cr_expect_eq(input_side(in, 49), 14);
    input_free(in);
}
