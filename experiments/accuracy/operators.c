/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operator and variant, in every type, against its dense long double reference.
 *
 * A point is one variant on one input; it gives a row per type. One head with Q = K = V: the
 * input's tokens. f32 and f64 get the same numbers, rounded to f32, and share one reference; each
 * narrow type gets numbers rounded to it, with their own reference. */
#include "accuracy/operators.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attention.h>
#include <data.h>

#include "common/experiment.h"
#include "common/landmarks.h"
#include "common/report.h"
#include "common/staging.h"
#include "registry.h"

/* ---- Columns ---- */

#define ROW(X)                                                                                     \
    X(TEXT, operator, "", "its name in the registry", info->name)                                  \
    X(TEXT, variant, "", "its name in the registry", info->variants[p->variant].name)              \
    X(TEXT, dtype, "",                                                                             \
      "f32, f64: the arithmetic; bf16, f16, tf32: f32 with every array that such an "              \
      "implementation would store rounded to it",                                                  \
      dtype)                                                                                       \
    X(INTEGER, n, "", "number of tokens, queries and keys", p->n)                                  \
    X(INTEGER_IF, m, "",                                                                           \
      "landmarks; linformer: rows of E; missing for operators without such a number", p->m > 0,    \
      p->m)                                                                                        \
    X(INTEGER, d, "", "width of queries, keys and values", input_dim(p->in))                       \
    X(TEXT, input, "", "where the tokens come from: Q = K = V", input_name(p->in))                 \
    X(REAL_IF, ratio, "",                                                                          \
      "relative_error / (kappa rounding); missing where kappa rounding > 0.1 or there is no "      \
      "reference",                                                                                 \
      !isnan(a->ratio), a->ratio)                                                                  \
    X(REAL_IF, digits, "",                                                                         \
      "-log10 of relative_error, within 0 .. 15.95; missing where there is no reference",          \
      a->measured, a->digits)                                                                      \
    X(TEXT, verdict, "",                                                                           \
      "on the ratio, by the forward rule of the ruler: pass below 10, marginal below 30, FAIL, "   \
      "or skipped for a reason",                                                                   \
      ref_verdict_name(a->verdict))                                                                \
    X(REAL, kappa, "",                                                                             \
      "1 + the relative change of the reference under random relative changes of tokens and "      \
      "parameters, per unit of change; soft, softpp, nystromformer/pinv: or what the inverse "     \
      "makes of rounding, if that is more",                                                        \
      kappa)                                                                                       \
    X(REAL_IF, relative_error, "",                                                                 \
      "|Y - reference|_F / |reference|_F; missing where there is no reference", a->measured,       \
      a->relative_error)                                                                           \
    X(REAL, rounding, "",                                                                          \
      "N u, N the largest number of terms in a sum, u the roundoff of f32 or f64; and the "        \
      "roundoff of the narrow type once more",                                                     \
      a->rounding)                                                                                 \
    X(TEXT, outcome, "", "the status that the library returned", atn_status_name(status))          \
    X(TEXT_IF, reason, "",                                                                         \
      "of a skipped row: ill-conditioned (kappa rounding > 0.1), trivial (zeros or a mean row "    \
      "would not have failed either), undefined (0/0, and the library says so), singular (no "     \
      "reference), range (tokens are infinite or 0 in the type, in f64 after rounding to f32, "    \
      "and have an answer as they are); of a FAIL: missed (0/0 not noticed)",                      \
      *a->reason, a->reason)                                                                       \
    X(INTEGER, sample, "", "which sample of the input, from 0", p->sample)                         \
    X(INTEGER, seed, "", "the seed of the input and of the parameters", (int64_t)p->seed)
const column accuracy_columns[ACCURACY_COLUMNS] = {ROW(LIST_COLUMN)};
static const output_spec outputs[] = {
    {"operators", "The error of every operator, in units of what rounding explains.",
     accuracy_columns, ACCURACY_COLUMNS}};

/* ---- Judging ---- */

static const char reason_range[] = "range";

double accuracy_rounding(const attention_case *c, atn_dtype dtype)
{
    return (double)attention_case_terms(c) * atn_dtype_roundoff(dtype) +
           atn_storage_roundoff(c->choice.storage);
}

