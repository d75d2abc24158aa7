/* SPDX-License-Identifier: BSD-3-Clause */
/* What bf16.h offers, in one instruction set (a program for each, lib/meson.build): products, pairs
 * and the Gaussian kernel, as plain loops in double, for sizes around whole vectors and tiles.
 * Arrays end where memory ends, because no sanitizer sees what AMX reads, and what lies between the
 * rows of a result stays as it was. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <attnum/attnum.h>

#include "cpu/bf16.h"
#include "cpu/table.h"

#if defined(SIMD_AVX512) || defined(SIMD_AMX)
static const atn_isa isa = ATN_ISA_AVX512;
#elif defined(SIMD_AVX2)
static const atn_isa isa = ATN_ISA_AVX2;
#else
static const atn_isa isa = ATN_ISA_BASE;
#endif

static bool available(void)
{
    bool here = atn_isa_choose(isa, NULL, NULL) == ATN_OK;
#if defined(SIMD_AMX)
    return here && cpu_has_amx();
#elif defined(SIMD_AVX512)
    return here && __builtin_cpu_supports("avx512bf16");
#else
    return here;
#endif
}

/* Before any test. */
__attribute__((constructor)) static void skip_without_the_set(void)
{
    if (!available()) {
        fprintf(stderr, "this processor lacks the instruction set\n");
        _exit(77);
    }
}

typedef void product_function(const bf16_terms *terms);
#define BASE(name) REAL_NAME(name, REAL_TYPE, base)
extern product_function BASE(multiply_pairs);

enum {
    ROWS = 70,
    COLUMNS = 80,
    PAIRS = 40,
    A_ROW = 2 * PAIRS + 2,
    B_WIDTH = COLUMNS + 3,
    C_ROW = 90
};
enum { A_SIZE = ROWS * A_ROW, B_SIZE = PAIRS * B_WIDTH, C_SIZE = ROWS * C_ROW };

/* The ends of three arrays, each before a page that nobody may touch. */
static real *a_end;
static bf16_pair *b_end;
static float *c_end;
static float before[C_SIZE];

static void *end_of_memory(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    char *memory =
        mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(memory != MAP_FAILED && mprotect(memory + whole, page, PROT_NONE) == 0);
    return memory + whole;
}

/* A bf16 number of 2^-7 to 1, or its negative, with all digits. */
static real random_number(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (real)((state >> 63 ? 0x8000 : 0) + 0x3c00 + (state >> 40) % 0x0400);
}

static void fill(void)
{
    if (!a_end) {
        a_end = end_of_memory(A_SIZE * sizeof *a_end);
        b_end = end_of_memory(B_SIZE * sizeof *b_end);
        c_end = end_of_memory(C_SIZE * sizeof *c_end);
    }
    for (int i = 1; i <= A_SIZE; i++)
        a_end[-i] = random_number();
    for (int i = 1; i <= B_SIZE; i++)
        b_end[-i] = (bf16_pair)random_number() | (bf16_pair)random_number() << 16;
    for (int i = 0; i < C_SIZE; i++)
        before[i] = core_bf16_value(random_number());
}

/* The last element of each matrix is the last of its memory. */
static bf16_terms terms_of(int64_t rows, int64_t columns, int64_t pairs, bool add)
{
    return (bf16_terms){.rows = rows,
                        .columns = columns,
                        .pairs = pairs,
                        .a = a_end - ((rows - 1) * A_ROW + 2 * pairs),
                        .a_row = A_ROW,
                        .a_step = 2,
                        .b = b_end - ((pairs - 1) * B_WIDTH + columns),
                        .b_width = B_WIDTH,
                        .add = add,
                        .c = c_end - ((rows - 1) * C_ROW + columns),
                        .c_row = C_ROW};
}

/* Of element (i, j) of C: what it should be, and the most that rounding changes. */
static double exact(const bf16_terms *t, int64_t i, int64_t j, double old, double *most)
{
    double want = t->add ? old : 0, size = fabs(want);
    for (int64_t k = 0; k < t->pairs; k++) {
        bf16_pair pair = t->b[k * t->b_width + j];
        const real *x = t->a + i * t->a_row + k * t->a_step;
        double first =
            (double)core_bf16_value(x[0]) * (double)core_bf16_value((real)(pair & 0xffff));
        double second = (double)core_bf16_value(x[1]) * (double)core_bf16_value((real)(pair >> 16));
        want += first + second;
        size += fabs(first) + fabs(second);
    }
    *most = (double)(2 * t->pairs + 2) * (double)(FLT_EPSILON / 2) * size;
    return want;
}

