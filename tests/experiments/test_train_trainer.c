/* SPDX-License-Identifier: BSD-3-Clause */
/* Training on a small set: the same bits from any number of threads and across a stop, and a loss
 * that falls for every operator. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "common/random.h"
#include "common/report.h"
#include "scratch.h"
#include "train/trainer.h"
#include "train_run.h"

enum { PIXELS = FASHION_SIDE * FASHION_SIDE, IMAGES = 64, BATCH = 16 };

/* Noise, the brighter the higher the label. */
static fashion_set make_set(const char *name)
{
    fashion_set set = {.count = IMAGES,
                       .pixels = must_allocate(IMAGES, PIXELS),
                       .labels = must_allocate(IMAGES, 1)};
    random_stream *stream = random_create(1, name, 0);
    for (int i = 0; i < IMAGES; i++) {
        set.labels[i] = (unsigned char)random_below(stream, FASHION_CLASSES);
        for (int p = 0; p < PIXELS; p++)
            set.pixels[i * PIXELS + p] =
                (unsigned char)(random_below(stream, 50) + 22 * set.labels[i]);
    }
    random_free(stream);
    snprintf(set.sha256, sizeof set.sha256, "%s", name);
    return set;
}

/* 4 steps an epoch. */
static training small_plan(const char *name)
{
    training plan;
    cr_assert(training_defaults(name, &plan), "%s", name);
    plan.shape.patch = 4;
    plan.shape.width = 8;
    plan.shape.depth = 2;
    plan.shape.hidden = 12;
    plan.batch = BATCH;
    plan.epochs = 3;
    return plan;
}

static fashion_set sets[2];

static void set_up(void)
{
    scratch_begin();
    sets[0] = make_set("train");
    sets[1] = make_set("test");
}

static void tear_down(void)
{
    fashion_free(&sets[0]);
    fashion_free(&sets[1]);
    scratch_end();
}

TestSuite(train_trainer, .init = set_up, .fini = tear_down);

static trainer *begin(const training *plan)
{
    trainer *t;
    cr_assert_eq(trainer_create(plan, &sets[0], &sets[1], &t), EXIT_PASS);
    return t;
}

static void take_steps(trainer *t, int steps)
{
    for (int i = 0; i < steps; i++)
        cr_assert_eq(trainer_step(t), EXIT_PASS);
}

/* The parameters after some steps, to be freed; *size: how many there are. */
static float *train_for(const training *plan, int steps, int64_t *size)
{
    trainer *t = begin(plan);
    take_steps(t, steps);
    *size = trainer_model(t)->size;
    float *copy = must_allocate((size_t)*size, sizeof *copy);
    memcpy(copy, trainer_parameters(t), (size_t)*size * sizeof *copy);
    trainer_free(t);
    return copy;
}

static bool same(int64_t size, const float *a, const float *b)
{
    return memcmp(a, b, (size_t)size * sizeof *a) == 0;
}

/* Every number of a plan is another. */
Test(train_trainer, a_plan_names_all_that_the_weights_depend_on)
{
    training plan = small_plan("linformer");
    plan.seed = 6;
    plan.shape.width = 18, plan.shape.heads = 9, plan.shape.landmarks = 49;
    plan.batch = 16, plan.images = 48, plan.epochs = 5;
    plan.rate = 0.25, plan.decay = 0.5, plan.clip = 0.75, plan.smoothing = 0.125;
    trainer *t = begin(&plan);
    char *got = trainer_plan(t);
    cr_expect_str_eq(
        got, "\"operator\": \"linformer\", \"variant\": \"projected\", \"seed\": 6, "
             "\"side\": 28, \"patch\": 4, \"width\": 18, \"heads\": 9, \"depth\": 2, "
             "\"hidden\": 12, \"landmarks\": 49, \"residual\": 3, \"epochs\": 5, \"batch\": 16, "
             "\"images\": 48, \"rate\": 0.25, \"decay\": 0.5, \"clip\": 0.75, "
             "\"smoothing\": 0.125, \"train_sha256\": \"train\", "
             "\"test_sha256\": \"test\"");
    free(got);
    trainer_free(t);
}

/* The file of weights names the seed, and no landmarks. */
Test(train_trainer, random_landmarks_are_those_of_the_seed)
{
    training plan = small_plan("soft/code");
    plan.shape.patch = DEFAULT_PATCH;
    cr_assert(model_change(&plan.shape, change_find("random")));
    plan.seed = 6;
    trainer *t = begin(&plan);
    const model *m = trainer_model(t);
    int64_t count = m->shape.depth * m->shape.landmarks;
    int64_t *want = change_draw_landmarks(6, 0, m->shape.depth, m->tokens, m->shape.landmarks);
    cr_expect_arr_eq(m->landmarks, want, (size_t)count * sizeof *want);
    free(want);
    trainer_free(t);
}

