/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ in bf16 on the CPU. Landmarks, A and its inverse X are f32, so f32 itself, on the
 * same landmarks rounded to bf16, gives the same X; what bf16 adds is compared, element by element,
 * with what its roundings add if they are independent. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_run.h"
#include "data.h"
#include "fixture.h"

/* Spread tokens have A near I, so that errors of a few roundoffs of the output are expected. */
typedef struct {
    atn_sampling_kind sampling;
    int64_t height, width, stride, count, dim, value_dim, heads;
    double scale; /* s, times the mean |q - l|^2 of tokens, 2 d size^2 */
    double shift; /* added to all tokens: the distances stay, the norms grow */
    double size;  /* of the tokens, a power of two */
} row;

/* Blocks have 256 tokens, chunks 1024 or more; a vector has up to 16 columns, an AMX tile 16 rows.
 * A shift of 3 leaves products exact enough, with one of 40 they would be off by some hundred
 * roundoffs. Of sizes around 2^-62 many products are
 * subnormal, which may count as 0. */
static const row rows[] = {
    {ATN_SAMPLING_FIRST, 1, 1, 1, 1, 1, 1, 1, 3, 0, 1},
    {ATN_SAMPLING_FIRST, 3, 5, 1, 4, 3, 2, 3, 3, 0, 1},
    {ATN_SAMPLING_POOL, 16, 16, 2, 0, 8, 16, 2, 12, 0, 1},
    {ATN_SAMPLING_POOL, 1, 257, 1, 0, 16, 17, 1, 3, 0, 1},
    {ATN_SAMPLING_WINDOW, 10, 10, 4, 0, 32, 32, 2, 12, 0, 1},
    {ATN_SAMPLING_INDICES, 30, 41, 1, 49, 33, 40, 2, 3, 0, 1},
    {ATN_SAMPLING_KMEANS, 29, 70, 1, 33, 7, 33, 1, 3, 0, 1},
    {ATN_SAMPLING_LEVERAGE, 10, 20, 1, 17, 5, 3, 2, 3, 0, 1},
    {ATN_SAMPLING_RPCHOLESKY, 10, 20, 1, 15, 64, 7, 1, 3, 0, 1},
    {ATN_SAMPLING_GREEDY, 10, 31, 1, 16, 6, 300, 1, 3, 0, 1},
    {ATN_SAMPLING_FIRST, 20, 40, 1, 300, 12, 8, 1, 7, 0, 1},
    {ATN_SAMPLING_FIRST, 20, 30, 1, 32, 16, 16, 2, 3, 3, 1},
    {ATN_SAMPLING_FIRST, 20, 30, 1, 31, 15, 16, 2, 3, 40, 1},
    {ATN_SAMPLING_FIRST, 20, 30, 1, 20, 16, 16, 1, 3, 0, 0x1p-62},
    {ATN_SAMPLING_FIRST, 20, 30, 1, 20, 16, 16, 1, 3, 0, 0x1p62},
};
enum { ROWS = sizeof rows / sizeof *rows };

static fixture_soft make(int op, atn_distance distance, const row *r, int layout, uint64_t seed)
{
    fixture_soft_case c = {.op = (atn_operator)op,
                           .dtype = ATN_BF16,
                           .layout = (guarded_layout)layout,
                           .sampling = r->sampling,
                           .batch = 2,
                           .heads = r->heads,
                           .height = r->height,
                           .width = r->width,
                           .stride = r->stride,
                           .count = r->count,
                           .dim = r->dim,
                           .value_dim = r->value_dim,
                           .distance = distance,
                           .seed = seed};
    c.inverse = atn_inverse_defaults(op == ATN_SOFTPP ? ATN_INVERSE_EIG : ATN_INVERSE_CHOLESKY);
    c.scale = ATN_SCALE_VALUE;
    c.scale_value = r->scale / (2 * (double)r->dim * r->size * r->size);
    fixture_soft f = fixture_soft_make(&c);
    for (int64_t i = 0; i < 2 * r->heads * f.n * r->dim; i++) {
        float x = (float)((f.q[i] + r->shift) * r->size);
        atn_storage_round(ATN_STORAGE_BF16, 1, &x);
        f.q[i] = (double)x;
    }
    fixture_soft_load(&f);
    return f;
}

static float *to_f32(int64_t count, const double *from)
{
    float *to = calloc((size_t)count + 1, sizeof *to);
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)from[i];
    return to;
}

/* By f32, of heads whose first m tokens are the landmarks and have V = 0. want: all heads' n x dv;
 * sigma: the root of the sum of squares of what each rounding to bf16 adds, to first order. */