static void run(product_function *multiply, const bf16_terms *t)
{
    memcpy(c_end - C_SIZE, before, sizeof before);
    multiply(t);
}

static void expect_product(product_function *multiply, const bf16_terms *t)
{
    int wrong = 0;
    run(multiply, t);
    const float *old = before + C_SIZE - (c_end - t->c);
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->c_row && t->c + i * t->c_row + j < c_end; j++) {
            double most, is = (double)t->c[i * t->c_row + j], was = (double)old[i * t->c_row + j];
            double off = j < t->columns ? fabs(is - exact(t, i, j, was, &most)) : fabs(is - was);
            wrong += !(off <= (j < t->columns ? most : 0));
        }
    wrong += memcmp(c_end - C_SIZE, before, (size_t)(C_SIZE - (c_end - t->c)) * sizeof *t->c) != 0;
    cr_expect(wrong == 0, "%d x %d, %d pairs, add %d, step %d: %d wrong", (int)t->rows,
              (int)t->columns, (int)t->pairs, t->add, (int)t->a_step, wrong);
}

Test(bf16_products, every_size)
{
    static const int64_t rows[] = {1, 2, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 47, 48, 49, 64, 69};
    static const int64_t pairs[] = {1, 2, 7, 15, 16, 17, 31, 32, 33, 40};
    fill();
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int64_t columns = SIMD_COLUMNS; columns <= COLUMNS; columns += SIMD_COLUMNS)
            for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
                for (int add = 0; add < 2; add++) {
                    bf16_terms t = terms_of(rows[r], columns, pairs[p], add);
                    expect_product(R(multiply_pairs_any_order), &t);
                    if (add == (int)(p % 2))
                        expect_product(R(multiply_pairs), &t);
                }
}

/* Also with the rows of A in its columns. */
Test(bf16_products, ordered_sums_have_the_bits_of_base)
{
    static float by_base[C_SIZE];
    fill();
    for (int transposed = 0; transposed < 2; transposed++) {
        bf16_terms t = terms_of(37, 48, 29, true);
        if (transposed) {
            t.a_row = 2;
            t.a_step = A_ROW;
            t.a = a_end - (28 * t.a_step + 37 * t.a_row);
        }
        expect_product(BASE(multiply_pairs), &t);
        memcpy(by_base, c_end - C_SIZE, sizeof by_base);
        expect_product(R(multiply_pairs), &t);
        cr_expect(memcmp(by_base, c_end - C_SIZE, sizeof by_base) == 0, "transposed %d: other bits",
                  transposed);
    }
}

/* NaN and infinities of A reach their row, those of B their column, and no other number. */
Test(bf16_products, not_finite)
{
    static const real bad[] = {0x7fc0, 0x7f80, 0xff80};
    static const int places[][2] = {{0, 0}, {5, 3}, {20, 17}, {33, 18}, {39, 20}}; /* row, pair */
    enum { PLACES = sizeof places / sizeof *places };
    for (int k = 0; k < 3 * PLACES * 4; k++) {
        const int *place = places[k / 3 % PLACES];
        bool in_b = k / (3 * PLACES) % 2, add = k / (3 * PLACES) / 2;
        fill();
        bf16_terms t = terms_of(40, 48, 21, add);
        if (in_b)
            b_end[t.b - b_end + place[1] * t.b_width + place[0]] =
                (bf16_pair)bad[k % 3] << 16 | 0x3f80;
        else
            a_end[t.a - a_end + place[0] * t.a_row + 2 * place[1] + 1] = bad[k % 3];
        run(R(multiply_pairs_any_order), &t);
        for (int64_t i = 0; i < t.rows; i++)
            for (int64_t j = 0; j < t.columns; j++)
                cr_expect_eq(isfinite(t.c[i * t.c_row + j]) != 0, (in_b ? j : i) != place[0],
                             "%d: %d, %d", k, (int)i, (int)j);
    }
}

