/* SPDX-License-Identifier: BSD-3-Clause */
/* The emulated device: threads, barriers, warps, order, what it refuses and what it shows. */
#include <criterion/criterion.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define ATN_EMULATED
#include "cuda/launch.cuh"
#include "cuda_runtime.h"
#include "device_array.h"
#include "emulator.h"

#if defined __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

static const char *const orders[] = {"forward",      "backward",      "shuffle:1",     "shuffle:2",
                                     "warp-forward", "warp-backward", "warp-shuffle:3"};
static const int order_count = sizeof orders / sizeof *orders;
static const unsigned all_lanes = 0xffffffff;

static void set_order(const char *order)
{
    setenv("EMULATOR_ORDER", order, 1);
}

template <class... P, class... A>
static cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                          A... arguments)
{
    return emulator_launch(kernel, grid, block, shared, nullptr, arguments...);
}

/* ---- Barriers and shared memory ---- */

/* The sum of a block's threads' numbers in a tree; MISSING leaves out one barrier. */
template <bool MISSING> static __global__ void __launch_bounds__(256) tree_sum(int *out)
{
    __shared__ int parts[256];
    int *total = (int *)emulator_shared();
    int thread = (int)threadIdx.x;
    parts[thread] = thread + (int)blockIdx.x;
    for (int half = 128; half > 0; half /= 2) {
        if (!(MISSING && half == 64))
            __syncthreads();
        if (thread < half)
            parts[thread] += parts[thread + half];
    }
    if (thread == 0)
        *total = parts[0];
    __syncthreads();
    out[blockIdx.x * 256 + threadIdx.x] = *total;
}

/* Threads for which the tree sum is not what it should be. */
static int wrong_sums(void (*kernel)(int *), const char *order)
{
    const int blocks = 20;
    int wrong = 0;
    set_order(order);
    device_array<int> out(blocks * 256);
    cr_assert(launch(kernel, blocks, 256, sizeof(int), out.data) == cudaSuccess);
    std::vector<int> sums = out.host();
    for (int i = 0; i < blocks * 256; i++)
        wrong += sums[(size_t)i] != 255 * 128 + 256 * (i / 256);
    return wrong;
}

Test(emulator, sums_in_every_order)
{
    for (int i = 0; i < order_count; i++)
        cr_expect(wrong_sums(tree_sum<false>, orders[i]) == 0, "%s", orders[i]);
}

Test(emulator, missing_barrier_shows)
{
    int wrong = 0;
    for (int i = 0; i < order_count; i++)
        wrong += wrong_sums(tree_sum<true>, orders[i]) > 0;
    cr_expect(wrong > 0 && wrong < order_count, "wrong in %d of %d orders", wrong, order_count);
    cr_expect(wrong_sums(tree_sum<true>, "forward") != wrong_sums(tree_sum<true>, "backward"));
}

/* A barrier that is missing before a warp's collective: with all threads in turn, whatever their
 * order, every one of them writes before any reads. */
static int *parts_of_a_block(void)
{
    __shared__ int
        parts[96]; /* not of a template: those keep what an earlier block left under ASan */
    return parts;
}

template <bool MISSING> static __global__ void read_other_warp(int *out)
{
    int *parts = parts_of_a_block(), thread = (int)threadIdx.x;
    parts[thread] = thread;
    if (!MISSING)
        __syncthreads();
    int first = __shfl_sync(all_lanes, thread, 0);
    out[thread] = parts[95 - thread] + first;
}

static int wrong_reads(void (*kernel)(int *), const char *order)
{
    int wrong = 0;
    set_order(order);
    device_array<int> out(96);
    cr_assert(launch(kernel, 1, 96, 0, out.data) == cudaSuccess);
    std::vector<int> got = out.host();
    for (int i = 0; i < 96; i++)
        wrong += got[(size_t)i] != 95 - i + i / 32 * 32;
    return wrong;
}

Test(emulator, missing_barrier_before_a_warps_collective_shows_warp_by_warp)
{
    for (int i = 0; i < order_count; i++) {
        bool by_warp = std::strncmp(orders[i], "warp-", 5) == 0;
        cr_expect(wrong_reads(read_other_warp<false>, orders[i]) == 0, "%s", orders[i]);
        cr_expect((wrong_reads(read_other_warp<true>, orders[i]) > 0) == by_warp, "%s", orders[i]);
    }
}

/* Thread i's vector is at 16 i + 8 bytes. */
template <class T> static __global__ void store_vectors(int *out)
{
    char *at = (char *)emulator_shared() + 16 * threadIdx.x + 8;
    emulator_check_aligned(at, alignof(T));
    out[threadIdx.x] = 1;
}

Test(emulator, vectors_are_aligned)
{
    device_array<int> out(32);
    cr_expect(launch(store_vectors<float2>, 1, 32, 32 * 16 + 8, out.data) == cudaSuccess);
    cr_expect(launch(store_vectors<float4>, 1, 32, 32 * 16 + 8, out.data) ==
              cudaErrorLaunchFailure);
}

/* Lanes that hand values to their neighbours through shared memory, and what they wait at. */
enum { BY_SYNCWARP, BY_SHUFFLE, BY_VOTE, BY_BARRIER };

