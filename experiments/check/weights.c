/* SPDX-License-Identifier: BSD-3-Clause */
#include "check/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/features.h"
#include "common/report.h"

/* A head's matrices. */
typedef struct {
    const attention_case *c;
    const weight_form *form;
    atn_operator op;
    int64_t batch, head, n, keys, d, dv, width;
    double *q, *k, *v; /* with their factors; linformer's are projected */
    const unsigned char *query_there, *key_there;
    feature_input of_q, of_k;
    double *phi_q, *phi_k; /* n x width; null: logits */
    double *x;             /* logits */
    double *e, *f, *g, *w; /* n x keys */
    double *by;            /* D of each query, or of each key */
    double *z;             /* sum of phi(q), or null */
} weighing;

static double *room(int64_t count)
{
    return must_allocate((size_t)count, sizeof(double));
}

/* ---- Inputs ---- */

static double factor_of(const attention_case *c, input_factor kind)
{
    double d = (double)c->shape.dim;
    const double factors[] = {[FACTOR_1] = 1,         [FACTOR_ROOT] = 1 / sqrt(d),
                              [FACTOR_D] = 1 / d,     [FACTOR_FOURTH] = 1 / sqrt(sqrt(d)),
                              [FACTOR_LOG2] = log(2), [FACTOR_LOG2E] = 1 / log(2)};
    return factors[kind];
}

static double *scaled(double by, int64_t count, const double *x)
{
    double *y = room(count);
    for (int64_t i = 0; i < count; i++)
        y[i] = by * x[i];
    return y;
}

/* Linformer's E, or F for values, of a head. */
static const double *projection_of(const weighing *h, bool values)
{
    const atn_linformer_options *o = &h->c->reference.linformer;
    const atn_tensor *t = values && o->f.data ? &o->f : &o->e;
    return (const double *)t->data + (t->heads == 1 ? 0 : h->head * t->rows * t->cols);
}

/* E^T X, or F^T X for values, with rows of padding set to 0; x is freed. */
static double *projected(const weighing *h, bool values, int64_t cols, double *x)
{
    int64_t tokens = h->c->shape.key_tokens, r = h->c->reference.linformer.e.cols;
    double *to = room(r * cols);
    for (int64_t i = 0; h->key_there && i < tokens * cols; i++)
        x[i] = h->key_there[i / cols] ? x[i] : 0;
    multiply_matrices(true, false, r, cols, tokens, 1, projection_of(h, values), x, 0, to);
    free(x);
    return to;
}

static weighing weighing_start(const subject *s, const weight_form *form, int64_t which)
{
    const attention_case *c = &s->c;
    const atn_attention_shape *p = &c->shape;
    weighing h = {.c = c,
                  .form = form,
                  .op = c->reference.op,
                  .batch = which / p->heads,
                  .head = which % p->heads,
                  .n = p->tokens,
                  .keys = p->key_tokens,
                  .d = p->dim,
                  .dv = p->value_dim};
    const double *k = (c->k ? c->k : c->q) + which * h.keys * h.d;
    const unsigned char *query_mask = c->query_mask || c->k ? c->query_mask : c->key_mask;
    h.query_there = query_mask ? query_mask + h.batch * h.n : NULL;
    h.key_there = c->key_mask ? c->key_mask + h.batch * h.keys : NULL;
    h.q = scaled(factor_of(c, form->of_queries), h.n * h.d, c->q + which * h.n * h.d);
    h.k = scaled(factor_of(c, form->of_keys), h.keys * h.d, k);
    h.v = scaled(1, h.keys * h.dv, c->v + which * h.keys * h.dv);
    if (h.op == ATN_LINFORMER) {
        h.k = projected(&h, false, h.d, h.k);
        h.v = projected(&h, true, h.dv, h.v);
        h.keys = c->reference.linformer.e.cols;
        h.key_there = NULL;
    }
    h.of_q = (feature_input){c, form, h.head, h.n, false, h.q, h.query_there};
    h.of_k = (feature_input){c, form, h.head, h.keys, true, h.k, h.key_there};
    return h;
}

static void weighing_free(weighing *h)
{
    free(h->q), free(h->k), free(h->v), free(h->phi_q), free(h->phi_k), free(h->x), free(h->e);
    free(h->f), free(h->g), free(h->w), free(h->by), free(h->z);
}

/* ---- Masks ---- */

