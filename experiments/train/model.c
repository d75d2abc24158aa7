/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "common/random.h"
#include "common/report.h"

/* ---- Shapes ---- */

enum { FEATURES = 64, LSH_ROUNDS = 4, LSH_CHUNKS = 7 };

bool model_defaults(const char *name, model_shape *shape)
{
    size_t length = strcspn(name, "/");
    char *operator_name = must_format("%.*s", (int)length, name);
    const atn_operator_info *info = atn_operator_find(operator_name);
    int count = info ? info->variant_count : 0, variant = 0;
    free(operator_name);
    while (name[length] && variant < count &&
           strcmp(info->variants[variant].name, name + length + 1) != 0)
        variant++;
    *shape = (model_shape){.attention = info,
                           .variant = variant,
                           .side = 28,
                           .patch = DEFAULT_PATCH,
                           .width = 64,
                           .heads = DEFAULT_TRAINED_HEADS,
                           .depth = 4,
                           .hidden = 128,
                           .classes = 10,
                           .landmarks = 49,
                           .change = &changes[CHANGE_NONE]};
    return variant < count;
}

bool model_change(model_shape *shape, const change *c)
{
    shape->change = c;
    shape->heads = c->one_head ? 1 : shape->heads;
    shape->landmarks = c->landmarks ? c->landmarks : shape->landmarks;
    return c->before && change_suits(c, shape->attention, shape->variant);
}

const char *const model_usual[] = {
    "softmax",   "gaussian",  "soft/code", "softpp/paper",        "sima", "xnorm",
    "linformer", "performer", "elu",       "nystromformer/exact", NULL};

char *model_name(const model_shape *shape)
{
    bool changed = shape->change != &changes[CHANGE_NONE];
    return must_format("%s/%s%s%s", shape->attention->name,
                       shape->attention->variants[shape->variant].name, changed ? " " : "",
                       changed ? shape->change->name : "");
}

char *model_weights_name(const model_shape *shape, uint64_t seed)
{
    bool changed = shape->change != &changes[CHANGE_NONE];
    return must_format("%s-%s%s%s-seed%" PRIu64 ".npz", shape->attention->name,
                       shape->attention->variants[shape->variant].name, changed ? "-" : "",
                       changed ? shape->change->name : "", seed);
}

static int64_t root(int64_t square)
{
    int64_t r = (int64_t)(sqrt((double)square) + 0.5);
    return r * r == square ? r : 0;
}

bool model_has_parameter(const model_shape *s, atn_parameter parameter)
{
    return s->attention->differentiable >> parameter & 1;
}

static bool has_landmarks(const model_shape *s)
{
    return model_has_parameter(s, ATN_PARAMETER_CONV) || model_has_parameter(s, ATN_PARAMETER_E) ||
           s->attention->op == ATN_NYSTROMFORMER;
}

static int check_shape(const model_shape *s)
{
    static const int64_t most = 4096;
    const int64_t sizes[] = {s->side,  s->patch,  s->width,   s->heads,
                             s->depth, s->hidden, s->classes, s->landmarks};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] < 1 || sizes[i] > most) {
            report_error("a network's sizes are from 1 to %" PRId64 ", not %" PRId64, most,
                         sizes[i]);
            return EXIT_USAGE;
        }
    if (s->side % s->patch != 0 || s->width % s->heads != 0) {
        report_error("%" PRId64 " pixels in patches of %" PRId64 ", width %" PRId64 " in %" PRId64
                     " heads: expected whole numbers of patches and of channels",
                     s->side, s->patch, s->width, s->heads);
        return EXIT_USAGE;
    }
    int64_t grid = s->side / s->patch, coarse = root(s->landmarks);
    if (coarse == 0 || (has_landmarks(s) && grid % coarse != 0)) {
        report_error("%" PRId64 " landmarks on a grid of %" PRId64 " x %" PRId64
                     ": expected a square whose root divides the grid's side",
                     s->landmarks, grid, grid);
        return EXIT_USAGE;
    }
    return EXIT_PASS;
}