template <int BY> static __global__ void hand_on(int *out)
{
    int *parts = (int *)emulator_shared(), thread = (int)threadIdx.x, none = 0;
    parts[thread] = thread;
    if (BY == BY_SYNCWARP)
        __syncwarp();
    if (BY == BY_SHUFFLE)
        none = __shfl_xor_sync(all_lanes, 0, 1);
    if (BY == BY_VOTE)
        none = __any_sync(all_lanes, 0);
    if (BY == BY_BARRIER)
        __syncthreads();
    out[thread] = parts[thread] + parts[thread ^ 1] + none;
}

static int wrong_hands(void (*kernel)(int *))
{
    int wrong = 0;
    device_array<int> out(96);
    cr_assert(launch(kernel, 1, 96, 96 * sizeof(int), out.data) == cudaSuccess);
    std::vector<int> got = out.host();
    for (int i = 0; i < 96; i++)
        wrong += got[(size_t)i] != i + (i ^ 1);
    return wrong;
}

Test(emulator, shuffles_and_votes_do_not_order_memory)
{
    for (int late = 0; late < 2; late++) {
        setenv("EMULATOR_STORES", late ? "late" : "at once", 1);
        cr_expect(wrong_hands(hand_on<BY_SYNCWARP>) == 0);
        cr_expect(wrong_hands(hand_on<BY_BARRIER>) == 0);
        cr_expect((wrong_hands(hand_on<BY_SHUFFLE>) > 0) == late);
        cr_expect((wrong_hands(hand_on<BY_VOTE>) > 0) == late);
    }
}

static __global__ void write_places(uint3 *out, dim3 *sizes)
{
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned at = block * blockDim.x * blockDim.y * blockDim.z + thread;
    out[2 * at] = threadIdx;
    out[2 * at + 1] = blockIdx;
    if (at == 0) {
        sizes[0] = blockDim;
        sizes[1] = gridDim;
    }
}

Test(emulator, places)
{
    const dim3 grid(2, 3, 5), block(7, 4, 3);
    for (int o = 0; o < order_count; o++) {
        device_array<uint3> places(2 * 30 * 84);
        device_array<dim3> sizes(2);
        set_order(orders[o]);
        cr_assert(launch(write_places, grid, block, 0, places.data, sizes.data) == cudaSuccess);
        std::vector<uint3> at = places.host();
        std::vector<dim3> size = sizes.host();
        cr_expect(size[0].x == 7 && size[0].y == 4 && size[0].z == 3);
        cr_expect(size[1].x == 2 && size[1].y == 3 && size[1].z == 5);
        for (unsigned i = 0; i < 30 * 84; i++) {
            uint3 t = at[2 * i], b = at[2 * i + 1];
            cr_assert(t.x + 7 * (t.y + 4 * t.z) == i % 84 && t.x < 7 && t.y < 4, "%u", i);
            cr_assert(b.x + 2 * (b.y + 3 * b.z) == i / 84 && b.x < 2 && b.y < 3, "%u", i);
        }
    }
}

static __global__ void vote(int *out)
{
    int thread = (int)threadIdx.x;
    if (thread >= 90) /* who has returned is not waited for and has no vote */
        return;
    int any = __syncthreads_or(thread == 89), none = __syncthreads_or(0);
    int every = __syncthreads_and(thread < 90), most = __syncthreads_and(thread < 89);
    int count = __syncthreads_count(thread % 3 == 0 ? 5 : 0);
    out[thread] = any == 1 && none == 0 && every == 1 && most == 0 && count == 30;
}

Test(emulator, votes_of_blocks)
{
    device_array<int> out(90);
    cr_assert(launch(vote, 1, 100, 0, out.data) == cudaSuccess);
    for (int right : out.host())
        cr_expect(right == 1);
}

/* ---- Warps ---- */

/* Every shuffle of i -> 100 i, and doubles. */
static __global__ void shuffle(int *out)
{
    int lane = (int)threadIdx.x % 32, mine = 100 * lane, n = (int)blockDim.x;
    int *row = out + threadIdx.x;
    row[0] = __shfl_sync(all_lanes, mine, 5);
    row[n] = __shfl_sync(all_lanes, mine, lane + 33);
    row[2 * n] = __shfl_sync(all_lanes, mine, 9, 8);
    row[3 * n] = __shfl_up_sync(all_lanes, mine, 3);
    row[4 * n] = __shfl_up_sync(all_lanes, mine, 3, 8);
    row[5 * n] = __shfl_down_sync(all_lanes, mine, 3);
    row[6 * n] = __shfl_down_sync(all_lanes, mine, 3, 8);
    row[7 * n] = __shfl_xor_sync(all_lanes, mine, 17);
    row[8 * n] = __shfl_xor_sync(all_lanes, mine, 12, 8);
    row[9 * n] = (int)__shfl_xor_sync(all_lanes, 0.5 * lane, 1);
    row[10 * n] = (int)__shfl_down_sync(all_lanes, (long long)lane << 40, 1, 2) == 0;
}

Test(emulator, shuffles)
{
    const int threads = 96;
    for (int o = 0; o < order_count; o++) {
        device_array<int> out(11 * threads);
        set_order(orders[o]);
        cr_assert(launch(shuffle, 1, threads, 0, out.data) == cudaSuccess);
        std::vector<int> got = out.host();
        for (int thread = 0; thread < threads; thread++) {
            int i = thread % 32, eight = i / 8 * 8;
            int want[11] = {500, 100 * ((i + 33) % 32), 100 * (eight + 1),
                            100 * (i < 3 ? i : i - 3), 100 * (i - 3 < eight ? i : i - 3),
                            100 * (i > 28 ? i : i + 3), 100 * (i + 3 > eight + 7 ? i : i + 3),
                            100 * (i ^ 17),
                            /* from a segment below, but not from one above */
                            100 * ((i ^ 12) > eight + 7 ? i : i ^ 12), (i ^ 1) / 2, 1};
            for (int k = 0; k < 11; k++)
                cr_expect(got[(size_t)(k * threads + thread)] == want[k], "%s: %d of thread %d",
                          orders[o], k, thread);
        }
    }
}

