/* SPDX-License-Identifier: BSD-3-Clause */
/* Backward of the samplings, as in sampling/cpu_backward.c: from landmarks' gradients to tokens'
 * and to the convolution's parameters. */
#include "sampling/cuda.cuh"

/* The tensors of a call; both are of `real`. */
typedef struct {
    atn_tensor landmarks, tokens;
} gradients;

static __device__ __forceinline__ void add_to(const token_rows &rows, int64_t i, int64_t c,
                                              real value)
{
    rows_set(rows, i, c, rows_get(rows, i, c) + value);
}

/* ---- Means: one thread for each coordinate of a token ---- */

/* The landmark that a token is part of (-1: none), and the number of tokens whose mean that is. */
static __device__ int64_t owner_of(const cuda_sampling &s, int64_t piece, int64_t i, int64_t *count)
{
    int64_t k = s.desc.stride, width = s.desc.width, l;
    if (s.desc.kind == ATN_SAMPLING_POOL) {
        int64_t across = width / k, y = i / width / k, x = i % width / k;
        *count = k * k;
        return x < across && y < s.desc.height / k ? y * across + x : -1;
    }
    if (s.desc.kind == ATN_SAMPLING_WINDOW) {
        l = i / k;
        *count = head_smaller(k, s.n - l * k);
        return l;
    }
    const int64_t *counts = s.choices + piece * s.choice_count + s.m;
    l = counts[s.m + i]; /* kmeans */
    *count = counts[l];
    return *count > 0 ? l : -1; /* 0 where the tokens were not finite */
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
    share_out(const __grid_constant__ cuda_sampling s, const __grid_constant__ gradients g)
{
    THREAD_EACH (e, s.heads * s.n * s.d) {
        int64_t piece = e / (s.n * s.d), i = e / s.d % s.n, c = e % s.d, count;
        int64_t l = owner_of(s, piece, i, &count);
        if (l >= 0)
            add_to(rows_of(g.tokens, piece, NULL), i, c,
                   rows_get(rows_of(g.landmarks, piece, NULL), l, c) / (real)count);
    }
}

/* ---- Landmarks that are tokens: one thread for each head and coordinate, because a token that is
 * named twice receives both gradients ---- */

/* The token that landmark l is, -1 if it is none. */
static __device__ int64_t token_of(const cuda_sampling &s, int64_t piece, int64_t l)
{
    if (s.desc.kind == ATN_SAMPLING_INDICES)
        return s.desc.indices[l];
    if (s.choice_count == 0)
        return l;
    const int64_t *choices = s.choices + piece * s.choice_count;
    bool seed = s.choice_count == s.m || choices[s.m + l] == 0; /* not a mean computed by kmeans */
    return seed ? choices[l] : -1;
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
    hand_back(const __grid_constant__ cuda_sampling s, const __grid_constant__ gradients g)
{
    THREAD_EACH (e, s.heads * s.d) {
        int64_t piece = e / s.d, c = e % s.d;
        token_rows from = rows_of(g.landmarks, piece, NULL), to = rows_of(g.tokens, piece, NULL);
        for (int64_t l = 0; l < s.m; l++) {
            int64_t token = token_of(s, piece, l);
            if (token >= 0)
                add_to(to, token, c, rows_get(from, l, c));
        }
    }
}

/* ---- Convolution ---- */

/* Each window's gradient is W^T times that of its landmark, by channels like W's rows. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
    deconvolve(const __grid_constant__ cuda_sampling s, bool tf32,
               const __grid_constant__ gradients g)
{
    __shared__ real slopes[CONV_TILE * CONV_TILE], weights[CONV_TILE * CONV_TILE];
    __shared__ real sums[CONV_TILE * CONV_TILE];
    int64_t cells = s.desc.stride * s.desc.stride, inner = s.d * cells;
    token_rows filter = rows_of(s.desc.weights, 0, NULL);
    for (conv_place p = conv_first(s, inner); p.index < p.count; conv_next(s, inner, &p)) {
        token_rows from = rows_of(g.landmarks, p.piece, NULL);
        token_rows to = rows_of(g.tokens, p.piece, NULL);
        block_fill(p.rows * p.cols, 0, sums);
        for (int64_t k = 0; k < s.d; k += CONV_TILE) {
            int64_t some = head_smaller(CONV_TILE, s.d - k);
            BLOCK_EACH (e, p.rows * some)
                slopes[e] = rows_get(from, p.landmark + e / some, k + e % some);
            BLOCK_EACH (e, some * p.cols)
                weights[e] = rows_get(filter, 0, (k + e / p.cols) * inner + p.column + e % p.cols);
            __syncthreads();
            block_gemm(tf32, AS_IT_IS, AS_IT_IS, p.rows, p.cols, some, slopes, some, weights,
                       p.cols, true, sums, p.cols);
        }
        BLOCK_EACH (e, p.rows * p.cols) {
            int64_t at = p.column + e % p.cols;
            add_to(to, grid_token(s.desc, p.landmark + e / p.cols, at % cells), at / cells,
                   sums[e]);
        }
        __syncthreads();
    }
}

/* One thread for each weight; neighbouring threads have neighbouring channels of the tokens. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
    sum_weights(const __grid_constant__ cuda_sampling s, atn_tensor tokens, atn_tensor landmarks,
                atn_tensor weights)
{
    int64_t cells = s.desc.stride * s.desc.stride, inner = s.d * cells;
    THREAD_EACH (e, s.d * inner) {
        int64_t out = e / inner, cell = e / s.d % cells, in = e % s.d;
        double sum = 0;
        for (int64_t piece = 0; piece < s.heads; piece++) {
            token_rows from = rows_of(tokens, piece, NULL);
            token_rows slopes = rows_of(landmarks, piece, NULL);
            for (int64_t l = 0; l < s.m; l++)
                sum += (double)rows_get(slopes, l, out) *
                       (double)rows_get(from, grid_token(s.desc, l, cell), in);
        }
        real_store(weights.data, weights.dtype, out * inner + in * cells + cell, (real)sum);
    }
}

/* ---- LayerNorm and GELU ---- */

/* The derivative of x Phi(x): Phi(x) + x phi(x). */
static __device__ double gelu_slope(double x)
{
    const double root_two_pi = 2.5066282746310002;
    return 0.5 * erfc(-x / sqrt(2.0)) + x * exp(-x * x / 2) / root_two_pi;
}

/* The normalised output of the convolution, coordinate c of landmark l of all heads. */
static __device__ __forceinline__ double normalised(const cuda_sampling &s, int64_t l, int64_t c)
{
    return ((double)((const real *)s.outputs)[l * s.d + c] - s.moments[2 * l]) *
           s.moments[2 * l + 1];
}

/* The derivative by the output of LayerNorm. */
static __device__ __forceinline__ double norm_slope(const cuda_sampling &s, int64_t c, double x,
                                                    real grad)
{
    return (double)grad * gelu_slope(norm_affine(s.desc, c, x));
}

/* One thread for each head and coordinate. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
    sum_norm(const __grid_constant__ cuda_sampling s, atn_tensor landmarks, real *weight,
             real *bias)
{
    THREAD_EACH (e, s.heads * s.d) {
        int64_t piece = e / s.d, c = e % s.d;
        token_rows grads = rows_of(landmarks, piece, NULL);
        double along = 0, sum = 0;
        for (int64_t l = 0; l < s.m; l++) {
            double x = normalised(s, piece * s.m + l, c);
            double slope = norm_slope(s, c, x, rows_get(grads, l, c));
            along += slope * x;
            sum += slope;
        }
        if (weight)
            weight[e] += (real)along;
        if (bias)
            bias[e] += (real)sum;
    }
}

/* Replaces the landmarks' gradients by those of the convolution's output; one warp per landmark. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
    norm_gelu_backward(const __grid_constant__ cuda_sampling s, atn_tensor landmarks)
{
    unsigned lane = threadIdx.x % 32;
    const atn_tensor &weight = s.desc.norm_weight;
    WARP_EACH (l, s.heads * s.m) {
        token_rows grads = rows_of(landmarks, l / s.m, NULL);
        double slopes = 0, projection = 0;
        for (int64_t c = lane; c < s.d; c += 32) {
            double x = normalised(s, l, c), w = 1;
            if (weight.data)
                w = (double)real_load(weight.data, weight.dtype, c);
            double slope = w * norm_slope(s, c, x, rows_get(grads, l % s.m, c));
            slopes += slope / (double)s.d;
            projection += slope * x / (double)s.d;
            rows_set(grads, l % s.m, c, (real)slope);
        }
        slopes = warp_sum(slopes);
        projection = warp_sum(projection);
        for (int64_t c = lane; c < s.d; c += 32) {
            double left =
                (double)rows_get(grads, l % s.m, c) - slopes - normalised(s, l, c) * projection;
            rows_set(grads, l % s.m, c, (real)(s.moments[2 * l + 1] * left));
        }
    }
}

/* ---- Calls ---- */

static cudaError_t conv_backward(const cuda_sampling *s, bool tf32, const gradients *g,
                                 void *const sums[2], cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    if (s->desc.kind == ATN_SAMPLING_CONV_CODE) {
        if (sums[0] || sums[1])
            error = cuda_launch(sum_norm, blocks_for(s->heads * s->d), dim3(BLOCK_THREADS), 0,
                                stream, *s, g->landmarks, (real *)sums[0], (real *)sums[1]);
        if (error == cudaSuccess)
            error = cuda_launch(norm_gelu_backward, blocks_for(s->heads * s->m * 32),
                                dim3(BLOCK_THREADS), 0, stream, *s, g->landmarks);
    }
    if (error == cudaSuccess)
        error = cuda_launch(deconvolve, conv_blocks(s, s->d * s->desc.stride * s->desc.stride),
                            dim3(BLOCK_THREADS), 0, stream, *s, tf32, *g);
    return error;
}

atn_status R(cuda_sample_backward)(atn_context *context, const cuda_sampling *s,
                                   const atn_tensor *grad_landmarks, const atn_tensor *grad,
                                   void *const norm_sums[2])
{
    atn_sampling_kind kind = s->desc.kind;
    gradients g = {*grad_landmarks, *grad};
    cudaStream_t stream = (cudaStream_t)device_stream(context);
    bool lloyd = kind == ATN_SAMPLING_KMEANS && s->desc.steps > 0;
    bool means = kind == ATN_SAMPLING_POOL || kind == ATN_SAMPLING_WINDOW || lloyd;
    cudaError_t error = cudaSuccess;
    if (kind == ATN_SAMPLING_CONV || kind == ATN_SAMPLING_CONV_CODE)
        error = conv_backward(s, s->desc.weights.dtype == ATN_TF32, &g, norm_sums, stream);
    if (means)
        error = cuda_launch(share_out, blocks_for(s->heads * s->n * s->d), dim3(BLOCK_THREADS), 0,
                            stream, *s, g);
    if (error == cudaSuccess &&
        (s->choice_count > 0 || kind == ATN_SAMPLING_INDICES || kind == ATN_SAMPLING_FIRST))
        error = cuda_launch(hand_back, blocks_for(s->heads * s->d), dim3(BLOCK_THREADS), 0, stream,
                            *s, g);
    return device_result(context, error, "sampling's gradient");
}

atn_status R(cuda_conv_backward)(atn_context *context, const cuda_sampling *s,
                                 const atn_tensor *tokens, const atn_tensor *grad_landmarks,
                                 const atn_tensor *grad_weights)
{
    int64_t cells = s->desc.stride * s->desc.stride;
    return device_result(context,
                         cuda_launch(sum_weights, blocks_for(s->d * s->d * cells),
                                     dim3(BLOCK_THREADS), 0, (cudaStream_t)device_stream(context),
                                     *s, *tokens, *grad_landmarks, *grad_weights),
                         "the convolution's gradient");
}
