/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy/operators.h"
#include "check/check.h"
#include "common/report.h"

bool subject_inverts(const subject *s)
{
    return s->c.choice.op == ATN_SOFT || s->c.choice.op == ATN_SOFTPP;
}

double subject_unit(const subject *s)
{
    return s->storage == ATN_STORAGE_NATIVE ? atn_dtype_roundoff(s->dtype)
                                            : atn_storage_roundoff(s->storage);
}

/* The s of `statistic` in check.h. */
static double subject_sums(const subject *s)
{
    double terms = (double)attention_case_terms(&s->judged);
    return sqrt(terms) / 2 * atn_dtype_roundoff(s->dtype);
}

ref_verdict worse_verdict(ref_verdict a, ref_verdict b)
{
    static const int rank[] = {
        [REF_SKIPPED] = 0, [REF_PASS] = 1, [REF_MARGINAL] = 2, [REF_FAIL] = 3};
    return rank[a] > rank[b] ? a : b;
}

/* ---- Statistics ---- */

#define TILE(rows)                                                                                 \
    {                                                                                              \
        "factor of " #rows " rows", "a wrong factor of a tile of " #rows " rows", PART_FACTOR,     \
            rows, 0, true, 2                                                                       \
    }

/* Rows and columns have larger multiples: the worst of many small parts is far out by chance. */
const statistic statistics[] = {
    {"size", "the error as a whole", PART_ENERGY, 0, 0, true, 2},
    {"row", "the worst row by itself", PART_ENERGY, 1, 0, true, 6},
    {"column", "the worst column by itself", PART_ENERGY, 0, 1, true, 4},
    {"factor", "a wrong factor", PART_FACTOR, 0, 0, false, 2},
    {"factors of rows", "a wrong factor for each row", PART_FACTOR, 1, 0, false, 2},
    {"factors of columns", "a wrong factor for each column", PART_FACTOR, 0, 1, false, 2},
    {"factor of a column", "a wrong factor of one column", PART_FACTOR, 0, 1, true, 3},
    TILE(16),
    TILE(32),
    TILE(64),
    TILE(128),
    TILE(256),
    {"mean", "a wrong mean", PART_MEAN, 0, 0, false, 2},
    {"means of rows", "wrong means of rows", PART_MEAN, 1, 0, false, 2},
    {"means of columns", "wrong means of columns", PART_MEAN, 0, 1, false, 2},
    {"direction", "along V, or as if Q, K or a parameter were larger", PART_DIRECTION, 0, 0, false,
     2},
};
const int statistic_count = sizeof statistics / sizeof *statistics;

static double square_norm(int64_t count, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sum;
}

/* Sums over a row, a column, or a group of them, of products of the error e and the wanted w. */
typedef struct {
    double ee, ew, ww, e, count;
} moments;

static void add_moments(moments *to, const moments *m)
{
    to->ee += m->ee, to->ew += m->ew, to->ww += m->ww, to->e += m->e, to->count += m->count;
}

/* The moments of every row, followed by those of every column. */
static void find_moments(const yardstick *y, const double *e, moments *lines)
{
    memset(lines, 0, (size_t)(y->rows + y->cols) * sizeof *lines);
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t j = 0; j < y->cols; j++) {
            double error = e[i * y->cols + j], want = y->want[i * y->cols + j];
            const moments m = {error * error, error * want, want * want, error, 1};
            add_moments(&lines[i], &m);
            add_moments(&lines[y->rows + j], &m);
        }
}

/* The squared norm of the part of the error that lies in a group. mean: the mean squared norm of
 * the wanted answer in the groups. Errors count less where more than that is wanted, and relative
 * errors where next to nothing is wanted do not count. */
static double square_of(part_kind kind, const moments *m, double mean, bool worst)
{
    double wanted = worst ? fmax(m->ww, mean) : m->ww;
    if (kind == PART_ENERGY)
        return mean > 0 ? m->ee * (mean / fmax(m->ww, mean)) : m->ee;
    if (kind == PART_MEAN)
        return m->e * m->e / m->count;
    if (!(wanted > 0))
        return 0;
    return m->ew / wanted * (worst ? m->ew / wanted * mean : m->ew);
}

