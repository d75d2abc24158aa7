/* SPDX-License-Identifier: BSD-3-Clause */
/* The attention operators' references: answers worked out by hand, and every derivative against
 * differences of the value. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention.h"
#include "dense_soft.h"
#include "linear_algebra.h"
#include "newton.h"
#include "pseudo_inverse.h"
#include "ratios.h"
#include "sampling.h"

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

/* The central difference quotient of sixth order. */
#define STEP 1e-3
enum { POINTS = 6 };
static const double difference_steps[POINTS] = {1, -1, 2, -2, 3, -3};
static const double difference_weights[POINTS] = {45 / 60., -45 / 60., -9 / 60.,
                                                  9 / 60.,  1 / 60.,   -1 / 60.};

static void difference_quotient(const ref_attention_problem *p, int which, const double *direction,
                                double *quotient)
{
    int64_t count, size = out_size(p);
    double *x = array_of(p, which, &count), start[MOST], out[MOST];
    cr_assert(count <= MOST && size <= MOST);
    memcpy(start, x, (size_t)count * sizeof *x);
    memset(quotient, 0, (size_t)size * sizeof *quotient);
    for (int i = 0; i < POINTS; i++) {
        atn_status status =
            value_at(p, count, x, start, direction, difference_steps[i] * STEP, out);
        cr_assert(status == ATN_OK, "%s", atn_status_name(status));
        for (int64_t j = 0; j < size; j++)
            quotient[j] += difference_weights[i] * out[j] / STEP;
    }
}

/* Y' in a direction of one array. The quotient's error is about STEP^6 = 1e-18 of the
 * seventh derivative and 1e-13 from rounding; 1e-8 leaves room for large seventh derivatives and
 * none for a missing term. */
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
    difference_quotient(p, which, direction, want);
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

/* lengths: K is a separate tensor of NK tokens; otherwise K = Q. */
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

/* ---- SOFT and SOFT++ ---- */

/* Four tokens at equal distances, all of them landmarks: A = P = (1 - a) I + a J has the eigenvalue
 * l = 1 + 3 a on constants and l = 1 - a on what sums to 0, X has f(l + ridge) there, with
 * f(u) = (1 - (1 - alpha u^2)^(2^T)) / u, so Y has l^2 f; softpp: divided by D = 1 + 3 a. */
typedef struct {
    const char *name;
    atn_operator op;
    atn_inverse_desc inverse;
    double a, alpha; /* alpha < 0: the exact inverse, f(l) = 1 / l */
} equicorrelated;

static double filtered(const equicorrelated *c, double l)
{
    double u = l + c->inverse.ridge;
    double f = (1 - pow(1 - c->alpha * u * u, pow(2, c->inverse.iterations))) / u;
    return l * l * (c->alpha < 0 ? 1 / l : f) / (c->op == ATN_SOFTPP ? 1 + 3 * c->a : 1);
}

/* Tokens e_i sqrt(log(1/a) / log 2), s = log(2) / 2: exp(-s |x_i - x_j|^2) = a. */
static void spread_tokens(double a, double *tokens)
{
    memset(tokens, 0, 16 * sizeof *tokens);
    for (int i = 0; i < 4; i++)
        tokens[5 * i] = sqrt(log(1 / a) / log(2));
}

static atn_attention_desc describe_soft(atn_operator op, const atn_inverse_desc *inverse, int64_t m)
{
    atn_attention_desc desc = describe(op);
    desc.inverse = *inverse;
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = m};
    desc.scale = ATN_SCALE_VALUE;
    desc.scale_value = log(2) / 2;
    return desc;
}

static void expect_equicorrelated(const equicorrelated *c, const double *out, const double *v)
{
    double mean = (v[0] + v[1] + v[2] + v[3]) / 4, want[4];
    for (int i = 0; i < 4; i++)
        want[i] = filtered(c, 1 + 3 * c->a) * mean + filtered(c, 1 - c->a) * (v[i] - mean);
    expect_all(c->name, 4, out, want, 1e-13);
}

#define NEWTON(which, power, shift, cap)                                                           \
    .method = ATN_INVERSE_##which, .iterations = 3, .numerator = (power), .ridge = (shift),        \
    .search_cap = (cap)

/* |A|_1 = 1 + 3 a = 2.5 or 1.75. |I - alpha A|_1 = |1 - alpha| + 3 a alpha: for a = 1/2 and
 * alpha < 1 it is 1 + alpha / 2, never 1; for a = 1/4 and alpha = 4/1.75^2 it is 1.29, for half of
 * that 0.84. A^2 has 1.75 on and 1.5 off the diagonal for a = 1/2: |I - alpha A^2|_1 =
 * 1 + 2.75 alpha, under 1.01 after 7 halvings of 0.32. */
Test(attention, soft_by_hand)
{
    const equicorrelated cases[] = {
        {"nr", ATN_SOFT, {.method = ATN_INVERSE_NR, .iterations = 2, .alpha = 0.1}, 0.5, 0.1},
        {"no steps", ATN_SOFT, {.method = ATN_INVERSE_NR, .alpha = 0.1}, 0.5, 0.1},
        {"paper", ATN_SOFT, {NEWTON(NR_PAPER, 2, 0, 0)}, 0.5, 0.32},
        {"soft", ATN_SOFT, {NEWTON(NR_SOFT, 1.8, 0.01, 0)}, 0.5, 0.288},
        {"adaptive, none",
         ATN_SOFT,
         {NEWTON(NR_ADAPTIVE, 2, 0, 10), .search = ATN_SEARCH_MATRIX, .search_limit = 1},
         0.5,
         0},
        {"adaptive, at once",
         ATN_SOFT,
         {NEWTON(NR_ADAPTIVE, 2, 0, 10), .search = ATN_SEARCH_MATRIX, .search_limit = 1},
         0.25,
         2 / 3.0625},
        {"adaptive, once",
         ATN_SOFT,
         {NEWTON(NR_ADAPTIVE, 4, 0, 10), .search = ATN_SEARCH_MATRIX, .search_limit = 1},
         0.25,
         2 / 3.0625},
        {"softpp",
         ATN_SOFTPP,
         {NEWTON(NR_SOFTPP, 2, 0, 10), .search = ATN_SEARCH_SQUARE, .search_limit = 1.01},
         0.5,
         0.32 / 128},
        {"softpp, just enough",
         ATN_SOFTPP,
         {NEWTON(NR_SOFTPP, 2, 0, 7), .search = ATN_SEARCH_SQUARE, .search_limit = 1.01},
         0.5,
         0.32 / 128},
        {"softpp, given up",
         ATN_SOFTPP,
         {NEWTON(NR_SOFTPP, 2, 0, 6), .search = ATN_SEARCH_SQUARE, .search_limit = 1.01},
         0.5,
         0},
        {"softpp, accepted",
         ATN_SOFTPP,
         {NEWTON(NR_SOFTPP, 2, 0, 6), .search = ATN_SEARCH_SQUARE, .search_limit = 1.01,
          .search_accepts_last = true},
         0.5,
         0.32 / 64},
        {"eig", ATN_SOFT, {.method = ATN_INVERSE_EIG, .rcond = -1}, 0.5, -1},
        {"eig", ATN_SOFTPP, {.method = ATN_INVERSE_EIG, .rcond = -1}, 0.5, -1},
        {"cholesky", ATN_SOFT, {.method = ATN_INVERSE_CHOLESKY, .jitter = -1}, 0.5, -1},
        {"pivoted", ATN_SOFTPP, {.method = ATN_INVERSE_PIVOTED_CHOLESKY, .rcond = -1}, 0.5, -1},
    };
    static const double v[4] = {1, -2, 5, 7};
    double tokens[16], out[4];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        atn_attention_desc desc = describe_soft(cases[i].op, &cases[i].inverse, 4);
        ref_attention_problem p = {.desc = &desc, .shape = {1, 1, 4, 4, 1, 0}, .q = tokens, .v = v};
        spread_tokens(cases[i].a, tokens);
        cr_expect(ref_attention(&p, out) == ATN_OK, "%s", cases[i].name);
        expect_equicorrelated(&cases[i], out, v);
    }
}

