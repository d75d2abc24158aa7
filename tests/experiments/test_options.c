/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of the command line: what is read and refused, what a run keeps of them; and that
 * every option that an experiment takes changes its numbers: one that is read, listed and forgotten
 * does not. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <certified.h>

#include "common/npy.h"
#include "common/options.h"
#include "common/report.h"
#include "pairs.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

/* In whatever set the tests run: a run would keep it. */
static void set_up(void)
{
    scratch_begin();
    unsetenv("ATTNUM_ISA");
}

TestSuite(options, .init = set_up, .fini = scratch_end);

/* ---- Lists ---- */

enum { MANY = 10 };

Test(options, lists_of_integers)
{
    static const struct {
        const char *text;
        int count;
        int64_t items[MANY];
    } lists[] = {
        {"0", 1, {0}},
        {"5", 1, {5}},
        {"-5", 1, {-5}},
        {"007", 1, {7}},
        {"1,2,3", 3, {1, 2, 3}},
        {"3,1,3", 3, {3, 1, 3}},
        {"1:5", 5, {1, 2, 3, 4, 5}},
        {"5:5", 1, {5}},
        {"5:5:3", 1, {5}},
        {"1:10:4", 3, {1, 5, 9}},
        {"1:9:4", 3, {1, 5, 9}},
        {"5:1:-2", 3, {5, 3, 1}},
        {"2:-2:-2", 3, {2, 0, -2}},
        {"4:64:x2", 5, {4, 8, 16, 32, 64}},
        {"4:63:x2", 4, {4, 8, 16, 32}},
        {"1:1000:x10", 4, {1, 10, 100, 1000}},
        {"7:7:x2", 1, {7}},
        {"1,4:16:x2,9:7:-1,3", 8, {1, 4, 8, 16, 9, 8, 7, 3}},
        {"9223372036854775807", 1, {INT64_MAX}},
        {"-9223372036854775808", 1, {INT64_MIN}},
        {"9223372036854775806:9223372036854775807", 2, {INT64_MAX - 1, INT64_MAX}},
        {"-9223372036854775807:-9223372036854775808:-1", 2, {INT64_MIN + 1, INT64_MIN}},
        {"4611686018427387904:9223372036854775807:x2", 1, {INT64_C(1) << 62}},
        {"0:9223372036854775807:9223372036854775807", 2, {0, INT64_MAX}},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        integer_list list = {0};
        cr_expect(parse_integer_list(lists[i].text, &list), "%s", lists[i].text);
        cr_expect_eq(list.count, lists[i].count, "%s: %d items", lists[i].text, list.count);
        for (int j = 0; j < list.count && j < MANY; j++)
            cr_expect_eq(list.items[j], lists[i].items[j], "%s: item %d is %" PRId64, lists[i].text,
                         j, list.items[j]);
        free(list.items);
    }
}

Test(options, lists_that_are_none)
{
    static const char *const texts[] = {
        "",
        ",",
        "1,",
        ",1",
        "1,,2",
        " 1",
        "1 ",
        "1, 2",
        "a",
        "1a",
        "+1",
        "--1",
        "-",
        "1.5",
        "1e3",
        "0x10",
        ":",
        "1:",
        ":1",
        "1::2",
        "1:2:",
        "1:2:3:4",
        "1:5:0",
        "5:1",
        "1:5:-1",
        "5:1:1",
        "1:8:x",
        "1:8:x1",
        "1:8:x0",
        "1:8:x-2",
        "0:8:x2",
        "-4:-1:x2",
        "8:1:x2",
        "1:8:2x",
        "1:8:xx2",
        "1;2",
        "1:5,",
        "1:5:1:",
        "1\n",
        "1:8:x2.5",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999999999",
        "1:99999999999999999999999999",
        "0:1000000",
        "1:9223372036854775807",
        "-9223372036854775808:9223372036854775807",
        "0:999999,7",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        integer_list list = {0};
        cr_assert(parse_integer_list("7,8", &list));
        cr_expect_not(parse_integer_list(texts[i], &list), "'%s' was taken", texts[i]);
        cr_expect_eq(list.count, 2, "'%s' left %d items", texts[i], list.count);
        cr_expect(list.items[0] == 7 && list.items[1] == 8, "'%s'", texts[i]);
        free(list.items);
    }
}

Test(options, a_million_items_and_no_more)
{
    integer_list list = {0};
    cr_assert(parse_integer_list("1:1000000", &list));
    cr_expect_eq(list.count, 1000000);
    cr_expect_eq(list.items[999999], 1000000);
    cr_expect_not(parse_integer_list("5", &list));
    cr_expect_eq(list.count, 1000000);
    free(list.items);
}

/* ---- Options ---- */

enum { MOST_WORDS = 13 };
/* Of bench --threads is another. */
#define ALL   all_but(OPTIONS(OPTION_BENCH_THREADS, OPTION_SUBJECT, OPTION_EMIT_CASE))
#define BENCH OPTIONS(OPTION_OPERATOR, OPTION_SUBJECT, OPTION_OP, OPTION_BENCH_THREADS, OPTION_ISA)

/* Every option that a list lacks; until the next call. */
static const option_id *all_but(const option_id *without)
{
    static option_id list[OPTION_COUNT + 1];
    int count = 0;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (!options_include(without, (option_id)i))
            list[count++] = (option_id)i;
    list[count] = OPTION_END;
    return list;
}

/* Splits a copy of line at "|" into words; returns their number. */
static int split(const char *line, char *words[MOST_WORDS])
{
    static char copy[1024];
    int count = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = *copy ? copy : NULL; word; count++) {
        cr_assert(count < MOST_WORDS);
        words[count] = word;
        word = strchr(word, '|');
        if (word)
            *word++ = '\0';
    }
    return count;
}

