/* SPDX-License-Identifier: BSD-3-Clause */
/* One line on stderr, if that is a terminal, that shows the progress of a run. For one thread at a
 * time. */
#ifndef EXPERIMENTS_PROGRESS_H
#define EXPERIMENTS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool shown;
    int64_t points, done;
    double weight, done_weight; /* the work of this run, and the part that is done */
    double start, drawn;        /* seconds */
} progress;

/* Seconds of a monotonic clock. */
double progress_seconds(void);

/* `done` points were finished before; weight is the work of the others. */
progress progress_start(int64_t points, int64_t done, double weight);
/* Shows the current point. */
void progress_show(progress *p, const char *point);
/* Counts a point. */
void progress_add(progress *p, double weight);
/* Clears the line. */
void progress_end(progress *p);

#endif