/* Cholesky of A + jitter |A|_1 I: 1 / (l + 0.1 |A|_1), |A|_1 = 2.5. eig with a cut between the
 * eigenvalues 2.5 and 0.5: constants only. */
Test(attention, soft_jitter_and_cut)
{
    static const double v[4] = {1, -2, 5, 8};
    double tokens[16], out[4], want[4], cut[4] = {7.5, 7.5, 7.5, 7.5};
    spread_tokens(0.5, tokens);
    atn_inverse_desc inverse = {.method = ATN_INVERSE_CHOLESKY, .jitter = 0.1};
    atn_attention_desc desc = describe_soft(ATN_SOFT, &inverse, 4);
    ref_attention_problem p = {.desc = &desc, .shape = {1, 1, 4, 4, 1, 0}, .q = tokens, .v = v};
    for (int i = 0; i < 4; i++)
        want[i] = 6.25 / 2.75 * 3 + 0.25 / 0.75 * (v[i] - 3);
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("jitter", 4, out, want, 1e-14);
    desc.inverse = (atn_inverse_desc){.method = ATN_INVERSE_EIG, .rcond = 0.3};
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("cut", 4, out, cut, 1e-14);
}

/* Two heads, a = 1/2 and 1/4, one alpha from the larger |A|_1 = 2.5, halved by the larger norm. */
Test(attention, soft_batch_scope)
{
    static const double v[8] = {1, -2, 5, 7, 3, 1, 0, -6};
    double tokens[32], out[8];
    equicorrelated c = {"batch",
                        ATN_SOFTPP,
                        {NEWTON(NR_SOFTPP, 2, 0, 10), .search = ATN_SEARCH_SQUARE,
                         .search_limit = 1.01, .scope = ATN_SCOPE_BATCH},
                        0.25,
                        0.32 / 128};
    atn_attention_desc desc = describe_soft(ATN_SOFTPP, &c.inverse, 4);
    spread_tokens(0.25, tokens);
    spread_tokens(0.5, tokens + 16);
    for (int heads = 1; heads <= 2; heads++) {
        ref_attention_problem p = {
            .desc = &desc, .shape = {2 / heads, heads, 4, 4, 1, 0}, .q = tokens, .v = v};
        cr_expect(ref_attention(&p, out) == ATN_OK);
        c.a = 0.25;
        expect_equicorrelated(&c, out, v);
        c.a = 0.5;
        expect_equicorrelated(&c, out + 4, v + 4);
    }
}

/* The samplings, on a 4 x 5 grid, of a problem that holds all their tensors. */
enum { HEIGHT = 4, WIDTH = 5, GRID = HEIGHT * WIDTH, STRIDE = 2 };

typedef struct {
    double q[B * H * GRID * D], v[B * H * GRID * DV];
    double conv[D * D * STRIDE * STRIDE], weight[D], bias[D], filter[H * 9];
    atn_attention_desc desc;
    ref_attention_problem p;
} grid_waves;

static const int64_t named_tokens[3] = {7, 0, 13}, twice[3] = {7, 7, 13};

static const double uniforms[6] = {0.31, 0.87, 0.52, 0.05, 0.66, 0.93};

static void make_grid(grid_waves *w, atn_operator op, atn_sampling_kind kind, bool affine,
                      const atn_inverse_desc *inverse)
{
    fill_wave(B * H * GRID * D, 1, 1.5, w->q);
    fill_wave(B * H * GRID * DV, 3, 1, w->v);
    fill_wave(D * D * STRIDE * STRIDE, 4, 0.5, w->conv);
    fill_wave(D, 5, 2, w->weight);
    fill_wave(D, 6, 1, w->bias);
    fill_wave(H * 9, 7, 1, w->filter);
    bool windows = kind == ATN_SAMPLING_WINDOW;
    w->desc = describe(op);
    w->desc.inverse = *inverse;
    w->desc.sampling =
        (atn_sampling){.kind = kind,
                       .height = HEIGHT,
                       .width = WIDTH,
                       .stride = windows ? 6 : STRIDE,
                       .count = 3,
                       .indices = named_tokens,
                       .uniforms = uniforms,
                       .uniform_count = 6,
                       .steps = affine ? 2 : 0,
                       .weights = atn_tensor_dense(w->conv, ATN_F64, 1, D, D, STRIDE * STRIDE)};
    if (affine) {
        w->desc.sampling.norm_weight = parameter(w->weight, 1, 1, D);
        w->desc.sampling.norm_bias = parameter(w->bias, 1, 1, D);
        w->desc.residual = parameter(w->filter, H, 3, 3);
        w->desc.residual_height = HEIGHT;
        w->desc.residual_width = WIDTH;
    }
    w->p = (ref_attention_problem){
        .desc = &w->desc, .shape = {B, H, GRID, D, DV, 0}, .q = w->q, .v = w->v};
}

