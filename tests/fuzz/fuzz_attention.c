/* SPDX-License-Identifier: BSD-3-Clause */
/* atn_attention_cost, _plan, _forward, _backward on descriptions and shapes that anyone may have
 * made up: cost and plan agree, statuses tell of the outputs, nothing is written outside them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <attnum/attnum.h>

#include "common/report.h"
#include "target.h"

/* ---- Bytes become choices; when there are no more, they are 0 ---- */

typedef struct {
    const uint8_t *data;
    size_t left;
} source;

static int take(source *s)
{
    if (s->left == 0)
        return 0;
    s->left--;
    return *s->data++;
}

/* Whether what has a good default is something else here. */
static bool changes(source *s)
{
    return take(s) % 4 == 3;
}

/* Mostly a value of an enumeration, sometimes one just outside it. */
static int option(source *s, int count)
{
    int byte = take(s);
    return byte == 255 ? -1 : byte == 254 ? count : byte % count;
}

static int64_t integer(source *s)
{
    static const int64_t strange[] = {-1,
                                      INT64_MIN,
                                      INT64_MAX,
                                      (int64_t)1 << 20,
                                      (int64_t)1 << 31,
                                      (int64_t)1 << 54,
                                      1 << 15,
                                      ((int64_t)1 << 53) + 1,
                                      INT32_MAX,
                                      (int64_t)1 << 40,
                                      -((int64_t)1 << 33),
                                      3037000500};
    int byte = take(s);
    if (byte < 224)
        return byte % 14;
    return strange[byte % (int)(sizeof strange / sizeof *strange)];
}

static double number(source *s)
{
    static const double strange[] = {-1,     NAN,     INFINITY, -INFINITY, 1e-300,  1e300,
                                     5e-324, 1.7e308, -1e-30,   1e-30,     0x1p-53, 1};
    int byte = take(s);
    if (byte < 192)
        return byte / 64.0;
    return strange[byte % (int)(sizeof strange / sizeof *strange)];
}

/* ---- Memory whose ends a sanitizer watches ---- */

enum { MOST_BLOCKS = 128, MOST_ELEMENTS = 1 << 14, MOST_BYTES = 1 << 24, MOST_FLOPS = 300000 };

/* The memory of the arrays of one run. */
typedef struct {
    void *blocks[MOST_BLOCKS];
    int count;
    bool backed; /* every array is as long as its description says */
} memory;

static void *own(memory *m, size_t bytes)
{
    target_expect(m->count < MOST_BLOCKS, "the target has room for a run's arrays");
    return m->blocks[m->count++] = must_allocate(bytes, 1);
}

static void give_back(memory *m)
{
    while (m->count > 0)
        free(m->blocks[--m->count]);
}

/* The context's allocator: as long as asked for, and NaN until it is written. */
typedef struct {
    int64_t live;
    size_t last;
} allocations;

static void *allocate(void *user, size_t bytes)
{
    allocations *a = user;
    void *block = NULL;
    a->last = bytes;
    if (bytes > MOST_BYTES || posix_memalign(&block, 64, bytes) != 0)
        return NULL;
    memset(block, 0xff, bytes);
    a->live++;
    return block;
}

static void release(void *user, void *block)
{
    ((allocations *)user)->live--;
    free(block);
}

/* ---- Tensors ---- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Elements from the first to the last; -1 if that is more than the target gives. */
static int64_t span_of(const atn_tensor *t)
{
    atn_tensor some = *t;
    some.data = &some;
    double last = ((double)t->batch - 1) * (double)t->batch_stride +
                  ((double)t->heads - 1) * (double)t->head_stride +
                  ((double)t->rows - 1) * (double)t->row_stride + (double)t->cols;
    if (t->batch <= 0 || t->heads <= 0 || t->rows <= 0 || t->cols <= 0)
        return 0;
    return atn_tensor_check(&some) == ATN_OK && last <= MOST_ELEMENTS ? (int64_t)last : -1;
}

static void set(const atn_tensor *t, int64_t i, double value)
{
    if (t->dtype == ATN_F64)
        ((double *)t->data)[i] = value;
    else
        ((float *)t->data)[i] = (float)value;
}

static double get(const atn_tensor *t, int64_t i)
{
    return t->dtype == ATN_F64 ? ((const double *)t->data)[i] : (double)((const float *)t->data)[i];
}

