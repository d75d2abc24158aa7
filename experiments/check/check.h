/* SPDX-License-Identifier: BSD-3-Clause */
/* attnum check: judges outputs and gradients that somebody else computed, and says which known
 * mistake explains them; or writes cases with their answers (emit.c). */
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

/* What can be judged: Y, the derivatives by Q, K and V, and those by the parameters. */
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
/* "tokens", ..., as --gradient has it; not of the output. */
const char *gradient_name(result_kind kind);

enum { MOST_FILES = 64 };

/* One of --mistake's: a problem that would be computed in the place of what was claimed, or what
 * that gives. */
typedef struct {
    char *name;
    bool changed; /* the description is another */
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

/* A problem and the result of another program.
 *
 * Landmarks that are given are tokens that nobody judges: m of them are appended to every head's
 * tokens, with values of 0, and `indices` samples them. P V is then the same sum, and the rows of
 * the tokens proper are what they would be. */
typedef struct {
    attention_case c;      /* what is computed; all in f64, in `files` or allocated */
    attention_case judged; /* the same without the appended landmarks */
    atn_dtype dtype;       /* ATN_F32 or ATN_F64: what the output claims to be computed in, */
    atn_storage storage;   /* and what it claims to be stored in */
    double most_work;      /* multiplications that the exact answer may take; 0: a few seconds' */
    reference_choice reference;    /* what is taken for right, whatever it takes */
    double *results[RESULT_COUNT]; /* null: not given */
    double *grad_output;           /* null: not given; of the shape of c's output */
    int64_t key_heads; /* of keys and values as they were given, fewer if heads share them */
    own_mistake *mistakes;
    int mistake_count;
    char *doubt; /* why the files' layout may be another than the one assumed; null: no why */
    npy_array files[MOST_FILES];
    int file_count;
    owned_memory owned;
} subject;

/* Reads what the options name. Returns an exit code; the subject is to be freed in any case. */
int subject_read(const program_options *s, atn_context *context, subject *to);
/* The part of it that tokens, keys and values are; the latter two need not be there. */
int subject_read_inputs(const program_options *s, subject *to);
/* And the masks, once the numbers of tokens and keys are known. */
int subject_read_masks(const program_options *s, subject *to);
void subject_free(subject *s);

/* Reads a result, without NaN unless `any` is allowed; what: "--gradient", or who names it. Returns
 * an exit code. */
int subject_read_result(const program_options *s, const char *path, const char *what, bool any,
                        const attention_case *c, result_kind kind, subject *to,
                        const double **result);
/* Whether the library can compute a description; what: "soft", or who names it. */
int subject_check_problem(atn_context *context, const char *what, const atn_attention_desc *desc,
                          const atn_attention_shape *shape);

/* Whether a case has it: the gradient of keys or of a parameter that are not there it has not. */
bool result_exists(const attention_case *c, result_kind kind);
/* Matrices, their rows and columns, and elements of a result of a case. A parameter's matrices are
 * for all of the batch: one for all heads, or one for each. */
int64_t result_heads(const attention_case *c, result_kind kind);
int64_t result_rows(const attention_case *c, result_kind kind);
int64_t result_cols(const attention_case *c, result_kind kind);
int64_t result_size(const attention_case *c, result_kind kind);

/* m of soft's and softpp's sampling; 0: none. */
int64_t subject_landmarks(const subject *to);

/* Sets the precision that is claimed; f32 and f64 are computed in, others stored. */
void subject_claim(subject *s, atn_dtype claimed);
/* Its name: bf16, f32, ... */
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

/* A field of atn_attention_desc, and who reads it. */
typedef struct {
    const char *name;
    parameter_kind kind;
    size_t offset;
    unsigned operators;         /* bit of each atn_operator */
    const char *const *choices; /* PARAMETER_NAME: ended by null */
    const char *help;
} parameter;

extern const parameter parameters[]; /* ended by a null name */

bool parameter_is_of(const parameter *p, atn_operator op);

/* Sets what NAME=VALUE says, in order, but the inverse first, which brings defaults of its own.
 * Returns an exit code. */
int parameters_set(const text_list *given, subject *to);
/* The same; what is wrong with them is said of this place, not of --param. */
int parameters_set_in(const char *place, const text_list *given, subject *to);

/* The value as text, to be freed; null: a tensor, or nothing is set. */
char *parameter_text(const parameter *p, const atn_attention_desc *desc);

/* A parameter from a file, 1 x heads x rows x cols. */
atn_tensor parameter_tensor(const npy_array *a);

/* The parameters of an operator, and what a variant sets. */
void parameters_help(const atn_operator_info *info, int variant);

/* ---- Mistakes that users add (mistakes.c) ---- */

/* Reads --mistake, of a subject that is complete otherwise. Returns an exit code. */
int mistakes_read(const program_options *s, atn_context *context, subject *to);

/* ---- Answers (answers.c) ---- */

/* Answers are f64, dense, rows x cols of every head, without appended landmarks. */

/* Whether the dense reference is asked for it: as the user says, or where it takes seconds. */
bool reference_takes(const subject *s, result_kind kind);
/* What it would take, roughly. */
double reference_bytes(const subject *s);
double reference_seconds(const subject *s, result_kind kind);

/* The exact answer, dense, in long double. Negative: the reference does not take such a problem. */
atn_status answer_exact(const subject *s, result_kind kind, double *to);

/* The rows of every head that are judged, without those of appended landmarks. from and to may be
 * one. */
void keep_judged_rows(const subject *s, result_kind kind, const double *from, double *to);

/* What the library makes of it in a type and storage. Negative: it cannot. */
atn_status answer_library(atn_context *context, const subject *s, atn_dtype dtype,
                          atn_storage storage, result_kind kind, double *to);
/* The same of several gradients, or of the output alone, by one call. */
atn_status answer_library_all(atn_context *context, const subject *s, atn_dtype dtype,
                              atn_storage storage, int count, const result_kind *kinds,
                              double *const *to);

/* Whether several threads are worth it: hundreds of calls that take less than threads take to
 * start, and to wait for the next, are left to one. */
bool is_worth_threads(atn_context *context, const attention_case *c);

/* The subject with every input, parameter and dY changed by a relative `step`, signs at random,
 * and rounded to a storage. A parameter of one number for each head is rounded only: its change
 * would be a factor, not noise. owned: what to free afterwards. */
enum { MOST_CHANGED = 4 + ATN_PARAMETER_COUNT };
subject change_inputs(const subject *s, double step, atn_storage storage, uint64_t *state,
                      double *owned[MOST_CHANGED]);

/* Raises kappa to what the inverse makes of rounding (ref_inverse_condition), where there is one.
 */
void answer_inverse_conditions(const subject *s, double *kappa);

/* ---- What a good kernel reaches (reach.c) ---- */

enum { MOST_RUNS = 4, MOST_WRITTEN = 2, NOISES = 6, MOST_DIRECTIONS = 4 + ATN_PARAMETER_COUNT };
enum { GRADIENT_STAGES = 4 };

/* Arrays of the result's size, judged rows only. Errors of runs say what is reached in the type
 * that is claimed; noise and directions are derivatives in f64 and know no type. */
typedef struct {
    int runs;
    double *errors[MOST_RUNS]; /* of the library in the claimed type and storage: as it is, with
                                  inputs that are changed by a rounding, with expanded distances */
    /* The same of narrow types that are rounded to only where inputs are read and results written:
     * of soft and softpp, whose inverse magnifies what is stored in between. */
    int writtens;
    double *written[MOST_WRITTEN];
    /* Of narrow types, of each head: the error of the library's forward run, which stores
     * everything in the type, over what roundings of the inputs alone make; of gradients at least
     * what cancels in the backward pass makes of those of GRADIENT_STAGES; null: of others. */
    double *stored;
    int noises;
    double *noise[NOISES]; /* change of the result per unit of relative change, at random, of every
                              number that goes in */
    int inverses;
    /* the same of the roundings in A's inverse and of P's, of soft and softpp */
    double *inverse[NOISES];
    int directions;
    double *direction[MOST_DIRECTIONS]; /* change of the result per unit of relative change of one
                                           thing as a whole */
    const char *direction_names[MOST_DIRECTIONS];
} reach;

/* Results that the same calls of the library make: the output alone, or gradients. */
typedef struct result_verdict result_verdict;
typedef struct {
    int count;
    result_kind kinds[RESULT_COUNT];
    result_verdict *of[RESULT_COUNT]; /* of the kind of the same place */
    progress *shown;                  /* of the calls; null: nobody waits for them */
} result_group;

/* The derivatives of each. Costs NOISES calls in f64, and one for each direction. */
void reach_differentiate(atn_context *context, const subject *s, const result_group *g);
/* The runs in the type that the subject claims, in the place of those of another type. */
void reach_run(atn_context *context, const subject *s, const result_group *g);
/* How many calls both are, and what they take, roughly. */
int reach_calls(const subject *s, const result_group *g);
double reach_seconds(atn_context *context, const subject *s, const result_group *g);
void reach_forget_runs(reach *r);
void reach_free(reach *r);

/* ---- Judging (judge.c) ---- */

/* What is measured of the errors of a head. Each is the norm of a part of the error: of all of it,
 * of its worst row or column; of its projection on what is wanted, in groups of rows and columns
 * (a wrong factor), on ones (a wrong mean), on one direction (reach). A ratio holds it against what
 * good kernels of that type reach (ref_rule REF_REACH):
 *
 *     ratio = measured / (multiple * reached + chance + truncation * norm of what is wanted)
 *
 * chance, of all but energies, is 4 / sqrt(f) times the error as a whole that is reached: f
 * independent numbers, by how far noises are from orthogonal, lie along a direction by chance. Of
 * energies noises have it as a factor, 1 + 4 / sqrt(f), by which the next may exceed their mean.
 * reached is the largest of the runs' and of noise * rounding (with u_s / sqrt(8 ln 2) where an
 * inverse magnifies it, which good kernels have in the type of sums), of factors of rows and of
 * columns at least one rounding of each. With u the roundoff of what is stored and u_s that of
 * sums:
 *
 *     rounding = u / sqrt(8 ln 2) + s, truncation = u / (2 ln 2) + s, s = sqrt(terms) u_s / 2
 *
 * bf16 and f16 are rounded to nearest wherever there are instructions for it, so that their
 * truncation of outputs is s alone in all but energies (gradients share roundings in long sums);
 * what tensor cores read as tf32 is cut off, four operands of two products one after the other:
 * truncation is four times as much there. Where an inverse of condition kappa would leave less
 * than half of a narrow type's digits, kappa sqrt(u) > 1, good kernels compute in f32 between what
 * they read and what they write: rounding is that of f32, and runs are such ones.
 *
 * which is the root mean square of the relative error of rounding to nearest, and the mean of that
 * of truncation, for mantissas as they are distributed in products (uniform logarithms); sums one
 * after the other of so many terms err by about s (N. J. Higham, T. Mary, A new approach to
 * probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019), and where they are shared
 * (a norm, a denominator) as one factor. A part that is larger is no rounding, however small. */
typedef enum { PART_ENERGY, PART_FACTOR, PART_MEAN, PART_DIRECTION } part_kind;

typedef struct {
    const char *name, *help;
    part_kind kind;
    int64_t rows, cols; /* of a group; 0: all */
    bool worst;         /* of the groups, not all of them together */
    double multiple;
} statistic;

enum { STATISTIC_SIZE, STATISTIC_ROW, STATISTIC_COLUMN }; /* places in the table */
enum { MOST_STATISTICS = 24 + MOST_DIRECTIONS };
extern const statistic statistics[];
extern const int statistic_count;

typedef struct {
    ref_verdict verdict;
    const char *rule;   /* the statistic whose ratio is largest; "none" */
    const char *reason; /* why it is skipped; "" */
    double ratio;       /* of it; NaN: none */
    double expected;  /* kappa times rounding: what rounding may do to the relative error; or NaN */
    double own;       /* the same of what is wanted, if that is the library's in f64; 0 if exact */
    double reachable; /* the relative error that good kernels reach; NaN: not known */
    double allowed;   /* the relative error that passes */
    ref_difference difference;
} judgement;

/* What a head is compared with. Arrays are the head's, rows x cols. */
typedef struct {
    const attention_case
        *c; /* for the mean of its values, a trivial output; null: of no interest */
    int64_t head;
    int64_t rows, cols;
    const double *want;
    reach reach;       /* pointers into the result's */
    double factor;     /* of all that is reached; 0: 1 */
    double kappa;      /* NaN: not known */
    double rounding;   /* what kappa magnifies: N u and the storage's u */
    double own;        /* what it magnifies in what is wanted: N u of f64; 0: that is exact */
    double unit, sums; /* u and s */
    double cut;        /* u where what is stored may be cut off; else 0 */
    bool wide;         /* nothing narrow is stored between inputs and results */
    double summed;     /* u_s */
    double stages;     /* square root of the number of arrays, one made of the other, that are
                          rounded to what is stored, where no run shows it: GRADIENT_STAGES of
                          gradients in narrow types (weights or state, their derivative, that of
                          what they are made of, the result), whose roundings are independent; else
                          1. What is stored may make more than two such (reach.stored): then that,
                          of outputs and gradients */
    bool nearest;      /* nothing is excused that lies along a direction by more than chance: not
                          truncation, nor what sums share */
} yardstick;

/* What passes, whatever the result is: by find_bounds. */
typedef struct {
    const char *why; /* nothing can be said but FAIL; null: something can */
    double norm;     /* of what is wanted */
    double reached;  /* of the error as a whole */
    double bound[MOST_STATISTICS];
} bounds;

bounds find_bounds(const yardstick *y);
judgement judge_head(const yardstick *y, const bounds *b, const double *got);

/* Whether A's inverse magnifies roundings: of soft and softpp. */
bool subject_inverts(const subject *s);
/* The unit roundoff of the result's type. */
double subject_unit(const subject *s);

/* Everything about a result. */
struct result_verdict {
    bool exact;        /* want is the exact answer, not the library's in f64 */
    atn_status status; /* of want */
    double *want;
    reach reach;
    double *kappa; /* of each head; NaN: not known */
    bounds *bounds;
    judgement *heads;
    ref_verdict verdict; /* the worst head's */
};

result_group group_of_one(result_kind kind, result_verdict *v);
/* kappa of each head, by the noises of the reach and by the inverse. */
void find_conditions(const subject *s, const result_group *g);
/* What is wanted of results and what good kernels reach, whatever the results are. Returns an exit
 * code. Each is to be freed in any case. */
int find_wanted(atn_context *context, const subject *s, const result_group *g);
/* The same for the type that the subject claims now; but for what depends on it the results of g
 * share the arrays of known, which are of the same kinds. To be freed by claim_free. */
void claim_another(atn_context *context, const subject *s, const result_group *known,
                   const result_group *g);
void claim_free(result_verdict *v);
/* The verdicts on the result by that. */
void judge_heads(const subject *s, result_kind kind, result_verdict *v);
void result_verdict_free(result_verdict *v);
ref_verdict worse_verdict(ref_verdict a, ref_verdict b);
yardstick head_yardstick(const subject *s, result_kind kind, const result_verdict *v, int64_t head);

/* ---- SOFT with steps of our own (dense.c) ---- */

/* How D = diag(A 1) enters SOFT++: D^-1/2 A+ D^-1/2 (paper), D^-1 A+ D^-1, (D^-1/2 A D^-1/2)+,
 * D^1/2 A+ D^1/2, or as the first with D = diag(K(L,Q) 1). */
typedef enum {
    NORMALISE_NOT,
    NORMALISE_ROOT,
    NORMALISE_FULL,
    NORMALISE_INNER,
    NORMALISE_TIMES,
    NORMALISE_BY_TOKENS
} normaliser;

/* What landmark l is of the tokens i with floor(i m/n) = l, if it is not what was sampled: their
 * mean, their largest numbers, the last of them, the mean of all but that; or the mean of the
 * tokens with i mod m = l. */
typedef enum {
    LANDMARKS_SAMPLED,
    LANDMARKS_SEGMENTS,
    LANDMARKS_LARGEST,
    LANDMARKS_LAST,
    LANDMARKS_SHORT,
    LANDMARKS_INTERLEAVED
} landmark_form;

/* The kernel's squared distance as a |q|^2 + b |k|^2 - c q.k; SOFT's keys are its landmarks. */
typedef enum {
    DISTANCE_RIGHT,
    DISTANCE_NO_2,
    DISTANCE_NO_KEYS,
    DISTANCE_NO_QUERIES,
    DISTANCE_PRODUCT,
    DISTANCE_ROOT, /* of the right one */
    DISTANCE_PLUS,
    DISTANCE_COUNT
} distance_form;

/* a, b and c */
extern const double distance_terms[DISTANCE_COUNT][3];

/* What is computed: landmarks multiplied by a factor after they are sampled, P and A's
 * inverse changed as roundings of relative size `change` would do, at random. */
typedef struct {
    normaliser normalise;
    distance_form distance;
    landmark_form landmarks;
    bool inverse_missing; /* P^T P V */
    double landmark_factor, change;
    uint64_t seed; /* of the changes */
} dense_form;

/* What is claimed: as soft and softpp are. */
dense_form dense_claimed(const attention_case *c);

/* Y of soft or softpp in f64 from the library's building blocks, all rows of the case. */
atn_status dense_soft(atn_context *context, const attention_case *c, const dense_form *form,
                      double *out);

/* What a gradient of Q goes through: K(Q, L), K(L, Q), and in these L as well. */
enum { PART_QUERIES = 1, PART_KEYS = 2, PART_LANDMARKS = 4, PART_ALL = 7 };

/* The part of Q's gradient that these make, the inverse being constant, for dY. Landmarks must be
 * averages of tokens that do not depend on them. */
atn_status dense_soft_gradient(atn_context *context, const attention_case *c,
                               const dense_form *form, const double *dout, int parts, double *out);

/* ---- Where (where.c) ---- */

/* Which heads, rows or columns of a result that FAILs are wrong, if the rest is right: "batch 0,
 * head 1 alone: rows 64 to 127: zero"; to be freed. Null: no part by itself. */
char *where_wrong(const subject *s, result_kind kind, const result_verdict *v);
/* "batch 0, head 1"; a parameter's matrices are for the whole batch. To be freed. */
char *where_head(const subject *s, result_kind kind, int64_t head);

/* ---- Maps of errors (map.c) ---- */

/* What a block of a result holds, or heads; the gravest last. CELL_ZERO: it is wrong, and zero. */
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
/* Whether nothing in it says where: all cells are alike, to a factor of 100. */
bool map_is_uniform(const error_map *m);

/* What levels of errors begin at: 1, which passes, and the last ones a power of ten apart. */
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
    double error;  /* what is left: |got - that|_F / |that|_F over all heads */
    bool explains; /* by the same ruler, and much nearer than what was claimed */
    bool rounding; /* the formula is what was claimed, its arithmetic is not */
    bool fitted;   /* a number in it was fitted to the result */
    bool place;    /* not what it is, but where it is wrong */
} finding;

/* What else a result could be, if it FAILs, or passes though it is farther from the answer than
 * good kernels get: nearest first. In the latter case a known mistake that explains
 * it makes the verdict FAIL. Returns how many findings there are. */
int explain_result(atn_context *context, const subject *s, result_kind kind, result_verdict *v,
                   finding findings[MOST_FINDINGS]);

/* What else a result could be, nearest first: each known mistake by itself, then types, then pairs
 * of mistakes. Only what is nearer than what was claimed. Returns how many. */
int diagnose(atn_context *context, const subject *s, result_kind kind, const result_verdict *v,
             finding findings[MOST_FINDINGS]);

/* ---- Emission (emit.c) ---- */

int emit_cases(const program_options *s);

#endif
