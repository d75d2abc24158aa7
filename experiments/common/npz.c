/* SPDX-License-Identifier: BSD-3-Clause */
/* The format: APPNOTE.TXT of the zip format, sections 4.3.7 (local header), 4.3.12 (central
 * directory), 4.3.16 (its end). Sizes are below 4 GiB, so zip64 fields are not needed; NumPy writes
 * them in local headers anyway, so only the central directory is read. */
#include "npz.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "files.h"
#include "report.h"

enum {
    LOCAL_SIZE = 30,
    CENTRAL_SIZE = 46,
    END_SIZE = 22,
    LOCAL = 0x04034b50,
    CENTRAL = 0x02014b50,
    END = 0x06054b50,
    VERSION = 20,
    FIRST_OF_1980 = 1 << 5 | 1, /* the earliest date of the format */
    MOST_MEMBERS = 65534
};
static const int64_t most_bytes = UINT32_MAX - 1;

/* ---- Numbers of 2 and 4 bytes, the lowest first ---- */

static void put(char **at, int bytes, uint32_t value)
{
    for (int i = 0; i < bytes; i++)
        *(*at)++ = (char)(value >> 8 * i);
}

static uint32_t get(const char *at, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)(unsigned char)at[i] << 8 * i;
    return value;
}

/* ---- Writing ---- */

typedef struct {
    char *name;
    uint32_t sum, size, offset;
} entry;

/* Writes the fields that both headers of a member have, from the version needed to read it on. */
static void put_facts(char **at, const entry *e)
{
    put(at, 2, VERSION);
    put(at, 2, 0); /* flags */
    put(at, 2, 0); /* not compressed */
    put(at, 2, 0); /* time */
    put(at, 2, FIRST_OF_1980);
    put(at, 4, e->sum);
    put(at, 4, e->size);
    put(at, 4, e->size);
    put(at, 2, (uint32_t)strlen(e->name));
    put(at, 2, 0); /* more fields */
}

/* Returns the bytes written, 0 if the archive becomes too large. */
static int64_t write_member(FILE *file, int64_t offset, const char *bytes, size_t size, entry *e)
{
    char header[LOCAL_SIZE], *at = header;
    int64_t all = (int64_t)(LOCAL_SIZE + strlen(e->name) + size);
    if ((int64_t)size > most_bytes || offset + all > most_bytes)
        return 0;
    e->sum = (uint32_t)crc32_z(0, (const unsigned char *)bytes, size);
    e->size = (uint32_t)size;
    e->offset = (uint32_t)offset;
    put(&at, 4, LOCAL);
    put_facts(&at, e);
    fwrite(header, 1, sizeof header, file);
    fwrite(e->name, 1, strlen(e->name), file);
    fwrite(bytes, 1, size, file);
    return all;
}

static void write_directory(FILE *file, int64_t count, const entry *entries, int64_t offset)
{
    int64_t size = 0;
    for (int64_t i = 0; i < count; i++) {
        const entry *e = &entries[i];
        char header[CENTRAL_SIZE], *at = header;
        put(&at, 4, CENTRAL);
        put(&at, 2, VERSION);
        put_facts(&at, e);
        put(&at, 2, 0); /* comment */
        put(&at, 2, 0); /* disk */
        put(&at, 2, 0); /* attributes */
        put(&at, 4, 0);
        put(&at, 4, e->offset);
        fwrite(header, 1, sizeof header, file);
        fwrite(e->name, 1, strlen(e->name), file);
        size += (int64_t)(CENTRAL_SIZE + strlen(e->name));
    }
    char end[END_SIZE], *at = end;
    put(&at, 4, END);
    put(&at, 4, 0); /* disks */
    put(&at, 2, (uint32_t)count);
    put(&at, 2, (uint32_t)count);
    put(&at, 4, (uint32_t)size);
    put(&at, 4, (uint32_t)offset);
    put(&at, 2, 0); /* comment */
    fwrite(end, 1, sizeof end, file);
}

int npz_write(const char *folder, const char *name, int64_t count, const npz_array *arrays,
              const char *metadata)
{
    new_file file = {0};
    int code = new_file_open(&file, folder, name);
    if (code != EXIT_PASS) {
        new_file_free(&file);
        return code;
    }
    entry *entries = must_allocate((size_t)count + 1, sizeof *entries);
    int64_t offset = 0, written = 1;
    for (int64_t i = 0; i <= count && written > 0; i++) {
        char *bytes;
        size_t size;
        FILE *text = must_open_text(&bytes, &size);
        if (i < count)
            npy_write_stream(text, arrays[i].dtype, arrays[i].dimensions, arrays[i].shape,
                             arrays[i].values);
        else
            fputs(metadata, text);
        must_close_text(text, &bytes, &size);
        entries[i].name =
            i < count ? must_format("%s.npy", arrays[i].name) : must_format("%s", NPZ_METADATA);
        written = write_member(file.file, offset, bytes, size, &entries[i]);
        offset += written;
        free(bytes);
    }
    write_directory(file.file, count + 1, entries, offset);
    for (int64_t i = 0; i <= count; i++)
        free(entries[i].name);
    free(entries);
    if (written == 0 || count + 1 > MOST_MEMBERS) {
        report_error("%s/%s: more than an archive holds, 4 GiB and %d arrays", folder, name,
                     MOST_MEMBERS - 1);
        code = EXIT_ENVIRONMENT;
    }
    if (code == EXIT_PASS)
        code = new_file_close(&file);
    if (code == EXIT_PASS)
        code = new_file_publish(&file);
    new_file_free(&file);
    return code;
}