static bool sees(const weighing *h, seen_kind kind, int64_t i, int64_t j)
{
    int64_t block = h->form->block > 0 ? h->form->block : 1, last = (h->keys - 1) / block;
    bool causal = h->c->reference.causal;
    switch (kind) {
    case SEEN_CLAIMED:
        return !h->c->reference.causal || j <= i;
    case SEEN_ALL:
        return true;
    case SEEN_BEFORE:
        return j <= i;
    case SEEN_STRICTLY:
        return j < i;
    case SEEN_OTHERS:
        return j < i || (i == 0 && j == 0);
    case SEEN_NEXT:
        return j <= i + 1;
    case SEEN_AFTER:
        return j >= i;
    case SEEN_BLOCKS:
        return j / block <= i / block;
    case SEEN_BLOCKS_DONE:
        return j / block < i / block || j == i;
    case SEEN_WINDOW:
        return (!causal || j <= i) && i - j < block && j - i < block;
    case SEEN_NOT_ITSELF:
        return (!causal || j <= i) && j != i;
    case SEEN_LAST_BLOCK:
        return causal ? j <= i && j / block == i / block : j / block == last;
    case SEEN_FIRST_BLOCK:
        return j < block && (!causal || j <= i);
    case SEEN_WHOLE_BLOCKS:
        return j < h->keys / block * block && (!causal || j <= i);
    }
    return true;
}

static void find_masks(weighing *h)
{
    const weight_form *form = h->form;
    h->f = room(h->n * h->keys), h->g = room(h->n * h->keys);
    for (int64_t i = 0; i < h->n; i++)
        for (int64_t j = 0; j < h->keys; j++) {
            bool there = !h->key_there || h->key_there[j];
            bool masked = form->mask_set || form->mask_added;
            h->f[i * h->keys + j] =
                masked || ((there || form->pads_numerator) && sees(h, form->numerator, i, j));
            h->g[i * h->keys + j] =
                masked || ((there || form->pads_denominator) && sees(h, form->denominator, i, j));
        }
}

/* ---- Logits ---- */

static double logit_factor(const weighing *h)
{
    const atn_attention_desc *desc = &h->c->reference;
    return desc->logit_scale != 0 ? desc->logit_scale : 1 / sqrt((double)h->c->shape.dim);
}

static double kernel_factor(const weighing *h)
{
    const atn_attention_desc *desc = &h->c->reference;
    return atn_kernel_scale(desc->scale, desc->scale_value, h->c->shape.heads, h->c->shape.dim);
}

static double square(int64_t count, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sum;
}

/* -s times the squared distance, or times the distance itself. */
static void find_distances(weighing *h)
{
    const double *terms = distance_terms[h->form->distance], s = kernel_factor(h);
    multiply_matrices(false, true, h->n, h->keys, h->d, -terms[2], h->q, h->k, 0, h->x);
    double *of_keys = room(h->keys);
    for (int64_t j = 0; j < h->keys; j++)
        of_keys[j] = terms[1] * square(h->d, h->k + j * h->d);
    for (int64_t i = 0; i < h->n; i++) {
        double of_query = terms[0] * square(h->d, h->q + i * h->d);
        for (int64_t j = 0; j < h->keys; j++) {
            double *x = &h->x[i * h->keys + j], sum = *x + of_query + of_keys[j];
            *x = -s * (h->form->distance == DISTANCE_ROOT ? sqrt(fmax(sum, 0)) : sum);
        }
    }
    free(of_keys);
}

static void distances_backward(const weighing *h, double *dx, double *dq, double *dk)
{
    const double *terms = distance_terms[h->form->distance], s = kernel_factor(h);
    double *of_keys = room(h->keys);
    memset(dq, 0, (size_t)(h->n * h->d) * sizeof *dq);
    for (int64_t i = 0; i < h->n; i++) {
        double of_query = 0;
        for (int64_t j = 0; j < h->keys; j++) {
            double *to = &dx[i * h->keys + j], x = h->x[i * h->keys + j];
            *to *= h->form->distance == DISTANCE_ROOT ? (x < 0 ? s * s / (2 * x) : 0) : -s;
            of_query += *to;
            of_keys[j] += *to;
        }
        for (int64_t c = 0; c < h->d; c++)
            dq[i * h->d + c] = 2 * terms[0] * of_query * h->q[i * h->d + c];
    }
    for (int64_t j = 0; j < h->keys * h->d; j++)
        dk[j] = 2 * terms[1] * of_keys[j / h->d] * h->k[j];
    multiply_matrices(false, false, h->n, h->d, h->keys, -terms[2], dx, h->k, 1, dq);
    multiply_matrices(true, false, h->keys, h->d, h->n, -terms[2], dx, h->q, 1, dk);
    free(of_keys);
}

