/* SPDX-License-Identifier: BSD-3-Clause */
/* The attention operators' references: answers worked out by hand, and every derivative against
 * differences of the value. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention.h"
#include "ratios.h"

/* Room for everything here. */
enum { MOST = 512 };

static void expect_all(const char *what, int64_t count, const double *got, const double *want,
                       double tolerance)
{
    ref_difference d = ref_compare_f64(1, count, got, count, want, count);
    cr_expect(d.max_abs <= tolerance, "%s max_abs=%g at %d got=%.17g want=%.17g", what, d.max_abs,
              (int)d.worst_col, d.worst_got, d.worst_want);
}

/* Deterministic, nowhere 0, nowhere equal. */
static void fill_wave(int64_t count, double phase, double amplitude, double *x)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = amplitude * sin(phase + 2.385 * (double)i);
}

static atn_attention_desc describe(atn_operator op)
{
    return (atn_attention_desc){.op = op, .dtype = ATN_F64};
}

static atn_tensor parameter(double *data, int64_t heads, int64_t rows, int64_t cols)
{
    return atn_tensor_dense(data, ATN_F64, 1, heads, rows, cols);
}

/* ---- Derivatives against differences ---- */

/* The arrays Y depends on: 0, 1, 2 are q, k, v, then the parameters. */
enum { ARRAYS = 3 + ATN_PARAMETER_COUNT };

static double *array_of(const ref_attention_problem *p, int which, int64_t *count)
{
    const atn_attention_shape *s = &p->shape;
    int64_t keys = s->key_tokens ? s->key_tokens : s->tokens;
    const double *inputs[] = {p->q, p->k, p->v};
    int64_t sizes[] = {s->tokens * s->dim, keys * s->dim, keys * s->value_dim};
    if (which < 3) {
        *count = s->batch * s->heads * sizes[which];
        return (double *)inputs[which]; /* the test's own arrays, not constant */
    }
    atn_attention_desc desc = *p->desc;
    const atn_tensor *t = atn_attention_parameter(&desc, (atn_parameter)(which - 3));
    *count = t->heads * t->rows * t->cols;
    return t->data;
}

static double **slot_of(ref_attention_arrays *arrays, int which)
{
    double **const inputs[] = {&arrays->q, &arrays->k, &arrays->v};
    return which < 3 ? inputs[which] : &arrays->parameters[which - 3];
}

static const char *name_of(int which)
{
    static const char *const inputs[] = {"q", "k", "v"};
    return which < 3 ? inputs[which] : atn_parameter_name((atn_parameter)(which - 3));
}

static int64_t out_size(const ref_attention_problem *p)
{
    return p->shape.batch * p->shape.heads * p->shape.tokens * p->shape.value_dim;
}

static atn_status value_at(const ref_attention_problem *p, int64_t count, double *x,
                           const double *start, const double *direction, double t, double *out)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = start[i] + t * direction[i];
    atn_status status = ref_attention(p, out);
    memcpy(x, start, (size_t)count * sizeof *x);
    return status;
}

/* The difference quotient of fourth order: (8 (f(h) - f(-h)) - f(2h) + f(-2h)) / 12 h. */
static void difference_quotient(const ref_attention_problem *p, int which, const double *direction,
                                double h, double *quotient)
{
    static const double steps[] = {1, -1, 2, -2}, weights[] = {8, -8, -1, 1};
    int64_t count, size = out_size(p);
    double *x = array_of(p, which, &count), start[MOST], out[MOST];
    cr_assert(count <= MOST && size <= MOST);
    memcpy(start, x, (size_t)count * sizeof *x);
    memset(quotient, 0, (size_t)size * sizeof *quotient);
    for (int i = 0; i < 4; i++) {
        atn_status status = value_at(p, count, x, start, direction, steps[i] * h, out);
        cr_assert(status == ATN_OK, "%s", atn_status_name(status));
        for (int64_t j = 0; j < size; j++)
            quotient[j] += weights[i] * out[j] / (12 * h);
    }
}

