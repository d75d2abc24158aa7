/* SPDX-License-Identifier: BSD-3-Clause */
/* convergence/methods: its counts on numbers against the steps themselves, and relations between
 * its rows. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "common/experiment.h"
#include "common/report.h"
#include "convergence/iterations.h"
#include "convergence/methods.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(convergence_methods, .init = scratch_begin, .fini = scratch_end);

/* ---- The steps on one number ---- */

/* Products of a step, from alpha I the first one's, and the map of e with the half width d. */
typedef struct {
    const char *name;
    int products, first, order;
    double numerator;
    long double (*map)(int order, long double e, long double d);
} method;

static long double power(int order, long double e, long double d)
{
    (void)d;
    return powl(e, order);
}

static long double nystromformer(int order, long double e, long double d)
{
    (void)order, (void)d;
    return (3 * e * e * e + e * e * e * e) / 4;
}

static long double first_kind(int order, long double x)
{
    long double before = 1, now = x;
    for (int n = 2; n <= order; n++) {
        long double next = 2 * x * now - before;
        before = now;
        now = next;
    }
    return now;
}

static long double chebyshev(int order, long double e, long double d)
{
    return first_kind(order, e / d) / first_kind(order, 1 / d);
}

static const method methods[] = {
    {"nr-soft", 2, 2, 2, 1.8, power},
    {"nr-paper", 2, 2, 2, 2, power},
    {"newton-schulz", 2, 0, 2, 1.8, power},
    {"hyperpower-3", 3, 1, 3, 1.8, power},
    {"hyperpower-7", 5, 3, 7, 1.8, power},
    {"hyperpower-9", 5, 3, 9, 1.8, power},
    {"nystromformer", 4, 2, 3, 1, nystromformer},
    {"chebyshev-2", 2, 0, 2, 0, chebyshev},
    {"chebyshev-3", 3, 1, 3, 0, chebyshev},
    {"chebyshev-9", 5, 3, 9, 0, chebyshev},
};
enum { METHODS = sizeof methods / sizeof *methods };

/* Products until max |l^weight e| < 1e-6 over a grid of [1 / kappa, 1]; -1 if never. */
static int64_t count_products(const method *m, bool identity, bool exact, double kappa, int weight)
{
    enum { GRID = 700 };
    static long double e[GRID + 1], l[GRID + 1];
    long double low = 1 / (long double)kappa, high = 1, norm = 1.2L;
    long double alpha = m->numerator / norm / (identity ? 1 : norm), d = 0;
    if (!identity)
        low *= low;
    if (exact)
        alpha = 2 / (low + high), d = (high - low) / (high + low);
    for (int i = 0; i <= GRID; i++) {
        l[i] = powl(kappa, -(long double)i / GRID);
        e[i] = 1 - alpha * l[i] * (identity ? 1 : l[i]);
    }
    for (int k = 0; k < 70; k++) {
        long double worst = 0;
        for (int i = 0; i <= GRID; i++)
            worst = fmaxl(worst, fabsl(weight ? l[i] * e[i] : e[i]));
        if (worst < 1e-6L)
            return k == 0 ? 0 : (identity ? m->first : m->products) + (k - 1) * m->products;
        for (int i = 0; i <= GRID; i++)
            e[i] = m->map(m->order, e[i], d);
        d = m->map == chebyshev ? 1 / first_kind(m->order, 1 / d) : 0;
    }
    return -1;
}

static const method *find_method(const table *t, int64_t row)
{
    for (int i = 0; i < METHODS; i++)
        if (cell_is(t, row, "method", methods[i].name))
            return &methods[i];
    cr_assert_fail("row %ld: unknown method", (long)row);
    return NULL;
}

Test(convergence_methods, numbers_are_the_steps)
{
    table *t = run_first_points(&convergence_methods, "--quick --dtype f32", 3);
    int64_t seen = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!cell_is(t, row, "spectrum", "dense"))
            continue;
        int64_t want =
            count_products(find_method(t, row), cell_is(t, row, "start", "I"),
                           cell_is(t, row, "interval", "exact"), cell_real(t, row, "condition"),
                           cell_is(t, row, "metric", "axa"));
        cr_expect(cell_integer(t, row, "products") == want &&
                      cell_integer(t, row, "products_predicted") == want,
                  "%s from %s kappa %g %s: %ld products, expected %ld", cell_text(t, row, "method"),
                  cell_text(t, row, "start"), cell_real(t, row, "condition"),
                  cell_text(t, row, "metric"), (long)cell_integer(t, row, "products"), (long)want);
        seen++;
    }
    cr_expect_eq(seen, 3 * 19 * 2);
    table_free(t);
}

