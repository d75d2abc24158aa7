/* SPDX-License-Identifier: BSD-3-Clause */
/* Other norms by which Q, K or the state may have been divided, and other states. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/hypotheses.h"
#include "common/report.h"

/* The matrices that are divided: Q and K in SimA and XCA, Q and K^T V in XNorm. */
enum { OF_Q = 1 << NORM_OF_Q, OF_K = 1 << NORM_OF_K, OF_STATE = 1 << NORM_OF_STATE };
enum { GROUPS = 3 };
static const struct {
    const char *name;
    int places;
} groups[2][GROUPS] = {
    {{"Q and K", OF_Q | OF_K}, {"Q", OF_Q}, {"K", OF_K}},
    {{"Q and K^T V", OF_Q | OF_STATE}, {"Q", OF_Q}, {"K^T V", OF_STATE}},
};

#define SIMA   (1u << ATN_SIMA)
#define XNORM  (1u << ATN_XNORM)
#define XCA    (1u << ATN_XCA)
#define NORMED (SIMA | XNORM | XCA)

/* The tokens whose norms are taken, in tiles. */
typedef enum { TILE_NOT, TILE_FIRST, TILE_BUT_LAST, TILE_LAST, TILE_EACH } tile_kind;

/* A change: of each group in turn, whose name replaces %s, or, if `places` are given, of these.
 * Fields that are 0 change nothing. */
typedef struct {
    const char *text;
    unsigned operators;
    bool gradient; /* for gradients alone */
    int places;    /* OF_ bits; WITHOUT: no division is changed */
    norm_division how;
    tile_kind tile;
    int64_t length; /* of a tile */
    trial_search search;
    norm_form form; /* changes other than of the division */
} norm_change;

enum { WITHOUT = 8 };

#define TILES(length_)                                                                             \
    {"%s divided by the norms of the first " #length_ " tokens", SIMA | XCA, .tile = TILE_FIRST,   \
     .length = length_},                                                                           \
        {"%s divided by norms of each tile of " #length_ " tokens by itself", SIMA | XCA,          \
         .tile = TILE_EACH, .length = length_},                                                    \
        {"%s divided by norms without the last tile, n mod " #length_, SIMA | XCA,                 \
         .tile = TILE_BUT_LAST, .length = length_},                                                \
    {                                                                                              \
        "%s divided by the norms of the last tile, n mod " #length_, SIMA | XCA,                   \
            .tile = TILE_LAST, .length = length_                                                   \
    }

