/* SPDX-License-Identifier: BSD-3-Clause */
/* What every operator's calls promise: statuses, NaN only where it belongs, zeros for empty sums.
 */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "data.h"
#include "fixture.h"

static attention_case make(int op, int variant, atn_dtype dtype, int64_t tokens, bool optional)
{
    attention_choice choice = {.op = (atn_operator)op,
                               .variant = variant,
                               .dtype = dtype,
                               .shape = {2, 2, tokens, 5, 3, 0},
                               .cross = true,
                               .optional = optional,
                               .sampling = ATN_SAMPLING_CONV_CODE,
                               .seed = 50};
    return attention_case_make(&choice);
}

/* ---- NaN and infinity ---- */

enum { HIT = 2 }; /* the head that is spoilt: batch entry 1, head 0 */

static int64_t count_nan(const guarded *t, int64_t head)
{
    int64_t count = 0;
    for (int64_t i = 0; i < t->view.rows * t->view.cols; i++)
        count += isnan(guarded_at(t, head / t->view.heads, head % t->view.heads, i / t->view.cols,
                                  i % t->view.cols));
    return count;
}

static bool same_head(const guarded *x, const guarded *y, int64_t head)
{
    for (int64_t i = 0; i < x->view.rows * x->view.cols; i++) {
        int64_t b = head / x->view.heads, h = head % x->view.heads;
        int64_t row = i / x->view.cols, col = i % x->view.cols;
        if (guarded_at(x, b, h, row, col) != guarded_at(y, b, h, row, col))
            return false;
    }
    return true;
}

/* One result: all NaN in head HIT; unchanged in the others, apart from the effects of coupling. An
 * overflow may spread to the head that a coupled operator's start comes from. */
static void check_spoilt(const attention_case *c, const char *what, const guarded *t,
                         const guarded *clean, bool spread)
{
    const atn_variant *variant = &atn_operator_get(c->choice.op)->variants[c->choice.variant];
    bool coupled = variant->properties & ATN_IS_COUPLED;
    for (int64_t head = 0; head < 4; head++) {
        int64_t nans = count_nan(t, head), all = t->view.rows * t->view.cols;
        cr_expect(head == HIT ? nans == all
                              : (spread && coupled) ||
                                    (nans == 0 && (coupled || same_head(t, clean, head))),
                  "%s: %s of head %ld has %ld NaN of %ld%s", attention_case_label(c), what,
                  (long)head, (long)nans, (long)all,
                  same_head(t, clean, head) ? "" : ", other numbers than before");
    }
}

/* Puts a bad number into one input: 0 q, 1 k, 2 v, 3 dY. Returns whether there is such an input. */
static bool spoil(attention_case *c, int which, double bad)
{
    double *const inputs[] = {c->q, c->k, c->v, c->dout};
    const int64_t counts[] = {attention_case_queries(c), attention_case_keys(c),
                              attention_case_values(c), attention_case_outputs(c)};
    if (inputs[which])
        inputs[which][HIT * counts[which] / 4 + counts[which] / 8] = bad;
    return inputs[which];
}

static void check_nonfinite(atn_context *context, int op, int variant, atn_dtype dtype, int which,
                            double bad)
{
    attention_case c = make(op, variant, dtype, 6, true);
    attention_run clean = attention_run_make(&c, 0), r = attention_run_make(&c, 0);
    attention_run_forward(&clean, context);
    attention_run_backward(&clean, context);
    if (spoil(&c, which, bad)) {
        attention_run_load(&r);
        atn_status status = ATN_NONFINITE;
        if (which < 3) {
            status = attention_run_forward(&r, context);
            cr_expect(status == ATN_NONFINITE && r.info.failures >= 1 &&
                          attention_run_clean(&r, false), /* what is not written is NaN too */
                      "%s: %s, %ld failures, clean %d", attention_case_label(&c),
                      atn_status_name(status), (long)r.info.failures,
                      attention_run_clean(&r, false));
            check_spoilt(&c, "Y", &r.out, &clean.out, false);
        }
        status = attention_run_backward(&r, context);
        cr_expect(status == ATN_NONFINITE && r.info.failures >= 1 && attention_run_clean(&r, true),
                  "%s, backward: %s, %ld failures, clean %d", attention_case_label(&c),
                  atn_status_name(status), (long)r.info.failures, attention_run_clean(&r, true));
        for (int s = 0; s < SLOT_PARAMETERS; s++)
            if (r.gradients[s].memory)
                check_spoilt(&c, attention_slot_name(s), &r.gradients[s], &clean.gradients[s],
                             false);
        for (int s = SLOT_PARAMETERS; s < SLOT_COUNT; s++)
            cr_expect(!r.gradients[s].memory || count_nan(&r.gradients[s], 0) > 0,
                      "%s: gradient of %s hides a bad head", attention_case_label(&c),
                      attention_slot_name(s));
    }
    attention_run_free(&r);
    attention_run_free(&clean);
    attention_case_free(&c);
}

