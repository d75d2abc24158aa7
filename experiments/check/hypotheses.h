/* SPDX-License-Identifier: BSD-3-Clause */
/* What somebody may have computed instead: one change of a problem each. */
#ifndef EXPERIMENTS_CHECK_HYPOTHESES_H
#define EXPERIMENTS_CHECK_HYPOTHESES_H

#include "check/check.h"
#include "check/normed.h"
#include "check/weights.h"

enum { MOST_MOVES = 2 };

typedef struct trial trial;

/* What is done to the result: to may not be from. */
typedef void result_move(const trial *t, const double *from, double *to);

/* A number that is found by a search: epsilon, or what the state starts at. */
typedef enum { SEARCH_NOT, SEARCH_EPSILON, SEARCH_INITIAL } trial_search;

/* A problem with changes. */
struct trial {
    subject s;        /* the subject's, but for what was changed */
    result_kind kind; /* what is judged, */
    result_kind of;   /* and what is computed: of the same shape */
    bool dense;
    dense_form form;                    /* dense */
    bool normed;                        /* norms or weights of tokens are changed (norms.c) */
    norm_form norms;                    /* normed */
    int64_t normed_tokens, normed_keys; /* how many there were when norms was set */
    trial_search search;
    double number;                /* what it found */
    const weight_change *weights; /* null: as they are */
    int kept, missing;      /* soft's gradient of Q: all that it is, or what is not there (PART_) */
    const own_mistake *own; /* null: none */
    result_move *moves[MOST_MOVES];
    int move_count;
    owned_memory owned;
};

/* What a right result may have become afterwards (results.c). fitted: with numbers that are fitted
 * to the result that is judged. */
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

/* What may have been read in the place of the inputs (inputs.c): a change and the texts of its
 * values, ended by null. */
enum { TAILS = 14, STRIDES = 18 };
extern const char *const left_out_texts[],
    *const product_texts[],
        *const twice_texts[], *const first_texts[],
                                  *const padded_texts[],
                                      *const shift_texts[],
                                          *const stride_texts[],
                                              *const mask_texts[], *const arriving_tail_texts[],
                                                                       *const arriving_held_texts[],
                                                                           *const held_texts[];
bool leave_out_tail(trial *t, int value);
bool leave_out_first(trial *t, int value);
bool leave_out_of_product(trial *t, int value);
bool count_tail_twice(trial *t, int value);
bool leave_out_arriving(trial *t, int value);
bool hold_tail_alone(trial *t, int value);
bool hold_arriving_tail_alone(trial *t, int value);
bool change_first_tile(trial *t, int value);
bool count_padding(trial *t, int value);
bool shift_inputs(trial *t, int value);
bool change_stride(trial *t, int value);
bool change_mask(trial *t, int value);

/* What Q, K and V may have become before they were used (reads.c). */
enum { TYPED = 42, TILED = 32 };
extern const char *const type_texts[], *const channel_texts[], *const row_texts[],
                                                                   *const tile_texts[];
bool set_type(trial *t, int value);
bool leave_out_channels(trial *t, int value);
bool change_rows(trial *t, int value);
bool misread_tiles(trial *t, int value);

/* What an operator's own tensors may have been taken for (tensors.c). */
enum { TENSORS_READ = 13 };
extern const char *const tensor_texts[];
bool read_tensors(trial *t, int value);

/* Another gradient, a part of it, or of another dY (gradients.c). */
extern const char *const in_place_texts[],
    *const role_texts[], *const projection_texts[], *const part_texts[], *const arriving_texts[],
                                                                             *const summed_texts[];
bool set_result(trial *t, int value);
bool keep_role(trial *t, int value);
bool keep_projection(trial *t, int value);
bool keep_parts(trial *t, int value);
bool change_arriving(trial *t, int value);
bool sum_some(trial *t, int value);
bool leave_untransposed(trial *t, int value);

/* SOFT by another form of its landmarks (landmarks.c). */
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

/* Other norms or another state (norms.c), by number. fitted: with a number that is found by a
 * search. */
int norm_change_count(void);
bool norm_change_is_of(int value, atn_operator op, bool gradient);
bool norm_change_is_fitted(int value);
char *norm_change_text(int value, atn_operator op);
bool change_norm(trial *t, int value);
/* Tokens from, ..., to - 1 enter the state so many times. */
bool weigh_tokens(trial *t, int64_t from, int64_t to, double factor);
/* The result of a normed trial, all rows; sets its number where that is sought. */
atn_status answer_normed(trial *t, double *to);

/* Room for so many numbers, 0 at first, a copy of them, and memory of another kind: all freed with
 * the trial. */
double *trial_own(trial *t, int64_t count);
double *trial_copy(trial *t, const double *x, int64_t count);
void trial_keep(trial *t, void *memory);
/* Whether landmarks are appended: a change of arrays also is one of what is judged, whose values
 * say what is trivial; those stay where they are. */
bool trial_has_landmarks(const trial *t);
result_kind parameter_result(atn_parameter which);
/* K as an array of its own. */
void trial_separate_keys(trial *t);

/* One of the hypotheses about a result of an operator. */
typedef struct {
    result_kind kind; /* what it is about */
    int row;          /* of the tables in hypotheses.c */
    const parameter *p;
    int value;
    double real;
} hypothesis;

/* All of them, in the order in which they are named where several explain as much. To be freed. */
hypothesis *hypotheses_of(const subject *s, result_kind kind, int *count);

/* What was changed, as text; to be freed. */
char *hypothesis_text(const hypothesis *h, const subject *s);

/* Whether it is tried with another: not where numbers are fitted, which come nearer to anything
 * then, or where the library does not compute it, which takes longer. */
bool hypothesis_pairs(const hypothesis *h);

/* How many numbers in it are fitted to the result: 0, 1, or 2 for many; and whether by a search,
 * which takes many answers. */
int hypothesis_numbers(const hypothesis *h);
bool hypothesis_searches(const hypothesis *h);

/* Whether it is one of Q's, K's or the state's norms. */
bool hypothesis_is_of_norms(const hypothesis *h);

/* Whether it is what became of the result that was claimed. */
bool hypothesis_is_of_result(const hypothesis *h);

trial trial_start(const subject *s, result_kind kind);
/* Makes the change. False: it cannot be made here, or nothing would change. */
bool trial_change(trial *t, const hypothesis *h);
/* The result's judged rows in a type. Negative: it cannot be computed. */
atn_status trial_answer(atn_context *context, trial *t, atn_dtype dtype, atn_storage storage,
                        double *to);
/* What is done to the result, to `to`. */
void trial_move(const trial *t, double *to);
void trial_free(trial *t);

/* What is left of a trial, after its changes, is one head of all batches'. False: it does not stand
 * by itself. */
bool trial_keep_head(trial *t, int64_t index);
/* And of its queries so many, evenly spaced: of n, row i is row i n / rows. False: rows do not
 * stand by themselves. */
bool trial_keep_rows(trial *t, int64_t rows);

#endif
