/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/changes.h"

#include <stdio.h>
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

/* The number of landmarks stays; the tokens that are drawn are named by those who draw them. */
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

/* Of queries divided by d^(1/4) this is exp(-|q_i - q_j|^2 / (2 sqrt(d))), as without the change;
 * landmarks, which end with a LayerNorm, are not divided. */
static void set_kernel(const change *c, atn_attention_desc *desc)
{
    (void)c;
    desc->scale = ATN_SCALE_VALUE;
    desc->scale_value = 0.5;
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
        .name = "steps-" #n, .description = #n " steps of the inverse's iteration instead of 20",  \
        .operators = SOFT_ONLY, .before = true, .after = true, .iterated = true,                   \
        .edit = set_steps, .value = n                                                              \
    }
#define NOISE(level)                                                                               \
    {                                                                                              \
        .name = "noise-" #level,                                                                   \
        .description =                                                                             \
            "normal noise on the pixels, " #level " times the training set's deviation",           \
        .operators = ALL, .after = true, .drawn = true, .noise = level                             \
    }
#define LANDMARKS(n)                                                                               \
    {                                                                                              \
        .name = "m-" #n,                                                                           \
        .description = #n " landmarks, whatever the size of the pictures; the fewer, the wider "   \
                          "the convolution's windows",                                             \
        .operators = SOFT_ONLY, .before = true, .landmarks = n                                     \
    }
#define UNREAD "; no other command reads such a network"
#define CROSSNORM(kind, called, text)                                                              \
    {                                                                                              \
        .name = called, .description = text UNREAD, .operators = 1U << ATN_XNORM, .before = true,  \
        .crossnorm = kind                                                                          \
    }

const change changes[] = {
    [CHANGE_NONE] = {.name = "none",
                     .description = "nothing is changed",
                     .operators = ALL,
                     .before = true,
                     .after = true},
    STEPS(2),
    STEPS(3),
    STEPS(5),
    STEPS(10),
    {.name = "exact",
     .description = "the inverse by rank-revealing Cholesky instead of iteration, without ridge",
     .operators = SOFT_ONLY,
     .before = true,
     .after = true,
     .iterated = true,
     .edit = set_inverse,
     .value = ATN_INVERSE_PIVOTED_CHOLESKY},
    {.name = "gaussian",
     .description = "K(Q,Q) V instead of its Nystrom form; the residual convolution stays",
     .operators = SOFT_ONLY,
     .after = true,
     .edit = set_operator,
     .value = ATN_GAUSSIAN},
    {.name = "pool",
     .description =
         "landmarks are averages of the convolution's windows, without its LayerNorm and "
         "GELU",
     .operators = SOFT_ONLY,
     .before = true,
     .after = true,
     .edit = set_sampling,
     .value = ATN_SAMPLING_POOL},
    {.name = "random",
     .description =
         "landmarks are tokens at random places, others in each block, the same in all pictures",
     .operators = SOFT_ONLY,
     .before = true,
     .after = true,
     .drawn = true,
     .edit = set_sampling,
     .value = ATN_SAMPLING_INDICES},
    {.name = "first",
     .description = "landmarks are the first m tokens",
     .operators = SOFT_ONLY,
     .before = true,
     .after = true,
     .edit = set_sampling,
     .value = ATN_SAMPLING_FIRST},
    {.name = "l2",
     .description = "l2 norms instead of l1",
     .operators = SIMA_ONLY,
     .before = true,
     .after = true,
     .edit = set_norm,
     .value = ATN_SIMA_L2},
    {.name = "no-norm",
     .description = "no norms: Q K^T V",
     .operators = SIMA_ONLY,
     .before = true,
     .after = true,
     .edit = set_norm,
     .value = ATN_SIMA_NONE},
    {.name = "side-56",
     .description = "pictures of 56 x 56 pixels, each pixel repeated; strides as trained: of soft "
                    "and softpp, m grows fourfold",
     .operators = ANY_SIZE,
     .after = true,
     .factor = 2},
    {.name = "side-56-same-m",
     .description = "pictures of 56 x 56 pixels, m as trained: the convolution is of averages of 2 "
                    "x 2 tokens",
     .operators = SOFT_ONLY,
     .after = true,
     .factor = 2,
     .same_m = true},
    {.name = "bf16",
     .description = "attention, its inputs and its parameters in bf16",
     .operators = ALL,
     .after = true,
     .edit = set_storage,
     .value = ATN_STORAGE_BF16},
    {.name = "f16",
     .description = "attention, its inputs and its parameters in f16",
     .operators = ALL,
     .after = true,
     .edit = set_storage,
     .value = ATN_STORAGE_F16},
    NOISE(0.25),
    NOISE(0.5),
    NOISE(1),
    LANDMARKS(4),
    LANDMARKS(49),
    LANDMARKS(196),
    {.name = "symmetric",
     .description = "keys are the queries",
     .operators = 1U << ATN_SOFTMAX,
     .before = true,
     .symmetric = true},
    {.name = "relu",
     .description = "ReLU in the MLP instead of GELU",
     .operators = SIMA_ONLY,
     .before = true,
     .relu = true},
    CROSSNORM(CROSSNORM_QUERIES, "l2-queries", "the l2 norm of Q alone"),
    CROSSNORM(CROSSNORM_CLUSTERS, "l2-clusters", "the l2 norm of K^T V alone"),
    CROSSNORM(CROSSNORM_POWER, "p-norm", "lp norms whose p is learned, instead of l2"),
    CROSSNORM(CROSSNORM_LAYER, "layer-norm", "LayerNorm instead of XNorm"),
    CROSSNORM(CROSSNORM_GROUP, "group-norm", "GroupNorm of 8 channels instead of XNorm"),
    CROSSNORM(CROSSNORM_INSTANCE, "instance-norm", "InstanceNorm instead of XNorm"),
    {.name = "code-kernel",
     .description =
         "the published code's kernel, exp(-|x - y|^2 / 2) of queries divided by d^(1/4) "
         "and of landmarks that are not; networks/ alone reads such a network",
     .operators = SOFT_ONLY,
     .before = true,
     .code_kernel = true,
     .edit = set_kernel},
    {.name = "one-head",
     .description = "one head as wide as the network" UNREAD,
     .operators = ALL,
     .before = true,
     .one_head = true},
};
const int change_count = sizeof changes / sizeof *changes;