/* Where the reference has no value, only that the library reports it is judged. */
static void judge_without_reference(atn_status status, atn_status reference, accuracy *a)
{
    bool noticed = status == ATN_NONFINITE;
    a->ratio = NAN;
    a->fault = reference != ATN_SINGULAR && !noticed;
    a->verdict = a->fault ? REF_FAIL : REF_SKIPPED;
    a->reason = reference == ATN_SINGULAR ? "singular" : noticed ? "undefined" : "missed";
}

static void judge_difference(const attention_case *c, const ref_difference *difference,
                             const double *want, double kappa, accuracy *a)
{
    const ref_difference none = {0};
    bool trivial;
    a->measured = true;
    a->relative_error = difference->relative_frobenius;
    a->digits = difference->digits;
    a->verdict = ref_judge_head(c, 0, difference, want, kappa, a->rounding, &a->ratio, &trivial);
    /* NaN FAILs for any kappa, unless the reference itself would be skipped */
    a->fault = a->verdict == REF_FAIL &&
               ref_judge_forward(&none, kappa, 1, a->rounding, NULL) != REF_SKIPPED;
    if (a->verdict == REF_SKIPPED)
        a->reason = "ill-conditioned";
    if (trivial) {
        a->verdict = REF_SKIPPED;
        a->reason = "trivial";
    }
}

accuracy accuracy_judge(const attention_case *c, atn_dtype dtype, const void *out,
                        atn_status status, const double *want, atn_status reference, double kappa)
{
    int64_t rows = c->shape.tokens, cols = c->shape.value_dim;
    accuracy a = {.reason = "", .rounding = accuracy_rounding(c, dtype)};
    ref_difference difference = dtype == ATN_F32
                                    ? ref_compare_f32(rows, cols, out, cols, want, cols)
                                    : ref_compare_f64(rows, cols, out, cols, want, cols);
    if (reference == ATN_OK)
        judge_difference(c, &difference, want, kappa, &a);
    else
        judge_without_reference(status, reference, &a);
    return a;
}

/* ---- Points ---- */

enum { FEATURES = 64, ROUNDS = 4, BUCKETS = 16, MOST_CHUNK = 64 };

typedef struct {
    const input *in;
    const char *text; /* the input as named on the command line */
    atn_operator op;
    int variant;
    int64_t n, m; /* landmarks; 0 where the operator has none */
    int64_t sample;
    uint64_t seed;
} accuracy_point;

typedef struct {
    const program_options *s;
    input_set inputs;
    accuracy_point *points;
    int64_t count, capacity;
} accuracy_sweep;

#define UNTRAINED_INPUTS                                                                           \
    "photos", "smooth", "smooth:8", "noisy", "iid", "iid:0.3", "clusters", "constant",             \
        "circulant", "duplicates"
static const char *const untrained_inputs[] = {UNTRAINED_INPUTS, NULL};
static const char *const usual_inputs[] = {UNTRAINED_INPUTS, "trained:soft", "trained:sima", NULL};
static const char *const few_inputs[] = {"photos", "iid", NULL};

/* The defaults of an effort: landmarks, and numbers of tokens (ended by 0), each with the inputs
 * that are run with this number; the first has all. */
static const struct {
    int64_t m;
    struct usual_tokens {
        int64_t n;
        const char *const *inputs;
    } tokens[4];
} usual[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {16, {{64, untrained_inputs}}},
    [EFFORT_DEFAULT] = {49, {{196, usual_inputs}, {784, few_inputs}}},
    [EFFORT_FULL] = {49, {{196, usual_inputs}, {784, usual_inputs}, {3136, untrained_inputs}}},
};

int64_t accuracy_chunk(int64_t n)
{
    int64_t chunk = n / 4 < MOST_CHUNK ? n / 4 : MOST_CHUNK;
    while (chunk > 1 && n % chunk != 0)
        chunk--;
    return chunk > 1 ? chunk : 1;
}

static int64_t root_of(int64_t n)
{
    return (int64_t)llround(sqrt((double)n));
}

