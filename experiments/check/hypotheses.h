/* SPDX-License-Identifier: BSD-3-Clause */
/* What may have been computed instead: every hypothesis is one change of a problem. */
#ifndef EXPERIMENTS_CHECK_HYPOTHESES_H
#define EXPERIMENTS_CHECK_HYPOTHESES_H

#include "check/check.h"
#include "check/normed.h"
#include "check/weights.h"

enum { MOST_MOVES = 2 };

typedef struct trial trial;

/* A change of the result after it was computed. to must not be from. */
typedef void result_move(const trial *t, const double *from, double *to);

/* The number that a search finds: epsilon, or the initial value of the state. */
typedef enum { SEARCH_NOT, SEARCH_EPSILON, SEARCH_INITIAL } trial_search;

/* A problem with changes. */
struct trial {
    subject s;        /* the subject with the changes */
    result_kind kind; /* the result that is judged, */
    result_kind of;   /* and the result that is computed, of the same shape */
    bool dense;
    dense_form form;                    /* if dense */
    bool normed;                        /* norms or weights of tokens are changed (norms.c) */
    norm_form norms;                    /* if normed */
    int64_t normed_tokens, normed_keys; /* numbers of tokens and keys when norms was set */
    trial_search search;
    double number;                /* the number that was found */
    const weight_change *weights; /* null: unchanged */
    int kept, missing; /* soft's gradient of Q: the only parts that it has, or the parts that it
                          lacks (PART_) */
    const own_mistake *own; /* null: none */
    result_move *moves[MOST_MOVES];
    int move_count;
    owned_memory owned;
};

/* Changes of a right result after it was computed (results.c). fitted: with numbers that are fitted
 * to the judged result. */
typedef struct {
    int64_t batch, heads, rows, cols, size;
} result_sizes;

typedef struct {
    const char *text; /* %s: "output" or "gradient" */
    result_move *move;
    bool fitted;
    bool (*applies)(const result_sizes *s);
} result_change;

extern const result_change result_changes[];
extern const int result_change_count;
bool result_change_fits(const trial *t, int row);

/* Wrong reads of the inputs (inputs.c): functions that make a change, and the texts of its values,
 * ended by null. */
enum { TAILS = 14, STRIDES = 18 };
extern const char *const left_out_texts[],
    *const product_texts[], *const twice_texts[],
                                *const first_texts[],
                                    *const padded_texts[],
                                        *const shift_texts[],
                                            *const stride_texts[],
                                                *const mask_texts[],
                                                    *const grad_output_tail_texts[],
                                                        *const grad_output_kept_texts[],
                                                            *const kept_texts[];
bool leave_out_tail(trial *t, int value);
bool leave_out_first(trial *t, int value);
bool leave_out_of_product(trial *t, int value);
bool count_tail_twice(trial *t, int value);
bool leave_out_grad_output_tail(trial *t, int value);
bool keep_tail_alone(trial *t, int value);
bool keep_grad_output_tail_alone(trial *t, int value);
bool change_first_tile(trial *t, int value);
bool count_padding(trial *t, int value);
bool shift_inputs(trial *t, int value);
bool change_stride(trial *t, int value);
bool change_mask(trial *t, int value);

/* Changes of Q, K and V before they are used (reads.c). */
enum { TYPED = 42, TILED = 32 };
extern const char *const type_texts[], *const channel_texts[], *const row_texts[],
                                                                   *const tile_texts[];
bool set_type(trial *t, int value);
bool leave_out_channels(trial *t, int value);
bool change_rows(trial *t, int value);
bool misread_tiles(trial *t, int value);

/* Wrong reads of an operator's own tensors (tensors.c). */
enum { TENSORS_READ = 13 };
extern const char *const tensor_texts[];
bool read_tensors(trial *t, int value);

/* Another gradient, a part of it, or of another dY (gradients.c). */
extern const char *const in_place_texts[],
    *const role_texts[], *const projection_texts[], *const part_texts[], *const grad_output_texts[],
                                                                             *const summed_texts[];
