/* SPDX-License-Identifier: BSD-3-Clause */
/* The ledger: every statement of the four papers that a computation can test, the test, and the
 * verdict that follows from its numbers. `attnum claims` runs it.
 *
 * A claim is a row of a table in the file of its group, which is named after the group's first
 * statement (s01_kernel.c, m01_sima.c, ...; s22_growth.c and m02_half.c have judges only). Its
 * evidence consists of experiments, run by exactly the commands that the report prints, each in a
 * separate process (evidence.h); its judge reads their CSVs, computes everything else it needs with
 * lib and reference, and fills in a verdict. A judge contains no results: it must be able to reach
 * every verdict that the numbers could call for. */
#ifndef EXPERIMENTS_CLAIMS_CLAIMS_H
#define EXPERIMENTS_CLAIMS_CLAIMS_H

#include "claims/evidence.h"
#include "claims/verdict.h"
#include "common/verb.h"

enum { MAX_EVIDENCE = 5 };

/* X(code, name, reference): the papers. The name is the one in a claim's source. */
#define PAPER_LIST(X)                                                                              \
    X(PAPER_NEURIPS, "NeurIPS",                                                                    \
      "Lu et al., SOFT: Softmax-free Transformer with Linear Complexity, NeurIPS 2021")            \
    X(PAPER_IJCV, "IJCV", "Lu et al., Softmax-free Linear Transformers, IJCV 2024")                \
    X(PAPER_SIMA, "SimA",                                                                          \
      "Koohpayegani and Pirsiavash, SimA: Simple Softmax-free Attention for Vision Transformers, " \
      "anonymous submission; later WACV 2024, which may differ")                                   \
    X(PAPER_UFO_VIT, "UFO-ViT",                                                                    \
      "Song, UFO-ViT: High Performance Linear Vision Transformer without Softmax, 2021")

#define PAPER_ENTRY(code, name, reference) code,
typedef enum { PAPER_LIST(PAPER_ENTRY) PAPER_COUNT } claim_paper;
#undef PAPER_ENTRY

const char *paper_name(claim_paper p);
const char *paper_reference(claim_paper p);

typedef struct claim {
    const char *id;        /* "S22" */
    const char *source;    /* "IJCV Prop. 5" */
    const char *statement; /* the paper's statement, shortened */
    const char *method;    /* what is computed, on which inputs */
    /* The corrected or sharper statement, proved in `proof`, or "Observed: ..." if it
     * is no theorem; "" if the printed one needs no correction. */
    const char *corrected;
    const char *proof; /* a few lines of mathematics; "" for an observation */
    /* Names of evidence (evidence.c); null after the last. */
    const char *evidence[MAX_EVIDENCE + 1];
    /* Returns an exit code: EXIT_ENVIRONMENT, after a message, if no verdict is possible. */
    int (*judge)(const claim_run *run, verdict *v);
} claim;

/* The groups, in the order of the ledger: X(table, file, first, last). A table is in that file
 * here, has the statements from the first number to the last, and ends with a claim without id. */
#define CLAIM_GROUP_LIST(X)                                                                        \
    X(soft_kernel_claims, "s01_kernel.c", S01, S03)                                                \
    X(soft_nystrom_claims, "s04_nystrom.c", S04, S07)                                              \
    X(soft_start_claims, "s10_start.c", S10, S12)                                                  \
    X(soft_convergence_claims, "s13_convergence.c", S13, S15)                                      \
    X(soft_inverse_claims, "s16_inverse.c", S16, S19)                                              \
    X(softpp_claims, "s20_spectra.c", S20, S29)                                                    \
    X(softpp_norm_claims, "s30_norm.c", S30, S30)                                                  \
    X(soft_symmetry_claims, "s31_symmetry.c", S31, S33)                                            \
    X(soft_expansion_claims, "s34_expansion.c", S34, S37)                                          \
    X(soft_dependence_claims, "s38_dependence.c", S38, S40)                                        \
    X(soft_comparison_claims, "s41_comparison.c", S41, S44)                                        \
    X(soft_iteration_claims, "s45_iteration.c", S45, S49)                                          \
    X(sima_claims, "m01_sima.c", M01, M08)                                                         \
    X(sima_values_claims, "m09_values.c", M09, M13)                                                \
    X(sima_compared_claims, "m14_compared.c", M14, M16)                                            \
    X(sima_network_claims, "m17_network.c", M17, M20)                                              \
    X(sima_reweighting_claims, "m14_compared.c", M21, M21)                                         \
    X(sima_counts_claims, "m22_counts.c", M22, M28)                                                \
    X(ufo_vit_claims, "u01_xnorm.c", U01, U11)                                                     \
    X(ufo_vit_network_claims, "u12_network.c", U12, U16)                                           \
    X(ufo_vit_spring_claims, "u17_springs.c", U17, U21)                                            \
    X(network_claims, "n01_networks.c", N01, N05)                                                  \
    X(table_claims, "n06_tables.c", N06, N10)                                                      \
    X(resource_claims, "n01_networks.c", N11, N12)                                                 \
    X(repeated_claims, "n06_tables.c", N13, N13)                                                   \
    X(linear_claims, "n06_tables.c", N14, N15)                                                     \
    X(soft_table_claims, "n16_soft_tables.c", N16, N19)                                            \
    X(accuracy_claims, "a01_accuracies.c", A01, A24)

#define CLAIM_GROUP_EXTERN(table, file, first, last) extern const claim table[];
CLAIM_GROUP_LIST(CLAIM_GROUP_EXTERN)
#undef CLAIM_GROUP_EXTERN

/* Every claim, ended by null. */
extern const claim *const *claims_all(void);

/* Whether the statement is in a paper; some statements are in two. */
bool claim_is_in(const claim *c, claim_paper p);

extern const verb claims_verb;

#endif
