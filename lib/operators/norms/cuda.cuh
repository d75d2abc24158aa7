/* SPDX-License-Identifier: BSD-3-Clause */
/* Norms that arrays are divided by, kept in double, and their derivatives, as in
 * operators/norms/cpu.h: x^ = x / max(|x|, e); where e is larger the divisor is a constant. */
#ifndef NORMS_CUDA_CUH
#define NORMS_CUDA_CUH

#include "cuda/heads.cuh"

/* A sum of |x| (l1), or of squares in a unit, sum = |x|^2 unit^2 (l2; unit 0: nothing yet). */
typedef struct {
    double unit, sum;
} norm_sum;

/* Rescales a sum to another unit, which is no larger, if it has one yet. */
static __device__ __forceinline__ void norm_fit(norm_sum *s, double unit)
{
    double ratio = s->unit > 0 ? unit / s->unit : 0;
    s->sum *= ratio * ratio;
    s->unit = unit;
}

static __device__ __forceinline__ void norm_add(atn_sima_norm norm, norm_sum *s, double x)
{
    double size = fabs(x);
    if (norm == ATN_SIMA_L1)
        s->sum += size;
    else if (size > 0) {
        if (!(s->unit > 0 && size * s->unit <= 1))
            norm_fit(s, core_unit_of(size));
        s->sum += size * s->unit * (size * s->unit);
    }
}

static __device__ __forceinline__ void norm_merge(atn_sima_norm norm, norm_sum *s, norm_sum other)
{
    if (norm == ATN_SIMA_L1)
        s->sum += other.sum;
    else if (other.unit > 0) {
        if (!(s->unit > 0 && s->unit <= other.unit))
            norm_fit(s, other.unit);
        double ratio = s->unit / other.unit;
        s->sum += other.sum * ratio * ratio;
    }
}

static __device__ __forceinline__ double norm_value(atn_sima_norm norm, norm_sum s)
{
    return norm == ATN_SIMA_L2 && s.unit > 0 ? sqrt(s.sum) / s.unit : s.sum;
}

/* The norms of d columns over all tokens of a head, in its state: columns_doubles(d). */
typedef struct {
    atn_sima_norm norm;
    int64_t d;
    double *divisors, *varies;
} column_norms;

static __host__ __device__ __forceinline__ int64_t columns_doubles(int64_t d)
{
    return 2 * d;
}

static __device__ __forceinline__ column_norms columns_at(atn_sima_norm norm, int64_t d,
                                                          double *memory)
{
    column_norms c = {norm, d, memory, memory + d};
    return c;
}

/* The doubles of a chunk's partial sums, and of a block's work while they are computed. */
static __host__ __device__ __forceinline__ int64_t columns_partial_doubles(int64_t d)
{
    return 2 * d;
}

static __host__ __device__ __forceinline__ int64_t columns_work_doubles(int64_t d)
{
    return d > BLOCK_THREADS ? 2 * d : 2 * BLOCK_THREADS;
}

/* Sums over rows first .. end - 1 into partial, as many rows at a time as there are threads for;
 * work: columns_work_doubles. */
static __device__ void columns_sum(atn_sima_norm norm, int64_t d, const token_rows &x,
                                   int64_t first, int64_t end, double *partial, double *work)
{
    int64_t groups = d < BLOCK_THREADS ? BLOCK_THREADS / d : 1;
    norm_sum *sums = (norm_sum *)work, *to = (norm_sum *)partial;
    BLOCK_EACH (t, groups * d) {
        norm_sum s = {0, 0};
        for (int64_t i = first + t / d; i < end; i += groups)
            norm_add(norm, &s, (double)rows_get(x, i, t % d));
        sums[t] = s;
    }
    __syncthreads();
    BLOCK_EACH (e, d) {
        norm_sum s = sums[e];
        for (int64_t g = 1; g < groups; g++)
            norm_merge(norm, &s, sums[g * d + e]);
        to[e] = s;
    }
    __syncthreads();
}

/* The norms from all chunks' sums, which start at `offset` in each chunk's partials. */
static __device__ void columns_finish(const head &h, const column_norms &c, int64_t offset,
                                      double epsilon)
{
    BLOCK_EACH (e, c.d) {
        norm_sum s = {0, 0};
        for (int64_t i = 0; i < h.chunks; i++)
            norm_merge(c.norm, &s, ((norm_sum *)(h.partials + i * h.chunk_reals + offset))[e]);
        c.divisors[e] = 1;
        c.varies[e] = 0;
        if (c.norm != ATN_SIMA_NONE)
            c.divisors[e] = core_norm_divisor(norm_value(c.norm, s), epsilon, &c.varies[e]);
    }
    __syncthreads();
}

/* tile (count x d) = rows of x, each column divided by its norm. */
static __device__ void columns_load(const column_norms &c, const token_rows &x, int64_t first,
                                    int64_t count, real *tile)
{
    BLOCK_EACH (e, count * c.d) {
        int64_t column = e % c.d;
        tile[e] = (real)((double)rows_get(x, first + e / c.d, column) / c.divisors[column]);
    }
    __syncthreads();
}