static double in_storage(atn_storage storage, double x)
{
    float narrow = (float)x;
    atn_storage_round(storage, 1, &narrow);
    return narrow;
}

/* 1 + c0 x + c1 x^2 + c2 x^3 */
static double series(const weight_form *form, double x)
{
    return 1 + x * (form->fitted[0] + x * (form->fitted[1] + x * form->fitted[2]));
}

double exponential_of(const weight_form *form, double x)
{
    double y = x / log(2), whole = form->exponential == EXP_FLOOR ? floor(y) : nearbyint(y);
    if (isinf(x))
        return 0;
    switch (form->exponential) {
    case EXP_OF_BF16:
        return exp(in_storage(ATN_STORAGE_BF16, x));
    case EXP_OF_F16:
        return exp(in_storage(ATN_STORAGE_F16, x));
    case EXP_SERIES:
        return series(form, x);
    case EXP_FLOOR:
    case EXP_NEAREST:
        return ldexp(series(form, y - whole), (int)fmax(fmin(whole, 2000), -2000));
    case EXP_POWER_256:
        return pow(fmax(1 + x / 256, 0), 256);
    case EXP_POWER_1024:
        return pow(fmax(1 + x / 1024, 0), 1024);
    default:
        return exp(x);
    }
}

/* A logit after capping, bias, rounding and masks. */
static double logit_of(const weighing *h, int64_t i, int64_t j, double x)
{
    const weight_form *form = h->form;
    bool seen = (!h->key_there || h->key_there[j]) && sees(h, SEEN_CLAIMED, i, j);
    if (form->cap > 0)
        x = form->cap * tanh(x / form->cap);
    if (form->biased)
        x -= exp2(-8.0 * (double)(h->head + 1) / (double)h->c->shape.heads) *
             (double)(i > j ? i - j : j - i);
    if (form->exponential == EXP_OF_BF16_FIRST || form->exponential == EXP_OF_F16_FIRST)
        x = in_storage(form->exponential == EXP_OF_F16_FIRST ? ATN_STORAGE_F16 : ATN_STORAGE_BF16,
                       x);
    return seen || !(form->mask_set || form->mask_added) ? x
           : form->mask_set                              ? form->masked
                                                         : x + form->masked;
}

/* The factor by which the part of a block of keys in an accumulator is too large: the product of
 * the omitted rescalings by maxima that grow from block to block (M. Milakov, N. Gimelshein, Online
 * normalizer calculation for softmax, 2018, Alg. 3). */
static double excess(rescaling kind, int64_t blocks, int64_t block, const double *most,
                     const double *own)
{
    double sum = 0;
    if (kind == RESCALE_OWN)
        return isfinite(own[block]) ? exp(most[blocks - 1] - own[block]) : 1;
    for (int64_t t = block + 1; t < blocks && kind != RESCALE_EACH; t++) {
        bool missed = kind == RESCALE_NEVER || (kind == RESCALE_NOT_SECOND && t == 1) ||
                      (kind == RESCALE_NOT_LAST && t == blocks - 1);
        double part = missed ? 1 : kind == RESCALE_BASE_2 ? 1 - log(2) : 0;
        sum += part > 0 && isfinite(most[t - 1]) ? part * (most[t] - most[t - 1]) : 0;
    }
    return exp(sum);
}

static void leave_rescaling_out(weighing *h, int64_t i)
{
    const weight_form *form = h->form;
    int64_t blocks = (h->keys + form->block - 1) / form->block;
    double *most = room(blocks), *own = room(blocks);
    for (int64_t j = 0; j < h->keys; j++) {
        int64_t at = i * h->keys + j, t = j / form->block;
        double x = h->g[at] != 0 ? h->x[at] : -INFINITY;
        own[t] = fmax(j % form->block == 0 ? -INFINITY : own[t], x);
        most[t] = t > 0 ? fmax(most[t - 1], own[t]) : own[t];
    }
    for (int64_t t = 0; t < blocks; t++) {
        double f = excess(form->accumulator, blocks, t, most, own);
        double g = excess(form->sum, blocks, t, most, own);
        for (int64_t j = t * form->block; j < h->keys && j < (t + 1) * form->block; j++) {
            h->f[i * h->keys + j] *= f;
            h->g[i * h->keys + j] *= g;
        }
    }
    free(own), free(most);
}

