/* SPDX-License-Identifier: BSD-3-Clause */
/* Fashion-MNIST (Xiao, Rasul and Vollgraf 2017): 60000 and 10000 grey pictures of clothes, 28 x 28,
 * of 10 classes, in the format of LeCun's MNIST files, compressed by gzip. */
#ifndef EXPERIMENTS_TRAIN_FASHION_H
#define EXPERIMENTS_TRAIN_FASHION_H

#include <stdint.h>

#include "common/sha256.h"

enum { FASHION_SIDE = 28, FASHION_CLASSES = 10, FASHION_SHIFT = 1 };
/* Crops are flipped or not, and moved by up to FASHION_SHIFT pixels in both directions;
 * FASHION_WHOLE leaves the image as it is. */
enum { FASHION_CROPS = 2 * (2 * FASHION_SHIFT + 1) * (2 * FASHION_SHIFT + 1), FASHION_WHOLE = -1 };

/* The folder in which Debian's package dataset-fashion-mnist has the files. */
#define FASHION_FOLDER "/usr/share/datasets/fashion-mnist"

typedef struct {
    int64_t count;
    unsigned char *pixels; /* count x 28 x 28 */
    unsigned char *labels;
    char sha256[SHA256_HEX_SIZE]; /* over pixels, then labels */
} fashion_set;

/* Reads folder/NAME-images-idx3-ubyte.gz and NAME-labels-idx1-ubyte.gz; name: "train", "t10k".
 * Returns an exit code; on failure one line on stderr names the file and what was expected of it: a
 * missing or cut file, another magic number or size, a label above 9, more bytes than announced.
 * The set is to be freed in any case. */
int fashion_read(const char *folder, const char *name, fashion_set *set);
void fashion_free(fashion_set *set);

/* Writes an image, resized to side x side: a pixel is the mean of the area that it covers, so that
 * a multiple of 28 repeats pixels. Pixels from 0 to 1 are normalised by the training set's mean,
 * 0.2860, and standard deviation, 0.3530. crop: 0 ... FASHION_CROPS - 1, or FASHION_WHOLE; odd ones
 * are flipped left to right; pixels from beyond the edge are black. */
void fashion_image(const fashion_set *set, int64_t image, int crop, int64_t side, float *out);

#endif
