/* SPDX-License-Identifier: BSD-3-Clause */
/* A step of attnum train: a batch of made-up pictures forward and backward through the default
 * network with an operator, and AdamW. */
#include <stdlib.h>

#include "bench/workload.h"
#include "common/report.h"
#include "train/trainer.h"

/* After an epoch of so many steps the trainer tests its test set, here of few pictures; of epochs
 * there are more than any benchmark takes. */
enum { STEPS = 64, TESTED = 4, EPOCHS = 10000 };

struct bench_training {
    fashion_set pictures, test;
    trainer *t;
};

static fashion_set make_pictures(int64_t count)
{
    int64_t pixels = count * FASHION_SIDE * FASHION_SIDE;
    fashion_set set = {.count = count,
                       .pixels = must_allocate((size_t)pixels, 1),
                       .labels = must_allocate((size_t)count, 1)};
    float *values = must_allocate((size_t)pixels, sizeof *values);
    workload_numbers(0, pixels, values);
    for (int64_t i = 0; i < pixels; i++)
        set.pixels[i] = values[i] > 0 ? 255 : 0;
    for (int64_t i = 0; i < count; i++)
        set.labels[i] = (unsigned char)(i % FASHION_CLASSES);
    free(values);
    return set;
}

/* Those of the linear layers, three products for each weight and token but for the patches, whose
 * pixels have no gradient; of the GELU, one exp of each hidden number; and of attention those of a
 * backward call: they contain what of forward the derivatives need, which a step computes once. The
 * rest of forward, such as softmax's product with V, is left out. */
static void count_step(workload *s)
{
    const bench_case *c = s->c;
    const model *m = trainer_model(s->training->t);
    const model_shape *shape = &m->shape;
    double width = (double)shape->width, hidden = (double)shape->hidden;
    double depth = (double)shape->depth, rows = (double)(c->batch * m->tokens);
    double block = width * ((double)(m->inputs + 1) * width + 2 * hidden);
    double patch = (double)(shape->patch * shape->patch);
    atn_attention_desc desc =
        model_attention(m, 0, ATN_F32, (void *)trainer_parameters(s->training->t));
    atn_attention_shape of = {.batch = c->batch,
                              .heads = c->heads,
                              .tokens = c->tokens,
                              .dim = c->dim,
                              .value_dim = c->dim};
    atn_cost cost = {0};
    s->status = atn_attention_cost(s->context, &desc, &of, &cost);
    s->flops = rows * (6 * depth * block + 4 * patch * width) +
               6 * (double)c->batch * width * (double)shape->classes + depth * cost.backward_flops;
    s->exps = depth * (rows * hidden + cost.backward_exps);
}

static void open_training(workload_store *store, workload *s)
{
    (void)store;
    const bench_case *c = s->c;
    const atn_operator_info *info = atn_operator_get(c->op);
    char *name = must_format("%s/%s", info->name, info->variants[c->variant].name);
    training plan;
    s->training = must_allocate(1, sizeof *s->training);
    s->training->pictures = make_pictures(STEPS * c->batch);
    s->training->test = make_pictures(TESTED);
    if (training_defaults(name, &plan)) {
        plan.threads = c->threads;
        plan.epochs = EPOCHS;
        int code =
            trainer_create(&plan, &s->training->pictures, &s->training->test, &s->training->t);
        s->status = code == EXIT_PASS ? ATN_OK : ATN_ERR_MEMORY;
    } else
        s->status = ATN_ERR_UNSUPPORTED;
    free(name);
    if (s->status == ATN_OK)
        count_step(s);
}

static atn_status run_training(workload *s, int set)
{
    (void)set;
    return trainer_step(s->training->t) == EXIT_PASS ? ATN_OK : ATN_ERR_VALUE; /* reported */
}

const workload_kind bench_training_kind = {open_training, run_training};

void bench_training_free(bench_training *b)
{
    if (!b)
        return;
    trainer_free(b->t);
    fashion_free(&b->pictures);
    fashion_free(&b->test);
    free(b);
}
