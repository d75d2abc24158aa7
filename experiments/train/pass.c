/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/pass.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/report.h"
#include "train/crossnorm.h"
#include "train/layers.h"

enum { PARTS = 3 }; /* queries, keys, values; or queries, values */

/* Kept by forward for backward, a row per token. */
typedef struct {
    real *in;                /* the block's input */
    real *normed1, *normed2; /* LayerNorm's outputs */
    real *parts;             /* queries, (keys,) values, side by side in a row */
    real *attended, *output; /* the attention's output, before and after W_o */
    real *middle;            /* after the first residual */
    real *active, *slope;    /* the MLP's GELU or ReLU, and its derivative */
    real *mlp;               /* the MLP's output */
    real *sum;               /* after the second residual */
    real *out;               /* normed2 with norms after, else sum */
    real *moments1, *moments2;
    atn_attention_desc desc;
    atn_plan *plan;
} block_memory;

struct pass {
    const model *m;
    atn_context *context;
    const row_kernels *k;
    real *data;
    int64_t images;
    real *patches; /* a row of pixels per token */
    block_memory *blocks;
    real *normed, *moments, *mean, *logits; /* after the blocks */
    real *crossnorm;                        /* workspace, where a norm takes XNorm's place */
    /* Used by backward. */
    real *dx, *drows, *dattended, *dhidden, *dparts[PARTS];
    real *memory;
    int64_t size; /* numbers in memory */
    char where[64];
};

/* ---- Memory ---- */

/* Assigns the next part of the pass's memory; before memory is allocated, only counts. */
static void take(pass *p, real **part, int64_t count)
{
    static const int64_t line = 64 / sizeof(real);
    *part = p->memory ? p->memory + p->size : NULL;
    p->size += (count + line - 1) / line * line;
}

static void take_all(pass *p)
{
    const model *m = p->m;
    int64_t c = m->shape.width, h = m->shape.hidden, rows = p->images * m->tokens;
    p->size = 0;
    take(p, &p->patches, rows * m->shape.patch * m->shape.patch);
    for (int64_t i = 0; i < m->shape.depth; i++) {
        block_memory *b = &p->blocks[i];
        real **of_width[] = {&b->normed1, &b->normed2, &b->attended, &b->output,
                             &b->middle,  &b->mlp,     &b->sum};
        if (i > 0)
            b->in = p->blocks[i - 1].out;
        else
            take(p, &b->in, rows * c);
        for (size_t k = 0; k < sizeof of_width / sizeof *of_width; k++)
            take(p, of_width[k], rows * c);
        take(p, &b->parts, rows * m->inputs * c);
        take(p, &b->active, rows * h);
        take(p, &b->slope, rows * h);
        take(p, &b->moments1, rows * 2);
        take(p, &b->moments2, rows * 2);
        b->out = m->norm_after ? b->normed2 : b->sum;
    }
    take(p, &p->normed, rows * c);
    take(p, &p->moments, rows * 2);
    take(p, &p->mean, p->images * c);
    take(p, &p->logits, p->images * m->shape.classes);
    if (m->shape.change->crossnorm)
        take(p, &p->crossnorm, crossnorm_size(m->tokens, c / m->shape.heads));
    take(p, &p->dx, rows * c);
    take(p, &p->drows, rows * c);
    take(p, &p->dattended, rows * c);
    take(p, &p->dhidden, rows * h);
    for (int64_t k = 0; k < m->inputs; k++)
        take(p, &p->dparts[k], rows * c);
}

/* A view of `rows` as images x heads x tokens x channels: of each `stride` numbers the first ones.
 */
static atn_tensor heads_of(const pass *p, real *rows, int64_t stride)
{
    const model_shape *s = &p->m->shape;
    int64_t n = p->m->tokens, d = s->width / s->heads;
    return (atn_tensor){.data = rows,
                        .dtype = REAL_DTYPE,
                        .batch = p->images,
                        .heads = s->heads,
                        .rows = n,
                        .cols = d,
                        .batch_stride = n * stride,
                        .head_stride = d,
                        .row_stride = stride};
}

