/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine: prepare, run the points on threads, finish, publish. See experiment.h. */
#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiment.h"
#include "files.h"
#include "journal.h"
#include "metadata.h"
#include "plot.h"
#include "printout.h"
#include "progress.h"
#include "report.h"
#include "signals.h"
#include "utf8.h"

enum { DESCRIPTION_SIZE = 256, ROWS_SHOWN = 20 };

typedef struct {
    int64_t point;
    double weight;
} work_item;

typedef struct {
    const experiment *e;
    const program_options *s;
    void *state;
    int64_t points;
    const column *raw_columns;
    int raw_column_count;
    char *folder;             /* the folder of the results */
    char *fingerprint;        /* everything that the rows can depend on */
    int64_t *shard_of;        /* per point; null: there are no shards */
    int64_t part;             /* the number of points of this run */
    point_record *records;    /* per point */
    const shard_file *merged; /* the source of the records; null: this run */
    int merged_count;
    work_item *work; /* the points that this run computes, heaviest first */
    int64_t work_count;
    journal *journal;
    progress progress;
    atomic_int failure; /* the exit code that stops the run, or EXIT_PASS */
} sweep;

/* ---- Points ---- */

static bool is_fault(int code)
{
    return code == EXIT_USAGE || code == EXIT_ENVIRONMENT;
}

static double point_weight(const sweep *w, int64_t point)
{
    double weight = w->e->weight ? w->e->weight(w->state, point) : 1;
    return weight > 0 ? weight : 0;
}

static void describe_point(const sweep *w, int64_t point, char text[DESCRIPTION_SIZE])
{
    text[0] = '\0';
    w->e->describe(w->state, point, text, DESCRIPTION_SIZE);
}

static int compare_work(const void *a, const void *b)
{
    const work_item *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return (x->point > y->point) - (x->point < y->point);
}

/* Distributes the points, the heaviest first, to the shards 1, 2, ..., N, N, ..., 2, 1, 1, 2, ...:
 * each gets one of N points of similar weight, and no shard always gets the heaviest. */
static void deal_shards(sweep *w, int64_t shards)
{
    work_item *order = must_allocate((size_t)w->points, sizeof *order);
    w->shard_of = must_allocate((size_t)w->points, sizeof *w->shard_of);
    for (int64_t point = 0; point < w->points; point++)
        order[point] = (work_item){point, point_weight(w, point)};
    qsort(order, (size_t)w->points, sizeof *order, compare_work);
    for (int64_t i = 0; i < w->points; i++) {
        int64_t at = i % shards;
        w->shard_of[order[i].point] = 1 + (i / shards % 2 ? shards - 1 - at : at);
    }
    free(order);
}

static bool is_ours(const sweep *w, int64_t point)
{
    return !w->shard_of || w->shard_of[point] == w->s->shard;
}

/* Lists the points that are not in the journal, heavy ones first, so that no thread starts one at
 * the end. */
static void plan_work(sweep *w)
{
    double total = 0;
    w->work = must_allocate((size_t)w->points, sizeof *w->work);
    for (int64_t point = 0; point < w->points; point++)
        if (!w->records[point].rows && is_ours(w, point)) {
            w->work[w->work_count++] = (work_item){point, point_weight(w, point)};
            total += point_weight(w, point);
        }
    qsort(w->work, (size_t)w->work_count, sizeof *w->work, compare_work);
    w->progress = progress_start(w->part, w->part - w->work_count, total);
}

static void stop_with(sweep *w, int code)
{
    int none = EXIT_PASS;
    atomic_compare_exchange_strong(&w->failure, &none, code);
}

static void keep_record(sweep *w, const work_item *item, const point_record *record)
{
    int code = journal_add(w->journal, item->point, record);
    if (code != EXIT_PASS)
        stop_with(w, code);
    w->records[item->point] = *record;
    progress_add(&w->progress, item->weight);
}

static void report_failed_check(const sweep *w, int64_t point, const char *description)
{
    char *command = NULL;
    if (w->e->replay) {
        options_point options;
        w->e->replay(w->state, point, &options);
        command = options_replay(w->s, w->e->name, w->e->options, &options);
    }
    report_note("%s: a check failed at %s%s%s", w->e->name, description,
                command ? "; to see it again: " : "", command ? command : "");
    free(command);
}