static int parse(program_options *s, const option_id *used, const char *line)
{
    char *words[MOST_WORDS];
    int count = split(line, words);
    return options_parse(s, used, count, words);
}

Test(options, defaults)
{
    program_options s;
    cr_assert_eq(parse(&s, 0, ""), EXIT_PASS);
    cr_expect_eq(s.effort, EFFORT_DEFAULT);
    cr_expect_gt(s.threads, 0);
    cr_expect_str_eq(s.out, "results");
    cr_expect(s.seeds.count == 1 && s.seeds.items[0] == 1);
    cr_expect(s.dtype_count == 2 && s.dtypes[0] == ATN_F32 && s.dtypes[1] == ATN_F64);
    cr_expect(s.device == ATN_CPU && s.isa == ATN_ISA_AUTO);
    cr_expect_eq(s.iterations, -1);
    cr_expect_eq(s.certify, -1);
    cr_expect(s.samples == 0 && s.alpha == 0 && s.grid_height == 0 && s.grid_width == 0);
    cr_expect(s.inputs.count == 0 && s.variants.count == 0 && s.stages.count == 0);
    cr_expect(s.operators.count == 0 && s.tokens.count == 0 && s.storage_count == 0);
    cr_expect_eq(s.sampling_count, 0);
    cr_expect(s.scale == ATN_SCALE_HEAD && s.distance == ATN_DISTANCE_DIRECT);
    cr_expect(s.query_row == -1 && s.query_col == -1);
    cr_expect_not(s.dry_run || s.resume || s.help);
    cr_expect_str_eq(s.command, "attnum run");
    options_free(&s);
}

Test(options, every_option)
{
    program_options s;
    cr_assert_eq(
        parse(&s, ALL, "--seed|3:5|--seed=9|--threads|2|--out=a b|--quick|--dry-run|--resume"),
        EXIT_PASS);
    cr_expect(s.seeds.count == 4 && s.seeds.items[0] == 3 && s.seeds.items[3] == 9);
    cr_expect(s.threads == 2 && s.effort == EFFORT_QUICK && s.dry_run && s.resume);
    cr_expect_str_eq(s.out, "a b");
    cr_expect_str_eq(s.command, "attnum run --seed 3:5 --seed=9 --threads 2 '--out=a b' --quick "
                                "--dry-run --resume");
    options_free(&s);

    cr_assert_eq(parse(&s, ALL,
                       "--input=photos,iid:0.3|--input|x.npy|--grid|3x4|--dtype=f64|"
                       "--device=cpu|--isa|base|--samples=7|--iterations=0|--full"),
                 EXIT_PASS);
    cr_expect(s.inputs.count == 3 && strcmp(s.inputs.items[1], "iid:0.3") == 0 &&
              strcmp(s.inputs.items[2], "x.npy") == 0);
    cr_expect(s.grid_height == 3 && s.grid_width == 4 && s.samples == 7 && s.iterations == 0);
    cr_expect_eq(s.isa, ATN_ISA_BASE);
    cr_expect(s.dtype_count == 1 && s.dtypes[0] == ATN_F64 && s.effort == EFFORT_FULL);
    options_free(&s);

    cr_assert_eq(parse(&s, ALL,
                       "--variant=nr,eig|--alpha=1e-3|--stage=3,1|--m=4:16:x2|"
                       "--scale=0.25|--distance=clamped|--dtype=f64,f32|--query=0x27"),
                 EXIT_PASS);
    cr_expect(s.query_row == 0 && s.query_col == 27);
    cr_expect(s.variants.count == 2 && s.alpha == 1e-3 && s.landmarks.count == 3);
    cr_expect(s.stages.count == 2 && s.stages.items[0] == 3 && s.dtypes[0] == ATN_F64);
    cr_expect(s.scale == ATN_SCALE_VALUE && s.scale_value == 0.25);
    cr_expect_eq(s.distance, ATN_DISTANCE_CLAMPED);
    options_free(&s);

    cr_assert_eq(parse(&s, ALL,
                       "--operator=soft/exact,lsh|--operator=soft/code|--n=4,9|--n=16|"
                       "--storage=f16,native|--storage=tf32|--sampling=published-centred|"
                       "--sampling=pool"),
                 EXIT_PASS);
    cr_expect(s.sampling_count == 2 && s.samplings[0] == SAMPLING_PUBLISHED_CENTRED &&
              s.samplings[1] == SAMPLING_POOL);
    cr_expect(s.operators.count == 3 && strcmp(s.operators.items[2], "soft/code") == 0);
    cr_expect(s.tokens.count == 3 && s.tokens.items[2] == 16);
    cr_expect(s.storage_count == 3 && s.storages[0] == ATN_STORAGE_F16 &&
              s.storages[1] == ATN_STORAGE_NATIVE && s.storages[2] == ATN_STORAGE_TF32);
    options_free(&s);

    cr_assert_eq(parse(&s, ALL, "--scale=embed|some/experiment|--help"), EXIT_PASS);
    cr_expect(s.scale == ATN_SCALE_EMBED && s.help);
    options_free(&s);
}

