/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of a description by name: read from the command line, listed by --help, written into
 * the manifest of emitted cases. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "common/names.h"
#include "common/report.h"

#define SECOND(code, name, description) name,
static const char *const inverse_names[] = {ATN_INVERSE_LIST(SECOND) NULL};
static const char *const gradient_names[] = {ATN_GRADIENT_LIST(SECOND) NULL};
static const char *const sampling_names[] = {ATN_SAMPLING_LIST(SECOND) NULL};
static const char *const sima_norm_names[] = {ATN_SIMA_NORM_LIST(SECOND) NULL};
static const char *const order_names[] = {ATN_ORDER_LIST(SECOND) NULL};
static const char *const axis_names[] = {ATN_XNORM_AXIS_LIST(SECOND) NULL};
static const char *const feature_names[] = {ATN_FEATURES_LIST(SECOND) NULL};
static const char *const nystrom_names[] = {ATN_NYSTROM_LIST(SECOND) NULL};
static const char *const elu_names[] = {ATN_ELU_LIST(SECOND) NULL};
static const char *const cosine_names[] = {ATN_COSINE_LIST(SECOND) NULL};
#undef SECOND
static const char *const search_names[] = {[ATN_SEARCH_NONE] = "none",
                                           [ATN_SEARCH_MATRIX] = "matrix",
                                           [ATN_SEARCH_SQUARE] = "square",
                                           NULL};
static const char *const scope_names[] = {
    [ATN_SCOPE_MATRIX] = "matrix", [ATN_SCOPE_BATCH] = "batch", NULL};
static const char *const start_names[] = {
    [ATN_START_MATRIX] = "matrix", [ATN_START_IDENTITY] = "identity", NULL};

#define BIT(op) (1u << (op))
#define SOFT    (BIT(ATN_SOFT) | BIT(ATN_SOFTPP))
#define LOGITS                                                                                     \
    (BIT(ATN_SOFTMAX) | BIT(ATN_LINFORMER) | BIT(ATN_PERFORMER) | BIT(ATN_NYSTROMFORMER) |         \
     BIT(ATN_LSH))
#define CAUSAL    (BIT(ATN_SOFTMAX) | BIT(ATN_PERFORMER) | BIT(ATN_ELU) | BIT(ATN_COSFORMER))
#define AT(field) offsetof(atn_attention_desc, field)

/* What uses a parameter, its last two fields: always, or with some samplings, inverses, ... */
#define ALWAYS          0, 0
#define SAMPLED(kinds)  AT(sampling.kind), kinds
#define INVERTED(kinds) AT(inverse.method), kinds
#define WINDOWS                                                                                    \
    (BIT(ATN_SAMPLING_POOL) | BIT(ATN_SAMPLING_WINDOW) | BIT(ATN_SAMPLING_CONV) |                  \
     BIT(ATN_SAMPLING_CONV_CODE))
#define DRAWN (BIT(ATN_SAMPLING_KMEANS) | BIT(ATN_SAMPLING_LEVERAGE) | BIT(ATN_SAMPLING_RPCHOLESKY))
#define BY_KERNEL                                                                                  \
    (BIT(ATN_SAMPLING_LEVERAGE) | BIT(ATN_SAMPLING_RPCHOLESKY) | BIT(ATN_SAMPLING_GREEDY))
#define COUNTED                                                                                    \
    (BIT(ATN_SAMPLING_INDICES) | BIT(ATN_SAMPLING_FIRST) | BIT(ATN_SAMPLING_KMEANS) | BY_KERNEL)
#define SEARCHING                                                                                  \
    (BIT(ATN_INVERSE_NR_PAPER) | BIT(ATN_INVERSE_NR_ADAPTIVE) | BIT(ATN_INVERSE_NR_SOFT) |         \
     BIT(ATN_INVERSE_NR_SOFTPP))
