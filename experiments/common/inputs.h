/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs: where the tokens of an experiment come from. Photographs, synthetic fields, heads of a
 * trained network, or the user's tokens in a .npy file. */
#ifndef EXPERIMENTS_INPUTS_H
#define EXPERIMENTS_INPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "image.h"
#include "layout.h"

typedef struct input input;

/* Which tokens are wanted: see input_tokens. */
typedef struct {
    int64_t height, width, patch;
    uint64_t seed;
    int64_t sample;
} input_draw;

/* A named input. The same table feeds `attnum list inputs` and --input. */
typedef struct {
    const char *name;
    const char *parameter; /* what NAME:PARAMETER means, "" for none: "sigma, default 1" */
    double initial, lowest, highest; /* the parameter's default and range; 0 if it is a text */
    bool whole;                      /* the parameter is a whole number */
    int (*make)(const input *in, const input_draw *draw, double *tokens);
    const char *formula; /* how a token is made */
} input_kind;

extern const input_kind input_kinds[]; /* ended by a null name */

enum { TOKEN_DIM = 32 }; /* d of one head, as in every SOFT model */

/* Opens "photos", "iid:0.3", "smooth", ... or a path ending in .npy. grid_height and grid_width are
 * --grid, 0 where not given; only files use them. Returns an exit code; on failure one line on
 * stderr. All photographs are read and checked against their SHA-256 here. */
int input_open(const char *text, int64_t grid_height, int64_t grid_width, input **in);

/* How a file is read: the number of tokens of every head that are skipped first (class tokens), the
 * grid of the others, as above, and the order of dimensions. */
typedef struct {
    int64_t grid_height, grid_width, skipped;
    layout layout;
} input_reading;
/* The same with a reading, which only files may have. */
int input_open_as(const char *text, const input_reading *how, input **in);
/* Why a file's dimensions are probably in another order than was assumed; null: there is no reason
 * to think so. */
const char *input_doubt(const input *in);
/* The heads of a file; 0 for other inputs. */
int64_t input_heads(const input *in);
/* The network of `trained`; null for other inputs. */
struct trained;
const struct trained *input_network(const input *in);
void input_free(input *in);

/* The name as given, for the `input` column; a file's name without its folders. */
const char *input_name(const input *in);

/* SHA-256 (hex) over the files an input read, one after the other (photographs in the order of
 * SHA256SUMS); "" for synthetic ones. For the metadata. */
const char *input_sha256(const input *in);

/* Whether the input is a file, whose tokens are fixed; other inputs make as many as needed. */
bool input_is_file(const input *in);

/* The number of different samples under a seed: a file's matrices, a network's heads of pictures;
 * INT64_MAX for other inputs. */
int64_t input_samples(const input *in);

/* For files: matrices b * h, tokens n per matrix, width d, and the grid (0 x 0 if none is known: no
 * --grid and n is no square). */
void input_file_shape(const input *in, int64_t *matrices, int64_t *tokens, int64_t *dim,
                      int64_t *grid_height, int64_t *grid_width);

/* The side of the grids whose tokens are pooled to m landmarks: that of photographs, and for a
 * trained network the smallest multiple of its own with at least m tokens, or its own if it takes
 * no other; 0 for synthetic fields, which are sampled on a grid of any side, and for files. */
int64_t input_side(const input *in, int64_t m);

/* Tokens of sample number `sample` (0, 1, ...) under a seed, on a height x width grid:
 * (height width) x d, row-major, d = TOKEN_DIM or the file's.
 *
 * photos: a seeded crop of patch * height x patch * width pixels, flipped left to right in half of
 * the samples, of one photograph (sample mod number of photographs), cut into patch x patch pixels
 * x 3 colours (rows, then columns, then red, green, blue), projected by a seeded matrix with
 * orthonormal columns (the same for all samples of a seed and patch), and layer-normalised (eps
 * 1e-5). Takes patch >= 4: smaller ones have fewer than TOKEN_DIM values. synthetic: the field's
 * formula at the grid's points; patch is ignored. trained: see train/trained.h; patch is ignored.
 * file: matrix number `sample` as it is; height and width must be its grid (or n x 1).
 *
 * Returns an exit code; on failure one line on stderr. Thread-safe. */
int input_tokens(const input *in, int64_t height, int64_t width, int64_t patch, uint64_t seed,
                 int64_t sample, double *tokens);

/* For `photos`: the pixels that the tokens of input_tokens were cut from, patch * height x patch *
 * width, to be freed, and the photograph's file name. Returns an exit code; on failure one line on
 * stderr. Thread-safe. */
int input_crop(const input *in, int64_t height, int64_t width, int64_t patch, uint64_t seed,
               int64_t sample, image *crop, const char **name);

#endif
