/* SPDX-License-Identifier: BSD-3-Clause */
#include "signals.h"

#include <stddef.h>

/* A signal handler can access nothing but globals. */
static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

bool signals_stopped(void)
{
    return stopped;
}

static const int taken[SIGNALS] = {SIGHUP, SIGINT, SIGTERM};

void signals_take(signal_actions *old)
{
    struct sigaction take = {.sa_handler = stop, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(taken[i], &take, &old->actions[i]);
        if (taken[i] == SIGHUP && old->actions[i].sa_handler == SIG_IGN) /* nohup */
            sigaction(SIGHUP, &old->actions[i], NULL);
    }
}

void signals_restore(const signal_actions *old)
{
    for (int i = 0; i < SIGNALS; i++)
        sigaction(taken[i], &old->actions[i], NULL);
}
