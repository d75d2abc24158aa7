/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU's building blocks as the rest of the library calls them: one table per dtype and
 * instruction set, filled in by table.c. Arguments are checked by the callers. */
#ifndef CPU_TABLE_H
#define CPU_TABLE_H

#include "core/internal.h"

typedef struct cpu_table cpu_table;

/* Where inverse_batch leaves a matrix that is kept as a factor (pivoted-cholesky): the lower
 * triangle of the leading rank x rank block of x, row-major with row stride m, holds L, where
 * A[pivots, pivots] = L L^T. */
typedef struct {
    int64_t rank;
    const int *pivots;
} cpu_factor;

/* The memory inverse_batch works in, laid out by cpu_inverse_layout: per thread work, ints and
 * trace_work; per matrix one start, one info, m pivots and a factor. */
typedef struct {
    int64_t reals, ints; /* elements per thread */
    void *work;
    int *int_work;
    double *trace_work;
    double *starts;
    atn_inverse_info *infos;
    int *pivots;
    cpu_factor *factors;
} cpu_inverse_memory;

/* The memory inverse_backward_batch works in, laid out in inverse/plan.c. */
typedef struct {
    cpu_inverse_memory inverse;
    int64_t reals;  /* elements per thread */
    void *work;     /* per thread: reals */
    void *x;        /* per matrix: m x m */
    double *slopes; /* per matrix: the derivative by alpha, then by |A|_1 */
} cpu_inverse_adjoint;

/* A planned SOFT or SOFT++. Pointers are arrays over heads (b h of them), pieces per thread, or
 * chunks: runs of consecutive tokens, whose length depends on the shape alone and whose sums are
 * added in order, so that the result does not depend on the number of threads. */
typedef struct {
    const cpu_table *cpu;  /* what lays it out and runs it */
    const cpu_table *wide; /* the same or, for bf16, f32's: of landmarks, A and its inverse */
    atn_attention_desc desc;
    atn_attention_shape shape;
    bool normalise; /* SOFT++ */
    int threads;
    double s;
    int64_t m, block, chunk, chunks;
    int64_t kernel_reals; /* elements of a block of P */
    int64_t kept; /* blocks of P that a thread keeps of a head that it computes as a whole */
    cpu_inverse_memory inverse;
    int64_t choice_count;
    int64_t *choices; /* per head: choice_count, what the sampling chose (sampling/plan.h) */
    void *landmarks;  /* per head: m x d */
    void *pivoted;    /* per head, for a factor: the landmarks in the order of the pivots, m x d */
    void *a, *x;      /* per head: m x m; x holds A+ or the factor L */
    void *prepared;   /* per head: what landmark_prepare fills */
    void *roots;      /* per head: D^1/2, m */
    void *sums;       /* per head and chunk: m x value_dim; in bf16 f32, rows of whole vectors */
    void *weights;    /* per head: m x value_dim, what the kernel is multiplied by; in bf16 as sums,
                         to be rounded */
    void *kernel;     /* per thread: 1 + kept blocks of P */
    int64_t block_reals;
    void *block_work; /* per thread, block_reals: for a factor the right-hand sides in the order of
                         the pivots; in bf16 what a block needs besides P */
    void *widened;    /* per thread, in bf16 if the sampling depends on Q: Q of a head in f32 */
    void *narrow_landmarks,
        *narrow_weights; /* per head, in bf16: L, (A+ U)^T, rows of whole pairs */
    void *scratch;       /* per thread, scratch_bytes: sampling, A */
    size_t scratch_bytes;
    unsigned char *nonfinite; /* per head and chunk */
    bool backward;            /* whether there is memory for it: all that follows */
    int64_t grad_reals;       /* elements per thread */
    void *grad_work;          /* per thread: grad_reals */
    void *slopes;             /* per thread: the derivative by a block of the kernel */
    void *grad_sums;          /* per head and chunk: K(L,Q) dY, as sums */
    void *grad_weights;       /* per head: m x value_dim, the same as weights, for dY */
    void *landmark_partials;  /* per head and chunk: m x d, sums for the landmarks' gradient */
    void *grad_landmarks;     /* per head: m x d */
    double *alpha_slopes;     /* per head: the derivative by alpha, then by |A|_1 */
    double *norm_sums;        /* per head: 2 d, gradients of norm weight and bias */
} cpu_soft;

/* A planned operator that works head by head (heads.c). */
typedef struct {
    const cpu_table *cpu; /* what lays it out and runs it */
    atn_attention_desc desc;
    atn_attention_shape shape;
    const atn_tensor *parameters[ATN_PARAMETER_COUNT]; /* given and differentiable, or null */
    int threads;
    int64_t thread_reals, head_reals; /* the sizes that the operator requested */
    void *work;                       /* per thread: thread_reals */
    void *state;                      /* per head: head_reals */
    void **joined;                    /* the states of heads that are finite */
    void *gathered;                   /* per thread, with padding: the tokens without padding */
    int64_t *positions;               /* per thread, with padding: their positions */
    void *sums[ATN_PARAMETER_COUNT];  /* per head: a parameter's gradient over the batch */
    unsigned char *nonfinite;         /* per head of the batch */
} cpu_heads;

