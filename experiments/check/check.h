/* SPDX-License-Identifier: BSD-3-Clause */
/* attnum check: judges outputs and gradients that another program computed, and names the known
 * mistake that explains an error; or writes cases with their answers (emit.c). */
#ifndef EXPERIMENTS_CHECK_H
#define EXPERIMENTS_CHECK_H

#include <attention.h>
#include <cases.h>
#include <ruler.h>

#include "common/npy.h"
#include "common/options.h"
#include "common/progress.h"
#include "common/verb.h"

extern const verb check_verb;

/* The results that can be judged: Y, and its derivatives with respect to Q, K, V and the
 * parameters. */
typedef enum {
    RESULT_OUTPUT,
    RESULT_TOKENS,
    RESULT_KEYS,
    RESULT_VALUES,
    RESULT_PARAMETERS,
    RESULT_COUNT = RESULT_PARAMETERS + ATN_PARAMETER_COUNT
} result_kind;

/* "output", "grad-tokens", ..., "grad-gamma", ... */
const char *result_name(result_kind kind);
/* "tokens", ..., as in --gradient; not defined for the output. */
const char *gradient_name(result_kind kind);

enum { MOST_FILES = 64 };

/* One mistake of the file of --mistake: either a changed problem, whose answer is computed, or the
 * result that the mistake gives. */
typedef struct {
    char *name;
    bool changed; /* whether the description differs from the claimed one */
    atn_attention_desc reference;
    const double *results[RESULT_COUNT]; /* null: to be computed, if it is changed */
} own_mistake;

/* Memory that is freed together. */
typedef struct {
    void **items;
    int count;
} owned_memory;

void owned_add(owned_memory *o, void *memory);
void owned_free(owned_memory *o);

/* A problem and the results that another program computed for it.
 *
 * Landmarks given by the user are appended to every head's tokens as m more tokens, which are not
 * judged: their values are 0, so that P V is the same sum, and `indices` samples them. The rows of
 * the original tokens are unchanged. */
typedef struct {
    attention_case c;      /* the problem to compute; all arrays in f64, in `files` or allocated */
    attention_case judged; /* the same without the appended landmarks */
    atn_dtype dtype;       /* ATN_F32 or ATN_F64: the claimed type of the arithmetic, */
    atn_storage storage;   /* and the claimed type of what is stored */
    double most_work;      /* most multiplications for an exact answer; 0: a few seconds' worth */
    reference_choice reference;    /* which answer is the reference: auto, exact or f64 */
    double *results[RESULT_COUNT]; /* null: not given */
    double *grad_output;           /* null: not given; of the shape of c's output */
    int64_t key_heads; /* heads of keys and values as given: fewer if heads share them */
    own_mistake *mistakes;
    int mistake_count;
    char *doubt; /* why the files' layout may not be the assumed one; null: no doubt */
    npy_array files[MOST_FILES];
    int file_count;
    owned_memory owned;
} subject;

/* Reads the files and settings that the options name. Returns an exit code; the subject is to be
 * freed in any case. */
int subject_read(const program_options *s, atn_context *context, subject *to);
/* The part of subject_read that reads tokens, keys and values; keys and values are optional. */
int subject_read_inputs(const program_options *s, subject *to);
/* The part that reads the masks, once the numbers of tokens and keys are known. */
int subject_read_masks(const program_options *s, subject *to);
void subject_free(subject *s);

/* Reads a result; NaN and infinity are refused unless `any`. what: the option or place that error
 * messages name, such as "--gradient". Returns an exit code. */
int subject_read_result(const program_options *s, const char *path, const char *what, bool any,
                        const attention_case *c, result_kind kind, subject *to,
                        const double **result);
/* Whether the library can compute a description. what: what messages call it, such as "soft". */
int subject_check_problem(atn_context *context, const char *what, const atn_attention_desc *desc,
                          const atn_attention_shape *shape);

/* Whether a case has this result: there is no gradient of keys or parameters that are not given. */
bool result_exists(const attention_case *c, result_kind kind);
/* The number of matrices of a result, their rows and columns, and the number of all elements. A
 * parameter's matrices are shared by the batch: one for all heads, or one for each. */
