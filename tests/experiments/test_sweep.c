/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine, on a small experiment that is defined here: threads, kills, journals, full disks,
 * plots. Every run is a child process, as most of them are to end badly. */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "build_config.h"
#include "common/experiment.h"
#include "common/metadata.h"
#include "common/report.h"

/* ---- Files of a test ---- */

static char folder[64]; /* of this test; results go to folder/out/made */

static char *in_folder(const char *name)
{
    static char paths[8][256];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* ---- The experiment: point p has p + 1 rows, some with texts that CSV has to quote ---- */

enum { POINTS = 5, NOWHERE = -1 };

/* What must happen in a run; set before its fork. */
static struct {
    int kill_at, signal_at, signal, check_at, fail_at, skip_from, finish_code;
    int other_at; /* the rows of this point name another */
    int lacks;    /* this point's file is missing */
    bool trace;   /* a file "trace" gets a byte per point run */
} plan;

static const column raw_columns[] = {
    {"point", COLUMN_INTEGER, "", "which point"},
    {"label", COLUMN_TEXT, "", "a text"},
    {"value", COLUMN_REAL, "m", "a real"},
    {"even", COLUMN_BOOLEAN, "", "whether the row is even"},
};
static const column sum_columns[] = {
    {"rows", COLUMN_INTEGER, "", "number of rows"},
    {"total", COLUMN_REAL, "m", "sum of the values"},
};
static const output_spec outputs[] = {
    {"raw", "the rows", raw_columns, 4},
    {"sums", "their sum", sum_columns, 2},
};

static int prepare(const program_options *s, void **state, int64_t *points)
{
    *state = malloc(sizeof(int64_t));
    *(int64_t *)*state = s->seeds.items[0];
    *points = POINTS;
    return EXIT_PASS;
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    snprintf(buffer, size, "point %" PRId64 " of seed %" PRId64, point, *(const int64_t *)state);
}

static double weight(const void *state, int64_t point)
{
    return (double)(point * 5 % 7);
}

static bool input(const void *state, int index, const char **name, const char **sha256)
{
    *name = index ? "iid" : "na\xefve \"file\".npy";
    *sha256 = index ? "" : "00ff";
    return index < 2;
}

static void leave_trace(void)
{
    int file = plan.trace ? open(in_folder("trace"), O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
    if (file >= 0 && write(file, "x", 1) == 1)
        close(file);
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    static const char *const labels[] = {"plain", "", "a,b", "\"q\"\nline", "nan"};
    if (point == plan.kill_at)
        raise(SIGKILL);
    if (point == plan.signal_at)
        raise(plan.signal);
    if (point == plan.fail_at) {
        report_error("point %" PRId64 " has no luck", point);
        return EXIT_ENVIRONMENT;
    }
    leave_trace();
    for (int64_t row = 0; row <= point; row++) {
        table_integer(raw, point == plan.other_at ? 9 : point);
        table_text(raw, labels[(point + row) % 5]);
        if (row % 4 == 3)
            table_missing(raw);
        else
            table_real(raw, sin((double)(*(const int64_t *)state * 100 + point * 10 + row)));
        table_boolean(raw, row % 2 == 0);
    }
    if (plan.skip_from != NOWHERE && point >= plan.skip_from)
        return EXIT_SKIPPED;
    return point == plan.check_at ? EXIT_CHECK : EXIT_PASS;
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    double total = 0;
    for (int64_t row = 0; row < table_rows(raw); row++)
        if (!table_is_missing(raw, row, 2))
            total += table_get_real(raw, row, 2);
    table_integer(tables[1], table_rows(raw));
    table_real(tables[1], total);
    printf("a table for people\n");
    return plan.finish_code;
}

static const experiment tested = {
    .name = "made/up",
    .summary = "an experiment for the engine's tests",
    .source = "nowhere",
    .example = "attnum run made/up",
    .defaults = "none",
    .outputs = outputs,
    .output_count = 2,
    .prepare = prepare,
    .describe = describe,
    .weight = weight,
    .input = input,
    .run = run,
    .finish = finish,
    .release = free,
};

/* ---- Running it ---- */

static void set_up(void)
{
    strcpy(folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/attnum-XXXXXX" : "/tmp/attnum-XXXXXX");
    cr_assert(mkdtemp(folder));
    unsetenv("ATTNUM_ISA"); /* runs would keep it */
    memset(&plan, NOWHERE, sizeof plan);
    plan.trace = false;
    plan.finish_code = EXIT_PASS;
}

static void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(sweep, .init = set_up, .fini = tear_down);

static const experiment *chosen = &tested;
static rlim_t size_limit = RLIM_INFINITY;

/* Words of the child that are no options: files of shards, to be merged. */
static int merge_files(const program_options *s, int count, char *const *names)
{
    shard_file files[16];
    int code = EXIT_PASS;
    for (int i = 0; i < count; i++)
        code = exit_worst(code, shard_read(&files[i], in_folder(names[i])));
    if (code == EXIT_PASS)
        code = experiment_merge(chosen, s, "run made/up", "some/where", files, count);
    for (int i = 0; i < count; i++)
        shard_free(&files[i]);
    return code;
}

static void child(const char *line)
{
    char copy[512], *words[16], *files[16];
    int count = 0, file_count = 0;
    program_options s;
    struct rlimit limit = {size_limit, size_limit};
    int log = open(in_folder("stdout"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int errors = open(in_folder("stderr"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        if (strncmp(word, "out/", 4) == 0)
            files[file_count++] = word;
        else
            words[count++] = word;
    if (dup2(log, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0)
        _exit(99);
    int code = options_parse(&s, 0, count, words);
    if (code == EXIT_PASS) {
        s.out = in_folder("out");
        signal(SIGXFSZ, SIG_IGN);
        if (size_limit != RLIM_INFINITY)
            setrlimit(RLIMIT_FSIZE, &limit);
        code = file_count ? merge_files(&s, file_count, files) : experiment_run(chosen, &s);
        options_free(&s);
    }
    fflush(stdout);
    _exit(code);
}

static pid_t start_child(const char *line)
{
    fflush(stdout);
    fflush(stderr);
    pid_t pid = fork();
    if (pid == 0)
        child(line);
    cr_assert(pid > 0);
    return pid;
}

static int end_child(pid_t pid)
{
    int status = 0;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* The exit code of a run, or minus the signal that ended it. */
static int run_child(const char *line)
{
    return end_child(start_child(line));
}

/* A file's bytes, NUL after them, to be freed; null if there is no such file. */
static char *read_file(const char *path, size_t *size)
{
    *size = 0;
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *bytes = calloc(1 << 20, 1);
    *size = fread(bytes, 1, (1 << 20) - 1, file);
    fclose(file);
    return bytes;
}

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file, "%s", path);
    cr_assert_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static bool has_file(const char *name)
{
    return access(in_folder(name), F_OK) == 0;
}

static bool holds(const char *name, const char *text)
{
    size_t size;
    char *bytes = read_file(in_folder(name), &size);
    bool found = bytes && strstr(bytes, text);
    free(bytes);
    return found;
}

#define CSV     "out/made/raw.csv"
#define SUMS    "out/made/sums.csv"
#define JOURNAL "out/made/raw.journal"

static char *expected;
static size_t expected_size;

/* The CSV of an uninterrupted run, by one thread. */
static void make_expected(void)
{
    cr_assert_eq(run_child("--threads 1"), EXIT_PASS);
    free(expected);
    expected = read_file(in_folder(CSV), &expected_size);
    cr_assert(expected);
    cr_assert_eq(unlink(in_folder(CSV)), 0);
}

/* The CSV exists and is the expected one. */
static bool as_expected(void)
{
    size_t size;
    char *bytes = read_file(in_folder(CSV), &size);
    bool same = bytes && size == expected_size && memcmp(bytes, expected, size) == 0;
    free(bytes);
    return same;
}

static size_t traced(void)
{
    size_t size = 0;
    free(read_file(in_folder("trace"), &size));
    unlink(in_folder("trace"));
    return size;
}

/* ---- Tests ---- */

Test(sweep, threads_do_not_change_the_csv)
{
    make_expected();
    static const char start[] = "point,label,value,even\n0,plain,";
    cr_expect_eq(strncmp(expected, start, sizeof start - 1), 0, "%s", expected);
    for (int threads = 1; threads <= 8; threads++) {
        char line[32];
        snprintf(line, sizeof line, "--threads %d", threads);
        cr_expect_eq(run_child(line), EXIT_PASS, "%d threads", threads);
        cr_expect(as_expected(), "%d threads", threads);
    }
    cr_expect(has_file(SUMS) && !has_file(JOURNAL));
    cr_expect(holds("stdout", "a table for people\nmade/up: 5 points, 15 rows → "));
    cr_expect(run_child("--seed 2") == EXIT_PASS && !as_expected(), "the seed has no effect");
}

Test(sweep, a_killed_run_resumes)
{
    make_expected();
    plan.trace = true;
    for (int at = 0; at < POINTS; at++)
        for (int threads = 1; threads <= 3; threads += 2) {
            char line[48];
            plan.kill_at = at;
            snprintf(line, sizeof line, "--threads %d", threads);
            cr_expect_eq(run_child(line), -SIGKILL);
            cr_expect_not(has_file(CSV), "killed at %d", at);
            size_t before = traced();
            plan.kill_at = NOWHERE;
            cr_expect_eq(run_child("--resume --threads 2"), EXIT_PASS, "killed at %d", at);
            cr_expect(as_expected(), "killed at %d by %d threads", at, threads);
            size_t both = before + traced();
            cr_expect(both >= POINTS && both < POINTS + (size_t)threads,
                      "killed at %d: %zu and %zu points ran", at, before, both - before);
            cr_expect_not(has_file(JOURNAL));
            unlink(in_folder(CSV));
        }
}

/* A journal with all points but the last: the lightest is run last, which is point 0. */
static char *make_journal(size_t *size)
{
    plan.kill_at = 0;
    cr_assert_eq(run_child("--threads 1"), -SIGKILL);
    plan.kill_at = NOWHERE;
    char *bytes = read_file(in_folder(JOURNAL), size);
    cr_assert(bytes);
    return bytes;
}

Test(sweep, a_run_killed_at_its_last_point_runs_only_that)
{
    size_t size;
    make_expected();
    free(make_journal(&size));
    plan.trace = true;
    cr_expect_eq(run_child("--resume"), EXIT_PASS);
    cr_expect_eq(traced(), 1);
    cr_expect(as_expected());
    cr_expect(holds("stderr", "4 of 5 points are there already"));
    cr_expect(holds(CSV "-metadata.json", "\"resumed_points\":\t4"), "whose seconds are not known");
    cr_assert_eq(run_child(""), EXIT_PASS);
    cr_expect_not(holds(CSV "-metadata.json", "resumed_points"));
}

static char *missing(const void *state, int64_t point)
{
    return point == plan.lacks ? must_format("a/file") : NULL;
}

/* Points that do not run again do not make files that only the later command asks for. */
Test(sweep, a_point_without_its_file_is_not_resumed)
{
    experiment leaving = tested;
    size_t size;
    leaving.missing = missing;
    chosen = &leaving;
    make_expected();
    cr_assert_eq(run_child(""), EXIT_PASS);
    cr_expect_eq(run_child("--resume"), EXIT_PASS);
    plan.lacks = 3;
    cr_expect_eq(run_child("--resume"), EXIT_USAGE, "complete");
    cr_expect(holds("stderr", "made/up: --resume: a/file is missing") && as_expected());
    unlink(in_folder(CSV));
    free(make_journal(&size));
    cr_expect_eq(run_child("--resume"), EXIT_USAGE, "stopped");
    cr_expect(holds("stderr", "made/up: --resume: a/file is missing") && has_file(JOURNAL));
    plan.lacks = 0; /* which runs again */
    cr_expect_eq(run_child("--resume"), EXIT_PASS);
    cr_expect(as_expected());
}

Test(sweep, a_journal_cut_anywhere, .timeout = 120)
{
    size_t size;
    make_expected();
    char *bytes = make_journal(&size);
    size_t last = POINTS;
    plan.trace = true;
    for (size_t cut = 0; cut <= size; cut++) {
        write_file(in_folder(JOURNAL), bytes, cut);
        int code = run_child("--resume --threads 1");
        size_t ran = traced();
        cr_expect(code == EXIT_PASS && as_expected(), "cut at %zu of %zu: exit code %d", cut, size,
                  code);
        cr_expect(ran == last || ran == last - 1, "cut at %zu: %zu points ran, %zu before", cut,
                  ran, last);
        last = ran;
        unlink(in_folder(CSV));
    }
    cr_expect_eq(last, 1);
    free(bytes);
}

/* What is appended after a cut must be read again: the tail of an incomplete record must be
 * removed. */
Test(sweep, a_cut_journal_goes_on)
{
    size_t size;
    make_expected();
    char *bytes = make_journal(&size);
    write_file(in_folder(JOURNAL), bytes, size - 5);
    plan.kill_at = 0;
    cr_assert_eq(run_child("--resume --threads 1"), -SIGKILL);
    plan.kill_at = NOWHERE;
    plan.trace = true;
    cr_expect_eq(run_child("--resume --threads 1"), EXIT_PASS);
    cr_expect_eq(traced(), 1);
    cr_expect(as_expected());
    free(bytes);
}

Test(sweep, a_journal_with_a_wrong_byte, .timeout = 120)
{
    size_t size;
    make_expected();
    char *bytes = make_journal(&size);
    size_t header = (size_t)(strchr(bytes, '\n') - bytes) + 1;
    for (size_t at = 0; at < size; at += 5) {
        bytes[at] ^= 1;
        write_file(in_folder(JOURNAL), bytes, size);
        bytes[at] ^= 1;
        int code = run_child("--resume --threads 1");
        if (at < header)
            cr_expect(code == EXIT_USAGE && !has_file(CSV), "byte %zu: exit code %d", at, code);
        else
            cr_expect(code == EXIT_PASS && as_expected(), "byte %zu: exit code %d", at, code);
        unlink(in_folder(CSV));
    }
    free(bytes);
}

Test(sweep, a_journal_of_another_run_is_refused)
{
    size_t size, after;
    make_expected();
    char *bytes = make_journal(&size);
    cr_expect_eq(run_child("--resume --seed 2"), EXIT_USAGE);
    cr_expect(holds("stderr", "raw.journal: --resume: was written by a run with other options"));
    cr_expect_not(has_file(CSV));
    char *kept = read_file(in_folder(JOURNAL), &after);
    cr_expect(after == size && memcmp(kept, bytes, size) == 0, "the journal was changed");
    free(kept);
    cr_expect_eq(run_child("--seed 2"), EXIT_PASS, "without --resume it starts over");
    cr_expect_not(has_file(JOURNAL));
    free(bytes);
}

/* ATTNUM_ISA counts like --isa: rows of two instruction sets would differ in their last digits. */
Test(sweep, a_journal_of_another_instruction_set_is_refused)
{
    size_t size;
    setenv("ATTNUM_ISA", "base", 1);
    make_expected();
    free(make_journal(&size));
    unsetenv("ATTNUM_ISA");
    cr_expect_eq(run_child("--resume"), EXIT_USAGE);
    cr_expect(holds("stderr", "('isa=base', here 'isa=auto'); give that run's options"));
    cr_expect_not(has_file(CSV));
    cr_expect_eq(run_child("--resume --isa base"), EXIT_PASS);
    cr_expect(as_expected() && holds("stderr", "4 of 5 points are there already"));
}

Test(sweep, two_runs_do_not_share_a_journal)
{
    size_t size;
    free(make_journal(&size));
    int file = open(in_folder(JOURNAL), O_RDWR);
    cr_assert_eq(flock(file, LOCK_EX | LOCK_NB), 0);
    cr_expect_eq(run_child(""), EXIT_ENVIRONMENT);
    cr_expect(holds("stderr", "another run is writing here"));
    struct stat status;
    cr_expect(fstat(file, &status) == 0 && (size_t)status.st_size == size,
              "the journal was changed");
    close(file);
}

/* The child of a run that was killed has the lock until it runs its program or is killed, too. */
Test(sweep, a_lock_that_a_dying_process_has_is_waited_for)
{
    size_t size;
    int status;
    make_expected();
    free(make_journal(&size));
    pid_t dying = fork();
    if (dying == 0) {
        bool locked = flock(open(in_folder(JOURNAL), O_RDWR), LOCK_EX | LOCK_NB) == 0;
        if (locked)
            raise(SIGSTOP);
        _exit(1);
    }
    cr_assert(waitpid(dying, &status, WUNTRACED) == dying && WIFSTOPPED(status));
    pid_t run = start_child("--resume");
    nanosleep(&(struct timespec){.tv_nsec = 300 * 1000 * 1000}, NULL);
    kill(dying, SIGKILL);
    cr_expect_eq(end_child(run), EXIT_PASS);
    cr_expect_eq(end_child(dying), -SIGKILL);
    cr_expect(as_expected() && !has_file(JOURNAL));
}

Test(sweep, two_runs_at_once_run_each_point_once, .timeout = 60)
{
    make_expected();
    plan.trace = true;
    for (int round = 0; round < 60; round++) { /* the second starts at any moment of the first */
        pid_t a = start_child("--resume --threads 1");
        nanosleep(&(struct timespec){.tv_nsec = round * 60000}, NULL);
        pid_t b = start_child("--resume --threads 1");
        int code_a = end_child(a), code_b = end_child(b);
        cr_expect(code_a == EXIT_PASS || code_b == EXIT_PASS, "%d and %d", code_a, code_b);
        cr_expect_eq(traced(), POINTS, "round %d: %d and %d", round, code_a, code_b);
        cr_expect(as_expected() && !has_file(JOURNAL));
        unlink(in_folder(CSV));
    }
}

Test(sweep, a_full_disk_leaves_nothing_under_a_final_name)
{
    static const char *const finals[] = {CSV, SUMS, CSV "-metadata.json", SUMS "-metadata.json"};
    int passed = 0;
    make_expected();
    for (int i = 0; i < 4; i++)
        unlink(in_folder(finals[i]));
    for (rlim_t limit = 0; limit < 6000 && !passed; limit += limit < 2000 ? 50 : 200) {
        size_limit = limit;
        int code = run_child("--threads 1");
        passed = code == EXIT_PASS;
        cr_expect(passed || code == EXIT_ENVIRONMENT, "limit %d: exit code %d", (int)limit, code);
        for (int i = 0; i < 4 && !passed; i++)
            cr_expect_not(has_file(finals[i]), "limit %d: %s is there", (int)limit, finals[i]);
        if (limit >= 50 && !passed) /* stderr itself is a file under the limit */
            cr_expect(holds("stderr", "attnum: "), "limit %d: no reason given", (int)limit);
    }
    cr_expect(passed && as_expected(), "no limit was high enough");
    cr_expect(holds(finals[1], "\n1") && holds(finals[2], "\n}\n") && holds(finals[3], "\n}\n"),
              "a file is not whole");
    size_limit = RLIM_INFINITY;
}

Test(sweep, a_full_disk_keeps_old_results_and_the_journal)
{
    bool passed = false;
    make_expected();
    for (rlim_t limit = 0; limit < 6000 && !passed; limit += 100) {
        write_file(in_folder(CSV), "old", 3);
        size_limit = limit;
        passed = run_child("--threads 1") == EXIT_PASS;
        size_limit = RLIM_INFINITY;
        cr_expect(passed ? as_expected() : holds(CSV, "old"), "limit %d", (int)limit);
        size_t size;
        char *bytes = read_file(in_folder(JOURNAL), &size);
        cr_expect(size == 0 || bytes[size - 1] == '\n', "limit %d: a torn record", (int)limit);
        free(bytes);
        cr_expect(passed || run_child("--resume") == EXIT_PASS, "limit %d", (int)limit);
        cr_expect(as_expected(), "limit %d", (int)limit);
    }
    cr_expect(passed, "no limit was high enough");
}

/* Whether a run with these options ran its points; all of them, or none. */
static bool runs_again(const char *line, int code)
{
    traced();
    int got = run_child(line);
    cr_expect_eq(got, code, "%s: exit code %d", line, got);
    size_t points = traced();
    cr_expect(points == 0 || points == POINTS, "%zu points ran", points);
    cr_expect_not(has_file(JOURNAL));
    cr_expect_eq(holds("stderr", "made/up: already complete in "), points == 0);
    return points != 0;
}

Test(sweep, a_complete_run_is_not_resumed)
{
    static const char *const finals[] = {CSV, SUMS, CSV "-metadata.json", SUMS "-metadata.json"};
    make_expected();
    plan.trace = true;
    for (int i = 0; i < 4; i++) {
        cr_expect(runs_again("--resume", EXIT_PASS) && as_expected(), "without file %d", i - 1);
        cr_expect(!runs_again("--resume --threads 2", EXIT_PASS) && as_expected());
        cr_assert_eq(unlink(in_folder(finals[i])), 0);
    }
    cr_expect(runs_again("--resume", EXIT_PASS), "without file 3");
    cr_expect(runs_again("", EXIT_PASS), "without --resume it starts over");
    cr_expect(runs_again("--resume --seed 2", EXIT_PASS) && !as_expected(), "another fingerprint");
    cr_expect_not(runs_again("--resume --seed 2", EXIT_PASS));
    cr_expect(runs_again("--resume", EXIT_PASS) && as_expected());
    write_file(in_folder(finals[3]), "{\"run\": [1", 11);
    cr_expect(runs_again("--resume", EXIT_PASS), "no JSON");
}

/* As long as there is a journal, the files of two runs may be mixed. */
Test(sweep, a_journal_beside_complete_results_goes_first)
{
    size_t size;
    make_expected();
    cr_assert_eq(run_child(""), EXIT_PASS);
    free(make_journal(&size));
    plan.trace = true;
    cr_expect_eq(run_child("--resume --threads 1"), EXIT_PASS);
    cr_expect_eq(traced(), 1);
    cr_expect_not(holds("stderr", "already complete"));
    cr_expect(as_expected());
}

Test(sweep, a_complete_run_keeps_its_exit_code)
{
    plan.check_at = 4;
    cr_expect_eq(run_child(""), EXIT_CHECK);
    plan.check_at = NOWHERE;
    plan.trace = true;
    cr_expect_not(runs_again("--resume", EXIT_CHECK));
    cr_expect(holds("stderr", "; a check failed in it"));
}

static void replay(const void *state, int64_t point, options_point *options)
{
    *options = (options_point){
        .input = "iid", .stage = 3, .seed = *(const int64_t *)state, .samples = point + 1};
}

Test(sweep, a_failed_check_says_how_to_see_it_again)
{
    experiment replayed = tested;
    replayed.replay = replay;
    replayed.options = OPTIONS(OPTION_INPUT, OPTION_STAGE, OPTION_SAMPLES);
    chosen = &replayed;
    plan.check_at = 3;
    cr_expect_eq(run_child("--seed 6"), EXIT_CHECK);
    cr_expect(holds("stderr",
                    "made/up: a check failed at point 3 of seed 6; to see it again: attnum "
                    "run made/up --input iid --stage 3 --seed 6 --samples 4 --out replay\n"));
}

Test(sweep, no_folder_no_run)
{
    plan.trace = true;
    write_file(in_folder("out"), "a file", 6);
    cr_expect_eq(run_child(""), EXIT_ENVIRONMENT);
    cr_expect(holds("stderr", "out: cannot make this folder: a file has its name"));
    cr_expect_eq(traced(), 0, "points ran before the folder was tried");
}

Test(sweep, a_signal_ends_it_cleanly)
{
    static const int signals[] = {SIGINT, SIGTERM};
    make_expected();
    for (int i = 0; i < 2; i++) {
        plan.signal = signals[i];
        plan.signal_at = 3;
        cr_expect_eq(run_child("--threads 1"), EXIT_ENVIRONMENT);
        cr_expect(holds("stderr", "of 5 points; the same command with --resume goes on"));
        cr_expect(!has_file(CSV) && has_file(JOURNAL));
        cr_expect(holds(JOURNAL, "point 3 code 0"), "the point at work was not finished");
        cr_expect_not(holds(JOURNAL, "point 0 code 0"), "it did not stop");
        plan.signal_at = NOWHERE;
        cr_expect_eq(run_child("--resume"), EXIT_PASS);
        cr_expect(as_expected());
        unlink(in_folder(CSV));
    }
}

Test(sweep, exit_codes)
{
    make_expected();
    plan.check_at = 4;
    cr_expect_eq(run_child(""), EXIT_CHECK);
    cr_expect(as_expected(), "a failed check is a result");
    cr_expect(holds("stderr", "a check failed at point 4 of seed 1"));
    cr_expect(holds("stdout", ", a check failed\n"));
    plan.kill_at = 0;
    cr_expect_eq(run_child("--threads 1"), -SIGKILL);
    plan.kill_at = plan.check_at = NOWHERE;
    cr_expect_eq(run_child("--resume"), EXIT_CHECK, "the journal forgot a failed check");

    plan.skip_from = 0;
    cr_expect_eq(run_child(""), EXIT_PASS, "finish had its say");
    plan.finish_code = EXIT_SKIPPED;
    cr_expect_eq(run_child(""), EXIT_SKIPPED);
    plan.trace = true;
    cr_expect_not(runs_again("--resume", EXIT_SKIPPED));
    plan.trace = false;
    plan.skip_from = NOWHERE;
    cr_expect_eq(run_child(""), EXIT_PASS);
    plan.finish_code = EXIT_CHECK;
    cr_expect_eq(run_child(""), EXIT_CHECK);
    unlink(in_folder(CSV));

    plan.finish_code = EXIT_ENVIRONMENT;
    cr_expect_eq(run_child(""), EXIT_ENVIRONMENT);
    cr_expect(!has_file(CSV) && has_file(JOURNAL));
    plan.fail_at = 2;
    plan.finish_code = EXIT_PASS;
    cr_expect_eq(run_child("--threads 2"), EXIT_ENVIRONMENT);
    cr_expect(holds("stderr", "point 2 has no luck") && !holds("stderr", "--resume"));
    cr_expect(!has_file(CSV) && has_file(JOURNAL));
}

Test(sweep, a_dry_run_touches_nothing)
{
    plan.trace = true;
    cr_expect_eq(run_child("--dry-run"), EXIT_PASS);
    cr_expect_not(has_file("out"));
    cr_expect_eq(traced(), 0);
    cr_expect(holds("stdout", "point 0 of seed 1\npoint 1 of seed 1\n"));
    cr_expect(holds("stdout", "point 4 of seed 1\nmade/up: 5 points\n"));
}

Test(sweep, the_plain_experiment)
{
    experiment plain = tested;
    plain.finish = NULL;
    plain.weight = NULL;
    plain.input = NULL;
    plain.output_count = 1;
    make_expected();
    unlink(in_folder(SUMS));
    chosen = &plain;
    cr_expect_eq(run_child(""), EXIT_PASS);
    cr_expect(as_expected() && !has_file(SUMS));
    cr_expect(holds("stdout", "point  label"));
}

Test(sweep, a_changed_csv_is_made_again)
{
    static const char *const csvs[] = {CSV, SUMS};
    make_expected();
    cr_assert_eq(run_child(""), EXIT_PASS);
    plan.trace = true;
    for (int i = 0; i < 2; i++) {
        size_t size;
        char *bytes = read_file(in_folder(csvs[i]), &size);
        bytes[size - 2] ^= 1;
        write_file(in_folder(csvs[i]), bytes, size);
        cr_expect(runs_again("--resume", EXIT_PASS) && as_expected(), "a byte of %s", csvs[i]);
        bytes[size - 2] ^= 1;
        write_file(in_folder(csvs[i]), bytes, size - 1);
        cr_expect(runs_again("--resume", EXIT_PASS) && as_expected(), "a cut %s", csvs[i]);
        write_file(in_folder(csvs[i]), bytes, size);
        cr_expect_not(runs_again("--resume", EXIT_PASS), "%s as it was", csvs[i]);
        free(bytes);
    }
}

/* `sums` cannot be renamed, which is the state after a kill between the two outputs. */
Test(sweep, stopped_between_two_outputs)
{
    make_expected();
    unlink(in_folder(SUMS));
    mkdir(in_folder(SUMS), 0777);
    mkdir(in_folder(SUMS "/full"), 0777);
    cr_expect_eq(run_child(""), EXIT_ENVIRONMENT);
    cr_expect(holds("stderr", "sums.csv: cannot rename to this"));
    cr_expect(has_file(JOURNAL));
    rmdir(in_folder(SUMS "/full"));
    rmdir(in_folder(SUMS));
    plan.trace = true;
    cr_expect_eq(run_child("--resume"), EXIT_PASS);
    cr_expect_eq(traced(), 0, "points ran again");
    cr_expect(as_expected() && holds(SUMS, "15,") && !has_file(JOURNAL));
}

/* ---- Shards ---- */

/* "out/made/raw.shard-1-of-3" */
static char *shard_name(int shard, int shards)
{
    static char names[16][64];
    static int next;
    char *name = names[next++ % 16];
    snprintf(name, sizeof names[0], "out/made/raw.shard-%d-of-%d", shard, shards);
    return name;
}

static int run_shard(int shard, int shards, const char *options)
{
    char line[64];
    snprintf(line, sizeof line, "--shard %d/%d %s", shard, shards, options);
    return run_child(line);
}

/* Merges the files of shards 1 to N, and what else the line names. */
static int merge_shards(int shards, const char *more)
{
    char line[512] = "";
    for (int shard = 1; shard <= shards; shard++)
        strcat(strcat(line, shard_name(shard, shards)), " ");
    return run_child(strcat(line, more));
}

static bool has_csv(void)
{
    return has_file(CSV) || has_file(SUMS);
}

static void make_shards(int shards)
{
    make_expected();
    unlink(in_folder(SUMS));
    for (int shard = 1; shard <= shards; shard++)
        cr_assert_eq(run_shard(shard, shards, ""), shard <= POINTS ? EXIT_PASS : EXIT_SKIPPED);
}

Test(sweep, shards_merge_to_the_same_csv, .timeout = 60)
{
    static const int numbers[] = {1, 2, 3, 5, 7};
    size_t size, merged_size;
    make_expected();
    char *sums = read_file(in_folder(SUMS), &size);
    plan.trace = true;
    for (int i = 0; i < 5; i++) {
        int shards = numbers[i], most = 0, least = POINTS;
        for (int shard = 1; shard <= shards; shard++) {
            unlink(in_folder(SUMS));
            int code = run_shard(shard, shards, "");
            int ran = (int)traced();
            cr_expect_eq(code, ran ? EXIT_PASS : EXIT_SKIPPED, "%d of %d: %d", shard, shards, code);
            most = ran > most ? ran : most;
            least = ran < least ? ran : least;
            cr_expect_not(has_csv() || has_file(JOURNAL));
            cr_expect(holds("stdout", "made/up: shard ") && holds("stdout", " of 5 points → "));
            run_shard(shard, shards, "--resume");
            cr_expect_eq(traced(), 0, "%d of %d: points ran again", shard, shards);
        }
        cr_expect_leq(most - least, 1, "%d shards have %d to %d points", shards, least, most);
        cr_expect_eq(merge_shards(shards, ""), EXIT_PASS, "%d shards", shards);
        cr_expect_eq(traced(), 0, "a merge ran points");
        char *merged = read_file(in_folder(SUMS), &merged_size);
        cr_expect(as_expected() && merged && merged_size == size && !memcmp(merged, sums, size),
                  "%d shards", shards);
        cr_expect_not(has_file(JOURNAL));
        cr_expect_not(runs_again("--resume", EXIT_PASS), "merged is not complete");
        free(merged);
        unlink(in_folder(CSV));
    }
    free(sums);
}

/* 0, 5, 3, 1, 6 are the weights: 6 and 5, 3 and 1 are dealt 1, 2, 2, 1, and 0 is dealt 1. */
Test(sweep, shards_have_points_of_even_weight)
{
    cr_expect_eq(run_shard(2, 2, "--dry-run"), EXIT_PASS);
    cr_expect(holds("stdout", "point 1 of seed 1\npoint 2 of seed 1\nmade/up: 2 points\n"));
    cr_expect_eq(run_shard(1, 2, "--dry-run"), EXIT_PASS);
    cr_expect(holds("stdout", "point 0 of seed 1\npoint 3 of seed 1\npoint 4 of seed 1\n"));
    cr_expect_not(has_file("out"));
}

Test(sweep, a_killed_shard_resumes)
{
    make_expected();
    plan.trace = true;
    for (int at = 0; at < POINTS; at++) {
        plan.kill_at = at;
        int first = run_shard(1, 2, "--threads 1"), second = run_shard(2, 2, "--threads 1");
        cr_expect((first == -SIGKILL) != (second == -SIGKILL), "killed at %d", at);
        plan.kill_at = NOWHERE;
        cr_expect_eq(merge_shards(2, ""), EXIT_ENVIRONMENT, "merged what is not finished");
        cr_expect(holds("stderr", "is not finished; expected what this leaves: attnum run made/up "
                                  "--shard "));
        cr_expect(holds("stderr", "/out --resume\n") && !has_file(CSV));
        cr_expect_eq(run_shard(first == -SIGKILL ? 1 : 2, 2, "--resume"), EXIT_PASS);
        cr_expect_eq(traced(), POINTS, "killed at %d", at);
        cr_expect_eq(merge_shards(2, ""), EXIT_PASS);
        cr_expect(as_expected(), "killed at %d", at);
        unlink(in_folder(CSV));
    }
}

/* Only the number in the file counts, and a file with the number of another shard is not repaired.
 */
Test(sweep, a_shard_of_another_number_is_not_resumed)
{
    make_shards(2);
    cr_assert_eq(rename(in_folder(shard_name(1, 2)), in_folder(shard_name(2, 3))), 0);
    cr_expect_eq(run_shard(2, 3, "--resume"), EXIT_USAGE);
    cr_expect(holds("stderr", "--resume: was written by a run with other options"));
}

Test(sweep, a_missing_shard_is_named)
{
    make_shards(3);
    char line[256];
    snprintf(line, sizeof line, "%s %s", shard_name(1, 3), shard_name(3, 3));
    cr_expect_eq(run_child(line), EXIT_ENVIRONMENT);
    cr_expect(holds("stderr", "made/up: shard 2 of 3 is missing; expected what this leaves: attnum "
                              "run made/up --shard 2/3 --out some/where --resume\n"));
    cr_expect_eq(run_child(shard_name(3, 3)), EXIT_ENVIRONMENT);
    cr_expect(holds("stderr", "shard 1 of 3 is missing (and 1 more)"));
    cr_expect_not(has_csv());
    make_shards(7); /* of which two have no points */
    unlink(in_folder(shard_name(7, 7)));
    *line = '\0';
    for (int shard = 1; shard <= 6; shard++)
        strcat(strcat(line, shard_name(shard, 7)), " ");
    cr_expect_eq(run_child(line), EXIT_ENVIRONMENT);
    cr_expect(holds("stderr", "shard 7 of 7 is missing;"));
    cr_expect_not(has_csv());
}

Test(sweep, a_shard_twice)
{
    size_t size, other;
    make_shards(2);
    char *shard = read_file(in_folder(shard_name(1, 2)), &size);
    write_file(in_folder("out/copy"), shard, size);
    cr_expect_eq(merge_shards(2, "out/copy"), EXIT_PASS, "the same bytes");
    cr_expect(as_expected());
    unlink(in_folder(CSV));
    unlink(in_folder(SUMS));
    plan.check_at = 0; /* which is in shard 1, and now has another code */
    cr_assert_eq(run_shard(1, 2, ""), EXIT_CHECK);
    char *changed = read_file(in_folder(shard_name(1, 2)), &other);
    write_file(in_folder("out/copy"), changed, other);
    write_file(in_folder(shard_name(1, 2)), shard, size);
    cr_expect_eq(merge_shards(2, "out/copy"), EXIT_ENVIRONMENT, "another code");
    cr_expect(holds("stderr", "'point 0 of seed 1' has other rows in another file of this shard"));
    cr_expect_not(has_csv());
    free(changed);
    plan.check_at = NOWHERE;
    plan.other_at = 0; /* the same code, rows of the same length */
    unlink(in_folder(shard_name(1, 2)));
    cr_assert_eq(run_shard(1, 2, ""), EXIT_PASS);
    changed = read_file(in_folder(shard_name(1, 2)), &other);
    cr_expect(other == size && memcmp(changed, shard, size) != 0);
    write_file(in_folder("out/copy"), changed, other);
    write_file(in_folder(shard_name(1, 2)), shard, size);
    cr_expect_eq(merge_shards(2, "out/copy"), EXIT_ENVIRONMENT, "another value");
    cr_expect(holds("stderr", "'point 0 of seed 1' has other rows in another file of this shard"));
    cr_expect_not(has_csv());
    free(changed);
    free(shard);
}

Test(sweep, a_point_of_another_shard_is_refused)
{
    size_t size, more;
    make_shards(2);
    char *first = read_file(in_folder(shard_name(1, 2)), &size);
    char *second = read_file(in_folder(shard_name(2, 2)), &more);
    const char *record = strstr(second, "\npoint ") + 1;
    char *both = calloc(size + more, 1);
    memcpy(both, first, size);
    strcpy(both + size, record);
    write_file(in_folder(shard_name(1, 2)), both, strlen(both));
    cr_expect_eq(merge_shards(2, ""), EXIT_ENVIRONMENT);
    cr_expect(holds("stderr", "is not a point of this shard"));
    cr_expect_not(has_csv());
    strcpy(both + size, strstr(first, "\npoint ") + 1); /* its own, a second time */
    write_file(in_folder(shard_name(1, 2)), both, strlen(both));
    cr_expect_eq(merge_shards(2, ""), EXIT_ENVIRONMENT);
    cr_expect_not(has_csv());
    free(both);
    free(first);
    free(second);
}

/* A merge keeps no points of its own: a journal where its results go is of a run that was stopped.
 */
Test(sweep, a_merge_spares_the_journal_of_another_run)
{
    size_t size, after;
    make_shards(2);
    char *bytes = make_journal(&size);
    cr_expect_eq(merge_shards(2, ""), EXIT_ENVIRONMENT);
    cr_expect(holds("stderr", "raw.journal: has points of a run that was stopped"));
    cr_expect_not(has_csv());
    char *kept = read_file(in_folder(JOURNAL), &after);
    cr_expect(kept && after == size && memcmp(kept, bytes, size) == 0, "the journal was changed");
    write_file(in_folder(JOURNAL), bytes, (size_t)(strstr(bytes, "\npoint ") + 1 - bytes));
    cr_expect_eq(merge_shards(2, ""), EXIT_PASS, "a run or a merge without points is no loss");
    cr_expect(as_expected() && !has_file(JOURNAL));
    free(kept);
    free(bytes);
}

static bool refused_with_one_line(void)
{
    size_t size;
    char *text = read_file(in_folder("stderr"), &size);
    bool one = strncmp(text, "attnum: ", 8) == 0 && strchr(text, '\n') == text + size - 1;
    free(text);
    return one && !has_csv();
}

Test(sweep, a_shard_cut_or_edited_is_refused, .timeout = 120)
{
    size_t size;
    make_shards(2);
    char *shard = read_file(in_folder(shard_name(2, 2)), &size);
    for (size_t at = 0; at < size; at += at % 2 ? 6 : 5) {
        write_file(in_folder(shard_name(2, 2)), shard, at);
        cr_expect_eq(merge_shards(2, ""), EXIT_ENVIRONMENT, "cut at %zu", at);
        cr_expect(refused_with_one_line(), "cut at %zu", at);
        shard[at] ^= 1;
        write_file(in_folder(shard_name(2, 2)), shard, size);
        shard[at] ^= 1;
        cr_expect_eq(merge_shards(2, ""), EXIT_ENVIRONMENT, "byte %zu", at);
        cr_expect(refused_with_one_line(), "byte %zu", at);
    }
    write_file(in_folder(shard_name(2, 2)), shard, size);
    cr_expect(merge_shards(2, "") == EXIT_PASS && as_expected());
    free(shard);
}

Test(sweep, a_shard_of_another_run_is_refused)
{
    make_shards(2);
    cr_expect_eq(merge_shards(2, "--seed 2"), EXIT_ENVIRONMENT);
    cr_expect(holds("stderr", "its run is another than this program makes of its options: "
                              "'seed=1', here 'seed=2'"));
    cr_expect(refused_with_one_line());
}

Test(sweep, checks_of_shards_count)
{
    make_expected();
    plan.check_at = 2;
    cr_expect_eq(run_shard(1, 2, ""), EXIT_PASS);
    cr_expect_eq(run_shard(2, 2, ""), EXIT_CHECK);
    cr_expect(holds("stdout", ", a check failed\n"));
    plan.check_at = NOWHERE;
    cr_expect_eq(run_shard(2, 2, "--resume"), EXIT_CHECK);
    cr_expect_eq(merge_shards(2, ""), EXIT_CHECK);
    cr_expect(as_expected() && holds("stdout", ", a check failed\n"));
    plan.trace = true;
    cr_expect_not(runs_again("--resume", EXIT_CHECK));
}

/* ---- Metadata ---- */

static const char *text_at(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
    return text ? text : "(none)";
}

/* The reported BLAS is loaded in this process, and describes itself only if it is OpenBLAS. */
static void expect_blas(const cJSON *blas)
{
    size_t size;
    char *maps = read_file("/proc/self/maps", &size);
    static const char *const files[] = {"file", "lapack_file"};
    for (int i = 0; i < 2; i++)
        cr_expect(strstr(maps, text_at(blas, files[i])), "%s: %s", files[i],
                  text_at(blas, files[i]));
    const char *config = text_at(blas, "config"), *file = text_at(blas, "file");
    if (strstr(file, "openblas")) {
        cr_expect(strncmp(config, "OpenBLAS ", 9) == 0, "%s", config);
        cr_expect(*text_at(blas, "core") && cJSON_IsString(cJSON_GetObjectItem(blas, "core")));
        cr_expect(cJSON_IsNumber(cJSON_GetObjectItem(blas, "threads")));
    } else {
        cr_expect_str_eq(config, file);
        cr_expect(cJSON_IsNull(cJSON_GetObjectItem(blas, "core")));
        cr_expect(cJSON_IsNull(cJSON_GetObjectItem(blas, "threads")));
    }
    free(maps);
}

Test(sweep, metadata)
{
    size_t size;
    cr_assert_eq(run_child("--seed 9007199254740993,2 --threads 2"), EXIT_PASS);
    char *text = read_file(in_folder(CSV "-metadata.json"), &size);
    cJSON *root = cJSON_Parse(text);
    cr_assert(root, "no JSON: %s", text);
    cr_expect_str_eq(text_at(root, "@context"), "http://www.w3.org/ns/csvw");
    cr_expect_str_eq(text_at(root, "url"), "raw.csv");
    cr_expect_str_eq(text_at(root, "dc:title"), tested.summary);
    cr_expect_str_eq(text_at(root, "dc:description"), outputs[0].description);
    cr_expect_str_eq(text_at(root, "dc:source"), tested.source);
    cr_expect_eq(strlen(text_at(root, "sha256")), 64);
    const cJSON *columns = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "tableSchema"), "columns");
    static const char *const datatypes[] = {"integer", "string", "double", "boolean"};
    cr_assert_eq(cJSON_GetArraySize(columns), 4);
    for (int i = 0; i < 4; i++) {
        const cJSON *c = cJSON_GetArrayItem(columns, i);
        cr_expect_str_eq(text_at(c, "name"), raw_columns[i].name);
        cr_expect_str_eq(text_at(c, "datatype"), datatypes[i]);
        cr_expect_str_eq(text_at(c, "dc:description"), raw_columns[i].description);
    }
    cr_expect_str_eq(text_at(cJSON_GetArrayItem(columns, 2), "unit"), "m");
    const cJSON *made = cJSON_GetObjectItem(root, "run");
    cr_expect_str_eq(text_at(made, "command"), "attnum run --seed 9007199254740993,2 --threads 2");
    cr_expect_str_eq(text_at(made, "version"), ATN_VERSION);
    cr_expect_str_eq(text_at(made, "experiment"), tested.name);
    cr_expect_str_eq(text_at(made, "compiler"), BUILD_COMPILER);
    cr_expect_str_eq(text_at(made, "flags"), BUILD_FLAGS);
    cr_expect_eq(cJSON_GetNumberValue(cJSON_GetObjectItem(made, "threads")), 2);
    const cJSON *options = cJSON_GetObjectItem(made, "options");
    cr_assert_eq(cJSON_GetArraySize(options), 1, "only what a result depends on");
    cr_expect_str_eq(cJSON_GetArrayItem(options, 0)->valuestring, "--seed=9007199254740993,2");
    cr_expect_null(cJSON_GetObjectItem(made, "shards"));
    cr_expect_eq(strlen(text_at(made, "date")), strlen("2000-01-01T00:00:00Z"));
    expect_blas(cJSON_GetObjectItem(made, "blas"));
    cr_expect(cJSON_IsNull(cJSON_GetObjectItem(made, "gpu")));
    cr_expect_eq(strlen(text_at(made, "fingerprint")), 64);
    cr_expect(cJSON_IsNumber(cJSON_GetObjectItem(made, "exit_code")));
    cr_expect(strstr(text, "[9007199254740993, 2]"), "%s", text);
    const cJSON *inputs = cJSON_GetObjectItem(made, "inputs");
    cr_assert_eq(cJSON_GetArraySize(inputs), 2);
    cr_expect_str_eq(text_at(cJSON_GetArrayItem(inputs, 0), "name"), "na?ve \"file\".npy");
    cr_expect_str_eq(text_at(cJSON_GetArrayItem(inputs, 0), "sha256"), "00ff");
    cr_expect(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetArrayItem(inputs, 1), "sha256")));
    cJSON_Delete(root);
    free(text);
    cr_expect(has_file(SUMS "-metadata.json"));
}

/* Seconds to a tenth; none for a run without a time. */
Test(sweep, metadata_have_the_seconds_of_a_run)
{
    static const struct {
        double seconds, kept;
    } runs[] = {{12.34, 12.3}, {0.06, 0.1}, {0.04, 0}, {4000, 4000}, {0, -1}};
    program_options s;
    cr_assert_eq(options_parse(&s, tested.options, 0, NULL), EXIT_PASS);
    write_file(in_folder("csv"), "", 0);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const run_facts facts = {.fingerprint = "f", .seconds = runs[i].seconds};
        char *text;
        size_t size;
        FILE *file = must_open_text(&text, &size);
        cr_assert_eq(metadata_write(&tested, &s, NULL, 0, &facts, in_folder("csv"), file),
                     EXIT_PASS);
        must_close_text(file, &text, &size);
        cJSON *root = cJSON_Parse(text);
        const cJSON *seconds = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "run"), "seconds");
        if (runs[i].kept < 0)
            cr_expect_null(seconds);
        else
            cr_expect_eq(cJSON_GetNumberValue(seconds), runs[i].kept, "%s", text);
        cJSON_Delete(root);
        free(text);
    }
    options_free(&s);
}

Test(sweep, merged_metadata_name_the_shards)
{
    size_t size;
    make_shards(2);
    cr_assert_eq(merge_shards(2, "--threads 1"), EXIT_PASS);
    char *text = read_file(in_folder(CSV "-metadata.json"), &size);
    cJSON *root = cJSON_Parse(text);
    const cJSON *shards = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "run"), "shards");
    cr_assert_eq(cJSON_GetArraySize(shards), 2);
    cr_expect_str_eq(text_at(cJSON_GetArrayItem(shards, 1), "shard"), "2/2");
    cr_expect_str_eq(text_at(cJSON_GetArrayItem(shards, 1), "command"), "attnum run --shard 2/2");
    cJSON_Delete(root);
    free(text);
}

