/* SPDX-License-Identifier: BSD-3-Clause */
/* What `attnum bench` times, in groups whose members are compared with each other: operators over
 * shapes and types, forward and backward; inverses; kernel matrices, products and exponentials
 * compared with those of other libraries; and, in the first group, the rates that all of them are
 * compared with. */
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
    X(BENCH_INVERSE, "inverse", "inverses X of a batch of m x m matrices")                         \
    X(BENCH_SOLVE, "solve", "X W of such a batch, W m x 32; a factor is applied, not inverted")    \
    X(BENCH_KERNEL, "kernel", "exp(-s |q_i - l_j|^2) of n tokens and m landmarks")                 \
    X(BENCH_GEMM, "gemm", "a product of matrices")                                                 \
    X(BENCH_EXP, "exp", "exp(-x) of numbers in cache, ours and the C library's")

#define BENCH_CODE(code, name, description) code,
typedef enum { BENCH_WORK_LIST(BENCH_CODE) BENCH_WORK_COUNT } bench_work;
#undef BENCH_CODE

/* Whose code a member runs. X(code, name, description) */
#define BENCH_MAKER_LIST(X)                                                                        \
    X(BENCH_OURS, "attnum", "the library's")                                                       \
    X(BENCH_OPENBLAS, "openblas", "OpenBLAS's products")                                           \
    X(BENCH_LIBXSMM, "libxsmm", "libxsmm's products, generated for their shape")                   \
    X(BENCH_LIBM, "libm", "the C library's exp, distances by OpenBLAS")

#define BENCH_CODE(code, name, description) code,
typedef enum { BENCH_MAKER_LIST(BENCH_CODE) BENCH_MAKER_COUNT } bench_maker;
#undef BENCH_CODE

/* A member of a group: one row. Fields that its kind of work does not have are 0. */
typedef struct {
    bench_work work;
    bench_maker maker;
    atn_dtype dtype;
    atn_operator op; /* forward, backward */
    int variant;
    atn_inverse_method inverse; /* of a batch, or soft's and softpp's own */
    bool interval_known;        /* solve: the ends of A's spectrum are known from an earlier call */
    atn_soft_passes passes;     /* soft, softpp: other than auto with the clamped distance */
    atn_distance distance;      /* kernel */
    bool transpose_a, transpose_b; /* gemm */
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

/* The numbers of threads, as given or 1 and all, that are at most `most`, or the first of them; on
 * CUDA, where threads are the host's, one number. `threads` has room for two, and for as many as
 * were given. Returns how many. */
int bench_threads(const program_options *s, int64_t most, int threads[]);

/* All cases of the options, the rates first. */
bench_list bench_cases(const program_options *s);
void bench_list_free(bench_list *list);
/* The first case of a group; *count is how many it has. */
const bench_case *bench_group(const bench_list *list, int64_t group, int64_t *count);

/* What distinguishes cases, as text: "" where a case does not have it. X(code, column) */
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
/* Whether it is timed in cache, many calls in a row, and not after a flush. */
bool bench_is_hot(const bench_case *c, atn_device device);

/* The columns of a right side W. */
enum { BENCH_RIGHT_SIDES = 32 };

/* The problem of an operator's case with so many sequences and tokens. Arrays in choice.dtype;
 * inputs unless bare. soft and softpp average windows of consecutive tokens where m divides n, and
 * take m tokens as they are otherwise. To be freed. */
attention_case bench_problem(const bench_case *c, atn_dtype dtype, int64_t batch, int64_t tokens,
                             bool bare);

void bench_describe(const bench_case *c, char *buffer, size_t size);

#endif
