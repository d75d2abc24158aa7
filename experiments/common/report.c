/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One write per line, so that the lines of threads do not mix. Names of files may contain anything:
 * control characters would break the line or drive the terminal. */
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

/* If other threads fail at the same time, they wait for the program to end. */
void end_program(const char *why)
{
    static atomic_flag ending = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&ending))
        pause();
    report_error("%s", why);
    fflush(stdout);
    quick_exit(EXIT_ENVIRONMENT);
}

static _Noreturn void end_for_memory(size_t count, size_t size)
{
    char why[128];
    snprintf(why, sizeof why, "out of memory: %zu elements of %zu bytes", count, size);
    end_program(why);
}

void *must_allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory)
        end_for_memory(count, size);
    return memory;
}

void *must_resize(void *memory, size_t count, size_t size)
{
    void *larger =
        size && count > SIZE_MAX / size ? NULL : realloc(memory, count && size ? count * size : 1);
    if (!larger)
        end_for_memory(count, size);
    return larger;
}

char *must_format_list(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0)
        end_for_memory(1, strlen(format));
    char *text = must_allocate((size_t)length + 1, 1);
    if (vsnprintf(text, (size_t)length + 1, format, arguments) != length)
        end_for_memory((size_t)length, 1);
    return text;
}

char *must_format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = must_format_list(format, arguments);
    va_end(arguments);
    return text;
}

FILE *must_open_text(char **text, size_t *size)
{
    *text = NULL;
    FILE *file = open_memstream(text, size);
    if (!file)
        end_for_memory(1, 1);
    return file;
}

/* glibc's fclose succeeds without a text if its last allocation fails. */
void must_close_text(FILE *file, char *const *text, const size_t *size)
{
    bool written = !ferror(file);
    if (fclose(file) != 0 || !written || !*text)
        end_for_memory(*size, 1);
}