static void run_point(sweep *w, const work_item *item, atn_context *context)
{
    char description[DESCRIPTION_SIZE];
    describe_point(w, item->point, description);
#pragma omp critical(sweep)
    progress_show(&w->progress, description);
    table *rows = table_create(w->raw_columns, w->raw_column_count);
    int code = w->e->run(w->state, item->point, context, rows);
    if (is_fault(code)) {
        table_free(rows);
        stop_with(w, code);
        return;
    }
    if (code == EXIT_CHECK)
        report_failed_check(w, item->point, description);
#pragma omp critical(sweep)
    keep_record(w, item, &(point_record){rows, code});
}

/* The work of one thread. */
static void run_items(sweep *w)
{
    atn_context *context = NULL;
    atn_context_options options = {.device = w->s->device, .threads = 1, .isa = w->s->isa};
    atn_status status = atn_context_create(&options, &context);
    if (status != ATN_OK) {
        report_error("%s: no context: %s", w->e->name, atn_status_message(status));
        stop_with(w, EXIT_ENVIRONMENT);
    }
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < w->work_count; i++)
        if (!signals_stopped() && w->failure == EXIT_PASS)
            run_point(w, &w->work[i], context);
    atn_context_free(context);
}

/* Points that measure time run outside of any parallel region, even of one thread: libgomp creates
 * new threads for every nested region. */
static void run_work(sweep *w)
{
    int threads = w->e->alone ? 1 : w->s->threads;
    if (w->e->alone)
        run_items(w);
    else
#pragma omp parallel num_threads(threads)
        run_items(w);
    progress_end(&w->progress);
}

static char *make_fingerprint(const sweep *w)
{
    const char *name, *sha256;
    char *text;
    size_t size;
    FILE *memory = must_open_text(&text, &size);
    fprintf(memory, "version=%s experiment=%s points=%" PRId64 " columns=", ATN_VERSION, w->e->name,
            w->points);
    for (int i = 0; i < w->raw_column_count; i++)
        fprintf(memory, "%s%s", i ? "," : "", w->raw_columns[i].name);
    options_fingerprint(w->s, memory);
    for (int i = 0; w->e->input && w->e->input(w->state, i, &name, &sha256); i++)
        fprintf(memory, " %s=%s", name, sha256 ? sha256 : "");
    must_close_text(memory, &text, &size);
    for (char *c = text; *c; c++) /* a file's name may hold a line feed */
        if (*c == '\n')
            *c = '?';
    return text;
}

static char *journal_path(const sweep *w)
{
    const char *name = w->e->outputs[0].name;
    return w->s->shards ? must_format("%s/%s.shard-%" PRId64 "-of-%" PRId64, w->folder, name,
                                      w->s->shard, w->s->shards)
                        : must_format("%s/%s.journal", w->folder, name);
}

/* A run cannot be continued in other instructions or by other BLAS kernels, and one that measures
 * times not on another machine. A merge has no use for the journal of another run, and spares it.
 */
static int open_journal(sweep *w)
{
    char *path = journal_path(w), *run = metadata_run(w->e, w->s, w->state, w->fingerprint);
    journal_spec spec = {.path = path,
                         .fingerprint = w->fingerprint,
                         .columns = w->raw_columns,
                         .column_count = w->raw_column_count,
                         .points = w->points,
                         .shard = w->s->shard,
                         .shards = w->s->shards,
                         .run = run,
                         .difference =
                             w->e->alone ? metadata_machine_difference : metadata_kernel_difference,
                         .spares = w->merged};
    int code = journal_open(&w->journal, &spec, w->s->resume, w->records);
    free(run);
    free(path);
    return code;
}

/* Whether the points that do not run again, all of a complete run, have left the files that the
 * options now ask for. */
static int check_files(const sweep *w, bool complete)
{
    char *path = NULL;
    for (int64_t point = 0; w->e->missing && point < w->points && !path; point++)
        if (complete || w->records[point].rows)
            path = w->e->missing(w->state, point);
    if (!path)
        return EXIT_PASS;
    report_error(
        "%s: --resume: %s is missing, and its point has run already; leave out --resume to "
        "start over",
        w->e->name, path);
    free(path);
    return EXIT_USAGE;
}