#define CHEBYSHEV                                                                                  \
    (BIT(ATN_INVERSE_CHEBYSHEV_2) | BIT(ATN_INVERSE_CHEBYSHEV_3) | BIT(ATN_INVERSE_CHEBYSHEV_9))
#define HYPERPOWERS                                                                                \
    (BIT(ATN_INVERSE_NEWTON_SCHULZ) | BIT(ATN_INVERSE_HYPERPOWER_3) |                              \
     BIT(ATN_INVERSE_HYPERPOWER_7) | BIT(ATN_INVERSE_HYPERPOWER_9) |                               \
     BIT(ATN_INVERSE_NYSTROMFORMER))
#define NEWTONS    (BIT(ATN_INVERSE_NR) | SEARCHING)
#define ITERATIONS (NEWTONS | HYPERPOWERS | CHEBYSHEV)

const parameter parameters[] = {
    {"causal", PARAMETER_FLAG, AT(causal), CAUSAL, NULL, "row i sees keys up to i", ALWAYS},
    {"logit_scale", PARAMETER_REAL, AT(logit_scale), LOGITS, NULL, "c; 0: 1/sqrt(d)", ALWAYS},
    /* soft, softpp */
    {"sampling", PARAMETER_NAME, AT(sampling.kind), SOFT, sampling_names, "how L comes from Q",
     ALWAYS},
    {"stride", PARAMETER_INTEGER, AT(sampling.stride), SOFT, NULL,
     "k of pool, window, conv; pool without one has 7 x 7 landmarks", SAMPLED(WINDOWS)},
    {"count", PARAMETER_INTEGER, AT(sampling.count), SOFT, NULL, "m of the other samplings",
     SAMPLED(COUNTED)},
    {"indices", PARAMETER_INDICES, AT(sampling.indices), SOFT, NULL, "m numbers from 0, 1 x m",
     SAMPLED(BIT(ATN_SAMPLING_INDICES))},
    {"uniforms", PARAMETER_UNIFORMS, AT(sampling.uniforms), SOFT, NULL,
     "what kmeans, leverage, rpcholesky draw with, 1 x N", SAMPLED(DRAWN)},
    {"steps", PARAMETER_INTEGER, AT(sampling.steps), SOFT, NULL, "Lloyd's, of kmeans",
     SAMPLED(BIT(ATN_SAMPLING_KMEANS))},
    {"sampling_scale", PARAMETER_REAL, AT(sampling.scale), SOFT, NULL,
     "s of leverage, rpcholesky, greedy; 0: 1/(2 sqrt(d))", SAMPLED(BY_KERNEL)},
    {"sampling_ridge", PARAMETER_REAL, AT(sampling.ridge), SOFT, NULL, "lambda of leverage",
     SAMPLED(BIT(ATN_SAMPLING_LEVERAGE))},
    {"conv", PARAMETER_TENSOR, AT(sampling.weights), SOFT, NULL, "d x d x k x k filters",
     SAMPLED(BIT(ATN_SAMPLING_CONV) | BIT(ATN_SAMPLING_CONV_CODE))},
    {"norm_weight", PARAMETER_TENSOR, AT(sampling.norm_weight), SOFT, NULL, "1 x d, conv-code",
     SAMPLED(BIT(ATN_SAMPLING_CONV_CODE))},
    {"norm_bias", PARAMETER_TENSOR, AT(sampling.norm_bias), SOFT, NULL, "1 x d, conv-code",
     SAMPLED(BIT(ATN_SAMPLING_CONV_CODE))},
    {"inverse", PARAMETER_NAME, AT(inverse.method), SOFT, inverse_names,
     "see attnum list inverses; sets the others to its own", ALWAYS},
    {"iterations", PARAMETER_INT, AT(inverse.iterations), SOFT, NULL, "T", INVERTED(ITERATIONS)},
    {"alpha", PARAMETER_REAL, AT(inverse.alpha), SOFT, NULL, "start, where it is given",
     INVERTED(BIT(ATN_INVERSE_NR) | HYPERPOWERS)},
    {"numerator", PARAMETER_REAL, AT(inverse.numerator), SOFT, NULL, "of alpha, over |A|_1^2",
     INVERTED(SEARCHING | HYPERPOWERS)},
    {"ridge", PARAMETER_REAL, AT(inverse.ridge), SOFT, NULL, "added to A's diagonal",
     INVERTED(ITERATIONS)},
    {"search", PARAMETER_NAME, AT(inverse.search), SOFT, search_names, "which norm halves alpha",
     INVERTED(NEWTONS)},
    {"search_limit", PARAMETER_REAL, AT(inverse.search_limit), SOFT, NULL, "halve while above",
     INVERTED(NEWTONS)},
    {"search_cap", PARAMETER_INT, AT(inverse.search_cap), SOFT, NULL, "the most halvings",
     INVERTED(NEWTONS)},
    {"search_accepts_last", PARAMETER_FLAG, AT(inverse.search_accepts_last), SOFT, NULL,
     "at the cap go on", INVERTED(NEWTONS)},
    {"scope", PARAMETER_NAME, AT(inverse.scope), SOFT, scope_names, "whose norm is alpha's",
     INVERTED(NEWTONS)},
    {"start", PARAMETER_NAME, AT(inverse.start), SOFT, start_names, "X_0 is alpha times it",
     INVERTED(HYPERPOWERS | CHEBYSHEV)},
    {"interval_low", PARAMETER_REAL, AT(inverse.interval_low), SOFT, NULL, "of chebyshev",
     INVERTED(CHEBYSHEV)},
    {"interval_high", PARAMETER_REAL, AT(inverse.interval_high), SOFT, NULL, "of chebyshev",
     INVERTED(CHEBYSHEV)},
    {"rcond", PARAMETER_REAL, AT(inverse.rcond), SOFT, NULL, "cut of eig; below 0: m u",
     INVERTED(BIT(ATN_INVERSE_EIG) | BIT(ATN_INVERSE_PIVOTED_CHOLESKY))},
    {"jitter", PARAMETER_REAL, AT(inverse.jitter), SOFT, NULL, "of cholesky; below 0: see header",
     INVERTED(BIT(ATN_INVERSE_CHOLESKY))},
    {"gradient", PARAMETER_NAME, AT(gradient), SOFT, gradient_names, "of the inverse", ALWAYS},
    {"residual", PARAMETER_TENSOR, AT(residual), SOFT | BIT(ATN_NYSTROMFORMER), NULL,
     "h x k x k filters on V (nystromformer: h x k x 1)", ALWAYS},
    /* the others */
    {"norm", PARAMETER_NAME, AT(sima.norm), BIT(ATN_SIMA), sima_norm_names, "of columns", ALWAYS},
    {"order", PARAMETER_NAME, AT(sima.order), BIT(ATN_SIMA), order_names, "which product first",
     ALWAYS},
    {"epsilon", PARAMETER_REAL, AT(sima.epsilon), BIT(ATN_SIMA), NULL, "least norm", AT(sima.norm),
     BIT(ATN_SIMA_L1) | BIT(ATN_SIMA_L2)},
    {"axis", PARAMETER_NAME, AT(xnorm.axis), BIT(ATN_XNORM), axis_names, "of K^T V's norms",
     ALWAYS},
    {"epsilon", PARAMETER_REAL, AT(xnorm.epsilon), BIT(ATN_XNORM), NULL, "least norm; 0: none",
     ALWAYS},
    {"gamma", PARAMETER_TENSOR, AT(xnorm.gamma), BIT(ATN_XNORM), NULL, "h x 1 x 1; none: 1",
     ALWAYS},
    {"e", PARAMETER_TENSOR, AT(linformer.e), BIT(ATN_LINFORMER), NULL, "h x N x r or N x r",
     ALWAYS},
    {"f", PARAMETER_TENSOR, AT(linformer.f), BIT(ATN_LINFORMER), NULL, "the same; none: F = E",
     ALWAYS},
    {"projection", PARAMETER_TENSOR, AT(performer.projection), BIT(ATN_PERFORMER), NULL,
     "h x M x d or M x d", ALWAYS},
    {"features", PARAMETER_NAME, AT(performer.features), BIT(ATN_PERFORMER), feature_names, "phi",
     ALWAYS},
    {"stabilise", PARAMETER_FLAG, AT(performer.stabilise), BIT(ATN_PERFORMER), NULL,
     "take the maximum off", AT(performer.features), BIT(ATN_FEATURES_EXP)},
    {"feature_epsilon", PARAMETER_REAL, AT(performer.feature_epsilon), BIT(ATN_PERFORMER), NULL,
     "added to features", ALWAYS},
    {"denominator_epsilon", PARAMETER_REAL, AT(performer.denominator_epsilon), BIT(ATN_PERFORMER),
     NULL, "added to the sum", ALWAYS},
    {"projection", PARAMETER_TENSOR, AT(rff.projection), BIT(ATN_RFF), NULL, "h x M x d or M x d",
     ALWAYS},
    {"landmarks", PARAMETER_INTEGER, AT(nystromformer.landmarks), BIT(ATN_NYSTROMFORMER), NULL,
     "m, segments", ALWAYS},
    {"inverse", PARAMETER_NAME, AT(nystromformer.inverse), BIT(ATN_NYSTROMFORMER), nystrom_names,
     "Z", ALWAYS},
    {"iterations", PARAMETER_INT, AT(nystromformer.iterations), BIT(ATN_NYSTROMFORMER), NULL,
     "of Z", AT(nystromformer.inverse), BIT(ATN_NYSTROM_ORIGINAL) | BIT(ATN_NYSTROM_EXACT)},
    {"rcond", PARAMETER_REAL, AT(nystromformer.rcond), BIT(ATN_NYSTROMFORMER), NULL,
     "cut of pinv; below 0: m u", AT(nystromformer.inverse), BIT(ATN_NYSTROM_PINV)},
    {"temperature", PARAMETER_TENSOR, AT(xca.temperature), BIT(ATN_XCA), NULL,
     "tau, h x 1 x 1; none: 1", ALWAYS},
    {"epsilon", PARAMETER_REAL, AT(xca.epsilon), BIT(ATN_XCA), NULL, "least norm", ALWAYS},
    {"form", PARAMETER_NAME, AT(elu.form), BIT(ATN_ELU), elu_names, "of 1 + elu", ALWAYS},
    {"epsilon", PARAMETER_REAL, AT(elu.epsilon), BIT(ATN_ELU), NULL, "added to the sum", ALWAYS},
    {"weighting", PARAMETER_NAME, AT(cosformer.weighting), BIT(ATN_COSFORMER), cosine_names,
     "by distance", ALWAYS},
    {"length", PARAMETER_INTEGER, AT(cosformer.length), BIT(ATN_COSFORMER), NULL,
     "M of 1d; 0: max(n, n_k)", AT(cosformer.weighting), BIT(ATN_COSINE_1D)},
    {"epsilon", PARAMETER_REAL, AT(cosformer.epsilon), BIT(ATN_COSFORMER), NULL, "least sum",
     ALWAYS},
    {"rotations", PARAMETER_TENSOR, AT(lsh.rotations), BIT(ATN_LSH), NULL, "rounds x d x buckets/2",
     ALWAYS},
    {"buckets", PARAMETER_BUCKETS, AT(lsh.buckets), BIT(ATN_LSH), NULL,
     "b x h x rounds x n, instead of rotations", ALWAYS},
    {"chunk", PARAMETER_INTEGER, AT(lsh.chunk), BIT(ATN_LSH), NULL, "tokens per chunk", ALWAYS},
    {"self_logit", PARAMETER_REAL, AT(lsh.self_logit), BIT(ATN_LSH), NULL, "of a token to itself",
     ALWAYS},
    {NULL, PARAMETER_INT, 0, 0, NULL, NULL, ALWAYS},
};

