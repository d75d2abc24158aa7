/* SPDX-License-Identifier: BSD-3-Clause */
#include "process.h"

#include <certified.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include <ref_memory.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"
#include "report.h"

/* ---- Memory of libraries ---- */

static void *allocate_json(size_t size)
{
    return must_allocate(size, 1);
}

/* All other errors of GSL are in its return values. */
static void end_for_gsl(const char *reason, const char *file, int line, int code)
{
    if (code == GSL_ENOMEM)
        end_program("out of memory: GSL");
}

/* ---- The end of the program ---- */

static bool ended;

/* The program itself never calls exit. libgomp and BLAS do, with code 1, without threads or
 * memory. */
static void end_for_library(void)
{
    if (!ended)
        end_program("ended by a library that lacks threads or memory");
}

static void end_by_signal(int number)
{
    new_files_remove();
    raise(number); /* delivered after the handler has returned, with the default action */
}

/* Signals that the caller ignores (nohup) stay ignored. */
static void handle_signal(int number)
{
    struct sigaction old, end = {.sa_handler = end_by_signal, .sa_flags = (int)SA_RESETHAND};
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(number, &end, NULL);
}

/* ---- The start of the program ---- */

/* Opens closed descriptors 0 to 2: otherwise output would go to the next file that is opened. */
static int open_descriptors(void)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", O_RDWR) != i)
            return EXIT_ENVIRONMENT; /* there may be no stderr to say so */
    return EXIT_PASS;
}

/* Threads get a stack of this size, too. */
static int check_stack(void)
{
    enum { LEAST_KIB = 512 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur / 1024 >= LEAST_KIB)
        return EXIT_PASS;
    report_error("the stack is limited to %llu KiB, expected at least %d (ulimit -s)",
                 (unsigned long long)limit.rlim_cur / 1024, LEAST_KIB);
    return EXIT_ENVIRONMENT;
}

int process_begin(void)
{
    if (open_descriptors() != EXIT_PASS)
        _Exit(EXIT_ENVIRONMENT);
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = allocate_json, .free_fn = free});
    gsl_set_error_handler(end_for_gsl);
    ref_memory(must_allocate, end_program);
    ref_certify_memory(must_allocate, must_resize);
    at_quick_exit(new_files_remove);
    atexit(end_for_library);
    handle_signal(SIGHUP);
    handle_signal(SIGINT);
    handle_signal(SIGTERM);
    handle_signal(SIGABRT);   /* LLVM's OpenMP runtime aborts if it lacks memory */
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is a write error like any other */
    return check_stack();
}

int process_end(int code)
{
    bool written = fflush(stdout) == 0 && !ferror(stdout);
    ended = true;
    if (written || code == EXIT_ENVIRONMENT || code == EXIT_USAGE) /* it has reported why */
        return code;
    report_error("standard output: cannot write");
    return EXIT_ENVIRONMENT;
}

/* ---- Other programs ---- */

bool process_ends_with(pid_t parent)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

/* Runs the program; called in the child process. */
static _Noreturn void become(char *const *argv, const char *folder, int to_stdout, int to_stderr)
{
    int nowhere = open("/dev/null", O_RDWR);
    if (nowhere >= 0 && (!folder || chdir(folder) == 0) && dup2(nowhere, STDIN_FILENO) >= 0 &&
        dup2(to_stdout >= 0 ? to_stdout : nowhere, STDOUT_FILENO) >= 0 &&
        (to_stderr < 0 || dup2(to_stderr, STDERR_FILENO) >= 0))
        execvp(argv[0], argv);
    _exit(PROCESS_NO_PROGRAM);
}

int process_run(char *const *argv, const char *folder, int to_stdout, int to_stderr,
                volatile int *running)
{
    int status = 0;
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old); /* until the handlers know the child's process id */
    pid_t parent = getpid(), child = fork();
    if (child > 0)
        *running = child;
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (child == 0) {
        if (!process_ends_with(parent))
            _exit(PROCESS_NO_PROGRAM);
        become(argv, folder, to_stdout, to_stderr);
    }
    if (child < 0)
        return PROCESS_NOT_ENDED;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return PROCESS_NOT_ENDED;
    *running = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : PROCESS_NOT_ENDED;
}

double process_available_memory(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[200];
    double kibibytes = INFINITY;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lf", &kibibytes) == 1)
            break;
    if (file)
        fclose(file);
    return kibibytes * 1024;
}
