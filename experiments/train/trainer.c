/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/npz.h"
#include "common/options.h"
#include "common/progress.h"
#include "common/random.h"
#include "common/report.h"
#include "train/layers.h"
#include "train/pass.h"

/* SLICE: images of a slice, few enough for a core's cache to hold some of their activations. The
 * order of sums depends on both numbers. */
enum { SLICE = 4, CHUNK = 4096 };

typedef struct {
    atn_context *context;
    pass *pass;
    float *pixels;
} worker;

struct trainer {
    training plan;
    const fashion_set *train, *test;
    model m;
    float *parameters, *moments[2]; /* AdamW's first and second */
    float *gradients;               /* one per slice */
    float *logits, *dlogits;        /* for the larger of batch and test set */
    unsigned char *labels;          /* of the batch */
    double *losses;                 /* per slice */
    int64_t *corrects;
    atn_status *outcomes;
    double *squares; /* per chunk of the parameters */
    worker *workers;
    int64_t step, images;
    int64_t epoch;         /* the epoch of order and crops; -1: none */
    int64_t *order;        /* the images in this epoch's order */
    unsigned char *crops;  /* crop of each, see fashion_image */
    training_epoch *curve; /* per epoch; for the current one, sums over its steps, not means */
    double began;          /* when the current epoch began, in seconds; -1: not in this process */
};

bool training_defaults(const char *name, training *plan)
{
    *plan = (training){.seed = 1,
                       .epochs = DEFAULT_EPOCHS,
                       .batch = 32,
                       .rate = 2e-3,
                       .decay = 0.05,
                       .clip = 1,
                       .smoothing = 0.1,
                       .threads = 1};
    return model_defaults(name, &plan->shape);
}

/* ---- Memory ---- */

static int open_workers(trainer *t)
{
    int64_t side = t->m.shape.side;
    t->workers = must_allocate((size_t)t->plan.threads, sizeof *t->workers);
    for (int i = 0; i < t->plan.threads; i++) {
        worker *w = &t->workers[i];
        atn_context_options options = {.threads = 1};
        if (atn_context_create(&options, &w->context) != ATN_OK) {
            report_error("out of memory: a context");
            return EXIT_ENVIRONMENT;
        }
        w->pixels = must_allocate((size_t)(SLICE * side * side), sizeof *w->pixels);
        int code = pass_create(&t->m, t->parameters, w->context, SLICE, &w->pass);
        if (code != EXIT_PASS)
            return code;
    }
    return EXIT_PASS;
}

static int check_plan(const training *p, const fashion_set *train, const fashion_set *test)
{
    if (p->batch < SLICE || p->batch % SLICE != 0 || test->count % SLICE != 0) {
        report_error("batches of %" PRId64 " images and a test set of %" PRId64
                     ": expected multiples of %d",
                     p->batch, test->count, SLICE);
        return EXIT_USAGE;
    }
    if (p->images > train->count || (p->images ? p->images : train->count) < p->batch) {
        report_error("%" PRId64 " images of %" PRId64 " in batches of %" PRId64
                     ": expected a batch at least, and no more than there are",
                     p->images, train->count, p->batch);
        return EXIT_USAGE;
    }
    if (change_has_drawn_landmarks(p->shape.change) && p->seed > MODEL_SEED_MOST) {
        report_error("seed %" PRIu64 " with %s landmarks: expected at most %" PRIu64, p->seed,
                     p->shape.change->name, MODEL_SEED_MOST);
        return EXIT_USAGE;
    }
    if (p->shape.side % FASHION_SIDE != 0 || p->shape.classes != FASHION_CLASSES) {
        report_error("images of %" PRId64 " pixels and %" PRId64
                     " classes: expected a multiple of %d and %d",
                     p->shape.side, p->shape.classes, FASHION_SIDE, FASHION_CLASSES);
        return EXIT_USAGE;
    }
    return EXIT_PASS;
}