/* k has no data if there are no keys. */
typedef struct {
    atn_tensor q, k, v;
} attention_tokens;

static attention_tokens tokens_of(const pass *p, const block_memory *b)
{
    int64_t width = p->m->shape.width, stride = p->m->inputs * width;
    bool has_keys = p->m->inputs == PARTS;
    return (attention_tokens){heads_of(p, b->parts, stride),
                              has_keys ? heads_of(p, b->parts + width, stride) : (atn_tensor){0},
                              heads_of(p, b->parts + stride - width, stride)};
}

int pass_create(const model *m, real *data, atn_context *context, int64_t images, pass **made)
{
    atn_attention_desc *descs = must_allocate((size_t)m->shape.depth, sizeof *descs);
    for (int64_t i = 0; i < m->shape.depth; i++)
        descs[i] = model_attention(m, i, REAL_DTYPE, data);
    int code = pass_create_changed(m, data, descs, context, images, made);
    free(descs);
    return code;
}

int pass_create_changed(const model *m, real *data, const atn_attention_desc *descs,
                        atn_context *context, int64_t images, pass **made)
{
    pass *p = must_allocate(1, sizeof *p);
    *made = p;
    *p = (struct pass){
        .m = m, .context = context, .k = row_kernels_of(context), .data = data, .images = images};
    p->blocks = must_allocate((size_t)m->shape.depth, sizeof *p->blocks);
    take_all(p);
    p->memory = must_allocate((size_t)p->size, sizeof *p->memory);
    take_all(p);
    int64_t d = m->shape.width / m->shape.heads;
    atn_attention_shape shape = {
        .batch = images, .heads = m->shape.heads, .tokens = m->tokens, .dim = d, .value_dim = d};
    for (int64_t i = 0; i < m->shape.depth && !p->crossnorm; i++) {
        p->blocks[i].desc = descs[i];
        atn_status status = atn_attention_plan(context, &descs[i], &shape, &p->blocks[i].plan);
        if (status != ATN_OK) {
            report_error("%s: %s", m->shape.attention->name, atn_last_error(context));
            return status == ATN_ERR_MEMORY ? EXIT_ENVIRONMENT : EXIT_USAGE;
        }
    }
    return EXIT_PASS;
}

void pass_free(pass *p)
{
    if (!p)
        return;
    for (int64_t i = 0; i < p->m->shape.depth; i++)
        atn_plan_free(p->blocks[i].plan);
    free(p->blocks);
    free(p->memory);
    free(p);
}

/* ---- Forward ---- */

/* An inverse that has not converged, and NaN, are results and no errors. */
static bool is_value(atn_status status)
{
    return status >= 0;
}

static void embed(pass *p, const real *pixels)
{
    const model *m = p->m;
    int64_t side = m->shape.side, size = m->shape.patch, c = m->shape.width, n = m->tokens;
    real *patch = p->patches;
    for (int64_t token = 0; token < p->images * n; token++, patch += size * size) {
        const real *corner = pixels + token / n * side * side + token % n / m->grid * size * side +
                             token % m->grid * size;
        for (int64_t i = 0; i < size * size; i++)
            patch[i] = corner[i / size * side + i % size];
    }
    linear(p->context, p->images * n, size * size, c, p->patches, p->data + m->patch_weight,
           p->data + m->patch_bias, p->blocks[0].in);
    for (int64_t i = 0; i < p->images; i++)
        p->k->residual(n, c, p->blocks[0].in + i * n * c, NULL, p->data + m->position,
                       p->blocks[0].in + i * n * c);
}

/* The part of a view of heads that is one head's. */
static real *at_head(const atn_tensor *t, int64_t image, int64_t head)
{
    return (real *)t->data + image * t->batch_stride + head * t->head_stride;
}

/* Adds the convolution of one token's neighbours, by its head's window, to its output. */
static void convolve(const atn_attention_desc *desc, const real *window, int64_t token,
                     const atn_tensor *v, const real *first, real *y)
{
    int64_t side = desc->residual.rows, row = token / desc->residual_width - side / 2;
    int64_t col = token % desc->residual_width - side / 2;
    for (int64_t i = 0; i < side * side; i++) {
        int64_t at_row = row + i / side, at_col = col + i % side;
        if (at_row < 0 || at_row >= desc->residual_height || at_col < 0 ||
            at_col >= desc->residual_width)
            continue;
        const real *value = first + (at_row * desc->residual_width + at_col) * v->row_stride;
        for (int64_t c = 0; c < v->cols; c++)
            y[c] += window[i] * value[c];
    }
}

