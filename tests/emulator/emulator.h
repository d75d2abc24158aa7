/* SPDX-License-Identifier: BSD-3-Clause */
/* What a test can ask of the emulated CUDA device: that it has none, little memory, that the k-th
 * allocation or launch from now fails; and what was asked of the device so far.
 *
 * EMULATOR_ORDER in the environment says in which order blocks and the threads of a block run:
 * forward (default), backward, or shuffle:SEED, all threads from one wait to the next; or
 * warp-forward, warp-backward, warp-shuffle:SEED, the warps in that order, each as far as it can go
 * without the others. Kernels without races give the same bits in each. A barrier that is missing
 * before a warp collective shows in the latter alone: with all threads in turn every one reaches
 * the collective before any goes on.
 *
 * EMULATOR_STORES=late: what a thread stores in shared memory others see once it has reached a
 * barrier or __syncwarp. Shuffles, votes and products of a warp do not order memory; without this
 * they seem to. It takes long where a block has much shared memory. */
#ifndef EMULATOR_H
#define EMULATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int64_t launches;         /* that ran */
    int64_t allocations;      /* cudaMalloc */
    int64_t frees;            /* cudaFree; on a device each also synchronises */
    int64_t synchronisations; /* of device, stream and events, cudaMemcpy, cudaMemset */
    int64_t strays;           /* launches, copies and waits on other than the expected stream */
    size_t live, peak;        /* bytes allocated now, and at most since the last reset */
} emulator_counts;

emulator_counts emulator_counted(void);

void emulator_devices(int count);         /* 0: cudaErrorNoDevice; -1: no driver either */
int emulator_current_device(void);        /* the calling thread's */
void emulator_capability(int capability); /* 80, 86, 89, 90: as EMULATOR_DEVICE says, or 90 */
void emulator_memory(size_t limit);       /* bytes of the device's memory, 1 GiB at first */
void emulator_fail_allocation(int64_t k); /* the k-th from now, counted from 1; 0: none */
void emulator_fail_launch(int64_t k);     /* it and all calls after it: cudaErrorLaunchFailure */

void emulator_expect_stream(const void *stream); /* strays are counted from here on; null: none */

/* All of the above as at the start, errors forgotten; what is allocated stays allocated. */
void emulator_reset(void);

#ifdef __cplusplus
}
#endif
#endif
