/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/median.h"
#include "common/report.h"
#include "spectral/matrices.h"

bool advice_is_safe(const precision_facts *p)
{
    return p->best <= inspect_safe_residual;
}

/* ---- The worst and best matrices ---- */

/* A number of an inspection; NaN if it is unknown. */
typedef double (*measure)(const inspection *i);

typedef struct {
    const inspection *least, *most; /* null: none is known */
    int64_t known, over;            /* how many are known, and how many exceed the limit */
} extremes;

/* The extremes of a number over the inspections of main samplings. */
static extremes find_extremes(const inspection_list *list, measure of, double limit)
{
    extremes e = {0};
    for (int64_t i = 0; i < list->count; i++) {
        const inspection *item = list->items[i];
        double value = of(item);
        if (!item->main || isnan(value))
            continue;
        e.known++;
        e.over += !(value <= limit);
        e.least = !e.least || value < of(e.least) ? item : e.least;
        e.most = !e.most || value > of(e.most) ? item : e.most;
    }
    return e;
}

/* "batch 0, head 3, m = 49"; to be freed. */
static char *place(const inspection_list *list, const inspection *i)
{
    return inspections_heads(list) > 1
               ? must_format("batch %g, head %g, m = %g", i->batch, i->head, i->m)
               : must_format("m = %g", i->m);
}

/* A measurement that is NaN counts as the worst. */
static double or_infinite(double value)
{
    return isnan(value) ? INFINITY : value;
}

/* lambda_min/lambda_max as "2e-06", or the bounds that are known. To be freed. */
static char *format_spread(const inspection *i)
{
    if (i->singular > 0)
        return must_format("0, certified: two landmarks coincide");
    if (!isnan(i->lambda_min_lower))
        return must_format("%.2g, certified", i->lambda_min_lower / i->lambda_max);
    if (i->below_floor > 0)
        return must_format("below %.2g", i->m * atn_dtype_roundoff(ATN_F64));
    return must_format("%.2g", i->lambda_min / i->lambda_max);
}

/* A norm or a count: 2060, 78.5, 0.0012. To be freed. */
static char *format_number(double value)
{
    return must_format(value >= 1000 && value < 1e7 ? "%.0f" : "%.3g", value);
}

/* " on 1024 of its 3136 tokens" if not all were used. To be freed. */
static char *describe_subset(double looked_at, double tokens)
{
    return looked_at < tokens ? must_format(" on %.0f of its %.0f tokens", looked_at, tokens)
                              : must_format("%s", "");
}

/* "12 to 17", or "12" if both are 12. To be freed. */
static char *format_range(double least, double most)
{
    char *from = format_number(least), *to = format_number(most);
    char *text =
        strcmp(from, to) == 0 ? must_format("%s", from) : must_format("%s to %s", from, to);
    free(to);
    free(from);
    return text;
}

/* ---- The rules ---- */

/* Adds a number on which the line is based, named like its column in the tables. It belongs to an
 * inspection (null: to all), and there to an inverse, a precision or a sampling (null: to the
 * matrix itself). */
static void note(advice_line *line, const inspection *i, const char *of, const char *name,
                 double value)
{
    if (line->number_count == ADVICE_NUMBERS)
        abort();
    line->numbers[line->number_count++] =
        (advice_number){i ? i->batch : NAN, i ? i->head : NAN, i ? i->m : NAN, of, name, value};
}

/* The number of matrices, and how many of them the line is about. */
static void note_count(advice_line *line, int64_t over, int64_t known)
{
    note(line, NULL, NULL, "matrices", (double)known);
    note(line, NULL, NULL, "concerned", (double)over);
}

static const inverse_facts *paper(const inspection *i)
{
    return &i->inverses[ATN_INVERSE_NR_PAPER];
}

static void note_paper(advice_line *line, const inspection *i, const char *name, double value)
{
    note(line, i, atn_inverse_name(ATN_INVERSE_NR_PAPER), name, value);
}

static double paper_residual(const inspection *i)
{
    return paper(i)->published_steps > 0 ? or_infinite(paper(i)->residual) : NAN;
}

static double paper_steps(const inspection *i)
{
    double steps = paper(i)->steps[0];
    return !(paper(i)->published_steps > 0) ? NAN : steps >= 0 ? steps : INFINITY;
}

static double above_boundary(const inspection *i)
{
    return 1 + i->margin;
}

/* Whether 1 - alpha lambda_max^2 is -1 up to rounding. */
static bool on_boundary(const inspection *i)
{
    return above_boundary(i) <= 4 * i->m * atn_dtype_roundoff(ATN_F64);
}

/* When the papers' iteration reaches 1e-3. On the boundary of convergence it does so only because
 * exact steps would cancel a mode of which rounding leaves a part, and each step doubles that part.
 * To be freed. */
