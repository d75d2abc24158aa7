/* SPDX-License-Identifier: BSD-3-Clause */
/* Attention with other norms than UFO-ViT's: against its definition in long double, its gradients
 * against differences of that. 12 channels are a group of 8 and one of 4. */
#define REAL_F64
#include <criterion/criterion.h>
#include <math.h>

#include "common/random.h"
#include "train/crossnorm.h"

enum { TOKENS = 7, DIM = 12, STRIDE = 40, WIDTH = 30, GROUP = 8 };

typedef long double wide;

/* All that the output depends on, with the tokens' padding. */
enum { Q, K, V, NUMBERS, ARRAYS = NUMBERS + CROSSNORM_PARAMETERS };
typedef struct {
    double arrays[ARRAYS][TOKENS * STRIDE];
} inputs;

static const struct {
    const char *name;
    crossnorm_kind kind;
    bool gamma, p, channels; /* its parameters */
} kinds[] = {
    {"l2 of Q", CROSSNORM_QUERIES, true, false, false},
    {"l2 of C", CROSSNORM_CLUSTERS, true, false, false},
    {"lp", CROSSNORM_POWER, true, true, false},
    {"LN", CROSSNORM_LAYER, false, false, true},
    {"GN", CROSSNORM_GROUP, false, false, true},
    {"IN", CROSSNORM_INSTANCE, false, false, true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool has(int kind, int parameter)
{
    return parameter == CROSSNORM_GAMMA ? kinds[kind].gamma
           : parameter == CROSSNORM_P   ? kinds[kind].p
                                        : kinds[kind].channels;
}

/* The rows of an array, and how many numbers of each are read. */
static int64_t rows_of(int array)
{
    return array < NUMBERS ? TOKENS : 1;
}

static int64_t columns_of(int array)
{
    int parameter = array - NUMBERS;
    return parameter == CROSSNORM_GAMMA || parameter == CROSSNORM_P ? 1 : DIM;
}

static inputs draw(void)
{
    inputs x = {0};
    random_stream *stream = random_create(3, "crossnorm", 0);
    for (int a = 0; a < ARRAYS; a++)
        for (int64_t i = 0; i < TOKENS * STRIDE; i++)
            x.arrays[a][i] = random_normal(stream) + (a < NUMBERS ? 0 : 2);
    x.arrays[NUMBERS + CROSSNORM_P][0] = 2.3;
    random_free(stream);
    return x;
}

static crossnorm_head head_of(int kind, const inputs *x)
{
    crossnorm_head h = {.kind = kinds[kind].kind,
                        .tokens = TOKENS,
                        .dim = DIM,
                        .stride = STRIDE,
                        .q = x->arrays[Q],
                        .k = x->arrays[K],
                        .v = x->arrays[V]};
    for (int i = 0; i < CROSSNORM_PARAMETERS; i++)
        h.parameters[i] = has(kind, i) ? x->arrays[NUMBERS + i] : NULL;
    return h;
}

/* ---- The definition ---- */

/* The mean of f over the entries that are normalised together with entry (row, channel). */
static wide mean_of(crossnorm_kind kind, int64_t rows, wide x[][DIM], int64_t row, int64_t channel,
                    bool squares, wide less)
{
    wide sum = 0, count = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < DIM; c++)
            if (kind == CROSSNORM_LAYER   ? i == row
                : kind == CROSSNORM_GROUP ? c / GROUP == channel / GROUP
                                          : c == channel) {
                sum += squares ? (x[i][c] - less) * (x[i][c] - less) : x[i][c];
                count++;
            }
    return sum / count;
}

static void norm(int kind, bool clusters, const inputs *x, int64_t rows, wide from[][DIM],
                 wide to[][DIM])
{
    const double(*p)[TOKENS * STRIDE] = &x->arrays[NUMBERS];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < DIM; c++) {
            wide power = kinds[kind].p ? (wide)p[CROSSNORM_P][0] : 2, sum = 0;
            if (kinds[kind].channels) {
                wide mean = mean_of(kinds[kind].kind, rows, from, i, c, false, 0);
                wide variance = mean_of(kinds[kind].kind, rows, from, i, c, true, mean);
                to[i][c] = (wide)p[CROSSNORM_WEIGHT + clusters][c] * (from[i][c] - mean) /
                               sqrtl(variance + 1e-5L) +
                           (wide)p[CROSSNORM_BIAS + clusters][c];
                continue;
            }
            for (int64_t k = 0; k < DIM; k++)
                sum += powl(fabsl(from[i][k]), power);
            to[i][c] = from[i][c];
            if (kinds[kind].kind != (clusters ? CROSSNORM_QUERIES : CROSSNORM_CLUSTERS))
                to[i][c] *= (wide)p[CROSSNORM_GAMMA][0] / powl(sum, 1 / power);
        }
}