/* ---- Reading ---- */

typedef struct {
    const char *path, *bytes;
    int64_t size;
} archive;

static int fail(const archive *a, const char *member, const char *expected)
{
    report_error("%s: %s%s%s", a->path, member, *member ? ": " : "", expected);
    return EXIT_ENVIRONMENT;
}

/* The bytes of the member that an entry of the directory names; null if the entry is not of the
 * form that we write. */
static const char *find_bytes(const archive *a, const char *entry_at, int64_t *size)
{
    int64_t offset = get(entry_at + 42, 4);
    *size = get(entry_at + 24, 4);
    bool stored = get(entry_at + 8, 2) % 2 == 0 && get(entry_at + 10, 2) == 0;
    if (!stored || *size != get(entry_at + 20, 4) || offset > a->size - LOCAL_SIZE)
        return NULL;
    const char *local = a->bytes + offset;
    int64_t first = offset + LOCAL_SIZE + get(local + 26, 2) + get(local + 28, 2);
    if (get(local, 4) != LOCAL || first > a->size || *size > a->size - first)
        return NULL;
    const char *bytes = a->bytes + first;
    return get(entry_at + 16, 4) == crc32_z(0, (const unsigned char *)bytes, (size_t)*size) ? bytes
                                                                                            : NULL;
}

static int read_member(const archive *a, const char *entry_at, const char *name, npz_file *file)
{
    int64_t size;
    const char *bytes = find_bytes(a, entry_at, &size);
    size_t length = strlen(name);
    if (!bytes)
        return fail(a, name,
                    "expected a whole member that is neither compressed nor encrypted "
                    "(numpy.savez), with its check sum");
    if (strcmp(name, NPZ_METADATA) == 0 && !file->metadata) {
        file->metadata = must_format("%.*s", (int)size, bytes);
        return EXIT_PASS;
    }
    if (length < 5 || strcmp(name + length - 4, ".npy") != 0)
        return fail(a, name, "expected NAME.npy or " NPZ_METADATA);
    char *key = must_format("%.*s", (int)length - 4, name);
    char *where = must_format("%s: %s", a->path, name);
    struct npz_member member = {.name = key};
    int code = npy_read_memory(where, bytes, (size_t)size, &member.array);
    free(where);
    if (code != EXIT_PASS) {
        free(key);
        return code;
    }
    file->members[file->count++] = member;
    return EXIT_PASS;
}

static int compare_names(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static int check_names(const archive *a, const npz_file *file)
{
    char **names = must_allocate((size_t)file->count + 1, sizeof *names);
    int code = EXIT_PASS;
    for (int64_t i = 0; i < file->count; i++)
        names[i] = file->members[i].name;
    qsort(names, (size_t)file->count, sizeof *names, compare_names);
    for (int64_t i = 1; i < file->count && code == EXIT_PASS; i++)
        if (strcmp(names[i], names[i - 1]) == 0)
            code = fail(a, names[i], "expected once");
    free(names);
    return code;
}

static int read_archive(const archive *a, npz_file *file)
{
    const char *end = a->bytes + a->size - END_SIZE;
    if (a->size < END_SIZE || get(end, 4) != END || get(end + 20, 2) != 0)
        return fail(a, "", "the end of a zip archive is missing; expected an .npz file");
    int64_t count = get(end + 10, 2), at = get(end + 16, 4);
    int64_t last = at + get(end + 12, 4), held = 0;
    if (count > MOST_MEMBERS || last != a->size - END_SIZE)
        return fail(a, "", "expected a directory of fewer than 65535 arrays before its end");
    if (count > (last - at) / CENTRAL_SIZE)
        return fail(a, "", "the directory ends early");
    file->members = must_allocate((size_t)count + 1, sizeof *file->members);
    for (int64_t i = 0; i < count; i++) {
        const char *entry_at = a->bytes + at;
        if (at > last - CENTRAL_SIZE || get(entry_at, 4) != CENTRAL ||
            last - at - CENTRAL_SIZE < get(entry_at + 28, 2))
            return fail(a, "", "the directory ends early");
        held += get(entry_at + 24, 4);
        if (held > a->size)
            return fail(a, "",
                        "its members have more bytes than it, expected each to have its own");
        char *name = must_format("%.*s", (int)get(entry_at + 28, 2), entry_at + CENTRAL_SIZE);
        int code = read_member(a, entry_at, name, file);
        free(name);
        if (code != EXIT_PASS)
            return code;
        at += CENTRAL_SIZE + get(entry_at + 28, 2) + get(entry_at + 30, 2) + get(entry_at + 32, 2);
    }
    return at == last ? check_names(a, file)
                      : fail(a, "", "the directory is longer than its entries");
}

int npz_read(const char *path, npz_file *file)
{
    size_t size;
    *file = (npz_file){0};
    char *bytes = files_read(path, "an .npz file", &size);
    if (!bytes)
        return EXIT_ENVIRONMENT;
    int code = read_archive(&(archive){path, bytes, (int64_t)size}, file);
    free(bytes);
    return code;
}

void npz_free(npz_file *file)
{
    for (int64_t i = 0; i < file->count; i++) {
        free(file->members[i].name);
        free(file->members[i].array.data);
    }
    free(file->members);
    free(file->metadata);
    *file = (npz_file){0};
}

const npy_array *npz_find(const npz_file *file, const char *name)
{
    for (int64_t i = 0; i < file->count; i++)
        if (strcmp(file->members[i].name, name) == 0)
            return &file->members[i].array;
    return NULL;
}