/* Halves of a warp at different collectives; lanes outside of the mask have nothing to read. */
static __global__ void halves(unsigned *out)
{
    unsigned lane = threadIdx.x, got;
    if (lane < 16) {
        got = __ballot_sync(0xffff, lane % 2);
        got += __shfl_sync(0xffff, got, 3) + (unsigned)__any_sync(0xffff, lane == 7);
    } else {
        got = __shfl_xor_sync(0xffff0000, lane, 16);
        __syncwarp(0xffff0000);
        got += (unsigned)__all_sync(0xffff0000, lane > 16);
    }
    __syncwarp();
    out[lane] = got;
}

Test(emulator, halves_of_warps)
{
    for (int o = 0; o < order_count; o++) {
        device_array<unsigned> out(32);
        set_order(orders[o]);
        cr_assert(launch(halves, 1, 32, 0, out.data) == cudaSuccess);
        std::vector<unsigned> got = out.host();
        for (size_t i = 0; i < 32; i++)
            cr_expect(got[i] == (i < 16 ? 2 * 0xaaaau + 1 : 0xffffffff), "%zu: %#x", i, got[i]);
    }
}

struct fragment {
    float x[3];
};

static __global__ void gather(float *out)
{
    float sum = 0;
    for (int round = 0; round < 4; round++) {
        fragment mine = {{(float)threadIdx.x, (float)round, 1}}, all[32];
        emulator_warp_gather(mine, all);
        for (int i = 0; i < 32; i++)
            sum += (float)(i + 1) * all[i].x[0] * all[i].x[1] + all[i].x[2];
    }
    out[threadIdx.x] = sum;
}

Test(emulator, gathers)
{
    float want = 4 * 32;
    for (int i = 0; i < 32; i++)
        want += (float)((i + 1) * i * 6);
    for (int o = 0; o < order_count; o++) {
        device_array<float> out(32);
        set_order(orders[o]);
        cr_assert(launch(gather, 1, 32, 0, out.data) == cudaSuccess);
        for (float got : out.host())
            cr_expect(got == want, "%g, not %g", (double)got, (double)want);
    }
}

/* ---- Order ---- */

enum { TICKET_THREADS = 64, TICKET_BLOCKS = 6, TICKETS = 2 * TICKET_THREADS * TICKET_BLOCKS };

/* Two for each thread, the second after the first ones of its warp. */
static __global__ void ticket(unsigned *tickets, unsigned *out)
{
    unsigned *mine = out + 2 * TICKET_THREADS * blockIdx.x + threadIdx.x;
    mine[0] = atomicAdd(tickets, 1u);
    __syncwarp();
    mine[TICKET_THREADS] = atomicAdd(tickets, 1u);
}

static std::vector<unsigned> draw_tickets(const char *order)
{
    device_array<unsigned> tickets(std::vector<unsigned>(1, 0)), out(TICKETS);
    set_order(order);
    cr_assert(launch(ticket, TICKET_BLOCKS, TICKET_THREADS, 0, tickets.data, out.data) ==
              cudaSuccess);
    return out.host();
}

Test(emulator, orders_are_permutations)
{
    std::vector<std::vector<unsigned>> seen;
    for (int o = 0; o < order_count; o++) {
        std::vector<int> drawn(TICKETS);
        seen.push_back(draw_tickets(orders[o]));
        for (unsigned t : seen.back())
            cr_assert(t < TICKETS && drawn[t]++ == 0, "%s", orders[o]);
        for (int before = 0; before < o; before++)
            cr_expect(seen[(size_t)before] != seen.back(), "%s", orders[o]);
        cr_expect(draw_tickets(orders[o]) == seen.back(), "%s: not the same twice", orders[o]);
    }
    for (unsigned i = 0; i < TICKETS; i++) {
        unsigned each = 2 * TICKET_THREADS, block = i / each, second = i % each / TICKET_THREADS;
        unsigned thread = i % TICKET_THREADS, last = TICKET_THREADS - 1 - thread;
        cr_expect(seen[0][i] == i, "%u forward", i);
        cr_expect(seen[1][i] == (TICKET_BLOCKS - 1 - block) * each + second * TICKET_THREADS + last,
                  "%u backward", i);
    }
    std::vector<unsigned> by_warp = draw_tickets("warp-forward");
    for (unsigned i = 0; i < 2 * TICKET_THREADS; i++)
        cr_expect(by_warp[i] == i % 64 / 32 * 64 + i / 64 * 32 + i % 32, "%u warp by warp", i);
}

/* ---- What is wrong and must be seen ---- */

static __global__ void some_return(int *out)
{
    if (threadIdx.x % 32 < 5)
        return;
    __syncthreads();
    out[threadIdx.x] = 1;
}

static __global__ void different_barriers(int *out)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    out[threadIdx.x] = 1;
}