/* A statistic's groups: each holds `length` of the `lines`, which are rows or columns. */
typedef struct {
    bool columns;
    int64_t lines, length, count;
} grouping;

static grouping groups_of(const statistic *t, const yardstick *y)
{
    bool columns = t->cols > 0;
    int64_t lines = columns ? y->cols : y->rows;
    int64_t length = columns ? t->cols : t->rows ? t->rows : y->rows;
    return (grouping){columns, lines, length, (lines + length - 1) / length};
}

/* The value of a statistic. all: the squared norm of the wanted answer. */
static double measure(const yardstick *y, const statistic *t, double all, const moments *lines)
{
    grouping g = groups_of(t, y);
    double wanted = all / (double)g.count, sum = 0, most = 0;
    lines += g.columns ? y->rows : 0;
    for (int64_t first = 0; first < g.lines; first += g.length) {
        moments m = {0};
        for (int64_t i = first; i < first + g.length && i < g.lines; i++)
            add_moments(&m, &lines[i]);
        double square = square_of(t->kind, &m, wanted, t->worst);
        sum += square;
        most = isnan(square) || square > most ? square : most;
    }
    return sqrt(t->worst ? most : sum);
}

/* The norm of the error's projection on a direction; 0 if that is null. */
static double along(const yardstick *y, const double *e, const double *direction)
{
    const double least = 0x1p-40; /* smaller changes are rounding in f64 */
    int64_t size = y->rows * y->cols;
    double product = 0, square = direction ? square_norm(size, direction) : 0;
    if (!(square > least * square_norm(size, y->want)))
        return 0;
    for (int64_t i = 0; i < size; i++)
        product += e[i] * direction[i];
    return fabs(product) / sqrt(square);
}

/* V of a head as a direction of the output; null: it does not have the output's shape. */
static const double *values_of(const yardstick *y)
{
    if (!y->c || y->c->shape.key_tokens != y->rows)
        return NULL;
    return y->c->v + y->head * y->rows * y->cols;
}

/* The number of values of a statistic: for PART_DIRECTION one for each direction of the reach, and
 * V. */
static int directions_of(const statistic *t, const yardstick *y)
{
    return t->kind == PART_DIRECTION ? y->reach.directions + 1 : 1;
}

/* All statistics of an error, in the order of the table. */
static void measure_all(const yardstick *y, const double *e, double values[MOST_STATISTICS])
{
    moments *lines = must_allocate((size_t)(y->rows + y->cols), sizeof *lines);
    find_moments(y, e, lines);
    double all = 0;
    for (int64_t i = 0; i < y->rows; i++)
        all += lines[i].ww;
    for (int i = 0, at = 0; i < statistic_count; i++)
        for (int j = 0; j < directions_of(&statistics[i], y); j++, at++)
            values[at] = statistics[i].kind != PART_DIRECTION
                             ? measure(y, &statistics[i], all, lines)
                         : j < y->reach.directions ? along(y, e, y->reach.direction[j])
                                                   : along(y, e, values_of(y));
    free(lines);
}

/* ---- What is reached ---- */

static const double mean_square = 0.4246609001440095; /* 1 / sqrt(8 ln 2): to nearest */

/* The factor by which another error may exceed the mean over a few noises: 1 + 4 / sqrt(f), where f
 * is the number of independent numbers that they are made of. The cosine of the angle between two
 * independent noises is about 1/sqrt(f), from which f is estimated. */
static double chance(const yardstick *y, int count, double *const noise[])
{
    int64_t size = y->rows * y->cols;
    double sum = 0, pairs = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            const double *a = noise[i], *b = noise[j];
            double product = 0, norms = sqrt(square_norm(size, a)) * sqrt(square_norm(size, b));
            for (int64_t k = 0; k < size; k++)
                product += a[k] * b[k];
            sum += norms > 0 ? product / norms * (product / norms) : 1;
            pairs++;
        }
    double independent = pairs > 0 ? fmin(pairs / sum, (double)size) : 1;
    return 1 + 4 / sqrt(fmax(independent, 1));
}

/* What is reached: in every statistic, as a whole by the root mean square, and the factor for
 * chance. Statistics of kind PART_ENERGY include that factor. */
typedef struct {
    double most[MOST_STATISTICS], whole, spread;
} reached_parts;

