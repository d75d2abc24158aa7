/* SPDX-License-Identifier: BSD-3-Clause */
/* Exact counts of every operator at the papers' settings, and the papers' formulas and numbers. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/report.h"
#include "cost/formulas.h"
#include "registry.h"

/* ---- Points: operators x n x m ---- */

typedef struct {
    cost_setting *items; /* the first variant; landmarks is 0 if the operator has none */
    int64_t count;
} counts_sweep;

static void add_settings(counts_sweep *w, atn_operator op, const integer_list *landmarks)
{
    static const int64_t none[] = {0};
    bool has = cost_has_landmarks(op);
    int64_t count = has ? landmarks->count : 1;
    const int64_t *list = has ? landmarks->items : none;
    for (int64_t p = 1; p <= PAPER_MULTIPLES; p++)
        for (int64_t i = 0; i < count; i++)
            w->items[w->count++] = (cost_setting){.op = op,
                                                  .tokens = PAPER_TOKENS * p,
                                                  .heads = PAPER_HEADS,
                                                  .dim = HEAD_DIM,
                                                  .landmarks = list[i]};
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    static int64_t usual[] = {PAPER_LANDMARKS, 36, 64, 81}; /* SOFT (IJCV) Tab. 9 */
    integer_list landmarks = s->landmarks;
    if (landmarks.count == 0)
        landmarks = (integer_list){sizeof usual / sizeof *usual, usual};
    for (int i = 0; i < landmarks.count; i++)
        if (landmarks.items[i] < 1 || landmarks.items[i] >= PAPER_TOKENS) {
            report_error("--m %" PRId64 ": expected 1 to %d landmarks, fewer than the tokens",
                         landmarks.items[i], PAPER_TOKENS - 1);
            return EXIT_USAGE;
        }
    counts_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    w->items = must_allocate((size_t)ATN_OPERATOR_COUNT * PAPER_MULTIPLES * (size_t)landmarks.count,
                             sizeof *w->items);
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        add_settings(w, (atn_operator)op, &landmarks);
    *points = w->count;
    return EXIT_PASS;
}

static void release(void *state)
{
    counts_sweep *w = state;
    free(w->items);
    free(w);
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    cost_describe(&((const counts_sweep *)state)->items[point], buffer, size);
}

static void replay(const void *state, int64_t point, options_point *options)
{
    *options = (options_point){
        .input = "", .seed = 1, .landmarks = ((const counts_sweep *)state)->items[point].landmarks};
}

/* ---- counts.csv ---- */

#define ROW(X)                                                                                     \
    X(TEXT, operator, "", "name in the registry", info->name)                                      \
    X(INTEGER, n, "", "tokens, as many queries as keys", s->tokens)                                \
    X(INTEGER_IF, m, "", "landmarks, Linformer's r; missing where there are none",                 \
      s->landmarks > 0, s->landmarks)                                                              \
    X(INTEGER, d, "", "width of a token, all heads together", s->heads * s->dim)                   \
    X(REAL, flops, "", "additions and multiplications of a forward call, exact", cost->flops)      \
    X(INTEGER, exps, "", "exponentials, sines and cosines of a forward call, exact",               \
      (int64_t)cost->exps)                                                                         \
    X(INTEGER, bytes_min, "B", "inputs and parameters read once and the output written once",      \
      (int64_t)cost->bytes)                                                                        \
    X(INTEGER, state_bytes, "B", "what must be kept between the passes over the tokens",           \
      (int64_t)cost->state_bytes)                                                                  \
    X(TEXT, variant, "", "the first one is the default; those that count alike are left out",      \
      info->variants[s->variant].name)                                                             \
    X(INTEGER, heads, "", "h; a head has width d / h", s->heads)                                   \
    X(INTEGER_IF, features, "",                                                                    \
      "performer, rff: random projections M = floor(d ln d) of a head's d",                        \
      performer || desc->op == ATN_RFF, projection->rows)                                          \
    X(INTEGER_IF, rounds, "", "lsh: rounds of hashing", lsh, desc->lsh.rotations.heads)            \
    X(INTEGER_IF, chunk, "", "lsh: tokens in a chunk", lsh, desc->lsh.chunk)                       \
    X(INTEGER_IF, buckets, "", "lsh: buckets of a round", lsh, 2 * desc->lsh.rotations.cols)       \
    X(TEXT_IF, sampling, "",                                                                       \
      "soft, softpp: window averages where m divides n, otherwise tokens as they are (indices)",   \
      soft, atn_sampling_name(desc->sampling.kind))                                                \
    X(INTEGER, workspace_bytes, "B", "the plan's memory on one thread, for forward and backward",  \
      (int64_t)cost->workspace_bytes)
static const column columns[] = {ROW(LIST_COLUMN)};

static void put_row(table *to, const cost_setting *s, const atn_cost *cost)
{
    attention_case c = cost_outline(s);
    const atn_attention_desc *desc = &c.desc;
    const atn_operator_info *info = atn_operator_get(s->op);
    bool performer = desc->op == ATN_PERFORMER, lsh = desc->op == ATN_LSH;
    bool soft = desc->op == ATN_SOFT || desc->op == ATN_SOFTPP;
    const atn_tensor *projection = performer ? &desc->performer.projection : &desc->rff.projection;
    ROW(LIST_PUT)
    attention_case_free(&c);
}

enum { MOST_VARIANTS = 32 };

static bool counts_alike(const atn_cost *a, const atn_cost *b)
{
    return a->flops == b->flops && a->exps == b->exps && a->bytes == b->bytes &&
           a->state_bytes == b->state_bytes;
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    cost_setting s = ((const counts_sweep *)state)->items[point];
    atn_cost costs[MOST_VARIANTS];
    int variants = atn_operator_get(s.op)->variant_count, code = EXIT_PASS;
    for (s.variant = 0; s.variant < variants && s.variant < MOST_VARIANTS; s.variant++) {
        atn_cost *cost = &costs[s.variant];
        bool known = false;
        code = exit_worst(code, cost_count(context, &s, cost));
        if (code == EXIT_ENVIRONMENT)
            return code;
        for (int earlier = 0; earlier < s.variant; earlier++)
            known |= counts_alike(cost, &costs[earlier]);
        if (!known)
            put_row(raw, &s, cost);
    }
    return code;
}

/* ---- The experiment ---- */

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    int code = formulas_evaluate(tables[1]);
    formulas_print(tables[1]);
    return code;
}

static const output_spec outputs[] = {
    {"counts", "Exact counts of one forward call, f32, batch 1.", columns,
     sizeof columns / sizeof *columns},
    {"counts_formulas", "What the papers print about costs, evaluated, next to exact counts.",
     formulas_columns, FORMULAS_COLUMNS},
};

const experiment cost_counts = {
    .name = "cost/counts",
    .summary = "exact flops, exps and bytes of every operator, and the papers' formulas",
    .source = "SOFT (IJCV) section 3.2, Tab. 9, SimA Tab. 1-2, UFO-ViT section 3.1; S07, S29, M03, "
              "M08, U02, N04",
    .example = "attnum run cost/counts --m 49",
    .options = OPTIONS(OPTION_M),
    .defaults = "every operator and variant that counts differently; n = 784 p, p = 1 ... 8, d = "
                "384, h = 12; m = 36, 49, 64, 81 where there are landmarks",
    .outputs = outputs,
    .output_count = 2,
    .plot = "cost/counts.gp",
    .prepare = prepare,
    .describe = describe,
    .replay = replay,
    .run = run,
    .finish = finish,
    .release = release,
};
