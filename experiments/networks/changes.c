/* SPDX-License-Identifier: BSD-3-Clause */
#include "networks/changes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "common/report.h"

/* ---- Edits of a description ---- */

static void set_steps(const change *c, atn_attention_desc *desc)
{
    desc->inverse.iterations = c->value;
}

static void set_inverse(const change *c, atn_attention_desc *desc)
{
    desc->inverse = atn_inverse_defaults((atn_inverse_method)c->value);
}

/* The number of landmarks stays; those that are drawn are named by changed_network_open. */
static void set_sampling(const change *c, atn_attention_desc *desc)
{
    atn_sampling *s = &desc->sampling;
    s->count = s->height / s->stride * (s->width / s->stride);
    s->kind = (atn_sampling_kind)c->value;
}

static void set_operator(const change *c, atn_attention_desc *desc)
{
    desc->op = (atn_operator)c->value;
}

static void set_norm(const change *c, atn_attention_desc *desc)
{
    desc->sima.norm = (atn_sima_norm)c->value;
}

static void set_storage(const change *c, atn_attention_desc *desc)
{
    desc->storage = (atn_storage)c->value;
}

/* ---- The table ---- */

#define ALL       (~0U)
#define SOFT_ONLY (1U << ATN_SOFT | 1U << ATN_SOFTPP)
#define SIMA_ONLY (1U << ATN_SIMA)
#define ANY_SIZE  (ALL & ~(1U << ATN_LINFORMER)) /* Linformer's E has a row per token */

#define STEPS(n)                                                                                   \
    {                                                                                              \
        .name = "steps-" #n,                                                                       \
        .description = #n " steps of the inverse's iteration instead of the trained 20",           \
        .operators = SOFT_ONLY, .iterated = true, .edit = set_steps, .value = n                    \
    }
#define NOISE(level)                                                                               \
    {                                                                                              \
        .name = "noise-" #level,                                                                   \
        .description =                                                                             \
            "normal noise on the pixels, " #level " times the training set's deviation",           \
        .operators = ALL, .drawn = true, .noise = level                                            \
    }

const change changes[] = {
    [CHANGE_NONE] = {.name = "none", .description = "as trained", .operators = ALL},
    STEPS(2),
    STEPS(3),
    STEPS(5),
    STEPS(10),
    {.name = "exact",
     .description = "the inverse by rank-revealing Cholesky instead of iteration, without ridge",
     .operators = SOFT_ONLY,
     .iterated = true,
     .edit = set_inverse,
     .value = ATN_INVERSE_PIVOTED_CHOLESKY},
    {.name = "gaussian",
     .description = "K(Q,Q) V instead of its Nystrom form; the residual convolution stays",
     .operators = SOFT_ONLY,
     .edit = set_operator,
     .value = ATN_GAUSSIAN},
    {.name = "pool",
     .description = "landmarks are averages of the convolution's windows",
     .operators = SOFT_ONLY,
     .edit = set_sampling,
     .value = ATN_SAMPLING_POOL},
    {.name = "random",
     .description =
         "landmarks are tokens at random places, each block's its own, all pictures' the "
         "same",
     .operators = SOFT_ONLY,
     .drawn = true,
     .edit = set_sampling,
     .value = ATN_SAMPLING_INDICES},
    {.name = "first",
     .description = "landmarks are the first m tokens",
     .operators = SOFT_ONLY,
     .edit = set_sampling,
     .value = ATN_SAMPLING_FIRST},
    {.name = "l2",
     .description = "l2 norms instead of l1",
     .operators = SIMA_ONLY,
     .edit = set_norm,
     .value = ATN_SIMA_L2},
    {.name = "no-norm",
     .description = "no norms: Q K^T V",
     .operators = SIMA_ONLY,
     .edit = set_norm,
     .value = ATN_SIMA_NONE},
    {.name = "side-56",
     .description = "pictures of 56 x 56 pixels, each pixel repeated; strides as trained: of soft "
                    "and softpp, m grows fourfold",
     .operators = ANY_SIZE,
     .factor = 2},
    {.name = "side-56-same-m",
     .description = "pictures of 56 x 56 pixels, m as trained: the convolution is of averages of 2 "
                    "x 2 tokens",
     .operators = SOFT_ONLY,
     .factor = 2,
     .same_m = true},
    {.name = "bf16",
     .description = "attention, its inputs and its parameters in bf16",
     .operators = ALL,
     .edit = set_storage,
     .value = ATN_STORAGE_BF16},
    {.name = "f16",
     .description = "attention, its inputs and its parameters in f16",
     .operators = ALL,
     .edit = set_storage,
     .value = ATN_STORAGE_F16},
    NOISE(0.25),
    NOISE(0.5),
    NOISE(1),
};
const int change_count = sizeof changes / sizeof *changes;