static bool is_square(int64_t n)
{
    return root_of(n) * root_of(n) == n;
}

static attention_choice choice_of(const accuracy_point *p, atn_storage storage)
{
    int64_t d = input_dim(p->in);
    return (attention_choice){.op = p->op,
                              .variant = p->variant,
                              .dtype = ATN_F32,
                              .shape = {1, 1, p->n, d, d, 0},
                              .sampling = is_square(p->n) ? ATN_SAMPLING_POOL : ATN_SAMPLING_WINDOW,
                              .seed = p->seed,
                              .storage = storage,
                              .bare = true,
                              .landmarks = p->m,
                              .features = FEATURES,
                              .chunk = accuracy_chunk(p->n),
                              .rounds = ROUNDS,
                              .buckets = BUCKETS};
}

/* The number of landmarks that an operator has if p->m are requested; 0: it has none. */
static int64_t landmarks_of(const accuracy_point *p)
{
    attention_choice choice = choice_of(p, ATN_STORAGE_NATIVE);
    attention_case c = attention_case_make(&choice);
    const atn_sampling *sampling = &c.reference.sampling;
    int64_t k = sampling->stride, m = 0;
    if (p->op == ATN_SOFT || p->op == ATN_SOFTPP)
        m = sampling->kind == ATN_SAMPLING_POOL ? sampling->height / k * (sampling->width / k)
                                                : (p->n + k - 1) / k;
    else if (p->op == ATN_NYSTROMFORMER)
        m = c.reference.nystromformer.landmarks;
    else if (p->op == ATN_LINFORMER)
        m = c.reference.linformer.e.cols;
    attention_case_free(&c);
    return m;
}

/* EXIT_USAGE, reported, if --m has a number of landmarks, `wanted`, that the operator cannot have.
 */
static int check_asked(const program_options *s, const accuracy_point *p, int64_t wanted)
{
    bool averages = p->op == ATN_SOFT || p->op == ATN_SOFTPP, windows = !is_square(p->n);
    token_grid grid = {.height = windows ? p->n : root_of(p->n),
                       .width = windows ? 1 : root_of(p->n),
                       .windows = windows};
    if (s->landmarks.count == 0 || p->m == 0 || p->m == wanted)
        return EXIT_PASS;
    return check_landmarks(s, p->in, wanted, averages ? choose_stride(&grid, wanted) : p->m);
}

static void add_point(accuracy_sweep *w, const accuracy_point *point)
{
    if (w->count == w->capacity) {
        w->capacity = w->capacity ? 2 * w->capacity : 256;
        w->points = must_resize(w->points, (size_t)w->capacity, sizeof *w->points);
    }
    w->points[w->count++] = *point;
}

/* The points of a variant on n tokens of an input: each number of landmarks, seed and sample.
 * Returns an exit code. */
static int add_points(accuracy_sweep *w, accuracy_point point)
{
    const program_options *s = w->s;
    int64_t samples = s->samples > 0 ? s->samples : 1;
    int numbers = s->landmarks.count > 0 ? s->landmarks.count : 1;
    for (int i = 0; i < numbers; i++) {
        int64_t wanted = s->landmarks.count > 0 ? s->landmarks.items[i] : usual[s->effort].m;
        point.m = wanted;
        point.m = landmarks_of(&point);
        if (point.m == 0 && i > 0) /* an operator without landmarks */
            break;
        if (s->landmarks.count > 0 && point.m > 0 && is_left_out(s, point.in, point.m == wanted))
            continue;
        if (check_asked(s, &point, wanted) != EXIT_PASS)
            return EXIT_USAGE;
        for (int j = 0; j < s->seeds.count; j++) {
            point.seed = (uint64_t)s->seeds.items[j];
            if (input_is_file(point.in) && j > 0)
                continue; /* a file is the same under all seeds */
            for (point.sample = 0; point.sample < samples; point.sample++)
                add_point(w, &point);
        }
    }
    return EXIT_PASS;
}

/* Whether an input is run with a default number of tokens: always if --input is given. */
static bool is_usual(const program_options *s, const struct usual_tokens *tokens, const char *name)
{
    bool found = s->inputs.count > 0;
    for (int i = 0; tokens->inputs[i]; i++)
        found |= strcmp(tokens->inputs[i], name) == 0;
    return found;
}