/* Side of the windows over which landmarks are averaged or convolved. */
static int64_t stride_of(const model *m)
{
    return m->grid / root(m->shape.landmarks);
}

static int64_t residual_side(const model_shape *s)
{
    int64_t grid = s->side / s->patch;
    return s->residual ? s->residual : 2 * (grid >= 14 ? grid / 14 : 1) + 1;
}

/* Whether the number of landmarks grows with the grid. */
static bool keeps_stride(const model_shape *s)
{
    return model_has_parameter(s, ATN_PARAMETER_CONV) && !s->change->landmarks;
}

model_shape model_resized(const model_shape *shape, int64_t side)
{
    model_shape resized = *shape;
    resized.side = side;
    resized.residual = residual_side(shape);
    int64_t coarse = root(shape->landmarks) * side / shape->side;
    if (keeps_stride(shape))
        resized.landmarks = coarse * coarse;
    return resized;
}

int64_t model_grid_step(const model_shape *s)
{
    int64_t grid = s->side / s->patch, coarse = root(s->landmarks);
    bool own = model_has_parameter(s, ATN_PARAMETER_E) || change_has_drawn_landmarks(s->change);
    if (own || coarse == 0)
        return 0;
    if (s->attention->op == ATN_LSH) /* whose chunks must divide the tokens */
        return LSH_CHUNKS;
    return !has_landmarks(s) ? 1 : keeps_stride(s) ? grid / coarse : coarse;
}

/* Gaussian attention is SOFT's without landmarks (IJCV Eq. 5), with K = Q. */
bool model_has_keys(const model_shape *shape)
{
    return shape->attention->capabilities & ATN_CAN_CROSS && shape->attention->op != ATN_GAUSSIAN &&
           !shape->change->symmetric;
}

/* ---- The table ---- */

typedef struct {
    double start, spread;
    bool waves, fixed;
} start_rule;

static const start_rule ones = {.start = 1}, zeros = {0};

/* Appends a parameter of these dimensions and returns its offset. */
static int64_t add(model *m, start_rule rule, int dimensions, const int64_t *shape,
                   const char *format, ...)
{
    m->parameters =
        must_resize(m->parameters, (size_t)m->parameter_count + 1, sizeof *m->parameters);
    model_parameter *p = &m->parameters[m->parameter_count++];
    *p = (model_parameter){.dimensions = dimensions,
                           .offset = m->size,
                           .count = 1,
                           .start = rule.start,
                           .spread = rule.spread,
                           .waves = rule.waves,
                           .fixed = rule.fixed,
                           .decays = dimensions > 1 && rule.spread > 0 && !rule.fixed};
    for (int i = 0; i < dimensions; i++) {
        p->shape[i] = shape[i];
        p->count *= shape[i];
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(p->name, sizeof p->name, format, arguments);
    va_end(arguments);
    m->size += p->count;
    return p->offset;
}

#define ADD(rule, name, ...)                                                                       \
    add(m, rule, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__}, name)
#define ADD_TO_BLOCK(rule, name, ...)                                                              \
    add(m, rule, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__},     \
        "blocks.%" PRId64 "." name, block)

/* Weight matrices start with normal numbers times 1 / sqrt(inputs), which would preserve the size
 * of activations; as model_initialise draws anew beyond twice that, their standard deviation is
 * 0.88 / sqrt(inputs). The 0.02 that is usual for larger transformers makes the first epochs of so
 * narrow a network much slower. */
static start_rule scaled_by(int64_t inputs)
{
    return (start_rule){.spread = 1 / sqrt((double)inputs)};
}

/* Adds the parameters that an operator learns, as the registry lists them. Linformer's F is E.
 * Nystromformer, which learns no landmarks, is used without its optional convolution of V. */
