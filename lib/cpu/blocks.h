/* SPDX-License-Identifier: BSD-3-Clause */
/* The building blocks that the CPU's files share, for one `real`. */
#ifndef CPU_BLOCKS_H
#define CPU_BLOCKS_H

#include "core/internal.h"
#include "cpu/simd.h"
#include "cpu/table.h"

int64_t R(landmark_padded)(int64_t count);
/* Elements landmark_prepare needs for transposed and norms together. */
int64_t R(landmark_elements)(int64_t count, int64_t d);
/* Fills transposed and norms from rows. */
void R(landmark_prepare)(landmark_set *set);

/* K(X, L) for p tokens: out is p x count with row stride out_stride >= set->padded. ahead: two
 * arrays of which the caller works on consecutive elements next, or null; direct distances prefetch
 * them. */
void R(gaussian_block)(atn_distance distance, double s, int64_t p, const real *x, int64_t x_stride,
                       const landmark_set *set, real *out, int64_t out_stride,
                       const real *const *ahead);

void R(gaussian_cross)(atn_distance distance, double s, int64_t p, int64_t q, int64_t d,
                       const void *x, int64_t x_stride, const void *y, int64_t y_stride, void *out,
                       int64_t out_stride, void *work);
void R(gaussian_self)(atn_distance distance, double s, int64_t m, int64_t d, const void *l,
                      int64_t l_stride, void *a, int64_t a_stride, void *work);
int64_t R(gaussian_work)(int64_t q, int64_t d);

bool R(sample)(const atn_sampling *sampling, atn_dtype type, int64_t n, int64_t d,
               const void *tokens, int64_t stride, int64_t m, void *landmarks,
               int64_t landmark_stride, int64_t *choices, void *work);
int64_t R(sample_work)(const atn_sampling *sampling, int64_t n, int64_t d);

/* out (rows x cols) = X A, plus what out holds with add; X are `rows` tokens of `inner` channels, A
 * is inner x cols. In blocks, of which the next ones are prefetched. */
void R(multiply_tokens)(int64_t rows, int64_t cols, int64_t inner, const real *x, int64_t x_stride,
                        const real *a, bool add, real *out, int64_t out_stride);

enum { NORM_CHANNELS = 64 }; /* of a row that LayerNorm and GELU take at a time, in double */

/* Of LayerNorm over a row, with eps 1e-5: its mean and 1 / sqrt(variance + eps). */
typedef struct {
    double mean, rate;
} layer_norm_moments;
layer_norm_moments R(layer_norm_moments_of)(int64_t d, const real *row);
/* LayerNorm's values of d channels: u_c = (row_c - mean) rate, and x_c = u_c weight_c + bias_c; u
 * may be null, weight and bias too (1 and 0). */
void R(layer_norm)(layer_norm_moments moments, int64_t d, const real *weight, const real *bias,
                   const real *row, double *u, double *x);

/* The samplings that depend on the tokens: fills choices (core_sampling_choices). The tokens are
 * finite. Returns the centroids (m x d, in work) for kmeans with steps, otherwise null. work:
 * choose_work doubles. */
const double *R(choose)(const atn_sampling *sampling, int64_t n, int64_t d, const real *tokens,
                        int64_t stride, int64_t *choices, double *work);
int64_t R(choose_work)(const atn_sampling *sampling, int64_t n, int64_t d);

atn_status R(orthogonal_features)(int64_t m, int64_t d, const void *numbers, const void *norms,
                                  void *w, void *work);
int64_t R(orthogonal_work)(int64_t d);

/* Backward of sample for one head, landmarks' gradients m x d. grad, of the tokens, is added to.
 * choices are as sample left them, and count as constants. conv-code: the gradients of norm weight
 * and bias are added to norm_sums (2 d), and landmarks becomes the gradient of the convolution's
 * output. conv: landmarks stays as it is; after other kinds it is of no use. work:
 * sample_backward_work elements. */
void R(sample_backward)(const atn_sampling *sampling, int64_t n, int64_t d, const real *tokens,
                        int64_t stride, int64_t m, const int64_t *choices, real *landmarks,
                        real *grad, int64_t grad_stride, double *norm_sums, real *work);
int64_t R(sample_backward_work)(const atn_sampling *sampling, int64_t m, int64_t d);
/* One head's part of the gradient of the convolution's weights in one input channel, added to
 * weights (d x d x k k); landmarks as sample_backward left them. work as for sample_backward. */
void R(conv_weights_backward)(const atn_sampling *sampling, int64_t d, const real *tokens,
                              int64_t stride, int64_t m, const real *landmarks, int64_t channel,
                              real *weights, real *work);

/* out += values convolved with one tall x wide filter (the residuals). Rows y0 <= y < y1. */
void R(depthwise_rows)(int64_t height, int64_t width, int64_t dv, int64_t tall, int64_t wide,
                       const real *filter, const real *values, int64_t value_stride, int64_t y0,
                       int64_t y1, real *out, int64_t out_stride);

