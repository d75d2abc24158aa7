/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/group.h"

#include <stdlib.h>
#include <string.h>

#include "common/report.h"

/* ---- Opening ---- */

/* Takes the context of an earlier member with the same number of threads, or creates one. */
static atn_status open_context(case_group *g, const group_plan *plan, atn_device device, int index)
{
    group_member *m = &g->members[index];
    for (int i = 0; i < index; i++)
        if (g->members[i].c->threads == m->c->threads) {
            m->context = g->members[i].context;
            return ATN_OK;
        }
    atn_context_options options = {.device = device, .threads = m->c->threads, .isa = plan->isa};
    return atn_context_create(&options, &m->context);
}

/* Checks the member against the CPU in f64, and runs it once. */
static atn_status check_member(group_member *m)
{
    if (bench_is_rate(m->c))
        return workload_try(&m->workload);
    atn_status status = check_case(m->context, m->c, &m->check);
    m->checked = status == ATN_OK;
    if (status != ATN_OK)
        return status;
    status = workload_try(&m->workload);
    if (status == ATN_NONFINITE)
        m->check.kind = CHECK_FAIL;
    return status;
}

static atn_status open_member(case_group *g, const group_plan *plan, atn_device device, int index)
{
    group_member *m = &g->members[index];
    atn_status status = open_context(g, plan, device, index);
    if (status != ATN_OK)
        return status;
    if (index == 0)
        workload_store_open(m->context, g->count, m->c, &g->store);
    workload_open(&g->store, m->context, m->c, &m->workload);
    m->left_out = m->workload.forward_flops > plan->most_flops;
    status = m->workload.status;
    return status != ATN_OK || m->left_out ? status : check_member(m);
}

static int report_failure(const group_member *m, atn_status status)
{
    char text[300];
    bench_describe(m->c, text, sizeof text);
    report_error("bench: %s: %s: %s", text, atn_status_message(status),
                 m->context ? atn_last_error(m->context) : "no context");
    return EXIT_ENVIRONMENT;
}

static int open_members(case_group *g, const group_plan *plan, atn_device device)
{
    for (int i = 0; i < g->count; i++) {
        group_member *m = &g->members[i];
        atn_status status = open_member(g, plan, device, i);
        if (status == ATN_ERR_MEMORY || status == ATN_ERR_UNSUPPORTED) {
            m->left_out = true;
            if (*atn_last_error(m->context)) /* libxsmm gives no reason */
                report_note("bench: %s", atn_last_error(m->context));
        } else if (status < 0)
            return report_failure(m, status);
        if (m->left_out)
            m->check = (check_result){.kind = CHECK_LEFT_OUT};
    }
    return EXIT_PASS;
}

/* ---- Timing ---- */

static atn_status run_member(void *state, int repeat)
{
    workload *s = state;
    workload_run(s, repeat);
    return s->status;
}

static int time_members(case_group *g, const group_plan *plan, atn_device device)
{
    rounds_member *timed = must_allocate((size_t)g->count, sizeof *timed);
    group_member **who = must_allocate((size_t)g->count, sizeof(group_member *));
    rounds_flush flush = {0};
    int count = 0;
    bool cold = false;
    for (int i = 0; i < g->count; i++) {
        group_member *m = &g->members[i];
        if (m->left_out)
            continue;
        m->place = count;
        who[count] = m;
        timed[count++] =
            (rounds_member){.context = m->context,
                            .cold = !bench_is_hot(m->c, device),
                            .inverses_only = bench_is_inverse(m->c) && m->c->maker == BENCH_OURS,
                            .work = run_member,
                            .state = &m->workload};
        cold |= timed[count - 1].cold;
    }
    atn_status status = cold ? rounds_flush_open(g->members[0].context, &flush) : ATN_OK;
    int failed = 0;
    if (status == ATN_OK && count > 0) {
        bool rates = bench_is_rate(g->members[0].c);
        status = rounds_time(rates ? &plan->rates : &plan->plan, &plan->meter, &flush, count, timed,
                             &g->rounds);
        failed = g->rounds.failed;
    }
    rounds_flush_close(g->members[0].context, &flush);
    int code =
        status == ATN_OK ? EXIT_PASS : report_failure(count ? who[failed] : g->members, status);
    free(who);
    free(timed);
    return code;
}

