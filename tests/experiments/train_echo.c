/* SPDX-License-Identifier: BSD-3-Clause */
/* The program that bench/peers/test_networks.py compares with PyTorch.
 *   train_echo OPERATOR[/VARIANT] CHANGE FOLDER
 * writes FOLDER/network.npz: the parameters of a network at its start by name, pixels and labels of
 * STEPS batches, and in f64 and f32 (f32.NAME) its logits, its loss and the gradient (grad.NAME)
 * for the first batch, and the loss before each of STEPS steps of AdamW, a batch each (losses). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/npz.h"
#include "common/random.h"
#include "common/report.h"
#include "train/fashion.h"
#include "train_run.h"

enum { IMAGES = 2, STEPS = 50, PIXELS = FASHION_SIDE * FASHION_SIDE };

typedef struct {
    npz_array *arrays;
    int64_t count;
} array_list;

/* The values must stay until the list is written. */
static void add(array_list *list, char *name, int dimensions, const int64_t *shape,
                const double *values)
{
    list->arrays = must_resize(list->arrays, (size_t)list->count + 1, sizeof *list->arrays);
    list->arrays[list->count++] = (npz_array){name, ATN_F64, dimensions, shape, values};
}

static int write_network(const model *m, const char *folder)
{
    static const int64_t images[] = {STEPS, IMAGES, PIXELS}, logits[] = {IMAGES, FASHION_CLASSES};
    static const int64_t one = 1, steps = STEPS;
    static double labels[STEPS * IMAGES];
    static unsigned char bytes[STEPS * IMAGES];
    array_list list = {0};
    double *parameters = must_allocate((size_t)m->size, sizeof *parameters);
    double *pixels = must_allocate(STEPS * IMAGES, PIXELS * sizeof *pixels);
    model_initialise(m, 1, parameters);
    random_stream *stream = random_create(1, "pixels", 0);
    for (int i = 0; i < STEPS * IMAGES * PIXELS; i++)
        pixels[i] = random_normal(stream);
    for (int i = 0; i < STEPS * IMAGES; i++)
        labels[i] = bytes[i] = (unsigned char)random_below(stream, FASHION_CLASSES);
    random_free(stream);
    for (int64_t i = 0; i < m->parameter_count; i++) /* what f32 holds */
        for (int64_t k = 0; k < m->parameters[i].count; k++)
            parameters[m->parameters[i].offset + k] =
                (double)(float)parameters[m->parameters[i].offset + k];
    for (int i = 0; i < STEPS * IMAGES * PIXELS; i++)
        pixels[i] = (double)(float)pixels[i];
    for (int64_t i = 0; i < m->parameter_count; i++) {
        const model_parameter *p = &m->parameters[i];
        add(&list, must_format("%s", p->name), p->dimensions, p->shape, parameters + p->offset);
    }
    add(&list, must_format("pixels"), 3, images, pixels);
    add(&list, must_format("labels"), 2, images, labels);
    const train_case c = {m, IMAGES, parameters, pixels, bytes};
    for (int f32 = 0; f32 < 2; f32++) {
        const char *prefix = f32 ? "f32." : "";
        double *y = must_allocate(IMAGES, FASHION_CLASSES * sizeof *y);
        double *gradient = must_allocate((size_t)m->size, sizeof *gradient);
        double *loss = must_allocate(1, sizeof *loss);
        double *losses = must_allocate(STEPS, sizeof *losses);
        *loss = (f32 ? train_run_f32 : train_run_f64)(&c, y, gradient);
        add(&list, must_format("%slogits", prefix), 2, logits, y);
        add(&list, must_format("%sloss", prefix), 1, &one, loss);
        (f32 ? train_steps_f32 : train_steps_f64)(&c, STEPS, losses);
        add(&list, must_format("%slosses", prefix), 1, &steps, losses);
        for (int64_t i = 0; i < m->parameter_count; i++) {
            const model_parameter *p = &m->parameters[i];
            add(&list, must_format("%sgrad.%s", prefix, p->name), p->dimensions, p->shape,
                gradient + p->offset);
        }
    }
    return npz_write(folder, "network.npz", list.count, list.arrays, "{}");
}

int main(int argc, char **argv)
{
    model_shape shape;
    model m;
    if (argc != 4 || !model_defaults(argv[1], &shape) || !change_find(argv[2]) ||
        !model_change(&shape, change_find(argv[2])))
        return EXIT_USAGE;
    int code = model_create(&shape, &m);
    return code == EXIT_PASS ? write_network(&m, argv[3]) : code;
}
