/* SPDX-License-Identifier: BSD-3-Clause */
/* A member of a group, ready to run: its plan, and several sets of random inputs in the device's
 * memory, which the members of a group share. */
#ifndef EXPERIMENTS_BENCH_WORKLOAD_H
#define EXPERIMENTS_BENCH_WORKLOAD_H

#include "bench/cases.h"
#include "bench/xsmm.h"

enum { WORKLOAD_SETS = 3, WORKLOAD_INPUTS = 3, WORKLOAD_OUTPUTS = 3 };
enum { WORKLOAD_OWNED = 8, STORE_OWNED = 128 };

/* The arrays of a type. */
typedef struct {
    bool open;
    int sets; /* of inputs; fewer if memory is short, and one if all is in cache */
    /* Q, K, V; A and W; tokens and landmarks; the factors; or x. K's data is null for operators
     * without keys. */
    atn_tensor inputs[WORKLOAD_SETS][WORKLOAD_INPUTS];
    atn_tensor dout;
    atn_tensor outputs[WORKLOAD_OUTPUTS]; /* Y; the gradients of Q, K, V; or X, and Y = X W; ... */
} workload_arrays;

/* Arrays that the members of a group share. */
typedef struct {
    atn_context *context; /* owns the memory */
    int type_count;       /* of the group */
    workload_arrays types[ATN_DTYPE_COUNT];
    void *owned[STORE_OWNED];
    int owned_count;
} workload_store;

/* Opens a store for the cases of a group, whose types share the device's memory. */
void workload_store_open(atn_context *context, int64_t count, const bench_case *cases,
                         workload_store *store);
void workload_store_close(workload_store *store);

typedef struct bench_training bench_training;

typedef struct {
    atn_context *context;
    const bench_case *c;
    workload_arrays *arrays;
    atn_plan *plan;
    atn_inverse_desc inverse;
    atn_inverse_info *infos; /* for a batch's matrices */
    int64_t steps;           /* for arithmetic */
    xsmm_product *product;
    bench_training *training;
    void *work;           /* for plain.h */
    double forward_flops; /* of an operator's forward call, for either direction */
    double flops, exps;   /* of one call; 0: unknown */
    double bytes;      /* the least that a call must move: inputs read once, outputs written once */
    atn_status status; /* the first failure */
    void *owned[WORKLOAD_OWNED]; /* in the device's memory */
    int owned_count;
    void *host[40]; /* host memory that a plan on the CPU reads */
    int host_count;
} workload;

/* Opens a workload with random inputs, and creates arrays in the store that no earlier workload
 * needed. workload.status is the result, with the reason in the context. The workload must be
 * closed in any case. */
void workload_open(workload_store *store, atn_context *context, const bench_case *c, workload *s);
void workload_close(workload *s);

/* Enqueues the work on inputs number `set`. */
void workload_run(workload *s, int set);

/* Fills the outputs with NaN, runs once and waits. In the first and the last head or matrix of each
 * output all elements must have been written and be finite. Returns ATN_OK, ATN_NONFINITE or the
 * failure of a call. */
atn_status workload_try(workload *s);

/* Waits, and returns the outcome of all calls so far as workload_try does, but does not check
 * outputs. */
atn_status workload_outcome(workload *s);

/* The inverse of a case. It is the published one, but iterations from alpha I take as many steps as
 * they need for the residual |AXA - A|_F / |A|_F of nr-paper after its 20 steps, or the type's
 * roundoff, whichever is larger; both are found in f64 on the first matrix. The context has the
 * reason for a failure. */
atn_status workload_inverse(const bench_case *c, atn_isa isa, atn_inverse_desc *desc);

/* Numbers of mean 0 and variance 1, generated fast, different for every stream. */
void workload_numbers(uint64_t stream, int64_t count, float *values);

/* Tokens of input number `input` of a set, heads x n x d: waves along the sequence, of 1 to 8
 * periods, plus noise, so that averages of neighbours differ. The first WORKLOAD_HEADS heads differ
 * and are then repeated. */
enum { WORKLOAD_HEADS = 8 };
void workload_tokens(int set, int input, int64_t heads, int64_t n, int64_t d, float *values);

/* Kernel matrices for batched inverses: count m x m matrices in f64, exactly symmetric. */
void workload_matrices(int set, int64_t count, int64_t m, double *a);

/* ---- For the files that define kinds of work: rates.c, parts.c, training.c ---- */

/* The s of SOFT's kernel, 1/(2 sqrt(d)). */
double workload_scale(const bench_case *c);

/* Calls of exp for each number: enough to make the synchronisation of threads negligible. */
enum { WORKLOAD_EXPONENTIALS = 64 };

/* Memory that the workload owns; null after a failure. */
void *workload_take(workload *s, size_t bytes);
/* The same with random numbers in the case's type. */
void *workload_take_numbers(workload *s, int64_t count);
/* An array of a group, created by the first workload of its type. */
atn_tensor workload_take_array(workload_store *store, workload *s, int64_t rows, int64_t cols);
void workload_fill(workload *s, const atn_tensor *t, int set, int input);

typedef struct {
    void (*open)(workload_store *store, workload *s);
    atn_status (*run)(workload *s, int set);
} workload_kind;

extern const workload_kind rate_copy, rate_arithmetic, rate_exponentials; /* rates.c */
extern const workload_kind part_kernel, part_gemm, part_exp;              /* parts.c */
extern const workload_kind bench_training_kind;                           /* training.c */
void bench_training_free(bench_training *b);                              /* null: nothing */

#endif
