/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/formulas.h"

#include <math.h>

#include "common/report.h"

typedef struct {
    const char *statement, *source, *operator, * variant, *quantity, *formula;
    int64_t n, m, d, heads; /* 0: missing */
    double printed, counted;
    bool exact;
    const char *difference;
} formula_row;

#define ROW(X)                                                                                     \
    X(TEXT, statement, "", "the statement's number", r->statement)                                 \
    X(TEXT, source, "", "where it is printed", r->source)                                          \
    X(TEXT, operator, "", "name in the registry", r->operator)                                     \
    X(TEXT, variant, "", "its variant", r->variant)                                                \
    X(TEXT, quantity, "", "what is counted", r->quantity)                                          \
    X(TEXT, formula, "", "as printed", r->formula)                                                 \
    X(INTEGER_IF, n, "", "tokens (N); missing for a whole network", r->n > 0, r->n)                \
    X(INTEGER_IF, m, "", "landmarks; missing where there are none", r->m > 0, r->m)                \
    X(INTEGER_IF, d, "", "width of a token (d_e, D); formulas of one head take d / heads",         \
      r->d > 0, r->d)                                                                              \
    X(INTEGER_IF, heads, "", "heads (H); formulas of one head are taken so many times",            \
      r->heads > 0, r->heads)                                                                      \
    X(REAL, printed, "", "the formula's value, constants 1 where an order is printed", r->printed) \
    X(REAL, counted, "", "the exact count", r->counted)                                            \
    X(REAL_IF, ratio, "", "counted / printed; missing where printed is 0", r->printed != 0,        \
      r->counted / r->printed)                                                                     \
    X(BOOLEAN, exact, "",                                                                          \
      "the formula claims a number, not an order, of what is counted: "                            \
      "both must be equal",                                                                        \
      r->exact)                                                                                    \
    X(TEXT, difference, "", "what the two count differently", r->difference)
const column formulas_columns[FORMULAS_COLUMNS] = {ROW(LIST_COLUMN)};

static void put(table *to, const formula_row *r)
{
    ROW(LIST_PUT)
}

/* ---- Statements with a formula in n, m, d, h ---- */

/* One call: h heads of width d. */
typedef struct {
    double n, m, d, h;
} sizes;

enum { STEPS = 20 }; /* T, SOFT (IJCV) Alg. 2 */

static double soft_time(const sizes *s)
{
    return s->h * ((s->d + 4 * s->m * s->d + s->m * s->m) * s->n + STEPS * pow(s->m, 3) +
                   s->d * s->m * s->m);
}

static double soft_space(const sizes *s)
{
    return s->h * sizeof(float) * ((2 * s->m + s->d) * s->n + s->m * s->m);
}

static double landmark_square(const sizes *s)
{
    return s->h * s->m * s->m;
}

static double all_pairs(const sizes *s)
{
    return s->h * s->n * s->n;
}

static double all_channels(const sizes *s)
{
    return s->h * pow(s->h * s->d, 2);
}

static double head_channels(const sizes *s)
{
    return s->h * s->d * s->d;
}

static double head_tokens(const sizes *s)
{
    return s->h * s->n;
}

static double token_channels(const sizes *s)
{
    return s->n * s->h * s->d;
}

static double nothing(const sizes *s)
{
    return 0;
}

static double tokens_first(const sizes *s)
{
    return s->h * s->d * s->n * s->n;
}

static double channels_first(const sizes *s)
{
    return pow(s->h * s->d, 2) * s->n;
}

static double embedded(const sizes *s)
{
    return s->h * s->d * s->n * s->d;
}

static double flops(const sizes *s, const atn_cost *cost)
{
    return cost->flops;
}

static double exps(const sizes *s, const atn_cost *cost)
{
    return cost->exps;
}

/* The count is that of both passes, with P = K(Q, L) in each; what keeps P evaluates it once. */
static double exps_once(const sizes *s, const atn_cost *cost)
{
    return cost->exps - s->h * s->n * s->m;
}

static double state_bytes(const sizes *s, const atn_cost *cost)
{
    return cost->state_bytes;
}

static double workspace_bytes(const sizes *s, const atn_cost *cost)
{
    return cost->workspace_bytes;
}

typedef struct {
    const char *statement, *source;
    atn_operator op;
    const char *variant, *quantity, *formula;
    double (*printed)(const sizes *);
    double (*counted)(const sizes *, const atn_cost *);
    bool exact;
    bool above_soft; /* subtract the count of soft's variant of that name */
    const char *difference;
} statement_row;

static const char soft_source[] = "SOFT (IJCV) section 3.2";
static const char sima_table1[] = "SimA Tab. 1", sima_table2[] = "SimA Tab. 2";

