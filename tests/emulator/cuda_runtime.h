/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of CUDA that lib/cuda uses, on the CPU: kernels are compiled by a C++ compiler, every
 * thread of a block is a fiber (emulator.cpp), device memory comes from malloc (runtime.cpp), so
 * that sanitizers see every access. Names and values are those of CUDA 13's cuda_runtime.h.
 *
 * Differences: kernels and device functions that hold __shared__ variables must be static (or
 * templates); launches go through emulator_launch, dynamic shared memory through emulator_shared;
 * everything on a stream is done when the call returns. */
#ifndef EMULATOR_CUDA_RUNTIME_H
#define EMULATOR_CUDA_RUNTIME_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <math.h>
#include <tuple>

#if defined __SANITIZE_ADDRESS__
#define EMULATOR_ASAN
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define EMULATOR_ASAN
#endif
#endif

#define CUDART_VERSION 13000

#define __host__
#define __global__ __attribute__((unused))
#define __grid_constant__
#define __device__ __attribute__((unused))
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
/* A block of more threads does not start (emulator.cpp): so many bytes are left free before a
 * kernel, and a section of its program lists where. gcc 12 cannot take an enumerator as it is. */
#define __launch_bounds__(...)     EMULATOR_BOUNDS(__VA_ARGS__, )
#define EMULATOR_BOUNDS(most, ...) __attribute__((patchable_function_entry((most) + 0, (most) + 0)))
#define __align__(bytes)           __attribute__((aligned(bytes)))
/* The start of every block fills them all with NaN: they have the program's thread-local memory to
 * themselves. Under ASan they have a section, where it sees what lies between them; but compilers
 * forget the section of variables in templates, which keep what they held. */
#ifdef EMULATOR_ASAN
#define __shared__ static __attribute__((section("emulator_shared")))
#else
#define __shared__ static thread_local
#endif

/* ---- Vector types ---- */

#define EMULATOR_VECTORS(type, name, alignment)                                                    \
    struct alignas(sizeof(type) * 2) name##2                                                       \
    {                                                                                              \
        type x, y;                                                                                 \
    };                                                                                             \
    struct name##3                                                                                 \
    {                                                                                              \
        type x, y, z;                                                                              \
    };                                                                                             \
    struct alignas(alignment) name##4                                                              \
    {                                                                                              \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    static inline name##2 make_##name##2(type x, type y)                                           \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    static inline name##3 make_##name##3(type x, type y, type z)                                   \
    {                                                                                              \
        return {x, y, z};                                                                          \
    }                                                                                              \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                           \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }

EMULATOR_VECTORS(int, int, 16)
EMULATOR_VECTORS(unsigned, uint, 16)
EMULATOR_VECTORS(unsigned short, ushort, 8)
EMULATOR_VECTORS(float, float, 16)
EMULATOR_VECTORS(double, double, 16)
#undef EMULATOR_VECTORS

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1)
        : x(width), y(height), z(depth)
    {
    }
};

/* ---- Where a thread is; the scheduler writes these before it runs one ---- */

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static const int warpSize = 32;

/* ---- Barriers and warps ---- */

/* Source lines tell barriers and warp collectives apart: threads that meet must be at one line. */
struct emulator_place {
    const char *what, *file;
    int line;
};
#define EMULATOR_HERE(what)                                                                        \
    emulator_place                                                                                 \
    {                                                                                              \
        what, file, line                                                                           \
    }
#define EMULATOR_CALLER const char *file = __builtin_FILE(), int line = __builtin_LINE()

struct emulator_votes {
    int yes, all; /* of the threads that came to the barrier */
};

emulator_votes emulator_barrier(emulator_place here, bool vote);

/* Waits until all lanes of `mask` are here and returns their votes. Lane `source` of them lends its
 * `mine`, which is copied to this lane's `taken`; all bits set if it is not in the mask. Ordered:
 * what they have stored in shared memory before is there for all of them after. */
enum { EMULATOR_NO_LANE = -1, EMULATOR_ALL_LANES = -2 /* taken: 32 pointers to each's mine */ };
unsigned emulator_warp(emulator_place here, unsigned mask, bool vote, const void *mine = nullptr,
                       size_t size = 0, int source = EMULATOR_NO_LANE, void *taken = nullptr,
                       bool ordered = false);

