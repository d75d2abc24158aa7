/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of `attnum bench`, in groups whose members are compared with each other: operators over
 * shapes and types, forward and backward; inverses; kernel matrices, products and exponentials
 * compared with those of other libraries; and, in the first group, the rates with which all of them
 * are compared. */
#ifndef EXPERIMENTS_BENCH_CASES_H
#define EXPERIMENTS_BENCH_CASES_H

#include <cases.h>

#include "common/options.h"

/* X(code, name, description) */
#define BENCH_WORK_LIST(X)                                                                         \
    X(BENCH_COPY, "copy", "a copy within the device's memory; bytes are read and written")         \
    X(BENCH_ARITHMETIC, "arithmetic", "fused multiply-adds in registers")                          \
    X(BENCH_EXPONENTIALS, "exponentials", "exp(-x) of numbers in cache")                           \
    X(BENCH_FORWARD, "forward", "an operator's output")                                            \
    X(BENCH_BACKWARD, "backward", "its gradients by Q, K and V")                                   \
    X(BENCH_TRAINING, "training", "a step of attnum train: a batch of pictures, and AdamW")        \
    X(BENCH_INVERSE, "inverse", "inverses X of a batch of m x m matrices")                         \
    X(BENCH_SOLVE, "solve", "X W of such a batch, W m x 32; a factor is applied, not inverted")    \
    X(BENCH_KERNEL, "kernel", "exp(-s |q_i - l_j|^2) of n tokens and m landmarks")                 \
    X(BENCH_GEMM, "gemm", "a product of matrices")                                                 \
    X(BENCH_EXP, "exp", "exp(-x) of numbers in cache, ours and the C library's")

#define BENCH_CODE(code, name, description) code,
typedef enum { BENCH_WORK_LIST(BENCH_CODE) BENCH_WORK_COUNT } bench_work;
#undef BENCH_CODE

/* The code that a member runs. X(code, name, description) */
#define BENCH_MAKER_LIST(X)                                                                        \
    X(BENCH_OURS, "attnum", "the library's")                                                       \
    X(BENCH_OPENBLAS, "openblas", "OpenBLAS's products")                                           \
    X(BENCH_LIBXSMM, "libxsmm", "libxsmm's products, generated for their shape")                   \
    X(BENCH_LIBM, "libm", "the C library's exp, distances by OpenBLAS")

#define BENCH_CODE(code, name, description) code,
typedef enum { BENCH_MAKER_LIST(BENCH_CODE) BENCH_MAKER_COUNT } bench_maker;
#undef BENCH_CODE

/* A member of a group: one row. Fields without a meaning for its kind of work are 0. */
typedef struct {
    bench_work work;
    bench_maker maker;
    atn_dtype dtype;
    atn_operator op; /* for forward, backward and training */
    int variant;
    atn_inverse_method inverse; /* of a batch, or of soft's and softpp's A */
    bool interval_known;    /* for solve: the ends of A's spectrum are known from an earlier call */
    atn_soft_passes passes; /* for soft and softpp: other than auto with the clamped distance */
    atn_distance distance;  /* for kernel */
    bool transpose_a, transpose_b; /* for gemm */
    int64_t batch, heads;
    int64_t tokens, landmarks, dim; /* gemm: rows, columns and inner size; exp: tokens numbers */
    int threads;
} bench_case;

typedef struct {
    bench_case *cases;
    int64_t count;
    int64_t *ends; /* of each group: the index after its last case */
    int64_t groups;
} bench_list;

/* Lists the numbers of threads: the given ones, or 1 and all, but only those that are at most
 * `most`, and always the first; on CUDA, where threads are the host's, one number. `threads` has
 * room for two, and for as many as were given. Returns how many. */
int bench_threads(const program_options *s, int64_t most, int threads[]);

/* All cases that the options select; the rates come first. */
bench_list bench_cases(const program_options *s);
void bench_list_free(bench_list *list);
/* The first case of a group; *count: how many it has. */
const bench_case *bench_group(const bench_list *list, int64_t group, int64_t *count);

/* The properties that distinguish cases, as text: "" where a case does not have one. X(code,
 * column) */
#define BENCH_KEY_LIST(X)                                                                          \
    X(BENCH_KEY_WORK, "work")                                                                      \
    X(BENCH_KEY_OPERATOR, "operator")                                                              \
    X(BENCH_KEY_VARIANT, "variant")                                                                \
    X(BENCH_KEY_INVERSE, "inverse")                                                                \
    X(BENCH_KEY_PASSES, "passes")                                                                  \
    X(BENCH_KEY_DISTANCE, "distance")                                                              \
    X(BENCH_KEY_DTYPE, "dtype")                                                                    \
    X(BENCH_KEY_BATCH, "batch")                                                                    \
    X(BENCH_KEY_HEADS, "heads")                                                                    \
    X(BENCH_KEY_TOKENS, "n")                                                                       \
    X(BENCH_KEY_LANDMARKS, "m")                                                                    \
    X(BENCH_KEY_DIM, "d")                                                                          \
    X(BENCH_KEY_THREADS, "threads")

#define BENCH_CODE(code, column) code,
typedef enum { BENCH_KEY_LIST(BENCH_CODE) BENCH_KEY_COUNT } bench_key;
#undef BENCH_CODE

enum { BENCH_TEXT = 32 };
void bench_key_text(const bench_case *c, bench_key key, char text[BENCH_TEXT]);

bool bench_is_attention(const bench_case *c);
bool bench_is_inverse(const bench_case *c); /* inverse or solve */
bool bench_is_rate(const bench_case *c);
/* Whether it is timed in cache, with many calls in a row, instead of after a flush. */
bool bench_is_hot(const bench_case *c, atn_device device);

/* The number of columns of a right-hand side W. */
enum { BENCH_RIGHT_SIDES = 32 };

/* The problem of an operator's case with the given numbers of sequences and tokens. Arrays are in
 * choice.dtype; there are inputs unless bare. soft and softpp average windows of consecutive tokens
 * if m divides n, and otherwise take m tokens as landmarks. To be freed. */
attention_case bench_problem(const bench_case *c, atn_dtype dtype, int64_t batch, int64_t tokens,
                             bool bare);

void bench_describe(const bench_case *c, char *buffer, size_t size);

#endif
