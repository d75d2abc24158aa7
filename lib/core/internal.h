/* SPDX-License-Identifier: BSD-3-Clause */
/* What the library's own files share: the context, memory, and failing with a reason. */
#ifndef CORE_INTERNAL_H
#define CORE_INTERNAL_H

#include <math.h>
#include <stdbool.h>

#include <attnum/attnum.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions that both the CPU's code and CUDA kernels call. */
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

static inline float core_bf16_value(uint16_t x)
{
    union {
        uint32_t bits;
        float value;
    } wide = {(uint32_t)x << 16};
    return wide.value;
}

/* The position that token i had before padding was removed; positions null: i. */
static inline int64_t core_position(const int64_t *positions, int64_t i)
{
    return positions ? positions[i] : i;
}

/* How many of the ascending positions lie before `position`; null: 0, 1, 2, ... */
static inline CORE_ON_DEVICE int64_t core_count_before(const int64_t *positions, int64_t count,
                                                       int64_t position)
{
    int64_t low = 0, high = count;
    if (!positions)
        return position < 0 ? 0 : position < count ? position : count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (positions[middle] < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The larger of two; NaN if either is, so that no maximum hides one. */
static inline double core_max(double a, double b)
{
    return a > b || a != a ? a : b;
}

/* max(norm, epsilon), and NaN for a norm beyond double's range. *varies: 1 if the norm is larger,
 * else 0. */
static inline CORE_ON_DEVICE double core_norm_divisor(double norm, double epsilon, double *varies)
{
    *varies = !(norm < epsilon);
    double larger = norm < epsilon ? epsilon : norm;
    return larger < HUGE_VAL ? larger : (double)NAN;
}

/* The power of two that brings x to about 1; scaling by it rounds nothing. */
static inline CORE_ON_DEVICE double core_unit_of(double x)
{
    int exponent;
    frexp(x, &exponent);
    exponent = exponent > 1000 ? 1000 : exponent < -1000 ? -1000 : exponent;
    return ldexp(1.0, -exponent);
}

/* Stores the reason in the context (which may be null) and returns status. */
atn_status core_fail(atn_context *context, atn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* atn_tensor_check, plus the dtype and shape wanted; -1 means any, of the dtypes those that the
 * device computes every operator in. The reason names the argument. */
atn_status core_check_tensor(atn_context *context, const char *name, const atn_tensor *tensor,
                             int dtype, int64_t batch, int64_t heads, int64_t rows, int64_t cols);

/* core_check_tensor, and matrices must lie one after the other without gaps. */
atn_status core_check_dense(atn_context *context, const char *name, const atn_tensor *tensor,
                            int dtype, int64_t batch, int64_t heads, int64_t rows, int64_t cols);

/* ATN_ERR_ALIAS if the view's memory overlaps these bytes. */
atn_status core_check_overlap(atn_context *context, const char *out_name, const atn_tensor *out,
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

/* Allocates what the first run of a layout added up, and prepares *arena for the second run.
 * Release *memory. */
atn_status core_arena_allocate(atn_context *context, core_arena *arena, void **memory);

#ifdef __cplusplus
}
#endif
#endif
