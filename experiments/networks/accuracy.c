/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of the test accuracy of a trained network when its attention or its pictures are
 * changed after training, as in SOFT (IJCV) Tab. 6. Compare Tab. 10 and App. D, and SimA section
 * 4.6, in which networks are trained with the change.
 *
 * A point is a network with one change, on all pictures. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/experiment.h"
#include "common/inputs.h"
#include "common/landmarks.h"
#include "common/report.h"
#include "networks/changed.h"
#include "registry.h"
#include "train/fashion.h"
#include "train/layers.h"
#include "train/pass.h"
#include "train/seeds.h"

/* Pictures of a pass, as in training: softpp/code couples those of a batch. */
enum { SLICE = 4, QUICK_PICTURES = 64, USUAL_SAMPLES = 3 };

/* Those that are in data/trained. */
static const char *const candidates[] = {
    "soft",     "soft-code-seed2",         "soft-code-seed3",
    "softpp",   "softpp-paper-seed2",      "softpp-paper-seed3",
    "gaussian", "gaussian-exact-seed2",    "gaussian-exact-seed3",
    "softmax",  "softmax-attention-seed2", "softmax-attention-seed3",
    "sima",     "sima-paper-seed2",        "sima-paper-seed3"};
enum { CANDIDATES = sizeof candidates / sizeof *candidates };

/* ---- accuracy.csv ---- */

#define ROW(X)                                                                                     \
    X(TEXT, network, "", "the trained network, as --network names it", network_name(p->in))        \
    X(TEXT, operator, "", "see attnum list operators", shape->attention->name)                     \
    X(TEXT, variant, "", "of the operator", shape->attention->variants[shape->variant].name)       \
    X(TEXT, trained_with, "", "the change with which it was trained; none: nothing",               \
      shape->change->name)                                                                         \
    X(TEXT, change, "", "what was changed after training; none: nothing", p->change->name)         \
    X(TEXT, description, "", "of the change", p->change->description)                              \
    X(INTEGER, pictures, "", "of the test set", w->pictures)                                       \
    X(REAL, accuracy, "", "share of the pictures classified rightly", with.right / n)              \
    X(REAL, accuracy_error, "", "its binomial standard error, sqrt(a (1 - a) / pictures)",         \
      sqrt(with.right / n * (1 - with.right / n) / n))                                             \
    X(REAL, loss, "nat", "mean cross-entropy", with.loss / n)                                      \
    X(INTEGER, not_finite, "", "pictures whose loss is not finite", with.not_finite)               \
    X(INTEGER, became_right, "", "pictures right with the change and wrong without", with.gained)  \
    X(INTEGER, became_wrong, "", "pictures wrong with the change and right without", with.lost)    \
    X(REAL, difference, "", "accuracy less that of the unchanged network", difference)             \
    X(REAL, difference_error, "",                                                                  \
      "its standard error, of pairs (McNemar): sqrt(r + w - (r - w)^2 / pictures) / pictures, r "  \
      "and w the pictures that became right and wrong",                                            \
      error)                                                                                       \
    X(TEXT_IF, verdict, "",                                                                        \
      "no difference: the exact two-sided sign test of r and w has p > 0.05; else lower or "       \
      "higher; missing where nothing was changed",                                                 \
      p->change != &changes[CHANGE_NONE], sign_test(with.gained, with.lost))                       \
    X(INTEGER_IF, sample, "", "which draw of landmarks or noise, from 0; missing where none is",   \
      p->change->drawn, p->sample)                                                                 \
    X(INTEGER_IF, seed, "", "of such a draw", p->change->drawn, (int64_t)p->seed)
static const column columns[] = {ROW(LIST_COLUMN)};
static const output_spec outputs[] = {
    {"accuracy", "The test accuracy of trained networks that are changed after training.", columns,
     sizeof columns / sizeof *columns},
    {"accuracy_seeds", "The same over networks that were trained with different seeds.",
     seeds_columns, SEEDS_COLUMNS}};

#define RAW_ROW(X)                                                                                 \
    X(INTEGER, point, "", "from 0", point)                                                         \
    X(INTEGER, picture, "", "from 0", picture)                                                     \
    X(BOOLEAN, right, "", "classified rightly", right)                                             \
    X(REAL, loss, "nat", "cross-entropy", loss)
static const column raw_columns[] = {RAW_ROW(LIST_COLUMN)};

/* ---- Points ---- */

typedef struct {
    const input *in;
    const change *change;
    uint64_t seed;
    int64_t sample;
    int64_t unchanged; /* the point of the same network with no change */
} accuracy_point;

