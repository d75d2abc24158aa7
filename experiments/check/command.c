/* SPDX-License-Identifier: BSD-3-Clause */
#include <attnum/version.h>
#include <math.h>
#include <stdlib.h>

#include "check/page.h"
#include "check/report.h"
#include "common/printout.h"
#include "common/process.h"
#include "common/report.h"

static void print_help(void)
{
    printf(
        "Judges what your kernel computed, of one operator, against the exact answer,\n"
        "in the precision that it claims (--dtype f64, f32, tf32, bf16, f16; default: that of the\n"
        "file). It passes if its error, as a whole and in its structure (a factor, a wrong row, a\n"
        "mean, a direction), is within twice what good kernels of that type reach. Where it fails,\n"
        "known mistakes are tried: published variants, scales, norms, steps, samplings, layouts,\n"
        "strides, tails, masks, denominators, exponentials, feature maps, roles, types, and pairs\n"
        "of most of them. --grad-output dY and --gradient tokens=dQ.npy,values=dV.npy judge\n"
        "gradients in the same way, with an output or without.\n"
        "Arrays are .npy, f2, f4 or f8, n x d, h x n x d or b x h x n x d, or as --layout says\n"
        "(attnum list layouts); keys and values may have fewer heads, which tokens' heads share.\n"
        "--mistake FILE adds mistakes of your own, lines \"our scale: logit_scale=0.2\" or\n"
        "\"odd channels negated: output=negated.npy\", which are named if they explain it.\n"
        "--html FILE keeps all that is said, with maps of what FAILs, as one page.\n"
        "Exit code: 0 pass or marginal, 1 FAIL, 77 nothing can be said.\n"
        "--emit-case writes cases for your own tests: every combination of the lists of --n, --d,\n"
        "--batch, --m, --seed and --masks (default %d x %d x %d x %d), or of --tokens, with answers\n"
        "that are exact where that is cheap (manifest.json says which).\n\n"
        "example: attnum check --operator softpp/code --tokens q.npy --values v.npy --output y.npy "
        "--param stride=2\n"
        "         attnum check --operator softpp --help\n"
        "         attnum check --emit-case cases --operator sima --n 72,1000 --layout bnhd\n",
        DEFAULT_CASE_BATCH, DEFAULT_CASE_HEADS, DEFAULT_CASE_TOKENS, DEFAULT_CASE_WIDTH);
}

/* The parameters of the operators that were named. */
static void print_more(const program_options *s)
{
    for (int op = 0; op < ATN_OPERATOR_COUNT && s->operators.count; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int variant = 0; variant < info->variant_count; variant++)
            if (options_include_variant(s, info, variant)) {
                parameters_help(info, variant);
                break;
            }
    }
}

static void judge_one(atn_context *context, const subject *s, result_kind kind, result_verdict *v,
                      check_tables *tables, check_page *page)
{
    finding findings[MOST_FINDINGS];
    judge_heads(s, kind, v);
    ref_verdict by_rounding = v->verdict;
    int count = explain_result(context, s, kind, v, findings);
    print_verdict(s, kind, v, tables);
    print_maps(s, kind, v);
    print_findings(s, kind, v, by_rounding, count, findings, tables);
    check_page_add(page, s, kind, v, by_rounding, count, findings);
    while (count > 0)
        free(findings[--count].text);
}

/* Reports the cost of an exact answer that the user asked for. False: there is not enough
 * memory. */
static bool can_wait(const subject *s, const result_group *g)
{
    const double patience = 5;
    double seconds = 0, have = process_available_memory(), need = reference_bytes(s);
    for (int i = 0; i < g->count; i++) {
        seconds += reference_seconds(s, g->kinds[i]);
        if (g->kinds[i] != RESULT_OUTPUT)
            need = 2 * reference_bytes(s); /* dual numbers: a value and a derivative */
    }
    if (s->reference != REFERENCE_EXACT || !g->count)
        return true;
    if (need > have)
        report_error(
            "--reference exact: it takes %.2g GB, and %.2g GB of memory are left; expected "
            "auto or f64",
            need / 1e9, have / 1e9);
    else if (seconds > patience)
        report_note("the exact answer may take %.2g s and %.2g GB", seconds, need / 1e9);
    return need <= have;
}