static bool is_energy(int at)
{
    return at < statistic_count && statistics[at].kind == PART_ENERGY;
}

/* Adds the root mean square of every statistic over noises, times a rounding. The factor for chance
 * is that of the noises whose error is larger. */
static void add_noise(const yardstick *y, int count, double *const noise[], double rounding,
                      reached_parts *r)
{
    double values[MOST_STATISTICS] = {0}, squares[MOST_STATISTICS] = {0};
    double own = chance(y, count, noise);
    for (int i = 0; i < count; i++) {
        measure_all(y, noise[i], values);
        for (int at = 0; at < MOST_STATISTICS; at++)
            squares[at] += values[at] * values[at] / count;
    }
    if (own * rounding * sqrt(squares[0]) > r->most[0])
        r->spread = own;
    r->whole = fmax(r->whole, rounding * sqrt(squares[0]));
    for (int at = 0; at < MOST_STATISTICS; at++)
        r->most[at] = fmax(r->most[at], (is_energy(at) ? own : 1) * rounding * sqrt(squares[at]));
}

static void add_runs(const yardstick *y, int count, double *const errors[], reached_parts *r)
{
    double values[MOST_STATISTICS] = {0};
    for (int i = 0; i < count; i++) {
        measure_all(y, errors[i], values);
        for (int at = 0; at < MOST_STATISTICS; at++)
            r->most[at] = isfinite(values[at]) ? fmax(r->most[at], values[at]) : r->most[at];
        r->whole = isfinite(values[0]) ? fmax(r->whole, values[0]) : r->whole;
    }
}

/* The largest value of every statistic that a good kernel's runs and roundings have. */
static reached_parts find_reached(const yardstick *y)
{
    double rounded = y->wide ? y->summed : y->stages * y->unit;
    reached_parts r = {.spread = 1};
    if (y->wide) { /* the results' roundings, which are independent */
        add_runs(y, y->reach.writtens, y->reach.written, &r);
        r.spread += 4 / sqrt((double)(y->rows * y->cols));
    }
    add_noise(y, y->reach.noises, y->reach.noise, rounded * mean_square + y->sums, &r);
    if (y->reach.inverses)
        add_noise(y, y->reach.inverses, y->reach.inverse, y->summed * mean_square, &r);
    if (!y->wide)
        add_runs(y, y->reach.runs, y->reach.errors, &r);
    for (int at = 0; at < MOST_STATISTICS && y->factor > 0; at++)
        r.most[at] *= y->factor;
    r.whole *= y->factor > 0 ? y->factor : 1;
    return r;
}

/* The part of the wanted answer by which a factor of each row or column may be wrong: a denominator
 * or norm that all of its numbers share may be stored in the type, too, and is then rounded once.
 * Neither noises nor runs that keep it in f32 show that. */
static double shared_factor(const yardstick *y, const statistic *t)
{
    bool of_lines = t->kind == PART_FACTOR && (t->rows == 1 || t->cols == 1);
    return of_lines && !y->wide ? mean_square * y->unit : 0;
}

/* The part of an error that may lie in a mean because all numbers of a row share one rounding: in a
 * backward pass that of a softmax's row term, or of the derivative through a norm or denominator.
 * Noises of the inputs do not show it, because it cancels there. The mean of a row may then have
 * all of the row's error. The mean of n independent rows has 1/sqrt(n) of it, and 4/sqrt(n) at 4
 * standard deviations. Only narrow types store such a number so coarsely. */
static double shared_by_rows(const yardstick *y, const statistic *t)
{
    return y->stages == 1 || y->wide ? 0 : t->rows ? 1 : fmin(1, 4 / sqrt((double)y->rows));
}

