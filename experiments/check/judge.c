/* SPDX-License-Identifier: BSD-3-Clause */
#include <conditioning.h>
#include <math.h>
#include <stdlib.h>

#include "accuracy/operators.h"
#include "check/check.h"
#include "common/report.h"

const char *rule_name(rule_used rule)
{
    static const char *const names[] = {[RULE_NONE] = "none",
                                        [RULE_FORWARD] = "forward",
                                        [RULE_ROW] = "row",
                                        [RULE_PLAIN] = "same-precision"};
    return names[rule];
}

double subject_rounding(const subject *s)
{
    return accuracy_rounding(&s->judged, s->dtype);
}

double subject_unit(const subject *s)
{
    return s->storage == ATN_STORAGE_NATIVE ? atn_dtype_roundoff(s->dtype)
                                            : atn_storage_roundoff(s->storage);
}

ref_verdict worse_verdict(ref_verdict a, ref_verdict b)
{
    static const int rank[] = {
        [REF_SKIPPED] = 0, [REF_PASS] = 1, [REF_MARGINAL] = 2, [REF_FAIL] = 3};
    return rank[a] > rank[b] ? a : b;
}

static ref_difference compare(const yardstick *y, const double *got)
{
    return ref_compare_f64(y->rows, y->cols, got, y->cols, y->want, y->cols);
}

/* ---- The same-precision rule ---- */

/* Whether an answer of one row for all tokens would not FAIL by that rule. */
static bool row_passes(const yardstick *y, const ref_difference *plain, const double *row)
{
    double *answer = must_allocate((size_t)(y->rows * y->cols), sizeof *answer);
    for (int64_t i = 0; i < y->rows * y->cols; i++)
        answer[i] = row[i % y->cols];
    ref_difference difference = compare(y, answer);
    free(answer);
    return ref_judge_baseline(&difference, plain, y->unit, NULL) != REF_FAIL;
}

/* The mean of the rows of x that are there. */
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

/* Zeros, the mean of the rows that are wanted, the mean of the values: what says nothing about
 * tokens must FAIL, or a pass says nothing either. One row is its own mean. */
static bool is_trivial(const yardstick *y, const ref_difference *plain)
{
    double *row = must_allocate((size_t)y->cols, sizeof *row);
    bool trivial = row_passes(y, plain, row);
    if (y->rows > 1) {
        mean_row(y->rows, y->cols, y->want, NULL, row);
        trivial |= row_passes(y, plain, row);
    }
    if (y->c && y->rows > 1 && y->c->shape.key_tokens > 1) {
        int64_t keys = y->c->shape.key_tokens;
        const unsigned char *mask =
            y->c->key_mask ? y->c->key_mask + y->head / y->c->shape.heads * keys : NULL;
        mean_row(keys, y->cols, y->c->v + y->head * keys * y->cols, mask, row);
        trivial |= row_passes(y, plain, row);
    }
    free(row);
    return trivial;
}

static void judge_by_plain(const yardstick *y, judgement *j)
{
    ref_difference plain = compare(y, y->plain);
    ref_verdict verdict = ref_judge_baseline(&j->difference, &plain, y->unit, &j->ratio);
    j->rule = RULE_PLAIN;
    j->reason = "";
    j->verdict = verdict;
    if (verdict == REF_SKIPPED)
        j->reason = "the library is not finite either";
    else if (verdict != REF_FAIL && is_trivial(y, &plain)) {
        j->verdict = REF_SKIPPED;
        j->reason = "trivial outputs would pass";
    }
}

/* ---- The forward rule ---- */

/* Whether zeros, or the mean row, would be marginal at least. */
static bool passes_trivially(const yardstick *y)
{
    double tolerance = ref_threshold_get(REF_FORWARD)->fail * y->kappa * y->rounding;
    bool one_row = y->rows == 1 || (y->c && y->c->shape.key_tokens == 1);
    bool zero = true; /* zeros are then what is wanted */
    for (int64_t i = 0; i < y->rows * y->cols; i++)
        zero &= y->want[i] == 0;
    return !zero && (!(tolerance < 1) ||
                     (!one_row && !ref_discriminates(y->rows, y->cols, y->want, tolerance)));
}

