/* SPDX-License-Identifier: BSD-3-Clause */
#include "list.h"

#include <certified.h>
#include <linear_algebra.h>
#include <matrices.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "claims/claims.h"
#include "common/blas.h"
#include "common/experiment.h"
#include "common/inputs.h"
#include "common/layout.h"
#include "common/names.h"
#include "common/report.h"
#include "common/table.h"

static const column columns[] = {
    {"kind", COLUMN_TEXT, "", "what it is"},
    {"name", COLUMN_TEXT, "", "its name, the same in C, on the command line and in CSV"},
    {"description", COLUMN_TEXT, "", "its formula, or one line about it"},
    {"parameters", COLUMN_TEXT, "", "what it can be given"},
    {"capabilities", COLUMN_TEXT, "", "types, devices and modes it supports"},
    {"source", COLUMN_TEXT, "",
     "where it comes from, or which figures and statements it belongs to"},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* Adds a row; null cells are missing. */
static void add_row(table *t, const char *const cells[COLUMNS])
{
    for (int i = 0; i < COLUMNS; i++)
        if (cells[i] && *cells[i])
            table_text(t, cells[i]);
        else
            table_missing(t);
}

/* Appends the names of the bits that are set. */
static void name_bits(unsigned bits, const char *const *names, size_t count, char *text,
                      size_t size)
{
    for (size_t i = 0; i < count; i++)
        if (bits & 1u << i)
            snprintf(text + strlen(text), size - strlen(text), "%s%s", *text ? " " : "", names[i]);
}

static void list_operators(table *t, const char *kind)
{
    static const char *const names[] = {"f32",   "f64",    "cpu",     "cuda",    "backward", "mask",
                                        "cross", "causal", "lengths", "cpu-bf16"}; /* as ATN_CAN_ */
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        char text[512] = "";
        name_bits(info->capabilities, names, sizeof names / sizeof *names, text, sizeof text);
        for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
            if (info->differentiable & 1u << p)
                snprintf(text + strlen(text), sizeof text - strlen(text), " d/d%s",
                         atn_parameter_name((atn_parameter)p));
        if (info->unsupported)
            snprintf(text + strlen(text), sizeof text - strlen(text), " (%s)", info->unsupported);
        add_row(t, (const char *[COLUMNS]){kind, info->name, info->formula, info->parameters, text,
                                           info->source});
    }
}

static void list_variants(table *t, const char *kind)
{
    static const char *const names[] = {"permutable", "linear", "stochastic", "column-free",
                                        "coupled"}; /* in the order of ATN_IS_ */
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int i = 0; i < info->variant_count; i++) {
            const atn_variant *variant = &info->variants[i];
            char name[64], text[256] = "";
            snprintf(name, sizeof name, "%s/%s", info->name, variant->name);
            name_bits(variant->properties, names, sizeof names / sizeof *names, text, sizeof text);
            if (variant->duplication > 0)
                snprintf(text + strlen(text), sizeof text - strlen(text),
                         "%severy token twice: output x %g", *text ? "; " : "",
                         variant->duplication);
            add_row(t, (const char *[COLUMNS]){kind, name, variant->description, NULL, text, NULL});
        }
    }
}

static void list_inverses(table *t, const char *kind)
{
    for (int i = 0; i < ATN_INVERSE_COUNT; i++)
        add_row(t, (const char *[COLUMNS]){kind, atn_inverse_name((atn_inverse_method)i),
                                           atn_inverse_description((atn_inverse_method)i)});
}

static void list_experiments(table *t, const char *kind)
{
    for (int i = 0; experiments[i]; i++)
        add_row(t, (const char *[COLUMNS]){kind, experiments[i]->name, experiments[i]->summary,
                                           NULL, NULL, experiments[i]->source});
}

static void list_claims(table *t, const char *kind)
{
    for (int i = 0; claims_all()[i]; i++)
        add_row(t, (const char *[COLUMNS]){kind, claims_all()[i]->id, claims_all()[i]->statement,
                                           NULL, NULL, claims_all()[i]->source});
}