static const struct {
    const char *line;
    int code;
} bad[] = {
    {"--sed=1", 2},
    {"--seeds=1", 2},
    {"-s", 2},
    {"-", 2},
    {"--", 2},
    {"--=1", 2},
    {"--seed", 2},
    {"--seed=", 2},
    {"--seed=-1", 2},
    {"--seed=1,1", 2},
    {"--seed=1:3|--seed=2", 2},
    {"--seed=1.5", 2},
    {"--seed=9223372036854775808", 2},
    {"--threads=0", 2},
    {"--threads=-1", 2},
    {"--threads=1025", 2},
    {"--threads=1,2", 2},
    {"--threads=two", 2},
    {"--threads=99999999999999999999", 2},
    {"--out=", 2},
    {"--out|--quick", 2}, /* an option is no value */
    {"--quick=yes", 2},
    {"--quick|--full", 2},
    {"--dry-run=1", 2},
    {"--input=", 2},
    {"--input=photos,", 2},
    {"--input=photos,,iid", 2},
    {"--input=photos,photos", 2},
    {"--shard=", 2},
    {"--shard=1", 2},
    {"--shard=1/", 2},
    {"--shard=0/2", 2},
    {"--shard=3/2", 2},
    {"--shard=-1/2", 2},
    {"--shard=1/2/3", 2},
    {"--shard=1/2x", 2},
    {"--shard=1/1000001", 2},
    {"--shard=1/99999999999999999999", 2},
    {"--shard=1/2|--shard=1/2", 2},
    {"--grid=3x4", 2},
    {"--input=x.npy|--grid=3", 2},
    {"--input=x.npy|--grid=3x", 2},
    {"--input=x.npy|--grid=0x4", 2},
    {"--input=x.npy|--grid=-3x-4", 2},
    {"--input=x.npy|--grid=3x4x5", 2},
    {"--input=x.npy|--grid=3X4", 2},
    {"--input=x.npy|--grid=4294967296x4294967296", 2},
    {"--input=x.npy|--grid=65536x65536", 2},
    {"--dtype=", 2},
    {"--dtype=f16", 2},
    {"--dtype=f32,bf16", 2},
    {"--dtype=tf32,f64", 2},
    {"--dtype=f8", 2},
    {"--dtype=F32", 2},
    {"--dtype=f32,f32", 2},
    {"--dtype=f32,f64,f32,f64", 2},
    {"--device=gpu", 2},
    {"--device=cuda", 3},
    {"--isa=", 2},
    {"--isa=sse2", 2},
    {"--isa=AVX2", 2},
    {"--isa=base,avx2", 2},
    {"--isa=base|--isa=base", 2},
    {"--samples=0", 2},
    {"--samples=1:3", 2},
    {"--iterations=-1", 2},
    {"--certify=-1", 2},
    {"--certify=4097", 2},
    {"--certify=all", 2},
    {"--certify=0|--certify=0", 2},
    {"--iterations=1000000000", 2},
    {"--variant=nr-papers", 2},
    {"--variant=eig,nope", 2},
    {"--variant=eig,eig", 2},
    {"--variant=eig|--alpha=1", 2},
    {"--variant=nr|--alpha=0", 2},
    {"--variant=nr|--alpha=-1", 2},
    {"--variant=nr|--alpha=nan", 2},
    {"--variant=nr|--alpha=inf", 2},
    {"--variant=nr|--alpha=1e999", 2},
    {"--variant=nr|--alpha=0x1p3", 2},
    {"--variant=nr|--alpha=1x", 2},
    {"--variant=nr|--alpha=", 2},
    {"--stage=0", 2},
    {"--stage=1:4", 2},
    {"--stage=1,1", 2},
    {"--operator=", 2},
    {"--operator=soft,", 2},
    {"--operator=sof", 2},
    {"--operator=Soft", 2},
    {"--operator=/", 2},
    {"--operator=soft/", 2},
    {"--operator=/paper", 2},
    {"--operator=soft/papers", 2},
    {"--operator=soft/paper/paper", 2},
    {"--operator=soft/channels", 2},
    {"--operator=soft,soft", 2},
    {"--operator=soft,soft/paper", 2},
    {"--operator=soft/paper,lsh,soft", 2},
    {"--operator=soft/paper|--operator=soft/paper", 2},
    {"--n=0", 2},
    {"--n=4,4", 2},
    {"--n=1000001", 2},
    {"--storage=", 2},
    {"--storage=f32", 2},
    {"--storage=bf16,bf16", 2},
    {"--storage=bf16|--storage=bf16", 2},
    {"--sampling=", 2},
    {"--sampling=conv", 2},
    {"--sampling=pool,pool", 2},
    {"--sampling=published|--sampling=published", 2},
    {"--m=0", 2},
    {"--m=32769", 2},
    {"--m=64:4", 2},
    {"--m=1:9223372036854775807", 2},
    {"--scale=value", 2},
    {"--scale=heads", 2},
    {"--scale=0", 2},
    {"--scale=-1", 2},
    {"--distance=Direct", 2},
    {"--query=", 2},
    {"--query=3", 2},
    {"--query=3x", 2},
    {"--query=x3", 2},
    {"--query=-1x3", 2},
    {"--query=3x-1", 2},
    {"--query=3,4", 2},
    {"--query=3x4x5", 2},
    {"--query=1.5x2", 2},
    {"--query=3x99999999999999999999", 2},
    {"--query=1x1|--query=1x1", 2},
    {"--variant=nr|--alpha=1|--alpha=1", 2},
    {"--samples=3|--samples=4", 2},
    {"--iterations=0|--iterations=1", 2},
    {"--out=a|--out=b", 2},
    {"--threads=1|--threads=1", 2},
    {"--scale=head|--scale=1", 2},
    {"--distance=direct|--distance=clamped", 2},
    {"--device=cpu|--device=cpu", 2},
    {"--input=x.npy|--grid=2x2|--grid=4x1", 2},
    {"--quick|--quick", 2},
};

/* Parses with stderr caught in text. */
static int parse_quietly(program_options *s, const char *line, char *text, size_t size)
{
    FILE *file = tmpfile();
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    int code = parse(s, ALL, line);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    return code;
}

/* One line that names the last option. */
static void expect_line(const char *text, const char *line)
{
    const char *option = strrchr(line, '|') ? strrchr(line, '|') + 1 : line;
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(option, "="), option);
    cr_expect_eq(strncmp(text, "attnum: ", 8), 0, "%s: %s", line, text);
    cr_expect_eq(strchr(text, '\n'), text + strlen(text) - 1, "%s: not one line: %s", line, text);
    cr_expect(strstr(text, name), "%s: does not name %s: %s", line, name, text);
}