static __global__ void barrier_and_warp(int *out)
{
    if (threadIdx.x < 5)
        __syncthreads();
    else
        __syncwarp();
    out[threadIdx.x] = 1;
}

static __global__ void lane_returned(int *out)
{
    if (threadIdx.x == 40)
        return;
    out[threadIdx.x] = __any_sync(all_lanes, 1);
}

static __global__ void different_collectives(int *out)
{
    if (threadIdx.x % 2)
        out[threadIdx.x] = __any_sync(all_lanes, 1);
    else
        out[threadIdx.x] = __all_sync(all_lanes, 1);
}

static __global__ void not_in_mask(int *out)
{
    out[threadIdx.x] = __any_sync(0xfffffffe, 1);
}

static __global__ void part_of_warp(int *out)
{
    out[threadIdx.x] = __any_sync(threadIdx.x < 32 ? all_lanes : 0x7fffffff, 1);
}

static __global__ void masks_differ(int *out)
{
    out[threadIdx.x] = __any_sync(threadIdx.x % 32 < 3 ? all_lanes : 0xfffffff8, 1);
}

static __global__ void masks_overlap(int *out)
{
    out[threadIdx.x] = __any_sync(threadIdx.x % 32 < 16 ? all_lanes : 0xfffffffe, 1);
}

static __global__ void different_on_one_line(int *out)
{
    bool any = threadIdx.x % 2;
    out[threadIdx.x] = any ? __any_sync(all_lanes, 1) : __all_sync(all_lanes, 1);
}

static __global__ void fine(int *out)
{
    __syncthreads();
    out[threadIdx.x] = 7;
}

Test(emulator, divergence)
{
    static const struct {
        const char *what;
        void (*kernel)(int *);
        cudaError_t want;
    } cases[] = {
        {"returned threads are not waited for", some_return, cudaSuccess},
        {"two barriers", different_barriers, cudaErrorLaunchFailure},
        {"a barrier and a warp's", barrier_and_warp, cudaErrorLaunchFailure},
        {"a lane that has returned", lane_returned, cudaErrorLaunchFailure},
        {"two collectives", different_collectives, cudaErrorLaunchFailure},
        {"a lane not in its mask", not_in_mask, cudaErrorLaunchFailure},
        {"lanes that do not exist", part_of_warp, cudaErrorLaunchFailure},
        {"masks that differ", masks_differ, cudaErrorLaunchFailure},
        {"masks that overlap", masks_overlap, cudaErrorLaunchFailure},
        {"two collectives in one line", different_on_one_line, cudaErrorLaunchFailure},
    };
    device_array<int> out(64);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int o = 0; o < order_count; o++) {
            unsigned threads = cases[i].kernel == part_of_warp ? 63 - 1 : 64;
            set_order(orders[o]);
            cudaError_t got = launch(cases[i].kernel, 3, threads, 0, out.data);
            cr_expect(got == cases[i].want, "%s, %s: %s", cases[i].what, orders[o],
                      cudaGetErrorName(got));
            cr_expect(cudaGetLastError() == got && cudaGetLastError() == got, "not sticky");
            cr_expect(launch(fine, 1, 64, 0, out.data) == got && cudaDeviceSynchronize() == got);
            emulator_reset();
            cr_expect(launch(fine, 1, 64, 0, out.data) == cudaSuccess);
            for (int seven : out.host())
                cr_expect(seven == 7, "%s", cases[i].what);
        }
    }
}

/* ---- Copies that run on ---- */

typedef enum {
    COPY_FINE,
    COPY_NO_WAIT,    /* the copy has not arrived yet */
    COPY_WAIT_SHORT, /* nor the last but one group */
    COPY_RETURN,     /* before it is */
    COPY_TO_ODD,
    COPY_FROM_ODD,
    COPY_TOO_LONG,
    COPY_TO_DEVICE,
    COPY_FROM_SHARED,
    ROW_ODD,
    ROW_ON_DEVICE,
    COPY_CASES
} copy_case;

/* Two groups of 16 bytes by each thread. */
static __global__ void copy_groups(int which, char *from, int *out)
{
    char *rows = (char *)emulator_shared();
    unsigned thread = threadIdx.x;
    char *to = which == COPY_TO_DEVICE ? from : rows;
    int odd_to = which == COPY_TO_ODD ? 8 : 0, odd_from = which == COPY_FROM_ODD ? 4 : 0;
    const char *source = which == COPY_FROM_SHARED ? rows : from;
    emulator_copy(to + 16 * thread + odd_to, source + 16 * thread + odd_from,
                  which == COPY_TOO_LONG ? 17 : 16);
    emulator_copy_group();
    emulator_copy(rows + 16 * (32 + thread), from + 16 * (32 + thread), 5);
    emulator_copy_group();
    if (which == COPY_RETURN)
        return;
    if (which != COPY_NO_WAIT)
        emulator_copy_wait(which == COPY_WAIT_SHORT ? 1 : 0);
    __syncwarp();
    const char *row = which == ROW_ON_DEVICE ? from : rows + 16 * thread;
    bool right = std::memcmp(emulator_shared_row(row + (which == ROW_ODD ? 8 : 0)),
                             from + 16 * thread, 16) == 0;
    right &= std::memcmp(rows + 16 * (32 + thread), from + 16 * (32 + thread), 5) == 0;
    for (int i = 5; i < 16; i++)
        right &= rows[16 * (32 + thread) + i] == 0;
    out[thread] = right;
    emulator_copy_wait(0);
}

