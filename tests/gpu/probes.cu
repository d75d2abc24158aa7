/* SPDX-License-Identifier: BSD-3-Clause */
#include "probes.h"

#define REAL_F32
#include "cuda/launch.cuh"
#include "cuda/mma.cuh"
#include "cuda/real.cuh"

/* ---- Products ---- */

/* Where an element of a fragment is: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating
 * point type" and "for mma.m16n8k8", by element i of the vector expression. */
static __device__ int a_row(probe_type type, int i, int group)
{
    return type == PROBE_TF32 ? (i == 0 || i == 2 ? group : group + 8)
                              : (i < 2 || (i >= 4 && i < 6) ? group : group + 8);
}

static __device__ int a_column(probe_type type, int i, int within)
{
    return type == PROBE_TF32 ? (i < 2 ? within : within + 4)
                              : (i < 4 ? 2 * within + (i & 1) : 2 * within + (i & 1) + 8);
}

static __device__ int b_row(probe_type type, int i, int within)
{
    return type == PROBE_TF32 ? (i == 0 ? within : within + 4)
                              : (i < 2 ? 2 * within + (i & 1) : 2 * within + (i & 1) + 8);
}

static __device__ void store_sums(const float (&sums)[4], float *c)
{
    for (int i = 0; i < 4; i++) {
        int row = mma_lane() / 4 + (i < 2 ? 0 : 8);
        c[row * 8 + mma_lane() % 4 * 2 + (i & 1)] = sums[i];
    }
}

static __device__ void load_sums(const float *c, float (&sums)[4])
{
    for (int i = 0; i < 4; i++)
        sums[i] = c[(mma_lane() / 4 + i / 2 * 8) * 8 + mma_lane() % 4 * 2 + i % 2];
}

template <mma_type TYPE>
static __global__ void product(probe_type type, const float *a, const float *b, float *c)
{
    const int inner = mma_element<TYPE>::INNER, each = inner / 8;
    int group = mma_lane() / 4, within = mma_lane() % 4;
    uint32_t left[4], right[2];
    float sums[4];
    load_sums(c, sums);
    for (int w = 0; w < 4; w++) {
        float element[2] = {0, 0};
        for (int i = 0; i < each; i++)
            element[i] =
                a[a_row(type, w * each + i, group) * inner + a_column(type, w * each + i, within)];
        left[w] = mma_word<TYPE>(element[0], element[1]);
    }
    for (int w = 0; w < 2; w++) {
        float element[2] = {0, 0};
        for (int i = 0; i < each; i++)
            element[i] = b[b_row(type, w * each + i, within) * 8 + group];
        right[w] = mma_word<TYPE>(element[0], element[1]);
    }
    mma_add<TYPE>(sums, left, right);
    store_sums(sums, c);
}

/* Words in memory, as a caller's rows. */
template <mma_type TYPE>
static __global__ void to_words(const float *values, int64_t count, uint32_t *words)
{
    const int each = 4 / mma_element<TYPE>::SIZE;
    for (int64_t e = threadIdx.x; e < count / each; e += blockDim.x)
        words[e] = mma_word<TYPE>(values[each * e], values[each * e + each - 1]);
}

template <mma_type TYPE>
static __global__ void loads(bool transposed, const char *a, const char *b, float *c)
{
    enum { STRIDE = 48, SIZE = mma_element<TYPE>::SIZE };
    char *shared = cuda_shared<char>(), *to_b = shared + 16 * STRIDE;
    const int row_bytes = transposed ? 16 : 32, rows = transposed ? 16 : 8;
    int lane = mma_lane();
    mma_copy(shared + lane / 2 * STRIDE + lane % 2 * 16, a + lane * 16, 16);
    if (lane < rows * row_bytes / 16)
        mma_copy(to_b + lane / (row_bytes / 16) * STRIDE + lane % (row_bytes / 16) * 16,
                 b + lane * 16, 16);
    else
        mma_copy(shared + 32 * STRIDE + lane * 16, b, 0); /* 0, and nothing read */
    mma_copy_group();
    mma_copy_wait<0>();
    __syncwarp();
    uint32_t left[4], words[4];
    float sums[4];
    load_sums(c, sums);
    mma_load(left, shared + lane % 16 * STRIDE + lane / 16 * 16);
    if (transposed)
        mma_load_transposed(words, to_b + lane % 16 * STRIDE);
    else
        mma_load(words, to_b + lane % 8 * STRIDE + lane / 8 % 2 * 16);
    uint32_t right[2] = {words[0], words[1]};
    if (lane >= rows * row_bytes / 16 && *(uint32_t *)(shared + 32 * STRIDE + lane * 16) != 0)
        sums[0] = NAN;
    mma_add<TYPE>(sums, left, right);
    store_sums(sums, c);
}

