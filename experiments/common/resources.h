/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the program finds its photographs, plot scripts, golden tables and trained networks. */
#ifndef EXPERIMENTS_RESOURCES_H
#define EXPERIMENTS_RESOURCES_H

/* The absolute path of a photograph (kind "images"), a plot script (kind "plots"), a golden table
 * (kind "golden") or a trained network (kind "trained"): in $ATTNUM_DATADIR/<kind> if that is set;
 * else in the installed share/attnum/<kind>; else in data/images, experiments/, data/golden or
 * data/trained of the source tree it was built from. To be freed; null, and one line on stderr, if
 * it is missing. */
char *resource_path(const char *kind, const char *name);

#endif