/* Gives a view memory of its span, filled with numbers of about `size`, which a storage may hold.
 */
static void back(memory *m, atn_tensor *t, uint64_t *state, double size, atn_storage storage)
{
    int64_t span = span_of(t);
    bool plain = t->dtype == ATN_F32 || t->dtype == ATN_F64;
    m->backed = m->backed && span >= 0 && plain;
    if (span < 0 || !plain)
        span = 1;
    t->data = own(m, (size_t)(span ? span : 1) * (t->dtype == ATN_F64 ? 8 : 4));
    for (int64_t i = 0; plain && i < span; i++) {
        double x = (double)(next_random(state) >> 11) * 0x1p-52 - 1;
        set(t, i, x * size);
    }
    if (t->dtype == ATN_F32 && atn_storage_name(storage))
        atn_storage_round(storage, span, t->data);
}

/* A tensor of a description. */
static atn_tensor parameter(source *s, memory *m, const atn_attention_desc *d, int64_t heads,
                            int64_t rows, int64_t cols)
{
    int64_t sizes[4] = {1, heads, rows, cols};
    uint64_t state = (uint64_t)take(s);
    atn_dtype dtype = d->dtype;
    if (take(s) > 250)
        sizes[take(s) % 4] = integer(s);
    if (take(s) == 255)
        dtype = (atn_dtype)option(s, ATN_DTYPE_COUNT);
    atn_tensor t = atn_tensor_dense(NULL, dtype, sizes[0], sizes[1], sizes[2], sizes[3]);
    if (take(s) > 252)
        t.row_stride = integer(s);
    if (take(s) > 252)
        t.head_stride = integer(s);
    back(m, &t, &state, take(s) > 250 ? number(s) : 1, d->storage);
    if (take(s) == 255)
        t.data = NULL;
    return t;
}

/* ---- Descriptions ---- */

static void describe_sampling(source *s, memory *m, atn_attention_desc *d,
                              const atn_attention_shape *shape)
{
    atn_sampling *a = &d->sampling;
    uint64_t state = (uint64_t)take(s);
    a->kind = (atn_sampling_kind)option(s, ATN_SAMPLING_COUNT);
    a->height = changes(s) ? integer(s) : 1;
    a->width = changes(s) ? integer(s) : a->height > 0 ? shape->tokens / a->height : 0;
    a->stride = changes(s) ? integer(s) : 1 + take(s) % 3;
    a->count = changes(s) ? integer(s) : 1 + take(s) % 5;
    a->uniform_count = changes(s) ? integer(s) : 10;
    a->steps = take(s) % 4;
    if (take(s) > 250)
        a->steps = integer(s);
    a->scale = changes(s) ? number(s) : 0;
    a->ridge = changes(s) ? number(s) : 0;
    /* as many as are read of a description that is right */
    int64_t read = a->count < 0 || a->count > MOST_ELEMENTS ? 0 : a->count;
    if (read == 0 && a->count > 0)
        a->kind = ATN_SAMPLING_FIRST; /* there are not so many to read */
    int64_t *indices = own(m, (size_t)(read ? read : 1) * sizeof *indices);
    double *uniforms = own(m, (size_t)(2 * read + 1) * sizeof *uniforms);
    for (int64_t i = 0; i < read; i++)
        indices[i] =
            shape->tokens > 0 ? (int64_t)(next_random(&state) % (uint64_t)shape->tokens) : 0;
    for (int64_t i = 0; i < 2 * read; i++)
        uniforms[i] = (double)(next_random(&state) >> 11) * 0x1p-53;
    if (read > 0 && take(s) > 250)
        indices[take(s) % read] = integer(s);
    if (read > 0 && take(s) > 250)
        uniforms[take(s) % read] = number(s);
    a->indices = take(s) == 255 ? NULL : indices;
    a->uniforms = take(s) == 255 ? NULL : uniforms;
    int64_t cells = a->stride > 0 && a->stride < 64 ? a->stride * a->stride : 1;
    a->weights = parameter(s, m, d, shape->dim, shape->dim, cells);
    if (changes(s)) {
        a->norm_weight = parameter(s, m, d, 1, 1, shape->dim);
        a->norm_bias = parameter(s, m, d, 1, 1, shape->dim);
    }
}

