/* SPDX-License-Identifier: BSD-3-Clause */
/* The BLAS and LAPACK that this process has. A build for any library with BLAS's C interface
 * (option blas) uses the libraries that the system chooses when the program starts, so that they
 * are known only then. */
#ifndef EXPERIMENTS_BLAS_H
#define EXPERIMENTS_BLAS_H

typedef struct {
    const char *config;   /* OpenBLAS's description of itself; of another library its file */
    const char *core;     /* the processor that OpenBLAS has chosen kernels for; null of others */
    const char *parallel; /* how OpenBLAS makes threads; null of others */
    int threads;          /* of OpenBLAS; 0 of others */
    const char *file;     /* where the products are */
    const char *lapack_file; /* where the eigenvalues are */
} blas_description;

/* The texts stay until the next call. */
blas_description blas_describe(void);

/* attnum's own threads do the work; BLAS's would compete with them and change bits. To be called
 * before any function of BLAS's. */
void blas_on_one_thread(void);

#endif