static const norm_change norm_changes[] = {
    {"%s not normalised", NORMED, .how = {.kind = NORM_NOT}},
    {"%s normalised over channels, not over tokens", SIMA | XCA, .how = {.lines = LINES_OTHER}},
    {"%s normalised over the other axis", XNORM, .how = {.lines = LINES_OTHER}},
    {"%s divided by sums of x, not of |x|", NORMED, .how = {.kind = NORM_SIGNED}},
    {"%s divided by l2 norms, not l1", NORMED, .how = {.kind = NORM_ROOT}},
    {"%s divided by l1 norms, not l2", NORMED, .how = {.kind = NORM_SUM}},
    {"%s divided by norms without their square root", NORMED, .how = {.kind = NORM_SQUARES}},
    {"%s divided by the maximum (amax), not the norm", NORMED, .how = {.kind = NORM_LARGEST}},
    {"%s divided by one norm for the whole matrix", NORMED, .how = {.lines = LINES_WHOLE}},
    {"%s divided by the mean in the place of the norm's sum", NORMED, .how = {.mean = true}},
    {"padding counts in the norms of %s", SIMA | XCA, .how = {.padded = true}},
    TILES(16),
    TILES(32),
    TILES(64),
    TILES(128),
    {"Q divided by K's norms", SIMA | XCA, .places = OF_Q, .how = {.of_other = true}},
    {"K divided by Q's norms", SIMA | XCA, .places = OF_K, .how = {.of_other = true}},
    {"the softmax over the other axis", XCA, .places = OF_STATE, .how = {.lines = LINES_OTHER}},
    {"the softmax over the whole matrix", XCA, .places = OF_STATE, .how = {.lines = LINES_WHOLE}},
    {"the softmax not divided by its sum", XCA, .places = OF_STATE, .how = {.kind = NORM_NOT}},
    {"the state transposed", NORMED, .places = WITHOUT, .form = {.transposed = true}},
    {"the softmax's matrix transposed", XCA, .places = WITHOUT, .form = {.hat_transposed = true}},
    {"the accumulator still holds the head before", NORMED, .places = WITHOUT,
     .form = {.stale = STALE_LAST}},
    {"the accumulator still holds the head before, of the same batch entry", NORMED,
     .places = WITHOUT, .form = {.stale = STALE_LAST, .extent = STALE_IN_ENTRY}},
    {"the accumulator still holds all heads before", NORMED, .places = WITHOUT,
     .form = {.stale = STALE_ALL}},
    {"the accumulator still holds all heads before, of the same batch entry", NORMED,
     .places = WITHOUT, .form = {.stale = STALE_ALL, .extent = STALE_IN_ENTRY}},
    {"the accumulator still holds the batch entry before", NORMED, .places = WITHOUT,
     .form = {.stale = STALE_LAST, .extent = STALE_OF_HEAD}},
    {"the accumulator still holds all batch entries before", NORMED, .places = WITHOUT,
     .form = {.stale = STALE_ALL, .extent = STALE_OF_HEAD}},
    {"divided by tau", XCA, .places = WITHOUT, .form = {.power_set = true, .power = -1}},
    {"tau applied twice", XCA, .places = WITHOUT, .form = {.power_set = true, .power = 2}},
    {"gamma applied once, not to Q and to K^T V", XNORM, .places = WITHOUT,
     .form = {.power_set = true, .power = 1}},
    {"divided by gamma, once", XNORM, .places = WITHOUT, .form = {.power_set = true, .power = -1}},
    {"divided by gamma", XNORM, .places = WITHOUT, .form = {.power_set = true, .power = -2}},
    {"norms detached: no gradient through those of %s", NORMED, .gradient = true,
     .how = {.detached = true}},
    {"sign(x) missing in the derivative of the norms of %s", NORMED, .gradient = true,
     .how = {.no_sign = true}},
    {"the gradient through the norms of %s has the wrong sign", NORMED, .gradient = true,
     .how = {.negated = true}},
    {"the root's derivative where the norm of %s is 0: epsilon after the root", NORMED,
     .gradient = true, .how = {.unguarded = true}},
    {"the softmax's sum detached: the row term is missing", XCA, .gradient = true,
     .places = OF_STATE, .how = {.detached = true}},
    {"epsilon forgotten in the norms of %s: 0 divided by 0", NORMED,
     .how = {.place = EPSILON_NORM}},
    {"%s: norms are at least epsilon", NORMED, .how = {.place = EPSILON_LEAST},
     .search = SEARCH_EPSILON},
    {"%s: epsilon added to norms", NORMED, .how = {.place = EPSILON_NORM},
     .search = SEARCH_EPSILON},
    {"%s: epsilon added to each term of norms' sums", NORMED, .how = {.place = EPSILON_TERMS},
     .search = SEARCH_EPSILON},
    {"%s: epsilon added under norms' root", XNORM | XCA, .how = {.place = EPSILON_ROOT},
     .search = SEARCH_EPSILON},
    {"%s: epsilon added to each square under norms' root", XNORM | XCA,
     .how = {.place = EPSILON_ROOT_TERMS}, .search = SEARCH_EPSILON},
    {"the state does not start at 0, but at an initial constant", NORMED, .places = WITHOUT,
     .search = SEARCH_INITIAL},
};
enum { NORM_CHANGES = sizeof norm_changes / sizeof *norm_changes };

