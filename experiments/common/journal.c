/* SPDX-License-Identifier: BSD-3-Clause */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

struct journal {
    int file;
    char *path;
};

enum { HEAD_SIZE = 160 };

static int fail(const journal *j, const char *what)
{
    report_error("%s: cannot %s: %s", j->path, what, strerror(errno));
    return EXIT_ENVIRONMENT;
}

static uint64_t add_to_sum(uint64_t sum, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Writes a record's first line into head; rows_text holds `bytes` bytes of CSV. */
static void format_head(char head[HEAD_SIZE], int64_t point, int code, int64_t rows, size_t bytes,
                        const char *rows_text)
{
    int length = snprintf(head, HEAD_SIZE, "point %" PRId64 " code %d rows %" PRId64 " bytes %zu",
                          point, code, rows, bytes);
    uint64_t sum = add_to_sum(UINT64_C(0xcbf29ce484222325), head, (size_t)length);
    sum = add_to_sum(sum, rows_text, bytes);
    snprintf(head + length, HEAD_SIZE - (size_t)length, " sum %016" PRIx64 "\n", sum);
}

/* Takes the record at text (NUL after its last byte) and returns what follows it; null if it is not
 * whole, or not a record. */
static char *load_record(char *text, size_t size, const column *columns, int column_count,
                         int64_t points, point_record *records)
{
    char head[HEAD_SIZE];
    int64_t point, rows;
    int code;
    size_t bytes;
    char *line_end = memchr(text, '\n', size);
    if (!line_end || sscanf(text, "point %" SCNd64 " code %d rows %" SCNd64 " bytes %zu", &point,
                            &code, &rows, &bytes) != 4)
        return NULL;
    char *body = line_end + 1;
    if (bytes > size - (size_t)(body - text) || point < 0 || point >= points || records[point].rows)
        return NULL;
    format_head(head, point, code, rows, bytes, body);
    if (strlen(head) != (size_t)(body - text) || memcmp(head, text, strlen(head)) != 0)
        return NULL;
    char after = body[bytes];
    body[bytes] = '\0';
    table *t = table_create(columns, column_count);
    bool read = table_read_rows(t, body) && table_rows(t) == rows;
    body[bytes] = after;
    if (!read) {
        table_free(t);
        return NULL;
    }
    records[point] = (point_record){t, code};
    return body + bytes;
}

/* All of the file and a NUL after it; null after a failure that has been reported. */
static char *read_all(const journal *j, size_t *size)
{
    struct stat status;
    if (fstat(j->file, &status) != 0) {
        fail(j, "read");
        return NULL;
    }
    char *text = must_allocate((size_t)status.st_size + 1, 1);
    for (*size = 0; *size < (size_t)status.st_size;) {
        ssize_t got = read(j->file, text + *size, (size_t)status.st_size - *size);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR) {
            fail(j, "read");
            free(text);
            return NULL;
        }
        *size += got > 0 ? (size_t)got : 0;
    }
    return text;
}

/* Sets *kept to the number of bytes worth keeping: 0 without even a whole first line. */
static int load(const journal *j, const char *header, const column *columns, int column_count,
                int64_t points, point_record *records, size_t *kept)
{
    size_t size, length = strlen(header);
    char *text = read_all(j, &size);
    if (!text)
        return EXIT_ENVIRONMENT;
    *kept = 0;
    if (memcmp(text, header, size < length ? size : length) != 0) {
        report_error("%s: --resume: was written by a run with other options or another version, "
                     "input or program; give that run's options, or leave out --resume to start "
                     "over",
                     j->path);
        free(text);
        return EXIT_USAGE;
    }
    if (size >= length) {
        char *next = text + length;
        while (next) {
            *kept = (size_t)(next - text);
            next = load_record(next, size - *kept, columns, column_count, points, records);
        }
    }
    free(text);
    return EXIT_PASS;
}

static int append(const journal *j, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t done = write(j->file, text, size);
        if (done < 0 && errno != EINTR)
            return fail(j, "write");
        text += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return EXIT_PASS;
}

static int lock(const journal *j)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(j->file, F_SETLK, &all) == 0)
        return EXIT_PASS;
    if (errno != EACCES && errno != EAGAIN)
        return fail(j, "lock");
    report_error("%s: another run is writing here; wait for it or choose another --out", j->path);
    return EXIT_ENVIRONMENT;
}

int journal_open(journal **out, const char *path, const char *fingerprint, bool resume,
                 const column *columns, int column_count, int64_t points, point_record *records)
{
    journal *j = must_allocate(1, sizeof *j);
    *out = j;
    j->path = must_format("%s", path);
    j->file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (j->file < 0)
        return fail(j, "write");
    char *header = must_format("attnum journal 1 %s\n", fingerprint);
    for (char *c = header; c[1]; c++) /* a file's name may hold a line feed */
        if (*c == '\n')
            *c = '?';
    size_t kept = 0;
    int code = lock(j);
    if (code == EXIT_PASS && resume)
        code = load(j, header, columns, column_count, points, records, &kept);
    if (code == EXIT_PASS && ftruncate(j->file, (off_t)kept) != 0)
        code = fail(j, "write");
    if (code == EXIT_PASS && kept == 0)
        code = append(j, header, strlen(header));
    free(header);
    return code;
}

int journal_add(journal *j, int64_t point, const point_record *record)
{
    char head[HEAD_SIZE], *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    bool written = memory != NULL;
    for (int64_t row = 0; written && row < table_rows(record->rows); row++)
        written = table_write_row(record->rows, row, memory);
    if (memory)
        written = fclose(memory) == 0 && written;
    int code = EXIT_ENVIRONMENT;
    if (written) {
        format_head(head, point, record->code, table_rows(record->rows), size, text);
        char *whole = must_allocate(strlen(head) + size + 1, 1);
        memcpy(whole, head, strlen(head));
        memcpy(whole + strlen(head), text, size);
        code = append(j, whole, strlen(head) + size);
        free(whole);
    } else
        report_error("%s: out of memory", j->path);
    free(text);
    return code;
}

void journal_close(journal *j, bool finished)
{
    if (!j)
        return;
    if (finished)
        unlink(j->path);
    if (j->file >= 0)
        close(j->file);
    free(j->path);
    free(j);
}
