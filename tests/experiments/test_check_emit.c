/* SPDX-License-Identifier: BSD-3-Clause */
/* attnum check --emit-case: that files hold what was asked for, and that what the manifest gives as
 * the arguments of `check` reads the same problem again. */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "common/report.h"
#include "runs.h"
#include "scratch.h"

TestSuite(check_emit, .init = scratch_begin, .fini = scratch_end);

/* ---- Emitting ---- */

static int parse_check(program_options *s, const char *options)
{
    static char text[4096], *words[128];
    int count = 0;
    cr_assert(snprintf(text, sizeof text, "%s", options) < (int)sizeof text, "%s", options);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    return options_parse_verb(s, "check", NULL, check_verb.options, count, words);
}

static int emit(const char *options)
{
    program_options s;
    char *all = must_format("--emit-case . %s", options);
    int code = parse_check(&s, all);
    free(all);
    if (code != EXIT_PASS)
        return code;
    cr_assert(freopen("/dev/null", "w", stdout));
    code = emit_cases(&s);
    options_free(&s);
    return code;
}

/* The cases of the manifest; manifest is to be deleted. */
static cJSON *emitted(const char *options, cJSON **manifest)
{
    size_t size;
    cr_assert_eq(emit(options), EXIT_PASS, "%s", options);
    char *text = (char *)scratch_read("manifest.json", &size);
    *manifest = cJSON_ParseWithLength(text, size);
    cr_assert(*manifest);
    free(text);
    return cJSON_GetObjectItem(*manifest, "cases");
}

static const char *text_of(const cJSON *node, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(node, name));
    cr_assert(text, "no %s", name);
    return text;
}

static double number_of(const cJSON *node, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(node, name));
}

static const cJSON *file_of(const cJSON *node, const char *name)
{
    return cJSON_GetObjectItem(cJSON_GetObjectItem(node, "files"), name);
}

static npy_array read_array(const cJSON *node, const char *name)
{
    npy_array a;
    cr_assert(file_of(node, name), "no %s", name);
    cr_assert_eq(npy_read(text_of(file_of(node, name), "file"), &a), EXIT_PASS);
    return a;
}

/* The problem that the arguments of a case's `check` are; s and the subject are to be freed. */
static void read_again(const cJSON *node, program_options *s, subject *to)
{
    char *options = must_format("%s", "");
    const cJSON *word;
    cJSON_ArrayForEach(word, cJSON_GetObjectItem(node, "check"))
    {
        char *longer = must_format("%s %s", options, cJSON_GetStringValue(word));
        free(options);
        options = longer;
    }
    atn_context *context = make_context();
    cr_assert_eq(parse_check(s, options), EXIT_PASS, "%s", options);
    cr_assert_eq(subject_read(s, context, to), EXIT_PASS, "%s", options);
    atn_context_free(context);
    free(options);
}

static int count_of(const char *options)
{
    cJSON *manifest;
    int count = cJSON_GetArraySize(emitted(options, &manifest));
    cJSON_Delete(manifest);
    return count;
}

/* ---- What is there ---- */

Test(check_emit, lists_are_combined_and_named)
{
    cJSON *manifest, *cases = emitted("--operator sima/code --n 9,12 --d 4,8 --seed 1,2 --heads 3 "
                                      "--batch 2 --value-width 5 --key-tokens 11",
                                      &manifest);
    cr_expect_eq(cJSON_GetArraySize(cases), 8);
    const cJSON *last = cJSON_GetArrayItem(cases, 7), *sizes = cJSON_GetObjectItem(last, "sizes");
    cr_expect_str_eq(text_of(last, "name"), "sima-code-n12-d8-seed2");
    cr_expect_eq(number_of(last, "seed"), 2);
    npy_array q = read_array(last, "tokens"), k = read_array(last, "keys"),
              v = read_array(last, "values"), y = read_array(last, "output");
    cr_expect(q.batch == 2 && q.heads == 3 && q.rows == 12 && q.cols == 8);
    cr_expect(k.heads == 3 && k.rows == 11 && k.cols == 8 && v.rows == 11 && v.cols == 5);
    cr_expect(y.rows == 12 && y.cols == 5);
    cr_expect(number_of(sizes, "key_tokens") == 11 && number_of(sizes, "value_width") == 5);
    free(q.data), free(k.data), free(v.data), free(y.data);
    q = read_array(cJSON_GetArrayItem(cases, 6), "tokens"); /* seed 1 */
    k = read_array(last, "tokens");
    cr_expect_neq(q.data[0], k.data[0], "the seed changes nothing");
    free(q.data), free(k.data);
    cJSON_Delete(manifest);
}

