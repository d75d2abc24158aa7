/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA runtime's calls, and the faults tests inject into them. */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "internal.h"

/* ---- The device ---- */

enum { MULTIPROCESSORS = 4, CLOCK_KHZ = 1000000, L2_CACHE = 4 << 20, BUS_WIDTH = 256 };
static const size_t usual_memory = (size_t)1 << 30;

/* What tells devices apart that one program is compiled for. */
struct profile {
    int capability, shared_optin, shared_each, threads_each; /* each: of a multiprocessor */
};

static const profile profiles[] = {
    {80, 163 << 10, 164 << 10, 2048},
    {86, 99 << 10, 100 << 10, 1536},
    {89, 99 << 10, 100 << 10, 1536},
    {90, 227 << 10, 228 << 10, 2048},
};

static const profile *profile_of(int capability)
{
    for (const profile &p : profiles)
        if (p.capability == capability)
            return &p;
    std::fprintf(stderr, "emulator: there is no device of capability %d: 80, 86, 89 or 90\n",
                 capability);
    std::abort();
}

static const profile *usual_profile(void)
{
    const char *text = std::getenv("EMULATOR_DEVICE");
    return profile_of(text ? std::atoi(text) : 90);
}

struct device {
    const profile *kind = usual_profile();
    int devices = 1;
    size_t memory = usual_memory;
    int64_t fail_allocation = 0, fail_launch = 0; /* how many more until one fails; 0: none */
    cudaError_t broken = cudaSuccess;             /* what a kernel did; stays */
    const void *expected = nullptr;               /* stream; null: any */
};

static device state;
static emulator_counts counts;
struct allocation {
    size_t size;
    int device;
};

static std::map<uintptr_t, allocation> allocations; /* by address */
/* Of a kernel on a device. */
static std::map<std::pair<const void *, int>, size_t> shared_limits;
static std::map<const void *, size_t>
    own_shared; /* bytes of static shared memory that its first block wrote */
static std::recursive_mutex lock;
static int accesses; /* scopes of emulator_access that are open, in any thread */

/* Of each host thread. Thread-local memory is kernels' (cuda_runtime.h). */
struct host_thread {
    cudaError_t last_error = cudaSuccess;
    int device = 0;
};
static std::map<std::thread::id, host_thread> host_threads;

/* The calling one's, while `lock` is held. */
static host_thread *calling(void)
{
    return &host_threads[std::this_thread::get_id()];
}

typedef std::lock_guard<std::recursive_mutex> locked;

cudaError_t emulator_fail(cudaError_t error)
{
    locked hold(lock);
    if (error == cudaErrorLaunchFailure || error == cudaErrorIllegalAddress)
        state.broken = error;
    if (error != cudaSuccess)
        calling()->last_error = error;
    return error;
}

cudaError_t emulator_state(void)
{
    locked hold(lock);
    if (state.devices < 1)
        return emulator_fail(state.devices < 0 ? cudaErrorInsufficientDriver : cudaErrorNoDevice);
    return emulator_fail(state.broken);
}

void emulator_enqueued(cudaStream_t stream)
{
    locked hold(lock);
    counts.strays += state.expected && state.expected != stream;
}

/* Counts down to a fault. */
static bool due(int64_t *remaining)
{
    return *remaining > 0 && --*remaining == 0;
}