/* The landmarks of one head by tests/common/dense_soft.h; returns m. */
static int64_t landmarks_of(const grid_waves *w, const double *q, double *landmarks)
{
    const atn_sampling *s = &w->desc.sampling;
    switch (s->kind) {
    case ATN_SAMPLING_POOL:
        ref_pool(HEIGHT, WIDTH, D, STRIDE, q, landmarks);
        return 4;
    case ATN_SAMPLING_WINDOW:
        ref_window(GRID, D, 6, q, landmarks);
        return 4;
    case ATN_SAMPLING_CONV:
    case ATN_SAMPLING_CONV_CODE:
        ref_conv(HEIGHT, WIDTH, D, STRIDE, w->conv, q, landmarks);
        if (s->kind == ATN_SAMPLING_CONV_CODE)
            ref_norm_gelu(4, D, s->norm_weight.data, s->norm_bias.data, landmarks);
        return 4;
    default:
        if (ref_sampling_chooses(s->kind)) {
            cr_assert(ref_chosen_landmarks(s, GRID, D, q, landmarks) == ATN_OK);
            return 3;
        }
        for (int i = 0; i < 3; i++) {
            int64_t token = s->kind == ATN_SAMPLING_FIRST ? i : s->indices[i];
            memcpy(landmarks + i * D, q + token * D, D * sizeof *landmarks);
        }
        return 3;
    }
}

/* Against the dense f64 SOFT, whose error is kappa(A) u. */
Test(attention, soft_samplings)
{
    const double s[] = {1 / (2 * sqrt(D)), 1 / (2 * sqrt(H * D))};
    const atn_inverse_desc eig = {.method = ATN_INVERSE_EIG, .rcond = -1};
    double got[B * H * GRID * DV], want[GRID * DV], landmarks[4 * D], a[16], kappa, ratio;
    grid_waves w;
    for (int i = 0; i < ATN_SAMPLING_COUNT * 4; i++) {
        atn_sampling_kind kind = (atn_sampling_kind)(i / 4);
        bool plus = i % 2, affine = i / 2 % 2;
        make_grid(&w, plus ? ATN_SOFTPP : ATN_SOFT, kind, affine, &eig);
        w.desc.scale = plus ? ATN_SCALE_EMBED : ATN_SCALE_HEAD;
        cr_expect(ref_attention(&w.p, got) == ATN_OK, "%s", atn_sampling_name(kind));
        for (int head = 0; head < B * H; head++) {
            const double *q = w.q + head * GRID * D, *v = w.v + head * GRID * DV;
            int64_t m = landmarks_of(&w, q, landmarks);
            ref_gaussian(m, m, D, landmarks, landmarks, s[plus], a);
            cr_assert(ref_condition(m, m, a, &kappa, NULL) == ATN_OK);
            cr_assert(ref_soft(GRID, m, D, DV, q, landmarks, v, s[plus], NULL, plus, NULL, want) ==
                      ATN_OK);
            if (affine)
                ref_depthwise(HEIGHT, WIDTH, DV, 3, w.filter + head % H * 9, v, want);
            ref_difference d = ref_compare_f64(GRID, DV, got + head * GRID * DV, DV, want, DV);
            cr_expect(ref_judge_forward(&d, kappa, m, UNIT_ROUNDOFF, &ratio) == REF_PASS,
                      "%s head %d ratio=%g kappa=%g", atn_sampling_name(kind), head, ratio, kappa);
            cr_expect(ref_discriminates(GRID, DV, want, 30 * kappa * (double)m * UNIT_ROUNDOFF));
        }
    }
}

/* All tokens as landmarks: P = A, so A A^-1 A V is Gaussian attention. */
Test(attention, soft_of_all_tokens_is_gaussian)
{
    atn_inverse_desc inverse = {.method = ATN_INVERSE_CHOLESKY, .jitter = -1};
    atn_attention_desc desc = describe_soft(ATN_SOFT, &inverse, N);
    atn_attention_desc gaussian = describe(ATN_GAUSSIAN);
    double got[B * H * N * DV], want[B * H * N * DV];
    waves w;
    desc.scale = gaussian.scale = ATN_SCALE_EMBED;
    make_waves(&w, &desc, false);
    cr_expect(ref_attention(&w.p, got) == ATN_OK);
    w.p.desc = &gaussian;
    cr_expect(ref_attention(&w.p, want) == ATN_OK);
    expect_all("all tokens", B * H * N * DV, got, want, 1e-13);
}

Test(attention, soft_derivatives_of_samplings)
{
    const atn_inverse_desc eig = {.method = ATN_INVERSE_EIG, .rcond = -1};
    grid_waves w;
    for (int i = 0; i < ATN_SAMPLING_COUNT * 4; i++) {
        atn_sampling_kind kind = (atn_sampling_kind)(i / 4);
        make_grid(&w, i % 2 ? ATN_SOFTPP : ATN_SOFT, kind, i / 2 % 2, &eig);
        expect_derivative(atn_sampling_name(kind), &w.p, 0);
        expect_derivative(atn_sampling_name(kind), &w.p, 2);
        if (i / 2 % 2)
            expect_derivative(atn_sampling_name(kind), &w.p, 3 + ATN_PARAMETER_RESIDUAL);
        if (kind == ATN_SAMPLING_CONV || kind == ATN_SAMPLING_CONV_CODE)
            expect_derivative(atn_sampling_name(kind), &w.p, 3 + ATN_PARAMETER_CONV);
        if (kind == ATN_SAMPLING_CONV_CODE) {
            expect_derivative("conv-code", &w.p, 3 + ATN_PARAMETER_NORM_WEIGHT);
            expect_derivative("conv-code", &w.p, 3 + ATN_PARAMETER_NORM_BIAS);
        }
    }
}

/* Through the steps, few enough that nothing has converged; closed where all has; pseudo with a
 * landmark twice, so that A is singular wherever the tokens go. */