static int add_input_points(accuracy_sweep *w, accuracy_point point)
{
    const program_options *s = w->s;
    int code = EXIT_PASS;
    if (input_is_file(point.in)) {
        int64_t matrices, other;
        input_file_shape(point.in, &matrices, &point.n, &other, &other, &other);
        return add_points(w, point);
    }
    for (int i = 0; i < s->tokens.count && code == EXIT_PASS; i++) {
        point.n = s->tokens.items[i];
        if (!is_left_out(s, point.in, input_has_side(point.in, root_of(point.n))))
            code = add_points(w, point);
    }
    const struct usual_tokens *tokens = usual[s->effort].tokens;
    int64_t before = 0;
    for (int i = 0; s->tokens.count == 0 && tokens[i].n && code == EXIT_PASS; i++) {
        int64_t side = nearest_side(point.in, root_of(tokens[i].n));
        point.n = side * side;
        if (is_usual(s, &tokens[i], point.text) && side != before)
            code = add_points(w, point);
        before = side;
    }
    return code;
}

/* Adds the points of a variant. */
static int add_variant(accuracy_sweep *w, accuracy_point point)
{
    const char *const *names =
        w->s->inputs.count > 0 ? w->s->inputs.items : usual[w->s->effort].tokens->inputs;
    int code = EXIT_PASS;
    for (int i = 0; i < w->inputs.count && code == EXIT_PASS; i++) {
        point.in = w->inputs.items[i];
        point.text = names[i];
        code = add_input_points(w, point);
    }
    return code;
}

/* Adds all points, in the registry's order. */
static int add_all(accuracy_sweep *w)
{
    int code = EXIT_PASS;
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int i = 0; i < info->variant_count && code == EXIT_PASS; i++)
            if (options_include_variant(w->s, info, i))
                code = add_variant(w, (accuracy_point){.op = (atn_operator)op, .variant = i});
    }
    return code;
}

static int check_types(const program_options *s)
{
    bool native = s->storage_count == 0;
    for (int i = 0; i < s->storage_count; i++)
        native |= s->storages[i] == ATN_STORAGE_NATIVE;
    if (native || !s->dtypes_given)
        return EXIT_PASS;
    report_error("--dtype %s: --storage %s has f32 arithmetic; expected --storage native, too",
                 atn_dtype_name(s->dtypes[0]), atn_storage_name(s->storages[0]));
    return EXIT_USAGE;
}

static int check_numbers(const accuracy_sweep *w)
{
    const program_options *s = w->s;
    for (int i = 0; i < s->tokens.count; i++)
        if (!is_square(s->tokens.items[i]) || s->tokens.items[i] < 4) {
            report_error("--n %" PRId64
                         ": expected a square number, at least 4: tokens are placed on a "
                         "square grid",
                         s->tokens.items[i]);
            return EXIT_USAGE;
        }
    int code = EXIT_PASS;
    for (int i = 0; i < w->inputs.count && code == EXIT_PASS; i++) {
        code = check_samples(s, w->inputs.items[i]);
        for (int j = 0; s->inputs.count > 0 && j < s->tokens.count && code == EXIT_PASS; j++)
            code = check_side(w->inputs.items[i], root_of(s->tokens.items[j]));
    }
    return code;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    accuracy_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    w->s = s;
    int code = check_types(s);
    if (code == EXIT_PASS)
        code = input_set_open(s, usual[s->effort].tokens->inputs, &w->inputs);
    if (code == EXIT_PASS)
        code = check_numbers(w);
    if (code == EXIT_PASS)
        code = add_all(w);
    *points = w->count;
    return code;
}

static void release(void *state)
{
    accuracy_sweep *w = state;
    input_set_free(&w->inputs);
    free(w->points);
    free(w);
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const accuracy_point *p = &((const accuracy_sweep *)state)->points[point];
    const atn_operator_info *info = atn_operator_get(p->op);
    snprintf(buffer, size, "%s/%s %s n=%" PRId64 " m=%" PRId64 " sample=%" PRId64 " seed=%" PRIu64,
             info->name, info->variants[p->variant].name, input_name(p->in), p->n, p->m, p->sample,
             p->seed);
}