static inline void __syncthreads(EMULATOR_CALLER)
{
    emulator_barrier(EMULATOR_HERE("__syncthreads"), false);
}

static inline int __syncthreads_or(int vote, EMULATOR_CALLER)
{
    return emulator_barrier(EMULATOR_HERE("__syncthreads_or"), vote != 0).yes != 0;
}

static inline int __syncthreads_and(int vote, EMULATOR_CALLER)
{
    emulator_votes votes = emulator_barrier(EMULATOR_HERE("__syncthreads_and"), vote != 0);
    return votes.yes == votes.all;
}

static inline int __syncthreads_count(int vote, EMULATOR_CALLER)
{
    return emulator_barrier(EMULATOR_HERE("__syncthreads_count"), vote != 0).yes;
}

static inline void __syncwarp(unsigned mask = 0xffffffff, EMULATOR_CALLER)
{
    emulator_warp(EMULATOR_HERE("__syncwarp"), mask, false, nullptr, 0, EMULATOR_NO_LANE, nullptr,
                  true);
}

static inline unsigned __ballot_sync(unsigned mask, int vote, EMULATOR_CALLER)
{
    return emulator_warp(EMULATOR_HERE("__ballot_sync"), mask, vote != 0);
}

static inline int __any_sync(unsigned mask, int vote, EMULATOR_CALLER)
{
    return emulator_warp(EMULATOR_HERE("__any_sync"), mask, vote != 0) != 0;
}

static inline int __all_sync(unsigned mask, int vote, EMULATOR_CALLER)
{
    return emulator_warp(EMULATOR_HERE("__all_sync"), mask, vote != 0) == mask;
}

static inline int emulator_lane(void)
{
    return (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}

template <class T>
static inline T emulator_shuffle(emulator_place here, unsigned mask, T mine, int source)
{
    T taken;
    emulator_warp(here, mask, false, &mine, sizeof mine, source, &taken);
    return taken;
}

/* Lanes shuffle within segments of `width`, a power of two; one that would read from beyond its
 * segment reads its own value. */
template <class T>
static inline T __shfl_sync(unsigned mask, T mine, int source, int width = 32, EMULATOR_CALLER)
{
    source = (emulator_lane() & ~(width - 1)) | (source & (width - 1));
    return emulator_shuffle(EMULATOR_HERE("__shfl_sync"), mask, mine, source);
}

template <class T>
static inline T __shfl_up_sync(unsigned mask, T mine, unsigned delta, int width = 32,
                               EMULATOR_CALLER)
{
    int lane = emulator_lane(), source = lane - (int)delta;
    source = source < (lane & ~(width - 1)) ? lane : source;
    return emulator_shuffle(EMULATOR_HERE("__shfl_up_sync"), mask, mine, source);
}

template <class T>
static inline T __shfl_down_sync(unsigned mask, T mine, unsigned delta, int width = 32,
                                 EMULATOR_CALLER)
{
    int lane = emulator_lane(), source = lane + (int)delta;
    source = source > (lane | (width - 1)) ? lane : source;
    return emulator_shuffle(EMULATOR_HERE("__shfl_down_sync"), mask, mine, source);
}

template <class T>
static inline T __shfl_xor_sync(unsigned mask, T mine, int flipped, int width = 32, EMULATOR_CALLER)
{
    int lane = emulator_lane(), source = lane ^ flipped;
    source = source > (lane | (width - 1)) ? lane : source;
    return emulator_shuffle(EMULATOR_HERE("__shfl_xor_sync"), mask, mine, source);
}

/* For emulated tensor-core instructions: every lane sees what all 32 have. */
template <class T>
static inline void emulator_warp_gather(const T &mine, T (&all)[32], EMULATOR_CALLER)
{
    const void *lanes[32];
    emulator_place here = EMULATOR_HERE("a warp's matrix product");
    emulator_warp(here, 0xffffffff, false, &mine, sizeof mine, EMULATOR_ALL_LANES, lanes);
    for (int i = 0; i < 32; i++)
        std::memcpy(&all[i], lanes[i], sizeof mine);
    emulator_warp(here, 0xffffffff, false); /* nobody's `mine` goes before all have read it */
}

/* Copies of up to 16 bytes, the rest of which is 0, from device to shared memory. Each is made, by
 * turns that are random but the same in every run, at once or when its thread waits until no more
 * than its last `groups` groups of copies are under way. What is misplaced fails the launch. */
void emulator_copy(void *to, const void *from, int bytes);
void emulator_copy_group(void);
void emulator_copy_wait(int groups);

/* A row of 16 bytes in shared memory that a matrix is loaded from: the row, if it is one. */
const void *emulator_shared_row(const void *row);

/* Fails the launch where memory is not aligned to so many bytes: what a vector in it must be. */
void emulator_check_aligned(const void *memory, size_t alignment);

static inline void __threadfence(void) {}

static inline void __threadfence_block(void) {}

/* ---- Atomics: fibers are never interrupted ---- */

#define EMULATOR_ATOMIC(name, type, next)                                                          \
    static inline type name(type *address, type value)                                             \
    {                                                                                              \
        type old = *address;                                                                       \
        *address = next;                                                                           \
        return old;                                                                                \
    }
#define EMULATOR_ATOMICS(type)                                                                     \
    EMULATOR_ATOMIC(atomicAdd, type, old + value)                                                  \
    EMULATOR_ATOMIC(atomicMax, type, old > value ? old : value)                                    \
    EMULATOR_ATOMIC(atomicMin, type, old < value ? old : value)                                    \
    EMULATOR_ATOMIC(atomicOr, type, old | value)                                                   \
    EMULATOR_ATOMIC(atomicAnd, type, old &value)                                                   \
    EMULATOR_ATOMIC(atomicExch, type, value)                                                       \
    static inline type atomicCAS(type *address, type expected, type value)                         \
    {                                                                                              \
        type old = *address;                                                                       \
        *address = old == expected ? value : old;                                                  \
        return old;                                                                                \
    }

EMULATOR_ATOMICS(int)
EMULATOR_ATOMICS(unsigned)
EMULATOR_ATOMICS(unsigned long long)
#undef EMULATOR_ATOMICS
#undef EMULATOR_ATOMIC

/* ---- Arithmetic ---- */

static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}

