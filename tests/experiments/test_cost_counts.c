/* SPDX-License-Identifier: BSD-3-Clause */
/* cost/counts: counts and the papers' formulas against numbers worked out by hand. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>

#include "common/report.h"
#include "cost/resident.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(cost_counts, .init = scratch_begin, .fini = scratch_end);

/* ---- Counts ---- */

/* The row of an operator's variant at n and m (0: none), or -1; asserts that there is but one. */
static int64_t find_count(const table *t, const char *name, const char *variant, int64_t n,
                          int64_t m)
{
    int64_t found = -1;
    for (int64_t row = 0; row < table_rows(t); row++) {
        double landmarks = cell_number(t, row, "m");
        if (!cell_is(t, row, "operator", name) || !cell_is(t, row, "variant", variant) ||
            cell_number(t, row, "n") != (double)n ||
            (m ? landmarks != (double)m : !isnan(landmarks)))
            continue;
        cr_expect(found < 0, "%s %s n=%" PRId64 " twice", name, variant, n);
        found = row;
    }
    return found;
}

/* n = 784, n_k = n, d = dv = 32, m = r = 49, M = 110, 12 heads, f32; from operators.h and the
 * description of atn_cost. A product of a x b by b x c is 2 a b c. */
static const struct {
    const char *name, *variant;
    int64_t m;
    double flops, exps, bytes, state; /* of one head, but for bytes */
} by_hand[] = {
    /* means (n + m) d; 3 d a distance, of m^2 + 2 n m pairs; 20 steps and a residual of two
     * products; P V and P (A+ P V); A+ (P V). */
    {"soft", "paper", 49,
     833. * 32 + (2401. + 2 * 784 * 49) * 96 + (20 * 4 + 4) * 117649. + 2 * (2. * 784 * 49 * 32) +
         2. * 49 * 49 * 32,
     2401. + 2 * 784 * 49, 3 * 784 * 384 * 4., 4. * 49 * (32 + 49 + 32)},
    /* and row sums, two scalings */
    {"softpp", "paper", 49,
     833. * 32 + (2401. + 2 * 784 * 49) * 96 + (20 * 4 + 4) * 117649. + 2 * (2. * 784 * 49 * 32) +
         2. * 49 * 49 * 32 + 3 * 2401.,
     2401. + 2 * 784 * 49, 3 * 784 * 384 * 4., 4. * 49 * (32 + 49 + 32)},
    {"gaussian", "exact", 0, 784. * 784 * (96 + 64), 784. * 784, 4 * 784 * 384 * 4., 0},
    /* a scaling and a row sum of each weight, a division of each output: so for all softmaxes */
    {"softmax", "attention", 0, 784. * 784 * (64 + 2 + 64) + 784 * 32, 784. * 784,
     4 * 784 * 384 * 4., 0},
    /* i sees i keys */
    {"softmax", "causal", 0, 784. * 785 / 2 * (64 + 2 + 64) + 784 * 32, 784. * 785 / 2,
     4 * 784 * 384 * 4., 0},
    {"sima", "paper", 0, 2 * (2. * 784 * 32 * 32) + 2 * 2 * 784. * 32, 0, 4 * 784 * 384 * 4.,
     4. * (32 * 32 + 2 * 32)},
    {"sima", "tokens", 0, 2 * (2. * 784 * 784 * 32) + 2 * 2 * 784. * 32, 0, 4 * 784 * 384 * 4.,
     4. * (2 * 32)},
    {"xnorm", "paper", 0, 2 * (2. * 784 * 32 * 32) + 3. * 32 * (784 + 32), 0, 4 * 784 * 384 * 4.,
     4. * 32 * 32},
    /* E^T K, E^T V; softmax attention to 49 keys */
    {"linformer", "projected", 49, 2 * (2. * 784 * 49 * 32) + 784. * 49 * (64 + 2 + 64) + 784 * 32,
     784. * 49, (4 * 784 * 384 + 784 * 49) * 4., 4. * 49 * (32 + 32)},
    {"xca", "code", 0, 2 * 3 * 784. * 32 + 2 * (2. * 784 * 32 * 32) + 3 * 32. * 32, 32. * 32,
     4 * 784 * 384 * 4., 4. * (32 * 32 + 2 * 32)},
    {"efficient", "paper", 0, 2 * (2. * 784 * 32 * 32) + 2 * 784. * 32 * 2, 2 * 784. * 32,
     4 * 784 * 384 * 4., 4. * (32 * 32 + 2 * 32)},
    /* x', |x'|^2; w.x' of M, and -|x'|^2/2, -t, +, / of each; S, z and their products, y/. */
    {"performer", "favor", 0,
     2 * 784. * (32 + 64 + 110 * (64 + 4)) + 2 * (2. * 784 * 110 * 32) + 784. * 110 +
         2 * 784. * 110 + 784. * 32,
     2 * 784. * 110, (4 * 784 * 384 + 110 * 32) * 4., 4. * (110 * 33 + 1)},
    {"rff", "fourier", 0, 2 * 784. * (32 + 110 * (64 + 2)) + 2 * (2. * 784 * 220 * 32),
     2 * 784. * 220, (4 * 784 * 384 + 110 * 32) * 4., 4. * 220 * 32},
    /* 1 + elu of both, epsilon; S, z, products with both, y/. */
    {"elu", "stable", 0,
     2 * 784. * 32 + 784 + 2 * (2. * 784 * 32 * 32) + 784. * 32 + 2 * 784. * 32 + 784 * 32.,
     2 * 784. * 32, 4 * 784 * 384 * 4., 4. * 32 * 33},
    /* a cosine and a sine of each place, times 32 channels; then as elu with 64 features */
    {"cosformer", "1d", 0,
     2 * 784. * 64 + 2 * (2. * 784 * 64 * 32) + 784. * 64 + 2 * 784. * 64 + 784 * 32., 2 * 784 * 2,
     4 * 784 * 384 * 4., 4. * 64 * 33},
    /* means; A and its scaling, sums and divisions; 6 steps of 4 products; Z (B V); B V and
     * F (Z B V) */
    {"nystromformer", "original", 49,
     2 * 784. * 32 + 2401. * (64 + 3) + 6 * 8 * 117649. + 2. * 49 * 49 * 32 +
         2 * (784. * 49 * (64 + 2 + 64)) + (784 + 49) * 32.,
     2401. + 2 * 784 * 49, 4 * 784 * 384 * 4., 4. * 49 * (49 + 2 * 32 + 32)},
    /* 8 rounds of 784 x 98 logits; hashing to 16 buckets is 8 products */
    {"lsh", "reformer", 0,
     8 * 784. * 98 * (64 + 2 + 64) + 784 * 32. + 3 * 784. * 32 + 8 * 784. * 64 * 8, 8 * 784. * 98,
     (3 * 784 * 384 + 8 * 32 * 8) * 4., 8 * 784 * 4. + 3 * 784 * 4.},
};
enum { BY_HAND = sizeof by_hand / sizeof *by_hand };