static double weight(const void *state, int64_t point)
{
    double n = (double)((const accuracy_sweep *)state)->points[point].n;
    return n * n;
}

static bool input_at(const void *state, int index, const char **name, const char **sha256)
{
    return input_set_describe(&((const accuracy_sweep *)state)->inputs, index, name, sha256);
}

static void replay(const void *state, int64_t point, options_point *options)
{
    const accuracy_point *p = &((const accuracy_sweep *)state)->points[point];
    *options = (options_point){.input = p->text,
                               .seed = (int64_t)p->seed,
                               .samples = p->sample + 1,
                               .landmarks = p->m,
                               .tokens = input_is_file(p->in) ? 0 : p->n,
                               .operator= atn_operator_get(p->op),
                               .variant = p->variant};
}

/* ---- A point ---- */

/* A variant on numbers rounded to one type, and the exact output. */
typedef struct {
    attention_case c;
    double *tokens, *want;
    int64_t *buckets; /* lsh */
    atn_status reference;
    bool out_of_range; /* it has no value, or is 0, because tokens are infinite or 0 in the type */
} accuracy_trial;

/* Q = K = V = the tokens, rounded. */
static void load_tokens(accuracy_trial *t, const double *tokens)
{
    attention_case *c = &t->c;
    int64_t count = attention_case_queries(c);
    t->tokens = must_allocate((size_t)count, sizeof *t->tokens);
    for (int64_t i = 0; i < count; i++) {
        float value = (float)tokens[i];
        atn_storage_round(c->choice.storage, 1, &value);
        t->tokens[i] = (double)value;
    }
    c->q = c->v = t->tokens;
}

/* Whether rounding made a finite token infinite or one that is not 0 zero, and with it took the
 * answer away: the tokens as they are have one, or all are 0 now. */
static bool leaves_range(const accuracy_trial *t, const double *tokens)
{
    int64_t count = attention_case_queries(&t->c), lost = 0, zero = 0;
    for (int64_t i = 0; i < count; i++) {
        zero += t->tokens[i] == 0;
        lost += (isfinite(tokens[i]) && !isfinite(t->tokens[i])) ||
                (tokens[i] != 0 && t->tokens[i] == 0);
    }
    if (lost == 0 || (t->reference == ATN_OK && zero < count))
        return false;
    ref_attention_problem problem = attention_case_problem(&t->c);
    problem.q = problem.v = tokens;
    double *want = must_allocate((size_t)attention_case_outputs(&t->c), sizeof *want);
    bool defined = ref_attention(&problem, want) == ATN_OK;
    free(want);
    return defined;
}

/* The buckets are given, computed by the reference's hash: near a border between two of them
 * rounding may move a token, which is not a question of accuracy. */
static void hash_tokens(accuracy_trial *t)
{
    attention_case *c = &t->c;
    ref_attention_problem problem = attention_case_problem(c);
    t->buckets = must_allocate((size_t)(c->shape.tokens * ROUNDS), sizeof *t->buckets);
    ref_lsh_buckets(&problem, t->buckets, NULL);
    c->reference.lsh.buckets = c->desc.lsh.buckets = t->buckets;
    c->reference.lsh.rounds = c->desc.lsh.rounds = ROUNDS;
}

/* Returns an exit code; the trial must be freed in any case. */
static int make_trial(const accuracy_point *p, atn_storage storage, const double *tokens,
                      accuracy_trial *t)
{
    attention_choice choice = choice_of(p, storage);
    *t = (accuracy_trial){.c = attention_case_make(&choice)};
    load_tokens(t, tokens);
    if (p->op == ATN_LSH)
        hash_tokens(t);
    t->want = must_allocate((size_t)attention_case_outputs(&t->c), sizeof *t->want);
    ref_attention_problem problem = attention_case_problem(&t->c);
    t->reference = ref_attention(&problem, t->want);
    t->out_of_range = leaves_range(t, tokens);
    if (t->reference >= 0)
        return EXIT_PASS;
    report_error("%s: the reference: %s", atn_operator_get(p->op)->name,
                 atn_status_message(t->reference));
    return EXIT_ENVIRONMENT;
}