/* ---- Plots ---- */

/* An experiment with the plot script given. */
static void set_script(experiment *plotted, const char *script)
{
    *plotted = tested;
    plotted->plot = "made/up.gp";
    chosen = plotted;
    mkdir(in_folder("plots"), 0777);
    mkdir(in_folder("plots/made"), 0777);
    mkdir(in_folder("plots/common"), 0777);
    static const char common[] = "set datafile separator comma\n"
                                 "set datafile columnheaders\n"
                                 "first = 'common, then '\n";
    write_file(in_folder("plots/common/plots.gp"), common, sizeof common - 1);
    write_file(in_folder("plots/made/up.gp"), script, strlen(script));
    setenv("ATTNUM_DATADIR", folder, 1);
}

static bool has_plots(void)
{
    return has_file("out/made/raw.png") && has_file("out/made/raw.svg");
}

Test(sweep, plots)
{
    experiment plotted;
    if (system("command -v gnuplot >/dev/null") != 0) {
        fputs("left out: no gnuplot\n", stderr);
        return;
    }
    set_script(&plotted, "set terminal @terminal size 300,200\nset output out\n"
                         "set title first.run noenhanced\n"
                         "plot csv using 'point':'value', csv2 using 'rows':'total'\n");
    cr_expect_eq(run_child("--seed 3"), EXIT_PASS);
    cr_expect(has_plots());
    cr_expect(holds("out/made/raw.svg", "common, then made/up --seed=3"));
    cr_expect_not(holds("stderr", "attnum: "));
    cr_expect(holds("out/made/raw.svg", "<svg"));
    size_t size;
    char *png = read_file(in_folder("out/made/raw.png"), &size);
    cr_expect(png && size > 100 && memcmp(png, "\x89PNG", 4) == 0);
    free(png);

    unlink(in_folder("out/made/raw.svg"));
    plan.trace = true;
    cr_expect_not(runs_again("--seed 3 --resume", EXIT_PASS));
    cr_expect(has_plots(), "a complete run gets the plots it lacks");

    set_script(&plotted, "this is no gnuplot\n");
    cr_expect_eq(run_child(""), EXIT_PASS, "plots are no results");
    cr_expect(holds("stderr", "no raw.png: gnuplot failed on ") && holds("stdout", ", no plots\n"));
    cr_expect(has_file(CSV));
    cr_expect_not(has_file("out/made/raw.png") || has_file("out/made/raw.svg"), "old plots stay");
}