/* Judges the outcome of the timed calls. */
static int judge_members(case_group *g)
{
    int code = EXIT_PASS;
    for (int i = 0; i < g->count && code != EXIT_ENVIRONMENT; i++) {
        group_member *m = &g->members[i];
        atn_status status = m->left_out ? ATN_OK : workload_outcome(&m->workload);
        if (status < 0)
            return report_failure(m, status);
        if (status == ATN_NONFINITE)
            m->check.kind = CHECK_FAIL;
        if (m->checked && m->check.kind == CHECK_FAIL)
            code = EXIT_CHECK;
    }
    return code;
}

int group_run(const group_plan *plan, atn_device device, const bench_case *cases, int64_t count,
              case_group *g)
{
    *g = (case_group){.count = (int)count};
    g->members = must_allocate((size_t)count, sizeof *g->members);
    for (int i = 0; i < g->count; i++)
        g->members[i] = (group_member){.c = &cases[i], .place = -1};
    int code = open_members(g, plan, device);
    if (code == EXIT_PASS)
        code = time_members(g, plan, device);
    return code == EXIT_PASS ? judge_members(g) : code;
}

void group_close(case_group *g)
{
    for (int i = 0; i < g->count; i++)
        if (g->members[i].workload.c)
            workload_close(&g->members[i].workload);
    if (g->store.context)
        workload_store_close(&g->store);
    for (int i = 0; i < g->count; i++) {
        bool first = true;
        for (int j = 0; j < i; j++)
            first &= g->members[j].context != g->members[i].context;
        if (first)
            atn_context_free(g->members[i].context);
    }
    rounds_free(&g->rounds);
    free(g->members);
}

/* ---- Pairs ---- */

/* If two pairings apply to the same members, the earlier one counts. */
static const group_pairing pairings[] = {
    {BENCH_KEY_WORK, "backward", "forward"},
    {BENCH_KEY_THREADS, "1", NULL},
    {BENCH_KEY_INVERSE, "newton-openblas", NULL},
    {BENCH_KEY_INVERSE, NULL, "nr-paper"},
    {BENCH_KEY_PASSES, "chain", "fused"},
    {BENCH_KEY_PASSES, "tiles", "fused"},
    {BENCH_KEY_DTYPE, "bf16", "f32"},
    {BENCH_KEY_VARIANT, "libm", NULL},
    {BENCH_KEY_VARIANT, "openblas", NULL},
    {BENCH_KEY_VARIANT, "libxsmm", "attnum"},
};

static bool agree(const bench_case *a, const bench_case *b, bench_key except)
{
    for (int key = 0; key < BENCH_KEY_COUNT; key++) {
        char x[BENCH_TEXT], y[BENCH_TEXT];
        bench_key_text(a, (bench_key)key, x);
        bench_key_text(b, (bench_key)key, y);
        if (key != (int)except && strcmp(x, y) != 0)
            return false;
    }
    return true;
}

static bool holds(const group_pairing *p, const bench_case *a, const bench_case *b)
{
    char value[BENCH_TEXT], by[BENCH_TEXT];
    bench_key_text(a, p->key, value);
    bench_key_text(b, p->key, by);
    return *value && *by && strcmp(value, by) != 0 && (!p->value || strcmp(value, p->value) == 0) &&
           (!p->by || strcmp(by, p->by) == 0) && agree(a, b, p->key);
}

const group_pairing *group_pair(const group_member *a, const group_member *b)
{
    for (size_t i = 0; i < sizeof pairings / sizeof *pairings; i++)
        if (a->place >= 0 && b->place >= 0 && !bench_is_rate(a->c) &&
            holds(&pairings[i], a->c, b->c))
            return &pairings[i];
    return NULL;
}
