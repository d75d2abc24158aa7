/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer to a problem: from the dense reference, or from the library. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <conditioning.h>
#include <data.h>

#include "check/check.h"
#include "common/report.h"
#include "common/staging.h"

/* Multiplications in long double: the most that an exact answer may take by default, some six
 * seconds' worth, and the number that is assumed to take a second. Larger problems are answered by
 * the library in f64. */
static const double most_reference_work = 1e9, reference_speed = 1.5e8;

/* The number of pairs whose kernel or logit the reference forms for a head: tokens and keys, or
 * tokens and landmarks. */
static double pairs_of(const subject *s)
{
    const atn_attention_shape *shape = &s->c.shape;
    atn_sampling_kind kind = s->c.reference.sampling.kind;
    bool soft = s->c.choice.op == ATN_SOFT || s->c.choice.op == ATN_SOFTPP;
    bool chosen = kind >= ATN_SAMPLING_KMEANS; /* these samplings compare all pairs of tokens */
    double n = (double)shape->tokens, m = (double)subject_landmarks(s);
    return soft && !chosen ? m * (n + m) : n * (double)shape->key_tokens;
}

static double head_work(const subject *s)
{
    const atn_attention_shape *shape = &s->c.shape;
    bool soft = s->c.choice.op == ATN_SOFT || s->c.choice.op == ATN_SOFTPP;
    double m = soft ? (double)subject_landmarks(s) : 0;
    return pairs_of(s) * (double)(shape->dim + shape->value_dim + 8) +
           m * m * m * (2.0 * s->c.reference.inverse.iterations + 20);
}

double reference_bytes(const subject *s)
{
    const attention_case *c = &s->c;
    double numbers = (double)(attention_case_queries(c) + attention_case_keys(c) +
                              attention_case_values(c) + 2 * attention_case_outputs(c));
    return sizeof(long double) * (2 * pairs_of(s) + numbers);
}

static double reference_work(const subject *s, result_kind kind)
{
    const atn_attention_shape *shape = &s->c.shape;
    double heads = (double)shape->batch * (double)shape->heads;
    return heads * head_work(s) *
           (kind == RESULT_OUTPUT ? 3 : 8 * (double)result_size(&s->c, kind));
}

double reference_seconds(const subject *s, result_kind kind)
{
    return reference_work(s, kind) / reference_speed;
}

bool reference_computes(const subject *s, result_kind kind)
{
    double most = s->most_work > 0 ? s->most_work : most_reference_work;
    return s->reference == REFERENCE_EXACT ||
           (s->reference == REFERENCE_AUTO && reference_work(s, kind) <= most);
}

void keep_judged_rows(const subject *s, result_kind kind, const double *from, double *to)
{
    int64_t heads = result_heads(&s->c, kind), cols = result_cols(&s->c, kind);
    int64_t have = result_rows(&s->c, kind), rows = result_rows(&s->judged, kind);
    for (int64_t i = 0; i < heads; i++)
        memmove(to + i * rows * cols, from + i * have * cols, (size_t)(rows * cols) * sizeof *to);
}

/* ---- The reference ---- */

atn_status answer_exact(const subject *s, result_kind kind, double *to)
{
    ref_attention_problem problem = attention_case_problem(&s->c);
    double *all = must_allocate((size_t)result_size(&s->c, kind), sizeof *all);
    atn_status status;
    if (kind == RESULT_OUTPUT)
        status = ref_attention(&problem, all);
    else {
        ref_attention_arrays gradient = {.q = kind == RESULT_TOKENS ? all : NULL,
                                         .k = kind == RESULT_KEYS ? all : NULL,
                                         .v = kind == RESULT_VALUES ? all : NULL};
        if (kind >= RESULT_PARAMETERS)
            gradient.parameters[kind - RESULT_PARAMETERS] = all;
        status = ref_attention_gradient(&problem, s->grad_output, &gradient);
    }
    keep_judged_rows(s, kind, all, to);
    free(all);
    return status;
}

/* ---- The library ---- */

/* A tensor of a type, with its values rounded to the storage; to be freed. */
static atn_tensor typed(int64_t batch, int64_t heads, int64_t rows, int64_t cols,
                        const double *values, atn_dtype dtype, atn_storage storage)
{
    int64_t count = batch * heads * rows * cols;
    void *memory = must_allocate((size_t)count, atn_dtype_size(dtype));
    if (values)
        atn_convert(dtype, memory, ATN_F64, values, count);
    if (values && storage != ATN_STORAGE_NATIVE)
        atn_storage_round(storage, count, memory);
    return atn_tensor_dense(memory, dtype, batch, heads, rows, cols);
}