static inline double rsqrt(double x)
{
    return 1 / sqrt(x);
}

static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

static inline double __fma_rn(double a, double b, double c)
{
    return fma(a, b, c);
}

template <class To, class From> static inline To emulator_bits(From x)
{
    static_assert(sizeof(To) == sizeof(From), "one size");
    To bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline unsigned __float_as_uint(float x)
{
    return emulator_bits<unsigned>(x);
}

static inline int __float_as_int(float x)
{
    return emulator_bits<int>(x);
}

static inline float __uint_as_float(unsigned x)
{
    return emulator_bits<float>(x);
}

static inline float __int_as_float(int x)
{
    return emulator_bits<float>(x);
}

static inline long long __double_as_longlong(double x)
{
    return emulator_bits<long long>(x);
}

static inline double __longlong_as_double(long long x)
{
    return emulator_bits<double>(x);
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

static inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

template <class T> static inline T __ldg(const T *address)
{
    return *address;
}

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

#define EMULATOR_MINMAX(type)                                                                      \
    static inline type min(type a, type b)                                                         \
    {                                                                                              \
        return a < b ? a : b;                                                                      \
    }                                                                                              \
    static inline type max(type a, type b)                                                         \
    {                                                                                              \
        return a > b ? a : b;                                                                      \
    }

EMULATOR_MINMAX(int)
EMULATOR_MINMAX(unsigned)
EMULATOR_MINMAX(long)
EMULATOR_MINMAX(unsigned long)
EMULATOR_MINMAX(long long)
EMULATOR_MINMAX(unsigned long long)
#undef EMULATOR_MINMAX

static inline float min(float a, float b)
{
    return fminf(a, b);
}

static inline float max(float a, float b)
{
    return fmaxf(a, b);
}

static inline double min(double a, double b)
{
    return fmin(a, b);
}

static inline double max(double a, double b)
{
    return fmax(a, b);
}

/* ---- The runtime ---- */

/* X(name, value, text) */
#define EMULATOR_ERRORS(X)                                                                         \
    X(cudaSuccess, 0, "no error")                                                                  \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                                \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                               \
    X(cudaErrorInitializationError, 3, "initialization error")                                     \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                          \
    X(cudaErrorInsufficientDriver, 35,                                                             \
      "CUDA driver version is insufficient for CUDA runtime version")                              \
    X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                               \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                       \
    X(cudaErrorNoKernelImageForDevice, 209,                                                        \
      "no kernel image is available for execution on the device")                                  \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                              \
    X(cudaErrorNotReady, 600, "device not ready")                                                  \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                    \
    X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")               \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                   \
    X(cudaErrorNotSupported, 801, "operation not supported")                                       \
    X(cudaErrorUnknown, 999, "unknown error")

#define EMULATOR_ENTRY(name, value, text) name = value,
enum cudaError { EMULATOR_ERRORS(EMULATOR_ENTRY) };
#undef EMULATOR_ENTRY
typedef enum cudaError cudaError_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3
};

struct cudaFuncAttributes {
    size_t sharedSizeBytes; /* what of it earlier launches have written */
    int maxDynamicSharedSizeBytes;
};

struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
};

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    size_t sharedMemPerBlockOptin;
    size_t sharedMemPerMultiprocessor;
    int major, minor;
    int multiProcessorCount;
    int l2CacheSize;
    int maxThreadsPerBlock;
    int maxThreadsPerMultiProcessor;
    int memoryBusWidth;
    int warpSize;
};

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

