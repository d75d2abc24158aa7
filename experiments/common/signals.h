/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGHUP, SIGINT and SIGTERM, while an experiment runs: running points are finished, and no others
 * are started. */
#ifndef EXPERIMENTS_SIGNALS_H
#define EXPERIMENTS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

enum { SIGNALS = 3 };

/* The previous actions. */
typedef struct {
    struct sigaction actions[SIGNALS];
} signal_actions;

/* A second signal has the default action and ends the program. */
void signals_take(signal_actions *old);
void signals_restore(const signal_actions *old);

/* Whether one has arrived since the program started. */
bool signals_stopped(void);

#endif
