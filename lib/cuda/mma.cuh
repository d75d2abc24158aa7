/* SPDX-License-Identifier: BSD-3-Clause */
/* A warp's operations with tensor cores: matrix products of 16 x 8 with f32 sums, loads of their
 * factors from shared memory, asynchronous copies into it, and the three conversions they need. All
 * are instructions of compute capability 8.0 (PTX ISA, "Warp Level Matrix Multiply-Accumulate",
 * "Matrix Fragments"); nothing else in lib/cuda is written in PTX. Next to each is its emulation.
 *
 * A product has 32-byte rows of its factors: 16 elements of bf16 or f16, or 8 of tf32. With
 * g = lane / 4, t = lane % 4, a lane holds of
 *
 *   A (16 rows)     a[0], a[1]: rows g, g + 8, bytes 4 t .. 4 t + 3;   a[2], a[3]: the same + 16
 *   B (8 columns)   b[0]: column g, bytes 4 t .. 4 t + 3;              b[1]: the same + 16
 *   C (16 x 8)      c[0], c[1]: row g, columns 2 t, 2 t + 1;           c[2], c[3]: row g + 8
 *
 * where a word is two neighbouring elements of the narrow types or one of tf32. */
#ifndef CUDA_MMA_CUH
#define CUDA_MMA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum mma_type { MMA_BF16, MMA_F16, MMA_TF32, MMA_TYPES };

/* Bytes of an element, and elements of a product's inner size. */
template <mma_type TYPE> struct mma_element {
    static const int SIZE = TYPE == MMA_TF32 ? 4 : 2;
    static const int INNER = 32 / SIZE;
};

static __device__ __forceinline__ int mma_lane(void)
{
    return (int)(threadIdx.x % 32);
}

/* ---- Conversions ---- */

/* The smaller one; NaN if either is. */
static __device__ __forceinline__ float mma_min(float a, float b)
{
#ifdef ATN_EMULATED
    return a != a || b != b ? NAN : a < b ? a : b;
#else
    float smaller;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
    return smaller;
#endif
}

/* 2^x with a relative error of about 2^-22, subnormal results as 0. The results are then rounded to
 * 11 bits or fewer, and this error is less than 2^-10 of that one. */
static __device__ __forceinline__ float mma_exp2(float x)
{
#ifdef ATN_EMULATED
    float power = exp2f(x);
    return power < 0x1p-126F ? 0 : power;
#else
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
#endif
}

/* A word of a factor: x rounded to tf32, or x and y, x in the lower half, to a narrow type. To
 * nearest; ties of tf32 away from zero, of the others to even. */
template <mma_type TYPE> static __device__ __forceinline__ uint32_t mma_word(float x, float y)
{
    uint32_t word;
    if (TYPE == MMA_BF16) {
        __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
        memcpy(&word, &pair, sizeof word);
        return word;
    }
    if (TYPE == MMA_F16) {
        __half2 pair = __floats2half2_rn(x, y);
        memcpy(&word, &pair, sizeof word);
        return word;
    }
#ifdef ATN_EMULATED
    return isfinite(x) ? (__float_as_uint(x) + 0x1000u) & 0xffffe000u : __float_as_uint(x);
#else
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(x));
    return word;
#endif
}

/* The elements of a word; tf32 has one. */
template <mma_type TYPE> static __device__ __forceinline__ float mma_low(uint32_t word)
{
    if (TYPE == MMA_F16) {
        __half2 pair;
        memcpy(&pair, &word, sizeof pair);
        return __low2float(pair);
    }
    return __uint_as_float(TYPE == MMA_BF16 ? word << 16 : word);
}

template <mma_type TYPE> static __device__ __forceinline__ float mma_high(uint32_t word)
{
    if (TYPE == MMA_F16) {
        __half2 pair;
        memcpy(&pair, &word, sizeof pair);
        return __high2float(pair);
    }
    return TYPE == MMA_BF16 ? __uint_as_float(word & 0xffff0000u) : 0;
}

/* ---- Products ---- */

#ifdef ATN_EMULATED
struct mma_fragments {
    uint32_t a[4], b[2];
};

/* Element `within` of a row of 32 bytes, from the words of the lane that has it. */
template <mma_type TYPE>
static inline double mma_element_of(const uint32_t *words, int stride, int within)
{
    const int each = mma_element<TYPE>::INNER / 2, per_word = each / 4;
    uint32_t word = words[within / each * stride];
    if (TYPE == MMA_TF32) /* the hardware reads no more than these bits */
        return __uint_as_float(word & 0xffffe000u);
    return within % per_word ? mma_high<TYPE>(word) : mma_low<TYPE>(word);
}

/* The lane, of the four of a row, that holds element `within`. */
template <mma_type TYPE> static inline int mma_owner(int row, int within)
{
    const int each = mma_element<TYPE>::INNER / 2, per_word = each / 4;
    return row % 8 * 4 + within % each / per_word;
}