/* Y' in a direction of one array. With h = 1e-3 the quotient's error is about h^4 = 1e-12 of the
 * fifth derivative and 1e-13 from rounding; 1e-8 leaves room for large fifth derivatives and none
 * for a missing term. */
static void expect_derivative(const char *what, const ref_attention_problem *p, int which)
{
    int64_t count, size = out_size(p);
    double *x = array_of(p, which, &count);
    if (!x)
        return;
    double direction[MOST], got[MOST], want[MOST], largest = 0, error = 0;
    cr_assert(count <= MOST && size <= MOST);
    fill_wave(count, 0.3 + which, 1, direction);
    ref_attention_arrays directions = {0};
    *slot_of(&directions, which) = direction;
    atn_status status = ref_attention_derivative(p, &directions, got);
    cr_assert(status == ATN_OK, "%s %s: %s", what, name_of(which), atn_status_name(status));
    difference_quotient(p, which, direction, 1e-3, want);
    for (int64_t j = 0; j < size; j++) {
        largest = fmax(largest, fabs(want[j]));
        error = fmax(error, fabs(got[j] - want[j]));
    }
    cr_expect(largest > 1e-4, "%s %s: nothing to see, %g", what, name_of(which), largest);
    cr_expect(error <= 1e-8 * largest, "%s %s: error=%g of %g", what, name_of(which), error,
              largest);
}

static void expect_derivatives(const char *what, const ref_attention_problem *p)
{
    for (int which = 0; which < ARRAYS; which++)
        expect_derivative(what, p, which);
}

/* A problem on waves: two batch entries of two heads. */
enum { B = 2, H = 2, N = 6, NK = 5, D = 3, DV = 2 };

typedef struct {
    double q[B * H * N * D], k[B * H * N * D], v[B * H * N * DV];
    ref_attention_problem p;
} waves;

/* lengths: K of its own with NK tokens; otherwise K = Q. */
static void make_waves(waves *w, const atn_attention_desc *desc, bool lengths)
{
    fill_wave(B * H * N * D, 1, 1, w->q);
    fill_wave(B * H * N * D, 2, 1, w->k);
    fill_wave(B * H * N * DV, 3, 1, w->v);
    w->p = (ref_attention_problem){.desc = desc,
                                   .shape = {B, H, N, D, DV, lengths ? NK : 0},
                                   .q = w->q,
                                   .k = lengths ? w->k : NULL,
                                   .v = w->v};
}

/* ---- Softmax ---- */

/* q = 1, 2 and k = 0, log 3, c = 1: weights 1:3 and 1:9. */
Test(attention, softmax_by_hand)
{
    static const double q[2] = {1, 2}, v[4] = {1, 10, 5, 50};
    const double k[2] = {0, log(3)};
    static const double want[4] = {4, 40, 4.6, 46}, causal[4] = {1, 10, 4.6, 46};
    atn_attention_desc desc = describe(ATN_SOFTMAX);
    ref_attention_problem p = {.desc = &desc, .shape = {1, 1, 2, 1, 2, 2}, .q = q, .k = k, .v = v};
    double out[4];
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("c = 1/sqrt(1)", 4, out, want, 1e-14);
    desc.causal = true;
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("causal", 4, out, causal, 1e-14);
    desc.causal = false;
    desc.logit_scale = 2; /* 1:9 and 1:81 */
    cr_expect(ref_attention(&p, out) == ATN_OK);
    static const double steeper[4] = {4.6, 46, 406 / 82.0, 4060 / 82.0};
    expect_all("c = 2", 4, out, steeper, 1e-14);
}