/* Heads other than HIT with other numbers than without what spoilt it. */
static int changed_heads(const guarded *t, const guarded *clean)
{
    int count = 0;
    for (int64_t head = 0; head < 4; head++)
        count += head != HIT && !same_head(t, clean, head);
    return count;
}

/* A head with NaN in dY alone takes part in what the heads of a batch share, whether that comes
 * from its own Q and K, scaled by `factor`, or not. One head may change: that which the shared
 * number is taken from, as its gradient has a part from each finite head. */
static void check_shared(atn_context *context, int op, int variant, double factor)
{
    attention_case c = make(op, variant, ATN_F64, 6, true);
    double *const tokens[] = {c.q, c.k};
    const int64_t counts[] = {attention_case_queries(&c) / 4, attention_case_keys(&c) / 4};
    for (int i = 0; i < 2; i++)
        for (int64_t j = 0; tokens[i] && j < counts[i]; j++)
            tokens[i][HIT * counts[i] + j] *= factor;
    attention_run clean = attention_run_make(&c, 0), r = attention_run_make(&c, 0);
    cr_expect_geq((int)attention_run_backward(&clean, context), 0);
    spoil(&c, 3, NAN);
    attention_run_load(&r);
    cr_expect_eq(attention_run_backward(&r, context), ATN_NONFINITE);
    for (int s = 0; s < SLOT_PARAMETERS; s++)
        cr_expect(!r.gradients[s].memory ||
                      changed_heads(&r.gradients[s], &clean.gradients[s]) <= 1,
                  "%s, %g times: %s of other heads has changed", attention_case_label(&c), factor,
                  attention_slot_name(s));
    attention_run_free(&r);
    attention_run_free(&clean);
    attention_case_free(&c);
}

Test(calls, bad_gradients_do_not_change_what_heads_share)
{
    static const double factors[] = {3, 1, 1 / 3.};
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int variant = 0; variant < info->variant_count; variant++)
            for (int i = 0; i < 3 && info->variants[variant].properties & ATN_IS_COUPLED; i++)
                check_shared(context, op, variant, factors[i]);
    }
    atn_context_free(context);
}

static const double bad[] = {NAN, INFINITY, -INFINITY};
enum { BAD = sizeof bad / sizeof *bad };

/* Every bad number in every input; on a device that may be emulated one in each. */
Test(calls, nonfinite_input_spoils_its_own_head_only)
{
    atn_context *context = fixture_context(1, NULL);
    int all = fixture_device() == ATN_CPU ? BAD : 1;
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        for (int variant = 0; variant < atn_operator_get((atn_operator)op)->variant_count;
             variant++)
            for (int which = 0; which < 4; which++)
                for (int i = 0; i < all; i++)
                    check_nonfinite(context, op, variant, (which + i) % 2 ? ATN_F32 : ATN_F64,
                                    which, bad[(which + i) % BAD]);
    atn_context_free(context);
}

/* A bad value of V all of whose weights are 0, because no key has a feature. */
Test(calls, nonfinite_value_without_weight)
{
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 2 * BAD && fixture_runs(atn_operator_get(ATN_COSFORMER)); i++) {
        attention_case c = make(ATN_COSFORMER, 0, i % 2 ? ATN_F32 : ATN_F64, 6, true);
        for (int64_t k = 0; k < attention_case_keys(&c); k++)
            c.k[k] = -fabs(c.k[k]);
        c.v[1] = bad[i / 2];
        attention_run r = attention_run_make(&c, 0);
        atn_status status = attention_run_forward(&r, context);
        cr_expect(status == ATN_NONFINITE && r.info.failures == 1, "%s, %g in V: %s, %ld failures",
                  attention_case_label(&c), bad[i / 2], atn_status_name(status),
                  (long)r.info.failures);
        attention_run_free(&r);
        attention_case_free(&c);
    }
    atn_context_free(context);
}

/* Finite inputs whose gradients leave the range of a type in one head. Those of f16 do so when they
 * are rounded, because they are computed in f32. */
static const struct {
    atn_dtype dtype;
    double dout[2], values; /* entries of dY by turns; a factor of V */
} overflows[] = {{ATN_F32, {3e38, 2.9e38}, 1e6}, {ATN_F16, {60000, 59000}, 100}};