bool parameter_is_of(const parameter *p, atn_operator op)
{
    return p->operators & BIT(op);
}

bool scale_is_of(atn_operator op)
{
    return BIT(op) & (SOFT | BIT(ATN_GAUSSIAN) | BIT(ATN_RFF));
}

bool distance_is_of(atn_operator op)
{
    return BIT(op) & (SOFT | BIT(ATN_GAUSSIAN));
}

/* The choice on which a parameter depends, by its number. */
static int choice_for(const parameter *p, const atn_attention_desc *desc)
{
    return *(const int *)((const char *)desc + p->chooser);
}

bool parameter_is_used(const parameter *p, const atn_attention_desc *desc)
{
    return parameter_is_of(p, desc->op) && (!p->chosen || p->chosen & BIT(choice_for(p, desc)));
}

/* ---- Values ---- */

static bool read_real(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    bool plain = strspn(text, "0123456789.eE+-") == strlen(text); /* no "nan", "inf", hex */
    return plain && end != text && !*end && isfinite(*value);
}

static bool read_whole(const char *text, int64_t least, int64_t most, int64_t *value)
{
    double real;
    if (!read_real(text, &real) || real != floor(real) || fabs(real) > 0x1p53)
        return false;
    *value = (int64_t)real;
    return *value >= least && *value <= most;
}