/* Backward of depthwise_rows: grad, of the values, is added to for rows y0 <= y < y1. */
void R(depthwise_back_rows)(int64_t height, int64_t width, int64_t dv, int64_t tall, int64_t wide,
                            const real *filter, const real *grad_out, int64_t grad_out_stride,
                            int64_t y0, int64_t y1, real *grad, int64_t grad_stride);
/* The gradient of the filter's entry that is `down` and `right` of its middle. */
double R(depthwise_entry_sum)(int64_t height, int64_t width, int64_t dv, int64_t down,
                              int64_t right, const real *values, int64_t value_stride,
                              const real *grad_out, int64_t grad_out_stride);

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
    double alpha; /* Newton-Raphson: the start after the halvings; < 0: the search found no n */
    atn_trace *trace;
    double *trace_work;
    atn_inverse_info *info;
} R(inverse_problem);
typedef R(inverse_problem) inverse_problem;

atn_status R(newton)(const inverse_problem *p);
atn_status R(eig)(const inverse_problem *p);
atn_status R(polynomial)(const inverse_problem *p);
int64_t R(polynomial_work)(int64_t m);
atn_status R(cholesky)(const inverse_problem *p);
atn_status R(pivoted_cholesky)(const inverse_problem *p);
int64_t R(cholesky_work)(int64_t m);

/* u of the type that iterates are stored in. */
double R(inverse_roundoff)(const atn_inverse_desc *desc);

/* Used by all iterations. Sets X = 0 because there is no start. */
atn_status R(without_start)(const inverse_problem *p, atn_stop stop);
/* Records step k = 1, 2, ... and its update in the info. */
void R(record_update)(atn_inverse_info *info, int k, double update);
/* The root of change / size, which may be 0 / 0 (0), or not finite. */
double R(relative_update)(double change, double size);
/* Whether the update alone shows that X_{k+1} is finite: otherwise |X_{k+1}|^2 is infinite or NaN,
 * and the update is 0 or not finite. */
static inline bool R(is_finite_update)(double update)
{
    return update > 0 && update < INFINITY;
}

/* Stores alpha of every matrix of a in memory->starts (< 0: the search found no n) and the halvings
 * in memory->infos; matrices whose info has ATN_NONFINITE enter no maximum. squares has the shape
 * of a and is scratch for the search on A^2. */
void R(newton_starts)(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                      atn_tensor *squares, cpu_inverse_memory *memory);

/* B = A + ridge I. */
void R(newton_shift)(int64_t m, const real *a, real ridge, real *b);
/* next = 2 X - X B X, exactly symmetric, from b_x = B X, which is rounded to the storage first.
 * Returns |next - X|_F / |next|_F. */
double R(newton_step)(atn_storage storage, int64_t m, const real *x, real *b_x, real *next);

/* Backward for one matrix: the derivative by A from that by X. */
typedef struct {
    const atn_inverse_desc *desc;
    int64_t m;
    const real *a, *x; /* steps computes the iterates again and needs no x */
    real *grad_x;      /* read, then scratch */
    real *grad_a;      /* overwritten; the derivative for constant alpha */
    real *work;        /* inverse_backward_work */
    const atn_inverse_info *info;
    double *slope; /* overwritten: the derivative by alpha, which only steps makes nonzero */
} R(inverse_adjoint);
typedef R(inverse_adjoint) inverse_adjoint;

int64_t R(inverse_backward_work)(const atn_inverse_desc *desc, atn_gradient gradient, int64_t m);
void R(inverse_backward)(atn_gradient gradient, const inverse_adjoint *g);
int64_t R(steps_backward_work)(const atn_inverse_desc *desc, int64_t m);
void R(steps_backward)(const inverse_adjoint *g);

/* Replaces every matrix's derivative by alpha (slopes) by that by its |A|_1. */
void R(newton_norm_slopes)(const atn_inverse_desc *desc, const atn_tensor *a,
                           const atn_inverse_info *infos, double *slopes);
/* The first row whose absolute sum is |A|_1. */
int64_t R(norm1_row)(int64_t m, const real *a);

atn_status R(inverse_backward_batch)(atn_context *context, const atn_inverse_desc *desc,
                                     atn_gradient gradient, const atn_tensor *a,
                                     const atn_tensor *dx, atn_tensor *da,
                                     cpu_inverse_adjoint *memory);

/* A call inverts its matrices one by one: inverse_begin once, then inverse_next for each matrix,
 * which returns its status. squares: an m x m matrix for each, for a search on A^2. */
void R(inverse_begin)(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                      atn_tensor *squares, cpu_inverse_memory *memory);
atn_status R(inverse_next)(const atn_inverse_desc *desc, const atn_tensor *a, int64_t i,
                           bool keep_factor, const cpu_inverse_memory *memory, atn_trace *trace,
                           real *x);