Test(emulator, copies_that_run_on)
{
    std::vector<char> values(32 * 2 * 16);
    for (size_t i = 0; i < values.size(); i++)
        values[i] = (char)(i * 7 + 1);
    for (int which = 0; which < COPY_CASES; which++)
        for (int o = 0; o < order_count; o++) {
            device_array<char> from(values);
            device_array<int> out(std::vector<int>(32, 0));
            set_order(orders[o]);
            cudaError_t got = launch(copy_groups, 1, 32, values.size(), which, from.data, out.data);
            bool fails = which >= COPY_RETURN;
            cr_expect(got == (fails ? cudaErrorLaunchFailure : cudaSuccess), "case %d, %s: %s",
                      which, orders[o], cudaGetErrorName(got));
            emulator_reset();
            int right = 0;
            for (int one : out.host())
                right += one;
            cr_expect(fails || (right == 32) == (which == COPY_FINE), "case %d, %s: %d right",
                      which, orders[o], right);
            cr_expect(fails || which == COPY_FINE || right > 0, "case %d, %s: every copy is late",
                      which, orders[o]);
        }
}

static __global__ void unwritten(unsigned *out)
{
    __shared__ unsigned fixed[8];
    unsigned *asked = (unsigned *)emulator_shared(), lane = threadIdx.x;
    bool all = fixed[lane] == 0xffffffff && asked[lane] == 0xffffffff;
    __syncthreads();
    fixed[lane] = asked[lane] = 1; /* the next block must not see it */
    out[blockIdx.x * 8 + lane] += all;
    out[16 + lane] = __shfl_sync(0xff, lane, 20);
}

Test(emulator, poison)
{
    device_array<unsigned> out(24);
    for (unsigned x : out.host())
        cr_expect(x == 0xffffffff);
    cr_assert(launch(unwritten, 2, 8, 32, out.data) == cudaSuccess);
    std::vector<unsigned> got = out.host();
    for (size_t i = 0; i < 16; i++)
        cr_expect(got[i] == 0, "block %zu", i / 8);
    for (size_t i = 16; i < 24; i++)
        cr_expect(got[i] == 0xffffffff, "from a lane outside of the mask");
}

Test(emulator, host_must_not_touch)
{
    device_array<int> out(64);
    cr_assert(launch(fine, 1, 64, 0, out.data) == cudaSuccess);
    cr_expect(out.host()[63] == 7);
#if defined __SANITIZE_ADDRESS__
    cr_expect(__asan_address_is_poisoned(out.data) && __asan_address_is_poisoned(out.data + 63));
#endif
}

/* Whether ASan sees what is touched at and beyond the end of both kinds of shared memory. */
static __global__ void ends_of_shared(int *out)
{
    __shared__ char fixed[40];
    char *asked = (char *)emulator_shared();
    fixed[39] = asked[39] = 1;
#if defined __SANITIZE_ADDRESS__
    out[0] = __asan_address_is_poisoned(fixed + 39) || __asan_address_is_poisoned(asked + 39);
    out[1] = __asan_address_is_poisoned(fixed + 40);
    out[2] = __asan_address_is_poisoned(asked + 40);
#else
    out[0] = !(fixed[39] == 1 && asked[39] == 1);
    out[1] = out[2] = 1;
#endif
}

Test(emulator, beyond_shared)
{
    device_array<int> out(3);
    for (int again = 0; again < 2; again++) { /* the poison of a block does not undo it */
        cr_assert(launch(ends_of_shared, 2, 1, 40, out.data) == cudaSuccess);
        cr_expect(out.host() == std::vector<int>({0, 1, 1}));
    }
}

/* ---- Limits and faults ---- */

static __global__ void nothing(void) {}

static __global__ void touch_shared(int last)
{
    ((char *)emulator_shared())[last] = 1;
}

Test(emulator, limits_of_launches)
{
    static const struct {
        unsigned grid[3], block[3];
        size_t shared;
        cudaError_t want;
    } cases[] = {
        {{1, 1, 1}, {1024, 1, 1}, 48 << 10, cudaSuccess},
        {{1, 1, 1}, {1025, 1, 1}, 0, cudaErrorInvalidConfiguration},
        {{1, 1, 1}, {32, 33, 1}, 0, cudaErrorInvalidConfiguration},
        {{1, 1, 1}, {1, 1, 64}, 0, cudaSuccess},
        {{1, 1, 1}, {1, 1, 65}, 0, cudaErrorInvalidConfiguration},
        {{1, 1, 1}, {0, 1, 1}, 0, cudaErrorInvalidConfiguration},
        {{0, 1, 1}, {1, 1, 1}, 0, cudaErrorInvalidConfiguration},
        {{0x80000000, 1, 1}, {1, 1, 1}, 0, cudaErrorInvalidConfiguration},
        {{1, 65535, 1}, {1, 1, 1}, 0, cudaSuccess},
        {{1, 65536, 1}, {1, 1, 1}, 0, cudaErrorInvalidConfiguration},
        {{1, 1, 65536}, {1, 1, 1}, 0, cudaErrorInvalidConfiguration},
        {{1, 1, 1}, {1, 1, 1}, (48 << 10) + 1, cudaErrorInvalidValue},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const unsigned *g = cases[i].grid, *b = cases[i].block;
        cudaError_t got =
            launch(nothing, dim3(g[0], g[1], g[2]), dim3(b[0], b[1], b[2]), cases[i].shared);
        cr_expect(got == cases[i].want, "%zu: %s", i, cudaGetErrorName(got));
        cr_expect(cudaPeekAtLastError() == got && cudaGetLastError() == got &&
                      cudaGetLastError() == cudaSuccess,
                  "%zu: the last error is not kept once", i);
    }
    const int most = 227 << 10;
    const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
    cr_expect(cudaFuncSetAttribute(touch_shared, attribute, most + 1) == cudaErrorInvalidValue);
    cr_expect(cudaFuncSetAttribute(touch_shared, attribute, most) == cudaSuccess);
    cr_expect(launch(touch_shared, 1, 1, most, most - 1) == cudaSuccess);
    cr_expect(launch(touch_shared, 1, 1, most + 1, 0) == cudaErrorInvalidValue);
    cr_expect(cudaFuncSetAttribute(touch_shared, attribute, 60000) == cudaSuccess);
    cr_expect(launch(touch_shared, 1, 1, 60001, 0) == cudaErrorInvalidValue);
    cr_expect(launch(nothing, 1, 1, most) == cudaErrorInvalidValue, "another kernel's limit");
}

