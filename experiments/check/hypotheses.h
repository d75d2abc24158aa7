/* SPDX-License-Identifier: BSD-3-Clause */
/* What somebody may have computed instead: one change of a problem each. */
#ifndef EXPERIMENTS_CHECK_HYPOTHESES_H
#define EXPERIMENTS_CHECK_HYPOTHESES_H

#include "check/check.h"

enum { MOST_MOVES = 2 };

typedef struct trial trial;

/* What is done to the result: to may not be from. */
typedef void result_move(const trial *t, const double *from, double *to);

/* A problem with changes. */
struct trial {
    subject s;        /* the subject's, but for what was changed */
    result_kind kind; /* what is judged, */
    result_kind of;   /* and what is computed: of the same shape */
    bool dense;
    dense_form form;        /* dense */
    int kept, missing;      /* soft's gradient of Q: all that it is, or what is not there (PART_) */
    const own_mistake *own; /* null: none */
    result_move *moves[MOST_MOVES];
    int move_count;
    void *owned[16];
    int owned_count;
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
enum { TAILS = 14 };
extern const char *const left_out_texts[],
    *const product_texts[], *const twice_texts[], *const first_texts[],
                                                      *const padded_texts[],
                                                          *const shift_texts[],
                                                              *const stride_texts[],
                                                                  *const mask_texts[],
                                                                      *const arriving_tail_texts[];
bool leave_out_tail(trial *t, int value);
bool leave_out_first(trial *t, int value);
bool leave_out_of_product(trial *t, int value);
bool count_tail_twice(trial *t, int value);
bool leave_out_arriving(trial *t, int value);
bool change_first_tile(trial *t, int value);
bool count_padding(trial *t, int value);
bool shift_inputs(trial *t, int value);
bool change_stride(trial *t, int value);
bool change_mask(trial *t, int value);

/* Room for so many numbers, 0 at first, and memory of another kind: both freed with the trial. */
double *trial_own(trial *t, int64_t count);
void trial_keep(trial *t, void *memory);
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

/* How many numbers in it are fitted to the result: 0, 1, or 2 for many. */
int hypothesis_numbers(const hypothesis *h);

trial trial_start(const subject *s, result_kind kind);
/* Makes the change. False: it cannot be made here, or nothing would change. */
bool trial_change(trial *t, const hypothesis *h);
/* The result's judged rows in a type. Negative: it cannot be computed. */
atn_status trial_answer(atn_context *context, const trial *t, atn_dtype dtype, atn_storage storage,
                        double *to);
void trial_free(trial *t);

#endif
