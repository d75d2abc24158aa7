/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures `attnum check` on kernels that are right, and on kernels with one known bug each: how
 * many bugs it detects, how many right kernels it calls wrong, how many bugs it names. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <data.h>

#include "common/report.h"
#include "kernels.h"

/* ---- Problems, variants and arithmetics ---- */

typedef enum { NORMAL, LARGE, TINY, DEAD } filling;

/* numbers: the type to which the inputs are rounded, bf16 or f32. few: only a few arithmetics are
 * tried. sample: only one in so many bugs is tried, and those that are hard to see in long sums.
 * diagnosed: findings are requested. Exact gradients take most of the time: problems with gradients
 * are tiny, or so large that attnum check uses the library's in f64 for them. */
typedef struct {
    int64_t n, keys, d, heads, batch;
    atn_dtype numbers;
    filling filling;
    bool causal, padding, gradients, diagnosed, quick, few;
    bool shared;  /* K = Q */
    bool grouped; /* heads 2 i and 2 i + 1 have the same keys and values */
    int sample;   /* 0: all */
    unsigned operators;
} problem;

#define LINEAR (OP(SIMA) | OP(XNORM) | OP(EFFICIENT) | OP(XCA) | OP(ELU))

static const problem problems[] = {
    {16, 16, 8, 2, 1, ATN_BF16, .gradients = true, .quick = true, .operators = EVERY},
    {88, 88, 8, 2, 2, ATN_BF16, .gradients = true, .diagnosed = true, .operators = EVERY},
    {200, 200, 32, 2, 1, ATN_F32, .gradients = true, .sample = 4, .operators = EVERY},
    {256, 256, 32, 2, 1, ATN_BF16, .gradients = true, .few = true, .sample = 4, .operators = EVERY},
    {1000, 1000, 64, 1, 1, ATN_BF16, .few = true, .sample = 16, .operators = TOKENS},
    {500, 500, 64, 1, 1, ATN_BF16, .few = true, .sample = 16, .operators = ~TOKENS},
    {333, 333, 80, 1, 1, ATN_F32, .few = true, .sample = 6, .operators = EVERY},
    {4096, 4096, 64, 3, 1, ATN_BF16, .few = true, .sample = 64, .operators = OP(SIMA) | OP(ELU)},
    {72, 200, 16, 2, 1, ATN_F32, .few = true, .sample = 3, .operators = LENGTHS},
    {144, 144, 8, 2, 1, ATN_BF16, .causal = true, .gradients = true, .diagnosed = true,
     .operators = OP(SOFTMAX) | OP(ELU) | OP(COSFORMER)},
    {72, 72, 8, 2, 2, ATN_BF16, .padding = true, .diagnosed = true, .operators = KEYED},
    {144, 144, 8, 2, 1, ATN_BF16, DEAD, .gradients = true, .diagnosed = true,
     .operators = OP(SIMA) | OP(XCA)},
    {100, 100, 16, 2, 1, ATN_F32, LARGE, .gradients = true, .few = true, .sample = 3,
     .operators = EVERY & ~OP(PERFORMER)},
    {40, 40, 8, 2, 2, ATN_BF16, .shared = true, .gradients = true, .diagnosed = true,
     .operators = KEYED},
    {48, 48, 8, 4, 2, ATN_BF16, .grouped = true, .diagnosed = true, .operators = KEYED},
    {40, 40, 8, 1, 1, ATN_BF16, .gradients = true, .sample = 3, .operators = EVERY},
    {24, 24, 8, 1, 3, ATN_F32, .gradients = true, .sample = 5, .operators = EVERY},
    {64, 64, 16, 2, 1, ATN_BF16, TINY, .operators = LINEAR | OP(SOFTMAX)},
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

/* Bugs that are tried with every length: their effect on a long sum is small. */
static const bug long_bugs[] = {BUG_SUMS_BF16,  BUG_SUMS_F16,   BUG_PARTIALS_BF16,
                                BUG_LAST_TOKEN, BUG_LAST_4,     BUG_TAIL_64,
                                BUG_TILE_ZERO,  BUG_STATE_TAIL, BUG_OUTPUT_1_005};

/* The variants of operators that kernels.c implements; otherwise the first variant. */
static const struct {
    atn_operator op;
    const char *variant;
} variants[] = {
    {ATN_SOFT, "code"}, {ATN_SOFTPP, "paper"}, {ATN_SIMA, "code"}, {ATN_NYSTROMFORMER, "exact"}};

/* The arithmetics of right kernels. wide: sums and stored numbers are f32. buggy: bugs are tried in
 * it. few: see `problem`. */
static const struct {
    arithmetic a;
    bool wide, buggy, few;
} arithmetics[] = {
#define A(text, claimed_, stored_, operands_, summed_, order_, group_, fused_)                     \
    {                                                                                              \
        .name = text, .claimed = ATN_##claimed_, .stored = ATN_##stored_,                          \
        .operands = ATN_##operands_, .summed = ATN_##summed_, .order = SUM_##order_,               \
        .group = group_, .fused = fused_                                                           \
    }
    {A("f64", F64, F64, F64, F64, FORWARD, 0, false), true, true, true},
    {A("f64-pairs", F64, F64, F64, F64, PAIRS, 8, true), true, false, false},
    {A("f32", F32, F32, F32, F32, FORWARD, 0, false), true, false, true},
    {A("f32-backward", F32, F32, F32, F32, BACKWARD, 0, false), true, false, false},
    {A("f32-blocks-8", F32, F32, F32, F32, BLOCKS, 8, false), true, false, false},
    {A("f32-blocks-16", F32, F32, F32, F32, BLOCKS, 16, true), true, false, false},
    {A("f32-blocks-32", F32, F32, F32, F32, BLOCKS, 32, true), true, false, false},
    {A("f32-blocks-64", F32, F32, F32, F32, BLOCKS, 64, true), true, true, true},
    {A("f32-blocks-128", F32, F32, F32, F32, BLOCKS, 128, true), true, false, false},
    {A("f32-pairs", F32, F32, F32, F32, PAIRS, 16, true), true, false, false},
    {A("f32-lanes-4", F32, F32, F32, F32, LANES, 4, false), true, false, false},
    {A("f32-lanes-32", F32, F32, F32, F32, LANES, 32, true), true, false, false},
    {A("f32-f64-sums", F32, F32, F32, F64, FORWARD, 0, false), true, false, false},
    {A("tf32", TF32, F32, TF32, F32, BLOCKS, 8, true), false, true, true},
    {A("tf32-lanes", TF32, F32, TF32, F32, LANES, 8, true), false, false, false},
    {.a = {.name = "tf32-cut",
           .claimed = ATN_TF32,
           .stored = ATN_F32,
           .operands = ATN_TF32,
           .cut = true,
           .summed = ATN_F32,
           .order = SUM_BLOCKS,
           .group = 8,
           .fused = true},
     .few = true},
    {A("tf32-f32", TF32, F32, F32, F32, BLOCKS, 64, true), true, false, false},
    {A("bf16-f32", BF16, F32, F32, F32, BLOCKS, 64, true), true, true, true},
    {A("bf16-f32-pairs", BF16, F32, F32, F32, PAIRS, 16, true), true, false, false},
    {A("bf16-tensor", BF16, F32, BF16, F32, BLOCKS, 16, true), false, true, true},
    {A("bf16-tensor-lanes", BF16, F32, BF16, F32, LANES, 4, true), false, false, false},
    {A("bf16-eager", BF16, BF16, BF16, F32, BLOCKS, 64, true), false, true, false},
    {A("bf16-eager-backward", BF16, BF16, BF16, F32, BACKWARD, 0, false), false, false, true},
    {A("f16-f32", F16, F32, F32, F32, BLOCKS, 64, true), true, true, true},
    {A("f16-tensor", F16, F32, F16, F32, BLOCKS, 16, true), false, true, false},
    {A("f16-eager", F16, F16, F16, F32, BLOCKS, 64, true), false, false, true},
#undef A
};
enum { ARITHMETICS = sizeof arithmetics / sizeof *arithmetics };

/* ---- Options ---- */

typedef struct {
    bool quick, goals;
    const char *op, *bug, *type, *out;
    enum { DIAGNOSE_SOME, DIAGNOSE_ALL, DIAGNOSE_NONE } diagnose;
    uint64_t seed;
    int64_t n; /* 0: every size */
} wishes;

/* ---- Counts ---- */

typedef struct {
    int64_t right, marginal, skipped, alarms;    /* results of right kernels */
    int64_t wrong, expected, detected, hesitant; /* of buggy kernels; hesitant: marginal */
    int64_t asked, named;
} counts;

enum { MOST_SHOWN = 20 };

typedef struct {
    const wishes *w;
    atn_context *context;
    FILE *csv;
    counts types[ATN_DTYPE_COUNT];
    int64_t missed[BUG_COUNT], expected[BUG_COUNT], asked[BUG_COUNT], unnamed[BUG_COUNT];
    int64_t kernels[2]; /* right, buggy */
    int shown;          /* false alarms that were printed, one line each */
} corpus;

/* ---- The judge: all calls of attnum check's functions ---- */

/* A problem and what its results are compared with, which is computed once for all kernels. */
typedef struct {
    const problem *p;
    attention_case c;
    subject s;
    result_verdict basis[ATN_DTYPE_COUNT][RESULT_COUNT];
    bool known[ATN_DTYPE_COUNT][RESULT_COUNT];
    double worst[ATN_DTYPE_COUNT][RESULT_COUNT]; /* the largest error of a right kernel */
} exam;

typedef struct {
    ref_verdict verdict;
    double ratio;     /* the worst head's, */
    const char *rule; /* and the test that it belongs to */
    double error;     /* |got - want|_F / |want|_F, all heads */
    int found;
    finding findings[MOST_FINDINGS];
} opinion;

static const result_verdict *find_basis(exam *e, atn_context *context, subject *s,
                                        atn_dtype claimed, result_kind kind)
{
    result_verdict *v = &e->basis[claimed][kind];
    if (e->known[claimed][kind])
        return v;
    e->known[claimed][kind] = true;
    result_group g = group_of_one(kind, v);
    for (int type = 0; type < ATN_DTYPE_COUNT; type++)
        if (type != (int)claimed && e->known[type][kind]) {
            result_group known = group_of_one(kind, &e->basis[type][kind]);
            claim_another(context, s, &known, &g);
            return v;
        }
    if (find_wanted(context, s, &g) != EXIT_PASS)
        end_program("the judge has no answer");
    return v;
}

static double error_of(int64_t count, const double *got, const double *want)
{
    return ref_compare_f64(1, count, got, count, want, count).relative_frobenius;
}

static opinion judge(corpus *all, exam *e, atn_dtype claimed, result_kind kind, double *got,
                     bool diagnosed)
{
    subject s = e->s;
    opinion o = {.verdict = REF_SKIPPED, .ratio = NAN};
    int64_t heads = result_heads(&e->c, kind), size = result_size(&e->c, kind);
    subject_claim(&s, claimed);
    s.results[kind] = got;
    result_verdict v = *find_basis(e, all->context, &s, claimed, kind);
    judge_heads(&s, kind, &v);
    for (int64_t i = 0; i < heads; i++)
        if (!(o.ratio >= v.heads[i].ratio)) {
            o.ratio = v.heads[i].ratio;
            o.rule = v.heads[i].rule;
        }
    o.error = error_of(size, got, v.want);
    if (diagnosed || v.verdict != REF_FAIL)
        o.found = explain_result(all->context, &s, kind, &v, o.findings);
    o.verdict = v.verdict;
    return o;
}

static void opinion_free(opinion *o)
{
    while (o->found > 0)
        free(o->findings[--o->found].text);
}

/* ---- Problems ---- */

static int variant_of(atn_operator op)
{
    const atn_operator_info *info = atn_operator_get(op);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        for (int v = 0; variants[i].op == op && v < info->variant_count; v++)
            if (strcmp(info->variants[v].name, variants[i].variant) == 0)
                return v;
    return 0;
}

static void refill(const problem *p, int64_t count, int64_t cols, bool tokens, double *x)
{
    for (int64_t i = 0; i < count; i++) {
        if (p->filling == LARGE && tokens)
            x[i] *= 3;
        if (p->filling == TINY && !tokens)
            x[i] *= 0x1p-17;
        if (p->filling == DEAD && tokens && i % cols == cols / 2)
            x[i] = 0;
        x[i] = round_to(p->filling == TINY ? ATN_F16 : ATN_F64, round_to(p->numbers, x[i]));
    }
}

static void refill_parameters(const problem *p, attention_case *c)
{
    for (int i = 0; i < ATN_PARAMETER_COUNT; i++) {
        atn_tensor *w = atn_attention_parameter(&c->reference, (atn_parameter)i);
        for (int64_t j = 0; w->data && j < w->heads * w->rows * w->cols; j++)
            ((double *)w->data)[j] = round_to(p->numbers, ((double *)w->data)[j]);
    }
}

/* Gives every second head the keys and values of the one before it. */
static void share_among_heads(attention_case *c)
{
    const atn_attention_shape *s = &c->shape;
    int64_t keys = s->key_tokens * s->dim, values = s->key_tokens * s->value_dim;
    for (int64_t i = 1; i < s->batch * s->heads; i += 2) {
        memcpy(c->k + i * keys, c->k + (i - 1) * keys, (size_t)keys * sizeof *c->k);
        memcpy(c->v + i * values, c->v + (i - 1) * values, (size_t)values * sizeof *c->v);
    }
}

static exam make_exam(const problem *p, atn_operator op, uint64_t seed)
{
    attention_choice choice = {.op = op,
                               .variant = variant_of(op),
                               .dtype = ATN_F32,
                               .shape = {p->batch, p->heads, p->n, p->d, p->d, p->keys},
                               .cross = !p->shared,
                               .padding = p->padding,
                               .causal = p->causal,
                               .optional = op == ATN_XNORM || op == ATN_XCA || op == ATN_LINFORMER,
                               .sampling = ATN_SAMPLING_POOL,
                               .landmarks = p->n >= 64 ? 16 : 4,
                               .features = 32,
                               .seed = seed};
    exam e = {.p = p, .c = attention_case_make(&choice)};
    attention_case *c = &e.c;
    c->reference.dtype = ATN_F64;
    refill(p, attention_case_queries(c), p->d, true, c->q);
    if (c->k)
        refill(p, attention_case_keys(c), p->d, true, c->k);
    refill(p, attention_case_values(c), p->d, false, c->v);
    refill(&(problem){.numbers = p->numbers}, attention_case_outputs(c), p->d, false, c->dout);
    refill_parameters(p, c);
    if (p->grouped)
        share_among_heads(c);
    e.s = (subject){.c = *c,
                    .judged = *c,
                    .grad_output = c->dout,
                    .key_heads = p->heads / (p->grouped ? 2 : 1)};
    return e;
}

static void exam_free(exam *e)
{
    for (int kind = 0; kind < RESULT_COUNT; kind++) {
        bool first = true;
        for (int type = 0; type < ATN_DTYPE_COUNT; type++) {
            result_verdict *v = &e->basis[type][kind];
            if (!e->known[type][kind])
                continue;
            if (first)
                result_verdict_free(v);
            else
                claim_free(v);
            first = false;
        }
    }
    attention_case_free(&e->c);
}

/* ---- Rows ---- */

/* Whether a text contains a word at the beginning of one of its own words, so that f16 is not found
 * in bf16. */
static bool has_word(const char *text, const char *word)
{
    for (const char *at = text; *at; at++)
        if (strncasecmp(at, word, strlen(word)) == 0 &&
            (at == text || !isalnum((unsigned char)at[-1]) || !isalnum((unsigned char)*word)))
            return true;
    return false;
}

/* Whether a text contains all parts of one of the alternatives. */
static bool says(const char *text, const char *words)
{
    char *copy = must_format("%s", words), *rest = copy, *alternative;
    bool found = false;
    while (!found && (alternative = strtok_r(rest, "|", &rest))) {
        found = true;
        for (char *part; (part = strtok_r(alternative, "&", &alternative));)
            found &= has_word(text, part);
    }
    free(copy);
    return found;
}

enum { FIRST_FINDINGS = 3 };

static bool is_named(const opinion *o, bug b)
{
    for (int i = 0; i < o->found && i < FIRST_FINDINGS; i++)
        if (says(o->findings[i].text, bugs[b].words))
            return true;
    return false;
}

static void write_text(FILE *to, const char *text)
{
    for (; *text; text++)
        fputc(*text == ',' ? ';' : *text, to);
}

static void write_row(corpus *all, const exam *e, const kernel_choice *choice, result_kind kind,
                      const opinion *o, double right, bool expected, bool asked)
{
    const atn_attention_shape *s = &e->c.shape;
    bug b = choice->bug;
    if (!all->csv)
        return;
    fprintf(all->csv, "%s,%s,%s,%s,%lld,%lld,%lld,%lld,%lld,%llu,%s,%s,",
            atn_operator_get(e->c.choice.op)->name, atn_dtype_name(choice->arithmetic.claimed),
            choice->arithmetic.name, arrangement_name(choice->arrangement), (long long)s->tokens,
            (long long)s->key_tokens, (long long)s->dim, (long long)s->heads, (long long)s->batch,
            (unsigned long long)e->c.choice.seed, result_name(kind),
            b == NO_BUG ? "right" : bugs[b].code);
    fprintf(all->csv, "%.3g,%.3g,%s,%.3g", o->error, right, ref_verdict_name(o->verdict), o->ratio);
    for (int i = 0; i < FIRST_FINDINGS; i++) {
        fputc(',', all->csv);
        write_text(all->csv, i < o->found ? o->findings[i].text : "");
    }
    fprintf(all->csv, ",%d,%d,%d,%d\n", b != NO_BUG && is_named(o, b), o->verdict == REF_FAIL,
            expected, asked);
}

static void count_right(corpus *all, atn_dtype type, const opinion *o)
{
    counts *c = &all->types[type];
    c->right++;
    c->marginal += o->verdict == REF_MARGINAL;
    c->skipped += o->verdict == REF_SKIPPED;
    c->alarms += o->verdict == REF_FAIL;
}

static void count_wrong(corpus *all, atn_dtype type, bug b, const opinion *o, bool expected,
                        bool asked)
{
    counts *c = &all->types[type];
    c->wrong++;
    c->expected += expected;
    c->detected += expected && o->verdict == REF_FAIL;
    c->hesitant += expected && o->verdict == REF_MARGINAL;
    all->expected[b] += expected;
    all->missed[b] += expected && o->verdict != REF_FAIL;
    if (asked && o->verdict == REF_FAIL) {
        bool named = is_named(o, b);
        c->asked++, c->named += named;
        all->asked[b]++, all->unnamed[b] += !named;
    }
}

/* ---- Kernels ---- */

/* Whether a right kernel gives a right result in an arithmetic: inverses need a wide one, and the
 * range of f16 may be too small. SimA's 1/n^2 is subnormal in f16; 1 over the least denominator
 * overflows, as do the derivatives of a dead channel, 1 over epsilon, and those of cosFormer's
 * denominator where ReLU leaves a query only one small feature. */
static bool is_sound(const exam *e, int i)
{
    const arithmetic *a = &arithmetics[i].a;
    const filling filled = e->p->filling;
    atn_operator op = e->c.choice.op;
    bool inverts = op == ATN_SOFT || op == ATN_SOFTPP;
    bool in_f16 = a->stored == ATN_F16 || a->operands == ATN_F16;
    bool small = op == ATN_SIMA || op == ATN_PERFORMER || filled != NORMAL ||
                 (op == ATN_COSFORMER && e->p->gradients);
    if (filled == TINY && a->claimed != ATN_F16)
        return false; /* subnormal numbers matter in f16 alone */
    if (filled == DEAD && a->claimed == ATN_F16)
        return false;
    return arithmetics[i].wide || !(inverts || (in_f16 && small));
}

static bool is_wanted(const wishes *w, const exam *e, int i, bool buggy)
{
    const arithmetic *a = &arithmetics[i].a;
    if (!is_sound(e, i) || (w->type && strcmp(w->type, atn_dtype_name(a->claimed)) != 0))
        return false;
    if (e->p->few && !arithmetics[i].few)
        return false;
    bool long_f64 = e->p->few && a->claimed == ATN_F64;
    return !buggy || (arithmetics[i].buggy && !long_f64);
}

static bool is_sampled(const exam *e, bug b)
{
    for (size_t i = 0; i < sizeof long_bugs / sizeof *long_bugs; i++)
        if (long_bugs[i] == b)
            return true;
    return e->p->sample == 0 || (bugs[b].needs & NEEDS_LARGE) ||
           ((int)b + (int)e->c.choice.op) % e->p->sample == 0;
}

static bool bug_is_of(const exam *e, bug b)
{
    const problem *p = e->p;
    unsigned has = (p->heads > 1 ? NEEDS_HEADS : 0) | (p->batch > 1 ? NEEDS_BATCH : 0) |
                   (p->causal ? NEEDS_CAUSAL : 0) | (p->padding ? NEEDS_PADDING : 0) |
                   (p->filling == DEAD ? NEEDS_DEAD : 0) | (p->filling == LARGE ? NEEDS_LARGE : 0) |
                   (p->filling == TINY ? NEEDS_TINY : 0) | (p->grouped ? NEEDS_GROUPS : 0) |
                   (p->shared ? NEEDS_SHARED : 0);
    bool special = p->causal || p->padding || p->filling == DEAD || p->filling == TINY ||
                   p->grouped || p->shared;
    if (!(bugs[b].operators >> e->c.choice.op & 1) || (bugs[b].needs & ~has) || !is_sampled(e, b))
        return false;
    /* special problems try only the bugs that need them */
    return !special || (bugs[b].needs & (NEEDS_CAUSAL | NEEDS_PADDING | NEEDS_DEAD | NEEDS_TINY |
                                         NEEDS_GROUPS | NEEDS_SHARED));
}

/* Whether a bug changes a result. NaN counts as a difference. */
static bool differs(int64_t count, const double *a, const double *b)
{
    return memcmp(a, b, (size_t)count * sizeof *a) != 0;
}

static void try_right(corpus *all, exam *e, const kernel_choice *choice, double *got[RESULT_COUNT])
{
    for (int kind = 0; kind < RESULT_COUNT; kind++) {
        double *worst = &e->worst[choice->arithmetic.claimed][kind];
        if (!got[kind])
            continue;
        opinion o = judge(all, e, choice->arithmetic.claimed, (result_kind)kind, got[kind], false);
        *worst = fmax(*worst, o.error);
        count_right(all, choice->arithmetic.claimed, &o);
        write_row(all, e, choice, (result_kind)kind, &o, o.error, false, false);
        if (o.verdict == REF_FAIL && all->shown++ < MOST_SHOWN)
            report_note("false alarm: %s %s %s n=%lld %s: error %.3g, ratio %.3g (%s)",
                        atn_operator_get(e->c.choice.op)->name, choice->arithmetic.name,
                        arrangement_name(choice->arrangement), (long long)e->p->n,
                        result_name((result_kind)kind), o.error, o.ratio, o.rule);
        opinion_free(&o);
    }
    all->kernels[0]++;
}

/* Whether findings are requested, which take most of the time. */
static bool asks(const corpus *all, const exam *e, const arithmetic *a)
{
    bool tensor = a->claimed == ATN_BF16 && a->stored == ATN_F32 && a->operands == ATN_BF16;
    bool some = e->p->diagnosed && (a->claimed == ATN_F32 || tensor);
    return all->w->diagnose == DIAGNOSE_ALL || (all->w->diagnose == DIAGNOSE_SOME && some);
}

static void try_bug(corpus *all, exam *e, const kernel_choice *choice,
                    double *const right[RESULT_COUNT])
{
    double *got[RESULT_COUNT];
    const atn_dtype type = choice->arithmetic.claimed;
    bool asked = asks(all, e, &choice->arithmetic), any = false;
    kernel_run(&e->c, choice, got);
    for (int kind = 0; kind < RESULT_COUNT; kind++) {
        int64_t size = got[kind] ? result_size(&e->c, (result_kind)kind) : 0;
        if (!got[kind] || !differs(size, got[kind], right[kind]))
            continue;
        asked &= !any; /* for the output, or else the first gradient that is wrong */
        opinion o = judge(all, e, type, (result_kind)kind, got[kind], asked);
        bool expected = !(o.error <= 2 * e->worst[type][kind]);
        count_wrong(all, type, choice->bug, &o, expected, asked);
        write_row(all, e, choice, (result_kind)kind, &o, e->worst[type][kind], expected, asked);
        opinion_free(&o);
        any = true;
    }
    all->kernels[1] += any;
    kernel_free(got);
}

static void try_arrangements(corpus *all, exam *e, int i)
{
    for (int a = 0; a < ARRANGEMENT_COUNT; a++) {
        kernel_choice choice = {arithmetics[i].a, (arrangement)a, NO_BUG, e->p->gradients};
        double *right[RESULT_COUNT];
        if (!arrangement_is_of((arrangement)a, e->c.choice.op) ||
            (a == ARRANGED_TOKENS_FIRST && e->p->n >= 1000))
            continue;
        kernel_run(&e->c, &choice, right);
        try_right(all, e, &choice, right);
        kernel_free(right);
    }
}

/* Whether a code is in a comma-separated list; null: all codes are. */
static bool is_wished(const char *codes, const char *code)
{
    size_t length = strlen(code);
    for (const char *at = codes; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncasecmp(at, code, length) == 0 && (!at[length] || at[length] == ','))
            return true;
    return !codes;
}

static void try_bugs(corpus *all, exam *e, int i)
{
    kernel_choice choice = {arithmetics[i].a, ARRANGED_PLAIN, NO_BUG, e->p->gradients};
    double *right[RESULT_COUNT];
    kernel_run(&e->c, &choice, right);
    for (int b = 0; b < BUG_COUNT; b++) {
        choice.bug = (bug)b;
        if (is_wished(all->w->bug, bugs[b].code) && bug_is_of(e, choice.bug))
            try_bug(all, e, &choice, right);
    }
    kernel_free(right);
}

/* Tries right kernels in all arithmetics of a type first: a bug should be detected if its error is
 * over twice their largest error. */
static void try_problem(corpus *all, const problem *p, atn_operator op)
{
    bool asked = all->w->n ? all->w->n == p->n : p->quick || !all->w->quick;
    if (!(p->operators >> op & 1) || !asked)
        return;
    exam e = make_exam(p, op, all->w->seed + (uint64_t)(p - problems));
    for (int i = 0; i < ARITHMETICS; i++)
        if (is_wanted(all->w, &e, i, false))
            try_arrangements(all, &e, i);
    for (int i = 0; i < ARITHMETICS; i++) {
        atn_dtype type = arithmetics[i].a.claimed;
        bool usual = arithmetics[i].few && (type == ATN_F32 || type == ATN_BF16);
        if (is_wanted(all->w, &e, i, true) && (!all->w->quick || usual))
            try_bugs(all, &e, i);
    }
    exam_free(&e);
}

/* ---- Output ---- */

static double share(int64_t part, int64_t all)
{
    return all > 0 ? 100 * (double)part / (double)all : 100;
}

static counts print_types(const corpus *all)
{
    counts sum = {0};
    int64_t *into = (int64_t *)&sum;
    printf("%-6s %7s %6s %8s %7s | %6s %8s %8s %9s %9s | %6s %6s\n", "type", "right", "alarms",
           "marginal", "skipped", "buggy", "expected", "detected", "marginal", "missed", "asked",
           "named");
    for (int type = 0; type <= ATN_DTYPE_COUNT; type++) {
        const counts *c = type < ATN_DTYPE_COUNT ? &all->types[type] : &sum;
        if (c->right + c->wrong == 0)
            continue;
        printf("%-6s %7lld %6lld %8lld %7lld | %6lld %8lld %8lld %9lld %9lld | %6lld %6lld\n",
               type < ATN_DTYPE_COUNT ? atn_dtype_name((atn_dtype)type) : "all",
               (long long)c->right, (long long)c->alarms, (long long)c->marginal,
               (long long)c->skipped, (long long)c->wrong, (long long)c->expected,
               (long long)c->detected, (long long)c->hesitant,
               (long long)(c->expected - c->detected - c->hesitant), (long long)c->asked,
               (long long)c->named);
        for (size_t i = 0; type < ATN_DTYPE_COUNT && i < sizeof sum / sizeof *into; i++)
            into[i] += ((const int64_t *)c)[i];
    }
    return sum;
}

static void print_bugs(const corpus *all)
{
    printf("\nbugs that were not detected, or not named, everywhere:\n");
    for (int b = 0; b < BUG_COUNT; b++)
        if (all->missed[b] || all->unnamed[b])
            printf("  %-24s detected %4lld of %4lld, named %3lld of %3lld  %s\n", bugs[b].code,
                   (long long)(all->expected[b] - all->missed[b]), (long long)all->expected[b],
                   (long long)(all->asked[b] - all->unnamed[b]), (long long)all->asked[b],
                   bugs[b].name);
}

/* Prints all counts. The goals: all bugs detected, no false alarm, 1 % marginal, 95 % named. */
static int print_all(const corpus *all)
{
    counts c = print_types(all);
    print_bugs(all);
    printf("\n%lld right and %lld buggy kernels, %d kinds of bugs\n", (long long)all->kernels[0],
           (long long)all->kernels[1], BUG_COUNT);
    printf(
        "detected: %.2f %% of %lld results whose error is over twice the worst right kernel's in their type\n",
        share(c.detected, c.expected), (long long)c.expected);
    printf("false alarms: %lld of %lld results of right kernels, %.2f %% marginal\n",
           (long long)c.alarms, (long long)c.right, c.right ? share(c.marginal, c.right) : 0);
    printf("named: %.2f %% of %lld\n", share(c.named, c.asked), (long long)c.asked);
    /* in these types a right kernel must never FAIL */
    int64_t wrong = all->types[ATN_F64].alarms + all->types[ATN_F32].alarms;
    bool met = c.detected == c.expected && c.alarms == 0 && 100 * c.marginal <= c.right &&
               100 * c.named >= 95 * c.asked;
    return wrong > 0 || (all->w->goals && !met) ? EXIT_CHECK : EXIT_PASS;
}

/* ---- Tests of round_to ---- */

/* Compares it with the library's conversions, which are independent of it. */
static int check_rounding(void)
{
    static const atn_storage storages[ATN_DTYPE_COUNT] = {
        [ATN_TF32] = ATN_STORAGE_TF32, [ATN_BF16] = ATN_STORAGE_BF16, [ATN_F16] = ATN_STORAGE_F16};
    enum { COUNT = 1 << 14 };
    double x[COUNT];
    data_normal(1, COUNT, x);
    for (int type = 0; type < ATN_DTYPE_COUNT; type++)
        for (int i = 0; storages[type] && i < COUNT; i++) {
            float value = (float)ldexp(x[i], i % 48 - 30), rounded = value;
            atn_storage_round(storages[type], 1, &rounded);
            if (round_to((atn_dtype)type, (double)value) != (double)rounded) {
                report_error("corpus: %a is rounded to %a and %a in %s", (double)value,
                             round_to((atn_dtype)type, (double)value), (double)rounded,
                             atn_dtype_name((atn_dtype)type));
                return EXIT_CHECK;
            }
        }
    return EXIT_PASS;
}

/* ---- The command ---- */

static const char usage[] =
    "corpus [--quick] [--goals] [--operator NAME] [--bug CODES|right] [--type f64|f32|tf32|bf16|f16]\n"
    "       [--diagnose some|all|none] [--n TOKENS] [--seed N]\n"
    "       [--out FILE.csv] [--list]\n";

static int list_bugs(void)
{
    for (int b = 0; b < BUG_COUNT; b++)
        printf("%-24s %s\n", bugs[b].code, bugs[b].name);
    return EXIT_PASS;
}

/* False: the option is unknown. */
static bool read_wish(wishes *w, const char *name, const char *value)
{
    const struct {
        const char *name, **to;
    } texts[] = {
        {"--operator", &w->op}, {"--bug", &w->bug}, {"--type", &w->type}, {"--out", &w->out}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].to = value;
            return true;
        }
    if (strcmp(name, "--n") == 0)
        w->n = strtoll(value, NULL, 10);
    else if (strcmp(name, "--seed") == 0)
        w->seed = strtoull(value, NULL, 10);
    else if (strcmp(name, "--diagnose") == 0)
        w->diagnose = strcmp(value, "all") == 0    ? DIAGNOSE_ALL
                      : strcmp(value, "none") == 0 ? DIAGNOSE_NONE
                                                   : DIAGNOSE_SOME;
    else
        return false;
    return true;
}

