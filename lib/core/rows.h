/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry's rows, each in the file of its operator. */
#ifndef CORE_ROWS_H
#define CORE_ROWS_H

#include "core/heads.h"

extern const operator_row core_soft;
extern const operator_row core_softpp;
extern const operator_row core_gaussian_attention;
extern const operator_row core_nystromformer;
extern const operator_row core_lsh;

#endif