static void check_overflow(atn_context *context, int op, int variant, int type)
{
    attention_case c = make(op, variant, overflows[type].dtype, 6, true);
    attention_run clean = attention_run_make(&c, 0), r = attention_run_make(&c, 0);
    cr_expect_geq((int)attention_run_backward(&clean, context), 0);
    int64_t outputs = attention_case_outputs(&c) / 4, values = attention_case_values(&c) / 4;
    for (int64_t i = 0; i < outputs; i++)
        c.dout[HIT * outputs + i] = overflows[type].dout[i % 2];
    for (int64_t i = 0; i < values; i++)
        c.v[HIT * values + i] *= overflows[type].values;
    attention_run_load(&r);
    atn_status status = attention_run_forward(&r, context);
    cr_expect(status >= 0 && status != ATN_NONFINITE, "%s: %s", attention_case_label(&c),
              atn_status_name(status));
    status = attention_run_backward(&r, context);
    cr_expect(status == ATN_NONFINITE && r.info.failures >= 1 && attention_run_clean(&r, true),
              "%s: %s, %ld failures, clean %d", attention_case_label(&c), atn_status_name(status),
              (long)r.info.failures, attention_run_clean(&r, true));
    for (int s = SLOT_PARAMETERS; s < SLOT_COUNT; s++)
        cr_expect(!r.gradients[s].memory || count_nan(&r.gradients[s], 0) > 0,
                  "%s: gradient of %s hides a bad head", attention_case_label(&c),
                  attention_slot_name(s));
    for (int s = 0; s < SLOT_PARAMETERS; s++)
        if (r.gradients[s].memory)
            check_spoilt(&c, attention_slot_name(s), &r.gradients[s], &clean.gradients[s], true);
    attention_run_free(&r);
    attention_run_free(&clean);
    attention_case_free(&c);
}

Test(calls, overflow_in_backward_spoils_its_own_head_only)
{
    atn_context *context = fixture_context(1, NULL);
    int types = fixture_device() == ATN_CUDA ? 2 : 1; /* the CPU computes in f32 and f64 only */
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        for (int variant = 0; variant < atn_operator_get((atn_operator)op)->variant_count;
             variant++)
            for (int type = 0; type < types; type++)
                check_overflow(context, op, variant, type);
    atn_context_free(context);
}

/* How many queries and keys each head has (heads: 0 for one), and the exponents of powers of two
 * that its tokens and linformer's E and F are multiplied by. With V small dV is the first gradient
 * to overflow, with V large dQ or dK, depending on Q and K. */
typedef struct {
    int64_t queries, keys, heads;
    int q, k, v, projections;
    bool cross, padding;
} sized;

static void scale(int64_t count, double *x, int power)
{
    for (int64_t i = 0; x && i < count; i++)
        x[i] = ldexp(x[i], power);
}

static void scale_tensor(const atn_tensor *t, int power)
{
    scale(t->heads * t->rows * t->cols, t->data, power);
}

/* Backward with entries of dY that are just below 2^exponent: if a gradient overflows all of them
 * are NaN, otherwise all are finite. Returns whether one did. */
static bool overflow_is_reported(atn_context *context, int op, int variant, const sized *s,
                                 double exponent)
{
    attention_choice choice = {.op = (atn_operator)op,
                               .variant = variant,
                               .dtype = ATN_F32,
                               .shape = {1, s->heads ? s->heads : 1, s->queries, 5, 5, s->keys},
                               .cross = s->cross,
                               .padding = s->padding,
                               .sampling = ATN_SAMPLING_CONV_CODE,
                               .seed = 51};
    attention_case c = attention_case_make(&choice);
    scale(attention_case_queries(&c), c.q, s->q);
    scale(attention_case_keys(&c), c.k, s->k);
    scale(attention_case_values(&c), c.v, s->v);
    scale_tensor(&c.desc.linformer.e, s->projections);
    scale_tensor(&c.desc.linformer.f, s->projections);
    if (c.desc.performer.feature_epsilon > 0) /* or the stabiliser's derivative nearly cancels */
        c.desc.performer.feature_epsilon = 1;
    for (int64_t i = 0; i < attention_case_values(&c) && s->queries == 1; i++)
        c.v[i] = fabs(c.v[i]); /* so that the mean of V is not small */
    for (int64_t i = 0; i < attention_case_outputs(&c); i++)
        c.dout[i] = exp2(exponent) * (i % 2 ? 0.99 : 0.97);
    attention_run r = attention_run_make(&c, 0);
    atn_status status = attention_run_backward(&r, context);
    bool overflowed = status == ATN_NONFINITE;
    for (int slot = 0; slot < SLOT_PARAMETERS; slot++) {
        const guarded *t = &r.gradients[slot];
        int64_t size = t->view.rows * t->view.cols, finite = 0;
        int64_t all = t->memory ? t->view.heads * size : 0;
        for (int64_t i = 0; i < all; i++)
            finite += isfinite(guarded_at(t, 0, i / size, i % size / t->view.cols,
                                          i % t->view.cols)) != 0;
        cr_expect(status >= 0 && finite == (overflowed ? 0 : all),
                  "%s, Q 2^%d, K 2^%d, V 2^%d, dY 2^%g: %s, and %d of %d numbers of %s are finite",
                  attention_case_label(&c), s->q, s->k, s->v, exponent, atn_status_name(status),
                  (int)finite, (int)all, attention_slot_name(slot));
    }
    attention_run_free(&r);
    attention_case_free(&c);
    return overflowed;
}