int64_t result_heads(const attention_case *c, result_kind kind);
int64_t result_rows(const attention_case *c, result_kind kind);
int64_t result_cols(const attention_case *c, result_kind kind);
int64_t result_size(const attention_case *c, result_kind kind);

/* The number m of soft's and softpp's landmarks; 0: none. */
int64_t subject_landmarks(const subject *to);

/* Sets the claimed precision. Narrow types are emulated: stored in the type, computed in f32. */
void subject_claim(subject *s, atn_dtype claimed);
/* The name of the claimed precision: bf16, f32, ... */
const char *subject_precision(const subject *s);

/* ---- Parameters (parameters.c) ---- */

typedef enum {
    PARAMETER_INT,
    PARAMETER_INTEGER,
    PARAMETER_REAL,
    PARAMETER_FLAG,
    PARAMETER_NAME,
    PARAMETER_TENSOR,
    PARAMETER_INDICES,
    PARAMETER_BUCKETS,
    PARAMETER_UNIFORMS
} parameter_kind;

/* A field of atn_attention_desc, and the operators that have it. */
typedef struct {
    const char *name;
    parameter_kind kind;
    size_t offset;
    unsigned operators;         /* a bit for each atn_operator */
    const char *const *choices; /* for PARAMETER_NAME: ends with null */
    const char *help;
    /* Where only some choices of another parameter use it: the offset of that one, and a bit for
     * each choice. 0: always used. */
    size_t chooser;
    unsigned chosen;
} parameter;

extern const parameter parameters[]; /* ends with a null name */

bool parameter_is_of(const parameter *p, atn_operator op);
/* Whether the operator has a Gaussian kernel, whose scale is --scale and whose distances are
 * computed as --distance says. */
bool scale_is_of(atn_operator op);
bool distance_is_of(atn_operator op);
/* Whether what is computed by a description depends on it: it is of the operator and goes with the
 * description's sampling, inverse, ... */
bool parameter_is_used(const parameter *p, const atn_attention_desc *desc);

/* Sets parameters from NAME=VALUE texts, in order, except that the inverse is set first, because it
 * resets its other parameters to defaults. Refuses what the sampling, the inverse or another choice
 * does not use, unless it is the default. Returns an exit code. */
int parameters_set(const text_list *given, subject *to);
/* The first of them that says how landmarks are sampled; null: none does. */
const char *parameter_of_sampling(const text_list *given, atn_operator op);
/* As parameters_set; error messages name this place instead of --param. */
int parameters_set_in(const char *place, const text_list *given, subject *to);

/* The value as text, to be freed; null for a tensor or where nothing is set. */
char *parameter_text(const parameter *p, const atn_attention_desc *desc);
/* Whether two descriptions differ in a number, name or flag. */
bool parameter_differs(const parameter *p, const atn_attention_desc *a,
                       const atn_attention_desc *b);

/* A parameter from a file, 1 x heads x rows x cols. */
atn_tensor parameter_tensor(const npy_array *a);

/* Prints the parameters of an operator and the values that a variant sets. */
void parameters_help(const atn_operator_info *info, int variant);

/* ---- Mistakes that users add (mistakes.c) ---- */

/* Reads the file of --mistake for a subject that is otherwise complete. Returns an exit code. */
int mistakes_read(const program_options *s, atn_context *context, subject *to);

/* ---- Answers (answers.c) ---- */

/* Answers are f64, dense, rows x cols of every head, without appended landmarks. */

/* Whether the dense reference computes the answer: where the user asks for it, or, by default,
 * where it takes a few seconds at most. */
bool reference_computes(const subject *s, result_kind kind);
/* Estimates of the reference's memory and time. */
double reference_bytes(const subject *s);
double reference_seconds(const subject *s, result_kind kind);

/* The exact answer, computed densely in long double. Negative: the reference cannot compute the
 * problem. */
atn_status answer_exact(const subject *s, result_kind kind, double *to);

/* Copies the judged rows of every head, that is, all but those of appended landmarks. from and to
 * may be the same. */
void keep_judged_rows(const subject *s, result_kind kind, const double *from, double *to);

/* The library's answer in a type and storage. Negative: it cannot compute it. */
atn_status answer_library(atn_context *context, const subject *s, atn_dtype dtype,
                          atn_storage storage, result_kind kind, double *to);
