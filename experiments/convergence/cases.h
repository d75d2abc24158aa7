/* SPDX-License-Identifier: BSD-3-Clause */
/* Which bottleneck matrices the convergence experiments look at: inputs, each at some stages, with
 * some samples per seed. */
#ifndef EXPERIMENTS_CONVERGENCE_CASES_H
#define EXPERIMENTS_CONVERGENCE_CASES_H

#include "common/inputs.h"
#include "common/options.h"

/* How an input's tokens become landmarks and A.
 *
 * Photographs and synthetic inputs take the stages of SOFT-Tiny (IJCV Tab. 1): patches of 4, 8, 16
 * pixels of a 224 x 224 crop, so 56 x 56, 28 x 28, 14 x 14 tokens, average-pooled with stride 8, 4,
 * 2 to m = 49. Files have tokens of their own, called stage 0. They are average-pooled on their
 * grid with the largest stride that leaves at least 49 landmarks, or all tokens if there are fewer;
 * without a grid, and on a grid so thin that over 196 are left, windows of floor(n / 49)
 * consecutive tokens are averaged. The published sampling has its convolution in place of the
 * averages. */
typedef struct {
    int64_t stage, height, width, patch; /* the grid that tokens are drawn on */
    int64_t tokens, dim, landmarks;      /* n, d, m */
    atn_sampling windows;                /* as they are pooled */
    sampling_kind sampling;
    atn_distance distance;
    double scale; /* the kernel's s between tokens as they are */
} bottleneck_plan;

/* An input at a stage, sampled in one way. A file has one stage, its matrices are its samples, and
 * no seed changes them. */
typedef struct {
    const input *in;
    const char *text; /* the input as --input takes it */
    bottleneck_plan plan;
    int64_t samples, seeds, first_point;
} input_case;

typedef struct {
    const program_options *s;
    int input_count, count;
    input **inputs;
    input_case *items;
    int64_t points; /* matrices: samples run fastest, then seeds, then cases */
} case_list;

typedef struct {
    const char *input; /* null ends a list */
    int64_t samples;
} default_input;

/* What to take where the command line does not say: inputs; samples, for --input those of the first
 * default input; stages, ended by 0; all samplings that are possible, or pooling alone. */
typedef struct {
    const default_input *inputs;
    const int64_t *stages;
    bool samplings;
} case_defaults;

/* Opens the inputs of --input and plans their stages. Returns an exit code; on failure it has
 * reported the reason, and the list is to be freed all the same. */
int case_list_open(const program_options *s, const case_defaults *defaults, case_list *list);
void case_list_free(case_list *list);

/* What a point draws. */
typedef struct {
    const input_case *c;
    uint64_t seed;
    int64_t sample;
} case_draw;

case_draw case_list_draw(const case_list *list, int64_t point);
void case_draw_describe(const case_draw *draw, char *buffer, size_t size);
options_point case_list_replay(const case_list *list, int64_t point);
/* For an experiment whose state starts with a case_list: its input; and, where its points are the
 * list's, describe, replay, weight (m^3) and release. */
bool case_sweep_input(const void *state, int index, const char **name, const char **sha256);
void case_sweep_describe(const void *state, int64_t point, char *buffer, size_t size);
void case_sweep_replay(const void *state, int64_t point, options_point *options);
double case_sweep_weight(const void *state, int64_t point);
void case_sweep_release(void *state);
/* A draw's tokens, n x d, prepared for its sampling, to be freed. Returns an exit code. */
int case_draw_tokens(const case_draw *draw, double **tokens);

#endif
