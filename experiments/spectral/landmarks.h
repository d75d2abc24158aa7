/* SPDX-License-Identifier: BSD-3-Clause */
/* What the spectral experiments share: opened inputs, landmarks in a wanted number, the bottleneck
 * matrix A of them, and eigenvalues that two routes agree on. */
#ifndef EXPERIMENTS_SPECTRAL_LANDMARKS_H
#define EXPERIMENTS_SPECTRAL_LANDMARKS_H

#include "common/experiment.h"
#include "common/inputs.h"

typedef struct {
    int count;
    input **items;
} input_set;

/* Opens the inputs of --input, or the spectral experiments' own list: photos, smooth, smooth:8,
 * noisy, iid, iid:0.3, clusters. Returns an exit code; the set is to be freed in any case. */
int input_set_open(const settings *s, input_set *set);
void input_set_free(input_set *set);
/* For experiment::input. */
bool input_set_get(const input_set *set, int index, const char **name, const char **sha256);

/* How many samples an input is to give: --samples, or `usual`; a file cannot give more than it has
 * matrices, which is an error only for a number that was asked for. Returns an exit code. */
int input_sample_count(const settings *s, const input *in, int64_t usual, int64_t *count);

/* Tokens on a height x width grid, pooled with a stride. */
typedef struct {
    int64_t height, width, patch, stride;
} token_grid;

/* The largest stride that pools a height x width grid to m landmarks, or 0; *nearest is the number
 * of landmarks nearest to m that pooling can give. */
int64_t pooling_stride(int64_t height, int64_t width, int64_t m, int64_t *nearest);

/* The tokens that give m landmarks of an input. Synthetic fields: sampled on a sqrt(m) x sqrt(m)
 * grid, each token a landmark. Photographs: 64 x 64 patches of 4 pixels, pooled. Files: their own
 * grid, pooled. False if there are none; *nearest is then the nearest m that has some. */
bool landmark_grid(const input *in, int64_t m, token_grid *grid, int64_t *nearest);
/* Says so on stderr; EXIT_USAGE. nearest 0: a file whose grid is not known. */
int report_no_landmarks(const input *in, int64_t m, int64_t nearest);

int64_t input_dim(const input *in);
int64_t grid_tokens(const token_grid *grid);
int64_t grid_landmarks(const token_grid *grid);

/* The pooled landmarks, grid_landmarks x input_dim, and the tokens they are pooled from,
 * grid_tokens x input_dim; either may be null. Returns an exit code. */
int make_landmarks(const input *in, const token_grid *grid, uint64_t seed, int64_t sample,
                   atn_context *context, double *tokens, double *landmarks);

/* K(X, X) of count tokens, f64, with the settings' distance, and scale for one head: an input is
 * one. Returns an exit code. */
int make_kernel(const settings *s, atn_context *context, int64_t count, int64_t dim, double *tokens,
                double *kernel);
/* K(X, Y) of rows tokens x and cols tokens y, the same way. */
int make_cross_kernel(const settings *s, atn_context *context, int64_t rows, int64_t cols,
                      int64_t dim, double *x, double *y, double *kernel);

/* X_20 of nr-paper for symmetric a, m x m: the papers' stand-in for A+. Returns an exit code. */
enum { PAPER_STEPS = 20 };
int make_iterate(atn_context *context, int64_t m, double *a, double *x);

/* EXIT_CHECK and a line on stderr if two routes to what disagree by 10 times the rounding error to
 * be expected, or more. */
int check_disagreement(double disagreement, const char *what, int64_t n);
/* lambda (descending) and w, or null, of symmetric a by two routes, their disagreement checked. */
int checked_eigenvalues(int64_t n, const double *a, double *lambda, double *w);
/* |a|_2 of symmetric a, the same way. */
int checked_norm(int64_t n, const double *a, double *norm);

/* Reports a negative status of the library; EXIT_ENVIRONMENT, or EXIT_PASS for others. */
int check_status(const atn_context *context, atn_status status, const char *what);

/* ---- Points of (seed, input, m, sample) ---- */

typedef struct {
    uint64_t seed;
    const input *in;
    int64_t m, sample;
    token_grid grid;
} landmark_point;

typedef struct {
    const settings *s;
    input_set inputs;
    landmark_point *points;
    int64_t count, capacity;
} landmark_sweep;

/* All points for --seed, --input, --m and --samples. m is an experiment's own list (ended by 0) for
 * where --m was not given; of that list only what all inputs can give is taken. samples(s, m) is
 * the usual number of samples. For experiment::prepare. */
int landmark_sweep_open(const settings *s, const int64_t *m,
                        int64_t (*samples)(const settings *s, int64_t m), void **state,
                        int64_t *points);
/* For the members of an experiment of these names. */
void landmark_sweep_describe(const void *state, int64_t point, char *buffer, size_t size);
double landmark_sweep_weight(const void *state, int64_t point);
bool landmark_sweep_input(const void *state, int index, const char **name, const char **sha256);
void landmark_sweep_release(void *state);

/* A of a point, m x m, to be freed. Returns an exit code. */
int landmark_sweep_matrix(const landmark_sweep *sweep, const landmark_point *point,
                          atn_context *context, double **a);

#endif
