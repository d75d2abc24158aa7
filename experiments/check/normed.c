/* SPDX-License-Identifier: BSD-3-Clause */
#include "check/normed.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"

bool is_normed(atn_operator op)
{
    return op == ATN_SIMA || op == ATN_XNORM || op == ATN_XCA;
}

/* ---- Divisions ---- */

static norm_division claimed_division(const atn_attention_desc *desc, int place)
{
    static const norm_kind sima[] = {
        [ATN_SIMA_L1] = NORM_SUM, [ATN_SIMA_L2] = NORM_ROOT, [ATN_SIMA_NONE] = NORM_NOT};
    norm_division d = {.kind = NORM_NOT, .lines = LINES_COLUMNS, .place = EPSILON_LEAST};
    if (desc->op == ATN_SIMA && place != NORM_OF_STATE) {
        d.kind = sima[desc->sima.norm];
        d.epsilon = desc->sima.epsilon;
    } else if (desc->op == ATN_XNORM && place != NORM_OF_K) {
        bool rows = place == NORM_OF_Q || desc->xnorm.axis == ATN_XNORM_ROWS;
        d.kind = NORM_ROOT;
        d.lines = rows ? LINES_ROWS : LINES_COLUMNS;
        d.epsilon = desc->xnorm.epsilon;
    } else if (desc->op == ATN_XCA) {
        bool state = place == NORM_OF_STATE;
        d.kind = state ? NORM_SUM : NORM_ROOT;
        d.lines = state ? LINES_ROWS : LINES_COLUMNS;
        d.epsilon = state ? 0 : desc->xca.epsilon;
    }
    return d;
}

/* The claimed division with the form's changes. */
static norm_division division_of(const attention_case *c, const norm_form *form, int place)
{
    norm_division claimed = claimed_division(&c->reference, place), d = form->of[place];
    norm_lines other = claimed.lines == LINES_ROWS ? LINES_COLUMNS : LINES_ROWS;
    d.kind = d.kind ? d.kind : claimed.kind;
    d.lines = d.lines == LINES_OTHER ? other : d.lines ? d.lines : claimed.lines;
    d.epsilon = d.place ? d.epsilon : claimed.epsilon;
    d.place = d.place ? d.place : claimed.place;
    return d;
}

/* ---- Hats ---- */

/* x with its lines divided by the norms of the lines of `of`, a matrix with as many columns. */
typedef struct {
    norm_division by;
    int64_t rows, cols, of_rows;
    const double *x, *of;
    const unsigned char *there, *of_there; /* rows that are not padding; null: all */
    double *roots, *norms; /* of each line: the norm without epsilon, and the divisor */
    double *y;
} hat;

static int64_t line_of(const hat *h, int64_t i, int64_t j)
{
    norm_lines lines = h->by.lines;
    return lines == LINES_ROWS      ? i
           : lines == LINES_COLUMNS ? j
           : lines == LINES_TILES   ? i / h->by.tile * h->cols + j
                                    : 0;
}

static int64_t line_count(const hat *h)
{
    int64_t rows = h->rows + h->of_rows;
    return rows + h->cols + (h->by.lines == LINES_TILES ? rows / h->by.tile * h->cols : 0);
}

/* Whether an element of `of` is a term of its line's norm. */
static bool is_term(const hat *h, int64_t i)
{
    bool all = h->by.lines == LINES_ROWS || h->by.end == 0;
    return (!h->of_there || h->of_there[i]) && (all || (i >= h->by.from && i < h->by.end));
}

