/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the program finds its photographs and plot scripts. */
#ifndef EXPERIMENTS_RESOURCES_H
#define EXPERIMENTS_RESOURCES_H

/* The absolute path of a photograph (kind "images") or a plot script (kind "plots"): in
 * $ATTNUM_DATADIR/<kind> if that is set; else in the installed share/attnum/<kind>; else in data/
 * images or experiments/ of the source tree it was built from. To be freed; null, and one line on
 * stderr, if it is not there. */
char *resource_path(const char *kind, const char *name);

#endif
