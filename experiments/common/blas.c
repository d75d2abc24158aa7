/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* dladdr, RTLD_DEFAULT */
#include "blas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int integer_function(void);
typedef char *text_function(void);
typedef void set_function(int);

/* Finds a function by name in the libraries of this process; null if none has it. In C what dlsym
 * returns cannot be cast to a function pointer. */
#define FIND(function, name)                                                                       \
    do {                                                                                           \
        void *found_ = dlsym(RTLD_DEFAULT, name);                                                  \
        memcpy(&(function), &found_, sizeof found_);                                               \
    } while (0)

static const char *file_of(void *address, char path[PATH_MAX])
{
    Dl_info info;
    return address && dladdr(address, &info) && realpath(info.dli_fname, path) ? path : "unknown";
}

static bool same_folder(const char *a, const char *b)
{
    const char *end_a = strrchr(a, '/'), *end_b = strrchr(b, '/');
    return end_a && end_b && end_a - a == end_b - b && memcmp(a, b, (size_t)(end_a - a)) == 0;
}

blas_description blas_describe(void)
{
    static const char *const kinds[] = {"none", "pthreads", "OpenMP"};
    static char blas_path[PATH_MAX], lapack_path[PATH_MAX];
    char openblas_path[PATH_MAX];
    text_function *config, *core;
    integer_function *parallel, *threads;
    blas_description d = {
        .file = file_of((void *)(uintptr_t)cblas_ddot, blas_path),
        .lapack_file = file_of(dlsym(RTLD_DEFAULT, "dsyevd_"), lapack_path),
    };
    d.config = d.file;
    FIND(config, "openblas_get_config");
    FIND(core, "openblas_get_corename");
    FIND(parallel, "openblas_get_parallel");
    FIND(threads, "openblas_get_num_threads");
    if (!config || !core || !parallel || !threads)
        return d;
    /* OpenBLAS may be loaded for its LAPACK alone: Debian installs two files of it in one folder.
     */
    if (!same_folder(d.file, file_of((void *)(uintptr_t)config, openblas_path)))
        return d;
    int kind = parallel();
    d.config = config();
    d.core = core();
    d.parallel = kind >= 0 && kind < 3 ? kinds[kind] : NULL;
    d.threads = threads();
    return d;
}

void blas_on_one_thread(void)
{
    set_function *set;
    FIND(set, "openblas_set_num_threads");
    if (set)
        set(1);
    setenv("BLIS_NUM_THREADS", "1", 1); /* BLIS reads it in its first call */
}