/* The index of a name or flag; -1: there is none. */
static int find_choice(const parameter *p, const char *text)
{
    static const char *const flags[] = {"false", "true", NULL};
    return names_find(p->choices ? p->choices : flags, text);
}

/* The place where parameters are set, for error messages. */
static const char *origin = "--param";

static int fail(const char *name, const char *value, const char *expected)
{
    report_error("%s %s=%s: expected %s", origin, name, value, expected);
    return EXIT_USAGE;
}

static int set_choice(const parameter *p, const char *value, void *field)
{
    static const char *const flags[] = {"false", "true", NULL};
    int found = find_choice(p, value);
    if (found < 0) {
        char *expected = names_expected(p->choices ? p->choices : flags, value);
        report_error("%s %s=%s: %s", origin, p->name, value, expected);
        free(expected);
        return EXIT_USAGE;
    }
    if (p->kind == PARAMETER_FLAG)
        *(bool *)field = found;
    else
        *(int *)field = found; /* every enumeration has the size of an int */
    return EXIT_PASS;
}

_Static_assert(sizeof(atn_inverse_method) == sizeof(int) && sizeof(atn_cosine) == sizeof(int) &&
                   sizeof(atn_sampling_kind) == sizeof(int),
               "enumerations are set as ints");

/* ---- Files ---- */