static char *describe_reached(const inspection *i)
{
    const inverse_facts *f = paper(i);
    if (!(f->steps[0] >= 0))
        return must_format("1e-3 is not reached in %g", f->steps_run);
    return must_format("1e-3 takes %g steps%s", f->steps[0],
                       on_boundary(i) ? ", which rounding decides" : "");
}

static char *describe_steps(const inspection_list *list, advice_line *line)
{
    extremes e = find_extremes(list, paper_residual, inspect_targets[0]);
    extremes steps = find_extremes(list, paper_steps, 0);
    if (e.known == 0)
        return NULL;
    char *at = place(list, e.most), *spread = format_spread(e.most), *text;
    const inverse_facts *f = paper(e.most);
    note_count(line, e.over, e.known);
    note_paper(line, e.most, "residual", f->residual);
    note_paper(line, e.most, "residual_predicted", f->predicted);
    note_paper(line, steps.least, "steps_1e3", paper(steps.least)->steps[0]);
    note_paper(line, steps.most, "steps_1e3", paper(steps.most)->steps[0]);
    if (e.over > 0) {
        line->level = ADVICE_WARNING;
        char *takes = describe_reached(e.most);
        text =
            must_format("In f64, %d Newton-Raphson steps from the printed start 2/|A|_1^2 do not "
                        "suffice for %" PRId64 " of %" PRId64
                        " matrices: at %s, the residual |AXA - A|/|A| after %d is %.2g (closed "
                        "form %.2g), and %s; lambda_min/lambda_max is %s.",
                        (int)PAPER_STEPS, e.over, e.known, at, (int)PAPER_STEPS, f->residual,
                        f->predicted, takes, spread);
        free(takes);
    } else {
        char *range = format_range(paper_steps(steps.least), paper_steps(steps.most));
        text = must_format(
            "In f64, %d Newton-Raphson steps from the printed start 2/|A|_1^2 suffice: the largest residual |AXA - A|/|A| "
            "after them is %.2g (%s, closed form %.2g), and 1e-3 takes %s steps.",
            (int)PAPER_STEPS, f->residual, at, f->predicted, range);
        free(range);
    }
    free(spread);
    free(at);
    return text;
}

/* The part of the mode of lambda_max that is left after steps from 2/|A|_1^2: (1 - alpha
 * lambda_max^2)^(2^steps). */
static double largest_mode_left(const inspection *i, int steps)
{
    return pow(fabs(i->margin), ldexp(1, steps));
}

static double lost_mode(const inspection *i)
{
    return largest_mode_left(i, PAPER_STEPS);
}

static char *describe_start(const inspection_list *list, advice_line *line)
{
    extremes lost = find_extremes(list, lost_mode, inspect_targets[0]);
    extremes near = find_extremes(list, above_boundary, 0);
    if (lost.known == 0)
        return NULL;
    const inspection *i = near.least;
    char *at = place(list, i), *text;
    char *margin = on_boundary(i) ? must_format("-1 to rounding")
                                  : must_format("-1 + %.2g", above_boundary(i));
    note_count(line, lost.over, lost.known);
    note(line, i, NULL, "margin", i->margin);
    note(line, i, NULL, "lost_mode", lost_mode(i));
    if (lost.over > 0) {
        line->level = ADVICE_WARNING;
        text = must_format("The printed start alpha = 2/|A|_1^2 is on the boundary of convergence "
                           "for %" PRId64 " of %" PRId64 " matrices: at %s, 1 - alpha lambda_max^2 "
                           "is %s, and X_20 misses %.0f%% of the largest mode. Start from "
                           "1.8/|A|_1^2, where it is %.2g.",
                           lost.over, lost.known, at, margin, 100 * fmin(1, lost_mode(i)),
                           1 - 0.9 * (1 - i->margin));
    } else
        text = must_format("The printed start 2/|A|_1^2 converges: 1 - alpha lambda_max^2 is at "
                           "least %s (%s), and the boundary is -1.",
                           margin, at);
    free(margin);
    free(at);
    return text;
}

static double missing_modes(const inspection *i)
{
    return i->rank_f64 - i->inverted;
}

static char *describe_modes(const inspection_list *list, advice_line *line)
{
    extremes e = find_extremes(list, missing_modes, 0);
    if (e.known == 0)
        return NULL;
    char *at = place(list, e.most), *text;
    note_count(line, e.over, e.known);
    note(line, e.most, NULL, "inverted", e.most->inverted);
    note(line, e.most, NULL, "rank_f64", e.most->rank_f64);
    if (e.over > 0) {
        line->level = ADVICE_WARNING;
        bool hidden = paper_residual(e.most) <= inspect_targets[0];
        text = must_format(
            "%s: at %s, 20 steps from the printed start invert %g of the %g modes that f64 resolves to "
            "half or more. On the others X is far from the inverse, and Eq. 12's "
            "gradient has the wrong size there.",
            hidden ? "The papers' residual hides modes" : "Modes are missing", at, e.most->inverted,
            e.most->rank_f64);
    } else
        text = must_format(
            "20 steps from the printed start invert every mode that f64 resolves to half or more (%g of %g "
            "at %s).",
            fmin(e.most->inverted, e.most->rank_f64), e.most->rank_f64, at);
    free(at);
    return text;
}

