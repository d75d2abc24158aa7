/* SPDX-License-Identifier: BSD-3-Clause */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "cost/resident.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/process.h"
#include "common/report.h"
#include "cost/calls.h"

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer) ||                             \
    HAS_FEATURE(memory_sanitizer)
enum { SANITISED = 1 };
#else
enum { SANITISED = 0 };
#endif

/* ---- Numbers from the kernel ---- */

static const char status_file[] = "/proc/self/status", clear_file[] = "/proc/self/clear_refs";
static const char rollup_file[] = "/proc/self/smaps_rollup";

/* A field "name: ... kB" of such a file, in bytes; -1 if there is none. Allocates nothing. */
static int64_t read_field(const char *path, const char *name)
{
    char text[8192];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *field = strstr(text, name);
    long kibibytes = -1;
    return field && sscanf(field + strlen(name), ": %ld", &kibibytes) == 1 ? kibibytes * 1024L : -1;
}

/* The resident memory now, from the page tables, and its peak since forget_peak, from counters per
 * CPU, which the kernel adds up with a delay. */
typedef struct {
    int64_t now, peak;
} residence;

static residence read_residence(void)
{
    return (residence){read_field(rollup_file, "Rss"), read_field(status_file, "VmHWM")};
}

static bool forget_peak(void)
{
    int file = open(clear_file, O_WRONLY | O_CLOEXEC);
    bool written = file >= 0 && write(file, "5", 1) == 1;
    if (file >= 0)
        close(file);
    return written;
}

const char *resident_obstacle(void)
{
    residence r = read_residence();
    if (SANITISED)
        return "sanitisers keep their own memory";
    if (r.now < 0 || r.peak < 0 || access(clear_file, W_OK) != 0)
        return "it takes Linux and /proc/self with status, smaps_rollup and clear_refs";
    return NULL;
}

/* A call frees nothing before its plan is freed, so the resident memory at its end is the peak. If
 * the counters' peak is higher by more than their error of 2 MiB, it is used instead. -1: one of
 * them could not be read. */
static int64_t growth(residence before, residence after)
{
    if (before.now < 0 || before.peak < 0 || after.now < 0 || after.peak < 0)
        return -1;
    int64_t grown = after.now > before.now ? after.now - before.now : 0;
    return after.peak - before.peak > grown + (2 << 20) ? after.peak - before.peak : grown;
}

/* ---- The call ---- */

double resident_io_bytes(const cost_setting *s, bool backward)
{
    double arrays = 0;
    for (int i = 0; i < CALL_ARRAYS; i++)
        arrays += call_has_array(s->op, i, backward);
    return arrays * (double)(s->heads * s->tokens * s->dim) * sizeof(float);
}

double resident_parameter_bytes(const cost_setting *s)
{
    return s->op == ATN_LINFORMER ? 12.0 * (double)(s->tokens * s->landmarks) : 0;
}

/* Runs a plan. An inverse that does not converge is no failure: its cost is the same. */
static atn_status run_plan(atn_plan *plan, prepared_call *call, bool backward)
{
    atn_status status = call_forward(plan, call);
    if (status >= 0 && status != ATN_NONFINITE && backward)
        status = call_backward(plan, call);
    return status;
}

/* Measures the growth from before the plan is made until just before it is freed. */
static atn_status run_call(atn_context *context, prepared_call *call, bool backward, int64_t *grown)
{
    atn_plan *plan;
    residence before = read_residence();
    atn_status status =
        atn_attention_plan(context, &call->problem.desc, &call->problem.shape, &plan);
    if (status == ATN_OK)
        status = run_plan(plan, call, backward);
    *grown = growth(before, read_residence());
    atn_plan_free(plan);
    return status;
}

/* ---- The process ---- */

/* Sent to the parent process. */
typedef struct {
    int64_t bytes;
    char failure[200]; /* "": none */
} report;

enum { HEADER = 64 }; /* the alignment that the library expects of its memory */

/* The library's memory comes from separate mappings, whose pages are new each time; malloc does not
 * promise that. The size is stored before the returned block. */
static void *map_memory(void *user, size_t bytes)
{
    size_t size = bytes + HEADER;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    memcpy(memory, &size, sizeof size);
    return memory + HEADER;
}

static void unmap_memory(void *user, void *memory)
{
    size_t size;
    memcpy(&size, (char *)memory - HEADER, sizeof size);
    munmap((char *)memory - HEADER, size);
}