/* The default c is 1/sqrt(d): with d = 4 and q.k = 0, 2 log 3 the weights are 1:3. */
Test(attention, softmax_scale)
{
    static const double q[4] = {1, 1, 1, 1}, v[2] = {1, 5};
    const double l = log(3) / 2, k[8] = {0, 0, 0, 0, l, l, l, l};
    atn_attention_desc desc = describe(ATN_SOFTMAX);
    ref_attention_problem p = {.desc = &desc, .shape = {1, 1, 1, 4, 1, 2}, .q = q, .k = k, .v = v};
    double out;
    cr_expect(ref_attention(&p, &out) == ATN_OK && fabs(out - 4) < 1e-14, "%.17g", out);
}

/* Logits of a million: the largest wins alone, of two equal ones each has half. */
Test(attention, softmax_one_hot)
{
    static const double q[3] = {1e3, 1e3, -1e3}, k[3] = {-1e3, 1e3, 1e3}, v[3] = {7, 1, 3};
    static const double want[3] = {2, 2, 7};
    atn_attention_desc desc = describe(ATN_SOFTMAX);
    ref_attention_problem p = {.desc = &desc, .shape = {1, 1, 3, 1, 1, 3}, .q = q, .k = k, .v = v};
    double out[3];
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("one-hot", 3, out, want, 0);
}

/* A padded key, whatever it holds, is as if it were not in the list; a padded query's row is 0; no
 * key at all leaves 0. */
Test(attention, softmax_padding)
{
    double q[2] = {1, 2}, v[3] = {1, NAN, 5}, k[3] = {0, NAN, log(3)}, out[2];
    static const unsigned char keys[3] = {1, 0, 1}, queries[2] = {0, 1}, nobody[3] = {0};
    atn_attention_desc desc = describe(ATN_SOFTMAX);
    desc.padding = true;
    ref_attention_problem p = {.desc = &desc,
                               .shape = {1, 1, 2, 1, 1, 3},
                               .q = q,
                               .k = k,
                               .v = v,
                               .query_mask = queries,
                               .key_mask = keys};
    static const double want[2] = {0, 4.6}, zeros[2] = {0, 0};
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("padding", 2, out, want, 1e-14);
    p.key_mask = nobody;
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("no keys", 2, out, zeros, 0);
    p.key_mask = NULL;
    cr_expect(ref_attention(&p, out) == ATN_NONFINITE);
    v[1] = 0; /* k is still NaN */
    cr_expect(ref_attention(&p, out) == ATN_NONFINITE && isnan(out[1]));
}

Test(attention, softmax_derivatives)
{
    static const unsigned char queries[B * N] = {1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1};
    static const unsigned char keys[B * NK] = {1, 0, 1, 1, 1, 1, 1, 1, 0, 1};
    atn_attention_desc desc = describe(ATN_SOFTMAX);
    waves w;
    make_waves(&w, &desc, true);
    expect_derivatives("softmax", &w.p);
    w.p.query_mask = queries;
    w.p.key_mask = keys;
    expect_derivatives("softmax, padding", &w.p);
    make_waves(&w, &desc, false);
    desc.causal = true;
    expect_derivatives("softmax, causal, K = Q", &w.p);
}

/* ref_attention_gradient is the transposed derivative: weights . Y' = gradient . direction. */
Test(attention, gradient_is_transposed_derivative)
{
    double weights[B * H * N * DV], dout[MOST], gradient[MOST], direction[MOST];
    atn_attention_desc desc = describe(ATN_SOFTMAX);
    waves w;
    make_waves(&w, &desc, true);
    fill_wave(B * H * N * DV, 5, 1, weights);
    for (int which = 0; which < 3; which++) {
        int64_t count;
        array_of(&w.p, which, &count);
        ref_attention_arrays arrays = {0};
        fill_wave(count, 7, 1, direction);
        *slot_of(&arrays, which) = direction;
        cr_assert(ref_attention_derivative(&w.p, &arrays, dout) == ATN_OK);
        *slot_of(&arrays, which) = gradient;
        cr_assert(ref_attention_gradient(&w.p, weights, &arrays) == ATN_OK);
        double forth = 0, back = 0;
        for (int64_t i = 0; i < out_size(&w.p); i++)
            forth += weights[i] * dout[i];
        for (int64_t i = 0; i < count; i++)
            back += gradient[i] * direction[i];
        cr_expect(fabs(forth) > 1e-2 && fabs(forth - back) < 1e-13, "%s %.17g %.17g",
                  name_of(which), forth, back);
    }
}