/* Within a step on either side, and both missing; not two steps, nor one missing. */
Test(convergence_methods, counts_agree_within_a_step)
{
    static const struct {
        int a, b;
        bool agree;
    } counts[] = {
        {5, 5, true}, {5, 6, true},   {6, 5, true},   {5, 7, false},  {7, 5, false},
        {0, 1, true}, {-1, -1, true}, {-1, 0, false}, {0, -1, false}, {-1, 1, false},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        cr_expect_eq(iteration_counts_agree(counts[i].a, counts[i].b), counts[i].agree, "%d and %d",
                     counts[i].a, counts[i].b);
}

/* m eigenvalues 2 with alpha = 2 (1 - delta) / 4: e_0 = -(1 - 2 delta), and 10 steps reach 1e-6 at
 * delta = 0.01. At delta = 0.00336 11 do, just: that is 2 (1 + r) with r = 0.003348. */
Test(convergence_methods, rounding_may_move_a_count_by_a_step)
{
    const double r = sqrt((1 + exp(log(1e-6) / 2048)) / (2 * 0.99)) - 1;
    const double lambda[] = {2, 2, 2};
    const ref_iteration newton = {
        .kind = REF_POWER, .order = 2, .from_matrix = true, .alpha = 2 * 0.99 / 4};
    bool steady[METRICS];
    for (int m = 1; m <= 3; m++) {
        const double u = r / (8 * m * m);
        methods_find_steady(&newton, m, lambda, 2, 0.95 * u, 64, steady);
        cr_expect(steady[AXA] && steady[I_AX], "m = %d: by one step", m);
        methods_find_steady(&newton, m, lambda, 2, 1.05 * u, 64, steady);
        cr_expect(!steady[AXA] && !steady[I_AX], "m = %d: by two", m);
        methods_find_steady(&newton, m, lambda, 2, 0, 10, steady);
        cr_expect(steady[AXA] && steady[I_AX], "m = %d: without rounding", m);
        methods_find_steady(&newton, m, lambda, 2, 0, 9, steady);
        cr_expect(!steady[AXA] && !steady[I_AX], "m = %d: never there", m);
    }
}

/* ---- Rows about matrices ---- */

/* The published iterations' products at the same matrix and metric. */
static int64_t published(const table *t, int64_t row, const char *name)
{
    static const char *const same[] = {"spectrum", "dtype", "metric"};
    for (int64_t other = 0; other < table_rows(t); other++) {
        bool match = cell_is(t, other, "method", name) &&
                     cell_real(t, other, "condition") == cell_real(t, row, "condition") &&
                     cell_integer(t, other, "sample") == cell_integer(t, row, "sample");
        for (int i = 0; i < 3; i++)
            match = match && cell_is(t, other, same[i], cell_text(t, row, same[i]));
        if (match)
            return cell_missing(t, other, "products") ? 0 : cell_integer(t, other, "products");
    }
    return -1;
}

static void check_ratio(const table *t, int64_t row, const char *name, const char *ratio)
{
    int64_t theirs = published(t, row, name);
    bool known = !cell_missing(t, row, "products") && theirs > 0;
    cr_expect(theirs >= 0 && known == !cell_missing(t, row, ratio) &&
                  (!known || cell_real(t, row, ratio) ==
                                 (double)theirs / (double)cell_integer(t, row, "products")),
              "row %ld: %s", (long)row, ratio);
}

Test(convergence_methods, matrices)
{
    table *t = run_first_points(&convergence_methods,
                                "--quick --dtype f64 --input iid --stage 3 --samples 1", INT64_MAX);
    int64_t judged = 0, matrices = 0, rounded = 0, stopped = 0, beyond = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        check_ratio(t, row, "nr-soft", "fewer_than_soft");
        check_ratio(t, row, "nr-paper", "fewer_than_paper");
        if (cell_is(t, row, "spectrum", "dense"))
            continue;
        bool known = !cell_missing(t, row, "products"), f64 = cell_is(t, row, "dtype", "f64");
        bool axa = cell_is(t, row, "metric", "axa");
        double condition = cell_real(t, row, "condition");
        double floor = 49 * (f64 ? 0x1p-53 : 0x1p-24) * condition * (axa ? 1 : condition);
        cr_expect_eq(known, cell_real(t, row, "best") < 1e-6, "row %ld", (long)row);
        /* with the squares' exact interval, 1e6 is as near to a point as rounding can tell */
        bool judged_here = cell_boolean(t, row, "judged");
        cr_expect(judged_here ? floor <= 1e-8 : floor > 1e-8 || condition > 1e5, "row %ld",
                  (long)row);
        if (judged_here) {
            cr_expect(known && labs((long)(cell_integer(t, row, "products") -
                                           cell_integer(t, row, "products_predicted"))) <= 5,
                      "row %ld", (long)row);
            judged++;
        }
        cr_expect(known || !f64 || !axa || condition > 1e5, "row %ld: f64 does not reach it",
                  (long)row);
        beyond += known && cell_integer(t, row, "best_products") > cell_integer(t, row, "products");
        cr_expect(!known ||
                      cell_integer(t, row, "best_products") >= cell_integer(t, row, "products"),
                  "row %ld", (long)row);
        rounded += !known;
        stopped += cell_is(t, row, "stop", "diverged");
        matrices++;
    }
    cr_expect(matrices == (3 + 1) * 25 * 2 && judged > 150 && rounded > 5 && beyond > 100,
              "%ld rows, %ld judged, %ld never reach it, %ld stopped, %ld go on to a better X",
              (long)matrices, (long)judged, (long)rounded, (long)stopped, (long)beyond);
    table_free(t);
}

