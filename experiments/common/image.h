/* SPDX-License-Identifier: BSD-3-Clause */
/* Photographs: PNG files as f64 RGB in [0, 1]. */
#ifndef EXPERIMENTS_IMAGE_H
#define EXPERIMENTS_IMAGE_H

#include <stdint.h>

typedef struct {
    int64_t height, width;
    double *rgb; /* height x width x 3, to be freed; grey images have three equal channels */
} image;

/* Reads a PNG through libpng. Returns an exit code; on failure one line on stderr. */
int image_read_png(const char *path, image *img);

/* Resamples `from` to another size, into `to` (its rgb is to be freed). Each axis uses a triangular
 * filter that extends one pixel of the coarser size to each side, with weights scaled to sum 1:
 * bilinear interpolation if the image grows, a weighted mean over a pixel's neighbourhood if it
 * shrinks. The same size gives a copy. */
void image_resample(const image *from, int64_t height, int64_t width, image *to);

#endif
