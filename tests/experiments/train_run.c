/* SPDX-License-Identifier: BSD-3-Clause */
#include "train_run.h"

#include <math.h>
#include <stdlib.h>

#include "common/report.h"
#include "train/layers.h"
#include "train/pass.h"

static void must(bool good, const char *what)
{
    if (!good)
        end_program(what);
}

static real *rounded(int64_t count, const double *values)
{
    real *copy = must_allocate((size_t)count, sizeof *copy);
    for (int64_t i = 0; i < count; i++)
        copy[i] = (real)values[i];
    return copy;
}

double R(train_run)(const train_case *c, double *logits, double *gradient)
{
    const model *m = c->m;
    int64_t count = c->images * m->shape.classes;
    atn_context *context;
    pass *network;
    must(atn_context_create(&(atn_context_options){.threads = 1}, &context) == ATN_OK, "context");
    real *parameters = rounded(m->size, c->parameters);
    real *pixels = rounded(c->images * m->shape.side * m->shape.side, c->pixels);
    real *y = must_allocate((size_t)count, sizeof *y),
         *dy = must_allocate((size_t)count, sizeof *dy);
    real *g = must_allocate((size_t)m->size, sizeof *g);
    must(pass_create(m, parameters, context, c->images, &network) == EXIT_PASS, "pass");
    must(pass_forward(network, pixels, y) >= 0, atn_last_error(context));
    double loss = 0;
    int64_t correct = 0;
    cross_entropy(c->images, m->shape.classes, y, c->labels, 0.1, 1 / (double)c->images, &loss,
                  &correct, dy);
    for (int64_t i = 0; logits && i < count; i++)
        logits[i] = (double)y[i];
    if (gradient) {
        for (int64_t i = 0; i < m->size; i++)
            g[i] = (real)NAN; /* every number must be written */
        must(pass_backward(network, dy, g) >= 0, atn_last_error(context));
        for (int64_t i = 0; i < m->size; i++)
            gradient[i] = (double)g[i];
    }
    pass_free(network);
    atn_context_free(context);
    free(g);
    free(dy);
    free(y);
    free(pixels);
    free(parameters);
    return loss / (double)c->images;
}

void R(train_steps)(const train_case *c, int64_t steps, double *losses)
{
    const model *m = c->m;
    int64_t count = c->images * m->shape.classes, size = c->images * m->shape.side * m->shape.side;
    atn_context *context;
    pass *network;
    must(atn_context_create(&(atn_context_options){.threads = 1}, &context) == ATN_OK, "context");
    real *parameters = rounded(m->size, c->parameters), *pixels = rounded(steps * size, c->pixels);
    real *y = must_allocate((size_t)count, sizeof *y),
         *dy = must_allocate((size_t)count, sizeof *dy);
    real *arrays = must_allocate(3 * (size_t)m->size, sizeof *arrays), *g = arrays + 2 * m->size;
    must(pass_create(m, parameters, context, c->images, &network) == EXIT_PASS, "pass");
    for (int64_t step = 0; step < steps; step++) {
        int64_t correct = 0;
        losses[step] = 0;
        must(pass_forward(network, pixels + step * size, y) >= 0, atn_last_error(context));
        cross_entropy(c->images, m->shape.classes, y, c->labels + step * c->images, 0.1,
                      1 / (double)c->images, &losses[step], &correct, dy);
        losses[step] /= (double)c->images;
        must(pass_backward(network, dy, g) >= 0, atn_last_error(context));
        for (int64_t i = 0; i < m->parameter_count; i++) {
            const model_parameter *p = &m->parameters[i];
            adamw_rule rule = {step + 1, 1e-3, p->decays ? 0.05 : 0, 1};
            real *const moments[2] = {arrays + p->offset, arrays + m->size + p->offset};
            if (!p->fixed)
                adamw(&rule, p->count, g + p->offset, parameters + p->offset, moments);
        }
    }
    pass_free(network);
    atn_context_free(context);
    free(arrays);
    free(dy);
    free(y);
    free(pixels);
    free(parameters);
}