/* The same for several gradients, or for the output alone, by one call. */
atn_status answer_library_all(atn_context *context, const subject *s, atn_dtype dtype,
                              atn_storage storage, int count, const result_kind *kinds,
                              double *const *to);

/* Whether the problem is worth several threads. Small ones are left to one thread: they take
 * hundreds of calls, each shorter than starting and synchronising threads. */
bool is_worth_threads(atn_context *context, const attention_case *c);

/* The subject with every number of the inputs, parameters and dY changed by a relative `step` of
 * random sign, and rounded to a storage. A parameter that is a single number per head is only
 * rounded: changing it would be a common factor, not noise. owned: memory to free afterwards. */
enum { MOST_CHANGED = 4 + ATN_PARAMETER_COUNT };
subject change_inputs(const subject *s, double step, atn_storage storage, uint64_t *state,
                      double *owned[MOST_CHANGED]);

/* Raises kappa to the condition of the inverse (ref_inverse_condition), for operators that have
 * one. */
void answer_inverse_conditions(const subject *s, double *kappa);

/* ---- What a good kernel reaches (reach.c) ---- */

enum { MOST_RUNS = 4, MOST_WRITTEN = 2, NOISES = 6, MOST_DIRECTIONS = 4 + ATN_PARAMETER_COUNT };
enum { GRADIENT_STAGES = 4 };

/* What the errors are compared with. Arrays have the result's size, judged rows only. Errors of
 * runs depend on the claimed type; noises and directions are derivatives, computed in f64, and do
 * not. */
typedef struct {
    int runs;
    double *errors[MOST_RUNS]; /* of the library's runs in the claimed type and storage: with the
                                  inputs as they are, with inputs changed by a rounding, with
                                  expanded distances */
    /* The same for narrow types, rounding only inputs and results: for soft and softpp, whose
     * inverse magnifies the roundings of everything stored in between. */
    int writtens;
    double *written[MOST_WRITTEN];
    /* For narrow types, per head: the error of the library's forward run, which stores everything
     * in the type, divided by the error that roundings of the inputs alone cause. For gradients it
     * is raised where numbers cancel in the backward pass (add_cancellation). Null for other
     * types. */
    double *stored;
    int noises;
    double *noise[NOISES]; /* change of the result per unit of relative change of every input
                              number, signs at random */
    int inverses;
    /* the same for the roundings in A's inverse and in P, of soft and softpp */
    double *inverse[NOISES];
    int directions;
    double *direction[MOST_DIRECTIONS]; /* change of the result per unit of relative change of one
                                           input as a whole */
    const char *direction_names[MOST_DIRECTIONS];
} reach;

/* Results that are computed by the same calls of the library: the output alone, or gradients. */
typedef struct result_verdict result_verdict;
typedef struct {
    int count;
    result_kind kinds[RESULT_COUNT];
    result_verdict *of[RESULT_COUNT]; /* of[i] is the verdict on kinds[i] */
    progress *shown;                  /* progress of the calls; null: not shown */
} result_group;

/* Computes the derivatives for each result, by NOISES calls in f64 and one for each direction. */
void reach_differentiate(atn_context *context, const subject *s, const result_group *g);
/* Replaces the errors by those of runs in the type that the subject now claims. */
void reach_run(atn_context *context, const subject *s, const result_group *g);
/* The number of calls of both, and an estimate of their time. */
int reach_calls(const subject *s, const result_group *g);
double reach_seconds(atn_context *context, const subject *s, const result_group *g);
void reach_forget_runs(reach *r);
void reach_free(reach *r);

/* ---- Judging (judge.c) ---- */