static void find_norms(hat *h)
{
    const norm_division *by = &h->by;
    bool squares = by->kind == NORM_ROOT || by->kind == NORM_SQUARES;
    double *counts = must_allocate((size_t)line_count(h), sizeof *counts);
    for (int64_t i = 0; i < h->of_rows; i++)
        for (int64_t j = 0; j < h->cols && is_term(h, i); j++) {
            double given = h->of[i * h->cols + j],
                   x = by->kind == NORM_SIGNED ? given : fabs(given);
            double *sum = &h->roots[line_of(h, i, j)];
            counts[line_of(h, i, j)]++;
            *sum = by->kind == NORM_LARGEST ? fmax(*sum, x) : *sum + (squares ? x * x : x);
        }
    for (int64_t l = 0; l < line_count(h); l++) {
        bool terms = by->place == EPSILON_TERMS || by->place == EPSILON_ROOT_TERMS;
        double e = by->epsilon * (terms ? counts[l] : 1), root = h->roots[l];
        root /= by->mean && counts[l] > 0 ? counts[l] : 1;
        if (by->place == EPSILON_ROOT || by->place == EPSILON_ROOT_TERMS)
            root += e;
        root = by->kind == NORM_ROOT ? sqrt(root) : root;
        h->roots[l] = root;
        h->norms[l] = by->place == EPSILON_LEAST ? (fabs(root) >= e ? root : e)
                      : by->place == EPSILON_NORM || by->place == EPSILON_TERMS ? root + e
                                                                                : root;
    }
    free(counts);
}

/* Computes a hat from its description. To be freed by hat_free. */
static void put_hat(hat *h)
{
    h->roots = must_allocate((size_t)line_count(h), sizeof *h->roots);
    h->norms = must_allocate((size_t)line_count(h), sizeof *h->norms);
    h->y = must_allocate((size_t)(h->rows * h->cols), sizeof *h->y);
    find_norms(h);
    for (int64_t i = 0; i < h->rows; i++)
        for (int64_t j = 0; j < h->cols && (!h->there || h->there[i]); j++) {
            double norm = h->by.kind == NORM_NOT ? 1 : h->norms[line_of(h, i, j)];
            h->y[i * h->cols + j] = h->x[i * h->cols + j] / norm;
        }
}

static void hat_free(hat *h)
{
    free(h->roots), free(h->norms), free(h->y);
}

/* The derivative of a line's norm by one of its terms, without the factor of a mean. */
static double slope(const hat *h, double x, int64_t line)
{
    double sign = h->by.no_sign || x >= 0 ? 1 : -1, root = h->roots[line];
    switch (h->by.kind) {
    case NORM_SUM:
        return sign;
    case NORM_SIGNED:
        return 1;
    case NORM_ROOT:
        return root > 0 || h->by.unguarded ? x / root : 0;
    case NORM_SQUARES:
        return 2 * x;
    default:
        return fabs(x) == root ? sign : 0;
    }
}

/* The backward pass of a hat: adds to dx and d(of) from g, the derivative by y. */
static void hat_backward(const hat *h, const double *g, double *dx, double *dof)
{
    const norm_division *by = &h->by;
    double *by_norm = must_allocate((size_t)(2 * line_count(h)), sizeof *by_norm);
    double *counts = by_norm + line_count(h);
    for (int64_t i = 0; i < h->rows; i++)
        for (int64_t j = 0; j < h->cols && (!h->there || h->there[i]); j++) {
            int64_t at = i * h->cols + j, line = line_of(h, i, j);
            double norm = by->kind == NORM_NOT ? 1 : h->norms[line];
            dx[at] += g[at] / norm;
            by_norm[line] -= g[at] * h->y[at] / norm;
        }
    bool none = by->kind == NORM_NOT || by->detached;
    for (int64_t i = 0; i < h->of_rows && by->mean; i++)
        for (int64_t j = 0; j < h->cols && is_term(h, i); j++)
            counts[line_of(h, i, j)]++;
    for (int64_t i = 0; i < h->of_rows && !none; i++)
        for (int64_t j = 0; j < h->cols && is_term(h, i); j++) {
            int64_t line = line_of(h, i, j);
            bool least = by->place == EPSILON_LEAST && h->roots[line] < h->norms[line];
            double change = by_norm[line] * slope(h, h->of[i * h->cols + j], line);
            change = by->negated ? -change : change;
            if (least && !by->unguarded)
                continue;
            dof[i * h->cols + j] += (least ? 0 : 1) * change / (by->mean ? counts[line] : 1);
        }
    free(by_norm);
}