static double missing_f64(const inspection *i)
{
    return (i->m - i->rank_f64) / i->m;
}

static double missing_f32(const inspection *i)
{
    return (i->m - i->rank_f32) / i->m;
}

static double kappa_of(const inspection *i)
{
    return i->kappa;
}

static char *describe_rank(const inspection_list *list, advice_line *line)
{
    extremes in_f64 = find_extremes(list, missing_f64, 0);
    extremes in_f32 = find_extremes(list, missing_f32, 0);
    extremes kappa = find_extremes(list, kappa_of, 0);
    if (in_f32.known == 0)
        return NULL;
    const inspection *worst = in_f64.over > 0 ? in_f64.most : in_f32.most;
    char *at = place(list, worst), *text;
    line->level = in_f32.over > 0 ? ADVICE_WARNING : ADVICE_FINE;
    note_count(line, in_f64.over > 0 ? in_f64.over : in_f32.over, in_f32.known);
    note(line, worst, NULL, "rank_f64", worst->rank_f64);
    note(line, worst, NULL, "rank_f32", worst->rank_f32);
    note(line, worst, NULL, "rank_bf16", worst->rank_bf16);
    note(line, worst, NULL, "kappa", worst->kappa);
    if (worst->rank_f64 == 1 && worst->m > 1)
        text = must_format(
            "Landmarks are alike: at %s, A has rank 1 of %g. Attention is one weighted sum of V, "
            "the same for every token but for its factor exp(-s |q - l|^2), and one landmark gives "
            "it too.",
            at, worst->m);
    else if (in_f64.over > 0)
        text =
            must_format("A is singular in f64 for %" PRId64 " of %" PRId64 " matrices: at %s, its "
                        "rank is %g of %g in f64, %g in f32, %g in bf16. Take pivoted-cholesky or "
                        "eig, which cut what rounding made, or fewer landmarks.",
                        in_f64.over, in_f64.known, at, worst->rank_f64, worst->m, worst->rank_f32,
                        worst->rank_bf16);
    else if (in_f32.over > 0)
        text =
            must_format("A has full rank in f64 but is singular in f32 for %" PRId64 " of %" PRId64
                        " matrices: at %s, its rank is %g of %g in f32, %g in bf16, and kappa(A) "
                        "is %.2g. An exact inverse needs f64, or pivoted-cholesky or eig.",
                        in_f32.over, in_f32.known, at, worst->rank_f32, worst->m, worst->rank_bf16,
                        worst->kappa);
    else {
        char *range = format_range(kappa.least->kappa, kappa.most->kappa);
        text = must_format("A has full rank in f64 and in f32 everywhere; kappa(A) is %s.", range);
        free(range);
    }
    free(at);
    return text;
}

static double certified_width(const inspection *i)
{
    return i->lambda_min_upper - i->lambda_min_lower;
}

static double unresolved(const inspection *i)
{
    return i->below_floor;
}

static char *describe_unresolved(const inspection_list *list, advice_line *line)
{
    extremes e = find_extremes(list, unresolved, 0),
             known = find_extremes(list, certified_width, 0);
    if (e.over == 0 || known.known > 0)
        return NULL;
    note_count(line, e.over, e.known);
    line->level = ADVICE_WARNING;
    return must_format("f64 cannot tell lambda_min from 0 for %" PRId64 " of %" PRId64
                       " matrices (it is below m 2^-53 lambda_max), and none of them is certified "
                       "(see --certify).",
                       e.over, e.known);
}

static char *describe_certified(const inspection_list *list, advice_line *line)
{
    extremes e = find_extremes(list, unresolved, 0),
             known = find_extremes(list, certified_width, 0);
    if (known.known == 0)
        return NULL;
    line->level = ADVICE_WARNING;
    const inspection *i = known.least;
    note_count(line, e.over, e.known);
    note(line, i, NULL, "lambda_min_lower", i->lambda_min_lower);
    note(line, i, NULL, "lambda_min_upper", i->lambda_min_upper);
    note(line, i, NULL, "singular", i->singular);
    note(line, i, NULL, "kappa", i->kappa);
    char *at = place(list, i), *text;
    if (i->singular > 0)
        text =
            must_format("f64 cannot tell lambda_min from 0 for %" PRId64 " of %" PRId64
                        " matrices. Certified at %s: two landmarks coincide, lambda_min is 0 and "
                        "A has no inverse.",
                        e.over, e.known, at);
    else
        text = must_format("f64 cannot tell lambda_min from 0 for %" PRId64 " of %" PRId64
                           " matrices. Certified at %s: lambda_min is %.5g to %.5g, so kappa(A) is "
                           "%.2g, which no f64 inverse of A can follow.",
                           e.over, e.known, at, i->lambda_min_lower, i->lambda_min_upper, i->kappa);
    free(at);
    return text;
}