/* What is measured in the error of a head. Each statistic is the norm of a part of the error: of
 * the whole, of its worst row or column; of its projection on the wanted answer, in groups of rows
 * and columns (a wrong factor), on ones (a wrong mean), or on one direction of `reach`. Its ratio
 * compares that with the error that good kernels of the type reach (ref_rule REF_REACH):
 *
 *     ratio = measured / (multiple * reached + chance + truncation * norm of the wanted answer)
 *
 * chance is 4 / sqrt(f) times the norm of the whole error that is reached: of an error of f
 * independent numbers about 1 / sqrt(f) lies along a given direction by chance; f is estimated from
 * how far the noises are from orthogonal. For PART_ENERGY chance is 0; the noises' norms are
 * multiplied by 1 + 4 / sqrt(f) instead, by which another error may exceed their mean. reached is
 * the largest of the runs' errors, of noise * rounding, and of the noise of the inverse * u_s /
 * sqrt(8 ln 2), since good kernels keep the inverse in the type of sums; for factors of rows and of
 * columns it is at least one rounding of each. With u the roundoff of the stored type and u_s that
 * of sums:
 *
 *     rounding = u / sqrt(8 ln 2) + s, truncation = u / (2 ln 2) + s, s = sqrt(terms) u_s / 2
 *
 * The first terms are the root mean square of the relative error of rounding to nearest and the
 * mean of that of truncation, for mantissas of products (uniform logarithms). Recursive sums of
 * that many terms err by about s (N. J. Higham, T. Mary, A new approach to probabilistic rounding
 * error analysis, SIAM J. Sci. Comput. 41, 2019); where a sum is shared (a norm, a denominator),
 * that is a common factor. A part of the error that is larger is not due to rounding, however small
 * it is.
 *
 * Every instruction set with bf16 and f16 rounds them to nearest, so for outputs in them truncation
 * is s alone except for PART_ENERGY (gradients share roundings in long sums). Tensor cores may cut
 * off operands to tf32, four of them in two successive products, so for tf32 the u in truncation is
 * four times as large. Where an inverse of condition kappa would leave less than half of a narrow
 * type's digits, kappa sqrt(u) > 1, good kernels read and write the type but compute in f32 in
 * between: rounding is then that of f32, and the runs round only inputs and results. */
typedef enum { PART_ENERGY, PART_FACTOR, PART_MEAN, PART_DIRECTION } part_kind;

typedef struct {
    const char *name, *help;
    part_kind kind;
    int64_t rows, cols; /* size of a group; 0: all */
    bool worst;         /* of the worst group, not of all of them together */
    double multiple;
} statistic;

enum { STATISTIC_SIZE, STATISTIC_ROW, STATISTIC_COLUMN }; /* indices in `statistics` */
enum { MOST_STATISTICS = 24 + MOST_DIRECTIONS };
extern const statistic statistics[];
extern const int statistic_count;

typedef struct {
    ref_verdict verdict;
    const char *rule;   /* the statistic whose ratio is largest; "none" */
    const char *reason; /* why the head is skipped; "" */
    double ratio;       /* that statistic's ratio; NaN: none */
    double expected; /* kappa times rounding: bound of the relative error due to rounding; or NaN */
    double own;      /* the same for the wanted answer, if it is the library's in f64; 0 if exact */
    double reachable; /* the relative error that good kernels reach; NaN: unknown */
    double allowed;   /* the largest relative error that passes */
    ref_difference difference;
} judgement;

/* What a head is compared with. Arrays are those of the head, rows x cols. */
typedef struct {
    const attention_case *c; /* whose values' mean is a trivial output; null: not tested */
    int64_t head;
    int64_t rows, cols;
    const double *want;
    reach reach;       /* its pointers point to this head in the result's arrays */
    double factor;     /* multiplies everything that is reached; 0: 1 */
    double kappa;      /* NaN: unknown */
    double rounding;   /* magnified by kappa: N u and the storage's u */
    double own;        /* the same for the wanted answer: N u of f64; 0 if it is exact */
    double unit, sums; /* u and s, see `statistic` */
    double cut;        /* u where stored numbers may be truncated; else 0 */
    bool wide;         /* nothing is stored in the narrow type between inputs and results */
    double summed;     /* u_s, see `statistic` */
    double stages; /* square root of the number of successive arrays that are rounded to the stored
                      type, their roundings being independent. For gradients in narrow types, of
                      which there are no runs: GRADIENT_STAGES arrays (weights or state, their
                      derivative, the derivative of their operands, the result); else 1.
                      reach.stored replaces it, for outputs and gradients, where it exceeds 2 */
    bool nearest; /* allow along a direction nothing but chance: neither truncation nor roundings of
                     shared sums */
} yardstick;

/* The bounds within which any result passes; from find_bounds. */
typedef struct {
    const char *why; /* why no verdict but FAIL can be given; null: any can */
    double norm;     /* norm of the wanted answer */
    double reached;  /* reached norm of the whole error */
    double bound[MOST_STATISTICS];
} bounds;