static void expect(atn_context *context, const fixture_soft *f, double *want, double *sigma)
{
    int64_t heads = f->c.batch * f->c.heads, n = f->n, m = f->m, d = f->c.dim, dv = f->c.value_dim;
    int64_t all = m + n;
    float *q = to_f32(heads * n * d, f->q), *l = calloc((size_t)(heads * m * d), sizeof *l),
          *tokens = calloc((size_t)(heads * all * d), sizeof *tokens),
          *values = calloc((size_t)(heads * all * dv), sizeof *values),
          *out = calloc((size_t)(heads * all * dv), sizeof *out),
          *a = calloc((size_t)(heads * m * m), sizeof *a),
          *x = calloc((size_t)(heads * m * m), sizeof *x);
    atn_tensor from = atn_tensor_dense(q, ATN_F32, f->c.batch, f->c.heads, n, d),
               to = atn_tensor_dense(l, ATN_F32, f->c.batch, f->c.heads, m, d);
    cr_assert_eq(atn_sample(context, &f->desc.sampling, &from, &to), ATN_OK, "%s",
                 atn_last_error(context));
    atn_storage_round(ATN_STORAGE_BF16, heads * m * d, l);
    for (int64_t head = 0; head < heads; head++) {
        memcpy(tokens + head * all * d, l + head * m * d, (size_t)(m * d) * sizeof *l);
        memcpy(tokens + (head * all + m) * d, q + head * n * d, (size_t)(n * d) * sizeof *q);
        for (int64_t i = 0; i < n * dv; i++)
            values[(head * all + m) * dv + i] = (float)f->v[head * n * dv + i];
    }

    atn_attention_desc desc = f->desc;
    desc.dtype = ATN_F32;
    desc.distance = ATN_DISTANCE_DIRECT;
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = m};
    atn_attention_shape shape = f->shape;
    shape.tokens = shape.key_tokens = all;
    atn_plan *plan;
    cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK, "%s",
                 atn_last_error(context));
    atn_tensor all_q = atn_tensor_dense(tokens, ATN_F32, f->c.batch, f->c.heads, all, d),
               all_v = atn_tensor_dense(values, ATN_F32, f->c.batch, f->c.heads, all, dv),
               y = atn_tensor_dense(out, ATN_F32, f->c.batch, f->c.heads, all, dv),
               a_view = atn_tensor_dense(a, ATN_F32, f->c.batch, f->c.heads, m, m),
               x_view = atn_tensor_dense(x, ATN_F32, f->c.batch, f->c.heads, m, m);
    atn_attention_inputs inputs = {.q = &all_q, .v = &all_v};
    cr_assert_eq(atn_attention_forward(plan, &inputs, &y, NULL), ATN_OK);
    atn_plan_free(plan);
    cr_assert_eq(atn_gaussian_self(context, ATN_DISTANCE_DIRECT, f->desc.scale_value, &to, &a_view),
                 ATN_OK);
    cr_assert_eq(atn_inverse(context, &desc.inverse, &a_view, &x_view, NULL, NULL), ATN_OK);

    double u = atn_dtype_roundoff(ATN_BF16);
    double *p = data_allocate(m * n), *sums = data_allocate(2 * m * dv),
           *weights = data_allocate(2 * m * dv), *roots = data_allocate(m);
    for (int64_t head = 0; head < heads; head++) {
        const float *landmarks = l + head * m * d;
        const double *queries = f->q + head * n * d, *v = f->v + head * n * dv;
        memset(sums, 0, (size_t)(2 * m * dv) * sizeof *sums); /* P V, then P^2 V^2 */
        memset(weights, 0, (size_t)(2 * m * dv) * sizeof *weights);
        for (int64_t i = 0; i < m; i++)
            for (int64_t t = 0; t < n; t++) {
                double squared = 0;
                for (int64_t c = 0; c < d; c++) {
                    double difference = queries[t * d + c] - (double)landmarks[i * d + c];
                    squared += difference * difference;
                }
                p[i * n + t] = exp(-f->desc.scale_value * squared);
                for (int64_t e = 0; e < dv; e++) {
                    double term = p[i * n + t] * v[t * dv + e];
                    sums[i * dv + e] += term;
                    sums[(m + i) * dv + e] += term * term;
                }
            }
        for (int64_t i = 0; i < m; i++) { /* SOFT++: D^1/2, D = diag(A 1) */
            roots[i] = f->c.op != ATN_SOFTPP;
            for (int64_t j = 0; j < m && f->c.op == ATN_SOFTPP; j++)
                roots[i] += (double)a[(head * m + i) * m + j];
            roots[i] = sqrt(roots[i]);
        }
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < m; j++) {
                double entry = (double)x[(head * m + i) * m + j] / (roots[i] * roots[j]);
                for (int64_t e = 0; e < dv; e++) {
                    weights[i * dv + e] += entry * sums[j * dv + e];
                    weights[(m + i) * dv + e] += entry * entry * sums[(m + j) * dv + e];
                }
            }
        /* P is off by u and the quarter of it that its distances may add, twice; X U and Y by u. */
        const double kernel = 1.25 * 1.25;
        for (int64_t e = 0; e < m * dv; e++)
            weights[e] = (1 + kernel) * weights[e] * weights[e] + kernel * weights[m * dv + e];
        for (int64_t t = 0; t < n; t++)
            for (int64_t e = 0; e < dv; e++) {
                int64_t at = (head * n + t) * dv + e;
                want[at] = (double)out[(head * all + m + t) * dv + e];
                double terms = want[at] * want[at];
                for (int64_t i = 0; i < m; i++)
                    terms += p[i * n + t] * p[i * n + t] * weights[i * dv + e];
                sigma[at] = u * sqrt(terms);
            }
    }
    free(roots);
    free(weights);
    free(sums);
    free(p);
    free(x);
    free(a);
    free(out);
    free(values);
    free(tokens);
    free(l);
    free(q);
}

