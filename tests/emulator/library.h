/* SPDX-License-Identifier: BSD-3-Clause */
/* What the emulated libraries share. Where the device would read or write beyond an allocation
 * (BLAS is not compiled with the sanitizers) a call says so and fails. */
#ifndef EMULATOR_LIBRARY_H
#define EMULATOR_LIBRARY_H

#include <cstdio>

#include "internal.h"

/* Numbers of `size` bytes, rows x cols with `leading` between columns, `stride` between matrices.
 */
struct matrices {
    const void *data;
    size_t size;
    long long rows, cols, leading, stride, count;
};

static inline bool reachable(const char *what, matrices m)
{
    if (m.rows == 0 || m.cols == 0 || m.count == 0)
        return true;
    long long last = m.stride * (m.count - 1) + m.leading * (m.cols - 1) + m.rows;
    if (last > 0 && emulator_on_device(m.data, (size_t)last * m.size))
        return true;
    std::fprintf(stderr, "emulator: %s is not on the device or too small\n", what);
    emulator_fail(cudaErrorIllegalAddress);
    return false;
}

template <class T> static bool reachable_array(const char *what, const T *data, long long count)
{
    return reachable(what, {data, sizeof(T), count, 1, count, 0, 1});
}

/* A library's kernel is counted, and fails, as a launch. */
static inline bool enqueue(void)
{
    return emulator_fail(emulator_admit(nullptr, 1, 1, 1, 0)) == cudaSuccess;
}

/* Handles own a little device memory, as the libraries' do. */
struct handle_base {
    void *memory = nullptr;

    handle_base() = default;
    handle_base(const handle_base &) = delete;
    handle_base &operator=(const handle_base &) = delete;
    ~handle_base()
    {
        cudaFree(memory);
    }
};

/* Makes a handle; one of the three statuses. */
template <class H, class S> static S create(H **handle, S invalid, S no_memory, S success)
{
    if (!handle)
        return invalid;
    H *made = new H();
    cudaError_t error = cudaMalloc(&made->memory, 1);
    if (error != cudaSuccess) {
        delete made;
        return error == cudaErrorMemoryAllocation ? no_memory : invalid;
    }
    *handle = made;
    return success;
}

#endif