atn_status R(inverse_batch)(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                            atn_tensor *x, bool keep_factor, cpu_inverse_memory *memory,
                            atn_trace *traces);
int64_t R(inverse_apply_work)(const atn_inverse_desc *desc, int64_t m, int64_t k);
atn_status R(inverse_apply)(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                            atn_tensor *squares, cpu_inverse_memory *memory, const atn_tensor *w,
                            atn_tensor *y, void *work);
void R(inverse_work)(const atn_inverse_desc *desc, int64_t m, cpu_inverse_memory *memory);

/* Computes all heads' landmarks, A, its inverse or factor, and the arrays derived from them for the
 * passes over the tokens. The tokens may be bf16 if this is f32. Negative: LAPACK failed. */
atn_status R(soft_open)(atn_context *context, cpu_soft *soft, const atn_tensor *q);
void R(soft_open_layout)(core_arena *arena, cpu_soft *soft);
void R(soft_layout)(core_arena *arena, cpu_soft *soft);
atn_status R(soft_forward)(atn_context *context, cpu_soft *soft, const atn_tensor *q,
                           const atn_tensor *v, atn_tensor *out);

atn_status R(soft_backward)(atn_context *context, cpu_soft *soft,
                            const atn_attention_inputs *inputs, const atn_tensor *dout,
                            atn_gradients *gradients);

double R(multiply_adds)(int threads, int64_t steps, void *scratch);
void R(exponentials)(int threads, int64_t rounds, int64_t count, void *x);
void R(product)(const atn_product_shape *shape, const void *a, const void *b, void *c);

/* Rounds what an implementation in desc->storage would store (heads.c). */
void R(store)(atn_storage storage, int64_t rows, int64_t cols, real *a, int64_t stride);

/* A = U S W^T, m x m (singular.c): a becomes W^T, left U^T, values the singular values, from the
 * largest on; squares is work for m numbers. False if it did not converge, which happens where A is
 * not finite or its squares overflow. Error: a few m roundoffs of |A|. A sweep takes some 9 m^3
 * operations; there are 5 to 10. */
bool R(singular_values)(int64_t m, real *a, real *left, real *values, double *squares);

/* A loop that only reads an array prefetches at least a line of each page so far ahead, because the
 * processor's own prefetchers follow its loads and stop at the end of a page. */
enum { PAGE_REALS = 4096 / sizeof(real), AHEAD_REALS = 2 * PAGE_REALS };

/* Small helpers on dense matrices (matrix.c). */
/* 1.a and a.b, in double, in partial sums that a vector unit adds in parallel. */
double R(sum)(int64_t count, const real *a);
double R(dot)(int64_t count, const real *a, const real *b);
/* |a - b|^2 and |a|^2; in f32 to 12 roundoffs of f32, whatever its range. */
double R(squared_difference)(int64_t count, const real *a, const real *b);
double R(squared_norm)(int64_t count, const real *a);
/* R(dot) of each row of a with the same row of b (stride 0: with the one row b), and R(frobenius)
 * of each row. */
void R(row_dots)(int64_t rows, int64_t cols, const real *a, int64_t a_stride, const real *b,
                 int64_t b_stride, double *dots);
void R(row_norms)(int64_t rows, int64_t cols, const real *a, int64_t stride, double *norms);
/* The index of the first element that equals value; the last if none does. */
int64_t R(find)(int64_t count, const real *a, real value);
/* to += sum_i weights_i a_i, rows a_i of `cols` elements; null: weights 1. The sum is in double, of
 * sums of eight rows in `real` and of the last rows % 8, one by one. */
void R(add_rows)(int64_t rows, int64_t cols, const real *weights, const real *a, int64_t stride,
                 real *to);
double R(frobenius)(int64_t count, const real *a);
double R(norm1)(int64_t m, const real *a);
/* y = A x, rows of A `stride` apart; sums in `real`, in 16 parts, which are added by halves. */
void R(multiply_vector)(int64_t rows, int64_t cols, const real *a, int64_t stride, const real *x,
                        real *y);
bool R(all_finite)(int64_t rows, int64_t cols, const real *a, int64_t stride);
/* a = (a + a^T) / 2, exactly symmetric. */
void R(symmetrise)(int64_t m, real *a);
/* Copies the lower triangle onto the upper. */
void R(mirror_lower)(int64_t m, real *a, int64_t stride);
/* |A X A - A|_F / |A|_F, 0 for A = 0; two m x m scratch matrices. The second starts from A X. */
double R(first_penrose)(int64_t m, const real *a, const real *x, real *scratch1, real *scratch2);
double R(penrose_of_product)(int64_t m, const real *a, const real *a_x, real *scratch);

#endif