/* By bisection, so that dY is close to what makes the first number overflow. */
Test(calls, whichever_gradient_overflows_is_reported, .timeout = 120)
{
    static const sized sizes[] = {
        {.queries = 150, .v = -20, .cross = true},
        {.queries = 150, .cross = true},
        {.queries = 150, .v = 20, .cross = true},
        {.queries = 150, .q = -20, .k = 20, .v = 20, .cross = true},
        {.queries = 150, .q = 20, .k = -20, .v = 20, .cross = true},
        {.queries = 150, .k = 20, .v = -20, .cross = true},
        {.queries = 150, .k = -20, .v = -20, .projections = 20, .cross = true},
        {.queries = 20, .heads = 2, .k = 20, .projections = -20, .cross = true}, /* E is shared */
        {.queries = 150, .keys = 1, .v = -20, .cross = true},
        {.queries = 150, .keys = 1, .v = 20, .cross = true},
        {.queries = 1, .keys = 150, .v = 20, .cross = true},
        {.queries = 150, .q = -20},
        {.queries = 150, .padding = true},
        {.queries = 150, .v = 20, .padding = true},
        {.queries = 150, .q = -20, .padding = true},
        {.queries = 150, .q = -20, .v = 20, .padding = true},
    };
    enum { SIZED = sizeof sizes / sizeof *sizes, HALVINGS = 12 };
    atn_context *context = fixture_context(1, NULL);
    int reported = 0, run = 0;
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT && fixture_device() == ATN_CPU;
         op = fixture_next(op)) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int k = 0; k < SIZED * info->variant_count; k++) {
            const sized *s = &sizes[k % SIZED];
            if ((s->padding && !(info->capabilities & ATN_CAN_MASK)) ||
                (s->keys && !(info->capabilities & ATN_CAN_CROSS)) ||
                (s->heads && op != ATN_LINFORMER)) /* only its heads share a parameter here */
                continue;
            double finite = 90, overflow = 128;
            for (int i = 0; i < HALVINGS; i++) {
                double exponent = (finite + overflow) / 2;
                if (overflow_is_reported(context, op, k / SIZED, s, exponent))
                    overflow = exponent;
                else
                    finite = exponent;
            }
            reported += overflow < 128;
            run++;
        }
    }
    cr_expect(fixture_device() != ATN_CPU || (2 * reported > run && run > 100), "%d of %d",
              reported, run);
    atn_context_free(context);
}

/* A query that sees no key and has no feature: NaN of its dY is in no gradient. */
Test(calls, nonfinite_slope_without_keys)
{
    atn_context *context = fixture_context(1, NULL);
    const atn_operator_info *info = atn_operator_get(ATN_COSFORMER);
    for (int variant = 0; variant < info->variant_count && fixture_runs(info); variant++) {
        attention_choice choice = {.op = ATN_COSFORMER,
                                   .variant = variant,
                                   .shape = {1, 1, 6, 4, 3, 0},
                                   .cross = true,
                                   .padding = true,
                                   .seed = 52};
        attention_case c = attention_case_make(&choice);
        memset(c.query_mask, 1, 6);
        memset(c.key_mask, 0, 6);
        for (int64_t i = 0; i < attention_case_queries(&c); i++)
            c.q[i] = -fabs(c.q[i]);
        c.dout[4] = NAN;
        attention_run r = attention_run_make(&c, 0);
        atn_status status = attention_run_backward(&r, context);
        cr_expect_eq(status, ATN_NONFINITE, "%s: %s", attention_case_label(&c),
                     atn_status_name(status));
        attention_run_free(&r);
        attention_case_free(&c);
    }
    atn_context_free(context);
}