Test(cost_counts, counts_are_those_made_by_hand)
{
    cr_assert(run_experiment(&cost_counts, "--m 49 --out out") == EXIT_PASS);
    table *t = read_output(&cost_counts, "out", 0);
    for (int i = 0; i < BY_HAND; i++) {
        int64_t row = find_count(t, by_hand[i].name, by_hand[i].variant, 784, by_hand[i].m);
        cr_assert(row >= 0, "%s %s", by_hand[i].name, by_hand[i].variant);
        const struct {
            const char *name;
            double want;
        } values[] = {{"flops", 12 * by_hand[i].flops},
                      {"exps", 12 * by_hand[i].exps},
                      {"bytes_min", by_hand[i].bytes},
                      {"state_bytes", 12 * by_hand[i].state},
                      {"d", 384},
                      {"heads", 12}};
        for (int j = 0; j < 6; j++)
            cr_expect(cell_number(t, row, values[j].name) == values[j].want,
                      "%s %s: %s %.17g, want %.17g", by_hand[i].name, by_hand[i].variant,
                      values[j].name, cell_number(t, row, values[j].name), values[j].want);
    }
    table_free(t);
}

/* Every operator at every n and, where it has landmarks, m; no two variants alike. */
Test(cost_counts, counts_of_all_operators)
{
    cr_assert(run_experiment(&cost_counts, "--out out") == EXIT_PASS);
    table *t = read_output(&cost_counts, "out", 0);
    static const int64_t listed[] = {36, 49, 64, 81};
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        for (int64_t n = 784; n <= 8 * 784; n += 784) {
            const atn_operator_info *info = atn_operator_get((atn_operator)op);
            bool landmarks = cost_has_landmarks((atn_operator)op);
            for (int i = 0; i < (landmarks ? 4 : 1); i++)
                cr_expect(find_count(t, info->name, info->variants[0].name, n,
                                     landmarks ? listed[i] : 0) >= 0,
                          "%s n=%" PRId64, info->name, n);
        }
    for (int64_t row = 1; row < table_rows(t); row++) {
        bool same = cell_is(t, row, "operator", cell_text(t, row - 1, "operator"));
        static const char *const names[] = {"n", "flops", "exps", "bytes_min", "state_bytes"};
        for (int i = 0; i < 5; i++)
            same &= cell_number(t, row, names[i]) == cell_number(t, row - 1, names[i]);
        cr_expect(!same, "row %" PRId64 " is the one before", row);
    }
    table_free(t);
}

