/* SPDX-License-Identifier: BSD-3-Clause */
#include "journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "options.h"
#include "progress.h"
#include "report.h"

struct journal {
    int file;
    char *path;
    bool is_new;
    off_t size;    /* the bytes that are complete records */
    double synced; /* when it was last flushed to the disk */
    bool failed;   /* the reason has been reported */
};

enum { HEAD_SIZE = 192 };
/* The seconds of records that a crash of the machine may lose; killing the program loses none. */
static const double sync_interval = 1;
static const char magic[] = "attnum journal 3 ";

static int fail(const char *path, const char *what)
{
    report_error("%s: cannot %s: %s", path, what, strerror(errno));
    return EXIT_ENVIRONMENT;
}

/* ---- The contents of the file ---- */

static uint64_t add_to_sum(uint64_t sum, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Ends the first line of a section with the checksum of that line and of the `bytes` bytes of its
 * body. */
static void seal(char head[HEAD_SIZE], const char *body, size_t bytes)
{
    size_t length = strlen(head);
    uint64_t sum = add_to_sum(UINT64_C(0xcbf29ce484222325), head, length);
    sum = add_to_sum(sum, body, bytes);
    snprintf(head + length, HEAD_SIZE - length, " sum %016" PRIx64 "\n", sum);
}

/* A section of the file: its first line, and the body after it. */
typedef struct {
    char *line, *body;
    size_t left; /* bytes from the start of the body to the end of the file */
} journal_section;

/* Finds the first line of the section at text, and ends it with NUL. */
static bool open_part(journal_section *p, char *text, size_t size)
{
    char *end = memchr(text, '\n', size);
    if (!end || memchr(text, '\0', (size_t)(end - text)))
        return false;
    *end = '\0';
    *p = (journal_section){text, end + 1, size - (size_t)(end + 1 - text)};
    return true;
}

/* Restores the line feed. True if the first line is exactly head with its checksum, as written. */
static bool close_part(journal_section *p, char head[HEAD_SIZE], size_t bytes)
{
    p->body[-1] = '\n';
    if (bytes > p->left)
        return false;
    seal(head, p->body, bytes);
    size_t length = (size_t)(p->body - p->line);
    return strlen(head) == length && memcmp(head, p->line, length) == 0;
}

static void format_record(char head[HEAD_SIZE], int64_t point, int code, int64_t rows, size_t bytes)
{
    snprintf(head, HEAD_SIZE, "point %" PRId64 " code %d rows %" PRId64 " bytes %zu", point, code,
             rows, bytes);
}

static void format_shard(char head[HEAD_SIZE], int64_t shard, int64_t shards, size_t bytes)
{
    snprintf(head, HEAD_SIZE, "shard %" PRId64 " of %" PRId64 " bytes %zu", shard, shards, bytes);
}

/* Reads the record at text (NUL after its last byte) and returns what follows it; null if it is
 * incomplete or not a record. */
static char *load_record(char *text, size_t size, const column *columns, int column_count,
                         int64_t points, point_record *records)
{
    journal_section p;
    char head[HEAD_SIZE];
    int64_t point = -1, rows = 0;
    int code = 0;
    size_t bytes = 0;
    if (!open_part(&p, text, size))
        return NULL;
    bool read = sscanf(p.line, "point %" SCNd64 " code %d rows %" SCNd64 " bytes %zu", &point,
                       &code, &rows, &bytes) == 4;
    format_record(head, point, code, rows, bytes);
    if (!close_part(&p, head, bytes) || !read)
        return NULL;
    if (point < 0 || point >= points || records[point].rows ||
        (code != EXIT_PASS && code != EXIT_CHECK && code != EXIT_SKIPPED))
        return NULL;
    char after = p.body[bytes];
    p.body[bytes] = '\0';
    table *t = table_create(columns, column_count);
    read = strlen(p.body) == bytes && table_read_rows(t, p.body) && table_rows(t) == rows;
    p.body[bytes] = after;
    if (!read) {
        table_free(t);
        return NULL;
    }
    records[point] = (point_record){t, code};
    return p.body + bytes;
}

/* Reads records from text[at] on as long as they are complete. Returns where they end. */
static size_t load_records(char *text, size_t size, size_t at, const column *columns,
                           int column_count, int64_t points, point_record *records)
{
    char *next = text + at;
    while (next) {
        at = (size_t)(next - text);
        next = load_record(next, size - at, columns, column_count, points, records);
    }
    return at;
}

/* Reads the lines at text that name the shard (0 of 0: of a run without) and how it is run: its
 * numbers, and the body. False if they are incomplete. */
static bool load_shard_lines(char *text, size_t size, int64_t *shard, int64_t *shards, char **body,
                             size_t *bytes)
{
    journal_section p;
    char head[HEAD_SIZE];
    *shard = *shards = 0;
    *bytes = 0;
    if (!open_part(&p, text, size))
        return false;
    bool read =
        sscanf(p.line, "shard %" SCNd64 " of %" SCNd64 " bytes %zu", shard, shards, bytes) == 3;
    format_shard(head, *shard, *shards, *bytes);
    *body = p.body;
    return close_part(&p, head, *bytes) && read && *shard >= (*shards > 0) && *shard <= *shards &&
           *shards <= SHARDS_MOST && *bytes > 0 && p.body[*bytes - 1] == '\n';
}

/* ---- A run's own journal ---- */

/* The text before the records; to be freed. */
static char *make_header(const journal_spec *spec)
{
    char head[HEAD_SIZE], *body = must_format("%s\n", spec->run);
    format_shard(head, spec->shard, spec->shards, strlen(body));
    seal(head, body, strlen(body));
    char *header = must_format("%s%s\n%s%s", magic, spec->fingerprint, head, body);
    free(body);
    return header;
}

/* Where the journal's first line at text differs from that of this run; to be freed. */
static char *line_difference(const journal_spec *spec, const char *text)
{
    size_t start = strlen(magic);
    if (strncmp(text, magic, start) != 0)
        return must_format("it does not start as one of this version does");
    char *theirs = must_format("%.*s", (int)strcspn(text + start, "\n"), text + start);
    char *difference = fingerprint_difference(theirs, spec->fingerprint);
    free(theirs);
    return difference;
}

/* Why this run must not continue the journal that text, as far as it goes, is: to be freed; null:
 * it may. *length: of the text before the records, 0 if that is incomplete. */
static char *refusal(const journal_spec *spec, char *text, size_t size, size_t *length)
{
    int64_t shard, shards;
    char *body, *line = must_format("%s%s\n", magic, spec->fingerprint);
    char *options = NULL, *machine = NULL, *why = NULL;
    size_t bytes, first = strlen(line);
    *length = 0;
    if (memcmp(text, line, size < first ? size : first) != 0)
        options = line_difference(spec, text);
    else if (size >= first &&
             load_shard_lines(text + first, size - first, &shard, &shards, &body, &bytes)) {
        *length = (size_t)(body - text) + bytes;
        body[bytes - 1] = '\0';
        machine = spec->difference ? spec->difference(body, spec->run) : NULL;
        body[bytes - 1] = '\n';
        if (shard != spec->shard || shards != spec->shards)
            options = must_format("shard %" PRId64 " of %" PRId64, shard, shards);
    }
    if (options)
        why = must_format("was written by a run with other options or another version, input or "
                          "program (%s); give that run's options",
                          options);
    else if (machine)
        why = must_format("was written with another %s, so that results differ; go on where that "
                          "is the same",
                          machine);
    free(options);
    free(machine);
    free(line);
    return why;
}

/* Sets *kept to the number of bytes to keep: 0 if even the first lines are incomplete. */
static int load(const journal *j, const journal_spec *spec, point_record *records, size_t *kept)
{
    size_t size, length;
    int code = EXIT_PASS;
    char *text = files_read_descriptor(j->path, j->file, &size);
    if (!text)
        return EXIT_ENVIRONMENT;
    *kept = 0;
    char *why = refusal(spec, text, size, &length);
    if (why) {
        report_error("%s: --resume: %s, or leave out --resume to start over", j->path, why);
        code = EXIT_USAGE;
    } else if (length > 0) {
        *kept = load_records(text, size, length, spec->columns, spec->column_count, spec->points,
                             records);
    }
    free(why);
    free(text);
    return code;
}

/* Refuses a file that has points. */
static int check_no_points(const journal *j)
{
    size_t size;
    char *text = files_read_descriptor(j->path, j->file, &size);
    int code = text && !strstr(text, "\npoint ") ? EXIT_PASS : EXIT_ENVIRONMENT;
    if (text && code != EXIT_PASS)
        report_error("%s: has points of a run that was stopped, which would be lost; end that run "
                     "with --resume, remove the file or give another --out",
                     j->path);
    free(text);
    return code;
}

/* A record that was written only in part is removed, so that the records that other threads add
 * after it are read.
 */
static int append(journal *j, const char *text, size_t size)
{
    off_t whole = j->size + (off_t)size;
    while (size > 0) {
        ssize_t done = write(j->file, text, size);
        if (done < 0 && errno != EINTR) {
            if (!j->failed)
                fail(j->path, "write");
            j->failed = true;
            return ftruncate(j->file, j->size) == 0 ? EXIT_ENVIRONMENT : fail(j->path, "write");
        }
        text += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    j->size = whole;
    return EXIT_PASS;
}

int journal_open(journal **out, const journal_spec *spec, bool resume, point_record *records)
{
    journal *j = must_allocate(1, sizeof *j);
    size_t kept = 0;
    *out = j;
    j->path = must_format("%s", spec->path);
    int code = files_open_locked(j->path, &j->file);
    j->is_new = code == EXIT_PASS && lseek(j->file, 0, SEEK_END) == 0;
    if (code == EXIT_PASS && spec->spares)
        code = check_no_points(j);
    if (code == EXIT_PASS && resume)
        code = load(j, spec, records, &kept);
    if (code == EXIT_PASS && ftruncate(j->file, (off_t)kept) != 0)
        code = fail(j->path, "write");
    j->size = (off_t)kept;
    if (code == EXIT_PASS && kept == 0) {
        char *header = make_header(spec);
        code = append(j, header, strlen(header));
        free(header);
    }
    if (code == EXIT_PASS)
        code = journal_sync(j);
    return code == EXIT_PASS ? files_sync_folder_of(j->path) : code;
}

bool journal_is_new(const journal *j)
{
    return j->is_new;
}

int journal_sync(journal *j)
{
    j->synced = progress_seconds();
    return fdatasync(j->file) == 0 ? EXIT_PASS : fail(j->path, "write");
}

/* The rows as CSV, to be freed. */
static char *rows_text(const table *rows, size_t *size)
{
    char *text;
    FILE *memory = must_open_text(&text, size);
    for (int64_t row = 0; row < table_rows(rows); row++)
        table_write_row(rows, row, memory);
    must_close_text(memory, &text, size);
    return text;
}

int journal_add(journal *j, int64_t point, const point_record *record)
{
    char head[HEAD_SIZE];
    size_t size;
    char *text = rows_text(record->rows, &size);
    format_record(head, point, record->code, table_rows(record->rows), size);
    seal(head, text, size);
    char *whole = must_allocate(strlen(head) + size + 1, 1);
    memcpy(whole, head, strlen(head));
    memcpy(whole + strlen(head), text, size);
    int code = append(j, whole, strlen(head) + size);
    free(whole);
    free(text);
    if (code == EXIT_PASS && progress_seconds() - j->synced > sync_interval)
        code = journal_sync(j);
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

/* ---- Shards of other runs ---- */

static int refuse(const shard_file *f, const char *why)
{
    report_error("%s: expected a shard's file: %s", f->path, why);
    return EXIT_ENVIRONMENT;
}

int shard_read(shard_file *f, const char *path)
{
    *f = (shard_file){.path = must_format("%s", path)};
    f->text = files_read(path, "a shard's file", &f->size);
    if (!f->text)
        return EXIT_ENVIRONMENT;
    journal_section p;
    char *body;
    size_t bytes, start = strlen(magic);
    if (!open_part(&p, f->text, f->size) || strncmp(p.line, magic, start) != 0)
        return refuse(f, "it does not start as one of this version does");
    f->fingerprint = must_format("%s", p.line + start);
    p.body[-1] = '\n';
    if (!load_shard_lines(p.body, p.left, &f->shard, &f->shards, &body, &bytes) || !f->shards)
        return refuse(f, "its first lines were cut or edited");
    f->run = must_allocate(bytes, 1);
    memcpy(f->run, body, bytes - 1);
    f->records = (size_t)(body - f->text) + bytes;
    return EXIT_PASS;
}

int shard_records(shard_file *f, const column *columns, int column_count, int64_t points,
                  point_record *records)
{
    size_t end = load_records(f->text, f->size, f->records, columns, column_count, points, records);
    if (end == f->size)
        return EXIT_PASS;
    char *why = must_format("what follows byte %zu was cut or edited, or is still being written; "
                            "its run with --resume mends it",
                            end);
    int code = refuse(f, why);
    free(why);
    return code;
}

void shard_free(shard_file *f)
{
    free(f->path);
    free(f->fingerprint);
    free(f->run);
    free(f->text);
    *f = (shard_file){0};
}

char *fingerprint_difference(const char *theirs, const char *ours)
{
    size_t at = 0, item = 0;
    for (; theirs[at] && theirs[at] == ours[at]; at++)
        if (theirs[at] == ' ')
            item = at + 1;
    return must_format("'%.*s', here '%.*s'", (int)strcspn(theirs + item, " "), theirs + item,
                       (int)strcspn(ours + item, " "), ours + item);
}

bool records_agree(const point_record *a, const point_record *b)
{
    size_t size[2];
    char *x = rows_text(a->rows, &size[0]), *y = rows_text(b->rows, &size[1]);
    bool same = a->code == b->code && size[0] == size[1] && memcmp(x, y, size[0]) == 0;
    free(x);
    free(y);
    return same;
}
