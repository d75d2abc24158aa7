/* SPDX-License-Identifier: BSD-3-Clause */
#include "check/report.h"

#include <attnum/version.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/printout.h"
#include "common/report.h"

enum { MOST_MAPS = 3, MAP_ROWS = 16, MAP_COLS = 64, MAP_LEVELS = 3, TICK = 8 };

char *subject_text(const subject *s)
{
    const attention_case *c = &s->judged;
    const atn_attention_shape *p = &c->shape;
    const atn_operator_info *info = atn_operator_get(c->choice.op);
    char *text;
    size_t size;
    FILE *file = must_open_text(&text, &size);
    fprintf(file,
            "%" PRId64 " x %" PRId64 " heads, %" PRId64 " tokens of width %" PRId64
            ", values of width %" PRId64,
            p->batch, p->heads, p->tokens, p->dim, p->value_dim);
    if (p->key_tokens != p->tokens)
        fprintf(file, ", %" PRId64 " keys", p->key_tokens);
    if (s->key_heads > 0 && s->key_heads < p->heads)
        fprintf(file, ", keys and values of %" PRId64 " heads, each for %" PRId64 " of the tokens'",
                s->key_heads, p->heads / s->key_heads);
    fprintf(file, "%s%s\n", c->k ? "" : ", K = Q", c->reference.causal ? ", causal" : "");
    if (!c->k && info->capabilities & ATN_CAN_CROSS)
        fputs("No --keys were given: the tokens are taken for keys as well, K = Q.\n", file);
    if (s->c.choice.op == ATN_SOFT || s->c.choice.op == ATN_SOFTPP)
        fprintf(file, "%" PRId64 " landmarks: %s\n", subject_landmarks(s),
                s->c.shape.tokens > p->tokens ? "given"
                                              : atn_sampling_name(s->c.reference.sampling.kind));
    must_close_text(file, &text, &size);
    return text;
}

void print_subject(const subject *s)
{
    const atn_operator_info *info = atn_operator_get(s->judged.choice.op);
    char *text = subject_text(s);
    report_text("%s/%s in %s: %s\n%s", info->name, info->variants[s->judged.choice.variant].name,
                subject_precision(s), info->formula, text);
    free(text);
}

#define HEAD_ROW(X)                                                                                \
    X(INTEGER, batch, "", "from 0", batch)                                                         \
    X(INTEGER, head, "", "from 0", head)                                                           \
    X(TEXT, verdict, "", "on the ratio, by its rule", ref_verdict_name(j->verdict))                \
    X(REAL_IF, ratio, "", "of the first test that FAILs, or the largest, in units of what passes", \
      !isnan(j->ratio), j->ratio)                                                                  \
    X(TEXT, test, "", "which one that is", j->rule)                                                \
    X(REAL, error, "", "|yours - wanted|_F / |wanted|_F", d->relative_frobenius)                   \
    X(REAL, digits, "", "-log10 of it, within 0 .. 15.95", d->digits)                              \
    X(REAL_IF, expected, "", "what rounding may do in the type that was claimed",                  \
      !isnan(j->expected), j->expected)                                                            \
    X(REAL_IF, reachable, "", "what good kernels reach in that type", !isnan(j->reachable),        \
      j->reachable)                                                                                \
    X(INTEGER_IF, row, "", "of the worst element", d->worst_row >= 0, d->worst_row)                \
    X(INTEGER_IF, col, "", "of the worst element", d->worst_row >= 0, d->worst_col)                \
    X(REAL_IF, yours, "", "the worst element", d->worst_row >= 0, d->worst_got)                    \
    X(REAL_IF, wanted, "", "what it should be", d->worst_row >= 0, d->worst_want)                  \
    X(TEXT_IF, reason, "", "why nothing can be said, or why it FAILs", *j->reason, j->reason)
#define RESULT_COLUMN(X) X(TEXT, result, "", "the output, or a gradient", result_name(kind))
static const column columns[] = {HEAD_ROW(LIST_COLUMN) RESULT_COLUMN(LIST_COLUMN)};
enum { COLUMNS = sizeof columns / sizeof *columns, SHOWN = COLUMNS - 1 };

#define MISTAKE_ROW(X)                                                                             \
    X(TEXT, mistake, "", "what else the result could be", f->text)                                 \
    X(REAL, error_left, "", "|yours - that|_F / |that|_F", f->error)                               \
    X(BOOLEAN, explains, "", "it passes where what was claimed does not", f->explains)             \
    RESULT_COLUMN(X)
static const column mistake_columns[] = {MISTAKE_ROW(LIST_COLUMN)};