bounds find_bounds(const yardstick *y);
judgement judge_head(const yardstick *y, const bounds *b, const double *got);

/* Whether A's inverse magnifies roundings: for soft and softpp. */
bool subject_inverts(const subject *s);
/* The unit roundoff of the type in which the result is stored. */
double subject_unit(const subject *s);
/* Whether an inverse of this condition would leave less than half of the digits of the stored type.
 */
bool subject_must_be_wide(const subject *s, double kappa);

/* The wanted answer of a result, what good kernels reach, and the verdicts. */
struct result_verdict {
    bool exact;        /* whether want is the exact answer, not the library's in f64 */
    atn_status status; /* of the call that computed want */
    double *want;
    reach reach;
    double *kappa; /* of each head; NaN: unknown */
    bounds *bounds;
    judgement *heads;
    ref_verdict verdict; /* the worst head's */
};

result_group group_of_one(result_kind kind, result_verdict *v);
/* Finds kappa of each head, from the noises of the reach and from the inverse. */
void find_conditions(const subject *s, const result_group *g);
/* Finds the wanted answers and what good kernels reach, both independent of the results to judge.
 * Returns an exit code. Each verdict is to be freed in any case. */
int find_wanted(atn_context *context, const subject *s, const result_group *g);
/* The same for the type that the subject claims now. The results of g are of the kinds of known and
 * share its arrays, except those that depend on the type. To be freed by claim_free. */
void claim_another(atn_context *context, const subject *s, const result_group *known,
                   const result_group *g);
void claim_free(result_verdict *v);
/* Judges the result of every head by what find_wanted found. */
void judge_heads(const subject *s, result_kind kind, result_verdict *v);
void result_verdict_free(result_verdict *v);
ref_verdict worse_verdict(ref_verdict a, ref_verdict b);
yardstick head_yardstick(const subject *s, result_kind kind, const result_verdict *v, int64_t head);

/* ---- SOFT from changed steps (dense.c) ---- */

/* How D = diag(A 1) enters SOFT++: D^-1/2 A+ D^-1/2 (paper), D^-1 A+ D^-1, (D^-1/2 A D^-1/2)+,
 * D^1/2 A+ D^1/2, or like the first but with D = diag(K(L,Q) 1). */
typedef enum {
    NORMALISE_NOT,
    NORMALISE_ROOT,
    NORMALISE_FULL,
    NORMALISE_INNER,
    NORMALISE_TIMES,
    NORMALISE_BY_TOKENS
} normaliser;

/* How landmark l is formed. SAMPLED: as claimed. The others take the tokens i with floor(i m/n) =
 * l: their mean, their largest numbers, the last token, the mean of all but the last; or,
 * INTERLEAVED, the mean of the tokens with i mod m = l. */
typedef enum {
    LANDMARKS_SAMPLED,
    LANDMARKS_SEGMENTS,
    LANDMARKS_LARGEST,
    LANDMARKS_LAST,
    LANDMARKS_SHORT,
    LANDMARKS_INTERLEAVED
} landmark_form;

/* The kernel's squared distance as a |q|^2 + b |k|^2 - c q.k. SOFT's keys are its landmarks. */
typedef enum {
    DISTANCE_RIGHT,
    DISTANCE_NO_2,
    DISTANCE_NO_KEYS,
    DISTANCE_NO_QUERIES,
    DISTANCE_PRODUCT,
    DISTANCE_ROOT, /* the square root of the right one */
    DISTANCE_PLUS,
    DISTANCE_COUNT
} distance_form;

/* a, b and c */
extern const double distance_terms[DISTANCE_COUNT][3];

/* A changed form of SOFT. landmark_factor multiplies the sampled landmarks; `change` changes P and
 * A's inverse at random, as roundings of this relative size would. */
typedef struct {
    normaliser normalise;
    distance_form distance;
    landmark_form landmarks;
    bool inverse_missing; /* P^T P V */
    double landmark_factor, change;
    uint64_t seed; /* of the random changes */
} dense_form;

/* The form of soft or softpp as claimed. */
dense_form dense_claimed(const attention_case *c);

/* The output of soft or softpp in f64, from the library's building blocks, for all rows of the
 * case. */