static bool is_shifted(const weighing *h)
{
    return !h->form->unshifted && h->op != ATN_GAUSSIAN;
}

static void exponentials(weighing *h)
{
    for (int64_t i = 0; i < h->n; i++) {
        double most = -INFINITY, *x = h->x + i * h->keys;
        for (int64_t j = 0; j < h->keys; j++) {
            x[j] = logit_of(h, i, j, x[j]);
            if (h->f[i * h->keys + j] != 0 || h->g[i * h->keys + j] != 0)
                most = fmax(most, x[j]);
        }
        if (h->form->accumulator != RESCALE_EACH || h->form->sum != RESCALE_EACH)
            leave_rescaling_out(h, i);
        for (int64_t j = 0; j < h->keys; j++)
            h->e[i * h->keys + j] = h->f[i * h->keys + j] != 0 || h->g[i * h->keys + j] != 0
                                        ? exponential_of(h->form, x[j] - (is_shifted(h) ? most : 0))
                                        : 0;
    }
}

static void find_weights(weighing *h)
{
    h->e = room(h->n * h->keys);
    find_masks(h);
    if (features_exist(h->c)) {
        h->width = feature_width(&h->of_q);
        h->phi_q = room(h->n * h->width), h->phi_k = room(h->keys * h->width);
        features_forward(&h->of_q, h->phi_q);
        features_forward(&h->of_k, h->phi_k);
        multiply_matrices(false, true, h->n, h->keys, h->width, 1, h->phi_q, h->phi_k, 0, h->e);
        return;
    }
    h->x = room(h->n * h->keys);
    if (h->op == ATN_GAUSSIAN)
        find_distances(h);
    else
        multiply_matrices(false, true, h->n, h->keys, h->d, logit_factor(h), h->q, h->k, 0, h->x);
    exponentials(h);
}

/* ---- Denominators ---- */

static divisor divisor_of(const weighing *h)
{
    bool divides = h->op != ATN_GAUSSIAN && h->op != ATN_RFF && h->op != ATN_EFFICIENT;
    return h->form->divide != DIVIDE_CLAIMED ? h->form->divide : divides ? DIVIDE_ROWS : DIVIDE_NOT;
}

/* D from a sum, with the operator's epsilon. */
static double raised(const weighing *h, int64_t i, double sum)
{
    const atn_attention_desc *desc = &h->c->reference;
    double more = 0;
    for (int64_t r = 0; h->op == ATN_PERFORMER && r < h->width; r++)
        more += desc->performer.denominator_epsilon * h->phi_q[i * h->width + r];
    sum += h->form->raise * h->form->fitted[0] + more;
    return h->op == ATN_ELU         ? sum + desc->elu.epsilon
           : h->op == ATN_COSFORMER ? fmax(sum, desc->cosformer.epsilon)
                                    : sum;
}

/* The divisor of a row of E, for all kinds but DIVIDE_COLUMNS. */
static double row_divisor(const weighing *h, divisor kind, int64_t i, double all)
{
    const double *e = h->e + i * h->keys, *g = h->g + i * h->keys;
    double sum = 0, squares = 0, largest = 0, seen = 0, queries = 0;
    for (int64_t j = 0; j < h->keys; j++) {
        sum += g[j] * e[j];
        squares += g[j] * e[j] * e[j];
        largest = fmax(largest, g[j] * e[j]);
        seen += g[j] != 0;
    }
    for (int64_t r = 0; h->z && r < h->width; r++)
        queries += h->phi_q[i * h->width + r] * h->z[r];
    return kind == DIVIDE_ROWS      ? raised(h, i, sum)
           : kind == DIVIDE_QUERIES ? raised(h, i, queries)
           : kind == DIVIDE_TWICE   ? sum * sum
           : kind == DIVIDE_COUNT   ? (double)h->keys
           : kind == DIVIDE_SEEN    ? seen
           : kind == DIVIDE_LARGEST ? largest
           : kind == DIVIDE_ROOT    ? sqrt(squares)
           : kind == DIVIDE_ALL     ? all
                                    : 1;
}

