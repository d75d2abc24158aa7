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

/* Opens the inputs of --input, or `usual` (ended by null). Refuses two of the same name: rows could
 * not be told apart. Returns an exit code; the set is to be freed in any case. */
int input_set_open(const program_options *s, const char *const *usual, input_set *set);
void input_set_free(input_set *set);

/* Tokens on a height x width grid, pooled with a stride; or (windows) height tokens in a row,
 * averaged over windows of `stride` tokens: a file whose grid is not known. */
typedef struct {
    int64_t height, width, patch, stride;
    bool windows;
} token_grid;

/* Sets the largest stride that gives the number of landmarks nearest to m, and returns that number;
 * 0 if no stride gives at most 16384. */
int64_t choose_stride(token_grid *grid, int64_t m);

/* All tokens of a file; its stride is 0. */
token_grid file_grid(const input *in);

/* The tokens that give the number of landmarks of an input nearest to m, and that number. Synthetic
 * fields: sampled on a sqrt(m) x sqrt(m) grid, each token a landmark. Photographs: 64 x 64 patches
 * of 4 pixels, pooled. Files: their own tokens, pooled. */
int64_t landmark_grid(const input *in, int64_t m, token_grid *grid);

/* Stages as in SOFT: 56, 28, 14 patches of 4, 8, 16 pixels a side; synthetic fields (or null) take
 * the same numbers of tokens; a file has its own. */
token_grid stage_grid(const input *in, int64_t stage);

/* EXIT_USAGE, reported in the name of an experiment, if a file has so many tokens that n x n
 * matrices of them are too large. */
int refuse_large_files(const input_set *inputs, const char *name);

/* EXIT_PASS if `given` landmarks, of an input asked for m, are to be taken: m, or what a file has
 * where --m was not given. Otherwise EXIT_USAGE, reported. */
int check_landmarks(const program_options *s, const input *in, int64_t m, int64_t given);

int64_t input_dim(const input *in);
int64_t grid_tokens(const token_grid *grid);
int64_t grid_landmarks(const token_grid *grid);

/* Pools tokens, grid_tokens x dim, into landmarks, grid_landmarks x dim. Returns an exit code. */
int pool_tokens(const token_grid *grid, atn_context *context, int64_t dim, double *tokens,
                double *landmarks);

/* The pooled landmarks, grid_landmarks x input_dim, and the tokens they are pooled from,
 * grid_tokens x input_dim; either may be null. Returns an exit code. */
int make_landmarks(const input *in, const token_grid *grid, uint64_t seed, int64_t sample,
                   atn_context *context, double *tokens, double *landmarks);

/* s of the kernel for one head of width dim. */
double kernel_scale(const program_options *s, int64_t dim);

/* K(X, X) of count tokens, f64, with the options' distance, and scale for one head: an input is
 * one. Returns an exit code. */
int make_kernel(const program_options *s, atn_context *context, int64_t count, int64_t dim,
                double *tokens, double *kernel);
/* K(X, Y) of rows tokens x and cols tokens y, the same way. */
int make_cross_kernel(const program_options *s, atn_context *context, int64_t rows, int64_t cols,
                      int64_t dim, double *x, double *y, double *kernel);

/* X_20 of a Newton-Raphson variant for symmetric a, m x m, and of nr-paper: the papers' stand-in
 * for A+. Return an exit code. */
enum { PAPER_STEPS = 20 };
int make_iterate_of(atn_context *context, atn_inverse_method method, int64_t m, double *a,
                    double *x);
int make_iterate(atn_context *context, int64_t m, double *a, double *x);

/* EXIT_CHECK and a line on stderr if two routes to what disagree by so many times the rounding
 * error to be expected that the ruler's rule for spectra FAILs. */