/* Every condition number with every seed, each with a matrix of its own. At 1e7 the residual's
 * floor is five times what is judged. */
Test(convergence_methods, rotated_matrices)
{
    partial_run r;
    prepare_run(&r, &convergence_methods,
                "--seed 1,2 --dtype f64 --input iid --stage 3 --samples 1");
    atn_context *context = make_context();
    const int64_t first = 8, count = 2 * 8;
    char text[64], want[64];
    for (int64_t i = 0; i < count; i++) {
        snprintf(want, sizeof want, "rotated kappa %g seed %d", pow(10, (double)(i / 2 + 1)),
                 (int)i % 2 + 1);
        r.e->describe(r.state, first + i, text, sizeof text);
        cr_expect_str_eq(text, want);
    }
    for (int64_t i = 12; i < 14; i++)
        cr_assert_eq(r.e->run(r.state, first + i, context, r.raw), EXIT_PASS);
    const table *t = r.raw;
    int64_t half = table_rows(t) / 2;
    cr_assert_eq(half, 25 * 2);
    cr_expect_neq(cell_real(t, 0, "norm_ratio"), cell_real(t, half, "norm_ratio"));
    for (int64_t row = 0; row < 2 * half; row++)
        cr_expect(cell_integer(t, row, "seed") == 1 + row / half &&
                      cell_real(t, row, "condition") == 1e7 && !cell_boolean(t, row, "judged"),
                  "row %ld: seed %ld, condition %g", (long)row, (long)cell_integer(t, row, "seed"),
                  cell_real(t, row, "condition"));
    atn_context_free(context);
    end_run(&r);
}

/* Equal tokens: A is all ones, all its row sums are equal, and 2 / |A|_1^2 puts nr-paper on the
 * boundary, where rounding alone decides how many steps it takes, if it ever arrives. */
Test(convergence_methods, counts_that_rounding_decides_are_not_judged)
{
    table *t =
        run_first_points(&convergence_methods,
                         "--quick --dtype f64 --input constant --stage 3 --samples 1", INT64_MAX);
    int boundary = 0, judged = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!cell_is(t, row, "spectrum", "constant") || !cell_is(t, row, "metric", "axa"))
            continue;
        bool paper = cell_is(t, row, "method", "nr-paper");
        cr_expect(!paper || !cell_boolean(t, row, "judged"), "row %ld", (long)row);
        boundary += paper;
        judged += cell_boolean(t, row, "judged");
    }
    cr_expect(boundary == 1 && judged > 5, "%d on the boundary, %d judged", boundary, judged);
    table_free(t);
}
