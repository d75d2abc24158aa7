/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpu/blocks.h"
#include "cpu/heads.h"

#ifdef REAL_BF16
const cpu_table R(cpu_table) = {
    .soft_layout = R(soft_layout),
    .soft_forward = R(soft_forward),
    .heads_layout = R(heads_layout),
    .heads_forward = R(heads_forward),
};
#else
const cpu_table R(cpu_table) = {
    .gaussian_cross = R(gaussian_cross),
    .gaussian_self = R(gaussian_self),
    .gaussian_work = R(gaussian_work),
    .sample = R(sample),
    .sample_work = R(sample_work),
    .orthogonal_features = R(orthogonal_features),
    .orthogonal_work = R(orthogonal_work),
    .inverse_batch = R(inverse_batch),
    .inverse_apply = R(inverse_apply),
    .inverse_apply_work = R(inverse_apply_work),
    .inverse_work = R(inverse_work),
    .inverse_backward_batch = R(inverse_backward_batch),
    .inverse_backward_work = R(inverse_backward_work),
    .soft_open_layout = R(soft_open_layout),
    .soft_open = R(soft_open),
    .soft_layout = R(soft_layout),
    .soft_forward = R(soft_forward),
    .soft_backward = R(soft_backward),
    .heads_layout = R(heads_layout),
    .heads_forward = R(heads_forward),
    .heads_backward = R(heads_backward),
    .multiply_adds = R(multiply_adds),
    .exponentials = R(exponentials),
    .product = R(product),
};
#endif