static void list_inputs(table *t, const char *kind)
{
    for (int i = 0; input_kinds[i].name; i++)
        add_row(t, (const char *[COLUMNS]){kind, input_kinds[i].name, input_kinds[i].formula,
                                           input_kinds[i].parameter});
}

static void list_samplings(table *t, const char *kind)
{
#define ADD_ROW(code, name, description)                                                           \
    add_row(t, (const char *[COLUMNS]){kind, name, description});
    SAMPLING_LIST(ADD_ROW)
#undef ADD_ROW
}

static void list_layouts(table *t, const char *kind)
{
#define ADD_ROW(axes, others, description)                                                         \
    add_row(t, (const char *[COLUMNS]){kind, axes, description "; also " others});
    LAYOUT_LIST(ADD_ROW)
#undef ADD_ROW
}

static void list_references(table *t, const char *kind)
{
#define ADD_ROW(code, name, description)                                                           \
    add_row(t, (const char *[COLUMNS]){kind, name, description, NULL, what});
    const char *what = "singular values";
    REF_SVD_LIST(ADD_ROW)
    what = "eigenvalues of symmetric matrices";
    REF_EIGEN_LIST(ADD_ROW)
    what = "a matrix with known eigenvalues";
    REF_MATRIX_LIST(ADD_ROW)
#undef ADD_ROW
}

/* Whether a program is on the PATH. */
static bool find_program(const char *name)
{
    const char *path = getenv("PATH");
    bool found = false;
    while (path && *path && !found) {
        size_t length = strcspn(path, ":");
        char *file = must_format("%.*s/%s", (int)length, path, name);
        found = access(file, X_OK) == 0;
        free(file);
        path += length + (path[length] == ':');
    }
    return found;
}

/* Whether an instruction set is available on this machine. */
static const char *isa_state(atn_isa isa)
{
    const char *reason;
    atn_isa chosen;
    if (atn_isa_choose(isa, NULL, &reason) != ATN_OK)
        return reason;
    bool taken = atn_isa_choose(ATN_ISA_AUTO, &chosen, NULL) == ATN_OK && chosen == isa;
    return taken ? "found; taken without --isa" : "found";
}

static void list_parts(table *t, const char *kind)
{
    const char *library = ref_certify_library();
    const char *reason;
    int devices = atn_device_count(ATN_CUDA, &reason);
    if (devices == 0)
        add_row(t, (const char *[COLUMNS]){kind, "cuda", reason});
    for (int i = 0; i < devices; i++) {
        atn_device_info info;
        if (atn_device_describe(ATN_CUDA, i, &info) == ATN_OK)
            add_row(t, (const char *[COLUMNS]){kind, "cuda", info.name});
    }
    for (int isa = ATN_ISA_BASE; isa < ATN_ISA_COUNT; isa++)
        add_row(t,
                (const char *[COLUMNS]){kind, atn_isa_name((atn_isa)isa), isa_state((atn_isa)isa),
                                        NULL, NULL, atn_isa_description((atn_isa)isa)});
    add_row(t, (const char *[COLUMNS]){
                   kind, "certify",
                   library ? library : "not in this build (FLINT, Arb): nothing is certified", NULL,
                   NULL, "enclosures by ball arithmetic, and exact rationals"});
    add_row(t, (const char *[COLUMNS]){
                   kind, "gnuplot",
                   find_program("gnuplot") ? "found" : "not found: experiments make no plots"});
    blas_description d = blas_describe();
    add_row(t, (const char *[COLUMNS]){kind, "blas", d.config, d.core, NULL, d.file});
    add_row(t, (const char *[COLUMNS]){kind, "lapack", d.lapack_file});
}