/* Opens, runs and closes a call. False if it failed. */
static bool try_call(atn_context *context, const cost_setting *s, bool backward, report *r)
{
    prepared_call call;
    bool opened = call_open(s, backward, &call);
    bool forgotten = forget_peak() || resident_obstacle();
    atn_status status = opened ? run_call(context, &call, backward, &r->bytes) : ATN_ERR_MEMORY;
    call_close(&call);
    if (!opened || !forgotten)
        snprintf(r->failure, sizeof r->failure, "%s",
                 opened ? "the peak cannot be reset" : "no memory for the inputs");
    else if (status < 0 || status == ATN_NONFINITE)
        snprintf(r->failure, sizeof r->failure, "%s: %s", atn_status_message(status),
                 atn_last_error(context));
    else if (r->bytes < 0 && !resident_obstacle())
        snprintf(r->failure, sizeof r->failure, "the resident memory cannot be read");
    return r->failure[0] == '\0';
}

static void measure(const cost_setting *s, bool backward, report *r)
{
    cost_setting first = *s;
    atn_context *context;
    atn_context_options options = {
        .threads = 1, .allocator = {map_memory, unmap_memory, NULL}, .isa = s->isa};
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* a huge page is resident as a whole */
    if (atn_context_create(&options, &context) != ATN_OK) {
        snprintf(r->failure, sizeof r->failure, "no context");
        return;
    }
    first.heads = 1;
    first.tokens = s->tokens < PAPER_TOKENS ? s->tokens : PAPER_TOKENS;
    if (try_call(context, &first, backward, r))
        try_call(context, s, backward, r);
    atn_context_free(context);
}

/* The child ends by _exit: stdio's buffers and exit handlers belong to its parent. A library that
 * lacks memory calls exit all the same: what that writes goes nowhere, and the parent says why.
 * What a sanitiser says is kept. */
static _Noreturn void be_child(pid_t parent, const cost_setting *s, bool backward, int to)
{
    report r = {0};
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (!process_ends_with(parent) || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0 ||
        (!SANITISED && dup2(nowhere, STDERR_FILENO) < 0))
        _exit(1);
    close(nowhere);
    measure(s, backward, &r);
    _exit(write(to, &r, sizeof r) == sizeof r ? 0 : 1);
}

/* Returns the end of the pipe to read from, or -1. Only one thread at a time starts a child, so
 * that no child inherits the end that another child writes to. Neither the library nor BLAS is
 * running in this process: only malloc and stdio, which are safe over fork, may be in use. */
static int start_child(const cost_setting *s, bool backward, pid_t *child)
{
    int ends[2] = {-1, -1};
#pragma omp critical(start_child)
    if (pipe(ends) == 0) {
        pid_t parent = getpid();
        *child = fork();
        if (*child == 0)
            be_child(parent, s, backward, ends[1]);
        close(ends[1]);
        if (*child < 0) {
            close(ends[0]);
            ends[0] = -1;
        }
    }
    return ends[0];
}

static bool read_report(int from, report *r)
{
    size_t length = 0;
    ssize_t got;
    while ((got = read(from, (char *)r + length, sizeof *r - length)) > 0 ||
           (got < 0 && errno == EINTR))
        length += got > 0 ? (size_t)got : 0;
    return length == sizeof *r;
}

int resident_measure(const cost_setting *setting, bool backward, int64_t *bytes)
{
    char text[200];
    report r = {0};
    pid_t child = -1;
    int status = 0;
    cost_describe(setting, text, sizeof text);
    int from = start_child(setting, backward, &child);
    if (from < 0) {
        report_error("%s: no process to measure it in: %s", text, strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    bool told = read_report(from, &r);
    close(from);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!told)
        report_error("%s: the process that measures it ended early: %s %d", text,
                     WIFSIGNALED(status) ? "signal" : "exit code",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    else if (r.failure[0])
        report_error("%s: %s", text, r.failure);
    *bytes = r.bytes;
    return told && !r.failure[0] ? EXIT_PASS : EXIT_ENVIRONMENT;
}

/* ---- Limits ---- */

/* Pages that are not the plan's: three mappings, each up to a page longer than its content, and a
 * few pages of the stack and of the libraries' writable data. */
static const double resident_slack = 16 * 4096;

bool resident_fits(const cost_setting *s, bool backward, double workspace, int processes)
{
    double need = resident_io_bytes(s, backward) + workspace + resident_parameter_bytes(s);
    double share = process_available_memory() / processes;
    if (need < 0.9 * share)
        return true;
    char text[200];
    cost_describe(s, text, sizeof text);
    report_note("%s %s is not measured: it needs %.1f GiB, a thread's share is %.1f", text,
                call_mode_name(backward), need / 0x1p30, share / 0x1p30);
    return false;
}

int resident_check(const cost_setting *s, double workspace, int64_t bytes)
{
    if ((double)bytes <= workspace + resident_slack)
        return EXIT_PASS;
    report_error("%s: %" PRId64 " bytes resident for a workspace of %.17g",
                 atn_operator_get(s->op)->name, bytes, workspace);
    return EXIT_CHECK;
}