atn_status dense_soft(atn_context *context, const attention_case *c, const dense_form *form,
                      double *out);

/* The paths of the gradient of Q: through K(Q, L), through K(L, Q), and, in both, through L. */
enum { PART_QUERIES = 1, PART_KEYS = 2, PART_LANDMARKS = 4, PART_ALL = 7 };

/* The part of Q's gradient that flows along these paths for dY, the inverse being held constant.
 * Landmarks must be averages of tokens, with weights that do not depend on the tokens. */
atn_status dense_soft_gradient(atn_context *context, const attention_case *c,
                               const dense_form *form, const double *dout, int parts, double *out);

/* ---- Where (where.c) ---- */

/* The heads, rows or columns that are wrong in a result that FAILs, if the rest is right: "batch 0,
 * head 1 alone: rows 64 to 127: zero"; to be freed. Null: no part alone is wrong. */
char *where_wrong(const subject *s, result_kind kind, const result_verdict *v);
/* Whether few rows or columns of a head are wrong, the rest being as right as good kernels are. */
bool is_wrong_in_part(const yardstick *y, const bounds *b, const double *got);
/* "batch 0, head 1"; a parameter's matrices are for the whole batch. To be freed. */
char *where_head(const subject *s, result_kind kind, int64_t head);

/* ---- Maps of errors (map.c) ---- */

/* The state of a block of a result, or of a head; the gravest last. CELL_ZERO: wrong, and all
 * zeros. */
typedef enum {
    CELL_PASSES,
    CELL_UNKNOWN,
    CELL_OVER,
    CELL_ZERO,
    CELL_NONFINITE,
    CELL_STATES
} cell_state;

typedef struct {
    cell_state state;
    double over; /* the error, in units of what passes */
} map_cell;

/* A head's rows and columns, or a result's batch and heads, in blocks: down x across cells. */
typedef struct {
    int64_t rows, cols, block_rows, block_cols, down, across;
    map_cell *cells;
} error_map;

error_map map_head(const subject *s, result_kind kind, const result_verdict *v, int64_t head,
                   int64_t most_rows, int64_t most_cols);
error_map map_heads(const subject *s, result_kind kind, const result_verdict *v, int64_t most_rows,
                    int64_t most_cols);
void map_free(error_map *m);
/* The last row or column of a cell. */
int64_t map_last_row(const error_map *m, int64_t down);
int64_t map_last_col(const error_map *m, int64_t across);
/* Whether the map shows no place: the errors of all cells agree within a factor of 100. */
bool map_is_uniform(const error_map *m);

/* The errors at which levels begin: 1, up to which an error passes, and the last levels, which are
 * powers of ten apart. */
enum { MOST_LEVELS = 6 };
typedef struct {
    int count;
    double over[MOST_LEVELS];
} map_levels;

map_levels map_levels_of(const error_map *m, int most);
int map_level(const map_levels *levels, double over); /* from 0 */

/* ---- Diagnosis (hypotheses.c) ---- */

enum { MOST_FINDINGS = 5 };

typedef struct {
    char *text;    /* "iterations=15", or "this and that"; to be freed */
    double error;  /* |got - that|_F / |that|_F over all heads, with the mistake's result */
    bool explains; /* the result passes as the mistake's, and is much nearer to it than to what was
                      claimed */
    bool rounding; /* the formula is the claimed one, only the arithmetic differs */
    bool fitted;   /* a number in it was fitted to the result */
    bool place;    /* says where the result is wrong, not what is wrong */
} finding;

/* Explains a result that FAILs, or that passes with a larger error than good kernels reach; nearest
 * explanation first. In the latter case a known mistake that explains the result turns the verdict
 * into FAIL. Returns the number of findings. */
int explain_result(atn_context *context, const subject *s, result_kind kind, result_verdict *v,
                   finding findings[MOST_FINDINGS]);

/* Finds what else a result could be, nearest first: single known mistakes, then narrower types,
 * then pairs of mistakes. Only what is nearer than the claimed answer. Returns the number of
 * findings. */
int diagnose(atn_context *context, const subject *s, result_kind kind, const result_verdict *v,
             finding findings[MOST_FINDINGS]);

/* ---- Emission (emit.c) ---- */

int emit_cases(const program_options *s);

#endif
