/* SPDX-License-Identifier: BSD-3-Clause */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

double progress_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

progress progress_start(int64_t points, int64_t done, double weight)
{
    return (progress){.shown = isatty(STDERR_FILENO),
                      .points = points,
                      .done = done,
                      .weight = weight,
                      .start = progress_seconds()};
}

static int terminal_width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static void format_time(char text[32], double seconds)
{
    int64_t whole = (int64_t)(seconds + 0.5);
    if (whole < 3600)
        snprintf(text, 32, "%" PRId64 ":%02d", whole / 60, (int)(whole % 60));
    else
        snprintf(text, 32, "%" PRId64 " h %02d min", whole / 3600, (int)(whole / 60 % 60));
}

void progress_show(progress *p, const char *point)
{
    double now = progress_seconds();
    if (!p->shown || now - p->drawn < 0.1)
        return;
    p->drawn = now;
    double part = p->weight > 0 ? p->done_weight / p->weight : 0;
    char elapsed[32], left[32] = "?", line[512];
    format_time(elapsed, now - p->start);
    if (part > 0)
        format_time(left, (now - p->start) * (1 - part) / part);
    int length =
        snprintf(line, sizeof line, "%" PRId64 "/%" PRId64 " %3.0f%%  %s, about %s left  %s",
                 p->done, p->points, 100 * part, elapsed, left, point);
    int width = terminal_width() - 1;
    if (length > width)
        length = width;
    if (length > (int)sizeof line - 1)
        length = (int)sizeof line - 1;
    fprintf(stderr, "\r\033[K%.*s", length, line);
    fflush(stderr);
}

void progress_add(progress *p, double weight)
{
    p->done++;
    p->done_weight += weight;
}

void progress_end(progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
}