static const statement_row rows[] = {
    {"S07", soft_source, ATN_SOFT, "paper", "flops", "(d_e + 4 m d_e + m^2) n + T m^3 + d_e m^2",
     soft_time, flops, false, false,
     "orders: 1 for a multiply-add, here 2, and 3 d for a distance; A+ (P V) needs no n m^2; a "
     "step is two products, 4 m^3, and the residual 4 m^3 more"},
    {"S07", soft_source, ATN_SOFT, "paper", "state_bytes", "(2 m + d_e) n + m^2", soft_space,
     state_bytes, false, false,
     "4 bytes an element; P and its transpose need not be kept: formed in blocks, twice, they leave "
     "L, A+ and P V"},
    {"S07", soft_source, ATN_SOFT, "paper", "workspace_bytes", "(2 m + d_e) n + m^2", soft_space,
     workspace_bytes, false, false,
     "4 bytes an element; of P at most 4 MiB and a block, sums of groups of blocks, and all that "
     "backward needs"},
    {"S29", "SOFT (IJCV) section 3.3", ATN_SOFTPP, "paper", "flops", "m^2", landmark_square, flops,
     false, true,
     "the flops of softpp above those of soft: row sums of A, A+ scaled from both "
     "sides"},
    {"M03", "SimA section 2.2", ATN_SIMA, "tokens", "flops", "D N^2", tokens_first, flops, false,
     false, "two products, a multiply-add is 2; norms, 4 N D"},
    {"M03", "SimA section 2.2", ATN_SIMA, "channels", "flops", "D^2 N", channels_first, flops,
     false, false,
     "two products, a multiply-add is 2; norms, 4 N D; a head is D/H wide: D^2 N / H of each"},
    {"M08", sima_table1, ATN_SOFTMAX, "attention", "exps", "H N^2", all_pairs, exps, true, false,
     "none"},
    {"M08", sima_table1, ATN_XCA, "code", "exps", "H D^2", all_channels, exps, false, false,
     "D is the width of a token in the table's words; a head's matrix is D/H x D/H"},
    {"M08", sima_table1, ATN_XCA, "code", "exps", "H D^2, D of a head", head_channels, exps, true,
     false, "none"},
    {"M08", sima_table1, ATN_SIMA, "paper", "exps", "0", nothing, exps, true, false, "none"},
    {"M08", sima_table1, ATN_SOFT, "paper", "exps", "H N^2", all_pairs, exps, false, false,
     "charged with the matrix it replaces: H (2 N m + m^2), P evaluated in both passes"},
    {"M08", sima_table1, ATN_SOFT, "paper", "exps_if_p_is_kept", "H N^2", all_pairs, exps_once,
     false, false, "charged with the matrix it replaces: H (N m + m^2)"},
    {"M08", sima_table2, ATN_LINFORMER, "projected", "exps", "H N", head_tokens, exps, false, false,
     "r keys remain: H N r"},
    {"M08", sima_table2, ATN_NYSTROMFORMER, "original", "exps", "H N", head_tokens, exps, false,
     false, "m keys or queries in each factor: H (2 N m + m^2)"},
    {"M08", sima_table2, ATN_PERFORMER, "favor", "exps", "N D", token_channels, exps, false, false,
     "M features of every query and key: 2 H N M, M = floor(d ln d) of a head's d"},
    {"M08", sima_table2, ATN_EFFICIENT, "paper", "exps", "N D", token_channels, exps, false, false,
     "of Q and of K: 2 N D"},
    {"M08", sima_table2, ATN_COSFORMER, "none", "exps", "0", nothing, exps, true, false, "none"},
    {"U02", "UFO-ViT section 3.1", ATN_XNORM, "paper", "flops", "h N d", embedded, flops, false,
     false,
     "h and d are a head's widths; two products, a multiply-add is 2; norms, 3 d (N + d) a head"},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* The setting of SOFT (IJCV) Fig. 1b; eight times its tokens, with m fixed, and with the stride
 * fixed as in the published code; and all of its channels in one head. */
static const struct {
    int64_t tokens, landmarks, heads;
} settings_of_rows[] = {
    {PAPER_TOKENS, PAPER_LANDMARKS, PAPER_HEADS},
    {PAPER_TOKENS * 8, PAPER_LANDMARKS, PAPER_HEADS},
    {PAPER_TOKENS * 8, PAPER_LANDMARKS * 8, PAPER_HEADS},
    {PAPER_TOKENS, PAPER_LANDMARKS, 1},
};
enum { SETTINGS = sizeof settings_of_rows / sizeof *settings_of_rows };

static int add_row(table *t, const statement_row *row, const cost_setting *s, atn_context *context)
{
    atn_cost cost, soft = {0};
    sizes size = {(double)s->tokens, (double)s->landmarks, (double)s->dim, (double)s->heads};
    int code = cost_count(context, s, &cost);
    if (code == EXIT_PASS && row->above_soft) {
        cost_setting plain = *s;
        plain.op = ATN_SOFT;
        plain.variant = cost_variant(ATN_SOFT, row->variant);
        code = cost_count(context, &plain, &soft);
    }
    if (code != EXIT_PASS)
        return code;
    formula_row r = {.statement = row->statement,
                     .source = row->source,
                     .operator= atn_operator_get(row->op)->name,
                     .variant = row->variant,
                     .quantity = row->quantity,
                     .formula = row->formula,
                     .n = s->tokens,
                     .m = cost_has_landmarks(row->op) ? s->landmarks : 0,
                     .d = s->heads * s->dim,
                     .heads = s->heads,
                     .printed = row->printed(&size),
                     .counted =
                         row->counted(&size, &cost) - row->counted(&size, &soft) * row->above_soft,
                     .exact = row->exact,
                     .difference = row->difference};
    put(t, &r);
    if (!r.exact || r.counted == r.printed)
        return EXIT_PASS;
    report_error("%s: %s of %s: %s is %.17g, counted are %.17g; to see it again: attnum run "
                 "cost/counts",
                 r.statement, r.quantity, r.operator, r.formula, r.printed, r.counted);
    return EXIT_CHECK;
}

static int add_statements(table *t, atn_context *context)
{
    int code = EXIT_PASS;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < SETTINGS; j++) {
            cost_setting s = {.op = rows[i].op,
                              .variant = cost_variant(rows[i].op, rows[i].variant),
                              .tokens = settings_of_rows[j].tokens,
                              .heads = settings_of_rows[j].heads,
                              .dim = HEAD_DIM * PAPER_HEADS / settings_of_rows[j].heads,
                              .landmarks = settings_of_rows[j].landmarks};
            if (s.landmarks == PAPER_LANDMARKS || cost_has_landmarks(s.op))
                code = exit_worst(code, add_row(t, &rows[i], &s, context));
        }
    return code;
}

