/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/train.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commit.h"
#include "common/files.h"
#include "common/names.h"
#include "common/progress.h"
#include "common/report.h"
#include "common/signals.h"
#include "train/seeds.h"
#include "train/trained.h"
#include "train/trainer.h"

/* ---- Columns ---- */

typedef struct {
    const trainer *t;
    const training *plan;
    int64_t epoch;
    training_epoch e;
} row;

#define EPOCH_ROW(X)                                                                               \
    X(TEXT, operator, "", "the attention of every block", r->plan->shape.attention->name)          \
    X(TEXT, variant, "", "of the operator",                                                        \
      r->plan->shape.attention->variants[r->plan->shape.variant].name)                             \
    X(TEXT, change, "", "with which the network was trained; none: nothing",                       \
      r->plan->shape.change->name)                                                                 \
    X(INTEGER, seed, "", "of the start, the order of the images and their crops",                  \
      (int64_t)r->plan->seed)                                                                      \
    X(INTEGER, epoch, "", "passes over the images so far", r->epoch + 1)                           \
    X(INTEGER, steps, "", "steps so far", (r->epoch + 1) * trainer_epoch_steps(r->t))              \
    X(REAL, rate, "", "of the epoch's last step", r->e.rate)                                       \
    X(REAL, train_loss, "nat", "mean over the epoch's batches, cropped, with label smoothing 0.1", \
      r->e.train.loss)                                                                             \
    X(REAL, train_accuracy, "", "share of them classified rightly", r->e.train.accuracy)           \
    X(REAL, test_loss, "nat", "mean over the test set, without smoothing", r->e.test.loss)         \
    X(REAL, test_accuracy, "", "share of it classified rightly", r->e.test.accuracy)               \
    X(REAL, gradient_norm, "", "mean over the steps, before it is clipped at 1",                   \
      r->e.gradient_norm)                                                                          \
    X(REAL_IF, images_per_second, "1/s",                                                           \
      "of training; missing where the epoch was resumed in between", r->e.seconds > 0,             \
      (double)(trainer_epoch_steps(r->t) * r->plan->batch) / r->e.seconds)

static const column columns[] = {EPOCH_ROW(LIST_COLUMN)};
enum { CURVES, SEEDS, OUTPUTS };
static const output_spec outputs[OUTPUTS] = {
    [CURVES] = {"train", "Small vision transformers on Fashion-MNIST: a row per epoch", columns,
                sizeof columns / sizeof *columns},
    [SEEDS] = {"train_seeds", "Test accuracies over seeds, and their differences", seeds_columns,
               SEEDS_COLUMNS},
};

static void put_epoch(table *to, const row *r)
{
    EPOCH_ROW(LIST_PUT)
}

/* ---- Points ---- */

static const char *const first_look[] = {"softmax", "soft/code", "sima", "xnorm", NULL};

typedef struct {
    const program_options *s;
    fashion_set sets[2]; /* training, test */
    int64_t count;
    training *plans;
    trained *start; /* null: initial values are drawn */
    char start_sha256[SHA256_HEX_SIZE];
} train_state;

static const char *const set_names[2] = {"train", "t10k"};

/* Adds an operator's plans with a change, unless the change is not for that operator. */
static void add_plans(train_state *w, const char *name, const change *c)
{
    const program_options *s = w->s;
    for (int i = 0; i < s->seeds.count; i++) {
        training plan;
        training_defaults(name, &plan); /* options_parse has checked the name */
        plan.seed = (uint64_t)s->seeds.items[i];
        plan.threads = (int)s->threads;
        plan.images = s->train.images ? s->train.images : s->effort == EFFORT_QUICK ? 2560 : 0;
        plan.epochs = s->train.epochs             ? s->train.epochs
                      : s->effort == EFFORT_QUICK ? 2
                      : s->effort == EFFORT_FULL  ? 10
                                                  : plan.epochs;
        plan.shape.patch = s->train.patch ? s->train.patch : plan.shape.patch;
        if (s->train.heads) {
            plan.shape.heads = s->train.heads;
            plan.shape.width = TOKEN_DIM * s->train.heads;
            plan.shape.hidden = 2 * plan.shape.width;
        }
        if (s->train.side)
            plan.shape = model_resized(&plan.shape, s->train.side);
        if (!model_change(&plan.shape, c))
            return;
        w->plans = must_resize(w->plans, (size_t)w->count + 1, sizeof *w->plans);
        w->plans[w->count++] = plan;
    }
}

static int open_start(train_state *w)
{
    struct sha256_ctx state;
    sha256_init(&state);
    int code = w->s->train.start ? trained_open(w->s->train.start, &w->start) : EXIT_PASS;
    if (code == EXIT_PASS && w->start) {
        code = sha256_add_file(&state, trained_path(w->start));
        sha256_hex(&state, w->start_sha256);
    }
    return code;
}