static void describe_inverse(source *s, atn_inverse_desc *d)
{
    if (changes(s))
        *d = atn_inverse_defaults((atn_inverse_method)option(s, ATN_INVERSE_COUNT));
    double *const numbers[] = {&d->alpha,         &d->numerator, &d->ridge,
                               &d->search_limit,  &d->tolerance, &d->interval_low,
                               &d->interval_high, &d->rcond,     &d->jitter};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (take(s) % 8 == 7)
            *numbers[i] = number(s);
    if (changes(s))
        d->iterations = (int)integer(s);
    if (changes(s))
        d->search = (atn_alpha_search)option(s, 3);
    if (changes(s))
        d->search_cap = (int)integer(s);
    if (changes(s))
        d->search_accepts_last = !d->search_accepts_last;
    if (changes(s))
        d->scope = (atn_alpha_scope)option(s, 2);
    if (changes(s))
        d->stopping = (atn_stopping)option(s, ATN_STOPPING_COUNT);
    if (changes(s))
        d->start = (atn_start)option(s, 2);
    if (take(s) > 250)
        d->storage = (atn_storage)option(s, ATN_STORAGE_COUNT);
}

static void describe_own(source *s, memory *m, atn_attention_desc *d,
                         const atn_attention_shape *shape)
{
    int64_t h = shape->heads, keys = shape->key_tokens ? shape->key_tokens : shape->tokens;
    double *const numbers[] = {&d->sima.epsilon,
                               &d->xnorm.epsilon,
                               &d->performer.feature_epsilon,
                               &d->performer.denominator_epsilon,
                               &d->nystromformer.rcond,
                               &d->xca.epsilon,
                               &d->elu.epsilon,
                               &d->cosformer.epsilon,
                               &d->lsh.self_logit};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (take(s) % 8 == 7)
            *numbers[i] = number(s);
    int64_t shared = take(s) % 2 ? 1 : h;
    d->xnorm.gamma = parameter(s, m, d, shared, 1, 1);
    d->linformer.e = parameter(s, m, d, shared, keys, 1 + take(s) % 5);
    if (changes(s))
        d->linformer.f = parameter(s, m, d, shared, keys, d->linformer.e.cols);
    d->performer.projection = parameter(s, m, d, shared, 1 + take(s) % 7, shape->dim);
    d->rff.projection = d->performer.projection;
    d->xca.temperature = parameter(s, m, d, shared, 1, 1);
    d->nystromformer.landmarks = changes(s) ? integer(s) : 1 + take(s) % 5;
    if (changes(s))
        d->nystromformer.inverse = (atn_nystrom)option(s, ATN_NYSTROM_COUNT);
    if (changes(s))
        d->nystromformer.iterations = (int)integer(s);
    if (changes(s))
        d->cosformer.length = integer(s);
    d->cosformer.height = changes(s) ? integer(s) : 1;
    d->cosformer.width = changes(s) ? integer(s) : shape->tokens;
    if (changes(s))
        d->cosformer.weighting = (atn_cosine)option(s, ATN_COSINE_COUNT);
    if (changes(s))
        d->sima.norm = (atn_sima_norm)option(s, ATN_SIMA_NORM_COUNT);
    if (changes(s))
        d->sima.order = (atn_order)option(s, ATN_ORDER_COUNT);
    if (changes(s))
        d->xnorm.axis = (atn_xnorm_axis)option(s, ATN_XNORM_AXIS_COUNT);
    if (changes(s))
        d->performer.features = (atn_features)option(s, ATN_FEATURES_COUNT);
    if (changes(s))
        d->elu.form = (atn_elu_form)option(s, ATN_ELU_COUNT);
}

static void describe_lsh(source *s, memory *m, atn_attention_desc *d,
                         const atn_attention_shape *shape)
{
    static const int64_t strange[] = {INT64_MIN, INT64_MAX, -1, (int64_t)1 << 40};
    uint64_t state = (uint64_t)take(s);
    atn_lsh_options *l = &d->lsh;
    l->rotations = parameter(s, m, d, 1 + take(s) % 3, shape->dim, 1 + take(s) % 3);
    l->chunk = changes(s) ? integer(s) : 1;
    l->rounds = changes(s) ? integer(s) : 2;
    if (!changes(s))
        return;
    double count =
        (double)shape->batch * (double)shape->heads * (double)l->rounds * (double)shape->tokens;
    bool fits = shape->batch >= 0 && shape->heads >= 0 && l->rounds >= 0 && shape->tokens >= 0 &&
                count <= MOST_ELEMENTS;
    int64_t *buckets = own(m, (fits ? (size_t)count : 0) * sizeof *buckets + 1);
    for (int64_t i = 0; fits && i < (int64_t)count; i++)
        buckets[i] = (int64_t)(next_random(&state) % 5);
    if (fits && count > 0 && take(s) > 128)
        buckets[take(s) % (int64_t)count] = strange[take(s) % 4];
    m->backed = m->backed && fits;
    l->buckets = buckets;
}