int trainer_create(const training *plan, const fashion_set *train, const fashion_set *test,
                   trainer **trainer_at)
{
    trainer *t = must_allocate(1, sizeof *t);
    *trainer_at = t;
    t->plan = *plan;
    t->train = train;
    t->test = test;
    t->epoch = -1;
    t->images = plan->images ? plan->images : train->count;
    t->plan.shape.seed = plan->seed;
    int code = model_create(&t->plan.shape, &t->m);
    if (code == EXIT_PASS)
        code = check_plan(plan, train, test);
    if (code != EXIT_PASS)
        return code;
    int64_t batch_slices = plan->batch / SLICE;
    int64_t slices = batch_slices > test->count / SLICE ? batch_slices : test->count / SLICE;
    size_t size = (size_t)t->m.size;
    t->parameters = must_allocate(size, sizeof *t->parameters);
    for (int i = 0; i < 2; i++)
        t->moments[i] = must_allocate(size, sizeof *t->moments[i]);
    t->gradients = must_allocate((size_t)batch_slices * size, sizeof *t->gradients);
    t->logits = must_allocate((size_t)(slices * SLICE * FASHION_CLASSES), sizeof *t->logits);
    t->dlogits = must_allocate((size_t)(plan->batch * FASHION_CLASSES), sizeof *t->dlogits);
    t->labels = must_allocate((size_t)plan->batch, 1);
    t->losses = must_allocate((size_t)slices, sizeof *t->losses);
    t->corrects = must_allocate((size_t)slices, sizeof *t->corrects);
    t->outcomes = must_allocate((size_t)slices, sizeof *t->outcomes);
    t->squares = must_allocate(size / CHUNK + 1, sizeof *t->squares);
    t->order = must_allocate((size_t)t->images, sizeof *t->order);
    t->crops = must_allocate((size_t)t->images, 1);
    t->curve = must_allocate((size_t)plan->epochs + 1, sizeof *t->curve);
    t->began = -1;
    double *start = must_allocate(size, sizeof *start);
    model_initialise(&t->m, plan->seed, start);
    for (size_t i = 0; i < size; i++)
        t->parameters[i] = (float)(plan->start ? plan->start : start)[i];
    free(start);
    return open_workers(t);
}

void trainer_free(trainer *t)
{
    if (!t)
        return;
    for (int i = 0; t->workers && i < t->plan.threads; i++) {
        pass_free(t->workers[i].pass);
        atn_context_free(t->workers[i].context);
        free(t->workers[i].pixels);
    }
    void *const owned[] = {t->parameters, t->moments[0], t->moments[1], t->gradients, t->logits,
                           t->dlogits,    t->labels,     t->losses,     t->corrects,  t->outcomes,
                           t->squares,    t->workers,    t->order,      t->crops,     t->curve};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    model_free(&t->m);
    free(t);
}

const model *trainer_model(const trainer *t)
{
    return &t->m;
}

const float *trainer_parameters(const trainer *t)
{
    return t->parameters;
}

int64_t trainer_steps(const trainer *t)
{
    return t->step;
}

int64_t trainer_epoch_steps(const trainer *t)
{
    return t->images / t->plan.batch; /* images beyond the last whole batch are left out */
}

/* ---- Images ---- */

/* Draws the order of an epoch's images and their crops, from the seed and the epoch alone. */
static void begin_epoch(trainer *t, int64_t epoch)
{
    if (t->epoch == epoch)
        return;
    t->epoch = epoch;
    random_stream *stream = random_create(t->plan.seed, "epoch", (uint64_t)epoch);
    for (int64_t i = 0; i < t->images; i++) { /* the inside-out shuffle of Fisher and Yates */
        int64_t j = random_below(stream, i + 1);
        t->order[i] = t->order[j];
        t->order[j] = i;
    }
    for (int64_t i = 0; i < t->images; i++)
        t->crops[i] = (unsigned char)random_below(stream, FASHION_CROPS);
    random_free(stream);
}

/* ---- A step ---- */

static double rate_of(const training *p, int64_t step, int64_t epoch_steps)
{
    static const double pi = 3.14159265358979323846, least = 0.01;
    double all = (double)(p->epochs * epoch_steps);
    double warm = p->epochs > 1 ? (double)epoch_steps : all / 10, at = (double)step + 1;
    if (at <= warm)
        return p->rate * at / warm;
    return p->rate * (least + (1 - least) * (1 + cos(pi * (at - warm) / (all - warm))) / 2);
}

/* Forward and backward of one slice of the batch. */
static void run_slice(trainer *t, worker *w, int64_t slice, int64_t first)
{
    int64_t side = t->m.shape.side, classes = FASHION_CLASSES;
    for (int64_t i = 0; i < SLICE; i++) {
        int64_t place = first + slice * SLICE + i;
        t->labels[slice * SLICE + i] = t->train->labels[t->order[place]];
        fashion_image(t->train, t->order[place], t->crops[place], side,
                      w->pixels + i * side * side);
    }
    float *logits = t->logits + slice * SLICE * classes;
    float *dlogits = t->dlogits + slice * SLICE * classes;
    t->losses[slice] = 0;
    t->corrects[slice] = 0;
    atn_status status = pass_forward(w->pass, w->pixels, logits);
    cross_entropy(SLICE, classes, logits, t->labels + slice * SLICE, t->plan.smoothing,
                  1 / (double)t->plan.batch, &t->losses[slice], &t->corrects[slice], dlogits);
    if (status >= 0 && isfinite(t->losses[slice]))
        status = pass_backward(w->pass, dlogits, t->gradients + slice * t->m.size);
    t->outcomes[slice] = status;
}