/* u is the most that a rounding adds, so that sums of many are below sigma / 2. */
static const double MOST_SIGMAS = 3;

static void check_row(const atn_context_options *options, int op, atn_distance distance, int index)
{
    atn_context *context;
    if (atn_context_create(options, &context) != ATN_OK)
        return; /* the processor lacks the set */
    fixture_soft f =
        make(op, distance, &rows[index], index % GUARDED_LAYOUT_COUNT, (uint64_t)index);
    int64_t count = f.c.batch * f.c.heads * f.n * f.c.value_dim;
    double *want = data_allocate(count), *sigma = data_allocate(count), *got = data_allocate(count);
    double worst = 0, size = 0, expected = 0;
    cr_expect_eq(fixture_soft_run(&f, context), ATN_OK, "row %d: %s", index,
                 atn_last_error(context));
    cr_expect(guarded_damaged(&f.out) == 0 && guarded_unwritten(&f.out) == 0, "row %d", index);
    guarded_get(&f.out, got);
    expect(context, &f, want, sigma);
    for (int64_t i = 0; i < count; i++) {
        double ratio = fabs(got[i] - want[i]) / sigma[i];
        worst = ratio > worst || isnan(ratio) ? ratio : worst;
        size += want[i] * want[i];
        expected += sigma[i] * sigma[i];
    }
    fprintf(stderr, "%s %s, row %d, %s: %.3g sigma, which is %.3g of the output\n",
            atn_operator_get((atn_operator)op)->name, atn_distance_name(distance), index,
            atn_isa_name(options->isa), worst, sqrt(expected / size));
    cr_expect(worst <= MOST_SIGMAS, "%s %s, row %d, %s: %.3g sigma",
              atn_operator_get((atn_operator)op)->name, atn_distance_name(distance), index,
              atn_isa_name(options->isa), worst);
    cr_expect(expected < size / 400, "row %d: sigma is %.3g of the output", index,
              sqrt(expected / size)); /* so that zeros, or a token too few, would show */
    free(got);
    free(sigma);
    free(want);
    fixture_soft_free(&f);
    atn_context_free(context);
}

/* Products of distances lose what the tokens' norms are larger than the distances, as in f32: rows
 * with a shift or sizes beyond f32's squares are for direct distances alone. */
static bool suits(atn_distance distance, const row *r)
{
    return distance == ATN_DISTANCE_DIRECT || (r->shift < 10 && r->size == 1);
}

Test(soft_bf16, adds_no_more_than_its_roundings)
{
    int run = 0;
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int distance = 0; distance < ATN_DISTANCE_COUNT; distance++)
            for (int i = 0; i < ROWS; i++)
                for (int isa = ATN_ISA_BASE;
                     suits((atn_distance)distance, &rows[i]) && isa < ATN_ISA_COUNT; isa++, run++)
                    check_row(&(atn_context_options){.threads = 1 + i % 3, .isa = (atn_isa)isa}, op,
                              (atn_distance)distance, i);
    cr_expect_geq(run, 2 * 3 * (ROWS - 3));
}