/* The bounds of every statistic; whether trivial outputs would pass is tested later. */
static bounds measure_bounds(const yardstick *y)
{
    bounds b = {.norm = sqrt(square_norm(y->rows * y->cols, y->want))};
    const reached_parts r = find_reached(y);
    b.reached = r.most[0];
    for (int i = 0, at = 0; i < statistic_count; i++) {
        const statistic *t = &statistics[i];
        double part = t->worst ? 1 / sqrt((double)groups_of(t, y).count) : 1;
        double by_chance = t->kind != PART_ENERGY ? (r.spread - 1) * r.whole * part : 0;
        double cut = t->kind == PART_ENERGY && !y->wide ? fmax(y->unit, y->cut) : y->cut;
        double truncation = y->nearest ? 0 : cut / (2 * log(2)) + y->sums;
        double shared = t->kind == PART_MEAN ? shared_by_rows(y, t) * r.whole
                                             : shared_factor(y, t) * part * b.norm;
        for (int j = 0; j < directions_of(t, y); j++, at++)
            b.bound[at] =
                t->multiple * fmax(r.most[at], shared) + by_chance + truncation * part * b.norm;
    }
    return b;
}

static const char *rule_name(const yardstick *y, const statistic *t, int direction)
{
    return t->kind != PART_DIRECTION         ? t->name
           : direction < y->reach.directions ? y->reach.direction_names[direction]
                                             : "V";
}

/* The ratio and the name of the first statistic that FAILs, or, if none does, of the largest ratio.
 * 0/0 is 0. */
static double deciding_ratio(const yardstick *y, const bounds *b, const double *e,
                             const char **rule)
{
    double deciding = 0, values[MOST_STATISTICS];
    *rule = statistics[0].name;
    measure_all(y, e, values);
    for (int i = 0, at = 0; i < statistic_count; i++)
        for (int j = 0; j < directions_of(&statistics[i], y); j++, at++) {
            double ratio = values[at] > 0 ? values[at] / b->bound[at] : values[at];
            if (ratio <= deciding * (1 + 0x1p-10)) /* of equal ones the more general */
                continue;
            deciding = ratio;
            *rule = rule_name(y, &statistics[i], j);
            if (ref_judge(REF_REACH, ratio) == REF_FAIL)
                return ratio;
        }
    return deciding;
}

/* ---- A head ---- */

/* got - want; to be freed. */
static double *error_of(const yardstick *y, const double *got)
{
    double *e = must_allocate((size_t)(y->rows * y->cols), sizeof *e);
    for (int64_t i = 0; i < y->rows * y->cols; i++)
        e[i] = got[i] - y->want[i];
    return e;
}

/* Whether an answer with the same row for all tokens would not FAIL. */
static bool row_passes(const yardstick *y, const bounds *b, const double *row)
{
    const char *rule;
    double *e = must_allocate((size_t)(y->rows * y->cols), sizeof *e);
    for (int64_t i = 0; i < y->rows * y->cols; i++)
        e[i] = row[i % y->cols] - y->want[i];
    double ratio = deciding_ratio(y, b, e, &rule);
    free(e);
    return ref_judge(REF_REACH, ratio) != REF_FAIL;
}

/* The mean of the rows of x that are not padding. */
static void mean_row(int64_t rows, int64_t cols, const double *x, const unsigned char *there,
                     double *mean)
{
    double count = 0;
    for (int64_t i = 0; i < rows; i++)
        count += !there || there[i];
    for (int64_t j = 0; j < cols; j++)
        mean[j] = 0;
    for (int64_t i = 0; i < rows * cols; i++)
        mean[i % cols] += !there || there[i / cols] ? x[i] / count : 0;
}

/* Whether a trivial output would pass: zeros, the mean of the wanted rows, or the mean of the
 * values. These say nothing about tokens; if they pass, a pass means nothing. A single row is its
 * own mean, and zeros may be the wanted answer. */
static bool is_trivial(const yardstick *y, const bounds *b)
{
    double *row = must_allocate((size_t)y->cols, sizeof *row);
    bool trivial = b->norm > 0 && row_passes(y, b, row);
    bool many = y->rows > 1 && b->norm > 0;
    if (many && !(y->c && y->c->shape.key_tokens == 1)) {
        mean_row(y->rows, y->cols, y->want, NULL, row);
        trivial |= row_passes(y, b, row);
    }
    if (many && y->c && y->c->shape.key_tokens > 1) {
        int64_t keys = y->c->shape.key_tokens;
        const unsigned char *mask =
            y->c->key_mask ? y->c->key_mask + y->head / y->c->shape.heads * keys : NULL;
        mean_row(keys, y->cols, y->c->v + y->head * keys * y->cols, mask, row);
        trivial |= row_passes(y, b, row);
    }
    free(row);
    return trivial;
}