/* ---- A head ---- */

typedef struct {
    const attention_case *c;
    const norm_form *form;
    int64_t index, n, n_k, d, dv;
    unsigned char *q_there, *k_there;
    double *q_given, *k_given; /* with rows of padding set to 0 */
    const double *v;
    double parameter; /* gamma or tau; else 1 */
    hat q, k;
} head;

static bool is_xca(const head *h)
{
    return h->c->reference.op == ATN_XCA;
}

/* The number of columns of S, which has d rows. */
static int64_t state_cols(const head *h)
{
    return is_xca(h) ? h->d : h->dv;
}

static int64_t state_size(const attention_case *c)
{
    return c->shape.dim * (c->reference.op == ATN_XCA ? c->shape.dim : c->shape.value_dim);
}

static int power_of(const head *h)
{
    return h->form->power_set ? h->form->power : is_xca(h) ? 1 : 2;
}

/* C = op(A) op(B) + C, C m x n. */
static void add_product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                        const double *a, const double *b, double *c)
{
    if (m > 0 && n > 0 && k > 0)
        cblas_dgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                    transpose_b ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, 1, a,
                    (int)(transpose_a ? m : k), b, (int)(transpose_b ? k : n), 1, c, (int)n);
}

static double *zeros(int64_t count)
{
    return must_allocate((size_t)count, sizeof(double));
}

static double *kept_rows(int64_t rows, int64_t cols, const double *x, const unsigned char *there)
{
    double *y = zeros(rows * cols);
    for (int64_t i = 0; i < rows; i++)
        if (there[i])
            memcpy(y + i * cols, x + i * cols, (size_t)cols * sizeof *y);
    return y;
}

static double parameter_of(const attention_case *c, int64_t index)
{
    const atn_tensor *w = c->reference.op == ATN_XCA     ? &c->reference.xca.temperature
                          : c->reference.op == ATN_XNORM ? &c->reference.xnorm.gamma
                                                         : NULL;
    if (!w || !w->data)
        return 1;
    return ((const double *)w->data)[w->heads == 1 ? 0 : index % c->shape.heads];
}

static head head_start(const attention_case *c, const norm_form *form, int64_t index)
{
    const atn_attention_shape *s = &c->shape;
    int64_t batch = index / s->heads, keys = s->key_tokens;
    head h = {c,
              form,
              index,
              s->tokens,
              keys,
              s->dim,
              s->value_dim,
              .v = c->v + index * keys * s->value_dim,
              .parameter = parameter_of(c, index)};
    bool xca = c->reference.op == ATN_XCA;
    h.q_there = must_allocate((size_t)(h.n + h.n_k), sizeof *h.q_there);
    h.k_there = h.q_there + h.n;
    const unsigned char *mask = !c->query_mask && !c->k ? c->key_mask : c->query_mask;
    for (int64_t i = 0; i < h.n; i++)
        h.q_there[i] = !mask || mask[batch * h.n + i];
    for (int64_t i = 0; i < h.n_k; i++)
        h.k_there[i] = !c->key_mask || c->key_mask[batch * keys + i];
    for (int64_t i = 0; i < h.n && xca; i++)
        h.q_there[i] = h.k_there[i] = h.q_there[i] && h.k_there[i];
    h.q_given = kept_rows(h.n, h.d, c->q + index * h.n * h.d, h.q_there);
    h.k_given = kept_rows(h.n_k, h.d, (c->k ? c->k : c->q) + index * h.n_k * h.d, h.k_there);
    norm_division q = division_of(c, form, NORM_OF_Q), k = division_of(c, form, NORM_OF_K);
    h.q = (hat){.by = q,
                .rows = h.n,
                .cols = h.d,
                .of_rows = q.of_other ? h.n_k : h.n,
                .x = h.q_given,
                .of = q.of_other ? h.k_given : h.q_given,
                .there = h.q_there,
                .of_there = q.of_other ? h.k_there : h.q_there};
    h.k = (hat){.by = k,
                .rows = h.n_k,
                .cols = h.d,
                .of_rows = k.of_other ? h.n : h.n_k,
                .x = h.k_given,
                .of = k.of_other ? h.q_given : h.k_given,
                .there = h.k_there,
                .of_there = k.of_other ? h.q_there : h.k_there};
    if (q.padded && !q.of_other) {
        h.q.of = c->q + index * h.n * h.d;
        h.q.of_there = NULL;
    }
    if (k.padded && !k.of_other) {
        h.k.of = (c->k ? c->k : c->q) + index * h.n_k * h.d;
        h.k.of_there = NULL;
    }
    put_hat(&h.q), put_hat(&h.k);
    return h;
}