/* gnuplot itself reports no failed write. */
Test(sweep, plots_on_a_full_disk)
{
    static const struct {
        const char *path, *message;
        off_t missing; /* white space may follow "</svg>" */
    } rows[] = {{"out/made/raw.png", "raw.png: cannot write: ", 1},
                {"out/made/raw.svg", "raw.svg: cannot write: ", sizeof ">\n\n" - 1}};
    struct stat whole[2];
    experiment plotted;
    if (system("command -v gnuplot >/dev/null") != 0) {
        fputs("left out: no gnuplot\n", stderr);
        return;
    }
    set_script(&plotted, "set terminal @terminal size 300,200\nset output out\n"
                         "set samples 3000\nplot sin(x)\n");
    cr_expect_eq(run_child(""), EXIT_PASS);
    cr_assert(stat(in_folder(rows[0].path), &whole[0]) == 0 &&
              stat(in_folder(rows[1].path), &whole[1]) == 0 && whole[0].st_size < whole[1].st_size);
    for (int i = 0; i < 2; i++) {
        size_limit = (rlim_t)(whole[i].st_size - rows[i].missing);
        cr_expect_eq(run_child(""), EXIT_ENVIRONMENT, "%s", rows[i].path);
        cr_expect(holds("stderr", rows[i].message), "%s", rows[i].path);
        cr_expect(!has_file("out/made/raw.svg") && has_file("out/made/raw.png") == (i > 0));
        cr_expect(has_file(CSV) && has_file(JOURNAL), "%s", rows[i].path);
    }
    size_limit = RLIM_INFINITY;
    cr_expect_eq(run_child("--resume"), EXIT_PASS);
    cr_expect(has_plots() && !has_file(JOURNAL));
    unlink(in_folder(rows[0].path));
    size_limit = (rlim_t)(whole[0].st_size - 1);
    cr_expect_eq(run_child("--resume"), EXIT_ENVIRONMENT, "a plot that a complete run lacks");
    cr_expect_not(has_plots());
}