extern "C" {

emulator_counts emulator_counted(void)
{
    locked hold(lock);
    return counts;
}

void emulator_devices(int count)
{
    locked hold(lock);
    state.devices = count;
}

void emulator_capability(int capability)
{
    locked hold(lock);
    state.kind = profile_of(capability);
}

int emulator_current_device(void)
{
    locked hold(lock);
    return calling()->device;
}

void emulator_memory(size_t limit)
{
    locked hold(lock);
    state.memory = limit;
}

void emulator_fail_allocation(int64_t k)
{
    locked hold(lock);
    state.fail_allocation = k;
}

void emulator_fail_launch(int64_t k)
{
    locked hold(lock);
    state.fail_launch = k;
}

void emulator_expect_stream(const void *stream)
{
    locked hold(lock);
    state.expected = stream;
}

void emulator_reset(void)
{
    locked hold(lock);
    size_t live = counts.live;
    state = device();
    counts = emulator_counts();
    counts.live = counts.peak = live;
    calling()->last_error = cudaSuccess;
}

static size_t own_of(const void *kernel)
{
    auto known = own_shared.find(kernel);
    return known == own_shared.end() ? 0 : known->second;
}

static bool shared_fits(const void *kernel, size_t dynamic)
{
    return own_of(kernel) + dynamic <= (size_t)state.kind->shared_optin;
}

/* ---- Errors ---- */

static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {
#define EMULATOR_ENTRY(name, value, text) {name, #name, text},
    EMULATOR_ERRORS(EMULATOR_ENTRY)
#undef EMULATOR_ENTRY
};

const char *cudaGetErrorName(cudaError_t error)
{
    for (const auto &row : errors)
        if (row.error == error)
            return row.name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (const auto &row : errors)
        if (row.error == error)
            return row.text;
    return "unrecognized error code";
}

cudaError_t cudaPeekAtLastError(void)
{
    locked hold(lock);
    return state.broken != cudaSuccess ? state.broken : calling()->last_error;
}

cudaError_t cudaGetLastError(void)
{
    locked hold(lock);
    cudaError_t error = cudaPeekAtLastError();
    calling()->last_error = cudaSuccess;
    return error;
}

/* ---- Devices ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    locked hold(lock);
    if (!count)
        return emulator_fail(cudaErrorInvalidValue);
    *count = state.devices > 0 ? state.devices : 0;
    return emulator_state();
}

static cudaError_t check_device(int device)
{
    cudaError_t error = emulator_state();
    if (error == cudaSuccess && (device < 0 || device >= state.devices))
        error = cudaErrorInvalidDevice;
    return emulator_fail(error);
}

cudaError_t cudaSetDevice(int device)
{
    locked hold(lock);
    cudaError_t error = check_device(device);
    if (error == cudaSuccess)
        calling()->device = device;
    return error;
}

cudaError_t cudaGetDevice(int *device)
{
    locked hold(lock);
    cudaError_t error = emulator_state();
    if (error == cudaSuccess)
        *device = calling()->device;
    return error;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
    locked hold(lock);
    cudaError_t error = check_device(device);
    if (error != cudaSuccess)
        return error;
    *properties = cudaDeviceProp();
    std::strcpy(properties->name, "emulated");
    properties->totalGlobalMem = state.memory;
    properties->sharedMemPerBlock = SHARED_DEFAULT;
    properties->sharedMemPerBlockOptin = (size_t)state.kind->shared_optin;
    properties->sharedMemPerMultiprocessor = (size_t)state.kind->shared_each;
    properties->major = state.kind->capability / 10;
    properties->minor = state.kind->capability % 10;
    properties->multiProcessorCount = MULTIPROCESSORS;
    properties->l2CacheSize = L2_CACHE;
    properties->maxThreadsPerBlock = MOST_THREADS;
    properties->maxThreadsPerMultiProcessor = state.kind->threads_each;
    properties->memoryBusWidth = BUS_WIDTH;
    properties->warpSize = 32;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    const struct {
        enum cudaDeviceAttr attribute;
        int value;
    } attributes[] = {
        {cudaDevAttrMaxThreadsPerBlock, MOST_THREADS},
        {cudaDevAttrMaxSharedMemoryPerBlock, SHARED_DEFAULT},
        {cudaDevAttrClockRate, CLOCK_KHZ},
        {cudaDevAttrMultiProcessorCount, MULTIPROCESSORS},
        {cudaDevAttrMemoryClockRate, CLOCK_KHZ},
        {cudaDevAttrGlobalMemoryBusWidth, BUS_WIDTH},
        {cudaDevAttrL2CacheSize, L2_CACHE},
        {cudaDevAttrMaxThreadsPerMultiProcessor, state.kind->threads_each},
        {cudaDevAttrComputeCapabilityMajor, state.kind->capability / 10},
        {cudaDevAttrComputeCapabilityMinor, state.kind->capability % 10},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, state.kind->shared_optin},
    };
    locked hold(lock);
    cudaError_t error = check_device(device);
    if (error != cudaSuccess)
        return error;
    for (const auto &row : attributes) {
        if (row.attribute == attribute) {
            *value = row.value;
            return cudaSuccess;
        }
    }
    return emulator_fail(cudaErrorInvalidValue);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = state.devices > 0 ? CUDART_VERSION : 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

static cudaError_t synchronise(void)
{
    locked hold(lock);
    counts.synchronisations++;
    return emulator_state();
}

cudaError_t cudaDeviceSynchronize(void)
{
    return synchronise();
}

/* ---- Memory ---- */

cudaError_t cudaMalloc(void **pointer, size_t size)
{
    locked hold(lock);
    cudaError_t error = emulator_state();
    void *memory = nullptr;
    if (error != cudaSuccess)
        return error;
    if (!pointer)
        return emulator_fail(cudaErrorInvalidValue);
    counts.allocations++;
    *pointer = nullptr;
    if (due(&state.fail_allocation) || size > state.memory || counts.live > state.memory - size)
        return emulator_fail(cudaErrorMemoryAllocation);
    if (size == 0)
        return cudaSuccess;
    if (posix_memalign(&memory, 256, size) != 0)
        return emulator_fail(cudaErrorMemoryAllocation);
    std::memset(memory, 0xff, size); /* NaN until written */
    if (accesses == 0)
        __asan_poison_memory_region(memory, size);
    allocations[(uintptr_t)memory] = {size, calling()->device};
    counts.live += size;
    counts.peak = counts.live > counts.peak ? counts.live : counts.peak;
    *pointer = memory;
    return cudaSuccess;
}

cudaError_t cudaFree(void *pointer)
{
    locked hold(lock);
    auto it = allocations.find((uintptr_t)pointer);
    counts.frees++;
    if (pointer && it == allocations.end())
        return emulator_fail(cudaErrorInvalidValue);
    if (pointer) { /* even after a failed launch, so that nothing leaks in a test of one */
        __asan_unpoison_memory_region(pointer, it->second.size);
        counts.live -= it->second.size;
        allocations.erase(it);
        std::free(pointer);
    }
    return emulator_state();
}

} /* extern "C" */