Test(attention, soft_derivatives_of_inverses)
{
    const struct {
        const char *name;
        atn_operator op;
        atn_gradient gradient;
        atn_inverse_desc inverse;
        const int64_t *indices;
    } cases[] = {
        {"nr",
         ATN_SOFT,
         ATN_GRADIENT_STEPS,
         {.method = ATN_INVERSE_NR, .iterations = 3, .alpha = 0.2},
         named_tokens},
        {"nr-paper", ATN_SOFT, ATN_GRADIENT_STEPS, {NEWTON(NR_PAPER, 2, 0, 0)}, named_tokens},
        {"nr-paper", ATN_SOFTPP, ATN_GRADIENT_STEPS, {NEWTON(NR_PAPER, 2, 0, 0)}, twice},
        {"nr-soft", ATN_SOFTPP, ATN_GRADIENT_STEPS, {NEWTON(NR_SOFT, 1.8, 0.01, 0)}, named_tokens},
        {"nr-adaptive",
         ATN_SOFT,
         ATN_GRADIENT_STEPS,
         {NEWTON(NR_ADAPTIVE, 4, 0, 10), .search = ATN_SEARCH_MATRIX, .search_limit = 1.9},
         named_tokens},
        {"nr-softpp",
         ATN_SOFTPP,
         ATN_GRADIENT_STEPS,
         {NEWTON(NR_SOFTPP, 2, 0, 10), .search = ATN_SEARCH_SQUARE, .search_limit = 1.01,
          .scope = ATN_SCOPE_BATCH, .search_accepts_last = true},
         named_tokens},
        {"converged nr-soft",
         ATN_SOFTPP,
         ATN_GRADIENT_CLOSED,
         {.method = ATN_INVERSE_NR_SOFT, .iterations = 30, .numerator = 1.8, .ridge = 0.01},
         named_tokens},
        {"cholesky",
         ATN_SOFT,
         ATN_GRADIENT_CLOSED,
         {.method = ATN_INVERSE_CHOLESKY, .jitter = -1},
         named_tokens},
        {"pivoted",
         ATN_SOFT,
         ATN_GRADIENT_CLOSED,
         {.method = ATN_INVERSE_PIVOTED_CHOLESKY, .rcond = -1},
         named_tokens},
        {"eig",
         ATN_SOFT,
         ATN_GRADIENT_PSEUDO,
         {.method = ATN_INVERSE_EIG, .rcond = -1},
         named_tokens},
        {"singular eig",
         ATN_SOFT,
         ATN_GRADIENT_PSEUDO,
         {.method = ATN_INVERSE_EIG, .rcond = -1},
         twice},
        {"singular eig",
         ATN_SOFTPP,
         ATN_GRADIENT_PSEUDO,
         {.method = ATN_INVERSE_EIG, .rcond = -1},
         twice},
    };
    grid_waves w;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_grid(&w, cases[i].op, ATN_SAMPLING_INDICES, false, &cases[i].inverse);
        w.desc.gradient = cases[i].gradient;
        w.desc.sampling.indices = cases[i].indices;
        expect_derivative(cases[i].name, &w.p, 0);
        expect_derivative(cases[i].name, &w.p, 2);
    }
}

/* P^T (X - X (A(t) - A) X) P V at q + t direction, head by head, X given: its derivative is the
 * closed one, whatever X is. */
static void closed_at(const grid_waves *w, const double *x, const double *direction, double t,
                      double *out)
{
    double s = 1 / (2 * sqrt(D)), q[GRID * D], landmarks[3 * D], a[9], moved[9], xd[9], xdx[9];
    for (int head = 0; head < B * H; head++, x += 9) {
        const double *start = w->q + head * GRID * D;
        landmarks_of(w, start, landmarks);
        ref_gaussian(3, 3, D, landmarks, landmarks, s, a);
        for (int i = 0; i < GRID * D; i++)
            q[i] = start[i] + t * direction[head * GRID * D + i];
        landmarks_of(w, q, landmarks);
        ref_gaussian(3, 3, D, landmarks, landmarks, s, moved);
        for (int i = 0; i < 9; i++)
            moved[i] -= a[i];
        product(3, 3, 3, x, moved, xd);
        product(3, 3, 3, xd, x, xdx);
        for (int i = 0; i < 9; i++)
            xdx[i] = x[i] - xdx[i];
        cr_assert(ref_soft(GRID, 3, D, DV, q, landmarks, w->v + head * GRID * DV, s, xdx,
                           w->desc.op == ATN_SOFTPP, NULL, out + head * GRID * DV) == ATN_OK);
    }
}

/* X of every head from f64 routines: Newton-Raphson's filter, or A + jitter |A|_1 I inverted. */
static void inverses_of(const grid_waves *w, double *x)
{
    const atn_inverse_desc *desc = &w->desc.inverse;
    double landmarks[3 * D], a[9];
    for (int head = 0; head < B * H; head++, x += 9) {
        landmarks_of(w, w->q + head * GRID * D, landmarks);
        ref_gaussian(3, 3, D, landmarks, landmarks, 1 / (2 * sqrt(D)), a);
        double norm = ref_norm1(3, a);
        if (desc->iterations > 0)
            cr_assert(ref_filter_matrix(3, a, desc->numerator / (norm * norm), desc->ridge,
                                        desc->iterations, x) == ATN_OK);
        for (int i = 0; i < 3; i++)
            a[4 * i] += desc->iterations > 0 ? 0 : desc->jitter * norm;
        if (desc->iterations == 0)
            cr_assert(ref_symmetric_pinv(3, a, -1, x, NULL, NULL, NULL) == ATN_OK);
    }
}

Test(attention, soft_closed_derivative_of_any_inverse)
{
    const atn_inverse_desc inverses[] = {
        {NEWTON(NR_PAPER, 2, 0, 0)},
        {NEWTON(NR_SOFT, 1.8, 0.01, 0)},
        {.method = ATN_INVERSE_CHOLESKY, .jitter = 0.1},
        {.method = ATN_INVERSE_EIG, .rcond = -1},
    };
    enum { SIZE = B * H * GRID * DV };
    double x[B * H * 9], direction[B * H * GRID * D], got[SIZE], one[SIZE];
    fill_wave(B * H * GRID * D, 0.3, 1, direction);
    grid_waves w;
    for (int i = 0; i < 8; i++) {
        double want[SIZE] = {0};
        make_grid(&w, i % 2 ? ATN_SOFTPP : ATN_SOFT, ATN_SAMPLING_INDICES, false, &inverses[i / 2]);
        w.desc.sampling.indices = i / 2 == 3 ? twice : named_tokens;
        inverses_of(&w, x);
        for (int j = 0; j < POINTS; j++) {
            closed_at(&w, x, direction, difference_steps[j] * STEP, one);
            for (int l = 0; l < SIZE; l++)
                want[l] += difference_weights[j] * one[l] / STEP;
        }
        ref_attention_arrays directions = {.q = direction};
        cr_expect(ref_attention_derivative(&w.p, &directions, got) == ATN_OK);
        ref_difference d = ref_compare_f64(SIZE, 1, got, 1, want, 1);
        cr_expect(d.relative_frobenius <= 1e-8, "case %d: %g", i, d.relative_frobenius);
    }
}

