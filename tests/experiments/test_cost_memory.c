/* SPDX-License-Identifier: BSD-3-Clause */
/* cost/memory: its rows against the numbers of elements that each method must hold. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "common/report.h"
#include "cost/resident.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(cost_memory, .init = scratch_begin, .fini = scratch_end);

/* Pages that are not the plan's. */
static const double few_pages = 16 * 4096;

/* Elements of one head that a description holds, n = 784 p, m = 49, d = 32, M = 110. */
static double held(const char *name, const char *variant, double n)
{
    static const struct {
        const char *name;
        double square, linear, constant;
    } held_by[] = {{"soft", 0, 98, 2401},   {"softpp", 0, 98, 2401},
                   {"gaussian", 1, 0, 0},   {"softmax", 1, 0, 0},
                   {"sima", 0, 64, 0},      {"xnorm", 0, 32, 0},
                   {"linformer", 0, 49, 0}, {"performer", 0, 220, 0},
                   {"rff", 0, 440, 0},      {"nystromformer", 0, 98, 2401},
                   {"xca", 0, 64, 0},       {"efficient", 0, 64, 0},
                   {"elu", 0, 64, 0},       {"cosformer", 0, 128, 0},
                   {"lsh", 0, 784, 0}};
    bool tokens = strcmp(variant, "tokens") == 0;
    for (size_t i = 0; i < sizeof held_by / sizeof *held_by; i++)
        if (strcmp(held_by[i].name, name) == 0)
            return (held_by[i].square + tokens) * n * n + held_by[i].linear * n +
                   held_by[i].constant;
    return NAN;
}

static void check_memory_row(const table *t, int64_t row)
{
    const char *name = cell_text(t, row, "operator");
    const atn_operator_info *info = atn_operator_find(name);
    bool backward = cell_is(t, row, "mode", "forward+backward");
    double n = cell_number(t, row, "n"), d = cell_number(t, row, "d"),
           heads = cell_number(t, row, "heads");
    double measured = cell_number(t, row, "bytes_measured");
    double arrays = info->capabilities & ATN_CAN_CROSS ? 4 : 3;
    cr_expect(d == 32 * heads, "row %" PRId64, row);
    cr_expect(cell_number(t, row, "bytes_io") == 4 * n * d * arrays * (backward ? 2 : 1),
              "row %" PRId64 ": %g", row, cell_number(t, row, "bytes_io"));
    if (heads == 12)
        cr_expect(cell_number(t, row, "bytes_materialised") ==
                      4 * 12 * held(name, cell_text(t, row, "variant"), n),
                  "row %" PRId64 ": %s %g", row, name, cell_number(t, row, "bytes_materialised"));
    if (resident_obstacle())
        cr_expect(isnan(measured), "row %" PRId64, row);
    else
        cr_expect(measured > 0 && measured <= cell_number(t, row, "bytes_workspace") + few_pages,
                  "row %" PRId64 ": %s %g bytes, workspace %g", row, name, measured,
                  cell_number(t, row, "bytes_workspace"));
}

/* n of a fit is 784, 1568, 2352: the slope of least squares by its formula. */
static double slope(const table *t, int64_t row, const char *name)
{
    double x[3], y[3], mean_x = 0, mean_y = 0, above = 0, below = 0;
    for (int i = 0; i < 3; i++) {
        x[i] = log(cell_number(t, row + i, "n"));
        y[i] = log(cell_number(t, row + i, name));
        mean_x += x[i] / 3;
        mean_y += y[i] / 3;
    }
    for (int i = 0; i < 3; i++) {
        above += (x[i] - mean_x) * (y[i] - mean_y);
        below += (x[i] - mean_x) * (x[i] - mean_x);
    }
    return above / below;
}

static void check_fits(const table *t, const table *fits)
{
    int checked = 0;
    for (int64_t row = 0; row < table_rows(fits); row++) {
        const char *quantity = cell_text(fits, row, "quantity");
        if (cell_number(fits, row, "points") != 3 || strcmp(quantity, "bytes_total") == 0)
            continue;
        for (int64_t first = 0; first < table_rows(t); first++)
            if (cell_is(t, first, "operator", cell_text(fits, row, "operator")) &&
                cell_is(t, first, "variant", cell_text(fits, row, "variant")) &&
                cell_is(t, first, "mode", cell_text(fits, row, "mode")) &&
                cell_number(t, first, "n") == 784) {
                double want = slope(t, first, quantity), got = cell_number(fits, row, "exponent");
                cr_expect(isnan(want) ? isnan(got) : fabs(got - want) <= 1e-9,
                          "row %" PRId64 ": %g", row, got);
                checked++;
            }
        if (cell_is(fits, row, "operator", "softmax") &&
            strcmp(quantity, "bytes_materialised") == 0)
            cr_expect(fabs(cell_number(fits, row, "exponent") - 2) <= 1e-9);
    }
    cr_expect(checked > 20, "%d fits", checked);
}

Test(cost_memory, memory_of_all_operators)
{
    int seen[ATN_OPERATOR_COUNT] = {0};
    cr_assert(run_experiment(&cost_memory, "--quick --out out") == EXIT_PASS);
    table *t = read_output(&cost_memory, "out", 0), *fits = read_output(&cost_memory, "out", 1);
    for (int64_t row = 0; row < table_rows(t); row++) {
        check_memory_row(t, row);
        seen[atn_operator_find(cell_text(t, row, "operator"))->op]++;
    }
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        cr_expect(seen[op] > 0, "no %s", atn_operator_get((atn_operator)op)->name);
    check_fits(t, fits);
    table_free(t);
    table_free(fits);
}

/* In MiB, at most so far. */
static double resident_peak(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_maxrss / 1024;
}

/* With 2 10^7 tokens Linformer's E would be 8 GB of random numbers. */
Test(cost_memory, a_dry_run_makes_no_parameters)
{
    double before = resident_peak();
    cr_assert(run_experiment(&cost_memory, "--full --dry-run") == EXIT_PASS);
    cr_expect(resident_peak() - before < 100, "%g MiB, %g before", resident_peak(), before);
}
