/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* One write per line, so that threads do not mix theirs. Names of files may hold anything: control
 * characters would break the line or drive the terminal. */
static void print_line(const char *kind, const char *format, va_list arguments)
{
    char text[8192];
    vsnprintf(text, sizeof text, format, arguments);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    fprintf(stderr, "%sattnum: %s%s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", kind, text);
}

void report_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("", format, arguments);
    va_end(arguments);
}

void report_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("note: ", format, arguments);
    va_end(arguments);
}

static bool is_silent;

void report_silence(bool silent)
{
    is_silent = silent;
}

FILE *report_stream(void)
{
    return is_silent ? NULL : stdout;
}

void report_text(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!is_silent)
        vprintf(format, arguments);
    va_end(arguments);
}

int exit_worst(int a, int b)
{
    static const int order[] = {EXIT_ENVIRONMENT, EXIT_USAGE, EXIT_CHECK, EXIT_PASS};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return EXIT_SKIPPED;
}

static void die_of_memory(size_t count, size_t size)
{
    report_error("out of memory: %zu elements of %zu bytes", count, size);
    exit(EXIT_ENVIRONMENT);
}

void *must_allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory)
        die_of_memory(count, size);
    return memory;
}

void *must_resize(void *memory, size_t count, size_t size)
{
    void *larger =
        size && count > SIZE_MAX / size ? NULL : realloc(memory, count && size ? count * size : 1);
    if (!larger)
        die_of_memory(count, size);
    return larger;
}

char *must_format(const char *format, ...)
{
    char *text = NULL;
    size_t size = 0;
    va_list arguments;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        die_of_memory(1, 1);
    va_start(arguments, format);
    bool written = vfprintf(file, format, arguments) >= 0;
    va_end(arguments);
    if (fclose(file) != 0 || !written)
        die_of_memory(size, 1);
    return text;
}