static bool is_finite(int64_t count, const double *x)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

/* Whether the largest of the numbers is one whose square, and that of a roundoff of it, are normal
 * numbers of f64; so is 0. */
static bool has_squares(int64_t count, const double *x)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs(x[i]));
    return most == 0 || (most > 0x1p-440 && most < 0x1p440);
}

/* Why no verdict is possible for any result; null: one is. */
static const char *why_undefined(const yardstick *y)
{
    int64_t size = y->rows * y->cols;
    if (!is_finite(size, y->want))
        return "undefined: the answer is not finite";
    if (!has_squares(size, y->want))
        return "the squares of the answer or of its roundings leave the range of f64";
    for (int i = 0; i < NOISES; i++)
        if (i >= y->reach.noises || !is_finite(size, y->reach.noise[i]))
            return "no derivatives to tell what rounding does";
    return NULL;
}

bounds find_bounds(const yardstick *y)
{
    bounds b = {.why = why_undefined(y)};
    if (b.why)
        return b;
    b = measure_bounds(y);
    if (is_trivial(y, &b))
        b.why = "trivial outputs would pass";
    return b;
}

/* The error of the library's run that rounds what a good kernel of the type rounds; null: there is
 * none. */
static const double *library_run(const yardstick *y)
{
    if (y->wide)
        return y->reach.writtens ? y->reach.written[0] : NULL;
    return y->reach.runs ? y->reach.errors[0] : NULL;
}

judgement judge_head(const yardstick *y, const bounds *b, const double *got)
{
    int64_t size = y->rows * y->cols;
    judgement j = {.verdict = REF_SKIPPED,
                   .rule = "none",
                   .reason = "",
                   .ratio = NAN,
                   .expected = y->kappa * y->rounding,
                   .own = y->own > 0 ? y->kappa * y->own : 0,
                   .reachable = b->norm > 0 ? b->reached / b->norm : NAN,
                   .allowed = b->norm > 0 ? b->bound[0] / b->norm : NAN,
                   .difference = ref_compare_f64(y->rows, y->cols, got, y->cols, y->want, y->cols)};
    bool finite = is_finite(size, got);
    const double *run = library_run(y);
    if (!finite && run && !is_finite(size, run)) {
        j.reason = "the library is not finite either";
    } else if (b->norm > 0 || !b->why) {
        double *e = error_of(y, got);
        j.ratio = deciding_ratio(y, b, e, &j.rule);
        j.verdict = ref_judge(REF_REACH, j.ratio);
        free(e);
    } else if (!finite && is_finite(size, y->want)) {
        j.ratio = INFINITY;
        j.rule = statistics[STATISTIC_SIZE].name;
        j.verdict = REF_FAIL;
    }
    if (j.verdict == REF_FAIL && isfinite(j.difference.relative_frobenius) &&
        j.difference.relative_frobenius <= j.own) {
        j.verdict = REF_SKIPPED;
        j.rule = "none";
        j.reason = "the answer it is compared with may err as much: --reference exact";
    }
    if (b->why && j.verdict != REF_FAIL) {
        j.verdict = REF_SKIPPED;
        j.rule = "none";
        j.reason = b->why;
    }
    return j;
}

/* ---- A result ---- */

bool subject_must_be_wide(const subject *s, double kappa)
{
    return subject_inverts(s) && s->storage != ATN_STORAGE_NATIVE &&
           kappa * sqrt(subject_unit(s)) > 1;
}

/* The operands of two successive products, all of which tensor cores may truncate to tf32. */
enum { CUTS = 4 };