/* 1 x heads x rows x cols from 2 to 4 dimensions. Of four, the first or the second is dropped if it
 * is 1; otherwise the last two become one (filters of convolutions, as frameworks store them). */
atn_tensor parameter_tensor(const npy_array *a)
{
    if (a->batch == 1)
        return atn_tensor_dense(a->data, ATN_F64, 1, a->heads, a->rows, a->cols);
    if (a->heads == 1)
        return atn_tensor_dense(a->data, ATN_F64, 1, a->batch, a->rows, a->cols);
    return atn_tensor_dense(a->data, ATN_F64, 1, a->batch, a->heads, a->rows * a->cols);
}

static int set_indices(const parameter *p, const char *path, const npy_array *a, subject *to)
{
    int64_t count = a->batch * a->heads * a->rows * a->cols;
    int64_t *numbers = must_allocate((size_t)count, sizeof *numbers);
    owned_add(&to->owned, numbers);
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs(a->data[i]) < 0x1p53) || a->data[i] != floor(a->data[i])) {
            report_error("%s: element %" PRId64 " is %g, expected a whole number", path, i,
                         a->data[i]);
            return EXIT_ENVIRONMENT;
        }
        numbers[i] = (int64_t)a->data[i];
    }
    atn_attention_desc *desc = &to->c.reference;
    if (p->kind == PARAMETER_INDICES) {
        desc->sampling.indices = numbers;
        desc->sampling.count = count;
        return EXIT_PASS;
    }
    const atn_attention_shape *shape = &to->c.shape;
    if (a->batch != shape->batch || a->heads != shape->heads || a->cols != shape->tokens) {
        report_error("%s: shape: %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64
                     ", expected %" PRId64 " x %" PRId64 " x rounds x %" PRId64,
                     path, a->batch, a->heads, a->rows, a->cols, shape->batch, shape->heads,
                     shape->tokens);
        return EXIT_ENVIRONMENT;
    }
    desc->lsh.buckets = numbers;
    desc->lsh.rounds = a->rows;
    return EXIT_PASS;
}