struct cpu_table {
    /* K(X, Y) of one head; work: gaussian_work(q, d) elements. */
    void (*gaussian_cross)(atn_distance distance, double s, int64_t p, int64_t q, int64_t d,
                           const void *x, int64_t x_stride, const void *y, int64_t y_stride,
                           void *out, int64_t out_stride, void *work);
    /* A of one head, exactly symmetric. */
    void (*gaussian_self)(atn_distance distance, double s, int64_t m, int64_t d, const void *l,
                          int64_t l_stride, void *a, int64_t a_stride, void *work);
    int64_t (*gaussian_work)(int64_t q, int64_t d);

    /* L of one head. type: that of the tokens, this table's or, in f32's, bf16 where the sampling
     * does not depend on them; choices receives what was chosen (core_sampling_choices), work:
     * sample_work elements, aligned for doubles. False if the sampling depends on the tokens and
     * they hold NaN or infinity: L is then NaN, and the choices are arbitrary. */
    bool (*sample)(const atn_sampling *sampling, atn_dtype type, int64_t n, int64_t d,
                   const void *tokens, int64_t stride, int64_t m, void *landmarks,
                   int64_t landmark_stride, int64_t *choices, void *work);
    int64_t (*sample_work)(const atn_sampling *sampling, int64_t n, int64_t d);

    /* w of atn_orthogonal_features, all three dense; work: orthogonal_work elements. */
    atn_status (*orthogonal_features)(int64_t m, int64_t d, const void *numbers, const void *norms,
                                      void *w, void *work);
    int64_t (*orthogonal_work)(int64_t d);

    /* X of every matrix of a. With keep_factor pivoted-cholesky leaves its factor in x and
     * memory->factors instead of the inverse. traces: one per matrix, or null. */
    atn_status (*inverse_batch)(atn_context *context, const atn_inverse_desc *desc,
                                const atn_tensor *a, atn_tensor *x, bool keep_factor,
                                cpu_inverse_memory *memory, atn_trace *traces);
    /* Sets memory->reals and memory->ints. */
    void (*inverse_work)(const atn_inverse_desc *desc, int64_t m, cpu_inverse_memory *memory);
    /* Y = X W of all matrices, W m x k. squares: m x m for each if the method searches alpha by
     * A^2, otherwise null; work: inverse_apply_work elements per thread. */
    int64_t (*inverse_apply_work)(const atn_inverse_desc *desc, int64_t m, int64_t k);
    atn_status (*inverse_apply)(atn_context *context, const atn_inverse_desc *desc,
                                const atn_tensor *a, atn_tensor *squares,
                                cpu_inverse_memory *memory, const atn_tensor *w, atn_tensor *y,
                                void *work);
    /* Backward of inverse_batch, m x m dense; inverse_backward_work is the number of elements that
     * one thread needs. */
    atn_status (*inverse_backward_batch)(atn_context *context, const atn_inverse_desc *desc,
                                         atn_gradient gradient, const atn_tensor *a,
                                         const atn_tensor *dx, atn_tensor *da,
                                         cpu_inverse_adjoint *memory);
    int64_t (*inverse_backward_work)(const atn_inverse_desc *desc, atn_gradient gradient,
                                     int64_t m);

    /* SOFT and SOFT++: soft_layout adds up or hands out the memory, soft_forward runs and leaves
     * each head's outcome in soft->inverse.infos. soft_open and its part of the layout compute
     * landmarks, A and its inverse, for bf16 in f32. */
    void (*soft_open_layout)(core_arena *arena, cpu_soft *soft);
    atn_status (*soft_open)(atn_context *context, cpu_soft *soft, const atn_tensor *q);
    void (*soft_layout)(core_arena *arena, cpu_soft *soft);
    atn_status (*soft_forward)(atn_context *context, cpu_soft *soft, const atn_tensor *q,
                               const atn_tensor *v, atn_tensor *out);
    atn_status (*soft_backward)(atn_context *context, cpu_soft *soft,
                                const atn_attention_inputs *inputs, const atn_tensor *dout,
                                atn_gradients *gradients);

    /* All other operators; each head's outcome is left in heads->nonfinite. */
    void (*heads_layout)(core_arena *arena, cpu_heads *heads);
    void (*heads_forward)(cpu_heads *heads, const atn_attention_inputs *inputs, atn_tensor *out);
    void (*heads_backward)(cpu_heads *heads, const atn_attention_inputs *inputs,
                           const atn_tensor *dout, atn_gradients *gradients);
    /* The work of known cost, on `threads` threads (attnum/timing.h); multiply_adds returns its
     * flops. */
    double (*multiply_adds)(int threads, int64_t steps, void *scratch);
    void (*exponentials)(int threads, int64_t rounds, int64_t count, void *x);
    void (*product)(const atn_product_shape *shape, const void *a, const void *b, void *c);
};

extern const cpu_table cpu_table_f32_base, cpu_table_f64_base, cpu_table_bf16_base;
#ifdef __x86_64__
extern const cpu_table cpu_table_f32_avx2, cpu_table_f64_avx2, cpu_table_bf16_avx2;
extern const cpu_table cpu_table_f32_avx512, cpu_table_f64_avx512, cpu_table_bf16_avx512;
extern const cpu_table cpu_table_bf16_amx;
#endif

/* Whether the processor has AMX and the system lets this process use it: asked once. */
bool cpu_has_amx(void);

/* The table of a dtype, in the context's instruction set. That of bf16 has layout and forward
 * alone, for the operators with ATN_CAN_CPU_BF16. */
const cpu_table *cpu_table_get(const atn_context *context, atn_dtype dtype);

#endif