#define RESULT_ROW(X)                                                                              \
    RESULT_COLUMN(X)                                                                               \
    X(TEXT, answer, "", "exact, or a baseline: the library's in f64",                              \
      v->exact ? "exact" : "baseline")                                                             \
    X(TEXT, verdict, "", "the worst head's, and FAIL if a known mistake explains it",              \
      ref_verdict_name(v->verdict))                                                                \
    X(TEXT, why, "", "that answer", why)                                                           \
    X(REAL_IF, answer_error, "", "estimate of the rounding in a baseline, not a bound; 0: exact",  \
      !isnan(own), own)                                                                            \
    X(BOOLEAN, answer_blurs, "", "that is over a tenth of what passes", blurs(s, kind, v))
static const column result_columns[] = {RESULT_ROW(LIST_COLUMN)};

#define SUMMARY_ROW(X)                                                                             \
    X(TEXT, version, "", "attnum's", ATN_VERSION)                                                  \
    X(TEXT, operator, "", "", info->name)                                                          \
    X(TEXT, variant, "", "", info->variants[s->c.choice.variant].name)                             \
    X(TEXT, dtype, "", "the precision that is claimed", subject_precision(s))                      \
    X(INTEGER, batch, "", "", p->batch)                                                            \
    X(INTEGER, heads, "", "", p->heads)                                                            \
    X(INTEGER, tokens, "", "", p->tokens)                                                          \
    X(INTEGER, keys, "", "tokens, where none are given", p->key_tokens)                            \
    X(INTEGER, width, "", "", p->dim)                                                              \
    X(INTEGER, value_width, "", "", p->value_dim)                                                  \
    X(TEXT, verdict, "", "the worst result's", ref_verdict_name(verdict))                          \
    X(INTEGER, exit_code, "", "the program's", exit_code)
static const column summary_columns[] = {SUMMARY_ROW(LIST_COLUMN)};

enum { TABLE_HEADS, TABLE_MISTAKES, TABLE_RESULTS, TABLE_SUMMARY };
static const output_spec outputs[CHECK_TABLES] = {
    [TABLE_HEADS] = {"heads", "A verdict per head.", columns, COLUMNS},
    [TABLE_MISTAKES] = {"mistakes", "What explains a result that fails.", mistake_columns,
                        sizeof mistake_columns / sizeof *mistake_columns},
    [TABLE_RESULTS] = {"results", "A verdict per result.", result_columns,
                       sizeof result_columns / sizeof *result_columns},
    [TABLE_SUMMARY] = {"summary", "The verdict, and on what.", summary_columns,
                       sizeof summary_columns / sizeof *summary_columns},
};

check_tables check_tables_create(void)
{
    check_tables t;
    for (int i = 0; i < CHECK_TABLES; i++)
        t.tables[i] = table_create(outputs[i].columns, outputs[i].column_count);
    return t;
}

void check_tables_summarise(check_tables *tables, const subject *s, ref_verdict verdict,
                            int exit_code)
{
    const atn_attention_shape *p = &s->judged.shape;
    const atn_operator_info *info = atn_operator_get(s->c.choice.op);
    table *to = tables->tables[TABLE_SUMMARY];
    SUMMARY_ROW(LIST_PUT)
}

void check_tables_publish(check_tables *t)
{
    printout_tables("check", outputs, t->tables, CHECK_TABLES);
    for (int i = 0; i < CHECK_TABLES; i++)
        table_free(t->tables[i]);
}

/* All columns except the result. */
static void put_head(table *to, const judgement *j, int64_t batch, int64_t head)
{
    const ref_difference *d = &j->difference;
    HEAD_ROW(LIST_PUT)
}

int64_t worst_head(int64_t heads, const judgement *all, const bool *shown)
{
    int64_t worst = -1;
    for (int64_t i = 0; i < heads; i++) {
        if (shown && shown[i])
            continue;
        if (worst < 0) {
            worst = i;
            continue;
        }
        const judgement *a = &all[i], *b = &all[worst];
        bool graver = worse_verdict(a->verdict, b->verdict) != b->verdict;
        if (graver || (a->verdict == b->verdict &&
                       a->difference.relative_frobenius > b->difference.relative_frobenius))
            worst = i;
    }
    return worst;
}

static int64_t heads_per_batch(const attention_case *c, result_kind kind)
{
    return kind >= RESULT_PARAMETERS ? result_heads(c, kind) : c->shape.heads;
}

/* Heads of which nothing can be said. */
static int64_t count_skipped(int64_t heads, const judgement *all)
{
    int64_t count = 0;
    for (int64_t i = 0; i < heads; i++)
        count += all[i].verdict == REF_SKIPPED;
    return count;
}

