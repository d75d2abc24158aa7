/* SPDX-License-Identifier: BSD-3-Clause */
/* Landmarks from tokens (SOFT, IJCV section 3.2), as in sampling/cpu.c. */
#include "sampling/cuda.cuh"

/* ---- Averages and copies: one thread for each coordinate of a landmark ---- */

/* The mean of `rows` times `cols` tokens, with row stride `width`. */
static __device__ real mean_of(const token_rows &tokens, int64_t first, int64_t rows, int64_t cols,
                               int64_t width, int64_t c)
{
    real sum = 0;
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < cols; x++)
            sum += rows_get(tokens, first + y * width + x, c);
    return sum / (real)(rows * cols);
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
    gather(const __grid_constant__ cuda_sampling s, atn_tensor tokens, atn_tensor landmarks)
{
    const atn_sampling &desc = s.desc;
    int64_t k = desc.stride;
    THREAD_EACH (e, s.heads * s.m * s.d) {
        int64_t piece = e / (s.m * s.d), l = e / s.d % s.m, c = e % s.d;
        token_rows from = rows_of(tokens, piece, NULL);
        real value;
        if (desc.kind == ATN_SAMPLING_POOL)
            value = mean_of(from, grid_corner(desc, l), k, k, desc.width, c);
        else if (desc.kind == ATN_SAMPLING_WINDOW)
            value = mean_of(from, l * k, 1, head_smaller(k, s.n - l * k), 0, c);
        else
            value = rows_get(from, desc.kind == ATN_SAMPLING_INDICES ? desc.indices[l] : l, c);
        rows_set(rows_of(landmarks, piece, NULL), l, c, value);
    }
}

/* ---- Convolution: a tile of landmarks and channels per block, which loops over inner tiles
 * ---- */

/* out = the convolution's output, as the matrix product of windows and weights. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
    convolve(const __grid_constant__ cuda_sampling s, bool tf32, atn_tensor tokens, atn_tensor out)
{
    __shared__ real windows[CONV_TILE * CONV_TILE], weights[CONV_TILE * CONV_TILE];
    __shared__ real sums[CONV_TILE * CONV_TILE];
    int64_t cells = s.desc.stride * s.desc.stride, inner = s.d * cells;
    token_rows filter = rows_of(s.desc.weights, 0, NULL);
    for (conv_place p = conv_first(s, s.d); p.index < p.count; conv_next(s, s.d, &p)) {
        token_rows from = rows_of(tokens, p.piece, NULL);
        block_fill(p.rows * p.cols, 0, sums);
        for (int64_t k = 0; k < inner; k += CONV_TILE) {
            int64_t some = head_smaller(CONV_TILE, inner - k);
            BLOCK_EACH (e, p.rows * some) {
                int64_t at = k + e % some;
                windows[e] = rows_get(from, grid_token(s.desc, p.landmark + e / some, at % cells),
                                      at / cells);
            }
            BLOCK_EACH (e, p.cols * some)
                weights[e] = rows_get(filter, 0, (p.column + e / some) * inner + k + e % some);
            __syncthreads();
            block_gemm(tf32, AS_IT_IS, TRANSPOSED, p.rows, p.cols, some, windows, some, weights,
                       some, true, sums, p.cols);
        }
        token_rows to = rows_of(out, p.piece, NULL);
        BLOCK_EACH (e, p.rows * p.cols)
            rows_set(to, p.landmark + e / p.cols, p.column + e % p.cols, sums[e]);
        __syncthreads();
    }
}

/* LayerNorm over d with eps 1e-5, then GELU(x) = x Phi(x), which the published code applies to the
 * convolution's output (neither is in the papers). One warp per landmark. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
    norm_gelu(const __grid_constant__ cuda_sampling s, atn_tensor landmarks)
{
    int64_t d = s.d;
    unsigned lane = threadIdx.x % 32;
    WARP_EACH (l, s.heads * s.m) {
        const real *row = (const real *)s.outputs + l * d;
        token_rows to = rows_of(landmarks, l / s.m, NULL);
        double mean = 0, variance = 0;
        for (int64_t c = lane; c < d; c += 32)
            mean += (double)row[c] / (double)d;
        mean = warp_sum(mean);
        for (int64_t c = lane; c < d; c += 32)
            variance += ((double)row[c] - mean) * ((double)row[c] - mean) / (double)d;
        double inverse = 1 / sqrt(warp_sum(variance) + 1e-5);
        for (int64_t c = lane; c < d; c += 32) {
            double x = norm_affine(s.desc, c, ((double)row[c] - mean) * inverse);
            rows_set(to, l % s.m, c, (real)(x * 0.5 * erfc(-x / sqrt(2.0))));
        }
        if (lane == 0) {
            s.moments[2 * l] = mean;
            s.moments[2 * l + 1] = inverse;
        }
    }
}

/* ---- Calls ---- */

static atn_status sample_conv(atn_context *context, const cuda_sampling *s,
                              const atn_tensor *tokens, const atn_tensor *landmarks)
{
    bool norm = s->desc.kind == ATN_SAMPLING_CONV_CODE, tf32 = tokens->dtype == ATN_TF32;
    cudaStream_t stream = (cudaStream_t)device_stream(context);
    atn_tensor out = norm ? conv_outputs(s, landmarks) : *landmarks;
    cudaError_t error = cuda_launch(convolve, conv_blocks(s, s->d), dim3(BLOCK_THREADS), 0, stream,
                                    *s, tf32, *tokens, out);
    if (error == cudaSuccess && norm)
        error = cuda_launch(norm_gelu, blocks_for(s->heads * s->m * 32), dim3(BLOCK_THREADS), 0,
                            stream, *s, *landmarks);
    return device_result(context, error, "sampling");
}

static atn_status sample(atn_context *context, const cuda_sampling *s, const atn_tensor *tokens,
                         const atn_tensor *landmarks)
{
    if (s->choice_count > 0)
        return R(cuda_choose)(context, s, tokens, landmarks);
    if (s->desc.kind == ATN_SAMPLING_CONV || s->desc.kind == ATN_SAMPLING_CONV_CODE)
        return sample_conv(context, s, tokens, landmarks);
    return device_result(context,
                         cuda_launch(gather, blocks_for(s->heads * s->m * s->d),
                                     dim3(BLOCK_THREADS), 0, (cudaStream_t)device_stream(context),
                                     *s, *tokens, *landmarks),
                         "sampling");
}

extern "C" const cuda_sampling_table R(cuda_sampling) = {sample, R(cuda_sample_backward),
                                                         R(cuda_conv_backward)};