static void free_trial(accuracy_trial *t)
{
    free(t->want);
    free(t->buckets);
    free(t->tokens);
    attention_case_free(&t->c);
}

/* The library's output, to be freed. Returns an exit code. */
static int forward(const accuracy_trial *t, atn_dtype dtype, atn_context *context, void **out,
                   atn_status *status)
{
    const attention_case *c = &t->c;
    int64_t n = c->shape.tokens, d = c->shape.dim;
    atn_attention_desc desc = dtype == ATN_F32 ? c->desc : c->reference;
    desc.dtype = dtype;
    double *wide = must_allocate((size_t)(n * d), sizeof *wide);
    float *narrow = (float *)(void *)wide;
    for (int64_t i = 0; i < n * d; i++)
        if (dtype == ATN_F32)
            narrow[i] = (float)c->q[i];
        else
            wide[i] = c->q[i];
    *out = must_allocate((size_t)(n * d), sizeof *wide);
    atn_tensor tokens = atn_tensor_dense(wide, dtype, 1, 1, n, d);
    atn_tensor y = atn_tensor_dense(*out, dtype, 1, 1, n, d);
    atn_attention_inputs inputs = {.q = &tokens, .v = &tokens};
    *status = staged_forward(context, &desc, &c->shape, &inputs, &y, NULL);
    free(wide);
    return check_status(context, *status, atn_operator_get(c->choice.op)->name);
}

static void put_row(table *to, const accuracy_point *p, const char *dtype, double kappa,
                    atn_status status, const accuracy *a)
{
    const atn_operator_info *info = atn_operator_get(p->op);
    ROW(LIST_PUT)
}

/* One row. Only f32 and f64 can fail the run: the effect of a narrow type on a published choice is
 * a result. */
static int run_dtype(const accuracy_point *p, const accuracy_trial *t, atn_dtype dtype,
                     double kappa, atn_context *context, table *raw)
{
    const atn_operator_info *info = atn_operator_get(p->op);
    atn_storage storage = t->c.choice.storage;
    bool native = storage == ATN_STORAGE_NATIVE;
    const char *name = native ? atn_dtype_name(dtype) : atn_storage_name(storage);
    atn_status status;
    void *out;
    int code = forward(t, dtype, context, &out, &status);
    if (code == EXIT_PASS) {
        accuracy a = accuracy_judge(&t->c, dtype, out, status, t->want, t->reference, kappa);
        if (a.verdict == REF_SKIPPED && t->out_of_range)
            a.reason = reason_range;
        put_row(raw, p, name, kappa, status, &a);
        if (native && a.fault) {
            report_error("%s/%s %s: relative error %.3g, %.3g times what rounding explains%s%s",
                         info->name, info->variants[p->variant].name, name, a.relative_error,
                         a.ratio, *a.reason ? "; " : "", a.reason);
            code = EXIT_CHECK;
        }
    }
    free(out);
    return code;
}

/* Adds the rows of one storage, if wanted. kappa is computed for native storage, whose numbers are
 * f32's, and is used for all others. */
static int run_storage(const accuracy_sweep *w, const accuracy_point *p, atn_storage storage,
                       bool wanted, const double *tokens, double *kappa, atn_context *context,
                       table *raw)
{
    accuracy_trial t;
    int code = make_trial(p, storage, tokens, &t);
    bool native = storage == ATN_STORAGE_NATIVE;
    if (code == EXIT_PASS && native)
        ref_attention_conditions(&t.c, t.want, 1, kappa);
    for (int i = 0; wanted && i < (native ? w->s->dtype_count : 1); i++)
        if (code == EXIT_PASS || code == EXIT_CHECK)
            code = exit_worst(
                code, run_dtype(p, &t, native ? w->s->dtypes[i] : ATN_F32, *kappa, context, raw));
    free_trial(&t);
    return code;
}