/* Adds the gradients of all slices into the first, and sums the squares of each chunk. */
static void add_gradients(trainer *t)
{
    int64_t slices = t->plan.batch / SLICE, chunks = (t->m.size + CHUNK - 1) / CHUNK;
#pragma omp parallel for num_threads(t->plan.threads) schedule(static)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        int64_t end = (chunk + 1) * CHUNK < t->m.size ? (chunk + 1) * CHUNK : t->m.size;
        double squares = 0;
        for (int64_t s = 1; s < slices; s++)
            for (int64_t i = chunk * CHUNK; i < end; i++)
                t->gradients[i] += t->gradients[s * t->m.size + i];
        for (int64_t i = chunk * CHUNK; i < end; i++)
            squares += (double)t->gradients[i] * (double)t->gradients[i];
        t->squares[chunk] = squares;
    }
}

static void move(trainer *t, double rate, double scale)
{
    for (int64_t p = 0; p < t->m.parameter_count; p++) {
        const model_parameter *of = &t->m.parameters[p];
        adamw_rule rule = {t->step + 1, rate, of->decays ? t->plan.decay : 0, scale};
        float *const moments[2] = {t->moments[0] + of->offset, t->moments[1] + of->offset};
        if (!of->fixed)
            adamw(&rule, of->count, t->gradients + of->offset, t->parameters + of->offset, moments);
    }
}

/* Where a slice's numbers stop being finite: in forward or, from the classifier backwards, in the
 * gradients; null: nowhere. */
static const char *first_not_finite(trainer *t, int64_t slice, int64_t first)
{
    run_slice(t, &t->workers[0], slice, first);
    const char *found = pass_not_finite(t->workers[0].pass);
    if (found)
        return found;
    if (t->outcomes[slice] < 0)
        return atn_status_message(t->outcomes[slice]);
    for (int64_t p = t->m.parameter_count - 1; p >= 0; p--)
        for (int64_t i = 0; i < t->m.parameters[p].count; i++)
            if (!isfinite(t->gradients[slice * t->m.size + t->m.parameters[p].offset + i]))
                return t->m.parameters[p].name;
    return NULL;
}

/* Computes the slices once more to find where it began. */
static int report_not_finite(trainer *t, int64_t first)
{
    const char *where = NULL;
    for (int64_t s = 0; s < t->plan.batch / SLICE && !where; s++)
        where = first_not_finite(t, s, first);
    char *name = model_name(&t->m.shape);
    report_error("%s, seed %" PRIu64 ": step %" PRId64 ": not finite, first in %s", name,
                 t->plan.seed, t->step + 1, where ? where : "the sum of the gradients");
    free(name);
    return EXIT_CHECK;
}

int trainer_test(trainer *t, training_score *score)
{
    int64_t slices = t->test->count / SLICE, side = t->m.shape.side;
#pragma omp parallel for num_threads(t->plan.threads) schedule(dynamic)
    for (int64_t s = 0; s < slices; s++) {
        worker *w = &t->workers[omp_get_thread_num()];
        float *logits = t->logits + s * SLICE * FASHION_CLASSES;
        for (int64_t i = 0; i < SLICE; i++)
            fashion_image(t->test, s * SLICE + i, FASHION_WHOLE, side, w->pixels + i * side * side);
        t->losses[s] = 0;
        t->corrects[s] = 0;
        t->outcomes[s] = pass_forward(w->pass, w->pixels, logits);
        cross_entropy(SLICE, FASHION_CLASSES, logits, t->test->labels + s * SLICE, 0, 0,
                      &t->losses[s], &t->corrects[s], NULL);
    }
    *score = (training_score){0};
    for (int64_t s = 0; s < slices; s++) {
        score->loss += t->losses[s] / (double)t->test->count;
        score->accuracy += (double)t->corrects[s];
        if (t->outcomes[s] < 0) {
            report_error("%s: %s", t->m.shape.attention->name, atn_status_message(t->outcomes[s]));
            return EXIT_ENVIRONMENT;
        }
    }
    score->accuracy /= (double)t->test->count;
    if (isfinite(score->loss))
        return EXIT_PASS;
    char *name = model_name(&t->m.shape);
    report_error("%s, seed %" PRIu64 ": step %" PRId64 ": the loss on the test set is not finite",
                 name, t->plan.seed, t->step);
    free(name);
    return EXIT_CHECK;
}