static int run_points(sweep *w)
{
    if (w->s->resume && check_files(w, false) != EXIT_PASS)
        return EXIT_USAGE;
    plan_work(w);
    if (w->s->resume)
        report_note("%s: %" PRId64 " of %" PRId64 " points are there already", w->e->name,
                    w->progress.done, w->part);
    run_work(w);
    if (w->failure != EXIT_PASS)
        return w->failure;
    if (w->progress.done == w->part)
        return EXIT_PASS;
    report_note("%s: stopped after %" PRId64 " of %" PRId64
                " points; the same command with --resume goes on",
                w->e->name, w->progress.done, w->part);
    return EXIT_ENVIRONMENT;
}

/* ---- Results ---- */

/* One output: the CSV in files[0], its metadata in files[1], both under temporary names. */
static int write_output(const sweep *w, int output, const table *t, int run_code, double start,
                        new_file files[2])
{
    char *csv = must_format("%s.csv", w->e->outputs[output].name);
    char *json = must_format("%s-metadata.json", csv);
    int code = new_file_open(&files[0], w->folder, csv);
    if (code == EXIT_PASS) {
        table_write_csv(t, files[0].file);
        code = new_file_close(&files[0]);
    }
    if (code == EXIT_PASS)
        code = new_file_open(&files[1], w->folder, json);
    if (code == EXIT_PASS) {
        double seconds = w->merged ? 0 : progress_seconds() - start;
        run_facts facts = {.fingerprint = w->fingerprint,
                           .code = run_code,
                           .seconds = seconds,
                           .resumed = w->merged ? 0 : w->part - w->work_count,
                           .shards = w->merged,
                           .shard_count = w->merged_count};
        code =
            metadata_write(w->e, w->s, w->state, output, &facts, files[0].temporary, files[1].file);
    }
    if (code == EXIT_PASS)
        code = new_file_close(&files[1]);
    free(json);
    free(csv);
    return code;
}

/* Renames the files after all of them have been written. */
static int publish(const sweep *w, table **tables, int run_code, double start)
{
    new_file files[2 * MAX_OUTPUTS] = {0};
    int code = EXIT_PASS;
    for (int i = 0; i < w->e->output_count && code == EXIT_PASS; i++)
        code = write_output(w, i, tables[i], run_code, start, &files[2 * i]);
    for (int i = 0; i < 2 * w->e->output_count && code == EXIT_PASS; i++)
        code = new_file_publish(&files[i]);
    for (int i = 0; i < 2 * w->e->output_count; i++)
        new_file_free(&files[i]);
    return code;
}

/* The exit code of the points. */
static int points_code(const sweep *w)
{
    int code = EXIT_SKIPPED;
    for (int64_t point = 0; point < w->points; point++)
        if (w->records[point].rows)
            code = exit_worst(code, w->records[point].code);
    return code;
}

/* All raw rows in the order of the points. */
static table *collect(const sweep *w)
{
    table *raw = table_create(w->raw_columns, w->raw_column_count);
    for (int64_t point = 0; point < w->points; point++)
        table_append(raw, w->records[point].rows);
    return raw;
}

static void print_summary(const sweep *w, table **tables, double seconds, bool failed, bool plots)
{
    report_text("%s: %" PRId64 " points", w->e->name, w->points);
    for (int i = 0; i < w->e->output_count; i++)
        report_text(", %" PRId64 " rows → %s/%s.csv", table_rows(tables[i]), w->folder,
                    w->e->outputs[i].name);
    report_text(" (%.1f s)%s%s\n", seconds, failed ? ", a check failed" : "",
                plots ? "" : ", no plots");
    fflush(stdout);
}

/* Makes the published tables from the raw rows; tables[0] may be raw itself. */
static int make_tables(const sweep *w, table *raw, table **tables)
{
    for (int i = 0; i < w->e->output_count; i++)
        tables[i] = i == 0 && !w->e->raw_columns
                        ? raw
                        : table_create(w->e->outputs[i].columns, w->e->outputs[i].column_count);
    if (w->e->finish)
        return w->e->finish(w->s, w->state, raw, tables);
    table_print(raw, ROWS_SHOWN, report_stream());
    return EXIT_PASS;
}