/* ---- Arithmetic ---- */

static __global__ void products_and_sums(float a, float b, float c, float *out)
{
    out[0] = a * b + c;
    out[1] = a * b - c;
    double x = 1 + 0x1p-27 * (double)a;
    out[2] = (float)(x * x - 1 - 0x1p-26 * (double)a);
}

/* ---- Exponentials ---- */

static __global__ void powers(probe_function function, int64_t count, const float *x, float *y)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        y[i] = function == PROBE_EXP ? real_exp(x[i]) : mma_exp2(x[i]);
}

/* ---- From the host ---- */

/* Device copies of a call's arrays; the first error stays. */
struct probe {
    void *memory[8];
    int count, error;
};

static void *room(probe *p, size_t bytes)
{
    void *memory = NULL;
    if (!p->error)
        p->error = cudaMalloc(&memory, bytes);
    p->memory[p->count++] = memory;
    return memory;
}

static float *upload(probe *p, const float *values, int64_t count)
{
    void *memory = room(p, (size_t)count * sizeof(float));
    if (!p->error)
        p->error =
            cudaMemcpy(memory, values, (size_t)count * sizeof(float), cudaMemcpyHostToDevice);
    return (float *)memory;
}

static int finish(probe *p, float *to, const float *from, int64_t count)
{
    if (!p->error)
        p->error = cudaMemcpy(to, from, (size_t)count * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < p->count; i++)
        cudaFree(p->memory[i]);
    return p->error;
}

template <mma_type TYPE>
static int run_product(probe_type type, const float *a, const float *b, float *c)
{
    const int inner = mma_element<TYPE>::INNER;
    probe p = {};
    float *on_a = upload(&p, a, 16 * inner), *on_b = upload(&p, b, inner * 8);
    float *on_c = upload(&p, c, 16 * 8);
    if (!p.error)
        p.error = cuda_launch(product<TYPE>, dim3(1), dim3(32), 0, 0, type, on_a, on_b, on_c);
    return finish(&p, c, on_c, 16 * 8);
}

int probe_product(probe_type type, const float *a, const float *b, float *c)
{
    return type == PROBE_BF16  ? run_product<MMA_BF16>(type, a, b, c)
           : type == PROBE_F16 ? run_product<MMA_F16>(type, a, b, c)
                               : run_product<MMA_TF32>(type, a, b, c);
}

template <mma_type TYPE> static uint32_t *upload_words(probe *p, const float *values, int64_t count)
{
    float *on_values = upload(p, values, count);
    uint32_t *words = (uint32_t *)room(p, (size_t)count * sizeof(float));
    if (!p->error)
        p->error = cuda_launch(to_words<TYPE>, dim3(1), dim3(32), 0, 0, on_values, count, words);
    return words;
}

template <mma_type TYPE>
static int run_loads(bool transposed, const float *a, const float *b, float *c)
{
    const int inner = mma_element<TYPE>::INNER;
    probe p = {};
    uint32_t *on_a = upload_words<TYPE>(&p, a, 16 * inner);
    uint32_t *on_b = upload_words<TYPE>(&p, b, inner * 8);
    float *on_c = upload(&p, c, 16 * 8);
    if (!p.error)
        p.error = cuda_launch(loads<TYPE>, dim3(1), dim3(32), 48 * 48, 0, transposed,
                              (const char *)on_a, (const char *)on_b, on_c);
    return finish(&p, c, on_c, 16 * 8);
}

int probe_loads(probe_type type, int transposed, const float *a, const float *b, float *c)
{
    return type == PROBE_BF16  ? run_loads<MMA_BF16>(transposed, a, b, c)
           : type == PROBE_F16 ? run_loads<MMA_F16>(transposed, a, b, c)
                               : run_loads<MMA_TF32>(transposed, a, b, c);
}

int probe_power(probe_function function, int64_t count, const float *x, float *y)
{
    probe p = {};
    float *on_x = upload(&p, x, count), *on_y = (float *)room(&p, (size_t)count * sizeof(float));
    unsigned blocks = (unsigned)(count < 1 << 18 ? (count + 255) / 256 : 1 << 10);
    if (!p.error)
        p.error = cuda_launch(powers, dim3(blocks), dim3(256), 0, 0, function, count, on_x, on_y);
    return finish(&p, y, on_y, count);
}

int probe_arithmetic(float a, float b, float c, float out[3])
{
    probe p = {};
    float *there = (float *)room(&p, 3 * sizeof(float));
    if (!p.error)
        p.error = cuda_launch(products_and_sums, dim3(1), dim3(1), 0, 0, a, b, c, there);
    return finish(&p, out, there, 3);
}
