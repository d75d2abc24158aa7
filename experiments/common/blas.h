/* SPDX-License-Identifier: BSD-3-Clause */
/* The BLAS and LAPACK of this process. A build for any library with BLAS's C interface (option
 * blas) uses the libraries that the system chooses when the program starts. */
#ifndef EXPERIMENTS_BLAS_H
#define EXPERIMENTS_BLAS_H

typedef struct {
    const char *config;   /* OpenBLAS's description of itself; for another library its file */
    const char *core;     /* the processor that OpenBLAS has chosen kernels for; null for others */
    const char *parallel; /* how OpenBLAS makes threads; null for others */
    int threads;          /* of OpenBLAS; 0 for others */
    const char *file;     /* the file that has the matrix products */
    const char *lapack_file; /* the file that has the eigenvalue routines */
} blas_description;

/* The texts stay until the next call. */
blas_description blas_describe(void);

/* attnum uses its own threads; BLAS's would compete with them and change bits. Must be called
 * before any BLAS function. */
void blas_on_one_thread(void);

#endif