/* Judges the results that the same calls compute, one after the other. */
static int judge_group(atn_context *context, const subject *s, int first, int end,
                       check_tables *tables, check_page *page, ref_verdict *worst)
{
    result_verdict v[RESULT_COUNT] = {{0}};
    result_group g = {0};
    for (int kind = first; kind < end; kind++)
        if (s->results[kind]) {
            g.kinds[g.count] = (result_kind)kind;
            g.of[g.count] = &v[g.count];
            g.count++;
        }
    int code = can_wait(s, &g) ? EXIT_PASS : EXIT_ENVIRONMENT;
    if (g.count && code == EXIT_PASS)
        code = find_wanted(context, s, &g);
    for (int i = 0; i < g.count; i++) {
        if (code == EXIT_PASS) {
            judge_one(context, s, g.kinds[i], g.of[i], tables, page);
            *worst = worse_verdict(*worst, g.of[i]->verdict);
        }
        result_verdict_free(g.of[i]);
    }
    return code;
}

static int judge_all(const program_options *given, atn_context *context, const subject *s,
                     check_tables *tables, check_page *page)
{
    ref_verdict worst = REF_SKIPPED;
    int code = judge_group(context, s, RESULT_OUTPUT, RESULT_TOKENS, tables, page, &worst);
    if (code == EXIT_PASS)
        code = judge_group(context, s, RESULT_TOKENS, RESULT_COUNT, tables, page, &worst);
    if (code != EXIT_PASS)
        return code;
    code = worst == REF_FAIL ? EXIT_CHECK : worst == REF_SKIPPED ? EXIT_SKIPPED : EXIT_PASS;
    int written = check_page_write(page, given, s, worst);
    code = written == EXIT_PASS ? code : written;
    check_tables_summarise(tables, s, worst, code);
    return code;
}

static int make_context(const program_options *s, int threads, atn_context **context)
{
    atn_context_options options = {.threads = threads, .isa = s->isa};
    atn_status status = atn_context_create(&options, context);
    if (status != ATN_OK)
        report_error("the library: %s", atn_status_message(status));
    return status == ATN_OK ? EXIT_PASS : EXIT_ENVIRONMENT;
}

static int judge(const program_options *s)
{
    subject judged = {.file_count = 0};
    atn_context *reading = NULL, *context = NULL;
    check_page page = {.figures = 0};
    int code = check_page_open(&page, s->html);
    if (code == EXIT_PASS)
        code = make_context(s, 1, &reading);
    if (code == EXIT_PASS)
        code = subject_read(s, reading, &judged);
    if (code == EXIT_PASS)
        code = make_context(s, is_worth_threads(reading, &judged.c) ? s->threads : 1, &context);
    if (code == EXIT_PASS && judged.doubt)
        report_note("%s", judged.doubt);
    if (code == EXIT_PASS) {
        check_tables tables = check_tables_create();
        printout_begin(s);
        print_subject(&judged);
        code = judge_all(s, context, &judged, &tables, &page);
        check_tables_publish(&tables);
        printout_end();
    }
    check_page_free(&page);
    subject_free(&judged);
    atn_context_free(context);
    atn_context_free(reading);
    return code;
}

static int run(const program_options *s, int count, const char *const *words)
{
    return s->emit_case ? emit_cases(s) : judge(s);
}

const verb check_verb = {
    .name = "check",
    .summary = "judges somebody else's output, or writes cases to test with",
    .options = OPTIONS(OPTION_OPERATOR, OPTION_DTYPE, OPTION_SCALE, OPTION_DISTANCE, OPTION_LAYOUT,
                       OPTION_GRID, OPTION_TOKENS, OPTION_KEYS, OPTION_VALUES, OPTION_OUTPUT,
                       OPTION_LANDMARKS, OPTION_MASK, OPTION_QUERY_MASK, OPTION_GRAD_OUTPUT,
                       OPTION_GRADIENT, OPTION_PARAM, OPTION_REFERENCE, OPTION_MISTAKE, OPTION_HTML,
                       OPTION_EMIT_CASE, OPTION_N, OPTION_M, OPTION_BATCH, OPTION_SEED,
                       OPTION_CASE_HEADS, OPTION_KV_HEADS, OPTION_D, OPTION_VALUE_WIDTH,
                       OPTION_KEY_TOKENS, OPTION_MASKS, OPTION_THREADS, OPTION_ISA, OPTION_FORMAT),
    .help = print_help,
    .help_more = print_more,
    .run = run,
};