/* A tile of 64 with a tail, and two heads, where nothing is said. */
Test(check_emit, usual_sizes)
{
    cJSON *manifest;
    const cJSON *node = cJSON_GetArrayItem(emitted("--operator sima/code", &manifest), 0);
    npy_array q = read_array(node, "tokens");
    cr_expect(q.batch == 1 && q.heads == 2 && q.rows == 72 && q.cols == 16);
    cr_expect_str_eq(text_of(node, "layout"), "bhnd");
    cr_expect_str_eq(text_of(node, "dtype"), "bf16");
    cr_expect_str_eq(text_of(node, "name"), "sima-code");
    cr_expect_str_eq(text_of(file_of(node, "output"), "answer"), "exact");
    cr_expect_str_eq(text_of(file_of(node, "grad_tokens"), "answer"), "baseline");
    free(q.data);
    cJSON_Delete(manifest);
    node = cJSON_GetArrayItem(emitted("--operator sima/code --n 9 --d 4", &manifest), 0);
    cr_expect_str_eq(text_of(file_of(node, "grad_tokens"), "answer"), "exact");
    cJSON_Delete(manifest);
}

/* Every operator's arguments read back the same problem, whose answers they are: in layouts, with
 * masks, on grids of an odd shape and on none. */
static void expect_answers(const char *options)
{
    cJSON *manifest, *cases = emitted(options, &manifest);
    const cJSON *node;
    atn_context *context = make_context();
    cJSON_ArrayForEach(node, cases)
    {
        program_options s;
        subject to;
        read_again(node, &s, &to);
        for (int kind = 0; kind < RESULT_COUNT; kind++) {
            if (!to.results[kind])
                continue;
            int64_t count = result_size(&to.judged, (result_kind)kind);
            double *want = must_allocate((size_t)count, sizeof *want);
            cr_assert(answer_library(context, &to, ATN_F64, ATN_STORAGE_NATIVE, (result_kind)kind,
                                     want) >= 0);
            ref_difference d = ref_compare_f64(1, count, to.results[kind], count, want, count);
            cr_expect(d.relative_frobenius < 1e-9, "%s %s: %s: %g", options, text_of(node, "name"),
                      result_name((result_kind)kind), d.relative_frobenius);
            free(want);
        }
        subject_free(&to);
        options_free(&s);
    }
    atn_context_free(context);
    cJSON_Delete(manifest);
}

Test(check_emit, arguments_read_the_same_problem)
{
    expect_answers("--n 8 --d 4");
    expect_answers("--n 20 --d 4 --operator soft/code,softpp/paper,cosformer/2d");
    expect_answers("--n 13 --d 4 --value-width 4 --operator soft,softpp,cosformer,lsh");
    expect_answers("--n 9 --d 4 --masks none,padding,causal,both --operator softmax,elu,sima");
    expect_answers("--n 9 --d 4 --heads 4 --kv-heads 2 --operator softmax,performer,gaussian");
    expect_answers("--n 16 --d 4 --operator soft/code --param stride=2,iterations=7 --scale embed");
    expect_answers("--n 9 --d 4 --dtype f64 --operator xnorm,rff,linformer");
    expect_answers("--n 16 --d 4 --operator soft/exact --param sampling=kmeans,count=5,steps=2");
    const int64_t shape[] = {1, 3};
    cr_assert_eq(npy_write(".", "i.npy", ATN_F64, 2, shape, (const double[]){2, 7, 11}), EXIT_PASS);
    expect_answers("--n 16 --d 4 --operator soft/exact --param sampling=indices,indices=i.npy");
    static const char *const layouts[] = {"bhnd", "bnhd", "nbhd", "bnd", "nbd"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        char *options = must_format("--n 9 --d 4 --batch 2 --heads 3 --value-width 5 --operator "
                                    "sima/code,softmax --layout %s",
                                    layouts[i]);
        expect_answers(options);
        free(options);
    }
    expect_answers("--n 9 --d 4 --operator sima/code --layout nhd");
    expect_answers("--n 9 --d 4 --operator sima/code --layout nd");
}

