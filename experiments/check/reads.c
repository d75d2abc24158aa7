/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of Q, K and V before they are used: numbers of another type, fewer channels, rotated or
 * divided rows, or misread tiles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/hypotheses.h"

enum { OF_Q = 1, OF_K = 2, OF_V = 4 };

static bool can(const trial *t, unsigned capability)
{
    return atn_operator_get(t->s.c.reference.op)->capabilities & capability;
}

static int64_t head_count(const attention_case *c)
{
    return c->shape.batch * c->shape.heads;
}

/* The pointer to Q, K or V, and its rows and columns; null: K = Q. */
static double **input_of(attention_case *c, int which, int64_t *rows, int64_t *cols)
{
    *rows = which == OF_Q ? c->shape.tokens : c->shape.key_tokens;
    *cols = which == OF_V ? c->shape.value_dim : c->shape.dim;
    return which == OF_Q ? &c->q : which == OF_V ? &c->v : c->k ? &c->k : NULL;
}

/* ---- Types ---- */

typedef enum { IN_BF16, IN_F16, IN_TF32, IN_E4M3, IN_E5M2, IN_INT8_HEAD, IN_INT8_ROW } number_type;

#define IN_TYPES(what)                                                                             \
    what " read in bf16", what " read in f16", what " read in tf32", what " read in f8 (e4m3)",    \
        what " read in f8 (e5m2)", what " read in int8, a scale for each head",                    \
        what " read in int8, a scale for each token"
const char *const type_texts[] = {IN_TYPES("Q, K and V"),
                                  IN_TYPES("K and V"),
                                  IN_TYPES("Q and K"),
                                  IN_TYPES("Q"),
                                  IN_TYPES("K"),
                                  IN_TYPES("V"),
                                  NULL};
enum { TYPES = 7 };
_Static_assert(sizeof type_texts / sizeof *type_texts == TYPED + 1, "a text for each");

/* Rounds to nearest, with `bits` fraction bits; below 2^least numbers are evenly spaced. */
static double in_float(double x, int bits, int least)
{
    int exponent;
    frexp(x, &exponent);
    int unit = (exponent - 1 > least ? exponent - 1 : least) - bits;
    return ldexp(nearbyint(ldexp(x, -unit)), unit);
}

/* Rounds x to a type; scale: of int8. */
static double in_type(number_type type, double scale, double x)
{
    switch (type) {
    case IN_BF16:
        return in_float(x, 7, -126);
    case IN_F16:
        return in_float(x, 10, -14);
    case IN_TF32:
        return in_float(x, 10, -126);
    case IN_E4M3:
        return fmin(fmax(in_float(x, 3, -6), -448), 448);
    case IN_E5M2:
        return fmin(fmax(in_float(x, 2, -14), -57344), 57344);
    default:
        return scale > 0 ? nearbyint(x / scale) * scale : x;
    }
}

/* Rounds groups of numbers, each with a scale of its own. False: all numbers are of that type
 * already. */
static bool round_groups(number_type type, int64_t group, int64_t count, double *x)
{
    bool changed = false;
    for (int64_t first = 0; first < count; first += group) {
        double most = 0;
        for (int64_t i = first; i < first + group; i++)
            most = fmax(most, fabs(x[i]));
        for (int64_t i = first; i < first + group; i++) {
            double rounded = in_type(type, most / 127, x[i]);
            changed |= rounded != x[i];
            x[i] = rounded;
        }
    }
    return changed;
}

bool set_type(trial *t, int value)
{
    static const int of[] = {OF_Q | OF_K | OF_V, OF_K | OF_V, OF_Q | OF_K, OF_Q, OF_K, OF_V};
    const number_type type = (number_type)(value % TYPES);
    attention_case *c = &t->s.c;
    int which = of[value / TYPES], changed = 0;
    if (!c->k && (which & (OF_Q | OF_K)) == OF_K) /* K is Q */
        return false;
    for (int input = OF_Q; input <= OF_V; input *= 2) {
        int64_t rows, cols;
        double **x = which & input ? input_of(c, input, &rows, &cols) : NULL;
        if (!x)
            continue;
        int64_t count = head_count(c) * rows * cols;
        *x = trial_copy(t, *x, count);
        if (round_groups(type, type == IN_INT8_ROW ? cols : rows * cols, count, *x))
            changed |= input;
    }
    return changed == (c->k ? which : which & ~OF_K);
}

