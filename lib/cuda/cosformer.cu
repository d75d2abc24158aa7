/* SPDX-License-Identifier: BSD-3-Clause */
/* cosFormer's features (Qin et al. 2022), for linear.cuh: ReLU(x) times the factors of
 * cpu/cosformer.c, whose products are cosines of differences. */
#include "cuda/linear.cuh"

/* Of the description's weighting. */
static __host__ __device__ __forceinline__ int64_t factor_count(const atn_attention_desc &desc)
{
    atn_cosine weighting = desc.cosformer.weighting;
    return weighting == ATN_COSINE_2D ? 4 : weighting == ATN_COSINE_1D ? 2 : 1;
}

/* The sine and cosine of pi/2 at / length. */
static __device__ void wave(int64_t at, int64_t length, double factors[2])
{
    double angle = 1.57079632679489661923 * ((double)at / (double)length);
    factors[0] = sin(angle);
    factors[1] = cos(angle);
}

/* What ReLU(x) is multiplied by at a position. Padded tokens keep their place. */
static __device__ void make_factors(const head &h, int64_t position, real *factors)
{
    const atn_cosformer_options &o = h.desc->cosformer;
    int64_t longer = h.length > h.key_length ? h.length : h.key_length;
    double rows[2] = {1, 1}, columns[2] = {1, 1};
    if (o.weighting == ATN_COSINE_1D)
        wave(position + 1, o.length ? o.length : longer, columns);
    if (o.weighting == ATN_COSINE_2D) {
        wave(position / o.width, o.height, rows);
        wave(position % o.width, o.width, columns);
    }
    for (int64_t f = 0; f < factor_count(*h.desc); f++)
        factors[f] = (real)(rows[f / 2] * columns[f % 2]);
}

namespace /* one for each real */
{
struct cosine_features {
    static __host__ __device__ feature_map describe(const atn_attention_desc &desc, int64_t d)
    {
        int64_t count = factor_count(desc);
        feature_map map = {count * d, count, 0, 0, LINEAR_CLAMPED, desc.cosformer.epsilon, 0};
        return map;
    }

    /* Keeps the factors. */
    static __device__ void map(const head &h, const linear &l, const token_tile &t)
    {
        int64_t count = l.map.kept;
        BLOCK_EACH (i, t.rows)
            make_factors(h, head_position(t.x, t.first + i), l.kept + i * count);
        __syncthreads();
        BLOCK_EACH (e, t.rows * l.m) {
            int64_t i = e / l.m, f = e % l.m / h.d;
            real x = rows_get(t.x, t.first + i, e % h.d);
            t.phi[e] = x > 0 ? l.kept[i * count + f] * x : 0;
        }
        __syncthreads();
    }

    static __device__ void pull(const head &h, const linear &l, const token_tile &t)
    {
        int64_t count = l.map.kept;
        BLOCK_EACH (e, t.rows * h.d) {
            int64_t i = e / h.d, c = e % h.d;
            real sum = 0;
            for (int64_t f = 0; f < count; f++)
                sum += l.kept[i * count + f] * l.slopes[i * l.m + f * h.d + c];
            l.x[e] = rows_get(t.x, t.first + i, c) > 0 ? sum : 0;
        }
        __syncthreads();
    }
};
} // namespace

extern "C" const head_operator R(cuda_cosformer) = {linear_sizes<cosine_features>,
                                                    linear_forward<cosine_features>,
                                                    linear_backward<cosine_features>};
