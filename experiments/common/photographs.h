/* SPDX-License-Identifier: BSD-3-Clause */
/* The photographs of data/images as tokens: the input `photos`. */
#ifndef EXPERIMENTS_PHOTOGRAPHS_H
#define EXPERIMENTS_PHOTOGRAPHS_H

#include "image.h"
#include "inputs.h"
#include "sha256.h"

typedef struct {
    int64_t count;
    struct photograph {
        char *name;
        image image;
    } * items;
    char sha256[SHA256_HEX_SIZE]; /* over all files in their order */
} photographs;

/* Reads the files that SHA256SUMS lists, and no others, and checks the sum of each. Returns an
 * exit code; on failure one line on stderr, and `set` is to be freed all the same. */
int photographs_read(photographs *set);
void photographs_free(photographs *set);

/* The pixels that a draw's tokens are cut from (patch * height x patch * width, flipped as the
 * sample is), to be freed, and the photograph's file name. Returns an exit code. */
int photographs_crop(const photographs *set, const input_draw *draw, image *crop,
                     const char **name);

/* Tokens of any picture of patch * height x patch * width pixels, embedded as the photographs are.
 */
void photographs_embed(const image *crop, const input_draw *draw, double *tokens);

/* Tokens as input_tokens describes them. Returns an exit code. */
int photographs_tokens(const photographs *set, const input_draw *draw, double *tokens);

#endif
