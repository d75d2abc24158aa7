/* SPDX-License-Identifier: BSD-3-Clause */
#include "ticks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool machine_ticks_parse(const char *text, machine_ticks *ticks)
{
    enum { FIELDS = 8, IDLE = 3, WAIT = 4, STEAL = 7 };
    int64_t f[FIELDS];
    if (strncmp(text, "cpu ", 4) != 0 || /* the sum, not cpu0 */
        sscanf(text,
               "cpu %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
               " %" SCNd64 " %" SCNd64,
               &f[0], &f[1], &f[2], &f[3], &f[4], &f[5], &f[6], &f[7]) != FIELDS)
        return false;
    ticks->all = 0;
    for (int i = 0; i < FIELDS; i++)
        ticks->all += f[i];
    ticks->idle = f[IDLE] + f[WAIT];
    ticks->steal = f[STEAL];
    return true;
}

bool machine_is_dirty(const machine_ticks *a, const machine_ticks *b)
{
    int64_t all = b->all - a->all, steal = b->steal - a->steal;
    int64_t others = all - (b->idle - a->idle) - (b->own - a->own);
    return others > machine_slack + all / 10 || steal > machine_slack + all / 50;
}

bool machine_ticks_read(void *state, machine_ticks *ticks)
{
    (void)state;
    char line[256];
    struct timespec own;
    FILE *file = fopen("/proc/stat", "r");
    bool read = file && fgets(line, sizeof line, file) && machine_ticks_parse(line, ticks);
    if (file)
        fclose(file);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    ticks->own =
        (int64_t)(((double)own.tv_sec + 1e-9 * (double)own.tv_nsec) * (double)sysconf(_SC_CLK_TCK));
    return read;
}