/* Mostly sizes of a few tokens; one or two of them may be anything. */
static atn_attention_shape make_shape(source *s)
{
    atn_attention_shape shape = {.batch = 1 + take(s) % 3,
                                 .heads = 1 + take(s) % 3,
                                 .tokens = take(s) % 24,
                                 .dim = 1 + take(s) % 8,
                                 .key_tokens = take(s) % 2 ? 0 : take(s) % 24};
    int64_t *const sizes[] = {&shape.batch, &shape.heads,     &shape.tokens,
                              &shape.dim,   &shape.value_dim, &shape.key_tokens};
    shape.value_dim = changes(s) ? 1 + take(s) % 8 : shape.dim;
    for (int i = 0; i < 2; i++)
        if (take(s) > 230)
            *sizes[take(s) % 6] = integer(s);
    if (take(s) > 250) /* as narrow as can be, so that it fits for long */
        shape.dim = shape.value_dim = 1;
    return shape;
}

static atn_attention_desc make_desc(source *s, memory *m, const atn_attention_shape *shape)
{
    atn_operator op = (atn_operator)option(s, ATN_OPERATOR_COUNT);
    int byte = take(s);
    atn_dtype dtype = byte > 250 ? (atn_dtype)option(s, ATN_DTYPE_COUNT)
                      : byte % 2 ? ATN_F64
                                 : ATN_F32;
    atn_attention_desc d = atn_attention_variant(op, take(s) % 8, dtype);
    d.padding = take(s) % 2;
    if (changes(s))
        d.causal = !d.causal;
    if (take(s) > 240)
        d.storage = (atn_storage)option(s, ATN_STORAGE_COUNT);
    if (changes(s))
        d.scale = (atn_scale)option(s, ATN_SCALE_COUNT);
    if (changes(s))
        d.distance = (atn_distance)option(s, ATN_DISTANCE_COUNT);
    if (changes(s))
        d.scale_value = number(s);
    if (changes(s))
        d.logit_scale = number(s);
    if (changes(s))
        d.gradient = (atn_gradient)option(s, ATN_GRADIENT_COUNT);
    if (take(s) > 250)
        d.passes = (atn_soft_passes)option(s, ATN_SOFT_PASSES_COUNT);
    describe_own(s, m, &d, shape);
    describe_lsh(s, m, &d, shape);
    describe_sampling(s, m, &d, shape);
    describe_inverse(s, &d.inverse);
    if (changes(s)) {
        int64_t window = 1 + 2 * (take(s) % 2);
        d.residual =
            parameter(s, m, &d, shape->heads, window, op == ATN_NYSTROMFORMER ? 1 : window);
        d.residual_height = changes(s) ? integer(s) : 1;
        d.residual_width = changes(s) ? integer(s) : shape->tokens;
    }
    return d;
}

/* ---- Cost and plan ---- */

static bool empty(const atn_attention_shape *s)
{
    return s->batch == 0 || s->heads == 0 || s->tokens == 0 || s->value_dim == 0;
}

/* Returns the plan, or null. */
static atn_plan *check_plan(atn_context *c, const allocations *a, const atn_attention_desc *d,
                            const atn_attention_shape *shape, atn_cost *cost)
{
    atn_plan *plan = (atn_plan *)(void *)&plan;
    int64_t live = a->live;
    cost->flops = -1;
    atn_status costs = atn_attention_cost(c, d, shape, cost);
    target_expect(costs <= 0, "a cost has no numerical outcome");
    target_expect((costs == ATN_OK) == (cost->flops >= 0), "a cost, or none");
    target_expect(a->live == live, "cost keeps nothing");
    atn_status plans = atn_attention_plan(c, d, shape, &plan);
    target_expect(costs == plans || (costs == ATN_OK && plans == ATN_ERR_MEMORY),
                  "cost and plan agree");
    target_expect((plans == ATN_OK) == (plan != NULL), "a plan, or none");
    target_expect(plan || (a->live == live && *atn_last_error(c)), "a refusal has a reason");
    if (plans == ATN_OK && !empty(shape))
        target_expect(cost->workspace_bytes == 0 || cost->workspace_bytes == (double)a->last,
                      "the workspace is as large as cost said");
    return plan;
}

