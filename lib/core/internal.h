/* SPDX-License-Identifier: BSD-3-Clause */
/* What the library's own files share: the context, memory, and failing with a reason. */
#ifndef CORE_INTERNAL_H
#define CORE_INTERNAL_H

#include <stdbool.h>

#include <attnum/attnum.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the CPU and kernels both call. */
#ifdef __CUDACC__
#define CORE_ON_DEVICE __host__ __device__
#else
#define CORE_ON_DEVICE
#endif

struct atn_context {
    const struct core_backend *backend;
    atn_device kind;
    struct device *device; /* the backend's own; null on the CPU */
    int threads;
    atn_isa isa; /* never ATN_ISA_AUTO */
    atn_allocator allocator;
    char error[256];
    void **inverse_marks[2]; /* the timing events around the arithmetic of inverses; null: none
                         (core/timing.h) */
};

/* The position of token i before padding was left out. */
static inline int64_t core_position(const int64_t *positions, int64_t i)
{
    return positions ? positions[i] : i;
}

/* The larger of two; NaN if either is, so that no maximum hides one. */
static inline double core_max(double a, double b)
{
    return a > b || a != a ? a : b;
}

/* Writes the reason into the context (which may be null) and returns status. */
atn_status core_fail(atn_context *context, atn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* atn_tensor_check, plus the dtype and shape wanted; -1 means any. The reason names the
 * argument. */
atn_status core_check_tensor(atn_context *context, const char *name, const atn_tensor *tensor,
                             int dtype, int64_t batch, int64_t heads, int64_t rows, int64_t cols);

/* core_check_tensor, plus: matrices lie one after the other without gaps. */
atn_status core_check_dense(atn_context *context, const char *name, const atn_tensor *tensor,
                            int dtype, int64_t batch, int64_t heads, int64_t rows, int64_t cols);

/* ATN_ERR_ALIAS if the view's memory overlaps these bytes. */
atn_status core_check_apart(atn_context *context, const char *out_name, const atn_tensor *out,
                            const char *name, const void *memory, int64_t bytes);

/* ATN_ERR_ALIAS if the memory of the two views overlaps. */
atn_status core_check_alias(atn_context *context, const char *out_name, const atn_tensor *out,
                            const char *name, const atn_tensor *other);

/* Memory from the context's allocator; bytes 0 gives null with ATN_OK. */
atn_status core_allocate(atn_context *context, size_t bytes, void **memory);
void core_release(atn_context *context, void *memory);

/* Whether this many elements, computed in double so that nothing overflows, are more than any
 * memory holds (10^17; int64_t and bytes are good for 9 10^18). Ask before multiplying sizes. */
bool core_too_large(double elements);

/* An arena hands out 64-byte aligned pieces of one block. Run the same layout function twice: with
 * base null it only adds up (the pieces are null), then over memory of that size. Negative counts
 * and sums beyond PTRDIFF_MAX set `overflow`. */
typedef struct {
    char *base;
    size_t used;
    bool overflow;
} core_arena;

void *core_take(core_arena *arena, int64_t count, size_t size);

/* Memory for all that a first layout added up; then *arena is ready for the second. *memory is what
 * to release. */
atn_status core_arena_allocate(atn_context *context, core_arena *arena, void **memory);

#ifdef __cplusplus
}
#endif
#endif