typedef struct {
    input_set networks;
    fashion_set own; /* --dataset's */
    const fashion_set *set;
    int64_t pictures; /* the first ones of the set */
    int64_t points;
    accuracy_point *all;
} accuracy_sweep;

static int open_networks(const program_options *s, input_set *networks)
{
    const char *usual[CANDIDATES + 1] = {NULL};
    for (int i = 0, found = 0; i < CANDIDATES; i++)
        if (trained_is_shipped(candidates[i]))
            usual[found++] = candidates[i];
    return input_set_open_networks(s, usual, networks);
}

/* The folder with the whole test set, if the run is to take it; null for the shipped pictures. */
static const char *dataset_of(const program_options *s)
{
    if (s->train.dataset || s->effort != EFFORT_FULL)
        return s->train.dataset;
    if (access(FASHION_FOLDER, F_OK) == 0)
        return FASHION_FOLDER;
    report_note("%s is missing: the accuracies are of the shipped pictures only", FASHION_FOLDER);
    return NULL;
}

static int open_pictures(const program_options *s, accuracy_sweep *w)
{
    const char *folder = dataset_of(s);
    int code = folder ? fashion_read(folder, "t10k", &w->own) : EXIT_PASS;
    if (code != EXIT_PASS)
        return code;
    w->set = folder ? &w->own : trained_pictures(input_network(w->networks.items[0]));
    w->pictures = w->set->count;
    if (s->effort == EFFORT_QUICK && w->pictures > QUICK_PICTURES)
        w->pictures = QUICK_PICTURES;
    if (w->pictures > 0 && w->pictures % SLICE == 0)
        return EXIT_PASS;
    report_error("a test set of %" PRId64 " pictures, expected a multiple of %d", w->pictures,
                 SLICE);
    return EXIT_USAGE;
}

static void add_point(accuracy_sweep *w, const accuracy_point *p)
{
    w->all = must_resize(w->all, (size_t)w->points + 1, sizeof *w->all);
    w->all[w->points++] = *p;
}

/* What is not drawn is one point, whatever seeds and samples there are. */
static void add_points(const program_options *s, const input *in, accuracy_sweep *w)
{
    const model_shape *shape = trained_shape(input_network(in));
    int64_t usual = s->effort == EFFORT_QUICK ? 1 : USUAL_SAMPLES;
    int64_t samples = s->samples ? s->samples : usual;
    accuracy_point p = {.in = in, .unchanged = w->points};
    for (int i = 0; i < change_count; i++) {
        p.change = &changes[i];
        for (int j = 0; j < (changes[i].drawn ? s->seeds.count : 1); j++)
            for (p.sample = 0; p.sample < (changes[i].drawn ? samples : 1); p.sample++) {
                p.seed = (uint64_t)s->seeds.items[j];
                if (change_applies(p.change, shape))
                    add_point(w, &p);
            }
    }
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    accuracy_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    int code = open_networks(s, &w->networks);
    if (code == EXIT_PASS)
        code = open_pictures(s, w);
    for (int i = 0; i < w->networks.count && code == EXIT_PASS; i++)
        add_points(s, w->networks.items[i], w);
    *points = w->points;
    return code;
}

static void release(void *state)
{
    accuracy_sweep *w = state;
    input_set_free(&w->networks);
    fashion_free(&w->own);
    free(w->all);
    free(w);
}

static bool input_at(const void *state, int index, const char **name, const char **sha256)
{
    const accuracy_sweep *w = state;
    if (index != w->networks.count || w->set != &w->own)
        return input_set_describe(&w->networks, index, name, sha256);
    *name = "t10k";
    *sha256 = w->own.sha256;
    return true;
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const accuracy_point *p = &((const accuracy_sweep *)state)->all[point];
    snprintf(buffer, size, "%s %s sample %" PRId64 " seed %" PRIu64, network_name(p->in),
             p->change->name, p->sample, p->seed);
}

/* In multiply-adds: attention of all tokens to all, and the steps of an inverse. */
static double weight(const void *state, int64_t point)
{
    const accuracy_point *p = &((const accuracy_sweep *)state)->all[point];
    const model_shape *shape = trained_shape(input_network(p->in));
    double factor = p->change->factor ? (double)p->change->factor : 1;
    double side = factor * (double)(shape->side / shape->patch);
    double m = (double)shape->landmarks * (p->change->same_m ? 1 : factor * factor);
    double steps = model_has_parameter(shape, ATN_PARAMETER_CONV) ? 20 : 0;
    return 64 * pow(side, 4) + 2 * steps * pow(m, 3);
}