static void let_access(bool let)
{
    for (const auto &it : allocations) {
        void *address = (void *)it.first;
        if (let)
            __asan_unpoison_memory_region(address, it.second.size);
        else
            __asan_poison_memory_region(address, it.second.size);
    }
}

emulator_access::emulator_access()
{
    locked hold(lock);
    if (accesses++ == 0)
        let_access(true);
}

emulator_access::~emulator_access()
{
    locked hold(lock);
    if (--accesses == 0)
        let_access(false);
}

/* The allocation that holds `size` bytes from `pointer` on, or the end. */
static std::map<uintptr_t, allocation>::const_iterator allocation_of(const void *pointer,
                                                                     size_t size)
{
    uintptr_t address = (uintptr_t)pointer;
    auto it = allocations.upper_bound(address);
    if (it == allocations.begin())
        return allocations.end();
    --it;
    size_t before = (size_t)(address - it->first);
    if (before > it->second.size || size > it->second.size - before)
        return allocations.end();
    return it;
}

bool emulator_on_device(const void *pointer, size_t size)
{
    locked hold(lock);
    return allocation_of(pointer, size) != allocations.end();
}

/* One side of a copy is where its kind says. */
static bool lies_right(const void *pointer, size_t size, bool device, enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyDefault || emulator_on_device(pointer, size) == device;
}

