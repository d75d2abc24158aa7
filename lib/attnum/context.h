/* SPDX-License-Identifier: BSD-3-Clause */
/* A context: the device, the threads, the instruction set, the allocator and the detail of the last
 * error; and the device's memory.
 *
 * There is no global state (ATTNUM_ISA is read when a context is made). Two contexts in two threads
 * do not disturb each other; one context must not be used by two threads at a time.
 *
 * attnum spreads work over batch, heads and token blocks with OpenMP and calls LAPACK from within
 * those threads, one small matrix per call. Let its BLAS run on one thread
 * (OPENBLAS_NUM_THREADS=1 or openblas_set_num_threads(1)): it is faster, and results are then the
 * same bits whatever the number of threads. The library does not set this, because it is a setting
 * of the whole process.
 *
 * fork: a child process does not inherit OpenMP's threads. If the parent has computed on several
 * threads, GCC's runtime waits forever for them in the child: give a context one thread there, or
 * use it in a thread that the child has started. */
#ifndef ATTNUM_CONTEXT_H
#define ATTNUM_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include <attnum/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { ATN_CPU, ATN_CUDA } atn_device;

/* The CPU's arithmetic is compiled once per instruction set, in the order of their widths.
 * X(code, name, description) */
#define ATN_ISA_LIST(X)                                                                            \
    X(ATN_ISA_AUTO, "auto", "what ATTNUM_ISA says, or else the widest that the processor has")     \
    X(ATN_ISA_BASE, "base", "what every processor of the architecture has; of x86-64 SSE2")        \
    X(ATN_ISA_AVX2, "avx2", "AVX2 and FMA")                                                        \
    X(ATN_ISA_AVX512, "avx512", "AVX-512: F, VL, BW, DQ; for bf16 also BF16, and AMX if present")

#define ATN_NAMED_ENTRY(code, name, description) code,
typedef enum { ATN_ISA_LIST(ATN_NAMED_ENTRY) ATN_ISA_COUNT } atn_isa;
#undef ATN_NAMED_ENTRY

/* allocate returns memory aligned to 64 bytes, or null. release takes what allocate returned. */
typedef struct {
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *memory);
    void *user;
} atn_allocator;

typedef struct {
    atn_device device;       /* ATN_CPU by default */
    int ordinal;             /* which device; 0 on the CPU */
    void *stream;            /* CUDA: the caller's cudaStream_t, on which everything runs, and which
                                must outlive the context; null: one of the context's own,
                                which does not wait for the default stream, see below */
    int threads;             /* at most 1024; 0: as many as OpenMP would use */
    atn_allocator allocator; /* both functions null: aligned_alloc and free */
    atn_isa isa;             /* ATN_ISA_AUTO by default */
} atn_context_options;

typedef struct atn_context atn_context;

/* Makes a context. options may be null: CPU, all threads, the C allocator.
 * Returns ATN_ERR_NULL (context), ATN_ERR_VALUE (threads out of range, one allocator function
 * without the other, or what atn_isa_choose says of the instruction set), ATN_ERR_DEVICE (a device
 * this build or machine does not have: atn_device_count says why; or an instruction set:
 * atn_isa_choose says why), ATN_ERR_MEMORY. */
atn_status atn_context_create(const atn_context_options *options, atn_context **context);

/* Frees a context; null is allowed. Plans made with it must be freed first. */
void atn_context_free(atn_context *context);

/* One line about the last negative status, "" if there was none. Valid until the next call with
 * this context. Never null, also for a null context. */
const char *atn_last_error(const atn_context *context);

/* The number of OpenMP threads this context uses. */
int atn_context_threads(const atn_context *context);

atn_device atn_context_device(const atn_context *context);

/* ---- Instruction sets ----
 *
 * Contexts with different sets can be used together. Their results differ by rounding alone: base
 * of x86-64 rounds a product before it is added to a sum, the others do not; exp, sin and cos may
 * differ in their last bit. In bf16, avx512 needs AVX-512 BF16, too, which takes subnormal numbers
 * for 0; where the processor lacks it, avx2's code runs, and where it has AMX, too, softmax,
 * soft and softpp multiply by it, in another order. The first plan in bf16 asks Linux for AMX's
 * registers; from then on sigaltstack takes no stack smaller than sysconf(_SC_MINSIGSTKSZ), and
 * where a thread already has a smaller one, AMX is not used. BLAS and LAPACK choose sets of their
 * own (OPENBLAS_CORETYPE). A context for CUDA has a set for what it does on the host. */