static int set_file(const parameter *p, const char *path, subject *to)
{
    if (to->file_count == MOST_FILES)
        return fail(p->name, path, "fewer files");
    npy_array *a = &to->files[to->file_count];
    int code = npy_read(path, a);
    if (code != EXIT_PASS)
        return code;
    to->file_count++;
    void *field = (char *)&to->c.reference + p->offset;
    if (p->kind == PARAMETER_TENSOR)
        *(atn_tensor *)field = parameter_tensor(a);
    else if (p->kind == PARAMETER_UNIFORMS) {
        to->c.reference.sampling.uniforms = a->data;
        to->c.reference.sampling.uniform_count = a->batch * a->heads * a->rows * a->cols;
    } else
        return set_indices(p, path, a, to);
    return EXIT_PASS;
}

/* ---- Setting ---- */

static int set_value(const parameter *p, const char *value, subject *to)
{
    void *field = (char *)&to->c.reference + p->offset;
    int64_t whole;
    switch (p->kind) {
    case PARAMETER_INT:
        if (!read_whole(value, 0, INT_MAX - 1, &whole))
            return fail(p->name, value, "a whole number, at least 0");
        *(int *)field = (int)whole;
        return EXIT_PASS;
    case PARAMETER_INTEGER:
        if (!read_whole(value, 0, INT32_MAX, &whole))
            return fail(p->name, value, "a whole number, at least 0");
        *(int64_t *)field = whole;
        return EXIT_PASS;
    case PARAMETER_REAL:
        return read_real(value, field) ? EXIT_PASS : fail(p->name, value, "a number");
    case PARAMETER_FLAG:
    case PARAMETER_NAME:
        return set_choice(p, value, field);
    default:
        return set_file(p, value, to);
    }
}

static const parameter *find(const char *name, size_t length, atn_operator op)
{
    for (const parameter *p = parameters; p->name; p++)
        if (parameter_is_of(p, op) && strlen(p->name) == length &&
            strncmp(p->name, name, length) == 0)
            return p;
    return NULL;
}

static int report_unknown(const char *text, size_t length, atn_operator op)
{
    const char *names[sizeof parameters / sizeof *parameters] = {0};
    int count = 0;
    for (const parameter *p = parameters; p->name; p++)
        if (parameter_is_of(p, op))
            names[count++] = p->name;
    char *name = must_format("%.*s", (int)length, text), *expected = names_expected(names, name);
    report_error("%s %s: not a parameter of %s; %s", origin, name, atn_operator_get(op)->name,
                 count ? expected : "it has none");
    free(expected);
    free(name);
    return EXIT_USAGE;
}

/* A parameter that the choices made do not use: a kernel for which it is claimed does something
 * else. */
static int report_unused(const parameter *p, const atn_attention_desc *desc)
{
    const parameter *by = parameters;
    while (by->offset != p->chooser || !parameter_is_of(by, desc->op))
        by++;
    char *with = must_format("%s", "");
    for (int i = 0; by->choices[i]; i++)
        if (p->chosen & BIT(i)) {
            char *longer = must_format("%s%s%s", with, *with ? ", " : "", by->choices[i]);
            free(with);
            with = longer;
        }
    report_error("%s %s: %s=%s does not use it; expected %s=%s", origin, p->name, by->name,
                 by->choices[choice_for(p, desc)], by->name, with);
    free(with);
    return EXIT_USAGE;
}

