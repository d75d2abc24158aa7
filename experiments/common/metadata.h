/* SPDX-License-Identifier: BSD-3-Clause */
/* What stands beside a CSV: <name>.csv-metadata.json, its columns as the W3C's "CSV on the Web" has
 * them, and a `run` object that says how it was made. The only output with a date in it; never the
 * names of hosts and users. */
#ifndef EXPERIMENTS_METADATA_H
#define EXPERIMENTS_METADATA_H

#include <stdbool.h>
#include <stdio.h>

#include "experiment.h"

/* Writes the metadata of e's output number `output`. fingerprint: all that the rows may depend on;
 * code: the exit code of the run. False on a write error. */
bool metadata_write(const experiment *e, const settings *s, const void *state, int output,
                    const char *fingerprint, int code, FILE *file);

/* The same of a table that is kept in the sources: instead of a `run` a `kept` object with the
 * reason, the commit and the versions that its rows are of; no date. */
bool metadata_write_kept(const experiment *e, const output_spec *o, const void *state,
                         const char *commit, const char *reason, FILE *file);

/* Whether the file at path is the metadata of a run with this fingerprint; *code is then its exit
 * code. */
bool metadata_matches(const char *path, const char *fingerprint, int *code);

#endif
