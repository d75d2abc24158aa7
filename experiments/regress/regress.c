/* SPDX-License-Identifier: BSD-3-Clause */
#include "regress/regress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accuracy/operators.h"
#include "common/report.h"
#include "common/resources.h"
#include "registry.h"
#include "regress/compare.h"
#include "regress/report.h"
#include "regress/rows.h"

/* ---- Cases ---- */

/* Three samples: a single one may be unlucky in the order of a BLAS kernel's sums, and the mean is
 * as bad as the unluckiest, but the median is not. Over all pairs of five of OpenBLAS's kernels and
 * of a build with fused multiply-adds the largest loss is 1.41 of one sample, 1.32 of the mean of
 * three, 0.78 of their median, 0.67 of the median of five. */
enum { SAMPLES = 3, PARTS = 2 };

/* 81 tokens do not fill the last block, the last window and the pooled grid. */
static const char *const few_inputs[] = {"photos", "iid", NULL};
static const struct {
    int64_t tokens, landmarks;
    const char *const *inputs; /* null: all inputs of accuracy/operators */
} usual[PARTS] = {{64, 16, NULL}, {81, 16, few_inputs}};

/* A sweep of accuracy/operators. */
typedef struct {
    program_options s;
    int64_t tokens, landmarks;
    const char *inputs[8];
    void *sweep;
    int64_t points;
} accuracy_part;

typedef struct {
    const program_options *s;
    int64_t seeds[SAMPLES];
    accuracy_part parts[PARTS];
    int count;
    char *path;  /* the table that the rows are compared with */
    table *kept; /* null: with --update, if there is no baseline yet */
} regress_state;

bool regress_is_full(const program_options *s)
{
    return s->operators.count == 0 && s->inputs.count == 0 && !s->dtypes_given &&
           s->storage_count == 0 && s->tokens.count == 0 && s->landmarks.count == 0;
}

/* Selects the type of --dtype or --storage, or all types. */
static void choose_types(program_options *s)
{
    if (s->storage_count > 0)
        return;
    s->storages[s->storage_count++] = ATN_STORAGE_NATIVE;
    for (int storage = 0; storage < ATN_STORAGE_COUNT && !s->dtypes_given; storage++)
        if (storage != ATN_STORAGE_NATIVE)
            s->storages[s->storage_count++] = (atn_storage)storage;
}

/* Selects the inputs of a part that the options name. False if there are none. */
static bool choose_inputs(accuracy_part *p, const char *const *few, const program_options *s)
{
    int count = 0;
    for (int i = 0; few[i]; i++) {
        bool wanted = s->inputs.count == 0;
        for (int j = 0; j < s->inputs.count; j++)
            wanted |= strcmp(s->inputs.items[j], few[i]) == 0;
        if (wanted)
            p->inputs[count++] = few[i];
    }
    p->s.inputs = (text_list){count, p->inputs};
    return count > 0;
}

static void add_part(regress_state *r, int index)
{
    const program_options *s = r->s;
    accuracy_part *p = &r->parts[r->count];
    p->s = *s;
    p->s.effort = EFFORT_QUICK;
    p->s.seeds = (integer_list){SAMPLES, r->seeds};
    choose_types(&p->s);
    p->tokens = usual[index].tokens;
    p->landmarks = usual[index].landmarks;
    if (s->tokens.count == 0)
        p->s.tokens = (integer_list){1, &p->tokens};
    if (s->landmarks.count == 0)
        p->s.landmarks = (integer_list){1, &p->landmarks};
    r->count += !usual[index].inputs || choose_inputs(p, usual[index].inputs, s);
}

/* ---- The kept rows ---- */

static int open_kept(regress_state *r)
{
    const program_options *s = r->s;
    const char *named = s->against ? s->against : s->baseline;
    r->path = named ? must_format("%s", named) : resource_path("golden", "accuracy.csv");
    if (!r->path)
        return EXIT_ENVIRONMENT;
    if (s->update && access(r->path, F_OK) != 0)
        return EXIT_PASS;
    return rows_read(r->path, &r->kept);
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    regress_state *r = must_allocate(1, sizeof *r);
    *state = r;
    r->s = s;
    for (int i = 0; i < SAMPLES; i++)
        r->seeds[i] = i + 1;
    int code = s->dry_run ? EXIT_PASS : open_kept(r);
    for (int i = 0; i < (s->tokens.count > 0 ? 1 : PARTS); i++)
        add_part(r, i);
    *points = 0;
    for (int i = 0; i < r->count && code == EXIT_PASS; i++) {
        accuracy_part *p = &r->parts[i];
        code = accuracy_operators.prepare(&p->s, &p->sweep, &p->points);
        *points += p->points;
    }
    return code;
}

static void release(void *state)
{
    regress_state *r = state;
    for (int i = 0; i < r->count; i++)
        if (r->parts[i].sweep)
            accuracy_operators.release(r->parts[i].sweep);
    table_free(r->kept);
    free(r->path);
    free(r);
}

/* ---- Points: those of the first part, then those of the second ---- */

static const accuracy_part *part_of(const void *state, int64_t *point)
{
    const accuracy_part *p = ((const regress_state *)state)->parts;
    for (; *point >= p->points; p++)
        *point -= p->points;
    return p;
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const accuracy_part *p = part_of(state, &point);
    accuracy_operators.describe(p->sweep, point, buffer, size);
}

static double weight(const void *state, int64_t point)
{
    const accuracy_part *p = part_of(state, &point);
    return accuracy_operators.weight(p->sweep, point);
}

/* Inputs are those of the first part, which has all. */
static bool input_at(const void *state, int index, const char **name, const char **sha256)
{
    return accuracy_operators.input(((const regress_state *)state)->parts[0].sweep, index, name,
                                    sha256);
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const accuracy_part *p = part_of(state, &point);
    return accuracy_operators.run(p->sweep, point, context, raw);
}

/* ---- The comparison ---- */

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    const regress_state *r = state;
    table *now = table_create(regress_columns, ROW_COLUMNS);
    table *none = table_create(regress_columns, ROW_COLUMNS);
    compare_outcome o;
    rows_gather(raw, atn_device_name(s->device), now);
    compare_rows(now, r->kept ? r->kept : none, regress_is_full(s), tables[0], &o);
    regress_report(tables[0], &o, r->kept ? r->path : "nothing: no rows are kept yet",
                   s->update != NULL);
    int code = compare_failed(&o) ? EXIT_CHECK : EXIT_PASS;
    if (s->update)
        code = regress_update(now, r->kept, r->path, s->update, state);
    compare_free(&o);
    table_free(none);
    table_free(now);
    return code;
}

const experiment regress = {
    .name = "regress",
    .summary = "the accuracy of every operator, against what was kept",
    .source = "accuracy/operators",
    .example = "attnum regress --operator soft,sima/code --storage native",
    .options = OPTIONS(REGRESS_OPTIONS),
    .defaults =
        "n = 64 with m = 16 on all inputs, n = 81 with m = 16 on photos and iid; 3 samples\n"
        "each; f32, f64, and bf16, f16, tf32 as storage. --dtype alone leaves these out.",
    .outputs = &(const output_spec){"regress", "Rows, and the rows they are compared with.",
                                    regress_columns, COMPARED_COLUMNS},
    .output_count = 1,
    .raw_columns = accuracy_columns,
    .raw_column_count = ACCURACY_COLUMNS,
    .prepare = prepare,
    .describe = describe,
    .weight = weight,
    .input = input_at,
    .run = run,
    .finish = finish,
    .release = release,
};