bool change_applies(const change *c, const model_shape *shape)
{
    atn_attention_desc desc = atn_attention_variant(shape->attention->op, shape->variant, ATN_F32);
    return c->operators >> shape->attention->op & 1 &&
           (!c->factor || shape->side == FASHION_SIDE) &&
           (!c->iterated || desc.inverse.method != ATN_INVERSE_PIVOTED_CHOLESKY);
}

/* ---- A changed network ---- */

/* Draws m of n tokens, in rising order (Knuth, The Art of Computer Programming, 3.4.2 S). */
static void draw_indices(random_stream *r, int64_t n, int64_t m, int64_t *indices)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++)
        if (random_below(r, n - i) < m - found)
            indices[found++] = i;
}

static void draw_landmarks(changed_network *n, uint64_t seed, int64_t sample)
{
    int64_t m = n->descs[0].sampling.count;
    random_stream *r = random_create(seed, "changed landmarks", (uint64_t)sample);
    n->indices = must_allocate((size_t)(m * n->m.shape.depth), sizeof *n->indices);
    for (int64_t i = 0; i < n->m.shape.depth; i++) {
        draw_indices(r, n->m.tokens, m, n->indices + i * m);
        n->descs[i].sampling.indices = n->indices + i * m;
    }
    random_free(r);
}

/* An attention in a narrow type takes parameters in that type. */
static void round_parameters(changed_network *n)
{
    for (int64_t i = 0; i < n->m.parameter_count; i++) {
        const model_parameter *p = &n->m.parameters[i];
        if (strstr(p->name, ".attention."))
            atn_storage_round(n->descs[0].storage, p->count, n->data + p->offset);
    }
}

int changed_network_open(const trained *t, const change *c, uint64_t seed, int64_t sample,
                         changed_network *n)
{
    *n = (changed_network){0};
    model_shape shape = model_enlarged(trained_shape(t), c->factor ? c->factor : 1);
    if (c->same_m)
        shape.landmarks = trained_shape(t)->landmarks;
    double *data;
    int code = trained_network(t, &shape, &n->m, &data);
    if (code == EXIT_PASS) {
        n->data = must_allocate((size_t)n->m.size, sizeof *n->data);
        n->descs = must_allocate((size_t)shape.depth, sizeof *n->descs);
        for (int64_t i = 0; i < n->m.size; i++)
            n->data[i] = (float)data[i];
        for (int64_t i = 0; i < shape.depth; i++) {
            n->descs[i] = model_attention(&n->m, i, ATN_F32, n->data);
            if (c->edit)
                c->edit(c, &n->descs[i]);
        }
        if (c->edit == set_sampling && c->drawn)
            draw_landmarks(n, seed, sample);
        round_parameters(n);
    }
    free(data);
    return code;
}

void changed_network_free(changed_network *n)
{
    free(n->indices);
    free(n->descs);
    free(n->data);
    model_free(&n->m);
}

void changed_picture(const change *c, const fashion_set *set, int64_t picture, int64_t side,
                     uint64_t seed, int64_t sample, float *pixels)
{
    fashion_image(set, picture, FASHION_WHOLE, side, pixels);
    if (c->noise == 0)
        return;
    char *purpose = must_format("noise %" PRId64, sample);
    random_stream *r = random_create(seed, purpose, (uint64_t)picture);
    for (int64_t i = 0; i < side * side; i++)
        pixels[i] += (float)(c->noise * random_normal(r));
    random_free(r);
    free(purpose);
}