Test(cost_counts, landmarks_must_be_fewer_than_tokens)
{
    capture();
    cr_expect(run_experiment(&cost_counts, "--m 784 --out out") == EXIT_USAGE);
    const char *text = captured();
    cr_expect(is_one_line_with(text, "--m 784"), "%s", text);
}

/* ---- What the papers print ---- */

/* The one row of a statement and quantity of an operator at n (0: missing), m and heads. */
static int64_t find_formula(const table *t, const char *statement, const char *name,
                            const char *quantity, const char *formula, double n, double m,
                            double heads)
{
    int64_t found = -1;
    for (int64_t row = 0; row < table_rows(t); row++) {
        double tokens = cell_number(t, row, "n"), landmarks = cell_number(t, row, "m");
        double h = cell_number(t, row, "heads");
        if (!cell_is(t, row, "statement", statement) || !cell_is(t, row, "operator", name) ||
            !cell_is(t, row, "quantity", quantity) || !cell_is(t, row, "formula", formula) ||
            (n ? tokens != n : !isnan(tokens)) || (m ? landmarks != m : !isnan(landmarks)) ||
            (heads ? h != heads : !isnan(h)))
            continue;
        cr_expect(found < 0, "%s %s twice", statement, quantity);
        found = row;
    }
    cr_assert(found >= 0, "%s %s %s n=%g m=%g", statement, name, quantity, n, m);
    return found;
}