Test(attention, soft_statuses)
{
    static const unsigned char all[B * GRID] = {1};
    static const int64_t outside[3] = {0, 1, GRID};
    const atn_inverse_desc paper = {NEWTON(NR_PAPER, 2, 0, 0)};
    double out[B * H * GRID * DV];
    grid_waves w;
    make_grid(&w, ATN_SOFT, ATN_SAMPLING_INDICES, true, &paper);
    cr_expect(ref_attention(&w.p, out) == ATN_OK);
    double direction[B * H * GRID * D] = {1};
    ref_attention_arrays directions = {.q = direction};
    w.desc.gradient = ATN_GRADIENT_PSEUDO;
    cr_expect(ref_attention(&w.p, out) == ATN_OK, "a value does not ask for the gradient");
    cr_expect(ref_attention_derivative(&w.p, &directions, out) == ATN_ERR_VALUE, "eig's");
    w.desc.gradient = ATN_GRADIENT_STEPS;
    w.desc.inverse.method = ATN_INVERSE_EIG;
    cr_expect(ref_attention_derivative(&w.p, &directions, out) == ATN_ERR_VALUE, "Newton's");
    w.desc.gradient = ATN_GRADIENT_CLOSED;
    w.desc.inverse = (atn_inverse_desc){.method = ATN_INVERSE_CHOLESKY, .jitter = -1};
    w.desc.sampling.indices = twice;
    cr_expect(ref_attention(&w.p, out) == ATN_SINGULAR && isnan(out[0]));
    cr_expect(ref_attention_derivative(&w.p, &directions, out) == ATN_SINGULAR && isnan(out[0]));
    w.desc.sampling.indices = named_tokens; /* of the first head two are the same */
    memcpy(w.q + named_tokens[1] * D, w.q + named_tokens[0] * D, D * sizeof *w.q);
    cr_expect(ref_attention(&w.p, out) == ATN_SINGULAR && isnan(out[0]) &&
              isfinite(out[(B * H - 1) * GRID * DV]));
    w.desc.inverse = paper;
    w.desc.sampling.indices = outside;
    cr_expect(ref_attention(&w.p, out) == ATN_ERR_VALUE, "no such token");
    w.desc.sampling.indices = named_tokens;
    w.p.key_mask = all;
    cr_expect(ref_attention(&w.p, out) == ATN_ERR_VALUE, "mask");
    w.p.key_mask = NULL;
    w.p.k = w.q;
    cr_expect(ref_attention(&w.p, out) == ATN_ERR_VALUE, "keys");
    w.p.k = NULL;
    w.desc.residual_width = 3;
    cr_expect(ref_attention(&w.p, out) == ATN_ERR_VALUE, "grid");
    w.desc.residual_width = WIDTH;
    w.p.shape.tokens = 0;
    cr_expect(ref_attention(&w.p, out) == ATN_OK, "no tokens");
}

/* ---- Nystromformer ---- */

static atn_attention_desc describe_nystrom(atn_nystrom inverse, int64_t m, int iterations)
{
    atn_attention_desc desc = describe(ATN_NYSTROMFORMER);
    desc.nystromformer = (atn_nystromformer_options){
        .landmarks = m, .inverse = inverse, .iterations = iterations, .rcond = -1};
    return desc;
}

/* Where each segment's tokens are all the same, F's rows are A's, and A A+ B = B: softmax
 * attention. Five queries in segments of 2 and 3; the keys likewise, or one of each. */
Test(attention, nystrom_of_equal_tokens_is_softmax)
{
    static const int segment[5] = {0, 0, 1, 1, 1};
    double q[5 * D], k[5 * D], v[5 * DV], got[5 * DV], want[5 * DV];
    fill_wave(2 * D, 1, 2, q + 3 * D);
    fill_wave(2 * D, 2, 2, k);
    fill_wave(5 * DV, 3, 1, v);
    for (int i = 0; i < 5; i++)
        memmove(q + i * D, q + (3 + segment[i]) * D, D * sizeof *q);
    atn_attention_desc desc = describe_nystrom(ATN_NYSTROM_PINV, 2, 0);
    atn_attention_desc softmax = describe(ATN_SOFTMAX);
    for (int i = 0; i < 2; i++) {
        ref_attention_problem p = {
            .desc = &desc, .shape = {1, 1, 5, D, DV, i ? 5 : 2}, .q = q, .k = k, .v = v};
        for (int j = 4; i && j >= 0; j--)
            memmove(k + j * D, k + segment[j] * D, D * sizeof *k);
        cr_expect(ref_attention(&p, got) == ATN_OK);
        p.desc = &softmax;
        cr_expect(ref_attention(&p, want) == ATN_OK);
        expect_all(i ? "five keys" : "two keys", 5 * DV, got, want, 1e-15);
        cr_expect(ref_discriminates(5, DV, want, 1e-3));
    }
}

/* As many landmarks as tokens: softmax attention by definition, whatever the inverse. */
Test(attention, nystrom_of_all_tokens_is_softmax)
{
    double k[B * H * N * D], got[B * H * N * DV], want[B * H * N * DV];
    fill_wave(B * H * N * D, 2, 1, k);
    atn_attention_desc desc = describe_nystrom(ATN_NYSTROM_EXACT, N, 0);
    atn_attention_desc softmax = describe(ATN_SOFTMAX);
    waves w;
    make_waves(&w, &desc, false);
    w.p.k = k;
    cr_expect(ref_attention(&w.p, got) == ATN_OK);
    w.p.desc = &softmax;
    cr_expect(ref_attention(&w.p, want) == ATN_OK);
    expect_all("m = n", B * H * N * DV, got, want, 0);
}

/* Y of one head with A = 1/2 [1 + l, 1 - l; 1 - l, 1 + l] = F, and B the same on pairs of keys:
 * A Z A on the pairs' means. From Z = A^T / norm, A Z has 1 - e on an eigenvector, e = 1 -
 * l^2 / norm to begin with, and e^3 (3 + e) / 4 after a step. */
static double nystrom_filter(double l, double norm, int steps)
{
    double e = 1 - l * l / norm;
    for (int i = 0; i < steps; i++)
        e = e * e * e * (3 + e) / 4;
    return l * (1 - e);
}

/* Head 0: q = -+1, k = -+log(3)/2: weights 3:1, l = 1/2, |A|_1 = 1. Head 1: k is the same, q = 1
 * and 0: weights 3:1 and 1:1, |A|_1 = 5/4; A = [3 1; 2 2] / 4 does not commute with A^T. After one
 * step A Z = [49.906 33.864; 33.864 41.44] / 80; on the pairs' means 1.5 and 3.5 A gives 2 and 2.5.
 */
Test(attention, nystrom_by_hand)
{
    static const double head_1[2] = {184.472 / 80, 171.328 / 80};
    const double l = log(3) / 2;
    const double q[4] = {1, -1, 1, 0}, k[8] = {l, l, -l, -l, l, l, -l, -l};
    static const double v[8] = {1, 3, -5, -1, 1, 2, 3, 4};
    for (int i = 0; i < 6; i++) {
        bool original = i % 2;
        int steps = i / 2;
        atn_attention_desc desc =
            describe_nystrom(original ? ATN_NYSTROM_ORIGINAL : ATN_NYSTROM_EXACT, 2, steps);
        double out[4], norm = original ? 1.25 : 1;
        for (int heads = 1; heads <= 2; heads++) {
            ref_attention_problem p = {
                .desc = &desc, .shape = {2 / heads, heads, 2, 1, 1, 4}, .q = q, .k = k, .v = v};
            /* pairs' means 2 and -3: -1/2 +- 5/2 */
            double even = -0.5 * nystrom_filter(1, norm, steps);
            double odd = 2.5 * nystrom_filter(0.5, norm, steps);
            const double want[2] = {even + odd, even - odd};
            cr_expect(ref_attention(&p, out) == ATN_OK);
            expect_all(original ? "original" : "exact", 2, out, want, 1e-14);
            if (steps == 1)
                expect_all("head 1", 2, out + 2, head_1, 1e-14);
        }
    }
}