/* Checks a plan's shape, and fills in the values that it starts from, if those are a file's. */
static int check_plan(train_state *w, training *plan)
{
    model m;
    double *start = NULL;
    int code = w->start ? trained_network(w->start, &plan->shape, &m, &start)
                        : model_create(&plan->shape, &m);
    if (w->start && code == EXIT_PASS && plan->seed == (uint64_t)w->s->seeds.items[0])
        trained_note_left_out(w->start, &m);
    model_free(&m);
    plan->start = start;
    plan->start_sha256 = w->start_sha256;
    return code;
}

/* Adds the plans of all operators with the change of this name. */
static int add_changed(train_state *w, const char *change_name)
{
    const program_options *s = w->s;
    const char *const *names = s->effort == EFFORT_QUICK ? first_look : model_usual;
    const change *c = change_find(change_name);
    int64_t before = w->count;
    for (int i = 0; c && (s->operators.count ? i < s->operators.count : names[i] != NULL); i++)
        add_plans(w, s->operators.count ? s->operators.items[i] : names[i], c);
    if (w->count > before)
        return EXIT_PASS;
    const char **known = must_allocate((size_t)change_count + 1, sizeof *known);
    for (int i = 0, count = 0; i < change_count; i++)
        if (changes[i].before)
            known[count++] = changes[i].name;
    char *suited = c ? change_operators(c) : NULL;
    char *expected =
        c && c->before ? must_format("only for %s", suited) : names_expected(known, change_name);
    report_error("--change %s: %s", change_name, expected);
    free(expected);
    free(suited);
    free(known);
    return EXIT_USAGE;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    train_state *w = must_allocate(1, sizeof *w);
    *state = w;
    w->s = s;
    int code = s->train.changes.count ? EXIT_PASS : add_changed(w, changes[CHANGE_NONE].name);
    for (int i = 0; i < s->train.changes.count && code == EXIT_PASS; i++)
        code = add_changed(w, s->train.changes.items[i]);
    *points = w->count;
    if (code == EXIT_PASS && s->train.side % FASHION_SIDE != 0) {
        report_error("--side %" PRId64 ": expected a multiple of %d", s->train.side, FASHION_SIDE);
        return EXIT_USAGE;
    }
    for (int i = 0; i < 2 && code == EXIT_PASS; i++)
        code = fashion_read(s->train.dataset ? s->train.dataset : FASHION_FOLDER, set_names[i],
                            &w->sets[i]);
    if (code == EXIT_PASS)
        code = open_start(w);
    for (int64_t i = 0; i < w->count && code == EXIT_PASS; i++)
        code = check_plan(w, &w->plans[i]);
    return code;
}

static void release(void *state)
{
    train_state *w = state;
    fashion_free(&w->sets[0]);
    fashion_free(&w->sets[1]);
    for (int64_t i = 0; i < w->count; i++)
        free((double *)w->plans[i].start);
    trained_free(w->start);
    free(w->plans);
    free(w);
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const training *p = &((const train_state *)state)->plans[point];
    char *name = model_name(&p->shape);
    snprintf(buffer, size, "%s seed %" PRIu64, name, p->seed);
    free(name);
}

static bool get_input(const void *state, int index, const char **name, const char **sha256)
{
    const train_state *w = state;
    if (index > (w->start ? 2 : 1))
        return false;
    *name = index < 2 ? set_names[index] : w->s->train.start;
    *sha256 = index < 2 ? w->sets[index].sha256 : w->start_sha256;
    return true;
}

/* ---- A point ---- */

/* Reports the last epoch. per_image: seconds per image, tests included. */
static void report_epoch(const char *name, const trainer *t, const training *plan, double per_image)
{
    int64_t epoch = trainer_epochs(t);
    training_epoch e = trainer_epoch(t, epoch - 1);
    double images = (double)(trainer_epoch_steps(t) * plan->batch);
    double left = (double)(plan->epochs - epoch) * images;
    report_text("%s: epoch %" PRId64 " of %" PRId64 ": loss %.4f, test %.2f %%, %.0f images/s, "
                "%.0f min left\n",
                name, epoch, plan->epochs, e.train.loss, 100 * e.test.accuracy,
                e.seconds > 0 ? images / e.seconds : 1 / per_image, left * per_image / 60);
    fflush(stdout); /* also into a log file: the next line comes minutes later */
}

/* The files that a point writes. */
typedef struct {
    char *folder, *weights, *checkpoint;
    bool keep_epochs;
    atn_dtype dtype; /* of the weights */
} place;