static const struct {
    const char *statement, *name, *quantity, *formula;
    double n, m, heads, printed, counted;
} statements[] = {
    {"S07", "soft", "flops", "(d_e + 4 m d_e + m^2) n + T m^3 + d_e m^2", 784, 49, 12,
     12 * ((32 + 4 * 49 * 32 + 2401.) * 784 + 20 * 117649. + 32 * 2401.), 271037424},
    {"S07", "soft", "state_bytes", "(2 m + d_e) n + m^2", 6272, 49, 12,
     12 * 4 * ((98 + 32.) * 6272 + 2401), 12 * 4. * 49 * 113},
    {"S29", "softpp", "flops", "m^2", 784, 49, 12, 12 * 2401., 3 * 12 * 2401.},
    {"S29", "softpp", "flops", "m^2", 6272, 392, 12, 12 * 392. * 392, 3 * 12 * 392. * 392},
    {"M03", "sima", "flops", "D N^2", 784, 0, 12, 384 * 784. * 784,
     12 * (4. * 784 * 784 * 32 + 4. * 784 * 32)},
    {"M03", "sima", "flops", "D^2 N", 784, 0, 1, 384. * 384 * 784,
     4. * 784 * 384 * 384 + 4. * 784 * 384},
    {"M03", "sima", "crossover_n", "N = D", 32, 0, 12, 384, 32},
    {"M03", "sima", "crossover_n", "N = D", 384, 0, 1, 384, 384},
    {"M08", "softmax", "exps", "H N^2", 6272, 0, 12, 12 * 6272. * 6272, 12 * 6272. * 6272},
    {"M08", "xca", "exps", "H D^2", 784, 0, 12, 12 * 384. * 384, 12 * 32. * 32},
    {"M08", "sima", "exps", "0", 784, 0, 12, 0, 0},
    {"M08", "soft", "exps", "H N^2", 784, 49, 12, 12 * 784. * 784, 12 * (2. * 784 * 49 + 2401)},
    {"M08", "soft", "exps_if_p_is_kept", "H N^2", 784, 49, 12, 12 * 784. * 784,
     12 * (784. * 49 + 2401)},
    {"M08", "linformer", "exps", "H N", 784, 49, 12, 12 * 784, 12 * 784. * 49},
    {"M08", "nystromformer", "exps", "H N", 784, 49, 12, 12 * 784, 12 * (2. * 784 * 49 + 2401)},
    {"M08", "performer", "exps", "N D", 784, 0, 12, 784. * 384, 12 * 2. * 784 * 110},
    {"M08", "efficient", "exps", "N D", 784, 0, 12, 784. * 384, 2 * 784. * 384},
    {"M08", "cosformer", "exps", "0", 784, 0, 12, 0, 0},
    {"U02", "xnorm", "flops", "h N d", 784, 0, 12, 12 * 784. * 32 * 32,
     12 * (4. * 784 * 32 * 32 + 3 * 32 * (784 + 32.))},
};

/* Of SOFT-Tiny, whose stages have 2, 4 and 10 heads and 3136, 784 and 196 tokens. IJCV: 2, 2 and 5
 * layers, 62 heads, of all their tokens 4 * 3136 + 8 * 784 + 50 * 196; NeurIPS: 1, 2 and 3 layers.
 */
#define IJCV_TOKENS    (4 * 3136 + 8 * 784 + 50 * 196.)
#define NEURIPS_TOKENS (2 * 3136 + 8 * 784 + 30 * 196.)
enum { IJCV_HEADS = 62, NEURIPS_HEADS = 40 };