/* ---- Calls ---- */

enum { Q, K, V, DOUT, Y, GRAD_Q, GRAD_K, GRAD_V, TENSORS };

/* The tensors of a call, and what they held before it. */
typedef struct {
    atn_context *context;
    atn_plan *plan;
    const atn_attention_desc *desc;
    atn_attention_shape shape;
    atn_tensor tensors[TENSORS], parameters[ATN_PARAMETER_COUNT];
    void *before[TENSORS + ATN_PARAMETER_COUNT];
    unsigned char *query_mask, *key_mask;
    bool cross;
} call;

static atn_tensor *tensor_of(call *c, int i)
{
    return i < TENSORS ? &c->tensors[i] : &c->parameters[i - TENSORS];
}

static size_t bytes_of(const atn_tensor *t)
{
    return t->data ? (size_t)span_of(t) * atn_dtype_size(t->dtype) : 0;
}

static unsigned char *make_mask(source *s, memory *m, int64_t batch, int64_t tokens)
{
    int kind = take(s);
    if (kind % 3 == 0 || (double)batch * (double)tokens > MOST_ELEMENTS)
        return NULL;
    int64_t count = batch * tokens;
    unsigned char *mask = own(m, (size_t)count);
    uint64_t state = (uint64_t)kind;
    for (int64_t i = 0; i < count; i++)
        mask[i] = next_random(&state) % 4 != 0 && kind % 16 != 1 ? 1 + i % 255 : 0;
    return mask;
}

static void make_tensors(source *s, memory *m, call *c)
{
    const atn_attention_shape *sh = &c->shape;
    const int64_t rows[] = {sh->tokens, sh->key_tokens, sh->key_tokens, sh->tokens,
                            sh->tokens, sh->tokens,     sh->key_tokens, sh->key_tokens};
    const int64_t cols[] = {sh->dim,       sh->dim, sh->value_dim, sh->value_dim,
                            sh->value_dim, sh->dim, sh->dim,       sh->value_dim};
    uint64_t state = (uint64_t)take(s);
    double size = changes(s) ? number(s) : 1;
    for (int i = 0; i < TENSORS; i++) {
        atn_tensor *t = &c->tensors[i];
        int64_t gap = take(s) % 3;
        *t = atn_tensor_dense(NULL, c->desc->dtype, sh->batch, sh->heads, rows[i], cols[i]);
        if (span_of(t) > 0) {
            t->row_stride += gap;
            t->head_stride = rows[i] * t->row_stride + gap;
            t->batch_stride = sh->heads * t->head_stride + gap;
        }
        back(m, t, &state, size, c->desc->storage);
        if (i < Y && take(s) > 250 && span_of(t) > 0)
            set(t, take(s) % span_of(t), number(s));
    }
    if (c->desc->padding) {
        c->query_mask = make_mask(s, m, sh->batch, sh->tokens);
        c->key_mask = make_mask(s, m, sh->batch, sh->key_tokens);
    }
}

/* Whether the sampling reads a parameter. */
static bool is_sampled(const atn_sampling *s, int p)
{
    return p > ATN_PARAMETER_NORM_BIAS || s->kind == ATN_SAMPLING_CONV_CODE ||
           (s->kind == ATN_SAMPLING_CONV && p == ATN_PARAMETER_CONV);
}

/* Gradients of the parameters that there are. */
static void make_gradients(memory *m, call *c)
{
    const atn_operator_info *info = atn_operator_get(c->desc->op);
    atn_attention_desc d = *c->desc;
    uint64_t state = 1;
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++) {
        const atn_tensor *t = atn_attention_parameter(&d, (atn_parameter)p);
        if (!(info->differentiable & 1u << p) || !t->data || !is_sampled(&d.sampling, p))
            continue;
        c->parameters[p] = atn_tensor_dense(NULL, t->dtype, t->batch, t->heads, t->rows, t->cols);
        back(m, &c->parameters[p], &state, 1, ATN_STORAGE_NATIVE);
    }
}