static place make_place(const train_state *w, const training *plan)
{
    place at = {.folder = must_format("%s/trained", w->s->out),
                .weights = model_weights_name(&plan->shape, plan->seed),
                .keep_epochs = w->s->train.keep_epochs,
                .dtype = w->s->train.f16 ? ATN_F16 : ATN_F32};
    at.checkpoint = must_format("%s.checkpoint", at.weights);
    return at;
}

static void free_place(place *at)
{
    free(at->checkpoint);
    free(at->weights);
    free(at->folder);
}

/* The file of the weights after an epoch, if epochs are kept. */
static char *epoch_file(const place *at, int64_t epoch)
{
    return must_format("%.*s-epoch%" PRId64 ".npz", (int)strlen(at->weights) - 4, at->weights,
                       epoch);
}

/* The first file that is missing of the epochs to be kept from 0 to `last`; to be freed. */
static char *missing_epoch(const place *at, int64_t last)
{
    char *path = NULL;
    for (int64_t epoch = 0; at->keep_epochs && epoch <= last && !path; epoch++) {
        char *file = epoch_file(at, epoch);
        path = must_format("%s/%s", at->folder, file);
        free(file);
        if (access(path, F_OK) == 0) {
            free(path);
            path = NULL;
        }
    }
    return path;
}

static char *missing(const void *state, int64_t point)
{
    const train_state *w = state;
    place at = make_place(w, &w->plans[point]);
    char *path = must_format("%s/%s", at.folder, at.weights);
    if (access(path, F_OK) == 0) {
        free(path);
        path = missing_epoch(&at, w->plans[point].epochs);
    }
    free_place(&at);
    return path;
}

static int write_weights(const trainer *t, const place *at, const char *file,
                         const training_score *test)
{
    char *members = trainer_plan(t);
    char *metadata = must_format("{%s, \"steps\": %" PRId64 ", \"test_accuracy\": %.17g, "
                                 "\"test_loss\": %.17g, \"version\": \"%s\", \"commit\": \"%s\"}\n",
                                 members, trainer_steps(t), test->accuracy, test->loss, ATN_VERSION,
                                 BUILD_COMMIT);
    int code = trainer_write(t, at->folder, file, at->dtype, metadata);
    free(metadata);
    free(members);
    return code;
}

/* Writes the weights after the epochs trained so far, if epochs are kept. */
static int keep_epoch(const trainer *t, const place *at, const training_score *test)
{
    if (!at->keep_epochs)
        return EXIT_PASS;
    char *file = epoch_file(at, trainer_epochs(t));
    int code = write_weights(t, at, file, test);
    free(file);
    return code;
}

/* Writes the initial weights, if epochs are kept; on --resume again, because the stopped run may
 * not have kept them. */
static int keep_start(trainer *t, const place *at)
{
    training_score score;
    int code = at->keep_epochs ? trainer_test(t, &score) : EXIT_PASS;
    return code == EXIT_PASS ? keep_epoch(t, at, &score) : code;
}

/* Goes on from a checkpoint, if the epochs before it have been kept, or need not be. */
static int resume(trainer *t, const place *at, const char *checkpoint)
{
    int code = trainer_resume(t, checkpoint);
    char *lost = code == EXIT_PASS ? missing_epoch(at, trainer_epochs(t)) : NULL;
    if (lost) {
        report_error("%s: --resume: %s is missing, and its epoch has been trained already; leave "
                     "out --keep-epochs, or --resume to start over",
                     checkpoint, lost);
        code = EXIT_USAGE;
    }
    free(lost);
    return code;
}

/* Trains to the end, or until a signal. The weights of an epoch are written before the checkpoint,
 * so that they exist whenever a run resumes after that epoch. */