static void head_free(head *h)
{
    hat_free(&h->q), hat_free(&h->k);
    free(h->q_given), free(h->k_given), free(h->q_there);
}

/* x with every row multiplied by its token's weight in S. */
static double *weighted(const head *h, const double *x, int64_t rows, int64_t cols)
{
    double *y = zeros(rows * cols);
    for (int64_t i = 0; i < rows * cols; i++)
        y[i] = h->form->weights ? h->form->weights[i / cols] * x[i] : x[i];
    return y;
}

/* Adds the sum over tokens to S. */
static void sum_state(const head *h, double *s)
{
    bool xca = is_xca(h);
    double *left = weighted(h, xca ? h->q.y : h->k.y, h->n_k, h->d);
    add_product(true, false, h->d, state_cols(h), h->n_k, left, xca ? h->k.y : h->v, s);
    free(left);
}

/* Adds to a head's S the earlier sums that are still in the accumulator. */
static void add_stale(const norm_form *form, const attention_case *c, int64_t index,
                      const double *sums, double *s)
{
    int64_t size = state_size(c), heads = c->shape.heads;
    int64_t step = form->extent == STALE_OF_HEAD ? heads : 1;
    int64_t first = form->extent == STALE_IN_ENTRY ? index / heads * heads : 0;
    for (int64_t from = index - step; from >= first && form->stale; from -= step) {
        for (int64_t i = 0; i < size; i++)
            s[i] += sums[from * size + i];
        if (form->stale == STALE_LAST)
            break;
    }
}

static void transpose(int64_t m, double *s)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < i; j++) {
            double kept = s[i * m + j];
            s[i * m + j] = s[j * m + i];
            s[j * m + i] = kept;
        }
}

/* exp(tau S) divided by the largest value of its line, which cancels when the line is divided by
 * its norm. */
static void exponentiate(const hat *h, int64_t m, double factor, const double *s, double *e)
{
    double *most = zeros(m);
    for (int64_t l = 0; l < m; l++)
        most[l] = -INFINITY;
    for (int64_t i = 0; i < m * m; i++) {
        double *at = &most[line_of(h, i / m, i % m)];
        *at = fmax(*at, factor * s[i]);
    }
    for (int64_t i = 0; i < m * m; i++)
        e[i] = exp(factor * s[i] - most[line_of(h, i / m, i % m)]);
    free(most);
}

/* The steps to a head's Y: the state, exp of it (xca), the hat of that, and Y without gamma. */
typedef struct {
    double factor; /* gamma^2 or tau */
    double *s, *e, *y;
    hat t;
} forward;

