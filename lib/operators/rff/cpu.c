/* SPDX-License-Identifier: BSD-3-Clause */
/* Random Fourier features (Rahimi and Recht 2007) of SOFT's kernel, for features/cpu.c: with
 * u_r = sqrt(2 s) w_r.x,   phi = [cos u, sin u] / sqrt(M),   M rows w_r. */
#include "operators/features/cpu.h"

typedef struct {
    const real *w;    /* m x d */
    real *transposed; /* sqrt(2 s) W^T, d x padded, in the head's state, by `before` */
    int64_t m, d;
    int64_t padded;      /* m rounded up to a multiple of SIMD_COLUMNS */
    double root, factor; /* sqrt(2 s), 1 / sqrt(M) */
} fourier;

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    int64_t features = 2 * desc->rff.projection.rows;
    *thread_reals = R(linear_reals)(features, features, desc, shape);
    *head_reals = R(linear_state)(features, desc, shape) +
                  whole_vectors(desc->rff.projection.rows) * shape->dim;
}

static void map(const void *own, const token_block *b)
{
    const fourier *f = own;
    real *cosines = b->kept, *sines = cosines + b->rows * f->m;
    real factor = (real)f->factor;
    real_gemm(CblasNoTrans, CblasNoTrans, b->rows, f->m, f->d, b->x, b->stride, f->transposed,
              f->padded, 0, cosines, f->m);
    R(simd).sincos(b->rows * f->m, cosines, sines);
    for (int64_t i = 0; i < b->rows; i++) {
        real *restrict phi = b->phi + i * 2 * f->m;
        for (int64_t r = 0; r < f->m; r++)
            phi[r] = cosines[i * f->m + r] * factor;
        for (int64_t r = 0; r < f->m; r++)
            phi[f->m + r] = sines[i * f->m + r] * factor;
    }
}

static void map_backward(const void *own, const token_block *b, real *slopes, bool add, real *grad,
                         int64_t grad_stride)
{
    const fourier *f = own;
    for (int64_t i = 0; i < b->rows; i++) {
        const real *cosines = b->phi + i * 2 * f->m, *sines = cosines + f->m;
        real *by_cosines = slopes + i * 2 * f->m, *by_sines = by_cosines + f->m;
        for (int64_t r = 0; r < f->m; r++)
            by_cosines[r] = (real)f->root * (by_sines[r] * cosines[r] - by_cosines[r] * sines[r]);
    }
    real_gemm(CblasNoTrans, CblasNoTrans, b->rows, f->d, f->m, slopes, 2 * f->m, f->w, f->d, add,
              grad, grad_stride);
}

static fourier open_fourier(const head *h)
{
    const atn_tensor *projection = &h->desc->rff.projection;
    double s = atn_kernel_scale(h->desc->scale, h->desc->scale_value, h->heads, h->d);
    atn_attention_shape shape = {.tokens = h->length, .value_dim = h->dv};
    return (fourier){.w = head_matrix(projection, h->index),
                     .transposed =
                         h->state + R(linear_state)(2 * projection->rows, h->desc, &shape),
                     .m = projection->rows,
                     .d = h->d,
                     .padded = whole_vectors(projection->rows),
                     .root = sqrt(2 * s),
                     .factor = 1 / sqrt((double)projection->rows)};
}

static feature_map map_of(fourier *f)
{
    return (feature_map){.features = 2 * f->m,
                         .kept = 2 * f->m,
                         .denominator = LINEAR_PLAIN,
                         .own = f,
                         .map = map,
                         .map_backward = map_backward};
}

static void run(const head *h, void (*pass)(const head *, const feature_map *))
{
    fourier f = open_fourier(h);
    feature_map features = map_of(&f);
    pass(h, &features);
}

static void before(const head *h)
{
    fourier f = open_fourier(h);
    real root = (real)f.root;
    R(simd).transpose(f.m, f.d, f.w, f.d, f.transposed, f.padded);
    for (int64_t e = 0; e < f.d * f.padded; e++)
        f.transposed[e] *= root;
    run(h, R(linear_before));
}

static void forward(const head *h)
{
    run(h, R(linear_forward));
}

static void backward(const head *h)
{
    run(h, R(linear_backward));
}

const head_operator R(cpu_operator_rff) = {
    .sizes = sizes,
    .before = before,
    .forward = forward,
    .backward = backward,
    .shares = HEAD_SHARED,
    .overwrites = true,
    .searches = true,
    .searches_gradients = true,
};