/* A launch raises a kernel's limit to all there is, on each device: another host thread's launch of
 * the same kernel with less memory, before or after it, takes nothing away. */
Test(emulator, launches_leave_each_other_their_shared_memory)
{
    emulator_devices(2);
    for (int device = 0; device < 2; device++) {
        cr_assert(cudaSetDevice(device) == cudaSuccess);
        cr_expect(launch(touch_shared, 1, 1, 60000, 0) == cudaErrorInvalidValue, "not yet raised");
        cr_expect(cuda_launch(touch_shared, 1, 1, 60000, nullptr, 0) == cudaSuccess);
        cr_expect(cuda_launch(touch_shared, 1, 1, 50000, nullptr, 0) == cudaSuccess);
        cr_expect(launch(touch_shared, 1, 1, 60000, 0) == cudaSuccess, "lowered");
        cr_expect(cuda_launch(touch_shared, 1, 1, 227 << 10, nullptr, 0) == cudaSuccess);
        cr_expect(cuda_launch(touch_shared, 1, 1, (227 << 10) + 1, nullptr, 0) ==
                  cudaErrorInvalidValue);
    }
}

template <int> static __global__ void __launch_bounds__(96, 2) at_most_96(void) {}

static __global__ void after_it(void) {}

/* A block of more threads than its kernel is declared for does not start on a device either: the
 * compiler has given each thread more registers than so many can have. */
Test(emulator, launch_bounds)
{
    cr_expect(launch(at_most_96<1>, 3, 96, 0) == cudaSuccess);
    cr_expect(launch(at_most_96<1>, 3, 97, 0) == cudaErrorInvalidValue);
    cr_expect(launch(at_most_96<2>, 1, dim3(8, 3, 4), 0) == cudaSuccess);
    cr_expect(launch(at_most_96<2>, 1, dim3(7, 7, 2), 0) == cudaErrorInvalidValue);
    cr_expect(launch(after_it, 1, 1024, 0) == cudaSuccess, "another kernel's bound");
}

static __global__ void own_and_dynamic(int *out)
{
    __shared__ int own[1000];
    for (int i = 0; i < 1000; i++)
        own[i] = i;
    out[0] = own[999] + ((char *)emulator_shared())[0];
}

/* Static shared memory counts, too. */
Test(emulator, own_and_dynamic_shared_memory_together)
{
    device_array<int> out(1);
    const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
    cr_assert(cudaFuncSetAttribute(own_and_dynamic, attribute, 227 << 10) == cudaSuccess);
#if defined __SANITIZE_ADDRESS__
    return; /* where variables are not all in one place */
#endif
    cr_expect(launch(own_and_dynamic, 1, 1, 227 << 10, out.data) == cudaErrorLaunchFailure);
    emulator_reset();
    cr_expect(launch(own_and_dynamic, 1, 1, 227 << 10, out.data) == cudaErrorInvalidValue);
    cr_expect(cudaFuncSetAttribute(own_and_dynamic, attribute, 227 << 10) == cudaErrorInvalidValue);
    cr_expect(launch(own_and_dynamic, 1, 1, (227 << 10) - 4000, out.data) == cudaSuccess);
}

template <int> static __global__ void own_and_usual(int *out)
{
    __shared__ int own[1000];
    for (int i = 0; i < 1000; i++)
        own[i] = i;
    out[0] = own[999] + ((char *)emulator_shared())[0];
}

/* So it does within the 48 KiB that a block may have without asking; cuda_launch asks. */
Test(emulator, own_shared_memory_counts_without_asking)
{
    const size_t usual = 48 << 10;
    device_array<int> out(1);
#if defined __SANITIZE_ADDRESS__
    return;
#endif
    cr_expect(launch(own_and_usual<1>, 1, 1, usual - 4000, out.data) == cudaSuccess);
    cr_expect(launch(own_and_usual<1>, 1, 1, usual - 3999, out.data) == cudaErrorInvalidValue);
    cr_expect(cuda_launch(own_and_usual<1>, 1, 1, usual - 3999, nullptr, out.data) == cudaSuccess);
    cr_expect(launch(own_and_usual<2>, 1, 1, usual, out.data) == cudaErrorLaunchFailure);
}