yardstick head_yardstick(const subject *s, result_kind kind, const result_verdict *v, int64_t head)
{
    bool wide = subject_must_be_wide(s, v->kappa[head]);
    bool nearest = (kind == RESULT_OUTPUT || wide) &&
                   (s->storage == ATN_STORAGE_BF16 || s->storage == ATN_STORAGE_F16);
    int64_t rows = result_rows(&s->judged, kind), cols = result_cols(&s->judged, kind);
    yardstick y = {
        .c = kind == RESULT_OUTPUT ? &s->judged : NULL,
        .head = head,
        .rows = rows,
        .cols = cols,
        .want = v->want + head * rows * cols,
        .reach = v->reach,
        .kappa = v->kappa[head],
        .rounding = accuracy_rounding(&s->judged, s->dtype),
        .own =
            v->exact ? 0 : (double)attention_case_terms(&s->judged) * atn_dtype_roundoff(ATN_F64),
        .unit = subject_unit(s),
        .cut = nearest ? 0 : (s->storage == ATN_STORAGE_TF32 ? CUTS : 1) * subject_unit(s),
        .wide = wide,
        .sums = subject_sums(s),
        .summed = atn_dtype_roundoff(s->dtype),
        .stages = v->reach.stored && v->reach.stored[head] > 2 ? v->reach.stored[head]
                  : kind != RESULT_OUTPUT && s->storage != ATN_STORAGE_NATIVE
                      ? sqrt(GRADIENT_STAGES)
                      : 1,
    };
    for (int i = 0; i < y.reach.runs; i++)
        y.reach.errors[i] += head * rows * cols;
    for (int i = 0; i < y.reach.writtens; i++)
        y.reach.written[i] += head * rows * cols;
    for (int i = 0; i < y.reach.noises; i++)
        y.reach.noise[i] += head * rows * cols;
    for (int i = 0; i < y.reach.inverses; i++)
        y.reach.inverse[i] += head * rows * cols;
    for (int i = 0; i < y.reach.directions; i++)
        y.reach.direction[i] += head * rows * cols;
    return y;
}

/* kappa of each head from the noises, raised to that of the inverse: of the same head for outputs
 * and gradients, of all heads for a parameter. inverse: kappa of each head's inverse. */
static void find_result_conditions(const subject *s, result_kind kind, const double *inverse,
                                   result_verdict *v)
{
    int64_t heads = result_heads(&s->c, kind), all = result_heads(&s->c, RESULT_OUTPUT);
    int64_t size = result_size(&s->judged, kind) / heads;
    bool shared = kind >= RESULT_PARAMETERS;
    for (int64_t i = 0; i < heads; i++) {
        double norm = sqrt(square_norm(size, v->want + i * size));
        v->kappa[i] = v->reach.noises ? 1 : NAN;
        for (int j = 0; j < v->reach.noises; j++) {
            double change = sqrt(square_norm(size, v->reach.noise[j] + i * size));
            v->kappa[i] = fmax(v->kappa[i], norm > 0 ? 1 + change / norm : 1);
        }
        for (int64_t j = shared ? 0 : i; j < (shared ? all : i + 1); j++)
            v->kappa[i] = isnan(inverse[j]) ? NAN : fmax(v->kappa[i], inverse[j]);
    }
}

void find_conditions(const subject *s, const result_group *g)
{
    int64_t all = result_heads(&s->c, RESULT_OUTPUT);
    double *inverse = must_allocate((size_t)all, sizeof *inverse);
    for (int64_t i = 0; i < all; i++)
        inverse[i] = 1;
    answer_inverse_conditions(s, inverse);
    for (int i = 0; i < g->count; i++)
        find_result_conditions(s, g->kinds[i], inverse, g->of[i]);
    free(inverse);
}

static bounds *find_all_bounds(const subject *s, result_kind kind, const result_verdict *v)
{
    int64_t heads = result_heads(&s->c, kind);
    bounds *all = must_allocate((size_t)heads, sizeof *all);
    for (int64_t i = 0; i < heads; i++) {
        yardstick y = head_yardstick(s, kind, v, i);
        all[i] = find_bounds(&y);
    }
    return all;
}

void claim_another(atn_context *context, const subject *s, const result_group *known,
                   const result_group *g)
{
    for (int i = 0; i < g->count; i++) {
        result_verdict *v = g->of[i];
        *v = *known->of[i];
        memset(v->reach.errors, 0, sizeof v->reach.errors);
        memset(v->reach.written, 0, sizeof v->reach.written);
        v->reach.runs = v->reach.writtens = 0;
        v->reach.stored = NULL;
    }
    reach_run(context, s, g);
    for (int i = 0; i < g->count; i++) {
        result_verdict *v = g->of[i];
        v->bounds = find_all_bounds(s, g->kinds[i], v);
        v->heads = must_allocate((size_t)result_heads(&s->c, g->kinds[i]), sizeof *v->heads);
    }
}

