/* SPDX-License-Identifier: BSD-3-Clause */
/* Launching kernels. The same sources are compiled by nvcc for the device and, for the tests, by
 * the C++ compiler against an emulator (ATN_EMULATED); here is all that differs. */
#ifndef CUDA_LAUNCH_CUH
#define CUDA_LAUNCH_CUH

#include <cuda_runtime.h>

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

/* Enqueues kernel(arguments...). More than 48 KiB of shared memory must be asked for by name. */
template <class... P, class... A>
static cudaError_t cuda_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                               cudaStream_t stream, A... arguments)
{
    if (shared > 48 * 1024) {
        cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                 static_cast<int>(shared));
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
