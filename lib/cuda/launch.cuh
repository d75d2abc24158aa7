/* SPDX-License-Identifier: BSD-3-Clause */
/* Launching kernels. The same sources are compiled by nvcc for the device and, for the tests, by
 * the C++ compiler against an emulator (ATN_EMULATED); all differences are in this file. */
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

/* Memory as vectors of 8 or 16 bytes. A device requires them to be aligned to their size; the
 * emulator fails a launch where they are not. */
template <class T, class M> static __device__ __forceinline__ T *cuda_vectors(M *memory)
{
#ifdef ATN_EMULATED
    emulator_check_aligned(memory, alignof(T));
#endif
    return reinterpret_cast<T *>(memory);
}

/* Allows a kernel's blocks as much dynamic shared memory as the device offers beyond the kernel's
 * static shared memory. This is an attribute of the kernel on the current device and applies to all
 * host threads: if each launch set what it needs, another thread could lower it before the launch.
 * So it is set once; the table of kernels is small, and a kernel that was displaced from it sets
 * the attribute again. */
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

/* Enqueues kernel(arguments...). Dynamic and static shared memory of more than 48 KiB together must
 * be requested explicitly; the static part is less than 16 KiB in a kernel that has both. */
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