void claim_free(result_verdict *v)
{
    reach_forget_runs(&v->reach);
    free(v->bounds);
    free(v->heads);
}

result_group group_of_one(result_kind kind, result_verdict *v)
{
    return (result_group){.count = 1, .kinds = {kind}, .of = {v}};
}

static int report_status(atn_context *context, const subject *s, bool exact, atn_status status)
{
    if (status >= 0)
        return EXIT_PASS;
    report_error("%s: %s: %s", atn_operator_get(s->c.choice.op)->name,
                 exact ? "the reference" : atn_last_error(context), atn_status_message(status));
    return status == ATN_ERR_MEMORY ? EXIT_ENVIRONMENT : EXIT_USAGE;
}

/* Computes the wanted answers: exactly where that is cheap, the others by one call of the
 * library. */
static int find_answers(atn_context *context, const subject *s, const result_group *g)
{
    result_group others = {0};
    double *to[RESULT_COUNT];
    int code = EXIT_PASS;
    for (int i = 0; i < g->count && code == EXIT_PASS; i++) {
        result_verdict *v = g->of[i];
        if (v->exact) {
            if (g->shown)
                progress_show(g->shown, "the exact answer");
            v->status = answer_exact(s, g->kinds[i], v->want);
            if (g->shown)
                progress_add(g->shown, reference_seconds(s, g->kinds[i]));
            code = report_status(context, s, true, v->status);
        } else {
            to[others.count] = v->want;
            others.kinds[others.count] = g->kinds[i];
            others.of[others.count++] = v;
        }
    }
    if (code != EXIT_PASS || !others.count)
        return code;
    atn_status status =
        answer_library_all(context, s, ATN_F64, ATN_STORAGE_NATIVE, others.count, others.kinds, to);
    for (int i = 0; i < others.count; i++)
        others.of[i]->status = status;
    return report_status(context, s, false, status);
}

/* Computes the wanted answers and what good kernels reach, and shows the progress. */
static int find_shown(atn_context *context, const subject *s, const result_group *g)
{
    int code = find_answers(context, s, g);
    if (code != EXIT_PASS)
        return code;
    reach_differentiate(context, s, g);
    reach_run(context, s, g);
    find_conditions(s, g);
    for (int i = 0; i < g->count; i++)
        g->of[i]->bounds = find_all_bounds(s, g->kinds[i], g->of[i]);
    return EXIT_PASS;
}

int find_wanted(atn_context *context, const subject *s, const result_group *g)
{
    result_group waited = *g;
    int exact = 0;
    double seconds = reach_seconds(context, s, g);
    for (int i = 0; i < g->count; i++) {
        result_kind kind = g->kinds[i];
        size_t heads = (size_t)result_heads(&s->c, kind);
        result_verdict *v = g->of[i];
        *v = (result_verdict){.exact = reference_computes(s, kind), .verdict = REF_SKIPPED};
        v->want = must_allocate((size_t)result_size(&s->judged, kind), sizeof *v->want);
        v->kappa = must_allocate(heads, sizeof *v->kappa);
        v->heads = must_allocate(heads, sizeof *v->heads);
        exact += v->exact;
        seconds += v->exact ? reference_seconds(s, kind) : 0;
    }
    progress shown = progress_start(exact + reach_calls(s, g), 0, seconds);
    waited.shown = &shown;
    int code = find_shown(context, s, &waited);
    progress_end(&shown);
    return code;
}

void judge_heads(const subject *s, result_kind kind, result_verdict *v)
{
    int64_t heads = result_heads(&s->c, kind), size = result_size(&s->judged, kind) / heads;
    v->verdict = REF_SKIPPED;
    for (int64_t i = 0; i < heads; i++) {
        yardstick y = head_yardstick(s, kind, v, i);
        v->heads[i] = judge_head(&y, &v->bounds[i], s->results[kind] + i * size);
        v->verdict = worse_verdict(v->verdict, v->heads[i].verdict);
    }
}

void result_verdict_free(result_verdict *v)
{
    free(v->heads);
    free(v->bounds);
    free(v->kappa);
    free(v->want);
    reach_free(&v->reach);
    *v = (result_verdict){.want = NULL};
}