static void add_residual(const atn_attention_desc *desc, const atn_tensor *v, const atn_tensor *y)
{
    for (int64_t i = 0; i < v->batch * v->heads; i++) {
        int64_t image = i / v->heads, head = i % v->heads;
        const real *window = (const real *)desc->residual.data + head * desc->residual.head_stride;
        const real *first = at_head(v, image, head);
        real *out = at_head(y, image, head);
        for (int64_t token = 0; token < v->rows; token++)
            convolve(desc, window, token, v, first, out + token * y->row_stride);
    }
}

/* What a norm instead of XNorm has learned of a head, in `data`; null: it has no such parameter. */
static real *crossnorm_parameter(const pass *p, int64_t index, int parameter, int64_t head,
                                 real *data)
{
    const model_shape *s = &p->m->shape;
    int64_t place = p->m->blocks[index].crossnorm[parameter];
    int64_t count = parameter < CROSSNORM_WEIGHT ? 1 : s->width / s->heads;
    return place < 0 ? NULL : data + place + head * count;
}

/* One head's attention with another norm than XNorm. */
static crossnorm_head crossnorm_of(const pass *p, int64_t index, const attention_tokens *t,
                                   int64_t image, int64_t head)
{
    crossnorm_head h = {.kind = p->m->shape.change->crossnorm,
                        .tokens = t->q.rows,
                        .dim = t->q.cols,
                        .stride = t->q.row_stride,
                        .q = at_head(&t->q, image, head),
                        .k = at_head(&t->k, image, head),
                        .v = at_head(&t->v, image, head)};
    for (int i = 0; i < CROSSNORM_PARAMETERS; i++)
        h.parameters[i] = crossnorm_parameter(p, index, i, head, p->data);
    return h;
}

static void attend_crossnorm(pass *p, int64_t index, const attention_tokens *t, const atn_tensor *y)
{
    for (int64_t i = 0; i < p->images * y->heads; i++) {
        int64_t image = i / y->heads, head = i % y->heads;
        crossnorm_head h = crossnorm_of(p, index, t, image, head);
        crossnorm_forward(p->context, &h, p->crossnorm, at_head(y, image, head), y->row_stride);
    }
}

static atn_status attend(pass *p, int64_t index)
{
    block_memory *b = &p->blocks[index];
    attention_tokens t = tokens_of(p, b);
    atn_tensor y = heads_of(p, b->attended, p->m->shape.width);
    if (p->crossnorm) {
        attend_crossnorm(p, index, &t, &y);
        return ATN_OK;
    }
    const atn_attention_inputs inputs = {.q = &t.q, .k = t.k.data ? &t.k : NULL, .v = &t.v};
    if (b->desc.storage != ATN_STORAGE_NATIVE) /* only f32 has storages */
        atn_storage_round(b->desc.storage,
                          p->images * p->m->tokens * p->m->inputs * p->m->shape.width,
                          (void *)b->parts);
    atn_status status = atn_attention_forward(b->plan, &inputs, &y, NULL);
    if (b->desc.op == ATN_GAUSSIAN && b->desc.residual.data && is_value(status))
        add_residual(&b->desc, &t.v, &y);
    return status;
}

/* LayerScale's factors; null without LayerScale. */
static const real *scale_at(const pass *p, int64_t place)
{
    return p->m->scaled ? p->data + place : NULL;
}

/* Divides rows of queries, or their gradients, by d^(1/4), where the network does. */
static void divide_queries(const model *m, int64_t rows, real *queries, int64_t stride)
{
    real factor = (real)pow((double)(m->shape.width / m->shape.heads), -0.25);
    for (int64_t i = 0; m->shape.change->code_kernel && i < rows; i++)
        for (int64_t c = 0; c < m->shape.width; c++)
            queries[i * stride + c] *= factor;
}