Test(options, bad_options)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        program_options s;
        char text[4096];
        int code = parse_quietly(&s, bad[i].line, text, sizeof text);
        cr_expect_eq(code, bad[i].code, "%s: exit code %d", bad[i].line, code);
        if (code == EXIT_PASS)
            options_free(&s);
        else
            expect_line(text, bad[i].line);
    }
}

/* What a build cannot do it says, and does not leave out. */
Test(options, certifying_needs_its_library)
{
    program_options s;
    char text[4096];
    int code = parse_quietly(&s, "--certify=64", text, sizeof text);
    if (ref_certify_library()) {
        cr_expect(code == EXIT_PASS && s.certify == 64 && !*text);
        options_free(&s);
    } else {
        cr_expect_eq(code, EXIT_ENVIRONMENT);
        expect_line(text, "--certify=64");
    }
}

Test(options, an_option_the_experiment_does_not_use)
{
    const struct {
        const char *line;
        const option_id *used;
    } rows[] = {
        {"--input=photos", OPTIONS(OPTION_INPUT)},
        {"--dtype=f32", OPTIONS(OPTION_DTYPE)},
        {"--device=cpu", OPTIONS(OPTION_DEVICE)},
        {"--samples=3", OPTIONS(OPTION_SAMPLES)},
        {"--iterations=3", OPTIONS(OPTION_ITERATIONS)},
        {"--variant=eig", OPTIONS(OPTION_VARIANT)},
        {"--stage=1", OPTIONS(OPTION_STAGE)},
        {"--m=4", OPTIONS(OPTION_M)},
        {"--scale=head", OPTIONS(OPTION_SCALE)},
        {"--distance=direct", OPTIONS(OPTION_DISTANCE)},
        {"--input=x.npy|--grid=2x2", OPTIONS(OPTION_INPUT, OPTION_GRID)},
        {"--alpha=1", OPTIONS(OPTION_ALPHA)},
        {"--query=1x1", OPTIONS(OPTION_QUERY)},
        {"--operator=soft", OPTIONS(OPTION_OPERATOR)},
        {"--storage=f16", OPTIONS(OPTION_STORAGE)},
        {"--sampling=pool", OPTIONS(OPTION_SAMPLING, OPTION_INSPECT_SAMPLING)},
        {"--n=4", OPTIONS(OPTION_N)},
        {"--certify=0", OPTIONS(OPTION_CERTIFY)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        program_options s;
        cr_expect_eq(parse(&s, all_but(rows[i].used), rows[i].line), EXIT_USAGE, "%s",
                     rows[i].line);
        cr_expect_eq(parse(&s, rows[i].used, rows[i].line), EXIT_PASS, "%s", rows[i].line);
        options_free(&s);
    }
}

Test(options, lists_may_be_repeated)
{
    program_options s;
    cr_assert_eq(parse(&s, ALL,
                       "--variant=nr|--variant=eig|--dtype=f64|--dtype=f32|--stage=3|"
                       "--stage=1|--m=4|--m=8|--input=iid|--input=smooth"),
                 EXIT_PASS);
    cr_expect(s.variants.count == 2 && s.dtype_count == 2 && s.stages.count == 2 &&
              s.landmarks.count == 2 && s.inputs.count == 2);
    options_free(&s);
}

Test(options, the_command_of_a_point)
{
    const struct {
        const char *line, *command;
        const option_id *taken;
        options_point point;
    } rows[] = {
        {"",
         "attnum run a/b --input iid:2 --seed 0 --samples 1 --out replay",
         ALL,
         {.input = "iid:2", .samples = 1}},
        {"",
         "attnum run a/b --input photos --stage 3 --m 64 --seed 9 --out replay",
         OPTIONS(OPTION_INPUT, OPTION_STAGE, OPTION_M),
         {.input = "photos", .stage = 3, .seed = 9, .samples = 4, .landmarks = 64}},
        {"--dtype=f64|--iterations|0|--scale=embed|--distance=expanded|--variant=nr,eig|"
         "--alpha=0.1|--input=my x.npy|--grid=2x3|--quick|--threads=2|--out=o",
         "attnum run a/b --input 'my x.npy' --seed 1 --samples 2 --dtype=f64 --iterations=0 "
         "--scale=embed --distance=expanded --variant=nr,eig --alpha=0.1 --grid=2x3 --out replay",
         ALL,
         {.input = "my x.npy", .seed = 1, .samples = 2}},
        {"--input=x.npy,iid|--grid=2x3|--scale=2|--variant=eig",
         "attnum run a/b --input iid --seed 1 --scale=2 --out replay",
         OPTIONS(OPTION_INPUT, OPTION_GRID, OPTION_SCALE),
         {.input = "iid", .stage = 1, .seed = 1, .samples = 2}},
        {"--operator=soft,sima/code|--storage=native,tf32|--n=4,9|--dtype=f32|--device=cpu",
         "attnum run a/b --operator sima/code --input iid --n 9 --m 4 --seed 1 "
         "--storage=native,tf32 --dtype=f32 --device=cpu --out replay",
         OPTIONS(OPTION_INPUT, OPTION_DTYPE, OPTION_DEVICE, OPTION_STORAGE, OPTION_OPERATOR,
                 OPTION_N, OPTION_M),
         {.input = "iid",
          .seed = 1,
          .landmarks = 4,
          .tokens = 9,
          .operator= atn_operator_find("sima"),
          .variant = 1}},
        {"--sampling=pool,published",
         "attnum run a/b --input iid --sampling published --seed 1 --out replay",
         OPTIONS(OPTION_INPUT, OPTION_SAMPLING),
         {.input = "iid", .seed = 1, .sampling = "published"}},
        {"--isa=base",
         "attnum run a/b --input iid --seed 1 --isa=base --out replay",
         OPTIONS(OPTION_INPUT),
         {.input = "iid", .seed = 1}},
        {"--query=0x13|--quick",
         "attnum run a/b --stage 3 --seed 1 --samples 2 --query=0x13 --out replay",
         OPTIONS(OPTION_QUERY, OPTION_SAMPLES, OPTION_STAGE),
         {.input = "photos", .stage = 3, .seed = 1, .samples = 2}},
        {"--full",
         "attnum run a/b --seed 1 --full --out replay",
         NULL,
         {.input = "", .seed = 1, .by_effort = true}},
        {"",
         "attnum run a/b --seed 1 --out replay",
         NULL,
         {.input = "", .seed = 1, .by_effort = true}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        program_options s;
        cr_assert_eq(parse(&s, ALL, rows[i].line), EXIT_PASS);
        char *command = options_replay(&s, "a/b", rows[i].taken, &rows[i].point);
        cr_expect_str_eq(command, rows[i].command);
        free(command);
        options_free(&s);
    }
}

/* soft is no beginning of softmax or softpp. */
Test(options, operators_with_and_without_a_variant)
{
    program_options s;
    const atn_operator_info *soft = atn_operator_find("soft"), *sima = atn_operator_find("sima");
    cr_assert_eq(parse(&s, ALL, ""), EXIT_PASS);
    cr_expect(options_include_variant(&s, soft, 0) && options_include_variant(&s, sima, 3));
    options_free(&s);
    cr_assert_eq(parse(&s, ALL, "--operator=soft,sima/code"), EXIT_PASS);
    for (int i = 0; i < soft->variant_count; i++)
        cr_expect(options_include_variant(&s, soft, i), "soft/%s", soft->variants[i].name);
    for (int i = 0; i < sima->variant_count; i++)
        cr_expect_eq(options_include_variant(&s, sima, i),
                     strcmp(sima->variants[i].name, "code") == 0, "sima/%s",
                     sima->variants[i].name);
    cr_expect_not(options_include_variant(&s, atn_operator_find("softpp"), 0));
    cr_expect_not(options_include_variant(&s, atn_operator_find("softmax"), 0));
    options_free(&s);
}

Test(options, near_names_of_operators_are_named)
{
    static const char *const rows[][2] = {{"--operator=sotf", "did you mean soft?"},
                                          {"--operator=soft/papr", "did you mean soft/paper?"},
                                          {"--storage=fp16", "did you mean f16?"},
                                          {"--sede=1", "did you mean seed?"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        program_options s;
        char text[4096];
        cr_assert_eq(parse_quietly(&s, rows[i][0], text, sizeof text), EXIT_USAGE);
        cr_expect(strstr(text, rows[i][1]), "%s: %s", rows[i][0], text);
    }
}

Test(options, names_among_the_words)
{
    char *words[MOST_WORDS];
    const char *names[MOST_WORDS];
    int count = split("a/b|--quick|--seed|1|c|--m=4|all", words);
    cr_assert_eq(options_names(count, words, names), 3);
    cr_expect_str_eq(names[0], "a/b");
    cr_expect_str_eq(names[1], "c");
    cr_expect_str_eq(names[2], "all");
    count = split("a/b|--sede|1", words);
    cr_expect_eq(options_names(count, words, names), -1);
}

/* What a run keeps of its options makes the same run, on a machine without a device too. */
Test(options, kept_options)
{
    program_options s, again;
    cr_assert_eq(parse(&s, ALL,
                       "some/experiment|--seed|3,4|--threads=2|--out=x|--quick|--shard=2/3|"
                       "--resume|--dry-run|--input|a b.npy|--format=table|--isa=base"),
                 EXIT_PASS);
    cr_expect(s.shard == 2 && s.shards == 3);
    static const char *const kept[] = {"--seed=3,4", "--quick", "--input=a b.npy", "--isa=base"};
    cr_assert_eq(s.kept.count, 4);
    for (int i = 0; i < 4; i++)
        cr_expect_str_eq(s.kept.items[i], kept[i]);
    char *command = options_shard_command(&s, "run some/experiment", 3, 4, "there");
    cr_expect_str_eq(command, "attnum run some/experiment --seed=3,4 --quick '--input=a b.npy' "
                              "--isa=base --shard 3/4 --out there --resume");
    cr_assert_eq(options_parse_kept(&again, "out", ALL, 4, (char **)s.kept.items), EXIT_PASS);
    cr_expect(again.seeds.count == 2 && again.effort == EFFORT_QUICK && again.shards == 0);
    cr_expect_str_eq(again.inputs.items[0], "a b.npy");
    options_free(&again);
    char *words[] = {(char[]){"--device=cuda"}, (char[]){"--isa=avx512"}};
    setenv("ATTNUM_ISA", "none", 1);
    cr_assert_eq(options_parse_kept(&again, "out", ALL, 2, words), EXIT_PASS);
    cr_expect(again.device == ATN_CUDA && again.isa == ATN_ISA_AVX512);
    options_free(&again);
    options_free(&s);
    free(command);
}

/* Of rows with one name the one is meant that the run's experiment or verb takes. */
Test(options, kept_options_are_those_of_their_owner)
{
    static const struct {
        option_id id;
        const char *word;
    } rows[] = {{OPTION_HEADS, "--heads=3"},          {OPTION_TRAIN_HEADS, "--heads=3"},
                {OPTION_CASE_HEADS, "--heads=3"},     {OPTION_BENCH_THREADS, "--threads=3"},
                {OPTION_SAMPLING, "--sampling=pool"}, {OPTION_INSPECT_SAMPLING, "--sampling=pool"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const option_id taken[] = {rows[i].id, OPTION_END};
        char word[32], *words[] = {word};
        program_options s;
        strcpy(word, rows[i].word);
        cr_assert_eq(options_parse_kept(&s, "out", taken, 1, words), EXIT_PASS, "row %zu", i);
        cr_expect(s.given[rows[i].id], "row %zu: %s of another", i, word);
        options_free(&s);
        strcpy(word, "--html=x");
        cr_expect_eq(options_parse_kept(&s, "out", taken, 1, words), EXIT_USAGE, "row %zu", i);
    }
}

/* An experiment that runs together with others keeps what it would keep alone. */
Test(options, of_one_experiment_among_several)
{
    program_options s;
    const option_id *taken = OPTIONS(OPTION_M), *all = OPTIONS(OPTION_M, OPTION_INPUT, OPTION_GRID);
    char *words[] = {(char[]){"a/b"}, (char[]){"--input"},    (char[]){"x.npy"},  (char[]){"--m=4"},
                     (char[]){"c/d"}, (char[]){"--grid=2x3"}, (char[]){"--quick"}};
    cr_assert_eq(options_parse_part(&s, taken, all, 7, words), EXIT_PASS);
    cr_expect(s.kept.count == 2 && s.inputs.count == 0 && s.grid_height == 0);
    cr_expect_str_eq(s.kept.items[0], "--m=4");
    cr_expect_str_eq(s.kept.items[1], "--quick");
    cr_expect_str_eq(s.command, "attnum run a/b --input x.npy --m=4 c/d --grid=2x3 --quick");
    options_free(&s);
    words[3] = (char[]){"--stage=1"};
    cr_expect_eq(options_parse_part(&s, taken, all, 7, words), EXIT_USAGE, "of none of them");
}

/* It is kept as if it had been given, once, and repeated by commands; --isa wins. */
Test(options, the_instruction_set_of_the_environment)
{
    static const struct {
        const char *line, *variable;
        int kept;
    } rows[] = {{"", "base", 1},       {"--isa=auto", "base", 1}, {"--isa=base", "none", 1},
                {"--isa=auto", "", 1}, {"", "auto", 0},           {"", "", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        program_options s, again;
        setenv("ATTNUM_ISA", rows[i].variable, 1);
        cr_assert_eq(parse(&s, ALL, rows[i].line), EXIT_PASS, "row %zu", i);
        cr_expect_eq(s.isa, i < 3 ? ATN_ISA_BASE : ATN_ISA_AUTO, "row %zu", i);
        cr_expect_eq(s.kept.count, rows[i].kept, "row %zu", i);
        options_point point = {.input = "", .seed = 1, .samples = 1};
        char *command = options_replay(&s, "a/b", ALL, &point);
        cr_expect_eq(strstr(command, " --isa=base ") != NULL, i < 3, "row %zu: %s", i, command);
        cr_assert_eq(options_parse_kept(&again, "out", ALL, s.kept.count, (char **)s.kept.items),
                     EXIT_PASS);
        cr_expect_eq(again.isa, s.isa, "row %zu", i);
        options_free(&again);
        options_free(&s);
        free(command);
    }
    unsetenv("ATTNUM_ISA");
}

/* What the option or the environment asks for, of whatever computes. */
Test(options, instruction_sets)
{
    const struct {
        const char *line, *variable;
        const option_id *used;
        int code;
    } rows[] = {
        {"", "base", OPTIONS(OPTION_THREADS, OPTION_ISA), EXIT_PASS},
        {"", "none", OPTIONS(OPTION_THREADS, OPTION_ISA), EXIT_USAGE},
        {"", "none", OPTIONS(OPTION_BENCH_THREADS, OPTION_ISA), EXIT_USAGE},
        {"--isa=base", "none", OPTIONS(OPTION_THREADS, OPTION_ISA), EXIT_PASS},
        {"--isa=base", "", OPTIONS(OPTION_BENCH_THREADS, OPTION_ISA), EXIT_PASS},
        {"--isa=base", "", OPTIONS(OPTION_OUT), EXIT_USAGE},
        {"", "none", OPTIONS(OPTION_OUT), EXIT_PASS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *words[MOST_WORDS];
        program_options s;
        int count = split(rows[i].line, words);
        setenv("ATTNUM_ISA", rows[i].variable, 1);
        int code = options_parse_verb(&s, "verb", "results", rows[i].used, count, words);
        cr_expect_eq(code, rows[i].code, "'%s', ATTNUM_ISA=%s: %d", rows[i].line, rows[i].variable,
                     code);
        if (code == EXIT_PASS)
            options_free(&s);
    }
    for (int isa = ATN_ISA_BASE; isa < ATN_ISA_COUNT; isa++) {
        program_options s;
        bool here = atn_isa_choose((atn_isa)isa, NULL, NULL) == ATN_OK;
        int want = here ? EXIT_PASS : EXIT_ENVIRONMENT;
        char line[40];
        setenv("ATTNUM_ISA", atn_isa_name((atn_isa)isa), 1);
        cr_expect_eq(parse(&s, ALL, ""), want, "%s", atn_isa_name((atn_isa)isa));
        options_free(&s);
        unsetenv("ATTNUM_ISA");
        snprintf(line, sizeof line, "--isa=%s", atn_isa_name((atn_isa)isa));
        cr_expect_eq(parse(&s, ALL, line), want, "%s", line);
        options_free(&s);
    }
}

/* Words of bench are --subject, its --threads a list; another run keeps both. */
Test(options, of_bench)
{
    program_options s, again;
    cr_assert_eq(parse(&s, BENCH, "gemm|--threads|1,4|exp|--op=soft|--operator|sima|--subject=x"),
                 EXIT_PASS);
    cr_assert_eq(s.subjects.count, 3);
    cr_expect_str_eq(s.subjects.items[0], "gemm");
    cr_expect_str_eq(s.subjects.items[1], "exp");
    cr_expect_str_eq(s.subjects.items[2], "x");
    cr_assert_eq(s.thread_counts.count, 2);
    cr_expect(s.thread_counts.items[0] == 1 && s.thread_counts.items[1] == 4 && s.threads > 0);
    cr_expect(s.operators.count == 2 && s.kept.count == 6);
    cr_assert_eq(options_parse_kept(&again, "out", BENCH, s.kept.count, (char **)s.kept.items),
                 EXIT_PASS);
    cr_expect(again.subjects.count == 3 && again.thread_counts.count == 2 &&
              again.operators.count == 2);
    options_free(&again);
    options_free(&s);
    static const char *const wrong[] = {"gemm|gemm", "--threads=0", "--threads=1,1",
                                        "--threads=1025"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_eq(parse(&s, BENCH, wrong[i]), EXIT_USAGE, "%s", wrong[i]);
    cr_expect_eq(parse(&s, ALL, "--subject=gemm"), EXIT_USAGE);
    cr_assert_eq(parse(&s, ALL, "gemm|--threads=2"), EXIT_PASS);
    cr_expect(s.subjects.count == 0 && s.thread_counts.count == 0 && s.threads == 2);
    options_free(&s);
}

static char *print_with(const option_id *used, const char *line)
{
    program_options s;
    char *text = NULL;
    size_t size;
    cr_assert_eq(parse(&s, used, line), EXIT_PASS, "%s", line);
    FILE *file = open_memstream(&text, &size);
    options_fingerprint(&s, file);
    fclose(file);
    options_free(&s);
    return text;
}

static char *print_of(const char *line)
{
    return print_with(ALL, line);
}

Test(options, fingerprint_of_bench)
{
    char *prints[] = {print_with(BENCH, ""), print_with(BENCH, "gemm"),
                      print_with(BENCH, "--threads=1"), print_with(BENCH, "--threads=1,2")};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            cr_expect_str_neq(prints[i], prints[j], "%d and %d", i, j);
    for (int i = 0; i < 4; i++)
        free(prints[i]);
}

Test(options, fingerprint_has_what_results_depend_on)
{
    static const char *const different[] = {
        "",
        "--quick",
        "--full",
        "--seed=2",
        "--input=iid",
        "--input=iid:2",
        "--dtype=f64",
        "--dtype=f64,f32",
        "--isa=base",
        "--samples=3",
        "--iterations=3",
        "--variant=eig",
        "--variant=nr|--alpha=1",
        "--variant=nr|--alpha=2",
        "--stage=1",
        "--m=4",
        "--scale=embed",
        "--scale=1",
        "--distance=clamped",
        "--query=0x0",
        "--query=0x1",
        "--query=1x0",
        "--operator=soft",
        "--operator=soft/paper",
        "--storage=bf16",
        "--storage=bf16,f16",
        "--sampling=pool",
        "--sampling=published,pool",
        "--n=4",
        "--certify=0",
        "--input=x.npy",
        "--input=x.npy|--grid=2x3",
    };
    static const char *const same[] = {"--threads=3",  "--out=elsewhere", "--resume",
                                       "--shard=2/3",  "--seed=1",        "--dtype=f32,f64",
                                       "--scale=head", "--isa=auto"};
    enum { DIFFERENT = sizeof different / sizeof *different, SAME = sizeof same / sizeof *same };
    char *prints[DIFFERENT];
    for (int i = 0; i < DIFFERENT; i++)
        prints[i] = print_of(different[i]);
    char *here = print_of("--input=x.npy"), *there = print_of("--input=/some/where/x.npy");
    cr_expect_str_eq(here, there, "a file may lie elsewhere");
    free(here);
    free(there);
    for (int i = 0; i < DIFFERENT; i++)
        for (int j = 0; j < i; j++)
            cr_expect_str_neq(prints[i], prints[j], "'%s' and '%s'", different[i], different[j]);
    for (int i = 0; i < SAME; i++) {
        char *print = print_of(same[i]);
        cr_expect_str_eq(print, prints[0], "'%s': %s", same[i], print);
        free(print);
    }
    for (int i = 0; i < DIFFERENT; i++)
        free(prints[i]);
}

/* ---- What an option does ---- */

/* Two values of an option, and an option that goes with both where it is taken; `small`: all other
 * options are tried with the first value, which makes points small. */
static const struct {
    option_id used;
    const char *first, *second;
    bool small;
    option_id with_used;
    const char *with;
} effects[] = {
    {OPTION_INPUT, "--input smooth", "--input iid:0.3", true, OPTION_END, NULL},
    {OPTION_GRID, "--grid 28x28", "--grid 14x56", false, OPTION_INPUT, "--input tokens.npy"},
    {OPTION_DTYPE, "--dtype f32", "--dtype f64", false, OPTION_END, NULL},
    {OPTION_SAMPLES, "--samples 1", "--samples 2", true, OPTION_END, NULL},
    {OPTION_ITERATIONS, "--iterations 3", "--iterations 4", false, OPTION_END, NULL},
    {OPTION_VARIANT, "--variant nr-soft", "--variant nr-paper", false, OPTION_END, NULL},
    {OPTION_ALPHA, "--alpha 0.01", "--alpha 0.02", false, OPTION_VARIANT, "--variant nr"},
    {OPTION_STAGE, "--stage 3", "--stage 2", true, OPTION_END, NULL},
    {OPTION_M, "--m 16", "--m 4", false, OPTION_OPERATOR, "--operator soft"},
    {OPTION_SCALE, "--scale head", "--scale 0.3", false, OPTION_END, NULL},
    {OPTION_SAMPLING, "--sampling pool", "--sampling published", false, OPTION_END, NULL},
    {OPTION_DISTANCE, "--distance direct", "--distance expanded", false, OPTION_END, NULL},
    {OPTION_QUERY, "--query 3x4", "--query 5x6", false, OPTION_END, NULL},
    {OPTION_OPERATOR, "--operator sima", "--operator efficient", false, OPTION_END, NULL},
    {OPTION_STORAGE, "--storage f16", "--storage bf16", false, OPTION_DTYPE, "--dtype f32"},
    {OPTION_N, "--n 784", "--n 196", false, OPTION_END, NULL},
    {OPTION_CERTIFY, "--certify 0", "--certify 100", false, OPTION_INPUT,
     "--input line.npy --m 49"},
    {OPTION_SEED, "--seed 1", "--seed 2", false, OPTION_END, NULL},
};
enum { EFFECTS = sizeof effects / sizeof *effects };

/* What an experiment takes although none of its numbers depends on it, and why. */
static const struct {
    const experiment *e;
    option_id used;
} exempt[] = {
    {&cost_counts, OPTION_SEED},     /* counted, not run */
    {&networks_counts, OPTION_SEED}, /* the same */
    {&cost_memory, OPTION_SEED},     /* bytes */
};

static bool is_exempt(const experiment *e, option_id used)
{
    for (size_t i = 0; i < sizeof exempt / sizeof *exempt; i++)
        if (exempt[i].e == e && exempt[i].used == used)
            return true;
    return false;
}

enum { PARTS = 3 };

/* The real numbers in the raw rows of the last point, the first or the middle one; to be freed. */
static double *numbers_of(const experiment *e, const char *options, int part, int *count)
{
    program_options s;
    void *state = NULL;
    int64_t points;
    const column *columns;
    bool raw_is_output = !e->raw_columns;
    table *raw = table_create(raw_is_output ? e->outputs[0].columns : e->raw_columns,
                              raw_is_output ? e->outputs[0].column_count : e->raw_column_count);
    cr_assert_eq(parse_options(&s, e, options), EXIT_PASS, "%s %s", e->name, options);
    cr_assert_eq(e->prepare(&s, &state, &points), EXIT_PASS, "%s %s", e->name, options);
    atn_context *context = make_context();
    int64_t chosen[PARTS] = {points - 1, 0, points / 2};
    int code = e->run(state, chosen[part], context, raw);
    cr_expect(code == EXIT_PASS || code == EXIT_SKIPPED, "%s %s: %d", e->name, options, code);
    atn_context_free(context);
    int width = table_columns(raw, &columns);
    double *numbers = must_allocate((size_t)(table_rows(raw) * width) + 1, sizeof *numbers);
    *count = 0;
    for (int64_t row = 0; row < table_rows(raw); row++)
        for (int col = 0; col < width; col++)
            if (columns[col].type == COLUMN_REAL && !table_is_missing(raw, row, col))
                numbers[(*count)++] = table_get_real(raw, row, col);
    if (state)
        e->release(state);
    options_free(&s);
    table_free(raw);
    return numbers;
}

static bool same_numbers(int count, const double *a, const double *b)
{
    for (int i = 0; i < count; i++)
        if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))))
            return false;
    return true;
}

/* The options of a run with one of a row's values; to be freed. */
static char *words_of(const experiment *e, int row, const char *value)
{
    bool with = options_include(e->options, effects[row].with_used);
    char *words = must_format("--quick %s %s", value, with ? effects[row].with : "");
    for (int i = 0; i < EFFECTS; i++)
        if (effects[i].small && options_include(e->options, effects[i].used) && i != row &&
            effects[i].used != effects[row].with_used) {
            char *longer = must_format("%s %s", words, effects[i].first);
            free(words);
            words = longer;
        }
    return words;
}

/* Whether a part of the points has other numbers with the second value. */
static bool changes(const experiment *e, int row, int part)
{
    const char *values[] = {effects[row].first, effects[row].second};
    double *numbers[2];
    int counts[2];
    for (int i = 0; i < 2; i++) {
        char *words = words_of(e, row, values[i]);
        numbers[i] = numbers_of(e, words, part, &counts[i]);
        free(words);
    }
    bool same = counts[0] == counts[1] && same_numbers(counts[0], numbers[0], numbers[1]);
    free(numbers[0]);
    free(numbers[1]);
    return !same;
}

static void check_effect(const experiment *e, int row)
{
    bool changed = false;
    for (int part = 0; part < PARTS && !changed; part++)
        changed = changes(e, row, part);
    cr_expect_eq(changed, !is_exempt(e, effects[row].used), "%s: %s and %s give %s numbers",
                 e->name, effects[row].first, effects[row].second, changed ? "other" : "the same");
}

/* 28 x 28 tokens of width 4 without a pattern, and tokens of width 1 along a line, so near to each
 * other that f64 does not resolve the least eigenvalue of their kernel matrix. */
static void write_files(void)
{
    enum { TOKENS = 784, WIDTH = 4 };
    static double tokens[TOKENS * WIDTH];
    int64_t shape[] = {TOKENS, WIDTH}, line[] = {TOKENS, 1};
    for (int i = 0; i < TOKENS * WIDTH; i++)
        tokens[i] = sin(i * i);
    cr_assert_eq(npy_write(".", "tokens.npy", ATN_F64, 2, shape, tokens), EXIT_PASS);
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = i / (double)TOKENS;
    cr_assert_eq(npy_write(".", "line.npy", ATN_F64, 2, line, tokens), EXIT_PASS);
}

Test(options, each_changes_the_numbers)
{
    int tried[EFFECTS] = {0}, pair = 0;
    write_files();
    for (const experiment *const *e = experiments; *e; e++)
        for (int row = 0; row < EFFECTS && !(*e)->alone; row++)
            if (effects[row].used == OPTION_SEED ||
                options_include((*e)->options, effects[row].used)) {
                /* by default every tenth, and each option once at least */
                bool chosen = pairs_all() || pair++ % 10 == 0 || tried[row] == 0;
                tried[row]++;
                if (chosen && (effects[row].used != OPTION_CERTIFY || ref_certify_library()))
                    check_effect(*e, row);
            }
    for (int row = 0; row < EFFECTS; row++)
        cr_expect(tried[row] > 0, "%s: no experiment takes it", effects[row].first);
}