static int finish(sweep *w, double start)
{
    table *tables[MAX_OUTPUTS] = {0};
    table *raw = collect(w);
    int code = exit_worst(points_code(w), make_tables(w, raw, tables));
    if (!is_fault(code)) {
        int published = publish(w, tables, code, start);
        code = is_fault(published) ? published : code;
    }
    bool plots = true;
    if (!is_fault(code) && w->e->plot) {
        int drawn = plot_experiment(w->e, w->s, w->folder, &plots);
        code = is_fault(drawn) ? drawn : code;
    }
    if (!is_fault(code)) {
        print_summary(w, tables, progress_seconds() - start, code == EXIT_CHECK, plots);
        printout_tables(w->e->name, w->e->outputs, tables, w->e->output_count);
    }
    for (int i = 0; i < w->e->output_count; i++)
        if (tables[i] != raw)
            table_free(tables[i]);
    table_free(raw);
    return code;
}

/* Ends a shard, whose result is its journal. */
static int finish_shard(sweep *w, double start)
{
    int code = points_code(w), synced = journal_sync(w->journal);
    char *path = journal_path(w);
    if (synced == EXIT_PASS) {
        report_text("%s: shard %" PRId64 " of %" PRId64 ", %" PRId64 " of %" PRId64
                    " points → %s (%.1f s)%s\n",
                    w->e->name, w->s->shard, w->s->shards, w->part, w->points, path,
                    progress_seconds() - start, code == EXIT_CHECK ? ", a check failed" : "");
        fflush(stdout);
    }
    free(path);
    return synced == EXIT_PASS ? code : synced;
}

/* ---- An experiment ---- */

static bool has_output(const sweep *w, int output, int *code)
{
    char *csv = must_format("%s/%s.csv", w->folder, w->e->outputs[output].name);
    char *json = must_format("%s-metadata.json", csv);
    bool there = access(csv, F_OK) == 0 && metadata_matches(json, csv, w->fingerprint, code);
    free(json);
    free(csv);
    return there;
}