/* ---- Shapes without elements ---- */

/* Y has no elements, the gradients are 0. */
Test(calls, empty_shapes_have_zero_gradients)
{
    static const atn_attention_shape shapes[] = {{0, 2, 5, 4, 4, 0},
                                                 {2, 0, 5, 4, 4, 0},
                                                 {1, 2, 0, 4, 4, 0},
                                                 {1, 2, 5, 4, 0, 0},
                                                 {0, 0, 0, 0, 0, 0}};
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            attention_choice choice = {.op = (atn_operator)op,
                                       .dtype = ATN_F64,
                                       .shape = shapes[i],
                                       .cross = true,
                                       .optional = shapes[i].heads > 0,
                                       .sampling = ATN_SAMPLING_WINDOW,
                                       .seed = 60};
            attention_case c = attention_case_make(&choice);
            attention_run r = attention_run_make(&c, 2);
            atn_status status = attention_run_forward(&r, context);
            if (status == ATN_OK)
                status = attention_run_backward(&r, context);
            bool empty = attention_case_outputs(&c) == 0; /* xca: value_dim is dim */
            attention_slots slots = attention_run_slots(&r);
            double sum = 0;
            for (int s = 0; s < SLOT_COUNT; s++)
                sum += judge_largest(attention_slot_count(&c, s), slots.of[s]);
            attention_slots_free(&slots);
            cr_expect(!empty || (status == ATN_OK && r.info.failures == 0 && sum == 0),
                      "%s: %s (%s), gradients of %g", attention_case_label(&c),
                      atn_status_name(status), atn_last_error(context), sum);
            attention_run_free(&r);
            attention_case_free(&c);
        }
    atn_context_free(context);
}

/* ---- Strides ---- */

/* The order of every sum depends on the shape alone: whole vectors and 49 landmarks, for which
 * there are loops of their own, and other numbers. */
Test(calls, strides_change_no_bit, .timeout = 120)
{
    static const atn_attention_shape shapes[] = {{1, 2, 150, 32, 32, 0}, {1, 1, 70, 21, 19, 0}};
    atn_context *context = fixture_context(2, NULL);
    int run = 0;
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        for (int i = 0; fixture_device() == ATN_CPU && i < 4; i++, run++) {
            attention_choice choice = {.op = (atn_operator)op,
                                       .dtype = i % 2 ? ATN_F64 : ATN_F32,
                                       .shape = shapes[i / 2],
                                       .cross = true,
                                       .sampling = ATN_SAMPLING_FIRST,
                                       .landmarks = i / 2 ? 7 : 49,
                                       .seed = 61};
            attention_case c = attention_case_make(&choice);
            int64_t count;
            double *want = attention_run_results(&c, 0, context, &count);
            for (int layout = 1; layout < GUARDED_LAYOUT_COUNT; layout++) {
                double *got = attention_run_results(&c, layout, context, &count);
                int64_t other = 0;
                for (int64_t e = 0; e < count; e++)
                    other += got[e] != want[e];
                cr_expect(other == 0, "%s, layout %d: %d of %d differ", attention_case_label(&c),
                          layout, (int)other, (int)count);
                free(got);
            }
            free(want);
            attention_case_free(&c);
        }
    cr_expect(fixture_device() != ATN_CPU || run >= ATN_OPERATOR_COUNT);
    atn_context_free(context);
}

/* ---- Backward after forward ---- */

enum { USUAL, ONE_INPUT, PADDED, PADDED_INPUT, NAN_VALUE, NAN_SLOPE, CASES = NAN_SLOPE + 4 };

static attention_case case_after_forward(int op, int variant, int kind)
{
    bool exact = op == ATN_NYSTROMFORMER && kind == PADDED_INPUT;
    attention_choice choice = {.op = (atn_operator)op,
                               .variant = variant,
                               .dtype = (variant + kind) % 2 ? ATN_F64 : ATN_F32,
                               .shape = {2, 2, 130, 5, 4, kind == PADDED ? 70 : 0},
                               .causal = kind == ONE_INPUT,
                               .landmarks = exact ? 130 : 0,
                               .cross = kind != ONE_INPUT && kind != PADDED_INPUT,
                               .padding = kind == PADDED || kind == PADDED_INPUT,
                               .optional = kind == USUAL,
                               .sampling = ATN_SAMPLING_CONV_CODE,
                               .seed = 60};
    attention_case c = attention_case_make(&choice);
    if (kind == NAN_VALUE)
        c.v[3] = NAN;
    if (kind >= NAN_SLOPE) /* in each of the heads */
        c.dout[(kind - NAN_SLOPE) * 130 * c.shape.value_dim + 3] = NAN;
    return c;
}

