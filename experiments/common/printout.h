/* SPDX-License-Identifier: BSD-3-Clause */
/* What is written to stdout. With --format table: text to read (report_text, report_stream).
 * With csv or json: the published tables and nothing else, so that a program can read them.
 *
 *   csv   each table as it is in its file, with an empty line between two
 *   json  {"OWNER": {"TABLE": [{"COLUMN": value, ...}, ...], ...}, ...}; see table_write_json
 */
#ifndef EXPERIMENTS_PRINTOUT_H
#define EXPERIMENTS_PRINTOUT_H

#include "experiment.h"

/* Called first, once per program: prints the command line, or the opening of the JSON. */
void printout_begin(const program_options *s);
/* Whether the tables are wanted here. */
bool printout_takes_tables(void);
/* The published tables of an experiment or a verb, by its name; prints nothing with --format
 * table. */
void printout_tables(const char *owner, const output_spec *outputs, table *const *tables,
                     int count);
/* Called last, also after a failure: closes the JSON. */
void printout_end(void);

#endif