static bool sets_inverse(const parameter *p)
{
    return p && p->offset == AT(inverse.method) && p->operators == SOFT;
}

int parameters_set(const text_list *given, subject *to)
{
    atn_attention_desc before = to->c.reference;
    int code = EXIT_PASS;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < given->count && code == EXIT_PASS; i++) {
            const char *text = given->items[i];
            size_t length = strcspn(text, "=");
            const parameter *p = find(text, length, to->c.choice.op);
            if (!p)
                code = report_unknown(text, length, to->c.choice.op);
            else if (sets_inverse(p) == (pass == 0))
                code = set_value(p, text + length + 1, to);
            if (p && pass == 0 && code == EXIT_PASS && sets_inverse(p))
                before.inverse = to->c.reference.inverse =
                    atn_inverse_defaults(to->c.reference.inverse.method);
        }
    for (int i = 0; i < given->count && code == EXIT_PASS; i++) {
        const char *text = given->items[i];
        const parameter *p = find(text, strcspn(text, "="), to->c.choice.op);
        bool changes =
            p->kind >= PARAMETER_TENSOR || parameter_differs(p, &before, &to->c.reference);
        if (changes && !parameter_is_used(p, &to->c.reference))
            code = report_unused(p, &to->c.reference);
    }
    return code;
}

const char *parameter_of_sampling(const text_list *given, atn_operator op)
{
    for (int i = 0; i < given->count; i++) {
        const parameter *p = find(given->items[i], strcspn(given->items[i], "="), op);
        if (p && p->offset >= AT(sampling) && p->offset < AT(sampling) + sizeof(atn_sampling))
            return p->name;
    }
    return NULL;
}

int parameters_set_in(const char *place, const text_list *given, subject *to)
{
    const char *before = origin;
    origin = place;
    int code = parameters_set(given, to);
    origin = before;
    return code;
}

/* ---- Showing ---- */

char *parameter_text(const parameter *p, const atn_attention_desc *desc)
{
    const void *field = (const char *)desc + p->offset;
    switch (p->kind) {
    case PARAMETER_INT:
        return must_format("%d", *(const int *)field);
    case PARAMETER_INTEGER:
        return must_format("%" PRId64, *(const int64_t *)field);
    case PARAMETER_REAL:
        return must_format("%.15g", *(const double *)field);
    case PARAMETER_FLAG:
        return must_format("%s", *(const bool *)field ? "true" : "false");
    case PARAMETER_NAME:
        return must_format("%s", p->choices[*(const int *)field]);
    default:
        return NULL;
    }
}

bool parameter_differs(const parameter *p, const atn_attention_desc *a, const atn_attention_desc *b)
{
    char *one = parameter_text(p, a), *other = parameter_text(p, b);
    bool different = one && other && strcmp(one, other) != 0;
    free(one), free(other);
    return different;
}

void parameters_help(const atn_operator_info *info, int variant)
{
    atn_attention_desc desc = atn_attention_variant(info->op, variant, ATN_F64);
    printf("\nparameters of %s/%s (--param NAME=VALUE)\n", info->name,
           info->variants[variant].name);
    int count = 0;
    for (const parameter *p = parameters; p->name; p++) {
        if (!parameter_is_of(p, info->op))
            continue;
        char *text = parameter_text(p, &desc);
        printf("  %-20s %-16s %s", p->name, text ? text : "FILE.npy", p->help);
        for (int i = 0; p->choices && p->choices[i]; i++)
            printf("%s%s", i ? ", " : ": ", p->choices[i]);
        printf("\n");
        free(text);
        count++;
    }
    if (!count)
        printf("  none\n");
}