/* ---- Pairs ---- */

enum { MOST = 50, STEP = MOST + 5 }; /* rows and columns; from a row to the next one */

/* Before the end of memory: rows of `width`, STEP apart. */
static real *matrix_before(real *end, int64_t rows, int64_t width)
{
    return end - ((rows - 1) * STEP + width);
}

Test(bf16_products, pairs_of_every_size)
{
    enum { WIDTH = 70 }; /* of the pairs */
    static bf16_pair pairs[MOST * WIDTH];
    fill();
    for (int64_t rows = 1; rows <= MOST; rows += rows < 18 ? 1 : 7)
        for (int64_t columns = 1; columns <= MOST; columns++) {
            const real *x = matrix_before(a_end, rows, columns);
            int wrong = 0;
            memset(pairs, 0xa5, sizeof pairs);
            R(pair_columns)(rows, columns, x, STEP, pairs, WIDTH);
            for (int64_t p = 0; p < MOST; p++)
                for (int64_t r = 0; r < WIDTH; r++) {
                    bf16_pair want = 0xa5a5a5a5;
                    if (p < bf16_pairs(columns) && r < whole_vectors(rows)) {
                        want = r < rows ? x[r * STEP + 2 * p] : 0;
                        want |= r < rows && 2 * p + 1 < columns
                                    ? (bf16_pair)x[r * STEP + 2 * p + 1] << 16
                                    : 0;
                    }
                    wrong += pairs[p * WIDTH + r] != want;
                }
            memset(pairs, 0xa5, sizeof pairs);
            R(pair_rows)(rows, columns, x, STEP, pairs, WIDTH);
            for (int64_t p = 0; p < MOST; p++)
                for (int64_t c = 0; c < WIDTH; c++) {
                    bf16_pair want = p < bf16_pairs(rows) ? 0 : 0xa5a5a5a5;
                    if (p < bf16_pairs(rows) && c < columns) {
                        want = x[2 * p * STEP + c];
                        want |= 2 * p + 1 < rows ? (bf16_pair)x[(2 * p + 1) * STEP + c] << 16 : 0;
                    }
                    wrong += pairs[p * WIDTH + c] != want;
                }
            cr_expect(wrong == 0, "%d x %d: %d wrong", (int)rows, (int)columns, wrong);
        }
}

/* x has whole vectors of rows, and ends with them. */
Test(bf16_products, rounded_transposes_of_every_size)
{
    fill();
    for (int64_t rows = 1; rows <= MOST; rows += rows < 35 ? 1 : 5)
        for (int64_t columns = 1; columns <= MOST; columns++) {
            int64_t width = whole_vectors(rows);
            const float *x = c_end - ((columns - 1) * C_ROW + width);
            real *out = matrix_before(a_end, rows, columns), *first = a_end - A_SIZE;
            int wrong = 0;
            for (int i = 0; i < C_SIZE; i++) /* more digits than bf16 has */
                c_end[i - C_SIZE] = before[i] * (1 + (float)(i % 97) * 0x1p-10F);
            memset(first, 0xa5, A_SIZE * sizeof *first);
            R(narrow_transposed)(rows, columns, x, C_ROW, out, STEP);
            for (real *at = first; at < a_end; at++) {
                int64_t i = at < out ? -1 : (at - out) / STEP, j = at < out ? 0 : (at - out) % STEP;
                float want = i < 0 || j >= columns ? 0 : x[j * C_ROW + i];
                atn_storage_round(ATN_STORAGE_BF16, 1, &want);
                wrong += i < 0 || j >= columns ? *at != 0xa5a5 : core_bf16_value(*at) != want;
            }
            cr_expect(wrong == 0, "%d x %d: %d wrong", (int)rows, (int)columns, wrong);
        }
}

/* ---- The Gaussian kernel ---- */