/* q = 1, 2; k = 2 log 3, padding, 0, 0: the second halves the first segment's mean and nothing
 * else. A = [3/4, 1/4; 9/10, 1/10], Z = A^T / 1.65, B = (9, -, 1, 1) / 11 and (81, -, 1, 1) / 83. A
 * padded query counts as a zero vector. */
Test(attention, nystrom_padding)
{
    static const double q[2] = {1, 2}, v[4] = {913, NAN, 0, 0};
    const double k[4] = {2 * log(3), NAN, 0, 0};
    static const double want[2] = {(0.625 * 747 + 0.7 * 891) / 1.65,
                                   (0.7 * 747 + 0.82 * 891) / 1.65};
    static const unsigned char keys[4] = {1, 0, 1, 1};
    atn_attention_desc desc = describe_nystrom(ATN_NYSTROM_EXACT, 2, 0);
    ref_attention_problem p = {
        .desc = &desc, .shape = {1, 1, 2, 1, 1, 4}, .q = q, .k = k, .v = v, .key_mask = keys};
    double out[4];
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("keys", 2, out, want, 1e-12);
    static const double whole[4] = {1, 0, 3, 2}, padded[4] = {1, NAN, 3, 2};
    static const double four[4] = {1, 2, 4, 8};
    double zeros[4];
    p = (ref_attention_problem){
        .desc = &desc, .shape = {1, 1, 4, 1, 1, 4}, .q = whole, .k = four, .v = four};
    cr_expect(ref_attention(&p, zeros) == ATN_OK && zeros[1] != 0);
    zeros[1] = 0;
    p.q = padded;
    p.query_mask = keys;
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("queries", 4, out, zeros, 0);
}

/* q = 0 and m = n: means of V, 3, and then the filter 1, 2, 3 over 1, 2, 6. Padding is 0 there. */
Test(attention, nystrom_residual)
{
    static const double q[3] = {0}, v[3] = {1, 2, 6};
    static const unsigned char there[3] = {1, 0, 1};
    double filter[3] = {1, 2, 3}, out[3];
    static const double want[3] = {3 + 8, 3 + 23, 3 + 14}, padded[3] = {3.5 + 2, 0, 3.5 + 12};
    atn_attention_desc desc = describe_nystrom(ATN_NYSTROM_EXACT, 3, 0);
    desc.residual = parameter(filter, 1, 3, 1);
    ref_attention_problem p = {.desc = &desc, .shape = {1, 1, 3, 1, 1, 0}, .q = q, .v = v};
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("residual", 3, out, want, 1e-14);
    p.key_mask = there;
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("padded residual", 3, out, padded, 1e-14);
}

Test(attention, nystrom_derivatives)
{
    static const unsigned char queries[B * N] = {1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1};
    static const unsigned char keys[B * NK] = {1, 0, 1, 1, 1, 1, 1, 1, 0, 1};
    double filter[H * 3];
    fill_wave(H * 3, 4, 1, filter);
    waves w;
    for (int i = 0; i < ATN_NYSTROM_COUNT * 2; i++) {
        atn_nystrom inverse = (atn_nystrom)(i / 2);
        atn_attention_desc desc = describe_nystrom(inverse, i % 2 ? 2 : 3, 2);
        make_waves(&w, &desc, true);
        expect_derivatives(i % 2 ? "nystrom, m = 2" : "nystrom, m = 3", &w.p);
        w.p.query_mask = queries;
        w.p.key_mask = keys;
        expect_derivatives("nystrom, padding", &w.p);
        make_waves(&w, &desc, false);
        desc.residual = parameter(filter, H, 3, 1);
        expect_derivatives("nystrom, residual", &w.p);
    }
    atn_attention_desc desc = describe_nystrom(ATN_NYSTROM_PINV, N, 0);
    make_waves(&w, &desc, false);
    expect_derivatives("nystrom, m = n", &w.p);
}

/* A stays singular while two of its three queries (which) or keys are the same and the others move:
 * the pseudo-inverse's derivative, whose second and third term this needs in turn. */
static void expect_singular_derivative(int equal, int moving)
{
    enum { SIZE = B * H * N * DV };
    double direction[MOST], got[SIZE], want[SIZE];
    atn_attention_desc desc = describe_nystrom(ATN_NYSTROM_PINV, 3, 0);
    waves w;
    make_waves(&w, &desc, true);
    /* segments of 2 2 2 queries, of 1 2 2 keys: the first two have the same means */
    int64_t count, tokens = equal == 0 ? N : NK, same = equal == 0 ? 4 : 3;
    double *x = array_of(&w.p, equal, &count);
    for (int64_t i = 0; i < count; i++)
        x[i] = i / D % tokens < same ? 0.5 * (double)(i % D) : x[i];
    array_of(&w.p, moving, &count);
    fill_wave(count, 0.4, 1, direction);
    ref_attention_arrays directions = {0};
    *slot_of(&directions, moving) = direction;
    cr_expect(ref_attention_derivative(&w.p, &directions, got) == ATN_OK);
    difference_quotient(&w.p, moving, direction, want);
    ref_difference d = ref_compare_f64(SIZE, 1, got, 1, want, 1);
    cr_expect(d.relative_frobenius <= 1e-8 && d.want_max > 1e-2, "%s moving: %g of %g",
              name_of(moving), d.relative_frobenius, d.want_max);
}

Test(attention, nystrom_singular_derivative)
{
    expect_singular_derivative(0, 1);
    expect_singular_derivative(1, 0);
}

Test(attention, nystrom_statuses)
{
    double out[B * H * N * DV], filter[4] = {0};
    atn_attention_desc desc = describe_nystrom(ATN_NYSTROM_EXACT, NK + 1, 1);
    waves w;
    make_waves(&w, &desc, true);
    cr_expect(ref_attention(&w.p, out) == ATN_ERR_VALUE, "more landmarks than keys");
    desc.nystromformer.landmarks = 0;
    cr_expect(ref_attention(&w.p, out) == ATN_ERR_VALUE, "no landmarks");
    desc.nystromformer.landmarks = 2;
    desc.residual = parameter(filter, 1, 3, 1);
    cr_expect(ref_attention(&w.p, out) == ATN_ERR_VALUE, "residual of other lengths");
    desc.residual.data = NULL;
    desc.nystromformer.inverse = ATN_NYSTROM_COUNT;
    cr_expect(ref_attention(&w.p, out) == ATN_ERR_VALUE, "no such inverse");
}