/* Converts the description's tensors to a type. Returns how many; frees: their memory, to be freed
 * afterwards. */
static int convert_tensors(atn_attention_desc *desc, atn_dtype dtype, atn_storage storage,
                           void *frees[MOST_FILES])
{
    int count = 0;
    for (const parameter *p = parameters; p->name && dtype != ATN_F64; p++) {
        atn_tensor *t = (atn_tensor *)((char *)desc + p->offset);
        if (p->kind != PARAMETER_TENSOR || !parameter_is_of(p, desc->op) || !t->data)
            continue;
        *t = typed(1, t->heads, t->rows, t->cols, t->data, dtype, storage);
        frees[count++] = t->data;
    }
    return count;
}

/* Computes the gradients of `out` that have memory. The others among Q's, K's and V's, which the
 * call needs, are discarded. */
static atn_status call_backward(atn_context *context, const subject *s,
                                const atn_attention_desc *desc, const atn_attention_inputs *inputs,
                                atn_tensor out[RESULT_COUNT])
{
    const attention_case *c = &s->c;
    const atn_attention_shape *p = &c->shape;
    atn_tensor gradients[RESULT_PARAMETERS] = {{0}};
    atn_tensor dout = typed(p->batch, p->heads, p->tokens, p->value_dim, s->grad_output,
                            desc->dtype, desc->storage);
    for (int i = RESULT_TOKENS; i < RESULT_PARAMETERS; i++)
        gradients[i] =
            out[i].data ? out[i]
                        : typed(p->batch, p->heads, result_rows(c, (result_kind)i),
                                result_cols(c, (result_kind)i), NULL, desc->dtype, desc->storage);
    atn_gradients to = {.q = &gradients[RESULT_TOKENS],
                        .k = c->k ? &gradients[RESULT_KEYS] : NULL,
                        .v = &gradients[RESULT_VALUES]};
    for (int i = 0; i < ATN_PARAMETER_COUNT; i++)
        to.parameters[i] = out[RESULT_PARAMETERS + i].data ? &out[RESULT_PARAMETERS + i] : NULL;
    atn_status status = staged_backward(context, desc, p, inputs, &dout, &to, NULL);
    for (int i = RESULT_TOKENS; i < RESULT_PARAMETERS; i++)
        if (!out[i].data)
            free(gradients[i].data);
    free(dout.data);
    return status;
}

static atn_status call(atn_context *context, const subject *s, const atn_attention_desc *desc,
                       atn_tensor out[RESULT_COUNT])
{
    const attention_case *c = &s->c;
    const atn_attention_shape *p = &c->shape;
    atn_dtype dtype = desc->dtype;
    atn_storage storage = desc->storage;
    atn_tensor q = typed(p->batch, p->heads, p->tokens, p->dim, c->q, dtype, storage);
    atn_tensor k = typed(p->batch, p->heads, p->key_tokens, p->dim, c->k, dtype, storage);
    atn_tensor v = typed(p->batch, p->heads, p->key_tokens, p->value_dim, c->v, dtype, storage);
    atn_attention_inputs inputs = {&q, c->k ? &k : NULL, &v, c->query_mask, c->key_mask};
    atn_status status = out[RESULT_OUTPUT].data
                            ? staged_forward(context, desc, p, &inputs, &out[RESULT_OUTPUT], NULL)
                            : call_backward(context, s, desc, &inputs, out);
    free(q.data), free(k.data), free(v.data);
    return status;
}

/* A result as f64, judged rows only. */
static void unpack(const subject *s, result_kind kind, const atn_tensor *out, double *to)
{
    int64_t size = result_size(&s->c, kind);
    double *all = must_allocate((size_t)size, sizeof *all);
    atn_convert(ATN_F64, all, out->dtype, out->data, size);
    keep_judged_rows(s, kind, all, to);
    free(all);
}