static atn_status block_forward(pass *p, int64_t index)
{
    const model *m = p->m;
    const model_block *at = &m->blocks[index];
    block_memory *b = &p->blocks[index];
    int64_t c = m->shape.width, h = m->shape.hidden, rows = p->images * m->tokens;
    const real *w = p->data, *attention_in = m->norm_after ? b->in : b->normed1;
    if (!m->norm_after)
        p->k->layer_norm(rows, c, b->in, w + at->norm1_weight, w + at->norm1_bias, b->normed1,
                         b->moments1);
    linear(p->context, rows, c, m->inputs * c, attention_in, w + at->input_weight,
           w + at->input_bias, b->parts);
    divide_queries(m, rows, b->parts, m->inputs * c);
    atn_status status = attend(p, index);
    if (!is_value(status))
        return status;
    linear(p->context, rows, c, c, b->attended, w + at->output_weight, w + at->output_bias,
           b->output);
    p->k->residual(rows, c, b->in, scale_at(p, at->scale1), b->output, b->middle);
    real *mlp_in = m->norm_after ? b->normed1 : b->normed2;
    int64_t norm_weight = m->norm_after ? at->norm1_weight : at->norm2_weight;
    int64_t norm_bias = m->norm_after ? at->norm1_bias : at->norm2_bias;
    p->k->layer_norm(rows, c, b->middle, w + norm_weight, w + norm_bias, mlp_in,
                     m->norm_after ? b->moments1 : b->moments2);
    linear(p->context, rows, c, h, mlp_in, w + at->hidden_weight, w + at->hidden_bias, b->slope);
    (m->shape.change->relu ? p->k->relu : p->k->gelu)(rows * h, b->slope, b->active);
    linear(p->context, rows, h, c, b->active, w + at->mlp_weight, w + at->mlp_bias, b->mlp);
    p->k->residual(rows, c, m->norm_after ? b->normed1 : b->middle, scale_at(p, at->scale2), b->mlp,
                   b->sum);
    if (m->norm_after)
        p->k->layer_norm(rows, c, b->sum, w + at->norm2_weight, w + at->norm2_bias, b->normed2,
                         b->moments2);
    return status;
}

atn_status pass_forward(pass *p, const real *pixels, real *logits)
{
    const model *m = p->m;
    int64_t c = m->shape.width, n = m->tokens;
    atn_status status = ATN_OK;
    embed(p, pixels);
    for (int64_t i = 0; i < m->shape.depth && is_value(status); i++)
        status = block_forward(p, i);
    if (!is_value(status))
        return status;
    p->k->layer_norm(p->images * n, c, p->blocks[m->shape.depth - 1].out, p->data + m->norm_weight,
                     p->data + m->norm_bias, p->normed, p->moments);
    for (int64_t i = 0; i < p->images; i++) {
        real *mean = p->mean + i * c;
        p->k->column_sums(n, c, p->normed + i * n * c, NULL, mean);
        for (int64_t k = 0; k < c; k++)
            mean[k] /= (real)n;
    }
    linear(p->context, p->images, c, m->shape.classes, p->mean, p->data + m->head_weight,
           p->data + m->head_bias, p->logits);
    for (int64_t i = 0; i < p->images * m->shape.classes; i++)
        logits[i] = p->logits[i];
    return status;
}

atn_tensor pass_tokens(const pass *p, int64_t block, int part)
{
    attention_tokens t = tokens_of(p, &p->blocks[block]);
    return part == 0 ? t.q : part == 1 ? t.k : t.v;
}

/* ---- Backward ---- */

/* The gradient of z in x + scale z from dx, which is dx itself without a scale. */
static const real *branch_gradient(const pass *p, int64_t place, const real *z, real *spare,
                                   real *gradient)
{
    int64_t c = p->m->shape.width, rows = p->images * p->m->tokens;
    if (!p->m->scaled)
        return p->dx;
    p->k->column_sums(rows, c, p->dx, z, gradient + place);
    p->k->repeat(rows, c, p->data + place, spare);
    p->k->multiply(rows * c, p->dx, spare);
    return spare;
}