int trainer_step(trainer *t)
{
    int64_t slices = t->plan.batch / SLICE, steps = trainer_epoch_steps(t);
    int64_t first = t->step % steps * t->plan.batch;
    training_epoch *epoch = &t->curve[t->step / steps];
    begin_epoch(t, t->step / steps);
    if (first == 0)
        t->began = progress_seconds();
#pragma omp parallel for num_threads(t->plan.threads) schedule(dynamic)
    for (int64_t slice = 0; slice < slices; slice++)
        run_slice(t, &t->workers[omp_get_thread_num()], slice, first);
    double loss = 0, squares = 0;
    int64_t correct = 0;
    bool computed = true;
    for (int64_t s = 0; s < slices; s++) {
        loss += t->losses[s];
        correct += t->corrects[s];
        computed = computed && t->outcomes[s] >= 0;
    }
    if (computed && isfinite(loss)) {
        add_gradients(t);
        for (int64_t chunk = 0; chunk < (t->m.size + CHUNK - 1) / CHUNK; chunk++)
            squares += t->squares[chunk];
    }
    if (!computed || !isfinite(loss) || !isfinite(squares))
        return report_not_finite(t, first);
    double norm = sqrt(squares);
    epoch->rate = rate_of(&t->plan, t->step, steps);
    move(t, epoch->rate, norm > t->plan.clip ? t->plan.clip / norm : 1);
    epoch->train.loss += loss;
    epoch->train.accuracy += (double)correct;
    epoch->gradient_norm += norm;
    t->step++;
    if (t->step % steps != 0)
        return EXIT_PASS;
    epoch->seconds = t->began >= 0 ? progress_seconds() - t->began : 0;
    t->began = -1;
    return trainer_test(t, &epoch->test);
}

int64_t trainer_epochs(const trainer *t)
{
    return t->step / trainer_epoch_steps(t);
}

training_epoch trainer_epoch(const trainer *t, int64_t epoch)
{
    training_epoch e = t->curve[epoch];
    int64_t all = trainer_epoch_steps(t), into = t->step - epoch * all;
    double steps = (double)(into < all ? into : all), images = steps * (double)t->plan.batch;
    e.train.loss /= images;
    e.train.accuracy /= images;
    e.gradient_norm /= steps;
    return e;
}

/* ---- Files ---- */

int trainer_write(const trainer *t, const char *folder, const char *name, atn_dtype dtype,
                  const char *metadata)
{
    const model *m = &t->m;
    size_t size = atn_dtype_size(dtype);
    npz_array *arrays = must_allocate((size_t)m->parameter_count, sizeof *arrays);
    char *values = must_allocate((size_t)m->size, size);
    atn_convert(dtype, values, ATN_F32, t->parameters, m->size);
    for (int64_t i = 0; dtype == ATN_F16 && i < m->size; i++)
        if (fabsf(t->parameters[i]) >= 65520) { /* rounds to infinity */
            report_error("%s/%s: a weight of %g is beyond f16", folder, name,
                         (double)t->parameters[i]);
            free(values);
            free(arrays);
            return EXIT_ENVIRONMENT;
        }
    for (int64_t i = 0; i < m->parameter_count; i++) {
        const model_parameter *p = &m->parameters[i];
        arrays[i] =
            (npz_array){p->name, dtype, p->dimensions, p->shape, values + (size_t)p->offset * size};
    }
    int code = npz_write(folder, name, m->parameter_count, arrays, metadata);
    free(values);
    free(arrays);
    return code;
}