/* ---- M03: where SimA's orders of products cross ---- */

/* The least n for which K^T V first takes no more flops than Q K^T first. */
static int find_crossover(atn_context *context, cost_setting s, int64_t *crossover)
{
    int tokens = cost_variant(ATN_SIMA, "tokens"), channels = cost_variant(ATN_SIMA, "channels");
    for (s.tokens = 1;; s.tokens++) {
        atn_cost first, second;
        s.variant = tokens;
        int code = cost_count(context, &s, &first);
        s.variant = channels;
        code = exit_worst(code, cost_count(context, &s, &second));
        if (code != EXIT_PASS)
            return code;
        if (second.flops <= first.flops)
            break;
    }
    *crossover = s.tokens;
    return EXIT_PASS;
}

static int add_crossover(table *t, atn_context *context, int64_t heads)
{
    cost_setting s = {.op = ATN_SIMA, .heads = heads, .dim = HEAD_DIM * PAPER_HEADS / heads};
    int64_t crossover = 0;
    int code = find_crossover(context, s, &crossover);
    if (code != EXIT_PASS)
        return code;
    put(t, &(formula_row){"M03", "SimA section 2.2", "sima", "paper", "crossover_n", "N = D",
                          .n = crossover, .d = heads * s.dim, .heads = heads,
                          .printed = (double)(heads * s.dim), .counted = (double)crossover,
                          .difference =
                              heads == 1 ? "none" : "each head has its own product: N = D/H"});
    return EXIT_PASS;
}

/* ---- N04: SOFT-Tiny ---- */

/* Stage 4 is left out: its attention is softmax in the published code, without m. So is the cost of
 * sampling, which hardly depends on m. */
static const struct {
    int64_t tokens, heads;
} stages[] = {{56 * 56, 2}, {28 * 28, 4}, {14 * 14, 10}};
enum { STAGES = sizeof stages / sizeof *stages };

/* Both papers print the same memory and FLOPs, though Tiny has different depths in them. */
static const struct {
    const char *source;
    int64_t layers[STAGES];
} tinies[] = {{"NeurIPS Tab. 4a", {1, 2, 3}}, {"SOFT (IJCV) Tab. 9", {2, 2, 5}}};
enum { TINIES = sizeof tinies / sizeof *tinies };

/* As printed, with one decimal of 10^9. */
static const struct {
    int64_t landmarks;
    double bytes, multiply_adds;
} table9[] = {{36, 15.1e9, 1.9e9}, {49, 15.8e9, 1.9e9}, {64, 16.9e9, 2.0e9}, {81, 18.5e9, 2.1e9}};
enum { TABLE9 = sizeof table9 / sizeof *table9, TABLE9_BATCH = 128 };