#define cudaStreamDefault      0x00
#define cudaStreamNonBlocking  0x01
#define cudaEventDefault       0x00
#define cudaEventBlockingSync  0x01
#define cudaEventDisableTiming 0x02

extern "C" {
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceSynchronize(void);

cudaError_t cudaMalloc(void **pointer, size_t size);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *to, int value, size_t size);
cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream = nullptr);
/* `height` rows of `width` bytes, each `pitch` bytes after the last. */
cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream = nullptr);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel);
}

template <class T> static inline cudaError_t cudaMalloc(T **pointer, size_t size)
{
    return cudaMalloc((void **)(void *)pointer, size);
}

template <class... P>
static inline cudaError_t cudaFuncSetAttribute(void (*kernel)(P...),
                                               enum cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute((const void *)kernel, attribute, value);
}

/* ---- Launches ---- */

struct emulator_kernel {
    const void *address;  /* by which attributes are kept */
    void (*call)(void *); /* with parameters, once per thread */
    void *parameters;
    char *shared, *shared_end; /* its program's __shared__ variables, under ASan */
    const char *const *bounds, *const *bounds_end; /* its program's list of __launch_bounds__ */
};

cudaError_t emulator_run(emulator_kernel kernel, dim3 grid, dim3 block, size_t shared,
                         cudaStream_t stream);

/* Dynamic shared memory of the block that runs. */
void *emulator_shared(void);

extern "C" {
extern char __start_emulator_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_emulator_shared[] __attribute__((weak, visibility("hidden")));
extern char *__start___patchable_function_entries[] __attribute__((weak, visibility("hidden")));
extern char *__stop___patchable_function_entries[] __attribute__((weak, visibility("hidden")));
}

template <class... P> struct emulator_call {
    void (*kernel)(P...);
    std::tuple<P...> parameters;

    static void call(void *self)
    {
        emulator_call *me = static_cast<emulator_call *>(self);
        std::apply(me->kernel, me->parameters);
    }
};

template <class... P, class... A>
cudaError_t emulator_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                            cudaStream_t stream, A... arguments)
{
    static_assert(sizeof...(P) == sizeof...(A), "as many arguments as the kernel has parameters");
    emulator_call<P...> call = {kernel, std::tuple<P...>(static_cast<P>(arguments)...)};
    emulator_kernel run = {(const void *)kernel,
                           emulator_call<P...>::call,
                           &call,
                           __start_emulator_shared,
                           __stop_emulator_shared,
                           __start___patchable_function_entries,
                           __stop___patchable_function_entries};
    return emulator_run(run, grid, block, shared, stream);
}

#endif