/* ---- Precisions ---- */

/* The main item with the worst result in a precision; null if none was measured. */
static const inspection *worst_precision(const inspection_list *list, int p)
{
    const inspection *worst = NULL;
    for (int64_t i = 0; i < list->count; i++) {
        const inspection *item = list->items[i];
        if (item->main && !isnan(item->precisions[p].rank) &&
            (!worst ||
             !(or_infinite(item->precisions[p].best) <= or_infinite(worst->precisions[p].best))))
            worst = item;
    }
    return worst;
}

/* Appends ", " and text, and frees text. */
static void append(char **list, char *text)
{
    char *longer = must_format("%s%s%s", *list, **list ? ", " : "", text);
    free(text);
    free(*list);
    *list = longer;
}

static char *describe_precisions(const inspection_list *list, advice_line *line)
{
    char *safe = must_format("%s", ""), *unsafe = must_format("%s", ""), *text = NULL;
    for (int p = 0; p < PRECISIONS; p++) {
        const inspection *worst = worst_precision(list, p);
        if (!worst)
            continue;
        const precision_facts *f = &worst->precisions[p];
        note(line, worst, precision_name(precisions[p]), "best_residual", f->best);
        note(line, worst, precision_name(precisions[p]), "best_steps", f->best_steps);
        char *at = place(list, worst);
        append(advice_is_safe(f) ? &safe : &unsafe,
               must_format("%s (%.3g after %g steps at %s)", precision_name(precisions[p]), f->best,
                           f->best_steps, at));
        free(at);
    }
    if (*unsafe) {
        line->level = ADVICE_WARNING;
        text = must_format(
            "Not safe, even from 1.8/|A|_1^2: %s. Their best residual stays above %g. Safe: %s.",
            unsafe, inspect_safe_residual, *safe ? safe : "none");
    } else if (*safe)
        text = must_format(
            "Every precision is safe if started from 1.8/|A|_1^2 and stopped at its best: the papers' residual "
            "is then at most %g: %s.",
            inspect_safe_residual, safe);
    free(unsafe);
    free(safe);
    return text;
}

/* The factor by which X_20 is worse than the best X; 0 where X_20 is safe anyway. */
static double excess(const precision_facts *f)
{
    return f->fixed <= inspect_safe_residual ? 0 : f->fixed / f->best;
}

enum { MUCH_WORSE = 10 };

/* Of the main items whose best X comes before X_20, the one with the largest excess. */
static const inspection *most_overdone(const inspection_list *list, int p)
{
    const inspection *worst = NULL;
    for (int64_t i = 0; i < list->count; i++) {
        const precision_facts *f = &list->items[i]->precisions[p];
        if (list->items[i]->main && f->best_steps < PAPER_STEPS && excess(f) > MUCH_WORSE &&
            (!worst || excess(f) > excess(&worst->precisions[p])))
            worst = list->items[i];
    }
    return worst;
}

static char *describe_too_many(const inspection_list *list, advice_line *line)
{
    char *cases = must_format("%s", ""), *text = NULL;
    for (int p = 0; p < PRECISIONS; p++) {
        const inspection *worst = most_overdone(list, p);
        if (!worst)
            continue;
        const precision_facts *f = &worst->precisions[p];
        note(line, worst, precision_name(precisions[p]), "residual_20", f->fixed);
        note(line, worst, precision_name(precisions[p]), "best_residual", f->best);
        note(line, worst, precision_name(precisions[p]), "best_steps", f->best_steps);
        char *at = place(list, worst);
        append(&cases,
               must_format("%s: residual %.2g after 20, %.2g after %g (%s)",
                           precision_name(precisions[p]), f->fixed, f->best, f->best_steps, at));
        free(at);
    }
    if (*cases) {
        line->level = ADVICE_WARNING;
        text =
            must_format("Rounding grows back within 20 steps in some types: %s, from 1.8/|A|_1^2. "
                        "Stop there with stopping = best.",
                        cases);
    }
    free(cases);
    return text;
}

/* ---- The conclusion ---- */

/* The inspections that a setting is about. */
static bool is_asked(const inspection *i, const inspect_setting *setting)
{
    return (setting->sampling < 0 ? i->main : i->sampling == setting->sampling) &&
           !isnan(i->precisions[setting->precision].rank);
}

/* The inspection with the largest value of a field of precision_facts, given by its offset; null if
 * none is known. */
static const inspection *worst_asked(const inspection_list *list, const inspect_setting *setting,
                                     int p, size_t offset)
{
    const inspection *worst = NULL;
    double most = -1;
    for (int64_t i = 0; i < list->count; i++) {
        if (!is_asked(list->items[i], setting))
            continue;
        const char *facts = (const char *)&list->items[i]->precisions[p];
        double value = or_infinite(*(const double *)(facts + offset));
        worst = value > most ? list->items[i] : worst;
        most = fmax(most, value);
    }
    return worst;
}

