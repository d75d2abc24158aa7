/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of bf16 matrices in one instruction set (a program for each, lib/meson.build): as a
 * plain loop in double, for sizes around whole vectors and tiles; nothing else is written. */
#define _DEFAULT_SOURCE /* syscall */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <attnum/context.h>

#include "cpu/bf16.h"

#ifdef SIMD_AMX
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

/* As lib/cpu/isa.c finds it out. */
static bool has_amx(void)
{
#ifdef __linux__
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & 1u << 24) && (d & 1u << 22) &&
           syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
    return false;
#endif
}
#endif

static bool available(void)
{
#if defined(SIMD_AMX)
    return atn_isa_choose(ATN_ISA_AVX512, NULL, NULL) == ATN_OK && has_amx();
#elif defined(SIMD_AVX512)
    return atn_isa_choose(ATN_ISA_AVX512, NULL, NULL) == ATN_OK &&
           __builtin_cpu_supports("avx512bf16");
#elif defined(SIMD_AVX2)
    return atn_isa_choose(ATN_ISA_AVX2, NULL, NULL) == ATN_OK;
#else
    return true;
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

enum { ROWS = 70, COLUMNS = 80, PAIRS = 40, SIZE = 96 * 96 };

static real a[2 * SIZE];
static bf16_pair b[SIZE];
static float before[SIZE], c[SIZE], by_base[SIZE];

/* A bf16 number of -2 .. 2 with all digits. */
static real random_number(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (real)((state >> 63 ? 0x8000 : 0) + 0x3c00 + (state >> 40) % 0x0400);
}

static void fill(void)
{
    for (int i = 0; i < 2 * SIZE; i++)
        a[i] = random_number();
    for (int i = 0; i < SIZE; i++) {
        b[i] = (bf16_pair)random_number() | (bf16_pair)random_number() << 16;
        before[i] = bf16_value(random_number());
    }
}

/* The numbers of C that are further from the exact ones than `pairs` roundings of every sum, and
 * those outside it that have changed. */
static int count_wrong(const bf16_terms *t)
{
    int wrong = 0;
    for (int64_t i = 0; i < SIZE; i++) {
        int64_t row = i / t->c_row, column = i % t->c_row;
        double want = (double)before[i], size = fabs(want);
        if (row >= t->rows || column >= t->columns) {
            wrong += c[i] != before[i];
            continue;
        }
        if (!t->add)
            want = size = 0;
        for (int64_t k = 0; k < 2 * t->pairs; k++) {
            double x = (double)bf16_value(t->a[row * t->a_row + k / 2 * t->a_step + k % 2]);
            bf16_pair pair = t->b[k / 2 * t->b_width + column];
            double y = (double)bf16_value((real)(k % 2 ? pair >> 16 : pair & 0xffff));
            want += x * y;
            size += fabs(x * y);
        }
        double most = (double)(2 * t->pairs + 2) * (double)(FLT_EPSILON / 2) * size;
        wrong += !(fabs((double)c[i] - want) <= most);
    }
    return wrong;
}

static bf16_terms terms_of(int64_t rows, int64_t columns, int64_t pairs, bool add)
{
    return (bf16_terms){.rows = rows,
                        .columns = columns,
                        .pairs = pairs,
                        .a = a,
                        .a_row = 2 * PAIRS + 2,
                        .a_step = 2,
                        .b = b,
                        .b_width = COLUMNS + 3,
                        .add = add,
                        .c = c,
                        .c_row = COLUMNS + 5};
}

static void expect_product(product_function *multiply, const bf16_terms *t)
{
    memcpy(c, before, sizeof c);
    multiply(t);
    int wrong = count_wrong(t);
    cr_expect(wrong == 0, "%d x %d, %d pairs, add %d, step %d: %d wrong", (int)t->rows,
              (int)t->columns, (int)t->pairs, t->add, (int)t->a_step, wrong);
}

Test(bf16_products, every_size)
{
    fill();
    for (int64_t rows = 1; rows <= ROWS; rows += rows < 34 ? 1 : 12)
        for (int64_t columns = SIMD_COLUMNS; columns <= COLUMNS; columns += SIMD_COLUMNS)
            for (int64_t pairs = 1; pairs <= PAIRS; pairs += pairs % 16 == 1 ? 5 : 1) {
                bf16_terms t = terms_of(rows, columns, pairs, (rows + pairs) % 2);
                expect_product(R(multiply_pairs_any_order), &t);
                expect_product(R(multiply_pairs), &t);
            }
}

/* Also with the rows of A in its columns. */
Test(bf16_products, ordered_sums_have_the_bits_of_base)
{
    fill();
    for (int transposed = 0; transposed < 2; transposed++) {
        bf16_terms t = terms_of(37, 48, 29, true);
        if (transposed) {
            t.a_row = 2;
            t.a_step = 2 * 40;
        }
        expect_product(BASE(multiply_pairs), &t);
        memcpy(by_base, c, sizeof c);
        expect_product(R(multiply_pairs), &t);
        cr_expect(memcmp(by_base, c, sizeof c) == 0, "transposed %d: other bits", transposed);
    }
}

/* NaN and infinities reach the numbers that they belong to, and no others. */
Test(bf16_products, not_finite)
{
    static const real bad[] = {0x7fc0, 0x7f80, 0xff80};
    for (int k = 0; k < 3; k++) {
        bf16_terms t = terms_of(40, 48, 21, false);
        fill();
        a[33 * t.a_row + 37] = bad[k];
        memcpy(c, before, sizeof c);
        R(multiply_pairs_any_order)(&t);
        for (int64_t i = 0; i < t.rows; i++)
            for (int64_t j = 0; j < t.columns; j++)
                cr_expect_eq(isfinite(c[i * t.c_row + j]) != 0, i != 33, "%d, %d", (int)i, (int)j);
    }
}