atn_status answer_library_all(atn_context *context, const subject *s, atn_dtype dtype,
                              atn_storage storage, int count, const result_kind *kinds,
                              double *const *to)
{
    const attention_case *c = &s->c;
    atn_attention_desc desc = c->reference;
    atn_tensor out[RESULT_COUNT] = {{0}};
    void *frees[MOST_FILES];
    desc.dtype = dtype;
    desc.storage = storage;
    int converted = convert_tensors(&desc, dtype, storage, frees);
    for (int i = 0; i < count; i++) {
        int64_t batch = kinds[i] < RESULT_PARAMETERS ? c->shape.batch : 1;
        out[kinds[i]] = typed(batch, result_heads(c, kinds[i]) / batch, result_rows(c, kinds[i]),
                              result_cols(c, kinds[i]), NULL, dtype, storage);
    }
    atn_status status = call(context, s, &desc, out);
    for (int i = 0; i < count; i++) {
        unpack(s, kinds[i], &out[kinds[i]], to[i]);
        free(out[kinds[i]].data);
    }
    while (converted > 0)
        free(frees[--converted]);
    if (status == ATN_ERR_MEMORY) /* which would otherwise look like an infinite condition number */
        end_program("out of memory: the library");
    return status;
}

atn_status answer_library(atn_context *context, const subject *s, atn_dtype dtype,
                          atn_storage storage, result_kind kind, double *to)
{
    return answer_library_all(context, s, dtype, storage, 1, &kind, &to);
}

bool is_worth_threads(atn_context *context, const attention_case *c)
{
    const double small_flops = 1e8;
    atn_attention_desc desc = c->reference;
    atn_cost cost = {0};
    desc.dtype = ATN_F64;
    atn_attention_cost(context, &desc, &c->shape, &cost);
    return cost.flops > small_flops;
}

/* ---- Conditions ---- */

/* Each x times 1 + step or 1 - step, at random, rounded to a storage. To be freed; null for
 * null. */
static double *changed(uint64_t *state, double step, atn_storage storage, int64_t count,
                       const double *x)
{
    double *y = x ? must_allocate((size_t)count, sizeof *y) : NULL;
    for (int64_t i = 0; y && i < count; i++) {
        y[i] = step > 0 ? x[i] * (data_next(state) & 1 ? 1 + step : 1 - step) : x[i];
        if (storage != ATN_STORAGE_NATIVE) {
            float narrow = (float)y[i];
            atn_storage_round(storage, 1, &narrow);
            y[i] = narrow;
        }
    }
    return y;
}

subject change_inputs(const subject *s, double step, atn_storage storage, uint64_t *state,
                      double *owned[MOST_CHANGED])
{
    const attention_case *c = &s->c;
    const double *const from[] = {c->q, c->k, c->v, s->grad_output};
    const int64_t counts[] = {attention_case_queries(c), attention_case_keys(c),
                              attention_case_values(c), attention_case_outputs(c)};
    subject moved = *s;
    double **const to[] = {&moved.c.q, &moved.c.k, &moved.c.v, &moved.grad_output};
    for (int i = 0; i < 4; i++)
        *to[i] = owned[i] = changed(state, step, storage, counts[i], from[i]);
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++) {
        atn_tensor *t = atn_attention_parameter(&moved.c.reference, (atn_parameter)p);
        double by = t->rows * t->cols > 1 ? step : 0;
        t->data = owned[4 + p] = changed(state, by, storage, t->heads * t->rows * t->cols, t->data);
    }
    return moved;
}

void answer_inverse_conditions(const subject *s, double *kappa)
{
    ref_attention_problem problem = attention_case_problem(&s->c);
    atn_operator op = s->c.choice.op;
    int64_t heads = s->c.shape.batch * s->c.shape.heads;
    if (op != ATN_SOFT && op != ATN_SOFTPP)
        return;
    int64_t m = ref_attention_bottlenecks(&problem, NULL, NULL);
    double *a = must_allocate((size_t)(m * m * heads), sizeof *a);
    double *alpha = must_allocate((size_t)heads, sizeof *alpha);
    if (m < 1 || ref_attention_bottlenecks(&problem, a, alpha) < 0)
        for (int64_t i = 0; i < heads; i++)
            kappa[i] = NAN;
    else
        for (int64_t i = 0; i < heads; i++)
            kappa[i] = fmax(kappa[i], ref_inverse_condition(&s->c.reference.inverse, m,
                                                            a + i * m * m, alpha[i]));
    free(alpha);
    free(a);
}