int check_disagreement(double disagreement, const char *what, int64_t n);
/* lambda (descending) and w, or null, of symmetric a by two routes, their disagreement checked. */
int checked_eigenvalues(int64_t n, const double *a, double *lambda, double *w);
/* The smallest and the largest of them, and |a|_2, the same way. */
int checked_ends(int64_t n, const double *a, double *lowest, double *highest);
int checked_norm(int64_t n, const double *a, double *norm);

/* Eigenvalues (descending) above m u lambda_1. */
int64_t numerical_rank(int64_t m, const double *lambda, double u);

/* Reports a negative status of the library; EXIT_ENVIRONMENT, or EXIT_PASS for others. */
int check_status(const atn_context *context, atn_status status, const char *what);

/* ---- Points ---- */

typedef struct {
    uint64_t seed;
    const input *in; /* null: tokens of spectral/bounds' own */
    int64_t stage;   /* of spectral/bounds; 0: none */
    int64_t m, sample;
    token_grid grid;
    sampling_kind sampling;
    double distance; /* of two tokens of spectral/bounds' own */
    int kind;        /* of spectral/resolution and spectral/softmax: how tokens are made */
    double norm;     /* of spectral/softmax's dominant token */
} landmark_point;

typedef struct {
    const program_options *s;
    input_set inputs;
    landmark_point *points;
    int64_t count, capacity;
} landmark_sweep;

/* A sweep without points. Refuses --scale embed. Returns an exit code; *state is set and to be
 * released in any case. */
int landmark_sweep_start(const program_options *s, const char *const *usual_inputs, void **state);
void landmark_sweep_add(landmark_sweep *sweep, const landmark_point *point);
/* Adds a point of an input once per sample: --samples of them, or `usual`. A file is the same under
 * all seeds and takes the first; it cannot give more samples than it has matrices, which is an
 * error only for a number that was asked for. Returns an exit code. */
int landmark_sweep_add_samples(landmark_sweep *sweep, landmark_point point, int64_t usual);

/* The same for an input's tokens at a stage, pooled to m landmarks. */
int landmark_sweep_add_stage(landmark_sweep *sweep, uint64_t seed, const input *in, int64_t stage,
                             int64_t m, int64_t usual);

/* All points for --seed, --input, --m and --samples, of the inputs photos, smooth, smooth:8, noisy,
 * iid, iid:0.3, clusters if --input was not given. m is an experiment's own ascending list (ended
 * by 0) for where --m was not given; a file then takes the nearest it has to each, each once.
 * samples(s, m) is the usual number of samples. For experiment::prepare. */
int landmark_sweep_open(const program_options *s, const int64_t *m,
                        int64_t (*samples)(const program_options *s, int64_t m), void **state,
                        int64_t *points);
/* The same with other usual inputs, ended by null. */
int landmark_sweep_open_inputs(const program_options *s, const char *const *usual_inputs,
                               const int64_t *m,
                               int64_t (*samples)(const program_options *s, int64_t m),
                               void **state, int64_t *points);
/* For the members of an experiment of these names. */
void landmark_sweep_describe(const void *state, int64_t point, char *buffer, size_t size);
double landmark_sweep_weight(const void *state, int64_t point);
bool landmark_sweep_input(const void *state, int index, const char **name, const char **sha256);
void landmark_sweep_release(void *state);
void landmark_sweep_replay(const void *state, int64_t point, options_point *options);

/* Takes every point once for each of --sampling, or, where that was not given, for every sampling
 * that is possible, an input's points of one sampling after those of another; points have pooled
 * landmarks otherwise. Returns an exit code. */
int landmark_sweep_vary_sampling(landmark_sweep *sweep);

/* The landmarks of a point, m x input_dim, to be freed, and the kernel's scale between them.
 * Returns an exit code. */
int landmark_sweep_landmarks(const landmark_sweep *sweep, const landmark_point *point,
                             atn_context *context, double **landmarks, double *scale);

/* A of a point, m x m, to be freed. Returns an exit code. */
int landmark_sweep_matrix(const landmark_sweep *sweep, const landmark_point *point,
                          atn_context *context, double **a);

#endif