/* Whether there was a journal, other than the one this run has opened. */
static bool has_journal(const sweep *w)
{
    if (w->journal)
        return !journal_is_new(w->journal);
    char *path = journal_path(w);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* Whether a run like this one has published all its results; *code is then its exit code. The
 * journal is removed last, so it exists as long as files of two runs may be mixed. */
static bool is_complete(const sweep *w, int *code)
{
    bool complete = w->s->resume && !w->s->shards && !has_journal(w);
    for (int i = 0; i < w->e->output_count && complete; i++)
        complete = has_output(w, i, code);
    return complete;
}

/* Prints the published tables, from their files. */
static bool print_complete(const sweep *w)
{
    table *tables[MAX_OUTPUTS] = {0};
    bool read = true;
    for (int i = 0; i < w->e->output_count && read; i++) {
        const output_spec *output = &w->e->outputs[i];
        char *path = must_format("%s/%s.csv", w->folder, output->name);
        tables[i] = table_read_file(path, output->columns, output->column_count);
        read = tables[i] != NULL;
        free(path);
    }
    if (read)
        printout_tables(w->e->name, w->e->outputs, tables, w->e->output_count);
    for (int i = 0; i < w->e->output_count; i++)
        table_free(tables[i]);
    return read;
}

static int skip_complete(const sweep *w, int code)
{
    if (check_files(w, true) != EXIT_PASS)
        return EXIT_USAGE;
    report_note("%s: already complete in %s%s", w->e->name, w->folder,
                code == EXIT_CHECK ? "; a check failed in it" : "");
    bool made;
    if (w->e->plot && !plot_is_there(w->e, w->folder) &&
        plot_experiment(w->e, w->s, w->folder, &made) != EXIT_PASS)
        return EXIT_ENVIRONMENT;
    return printout_takes_tables() && !print_complete(w) ? EXIT_ENVIRONMENT : code;
}

/* After a signal nothing else is run, further experiments included. */
static int report_interrupted(const sweep *w)
{
    report_note("%s: stopped with its %s written; the same command%s ends it", w->e->name,
                w->s->shards ? "points" : "CSV", w->merged ? "" : " with --resume");
    return EXIT_ENVIRONMENT;
}

/* With the journal locked: runs the points and publishes their results. *done: the journal is no
 * longer needed. Another run may have finished since this one found no results. */
static int run_locked(sweep *w, bool *done)
{
    int code;
    double start = progress_seconds();
    if (is_complete(w, &code)) {
        *done = true;
        return skip_complete(w, code);
    }
    code = w->merged ? EXIT_PASS : run_points(w);
    if (code == EXIT_PASS) {
        code = w->s->shards ? finish_shard(w, start) : finish(w, start);
        if (signals_stopped() && !is_fault(code))
            code = report_interrupted(w);
        *done = !is_fault(code) && !w->s->shards;
    }
    return code;
}

static int run_all(sweep *w)
{
    signal_actions old;
    bool done = false;
    signals_take(&old);
    int code = files_make_folder(w->folder);
    if (code == EXIT_PASS)
        code = open_journal(w);
    if (code == EXIT_PASS)
        code = run_locked(w, &done);
    journal_close(w->journal, done);
    signals_restore(&old);
    return code;
}

static int64_t count_part(const sweep *w)
{
    int64_t count = 0;
    for (int64_t point = 0; point < w->points; point++)
        count += is_ours(w, point);
    return count;
}

static int run_prepared(sweep *w)
{
    int code;
    w->part = count_part(w);
    w->fingerprint = make_fingerprint(w);
    w->records = must_allocate((size_t)w->points, sizeof *w->records);
    if (is_complete(w, &code))
        code = skip_complete(w, code);
    else
        code = run_all(w);
    return code;
}

static int print_points(const sweep *w)
{
    char description[DESCRIPTION_SIZE];
    int64_t count = 0;
    for (int64_t point = 0; point < w->points; point++) {
        if (!is_ours(w, point))
            continue;
        describe_point(w, point, description);
        printf("%s\n", description);
        count++;
    }
    printf("%s: %" PRId64 " points\n", w->e->name, count);
    return EXIT_PASS;
}

/* Prepares the experiment; w must be closed in either case. */
static int open_sweep(sweep *w, const experiment *e, const program_options *s, int64_t shards)
{
    const char *slash = strrchr(e->name, '/');
    assert(e->output_count >= 1 && e->output_count <= MAX_OUTPUTS);
    assert(e->finish || (!e->raw_columns && e->output_count == 1));
    *w = (sweep){.e = e,
                 .s = s,
                 .raw_columns = e->raw_columns ? e->raw_columns : e->outputs[0].columns,
                 .raw_column_count =
                     e->raw_columns ? e->raw_column_count : e->outputs[0].column_count};
    w->folder = slash ? must_format("%s/%.*s", s->out, (int)(slash - e->name), e->name)
                      : must_format("%s", s->out);
    int code = e->prepare(s, &w->state, &w->points);
    if (code == EXIT_PASS && shards)
        deal_shards(w, shards);
    return code;
}

static void close_sweep(sweep *w)
{
    for (int64_t point = 0; w->records && point < w->points; point++)
        table_free(w->records[point].rows);
    free(w->records);
    free(w->work);
    free(w->shard_of);
    free(w->fingerprint);
    free(w->folder);
    if (w->state && w->e->release)
        w->e->release(w->state);
}

/* A shard stores its options as JSON, which is UTF-8: a file name that is not UTF-8 would be lost.
 */
static int check_names(const program_options *s)
{
    for (int i = 0; s->shards && i < s->kept.count; i++)
        for (const char *text = s->kept.items[i]; *text; text += utf8_length(text))
            if (utf8_length(text) == 0) {
                report_error("%s: expected UTF-8 with --shard; rename the file", s->kept.items[i]);
                return EXIT_USAGE;
            }
    return EXIT_PASS;
}

int experiment_run(const experiment *e, const program_options *s)
{
    sweep w;
    if (check_names(s) != EXIT_PASS)
        return EXIT_USAGE;
    int code = open_sweep(&w, e, s, s->shards);
    if (code == EXIT_PASS && w.points == 0) {
        report_text("%s: no points for these options\n", e->name);
        code = EXIT_SKIPPED;
    } else if (code == EXIT_PASS)
        code = s->dry_run ? print_points(&w) : run_prepared(&w);
    close_sweep(&w);
    return code;
}

/* ---- Shards of a run ---- */

static int check_run(const sweep *w, const shard_file *f)
{
    if (strcmp(f->fingerprint, w->fingerprint) == 0)
        return EXIT_PASS;
    char *text = fingerprint_difference(f->fingerprint, w->fingerprint);
    report_error("%s: its run is another than this program makes of its options: %s", f->path,
                 text);
    free(text);
    return EXIT_ENVIRONMENT;
}

/* Reads one point from a shard's file. A shard may be given twice if both files agree. */
static int merge_record(sweep *w, const shard_file *f, int64_t point, point_record *record)
{
    char description[DESCRIPTION_SIZE];
    const char *wrong = NULL;
    if (w->shard_of[point] != f->shard)
        wrong = "is not a point of this shard";
    else if (w->records[point].rows && !records_agree(&w->records[point], record))
        wrong = "has other rows in another file of this shard";
    if (wrong) {
        describe_point(w, point, description);
        report_error("%s: '%s' %s", f->path, description, wrong);
        return EXIT_ENVIRONMENT;
    }
    if (!w->records[point].rows) {
        w->records[point] = *record;
        record->rows = NULL;
    }
    return EXIT_PASS;
}

static int merge_shard(sweep *w, shard_file *f)
{
    point_record *records = must_allocate((size_t)w->points, sizeof *records);
    int code = check_run(w, f);
    if (code == EXIT_PASS)
        code = shard_records(f, w->raw_columns, w->raw_column_count, w->points, records);
    for (int64_t point = 0; point < w->points && code == EXIT_PASS; point++)
        if (records[point].rows)
            code = merge_record(w, f, point, &records[point]);
    for (int64_t point = 0; point < w->points; point++)
        table_free(records[point].rows);
    free(records);
    return code;
}

static const shard_file *find_shard(const shard_file *files, int count, int64_t shard)
{
    for (int i = 0; i < count; i++)
        if (files[i].shard == shard)
            return &files[i];
    return NULL;
}

/* The --out of the run that wrote a shard's file; to be freed. */
static char *results_folder(const experiment *e, const char *path)
{
    const char *end = strrchr(path, '/');
    for (const char *c = e->name; end && *c; c++)
        if (*c == '/')
            for (end--; end > path && *end != '/';)
                end--;
    return end && end > path ? must_format("%.*s", (int)(end - path), path) : must_format(".");
}

static void report_missing(const sweep *w, const char *verb, const char *folder,
                           const shard_file *files, int count, int64_t shard, int64_t others)
{
    const shard_file *f = find_shard(files, count, shard);
    char *out = f ? results_folder(w->e, f->path) : must_format("%s", folder);
    char *command = options_shard_command(w->s, verb, shard, files[0].shards, out);
    char *more = others ? must_format(" (and %" PRId64 " more)", others) : must_format("%s", "");
    report_error("%s: shard %" PRId64 " of %" PRId64 " is %s%s; expected what this leaves: %s",
                 w->e->name, shard, files[0].shards, f ? "not finished" : "missing", more, command);
    free(more);
    free(command);
    free(out);
}

/* A shard without points leaves a file too. */
static int check_shards(const sweep *w, const char *verb, const char *folder,
                        const shard_file *files, int count)
{
    int64_t shards = files[0].shards, bad = 0, first = 0;
    bool *lacks = must_allocate((size_t)shards + 1, sizeof *lacks);
    for (int64_t point = 0; point < w->points; point++)
        lacks[w->shard_of[point]] |= !w->records[point].rows;
    for (int64_t shard = shards; shard >= 1; shard--)
        if (lacks[shard] || !find_shard(files, count, shard)) {
            first = shard;
            bad++;
        }
    free(lacks);
    if (bad)
        report_missing(w, verb, folder, files, count, first, bad - 1);
    return bad ? EXIT_ENVIRONMENT : EXIT_PASS;
}

int experiment_merge(const experiment *e, const program_options *s, const char *verb,
                     const char *folder, shard_file *files, int count)
{
    sweep w;
    int code = open_sweep(&w, e, s, files[0].shards);
    if (code == EXIT_PASS) {
        w.merged = files;
        w.merged_count = count;
        w.fingerprint = make_fingerprint(&w);
        w.records = must_allocate((size_t)w.points, sizeof *w.records);
    }
    for (int i = 0; i < count && code == EXIT_PASS; i++)
        code = merge_shard(&w, &files[i]);
    if (code == EXIT_PASS)
        code = check_shards(&w, verb, folder, files, count);
    if (code == EXIT_PASS)
        code = run_all(&w);
    close_sweep(&w);
    return code;
}
