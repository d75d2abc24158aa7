/* SPDX-License-Identifier: BSD-3-Clause */
/* N01 - N05: costs and networks. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "claims/claims.h"
#include "common/report.h"

/* ---- N01 ---- */

/* The operators of Fig. 1b, and whether the paper draws them as quadratic. */
static const struct {
    const char *name;
    bool quadratic;
} drawn[] = {{"softmax", true},
             {"linformer", false},
             {"performer", false},
             {"nystromformer", false},
             {"soft", false}};
enum { DRAWN = sizeof drawn / sizeof *drawn };

/* The exponent of n in a fit of cost/memory, forward, 12 heads, default variants; NaN if there is
 * none. */
static double memory_exponent(const table *fits, const char *operator, const char * quantity)
{
    for (int64_t row = 0; row < table_rows(fits); row++)
        if (cell_is(fits, row, "operator", operator) && cell_is(fits, row, "mode", "forward") &&
            cell_is(fits, row, "quantity", quantity) && cell_integer(fits, row, "heads") == 12 &&
            !cell_missing(fits, row, "exponent"))
            return cell_real(fits, row, "exponent");
    return NAN;
}

/* An exponent between 1 and 2 is nearer to one of them. */
static bool is_drawn_so(double exponent, bool quadratic)
{
    return quadratic ? exponent > 1.5 && exponent < 2.5 : exponent < 1.5;
}

static int judge_n01(const claim_run *run, verdict *v)
{
    const table *fits = evidence_table(run, "memory", 1);
    int stored = 0, streamed = 0, known = 0;
    double softmax_stored = memory_exponent(fits, "softmax", "bytes_materialised");
    double softmax_total = memory_exponent(fits, "softmax", "bytes_total");
    fprintf(v->notes,
            "Exponents of n in the bytes of a forward call, 12 heads, d = 384, m = 49:\n\n"
            "| operator | drawn as | arrays stored | measured, tokens streamed "
            "|\n|---|---|---|---|\n");
    for (int i = 0; i < DRAWN; i++) {
        double materialised = memory_exponent(fits, drawn[i].name, "bytes_materialised");
        double total = memory_exponent(fits, drawn[i].name, "bytes_total");
        fprintf(v->notes, "| %s | %s | %.3f | %.3f |\n", drawn[i].name,
                drawn[i].quadratic ? "quadratic" : "linear", materialised, total);
        stored += is_drawn_so(materialised, drawn[i].quadratic);
        streamed += is_drawn_so(total, drawn[i].quadratic);
        known += !isnan(total);
    }
    verdict_set(&v->measured,
                "exponent of n in the bytes of softmax attention: %.3f with its matrix stored, "
                "%.3f measured with tokens streamed",
                softmax_stored, softmax_total);
    verdict_set(&v->bound, "2 for softmax attention, 1 for the others, as drawn");
    v->kind = stored < DRAWN      ? VERDICT_FAILS
              : known < DRAWN     ? VERDICT_NOT_TESTABLE
              : streamed == DRAWN ? VERDICT_HOLDS
                                  : VERDICT_HOLDS_IF;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "every array the formulas name is stored");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "an operator in the table whose arrays grow otherwise");
    return EXIT_PASS;
}

/* ---- N04 ---- */

/* The printed FLOPs are rounded to 0.1e9, so their differences are off by at most that. */
static const double flops_print = 0.1e9;

/* The largest |counted - printed| of a quantity of Tab. 9 over m; -1 if there are no rows. */
static double largest_gap(const table *t, const char *quantity, FILE *notes)
{
    double largest = -1;
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!cell_is(t, row, "statement", "N04") || !cell_is(t, row, "quantity", quantity))
            continue;
        double gap = fabs(cell_real(t, row, "counted") - cell_real(t, row, "printed"));
        fprintf(notes, "| %s | %" PRId64 " | %.3g | %.3g |\n", quantity, cell_integer(t, row, "m"),
                cell_real(t, row, "printed"), cell_real(t, row, "counted"));
        largest = gap <= largest ? largest : gap;
    }
    return largest;
}

static int judge_n04(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "counts", 1);
    fprintf(v->notes, "Growth against m = 36:\n\n| quantity | m | printed | counted "
                      "|\n|---|---|---|---|\n");
    double with = largest_gap(t, "multiply_adds_growth", v->notes);
    double without = largest_gap(t, "multiply_adds_growth_without_steps", v->notes);
    double memory = largest_gap(t, "training_bytes_growth", v->notes);
    fprintf(v->notes, "\nMemory is a training framework's, whose buffers the paper does not list: "
                      "it can only be compared in order of magnitude.\n");
    bool fits_with = with >= 0 && with <= flops_print;
    bool fits_without = without >= 0 && without <= flops_print;
    v->kind = fits_with ? VERDICT_HOLDS : fits_without ? VERDICT_HOLDS_IF : VERDICT_FAILS;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "the 20 Newton–Raphson steps are not counted");
    verdict_set(&v->measured,
                "growth of the multiply-adds from m = 36: off the printed one by up to %.2g with "
                "the steps, %.2g without; memory by up to %.2g bytes",
                with, without, memory);
    verdict_set(&v->bound, "%.1g, the rounding of printed differences", flops_print);
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "m = 81 in the table");
    return EXIT_PASS;
}

const claim network_claims[] = {
    {
        .id = "N01",
        .source = "IJCV/NeurIPS Fig. 1b",
        .statement = "Against n = 784p the memory of a Transformer grows quadratically; that of "
                     "Linformer, Performer, Nyströmformer and SOFT linearly.",
        .method = "Resident memory of one layer's attention, measured in a process of its own per "
                  "call, and the bytes of the arrays that the formulas name; power laws fitted.",
        .corrected = "The quadratic curve is that of a stored n × n matrix. Exact softmax "
                     "attention, computed in blocks of keys, holds O(n) as the others do; what "
                     "stays quadratic is its time.",
        .proof = "softmax(QKᵀ)V is a quotient of two sums over keys, each of which can be "
                 "accumulated block by block with a running maximum.",
        .evidence = {"memory"},
        .judge = judge_n01,
    },
    {
        .id = "N04",
        .source = "IJCV Tab. 9",
        .statement = "m = 36, 49, 64, 81: 1.9, 1.9, 2.0, 2.1 GFLOPs and 15.1, 15.8, 16.9, 18.5 GB.",
        .method = "The network's parts that do not depend on m cancel in differences: growth from "
                  "m = 36, counted layer by layer, against the printed growth.",
        .corrected =
            "Counted with its 20 Newton–Raphson steps, two products or 2m³ multiply-adds each, the "
            "attention grows seven times as much as printed from m = 36 to 81.",
        .proof = "",
        .evidence = {"counts"},
        .judge = judge_n04,
    },
    {0},
};