/* Heads that share keys: files have the few, head i sees number i / 2, and the gradients are sums.
 */
Test(check_emit, shared_keys)
{
    enum { N = 9, D = 4, SIZE = N * D };
    cJSON *manifest;
    const cJSON *node = cJSON_GetArrayItem(
        emitted("--operator softmax/attention --n 9 --d 4 --heads 4 --kv-heads 2", &manifest), 0);
    program_options s;
    subject to;
    read_again(node, &s, &to);
    npy_array k = read_array(node, "keys"), dk = read_array(node, "grad_keys");
    cr_expect(k.heads == 2 && dk.heads == 2 && to.key_heads == 2);
    cr_expect_eq(number_of(cJSON_GetObjectItem(node, "sizes"), "key_heads"), 2);
    for (int head = 0; head < 4; head++)
        cr_expect_eq(memcmp(to.c.k + head * SIZE, k.data + head / 2 * SIZE, SIZE * sizeof *k.data),
                     0, "head %d", head);
    double all[4 * SIZE];
    atn_context *context = make_context();
    cr_assert(answer_library(context, &to, ATN_F64, ATN_STORAGE_NATIVE, RESULT_KEYS, all) >= 0);
    for (int i = 0; i < 2 * SIZE; i++) {
        const double *first = all + i / SIZE * 2 * SIZE + i % SIZE;
        cr_expect(fabs(dk.data[i] - (first[0] + first[SIZE])) < 1e-9, "%d: %g", i, dk.data[i]);
    }
    atn_context_free(context);
    free(k.data), free(dk.data);
    subject_free(&to);
    options_free(&s);
    cJSON_Delete(manifest);
}

Test(check_emit, given_tokens_are_the_tokens)
{
    const int64_t shape[] = {2, 12, 4}, other[] = {2, 10, 4}, wide[] = {2, 10, 3};
    double q[2 * 12 * 4], k[2 * 10 * 4], v[2 * 10 * 3];
    cJSON *manifest;
    for (int i = 0; i < 2 * 12 * 4; i++)
        q[i] = sin(i) / 3;
    for (int i = 0; i < 2 * 10 * 4; i++)
        k[i] = cos(i) / 3;
    for (int i = 0; i < 2 * 10 * 3; i++)
        v[i] = cos(2 * i);
    cr_assert_eq(npy_write(".", "q.npy", ATN_F64, 3, shape, q), EXIT_PASS);
    cr_assert_eq(npy_write(".", "k.npy", ATN_F64, 3, other, k), EXIT_PASS);
    cr_assert_eq(npy_write(".", "v.npy", ATN_F64, 3, wide, v), EXIT_PASS);
    const cJSON *node = cJSON_GetArrayItem(
        emitted("--operator sima/code --tokens q.npy --keys k.npy --values v.npy", &manifest), 0);
    npy_array a = read_array(node, "tokens"), b = read_array(node, "keys"),
              c = read_array(node, "values");
    cr_expect(memcmp(a.data, q, sizeof q) == 0 && memcmp(b.data, k, sizeof k) == 0 &&
              memcmp(c.data, v, sizeof v) == 0);
    cr_expect_str_eq(text_of(node, "dtype"), "f64");
    free(a.data), free(b.data), free(c.data);
    cJSON_Delete(manifest);
    expect_answers("--operator sima/code --tokens q.npy --keys k.npy --values v.npy");
    node = cJSON_GetArrayItem(
        emitted("--operator sima/code --tokens q.npy --dtype bf16", &manifest), 0);
    a = read_array(node, "tokens");
    float rounded = (float)q[5];
    atn_storage_round(ATN_STORAGE_BF16, 1, &rounded);
    cr_expect(a.data[5] == (double)rounded && a.data[5] != q[5]);
    cr_expect(!file_of(node, "keys"), "K = Q");
    free(a.data);
    cJSON_Delete(manifest);
    expect_answers("--operator sima/code,soft/code --tokens q.npy");
}