static void remember(memory *m, call *c)
{
    for (int i = 0; i < TENSORS + ATN_PARAMETER_COUNT; i++) {
        size_t bytes = bytes_of(tensor_of(c, i));
        c->before[i] = own(m, bytes + 1);
        if (bytes > 0)
            memcpy(c->before[i], tensor_of(c, i)->data, bytes);
    }
}

static bool same(call *c, int i)
{
    size_t bytes = bytes_of(tensor_of(c, i));
    return bytes == 0 || memcmp(tensor_of(c, i)->data, c->before[i], bytes) == 0;
}

/* Whether an element of the span belongs to the view. */
static bool is_in_view(const atn_tensor *t, int64_t i)
{
    int64_t in_batch = t->batch > 1 ? i % t->batch_stride : i;
    int64_t in_head = t->heads > 1 ? in_batch % t->head_stride : in_batch;
    if (t->heads > 1 && in_batch / t->head_stride >= t->heads)
        return false;
    int64_t row = t->rows > 1 ? in_head / t->row_stride : 0;
    return row < t->rows && in_head - row * t->row_stride < t->cols;
}

/* What lies between rows, heads and batches is as it was. */
static void check_gaps(call *c, int i)
{
    const atn_tensor *t = tensor_of(c, i);
    size_t size = atn_dtype_size(t->dtype);
    for (int64_t j = 0; t->data && j < span_of(t); j++)
        target_expect(is_in_view(t, j) ||
                          memcmp((char *)t->data + (size_t)j * size,
                                 (char *)c->before[i] + (size_t)j * size, size) == 0,
                      "gaps are not written to");
}

/* How many elements of matrix (b, h) are not finite. */
static int64_t count_bad(const atn_tensor *t, int64_t b, int64_t h)
{
    atn_tensor matrix = *t;
    int64_t bad = 0;
    matrix.data = atn_tensor_matrix(t, b, h);
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t col = 0; col < t->cols; col++)
            bad += !isfinite(get(&matrix, r * t->row_stride + col));
    return bad;
}

/* Heads that are not finite are NaN throughout; returns how many. */
static int64_t count_bad_heads(const atn_tensor *t)
{
    int64_t heads = 0;
    for (int64_t i = 0; t->data && i < t->batch * t->heads; i++) {
        int64_t bad = count_bad(t, i / t->heads, i % t->heads);
        target_expect(bad == 0 || bad == t->rows * t->cols, "a head is finite or NaN throughout");
        heads += bad > 0;
    }
    return heads;
}

/* What every call owes: outputs from `first` on, status, failures. */
static void check_outputs(call *c, int first, int last, atn_status status, int64_t failures)
{
    int64_t bad = 0;
    for (int i = 0; i < TENSORS + ATN_PARAMETER_COUNT; i++) {
        bool output = (i >= first && i < last) || (first == GRAD_Q && i >= TENSORS);
        target_expect(status >= 0 || same(c, i), "a refusal leaves outputs as they were");
        target_expect(output || same(c, i), "inputs are not written to");
        check_gaps(c, i);
        if (output && status >= 0 && i < TENSORS)
            bad += count_bad_heads(tensor_of(c, i));
        for (int64_t j = 0; output && i >= TENSORS && j < tensor_of(c, i)->heads; j++)
            bad += tensor_of(c, i)->data && count_bad(tensor_of(c, i), 0, j) > 0;
    }
    target_expect(status != ATN_NONFINITE || failures > 0, "what is not finite is counted");
    target_expect(status < 0 || (status == ATN_NONFINITE) == (bad > 0),
                  "what is not finite is told, and the other way round");
    target_expect(status >= 0 || *atn_last_error(c->context), "a refusal has a reason");
}

static atn_attention_inputs inputs_of(call *c)
{
    return (atn_attention_inputs){.q = &c->tensors[Q],
                                  .k = c->cross ? &c->tensors[K] : NULL,
                                  .v = &c->tensors[V],
                                  .query_mask = c->query_mask,
                                  .key_mask = c->key_mask};
}

static atn_status run_forward(call *c)
{
    atn_attention_inputs inputs = inputs_of(c);
    atn_attention_info info = {0};
    atn_status status = atn_attention_forward(c->plan, &inputs, &c->tensors[Y], &info);
    if (status >= 0)
        target_expect(atn_attention_outcome(c->plan, NULL) == status || empty(&c->shape),
                      "the outcome is the call's");
    check_outputs(c, Y, Y + 1, status, info.failures);
    return status;
}

