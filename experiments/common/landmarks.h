/* SPDX-License-Identifier: BSD-3-Clause */
/* The draws of convergence/ and spectral/: opened inputs, the tokens of a stage or of a number of
 * landmarks, and the points of a sweep over them, each with its own tokens and landmarks. */
#ifndef EXPERIMENTS_LANDMARKS_H
#define EXPERIMENTS_LANDMARKS_H

#include "experiment.h"
#include "inputs.h"

typedef struct {
    int count;
    input **items;
} input_set;

/* Opens the inputs of --input, or `usual` (ended by null). Refuses two inputs of the same name,
 * whose rows could not be told apart. Returns an exit code; the set is to be freed in any case. */
int input_set_open(const program_options *s, const char *const *usual, input_set *set);
/* The same for `count` names. */
int input_set_open_names(const program_options *s, const char *const *names, int count,
                         input_set *set);
/* The same for the networks of --network, or `usual` (ended by null): the input NETWORK_PREFIX NAME
 * has the name of each. */
#define NETWORK_PREFIX "trained:"
int input_set_open_networks(const program_options *s, const char *const *usual, input_set *set);
/* Such an input's name as --network has it. */
const char *network_name(const input *in);
void input_set_free(input_set *set);
/* For experiment::input. */
bool input_set_describe(const input_set *set, int index, const char **name, const char **sha256);

/* Tokens on a height x width grid, pooled with a stride; or (windows) height tokens in a row,
 * averaged over windows of `stride` tokens: a file whose grid is not known. */
typedef struct {
    int64_t height, width, patch, stride;
    bool windows;
} token_grid;

/* Sets the largest stride that gives the number of landmarks nearest to m, and returns that number;
 * 0 if no stride gives at most 16384. */
int64_t choose_stride(token_grid *grid, int64_t m);

/* Whether an input's tokens have a grid of their own: those of a file, and of a trained network.
 * Unless --stage, --m or --n are given, experiments but spectral/bounds and spectral/sampling take
 * that grid and the numbers nearest to those that they use of other inputs. */
bool input_has_own_grid(const input *in);
/* That grid: all tokens of a file, those of a picture of the size that a network was trained with.
 * Its stride is 0. */
token_grid own_grid(const input *in);
/* Whether an input has a square grid of that side; a file has its own grid alone. */
bool input_has_side(const input *in, int64_t side);
/* EXIT_USAGE, reported, if a trained network does not. */
int check_side(const input *in, int64_t side);
/* That side, or for an input with its own grid the nearest multiple of this that it has. */
int64_t nearest_side(const input *in, int64_t side);

/* The tokens that give the number of landmarks of an input nearest to m, and that number. Synthetic
 * fields: sampled on a sqrt(m) x sqrt(m) grid, each token a landmark. Photographs: 64 x 64 patches
 * of 4 pixels, pooled. Trained networks: their grid, or a multiple of it with m tokens, pooled.
 * Files: their own tokens, pooled. */
int64_t landmark_grid(const input *in, int64_t m, token_grid *grid);

/* The stages of SOFT-Tiny (IJCV Tab. 1), in patches of 4, 8, 16 pixels of a 224 x 224 crop: 56 x
 * 56, 28 x 28, 14 x 14 tokens, which strides 8, 4, 2 pool to 49 landmarks. Synthetic fields (or
 * null) take the same numbers of tokens; a file has its own, and no stride. */
token_grid stage_grid(const input *in, int64_t stage);

/* With more tokens an n x n matrix takes minutes, and several of them gigabytes. */
enum { MOST_TOKENS = 4096 };

/* EXIT_USAGE, reported in the name of an experiment, if a file has more than MOST_TOKENS tokens. */
int refuse_large_files(const input_set *inputs, const char *name);

/* Whether an experiment leaves out an input that does not have the m or n that was asked for: if it
 * has its own grid and is one of the usual inputs, not of --input. */
bool is_left_out(const program_options *s, const input *in, bool has_it);

/* EXIT_PASS if `given`, the number of landmarks that an input has for m, is acceptable: it is m, or
 * the input has its own grid and --m was not given. Otherwise EXIT_USAGE, reported. */
int check_landmarks(const program_options *s, const input *in, int64_t m, int64_t given);

/* EXIT_USAGE, reported, if --samples is more than the input has (input_samples). */
int check_samples(const program_options *s, const input *in);

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

/* Reports a negative status of the library; EXIT_ENVIRONMENT, or EXIT_PASS for others. */
int check_status(const atn_context *context, atn_status status, const char *what);

/* ---- Points ---- */

/* A draw: an input's tokens on a grid, and the landmarks that are sampled from them. */
typedef struct {
    uint64_t seed;
    const input *in; /* null: the tokens that spectral/bounds makes */
    int64_t stage;   /* 0: none, as on an input's own grid */
    int64_t m, sample;
    token_grid grid;
    sampling_kind sampling;
    int series;      /* of convergence/, from 0: one number for all seeds and samples */
    double distance; /* of the two tokens that spectral/bounds makes */
    int kind;        /* of spectral/resolution and spectral/softmax: how tokens are made */
    double norm;     /* of spectral/softmax's dominant token */
} landmark_point;