/* Divides the numerators by the sum of their block and by the number of blocks. */
static void divide_blocks(weighing *h)
{
    int64_t block = h->form->block, blocks = (h->keys + block - 1) / block;
    for (int64_t i = 0; i < h->n; i++)
        for (int64_t first = 0; first < h->keys; first += block) {
            int64_t last = first + block < h->keys ? first + block : h->keys;
            double sum = 0;
            for (int64_t j = i * h->keys + first; j < i * h->keys + last; j++)
                sum += h->g[j] * h->e[j];
            for (int64_t j = i * h->keys + first; j < i * h->keys + last; j++)
                h->f[j] *= sum > 0 ? 1 / (sum * (double)blocks) : 0;
        }
}

static void find_divisors(weighing *h)
{
    divisor kind = divisor_of(h);
    double all = 0;
    h->by = room(h->n + h->keys);
    h->z = kind == DIVIDE_QUERIES ? room(h->width) : NULL;
    for (int64_t i = 0; h->z && i < h->n * h->width; i++)
        h->z[i % h->width] += h->phi_q[i];
    for (int64_t i = 0; i < h->n * h->keys; i++) {
        all += h->g[i] * h->e[i];
        if (kind == DIVIDE_COLUMNS)
            h->by[i % h->keys] += h->g[i] * h->e[i];
    }
    for (int64_t i = 0; kind != DIVIDE_COLUMNS && i < h->n; i++)
        h->by[i] = row_divisor(h, kind, i, all);
    if (kind == DIVIDE_BLOCKS)
        divide_blocks(h);
    h->w = room(h->n * h->keys);
    for (int64_t i = 0; i < h->n * h->keys; i++) {
        double by = h->by[kind == DIVIDE_COLUMNS ? i % h->keys : i / h->keys];
        h->w[i] = by != 0 ? h->f[i] * h->e[i] / by : 0;
    }
}

/* ---- The output ---- */

static void clear_padded_rows(const weighing *h, double *y)
{
    for (int64_t i = 0; h->query_there && i < h->n; i++)
        if (!h->query_there[i])
            memset(y + i * h->dv, 0, (size_t)h->dv * sizeof *y);
}

/* phi(K)^T V of the keys that are not padding. */
static void find_state(const weighing *h, double *s)
{
    double *v = scaled(1, h->keys * h->dv, h->v), *phi = room(h->keys * h->width);
    for (int64_t j = 0; h->key_there && j < h->keys * h->dv; j++)
        v[j] = h->key_there[j / h->dv] ? v[j] : 0;
    features_forward(&h->of_k, phi);
    multiply_matrices(true, false, h->width, h->dv, h->keys, 1, phi, v, 1, s);
    free(phi), free(v);
}

/* phi(Q) times a state that is not the head's own. */
static void apply_state(const subject *s, const weighing *h, double *y)
{
    int64_t which = h->batch * h->c->shape.heads + h->head;
    double *own = room(h->width * h->dv);
    int64_t first = h->form->state == STATE_TRANSPOSED       ? which
                    : h->form->state == STATE_OF_HEAD_BEFORE ? which - 1
                                                             : 0;
    for (int64_t i = first < 0 ? 0 : first; i < which + (first == which); i++) {
        weighing other = weighing_start(s, h->form, i);
        other.width = h->width;
        find_state(&other, own);
        weighing_free(&other);
    }
    bool transposed = h->form->state == STATE_TRANSPOSED;
    double *more = room(h->n * h->dv);
    multiply_matrices(false, transposed, h->n, h->dv, h->width, 1, h->phi_q, own, 0, more);
    for (int64_t i = 0; i < h->n * h->dv; i++)
        y[i] = (transposed ? 0 : y[i]) + more[i] / h->by[i / h->dv];
    free(more), free(own);
}

static void find_output(const subject *s, weighing *h, double *y)
{
    find_weights(h);
    find_divisors(h);
    multiply_matrices(false, false, h->n, h->dv, h->keys, 1, h->w, h->v, 0, y);
    if (h->form->state != STATE_RIGHT)
        apply_state(s, h, y);
    clear_padded_rows(h, y);
}

/* ---- Gradients ---- */

/* Computes dE from dW, which is overwritten. What phi(Q) receives through D alone is added to
 * dphi_q. */
