/* SPDX-License-Identifier: BSD-3-Clause */
/* Launching kernels. The same sources are compiled by nvcc for the device and, for the tests, by
 * the C++ compiler against an emulator (ATN_EMULATED); here is all that differs. */
#ifndef CUDA_LAUNCH_CUH
#define CUDA_LAUNCH_CUH

#include <atomic>
#include <cuda_runtime.h>
#include <stdint.h>

/* The block's dynamic shared memory, aligned to 16 bytes. */
template <class T> static __device__ __forceinline__ T *cuda_shared()
{
#ifdef ATN_EMULATED
    return static_cast<T *>(emulator_shared());
#else
    extern __shared__ float4 cuda_shared_memory[];
    return reinterpret_cast<T *>(cuda_shared_memory);
#endif
}

/* Memory as vectors of 8 or 16 bytes. A device loads and stores them only where they are aligned to
 * their size; the emulator fails the launch where they are not. */
template <class T, class M> static __device__ __forceinline__ T *cuda_vectors(M *memory)
{
#ifdef ATN_EMULATED
    emulator_check_aligned(memory, alignof(T));
#endif
    return reinterpret_cast<T *>(memory);
}

/* Lets a kernel's blocks have as much dynamic shared memory as the device offers in addition to
 * what the kernel has of its own. That is an attribute of the kernel on the current device, in
 * force for all host threads: were it set to what a launch needs, another thread could lower it
 * before the launch. It is set once; a kernel that takes another's place in the table sets it
 * again. */
static inline cudaError_t cuda_raise_shared(const void *kernel)
{
    enum { DEVICES = 64, PLACES = 64 };
    static std::atomic<uintptr_t> raised[PLACES];
    int device = 0, most = 0;
    cudaFuncAttributes attributes;
    cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess)
        return error;
    uintptr_t key = (uintptr_t)kernel * DEVICES + (uintptr_t)device;
    std::atomic<uintptr_t> *place = &raised[((uintptr_t)kernel / 16 + (uintptr_t)device) % PLACES];
    if (place->load() == key)
        return cudaSuccess;
    error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess)
        error = cudaFuncGetAttributes(&attributes, kernel);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     most - (int)attributes.sharedSizeBytes);
    if (error == cudaSuccess)
        place->store(key);
    return error;
}

/* Enqueues kernel(arguments...). More than 48 KiB of shared memory must be asked for by name: of
 * dynamic memory and what the kernel has of its own, less than 16 KiB where it takes both. */
template <class... P, class... A>
static cudaError_t cuda_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                               cudaStream_t stream, A... arguments)
{
    if (shared > 32 * 1024) {
        cudaError_t error = cuda_raise_shared(reinterpret_cast<const void *>(kernel));
        if (error != cudaSuccess)
            return error;
    }
#ifdef ATN_EMULATED
    return emulator_launch(kernel, grid, block, shared, stream, arguments...);
#else
    kernel<<<grid, block, shared, stream>>>(arguments...);
    return cudaGetLastError();
#endif
}

#endif