static bool read_wishes(wishes *w, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            w->quick = true;
        else if (strcmp(argv[i], "--goals") == 0)
            w->goals = true;
        else if (i + 1 == argc || !read_wish(w, argv[i], argv[i + 1]))
            return false;
        else
            i++;
    }
    return true;
}

static int run(corpus *all)
{
    atn_context_options options = {.threads = 1};
    if (atn_context_create(&options, &all->context) != ATN_OK) {
        report_error("corpus: no context");
        return EXIT_ENVIRONMENT;
    }
    all->csv = all->w->out ? fopen(all->w->out, "w") : NULL;
    if (all->csv)
        fprintf(all->csv, "operator,type,arithmetic,arrangement,n,keys,d,heads,batch,seed,result,"
                          "kernel,error,right_error,verdict,ratio,finding_1,finding_2,finding_3,"
                          "named,detected,expected,asked\n");
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const char *name = atn_operator_get((atn_operator)op)->name;
        if (!kernel_exists((atn_operator)op) || (all->w->op && strcmp(all->w->op, name) != 0))
            continue;
        for (int i = 0; i < PROBLEMS; i++)
            try_problem(all, &problems[i], (atn_operator)op);
        if (all->csv)
            fflush(all->csv);
    }
    atn_context_free(all->context);
    int code = print_all(all);
    if (all->w->out && (!all->csv || ferror(all->csv) || fclose(all->csv) != 0)) {
        report_error("%s: cannot be written", all->w->out);
        code = EXIT_ENVIRONMENT;
    }
    return code;
}

int main(int argc, char **argv)
{
    wishes w = {.seed = 1};
    corpus all = {.w = &w};
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list_bugs();
    if (!read_wishes(&w, argc, argv)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    int code = check_rounding();
    return code == EXIT_PASS ? run(&all) : code;
}