/* What would be safe where a setting is not: another number of steps, or a wider type. To be
 * freed. */
static char *describe_remedy(const inspection_list *list, const inspect_setting *setting,
                             const inspection *best)
{
    const precision_facts *f = &best->precisions[setting->precision];
    if (f->best <= inspect_safe_residual)
        return must_format("With stopping = best it is at most %.3g (%g steps there)", f->best,
                           f->best_steps);
    for (int p = setting->precision - 1; p >= 0; p--) {
        const inspection *i = worst_asked(list, setting, p, offsetof(precision_facts, asked));
        if (i && i->precisions[p].asked <= inspect_safe_residual)
            return must_format("In %s it is at most %.3g", precision_name(precisions[p]),
                               i->precisions[p].asked);
    }
    return must_format("No wider type is safe in as many steps");
}

advice_line advice_conclude(const inspection_list *list, const inspect_setting *setting)
{
    advice_line line = {.rule = "conclusion", .basis = "measured", .level = ADVICE_WARNING};
    int p = setting->precision;
    const char *type = precision_name(precisions[p]);
    const inspection *worst = worst_asked(list, setting, p, offsetof(precision_facts, asked));
    const inspection *best = worst_asked(list, setting, p, offsetof(precision_facts, best));
    int64_t known = 0, over = 0, diverging = 0;
    for (int64_t i = 0; i < list->count; i++)
        if (is_asked(list->items[i], setting)) {
            known++;
            diverging += largest_mode_left(list->items[i], setting->steps) > inspect_safe_residual;
            over += !(list->items[i]->precisions[p].asked <= inspect_safe_residual);
        }
    note_count(&line, over, known);
    if (!worst) {
        line.text = must_format(
            "Nothing was measured for %s, %s: this sampling does not apply to these tokens", type,
            inspect_samplings[setting->sampling < 0 ? 0 : setting->sampling].name);
        return line;
    }
    double residual = worst->precisions[p].asked;
    note(&line, worst, type, "residual_asked", residual);
    note(&line, best, type, "best_residual", best->precisions[p].best);
    char *at = place(list, worst);
    char *what = must_format("%s, sampling %s, %d steps from 1.8/|A|_1^2", type,
                             inspect_samplings[worst->sampling].name, setting->steps);
    if (over > 0) {
        char *remedy = describe_remedy(list, setting, best);
        line.text = must_format("%s: NOT safe by the papers' residual for %" PRId64 " of %" PRId64
                                " matrices: |AXA - A|/|A| is %.3g (%s), above %g. %s.",
                                what, over, known, residual, at, inspect_safe_residual, remedy);
        free(remedy);
    } else {
        line.level = ADVICE_FINE;
        char *printed =
            diverging == 0 ? must_format("%s", "")
                           : must_format(" From the printed start 2/|A|_1^2 it is not, for %" PRId64
                                         " of %" PRId64 ".",
                                         diverging, known);
        line.text =
            must_format("%s: safe by the papers' residual: |AXA - A|/|A| is at most %.3g (%s) over "
                        "%" PRId64 " %s, below %g.%s",
                        what, residual, at, known, known == 1 ? "matrix" : "matrices",
                        inspect_safe_residual, printed);
        free(printed);
    }
    free(what);
    free(at);
    return line;
}

/* ---- Other methods ---- */

/* The most products that a method needs for 1e-3; infinite if it fails for some matrix. */
static double most_products(const inspection_list *list, int method)
{
    double most = 0;
    for (int64_t i = 0; i < list->count; i++) {
        const inverse_facts *f = &list->items[i]->inverses[method];
        if (list->items[i]->main && f->published_steps > 0)
            most = fmax(most, or_infinite(f->products[0]));
    }
    return most;
}

static char *describe_faster(const inspection_list *list, advice_line *line)
{
    double published = most_products(list, ATN_INVERSE_NR_PAPER);
    int fastest = ATN_INVERSE_NEWTON_SCHULZ;
    for (int method = fastest; method < ATN_INVERSE_EIG; method++)
        if (most_products(list, method) < most_products(list, fastest))
            fastest = method;
    double least = most_products(list, fastest);
    const char *name = atn_inverse_name((atn_inverse_method)fastest);
    if (!isfinite(least) || !(published > 0))
        return NULL;
    note(line, NULL, name, "products_1e3", least);
    note_paper(line, NULL, "products_1e3", published);
    char *theirs = isfinite(published) ? must_format("takes up to %g", published)
                                       : must_format("does not get there within 128 everywhere");
    bool faster = least <= 0.75 * published;
    line->level = faster ? ADVICE_TIP : ADVICE_FINE;
    char *text =
        least == 0
            ? must_format("X_0 of %s is below 1e-3 everywhere, with no products of m x m "
                          "matrices; nr-paper %s.",
                          name, theirs)
            : must_format(faster
                              ? "%s brings every residual below 1e-3 in at most %g products of m "
                                "x m matrices; nr-paper %s."
                              : "No iteration is much faster: %s takes up to %g products of m x "
                                "m matrices to 1e-3, nr-paper %s.",
                          name, least, theirs);
    free(theirs);
    return text;
}