static int train_all(trainer *t, const training *plan, const char *name, const place *at)
{
    int64_t all = plan->epochs * trainer_epoch_steps(t), first = trainer_steps(t);
    double start = progress_seconds();
    progress bar = progress_start(all, first, (double)(all - first));
    int code = EXIT_PASS;
    while (code == EXIT_PASS && trainer_steps(t) < all) {
        code = trainer_step(t);
        if (code != EXIT_PASS)
            break;
        progress_add(&bar, 1);
        progress_show(&bar, name);
        bool whole = trainer_steps(t) % trainer_epoch_steps(t) == 0;
        double images = (double)((trainer_steps(t) - first) * plan->batch);
        if (whole) {
            training_score test = trainer_epoch(t, trainer_epochs(t) - 1).test;
            progress_end(&bar);
            report_epoch(name, t, plan, (progress_seconds() - start) / images);
            code = keep_epoch(t, at, &test);
        }
        if ((whole || signals_stopped()) && trainer_steps(t) < all && code == EXIT_PASS)
            code = trainer_save(t, at->folder, at->checkpoint);
        if (signals_stopped() && trainer_steps(t) < all && code == EXIT_PASS) {
            report_note("%s: stopped after step %" PRId64 " of %" PRId64 ", which %s/%s keeps",
                        name, trainer_steps(t), all, at->folder, at->checkpoint);
            code = EXIT_ENVIRONMENT;
        }
    }
    progress_end(&bar);
    return code;
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const train_state *w = state;
    const training *plan = &w->plans[point];
    char name[128];
    describe(state, point, name, sizeof name);
    place at = make_place(w, plan);
    char *path = must_format("%s/%s", at.folder, at.checkpoint);
    trainer *t;
    int code = files_make_folder(at.folder);
    int made = trainer_create(plan, &w->sets[0], &w->sets[1], &t);
    code = exit_worst(code, made);
    if (code == EXIT_PASS)
        code = keep_start(t, &at);
    if (code == EXIT_PASS && w->s->resume && access(path, F_OK) == 0)
        code = resume(t, &at, path);
    if (code == EXIT_PASS)
        code = train_all(t, plan, name, &at);
    if (code == EXIT_PASS) {
        training_score test = trainer_epoch(t, plan->epochs - 1).test;
        code = write_weights(t, &at, at.weights, &test);
    }
    for (int64_t i = 0; code == EXIT_PASS && i < plan->epochs; i++)
        put_epoch(raw, &(row){t, plan, i, trainer_epoch(t, i)});
    if (code == EXIT_PASS)
        remove(path);
    trainer_free(t);
    free(path);
    free_place(&at);
    return code;
}

/* What came of a plan, by the rows of its epochs. */
static seed_result result_of(const train_state *w, const training *plan, const table *raw)
{
    int64_t images = plan->images ? plan->images : w->sets[0].count;
    seed_result r = {.operator_name = plan->shape.attention->name,
                     .variant = plan->shape.attention->variants[plan->shape.variant].name,
                     .change = plan->shape.change->name,
                     .seed = (int64_t)plan->seed,
                     .epochs = plan->epochs,
                     .steps = plan->epochs * (images / plan->batch)};
    for (int64_t i = 0; i < table_rows(raw); i++)
        if (cell_is(raw, i, "operator", r.operator_name) && cell_is(raw, i, "variant", r.variant) &&
            cell_is(raw, i, "change", r.change) && cell_integer(raw, i, "seed") == r.seed &&
            cell_integer(raw, i, "epoch") == r.epochs) {
            r.finished = true;
            r.accuracy = cell_real(raw, i, "test_accuracy");
        }
    return r;
}

/* Prints the last epoch of each training, and compares the networks' accuracies. */
static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    table *last = table_create(columns, sizeof columns / sizeof *columns);
    for (int64_t i = 0; i < table_rows(raw); i++)
        if (i + 1 == table_rows(raw) ||
            cell_integer(raw, i + 1, "epoch") <= cell_integer(raw, i, "epoch"))
            table_copy_row(last, raw, i);
    static const char *const shown[] = {"operator",  "variant",       "change",
                                        "seed",      "epoch",         "train_loss",
                                        "test_loss", "test_accuracy", "images_per_second"};
    table_print_columns(last, shown, sizeof shown / sizeof *shown, table_rows(last),
                        report_stream());
    const train_state *w = state;
    seed_result *results = must_allocate((size_t)w->count, sizeof *results);
    for (int64_t i = 0; i < w->count; i++)
        results[i] = result_of(w, &w->plans[i], raw);
    seeds_compare(w->count, results, tables[SEEDS]);
    free(results);
    report_text("\naccuracies over seeds, and their differences from those without a change\n");
    static const char *const compared[] = {"operator", "variant",  "change",    "seeds",
                                           "finished", "accuracy", "deviation", "difference",
                                           "interval", "verdict"};
    table_print_columns(tables[SEEDS], compared, sizeof compared / sizeof *compared,
                        table_rows(tables[SEEDS]), report_stream());
    table_free(last);
    return EXIT_PASS;
}

#define EPOCHS TEXT_OF(DEFAULT_EPOCHS)

const experiment train = {
    .name = "train",
    .summary = "small vision transformers with any operator, trained on Fashion-MNIST",
    .source = "SOFT IJCV Tab. 2, 6, 8, 10; SimA Tab. 1; UFO-ViT Tab. 2: in miniature",
    .example = "attnum train --operator soft/code,softmax --seed 1,2,3",
    .options = OPTIONS(TRAIN_OPTIONS),
    .alone = true,
    .defaults = EPOCHS " epochs of 60000 images, at most 15 minutes a network on two cores\n"
                       "quick: 2 epochs of 2560 images, four operators\n"
                       "full: 10 epochs, as the networks in data/trained were trained",
    .outputs = outputs,
    .output_count = OUTPUTS,
    .prepare = prepare,
    .describe = describe,
    .input = get_input,
    .run = run,
    .missing = missing,
    .finish = finish,
    .release = release,
};