/* ---- LSH ---- */

static atn_attention_desc describe_lsh(const int64_t *buckets, int64_t rounds, int64_t chunk)
{
    atn_attention_desc desc = describe(ATN_LSH);
    desc.lsh =
        (atn_lsh_options){.buckets = buckets, .rounds = rounds, .chunk = chunk, .self_logit = -5e4};
    return desc;
}

/* Equal tokens: the mean of what is seen, but for oneself. Ordered 1 4 | 2 5 | 0 3 by bucket, a
 * chunk sees itself and the one before, the first the last. */
Test(attention, lsh_chunks)
{
    static const int64_t buckets[6] = {9, 0, 5, 9, 0, 5};
    static const double q[6] = {2, 2, 2, 2, 2, 2}, v[6] = {3, 30, 300, 3000, 30000, 300000};
    static const double want[6] = {101100, 11001, 110010, 100101, 1011, 10110};
    static const int64_t one_bucket[6] = {0}; /* 0 1 | 2 3 | 4 5 */
    static const double in_order[6] = {110010, 110001, 1011, 111, 101100, 11100};
    atn_attention_desc desc = describe_lsh(buckets, 1, 2);
    ref_attention_problem p = {.desc = &desc, .shape = {1, 1, 6, 1, 1, 0}, .q = q, .v = v};
    double out[6];
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("chunks", 6, out, want, 1e-10);
    desc.lsh.buckets = one_bucket;
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("one bucket", 6, out, in_order, 1e-10);
}

/* Chunks of one token, two rounds, 0 1 | 1 0: in one of them a token sees itself twice. Keys are 1,
 * q = log 2, log 4, the logit to oneself is 0. Token 0: v_0 with sum 2, (v_0 + 2 v_1) / 3 with sum
 * 3; token 1: (v_1 + 4 v_0) / 5 with sum 5, v_1 with sum 2. */
Test(attention, lsh_rounds)
{
    static const int64_t buckets[4] = {0, 1, 1, 0};
    const double q[2] = {log(2), log(4)};
    static const double v[2] = {7, 70}, want[2] = {0.6 * 7 + 0.4 * 70, (4 * 7 + 3 * 70) / 7.};
    atn_attention_desc desc = describe_lsh(buckets, 2, 1);
    desc.lsh.self_logit = 0;
    ref_attention_problem p = {.desc = &desc, .shape = {1, 1, 2, 1, 1, 0}, .q = q, .v = v};
    double out[2];
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("rounds", 2, out, want, 1e-13);
}

/* One chunk of all tokens, seen twice, with tokens of length 1 and the logit to oneself that of the
 * formula: softmax attention with K = Q. */
Test(attention, lsh_of_one_chunk_is_softmax)
{
    static const double q[6] = {0.6, 0.8, 0.8, -0.6, 0, 1}, v[3] = {1, 10, 100};
    static const int64_t buckets[6] = {1, 0, 2, 0, 0, 0};
    atn_attention_desc desc = describe_lsh(buckets, 2, 3), softmax = describe(ATN_SOFTMAX);
    desc.logit_scale = softmax.logit_scale = desc.lsh.self_logit = 1.5;
    ref_attention_problem p = {.desc = &desc, .shape = {1, 1, 3, 2, 1, 0}, .q = q, .v = v};
    double got[3], want[3];
    cr_expect(ref_attention(&p, got) == ATN_OK);
    p.desc = &softmax;
    cr_expect(ref_attention(&p, want) == ATN_OK);
    expect_all("one chunk", 3, got, want, 1e-13);
}

/* Keys have length 1: scaling token 1 leaves what others make of it. */
Test(attention, lsh_keys_are_normalised)
{
    static const int64_t buckets[3] = {0};
    double q[6] = {0.6, 0.8, 0.8, -0.6, 0, 1}, first[3], out[3];
    static const double v[3] = {1, 10, 100};
    atn_attention_desc desc = describe_lsh(buckets, 1, 3);
    ref_attention_problem p = {.desc = &desc, .shape = {1, 1, 3, 2, 1, 0}, .q = q, .v = v};
    cr_expect(ref_attention(&p, first) == ATN_OK);
    q[2] *= 3;
    q[3] *= 3;
    cr_expect(ref_attention(&p, out) == ATN_OK);
    expect_all("others", 1, out, first, 1e-13);
    cr_expect(fabs(out[1] - first[1]) > 1, "but not its own");
}

/* |q_1| < 1e-12, then 0: its key is q_1 / 1e-12, a slope of 1e12 whatever its length. Token 0 sees
 * logits -5e4 to itself and c q_0.k_1 to token 1 alone, so that what moves is Y_1's weights. */
Test(attention, lsh_keys_of_almost_no_length)
{
    static const int64_t buckets[3] = {0};
    static const double v[3] = {1, 10, 100};
    double q[6] = {0.6, 0.8, 3e-13, -4e-13, 0, 1}, out[3], change[3], direction[6] = {0};
    atn_attention_desc desc = describe_lsh(buckets, 1, 3);
    desc.logit_scale = 1;
    ref_attention_problem p = {.desc = &desc, .shape = {1, 1, 3, 2, 1, 0}, .q = q, .v = v};
    ref_attention_arrays directions = {.q = direction};
    for (int i = 0; i < 2; i++) {
        double logit = i ? 0 : 0.6 * 0.3 - 0.8 * 0.4, weight = 1 / (1 + exp(0.8 - logit));
        cr_expect(ref_attention(&p, out) == ATN_OK);
        cr_expect(fabs(out[0] - (10 * weight + 100 * (1 - weight))) < 1e-12, "%d: %.17g", i,
                  out[0]);
        direction[2] = 1e-12;
        cr_expect(ref_attention_derivative(&p, &directions, change) == ATN_OK);
        double want = -90 * weight * (1 - weight) * 0.6;
        cr_expect(fabs(change[0] - want) < 1e-10 * fabs(want), "%d: %.17g, want %.17g", i,
                  change[0], want);
        q[2] = q[3] = 0;
    }
}