/* Results that forward left are those that backward would compute again: blocks of 64 tokens, with
 * and without padding and K; and forward's NaN are not forgotten. */
Test(calls, backward_after_forward_has_the_same_bits)
{
    atn_context *context = fixture_context(2, NULL);
    int run = 0;
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        for (int v = 0; v < atn_operator_get((atn_operator)op)->variant_count; v++)
            for (int kind = 0; kind < (fixture_device() == ATN_CPU ? CASES : 1); kind++, run++) {
                attention_case c = case_after_forward(op, v, kind);
                attention_run alone = attention_run_make(&c, kind % GUARDED_LAYOUT_COUNT);
                attention_run both = attention_run_make(&c, kind % GUARDED_LAYOUT_COUNT);
                atn_status first = attention_run_backward(&alone, context);
                atn_status second = attention_run_training(&both, context, kind % 2);
                cr_expect(first >= 0 && first == second, "%s, case %d: %s and %s (%s)",
                          attention_case_label(&c), kind, atn_status_name(first),
                          atn_status_name(second), atn_last_error(context));
                cr_expect((first == ATN_NONFINITE) == (kind >= NAN_VALUE), "%s, case %d",
                          attention_case_label(&c), kind);
                cr_expect(attention_run_clean(&both, true), "%s", attention_case_label(&c));
                for (int i = 0; i < SLOT_COUNT; i++)
                    cr_expect(!both.gradients[i].memory ||
                                  guarded_same_bits(&alone.gradients[i], &both.gradients[i]),
                              "%s, case %d: %s", attention_case_label(&c), kind,
                              attention_slot_name(i));
                attention_run_free(&both);
                attention_run_free(&alone);
                attention_case_free(&c);
            }
    cr_expect(run > ATN_OPERATOR_COUNT, "%d", run);
    atn_context_free(context);
}

static void expect_same_gradients(const attention_run *want, const attention_run *got,
                                  const char *what)
{
    for (int i = 0; i < SLOT_COUNT; i++)
        cr_expect(!got->gradients[i].memory ||
                      guarded_same_bits(&want->gradients[i], &got->gradients[i]),
                  "%s, %s: %s", attention_case_label(want->c), what, attention_slot_name(i));
}

/* More than one block of keys, where softmax's backward reads what forward kept of each query: with
 * few queries of many keys, with Y and without, in parts of a head and as a whole, with most
 * weights on one key, and in nystromformer, for which m = n is softmax. */
Test(calls, softmax_after_forward_has_the_same_bits)
{
    static const struct {
        atn_operator op;
        int64_t tokens, heads, landmarks;
        bool causal, padding, optional; /* optional: with nystromformer's residual */
        double factor;                  /* of Q */
        int64_t keys;                   /* 0: as many */
    } rows[] = {
        {ATN_SOFTMAX, 300, 1, 0, false, false, false, 1, 0},
        {ATN_SOFTMAX, 300, 5, 0, false, false, false, 1, 0},
        {ATN_SOFTMAX, 300, 1, 0, true, false, false, 1, 0},
        {ATN_SOFTMAX, 300, 2, 0, false, true, false, 1, 0},
        {ATN_SOFTMAX, 900, 1, 0, false, false, false, 30, 0},
        {ATN_SOFTMAX, 900, 1, 0, true, false, false, 30, 0},
        {ATN_SOFTMAX, 66, 1, 0, false, false, false, 1, 1100},
        {ATN_SOFTMAX, 66, 2, 0, false, true, false, 30, 1100},
        {ATN_NYSTROMFORMER, 300, 2, 300, false, false, false, 1, 0},
        {ATN_NYSTROMFORMER, 300, 2, 300, false, false, true, 1, 0},
        {ATN_NYSTROMFORMER, 300, 2, 9, false, false, false, 1, 0},
        {ATN_NYSTROMFORMER, 300, 1, 9, false, false, true, 1, 0},
        {ATN_NYSTROMFORMER, 300, 1, 270, false, false, false, 1, 0},
        {ATN_NYSTROMFORMER, 300, 1, 270, false, false, true, 1, 0},
    };
    atn_context *context = fixture_context(4, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && fixture_device() == ATN_CPU; i++)
        for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++) {
            attention_choice choice = {
                .op = rows[i].op,
                .dtype = (atn_dtype)dtype,
                .shape = {1, rows[i].heads, rows[i].tokens, 5, 4, rows[i].keys},
                .causal = rows[i].causal,
                .padding = rows[i].padding,
                .optional = rows[i].optional,
                .cross = true,
                .seed = 61};
            attention_case c = attention_case_make(&choice);
            c.desc.nystromformer.landmarks =
                rows[i].landmarks; /* the case itself has less than n */
            for (int64_t k = 0; k < attention_case_queries(&c); k++)
                c.q[k] *= rows[i].factor;
            attention_run alone = attention_run_make(&c, 0);
            cr_expect(attention_run_backward(&alone, context) >= 0);
            for (int give_y = 0; give_y < 2; give_y++) {
                attention_run both = attention_run_make(&c, 0);
                cr_expect(attention_run_training(&both, context, give_y) >= 0);
                expect_same_gradients(&alone, &both, give_y ? "given Y" : "without Y");
                attention_run_free(&both);
            }
            attention_run_free(&alone);
            attention_case_free(&c);
        }
    atn_context_free(context);
}