static void define(int kind, const inputs *x, wide y[TOKENS][DIM])
{
    wide q[TOKENS][DIM], c[DIM][DIM] = {0}, normed_q[TOKENS][DIM], normed_c[DIM][DIM];
    for (int i = 0; i < TOKENS; i++)
        for (int r = 0; r < DIM; r++) {
            q[i][r] = (wide)x->arrays[Q][i * STRIDE + r];
            for (int s = 0; s < DIM; s++)
                c[r][s] += (wide)x->arrays[V][i * STRIDE + r] * (wide)x->arrays[K][i * STRIDE + s];
        }
    norm(kind, false, x, TOKENS, q, normed_q);
    norm(kind, true, x, DIM, c, normed_c);
    for (int i = 0; i < TOKENS; i++)
        for (int r = 0; r < DIM; r++) {
            y[i][r] = 0;
            for (int s = 0; s < DIM; s++)
                y[i][r] += normed_q[i][s] * normed_c[r][s];
        }
}

/* ---- Tests ---- */

static atn_context *open_context(void)
{
    atn_context *context;
    cr_assert_eq(atn_context_create(&(atn_context_options){.threads = 1}, &context), ATN_OK);
    return context;
}

static double workspace[1 << 12];

/* An entry is a sum of 12 products of 8 to 10 roundings each, and of sums of 7 to 84 terms: 64
 * roundoffs of 1 + |y| are some times what they come to. */
Test(train_crossnorm, output_is_its_definition)
{
    atn_context *context = open_context();
    cr_assert_leq(crossnorm_size(TOKENS, DIM), 1 << 12);
    for (int kind = 0; kind < KINDS; kind++) {
        inputs x = draw();
        crossnorm_head h = head_of(kind, &x);
        double y[TOKENS * WIDTH];
        wide want[TOKENS][DIM];
        for (int i = 0; i < TOKENS * WIDTH; i++)
            y[i] = -7;
        crossnorm_forward(context, &h, workspace, y, WIDTH);
        define(kind, &x, want);
        for (int i = 0; i < TOKENS * WIDTH; i++) {
            wide wanted = i % WIDTH < DIM ? want[i / WIDTH][i % WIDTH] : -7;
            cr_expect(fabsl((wide)y[i] - wanted) <= 64 * 0x1p-53L * (1 + fabsl(wanted)),
                      "%s, %d: %.17g, %.17Lg", kinds[kind].name, i, y[i], wanted);
        }
    }
    atn_context_free(context);
}

/* sum over all entries of dy Y */
static wide product_with(int kind, const inputs *x, const double *dy)
{
    wide y[TOKENS][DIM], sum = 0;
    define(kind, x, y);
    for (int i = 0; i < TOKENS; i++)
        for (int c = 0; c < DIM; c++)
            sum += (wide)dy[i * WIDTH + c] * y[i][c];
    return sum;
}

/* Each entry by itself, the parameters' on top of what is there. With a step of h = 2^-20
 * differences are off by some h^2 = 1e-12 times third derivatives, which the short rows make large,
 * and by the long double's roundoff over h, 5e-14. */