/* ---- Linformer ---- */

/* E = F = I is softmax attention. */
Test(attention, linformer_identity)
{
    double identity[NK * NK] = {0}, got[B * H * N * DV], want[B * H * N * DV];
    for (int i = 0; i < NK; i++)
        identity[i * NK + i] = 1;
    atn_attention_desc desc = describe(ATN_LINFORMER), softmax = describe(ATN_SOFTMAX);
    desc.linformer.e = parameter(identity, 1, NK, NK);
    waves w;
    make_waves(&w, &desc, true);
    cr_expect(ref_attention(&w.p, got) == ATN_OK);
    w.p.desc = &softmax;
    cr_expect(ref_attention(&w.p, want) == ATN_OK);
    expect_all("E = I", B * H * N * DV, got, want, 1e-15);
}

/* Two keys summed into one column: K' = k_1 + 2 k_2 in column 1, k_1 in column 2; V' by F. */
Test(attention, linformer_by_hand)
{
    static const double q[1] = {1}, v[3] = {1, 5, 100};
    const double k[3] = {log(2), log(3), 100};
    double e[6] = {1, 1, 2, 0, 0, 0}, f[6] = {1, 0, 0, 1, 0, 0}; /* 3 x 2; row 3 for padding */
    static const unsigned char there[3] = {1, 1, 0};
    /* logits log 18 and log 2: weights 9:1; V' = (1, 5), with F = E (11, 1) */
    atn_attention_desc desc = describe(ATN_LINFORMER);
    desc.linformer.e = parameter(e, 1, 3, 2);
    desc.linformer.f = parameter(f, 1, 3, 2);
    ref_attention_problem p = {.desc = &desc, .shape = {1, 1, 1, 1, 1, 2}, .q = q, .k = k, .v = v};
    double out;
    cr_expect(ref_attention(&p, &out) == ATN_OK && fabs(out - 1.4) < 1e-14, "sliced %.17g", out);
    desc.linformer.f.data = NULL;
    cr_expect(ref_attention(&p, &out) == ATN_OK && fabs(out - 10) < 1e-14, "F = E %.17g", out);
    e[4] = e[5] = 3;
    p.shape.key_tokens = 3;
    p.key_mask = there;
    cr_expect(ref_attention(&p, &out) == ATN_OK && fabs(out - 10) < 1e-14, "padding %.17g", out);
    p.key_mask = NULL;
    cr_expect(ref_attention(&p, &out) == ATN_OK && fabs(out - 10) > 1, "no padding %.17g", out);
    desc.linformer.e.data = NULL;
    cr_expect(ref_attention(&p, &out) == ATN_ERR_VALUE);
}

Test(attention, linformer_derivatives)
{
    enum { R = 3, ROWS = NK + 2 };
    static const unsigned char keys[B * NK] = {1, 0, 1, 1, 1, 1, 1, 1, 0, 1};
    double e[H * ROWS * R], f[H * ROWS * R];
    fill_wave(H * ROWS * R, 4, 1, e);
    fill_wave(H * ROWS * R, 5, 1, f);
    atn_attention_desc desc = describe(ATN_LINFORMER);
    waves w;
    for (int heads = 1; heads <= H; heads++) {
        desc.linformer.e = parameter(e, heads, ROWS, R);
        desc.linformer.f = parameter(f, heads, ROWS, R);
        make_waves(&w, &desc, true);
        expect_derivatives("linformer", &w.p);
        desc.linformer.f.data = NULL;
        w.p.key_mask = keys;
        expect_derivatives("linformer, F = E, padding", &w.p);
    }
}