static void divisors_backward(weighing *h, double *dw, double *dphi_q)
{
    divisor kind = divisor_of(h);
    bool columns = kind == DIVIDE_COLUMNS, rows = kind == DIVIDE_ROWS || kind == DIVIDE_QUERIES;
    double *dby = room(h->n + h->keys), *dz = room(h->width + 1), *z = room(h->width + 1);
    for (int64_t i = 0; i < h->n * h->keys; i++) {
        int64_t line = columns ? i % h->keys : i / h->keys;
        double by = h->by[line];
        dby[line] -= by != 0 ? dw[i] * h->w[i] / by : 0;
        dw[i] *= by != 0 ? h->f[i] / by : 0;
    }
    if (h->op == ATN_COSFORMER)
        for (int64_t i = 0; i < h->n; i++)
            dby[i] *= rows && h->by[i] <= h->c->reference.cosformer.epsilon ? 0 : 1;
    for (int64_t j = 0; j < h->keys * h->width; j++)
        z[j % h->width] += !h->key_there || h->key_there[j / h->width] ? h->phi_k[j] : 0;
    double times = h->form->row_term ? h->form->row_term : 1;
    for (int64_t i = 0; i < h->n * h->keys && !h->form->detach_sum; i++)
        if ((kind == DIVIDE_ROWS && !h->form->detach_keys) || columns)
            dw[i] += times * dby[columns ? i % h->keys : i / h->keys] * h->g[i];
    for (int64_t i = 0; i < h->n * h->width && rows && !h->form->detach_sum; i++) {
        int64_t r = i % h->width;
        double by = dby[i / h->width];
        dphi_q[i] +=
            h->op == ATN_PERFORMER ? by * h->c->reference.performer.denominator_epsilon : 0;
        dphi_q[i] += h->form->detach_keys ? by * z[r] : h->z ? by * h->z[r] : 0;
        dz[r] += by * h->phi_q[i];
    }
    for (int64_t i = 0; i < h->n * h->width && h->z && !h->form->detach_keys; i++)
        dphi_q[i] += h->form->detach_sum ? 0 : dz[i % h->width];
    free(z), free(dz), free(dby);
}

/* The row term that replaces dY . Y; the caller divides it by D. */
static double term_of(const weighing *h, int64_t i, const double *dy, const double *y)
{
    term_form form = h->form->term;
    int64_t row = form == TERM_BEFORE ? i - 1 : form == TERM_BEHIND ? i + 1 : i;
    row = (row + h->n) % h->n;
    const double *by = form == TERM_OF_VALUES ? h->v : y;
    double sum = 0;
    for (int64_t c = 0; c < (form == TERM_HALF ? h->dv / 2 : h->dv); c++)
        sum += dy[row * h->dv + c] * by[row * h->dv + c];
    return sum;
}

/* Replaces the row term of dE: adds the right one, which was subtracted, and subtracts the
 * other. */
static void replace_terms(const weighing *h, const double *dy, const double *y, double *dw)
{
    for (int64_t i = 0; i < h->n && h->form->term != TERM_RIGHT; i++) {
        double right = 0;
        for (int64_t c = 0; c < h->dv; c++)
            right += dy[i * h->dv + c] * y[i * h->dv + c];
        for (int64_t j = i * h->keys; j < (i + 1) * h->keys; j++)
            dw[j] += h->by[i] != 0 ? h->g[j] * (right - term_of(h, i, dy, y)) / h->by[i] : 0;
    }
}

/* dX with the keys that are in dQ's sum. */
static double *summed_keys(const weighing *h, const double *dx)
{
    double *x = scaled(1, h->n * h->keys, dx);
    for (int64_t i = 0; i < h->n * h->keys; i++) {
        int64_t j = i % h->keys;
        bool there = h->form->summed == SEEN_CLAIMED || sees(h, h->form->summed, i / h->keys, j);
        x[i] *= !there ? 0 : h->form->first_twice && j < h->form->block ? 2 : 1;
    }
    return x;
}

