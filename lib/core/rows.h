/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry's rows, each in the file of its operator. */
#ifndef CORE_ROWS_H
#define CORE_ROWS_H

#include "core/heads.h"

extern const operator_row core_soft;
extern const operator_row core_softpp;
extern const operator_row core_gaussian_attention;
extern const operator_row core_softmax;
extern const operator_row core_linformer;
extern const operator_row core_sima;
extern const operator_row core_xnorm;
extern const operator_row core_xca;
extern const operator_row core_efficient;
extern const operator_row core_nystromformer;
extern const operator_row core_performer;
extern const operator_row core_rff;
extern const operator_row core_elu;
extern const operator_row core_cosformer;
extern const operator_row core_lsh;

#endif