static int make_tokens(const accuracy_point *p, double **tokens)
{
    enum { CROP = 224, LEAST_PATCH = 4 }; /* of a photograph, in pixels */
    int64_t side = root_of(p->n), patch = CROP / side > LEAST_PATCH ? CROP / side : LEAST_PATCH;
    bool file = input_is_file(p->in);
    *tokens = must_allocate((size_t)p->n, (size_t)input_dim(p->in) * sizeof **tokens);
    return input_tokens(p->in, file ? p->n : side, file ? 1 : side, patch, p->seed, p->sample,
                        *tokens);
}

/* Whether no row from `first` on has a verdict. */
static bool all_skipped(const table *raw, int64_t first)
{
    const char *skipped = ref_verdict_name(REF_SKIPPED);
    while (first < table_rows(raw) && cell_is(raw, first, "verdict", skipped))
        first++;
    return first == table_rows(raw);
}

static const atn_storage usual_storages[] = {ATN_STORAGE_NATIVE, ATN_STORAGE_BF16, ATN_STORAGE_F16};

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const accuracy_sweep *w = state;
    const program_options *s = w->s;
    const accuracy_point *p = &w->points[point];
    bool given = s->storage_count > 0, wanted = !given;
    const atn_storage *storages = given ? s->storages : usual_storages;
    int count = given ? s->storage_count : (int)(sizeof usual_storages / sizeof *usual_storages);
    int64_t first = table_rows(raw);
    double *tokens, kappa = NAN;
    for (int i = 0; i < count; i++)
        wanted |= storages[i] == ATN_STORAGE_NATIVE;
    int code = make_tokens(p, &tokens);
    if (code == EXIT_PASS)
        code = run_storage(w, p, ATN_STORAGE_NATIVE, wanted, tokens, &kappa, context, raw);
    for (int i = 0; i < count && (code == EXIT_PASS || code == EXIT_CHECK); i++)
        if (storages[i] != ATN_STORAGE_NATIVE)
            code = exit_worst(code,
                              run_storage(w, p, storages[i], true, tokens, &kappa, context, raw));
    free(tokens);
    return code == EXIT_PASS && all_skipped(raw, first) ? EXIT_SKIPPED : code;
}

/* ---- Printed summary ---- */

/* The verdicts on a variant in one type. */
typedef struct {
    int count[REF_SKIPPED + 1];
    double worst, fewest;
} tally;

static void count_row(const table *raw, int64_t row, tally *t)
{
    const char *verdict = cell_text(raw, row, "verdict");
    int i = 0;
    while (strcmp(verdict, ref_verdict_name((ref_verdict)i)) != 0)
        i++;
    if (i != REF_SKIPPED) {
        t->worst = fmax(t->worst, cell_real(raw, row, "ratio"));
        t->fewest = fmin(t->fewest, cell_real(raw, row, "digits"));
    }
    t->count[i]++;
}

/* Writes counts such as "10p 2m 1F 3s". */
static void put_counts(table *to, const tally *t)
{
    char text[64] = "";
    for (int i = 0; i <= REF_SKIPPED; i++)
        if (t->count[i])
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d%c", *text ? " " : "",
                     t->count[i], ref_verdict_name((ref_verdict)i)[0]);
    table_text(to, text);
}

enum { MOST_DTYPES = ATN_DTYPE_COUNT + ATN_STORAGE_COUNT };

/* The types of the rows, in their order. */
static int list_dtypes(const table *raw, const char *dtypes[MOST_DTYPES])
{
    int count = 0, col = table_column(raw, "dtype");
    for (int64_t row = 0; row < table_rows(raw); row++) {
        const char *dtype = table_get_text(raw, row, col);
        int i = 0;
        while (i < count && strcmp(dtypes[i], dtype) != 0)
            i++;
        if (i == count)
            dtypes[count++] = dtype;
    }
    return count;
}