/* The seed then draws the order and the crops alone, and a checkpoint of another start is refused.
 */
Test(train_trainer, starts_from_given_values)
{
    training plan = small_plan("soft");
    trainer *t = begin(&plan);
    int64_t size = trainer_model(t)->size;
    double *start = must_allocate((size_t)size, sizeof *start);
    for (int64_t i = 0; i < size; i++)
        start[i] = (double)trainer_parameters(t)[i] + 0.01;
    trainer_free(t);
    plan.start = start;
    plan.start_sha256 = "one";
    t = begin(&plan);
    for (int64_t i = 0; i < size; i++)
        cr_assert_eq(trainer_parameters(t)[i], (float)start[i]);
    char *got = trainer_plan(t);
    cr_expect(strstr(got, ", \"test_sha256\": \"test\", \"start_sha256\": \"one\""), "%s", got);
    free(got);
    take_steps(t, 2);
    cr_assert_eq(trainer_save(t, ".", "kept"), EXIT_PASS);
    trainer *other = begin(&plan);
    cr_expect_eq(trainer_resume(other, "kept"), EXIT_PASS);
    cr_expect(same(size, trainer_parameters(other), trainer_parameters(t)));
    trainer_free(other);
    plan.start_sha256 = "two";
    other = begin(&plan);
    capture();
    cr_expect_eq(trainer_resume(other, "kept"), EXIT_USAGE);
    cr_expect(is_one_line_with(captured(), "kept: of another training"));
    trainer_free(other);
    trainer_free(t);
    free(start);
}

Test(train_trainer, threads_change_no_bit)
{
    static const char *const names[] = {"softmax", "soft", "linformer"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        training plan = small_plan(names[i]);
        int64_t size;
        float *one = train_for(&plan, 6, &size);
        for (plan.threads = 2; plan.threads <= 5; plan.threads += 3) {
            float *more = train_for(&plan, 6, &size);
            cr_expect(same(size, one, more), "%s, %d threads", names[i], plan.threads);
            free(more);
        }
        free(one);
    }
}

Test(train_trainer, every_image_of_a_batch_counts)
{
    training plan = small_plan("softmax");
    int64_t size;
    plan.images = BATCH;
    float *first = train_for(&plan, 1, &size);
    for (int i = 0; i < BATCH; i++) {
        sets[0].labels[i] = (unsigned char)(9 - sets[0].labels[i]);
        float *other = train_for(&plan, 1, &size);
        cr_expect(!same(size, first, other), "image %d", i);
        sets[0].labels[i] = (unsigned char)(9 - sets[0].labels[i]);
        free(other);
    }
    free(first);
}