/* Rows of bytes. */
struct rows {
    size_t pitch, width, height;
};

/* From the first byte to the last. */
static size_t extent(rows r)
{
    return r.pitch * (r.height - 1) + r.width;
}

static cudaError_t copy(void *to, rows t, const void *from, size_t from_pitch,
                        enum cudaMemcpyKind kind)
{
    locked hold(lock);
    cudaError_t error = emulator_state();
    rows f = {from_pitch, t.width, t.height};
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (error != cudaSuccess || t.width == 0 || t.height == 0)
        return error;
    if ((unsigned)kind > cudaMemcpyDefault || !to || !from || t.width > t.pitch ||
        f.width > f.pitch || !lies_right(to, extent(t), to_device, kind) ||
        !lies_right(from, extent(f), from_device, kind))
        return emulator_fail(cudaErrorInvalidValue);
    emulator_access access;
    for (size_t i = 0; i < t.height; i++)
        std::memmove((char *)to + i * t.pitch, (const char *)from + i * f.pitch, t.width);
    return cudaSuccess;
}

static cudaError_t set(void *to, rows t, int value)
{
    locked hold(lock);
    cudaError_t error = emulator_state();
    if (error != cudaSuccess || t.width == 0 || t.height == 0)
        return error;
    if (t.width > t.pitch || !emulator_on_device(to, extent(t)))
        return emulator_fail(cudaErrorInvalidValue);
    emulator_access access;
    for (size_t i = 0; i < t.height; i++)
        std::memset((char *)to + i * t.pitch, value, t.width);
    return cudaSuccess;
}

extern "C" {

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
    synchronise();
    return copy(to, {size, size, 1}, from, size, kind);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    emulator_enqueued(stream);
    return copy(to, {size, size, 1}, from, size, kind);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    synchronise();
    return copy(to, {to_pitch, width, height}, from, from_pitch, kind);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    emulator_enqueued(stream);
    return copy(to, {to_pitch, width, height}, from, from_pitch, kind);
}

cudaError_t cudaMemset(void *to, int value, size_t size)
{
    synchronise();
    return set(to, {size, size, 1}, value);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream)
{
    emulator_enqueued(stream);
    return set(to, {size, size, 1}, value);
}

cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    synchronise();
    return set(to, {pitch, width, height}, value);
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    emulator_enqueued(stream);
    return set(to, {pitch, width, height}, value);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    locked hold(lock);
    *available = state.memory > counts.live ? state.memory - counts.live : 0;
    *total = state.memory;
    return emulator_state();
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer)
{
    locked hold(lock);
    *attributes = cudaPointerAttributes();
    attributes->device = -1;
    attributes->hostPointer = (void *)pointer;
    auto it = allocation_of(pointer, 1);
    if (it != allocations.end())
        *attributes = {cudaMemoryTypeDevice, it->second.device, (void *)pointer, nullptr};
    return emulator_state();
}

/* ---- Streams and events: all is done at once ---- */

/* Not a default stream: null, cudaStreamLegacy (1), cudaStreamPerThread (2). */
static bool is_made(cudaStream_t stream)
{
    return (uintptr_t)stream > 2;
}

struct CUstream_st {
    unsigned flags;
    int device;
};