static void judge_forward(const yardstick *y, judgement *j)
{
    bool trivial;
    if (y->c)
        j->verdict = ref_judge_head(y->c, y->head, &j->difference, y->want, y->kappa, y->rounding,
                                    &j->ratio, &trivial);
    else {
        double tolerance = ref_threshold_get(REF_FORWARD)->pass * y->kappa * y->rounding;
        j->verdict = ref_judge_forward(&j->difference, y->kappa, 1, y->rounding, &j->ratio);
        trivial = j->verdict != REF_FAIL && j->verdict != REF_SKIPPED && y->rows > 1 &&
                  !ref_discriminates(y->rows, y->cols, y->want, tolerance);
    }
    trivial |= j->verdict != REF_FAIL && j->verdict != REF_SKIPPED && passes_trivially(y);
    j->rule = RULE_FORWARD;
    if (j->verdict == REF_SKIPPED)
        j->reason = isnan(y->kappa) ? "no exact answer" : "ill-conditioned";
    else if (trivial) {
        j->verdict = REF_SKIPPED;
        j->reason = "trivial outputs would pass";
    }
}

/* The largest of the rows' ratios. */
static double row_ratio(const yardstick *y, const judgement *j, const double *got)
{
    double mean = j->difference.want_frobenius / sqrt((double)y->rows), worst = 0;
    for (int64_t i = 0; i < y->rows; i++) {
        ref_difference d =
            ref_compare_f64(1, y->cols, got + i * y->cols, y->cols, y->want + i * y->cols, y->cols);
        double allowed = fmax(y->kappa * fmax(d.want_frobenius, mean), y->changes[i]);
        double ratio = d.frobenius > 0 ? d.frobenius / (allowed * y->rounding) : 0;
        worst = isnan(worst) || ratio <= worst ? worst : ratio;
    }
    return worst;
}

static void judge_rows(const yardstick *y, const double *got, judgement *j)
{
    double ratio = row_ratio(y, j, got);
    ref_verdict verdict = ref_judge(REF_FORWARD, ratio);
    if (worse_verdict(verdict, j->verdict) == j->verdict)
        return;
    j->rule = RULE_ROW;
    j->ratio = ratio;
    j->verdict = verdict;
}

/* Whether the library's own output does not pass by the forward rule. */
static bool plain_misses(const yardstick *y)
{
    ref_difference plain = compare(y, y->plain);
    double ratio;
    return isfinite(plain.frobenius) &&
           ref_judge_forward(&plain, y->kappa, 1, y->rounding, &ratio) == REF_FAIL;
}

/* Over twenty times the library's own error: conditioning allows it, but hardly another order of
 * the same sums. It is no failure by itself, but marginal, and a reason to ask what else it is. */
static bool is_suspicious(const judgement *j, const yardstick *y)
{
    ref_difference plain = compare(y, y->plain);
    double floor = fmax(j->plain, y->unit), most = fmax(plain.max_abs, y->unit * plain.want_max);
    return j->verdict != REF_FAIL &&
           !(j->difference.relative_frobenius <= 20 * floor && j->difference.max_abs <= 20 * most);
}

judgement judge_head(const yardstick *y, const double *got)
{
    judgement j = {.verdict = REF_SKIPPED,
                   .reason = "",
                   .ratio = NAN,
                   .expected = y->kappa * y->rounding,
                   .plain = NAN,
                   .difference = compare(y, got)};
    for (int64_t i = 0; i < y->rows * y->cols; i++)
        if (!isfinite(y->want[i])) {
            j.reason = "undefined: the answer is not finite";
            return j;
        }
    judge_forward(y, &j);
    if (y->plain)
        j.plain = compare(y, y->plain).relative_frobenius;
    if (y->changes && (j.verdict == REF_PASS || j.verdict == REF_MARGINAL))
        judge_rows(y, got, &j);
    if (y->plain && (j.verdict == REF_SKIPPED || (j.verdict == REF_FAIL && plain_misses(y))))
        judge_by_plain(y, &j);
    if (j.verdict == REF_SKIPPED)
        j.rule = RULE_NONE;
    j.suspicious = y->plain && is_suspicious(&j, y);
    if (j.suspicious && j.verdict == REF_PASS) {
        j.verdict = REF_MARGINAL;
        j.reason = "over 20 times the library's error";
    }
    return j;
}

/* ---- A result ---- */

yardstick head_yardstick(const subject *s, result_kind kind, const result_verdict *v, int64_t head)
{
    int64_t rows = result_rows(&s->judged, kind), cols = result_cols(&s->judged, kind);
    return (yardstick){
        .c = kind == RESULT_OUTPUT ? &s->judged : NULL,
        .head = head,
        .rows = rows,
        .cols = cols,
        .want = v->want + head * rows * cols,
        .plain = v->plain ? v->plain + head * rows * cols : NULL,
        .changes = v->changes ? v->changes + head * rows : NULL,
        .kappa = v->kappa[head],
        .rounding = subject_rounding(s),
        .unit = subject_unit(s),
    };
}

