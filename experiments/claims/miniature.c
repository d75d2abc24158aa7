/* SPDX-License-Identifier: BSD-3-Clause */
#include "claims/miniature.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims/direct.h"
#include "common/report.h"
#include "common/resources.h"
#include "train/seeds.h"

/* Percentage points, with a minus sign. */
static void put_points(double difference, double interval, int digits, FILE *to)
{
    fprintf(to, "%s%.*f ± %.*f", difference < 0 ? "−" : "+", digits, fabs(100 * difference), digits,
            100 * interval);
}

/* Whether a row is of an operator's networks with a change; of what is drawn the first draw. */
static bool is_row(const table *t, int64_t row, const char *operator_name, const char *change)
{
    return cell_is(t, row, "operator", operator_name) && cell_is(t, row, "change", change) &&
           (cell_missing(t, row, "sample") || cell_integer(t, row, "sample") == 0);
}

/* What networks/accuracy found of an operator's networks with a change. */
typedef struct {
    int64_t first;      /* the row of the first network; -1: there is none */
    int64_t over_seeds; /* the row of the second table, if there are several seeds; else -1 */
    int64_t seeds, not_finite;
} networks;

static networks find_networks(const claim_run *run, const char *operator_name, const char *change)
{
    const table *each = evidence_table(run, MINIATURE, 0), *all = evidence_table(run, MINIATURE, 1);
    networks found = {-1, -1, 1, 0};
    for (int64_t row = table_rows(each) - 1; row >= 0; row--)
        if (is_row(each, row, operator_name, change)) {
            found.first = row;
            found.not_finite += cell_integer(each, row, "not_finite");
        }
    for (int64_t row = 0; row < table_rows(all); row++)
        if (cell_is(all, row, "operator", operator_name) && cell_is(all, row, "change", change) &&
            cell_integer(all, row, "seeds") > 1) {
            found.over_seeds = row;
            found.seeds = cell_integer(all, row, "seeds");
        }
    return found;
}

/* Adds an accuracy to the sentence, and its line to the table: of several networks the mean and the
 * standard deviation, of one the standard error over the pictures. */
static void add_accuracy(const claim_run *run, const networks *of, const char *said, FILE *sentence,
                         FILE *lines)
{
    bool several = of->over_seeds >= 0;
    const table *t = evidence_table(run, MINIATURE, several ? 1 : 0);
    int64_t row = several ? of->over_seeds : of->first;
    double accuracy = 100 * cell_real(t, row, "accuracy");
    double spread = 100 * cell_real(t, row, several ? "deviation" : "accuracy_error");
    fprintf(sentence, "%s%s %.0f ± %.0f %%", ftell(sentence) > 0 ? ", " : "", said, accuracy,
            spread);
    fprintf(lines, "| %s | %" PRId64 " | %.1f ± %.1f | ", said, of->seeds, accuracy, spread);
    if (!cell_missing(t, row, "verdict"))
        put_points(cell_real(t, row, "difference"),
                   cell_real(t, row, several ? "interval" : "difference_error"), 1, lines);
    fprintf(lines, " | %" PRId64 " |\n", of->not_finite);
}

char *miniature_accuracies(const claim_run *run, verdict *v, const char *operator_name,
                           const miniature_change *changes)
{
    const table *t = evidence_table(run, MINIATURE, 0);
    char *said, *rows;
    size_t said_size, rows_size;
    FILE *sentence = must_open_text(&said, &said_size);
    FILE *lines = must_open_text(&rows, &rows_size);
    int64_t pictures = 0, seeds = 0;
    for (int i = 0; changes[i].change; i++) {
        networks of = find_networks(run, operator_name, changes[i].change);
        if (of.first < 0)
            continue;
        add_accuracy(run, &of, changes[i].said, sentence, lines);
        pictures = cell_integer(t, of.first, "pictures");
        seeds = of.seeds;
    }
    must_close_text(sentence, &said, &said_size);
    must_close_text(lines, &rows, &rows_size);
    char *text = must_format("data/trained has no network of %s", operator_name);
    if (*said) {
        fprintf(
            v->notes,
            "\n| %s in miniature | seeds | accuracy, %% | difference, points | losses not finite "
            "|\n|---|---|---|---|---|\n%s\nNetworks of `attnum train` on %" PRId64
            " pictures of Fashion-MNIST's test set; changes are made after training "
            "(networks/accuracy). %s They show how much these weights depend on what is "
            "changed, and judge no network of the paper's.\n",
            operator_name, rows, pictures,
            seeds > 1 ? "Over the seeds of training: means and standard deviations; mean "
                        "differences, seed by seed, and half the width of their 95 % interval."
                      : "One seed: standard errors over the pictures.");
        free(text);
        char *networks_of =
            seeds > 1 ? must_format("%" PRId64 " networks of %s, one for each seed (mean and "
                                    "standard deviation)",
                                    seeds, operator_name)
                      : must_format("one network of %s, one seed", operator_name);
        text = must_format("In miniature, no number of the paper's, %s, %" PRId64 " pictures: %s",
                           networks_of, pictures, said);
        free(networks_of);
    }
    free(rows);
    free(said);
    return text;
}