/* dQ and dK from dX. */
static void logits_backward(const weighing *h, const double *dx, double *dq, double *dk)
{
    const bool exchanged = h->form->products == PRODUCTS_EXCHANGED;
    const bool transposed = h->form->products != PRODUCTS_NOT_TRANSPOSED;
    double c = logit_factor(h), *of_q = summed_keys(h, dx);
    multiply_matrices(false, false, h->n, h->d, h->keys, c, of_q, exchanged ? h->q : h->k, 0, dq);
    multiply_matrices(transposed, false, h->keys, h->d, h->n, c, dx, exchanged ? h->k : h->q, 0,
                      dk);
    free(of_q);
}

/* The factor by which a row's weights are wrong if the backward pass recomputes them as exp(x - log
 * sum) with a logarithm or an exponential of another base. */
static double recomputed_weight_factor(const weighing *h, int64_t i)
{
    if (h->form->kept == SUM_RIGHT)
        return 1;
    double of_sum = log(h->by[i]), base = h->form->kept == SUM_IN_BASE_2 ? 1 / log(2) : log(2);
    for (int64_t j = i * h->keys; j < (i + 1) * h->keys && is_shifted(h); j++)
        if (h->e[j] > 0) { /* e = exp(x - the maximum) */
            of_sum += h->x[j] - log(h->e[j]);
            break;
        }
    return exp(of_sum * (1 - base));
}

/* dQ, dK and dV of a head, as derivatives by the q, k and v of `weighing`. */
static void find_gradients(const subject *s, weighing *h, const double *dout, double *dq,
                           double *dk, double *dv)
{
    double *dy = scaled(1, h->n * h->dv, dout), *dw = room(h->n * h->keys);
    double *y = room(h->n * h->dv);
    find_output(s, h, y);
    double *dphi_q = room(h->n * h->width + 1), *dphi_k = room(h->keys * h->width + 1);
    clear_padded_rows(h, dy);
    for (int64_t i = 0; i < h->n * h->dv; i++)
        dy[i] *= recomputed_weight_factor(h, i / h->dv);
    multiply_matrices(true, false, h->keys, h->dv, h->n, 1, h->w, dy, 0, dv);
    multiply_matrices(false, true, h->n, h->keys, h->dv, 1, dy, h->v, 0, dw);
    divisors_backward(h, dw, dphi_q);
    replace_terms(h, dy, y, dw);
    if (h->phi_q) {
        multiply_matrices(false, false, h->n, h->width, h->keys, 1, dw, h->phi_k, 1, dphi_q);
        multiply_matrices(true, false, h->keys, h->width, h->n, 1, dw, h->phi_q, 0, dphi_k);
        features_backward(&h->of_q, h->phi_q, dphi_q, dq);
        features_backward(&h->of_k, h->phi_k, dphi_k, dk);
    } else {
        for (int64_t i = 0; i < h->n * h->keys; i++)
            dw[i] *= h->e[i];
        if (h->op == ATN_GAUSSIAN)
            distances_backward(h, dw, dq, dk);
        else
            logits_backward(h, dw, dq, dk);
    }
    free(y), free(dphi_k), free(dphi_q), free(dw), free(dy);
}

/* ---- All heads ---- */

/* The gradient by linformer's keys or values, from that by E^T K or F^T V. */
static void unproject(const weighing *h, bool values, int64_t cols, const double *from, double *to)
{
    int64_t tokens = h->c->shape.key_tokens;
    const unsigned char *there = h->c->key_mask ? h->c->key_mask + h->batch * tokens : NULL;
    multiply_matrices(false, false, tokens, cols, h->keys, 1, projection_of(h, values), from, 0,
                      to);
    for (int64_t i = 0; there && i < tokens * cols; i++)
        to[i] = there[i / cols] ? to[i] : 0;
}

static void head_gradient(const subject *s, weighing *h, result_kind kind, int64_t which,
                          double *to)
{
    const attention_case *c = &s->c;
    int64_t queries = h->n * h->d, keys = c->shape.key_tokens * h->d;
    double *dq = room(queries), *dk = room(h->keys * h->d), *dv = room(h->keys * h->dv);
    double by_q = factor_of(c, h->form->of_queries), by_k = factor_of(c, h->form->of_keys);
    find_gradients(s, h, s->grad_output + which * h->n * h->dv, dq, dk, dv);
    bool projects = h->op == ATN_LINFORMER;
    double *all = room(keys);
    if (projects)
        unproject(h, false, h->d, dk, all);
    const double *of_keys = projects ? all : dk;
    for (int64_t i = 0; kind == RESULT_TOKENS && i < queries; i++)
        to[which * queries + i] = by_q * dq[i] + (c->k ? 0 : by_k * of_keys[i]);
    for (int64_t i = 0; kind == RESULT_KEYS && i < keys; i++)
        to[which * keys + i] = by_k * of_keys[i];
    int64_t values = c->shape.key_tokens * h->dv;
    if (kind == RESULT_VALUES && projects)
        unproject(h, true, h->dv, dv, to + which * values);
    else if (kind == RESULT_VALUES)
        memcpy(to + which * values, dv, (size_t)values * sizeof *to);
    free(all), free(dv), free(dk), free(dq);
}

