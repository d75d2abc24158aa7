/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs kernels: blocks one after the other, the threads of a block as fibers. A fiber runs until it
 * waits at a barrier or a warp collective or returns; then the next one does: of the block, or of
 * its warp until all of that wait at a barrier (EMULATOR_ORDER, emulator.h). */
#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <link.h>
#include <mutex>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

#include "internal.h"

uint3 threadIdx, blockIdx;
dim3 blockDim(0, 0, 0), gridDim(0, 0, 0);

/* ---- Fibers: a stack each and the registers a call preserves ---- */

enum { FIBERS = MOST_THREADS, PAGE = 64 << 10 /* a multiple of every page size in use */ };
#ifdef EMULATOR_ASAN
enum { STACK = 320 << 10 };
#else
enum { STACK = 128 << 10 };
#endif

#if defined __x86_64__ && !defined EMULATOR_UCONTEXT
/* Leaves the stack pointer in `from`, takes `to`'s stack and continues there. Inline and
 * without a return, because a processor predicts returns from the calls before: fibers that stand
 * at the same place then return to the same place. What a call preserves is on the stack, below
 * what a function may keep there unseen. */
__attribute__((always_inline)) static inline void emulator_switch(void **from, void *to)
{
    asm volatile("leaq -128(%%rsp), %%rsp\n\t"
                 "pushq %%rbp\n\t"
                 "leaq 1f(%%rip), %%rax\n\t"
                 "pushq %%rax\n\t"
                 "movq %%rsp, (%%rdi)\n\t"
                 "movq %%rsi, %%rsp\n\t"
                 "popq %%rax\n\t"
                 "jmpq *%%rax\n"
                 "1:\n\t"
                 "popq %%rbp\n\t"
                 "leaq 128(%%rsp), %%rsp"
                 : "+D"(from), "+S"(to)
                 :
                 : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                   "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}

/* The entry to go to, and a null return address for it. */
static void *first_frame(char *bottom, char *top, void (*entry)(void))
{
    void **frame = (void **)(void *)top - 2;
    frame[0] = (void *)entry;
    frame[1] = nullptr;
    return frame;
}
#else
/* The same by the C library, with a system call for each switch. */
static void emulator_switch(void **from, void *to)
{
    static ucontext_t scheduler; /* a fiber's is at the top of its stack */
    if (!*from)
        *from = &scheduler;
    swapcontext((ucontext_t *)*from, (ucontext_t *)to);
}

static void *first_frame(char *bottom, char *top, void (*entry)(void))
{
    ucontext_t *context = (ucontext_t *)(void *)top - 1;
    getcontext(context);
    context->uc_stack.ss_sp = bottom;
    context->uc_stack.ss_size = (size_t)((char *)context - bottom);
    context->uc_link = nullptr;
    makecontext(context, entry, 0);
    return context;
}
#endif

enum wait_kind { READY, AT_BARRIER, AT_WARP, EXITED };

struct fiber {
    void *stack_pointer; /* null: to be started */
    char *bottom;        /* of its stack */
    void *fake_stack;    /* ASan's */
    uint3 index;
    wait_kind waits;
    emulator_place place;
    bool vote;
    bool ordered; /* what it has stored is there for others when they go on */
    std::vector<std::pair<char *, char>> stores; /* bytes of shared memory that are not yet */
    /* of warp collectives */
    unsigned mask, ballot;
    const void *mine;
    void *taken;
    size_t size;
    int source;
};

struct pending_copy {
    char *to;
    const char *from;
    int bytes, group;
};

struct pending_copies {
    std::vector<pending_copy> waiting;
    int group;
};

/* Not static: the compiler must not conclude from this file's text which functions leave one of
 * these alone, because a switch lets other fibers run. */
namespace shared_state
{
fiber fibers[FIBERS];
fiber *current;
void *scheduler_pointer;
const void *scheduler_bottom; /* of the stack it runs on, for ASan */
size_t scheduler_size;
emulator_kernel kernel;
int threads;    /* of a block */
int living;     /* that have not returned */
int at_barrier; /* that wait there */
bool failed;    /* the kernel did something wrong, which was reported */
emulator_votes barrier_votes;
unsigned arrived[FIBERS / 32]; /* lanes of each warp that wait for a warp collective */
char *dynamic_shared;
size_t dynamic_size;
pending_copies copies[FIBERS];
uint64_t copy_state; /* of the random numbers that decide when a copy is made */
} // namespace shared_state
using namespace shared_state;

static void start_switch(void **fake_stack, const void *bottom, size_t size)
{
#ifdef EMULATOR_ASAN
    __sanitizer_start_switch_fiber(fake_stack, bottom, size);
#endif
}

static void finish_switch(void *fake_stack, const void **bottom, size_t *size)
{
#ifdef EMULATOR_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, bottom, size);
#endif
}

/* From a fiber back to the scheduler. */
__attribute__((always_inline)) static inline void suspend(void)
{
    fiber *me = current;
    start_switch(&me->fake_stack, scheduler_bottom, scheduler_size);
    emulator_switch(&me->stack_pointer, scheduler_pointer);
    finish_switch(me->fake_stack, &scheduler_bottom, &scheduler_size);
}

static void leave_block(void);

/* What a fiber runs: its thread of one block after the other. */
static void fiber_main(void)
{
    finish_switch(nullptr, &scheduler_bottom, &scheduler_size);
    for (;;) {
        kernel.call(kernel.parameters);
        leave_block();
        suspend();
    }
}

__attribute__((always_inline)) static inline void resume(fiber *next)
{
    void *fake_stack = nullptr;
    current = next;
    threadIdx = next->index;
    start_switch(&fake_stack, next->bottom, STACK);
    emulator_switch(&scheduler_pointer, next->stack_pointer);
    finish_switch(fake_stack, nullptr, nullptr);
}

/* Stacks lie one after the other, each above pages on which a kernel that needs more faults. Where
 * they begin varies, so that all do not share cache lines. */
static bool ready_fibers(int count)
{
    static char *stacks;
    const size_t each = PAGE + STACK;
    if (!stacks) {
        void *memory = mmap(nullptr, FIBERS * each, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return false;
        stacks = (char *)memory;
    }
    for (int i = 0; i < count; i++) {
        fiber *it = &fibers[i];
        if (!it->bottom) {
            char *bottom = stacks + (size_t)i * each + PAGE;
            if (mprotect(bottom, STACK, PROT_READ | PROT_WRITE) != 0)
                return false;
            it->bottom = bottom;
        }
        if (!it->stack_pointer)
            it->stack_pointer =
                first_frame(it->bottom, it->bottom + STACK - i % 128 * 512, fiber_main);
    }
    return true;
}

/* Fibers in the middle of a failed kernel are started anew next time. */
static void abandon_fibers(int count)
{
    for (int i = 0; i < count; i++) {
        if (fibers[i].waits == EXITED)
            continue;
        fibers[i].stack_pointer = nullptr;
        __asan_unpoison_memory_region(fibers[i].bottom, STACK);
    }
}

/* ---- Order: i -> first + i step mod count, with step and count coprime ---- */

struct order {
    uint64_t count, next, step;
};

static uint64_t random_state; /* 0: not shuffled */
static bool backward, warp_by_warp;

static uint64_t random_below(uint64_t *state, uint64_t count) /* splitmix64 */
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % count;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static order order_of(uint64_t count)
{
    if (backward)
        return {count, count - 1, count - 1};
    if (!random_state || count == 1)
        return {count, 0, 1 % count};
    order shuffled = {count, random_below(&random_state, count), 0};
    do
        shuffled.step = random_below(&random_state, count);
    while (common_divisor(shuffled.step, count) != 1);
    return shuffled;
}

static uint64_t next_of(order *it)
{
    uint64_t now = it->next;
    it->next =
        it->next >= it->count - it->step ? it->next - (it->count - it->step) : it->next + it->step;
    return now;
}

static void read_order(void)
{
    static const char by_warp[] = "warp-";
    const char *whole = std::getenv("EMULATOR_ORDER"), *text = whole ? whole : "forward";
    unsigned long long seed = 0;
    char rest;
    warp_by_warp = std::strncmp(text, by_warp, sizeof by_warp - 1) == 0;
    text += warp_by_warp ? sizeof by_warp - 1 : 0;
    backward = std::strcmp(text, "backward") == 0;
    random_state = 0;
    if (backward || std::strcmp(text, "forward") == 0)
        return;
    if (std::sscanf(text, "shuffle:%llu%c", &seed, &rest) != 1) {
        std::fprintf(stderr,
                     "EMULATOR_ORDER=%s: expected forward, backward or shuffle:SEED, or one of "
                     "these after warp-\n",
                     whole);
        std::abort();
    }
    random_state = (uint64_t)seed * 2 + 1;
}

/* ---- A block ---- */

static void report(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void report(const char *format, ...)
{
    va_list arguments;
    std::fprintf(stderr, "emulator: block (%u, %u, %u): ", blockIdx.x, blockIdx.y, blockIdx.z);
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fputc('\n', stderr);
    failed = true;
}

/* Literals, which are one and the same almost always. */
static bool same_text(const char *a, const char *b)
{
    return a == b || std::strcmp(a, b) == 0;
}

static bool same_wait(const fiber *a, const fiber *b)
{
    if (a->waits != b->waits || a->waits == EXITED)
        return a->waits == b->waits;
    return a->place.line == b->place.line && same_text(a->place.what, b->place.what) &&
           same_text(a->place.file, b->place.file) &&
           (a->waits == AT_BARRIER || a->mask == b->mask);
}

/* The positions of the threads, with those that wait for the same thing in one line. */
static void report_waits(const char *what)
{
    report("%s", what);
    for (int i = 0; i < threads; i++) {
        const fiber *it = &fibers[i];
        int count = 0, before = 0;
        for (int j = 0; j < threads; j++) {
            count += same_wait(it, &fibers[j]);
            before += j < i && same_wait(it, &fibers[j]);
        }
        if (before > 0)
            continue;
        std::fprintf(stderr, "    %d of %d threads, the first is %d: ", count, threads, i);
        if (it->waits == READY)
            std::fprintf(stderr, "on their way\n");
        else if (it->waits == EXITED)
            std::fprintf(stderr, "returned\n");
        else if (it->waits == AT_BARRIER)
            std::fprintf(stderr, "%s at %s:%d\n", it->place.what, it->place.file, it->place.line);
        else
            std::fprintf(stderr, "%s at %s:%d, mask %#x\n", it->place.what, it->place.file,
                         it->place.line, it->mask);
    }
}

/* When all threads that have not returned are at a barrier, and at one and the same, they go on. */
static void release_barrier(void)
{
    const fiber *first = nullptr;
    if (at_barrier < living || living == 0)
        return;
    barrier_votes = {0, 0};
    for (int i = 0; i < threads; i++) {
        if (fibers[i].waits == EXITED)
            continue;
        if (first && !same_wait(first, &fibers[i])) {
            report_waits("its threads wait at different barriers");
            return;
        }
        first = &fibers[i];
        barrier_votes.yes += fibers[i].vote;
        barrier_votes.all++;
    }
    for (int i = 0; i < threads; i++)
        if (fibers[i].waits == AT_BARRIER)
            fibers[i].waits = READY;
    at_barrier = 0;
}

static bool copies_left(const fiber *of);

static void leave_block(void)
{
    if (copies_left(current) && !failed)
        report("thread %d returns before its copies into shared memory are made",
               (int)(current - fibers));
    current->waits = EXITED;
    living--;
    release_barrier();
}

emulator_votes emulator_barrier(emulator_place here, bool vote)
{
    current->waits = AT_BARRIER;
    current->place = here;
    current->vote = vote;
    at_barrier++;
    release_barrier();
    suspend();
    return barrier_votes;
}

/* Gives lane `me` what it takes from the others of its mask. */
static void exchange(fiber *warp, fiber *me, unsigned ballot)
{
    me->ballot = ballot;
    if (me->source == EMULATOR_ALL_LANES) {
        for (int i = 0; i < 32; i++)
            ((const void **)me->taken)[i] = warp[i].mine;
    } else if (me->source != EMULATOR_NO_LANE) {
        if (me->mask >> me->source & 1)
            std::memcpy(me->taken, warp[me->source].mine, me->size);
        else
            std::memset(me->taken, 0xff, me->size);
    }
}

/* When all lanes of a mask are at one warp collective they go on. */
static void release_warp(int first, const fiber *me)
{
    fiber *warp = &fibers[first];
    unsigned mask = me->mask, ballot = 0;
    if ((arrived[first / 32] & mask) != mask)
        return;
    for (int i = 0; i < 32; i++) {
        if (!(mask >> i & 1))
            continue;
        if (!same_wait(me, &warp[i])) /* of another mask, which may have to come first */
            return;
        ballot |= (unsigned)warp[i].vote << i;
    }
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1)
            exchange(warp, &warp[i], ballot);
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1)
            warp[i].waits = READY;
    arrived[first / 32] &= ~mask;
}

unsigned emulator_warp(emulator_place here, unsigned mask, bool vote, const void *mine, size_t size,
                       int source, void *taken, bool ordered)
{
    int thread = (int)(current - fibers), lane = thread % 32;
    current->waits = AT_WARP;
    current->place = here;
    current->vote = vote;
    current->mask = mask;
    current->mine = mine;
    current->size = size;
    current->source = source;
    current->taken = taken;
    current->ordered = ordered;
    arrived[thread / 32] |= 1u << lane;
    release_warp(thread - lane, current);
    suspend();
    return current->ballot;
}

void *emulator_shared(void)
{
    return dynamic_shared;
}

static bool in_shared(const void *place, size_t size)
{
    const char *p = (const char *)place;
    const struct {
        const char *start;
        size_t size;
    } areas[] = {{dynamic_shared, dynamic_size},
                 {kernel.shared, (size_t)(kernel.shared_end - kernel.shared)}};
    for (const auto &area : areas)
        if (area.start && p >= area.start && (size_t)(p - area.start) <= area.size &&
            size <= area.size - (size_t)(p - area.start))
            return true;
    return false;
}

const void *emulator_shared_row(const void *row)
{
    static const char nowhere[16] = {0};
    bool right = (uintptr_t)row % 16 == 0 && in_shared(row, 16);
    if (!right && !failed)
        report("thread %d loads a row of a matrix from %p: not 16 aligned bytes of shared memory",
               (int)(current - fibers), row);
    return right ? row : nowhere;
}

/* The thread goes no further, because the processor may fault. */
void emulator_check_aligned(const void *memory, size_t alignment)
{
    if ((uintptr_t)memory % alignment == 0 || failed)
        return;
    report("thread %d has a vector of %zu bytes at %p", (int)(current - fibers), alignment, memory);
    suspend();
}

/* ---- Copies that run on ---- */

static void make_copy(const pending_copy &c)
{
    std::memset(c.to, 0, 16);
    if (c.bytes > 0)
        std::memcpy(c.to, c.from, (size_t)c.bytes);
}

void emulator_copy(void *to, const void *from, int bytes)
{
    pending_copies *mine = &copies[current - fibers];
    pending_copy copy = {(char *)to, (const char *)from, bytes, mine->group};
    const char *wrong = nullptr;
    if (((uintptr_t)to | (uintptr_t)from) % 16 != 0)
        wrong = "its addresses are not multiples of 16";
    else if (bytes < 0 || bytes > 16)
        wrong = "it is not of 0 to 16 bytes";
    else if (!in_shared(to, 16))
        wrong = "it goes to other than the block's shared memory";
    else if (!emulator_on_device(from, (size_t)bytes))
        wrong = "it comes from other than the device's memory";
    if (wrong && !failed)
        report("thread %d copies %d bytes from %p to %p: %s", (int)(current - fibers), bytes, from,
               to, wrong);
    if (wrong)
        return;
    if (random_below(&copy_state, 2))
        make_copy(copy);
    else
        mine->waiting.push_back(copy);
}

static bool copies_left(const fiber *of)
{
    return !copies[of - fibers].waiting.empty();
}

void emulator_copy_group(void)
{
    copies[current - fibers].group++;
}

void emulator_copy_wait(int groups)
{
    pending_copies *mine = &copies[current - fibers];
    size_t left = 0;
    for (const pending_copy &copy : mine->waiting)
        if (copy.group < mine->group - groups)
            make_copy(copy);
        else
            mine->waiting[left++] = copy;
    mine->waiting.resize(left);
}

#ifndef EMULATOR_ASAN
/* Where the kernel's program has its thread-local memory: its __shared__ variables. */
static int find_variables(struct dl_phdr_info *info, size_t size, void *unused)
{
    uintptr_t code = (uintptr_t)kernel.address;
    size_t bytes = 0;
    bool here = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const auto *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        here |= part->p_type == PT_LOAD && code >= start && code - start < part->p_memsz;
        bytes = part->p_type == PT_TLS ? part->p_memsz : bytes;
    }
    if (here && info->dlpi_tls_data) {
        kernel.shared = (char *)info->dlpi_tls_data;
        kernel.shared_end = kernel.shared + bytes;
    }
    return here;
}
#endif

/* Under ASan byte by byte, unseen by it: between the variables is what must not be touched. */
__attribute__((no_sanitize("address"))) static void poison_variables(void)
{
#ifdef EMULATOR_ASAN
    for (volatile char *byte = kernel.shared; byte < kernel.shared_end; byte++)
        *byte = (char)0xff;
#else
    std::memset(kernel.shared, 0xff, (size_t)(kernel.shared_end - kernel.shared));
#endif
}

/* How many bytes of variables a block has written, in words: what the kernel has at least. */
static size_t written_variables(void)
{
    size_t bytes = 0;
#ifndef EMULATOR_ASAN
    for (const char *at = kernel.shared; at + 8 <= kernel.shared_end; at += 8) {
        uint64_t word;
        std::memcpy(&word, at, sizeof word);
        bytes += word != UINT64_MAX ? sizeof word : 0;
    }
#endif
    return bytes;
}

/* ---- Stores that others see late: a shuffle, a vote or a matrix product orders no memory ---- */

static bool late_stores;
static std::vector<char>
    as_stored; /* shared memory as the threads see it that have not stored late */

static void read_stores(void)
{
    const char *text = std::getenv("EMULATOR_STORES");
    late_stores = text && std::strcmp(text, "late") == 0;
    if (text && !late_stores && std::strcmp(text, "at once") != 0) {
        std::fprintf(stderr, "EMULATOR_STORES=%s: expected 'late' or 'at once'\n", text);
        std::abort();
    }
}

/* The block's shared memory, but for variables under ASan, between which nothing must be touched.
 */
struct shared_area {
    char *start;
    size_t size;
};

static std::array<shared_area, 2> shared_areas(void)
{
#ifdef EMULATOR_ASAN
    return {{{dynamic_shared, dynamic_size}, {nullptr, 0}}};
#else
    return {{{dynamic_shared, dynamic_size},
             {kernel.shared, (size_t)(kernel.shared_end - kernel.shared)}}};
#endif
}

/* f(what has changed since the last time, up to 4096 bytes, what it was, how many). */
template <class F> static void each_change(F f)
{
    const size_t most = 4096;
    char *before = as_stored.data();
    for (const shared_area &area : shared_areas())
        for (size_t i = 0; i < area.size; i += most) {
            size_t size = std::min(most, area.size - i);
            if (std::memcmp(area.start + i, before, size) != 0)
                f(area.start + i, before, size);
            before += size;
        }
}

static void start_stores(void)
{
    size_t size = 0;
    for (const shared_area &area : shared_areas())
        size += area.size;
    as_stored.assign(size, 0);
    each_change([](char *now, char *before, size_t count) { std::memcpy(before, now, count); });
}

/* Resumes a thread, which sees what it has stored itself. */
static void resume_late(fiber *it)
{
    for (const auto &store : it->stores)
        *store.first = store.second;
    it->stores.clear();
    resume(it);
    bool held = it->waits == AT_WARP && !it->ordered;
    each_change([=](char *now, char *before, size_t count) {
        for (size_t i = 0; i < count; i++) {
            if (held && now[i] != before[i])
                it->stores.push_back({now + i, now[i]});
            (held ? now : before)[i] = (held ? before : now)[i];
        }
    });
}

static void start_block(size_t shared)
{
    living = threads;
    at_barrier = 0;
    std::memset(arrived, 0, sizeof arrived);
    for (int i = 0; i < threads; i++) {
        fibers[i].waits = READY;
        fibers[i].stores.clear();
        copies[i].waiting.clear();
        copies[i].group = 0;
    }
    if (shared > 0)
        std::memset(dynamic_shared, 0xff, shared);
    poison_variables();
    if (late_stores)
        start_stores();
}

/* Each of `count` threads from `first` on until it waits; whether any could run. */
static bool sweep(int first, int count)
{
    order pass = order_of((uint64_t)count);
    bool ran = false;
    for (int i = 0; i < count && !failed; i++) {
        fiber *it = &fibers[first + (int)next_of(&pass)];
        if (it->waits == READY) {
            ran = true;
            late_stores ? resume_late(it) : resume(it);
        }
    }
    return ran;
}

/* Each warp as far as it can go without the others. */
static bool sweep_warps(void)
{
    order pass = order_of((uint64_t)(threads + 31) / 32);
    bool ran = false;
    for (uint64_t i = 0; i < pass.count; i++) {
        int first = 32 * (int)next_of(&pass);
        while (sweep(first, threads - first < 32 ? threads - first : 32))
            ran = true;
    }
    return ran;
}

static void run_block(size_t shared)
{
    start_block(shared);
    while (living > 0 && !failed)
        if (!(warp_by_warp ? sweep_warps() : sweep(0, threads)))
            report_waits("its threads wait for each other");
    if (!failed && !emulator_shared_known(kernel.address) &&
        !emulator_shared_fits(kernel.address, written_variables(), shared))
        report(
            "%zu bytes of dynamic shared memory and its variables are more than a block may have",
            shared);
    if (failed)
        abandon_fibers(threads);
}

static void set_threads(dim3 block)
{
    threads = (int)(block.x * block.y * block.z);
    for (int i = 0; i < threads; i++) {
        unsigned at = (unsigned)i;
        fibers[i].index = {at % block.x, at / block.x % block.y, at / block.x / block.y};
    }
}

/* The most threads of a block that a kernel is for: the length of the gap before it, if the last
 * gap that begins before it reaches it. Other processors' empty instructions are longer. */
static unsigned launch_bound(const emulator_kernel &of)
{
    const char *code = (const char *)of.address, *gap = nullptr;
    for (const char *const *it = of.bounds; it < of.bounds_end; it++)
        if (*it < code && (!gap || *it > gap))
            gap = *it;
#ifdef __x86_64__
    if (gap && std::all_of(gap, code, [](char byte) { return byte == '\x90'; }))
        return (unsigned)(code - gap);
#endif
    return MOST_THREADS;
}

static cudaError_t run_grid(dim3 grid, dim3 block, size_t shared)
{
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    set_threads(block);
    /* Exactly as large as asked for: ASan sees what lies beyond. */
    dynamic_shared = shared > 0 ? (char *)std::malloc(shared) : nullptr;
    dynamic_size = shared;
    copy_state = 0;
    if (!ready_fibers(threads) || (shared > 0 && !dynamic_shared))
        return cudaErrorMemoryAllocation;
    failed = false;
    gridDim = grid;
    blockDim = block;
    read_order();
    read_stores();
    order pass = order_of(blocks);
    for (uint64_t i = 0; i < blocks && !failed; i++) {
        uint64_t at = next_of(&pass);
        blockIdx = {(unsigned)(at % grid.x), (unsigned)(at / grid.x % grid.y),
                    (unsigned)(at / grid.x / grid.y)};
        run_block(shared);
    }
    std::free(dynamic_shared);
    dynamic_shared = nullptr;
    return failed ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t emulator_run(emulator_kernel run, dim3 grid, dim3 block, size_t shared,
                         cudaStream_t stream)
{
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> hold(one_at_a_time);
    cudaError_t error = emulator_check_stream(stream);
    if (error == cudaSuccess)
        error = emulator_admit(run.address, launch_bound(run), grid, block, shared);
    if (error != cudaSuccess)
        return emulator_fail(error);
    emulator_enqueued(stream);
    emulator_access access;
    kernel = run;
#ifndef EMULATOR_ASAN
    dl_iterate_phdr(find_variables, nullptr);
#endif
    error = run_grid(grid, block, shared);
    return error == cudaSuccess ? error : emulator_fail(error);
}
