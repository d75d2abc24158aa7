/* SPDX-License-Identifier: BSD-3-Clause */
#include "signals.h"

#include <stddef.h>

/* A signal handler can reach nothing else. */
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

void signals_take(signal_actions *old)
{
    struct sigaction take = {.sa_handler = stop, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGINT, &take, &old->interrupt);
    sigaction(SIGTERM, &take, &old->terminate);
    sigaction(SIGXFSZ, &ignore, &old->file_size);
}

void signals_restore(const signal_actions *old)
{
    sigaction(SIGINT, &old->interrupt, NULL);
    sigaction(SIGTERM, &old->terminate, NULL);
    sigaction(SIGXFSZ, &old->file_size, NULL);
}