/* The next head that is listed: the worst of those that FAIL or are marginal; then those of which
 * nothing can be said, then those that pass. */
static int64_t next_head(int64_t heads, const judgement *all, const bool *shown)
{
    int64_t at = worst_head(heads, all, shown);
    for (int64_t i = 0; i < heads && all[at].verdict == REF_PASS; i++)
        if (!shown[i] && all[i].verdict == REF_SKIPPED)
            return i;
    return at;
}

table *heads_table(const subject *s, result_kind kind, const result_verdict *v)
{
    int64_t heads = result_heads(&s->judged, kind), per_batch = heads_per_batch(&s->judged, kind);
    bool *shown = must_allocate((size_t)heads, sizeof *shown);
    table *t = table_create(columns, SHOWN);
    for (int64_t i = 0; i < heads && i < MANY_HEADS; i++) {
        int64_t at = heads > MANY_HEADS ? next_head(heads, v->heads, shown) : i;
        shown[at] = true;
        put_head(t, &v->heads[at], at / per_batch, at % per_batch);
    }
    free(shown);
    return t;
}

char *heads_text(const subject *s, result_kind kind, const result_verdict *v)
{
    int64_t heads = result_heads(&s->judged, kind), skipped = count_skipped(heads, v->heads);
    char *worst = heads > MANY_HEADS
                      ? must_format("the worst %d of %" PRId64 " heads\n", MANY_HEADS, heads)
                      : NULL;
    if (skipped == 0 || skipped == heads)
        return worst;
    char *text = must_format("%snothing can be said of %" PRId64 " of %" PRId64 " heads\n",
                             worst ? worst : "", skipped, heads);
    free(worst);
    return text;
}

/* Why it is compared with this answer. */
static char *reason_text(const subject *s, result_kind kind, const result_verdict *v)
{
    if (s->reference != REFERENCE_AUTO)
        return must_format("--reference asks for it");
    return v->exact ? must_format("it is cheap")
                    : must_format("an exact one might take %.2g s", reference_seconds(s, kind));
}

/* An estimate of the largest relative error that rounding causes in the answer that a result is
 * compared with. It is no bound: the condition number is that of a few random changes of the inputs
 * and of A's inverse. NaN: unknown. */
static double largest_own(const subject *s, result_kind kind, const result_verdict *v)
{
    double most = 0;
    for (int64_t i = 0; i < result_heads(&s->c, kind); i++) {
        double own = v->heads[i].own;
        most = isnan(own) || own > most ? own : most;
    }
    return most;
}

/* Whether that is not small compared with what passes, in some head. */
static bool blurs(const subject *s, result_kind kind, const result_verdict *v)
{
    const double small = 0.1;
    for (int64_t i = 0; i < result_heads(&s->c, kind); i++)
        if (!(v->heads[i].own <= small * v->heads[i].allowed) && v->heads[i].own != 0)
            return true;
    return false;
}

char *basis_text(const subject *s, result_kind kind, const result_verdict *v)
{
    char *why = reason_text(s, kind, v), *text;
    if (v->exact)
        text = must_format("against the exact answer: dense, in long double, as %s\n", why);
    else
        text = must_format(
            "against a baseline, the library in f64: %s\nits own rounding is estimated at %.2g "
            "(condition number times N u; not proved), %s\n",
            why, largest_own(s, kind, v),
            blurs(s, kind, v)
                ? "over a tenth of what passes: a smaller error may be its own, and\nonly "
                  "--reference exact tells"
                : "small against what passes");
    free(why);
    return text;
}

char *ratio_text(const subject *s)
{
    const ref_threshold *rule = ref_threshold_get(REF_REACH);
    return must_format(
        "error: |yours - wanted|_F / |wanted|_F; expected: what rounding in %s may do at worst;\n"
        "reachable: what good kernels in %s reach. ratio: that of the first of %d tests, of the error as\n"
        "a whole and of its structure, that FAILs, or the largest; pass below %g, FAIL from %g\n",
        subject_precision(s), subject_precision(s), statistic_count, rule->pass, rule->fail);
}

void print_verdict(const subject *s, result_kind kind, const result_verdict *v, check_tables *t)
{
    int64_t heads = result_heads(&s->c, kind), per_batch = heads_per_batch(&s->c, kind);
    char *basis = basis_text(s, kind, v), *some = heads_text(s, kind, v), *ratio = ratio_text(s);
    table *shown = heads_table(s, kind, v);
    report_text("\n%s, %s", result_name(kind), basis);
    table_print(shown, table_rows(shown), report_stream());
    report_text("%s%s%s %s: %s\n", some ? some : "", ratio, result_name(kind),
                v->exact ? "(exact)" : "(baseline)", ref_verdict_name(v->verdict));
    for (int64_t i = 0; i < heads; i++) {
        table *to = t->tables[TABLE_HEADS];
        put_head(to, &v->heads[i], i / per_batch, i % per_batch);
        RESULT_COLUMN(LIST_PUT)
    }
    table_free(shown);
    free(ratio), free(some), free(basis);
}