/* R = I and, in round 1, I with its columns exchanged: the largest of x, y, -x, -y. */
Test(attention, lsh_buckets)
{
    static const double q[10] = {3, 1, 1, 3, -3, 1, 1, -4, 1, 1}, v[5] = {1, 2, 3, 4, 5};
    double rotations[8] = {1, 0, 0, 1, 0, 1, 1, 0};
    static const unsigned char there[5] = {1, 1, 1, 1, 0};
    static const int64_t want[10] = {0, 1, 2, 3, 0, 1, 0, 3, 2, 0};
    int64_t buckets[10];
    double margin, got[5], given[5];
    atn_attention_desc desc = describe_lsh(NULL, 0, 1);
    desc.lsh.rotations = parameter(rotations, 2, 2, 2);
    ref_attention_problem p = {.desc = &desc, .shape = {1, 1, 5, 2, 1, 0}, .q = q, .v = v};
    cr_expect(ref_lsh_buckets(&p, buckets, &margin) == 10 && margin == 0, "a tie: %g", margin);
    for (int i = 0; i < 10; i++)
        cr_expect(buckets[i] == want[i], "%d %d", i, (int)buckets[i]);
    p.key_mask = there;
    cr_expect(ref_lsh_buckets(&p, buckets, &margin) == 10 && fabs(margin - 0.5) < 1e-15,
              "(3 - 1) / (3 + 1): %g", margin);
    p.key_mask = NULL;
    cr_expect(ref_attention(&p, got) == ATN_OK);
    desc.lsh.buckets = want;
    desc.lsh.rounds = 2;
    cr_expect(ref_attention(&p, given) == ATN_OK);
    expect_all("hashed and given", 5, got, given, 0);
    static const int64_t zero[10] = {0};
    desc.lsh.buckets = zero;
    cr_expect(ref_attention(&p, given) == ATN_OK && fabs(got[4] - given[4]) > 0.1);
    desc.lsh.rotations.data = NULL;
    cr_expect(ref_lsh_buckets(&p, buckets, &margin) == ATN_ERR_NULL);
    desc.lsh.buckets = NULL;
    cr_expect(ref_attention(&p, got) == ATN_ERR_VALUE);
}

/* Two rounds of two chunks; tokens 1 and 4 are padding: as if they were not in the list. */
Test(attention, lsh_padding)
{
    static const int64_t buckets[12] = {1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1};
    static const int64_t left[8] = {1, 0, 1, 0, 0, 1, 0, 1};
    static const unsigned char there[6] = {1, 0, 1, 1, 0, 1};
    double q[12], v[6], fewer_q[8], fewer_v[4], out[6], fewer[4];
    fill_wave(12, 1, 1, q);
    fill_wave(6, 2, 1, v);
    for (int i = 0, j = 0; i < 6; i++) {
        if (there[i]) {
            memcpy(fewer_q + 2 * j, q + 2 * i, 2 * sizeof *q);
            fewer_v[j++] = v[i];
        } else {
            q[2 * i] = v[i] = NAN;
        }
    }
    atn_attention_desc desc = describe_lsh(buckets, 2, 2);
    ref_attention_problem p = {
        .desc = &desc, .shape = {1, 1, 6, 2, 1, 0}, .q = q, .v = v, .key_mask = there};
    cr_expect(ref_attention(&p, out) == ATN_OK);
    desc.lsh.buckets = left;
    p = (ref_attention_problem){
        .desc = &desc, .shape = {1, 1, 4, 2, 1, 0}, .q = fewer_q, .v = fewer_v};
    cr_expect(ref_attention(&p, fewer) == ATN_OK);
    const double want[6] = {fewer[0], 0, fewer[1], fewer[2], 0, fewer[3]};
    expect_all("padding", 6, out, want, 0);
    desc.lsh.chunk = 3;
    cr_expect(ref_attention(&p, fewer) == ATN_ERR_SHAPE, "chunks of 3 in 4");
}

Test(attention, lsh_derivatives)
{
    enum { ROUNDS = 2, CHUNK = 2 };
    int64_t buckets[B * H * ROUNDS * N];
    double rotations[ROUNDS * D * 2], hashed[B * H * N * DV], given[B * H * N * DV], margin;
    fill_wave(ROUNDS * D * 2, 4, 1, rotations);
    atn_attention_desc desc = describe_lsh(NULL, 0, CHUNK);
    desc.lsh.rotations = parameter(rotations, ROUNDS, D, 2);
    desc.lsh.self_logit = 0.3;
    waves w;
    make_waves(&w, &desc, false);
    cr_expect(ref_lsh_buckets(&w.p, buckets, &margin) == B * H * ROUNDS * N && margin > 1e-6);
    double direction[B * H * N * D];
    fill_wave(B * H * N * D, 0.3, 1, direction);
    ref_attention_arrays directions = {.q = direction};
    cr_expect(ref_attention_derivative(&w.p, &directions, hashed) == ATN_OK);
    /* the buckets, held: differences must not cross from one to another */
    desc.lsh.buckets = buckets;
    desc.lsh.rounds = ROUNDS;
    cr_expect(ref_attention_derivative(&w.p, &directions, given) == ATN_OK);
    expect_all("hashed and given", B * H * N * DV, hashed, given, 0);
    expect_derivatives("lsh", &w.p);
}

/* ---- The pseudo-inverse behind them ---- */

static void expect_pinv(const char *what, int64_t m, const double *a, double rcond,
                        const double *want, int64_t want_rank)
{
    long double in[9] = {0}, out[9];
    for (int64_t i = 0; i < m * m; i++)
        in[i] = a[i];
    int64_t rank = ref_pseudo_inverse_long(m, in, rcond, out);
    cr_expect(rank == want_rank, "%s rank=%d", what, (int)rank);
    for (int64_t i = 0; i < m * m; i++)
        cr_expect(fabsl(out[i] - (long double)want[i]) <= 1e-17L, "%s %d: %.20Lg want %.20g", what,
                  (int)i, out[i], want[i]);
}

/* Exact ones: a product u v^T has v u^T / (|u|^2 |v|^2). */
Test(attention, pseudo_inverse)
{
    static const double diagonal[9] = {0, 4, 0, 0, 0, -2, 0, 0, 0};
    static const double inverted[9] = {0, 0, 0, 0.25, 0, 0, 0, -0.5, 0};
    static const double cut[9] = {0, 0, 0, 0.25, 0, 0, 0, 0, 0};
    static const double outer[4] = {1, 1, 1, 1}, quarter[4] = {0.25, 0.25, 0.25, 0.25};
    static const double column[4] = {0, 2, 0, 2}, row[4] = {0, 0, 0.25, 0.25};
    static const double full[9] = {1, 1, 0, 0, 1, 1, 0, 0, 1}, zero[9] = {0};
    static const double inverse[9] = {1, -1, 1, 0, 1, -1, 0, 0, 1};
    expect_pinv("permuted diagonal", 3, diagonal, -1, inverted, 2);
    expect_pinv("cut at 0.6", 3, diagonal, 0.6, cut, 1);
    expect_pinv("kept at 0.4", 3, diagonal, 0.4, inverted, 2);
    expect_pinv("ones", 2, outer, -1, quarter, 1);
    expect_pinv("column", 2, column, -1, row, 1);
    expect_pinv("triangular", 3, full, -1, inverse, 3);
    expect_pinv("zero", 3, zero, -1, zero, 0);
    expect_pinv("empty", 0, NULL, -1, NULL, 0);
}