Test(emulator, capabilities_have_their_limits)
{
    static const struct {
        int capability, most;
    } devices[] = {{80, 163}, {86, 99}, {89, 99}, {90, 227}};
    int ordinal = 0;
    emulator_devices(4);
    for (const auto &device : devices) {
        cudaDeviceProp properties;
        int most = 0;
        emulator_capability(device.capability);
        cr_assert(cudaSetDevice(ordinal) == cudaSuccess); /* whose limit nobody has raised */
        cr_assert(cudaGetDeviceProperties(&properties, ordinal++) == cudaSuccess);
        cr_expect(properties.major * 10 + properties.minor == device.capability);
        cr_expect(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) ==
                      cudaSuccess &&
                  most == device.most << 10);
        cr_expect(cuda_launch(touch_shared, 1, 1, (size_t)most, nullptr, 0) == cudaSuccess);
        cr_expect(cudaFuncSetAttribute(touch_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       most + 1) == cudaErrorInvalidValue);
    }
    emulator_reset();
}

Test(emulator, no_device)
{
    int count = -1;
    void *pointer = nullptr;
    cudaDeviceProp properties;
    cr_expect(cudaGetDeviceCount(&count) == cudaSuccess && count == 1);
    cr_expect(cudaSetDevice(0) == cudaSuccess && cudaSetDevice(1) == cudaErrorInvalidDevice &&
              cudaSetDevice(-1) == cudaErrorInvalidDevice);
    cr_expect(cudaGetDeviceProperties(&properties, 0) == cudaSuccess && properties.major == 9 &&
              properties.sharedMemPerBlockOptin == 227 << 10);
    emulator_devices(0);
    cr_expect(cudaGetDeviceCount(&count) == cudaErrorNoDevice && count == 0);
    cr_expect(cudaMalloc(&pointer, 1) == cudaErrorNoDevice && !pointer);
    cr_expect(launch(nothing, 1, 1, 0) == cudaErrorNoDevice);
    cr_expect(cudaSetDevice(0) == cudaErrorNoDevice);
    emulator_devices(-1);
    count = -1;
    cr_expect(cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver && count == 0);
    cr_expect(cudaStreamSynchronize(nullptr) == cudaErrorInsufficientDriver);
    emulator_reset();
    cr_expect(launch(nothing, 1, 1, 0) == cudaSuccess);
}

Test(emulator, two_devices)
{
    int device = -1;
    char *memory = nullptr;
    cudaPointerAttributes at;
    emulator_devices(2);
    cr_expect(cudaSetDevice(1) == cudaSuccess && cudaMalloc(&memory, 10) == cudaSuccess);
    cr_expect(cudaSetDevice(2) == cudaErrorInvalidDevice);
    cr_expect(cudaGetDevice(&device) == cudaSuccess && device == 1);
    cr_expect(cudaSetDevice(0) == cudaSuccess);
    cr_expect(cudaPointerGetAttributes(&at, memory + 9) == cudaSuccess && at.device == 1);
    cr_expect(cudaFree(memory) == cudaSuccess);
}

Test(emulator, memory)
{
    char *first = nullptr, *second = nullptr, *none = nullptr, host[100] = {0};
    cudaPointerAttributes at;
    size_t available, total;
    emulator_memory(1000);
    cr_expect(cudaMalloc(&none, 0) == cudaSuccess && !none);
    cr_expect(cudaMalloc(&first, 600) == cudaSuccess && (uintptr_t)first % 256 == 0);
    cr_expect(cudaMalloc(&none, 401) == cudaErrorMemoryAllocation && !none);
    cr_expect(cudaMalloc(&none, SIZE_MAX) == cudaErrorMemoryAllocation && !none);
    cr_expect(cudaMalloc(&second, 400) == cudaSuccess);
    cr_expect(cudaMemGetInfo(&available, &total) == cudaSuccess && available == 0 && total == 1000);
    cr_expect(cudaPointerGetAttributes(&at, first + 599) == cudaSuccess &&
              at.type == cudaMemoryTypeDevice);
    cr_expect(cudaPointerGetAttributes(&at, host) == cudaSuccess &&
              at.type == cudaMemoryTypeUnregistered);
    cr_expect(cudaPointerGetAttributes(&at, first + 600) == cudaSuccess &&
              at.type == cudaMemoryTypeUnregistered);
    cr_expect(cudaMemset(first, 3, 600) == cudaSuccess &&
              cudaMemset(first + 1, 3, 600) == cudaErrorInvalidValue);
    static const struct {
        int to, from; /* 0: first, 1: second, 2: host */
        size_t size;
        enum cudaMemcpyKind kind;
        cudaError_t want;
    } copies[] = {
        {2, 0, 100, cudaMemcpyDeviceToHost, cudaSuccess},
        {2, 0, 100, cudaMemcpyDefault, cudaSuccess},
        {2, 0, 100, cudaMemcpyHostToDevice, cudaErrorInvalidValue},
        {0, 2, 100, cudaMemcpyDeviceToHost, cudaErrorInvalidValue},
        {0, 2, 100, cudaMemcpyHostToDevice, cudaSuccess},
        {0, 1, 400, cudaMemcpyDeviceToDevice, cudaSuccess},
        {0, 1, 401, cudaMemcpyDeviceToDevice, cudaErrorInvalidValue},
        {0, 2, 100, cudaMemcpyDeviceToDevice, cudaErrorInvalidValue},
    };
    char *places[] = {first, second, host};
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        cudaError_t got = cudaMemcpyAsync(places[copies[i].to], places[copies[i].from],
                                          copies[i].size, copies[i].kind);
        cr_expect(got == copies[i].want, "%zu: %s", i, cudaGetErrorName(got));
    }
    cr_expect(host[99] == 3);
    cr_expect(cudaFree(first + 1) == cudaErrorInvalidValue && cudaFree(nullptr) == cudaSuccess);
    cr_expect(cudaFree(first) == cudaSuccess && cudaFree(second) == cudaSuccess);
    cr_expect(cudaFree(second) == cudaErrorInvalidValue, "freed twice");
    cr_expect(cudaPointerGetAttributes(&at, first) == cudaSuccess &&
              at.type == cudaMemoryTypeUnregistered);
}

