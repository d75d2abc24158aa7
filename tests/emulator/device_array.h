/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMULATOR_DEVICE_ARRAY_H
#define EMULATOR_DEVICE_ARRAY_H

#include <criterion/criterion.h>

#include <vector>

#include "cuda_runtime.h"

/* Device memory, copied from and to the host. */
template <class T> struct device_array {
    T *data = nullptr;
    size_t count;

    explicit device_array(size_t wanted) : count(wanted)
    {
        cr_assert(cudaMalloc(&data, count * sizeof(T)) == cudaSuccess);
    }

    explicit device_array(const std::vector<T> &host) : device_array(host.size())
    {
        cr_assert(cudaMemcpy(data, host.data(), count * sizeof(T), cudaMemcpyHostToDevice) ==
                  cudaSuccess);
    }

    ~device_array()
    {
        cudaFree(data);
    }

    device_array(const device_array &) = delete;
    device_array &operator=(const device_array &) = delete;

    std::vector<T> host() const
    {
        std::vector<T> copy(count);
        cr_assert(cudaMemcpy(copy.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost) ==
                  cudaSuccess);
        return copy;
    }
};

#endif