static void add_attention(model *m, int64_t block)
{
    const model_shape *s = &m->shape;
    model_block *b = &m->blocks[block];
    int64_t d = s->width / s->heads, h = s->heads, k = stride_of(m), r = residual_side(s);
    const struct {
        start_rule rule;
        int64_t shape[PARAMETER_DIMENSIONS]; /* 0 after the last */
    } learned[ATN_PARAMETER_COUNT] = {
        [ATN_PARAMETER_CONV] = {scaled_by(d * k * k), {d, d, k, k}},
        [ATN_PARAMETER_NORM_WEIGHT] = {ones, {d}},
        [ATN_PARAMETER_NORM_BIAS] = {zeros, {d}},
        [ATN_PARAMETER_RESIDUAL] = {scaled_by(r * r), {h, r, r}},
        [ATN_PARAMETER_GAMMA] = {ones, {h}},
        [ATN_PARAMETER_E] = {scaled_by(m->tokens), {m->tokens, s->landmarks}},
        [ATN_PARAMETER_TEMPERATURE] = {ones, {h}},
    };
    const struct {
        atn_operator op;
        const char *name;
        int64_t shape[3];
    } drawn[] = {
        {ATN_PERFORMER, "projection", {1, FEATURES, d}},
        {ATN_RFF, "projection", {1, FEATURES, d}},
        {ATN_LSH, "rotations", {LSH_ROUNDS, d, LSH_CHUNKS}},
    };
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++) {
        int dimensions = 0;
        while (dimensions < PARAMETER_DIMENSIONS && learned[p].shape[dimensions] > 0)
            dimensions++;
        bool landmarks = p == ATN_PARAMETER_CONV || p == ATN_PARAMETER_NORM_WEIGHT ||
                         p == ATN_PARAMETER_NORM_BIAS;
        if (model_has_parameter(s, (atn_parameter)p) && dimensions > 0 &&
            (p != ATN_PARAMETER_RESIDUAL || model_has_parameter(s, ATN_PARAMETER_CONV)) &&
            (!landmarks || change_convolves(s->change)))
            b->attention[p] =
                add(m, learned[p].rule, dimensions, learned[p].shape,
                    "blocks.%" PRId64 ".attention.%s", block, atn_parameter_name((atn_parameter)p));
    }
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++)
        if (drawn[i].op == s->attention->op)
            b->drawn = add(m, (start_rule){.spread = 1, .fixed = true}, 3, drawn[i].shape,
                           "blocks.%" PRId64 ".attention.%s", block, drawn[i].name);
}

/* Adds what is learned by a norm that takes XNorm's place; each head has its own. */
static void add_crossnorm(model *m, int64_t block)
{
    static const struct {
        const char *name;
        start_rule rule;
        bool channels; /* a number per channel */
    } learned[CROSSNORM_PARAMETERS] = {
        [CROSSNORM_GAMMA] = {"gamma", {.start = 1}, false},
        [CROSSNORM_P] = {"p", {.start = 2}, false},
        [CROSSNORM_WEIGHT] = {"query_weight", {.start = 1}, true},
        [CROSSNORM_WEIGHT + 1] = {"cluster_weight", {.start = 1}, true},
        [CROSSNORM_BIAS] = {"query_bias", {0}, true},
        [CROSSNORM_BIAS + 1] = {"cluster_bias", {0}, true},
    };
    crossnorm_kind kind = m->shape.change->crossnorm;
    int64_t h = m->shape.heads, sizes[] = {h, m->shape.width / h};
    for (int p = 0; p < CROSSNORM_PARAMETERS; p++)
        if (p == CROSSNORM_P ? kind == CROSSNORM_POWER
                             : learned[p].channels == (kind >= CROSSNORM_LAYER))
            m->blocks[block].crossnorm[p] =
                add(m, learned[p].rule, learned[p].channels ? 2 : 1, sizes,
                    "blocks.%" PRId64 ".attention.%s", block, learned[p].name);
}