struct CUevent_st {
    std::chrono::steady_clock::time_point time;
    bool recorded, timing;
    int device;
};

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    cudaError_t error = emulator_state();
    if (error == cudaSuccess)
        *stream = new CUstream_st{flags, emulator_current_device()};
    return error;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (!stream)
        return emulator_fail(cudaErrorInvalidResourceHandle);
    delete stream;
    return emulator_state();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    emulator_enqueued(stream);
    return synchronise();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    return event ? emulator_state() : emulator_fail(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    cudaError_t error = emulator_state();
    if (error == cudaSuccess)
        *event = new CUevent_st{
            {}, false, (flags & cudaEventDisableTiming) == 0, emulator_current_device()};
    return error;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (!event)
        return emulator_fail(cudaErrorInvalidResourceHandle);
    delete event;
    return emulator_state();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t error = emulator_state();
    if (!event || (is_made(stream) && stream->device != event->device))
        return emulator_fail(cudaErrorInvalidResourceHandle);
    event->time = std::chrono::steady_clock::now();
    event->recorded = true;
    return error;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return event ? synchronise() : emulator_fail(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    cudaError_t error = emulator_state();
    if (!start || !end || !start->recorded || !end->recorded || !start->timing || !end->timing)
        return emulator_fail(cudaErrorInvalidResourceHandle);
    *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
    return error;
}

/* ---- Launches ---- */

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    locked hold(lock);
    cudaError_t error = emulator_state();
    if (error != cudaSuccess)
        return error;
    if (!kernel)
        return emulator_fail(cudaErrorInvalidDeviceFunction);
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
        return cudaSuccess;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        !shared_fits(kernel, (size_t)value))
        return emulator_fail(cudaErrorInvalidValue);
    shared_limits[{kernel, calling()->device}] = (size_t)value;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel)
{
    locked hold(lock);
    cudaError_t error = emulator_state();
    if (error != cudaSuccess)
        return error;
    if (!kernel)
        return emulator_fail(cudaErrorInvalidDeviceFunction);
    auto raised = shared_limits.find({kernel, calling()->device});
    attributes->sharedSizeBytes = own_of(kernel);
    attributes->maxDynamicSharedSizeBytes =
        raised == shared_limits.end() ? SHARED_DEFAULT - (int)own_of(kernel) : (int)raised->second;
    return cudaSuccess;
}

} /* extern "C" */

/* Only work for the current device can be put in a stream. */
cudaError_t emulator_check_stream(cudaStream_t stream)
{
    return is_made(stream) && stream->device != emulator_current_device()
               ? cudaErrorInvalidResourceHandle
               : cudaSuccess;
}

static bool fits(dim3 size, unsigned x, unsigned y, unsigned z)
{
    return size.x > 0 && size.y > 0 && size.z > 0 && size.x <= x && size.y <= y && size.z <= z;
}

/* Whether a block may have so much dynamic shared memory in addition to its kernel's static shared
 * memory: more than 48 KiB of both together only where that was asked for. */
static bool launch_fits(const void *kernel, size_t dynamic)
{
    auto raised = shared_limits.find({kernel, calling()->device});
    bool usual = own_of(kernel) + dynamic <= SHARED_DEFAULT;
    return usual || (raised != shared_limits.end() && dynamic <= raised->second &&
                     shared_fits(kernel, dynamic));
}

bool emulator_shared_fits(const void *kernel, size_t own, size_t shared)
{
    locked hold(lock);
    own_shared[kernel] = own;
    return launch_fits(kernel, shared);
}

bool emulator_shared_known(const void *kernel)
{
    locked hold(lock);
    return own_shared.count(kernel) > 0;
}

cudaError_t emulator_admit(const void *kernel, unsigned bound, dim3 grid, dim3 block, size_t shared)
{
    locked hold(lock);
    cudaError_t error = emulator_state();
    if (error != cudaSuccess)
        return error;
    if (!fits(grid, 0x7fffffff, 65535, 65535) || !fits(block, MOST_THREADS, MOST_THREADS, 64) ||
        block.x * block.y * block.z > MOST_THREADS)
        return cudaErrorInvalidConfiguration;
    if (block.x * block.y * block.z > bound || !launch_fits(kernel, shared))
        return cudaErrorInvalidValue;
    counts.launches++;
    return due(&state.fail_launch) ? cudaErrorLaunchFailure : cudaSuccess;
}