/* ---- Channels ---- */

const char *const channel_texts[] = {"the last channel of Q and K left out",
                                     "the last 8 channels of Q and K left out",
                                     "the last 16 channels of Q and K left out",
                                     "the second half of the channels of Q and K left out", NULL};

/* Sets channels of Q and K to 0, for operators to which a channel of zeros is the same as none. */
bool leave_out_channels(trial *t, int value)
{
    attention_case *c = &t->s.c;
    const int64_t d = c->shape.dim, left_out[] = {1, 8, 16, d / 2};
    bool same = false;
    for (int i = 0; i < value; i++)
        same |= left_out[i] == left_out[value];
    if (c->reference.op == ATN_ELU || c->reference.op == ATN_EFFICIENT || left_out[value] >= d ||
        same || t->of == RESULT_TOKENS || t->of == RESULT_KEYS)
        return false;
    for (int input = OF_Q; input <= OF_K; input *= 2) {
        int64_t rows, cols;
        double **x = input_of(c, input, &rows, &cols);
        if (!x)
            continue;
        *x = trial_copy(t, *x, head_count(c) * rows * cols);
        for (int64_t i = 0; i < head_count(c) * rows * cols; i++)
            (*x)[i] = i % cols < cols - left_out[value] ? (*x)[i] : 0;
    }
    return true;
}

/* ---- Rows ---- */

const char *const row_texts[] = {
    "Q and K turned by their positions (a rotary embedding of neighbouring channels)",
    "Q and K turned by their positions (a rotary embedding of two halves of the channels)",
    "rows of Q and K divided by their Euclidean norms (a QK norm)",
    "rows of Q and K divided by their root mean squares (a QK norm)", NULL};

/* Rotates row i in pairs of channels, by the angles i 10000^(-2 p / d). */
static void turn(int64_t d, int64_t i, bool halves, const double *x, double *y)
{
    for (int64_t p = 0; p < d / 2; p++) {
        int64_t a = halves ? p : 2 * p, b = halves ? p + d / 2 : 2 * p + 1;
        double angle = (double)i * pow(10000, -2 * (double)p / (double)d);
        y[a] = cos(angle) * x[a] - sin(angle) * x[b];
        y[b] = sin(angle) * x[a] + cos(angle) * x[b];
    }
}

static void divide_row(int64_t d, bool mean, const double *x, double *y)
{
    double sum = 0;
    for (int64_t j = 0; j < d; j++)
        sum += x[j] * x[j] / (mean ? (double)d : 1);
    for (int64_t j = 0; j < d && sum > 0; j++)
        y[j] = x[j] / sqrt(sum);
}

bool change_rows(trial *t, int value)
{
    attention_case *c = &t->s.c;
    if (t->of != RESULT_OUTPUT || (value < 2 && c->shape.dim % 2))
        return false;
    for (int input = OF_Q; input <= OF_K; input *= 2) {
        int64_t rows, cols;
        double **x = input_of(c, input, &rows, &cols), *from = x ? *x : NULL;
        if (!x)
            continue;
        *x = trial_own(t, head_count(c) * rows * cols);
        for (int64_t i = 0; i < head_count(c) * rows; i++) {
            if (value < 2)
                turn(cols, i % rows, value == 1, from + i * cols, *x + i * cols);
            else
                divide_row(cols, value == 3, from + i * cols, *x + i * cols);
        }
    }
    return true;
}

/* ---- Tiles ---- */

/* TILE_OVERLAPS: the last tile is completed by tokens of the tile before, which then count twice:
 * it begins earlier, or they are still in its memory. */
typedef enum {
    TILE_AGAIN,
    TILE_BEHIND,
    TILE_ZERO, /* the incomplete last tile */
    TILE_LEFT_OUT,
    TILE_OVERLAPS
} tile_reading;