/* ---- Maps ---- */

/* The highest level has the last of these characters, however many levels there are. */
static char cell_character(const map_levels *levels, const map_cell *cell)
{
    static const char over[MAP_LEVELS + 1] = ":+#";
    static const char states[CELL_STATES] = {
        [CELL_PASSES] = '.', [CELL_UNKNOWN] = '?', [CELL_ZERO] = '0', [CELL_NONFINITE] = 'N'};
    return cell->state != CELL_OVER
               ? states[cell->state]
               : over[MAP_LEVELS - levels->count + map_level(levels, cell->over)];
}

const char *const cell_state_names[CELL_STATES] = {[CELL_PASSES] = "up to 1: passes",
                                                   [CELL_UNKNOWN] = "nothing can be said",
                                                   [CELL_ZERO] = "zero",
                                                   [CELL_NONFINITE] = "NaN or infinity"};

/* Explains the characters that occur. */
static void print_legend(const error_map *m, const map_levels *levels)
{
    bool there[CELL_STATES] = {false}, level_there[MOST_LEVELS] = {false};
    for (int64_t i = 0; i < m->down * m->across; i++) {
        there[m->cells[i].state] = true;
        if (m->cells[i].state == CELL_OVER)
            level_there[map_level(levels, m->cells[i].over)] = true;
    }
    const char *between = "";
    for (int i = 0; i < CELL_STATES; i++) {
        if (there[i] && i != CELL_OVER) {
            report_text("%s%c %s", between, cell_character(levels, &(map_cell){(cell_state)i, 0}),
                        cell_state_names[i]);
            between = "    ";
        }
        for (int j = 0; i == CELL_OVER && j < levels->count; j++)
            if (level_there[j]) {
                char c = cell_character(levels, &(map_cell){CELL_OVER, 1.01 * levels->over[j]});
                report_text("%s%c over %g", between, c, levels->over[j]);
                between = "    ";
            }
    }
    report_text("\n");
}

const char *const of_rows[] = {"row", "rows"};
const char *const of_columns[] = {"column", "columns"};
const char *const of_batch[] = {"batch", "batches"};
const char *const of_heads[] = {"head", "heads"};

/* Prints cells as characters. */
static void print_map(const error_map *m, const char *const rows[2], const char *const cols[2])
{
    map_levels levels = map_levels_of(m, MAP_LEVELS);
    bool many = m->block_rows > 1;
    int digits = snprintf(NULL, 0, "%" PRId64, m->rows - 1);
    int width = (int)strlen(rows[many]) + 1 + digits + (many ? 4 + digits : 0);
    const char *col = cols[m->block_cols > 1];
    width = width > (int)strlen(col) ? width : (int)strlen(col);
    for (int64_t i = 0; i < m->down; i++) {
        char *label = many ? must_format("%s %*" PRId64 " to %*" PRId64, rows[1], digits,
                                         i * m->block_rows, digits, map_last_row(m, i))
                           : must_format("%s %*" PRId64, rows[0], digits, i);
        report_text("%*s  ", width, label);
        for (int64_t j = 0; j < m->across; j++)
            report_text("%c", cell_character(&levels, &m->cells[i * m->across + j]));
        report_text("\n");
        free(label);
    }
    report_text("%*s  ", width, col);
    for (int64_t j = 0; j < m->across; j += TICK)
        report_text("%-*" PRId64, j + TICK < m->across ? TICK : 0, j * m->block_cols);
    report_text("\n");
    print_legend(m, &levels);
}

char *map_blocks(const error_map *m)
{
    return must_format("%" PRId64 " %s x %" PRId64 " %s", m->block_rows, of_rows[m->block_rows > 1],
                       m->block_cols, of_columns[m->block_cols > 1]);
}

char *map_missing(const error_map *m, const judgement *j)
{
    static const char *const states[CELL_STATES] = {[CELL_OVER] = "is over what passes",
                                                    [CELL_ZERO] = "is zero",
                                                    [CELL_NONFINITE] = "has NaN or infinity"};
    if (!map_is_uniform(m))
        return NULL;
    char *block = map_blocks(m);
    char *text = m->cells[0].state == CELL_PASSES
                     ? must_format("no block of %s is over what passes by itself; the test that "
                                   "FAILs is \"%s\"",
                                   block, j->rule)
                     : must_format("every block of %s %s", block, states[m->cells[0].state]);
    free(block);
    return text;
}