/* Counts of the attention in stages 1 to 3. */
typedef struct {
    double flops, flops_of_steps, state_bytes, array_bytes;
} attention_count;

static int count_network(atn_context *context, const int64_t *depths, int64_t landmarks,
                         attention_count *total)
{
    double m = (double)landmarks;
    *total = (attention_count){0};
    for (int i = 0; i < STAGES; i++) {
        cost_setting s = {.op = ATN_SOFT,
                          .variant = cost_variant(ATN_SOFT, "paper"),
                          .tokens = stages[i].tokens,
                          .heads = stages[i].heads,
                          .dim = HEAD_DIM,
                          .landmarks = landmarks,
                          .as_they_are = true};
        atn_cost cost;
        int code = cost_count(context, &s, &cost);
        if (code != EXIT_PASS)
            return code;
        double layers = (double)depths[i], heads = layers * (double)stages[i].heads;
        /* without the residual of A+, which only the library computes */
        total->flops += layers * cost.flops - heads * 4 * pow(m, 3);
        total->flops_of_steps += heads * STEPS * 4 * pow(m, 3);
        total->state_bytes += layers * cost.state_bytes;
        total->array_bytes += heads * sizeof(float) * (2 * (double)stages[i].tokens * m + m * m);
    }
    return EXIT_PASS;
}

static void add_network(table *t, const char *source, int64_t landmarks, const char *quantity,
                        const char *formula, double printed, double counted, const char *difference)
{
    put(t, &(formula_row){"N04", source, "soft", "paper", quantity, formula, .m = landmarks,
                          .printed = printed, .counted = counted, .difference = difference});
}

static void add_growth(table *t, const char *source, int row, const attention_count *less,
                       const attention_count *more)
{
    int64_t m = table9[row].landmarks;
    double printed = table9[row].multiply_adds - table9[0].multiply_adds;
    double counted = (more->flops - less->flops) / 2;
    double steps = (more->flops_of_steps - less->flops_of_steps) / 2;
    double bytes = table9[row].bytes - table9[0].bytes;
    add_network(t, source, m, "multiply_adds_growth", "FLOPs - FLOPs at m = 36", printed, counted,
                "what is the same for every m cancels out; the printed difference is +-0.1e9 by "
                "rounding; 2 flops a multiply-add");
    add_network(t, source, m, "multiply_adds_growth_without_steps", "FLOPs - FLOPs at m = 36",
                printed, counted - steps,
                "the same without the 20 Newton-Raphson steps: the printed growth has no room for "
                "them");
    add_network(t, source, m, "training_bytes_growth", "Memory - Memory at m = 36", bytes,
                TABLE9_BATCH * (more->array_bytes - less->array_bytes),
                "P, its transpose and A of every layer for a batch of 128; a framework also keeps "
                "what its backward needs of distances and exponents");
    add_network(t, source, m, "state_bytes_growth", "Memory - Memory at m = 36", bytes,
                TABLE9_BATCH * (more->state_bytes - less->state_bytes),
                "L, A+ and P V of every layer, all that streaming keeps");
}

static int add_networks(table *t, atn_context *context)
{
    attention_count counts[TABLE9];
    for (int n = 0; n < TINIES; n++)
        for (int i = 0; i < TABLE9; i++) {
            int code = count_network(context, tinies[n].layers, table9[i].landmarks, &counts[i]);
            if (code != EXIT_PASS)
                return code;
            add_network(
                t, tinies[n].source, table9[i].landmarks, "multiply_adds", "FLOPs",
                table9[i].multiply_adds, counts[i].flops / 2,
                "the whole network against the attention of stages 1 to 3: no ratio to expect");
            if (i > 0)
                add_growth(t, tinies[n].source, i, &counts[0], &counts[i]);
        }
    return EXIT_PASS;
}

int formulas_evaluate(table *t)
{
    atn_context *context;
    atn_context_options options = {.threads = 1};
    atn_status status = atn_context_create(&options, &context);
    if (status != ATN_OK) {
        report_error("no context: %s", atn_status_message(status));
        return EXIT_ENVIRONMENT;
    }
    int code = add_statements(t, context);
    code = exit_worst(code, add_crossover(t, context, PAPER_HEADS));
    code = exit_worst(code, add_crossover(t, context, 1));
    code = exit_worst(code, add_networks(t, context));
    atn_context_free(context);
    return code;
}

void formulas_print(const table *t)
{
    enum { SHOWN = 9 };
    static const char *const names[SHOWN] = {"statement", "operator", "quantity", "n",    "m",
                                             "heads",     "printed",  "counted",  "ratio"};
    table_print_columns(t, names, SHOWN, table_rows(t), report_stream());
}
