/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks with every operator: gradients against differences, f32 against f64, and what one
 * parameter or one image can reach. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "common/report.h"
#include "train_run.h"

enum { IMAGES = 3, SIDE = 28, WIDTH = 8, LABELS = 5 };

typedef struct {
    model m;
    train_case c;
    double *parameters, *pixels;
    unsigned char labels[IMAGES];
} network;

/* 14 x 14 tokens, 2 heads of 4 channels. The parameters' scales are of the test's own, such that
 * every layer matters and no exponential saturates. */
static network make(const char *name, const char *change_name)
{
    model_shape shape;
    cr_assert(model_defaults(name, &shape), "%s", name);
    shape.width = WIDTH;
    shape.hidden = 6;
    shape.depth = 2;
    shape.classes = LABELS;
    shape.landmarks = 4;
    cr_assert(model_change(&shape, change_find(change_name)), "%s %s", name, change_name);
    network w = {0};
    cr_assert_eq(model_create(&shape, &w.m), EXIT_PASS);
    w.parameters = must_allocate((size_t)w.m.size, sizeof *w.parameters);
    w.pixels = must_allocate(IMAGES * SIDE * SIDE, sizeof *w.pixels);
    model_initialise(&w.m, 7, w.parameters);
    random_stream *stream = random_create(1, "pixels", 0);
    for (int64_t i = 0; i < w.m.parameter_count; i++) {
        const model_parameter *p = &w.m.parameters[i];
        double factor = strstr(p->name, "attention.") ? 10 : 0.2 / p->spread;
        for (int64_t k = 0; k < p->count && !p->fixed; k++) /* norms and biases as well */
            w.parameters[p->offset + k] =
                p->decays ? factor * w.parameters[p->offset + k]
                          : w.parameters[p->offset + k] + 0.2 * random_normal(stream);
        /* landmarks far from each other, so that their kernel matrix is no worse than the rest */
        for (int64_t k = 0; k < p->count && strstr(p->name, "attention.norm_weight"); k++)
            w.parameters[p->offset + k] *= 6;
    }
    for (int i = 0; i < IMAGES * SIDE * SIDE; i++)
        w.pixels[i] = random_normal(stream);
    random_free(stream);
    for (int i = 0; i < IMAGES; i++)
        w.labels[i] = (unsigned char)(2 * i);
    return w;
}

static train_case case_of(const network *w)
{
    return (train_case){&w->m, IMAGES, w->parameters, w->pixels, w->labels};
}

static void release(network *w)
{
    free(w->parameters);
    free(w->pixels);
    model_free(&w->m);
}

/* Variants whose gradient is that of what they compute. The differences' steps are short where
 * there are kinks and jumps. */
static const struct {
    const char *name, *change;
    double step;
} operators[] = {{"soft/exact", "none", 1e-5},
                 {"soft/exact", "code-kernel", 1e-5},
                 {"softpp/code", "none", 1e-5},
                 {"gaussian", "none", 1e-5},
                 {"softmax", "none", 1e-5},
                 {"sima", "none", 1e-6},
                 {"xnorm", "none", 1e-5},
                 {"linformer", "none", 1e-5},
                 {"performer", "none", 1e-5},
                 {"rff", "none", 1e-5},
                 {"nystromformer/exact", "none", 1e-5},
                 {"xca", "none", 1e-5},
                 {"efficient", "none", 1e-5},
                 {"elu", "none", 1e-5},
                 {"cosformer", "none", 1e-6},
                 {"lsh", "none", 1e-6},
                 {"soft/exact", "pool", 1e-5},
                 {"soft/exact", "random", 1e-5},
                 {"softpp/code", "first", 1e-5},
                 {"softmax", "symmetric", 1e-5},
                 {"sima", "l2", 1e-6},
                 {"sima", "no-norm", 1e-6},
                 {"sima", "relu", 1e-6},
                 {"sima", "one-head", 1e-6},
                 {"xnorm", "l2-queries", 1e-5},
                 {"xnorm", "l2-clusters", 1e-5},
                 {"xnorm", "p-norm", 1e-5},
                 {"xnorm", "layer-norm", 1e-5},
                 {"xnorm", "group-norm", 1e-5},
                 {"xnorm", "instance-norm", 1e-5}};
enum { OPERATORS = sizeof operators / sizeof *operators };

/* The loss a way along u from the parameter. */
static double loss_at(const network *w, const model_parameter *p, const double *u, double way)
{
    train_case c = case_of(w);
    double *moved = must_allocate((size_t)w->m.size, sizeof *moved);
    memcpy(moved, w->parameters, (size_t)w->m.size * sizeof *moved);
    for (int64_t i = 0; i < p->count; i++)
        moved[p->offset + i] += way * u[i];
    c.parameters = moved;
    double loss = train_run_f64(&c, NULL, NULL);
    free(moved);
    return loss;
}