char *trainer_plan(const trainer *t)
{
    const training *p = &t->plan;
    const model_shape *s = &t->m.shape;
    char *start = p->start ? must_format(", \"start_sha256\": \"%s\"", p->start_sha256)
                           : must_format("%s", "");
    char *changed = s->change != &changes[CHANGE_NONE]
                        ? must_format("\"change\": \"%s\", ", s->change->name)
                        : must_format("%s", "");
    char *text = must_format(
        "\"operator\": \"%s\", \"variant\": \"%s\", %s\"seed\": %" PRIu64 ", \"side\": %" PRId64
        ", \"patch\": %" PRId64 ", \"width\": %" PRId64 ", \"heads\": %" PRId64
        ", \"depth\": %" PRId64 ", \"hidden\": %" PRId64 ", \"landmarks\": %" PRId64
        ", \"residual\": %" PRId64 ", \"epochs\": %" PRId64 ", \"batch\": %" PRId64
        ", \"images\": %" PRId64 ", \"rate\": %.17g, \"decay\": %.17g, \"clip\": %.17g"
        ", \"smoothing\": %.17g, \"train_sha256\": \"%s\", \"test_sha256\": \"%s\"%s",
        s->attention->name, s->attention->variants[s->variant].name, changed, p->seed, s->side,
        s->patch, s->width, s->heads, s->depth, s->hidden, s->landmarks, s->residual, p->epochs,
        p->batch, t->images, p->rate, p->decay, p->clip, p->smoothing, t->train->sha256,
        t->test->sha256, start);
    free(changed);
    free(start);
    return text;
}

/* The metadata of a checkpoint: the plan and the step. To be freed. */
static char *resume_metadata(const trainer *t, int64_t step)
{
    char *plan = trainer_plan(t);
    char *text = must_format("{%s, \"step\": %" PRId64 "}\n", plan, step);
    free(plan);
    return text;
}

enum { KEPT = 3, EPOCH_NUMBERS = sizeof(training_epoch) / sizeof(double) };
static const char *const kept_names[KEPT] = {"parameters", "first_moments", "second_moments"};

int trainer_save(const trainer *t, const char *folder, const char *name)
{
    const float *const values[KEPT] = {t->parameters, t->moments[0], t->moments[1]};
    const int64_t curve_shape[2] = {t->plan.epochs + 1, EPOCH_NUMBERS};
    npz_array arrays[KEPT + 1] = {[KEPT] = {"curve", ATN_F64, 2, curve_shape, t->curve}};
    for (int i = 0; i < KEPT; i++)
        arrays[i] = (npz_array){kept_names[i], ATN_F32, 1, &t->m.size, values[i]};
    char *metadata = resume_metadata(t, t->step);
    int code = npz_write(folder, name, KEPT + 1, arrays, metadata);
    free(metadata);
    return code;
}

/* The step in a checkpoint's metadata; -1 if it has another plan or is not such metadata. */
static int64_t step_of(const trainer *t, const char *text)
{
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, "step");
    double most = (double)(t->plan.epochs * trainer_epoch_steps(t));
    double at = cJSON_IsNumber(item) ? item->valuedouble : -1;
    int64_t step = at >= 0 && at <= most ? (int64_t)at : -1;
    char *want = resume_metadata(t, step);
    if (!text || strcmp(text, want) != 0)
        step = -1;
    free(want);
    cJSON_Delete(json);
    return step;
}

/* An array of the file, if it has this dtype and this many rows and columns. */
static const npy_array *find_array(const npz_file *file, const char *path, const char *name,
                                   int64_t rows, int64_t cols, const char *dtype)
{
    const npy_array *array = npz_find(file, name);
    if (array && array->batch * array->heads == 1 && array->rows == rows && array->cols == cols &&
        strcmp(array->dtype, dtype) == 0)
        return array;
    report_error("%s: %s: expected %" PRId64 " x %" PRId64 " numbers, %s", path, name, rows, cols,
                 dtype);
    return NULL;
}

int trainer_resume(trainer *t, const char *path)
{
    npz_file file;
    const npy_array *kept[KEPT + 1] = {0};
    float *const values[KEPT] = {t->parameters, t->moments[0], t->moments[1]};
    int code = npz_read(path, &file);
    int64_t step = code == EXIT_PASS ? step_of(t, file.metadata) : 0;
    if (step < 0) {
        report_error("%s: of another training; remove it, or repeat the command that made it",
                     path);
        code = EXIT_USAGE;
    }
    for (int i = 0; i <= KEPT && code == EXIT_PASS; i++) {
        kept[i] = i < KEPT
                      ? find_array(&file, path, kept_names[i], 1, t->m.size, "<f4")
                      : find_array(&file, path, "curve", t->plan.epochs + 1, EPOCH_NUMBERS, "<f8");
        code = kept[i] ? EXIT_PASS : EXIT_ENVIRONMENT;
    }
    if (code == EXIT_PASS) {
        for (int i = 0; i < KEPT; i++)
            for (int64_t k = 0; k < t->m.size; k++)
                values[i][k] = (float)kept[i]->data[k];
        memcpy(t->curve, kept[KEPT]->data, ((size_t)t->plan.epochs + 1) * sizeof *t->curve);
        t->step = step;
    }
    npz_free(&file);
    return code;
}
