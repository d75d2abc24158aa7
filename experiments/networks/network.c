/* SPDX-License-Identifier: BSD-3-Clause */
#include "networks/network.h"

#include <assert.h>
#include <string.h>

#include "common/report.h"

enum { COLOURS = 3, PAPER_M = 49 };

static void put(network_count *sheet, int stage, const char *part, layer_count count)
{
    int i = 0;
    while (i < sheet->count &&
           (sheet->parts[i].stage != stage || strcmp(sheet->parts[i].part, part) != 0))
        i++;
    if (i == sheet->count) {
        assert(i < MOST_PARTS);
        sheet->parts[sheet->count++] = (part_count){.stage = stage, .part = part};
    }
    sheet->parts[i].count = layer_add(sheet->parts[i].count, count);
}

layer_count network_total(const network_count *sheet)
{
    layer_count sum = {0};
    for (int i = 0; i < sheet->count; i++)
        sum = layer_add(sum, sheet->parts[i].count);
    return sum;
}

/* ---- One stage ---- */

/* The position of a stage's blocks. */
typedef struct {
    const network_stage *stage;
    int number;
    int64_t grid, tokens; /* tokens: with the class token */
    const change *change;
    bool changed; /* has the operator of the change */
} block_position;

/* Returns the side of the grid. */
static int64_t put_embedding(network_count *sheet, int number, const network_stage *s,
                             int64_t channels, int64_t side)
{
    for (int i = 0; i < s->embed->count; i++) {
        const embedding_step *step = &s->embed->steps[i];
        int64_t out = step->width > 0 ? step->width : s->dim / step->part;
        side /= step->stride;
        put(sheet, number, "embedding",
            layer_conv(channels, out, step->kernel, 1, s->embed->bias, side));
        if (s->embed->norm)
            put(sheet, number, "embedding", layer_norm(out));
        channels = out;
    }
    return side;
}

static bool shares_keys(atn_operator op)
{
    return op == ATN_SOFT || op == ATN_SOFTPP || op == ATN_GAUSSIAN;
}

static int64_t key_side(const block_position *p)
{
    if (p->stage->reduction > 1)
        return p->grid / p->stage->reduction;
    return p->stage->block->key_stride > 1 ? p->grid / p->stage->block->key_stride : p->grid;
}

static int64_t key_tokens(const block_position *p)
{
    return key_side(p) * key_side(p) + (p->tokens - p->grid * p->grid);
}

void network_stage_tokens(const network *n, int stage, int resolution, int64_t *tokens,
                          int64_t *keys)
{
    block_position p = {.stage = &n->stages[stage], .grid = resolution};
    for (int i = 0; i <= stage; i++)
        for (int j = 0; j < n->stages[i].embed->count; j++)
            p.grid /= n->stages[i].embed->steps[j].stride;
    *tokens = p.tokens = p.grid * p.grid + (p.stage->class_token ? 1 : 0);
    *keys = key_tokens(&p);
}

static layer_count projection_convolutions(const block_position *p)
{
    int64_t dim = p->stage->dim, kernel = p->stage->block->projection_kernel;
    layer_count keys = layer_conv(dim, dim, kernel, dim, false, key_side(p));
    layer_count sum = layer_add(layer_conv(dim, dim, kernel, dim, false, p->grid), keys);
    return layer_add(layer_add(sum, keys), layer_times(3, layer_norm(dim)));
}

static layer_count local(const block_form *block, int64_t dim, int64_t side)
{
    layer_count one = layer_conv(dim, dim, block->local_kernel, dim, true, side);
    switch (block->local) {
    case LOCAL_DEPTHWISE:
        return one;
    case LOCAL_LPI:
        return layer_add(layer_times(2, one), layer_norm(dim));
    default:
        return (layer_count){0};
    }
}

static attention_layer attention_of(const block_position *p)
{
    const network_stage *s = p->stage;
    const change *c = p->change;
    attention_name name = p->changed ? c->attention : s->attention;
    bool soft = shares_keys(name.op);
    int64_t heads = c->heads > 0 ? c->heads : s->heads, width = s->width > 0 ? s->width : s->dim;
    return (attention_layer){
        .op = name.op,
        .variant = name.variant,
        .tokens = p->tokens,
        .key_tokens = key_tokens(p),
        .heads = heads,
        .dim = width / heads,
        .grid = p->grid,
        .sampled = soft,
        .sampling = c->resampled ? c->sampling : ATN_SAMPLING_CONV_CODE,
        .stride = s->stride,
        .landmarks = c->landmarks > 0 ? c->landmarks : PAPER_M,
        .residual = soft ? s->residual : 0,
    };
}

