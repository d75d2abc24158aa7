/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of an inspection: numbers about A = K(L, L) of one head, for one number of landmarks
 * and one way to take them. */
#ifndef EXPERIMENTS_INSPECT_FACTS_H
#define EXPERIMENTS_INSPECT_FACTS_H

#include <stddef.h>

#include "common/table.h"
#include "convergence/narrow.h"
#include "spectral/samplers.h"

/* ---- Samplings ---- */

typedef struct {
    const char *name;
    int sampler;  /* the index in samplers[]; -1: landmarks are given */
    bool windows; /* averages of consecutive tokens, without a grid */
} inspect_sampling;

/* Samplings that need no weights. The first that applies is the one of SOFT without training, and
 * is examined most closely. */
enum { SAMPLINGS = 9, SAMPLING_GIVEN = 8 }; /* the last: --landmarks */
extern const inspect_sampling inspect_samplings[SAMPLINGS];

/* ---- Numbers ---- */

enum { TARGETS = 2, MOST_CURVE = 130 };
extern const double inspect_targets[TARGETS]; /* residuals: 1e-3, 1e-6 */
/* A precision is safe if some X has a residual of at most this, an error of 1 % in A. */
extern const double inspect_safe_residual;

/* All numbers are doubles, NaN where they are not known, so that one list of fields serves to
 * write, read and publish them. -1 steps: not reached. */
typedef struct {
    double published_steps; /* T of the method */
    double predicted,
        residual; /* after that many steps, by the closed form and by the library in f64 */
    double steps_predicted[TARGETS], steps[TARGETS], products[TARGETS];
    double alpha, steps_run;
    int length;               /* of the curve; 0: the method was not run */
    double curve[MOST_CURVE]; /* residuals of X_0, X_1, ... */
} inverse_facts;

typedef struct {
    double best, best_steps; /* of the library's stopping = best */
    double fixed;            /* after the papers' 20 steps */
    double asked;            /* after the steps of --iterations */
    double rank;
} precision_facts;

typedef struct {
    double batch, head, m, stride, tokens;
    int sampling; /* in inspect_samplings */
    bool main;    /* the first that applies */
    double lambda_max, lambda_min, below_floor, lambda_min_lower, lambda_min_upper, singular;
    double kappa, rank_f64, rank_f32, rank_bf16;
    double norm1, margin, inverted;
    double norm_tokens, soft_norm, softpp_norm, soft_norm_20, softpp_norm_20;
    double compared, trace_error, best_trace_error, trace_ratio;
    double *lambda; /* m of them, descending */
    inverse_facts inverses[ATN_INVERSE_COUNT];
    precision_facts precisions[PRECISIONS];
} inspection;

/* The fields of the three structs, and the columns that publish them. X(column, member, type,
 * description) */
#define MATRIX_FACTS(X)                                                                            \
    X("tokens", tokens, COLUMN_INTEGER, "n, tokens of the head")                                   \
    X("stride", stride, COLUMN_INTEGER, "pool, window: tokens a side that are averaged")           \
    X("lambda_max", lambda_max, COLUMN_REAL,                                                       \
      "largest eigenvalue of A in f64, by dsyevd, checked by dsyevr")                              \
    X("lambda_min", lambda_min, COLUMN_REAL, "the smallest, the same way; noise if below_floor")   \
    X("below_floor", below_floor, COLUMN_BOOLEAN,                                                  \
      "lambda_min < m u lambda_max, u = 2^-53: f64 cannot tell it from 0")                         \
    X("lambda_min_lower", lambda_min_lower, COLUMN_REAL,                                           \
      "certified by ball arithmetic: lambda_min of the exact kernel matrix of the landmarks is "   \
      "at least this; missing where nothing is below the floor, m exceeds --certify, or the "      \
      "build cannot")                                                                              \
    X("lambda_min_upper", lambda_min_upper, COLUMN_REAL, "and at most this")                       \
    X("singular", singular, COLUMN_BOOLEAN,                                                        \
      "certified: two landmarks coincide and A has no inverse; missing where nothing was to be "   \
      "certified")                                                                                 \
    X("kappa", kappa, COLUMN_REAL,                                                                 \
      "lambda_max / lambda_min, certified where lambda_min is; otherwise, below the floor, "       \
      "1/(m u), a number that the truth is near or above; infinite if singular")                   \
    X("rank_f64", rank_f64, COLUMN_INTEGER, "eigenvalues above m 2^-53 lambda_max")                \
    X("rank_f32", rank_f32, COLUMN_INTEGER, "eigenvalues above m 2^-24 lambda_max")                \
    X("rank_bf16", rank_bf16, COLUMN_INTEGER, "eigenvalues above m 2^-8 lambda_max")               \
    X("norm1", norm1, COLUMN_REAL, "|A|_1, the largest row sum")                                   \
    X("margin", margin, COLUMN_REAL,                                                               \
      "1 - alpha lambda_max^2 for the start alpha = 2/|A|_1^2: in exact arithmetic the "           \
      "iteration converges iff this is above -1, which it is not for equal row sums")              \
    X("inverted", inverted, COLUMN_INTEGER,                                                        \
      "modes that 20 steps from that start invert to half or more, by the closed form: "           \
      "lambda f_20(lambda) >= 1/2")                                                                \
    X("norm_tokens", norm_tokens, COLUMN_INTEGER,                                                  \
      "tokens that the next four norms are over, at most 8192")                                    \
    X("soft_norm", soft_norm, COLUMN_REAL, "|P^T A+ P|_2, P = K(L, Q): SOFT's attention matrix")   \
    X("softpp_norm", softpp_norm, COLUMN_REAL,                                                     \
      "|P^T D^-1/2 A+ D^-1/2 P|_2, D = diag(A 1): SOFT++'s")                                       \
    X("soft_norm_20", soft_norm_20, COLUMN_REAL, "the first with X_20 of nr-paper for A+")         \
    X("softpp_norm_20", softpp_norm_20, COLUMN_REAL, "the second with X_20 of nr-paper for A+")    \
    X("compared", compared, COLUMN_INTEGER, "tokens that the next three are over, at most 1024")   \
    X("trace_error", trace_error, COLUMN_REAL,                                                     \
      "tr(S - S^) / tr(S), S = K(Q, Q), S^ = P^T A+ P; 0 if rounding made it negative; "           \
      "landmarks with a pivot of A of at most m 2^-53 are left out: where rank_f64 is below m, "   \
      "the exact one is smaller")                                                                  \
    X("best_trace_error", best_trace_error, COLUMN_REAL,                                           \
      "the same for the best matrix of rank m (Eckart and Young)")                                 \
    X("trace_ratio", trace_ratio, COLUMN_REAL,                                                     \
      "trace_error / best_trace_error; missing where the latter is rounding")