static void expect_y_is_not_read(atn_context *context, const attention_choice *choice)
{
    attention_case c = attention_case_make(choice);
    attention_run want = attention_run_make(&c, 0);
    cr_expect(attention_run_backward(&want, context) >= 0);
    for (int kind = 0; kind < 3; kind++) {
        attention_run run = attention_run_make(&c, 0);
        attention_placed p;
        atn_plan *plan;
        attention_run_place(&run, context, &p);
        cr_assert_eq(atn_attention_plan(context, &p.desc, &c.shape, &plan), ATN_OK);
        if (kind > 0)
            cr_expect(atn_attention_forward(plan, &p.inputs, &p.out, NULL) >= 0);
        if (kind == 1)
            cr_expect(atn_attention_backward(plan, &p.inputs, &p.dout, &p.gradients, NULL) >= 0);
        guarded_poison(&run.out); /* NaN */
        p.gradients.after_forward = kind < 2;
        p.gradients.y = &p.out;
        cr_expect(atn_attention_backward(plan, &p.inputs, &p.dout, &p.gradients, NULL) >= 0);
        if (fixture_device() == ATN_CPU)
            expect_same_gradients(&want, &run, "Y is NaN");
        atn_plan_free(plan);
        attention_placed_close(&p);
        attention_run_free(&run);
    }
    attention_run_free(&want);
    attention_case_free(&c);
}

/* Y counts only after forward: here there was none, or backward came between, or the caller does
 * not say so. */
Test(calls, y_without_forward_is_not_read)
{
    static const attention_choice choices[] = {
        {.op = ATN_SOFTMAX, .shape = {1, 1, 300, 5, 4, 0}, .cross = true, .seed = 62},
        {.op = ATN_LSH, .shape = {1, 1, 300, 5, 4, 0}, .seed = 62}};
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 2; i++)
        expect_y_is_not_read(context, &choices[i]);
    atn_context_free(context);
}

/* Y is what forward wrote, and of its shape. */
Test(calls, y_of_another_shape_is_refused)
{
    atn_context *context = fixture_context(1, NULL);
    attention_case c = case_after_forward(ATN_SOFTMAX, 0, USUAL);
    attention_run run = attention_run_make(&c, 0);
    attention_placed p;
    atn_plan *plan;
    attention_run_place(&run, context, &p);
    cr_assert_eq(atn_attention_plan(context, &p.desc, &c.shape, &plan), ATN_OK);
    atn_tensor other = p.out;
    other.rows--;
    p.gradients.y = &other;
    cr_expect_eq(atn_attention_backward(plan, &p.inputs, &p.dout, &p.gradients, NULL),
                 ATN_ERR_SHAPE);
    cr_expect(strncmp(atn_last_error(context), "y: ", 3) == 0, "%s", atn_last_error(context));
    p.gradients.y = p.gradients.v;
    atn_status status = atn_attention_backward(plan, &p.inputs, &p.dout, &p.gradients, NULL);
    cr_expect(status < 0 && strstr(atn_last_error(context), "overlap"), "%s",
              atn_last_error(context));
    atn_plan_free(plan);
    attention_placed_close(&p);
    attention_run_free(&run);
    attention_case_free(&c);
    atn_context_free(context);
}

/* A plan that is called with other inputs: each forward replaces what the one before left, and
 * after a backward call nothing is left. */