Test(bf16_products, squared_distances)
{
    fill();
    for (int64_t count = SIMD_COLUMNS; count <= COLUMNS; count += SIMD_COLUMNS)
        for (int64_t pairs = 1; pairs <= PAIRS; pairs += pairs < 5 ? 1 : 7) {
            const bf16_pair *x = b_end - ((pairs - 1) * B_WIDTH + count);
            const real *l = a_end - 2 * pairs;
            float *norms = c_end - count, *direct = norms - count, *expanded = direct - count;
            float largest = R(pair_norms)(count, pairs, x, B_WIDTH, norms), most = 0;
            double l_norm = 0, u = (double)(FLT_EPSILON / 2) * (double)(2 * pairs + 3);
            for (int64_t p = 0; p < 2 * pairs; p++)
                l_norm += (double)core_bf16_value(l[p]) * (double)core_bf16_value(l[p]);
            R(pair_distances)(count, pairs, x, B_WIDTH, l, direct);
            double norm[COLUMNS] = {0}, squared[COLUMNS] = {0};
            for (int64_t i = 0; i < count; i++) {
                float product = 0;
                for (int64_t p = 0; p < 2 * pairs; p++) {
                    bf16_pair pair = x[p / 2 * B_WIDTH + i];
                    double value =
                               (double)core_bf16_value((real)(p % 2 ? pair >> 16 : pair & 0xffff)),
                           other = (double)core_bf16_value(l[p]);
                    norm[i] += value * value;
                    squared[i] += (value - other) * (value - other);
                    product += (float)(value * other);
                }
                expanded[i] = product;
                most = norms[i] > most ? norms[i] : most;
                cr_expect(fabs((double)norms[i] - norm[i]) <= u * norm[i]);
                cr_expect(fabs((double)direct[i] - squared[i]) <= u * squared[i]);
            }
            cr_expect_eq(largest, most);
            R(expand_distances)(count, norms, (float)l_norm, false, expanded, expanded);
            for (int64_t i = 0; i < count; i++)
                cr_expect(fabs((double)expanded[i] - squared[i]) <= 2 * u * (norm[i] + l_norm));
        }
}

/* The last token is not finite, or the square of a number is not. */
Test(bf16_products, norms_that_are_not_finite)
{
    static const real bad[] = {0x7fc0, 0xffc0, 0x7f80, 0xff80, 0x6000};
    enum { PLACES = 4 };
    for (int k = 0; k < 5 * PLACES; k++) {
        static const int columns[PLACES] = {0, 7, 16, 31};
        fill();
        bf16_pair *x = b_end - (2 * B_WIDTH + 32), *at = x + k % 3 * B_WIDTH + columns[k / 5];
        *at = k % 2 ? (bf16_pair)bad[k % 5] << 16 : bad[k % 5];
        cr_expect(isnan(R(pair_norms)(32, 3, x, B_WIDTH, c_end - 32)), "%d", k);
    }
}

/* Negative squares, which rounding makes, are 0 with clamp. NaN stays. */
Test(bf16_products, clamped_distances)
{
    fill();
    float *x = c_end - 32, *norms = x - 32;
    for (int clamp = 0; clamp < 2; clamp++) {
        for (int i = 0; i < 32; i++) {
            norms[i] = (float)i;
            x[i] = 16;
        }
        x[31] = NAN;
        R(expand_distances)(32, norms, 16, clamp, x, x);
        for (int i = 0; i < 31; i++)
            cr_expect_eq(x[i], clamp && i < 16 ? 0 : (float)(i - 16));
        cr_expect(isnan(x[31]));
    }
}

Test(bf16_products, kernel_values)
{
    static const double scales[] = {0, 1e-300, 0x1p-60, 0.3, 1, 7, 1e20, 1e300};
    fill();
    for (int64_t count = SIMD_COLUMNS; count <= 5 * SIMD_COLUMNS; count += SIMD_COLUMNS)
        for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
            float *x = c_end - count;
            real *out = a_end - count;
            for (int64_t i = 0; i < count; i++)
                x[i] = i == 3   ? 0
                       : i == 5 ? INFINITY
                       : i == 7 ? NAN
                                : fabsf(before[i]) * (float)(i + 1);
            R(gaussian_weights)(count, scales[k], x, out);
            for (int64_t i = 0; i < count; i++) {
                double got = (double)core_bf16_value(out[i]), want = exp(-scales[k] * (double)x[i]);
                bool any = i == 7 || (i == 5 && scales[k] < 1e-100);
                cr_expect(any || fabs(got - want) <= 0x1.02p-8 * want + 0x1p-126,
                          "exp(-%g %g) = %g", scales[k], (double)x[i], got);
                cr_expect(i != 3 || got == 1);
                cr_expect(i != 7 || isnan(got));
            }
        }
}