static void answer(const weight_form *form, const subject *s, result_kind kind, double *to)
{
    if (s->c.reference.op == ATN_NYSTROMFORMER) {
        nystrom_answer(form, s, kind, to);
        return;
    }
    weight_form sized = *form;
    if (form->splits)
        sized.block = (s->c.shape.key_tokens + form->splits - 1) / form->splits;
    form = &sized;
    for (int64_t i = 0; i < s->c.shape.batch * s->c.shape.heads; i++) {
        weighing h = weighing_start(s, form, i);
        if (kind == RESULT_OUTPUT)
            find_output(s, &h, to + i * h.n * h.dv);
        else
            head_gradient(s, &h, kind, i, to);
        weighing_free(&h);
    }
}

/* ---- Fits ---- */

enum { MOST_FITTED = 3 };

static double distance_between(int64_t count, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

/* Solves A x = b for a symmetric positive definite A by Cholesky; NaN where A is singular. */
static void solve(int n, double a[MOST_FITTED][MOST_FITTED], double *b)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = a[i][j];
            for (int k = 0; k < j; k++)
                sum -= a[i][k] * a[j][k];
            a[i][j] = i == j ? sqrt(sum) : sum / a[j][j];
        }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++)
            b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    for (int i = n; i-- > 0;) {
        for (int k = i + 1; k < n; k++)
            b[i] -= a[k][i] * b[k];
        b[i] /= a[i][i];
    }
}

/* A Gauss-Newton step towards got, with derivatives by differences. y: the answer of `form`. */
static void improve(weight_form *form, int numbers, const subject *s, int64_t size,
                    const double *got, const double *y)
{
    const double step = 1e-6;
    double normal[MOST_FITTED][MOST_FITTED] = {{0}}, by[MOST_FITTED] = {0};
    double *slopes[MOST_FITTED];
    for (int r = 0; r < numbers; r++) {
        weight_form moved = *form;
        slopes[r] = room(size);
        moved.fitted[r] += step;
        answer(&moved, s, RESULT_OUTPUT, slopes[r]);
        for (int64_t i = 0; i < size; i++)
            slopes[r][i] = (slopes[r][i] - y[i]) / step;
    }
    for (int r = 0; r < numbers; r++)
        for (int64_t i = 0; i < size; i++) {
            by[r] += slopes[r][i] * (got[i] - y[i]);
            for (int q = 0; q <= r; q++)
                normal[r][q] += slopes[r][i] * slopes[q][i];
        }
    solve(numbers, normal, by);
    for (int r = 0; r < numbers; r++) {
        form->fitted[r] += by[r];
        free(slopes[r]);
    }
}

/* Takes steps as long as they reduce the error clearly. */
static void fit(const weight_change *change, const subject *s, const double *got, double *to)
{
    enum { MOST_STEPS = 20 };
    weight_form form = change->form;
    int64_t size = attention_case_outputs(&s->c);
    double *y = room(size), left = INFINITY;
    for (int step = 0; step < MOST_STEPS; step++) {
        answer(&form, s, RESULT_OUTPUT, y);
        double now = distance_between(size, y, got);
        if (!(now < left))
            break;
        memcpy(to, y, (size_t)size * sizeof *to);
        bool slow = now > 0.995 * left;
        left = now;
        if (slow)
            break;
        improve(&form, change->numbers, s, size, got, y);
    }
    free(y);
}

atn_status weights_answer(const weight_change *change, const subject *s, result_kind kind,
                          const double *got, double *to)
{
    if (kind > RESULT_VALUES || (kind != RESULT_OUTPUT && change->output_only))
        return ATN_ERR_UNSUPPORTED;
    if (change->numbers > 0)
        fit(change, s, got, to);
    else
        answer(&change->form, s, kind, to);
    return ATN_OK;
}