static void add_block(model *m, int64_t block)
{
    const model_shape *s = &m->shape;
    model_block *b = &m->blocks[block];
    int64_t c = s->width, h = s->hidden;
    for (int i = 0; i < ATN_PARAMETER_COUNT; i++)
        b->attention[i] = -1;
    for (int i = 0; i < CROSSNORM_PARAMETERS; i++)
        b->crossnorm[i] = -1;
    b->drawn = b->scale1 = b->scale2 = -1;
    b->landmarks = m->landmarks ? m->landmarks + block * s->landmarks : NULL;
    b->norm1_weight = ADD_TO_BLOCK(ones, "norm1.weight", c);
    b->norm1_bias = ADD_TO_BLOCK(zeros, "norm1.bias", c);
    b->input_weight = ADD_TO_BLOCK(scaled_by(c), "input.weight", m->inputs * c, c);
    b->input_bias = ADD_TO_BLOCK(zeros, "input.bias", m->inputs * c);
    if (s->change->crossnorm)
        add_crossnorm(m, block);
    else
        add_attention(m, block);
    b->output_weight = ADD_TO_BLOCK(scaled_by(c), "output.weight", c, c);
    b->output_bias = ADD_TO_BLOCK(zeros, "output.bias", c);
    if (m->scaled)
        b->scale1 = ADD_TO_BLOCK(ones, "scale1", c);
    b->norm2_weight = ADD_TO_BLOCK(ones, "norm2.weight", c);
    b->norm2_bias = ADD_TO_BLOCK(zeros, "norm2.bias", c);
    b->hidden_weight = ADD_TO_BLOCK(scaled_by(c), "hidden.weight", h, c);
    b->hidden_bias = ADD_TO_BLOCK(zeros, "hidden.bias", h);
    b->mlp_weight = ADD_TO_BLOCK(scaled_by(h), "mlp.weight", c, h);
    b->mlp_bias = ADD_TO_BLOCK(zeros, "mlp.bias", c);
    if (m->scaled)
        b->scale2 = ADD_TO_BLOCK(ones, "scale2", c);
}

int model_create(const model_shape *shape, model *m)
{
    *m = (model){.shape = *shape};
    int code = check_shape(shape);
    if (code != EXIT_PASS)
        return code;
    m->shape.residual = residual_side(shape);
    atn_operator op = shape->attention->op;
    int64_t c = shape->width, p = shape->patch;
    m->grid = shape->side / p;
    m->tokens = m->grid * m->grid;
    m->inputs = model_has_keys(shape) ? 3 : 2;
    m->norm_after = op == ATN_SOFT || op == ATN_SOFTPP;
    m->scaled = op == ATN_SIMA;
    m->blocks = must_allocate((size_t)shape->depth, sizeof *m->blocks);
    m->patch_weight = ADD(scaled_by(p * p), "patch.weight", c, p * p);
    m->patch_bias = ADD(zeros, "patch.bias", c);
    m->position = ADD((start_rule){.waves = true}, "position", m->tokens, c);
    if (change_has_drawn_landmarks(shape->change))
        m->landmarks =
            change_draw_landmarks(shape->seed, 0, shape->depth, m->tokens, shape->landmarks);
    for (int64_t block = 0; block < shape->depth; block++)
        add_block(m, block);
    m->norm_weight = ADD(ones, "norm.weight", c);
    m->norm_bias = ADD(zeros, "norm.bias", c);
    /* so small that the first predictions are nearly uniform */
    m->head_weight = ADD((start_rule){.spread = 0.02}, "head.weight", shape->classes, c);
    m->head_bias = ADD(zeros, "head.bias", shape->classes);
    return EXIT_PASS;
}

void model_free(model *m)
{
    free(m->blocks);
    free(m->landmarks);
    free(m->parameters);
    *m = (model){0};
}