bool set_result(trial *t, int value);
bool keep_role(trial *t, int value);
bool keep_projection(trial *t, int value);
bool keep_parts(trial *t, int value);
bool change_grad_output(trial *t, int value);
bool sum_some(trial *t, int value);
bool leave_untransposed(trial *t, int value);

/* SOFT with other landmarks, normalisations, distances or inverses (landmarks.c). */
extern const char *const normalisation_texts[],
    *const landmark_texts[], *const landmark_count_texts[], *const sampling_texts[],
                                                                *const inverse_texts[],
                                                                    *const distance_texts[];
bool set_normalisation(trial *t, int value);
bool leave_landmarks(trial *t, int value);
bool leave_inverse_out(trial *t, int value);
bool sum_landmarks(trial *t, int value);
bool set_distance(trial *t, int value);
bool set_landmarks(trial *t, int value);
bool set_landmark_count(trial *t, int value);
bool set_sampling(trial *t, int value);

/* Other norms or another state (norms.c), by number. fitted: a search finds a number in it. */
int norm_change_count(void);
bool norm_change_is_of(int value, atn_operator op, bool gradient);
bool norm_change_is_fitted(int value);
char *norm_change_text(int value, atn_operator op);
bool change_norm(trial *t, int value);
/* Multiplies tokens from, ..., to - 1 by a factor in the state. */
bool weigh_tokens(trial *t, int64_t from, int64_t to, double factor);
/* The result of a normed trial, all rows. Sets the trial's number where that is searched for. */
atn_status answer_normed(trial *t, double *to);

/* Memory that is freed with the trial: an array of zeros, a copy of an array, and memory allocated
 * by the caller. */
double *trial_own(trial *t, int64_t count);
double *trial_copy(trial *t, const double *x, int64_t count);
void trial_keep(trial *t, void *memory);
/* Whether landmarks are appended to the tokens; most changes of whole arrays are refused then. */
bool trial_has_landmarks(const trial *t);
result_kind parameter_result(atn_parameter which);
/* Makes K an array of its own. */
void trial_separate_keys(trial *t);

/* A hypothesis about a result of an operator. */
typedef struct {
    result_kind kind; /* of the result */
    int row;          /* of the tables in hypotheses.c */
    const parameter *p;
    int value;
    double real;
} hypothesis;

/* All hypotheses, in the order in which they are named where several explain the result equally
 * well. To be freed. */
hypothesis *hypotheses_of(const subject *s, result_kind kind, int *count);

/* What was changed, as text; to be freed. */
char *hypothesis_text(const hypothesis *h, const subject *s);

/* Whether it is tried in pairs: not if many numbers are fitted or one is searched for, since that
 * comes near to any result, nor if weights.c computes it, which takes longer than the library. */
bool hypothesis_pairs(const hypothesis *h);

/* How many numbers in it are fitted to the result: 0, 1, or 2 for many; and whether one is found by
 * a search, which takes many answers. */
int hypothesis_numbers(const hypothesis *h);
bool hypothesis_searches(const hypothesis *h);

/* Whether it changes the norms of Q, K or the state. */
bool hypothesis_is_of_norms(const hypothesis *h);

/* Whether it changes the result after it was computed. */
bool hypothesis_is_of_result(const hypothesis *h);

trial trial_start(const subject *s, result_kind kind);
/* Makes the change. False: it cannot be made here, or nothing would change. */
bool trial_change(trial *t, const hypothesis *h);
/* The judged rows of the result, computed in a type. Negative: it cannot be computed. */
atn_status trial_answer(atn_context *context, trial *t, atn_dtype dtype, atn_storage storage,
                        double *to);
/* Applies the changes of the result to `to`. */
void trial_move(const trial *t, double *to);
void trial_free(trial *t);

/* Reduces a trial, after its changes, to one head of one batch entry. False: its heads depend on
 * each other. */
bool trial_keep_head(trial *t, int64_t index);
/* Reduces it further to evenly spaced queries: row i becomes row i n / rows of n. False: its rows
 * depend on each other. */
bool trial_keep_rows(trial *t, int64_t rows);

#endif