/* terms[0] + ... + terms[count - 1] as an adder of many operands computes it: all are truncated
 * towards 0 at the last place that the largest has in f32; their sum is exact and truncated once
 * more. Tensor cores add in this way: products are exact, significands are aligned to the largest
 * exponent and truncated, and the sum is normalised in the end only (Fasi, Higham, Mikaitis,
 * Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7, 2021, of V100, T4
 * and A100). How many extra places the adder has beyond those of f32, and how many operands it adds
 * at once, differs from device to device and is not documented. Here it has no extra places and
 * adds all operands at once, which loses most. */
static inline float mma_sum(int count, const double *terms)
{
    double plain = 0, largest = 0x1p-126;
    for (int i = 0; i < count; i++) {
        plain += terms[i];
        largest = fabs(terms[i]) > largest ? fabs(terms[i]) : largest;
    }
    if (!isfinite(plain))
        return (float)plain;
    int exponent;
    frexp(largest, &exponent);
    double units = ldexp(1, 24 - exponent);
    int64_t sum = 0, places = 1;
    for (int i = 0; i < count; i++)
        sum += (int64_t)(terms[i] * units);
    while (sum / places >= 1 << 24 || sum / places <= -(1 << 24))
        places *= 2;
    return (float)((double)(sum / places * places) / units);
}

template <mma_type TYPE>
static inline void mma_emulated(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    mma_fragments mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}, all[32];
    emulator_warp_gather(mine, all);
    for (int e = 0; e < 4; e++) {
        int row = mma_lane() / 4 + e / 2 * 8, column = mma_lane() % 4 * 2 + e % 2;
        double terms[mma_element<TYPE>::INNER + 1] = {c[e]};
        for (int i = 0; i < mma_element<TYPE>::INNER; i++)
            terms[i + 1] = mma_element_of<TYPE>(all[mma_owner<TYPE>(row, i)].a + row / 8, 2, i) *
                           mma_element_of<TYPE>(all[mma_owner<TYPE>(column, i)].b, 1, i);
        c[e] = mma_sum(mma_element<TYPE>::INNER + 1, terms);
    }
}
#endif

/* C += A B */
template <mma_type TYPE>
static __device__ __forceinline__ void mma_add(float (&c)[4], const uint32_t (&a)[4],
                                               const uint32_t (&b)[2])
{
#ifdef ATN_EMULATED
    mma_emulated<TYPE>(c, a, b);
#else
#define MMA_PRODUCT(shape, type)                                                                   \
    asm("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 "                            \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                          \
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                           \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
    if (TYPE == MMA_BF16)
        MMA_PRODUCT("m16n8k16", "bf16");
    else if (TYPE == MMA_F16)
        MMA_PRODUCT("m16n8k16", "f16");
    else
        MMA_PRODUCT("m16n8k8", "tf32");
#undef MMA_PRODUCT
#endif
}

/* ---- Shared memory ---- */

/* Four matrices of 8 rows of 16 bytes. Lane i gives the address of row i % 8 of matrix i / 8, and
 * gets of each matrix bytes 4 t .. 4 t + 3 of row g. */
static __device__ __forceinline__ void mma_load(uint32_t (&words)[4], const void *row)
{
#ifdef ATN_EMULATED
    const void *rows[32];
    emulator_warp_gather(emulator_shared_row(row), rows);
    for (int i = 0; i < 4; i++)
        memcpy(&words[i], (const char *)rows[8 * i + mma_lane() / 4] + mma_lane() % 4 * 4, 4);
#else
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
#endif
}

/* The same of two-byte elements, each matrix transposed: column g of rows 2 t and 2 t + 1. */
static __device__ __forceinline__ void mma_load_transposed(uint32_t (&words)[4], const void *row)
{
#ifdef ATN_EMULATED
    const void *rows[32];
    emulator_warp_gather(emulator_shared_row(row), rows);
    for (int i = 0; i < 4; i++) {
        uint16_t pair[2];
        for (int j = 0; j < 2; j++)
            memcpy(&pair[j],
                   (const char *)rows[8 * i + mma_lane() % 4 * 2 + j] + mma_lane() / 4 * 2, 2);
        words[i] = pair[0] | (uint32_t)pair[1] << 16;
    }
#else
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
#endif
}

/* ---- Asynchronous copies into shared memory ---- */

/* 16 bytes, of which the last 16 - bytes are 0 and not read; both addresses are multiples of 16. */
static __device__ __forceinline__ void mma_copy(void *to, const void *from, int bytes)
{
#ifdef ATN_EMULATED
    emulator_copy(to, from, bytes);
#else
    uint32_t address = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(bytes)
                 : "memory");
#endif
}

/* Ends a group of copies. */
static __device__ __forceinline__ void mma_copy_group(void)
{
#ifdef ATN_EMULATED
    emulator_copy_group();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most the last `groups` groups of this thread are unfinished. */
template <int groups> static __device__ __forceinline__ void mma_copy_wait(void)
{
#ifdef ATN_EMULATED
    emulator_copy_wait(groups);
#else
    asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
#endif
}

#endif