/* Inputs are numbers of the type, and of no narrower one. */
Test(check_emit, inputs_are_numbers_of_the_type)
{
    static const atn_dtype dtypes[] = {ATN_F64, ATN_F32, ATN_TF32, ATN_F16, ATN_BF16};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        cJSON *manifest;
        char *options =
            must_format("--operator sima/code --n 32 --d 8 --dtype %s", atn_dtype_name(dtypes[i]));
        const cJSON *node = cJSON_GetArrayItem(emitted(options, &manifest), 0);
        npy_array a = read_array(node, "tokens");
        int wider = 0; /* than this type; than the next narrower one */
        for (int j = 0; j < 2 * 32 * 8; j++) {
            double value = a.data[j],
                   ulp = ldexp(1, ilogb(value)) * 2 * atn_dtype_roundoff(dtypes[i]);
            cr_expect(fmod(value, ulp) == 0 || fabs(value) < 1e-4, "%s: %a",
                      atn_dtype_name(dtypes[i]), value);
            wider += fmod(value, 2 * ulp) != 0;
        }
        cr_expect(wider > 2 * 32 * 8 / 4, "%s: as if of a narrower type",
                  atn_dtype_name(dtypes[i]));
        cr_expect_str_eq(a.dtype, i == 0 ? "<f8" : "<f4");
        free(a.data);
        free(options);
        cJSON_Delete(manifest);
    }
}

/* Masks are there where they were asked for, and leave something out. */
Test(check_emit, masks)
{
    static const struct {
        const char *name;
        bool padding, causal;
    } rows[] = {{"none", false, false},
                {"padding", true, false},
                {"causal", false, true},
                {"both", true, true}};
    cJSON *manifest, *cases = emitted("--operator elu/stable --n 32 --d 4 --masks "
                                      "none,padding,causal,both",
                                      &manifest);
    cr_assert_eq(cJSON_GetArraySize(cases), 4);
    for (int i = 0; i < 4; i++) {
        const cJSON *node = cJSON_GetArrayItem(cases, i),
                    *sizes = cJSON_GetObjectItem(node, "sizes");
        cr_expect(strstr(text_of(node, "name"), rows[i].name));
        cr_expect_eq(cJSON_IsTrue(cJSON_GetObjectItem(sizes, "padding")), rows[i].padding);
        cr_expect_eq(cJSON_IsTrue(cJSON_GetObjectItem(sizes, "causal")), rows[i].causal);
        cr_expect_eq(file_of(node, "mask") != NULL, rows[i].padding, "%s", rows[i].name);
        cr_expect_eq(file_of(node, "query_mask") != NULL, rows[i].padding, "%s", rows[i].name);
        if (!rows[i].padding)
            continue;
        npy_array mask = read_array(node, "mask");
        double sum = 0;
        for (int j = 0; j < 32; j++)
            sum += mask.data[j];
        cr_expect(sum > 8 && sum < 30, "%g of 32 are there", sum);
        free(mask.data);
    }
    cJSON_Delete(manifest);
}

/* ---- What is left out, and refused ---- */