typedef struct {
    const program_options *s;
    input_set inputs;
    landmark_point *points;
    int64_t count, capacity;
    int series;
} landmark_sweep;

/* A sweep without points. Refuses --scale embed. Returns an exit code; *state is set and to be
 * released in any case. */
int landmark_sweep_start(const program_options *s, const char *const *usual_inputs, void **state);
void landmark_sweep_add(landmark_sweep *sweep, const landmark_point *point);
/* Adds a point of an input once per sample: --samples of them, or `usual`. A file is the same under
 * all seeds and gets the first. No input gives more than input_samples, which is an error only if
 * --samples was given. Returns an exit code. */
int landmark_sweep_add_samples(landmark_sweep *sweep, landmark_point point, int64_t usual);

/* The same of an input's tokens at a stage, pooled to m landmarks. */
int landmark_sweep_add_stage(landmark_sweep *sweep, uint64_t seed, const input *in, int64_t stage,
                             int64_t m, int64_t usual);

/* All points for --seed, --input, --m and --samples, of the inputs photos, trained:soft,
 * trained:softmax, smooth, smooth:8, noisy, iid, iid:0.3, clusters if --input was not given. m is
 * the experiment's ascending list (ended by 0) if --m was not given; an input with its own grid
 * then takes the nearest number to each that this allows, each once. samples(s, m) is the usual
 * number of samples. For experiment::prepare. */
int landmark_sweep_open(const program_options *s, const int64_t *m,
                        int64_t (*samples)(const program_options *s, int64_t m), void **state,
                        int64_t *points);
/* The same with other usual inputs, ended by null. */
int landmark_sweep_open_inputs(const program_options *s, const char *const *usual_inputs,
                               const int64_t *m,
                               int64_t (*samples)(const program_options *s, int64_t m),
                               void **state, int64_t *points);
/* The defaults of landmark_sweep_open_stages: inputs, ended by null, and their numbers of samples
 * (with --input, that of the first); stages, ended by 0; whether all samplings are used or only
 * pooling. */
enum { MOST_USUAL_INPUTS = 16 };
typedef struct {
    const char *name;
    int64_t samples;
} usual_input;
typedef struct {
    const usual_input *inputs;
    const int64_t *stages;
    bool samplings;
} stage_defaults;

/* The points of convergence/: those of an input, a stage and a sampling follow each other, the
 * samples of a seed, then those of the next. A file has its own grid and no stage, and a trained
 * network, too, unless --stage is given; a file's matrices are its samples. On its own grid an
 * input's tokens are averaged with the largest stride that leaves at least 49 landmarks, or all
 * tokens are taken if there are fewer; without a grid, and on a grid so narrow that over 196 are
 * left, windows of floor(n / 49) consecutive tokens are averaged. The other samplings have
 * convolutions in place of the averages. *sweep must be the first member of the experiment's state,
 * which landmark_sweep_release frees. Returns an exit code. */
int landmark_sweep_open_stages(landmark_sweep *sweep, const program_options *s,
                               const stage_defaults *usual);

void landmark_sweep_close(landmark_sweep *sweep); /* frees its members */

/* The members `describe`, `weight`, `input`, `release` and `replay` of an experiment. */
void landmark_sweep_describe(const void *state, int64_t point, char *buffer, size_t size);
double landmark_sweep_weight(const void *state, int64_t point);
bool landmark_sweep_input(const void *state, int index, const char **name, const char **sha256);
void landmark_sweep_release(void *state);
void landmark_sweep_replay(const void *state, int64_t point, options_point *options);

/* Repeats every point for each of --sampling or, if that was not given, for every possible
 * sampling but SAMPLING_TRAINED, whose m is fixed; an input's points are ordered by sampling.
 * Without this call points have pooled landmarks. Returns an exit code. */
int landmark_sweep_vary_sampling(landmark_sweep *sweep);

/* s of the kernel between a point's tokens as they are; its stage has the heads of SOFT-Tiny's. */
double landmark_point_scale(const program_options *s, const landmark_point *point);

/* A point's tokens, grid_tokens x input_dim, prepared for its sampling, to be freed. Returns an
 * exit code. */
int landmark_sweep_tokens(const landmark_sweep *sweep, const landmark_point *point,
                          double **tokens);
/* Landmarks of such tokens, in their dtype. Returns an exit code. */
int landmark_point_sample(const landmark_point *point, atn_context *context,
                          const atn_tensor *tokens, atn_tensor *landmarks);

/* The landmarks of a point, m x input_dim, to be freed, and the kernel's scale between them.
 * Returns an exit code. */
int landmark_sweep_landmarks(const landmark_sweep *sweep, const landmark_point *point,
                             atn_context *context, double **landmarks, double *scale);

#endif