static const struct {
    const char *source, *quantity;
    double m, printed, counted;
} growths[] = {
    /* Arrays: 4 bytes, batch 128, 2 n m + m^2. State: 64 dm + d(m^2) a head. */
    {"SOFT (IJCV) Tab. 9", "training_bytes_growth", 81, 3.4e9,
     128 * 4. * (2 * 45 * IJCV_TOKENS + IJCV_HEADS * (6561. - 1296))},
    {"NeurIPS Tab. 4a", "training_bytes_growth", 81, 3.4e9,
     128 * 4. * (2 * 45 * NEURIPS_TOKENS + NEURIPS_HEADS * (6561. - 1296))},
    {"SOFT (IJCV) Tab. 9", "state_bytes_growth", 49, .7e9,
     128 * 4. * IJCV_HEADS *(64. * 13 + 2401 - 1296)},
    /* Distances 3 d (m^2 + 2 n m), products 4 n m d + 2 m^2 d, steps 80 m^3, halved.
     */
    {"SOFT (IJCV) Tab. 9", "multiply_adds_growth", 64, .1e9,
     (28 * (192. + 128) * IJCV_TOKENS + IJCV_HEADS * (96. + 64) * (4096 - 1296) +
      IJCV_HEADS * 80. * (262144 - 46656)) /
         2},
    {"NeurIPS Tab. 4a", "multiply_adds_growth", 64, .1e9,
     (28 * (192. + 128) * NEURIPS_TOKENS + NEURIPS_HEADS * (96. + 64) * (4096 - 1296) +
      NEURIPS_HEADS * 80. * (262144 - 46656)) /
         2},
    {"SOFT (IJCV) Tab. 9", "multiply_adds_growth_without_steps", 64, .1e9,
     (28 * (192. + 128) * IJCV_TOKENS + IJCV_HEADS * (96. + 64) * (4096 - 1296)) / 2},
    {"NeurIPS Tab. 4a", "multiply_adds_growth_without_steps", 64, .1e9,
     (28 * (192. + 128) * NEURIPS_TOKENS + NEURIPS_HEADS * (96. + 64) * (4096 - 1296)) / 2},
};
enum {
    STATEMENTS = sizeof statements / sizeof *statements,
    GROWTHS = sizeof growths / sizeof *growths
};

/* The printed numbers of Tab. 9 are decimals: their differences are rounded. */
static bool near(double x, double want)
{
    return fabs(x - want) <= 1e-9 * fabs(want);
}

static int64_t find_growth(const table *t, int i)
{
    for (int64_t row = 0; row < table_rows(t); row++)
        if (cell_is(t, row, "statement", "N04") && cell_is(t, row, "source", growths[i].source) &&
            cell_is(t, row, "quantity", growths[i].quantity) &&
            cell_number(t, row, "m") == growths[i].m)
            return row;
    cr_assert(false, "%s %s", growths[i].source, growths[i].quantity);
    return -1;
}

Test(cost_counts, growth_of_both_tiny_networks)
{
    cr_assert(run_experiment(&cost_counts, "--m 49 --out out") == EXIT_PASS);
    table *t = read_output(&cost_counts, "out", 1);
    for (int i = 0; i < GROWTHS; i++) {
        int64_t row = find_growth(t, i);
        double printed = cell_number(t, row, "printed"), counted = cell_number(t, row, "counted");
        cr_expect(near(printed, growths[i].printed) && near(counted, growths[i].counted),
                  "%s %s: %.17g, %.17g", growths[i].source, growths[i].quantity, printed, counted);
    }
    table_free(t);
}

Test(cost_counts, statements_are_evaluated)
{
    cr_assert(run_experiment(&cost_counts, "--m 49 --out out") == EXIT_PASS);
    table *t = read_output(&cost_counts, "out", 1);
    for (int i = 0; i < STATEMENTS; i++) {
        int64_t row = find_formula(t, statements[i].statement, statements[i].name,
                                   statements[i].quantity, statements[i].formula, statements[i].n,
                                   statements[i].m, statements[i].heads);
        double printed = cell_number(t, row, "printed"), counted = cell_number(t, row, "counted");
        double ratio = cell_number(t, row, "ratio");
        cr_expect(near(printed, statements[i].printed) && near(counted, statements[i].counted),
                  "%s %s %s: %.17g, %.17g, want %.17g, %.17g", statements[i].statement,
                  statements[i].name, statements[i].quantity, printed, counted,
                  statements[i].printed, statements[i].counted);
        cr_expect(printed == 0 ? isnan(ratio) : ratio == counted / printed, "row %" PRId64, row);
    }
    for (int64_t row = 0; row < table_rows(t); row++)
        cr_expect(!cell_boolean(t, row, "exact") ||
                      cell_number(t, row, "printed") == cell_number(t, row, "counted"),
                  "row %" PRId64, row);
    table_free(t);
}