static void put_projections(network_count *sheet, const block_position *p, const attention_layer *a)
{
    const network_stage *s = p->stage;
    int64_t width = a->heads * a->dim, own = shares_keys(a->op) ? 0 : a->key_tokens;
    layer_count sum = layer_linear(s->dim, width, true, a->tokens);
    if (own > 0)
        sum = layer_add(sum, layer_linear(s->dim, width, true, own));
    sum = layer_add(sum, layer_linear(s->dim, width, true, a->key_tokens));
    sum = layer_add(sum, layer_linear(width, s->dim, true, a->tokens));
    put(sheet, p->number, "projections", layer_times(s->depth, sum));
    if (s->block->projection_kernel > 0)
        put(sheet, p->number, "projections", layer_times(s->depth, projection_convolutions(p)));
    if (s->reduction > 1) {
        layer_count shorter = layer_conv(s->dim, s->dim, s->reduction, 1, true, key_side(p));
        put(sheet, p->number, "projections",
            layer_times(s->depth, layer_add(shorter, layer_norm(s->dim))));
    }
}

static int put_blocks(network_count *sheet, atn_context *context, const block_position *p)
{
    const network_stage *s = p->stage;
    const block_form *block = s->block;
    attention_layer a = attention_of(p);
    layer_count count;
    int code = layer_attention(context, &a, &count);
    layer_count norms = layer_add(layer_times(block->norms, layer_norm(s->dim)),
                                  layer_embedding(block->vectors, s->dim));
    put(sheet, p->number, "norms", layer_times(s->depth, norms));
    put_projections(sheet, p, &a);
    put(sheet, p->number, "attention", layer_times(s->depth, count));
    if (block->local != LOCAL_NONE)
        put(sheet, p->number, "local", layer_times(s->depth, local(block, s->dim, p->grid)));
    int64_t ratio = s->mlp_ratio > 0 ? s->mlp_ratio : MLP_RATIO;
    put(sheet, p->number, "mlp", layer_times(s->depth, layer_mlp(s->dim, ratio, p->tokens)));
    return code;
}

static void put_positions(network_count *sheet, const network *n, const block_position *p)
{
    const network_stage *s = p->stage;
    if (s->positions)
        put(sheet, p->number, "positions", layer_embedding(p->tokens, s->dim));
    if (n->fourier > 0)
        put(sheet, p->number, "positions",
            layer_linear(n->fourier, s->dim, true, p->grid * p->grid));
    if (s->class_token)
        put(sheet, p->number, "positions", layer_embedding(1, s->dim));
}

/* ---- Class attention and classifier ---- */

/* XCiT's class attention layers (arXiv:2106.09681): queries, keys and values are made of all
 * tokens, the class token's query alone is used, and the MLP sees the class token alone. */
static int put_class_layers(network_count *sheet, atn_context *context, const network *n,
                            const block_position *last)
{
    const network_stage *s = last->stage;
    attention_layer a = attention_of(last);
    attention_name name = last->change->class_attention;
    if (!name.variant)
        name = n->class_attention;
    int64_t all = last->tokens + 1, width = a.heads * a.dim;
    a.op = name.op;
    a.variant = name.variant;
    a.tokens = 1;
    a.key_tokens = all;
    layer_count sum;
    int code = layer_attention(context, &a, &sum);
    sum = layer_add(sum, layer_times(3, layer_linear(s->dim, width, true, all)));
    sum = layer_add(sum, layer_linear(width, s->dim, true, 1));
    sum = layer_add(sum, layer_mlp(s->dim, MLP_RATIO, 1));
    sum = layer_add(sum, layer_times(n->class_block->norms, layer_norm(s->dim)));
    sum = layer_add(sum, layer_embedding(n->class_block->vectors, s->dim));
    put(sheet, last->number + 1, "class attention", layer_times(n->class_layers, sum));
    put(sheet, last->number + 1, "class attention", layer_embedding(1, s->dim));
    return code;
}

int network_counts(atn_context *context, const network *n, const change *c, network_count *sheet)
{
    *sheet = (network_count){0};
    int64_t side = c->resolution > 0 ? c->resolution : RESOLUTION, channels = COLOURS;
    int code = EXIT_PASS;
    block_position p = {0};
    for (int i = 0; i < n->stage_count && code == EXIT_PASS; i++) {
        const network_stage *s = &n->stages[i];
        side = put_embedding(sheet, i + 1, s, channels, side);
        p = (block_position){.stage = s,
                             .number = i + 1,
                             .grid = side,
                             .tokens = side * side + (s->class_token ? 1 : 0),
                             .change = c,
                             .changed = c->attention.variant &&
                                        s->attention.op == n->stages[0].attention.op};
        put_positions(sheet, n, &p);
        code = put_blocks(sheet, context, &p);
        channels = s->dim;
    }
    if (code == EXIT_PASS && n->class_layers > 0)
        code = put_class_layers(sheet, context, n, &p);
    put(sheet, n->stage_count + 1, "classifier", layer_norm(channels));
    put(sheet, n->stage_count + 1, "classifier", layer_linear(channels, CLASSES, true, 1));
    return code;
}