static const struct {
    int of;
    tile_reading how;
} tile_readings[] = {{OF_V, TILE_AGAIN},           {OF_K, TILE_AGAIN},
                     {OF_K | OF_V, TILE_AGAIN},    {OF_V, TILE_BEHIND},
                     {OF_K, TILE_BEHIND},          {OF_K, TILE_ZERO},
                     {OF_K | OF_V, TILE_LEFT_OUT}, {OF_K | OF_V, TILE_OVERLAPS}};

#define OF_TILES(what)                                                                             \
    what " (tiles of 16)", what " (tiles of 32)", what " (tiles of 64)", what " (tiles of 128)"
const char *const tile_texts[] = {
    OF_TILES("V's second tile is the first again"),
    OF_TILES("K's second tile is the first again"),
    OF_TILES("the second tile of K and V is the first again"),
    OF_TILES("V one tile behind: the values of the tile before"),
    OF_TILES("K one tile behind: the keys of the tile before"),
    OF_TILES("K's last rows, which fill no tile, are 0, but count"),
    OF_TILES("left out: the second tile of tokens"),
    OF_TILES("counted twice: tokens of the tile before, to make the last one whole"),
    NULL};
enum { TILE_SIZES = 4 };
_Static_assert(sizeof tile_texts / sizeof *tile_texts == TILED + 1, "a text for each");

enum { NO_ROW = -1, ROW_OF_ZEROS = -2 };

/* The row that is read as row i; NO_ROW: there is no such row. */
static int64_t read_from(tile_reading how, int64_t tile, int64_t rows, int64_t i)
{
    int64_t whole = rows / tile * tile;
    switch (how) {
    case TILE_AGAIN:
        return i >= rows ? NO_ROW : i / tile == 1 ? i - tile : i;
    case TILE_BEHIND:
        return i >= rows ? NO_ROW : i < tile ? i : i - tile;
    case TILE_ZERO:
        return i >= rows ? NO_ROW : i < whole ? i : ROW_OF_ZEROS;
    case TILE_LEFT_OUT:
        return i < tile ? i : i + tile < rows ? i + tile : NO_ROW;
    case TILE_OVERLAPS:
        return i < whole ? i : i < whole + tile ? rows - tile + i - whole : NO_ROW;
    }
    return NO_ROW;
}

bool misread_tiles(trial *t, int value)
{
    attention_case *c = &t->s.c;
    const int of = tile_readings[value / TILE_SIZES].of;
    const tile_reading how = tile_readings[value / TILE_SIZES].how;
    const int64_t rows = c->shape.key_tokens, tile = (int64_t)16 << value % TILE_SIZES;
    int64_t count = 0;
    const bool of_tail = how == TILE_ZERO || how == TILE_OVERLAPS;
    const bool other = how >= TILE_LEFT_OUT; /* another number of rows */
    if (rows <= tile || (of_tail && rows % tile == 0) || (of & OF_K && !c->k) ||
        t->of == RESULT_KEYS || t->of == RESULT_VALUES || trial_has_landmarks(t))
        return false;
    if (other && (!can(t, ATN_CAN_LENGTHS) || c->key_mask || c->reference.causal))
        return false;
    while (read_from(how, tile, rows, count) != NO_ROW)
        count++;
    for (int input = OF_K; input <= OF_V; input *= 2) {
        int64_t had, cols;
        double **x = of & input ? input_of(c, input, &had, &cols) : NULL, *from = x ? *x : NULL;
        if (!x)
            continue;
        *x = trial_own(t, head_count(c) * count * cols);
        for (int64_t i = 0; i < head_count(c) * count; i++) {
            int64_t row = read_from(how, tile, rows, i % count);
            if (row >= 0)
                memcpy(*x + i * cols, from + (i / count * rows + row) * cols,
                       (size_t)cols * sizeof **x);
        }
    }
    c->shape.key_tokens = c->choice.shape.key_tokens = count;
    return true;
}