/* A value is a change together with one of its groups. */
int norm_change_count(void)
{
    return NORM_CHANGES * GROUPS;
}

static const norm_change *change_of(int value)
{
    return &norm_changes[value / GROUPS];
}

bool norm_change_is_of(int value, atn_operator op, bool gradient)
{
    const norm_change *n = change_of(value);
    return n->operators >> op & 1 && (gradient || !n->gradient) &&
           !(n->places && value % GROUPS > 0);
}

bool norm_change_is_fitted(int value)
{
    return change_of(value)->search != SEARCH_NOT;
}

char *norm_change_text(int value, atn_operator op)
{
    const norm_change *n = change_of(value);
    const char *at = strstr(n->text, "%s");
    if (!at)
        return must_format("%s", n->text);
    return must_format("%.*s%s%s", (int)(at - n->text), n->text,
                       groups[op == ATN_XNORM][value % GROUPS].name, at + strlen("%s"));
}

/* ---- Making a change ---- */

/* Sets the rows over which norms are taken; false: there is only one tile. */
static bool find_tile(const norm_change *n, int64_t rows, norm_division *how)
{
    int64_t tail = rows % n->length > 0 ? rows % n->length : n->length;
    if (n->tile == TILE_EACH) {
        how->lines = LINES_TILES;
        how->tile = n->length;
        return rows > n->length;
    }
    how->from = n->tile == TILE_LAST ? rows - tail : 0;
    how->end = n->tile == TILE_FIRST ? n->length : n->tile == TILE_BUT_LAST ? rows - tail : rows;
    return rows > n->length;
}

/* Applies a change to a division. */
static bool change_division(const norm_change *n, int64_t rows, norm_division *to)
{
    const norm_division *how = &n->how;
    to->kind = how->kind ? how->kind : to->kind;
    to->lines = how->lines ? how->lines : to->lines;
    to->place = how->place ? how->place : to->place;
    to->mean |= how->mean, to->of_other |= how->of_other;
    to->padded |= how->padded;
    to->detached |= how->detached, to->no_sign |= how->no_sign;
    to->negated |= how->negated, to->unguarded |= how->unguarded;
    return !n->tile || find_tile(n, rows, to);
}

static void change_state(const norm_form *from, norm_form *to)
{
    if (from->power_set) {
        to->power_set = true;
        to->power = from->power;
    }
    if (from->stale) {
        to->stale = from->stale;
        to->extent = from->extent;
    }
    to->transposed |= from->transposed;
    to->hat_transposed |= from->hat_transposed;
}

static void set_normed(trial *t)
{
    t->normed = true;
    t->normed_tokens = t->s.c.shape.tokens;
    t->normed_keys = t->s.c.shape.key_tokens;
}

bool change_norm(trial *t, int value)
{
    const norm_change *n = change_of(value);
    const attention_case *c = &t->s.c;
    atn_operator op = c->reference.op;
    int places = n->places ? n->places : groups[op == ATN_XNORM][value % GROUPS].places;
    const int64_t rows[] = {c->shape.tokens, c->shape.key_tokens, c->shape.dim};
    if (!(n->operators >> op & 1) || t->search || t->of != t->kind)
        return false;
    for (int i = 0; i < NORM_PLACES; i++)
        if (places >> i & 1 && !change_division(n, rows[i], &t->norms.of[i]))
            return false;
    change_state(&n->form, &t->norms);
    set_normed(t);
    t->search = n->search;
    return true;
}

bool weigh_tokens(trial *t, int64_t from, int64_t to, double factor)
{
    int64_t keys = t->s.c.shape.key_tokens;
    double *weights = trial_own(t, keys);
    for (int64_t i = 0; i < keys; i++)
        weights[i] =
            (t->norms.weights ? t->norms.weights[i] : 1) * (i >= from && i < to ? factor : 1);
    t->norms.weights = weights;
    set_normed(t);
    return to > from;
}

