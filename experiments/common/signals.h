/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGHUP, SIGINT and SIGTERM, while an experiment runs: the points at work are ended, no others
 * begun. */
#ifndef EXPERIMENTS_SIGNALS_H
#define EXPERIMENTS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

enum { SIGNALS = 3 };

/* What they did before. */
typedef struct {
    struct sigaction actions[SIGNALS];
} signal_actions;

/* A second signal finds the default action: it ends the program. */
void signals_take(signal_actions *old);
void signals_restore(const signal_actions *old);

/* Whether one has come, in this program's life. */
bool signals_stopped(void);

#endif