Test(check_emit, what_an_operator_cannot_do_is_left_out)
{
    static const struct {
        const char *options;
        int cases;
    } rows[] = {
        {"--n 8 --d 4 --operator soft/code,elu/stable", 2},
        {"--n 8 --d 4 --operator soft/code,elu/stable --masks causal", 1},
        {"--n 8 --d 4 --operator soft/code,elu/stable --masks padding", 1},
        {"--n 8 --d 4 --operator sima/code,elu/stable --masks none,causal", 3},
        {"--n 8 --d 4 --operator soft/code,elu/stable --kv-heads 1", 1},
        {"--n 8 --d 4 --operator xca/code,elu/stable --value-width 3", 1},
        {"--n 8 --d 4 --operator xca/code,elu/stable --key-tokens 6", 1},
        {"--n 8 --d 4 --operator lsh,elu/stable --key-tokens 8", 2},
        {"--n 8 --d 4 --operator nystromformer/exact,elu/stable --m 2,4", 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(count_of(rows[i].options), rows[i].cases, "%s", rows[i].options);
}

Test(check_emit, what_cannot_be_combined_is_refused)
{
    const double numbers[8 * 4] = {0};
    const int64_t shape[] = {8, 4};
    static const struct {
        const char *options, *said;
    } rows[] = {
        {"--tokens q.npy --n 8", "--n: not with --tokens"},
        {"--tokens q.npy --d 4", "--d: not with --tokens"},
        {"--tokens q.npy --batch 2", "--batch: not with --tokens"},
        {"--tokens q.npy --heads 2", "--heads: not with --tokens"},
        {"--tokens q.npy --kv-heads 1", "--kv-heads: not with --tokens"},
        {"--tokens q.npy --key-tokens 8", "--key-tokens: not with --tokens"},
        {"--tokens q.npy --values q.npy --value-width 8", "--value-width: not with --values"},
        {"--tokens q.npy --mask q.npy --masks padding", "--masks: not with --mask"},
        {"--values q.npy", "--values: needs --tokens"},
        {"--mask q.npy", "--mask: needs --tokens"},
        {"--output q.npy", "--output: not with --emit-case"},
        {"--gradient tokens=q.npy", "--gradient: not with --emit-case"},
        {"--grid 8x1", "--grid: not with --emit-case"},
        {"--heads 4 --kv-heads 3", "--kv-heads 3: expected a divisor of the 4"},
        {"--kv-heads 1 --layout bnd", "expected a layout with h"},
        {"--batch 2 --layout hnd", "expected a layout with b"},
        {"--layout bnd:3", "expected the 2 heads"},
        {"--dtype f32,f16", "--dtype: several"},
        {"--param stride=2", "expected one --operator"},
        {"--operator soft --masks causal", "soft: it has no causal form"},
        {"--operator softmax,sima --scale 0.5", "--scale: none of these operators"},
        {"--operator softmax,rff --distance expanded", "--distance: none of these operators"},
    };
    cr_assert_eq(npy_write(".", "q.npy", ATN_F32, 2, shape, numbers), EXIT_PASS);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        capture();
        int code = emit(rows[i].options);
        const char *text = captured();
        cr_expect_eq(code, EXIT_USAGE, "%s: %d", rows[i].options, code);
        cr_expect(is_one_line_with(text, rows[i].said), "%s: %s", rows[i].options, text);
    }
}

/* Options that only cases have are none of judging. */
Test(check_emit, judging_takes_no_sizes)
{
    static const char *const options[] = {
        "--n 8",           "--d 8", "--heads 2", "--seed 2",     "--kv-heads 2",
        "--value-width 4", "--m 4", "--batch 2", "--masks none", "--key-tokens 3"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        program_options s;
        capture();
        int code = parse_check(&s, options[i]);
        const char *text = captured();
        cr_expect_eq(code, EXIT_USAGE, "%s", options[i]);
        cr_expect(is_one_line_with(text, "only --emit-case takes it"), "%s: %s", options[i], text);
    }
}
