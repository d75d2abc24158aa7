/* SPDX-License-Identifier: BSD-3-Clause */
/* The features of ReLU linear attention, phi(x) = max(x, 0), channel by channel; what is done with
 * them is in operators/features/cuda.cuh. */
#include "operators/features/cuda.cuh"

/* The file's own: the linker would take the f32 functions and the f64 ones for the same. */
namespace
{
struct relu_features {
    static __host__ __device__ feature_map describe(const atn_attention_desc &desc, int64_t d)
    {
        feature_map map = {d, 0, 0, 0, LINEAR_ADDED, desc.relu.epsilon, 0};
        return map;
    }

    static __device__ void map(const head &h, const linear &, const token_tile &t)
    {
        token_rows rows = linear_rows(h, t);
        BLOCK_EACH (e, t.rows * h.d) {
            real x = rows_get(rows, t.first + e / h.d, e % h.d);
            t.phi[e] = x > 0 ? x : 0;
        }
        __syncthreads();
    }

    static __device__ void map_backward(const head &h, const linear &l, const token_tile &t)
    {
        token_rows rows = linear_rows(h, t);
        BLOCK_EACH (e, t.rows * h.d)
            l.x[e] = rows_get(rows, t.first + e / h.d, e % h.d) > 0 ? l.slopes[e] : 0;
        __syncthreads();
    }
};
} // namespace

extern "C" const head_operator R(cuda_operator_relu) = {
    linear_sizes<relu_features>, linear_forward<relu_features>, linear_backward<relu_features>};