/* The set that a context made with this option computes in. For ATN_ISA_AUTO that is what the
 * environment variable ATTNUM_ISA names, as --isa of the program does, and the widest that build
 * and processor have if it is not set, empty or "auto". Returns ATN_ERR_VALUE (no such set, or
 * ATTNUM_ISA names none), ATN_ERR_DEVICE (this build or processor lacks it). Both pointers may be
 * null; on failure *chosen is ATN_ISA_AUTO and *reason says why, otherwise that is "". */
atn_status atn_isa_choose(atn_isa isa, atn_isa *chosen, const char **reason);

const char *atn_isa_name(atn_isa isa);        /* null if out of range */
const char *atn_isa_description(atn_isa isa); /* null if out of range */

/* What was chosen; ATN_ISA_AUTO only for a null context. */
atn_isa atn_context_isa(const atn_context *context);

/* ---- Devices ----
 *
 * A context for ATN_CUDA works on device memory: every array of a tensor, a description or a call
 * (q, masks, weights, indices, ...) lies there, infos and traces on the host. atn_attention_forward
 * and _backward enqueue their work on the context's stream and return without waiting, unless they
 * are given an info to fill in; atn_attention_outcome reports their status later. All other
 * functions have finished when they return.
 *
 * A context that is not given a stream makes a non-blocking one: it does not synchronise with any
 * other stream, not even with the default stream. Let the work that fills the inputs finish before
 * a call, and call atn_synchronise before you read its results; or give the context your stream.
 * Every function leaves the calling thread's current CUDA device as it was.
 *
 * Results are the same bits from run to run. Where cuBLAS computes the products (iterative inverses
 * above m = 64, soft's passes as a chain) that holds for one version of cuBLAS on devices of one
 * architecture and number of multiprocessors; the first plan or atn_inverse that needs it makes a
 * handle for the context, with a workspace of 4 MiB (from compute capability 9.0 on: 32).
 *
 * A failed launch or an error found later poisons the context, as it does CUDA's own: this and all
 * later calls return ATN_ERR_DEVICE, with the first failure as the detail. */

/* How many devices of a kind there are: 1 CPU; no CUDA device if the build has no CUDA or the
 * machine no driver. If reason is not null, *reason says why there are none, or is "". */
int atn_device_count(atn_device device, const char **reason);

/* "cpu", "cuda"; null if out of range */
const char *atn_device_name(atn_device device);

/* What a device reports about itself. */
typedef struct {
    char name[128]; /* "NVIDIA H100 ..."; "cpu" */
    int capability; /* 10 major + minor; 0 for the CPU, as are all below */
    int multiprocessors;
    int64_t memory_bytes;
    int64_t shared_bytes; /* the most shared memory a block can ask for */
    int64_t cache_bytes;  /* of the last level */
    int clock_khz, memory_clock_khz;
    int driver, runtime; /* versions, as CUDA numbers them: 13000 */
} atn_device_info;

/* Returns ATN_ERR_NULL, ATN_ERR_VALUE (no such kind), ATN_ERR_DEVICE (no such device). */
atn_status atn_device_describe(atn_device device, int ordinal, atn_device_info *info);

/* Memory of the context's device; 0 bytes give null. atn_release takes null too. A copy waits for
 * the work before it. ATN_ERR_MEMORY, ATN_ERR_DEVICE. On the CPU these are the context's allocator
 * and memcpy. */
atn_status atn_allocate(atn_context *context, size_t bytes, void **memory);
void atn_release(atn_context *context, void *memory);
atn_status atn_upload(atn_context *context, void *device, const void *host, size_t bytes);
atn_status atn_download(atn_context *context, void *host, const void *device, size_t bytes);

/* Waits for all work of this context. ATN_ERR_DEVICE: some of it failed. */
atn_status atn_synchronise(atn_context *context);

#ifdef __cplusplus
}
#endif
#endif
