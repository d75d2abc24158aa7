/* SPDX-License-Identifier: BSD-3-Clause */
/* Which strides spectral/resolution pools with. */
#ifndef EXPERIMENTS_SPECTRAL_RESOLUTION_H
#define EXPERIMENTS_SPECTRAL_RESOLUTION_H

#include "common/landmarks.h"

/* Whether the stride divides a square grid and leaves at most 1024 landmarks. */
bool resolution_takes(const token_grid *grid);

#endif