Test(emulator, rows_of_memory)
{
    device_array<char> all(std::vector<char>(40, 0));
    char host[12] = {0};
    cr_expect(cudaMemset2DAsync(all.data, 10, 5, 3, 4) == cudaSuccess);
    cr_expect(cudaMemset2D(all.data, 10, 5, 11, 2) == cudaErrorInvalidValue);
    cr_expect(cudaMemset2D(all.data + 8, 10, 5, 3, 4) == cudaErrorInvalidValue);
    std::vector<char> got = all.host();
    for (size_t i = 0; i < 40; i++)
        cr_expect(got[i] == (i % 10 < 3 ? 5 : 0), "%zu", i);
    cr_expect(cudaMemcpy2DAsync(host, 3, all.data + 2, 10, 2, 4, cudaMemcpyDeviceToHost) ==
              cudaSuccess);
    for (size_t i = 0; i < 12; i++)
        cr_expect(host[i] == (i % 3 == 0 ? 5 : 0), "%zu", i);
    cr_expect(cudaMemcpy2D(host, 3, all.data + 9, 10, 2, 4, cudaMemcpyDeviceToHost) ==
              cudaErrorInvalidValue);
}

Test(emulator, faults)
{
    char *pointer = nullptr;
    emulator_fail_allocation(2);
    for (int i = 1; i <= 3; i++) {
        cr_expect(cudaMalloc(&pointer, 1) == (i == 2 ? cudaErrorMemoryAllocation : cudaSuccess));
        cr_expect(cudaFree(pointer) == cudaSuccess, "memory that runs out breaks nothing else");
    }
    emulator_fail_launch(3);
    cr_expect(launch(nothing, 1, 1, 0) == cudaSuccess);
    cr_expect(launch(nothing, 1, 1025, 0) == cudaErrorInvalidConfiguration);
    cr_expect(launch(nothing, 1, 1, 0) == cudaSuccess);
    cr_expect(launch(nothing, 1, 1, 0) == cudaErrorLaunchFailure);
    cr_expect(launch(nothing, 1, 1, 0) == cudaErrorLaunchFailure);
    cr_expect(cudaMalloc(&pointer, 1) == cudaErrorLaunchFailure);
    cr_expect(cudaStreamSynchronize(nullptr) == cudaErrorLaunchFailure);
}

Test(emulator, counts)
{
    char *pointer = nullptr;
    cudaStream_t stream;
    cudaEvent_t start, end;
    float milliseconds = -1;
    emulator_reset();
    cr_assert(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    cr_assert(cudaEventCreate(&start) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess);
    cr_expect(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorInvalidResourceHandle);
    cr_expect(cudaMalloc(&pointer, 10) == cudaSuccess && emulator_counted().live == 10);
    cr_expect(cudaEventRecord(start, stream) == cudaSuccess);
    cr_expect(emulator_launch(nothing, 2, 2, 0, stream) == cudaSuccess);
    cr_expect(cudaMemsetAsync(pointer, 0, 10, stream) == cudaSuccess);
    cr_expect(cudaEventRecord(end, stream) == cudaSuccess);
    emulator_counts counts = emulator_counted();
    cr_expect(counts.launches == 1 && counts.allocations == 1 && counts.synchronisations == 0);
    cr_expect(cudaEventSynchronize(end) == cudaSuccess &&
              cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess && milliseconds >= 0);
    cr_expect(cudaStreamWaitEvent(stream, end) == cudaSuccess);
    cr_expect(cudaStreamSynchronize(stream) == cudaSuccess);
    cr_expect(cudaFree(pointer) == cudaSuccess);
    counts = emulator_counted();
    cr_expect(counts.frees == 1 && counts.live == 0 && counts.peak == 10 &&
              counts.synchronisations == 2);
    cudaEventDestroy(start);
    cudaEventDestroy(end);
    cudaStreamDestroy(stream);
}

/* ---- Arithmetic ---- */

static __global__ void atomics(int *out)
{
    int thread = (int)threadIdx.x;
    atomicAdd(&out[0], thread);
    atomicMax(&out[1], thread);
    atomicMin(&out[2], -thread);
    atomicOr((unsigned *)&out[3], 1u << thread);
    atomicCAS(&out[4], 0, thread + 1);
    atomicExch(&out[5], 9);
}

Test(emulator, atomic_operations)
{
    device_array<int> out(std::vector<int>(6, 0));
    set_order("backward");
    cr_assert(launch(atomics, 1, 32, 0, out.data) == cudaSuccess);
    const int want[] = {496, 31, -31, -1, 32, 9};
    for (size_t i = 0; i < 6; i++)
        cr_expect(out.host()[i] == want[i], "%zu", i);
}