static void attend_crossnorm_backward(pass *p, int64_t index, const attention_tokens *t,
                                      const atn_tensor *dy, const atn_tensor dt[PARTS],
                                      real *gradient)
{
    for (int64_t i = 0; i < p->images * dy->heads; i++) {
        int64_t image = i / dy->heads, head = i % dy->heads;
        crossnorm_head h = crossnorm_of(p, index, t, image, head);
        real *parameters[CROSSNORM_PARAMETERS];
        for (int k = 0; k < CROSSNORM_PARAMETERS; k++) {
            parameters[k] = crossnorm_parameter(p, index, k, head, gradient);
            int64_t count = parameters[k] ? k < CROSSNORM_WEIGHT ? 1 : dy->cols : 0;
            for (int64_t c = 0; c < count && image == 0; c++)
                parameters[k][c] = 0;
        }
        crossnorm_backward(p->context, &h, p->crossnorm, at_head(dy, image, head), dy->row_stride,
                           at_head(&dt[0], image, head), at_head(&dt[1], image, head),
                           at_head(&dt[2], image, head), parameters);
    }
}

static atn_status attend_backward(pass *p, int64_t index, real *gradient)
{
    block_memory *b = &p->blocks[index];
    int64_t width = p->m->shape.width;
    attention_tokens t = tokens_of(p, b);
    atn_tensor dy = heads_of(p, p->dattended, width), dt[PARTS];
    atn_tensor y = heads_of(p, b->attended, width);
    for (int64_t k = 0; k < p->m->inputs; k++)
        dt[k] = heads_of(p, p->dparts[k], width);
    if (p->crossnorm) {
        attend_crossnorm_backward(p, index, &t, &dy, dt, gradient);
        return ATN_OK;
    }
    const atn_attention_inputs inputs = {.q = &t.q, .k = t.k.data ? &t.k : NULL, .v = &t.v};
    atn_gradients gradients = {.q = &dt[0],
                               .k = t.k.data ? &dt[1] : NULL,
                               .v = &dt[p->m->inputs - 1],
                               .after_forward = true,
                               .y = &y};
    /* described with the gradient's array as data, the tensors are those to write */
    atn_attention_desc of_gradient = model_attention(p->m, index, REAL_DTYPE, gradient);
    for (int i = 0; i < ATN_PARAMETER_COUNT; i++)
        if (p->m->blocks[index].attention[i] >= 0)
            gradients.parameters[i] = atn_attention_parameter(&of_gradient, (atn_parameter)i);
    return atn_attention_backward(b->plan, &inputs, &dy, &gradients, NULL);
}

/* dx is the gradient of the block's output before, and of its input afterwards. */
static atn_status block_backward(pass *p, int64_t index, real *gradient)
{
    const model *m = p->m;
    const model_block *at = &m->blocks[index];
    block_memory *b = &p->blocks[index];
    int64_t c = m->shape.width, h = m->shape.hidden, rows = p->images * m->tokens;
    const real *w = p->data;
    real *g = gradient;
    if (m->norm_after)
        p->k->layer_norm_backward(rows, c, b->sum, w + at->norm2_weight, b->moments2, p->dx, false,
                                  p->dx, g + at->norm2_weight, g + at->norm2_bias);
    const real *dmlp = branch_gradient(p, at->scale2, b->mlp, p->dattended, g);
    linear_backward(p->context, rows, h, c, b->active, w + at->mlp_weight, dmlp, false, p->dhidden,
                    g + at->mlp_weight, g + at->mlp_bias);
    p->k->multiply(rows * h, b->slope, p->dhidden);
    linear_backward(p->context, rows, c, h, m->norm_after ? b->normed1 : b->normed2,
                    w + at->hidden_weight, p->dhidden, false, p->drows, g + at->hidden_weight,
                    g + at->hidden_bias);
    if (m->norm_after) {
        p->k->residual(rows, c, p->dx, NULL, p->drows, p->dx);
        p->k->layer_norm_backward(rows, c, b->middle, w + at->norm1_weight, b->moments1, p->dx,
                                  false, p->dx, g + at->norm1_weight, g + at->norm1_bias);
    } else {
        p->k->layer_norm_backward(rows, c, b->middle, w + at->norm2_weight, b->moments2, p->drows,
                                  true, p->dx, g + at->norm2_weight, g + at->norm2_bias);
    }
    const real *doutput = branch_gradient(p, at->scale1, b->output, p->drows, g);
    linear_backward(p->context, rows, c, c, b->attended, w + at->output_weight, doutput, false,
                    p->dattended, g + at->output_weight, g + at->output_bias);
    atn_status status = attend_backward(p, index, g);
    divide_queries(m, rows, p->dparts[0], c);
    for (int64_t k = 0; k < m->inputs && is_value(status); k++)
        linear_backward(p->context, rows, c, c, m->norm_after ? b->in : b->normed1,
                        w + at->input_weight + k * c * c, p->dparts[k], k > 0, p->drows,
                        g + at->input_weight + k * c * c, g + at->input_bias + k * c);
    if (m->norm_after)
        p->k->residual(rows, c, p->dx, NULL, p->drows, p->dx);
    else
        p->k->layer_norm_backward(rows, c, b->in, w + at->norm1_weight, b->moments1, p->drows, true,
                                  p->dx, g + at->norm1_weight, g + at->norm1_bias);
    return status;
}