/* NaN or infinity in a head's Q or V makes that head NaN, and no other. */
Test(soft_bf16, a_head_that_is_not_finite)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    const row r = {ATN_SAMPLING_FIRST, 20, 30, 1, 9, 5, 3, 3, 3, 0, 1};
    atn_context *context = fixture_context(2, NULL);
    for (int distance = 0; distance < ATN_DISTANCE_COUNT; distance++)
        for (int k = 0; k < 3 * 2 * 2; k++) {
            fixture_soft f = make(ATN_SOFT, (atn_distance)distance, &r, GUARDED_TOKENS, 3);
            int64_t width = k / 3 % 2 ? r.value_dim : r.dim, size = f.n * width;
            double *x = k / 3 % 2 ? f.v : f.q;
            x[k < 6 ? 2 * size - 1 : size + 40 * width] = bad[k % 3]; /* in the second head */
            fixture_soft_load(&f);
            cr_expect_eq(fixture_soft_run(&f, context), ATN_NONFINITE, "%d", k);
            for (int64_t i = 0; i < 6 * f.n * r.value_dim; i++) {
                int64_t head = i / (f.n * r.value_dim);
                double y =
                    guarded_at(&f.out, head / 3, head % 3, i / r.value_dim % f.n, i % r.value_dim);
                cr_expect_eq(isnan(y), head == 1, "%d: head %d", k, (int)head);
            }
            for (int head = 0; head < 6; head++)
                cr_expect_eq(f.infos[head].status, head == 1 ? ATN_NONFINITE : ATN_OK);
            fixture_soft_free(&f);
        }
    atn_context_free(context);
}

/* Few threads compute whole heads and keep some of P, many share a head's chunks and compute it
 * twice. */
Test(soft_bf16, the_same_bits_on_any_number_of_threads)
{
    static const int threads[] = {1, 2, 3, 7};
    enum { COUNTS = sizeof threads / sizeof *threads };
    static const row sizes[] = {
        {ATN_SAMPLING_FIRST, 60, 50, 1, 40, 6, 5, 3, 3, 0, 1},
        {ATN_SAMPLING_POOL, 80, 120, 4, 0, 5, 4, 1, 12, 0, 1},
    };
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int i = 0; i < 2; i++) {
            fixture_soft f[COUNTS];
            for (int k = 0; k < COUNTS; k++) {
                atn_context *context = fixture_context(threads[k], NULL);
                f[k] = make(op, ATN_DISTANCE_DIRECT, &sizes[i], GUARDED_DENSE, 5);
                cr_expect_geq(fixture_soft_run(&f[k], context), 0);
                cr_expect(guarded_unwritten(&f[k].out) == 0 &&
                              guarded_same_bits(&f[k].out, &f[0].out),
                          "%d threads", threads[k]);
                atn_context_free(context);
            }
            for (int k = 0; k < COUNTS; k++)
                fixture_soft_free(&f[k]);
        }
}

/* What bf16 does not have on the CPU, and why. */
Test(soft_bf16, what_is_refused)
{
    const row r = {ATN_SAMPLING_FIRST, 4, 4, 2, 4, 3, 2, 1, 3, 0, 1};
    atn_context *context = fixture_context(1, NULL);
    for (int k = 0; k < 4; k++) {
        static const char *const reasons[] = {"pivoted-cholesky", "residual", "conv", "conv"};
        row changed = r;
        changed.sampling = k == 2   ? ATN_SAMPLING_CONV
                           : k == 3 ? ATN_SAMPLING_CONV_CODE
                                    : ATN_SAMPLING_FIRST;
        fixture_soft f = make(ATN_SOFTPP, ATN_DISTANCE_DIRECT, &changed, GUARDED_DENSE, 1);
        guarded filter = guarded_make(ATN_BF16, GUARDED_DENSE, 1, 1, 3, 3);
        if (k == 0)
            f.desc.inverse = atn_inverse_defaults(ATN_INVERSE_PIVOTED_CHOLESKY);
        if (k == 1) {
            f.desc.residual = filter.view;
            f.desc.residual_height = f.desc.residual_width = 4;
        }
        cr_expect_eq(fixture_soft_run(&f, context), ATN_ERR_UNSUPPORTED, "%s", reasons[k]);
        cr_expect(strstr(atn_last_error(context), "in bf16 the CPU has no") &&
                      strstr(atn_last_error(context), reasons[k]),
                  "%s", atn_last_error(context));
        cr_expect_eq(guarded_unwritten(&f.out), 2 * 16 * 2);
        guarded_free(&filter);
        fixture_soft_free(&f);
    }
    atn_context_free(context);
}
