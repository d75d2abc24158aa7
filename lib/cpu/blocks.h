/* SPDX-License-Identifier: BSD-3-Clause */
/* The building blocks this folder's files use of one another, for one `real`. */
#ifndef CPU_BLOCKS_H
#define CPU_BLOCKS_H

#include "core/internal.h"
#include "cpu/real.h"
#include "cpu/table.h"

/* Landmarks made ready for kernel blocks: their rows (count x d), the transpose with columns padded
 * to whole tiles (d x padded), their squared norms. */
typedef struct {
    int64_t count, padded, d;
    real *rows, *transposed, *norms;
} R(landmark_set);
typedef R(landmark_set) landmark_set;

int64_t R(landmark_padded)(int64_t count);
/* Elements landmark_prepare needs for transposed and norms together. */
int64_t R(landmark_elements)(int64_t count, int64_t d);
/* Fills transposed and norms from rows. */
void R(landmark_prepare)(landmark_set *set);

/* K(X, L) for p tokens: out is p x count with row stride out_stride >= set->padded. */
void R(gaussian_block)(atn_distance distance, double s, int64_t p, const real *x, int64_t x_stride,
                       const landmark_set *set, real *out, int64_t out_stride);

void R(gaussian_cross)(atn_distance distance, double s, int64_t p, int64_t q, int64_t d,
                       const void *x, int64_t x_stride, const void *y, int64_t y_stride, void *out,
                       int64_t out_stride, void *work);
void R(gaussian_self)(atn_distance distance, double s, int64_t m, int64_t d, const void *l,
                      int64_t l_stride, void *a, int64_t a_stride, void *work);
int64_t R(gaussian_work)(int64_t q, int64_t d);

void R(sample)(const atn_sampling *sampling, int64_t n, int64_t d, const void *tokens,
               int64_t stride, int64_t m, void *landmarks, int64_t landmark_stride, void *work);
int64_t R(sample_work)(const atn_sampling *sampling, int64_t d);

atn_status R(orthogonal_features)(int64_t m, int64_t d, const void *numbers, const void *norms,
                                  void *w, void *work);
int64_t R(orthogonal_work)(int64_t d);

/* out += values convolved with one tall x wide filter (the residuals). Rows y0 <= y < y1. */
void R(depthwise_rows)(int64_t height, int64_t width, int64_t dv, int64_t tall, int64_t wide,
                       const real *filter, const real *values, int64_t value_stride, int64_t y0,
                       int64_t y1, real *out, int64_t out_stride);

/* One matrix, dense m x m, with one thread's memory. */
typedef struct {
    const atn_inverse_desc *desc;
    int64_t m;
    const real *a;
    real *x;
    real *work;
    int *ints;
    int *pivots;
    bool keep_factor;
    double alpha; /* Newton-Raphson: the start, halved already; < 0: no such n */
    atn_trace *trace;
    double *trace_work;
    atn_inverse_info *info;
} R(inverse_problem);
typedef R(inverse_problem) inverse_problem;

atn_status R(newton)(const inverse_problem *p);
atn_status R(eig)(const inverse_problem *p);
atn_status R(cholesky)(const inverse_problem *p);
atn_status R(pivoted_cholesky)(const inverse_problem *p);

/* alpha of every matrix of a into starts (< 0: no such n) and the halvings into infos; matrices
 * whose info says ATN_NONFINITE are left out of every maximum. squares has the shape of a and is
 * scratch, used by the search on A^2. */
void R(newton_starts)(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                      atn_tensor *squares, atn_inverse_info *infos, double *starts);

atn_status R(inverse_batch)(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                            atn_tensor *x, bool keep_factor, cpu_inverse_memory *memory,
                            atn_trace *traces);
void R(inverse_work)(const atn_inverse_desc *desc, int64_t m, cpu_inverse_memory *memory);

void R(soft_layout)(core_arena *arena, cpu_soft *soft);
atn_status R(soft_forward)(atn_context *context, cpu_soft *soft, const atn_tensor *q,
                           const atn_tensor *v, atn_tensor *out);

/* Small helpers on dense matrices (matrix.c). */
double R(frobenius)(int64_t count, const real *a);
double R(norm1)(int64_t m, const real *a);
bool R(all_finite)(int64_t rows, int64_t cols, const real *a, int64_t stride);
/* a = (a + a^T) / 2, exactly symmetric. */
void R(symmetrise)(int64_t m, real *a);
/* Copies the lower triangle onto the upper. */
void R(mirror_lower)(int64_t m, real *a, int64_t stride);
/* |A X A - A|_F / |A|_F, 0 for A = 0; two m x m scratch matrices. */
double R(first_penrose)(int64_t m, const real *a, const real *x, real *scratch1, real *scratch2);

#endif