/* Of networks with the first change the accuracy, of others what they differ from it by. */
static void add_trained(const table *t, int64_t row, const char *said, FILE *sentence, FILE *lines)
{
    int64_t seeds = cell_integer(t, row, "seeds"), finished = cell_integer(t, row, "finished");
    fprintf(sentence, "%s%s ", ftell(sentence) > 0 ? "; " : "", said);
    fprintf(lines, "| %s | %" PRId64 " | %" PRId64 " | ", said, seeds, finished);
    if (finished > 0)
        fprintf(lines, "%.2f", 100 * cell_real(t, row, "accuracy"));
    if (finished > 1)
        fprintf(lines, " ± %.2f", 100 * cell_real(t, row, "deviation"));
    fprintf(lines, " | ");
    if (finished < seeds)
        fprintf(sentence, "did not stay finite in %" PRId64 " of %" PRId64, seeds - finished,
                seeds);
    else if (cell_missing(t, row, "verdict"))
        fprintf(sentence, "%.1f %%", 100 * cell_real(t, row, "accuracy"));
    if (cell_missing(t, row, "verdict")) {
        fprintf(lines, "| |\n");
        return;
    }
    double difference = cell_real(t, row, "difference"), interval = cell_real(t, row, "interval");
    put_points(difference, interval, 1, sentence);
    fprintf(sentence, " points (%s)", cell_text(t, row, "verdict"));
    put_points(difference, interval, 2, lines);
    fprintf(lines, " | %s |\n", cell_text(t, row, "verdict"));
}

/* The row of an operator's networks with this change that are compared with those of another, or,
 * with itself, that others are compared with; -1: there is none. */
static int64_t find_trained(const table *t, const char *operator_name, const char *change,
                            const char *against)
{
    for (int64_t row = 0; row < table_rows(t); row++)
        if (cell_is(t, row, "operator", operator_name) && cell_is(t, row, "change", change) &&
            (cell_missing(t, row, "against") ? strcmp(change, against) == 0
                                             : cell_is(t, row, "against", against)))
            return row;
    return -1;
}

char *miniature_trained(verdict *v, const char *operator_name, const miniature_change *changes)
{
    char *path = resource_path("trained", "seeds.csv");
    table *t = path ? table_read_file(path, seeds_columns, SEEDS_COLUMNS) : NULL;
    free(path);
    if (!t)
        return must_format("Of small networks trained with each nothing is known here: "
                           "data/trained/seeds.csv cannot be read");
    int64_t first = find_trained(t, operator_name, changes[0].change, changes[0].change);
    if (first < 0) {
        table_free(t);
        return must_format("data/trained/seeds.csv has no networks of %s", operator_name);
    }
    char *said;
    size_t size;
    FILE *sentence = must_open_text(&said, &size);
    int64_t epochs = cell_integer(t, first, "epochs"), steps = cell_integer(t, first, "steps");
    fprintf(v->notes, "\n| trained in miniature with | seeds | finished | accuracy, %% | "
                      "difference, points | |\n|---|---|---|---|---|---|\n");
    for (int i = 0; changes[i].change; i++) {
        int64_t row = find_trained(t, operator_name, changes[i].change, changes[0].change);
        if (row >= 0)
            add_trained(t, row, changes[i].said, sentence, v->notes);
    }
    fprintf(v->notes,
            "\nNetworks of `attnum train --operator %s --change`, %" PRId64 " epochs of %" PRId64
            " steps, on Fashion-MNIST's 10,000 test pictures (data/trained/seeds.csv): means and "
            "standard deviations over the seeds; mean differences, seed by seed, and half the "
            "width of their 95 %% confidence interval. They judge no network of the paper's.\n",
            operator_name, epochs, epochs > 0 ? steps / epochs : 0);
    must_close_text(sentence, &said, &size);
    char *text = must_format("Small networks of %s, trained with each (%" PRId64
                             " seeds, 95 %% intervals; no number of the paper's): %s",
                             operator_name, cell_integer(t, first, "seeds"), said);
    free(said);
    table_free(t);
    return text;
}

/* Adds a line on the matrices of the networks that were trained as that of a row was. */
static void add_matrices(const table *t, int64_t first, FILE *lines)
{
    const char *trained_with = cell_text(t, first, "trained_with");
    int64_t matrices = 0, singular_f64 = 0, singular_f32 = 0, converged = 0;
    double residual = 0;
    for (int64_t row = first; row < table_rows(t); row++) {
        if (!cell_is(t, row, "trained_with", trained_with))
            continue;
        matrices++;
        singular_f64 += cell_integer(t, row, "rank_f64") < cell_integer(t, row, "m");
        singular_f32 += cell_integer(t, row, "rank_f32") < cell_integer(t, row, "m");
        converged += cell_real(t, row, "inverse_residual") < 1e-3;
        residual = direct_worst(residual, cell_real(t, row, "residual"));
    }
    fprintf(lines, "| %s | %" PRId64 " | %" PRId64 " | %" PRId64 " | %.2g | %" PRId64 " |\n",
            strcmp(trained_with, "none") == 0 ? "the papers' kernel" : trained_with, matrices,
            singular_f64, singular_f32, residual, converged);
}

void miniature_matrices(const claim_run *run, verdict *v)
{
    static const char *const group[] = {"trained_with"};
    const table *t = evidence_table(run, MINIATURE_MATRICES, 0);
    if (table_rows(t) == 0) {
        fprintf(v->notes, "\ndata/trained has no network of soft.\n");
        return;
    }
    fprintf(v->notes,
            "\n| in miniature, trained with | matrices A | rank < m in f64 | in f32 | the paper's "
            "metric, at most | ‖I − (A + 0.01·I)X‖₂ < 10⁻³ |\n|---|---|---|---|---|---|\n");
    for (int64_t row = 0; row < table_rows(t); row++)
        if (table_row_is_first(t, row, group, 1))
            add_matrices(t, row, v->notes);
    fprintf(
        v->notes,
        "\nNetworks of soft/code, one seed each, after their 20 steps (networks/epochs). The "
        "papers' kernel is exp(−‖x − y‖²/(2√d)), also between landmarks, which end with a "
        "LayerNorm; code-kernel is that of the published code, which divides queries by d^¼ but "
        "not landmarks, so that between these its exponents are √d times larger.\n");
}