atn_status pass_backward(pass *p, const real *dlogits, real *gradient)
{
    const model *m = p->m;
    int64_t c = m->shape.width, n = m->tokens, features = m->shape.patch * m->shape.patch;
    atn_status status = ATN_OK;
    for (int64_t i = 0; i < m->parameter_count; i++)
        for (int64_t k = 0; m->parameters[i].fixed && k < m->parameters[i].count; k++)
            gradient[m->parameters[i].offset + k] = 0;
    linear_backward(p->context, p->images, c, m->shape.classes, p->mean, p->data + m->head_weight,
                    dlogits, false, p->drows, gradient + m->head_weight, gradient + m->head_bias);
    for (int64_t i = 0; i < p->images * n; i++) /* here drows has a row per image */
        for (int64_t k = 0; k < c; k++)
            p->dx[i * c + k] = p->drows[i / n * c + k] / (real)n;
    p->k->layer_norm_backward(p->images * n, c, p->blocks[m->shape.depth - 1].out,
                              p->data + m->norm_weight, p->moments, p->dx, false, p->dx,
                              gradient + m->norm_weight, gradient + m->norm_bias);
    for (int64_t i = m->shape.depth - 1; i >= 0 && is_value(status); i--)
        status = block_backward(p, i, gradient);
    if (!is_value(status))
        return status;
    p->k->column_sums(p->images, n * c, p->dx, NULL, gradient + m->position);
    linear_backward(p->context, p->images * n, features, c, p->patches, p->data + m->patch_weight,
                    p->dx, false, NULL, gradient + m->patch_weight, gradient + m->patch_bias);
    return status;
}

/* ---- NaN ---- */

const char *pass_not_finite(pass *p)
{
    const model *m = p->m;
    int64_t c = m->shape.width, rows = p->images * m->tokens;
    for (int64_t i = 0; i < m->shape.depth; i++) {
        const block_memory *b = &p->blocks[i];
        const struct {
            const char *name;
            const real *values;
            int64_t count;
        } arrays[] = {{"input", b->in, rows * c},
                      {m->inputs == PARTS ? "queries, keys or values" : "queries or values",
                       b->parts, rows * m->inputs * c},
                      {"attention", b->attended, rows * c},
                      {"attention's residual", b->middle, rows * c},
                      {"MLP", b->mlp, rows * c},
                      {"output", b->out, rows * c}};
        for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++)
            for (int64_t k = 0; k < arrays[a].count; k++)
                if (!isfinite(arrays[a].values[k])) {
                    snprintf(p->where, sizeof p->where, "block %" PRId64 ": %s", i, arrays[a].name);
                    return p->where;
                }
    }
    for (int64_t k = 0; k < p->images * m->shape.classes; k++)
        if (!isfinite(p->logits[k]))
            return "the classifier";
    return NULL;
}