/* Prints where a head is wrong, as a map or a sentence, unless the sentence before was the same.
 * Returns whether it printed something. */
static bool print_place(const subject *s, result_kind kind, const result_verdict *v, int64_t head,
                        char **before)
{
    error_map m = map_head(s, kind, v, head, MAP_ROWS, MAP_COLS);
    char *place = where_head(s, kind, head), *missing = map_missing(&m, &v->heads[head]);
    bool again = missing && *before && strcmp(missing, *before) == 0;
    if (missing && !again)
        report_text("\n%s: %s\n", place, missing);
    if (!missing) {
        char *block = map_blocks(&m);
        report_text("\n%s: errors over what passes, in blocks of %s\n", place, block);
        print_map(&m, of_rows, of_columns);
        free(block);
    }
    free(*before);
    *before = missing;
    free(place);
    map_free(&m);
    return !again;
}

int64_t heads_that_fail(const subject *s, result_kind kind, const result_verdict *v, int most,
                        int64_t *heads)
{
    int64_t all = result_heads(&s->judged, kind), failed = 0;
    bool *seen = must_allocate((size_t)all, sizeof *seen);
    for (int64_t i = 0; i < all; i++)
        failed += v->heads[i].verdict == REF_FAIL;
    for (int i = 0; i < most && i < failed; i++) {
        heads[i] = worst_head(all, v->heads, seen);
        seen[heads[i]] = true;
    }
    free(seen);
    return failed;
}

void print_maps(const subject *s, result_kind kind, const result_verdict *v)
{
    int64_t all = result_heads(&s->judged, kind), heads[MANY_HEADS], said = 0;
    int64_t failed = heads_that_fail(s, kind, v, MANY_HEADS, heads);
    char *before = NULL;
    if (failed && all > MANY_HEADS) {
        error_map m = map_heads(s, kind, v, MAP_ROWS, MAP_COLS);
        report_text("\n%" PRId64 " of %" PRId64 " heads FAIL; ratios:\n", failed, all);
        print_map(&m, of_batch, of_heads);
        map_free(&m);
    }
    for (int i = 0; said < MOST_MAPS && i < MANY_HEADS && i < failed; i++)
        said += print_place(s, kind, v, heads[i], &before);
    if (failed > said)
        report_text("\n%" PRId64 " more %s\n", failed - said,
                    failed - said > 1 ? "heads FAIL" : "head FAILs");
    free(before);
}

/* What a finding says of the result. */
static const char *finding_kind(const finding *f)
{
    return f->place ? "alone is wrong" : f->explains ? "explains it" : "nearest, does not explain";
}

table *findings_table(int count, const finding *findings)
{
    static const column shown[] = {{"what else it could be", COLUMN_TEXT, "", ""},
                                   {"error left", COLUMN_REAL, "", ""},
                                   {"", COLUMN_TEXT, "", ""}};
    table *t = table_create(shown, 3);
    for (int i = 0; i < count; i++) {
        table_text(t, findings[i].text);
        table_real(t, findings[i].error);
        table_text(t, finding_kind(&findings[i]));
    }
    return t;
}

char *findings_text(const result_verdict *v, ref_verdict by_rounding, int count)
{
    if (v->verdict == REF_FAIL && !count)
        return must_format("no known mistake comes nearer\n");
    if (v->verdict == REF_FAIL && by_rounding != REF_FAIL)
        return must_format("FAIL: rounding would allow it, but it is nearer to that than to what "
                           "was claimed\n");
    return NULL;
}

void print_findings(const subject *s, result_kind kind, const result_verdict *v,
                    ref_verdict by_rounding, int count, const finding *findings,
                    check_tables *tables)
{
    table *to = tables->tables[TABLE_RESULTS], *shown = findings_table(count, findings);
    char *text = findings_text(v, by_rounding, count), *why = reason_text(s, kind, v);
    double own = largest_own(s, kind, v);
    RESULT_ROW(LIST_PUT)
    to = tables->tables[TABLE_MISTAKES];
    for (const finding *f = findings; f < findings + count; f++) {
        MISTAKE_ROW(LIST_PUT)
    }
    free(why);
    if (count || text)
        report_text("\n");
    if (count)
        table_print(shown, count, report_stream());
    if (text)
        report_text("%s%s%s", count ? result_name(kind) : "", count ? ": " : "", text);
    free(text);
    table_free(shown);
}