static void list_device(table *t, const char *kind, atn_device device, int ordinal)
{
    atn_device_info info;
    if (atn_device_describe(device, ordinal, &info) != ATN_OK)
        return;
    char *memory = info.memory_bytes > 0
                       ? must_format("%d multiprocessors, %.1f GiB", info.multiprocessors,
                                     (double)info.memory_bytes * 0x1p-30)
                       : NULL;
    char *can = info.capability > 0
                    ? must_format("capability %d.%d, driver %d, runtime %d", info.capability / 10,
                                  info.capability % 10, info.driver, info.runtime)
                    : NULL;
    add_row(t, (const char *[COLUMNS]){kind, atn_device_name(device), info.name, memory, can});
    free(memory);
    free(can);
}

/* Lists all devices; a kind of device without any has a row with the reason. */
static void list_devices(table *t, const char *kind)
{
    for (int device = ATN_CPU; device <= ATN_CUDA; device++) {
        const char *reason;
        int count = atn_device_count((atn_device)device, &reason);
        for (int i = 0; i < count; i++)
            list_device(t, kind, (atn_device)device, i);
        if (count == 0)
            add_row(t, (const char *[COLUMNS]){kind, atn_device_name((atn_device)device), "none",
                                               NULL, reason});
    }
}

static const struct {
    const char *name;
    void (*list)(table *t, const char *kind);
} kinds[] = {
    {"operators", list_operators},   {"variants", list_variants},
    {"inverses", list_inverses},     {"experiments", list_experiments},
    {"claims", list_claims},         {"inputs", list_inputs},
    {"samplings", list_samplings},   {"layouts", list_layouts},
    {"references", list_references}, {"parts", list_parts},
    {"devices", list_devices},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- Formats ---- */

/* One paragraph per entry, wide texts below their names. */
static void print_table(const table *t)
{
    const char *kind = "";
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (strcmp(kind, table_get_text(t, row, 0)) != 0) {
            kind = table_get_text(t, row, 0);
            printf("%s%s\n", row ? "\n" : "", kind);
        }
        printf("  %-24s %s\n", table_get_text(t, row, 1), table_get_text(t, row, 2));
        for (int i = 3; i < COLUMNS; i++)
            if (!table_is_missing(t, row, i))
                printf("  %-24s %s: %s\n", "", columns[i].name, table_get_text(t, row, i));
    }
}

static void print_csv(const table *t)
{
    table_write_csv(t, stdout);
}

static void print_json(const table *t)
{
    table_write_json(t, stdout);
    printf("\n");
}

static void (*const formats[])(const table *t) = {
    [FORMAT_TABLE] = print_table, [FORMAT_CSV] = print_csv, [FORMAT_JSON] = print_json};

/* ---- The command ---- */

static void print_help(void)
{
    printf("Lists what attnum has. KIND is one of");
    for (int i = 0; i < KINDS; i++)
        printf("%s %s", i ? "," : "", kinds[i].name);
    printf("; without one, all of them.\n\nexample: attnum list inputs references --format csv\n");
}

/* Marks the kind a word names. */
static int choose_kind(const char *word, bool chosen[KINDS])
{
    const char *names[KINDS + 1] = {0};
    for (int i = 0; i < KINDS; i++)
        names[i] = kinds[i].name;
    int found = names_find(names, word);
    if (found >= 0) {
        chosen[found] = true;
        return EXIT_PASS;
    }
    char *expected = names_expected(names, word);
    report_error("list '%s': %s", word, expected);
    free(expected);
    return EXIT_USAGE;
}

static int run(const program_options *s, int count, const char *const *words)
{
    bool chosen[KINDS] = {false};
    int code = EXIT_PASS;
    for (int i = 0; i < count && code == EXIT_PASS; i++)
        code = choose_kind(words[i], chosen);
    if (code != EXIT_PASS)
        return code;
    table *t = table_create(columns, COLUMNS);
    for (int i = 0; i < KINDS; i++)
        if (chosen[i] || count == 0)
            kinds[i].list(t, kinds[i].name);
    formats[s->format](t);
    table_free(t);
    return EXIT_PASS;
}

const verb list_verb = {
    .name = "list",
    .operands = "[KIND...]",
    .summary = "operators, experiments, inputs, claims, ...",
    .options = OPTIONS(OPTION_FORMAT),
    .help = print_help,
    .run = run,
};