/* ---- Landmarks ---- */

typedef struct {
    int64_t count;
    double error, ratio; /* medians over heads; ratio is NaN unless it is known for all of them */
    double stride;
} sampling_summary;

static sampling_summary errors_of(const inspection_list *list, double m, int sampling)
{
    sampling_summary e = {0, NAN, NAN, NAN};
    double *errors = must_allocate((size_t)list->count, sizeof *errors);
    double *ratios = must_allocate((size_t)list->count, sizeof *ratios);
    for (int64_t i = inspections_find(list, 0, m, sampling); i >= 0;
         i = inspections_find(list, i + 1, m, sampling)) {
        errors[e.count] = list->items[i]->trace_error;
        ratios[e.count++] = list->items[i]->trace_ratio;
        e.stride = list->items[i]->stride;
    }
    if (e.count > 0) {
        e.error = median(e.count, errors);
        median(e.count, ratios); /* sorts, NaN last */
        e.ratio = isnan(ratios[e.count - 1]) ? NAN : median(e.count, ratios);
    }
    free(ratios);
    free(errors);
    return e;
}

/* A phrase for the landmarks of a sampling; to be freed. */
static char *describe_sampling(int sampling, const sampling_summary *e)
{
    static const char *const words[SAMPLINGS] = {[2] = "random tokens",
                                                 "the first tokens",
                                                 "k-means centroids",
                                                 "tokens drawn by leverage scores",
                                                 "tokens by randomly pivoted Cholesky",
                                                 "tokens by greedy Cholesky"};
    if (sampling == 0)
        return must_format("averages of %g x %g tokens", e->stride, e->stride);
    if (sampling == 1)
        return must_format("averages of %g consecutive tokens", e->stride);
    return must_format("%s", sampling == SAMPLING_GIVEN ? "the given landmarks" : words[sampling]);
}

static char *describe_error(const sampling_summary *e)
{
    return isnan(e->ratio) ? must_format("%.2g of tr(S)", e->error)
                           : must_format("%.2g times the best possible", e->ratio);
}

/* Errors below this, or closer to each other than this factor, are treated as equal. */
static const double small_error = 1e-6, close_errors = 1.5;

/* ", medians of 8 heads, on 1024 of its 3136 tokens"; to be freed. */
static char *describe_basis(const inspection_list *list, const inspection *i, int64_t heads)
{
    char *part = describe_subset(i->compared, i->tokens);
    char *text = inspections_heads(list) > 1 ? must_format(", medians of %" PRId64 " heads%s%s",
                                                           heads, *part ? "," : "", part)
                                             : must_format("%s%s", *part ? "," : "", part);
    free(part);
    return text;
}

/* Finds the errors of every sampling with m landmarks. best and worst must be the main one on
 * entry. */
static void rank_samplings(const inspection_list *list, double m, sampling_summary e[SAMPLINGS],
                           int *best, int *worst)
{
    for (int i = 0; i < SAMPLINGS; i++)
        e[i] = errors_of(list, m, i);
    for (int i = 0; i < SAMPLINGS; i++) {
        *best = e[i].error < e[*best].error ? i : *best;
        *worst = e[i].error > e[*worst].error ? i : *worst;
    }
}

/* Adds errors, which are medians over heads. */
static void note_errors(advice_line *line, const inspection *i, int sampling,
                        const sampling_summary *e)
{
    const char *name = inspect_samplings[sampling].name;
    advice_number *first = &line->numbers[line->number_count];
    note(line, i, name, "trace_error", e->error);
    note(line, i, name, "trace_ratio", e->ratio);
    first[0].batch = first[1].batch = first[0].head = first[1].head = NAN;
}