/* The line of the variant whose rows start at *row; moves *row past them. */
static void put_variant(const table *raw, int64_t *row, int count, const char *const *dtypes,
                        table *to)
{
    int op = table_column(raw, "operator"), variant = table_column(raw, "variant");
    int dtype = table_column(raw, "dtype");
    tally tallies[MOST_DTYPES];
    for (int i = 0; i < count; i++)
        tallies[i] = (tally){.fewest = INFINITY};
    int64_t first = *row;
    for (; *row < table_rows(raw) &&
           strcmp(table_get_text(raw, *row, op), table_get_text(raw, first, op)) == 0 &&
           strcmp(table_get_text(raw, *row, variant), table_get_text(raw, first, variant)) == 0;
         ++*row)
        for (int i = 0; i < count; i++)
            if (strcmp(table_get_text(raw, *row, dtype), dtypes[i]) == 0)
                count_row(raw, *row, &tallies[i]);
    table_text(to, table_get_text(raw, first, op));
    table_text(to, table_get_text(raw, first, variant));
    for (int i = 0; i < count; i++) {
        bool judged = tallies[i].fewest < INFINITY;
        table_real_if(to, judged, tallies[i].worst);
        table_real_if(to, judged, tallies[i].fewest);
        put_counts(to, &tallies[i]);
    }
}

/* A line per variant, the types side by side. */
static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    enum { SHARED = 2, EACH = 3 };
    static const column each[EACH] = {
        {"ratio", COLUMN_REAL, "", ""}, {"digits", COLUMN_REAL, "", ""}, {"", COLUMN_TEXT, "", ""}};
    const char *dtypes[MOST_DTYPES];
    char names[MOST_DTYPES * EACH][32];
    column shown[SHARED + MOST_DTYPES * EACH] = {{"operator", COLUMN_TEXT, "", ""},
                                                 {"variant", COLUMN_TEXT, "", ""}};
    int count = list_dtypes(raw, dtypes);
    for (int i = 0; i < EACH * count; i++) {
        snprintf(names[i], sizeof names[i], "%s %s", dtypes[i / EACH], each[i % EACH].name);
        shown[SHARED + i] = (column){names[i], each[i % EACH].type, "", ""};
    }
    table *t = table_create(shown, SHARED + EACH * count);
    for (int64_t row = 0; row < table_rows(raw);)
        put_variant(raw, &row, count, dtypes, t);
    table_print(t, table_rows(t), report_stream());
    report_text(
        "ratio: the worst of the rows judged, 1 is what rounding explains; digits: the fewest; "
        "then how many p(ass), are m(arginal), F(AIL),\nor are s(kipped). Only a FAIL of f32 or "
        "f64 fails the run.\n");
    int64_t out_of_range = 0;
    for (int64_t row = 0; row < table_rows(raw); row++)
        out_of_range += cell_is(raw, row, "reason", reason_range);
    if (out_of_range > 0)
        report_text("range: %" PRId64 " of them because tokens are infinite or 0 in the type, and "
                    "not as they are; f64 gets f32's.\n",
                    out_of_range);
    table_free(t);
    return all_skipped(raw, 0) ? EXIT_SKIPPED : EXIT_PASS;
}

const experiment accuracy_operators = {
    .name = "accuracy/operators",
    .summary = "the error of every operator and variant, in every type, on every input",
    .source = "the registry's operators; see attnum list operators",
    .example = "attnum run accuracy/operators --operator soft,sima/code --input photos,iid --n 196",
    .options = OPTIONS(OPTION_DEVICE, OPTION_INPUT, OPTION_DTYPE, OPTION_STORAGE, OPTION_SAMPLES,
                       OPTION_OPERATOR, OPTION_N, OPTION_M),
    .defaults =
        "all operators and variants; f32, f64, bf16, f16; all inputs, 1 sample.\n"
        "quick: n = 64, m = 16; none of trained networks.\n"
        "default: n = 196, also of trained:soft and trained:sima, and n = 784 for photos\n"
        "and iid; m = 49. full: n = 196, 784, 3136 (trained: to 784); m = 49.\n"
        "A file has its own n, and landmarks by windows where that is no square; a trained\n"
        "network the nearest n that it has.",
    .outputs = outputs,
    .output_count = 1,
    .plot = "accuracy/operators.gp",
    .prepare = prepare,
    .describe = describe,
    .replay = replay,
    .weight = weight,
    .input = input_at,
    .run = run,
    .finish = finish,
    .release = release,
};