/* The script signals the program that runs it. */
static void set_deadly_script(experiment *plotted, const char *signal)
{
    char script[256];
    snprintf(script, sizeof script,
             "system(\"kill -%s $(cut -d ' ' -f 4 /proc/$PPID/stat)\")\npause 0.2\n"
             "set terminal @terminal size 300,200\nset output out\n"
             "plot csv using 'point':'value'\n",
             signal);
    set_script(plotted, script);
}

Test(sweep, stopped_while_drawing)
{
    static const char *const signals[] = {"INT", "TERM", "KILL"};
    experiment plotted;
    if (system("command -v gnuplot >/dev/null") != 0) {
        fputs("left out: no gnuplot\n", stderr);
        return;
    }
    make_expected();
    for (int i = 0; i < 3; i++) {
        set_deadly_script(&plotted, signals[i]);
        cr_expect_eq(run_child(""), i < 2 ? EXIT_ENVIRONMENT : -SIGKILL, "SIG%s", signals[i]);
        cr_expect(i == 2 || holds("stderr", "stopped with its CSV written"));
        nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
        struct stat drawn;
        bool there = stat(in_folder("out/made/.raw.png.tmp"), &drawn) == 0;
        cr_expect(there == (i == 2), "SIG%s", signals[i]);
        cr_expect(!there || drawn.st_size == 0, "gnuplot outlives the program");
        cr_expect(as_expected() && has_file(JOURNAL) && !has_file("out/made/raw.svg"));
        set_script(&plotted, "set terminal @terminal size 300,200\nset output out\n"
                             "plot csv using 'point':'value'\n");
        plan.trace = true;
        cr_expect_eq(run_child("--resume"), EXIT_PASS, "SIG%s", signals[i]);
        cr_expect_eq(traced(), 0);
        plan.trace = false;
        cr_expect(as_expected() && has_plots() && !has_file(JOURNAL));
        unlink(in_folder("out/made/raw.png"));
        unlink(in_folder("out/made/raw.svg"));
    }
}

Test(sweep, no_gnuplot)
{
    experiment plotted;
    set_script(&plotted, "");
    setenv("PATH", folder, 1);
    cr_expect_eq(run_child(""), EXIT_PASS);
    cr_expect(holds("stderr", "no raw.png: gnuplot is not installed"));
    cr_expect(holds("stdout", ", no plots\n"));
    unlink(in_folder("plots/made/up.gp"));
    cr_expect_eq(run_child(""), EXIT_PASS);
    cr_expect(holds("stderr", "plots/made/up.gp: not in ATTNUM_DATADIR"));
    setenv("PATH", "/usr/bin:/bin", 1);
}
