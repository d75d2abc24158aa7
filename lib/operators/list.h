/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators, in the order of atn_operator: X(code, name, family). `name` is the folder, which
 * holds plan.c (what every device shares: checks, counts, the row of the registry), cpu.c, perhaps
 * cpu_bf16.c, and cuda.cu; the family is how it is planned and run (operator.h). The registry, the
 * tables of both devices and of the references, and the list of sources (lib/meson.build reads this
 * file) are made from this list. */
#ifndef OPERATORS_LIST_H
#define OPERATORS_LIST_H

#define OPERATOR_LIST(X)                                                                           \
    X(ATN_SOFT, soft, SOFT)                                                                        \
    X(ATN_SOFTPP, softpp, SOFT)                                                                    \
    X(ATN_GAUSSIAN, gaussian, HEADS)                                                               \
    X(ATN_SOFTMAX, softmax, HEADS)                                                                 \
    X(ATN_SIMA, sima, HEADS)                                                                       \
    X(ATN_XNORM, xnorm, HEADS)                                                                     \
    X(ATN_LINFORMER, linformer, HEADS)                                                             \
    X(ATN_PERFORMER, performer, HEADS)                                                             \
    X(ATN_RFF, rff, HEADS)                                                                         \
    X(ATN_NYSTROMFORMER, nystromformer, HEADS)                                                     \
    X(ATN_XCA, xca, HEADS)                                                                         \
    X(ATN_EFFICIENT, efficient, HEADS)                                                             \
    X(ATN_ELU, elu, HEADS)                                                                         \
    X(ATN_COSFORMER, cosformer, HEADS)                                                             \
    X(ATN_LSH, lsh, HEADS)

#endif