/* Sines and cosines, in turn, of a token's row and column, at wavelengths from 2 pi tokens to
 * nearly 100 times that: the fixed positions of Vaswani et al. 2017 (section 3.5) in two
 * dimensions, as initial values of learned ones. Neighbouring tokens start with similar positions,
 * which random positions would have to learn. The amplitude is about that of the patches'
 * embeddings. */
static double wave(const model *m, int64_t token, int64_t channel)
{
    static const double amplitude = 0.7, longest = 100;
    int64_t frequencies = (m->shape.width + 3) / 4;
    double place = (double)(channel % 2 == 0 ? token / m->grid : token % m->grid);
    double angle = place * pow(longest, -(double)(channel / 4) / (double)frequencies);
    return amplitude * (channel / 2 % 2 == 0 ? sin(angle) : cos(angle));
}

void model_initialise(const model *m, uint64_t seed, double *values)
{
    static const double cut = 2;
    for (int64_t i = 0; i < m->parameter_count; i++) {
        const model_parameter *p = &m->parameters[i];
        random_stream *stream = random_create(seed, p->name, 0);
        for (int64_t k = 0; k < p->count; k++) {
            double draw = p->spread > 0 ? random_normal(stream) : 0;
            while (!p->fixed && fabs(draw) > cut)
                draw = random_normal(stream);
            double start = p->waves ? wave(m, k / m->shape.width, k % m->shape.width) : p->start;
            values[p->offset + k] = start + p->spread * draw;
        }
        random_free(stream);
    }
}

/* ---- Attention ---- */

atn_attention_desc model_attention(const model *m, int64_t block, atn_dtype dtype, void *data)
{
    const model_shape *s = &m->shape;
    const model_block *b = &m->blocks[block];
    int64_t d = s->width / s->heads, k = stride_of(m), r = residual_side(s);
    atn_attention_desc desc = atn_attention_variant(s->attention->op, s->variant, dtype);
    const int64_t *at = b->attention;
#define TENSOR(place, ...)                                                                         \
    ((place) < 0 ? (atn_tensor){0}                                                                 \
                 : atn_tensor_dense((char *)data + (size_t)(place)*atn_dtype_size(dtype), dtype,   \
                                    __VA_ARGS__))
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_CONV_CODE,
                                   .height = m->grid,
                                   .width = m->grid,
                                   .stride = k,
                                   .weights = TENSOR(at[ATN_PARAMETER_CONV], 1, d, d, k * k),
                                   .norm_weight = TENSOR(at[ATN_PARAMETER_NORM_WEIGHT], 1, 1, 1, d),
                                   .norm_bias = TENSOR(at[ATN_PARAMETER_NORM_BIAS], 1, 1, 1, d)};
    desc.residual = TENSOR(at[ATN_PARAMETER_RESIDUAL], 1, s->heads, r, r);
    desc.residual_height = desc.residual_width = m->grid;
    desc.xnorm.gamma = TENSOR(at[ATN_PARAMETER_GAMMA], 1, s->heads, 1, 1);
    desc.xca.temperature = TENSOR(at[ATN_PARAMETER_TEMPERATURE], 1, s->heads, 1, 1);
    desc.linformer.e = TENSOR(at[ATN_PARAMETER_E], 1, 1, m->tokens, s->landmarks);
    desc.performer.projection = desc.rff.projection = TENSOR(b->drawn, 1, 1, FEATURES, d);
    desc.lsh.rotations = TENSOR(b->drawn, 1, LSH_ROUNDS, d, LSH_CHUNKS);
#undef TENSOR
    desc.lsh.chunk = m->tokens / LSH_CHUNKS;
    desc.nystromformer.landmarks = s->landmarks;
    if (s->change->edit)
        s->change->edit(s->change, &desc);
    if (b->landmarks)
        desc.sampling.indices = b->landmarks;
    return desc;
}