#define INVERSE_FACTS(X)                                                                           \
    X("alpha", alpha, COLUMN_REAL, "the start, X_0 = alpha A or alpha I, that was used")           \
    X("published_steps", published_steps, COLUMN_INTEGER, "T, the method's default")               \
    X("residual_predicted", predicted, COLUMN_REAL,                                                \
      "|A X A - A|_2 / |A|_2 after T steps, by the closed form on A's eigenvalues")                \
    X("residual", residual, COLUMN_REAL, "the same as the library has it in f64")                  \
    X("steps_1e3_predicted", steps_predicted[0], COLUMN_INTEGER,                                   \
      "steps until it is below 1e-3, by the closed form; -1: not within steps_run")                \
    X("steps_1e3", steps[0], COLUMN_INTEGER, "the same, measured in f64")                          \
    X("products_1e3", products[0], COLUMN_INTEGER, "products of m x m matrices in those")          \
    X("steps_1e6_predicted", steps_predicted[1], COLUMN_INTEGER, "until it is below 1e-6")         \
    X("steps_1e6", steps[1], COLUMN_INTEGER, "the same, measured in f64")                          \
    X("products_1e6", products[1], COLUMN_INTEGER, "products of m x m matrices in those")          \
    X("steps_run", steps_run, COLUMN_INTEGER, "steps asked of the library")

#define PRECISION_FACTS(X)                                                                         \
    X("rank", rank, COLUMN_INTEGER, "eigenvalues above m u lambda_max, of A so rounded")           \
    X("best_residual", best, COLUMN_REAL,                                                          \
      "|A X A - A|_2 / |A|_2 of the X that the library's stopping = best returns, from "           \
      "1.8/|A|_1^2; measured in f64, on A as rounded to the precision")                            \
    X("best_steps", best_steps, COLUMN_INTEGER, "the k of that X_k")                               \
    X("residual_20", fixed, COLUMN_REAL, "the same of X_20; infinite if it overflowed before")     \
    X("residual_asked", asked, COLUMN_REAL, "the same after the steps of --iterations, or 20")

typedef struct {
    const char *name;
    column_type type;
    size_t offset;
} fact_field;

typedef enum { FACTS_MATRIX, FACTS_INVERSE, FACTS_PRECISION, FACTS_COUNT } fact_group;
/* The fields of inspection, inverse_facts and precision_facts; ended by a null name. */
extern const fact_field *const fact_fields[FACTS_COUNT];
double fact_get(const fact_field *field, const void *facts);

/* An inspection with all numbers unknown. lambda is allocated. */
inspection *inspection_create(int64_t m);
void inspection_free(inspection *i);

/* ---- All inspections of a run ---- */

typedef struct {
    inspection **items;
    int64_t count;
} inspection_list;

/* Raw rows: one number each. */
enum { INSPECT_RAW_COLUMNS = 9 };
extern const column inspect_raw_columns[INSPECT_RAW_COLUMNS];
void inspection_write(const inspection *i, table *raw);
inspection_list inspections_read(const table *raw);
void inspections_free(inspection_list *list);

/* The index of the first item of a sampling (-1: the main one) with this m, from `start` on; -1 if
 * there is none. */
int64_t inspections_find(const inspection_list *list, int64_t start, double m, int sampling);
/* The numbers of landmarks, ascending, into m (room for count); returns how many there are. */
int inspections_landmarks(const inspection_list *list, double *m);
int64_t inspections_heads(const inspection_list *list);
bool inspection_same_head(const inspection *a, const inspection *b);
/* The number of landmarks nearest to the papers' 49. */
double inspections_usual(const inspection_list *list);

#endif
