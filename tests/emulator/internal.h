/* SPDX-License-Identifier: BSD-3-Clause */
/* What the emulator's sources share. */
#ifndef EMULATOR_INTERNAL_H
#define EMULATOR_INTERNAL_H

#include "cuda_runtime.h"
#include "emulator.h"

#ifdef EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define __asan_poison_memory_region(address, size)   ((void)(address), (void)(size))
#define __asan_unpoison_memory_region(address, size) ((void)(address), (void)(size))
#endif

enum { SHARED_DEFAULT = 48 << 10 }; /* bytes a block may have without asking */

/* The error as the calling thread's last one, returned. Errors of kernels stay for all. */
cudaError_t emulator_fail(cudaError_t error);

/* Why every call must fail: no device, or a kernel that failed before. */
cudaError_t emulator_state(void);

/* Something was enqueued on a stream. */
void emulator_enqueued(cudaStream_t stream);

/* All `size` bytes from `pointer` on are in one allocation on the device. */
bool emulator_on_device(const void *pointer, size_t size);

/* Records that a kernel has at least `own` bytes of __shared__ variables; whether they and so
 * much dynamic shared memory are no more than a block may have. */
bool emulator_shared_fits(const void *kernel, size_t own, size_t shared);
bool emulator_shared_known(const void *kernel); /* whether they were noted */

/* Whether a kernel can go to a stream: one of the current device. */
cudaError_t emulator_check_stream(cudaStream_t stream);

enum { MOST_THREADS = 1024 /* of a block */ };

/* Checks and counts a launch of a kernel that is for blocks of at most `bound` threads. */
cudaError_t emulator_admit(const void *kernel, unsigned bound, dim3 grid, dim3 block,
                           size_t shared);

/* Device memory may be touched from here to the end of the scope, not by the host in between: under
 * ASan it is poisoned outside. */
struct emulator_access {
    emulator_access();
    ~emulator_access();
    emulator_access(const emulator_access &) = delete;
    emulator_access &operator=(const emulator_access &) = delete;
};

#endif
