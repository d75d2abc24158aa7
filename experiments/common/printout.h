/* SPDX-License-Identifier: BSD-3-Clause */
/* What stdout holds. With --format table: text for people (report_text, report_stream). With csv or
 * json: the published tables and nothing else, so that a program can read them.
 *
 *   csv   each table as it is in its file, with an empty line between two
 *   json  {"OWNER": {"TABLE": [{"COLUMN": value, ...}, ...], ...}, ...}; see table_write_json
 */
#ifndef EXPERIMENTS_PRINTOUT_H
#define EXPERIMENTS_PRINTOUT_H

#include "experiment.h"

/* First, once per program: the command line for people, or what JSON opens with. */
void printout_begin(const program_options *s);
/* Whether the tables are wanted here. */
bool printout_takes_tables(void);
/* The published tables of an experiment or a verb, by its name; for people: nothing, they have
 * their own. */
void printout_tables(const char *owner, const output_spec *outputs, table *const *tables,
                     int count);
/* Last, also after a failure: what JSON closes with. */
void printout_end(void);

#endif