/* ---- A point ---- */

/* Classifies SLICE pictures from `picture` on. */
static atn_status classify(const accuracy_sweep *w, int64_t point, const changed_network *n,
                           pass *forward, int64_t picture, float *pixels, table *to)
{
    const accuracy_point *p = &w->all[point];
    float logits[SLICE * FASHION_CLASSES];
    int64_t side = n->m.shape.side, last = picture + SLICE;
    for (int64_t i = 0; i < SLICE; i++)
        changed_picture(p->change, w->set, picture + i, side, p->seed, p->sample,
                        pixels + i * side * side);
    atn_status status = pass_forward(forward, pixels, logits);
    for (const float *of = logits; status >= 0 && picture < last;
         picture++, of += FASHION_CLASSES) {
        double loss = 0;
        int64_t right = 0;
        cross_entropy(1, FASHION_CLASSES, of, w->set->labels + picture, 0, 0, &loss, &right, NULL);
        RAW_ROW(LIST_PUT)
    }
    return status;
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const accuracy_sweep *w = state;
    const accuracy_point *p = &w->all[point];
    changed_network n;
    pass *forward = NULL;
    float *pixels = NULL;
    int code = changed_network_open(input_network(p->in), p->change, p->seed, p->sample, &n);
    if (code == EXIT_PASS)
        code = pass_create_changed(&n.m, n.data, n.descs, context, SLICE, &forward);
    if (code == EXIT_PASS) {
        size_t size = (size_t)(n.m.shape.side * n.m.shape.side);
        atn_status status = ATN_OK;
        pixels = must_allocate(SLICE * size, sizeof *pixels);
        for (int64_t i = 0; i < w->pictures && status >= 0; i += SLICE)
            status = classify(w, point, &n, forward, i, pixels, raw);
        if (status < 0) {
            report_error("%s, %s: %s", network_name(p->in), p->change->name,
                         atn_last_error(context));
            code = EXIT_ENVIRONMENT;
        }
    }
    pass_free(forward);
    changed_network_free(&n);
    free(pixels);
    return code;
}

/* ---- The table ---- */

typedef struct {
    double right, loss;
    int64_t not_finite;
    int64_t gained, lost; /* right and wrong, against the unchanged network */
} tally;

/* A point's pictures have one row each, in order. */
static tally count_pictures(const accuracy_sweep *w, const table *raw, int64_t point)
{
    int right_at = table_column(raw, "right"), loss_at = table_column(raw, "loss");
    tally sum = {0};
    for (int64_t i = 0; i < w->pictures; i++) {
        int64_t row = point * w->pictures + i;
        bool right = table_get_boolean(raw, row, right_at);
        bool before = table_get_boolean(raw, w->all[point].unchanged * w->pictures + i, right_at);
        double loss = table_get_real(raw, row, loss_at);
        sum.right += right;
        sum.loss += loss;
        sum.not_finite += !isfinite(loss);
        sum.gained += right && !before;
        sum.lost += before && !right;
    }
    return sum;
}

/* Whether two networks were trained alike, but for operator and seed. A number that the metadata
 * lack is like no other. */