/* ---- A number that is searched for ---- */

/* The problem in which a number is searched for: usually one head, as the number is the same for
 * all. */
typedef struct {
    const trial *t;
    attention_case c;
    norm_form form;
    const double *dout, *got;
    int64_t size;
    double *at, *moved; /* room for two answers */
} search;

static void put_number(search *s, double number)
{
    if (s->t->search == SEARCH_INITIAL)
        s->form.initial = number;
    for (int i = 0; i < NORM_PLACES && s->t->search == SEARCH_EPSILON; i++)
        s->form.of[i].epsilon = number;
}

static atn_status answer_with(search *s, double number, double *to)
{
    put_number(s, number);
    return normed_answer(&s->c, &s->form, s->dout, s->t->kind, to);
}

/* The squared error that remains. */
static double left_with(search *s, double number)
{
    double left = 0;
    if (answer_with(s, number, s->at) < 0)
        return INFINITY;
    for (int64_t i = 0; i < s->size; i++)
        left += (s->got[i] - s->at[i]) * (s->got[i] - s->at[i]);
    return isnan(left) ? INFINITY : left;
}

/* A Gauss-Newton step from a number whose answer is `at`. */
static double step_from(search *s, double number)
{
    double by = 0x1p-20 * number, product = 0, square = 0;
    if (answer_with(s, number + by, s->moved) < 0)
        return 0;
    for (int64_t i = 0; i < s->size; i++) {
        double slope = (s->moved[i] - s->at[i]) / by;
        product += slope * (s->got[i] - s->at[i]);
        square += slope * slope;
    }
    return square > 0 ? product / square : 0;
}

/* The best of the powers of sqrt(10) times the typical size, of either sign for an initial value;
 * from there Gauss-Newton steps to the nearest minimum. */
static double find_number(search *s)
{
    enum { POWERS = 13, STEPS = 12 };
    bool initial = s->t->search == SEARCH_INITIAL;
    double size = initial ? normed_state_size(&s->c) : normed_norm_size(&s->c);
    double best = 0, least = left_with(s, 0);
    for (int i = 0; i < POWERS * (initial ? 2 : 1); i++) {
        double number = size * pow(10, 2 - 0.5 * (i % POWERS)) * (i < POWERS ? 1 : -1);
        double left = left_with(s, number);
        if (left < least) {
            least = left;
            best = number;
        }
    }
    for (int i = 0; i < STEPS && best != 0; i++) {
        left_with(s, best); /* sets s->at */
        double next = best + step_from(s, best), left = left_with(s, next);
        if (!(left < least))
            break;
        least = left;
        best = next;
    }
    return best;
}

/* Searches in the first head alone, except for gradients of parameters, which are sums over heads,
 * and for stale accumulators. */
static search start_search(const trial *t)
{
    search s = {.t = t,
                .c = t->s.c,
                .form = t->norms,
                .dout = t->s.grad_output,
                .got = t->s.results[t->kind]};
    if (t->kind < RESULT_PARAMETERS && !t->norms.stale)
        s.c.shape.batch = s.c.shape.heads = 1;
    s.size = result_size(&s.c, t->kind);
    s.at = must_allocate((size_t)s.size, sizeof *s.at);
    s.moved = must_allocate((size_t)s.size, sizeof *s.moved);
    return s;
}

atn_status answer_normed(trial *t, double *to)
{
    norm_form form = t->norms;
    /* ranges of rows and weights were set for another number of tokens */
    if (t->normed_tokens != t->s.c.shape.tokens || t->normed_keys != t->s.c.shape.key_tokens)
        return ATN_ERR_UNSUPPORTED;
    if (t->search) {
        search s = start_search(t);
        t->number = find_number(&s);
        put_number(&s, t->number);
        form = s.form;
        free(s.at), free(s.moved);
    }
    return normed_answer(&t->s.c, &form, t->s.grad_output, t->of, to);
}
