/* SPDX-License-Identifier: BSD-3-Clause */
/* Linear attention's features (Katharopoulos et al. 2020), for features/cuda.cuh:
 * phi(x) = 1 + elu(x), channel by channel. */
#include "operators/features/cuda.cuh"

/* Unnamed, because the linker would merge the f32 functions with those for f64. */
namespace
{
struct elu_features {
    static __host__ __device__ feature_map describe(const atn_attention_desc &desc, int64_t d)
    {
        feature_map map = {d, 0, 0, 0, LINEAR_ADDED, desc.elu.epsilon, 0};
        return map;
    }

    static __device__ void map(const head &h, const linear &, const token_tile &t)
    {
        bool naive = h.desc->elu.form == ATN_ELU_NAIVE;
        token_rows rows = linear_rows(h, t);
        BLOCK_EACH (e, t.rows * h.d) {
            real x = rows_get(rows, t.first + e / h.d, e % h.d);
            real elu = x < 0 ? real_exp(x) - (real)naive : x + (real)!naive;
            t.phi[e] = elu + (real)naive;
        }
        __syncthreads();
    }

    static __device__ void map_backward(const head &h, const linear &l, const token_tile &t)
    {
        token_rows rows = linear_rows(h, t);
        BLOCK_EACH (e, t.rows * h.d) {
            real x = rows_get(rows, t.first + e / h.d, e % h.d);
            l.x[e] = l.slopes[e] * (x < 0 ? real_exp(x) : 1);
        }
        __syncthreads();
    }
};
} // namespace

extern "C" const head_operator R(cuda_operator_elu) = {
    linear_sizes<elu_features>, linear_forward<elu_features>, linear_backward<elu_features>};