/* The gradient by x from g, that by x^, has two terms:
 *
 *   dx = (g - along d|x|/dx) / |x|,   along = sum over all tokens of g x^,
 *   d|x|/dx = sign(x), +1 at 0 (l1), or x^ (l2).
 *
 * columns_backward_partial adds a tile's part to the chunk's along, and the first term to the rows
 * of the gradient; when along is complete, columns_backward_finish subtracts the second term from
 * the chunk's rows. */
static __device__ void columns_backward_partial(const column_norms &c, int64_t count,
                                                const real *normalised, const real *g,
                                                double *along, const token_rows &grad,
                                                int64_t first)
{
    BLOCK_EACH (e, c.d) {
        double sum = along[e];
        for (int64_t i = 0; i < count; i++)
            sum += (double)g[i * c.d + e] * (double)normalised[i * c.d + e];
        along[e] = sum;
    }
    BLOCK_EACH (e, count * c.d) {
        int64_t i = first + e / c.d, column = e % c.d;
        real old = rows_get(grad, i, column);
        rows_set(grad, i, column, old + (real)((double)g[e] / c.divisors[column]));
    }
    __syncthreads();
}

static __device__ void columns_backward_finish(const column_norms &c, const double *along,
                                               const token_rows &x, int64_t first, int64_t end,
                                               const token_rows &grad)
{
    if (c.norm != ATN_SIMA_NONE)
        BLOCK_EACH (e, (end - first) * c.d) {
            int64_t i = first + e / c.d, column = e % c.d;
            double value = (double)rows_get(x, i, column), divisor = c.divisors[column];
            double slope = c.norm == ATN_SIMA_L1 ? (value < 0 ? -1 : 1) : value / divisor;
            double off = c.varies[column] * along[column] * slope / divisor;
            rows_set(grad, i, column, rows_get(grad, i, column) - (real)off);
        }
    __syncthreads();
}

/* along summed over all chunks, whose parts start at `offset` in each chunk's partials. */
static __device__ void columns_add_along(const head &h, int64_t d, int64_t offset, double *along)
{
    BLOCK_EACH (e, d) {
        double sum = 0;
        for (int64_t i = 0; i < h.chunks; i++)
            sum += ((double *)(h.partials + i * h.chunk_reals + offset))[e];
        along[e] = sum;
    }
    __syncthreads();
}

/* ---- Lines, each divided by its own norm, one warp per line ---- */

/* Line l: count elements with stride `step`, the first at l * start. */
typedef struct {
    int64_t lines, start, count, step;
} line_layout;

/* The Euclidean norm of a line, by the lanes of a warp. */
static __device__ double line_norm(int64_t count, int64_t step, const real *x)
{
    double largest = 0, sum = 0;
    for (int64_t i = threadIdx.x % 32; i < count; i += 32)
        largest = larger(largest, fabs((double)x[i * step]));
    largest = warp_max(largest);
    if (!(largest > 0 && largest < HUGE_VAL))
        return largest;
    double unit = core_unit_of(largest);
    for (int64_t i = threadIdx.x % 32; i < count; i += 32) {
        double scaled = (double)x[i * step] * unit;
        sum += scaled * scaled;
    }
    return sqrt(warp_sum(sum)) / unit;
}

/* Replaces each line x by gamma x / max(|x|, epsilon) and keeps the divisors. */
static __device__ void lines_normalise(const line_layout &l, double gamma, double epsilon, real *x,
                                       double *divisors, double *varies)
{
    for (int64_t line = threadIdx.x / 32; line < l.lines; line += BLOCK_WARPS) {
        real *to = x + line * l.start;
        double norm = line_norm(l.count, l.step, to), varying;
        double divisor = core_norm_divisor(norm, epsilon, &varying);
        for (int64_t i = threadIdx.x % 32; i < l.count; i += 32)
            to[i * l.step] = (real)(gamma * ((double)to[i * l.step] / divisor));
        if (threadIdx.x % 32 == 0) {
            divisors[line] = divisor;
            varies[line] = varying;
        }
    }
    __syncthreads();
}

/* The gradient by x from `scale` times that by x^, in place: (g - (g.x^) x^) / |x|, or g / e. */
static __device__ void lines_backward(const line_layout &l, double scale, const real *normalised,
                                      const double *divisors, const double *varies, real *grad)
{
    for (int64_t line = threadIdx.x / 32; line < l.lines; line += BLOCK_WARPS) {
        const real *x = normalised + line * l.start;
        real *g = grad + line * l.start;
        double along = 0, factor = scale / divisors[line];
        for (int64_t i = threadIdx.x % 32; i < l.count; i += 32)
            along += (double)g[i * l.step] * (double)x[i * l.step];
        along = varies[line] * warp_sum(along);
        for (int64_t i = threadIdx.x % 32; i < l.count; i += 32) {
            double across = (double)g[i * l.step] - along * (double)x[i * l.step];
            g[i * l.step] = (real)(factor * across);
        }
    }
    __syncthreads();
}

#endif