Test(train_trainer, seeds_and_options_change_the_numbers)
{
    training plan = small_plan("sima"), other = plan;
    int64_t size;
    float *first = train_for(&plan, 5, &size);
#define EXPECT_OTHER(field, value)                                                                 \
    do {                                                                                           \
        other = plan;                                                                              \
        other.field = (value);                                                                     \
        float *changed = train_for(&other, 5, &size);                                              \
        cr_expect(!same(size, first, changed), #field);                                            \
        free(changed);                                                                             \
    } while (0)
    EXPECT_OTHER(seed, 2);
    EXPECT_OTHER(epochs, 5);
    EXPECT_OTHER(batch, 32);
    EXPECT_OTHER(images, 48);
    EXPECT_OTHER(rate, 1e-3);
    EXPECT_OTHER(decay, 0);
    EXPECT_OTHER(clip, 0.1);
    EXPECT_OTHER(smoothing, 0);
    free(first);
}

/* Whether the gradient is scaled, on both sides of its norm, which is a column of train.csv. */
Test(train_trainer, clips_what_is_longer)
{
    training plan = small_plan("softmax");
    int64_t size;
    plan.images = BATCH;
    plan.clip = 1e30;
    trainer *t = begin(&plan);
    take_steps(t, 1);
    training_epoch epoch = trainer_epoch(t, 0);
    /* a network at its start guesses */
    cr_expect(fabs(epoch.train.loss - log(FASHION_CLASSES)) < 0.1, "%g", epoch.train.loss);
    cr_expect(epoch.train.accuracy >= 0 && epoch.train.accuracy <= 1);
    float *whole = train_for(&plan, 1, &size);
    plan.clip = epoch.gradient_norm * (1 + 1e-12);
    float *inside = train_for(&plan, 1, &size);
    plan.clip = epoch.gradient_norm * (1 - 1e-3);
    float *outside = train_for(&plan, 1, &size);
    cr_expect(same(size, whole, inside));
    cr_expect(!same(size, whole, outside));
    free(outside);
    free(inside);
    free(whole);
    trainer_free(t);
}

/* Weights that stay (the rate is 0) see other crops in every epoch, in batches put together anew.
 * Images beyond plan.images are never seen. */
Test(train_trainer, epochs_differ_and_the_first_images_are_taken)
{
    training plan = small_plan("softmax");
    plan.rate = 0;
    plan.images = 3 * BATCH;
    trainer *t = begin(&plan);
    take_steps(t, 9);
    training_epoch e[3];
    for (int i = 0; i < 3; i++)
        e[i] = trainer_epoch(t, i);
    for (int i = 0; i < 3; i++) {
        const training_epoch *a = &e[i], *b = &e[(i + 1) % 3];
        cr_expect(fabs(a->train.loss - b->train.loss) > 1e-9, "epoch %d", i);
        cr_expect(fabs(a->gradient_norm - b->gradient_norm) > 1e-9, "epoch %d", i);
        cr_expect(a->test.loss == b->test.loss, "epoch %d", i);
    }
    trainer_free(t);
    plan.rate = 2e-3;
    int64_t size;
    float *first = train_for(&plan, 3, &size);
    memset(sets[0].pixels + plan.images * PIXELS, 0, (size_t)(IMAGES - plan.images) * PIXELS);
    float *beyond = train_for(&plan, 3, &size);
    cr_expect(same(size, first, beyond));
    memset(sets[0].pixels + (plan.images - 1) * PIXELS, 0, PIXELS);
    float *last = train_for(&plan, 3, &size);
    cr_expect(!same(size, first, last));
    free(last);
    free(beyond);
    free(first);
}

/* One epoch alone warms up in its first tenth: 1.6 of 16 steps. */
Test(train_trainer, rates_of_one_epoch)
{
    training plan = small_plan("xnorm");
    plan.epochs = 1;
    plan.batch = 4;
    trainer *t = begin(&plan);
    for (int step = 1; step <= 16; step++) {
        take_steps(t, 1);
        double want =
            step < 2 ? plan.rate * step / 1.6
                     : plan.rate * (0.01 + 0.99 * (1 + cos(acos(-1) * (step - 1.6) / 14.4)) / 2);
        cr_expect_float_eq(trainer_epoch(t, 0).rate, want, 1e-12, "step %d", step);
    }
    trainer_free(t);
}

/* Just inside and just outside of what a training may be. */
Test(train_trainer, sizes_at_their_ends)
{
    static const struct {
        int64_t batch, images, tested, side;
        int classes;
        const char *expected; /* null: it is made */
    } rows[] = {
        {4, 4, 4, 28, 10, NULL},
        {64, 0, 64, 28, 10, NULL},
        {64, 64, 64, 56, 10, NULL},
        {0, 64, 64, 28, 10, "expected multiples of 4"},
        {2, 64, 64, 28, 10, "expected multiples of 4"},
        {6, 64, 64, 28, 10, "expected multiples of 4"},
        {8, 64, 62, 28, 10, "a test set of 62: expected multiples of 4"},
        {8, 8, 64, 28, 10, NULL},
        {8, 7, 64, 28, 10, "7 images of 64 in batches of 8"},
        {8, 65, 64, 28, 10, "65 images of 64 in batches of 8"},
        {68, 0, 64, 28, 10, "0 images of 64 in batches of 68"},
        {8, 64, 64, 29, 10, "whole numbers of patches"},
        {8, 64, 64, 24, 10, "images of 24 pixels and 10 classes"},
        {8, 64, 64, 28, 9, "images of 28 pixels and 9 classes"},
        {8, 64, 64, 28, 11, "images of 28 pixels and 11 classes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        training plan = small_plan("softmax");
        plan.batch = rows[i].batch;
        plan.images = rows[i].images;
        plan.shape.side = rows[i].side;
        plan.shape.classes = rows[i].classes;
        plan.shape.landmarks = 1;
        fashion_set tested = sets[1];
        tested.count = rows[i].tested;
        trainer *t;
        capture();
        int code = trainer_create(&plan, &sets[0], &tested, &t);
        const char *text = captured();
        cr_expect(rows[i].expected ? code == EXIT_USAGE && is_one_line_with(text, rows[i].expected)
                                   : code == EXIT_PASS && !*text,
                  "%zu: %d %s", i, code, text);
        trainer_free(t);
    }
}

/* AdamW's first step is the rate, with the sign of the gradient, wherever there is one; the rate
 * then rises for an epoch and falls to a hundredth. */
Test(train_trainer, first_steps_and_rates)
{
    training plan = small_plan("sima");
    trainer *t = begin(&plan);
    const model *m = trainer_model(t);
    float *start = must_allocate((size_t)m->size, sizeof *start);
    memcpy(start, trainer_parameters(t), (size_t)m->size * sizeof *start);
    take_steps(t, 1);
    double rate = plan.rate / 4;
    for (int64_t p = 0; p < m->parameter_count; p++) {
        const model_parameter *of = &m->parameters[p];
        int64_t moved = 0;
        for (int64_t i = of->offset; i < of->offset + of->count; i++) {
            double from = (double)start[i] * (of->decays ? 1 - rate * plan.decay : 1);
            double by = fabs((double)trainer_parameters(t)[i] - from);
            cr_assert(by <= rate + 2e-7, "%s: moved by %g", of->name, by);
            moved += by >= 0.99 * rate - 2e-7;
        }
        cr_expect(moved >= of->count / 4, "%s: %d of %d moved", of->name, (int)moved,
                  (int)of->count);
    }
    for (int step = 1; step <= 12; step++) {
        double want = step <= 4
                          ? plan.rate * step / 4
                          : plan.rate * (0.01 + 0.99 * (1 + cos(acos(-1) * (step - 4) / 8)) / 2);
        cr_expect_float_eq(trainer_epoch(t, (step - 1) / 4).rate, want, 1e-12, "step %d", step);
        if (step < 12)
            take_steps(t, 1);
    }
    cr_expect_float_eq(trainer_epoch(t, 2).rate, plan.rate / 100, 1e-12);
    free(start);
    trainer_free(t);
}

/* At the end of an epoch the test set is as it is, and its loss is without smoothing. */
Test(train_trainer, the_test_set_is_taken_whole)
{
    training plan = small_plan("softmax");
    trainer *t = begin(&plan);
    take_steps(t, 4);
    const model *m = trainer_model(t);
    double *parameters = must_allocate((size_t)m->size, sizeof *parameters);
    double *pixels = must_allocate(IMAGES, PIXELS * sizeof *pixels);
    double *logits = must_allocate(IMAGES, FASHION_CLASSES * sizeof *logits), loss = 0;
    static float image[PIXELS];
    int right = 0;
    for (int64_t i = 0; i < m->size; i++)
        parameters[i] = (double)trainer_parameters(t)[i];
    for (int i = 0; i < IMAGES; i++) {
        fashion_image(&sets[1], i, FASHION_WHOLE, FASHION_SIDE, image);
        for (int p = 0; p < PIXELS; p++)
            pixels[i * PIXELS + p] = (double)image[p];
    }
    train_run_f64(&(train_case){m, IMAGES, parameters, pixels, sets[1].labels}, logits, NULL);
    for (int i = 0; i < IMAGES; i++) {
        double sum = 0;
        int best = 0;
        for (int c = 0; c < FASHION_CLASSES; c++) {
            sum += exp(logits[i * FASHION_CLASSES + c]);
            best = logits[i * FASHION_CLASSES + c] > logits[i * FASHION_CLASSES + best] ? c : best;
        }
        loss += (log(sum) - logits[i * FASHION_CLASSES + sets[1].labels[i]]) / IMAGES;
        right += best == sets[1].labels[i];
    }
    training_epoch epoch = trainer_epoch(t, 0);
    cr_expect_float_eq(epoch.test.loss, loss, 1e-5);
    cr_expect(fabs(epoch.test.accuracy * IMAGES - right) <=
              1); /* two logits may agree to rounding */
    free(logits);
    free(pixels);
    free(parameters);
    trainer_free(t);
}

Test(train_trainer, a_stop_changes_nothing)
{
    static const int stops[] = {3, 4, 6, 11};
    training plan = small_plan("soft");
    trainer *whole = begin(&plan);
    take_steps(whole, 12);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        trainer *first = begin(&plan), *second = begin(&plan);
        take_steps(first, stops[i]);
        cr_assert_eq(trainer_save(first, ".", "kept"), EXIT_PASS);
        trainer_free(first);
        cr_assert_eq(trainer_resume(second, "kept"), EXIT_PASS);
        cr_expect_eq(trainer_steps(second), stops[i]);
        take_steps(second, 12 - stops[i]);
        cr_expect(
            same(trainer_model(whole)->size, trainer_parameters(whole), trainer_parameters(second)),
            "stopped after %d", stops[i]);
        for (int64_t e = 0; e < 3; e++) {
            training_epoch a = trainer_epoch(whole, e), b = trainer_epoch(second, e);
            cr_expect((b.seconds > 0) == (stops[i] % 4 == 0 || e != stops[i] / 4),
                      "epoch %d took %g s, stopped after %d", (int)e, b.seconds, stops[i]);
            a.seconds = b.seconds = 0;
            cr_expect(memcmp(&a, &b, sizeof a) == 0, "epoch %d, stopped after %d", (int)e,
                      stops[i]);
        }
        trainer_free(second);
    }
    trainer_free(whole);
}

Test(train_trainer, only_its_own_file_is_resumed)
{
    training plan = small_plan("sima");
    trainer *t = begin(&plan);
    take_steps(t, 2);
    cr_assert_eq(trainer_save(t, ".", "kept"), EXIT_PASS);
    trainer_free(t);
    plan.decay = 0.06;
    t = begin(&plan);
    capture();
    cr_expect_eq(trainer_resume(t, "kept"), EXIT_USAGE);
    cr_expect(is_one_line_with(captured(), "kept: of another training"));
    trainer_free(t);
    plan.decay = 0.05;
    size_t size;
    unsigned char *bytes = scratch_read("kept", &size);
    for (size_t cut = 0; cut < size; cut += size / 97) { /* and a byte changed there */
        int64_t steps = -1;
        for (int k = 0; k < 2; k++) {
            unsigned char was = bytes[cut];
            bytes[cut] ^= (unsigned char)(k << 3);
            scratch_write("damaged", bytes, k ? size : cut);
            bytes[cut] = was;
            t = begin(&plan);
            capture();
            int code = trainer_resume(t, "damaged");
            steps = trainer_steps(t);
            const char *text = captured();
            /* a zip archive's time stamps and attributes are nobody's */
            cr_expect(k && code == EXIT_PASS ? steps == 2
                                             : steps == 0 && is_one_line_with(text, "damaged"),
                      "%zu of %zu, %d: %d %s", cut, size, k, code, text);
            trainer_free(t);
        }
    }
    free(bytes);
}

Test(train_trainer, what_is_not_finite_is_reported_and_not_kept)
{
    training plan = small_plan("softmax");
    plan.rate = 1e30;
    plan.clip = 1e30;
    trainer *t = begin(&plan);
    int code = EXIT_PASS, steps = 0;
    capture();
    while (code == EXIT_PASS && steps < 12) {
        code = trainer_step(t);
        steps++;
    }
    const char *text = captured();
    char *where = must_format("softmax/attention, seed 1: step %d: not finite, first in", steps);
    cr_expect_eq(code, EXIT_CHECK);
    cr_expect(is_one_line_with(text, where) && strstr(text, "block"), "%s", text);
    for (int64_t i = 0; i < trainer_model(t)->size; i++)
        cr_assert(!isnan(trainer_parameters(t)[i]));
    free(where);
    trainer_free(t);
}

/* There is no later step that would see what the last one makes of the weights. */
Test(train_trainer, a_last_step_that_overflows_is_reported)
{
    training plan = small_plan("softmax");
    plan.images = BATCH;
    plan.epochs = 1;
    plan.rate = 1e39;
    trainer *t = begin(&plan);
    capture();
    cr_expect_eq(trainer_step(t), EXIT_CHECK);
    const char *text = captured();
    cr_expect(is_one_line_with(text, "step 1: the loss on the test set is not finite"), "%s", text);
    trainer_free(t);
}

/* Every operator learns the brightness; a network that guesses has a loss of log 10. */
Test(train_trainer, every_operator_learns)
{
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        training plan = small_plan(info->name);
        plan.epochs = 10;
        plan.rate = 2e-2;
        plan.smoothing = 0;
        trainer *t = begin(&plan);
        take_steps(t, 40);
        training_epoch last = trainer_epoch(t, 9);
        cr_expect(last.train.loss < 0.8 * log(FASHION_CLASSES), "%s: %g", info->name,
                  last.train.loss);
        cr_expect(last.test.loss < 0.8 * log(FASHION_CLASSES), "%s: %g", info->name,
                  last.test.loss);
        trainer_free(t);
    }
}
