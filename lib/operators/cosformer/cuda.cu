/* SPDX-License-Identifier: BSD-3-Clause */
/* cosFormer's features (Qin et al. 2022), for features/cuda.cuh: ReLU(x) times the factors of
 * operators/cosformer/cpu.c, whose products are cosines of differences. */
#include "operators/features/cuda.cuh"

/* The number of factors of the description's weighting. */
static __host__ __device__ __forceinline__ int64_t factor_count(const atn_attention_desc &desc)
{
    atn_cosine weighting = desc.cosformer.weighting;
    return weighting == ATN_COSINE_2D ? 4 : weighting == ATN_COSINE_1D ? 2 : 1;
}

typedef struct {
    double sine, cosine;
} wave;

/* Sine and cosine of pi/2 at / length. */
static __device__ wave wave_at(int64_t at, int64_t length)
{
    double angle = 1.57079632679489661923 * ((double)at / (double)length);
    wave w = {sin(angle), cos(angle)};
    return w;
}

/* The factors of ReLU(x) at a position. Padding does not shift other tokens. */
static __device__ void make_factors(const head &h, int64_t position, real *factors)
{
    const atn_cosformer_options &o = h.desc->cosformer;
    int64_t longer = h.length > h.key_length ? h.length : h.key_length;
    if (o.weighting == ATN_COSINE_NONE) {
        factors[0] = 1;
    } else if (o.weighting == ATN_COSINE_1D) {
        wave along = wave_at(position + 1, o.length ? o.length : longer);
        factors[0] = (real)along.sine;
        factors[1] = (real)along.cosine;
    } else {
        wave rows = wave_at(position / o.width, o.height);
        wave columns = wave_at(position % o.width, o.width);
        factors[0] = (real)(rows.sine * columns.sine);
        factors[1] = (real)(rows.sine * columns.cosine);
        factors[2] = (real)(rows.cosine * columns.sine);
        factors[3] = (real)(rows.cosine * columns.cosine);
    }
}

/* Unnamed, because the linker would merge the f32 functions with those for f64. */
namespace
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
        token_rows rows = linear_rows(h, t);
        BLOCK_EACH (i, t.rows)
            make_factors(h, head_position(rows, t.first + i), l.kept + i * count);
        __syncthreads();
        BLOCK_EACH (e, t.rows * l.m) {
            int64_t i = e / l.m, f = e % l.m / h.d;
            real x = rows_get(rows, t.first + i, e % h.d);
            t.phi[e] = x > 0 ? l.kept[i * count + f] * x : 0;
        }
        __syncthreads();
    }

    static __device__ void map_backward(const head &h, const linear &l, const token_tile &t)
    {
        int64_t count = l.map.kept;
        token_rows rows = linear_rows(h, t);
        BLOCK_EACH (e, t.rows * h.d) {
            int64_t i = e / h.d, c = e % h.d;
            real sum = 0;
            for (int64_t f = 0; f < count; f++)
                sum += l.kept[i * count + f] * l.slopes[i * l.m + f * h.d + c];
            l.x[e] = rows_get(rows, t.first + i, c) > 0 ? sum : 0;
        }
        __syncthreads();
    }
};
} // namespace

extern "C" const head_operator R(cuda_operator_cosformer) = {linear_sizes<cosine_features>,
                                                             linear_forward<cosine_features>,
                                                             linear_backward<cosine_features>};