/* The second products of the pairs cancel: added up by themselves, as AMX does, they leave a logit
 * of 2, and in the order of the terms 1, since 2^30 + 1 rounds to 2^30. The other logit is 0. */
Test(bf16_products, softmax_takes_amx_where_it_is)
{
    enum { ONE = 0x3f80, LARGE = 0x4700, NEGATIVE = 0x8000 }; /* 1, 2^15, the sign */
    static real q[] = {ONE, LARGE, ONE, LARGE}, k[8] = {ONE, LARGE, ONE, LARGE | NEGATIVE},
                v[] = {ONE, 0}, y[1];
    atn_context_options options = {.threads = 1, .isa = isa};
    atn_context *context;
    atn_plan *plan;
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFTMAX, ATN_BF16);
    atn_attention_shape shape = {1, 1, 1, 4, 1, 2};
    atn_tensor queries = atn_tensor_dense(q, ATN_BF16, 1, 1, 1, 4);
    atn_tensor keys = atn_tensor_dense(k, ATN_BF16, 1, 1, 2, 4);
    atn_tensor values = atn_tensor_dense(v, ATN_BF16, 1, 1, 2, 1);
    atn_tensor out = atn_tensor_dense(y, ATN_BF16, 1, 1, 1, 1);
    desc.logit_scale = 1;
    cr_assert_eq(atn_context_create(&options, &context), ATN_OK);
    cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK);
    cr_expect_eq(
        atn_attention_forward(
            plan, &(atn_attention_inputs){.q = &queries, .k = &keys, .v = &values}, &out, NULL),
        ATN_OK);
    double logit = isa == ATN_ISA_AVX512 && cpu_has_amx() ? 2 : 1, want = 1 / (1 + exp(-logit));
    cr_expect(fabs((double)core_bf16_value(y[0]) - want) < 0x1p-7, "%g, not %g",
              (double)core_bf16_value(y[0]), want);
    atn_plan_free(plan);
    atn_context_free(context);
}

/* Two tokens x (1, 1), which is the landmark, and x (1, 2): Y = exp(-s x^2) for the second one if V
 * is 1 and 0. x = 1.5 2^-64: its square is subnormal, and products like it may count as 0. */
Test(bf16_products, soft_takes_no_subnormal_products)
{
    enum { X = (127 - 64) << 7 | 0x40, TWICE = (128 - 64) << 7 | 0x40, ONE = 0x3f80 };
    static real q[] = {X, X, X, TWICE}, v[] = {ONE, 0}, y[2];
    atn_context_options options = {.threads = 1, .isa = isa};
    atn_context *context;
    atn_plan *plan;
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_BF16);
    atn_attention_shape shape = {1, 1, 2, 2, 1, 0};
    atn_tensor tokens = atn_tensor_dense(q, ATN_BF16, 1, 1, 2, 2);
    atn_tensor values = atn_tensor_dense(v, ATN_BF16, 1, 1, 2, 1);
    atn_tensor out = atn_tensor_dense(y, ATN_BF16, 1, 1, 2, 1);
    desc.scale = ATN_SCALE_VALUE;
    desc.scale_value = 0x1p128 / 2.25;
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = 1};
    desc.inverse = atn_inverse_defaults(ATN_INVERSE_CHOLESKY);
    cr_assert_eq(atn_context_create(&options, &context), ATN_OK);
    cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK);
    cr_expect_eq(atn_attention_forward(plan, &(atn_attention_inputs){.q = &tokens, .v = &values},
                                       &out, NULL),
                 ATN_OK);
    cr_expect(fabs((double)core_bf16_value(y[1]) - exp(-1)) < 0x1p-8, "%g, not %g",
              (double)core_bf16_value(y[1]), exp(-1));
    atn_plan_free(plan);
    atn_context_free(context);
}