static void run_backward(call *c)
{
    atn_attention_inputs inputs = inputs_of(c);
    atn_attention_info info = {0};
    atn_gradients g = {.q = &c->tensors[GRAD_Q],
                       .k = c->cross ? &c->tensors[GRAD_K] : NULL,
                       .v = &c->tensors[GRAD_V]};
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        g.parameters[p] = c->parameters[p].data ? &c->parameters[p] : NULL;
    if (!c->cross)
        c->tensors[GRAD_K].data = NULL;
    atn_status status = atn_attention_backward(c->plan, &inputs, &c->tensors[DOUT], &g, &info);
    check_outputs(c, GRAD_Q, GRAD_V + 1, status, info.failures);
    double number = 0;
    atn_tensor small = atn_tensor_dense(&number, c->desc->dtype, 1, 1, 1, 1);
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++) {
        if (is_sampled(&c->desc->sampling, p))
            continue;
        g.parameters[p] = &small;
        target_expect(atn_attention_backward(c->plan, &inputs, &c->tensors[DOUT], &g, &info) < 0 &&
                          number == 0,
                      "a parameter that the sampling ignores has no gradient");
        g.parameters[p] = NULL;
    }
}

/* Y over something that is read; a value that is read, out of its range. */
static void run_wrong(source *s, call *c)
{
    atn_tensor y = c->tensors[Y];
    int over = take(s) % DOUT;
    if (over == K && !c->cross)
        over = Q;
    c->tensors[Y].data = c->tensors[over].data;
    atn_attention_inputs inputs = inputs_of(c);
    atn_status status = atn_attention_forward(c->plan, &inputs, &c->tensors[Y], NULL);
    target_expect(status < 0 || empty(&c->shape) || c->tensors[over].rows == 0 ||
                      c->tensors[over].cols == 0,
                  "Y lies over no input");
    c->tensors[Y] = y;
    const atn_sampling *a = &c->desc->sampling;
    bool soft = c->desc->op == ATN_SOFT || c->desc->op == ATN_SOFTPP;
    if (empty(&c->shape) || !soft || a->kind != ATN_SAMPLING_INDICES)
        return;
    int64_t *index = (int64_t *)(uintptr_t)&a->indices[take(s) % a->count], kept = *index;
    *index = take(s) % 2 ? c->shape.tokens : -1 - take(s);
    status = run_forward(c);
    target_expect(status == (c->cross ? ATN_ERR_UNSUPPORTED : ATN_ERR_VALUE),
                  "indices are checked at every call");
    *index = kept;
}

static void run_calls(source *s, memory *m, call *c)
{
    c->cross = take(s) % 2 || (c->shape.key_tokens != c->shape.tokens && take(s) % 8 > 0);
    make_tensors(s, m, c);
    make_gradients(m, c);
    if (!m->backed)
        return;
    remember(m, c);
    run_wrong(s, c);
    atn_status status = run_forward(c);
    size_t bytes = bytes_of(&c->tensors[Y]);
    if (status >= 0 && bytes > 0) {
        void *first = own(m, bytes);
        memcpy(first, c->tensors[Y].data, bytes);
        memcpy(c->tensors[Y].data, c->before[Y], bytes);
        target_expect(run_forward(c) == status && memcmp(first, c->tensors[Y].data, bytes) == 0,
                      "the same call has the same bits");
        memcpy(c->tensors[Y].data, c->before[Y], bytes);
    }
    run_backward(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    source s = {data, size};
    memory m = {.backed = true};
    allocations a = {0};
    atn_context_options options = {.threads = 1 + (int)(size % 3),
                                   .allocator = {allocate, release, &a}};
    call c = {0};
    atn_cost cost;
    target_expect(atn_context_create(&options, &c.context) == ATN_OK, "there is a context");
    c.shape = make_shape(&s);
    atn_attention_desc desc = make_desc(&s, &m, &c.shape);
    c.desc = &desc;
    c.plan = check_plan(c.context, &a, &desc, &c.shape, &cost);
    if (c.shape.key_tokens == 0)
        c.shape.key_tokens = c.shape.tokens;
    if (c.plan && m.backed && cost.flops + cost.exps <= MOST_FLOPS)
        run_calls(&s, &m, &c);
    atn_plan_free(c.plan);
    atn_context_free(c.context);
    target_expect(a.live == 0, "all memory is given back");
    give_back(&m);
    return 0;
}