Test(train_crossnorm, gradients_are_those_of_differences)
{
    static const double step = 0x1p-20, start = 0.5;
    atn_context *context = open_context();
    for (int kind = 0; kind < KINDS; kind++) {
        inputs x = draw(), gradient;
        crossnorm_head h = head_of(kind, &x);
        double dy[TOKENS * WIDTH], tokens[NUMBERS][TOKENS * WIDTH];
        double *parameters[CROSSNORM_PARAMETERS];
        random_stream *stream = random_create(4, "crossnorm", 0);
        for (int i = 0; i < TOKENS * WIDTH; i++)
            dy[i] = random_normal(stream);
        random_free(stream);
        for (int i = 0; i < CROSSNORM_PARAMETERS; i++) {
            parameters[i] = has(kind, i) ? gradient.arrays[NUMBERS + i] : NULL;
            for (int c = 0; c < DIM; c++)
                gradient.arrays[NUMBERS + i][c] = start;
        }
        crossnorm_backward(context, &h, workspace, dy, WIDTH, tokens[Q], tokens[K], tokens[V],
                           parameters);
        for (int a = 0; a < ARRAYS; a++)
            for (int64_t i = 0; i < rows_of(a) * columns_of(a); i++) {
                if (a >= NUMBERS && !has(kind, a - NUMBERS))
                    continue;
                int64_t row = i / columns_of(a), column = i % columns_of(a);
                double *entry = &x.arrays[a][row * STRIDE + column], before = *entry;
                *entry = before + step;
                wide above = product_with(kind, &x, dy);
                *entry = before - step;
                wide below = product_with(kind, &x, dy), want = (above - below) / (2 * (wide)step);
                *entry = before;
                double got = a < NUMBERS ? tokens[a][row * WIDTH + column]
                                         : gradient.arrays[a][column] - start;
                cr_expect(fabsl((wide)got - want) <= 1e-8L * (1 + fabsl(want)),
                          "%s, array %d, %d: %.12g, %.12Lg", kinds[kind].name, a, (int)i, got,
                          want);
            }
    }
    atn_context_free(context);
}

/* A query of zeros has no length: its output is 0, and so is its gradient; likewise a cluster,
 * whose channel of V is 0. */
Test(train_crossnorm, zeros_have_no_length)
{
    enum { TOKEN = 1, CHANNEL = 2 };
    atn_context *context = open_context();
    for (int kind = 0; kind < KINDS; kind++) {
        if (kinds[kind].channels)
            continue;
        inputs x = draw();
        crossnorm_head h = head_of(kind, &x);
        double y[TOKENS * WIDTH], dy[TOKENS * WIDTH], dt[NUMBERS][TOKENS * WIDTH];
        double numbers[2] = {0};
        double *parameters[CROSSNORM_PARAMETERS] = {numbers, kinds[kind].p ? numbers + 1 : NULL};
        bool queries = kinds[kind].kind != CROSSNORM_CLUSTERS;
        bool clusters = kinds[kind].kind != CROSSNORM_QUERIES;
        for (int i = 0; i < TOKENS * WIDTH; i++)
            dy[i] = 1 + i % 7;
        for (int c = 0; c < DIM; c++)
            x.arrays[Q][TOKEN * STRIDE + c] = 0;
        for (int i = 0; i < TOKENS; i++)
            x.arrays[V][i * STRIDE + CHANNEL] = 0;
        crossnorm_forward(context, &h, workspace, y, WIDTH);
        crossnorm_backward(context, &h, workspace, dy, WIDTH, dt[Q], dt[K], dt[V], parameters);
        for (int c = 0; c < DIM; c++) {
            cr_expect_eq(y[TOKEN * WIDTH + c], 0);
            cr_expect(!queries || dt[Q][TOKEN * WIDTH + c] == 0, "%s", kinds[kind].name);
        }
        for (int i = 0; i < TOKENS; i++) {
            cr_expect_eq(y[i * WIDTH + CHANNEL], 0);
            cr_expect(!clusters || dt[V][i * WIDTH + CHANNEL] == 0, "%s", kinds[kind].name);
        }
        for (int i = 0; i < TOKENS * WIDTH; i++)
            for (int part = 0; part < NUMBERS && i % WIDTH < DIM; part++)
                cr_expect(isfinite(dt[part][i]), "%s", kinds[kind].name);
        cr_expect(isfinite(numbers[0]) && isfinite(numbers[1]), "%s", kinds[kind].name);
    }
    atn_context_free(context);
}