static forward head_forward(const head *h, const double *sums)
{
    int64_t rows = h->d, cols = state_cols(h), size = rows * cols;
    bool xca = is_xca(h);
    forward f = {.factor = pow(h->parameter, power_of(h)),
                 .s = zeros(size),
                 .e = zeros(size),
                 .y = zeros(h->n * h->dv)};
    memcpy(f.s, sums + h->index * size, (size_t)size * sizeof *f.s);
    add_stale(h->form, h->c, h->index, sums, f.s);
    for (int64_t i = 0; i < size; i++)
        f.s[i] += h->form->initial;
    if (h->form->transposed)
        transpose(rows, f.s);
    f.t = (hat){.by = division_of(h->c, h->form, NORM_OF_STATE),
                .rows = rows,
                .cols = cols,
                .of_rows = rows,
                .x = xca ? f.e : f.s,
                .of = xca ? f.e : f.s};
    if (xca)
        exponentiate(&f.t, rows, f.factor, f.s, f.e);
    put_hat(&f.t);
    if (h->form->hat_transposed)
        transpose(rows, f.t.y);
    add_product(false, xca, h->n, h->dv, h->d, xca ? h->v : h->q.y, f.t.y, f.y);
    for (int64_t i = 0; i < h->n * h->dv; i++)
        f.y[i] = h->q_there[i / h->dv] ? f.y[i] : 0;
    return f;
}

static void forward_free(forward *f)
{
    hat_free(&f->t);
    free(f->s), free(f->e), free(f->y);
}

/* Sums of derivatives by Q, K, V and gamma or tau. */
typedef struct {
    double *q, *k, *v, *parameter;
} derivatives;

/* Derivatives by Q, K and V from dS, through the sum over tokens and the norms of Q and K. dq holds
 * the derivative by Q^ that is known so far. */
static void leave_state(const head *h, const double *ds, double *dq, const derivatives *to)
{
    int64_t cols = state_cols(h);
    bool xca = is_xca(h);
    double *dk = zeros(h->n_k * h->d);
    double *left = weighted(h, xca ? h->q.y : h->k.y, h->n_k, h->d);
    double *right = weighted(h, xca ? h->k.y : h->v, h->n_k, cols);
    add_product(false, false, h->n_k, cols, h->d, left, ds, xca ? dk : to->v);
    add_product(false, true, h->n_k, h->d, cols, right, ds, xca ? dq : dk);
    hat_backward(&h->q, dq, to->q, h->q.of == h->k_given ? to->k : to->q);
    hat_backward(&h->k, dk, to->k, h->k.of == h->q_given ? to->q : to->k);
    free(left), free(right), free(dk);
}

/* dS of xca from g = dY; adds to dV. Returns the derivative by `factor`. */
static double leave_xca(const head *h, const forward *f, const double *g, double *ds, double *dv)
{
    int64_t size = h->d * h->d;
    double *dt = zeros(size), along = 0;
    add_product(true, false, h->d, h->d, h->n, g, h->v, dt);
    add_product(false, false, h->n, h->d, h->d, g, f->t.y, dv);
    if (h->form->hat_transposed) {
        transpose(h->d, dt);
        transpose(h->d, f->t.y); /* hat_backward needs it as it was divided */
    }
    hat_backward(&f->t, dt, ds, ds);
    for (int64_t i = 0; i < size; i++) {
        ds[i] *= f->e[i];
        along += ds[i] * f->s[i];
        ds[i] *= f->factor;
    }
    free(dt);
    return along;
}

/* The same for sima and xnorm, where g also contributes to the derivative by Q^. */
static double leave_product(const head *h, const forward *f, double *g, double *ds, double *dq)
{
    double *dt = zeros(h->d * h->dv), along = 0;
    for (int64_t i = 0; i < h->n * h->dv; i++) {
        along += g[i] * f->y[i];
        g[i] *= f->factor;
    }
    add_product(true, false, h->d, h->dv, h->n, h->q.y, g, dt);
    add_product(false, true, h->n, h->d, h->dv, g, f->t.y, dq);
    hat_backward(&f->t, dt, ds, ds);
    free(dt);
    return along;
}
static void head_backward(const head *h, const forward *f, const double *dy, const derivatives *to)
{
    int power = power_of(h);
    double *g = kept_rows(h->n, h->dv, dy, h->q_there), *ds = zeros(h->d * state_cols(h));
    double *dq = zeros(h->n * h->d);
    double along = is_xca(h) ? leave_xca(h, f, g, ds, to->v) : leave_product(h, f, g, ds, dq);
    *to->parameter += power * pow(h->parameter, power - 1) * along;
    if (h->form->transposed)
        transpose(h->d, ds);
    leave_state(h, ds, dq, to);
    free(g), free(ds), free(dq);
}