static char *describe_samplings(const inspection_list *list, advice_line *line)
{
    double m = inspections_usual(list);
    int64_t first = inspections_find(list, 0, m, -1);
    if (first < 0)
        return NULL;
    const inspection *i = list->items[first];
    int own = i->sampling, best = own, worst = own;
    sampling_summary e[SAMPLINGS];
    rank_samplings(list, m, e, &best, &worst);
    if (i->m == i->tokens && own != SAMPLING_GIVEN) {
        note_errors(line, i, own, &e[own]);
        return must_format("All %g tokens are landmarks: S^ is S, to %.2g of tr(S).", m,
                           e[own].error);
    }
    bool better = e[own].error > small_error && e[best].error * close_errors < e[own].error;
    bool matters = e[worst].error > small_error && e[worst].error > e[own].error * close_errors;
    int other = better ? best : worst;
    char *mine = describe_sampling(own, &e[own]), *mine_error = describe_error(&e[own]), *text;
    char *theirs = describe_sampling(other, &e[other]), *their_error = describe_error(&e[other]);
    char *basis = describe_basis(list, i, e[own].count);
    note_errors(line, i, better || matters ? own : best, &e[better || matters ? own : best]);
    note_errors(line, i, other, &e[other]);
    line->level = better ? ADVICE_TIP : ADVICE_FINE;
    if (better || matters)
        text = must_format("With %g landmarks %s %s%s %s: tr(S - S^) is %s, against %s%s.", m,
                           better ? "take" : "keep", better ? theirs : mine,
                           better ? " rather than" : ", not", better ? mine : theirs,
                           better ? their_error : mine_error, better ? mine_error : their_error,
                           basis);
    else {
        char *range = format_range(e[best].error, e[worst].error);
        text = must_format("With %g landmarks %s: tr(S - S^) is %s of tr(S)%s.", m,
                           e[worst].error > small_error ? "the sampling hardly matters"
                                                        : "any sampling does",
                           range, basis);
        free(range);
    }
    free(basis);
    free(their_error);
    free(theirs);
    free(mine_error);
    free(mine);
    return text;
}

/* The main item with the most landmarks, and of these the one with the largest error. */
static const inspection *farthest(const inspection_list *list)
{
    double *m = must_allocate((size_t)list->count + 1, sizeof *m);
    int count = inspections_landmarks(list, m);
    double most = count > 0 ? m[count - 1] : 0;
    const inspection *worst = NULL;
    free(m);
    for (int64_t i = inspections_find(list, 0, most, -1); i >= 0;
         i = inspections_find(list, i + 1, most, -1))
        if (!worst ||
            !(or_infinite(list->items[i]->trace_error) <= or_infinite(worst->trace_error)))
            worst = list->items[i];
    return worst;
}

static char *describe_reach(const inspection_list *list, advice_line *line)
{
    const inspection *i = farthest(list);
    if (!i)
        return NULL;
    char *at = place(list, i), *part = describe_subset(i->compared, i->tokens), *text;
    const char *cut = i->rank_f64 < i->m ? " with A+ as far as f64 resolves it" : "";
    note(line, i, NULL, "trace_error", i->trace_error);
    note(line, i, NULL, "best_trace_error", i->best_trace_error);
    note(line, i, NULL, "compared", i->compared);
    if (!(i->trace_error <= 0.5)) {
        line->level = ADVICE_WARNING;
        text = must_format("Landmarks do not reach the tokens: at %s, %.0f%% of tr(S) is missed%s%s"
                           ", and the best matrix of that rank misses %.0f%%%s",
                           at, 100 * i->trace_error, part, cut, 100 * i->best_trace_error,
                           i->best_trace_error > 0.5
                               ? ". S is not of low rank: scale the tokens down, or take more "
                                 "landmarks."
                               : ".");
    } else
        text = must_format(
            "%g landmarks reach the tokens: at most %.2g of tr(S) is missed%s%s (%s); the best "
            "matrix of that rank misses %.2g.",
            i->m, i->trace_error, part, cut, at, i->best_trace_error);
    free(part);
    free(at);
    return text;
}

/* Extrapolates a norm over some tokens to all tokens: P P^T is a sum over tokens. */
static double over_all_tokens(const inspection *i, double norm)
{
    return norm * (i->tokens / i->norm_tokens);
}

static double soft_norm_of(const inspection *i)
{
    return over_all_tokens(i, i->soft_norm);
}

/* "batch 0, head 3, m = 49, n = 784", and the number of tokens it is estimated from. To be freed.
 */
static char *describe_norm_basis(const inspection_list *list, const inspection *i)
{
    char *at = place(list, i);
    char *text = i->norm_tokens < i->tokens
                     ? must_format("%s, n = %.0f, estimated from %.0f of them", at, i->tokens,
                                   i->norm_tokens)
                     : must_format("%s, n = %.0f", at, i->tokens);
    free(at);
    return text;
}

/* A gain above LARGE_NORM is a warning: an output two digits larger than V dominates the residual
 * sum. A gain that is smaller by WORTHWHILE_GAIN is worth a change. */
enum { LARGE_NORM = 100, WORTHWHILE_GAIN = 4 };

static char *describe_norms(const inspection_list *list, advice_line *line)
{
    extremes e = find_extremes(list, soft_norm_of, LARGE_NORM);
    if (e.known == 0)
        return NULL;
    const inspection *i = e.most;
    char *basis = describe_norm_basis(list, i), *text;
    char *plain = format_number(soft_norm_of(i));
    char *normalised = format_number(over_all_tokens(i, i->softpp_norm));
    note_count(line, e.over, e.known);
    note(line, i, NULL, "soft_norm", i->soft_norm);
    note(line, i, NULL, "softpp_norm", i->softpp_norm);
    note(line, i, NULL, "norm_tokens", i->norm_tokens);
    bool gains = i->softpp_norm * WORTHWHILE_GAIN <= i->soft_norm;
    line->level = e.over > 0 ? ADVICE_WARNING : ADVICE_FINE;
    if (e.over > 0)
        text =
            must_format("|S^|_2 reaches %s (%s): V may be amplified that many times. With SOFT++'s "
                        "symmetric normalisation it is %s%s",
                        plain, basis, normalised,
                        gains ? ": normalise." : ", which gains little: divide by n as well.");
    else
        text = must_format("|S^|_2 is at most %s (%s); with SOFT++'s symmetric normalisation %s.",
                           plain, basis, normalised);
    free(normalised);
    free(plain);
    free(basis);
    return text;
}