Test(calls, a_plan_keeps_what_its_last_forward_left)
{
    atn_context *context = fixture_context(2, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT && fixture_device() == ATN_CPU;
         op = fixture_next(op)) {
        attention_case other = case_after_forward(op, 0, USUAL),
                       c = case_after_forward(op, 0, USUAL);
        for (int64_t i = 0; i < attention_case_values(&other); i++)
            other.v[i] *= 2;
        for (int64_t i = 0; i < attention_case_queries(&other); i++)
            other.q[i] *= 0.5;
        attention_run want = attention_run_make(&c, 0), run = attention_run_make(&c, 0);
        attention_run first = attention_run_make(&other, 0);
        attention_placed p, before;
        atn_plan *plan;
        cr_expect(attention_run_backward(&want, context) >= 0);
        attention_run_place(&first, context, &before);
        attention_run_place(&run, context, &p);
        p.gradients.after_forward = true;
        cr_assert_eq(atn_attention_plan(context, &p.desc, &c.shape, &plan), ATN_OK);
        cr_expect(atn_attention_forward(plan, &before.inputs, &before.out, NULL) >= 0);
        cr_expect(atn_attention_forward(plan, &p.inputs, &p.out, NULL) >= 0);
        for (int again = 0; again < 2; again++) {
            cr_expect(atn_attention_backward(plan, &p.inputs, &p.dout, &p.gradients, NULL) >= 0);
            expect_same_gradients(&want, &run, again ? "after backward" : "after forward");
        }
        atn_plan_free(plan);
        attention_placed_close(&p);
        attention_placed_close(&before);
        attention_run_free(&first);
        attention_run_free(&run);
        attention_run_free(&want);
        attention_case_free(&c);
        attention_case_free(&other);
    }
    atn_context_free(context);
}

/* A head that is finite, and then has NaN: what the first call left of it takes no part in what
 * heads share (nystromformer: the largest norm). */
Test(calls, what_a_nan_head_was_does_not_matter)
{
    atn_context *context = fixture_context(2, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT && fixture_device() == ATN_CPU;
         op = fixture_next(op)) {
        attention_case other = case_after_forward(op, 0, USUAL),
                       c = case_after_forward(op, 0, USUAL);
        for (int64_t i = 0; i < c.shape.tokens * c.shape.dim; i++)
            other.q[i] *= 8;
        c.q[0] = NAN;
        attention_run want = attention_run_make(&c, 0), run = attention_run_make(&c, 0);
        attention_run first = attention_run_make(&other, 0);
        attention_placed p, before;
        atn_plan *plan;
        cr_expect_eq(attention_run_forward(&want, context), ATN_NONFINITE);
        attention_run_place(&first, context, &before);
        attention_run_place(&run, context, &p);
        cr_assert_eq(atn_attention_plan(context, &p.desc, &c.shape, &plan), ATN_OK);
        cr_expect(atn_attention_forward(plan, &before.inputs, &before.out, NULL) >= 0);
        cr_expect_eq(atn_attention_forward(plan, &p.inputs, &p.out, NULL), ATN_NONFINITE);
        atn_plan_free(plan);
        attention_placed_close(&p);
        attention_placed_close(&before);
        cr_expect(guarded_same_bits(&want.out, &run.out), "%s", attention_case_label(&c));
        attention_run_free(&first);
        attention_run_free(&run);
        attention_run_free(&want);
        attention_case_free(&c);
        attention_case_free(&other);
    }
    atn_context_free(context);
}

/* dQ of sima needs S = K^^T V alone: with after_forward it is that of the V that forward saw. */
Test(calls, backward_after_forward_does_not_compute_sums_again)
{
    atn_context *context = fixture_context(1, NULL);
    attention_case c = case_after_forward(ATN_SIMA, 0, USUAL);
    attention_run want = attention_run_make(&c, 0), run = attention_run_make(&c, 0);
    attention_placed p;
    atn_plan *plan;
    cr_expect_eq(attention_run_backward(&want, context), ATN_OK);
    attention_run_place(&run, context, &p);
    cr_assert_eq(atn_attention_plan(context, &p.desc, &c.shape, &plan), ATN_OK);
    cr_expect_eq(atn_attention_forward(plan, &p.inputs, &p.out, NULL), ATN_OK);
    for (int64_t i = 0; i < attention_case_values(&c); i++)
        c.v[i] += 1;
    attention_run_load(&run);
    for (int after = 1; after >= 0 && fixture_device() == ATN_CPU; after--) {
        p.gradients.after_forward = after;
        cr_expect_eq(atn_attention_backward(plan, &p.inputs, &p.dout, &p.gradients, NULL), ATN_OK);
        cr_expect_eq(guarded_same_bits(&want.gradients[SLOT_Q], &run.gradients[SLOT_Q]),
                     after != 0);
    }
    atn_plan_free(plan);
    attention_placed_close(&p);
    attention_run_free(&run);
    attention_run_free(&want);
    attention_case_free(&c);
    atn_context_free(context);
}
