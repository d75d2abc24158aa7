/* SPDX-License-Identifier: BSD-3-Clause */
/* Detects other work of the machine during a timing, by its ticks (/proc/stat). */
#ifndef EXPERIMENTS_TICKS_H
#define EXPERIMENTS_TICKS_H

#include <stdbool.h>
#include <stdint.h>

/* Ticks of all CPUs together, since some moment. */
typedef struct {
    int64_t all;   /* all ticks */
    int64_t idle;  /* idle, or waiting for a disk */
    int64_t steal; /* taken by another virtual machine */
    int64_t own;   /* used by this process */
} machine_ticks;

/* all, idle and steal from the line of /proc/stat that starts with "cpu ". False if text does not
 * start with such a line; own is left alone. */
bool machine_ticks_parse(const char *text, machine_ticks *ticks);

/* The ticks up to now, and this process's. False if the machine does not report them. state is not
 * used: rounds_meter and pair_meter pass it, with which tests supply other ticks. */
bool machine_ticks_read(void *state, machine_ticks *ticks);

/* Whether other processes were at work from a to b: they used more than a tenth of all ticks, or
 * more than a fiftieth was stolen, each beyond `machine_slack` ticks, the accuracy of the
 * counters. */
enum { machine_slack = 2 };
bool machine_is_dirty(const machine_ticks *a, const machine_ticks *b);

#endif