static double off_diagonal(const inspection *i)
{
    return i->m > 1 ? i->norm1 - 1 : NAN;
}

/* A is I to within 10 %. */
static const double nearly_nothing = 0.1;

static char *describe_apart(const inspection_list *list, advice_line *line)
{
    extremes e = find_extremes(list, off_diagonal, nearly_nothing);
    if (e.known == 0 || e.over > 0)
        return NULL;
    const inspection *worst = find_extremes(list, kappa_of, 0).most;
    note(line, e.most, NULL, "norm1", e.most->norm1);
    note(line, worst, NULL, "kappa", worst->kappa);
    line->level = ADVICE_TIP;
    return must_format(
        "Landmarks are so far apart that A is nearly I: row sums are at most 1 + %.2g, "
        "kappa(A) at most %.3g. The inverse changes little.",
        off_diagonal(e.most), worst->kappa);
}

/* ---- The table ---- */

static const struct {
    const char *name, *basis;
    char *(*say)(const inspection_list *list, advice_line *line); /* level: fine on entry */
} rules[ADVICE_RULES] = {
    {"steps", "measured", describe_steps},          {"start", "predicted", describe_start},
    {"modes", "predicted", describe_modes},         {"rank", "measured", describe_rank},
    {"certified", "certified", describe_certified}, {"unresolved", "measured", describe_unresolved},
    {"precision", "measured", describe_precisions}, {"too-many", "measured", describe_too_many},
    {"faster", "measured", describe_faster},        {"samplings", "measured", describe_samplings},
    {"reach", "measured", describe_reach},          {"norms", "measured", describe_norms},
    {"apart", "measured", describe_apart},
};

int advice_make(const inspection_list *list, advice_line lines[ADVICE_RULES])
{
    int count = 0;
    advice_line all[ADVICE_RULES];
    for (int i = 0; i < ADVICE_RULES; i++) {
        all[i] =
            (advice_line){.rule = rules[i].name, .basis = rules[i].basis, .level = ADVICE_FINE};
        all[i].text = rules[i].say(list, &all[i]);
    }
    for (int level = ADVICE_WARNING; level <= ADVICE_FINE; level++)
        for (int i = 0; i < ADVICE_RULES; i++)
            if (all[i].text && (int)all[i].level == level)
                lines[count++] = all[i];
    return count;
}

void advice_free(int count, advice_line *lines)
{
    for (int i = 0; i < count; i++)
        free(lines[i].text);
}

const char *advice_level_name(advice_level level)
{
    static const char *const names[] = {"warning", "tip", "fine"};
    return names[level];
}

static int count_level(int count, const advice_line *lines, advice_level level)
{
    int number = 0;
    for (int i = 0; i < count; i++)
        number += lines[i].level == level;
    return number;
}

char *advice_headline(int count, const advice_line *lines)
{
    int warnings = count_level(count, lines, ADVICE_WARNING);
    int tips = count_level(count, lines, ADVICE_TIP), fine = count_level(count, lines, ADVICE_FINE);
    if (warnings > 0)
        return must_format("%d warning%s, %d tip%s, %d point%s in order", warnings,
                           warnings == 1 ? "" : "s", tips, tips == 1 ? "" : "s", fine,
                           fine == 1 ? "" : "s");
    return must_format("No warnings: %d point%s in order, %d tip%s", fine, fine == 1 ? "" : "s",
                       tips, tips == 1 ? "" : "s");
}

/* Words in lines of at most 96 characters, indented. */
static void print_wrapped(const char *text, FILE *file)
{
    const int width = 96;
    int used = 0;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (used > 0 && used + 1 + length > width) {
            fprintf(file, "\n    ");
            used = 0;
        }
        used += fprintf(file, "%s%.*s", used > 0 ? " " : "", length, text);
        text += length;
        text += strspn(text, " ");
    }
    fprintf(file, "\n");
}

void advice_print(int count, const advice_line *lines, FILE *file)
{
    char *headline = advice_headline(count, lines);
    fprintf(file, "\n%s\n\n", headline);
    free(headline);
    for (int i = 0; i < count; i++) {
        char *line = must_format("%-8s%s [%s]", advice_level_name(lines[i].level), lines[i].text,
                                 lines[i].basis);
        print_wrapped(line, file);
        free(line);
    }
}