/* Along a random direction of a parameter: the slope by the gradient, and by differences. */
static void check_parameter(int op, const network *w, const model_parameter *p,
                            const double *gradient)
{
    const char *name = operators[op].name, *change_name = operators[op].change;
    const double h = operators[op].step;
    double *u = must_allocate((size_t)p->count, sizeof *u), slope = 0, size = 0, length = 0;
    random_stream *stream = random_create(2, p->name, 0);
    for (int64_t i = 0; i < p->count; i++) {
        u[i] = random_normal(stream);
        length += u[i] * u[i];
    }
    random_free(stream);
    for (int64_t i = 0; i < p->count; i++) {
        u[i] /= sqrt(length);
        slope += u[i] * gradient[p->offset + i];
        size += gradient[p->offset + i] * gradient[p->offset + i];
    }
    double differences = (loss_at(w, p, u, h) - loss_at(w, p, u, -h)) / (2 * h);
    cr_expect(p->fixed || fabs(slope - differences) <= 1e-6 * sqrt(size) + 2e-9,
              "%s %s %s: %.12g, %.12g of %g", name, change_name, p->name, slope, differences,
              sqrt(size));
    cr_expect(p->fixed ? size == 0 : size > 0, "%s %s %s: gradient of size %g", name, change_name,
              p->name, size);
    free(u);
}

Test(train_pass, gradients_are_those_of_differences, .timeout = 120)
{
    for (int i = 0; i < OPERATORS; i++) {
        network w = make(operators[i].name, operators[i].change);
        train_case c = case_of(&w);
        double *gradient = must_allocate((size_t)w.m.size, sizeof *gradient);
        train_run_f64(&c, NULL, gradient);
        for (int64_t p = 0; p < w.m.parameter_count; p++)
            check_parameter(i, &w, &w.m.parameters[p], gradient);
        free(gradient);
        release(&w);
    }
}

/* 10 n u, n the width, as the ruler has it for kappa = 1: for the logits, which are of size 1, and
 * for the gradient as a whole. */
Test(train_pass, f32_is_f64_rounded)
{
    const double most = 10 * WIDTH * 0x1p-24;
    for (int i = 0; i < OPERATORS; i++) {
        network w = make(operators[i].name, operators[i].change);
        train_case c = case_of(&w);
        double logits[2][IMAGES * LABELS], *gradients[2], apart = 0, size = 0;
        for (int k = 0; k < 2; k++)
            gradients[k] = must_allocate((size_t)w.m.size, sizeof *gradients[k]);
        train_run_f64(&c, logits[0], gradients[0]);
        train_run_f32(&c, logits[1], gradients[1]);
        for (int64_t k = 0; k < w.m.size; k++) {
            apart += pow(gradients[0][k] - gradients[1][k], 2);
            size += pow(gradients[0][k], 2);
        }
        cr_expect(sqrt(apart / size) <= most, "%s: gradients %g u apart", operators[i].name,
                  sqrt(apart / size) * 0x1p24);
        for (int k = 0; k < IMAGES * LABELS; k++)
            cr_expect(fabs(logits[0][k] - logits[1][k]) <= most, "%s: logits %g u apart",
                      operators[i].name, fabs(logits[0][k] - logits[1][k]) * 0x1p24);
        for (int k = 0; k < 2; k++)
            free(gradients[k]);
        release(&w);
    }
}

/* An MLP with ReLU gives the same if what goes into ReLU is doubled and what comes out of it is
 * halved, which GELU does not. */
Test(train_pass, a_change_to_relu)
{
    for (int relu = 0; relu < 2; relu++) {
        network w = make("sima", relu ? "relu" : "none");
        train_case c = case_of(&w);
        double logits[2][IMAGES * LABELS], most = 0;
        train_run_f64(&c, logits[0], NULL);
        for (int64_t i = 0; i < w.m.parameter_count; i++) {
            const model_parameter *p = &w.m.parameters[i];
            double factor = strstr(p->name, ".hidden.")      ? 2
                            : strstr(p->name, ".mlp.weight") ? 0.5
                                                             : 1;
            for (int64_t k = 0; k < p->count; k++)
                w.parameters[p->offset + k] *= factor;
        }
        train_run_f64(&c, logits[1], NULL);
        for (int k = 0; k < IMAGES * LABELS; k++)
            most = fmax(most, fabs(logits[0][k] - logits[1][k]));
        cr_expect(relu ? most == 0 : most > 1e-3, "%s: %g", relu ? "ReLU" : "GELU", most);
        release(&w);
    }
}

/* exp(-|x / d^(1/4) - l|^2 / 2) is exp(-|x - l|^2 / (2 sqrt(d))) for landmarks of 0, which a
 * LayerNorm of weight and bias 0 gives, and for no others. */
Test(train_pass, a_change_to_the_kernel_of_the_code)
{
    for (int zero = 0; zero < 2; zero++) {
        double logits[2][IMAGES * LABELS], most = 0;
        for (int changed = 0; changed < 2; changed++) {
            network w = make("soft/exact", changed ? "code-kernel" : "none");
            train_case c = case_of(&w);
            for (int64_t i = 0; zero && i < w.m.parameter_count; i++) {
                const model_parameter *p = &w.m.parameters[i];
                for (int64_t k = 0; strstr(p->name, ".attention.norm_") && k < p->count; k++)
                    w.parameters[p->offset + k] = 0;
            }
            train_run_f64(&c, logits[changed], NULL);
            release(&w);
        }
        for (int k = 0; k < IMAGES * LABELS; k++)
            most = fmax(most, fabs(logits[0][k] - logits[1][k]));
        cr_expect(zero ? most <= 1e-13 : most > 1e-9, "landmarks %s: %g", zero ? "of 0" : "as ever",
                  most);
    }
}