char *change_operators(const change *c)
{
    char *text;
    size_t size;
    FILE *list = must_open_text(&text, &size);
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        if (c->operators >> op & 1)
            fprintf(list, "%s%s", ftell(list) > 0 ? ", " : "",
                    atn_operator_get((atn_operator)op)->name);
    must_close_text(list, &text, &size);
    return text;
}

bool change_is_of_attention(const change *c)
{
    return c->edit && c->edit != set_storage;
}

bool change_suits(const change *c, const atn_operator_info *info, int variant)
{
    atn_attention_desc desc = atn_attention_variant(info->op, variant, ATN_F32);
    return c->operators >> info->op & 1 &&
           (!c->iterated || desc.inverse.method != ATN_INVERSE_PIVOTED_CHOLESKY);
}

bool change_convolves(const change *c)
{
    return c->edit != set_sampling;
}

bool change_has_drawn_landmarks(const change *c)
{
    return c->edit == set_sampling && c->drawn;
}

/* m of n tokens, in rising order (Knuth, The Art of Computer Programming, 3.4.2 S). */
static void draw_indices(random_stream *r, int64_t n, int64_t m, int64_t *indices)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++)
        if (random_below(r, n - i) < m - found)
            indices[found++] = i;
}

int64_t *change_draw_landmarks(uint64_t seed, int64_t sample, int64_t blocks, int64_t n, int64_t m)
{
    random_stream *r = random_create(seed, "changed landmarks", (uint64_t)sample);
    int64_t *indices = must_allocate((size_t)(m * blocks), sizeof *indices);
    for (int64_t i = 0; i < blocks; i++)
        draw_indices(r, n, m, indices + i * m);
    random_free(r);
    return indices;
}

const change *change_find(const char *name)
{
    for (int i = 0; i < change_count; i++)
        if (strcmp(changes[i].name, name) == 0)
            return &changes[i];
    return NULL;
}
