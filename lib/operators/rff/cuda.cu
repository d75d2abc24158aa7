/* SPDX-License-Identifier: BSD-3-Clause */
/* Random Fourier features (Rahimi and Recht 2007) of SOFT's kernel, for features/cuda.cuh: with u_r
 * = sqrt(2 s) w_r.x, phi = [cos u, sin u] / sqrt(M), M rows w_r. The head keeps the w_r. */
#include "kernel/cuda.cuh"
#include "operators/features/cuda.cuh"

/* Unnamed, because the linker would merge the f32 functions with those for f64. */
namespace
{
struct fourier_features {
    static __host__ __device__ feature_map describe(const atn_attention_desc &desc, int64_t d)
    {
        int64_t m = desc.rff.projection.rows;
        feature_map map = {2 * m, 0, (m * d + 1) / 2 * 2, 0, LINEAR_PLAIN, 0, 0};
        return map;
    }

    static __device__ real root(const head &h)
    {
        return (real)sqrt(2 * gaussian_of(*h.desc, h.heads, h.d).s);
    }

    static __device__ void map(const head &h, const linear &l, const token_tile &t)
    {
        int64_t m = l.m / 2;
        real by = root(h), factor = (real)(1 / sqrt((double)m));
        block_load(linear_rows(h, t), t.first, t.rows, h.d, l.x);
        block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, t.rows, m, h.d, l.x, h.d, h.state, h.d, false,
                   t.phi, l.m);
        BLOCK_EACH (e, t.rows * m) {
            real *cosine = t.phi + e / m * l.m + e % m, u = by * *cosine;
            cosine[0] = real_cos(u) * factor;
            cosine[m] = real_sin(u) * factor;
        }
        __syncthreads();
    }

    static __device__ void map_backward(const head &h, const linear &l, const token_tile &t)
    {
        int64_t m = l.m / 2;
        real by = root(h);
        BLOCK_EACH (e, t.rows * m) {
            int64_t at = e / m * l.m + e % m;
            l.slopes[at] = by * (l.slopes[at + m] * t.phi[at] - l.slopes[at] * t.phi[at + m]);
        }
        __syncthreads();
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, t.rows, h.d, m, l.slopes, l.m, h.state, h.d, false,
                   l.x, h.d);
    }
};
} // namespace

static __device__ void load_projection(const head &h)
{
    linear_copy_projection(h, h.desc->rff.projection, h.state);
}

static void forward(head_launch *l)
{
    OVER_HEADS(l, load_projection);
    linear_forward<fourier_features>(l);
}

static void backward(head_launch *l)
{
    OVER_HEADS(l, load_projection);
    linear_backward<fourier_features>(l);
}

extern "C" const head_operator R(cuda_operator_rff) = {linear_sizes<fourier_features>, forward,
                                                       backward};