static bool is_finite(int64_t count, const double *x)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

/* Raises a gradient's kappa to that of its head's output, a parameter's to that of all of them. */
static void raise_conditions(const subject *s, result_kind kind, const double *output,
                             double *kappa)
{
    int64_t heads = result_heads(&s->c, kind), all = result_heads(&s->c, RESULT_OUTPUT);
    bool shared = kind >= RESULT_PARAMETERS;
    for (int64_t i = 0; i < heads; i++)
        for (int64_t j = shared ? 0 : i; j < (shared ? all : i + 1); j++)
            kappa[i] = isnan(output[j]) ? NAN : fmax(kappa[i], output[j]);
}

/* kappa of the output's heads, whose inverse a gradient goes through as well. */
static void find_output_conditions(const subject *s, bool exact, double *kappa)
{
    int64_t size = result_size(&s->judged, RESULT_OUTPUT);
    double *output = must_allocate((size_t)size, sizeof *output);
    if (!exact)
        answer_inverse_conditions(s, kappa);
    else if (answer_exact(s, RESULT_OUTPUT, output) == ATN_OK)
        answer_exact_conditions(s, output, kappa);
    else
        for (int64_t i = 0; i < result_heads(&s->c, RESULT_OUTPUT); i++)
            kappa[i] = NAN;
    free(output);
}

static void find_conditions(atn_context *context, const subject *s, result_kind kind,
                            result_verdict *v)
{
    int64_t heads = result_heads(&s->c, kind), all = result_heads(&s->c, RESULT_OUTPUT);
    if (v->exact && !is_finite(result_size(&s->judged, kind), v->want)) {
        for (int64_t i = 0; i < heads; i++)
            v->kappa[i] = NAN;
        return;
    }
    v->changes = must_allocate((size_t)(heads * result_rows(&s->judged, kind)), sizeof *v->changes);
    answer_conditions(context, s, kind, v->want, v->kappa, v->changes);
    if (v->exact && kind == RESULT_OUTPUT) {
        answer_exact_conditions(s, v->want, v->kappa);
        return;
    }
    double *kappa = must_allocate((size_t)all, sizeof *kappa);
    find_output_conditions(s, v->exact, kappa);
    raise_conditions(s, kind, kappa, v->kappa);
    free(kappa);
}

/* The library in the precision that is claimed; null where it has none, or nothing else to be held
 * against than itself. */
static double *find_plain(atn_context *context, const subject *s, result_kind kind, bool exact)
{
    if (!exact && s->dtype == ATN_F64)
        return NULL;
    double *plain = must_allocate((size_t)result_size(&s->judged, kind), sizeof *plain);
    if (answer_library(context, s, s->dtype, s->storage, kind, plain) >= 0)
        return plain;
    free(plain);
    return NULL;
}

int judge_result(atn_context *context, const subject *s, result_kind kind, result_verdict *v)
{
    int64_t heads = result_heads(&s->c, kind);
    int64_t size = result_rows(&s->judged, kind) * result_cols(&s->judged, kind);
    *v = (result_verdict){.exact = reference_takes(s, kind), .verdict = REF_SKIPPED};
    v->want = must_allocate((size_t)(heads * size), sizeof *v->want);
    v->kappa = must_allocate((size_t)heads, sizeof *v->kappa);
    v->heads = must_allocate((size_t)heads, sizeof *v->heads);
    v->status = v->exact ? answer_exact(s, kind, v->want)
                         : answer_library(context, s, ATN_F64, ATN_STORAGE_NATIVE, kind, v->want);
    if (v->status < 0) {
        report_error("%s: %s: %s", atn_operator_get(s->c.choice.op)->name,
                     v->exact ? "the reference" : atn_last_error(context),
                     atn_status_message(v->status));
        return v->status == ATN_ERR_MEMORY ? EXIT_ENVIRONMENT : EXIT_USAGE;
    }
    find_conditions(context, s, kind, v);
    v->plain = find_plain(context, s, kind, v->exact);
    for (int64_t i = 0; i < heads; i++) {
        yardstick y = head_yardstick(s, kind, v, i);
        v->heads[i] = judge_head(&y, s->results[kind] + i * size);
        v->verdict = worse_verdict(v->verdict, v->heads[i].verdict);
    }
    return EXIT_PASS;
}

void result_verdict_free(result_verdict *v)
{
    free(v->heads);
    free(v->changes);
    free(v->kappa);
    free(v->plain);
    free(v->want);
    *v = (result_verdict){.want = NULL};
}
