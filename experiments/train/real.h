/* SPDX-License-Identifier: BSD-3-Clause */
/* Training in f32 and f64 from one source: crossnorm.c, layers.c and pass.c are compiled twice,
 * with REAL_F32 or REAL_F64 defined. A function has a name per type, R(name), to which the headers
 * define its plain name. What rows.c defines has a name per type and instruction set, R_IN(name,
 * set). A file that defines neither macro calls the functions of f32. */
#ifndef EXPERIMENTS_TRAIN_REAL_H
#define EXPERIMENTS_TRAIN_REAL_H

#if defined(REAL_F64)
typedef double real;
#define R(name)         name##_f64
#define R_IN(name, set) name##_f64_##set
#define REAL_DTYPE      ATN_F64
#define real_sqrt       sqrt
#else
typedef float real;
#define R(name)         name##_f32
#define R_IN(name, set) name##_f32_##set
#define REAL_DTYPE      ATN_F32
#define real_sqrt       sqrtf
#endif

#endif