static bool same_training(const trained *a, const trained *b)
{
    static const char *const names[] = {"epochs", "steps", "images",    "batch",     "rate",
                                        "decay",  "clip",  "smoothing", "side",      "patch",
                                        "width",  "heads", "depth",     "landmarks", "hidden"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (trained_number(a, names[i]) != trained_number(b, names[i]))
            return false;
    return true;
}

/* The place of a network in the list; those that are given twice have the first one's. */
static int64_t first_with_seed(const accuracy_sweep *w, const trained *network)
{
    const model_shape *shape = trained_shape(network);
    int64_t i = 0;
    for (;; i++) {
        const trained *other = input_network(w->networks.items[i]);
        const model_shape *its = trained_shape(other);
        if (its->attention == shape->attention && its->variant == shape->variant &&
            its->change == shape->change &&
            trained_number(other, "seed") == trained_number(network, "seed"))
            return i;
    }
}

/* Whether a network is one of those that differ in their seeds alone: not trained with a change,
 * because a result has one change; trained as the first network of the list was; and the first of
 * its operator, variant and seed. */
static bool counts_as_seed(const accuracy_sweep *w, const trained *network)
{
    const trained *first = input_network(w->networks.items[0]);
    return trained_shape(network)->change == &changes[CHANGE_NONE] &&
           isfinite(trained_number(network, "seed")) && same_training(first, network) &&
           input_network(w->networks.items[first_with_seed(w, network)]) == network;
}

/* Compares over the seeds of training, each with the mean over its draws. */
static void compare_seeds(const accuracy_sweep *w, const table *raw, table *to)
{
    seed_result *results = must_allocate((size_t)w->points, sizeof *results);
    int64_t count = 0;
    for (int64_t point = 0, draws; point < w->points; point += draws) {
        const accuracy_point *p = &w->all[point];
        const trained *network = input_network(p->in);
        const model_shape *shape = trained_shape(network);
        tally all = {0};
        for (draws = 0;
             point + draws < w->points && p[draws].in == p->in && p[draws].change == p->change;
             draws++) {
            tally one = count_pictures(w, raw, point + draws);
            all.right += one.right;
            all.gained += one.gained;
            all.lost += one.lost;
        }
        if (counts_as_seed(w, network))
            results[count++] =
                (seed_result){.operator_name = shape->attention->name,
                              .variant = shape->attention->variants[shape->variant].name,
                              .change = p->change->name,
                              .seed = (int64_t)trained_number(network, "seed"),
                              .finished = true,
                              .epochs = (int64_t)trained_number(network, "epochs"),
                              .steps = (int64_t)trained_number(network, "steps"),
                              .accuracy = all.right / (double)(draws * w->pictures),
                              .paired = true,
                              .became_right = (double)all.gained / (double)draws,
                              .became_wrong = (double)all.lost / (double)draws};
    }
    seeds_compare(count, results, to);
    free(results);
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    static const char *const of_seeds[] = {"operator",   "variant",  "change",
                                           "seeds",      "accuracy", "deviation",
                                           "difference", "interval", "verdict"};
    static const char *const shown[] = {"network",      "change",       "accuracy",
                                        "loss",         "difference",   "difference_error",
                                        "became_right", "became_wrong", "verdict"};
    const accuracy_sweep *w = state;
    table *to = tables[0];
    double n = (double)w->pictures;
    for (int64_t point = 0; point < w->points; point++) {
        const accuracy_point *p = &w->all[point];
        const model_shape *shape = trained_shape(input_network(p->in));
        tally with = count_pictures(w, raw, point);
        double net = (double)(with.gained - with.lost), difference = net / n;
        double error = sqrt((double)(with.gained + with.lost) - net * net / n) / n;
        ROW(LIST_PUT)
    }
    report_text("accuracy on %" PRId64 " pictures, and its difference from the unchanged "
                "network's\n",
                w->pictures);
    table_print_columns(to, shown, sizeof shown / sizeof *shown, table_rows(to), report_stream());
    compare_seeds(w, raw, tables[1]);
    bool several = false;
    for (int64_t row = 0; row < table_rows(tables[1]); row++)
        several = several || cell_integer(tables[1], row, "seeds") > 1;
    if (several) {
        report_text("\nover the seeds of training, and the differences seed by seed\n");
        table_print_columns(tables[1], of_seeds, sizeof of_seeds / sizeof *of_seeds,
                            table_rows(tables[1]), report_stream());
    }
    return EXIT_PASS;
}

const experiment networks_accuracy = {
    .name = "networks/accuracy",
    .summary = "test accuracy of trained networks that are changed after training",
    .source = "SOFT (IJCV) Tab. 6, 10, App. D; SimA section 4.6: in miniature",
    .example = "attnum run networks/accuracy --network softmax,sima --full",
    .options = OPTIONS(OPTION_NETWORK, OPTION_SAMPLES, OPTION_DATASET),
    .defaults = "soft, softpp, gaussian, softmax and sima, every seed (of 1 to 3) that is in\n"
                "data/trained, with every change, on the 256 pictures there; 3 draws of random\n"
                "landmarks and noise. quick: 64 pictures, 1 draw. full: the test set's 10000\n"
                "pictures, if Debian's package dataset-fashion-mnist is installed; --dataset\n"
                "FOLDER takes those of a folder.",
    .outputs = outputs,
    .output_count = sizeof outputs / sizeof *outputs,
    .plot = "networks/accuracy.gp",
    .raw_columns = raw_columns,
    .raw_column_count = sizeof raw_columns / sizeof *raw_columns,
    .prepare = prepare,
    .describe = describe,
    .weight = weight,
    .input = input_at,
    .run = run,
    .finish = finish,
    .release = release,
};