/* ---- All heads ---- */

static bool can_answer(const attention_case *c, const norm_form *form, result_kind kind)
{
    const atn_attention_shape *s = &c->shape;
    bool same = s->tokens == s->key_tokens && s->dim == s->value_dim;
    return is_normed(c->reference.op) && !c->reference.causal &&
           (!form->transposed || s->dim == s->value_dim) && (c->reference.op != ATN_XCA || same) &&
           (kind < RESULT_PARAMETERS || result_exists(c, kind));
}

/* S of every head; to be freed. */
static double *all_sums(const attention_case *c, const norm_form *form)
{
    int64_t heads = c->shape.batch * c->shape.heads, size = state_size(c);
    double *sums = zeros(heads * size);
    for (int64_t i = 0; i < heads; i++) {
        head h = head_start(c, form, i);
        sum_state(&h, sums + i * size);
        head_free(&h);
    }
    return sums;
}

/* Writes a head's rows of a result, or adds to a parameter's sum over the batch. */
static void add_result(const attention_case *c, result_kind kind, int64_t index, const forward *f,
                       const derivatives *d, double *to)
{
    int64_t heads = result_heads(c, kind), size = result_size(c, kind) / heads;
    const double *const from[] = {f->y, d->q, d->k, d->v};
    double factor = kind == RESULT_OUTPUT && c->reference.op != ATN_XCA ? f->factor : 1;
    if (kind >= RESULT_PARAMETERS)
        to[index % heads] += *d->parameter;
    for (int64_t i = 0; i < size && kind < RESULT_PARAMETERS; i++)
        to[index * size + i] = factor * from[kind][i];
}

atn_status normed_answer(const attention_case *c, const norm_form *form, const double *dout,
                         result_kind kind, double *to)
{
    const atn_attention_shape *s = &c->shape;
    if (!can_answer(c, form, kind))
        return ATN_ERR_UNSUPPORTED;
    int64_t q = s->tokens * s->dim, k = s->key_tokens * s->dim, v = s->key_tokens * s->value_dim;
    double *sums = all_sums(c, form), *room = zeros(q + k + v + 1);
    memset(to, 0, (size_t)result_size(c, kind) * sizeof *to);
    for (int64_t i = 0; i < s->batch * s->heads; i++) {
        const derivatives d = {room, room + q, room + q + k, room + q + k + v};
        head h = head_start(c, form, i);
        forward f = head_forward(&h, sums);
        memset(room, 0, (size_t)(q + k + v + 1) * sizeof *room);
        if (kind != RESULT_OUTPUT)
            head_backward(&h, &f, dout + i * s->tokens * s->value_dim, &d);
        for (int64_t j = 0; j < q && !c->k; j++)
            d.q[j] += d.k[j];
        add_result(c, kind, i, &f, &d, to);
        forward_free(&f);
        head_free(&h);
    }
    free(room), free(sums);
    return ATN_OK;
}

static double mean_size(int64_t count, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += isfinite(x[i]) ? x[i] * x[i] : 0;
    return sqrt(sum / (double)count);
}

double normed_state_size(const attention_case *c)
{
    static const norm_form claimed;
    double *sums = all_sums(c, &claimed);
    double size = mean_size(c->shape.batch * c->shape.heads * state_size(c), sums);
    free(sums);
    return size;
}

double normed_norm_size(const attention_case *c)
{
    static const norm_form claimed;
    head h = head_start(c, &claimed, 0);
    double size = mean_size(h.q.by.lines == LINES_ROWS ? h.n : h.d, h.q.norms);
    head_free(&h);
    return size;
}
