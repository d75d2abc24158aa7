/* SPDX-License-Identifier: BSD-3-Clause */
/* The ledger's frame: its table is complete, so are verdicts, evidence names existing experiments,
 * and the report escapes its texts. The groups' judges have their own tests. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims/claims.h"
#include "claims/direct.h"
#include "claims/report.h"
#include "common/files.h"
#include "common/report.h"
#include "ledger.h"
#include "runs.h"
#include "scratch.h"

TestSuite(claims, .init = scratch_begin, .fini = scratch_end);

static bool is_text(const char *text)
{
    return text && *text && !strchr(text, '\n');
}

Test(claims, every_row_of_the_ledger_is_whole)
{
    for (int i = 0; claims_all()[i]; i++) {
        const claim *c = claims_all()[i];
        cr_expect(is_text(c->id) && is_text(c->source) && is_text(c->statement) &&
                      is_text(c->method) && c->corrected && c->proof && c->judge,
                  "%s", c->id);
        for (int j = 0; j < i; j++)
            cr_expect(strcmp(c->id, claims_all()[j]->id) != 0, "%s twice", c->id);
        for (int j = 0; c->evidence[j]; j++)
            cr_expect(evidence_find(c->evidence[j]), "%s: no evidence %s", c->id, c->evidence[j]);
    }
}

/* Of a row of CLAIM_GROUP_LIST: its statements are those it says, and in the file it says. */
static void check_group(const claim *group, const char *file, const char *first, const char *last)
{
    char *path = must_format("%s/%s", CLAIMS_FOLDER, file);
    FILE *source = fopen(path, "r");
    cr_assert(source, "%s", path);
    char *line = NULL;
    size_t size = 0;
    const claim *c = group;
    cr_expect_str_eq(c->id, first, "%s: %s", file, c->id);
    while (c->id && getline(&line, &size, source) >= 0) {
        const char *id = strstr(line, ".id = \"");
        if (id && strncmp(id + strlen(".id = \""), c->id, strlen(c->id)) == 0)
            c++;
    }
    cr_expect_null(c->id, "%s is not in %s", c->id, file);
    cr_expect(c > group && strcmp(c[-1].id, last) == 0, "%s: not %s", file, last);
    free(line);
    fclose(source);
    free(path);
}

Test(claims, statements_are_in_the_files_of_the_list)
{
#define CHECK_GROUP(table, file, first, last) check_group(table, file, #first, #last);
    CLAIM_GROUP_LIST(CHECK_GROUP)
#undef CHECK_GROUP
}

/* A corrected statement is a theorem with its proof, or begins with "Observed:". */
Test(claims, every_correction_is_proved_or_an_observation)
{
    for (int i = 0; claims_all()[i]; i++) {
        const claim *c = claims_all()[i];
        cr_expect(!*c->corrected || *c->proof || strncmp(c->corrected, "Observed:", 9) == 0,
                  "%s: a corrected statement without a proof: %s", c->id, c->corrected);
    }
}

Test(claims, every_statement_is_in_a_paper)
{
    for (int i = 0; claims_all()[i]; i++) {
        int found = 0;
        for (int p = 0; p < PAPER_COUNT; p++)
            found += claim_is_in(claims_all()[i], (claim_paper)p);
        cr_expect(found > 0, "%s: %s", claims_all()[i]->id, claims_all()[i]->source);
    }
}

Test(claims, evidence_names_experiments_and_options_that_they_take)
{
    for (int i = 0; evidence_at(i); i++) {
        const evidence *e = evidence_at(i);
        program_options s;
        int read = 0, code = parse_options(&s, evidence_experiment(e), e->options);
        cr_expect(code == EXIT_PASS, "%s: %s", e->name, e->options);
        if (code == EXIT_PASS)
            options_free(&s);
        cr_expect(evidence_find(e->name) == e, "%s appears twice", e->name);
        for (int c = 0; claims_all()[c]; c++)
            for (int j = 0; claims_all()[c]->evidence[j]; j++)
                read += strcmp(claims_all()[c]->evidence[j], e->name) == 0;
        cr_expect(read > 0, "no claim reads %s", e->name);
    }
    cr_expect(!evidence_find("no such evidence"));
}

/* Every text a verdict can need. */
static void fill(verdict *v, verdict_kind kind)
{
    verdict_open(v);
    v->kind = kind;
    v->certified = CERTIFIED_YES;
    verdict_set(&v->measured, "%d", 1);
    verdict_set(&v->bound, "2");
    verdict_set(&v->counterexample, "a | b, \"c\"");
    verdict_set(&v->certificate, "d");
    if (kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "if");
    verdict_close(v);
}

static void expect_lacking(verdict_kind kind, size_t field)
{
    verdict v;
    fill(&v, kind);
    cr_expect(!verdict_lacks(&v), "%s: lacks %s", verdict_name(kind), verdict_lacks(&v));
    verdict_set((char **)((char *)&v + field), "%s", "");
    cr_expect(verdict_lacks(&v), "%s without field %zu", verdict_name(kind), field);
    verdict_free(&v);
}

Test(claims, an_incomplete_verdict_is_told_from_a_complete_one)
{
    verdict none;
    fill(&none, VERDICT_NONE);
    cr_expect(verdict_lacks(&none));
    verdict_free(&none);
    for (int kind = VERDICT_NONE + 1; kind < VERDICT_COUNT; kind++) {
        expect_lacking((verdict_kind)kind, offsetof(verdict, measured));
        expect_lacking((verdict_kind)kind, offsetof(verdict, certificate));
    }
    expect_lacking(VERDICT_HOLDS_IF, offsetof(verdict, condition));
    expect_lacking(VERDICT_FAILS, offsetof(verdict, counterexample));
    verdict conditional;
    fill(&conditional, VERDICT_HOLDS);
    verdict_set(&conditional.condition, "only if");
    cr_expect(verdict_lacks(&conditional), "a condition without 'holds if'");
    verdict_free(&conditional);
}

/* Texts that a reader found wrong and that no number can detect: none may come back, and their
 * corrections must stay. */
static const struct {
    const char *id, *was, *is; /* was: null where only what was left out is put in */
} repaired[] = {
    {"M01", "happen only when", "extremes happen when only a single row"},
    {"M02", "channels first keeps its digits", "fewer where they are independent"},
    {"M02", "N > 2²⁰", "f16's smallest normal number for N > 2¹⁴"},
    {"M05", "DeiT is 58 % slower than SimA, with", "Not measured here"},
    {"M05", "more than half of the time", "neither share grows with what Fig. 1 enlarges"},
    {"M08", "The other three are right", "D is the token dimension"},
    {"M22", "those of their papers and code", "alt_gvt_small"},
    {"N02", "No one reading fits both", "(PA⁺)(PᵀV)"},
    {"N03", "UFO-ViT's tables and SimA's Tab. 1 and 4 are right", "which for CvT is not"},
    {"N02", NULL, "The 15 M rest on a digit of IJCV's Tab. 1 in an extracted text"},
    {"N04", "the attention grows by 1.5·10⁹", "NeurIPS's Tiny, whose Tab. 4a has the same numbers"},
    {"N04", "74, 169 and 292", "grows by 42, 92 and 150 million multiply-adds"},
    {"N04", NULL, "IJCV's deeper Tiny by 65, 142 and 232 million"},
    {"N04", NULL, "would add 7.8·10⁸ to the former's growth at m = 81"},
    {"N04", "1.10·10⁸", "grows by 45, 105 and 183 million"},
    {"N19", "is no such count", "no one choice of landmarks gives all six"},
    {"N08", "That of IJCV rests on the depths", "does not rest on that digit"},
    {"N12", "are not above 2", "Nothing printed says what increase is significant"},
    {"N16", "With as many images on each GPU both sentences can be right", "only if the 1024"},
    {"N18", "the verdict, rest on a digit", "Tiny is not judged"},
    {"S01", "hold the largest value 1.", "with the bottom ones"},
    {"S04", "on the sampled tokens Ŝ has A and B", "What is proper is not said"},
    {"S05", "the first m tokens, 79.9 %).", "NeurIPS: convolution, average pooling"},
    {"S07", "Both orders hold for every n ≥ m and d", "carry a factor h"},
    {"S11", "the iteration converges if and only if", "ε ≪ 2⁻²⁰/m"},
    {"S12", "n_i = 0: the start of Algorithm 2. If",
     "over all modes, in ‖Π − AX_k‖₂, it can be faster only if"},
    {"S12", NULL, "In § 4.4's metric, which weighs a mode by λ, it can be faster otherwise"},
    {"S13", "as for the singular A above", "only where A is singular to rounding"},
    {"S16", "For singular A of constant rank the terms", "is an non-singular matrix"},
    {"S17", "accelerate the training.", "as validated in Sec. 4.1"},
    {"S19", NULL, "that of A + 0.01·I from 0.9·2/‖·‖₁²"},
    {"S19", NULL, "landmarks that move together move no range"},
    {"S22", NULL, "‖A†‖₂ = 1/(smallest field) ≤ 1"},
    {"S23", NULL, "1/(smallest field)² ≤ 1"},
    {"S22", "If A is k-connected, ‖A†‖₂", "For no m ≥ 2 is ‖A⁻¹‖₂ bounded"},
    {"S23", "for m ≥ 2 no function of m", "jumps there as in S22"},
    {"S25", "decay from large to small", "is conditioned on the token sequence length"},
    {"S26", "Normalisation clearly mitigates", "by our normalization scheme"},
    {"S42", "The reason given fails", "Of S it is so"},
    {"S45", "every symmetric A ≠ 0 and every", "λ_max its eigenvalue of largest size"},
    {"U01", "the widely used port", "where neither is zero"},
    {"U04", "so no single matrix need act on all channels", "always where V has full column rank"},
    {"U05", "With LN, GN or IN instead of XNorm", "range does not tell why it failed"},
};

Test(claims, what_was_wrong_does_not_come_back)
{
    for (size_t i = 0; i < sizeof repaired / sizeof *repaired; i++) {
        const claim *c = ledger_find(repaired[i].id);
        char *text = must_format("%s\n%s\n%s\n%s\n%s", c->source, c->statement, c->method,
                                 c->corrected, c->proof);
        cr_expect(!repaired[i].was || !strstr(text, repaired[i].was), "%s says again: %s", c->id,
                  repaired[i].was);
        cr_expect(strstr(text, repaired[i].is), "%s no longer says: %s", c->id, repaired[i].is);
        free(text);
    }
}

static const column two_columns[] = {
    {"name", COLUMN_TEXT, "", ""},
    {"value", COLUMN_REAL, "", ""},
};

static bool starts_with_a(const table *t, int64_t row, const void *data)
{
    return cell_text(t, row, "name")[0] == *(const char *)data;
}

Test(claims, the_largest_row_is_found_and_a_nan_is_the_largest)
{
    static const struct {
        const char *name;
        double value;
    } rows[] = {{"a", 1}, {"b", 9}, {"a", 3}, {"a", -INFINITY}, {"b", NAN}, {"a", 2}};
    table *t = table_create(two_columns, 2), *empty = table_create(two_columns, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        table_text(t, rows[i].name);
        table_real(t, rows[i].value);
    }
    table_text(t, "a");
    table_missing(t);
    cr_expect(largest_row(t, "value", starts_with_a, "a") == 2);
    cr_expect(largest_row(t, "value", NULL, NULL) == 4);
    cr_expect(largest_row(t, "value", starts_with_a, "c") == -1);
    cr_expect(largest_row(empty, "value", NULL, NULL) == -1);
    table_free(empty);
    table_free(t);
}

/* A verdict on the largest or the smallest of some numbers must not lose a NaN among them. */
Test(claims, extremes_are_nan_once_a_number_is)
{
    static const double numbers[][3] = {
        {1, 2, 3}, {3, 2, 1}, {NAN, 2, 3}, {1, NAN, 3}, {1, 2, NAN}};
    for (int i = 0; i < 5; i++) {
        double worst = 0, least = INFINITY;
        value_range range = range_empty;
        for (int j = 0; j < 3; j++) {
            worst = direct_worst(worst, numbers[i][j]);
            least = direct_least(least, numbers[i][j]);
            range_widen(&range, numbers[i][j]);
        }
        bool ends = i < 2 ? worst == 3 && least == 1 : isnan(worst) && isnan(least);
        bool same =
            i < 2 ? range.most == 3 && range.least == 1 : isnan(range.most) && isnan(range.least);
        cr_expect(ends && same, "%d: %g to %g, a range of %g to %g", i, least, worst, range.least,
                  range.most);
    }
}

/* The basis of invented verdicts. */
Test(claims, a_basis_is_proof_certificate_and_observation)
{
    static const struct {
        verdict_kind kind;
        const char *corrected, *proof;
        certified_state certified;
        const char *want;
    } rows[] = {
        {VERDICT_HOLDS, "", "p", CERTIFIED_NOT_NEEDED, "proved"},
        {VERDICT_FAILS, "c", "p", CERTIFIED_YES, "proved, certified"},
        {VERDICT_FAILS, "", "", CERTIFIED_YES, "certified"},
        {VERDICT_FAILS, "c", "p", CERTIFIED_NO, "proved, not certified"},
        {VERDICT_HOLDS_IF, "", "", CERTIFIED_NOT_NEEDED, "observed"},
        {VERDICT_HOLDS_IF, "", "", CERTIFIED_NO, "not certified, observed"},
        {VERDICT_OBSERVED, "", "", CERTIFIED_NOT_NEEDED, "observed"},
        {VERDICT_OBSERVED, "c", "p", CERTIFIED_NOT_NEEDED, "proved, observed"},
        {VERDICT_FAILS, "Observed: c", "p", CERTIFIED_NOT_NEEDED, "proved, observed"},
        {VERDICT_NOT_TESTABLE, "", "", CERTIFIED_NOT_NEEDED, ""},
        {VERDICT_NOT_TESTABLE, "c", "p", CERTIFIED_YES, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        claim c = {.corrected = rows[i].corrected, .proof = rows[i].proof};
        judged j = {&c, {.kind = rows[i].kind, .certified = rows[i].certified}};
        char *basis = report_basis(&j);
        cr_expect(strcmp(basis, rows[i].want) == 0, "row %zu: %s, expected %s", i, basis,
                  rows[i].want);
        free(basis);
    }
}

static int no_judge(const claim_run *run, verdict *v)
{
    return EXIT_PASS;
}

static const claim made_up = {
    .id = "X1",
    .source = "a paper & IJCV",
    .statement = "|x| < 1, \"always\"",
    .method = "<script>alert('X1')</script>",
    .corrected = "y",
    .proof = "z </section>",
    .evidence = {"maps"},
    .judge = no_judge,
};

static void expect_text(const char *name, const char *const *wanted)
{
    size_t size;
    char *text = (char *)scratch_read(name, &size);
    for (int i = 0; wanted[i]; i++)
        cr_expect(strstr(text, wanted[i]), "%s: expected %s in\n%s", name, wanted[i], text);
    free(text);
}

/* The beginning of a PNG of 300 x 200, which is all that the report reads. */
static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\x2c\0\0\0\xc8";

static const char *const csv_texts[] = {
    "id,source,statement,verdict,condition,measured,bound,counterexample,"
    "certified,evidence_csv,corrected\n"
    "X1,a paper & IJCV,\"|x| < 1, \"\"always\"\"\",fails,,1,2,"
    "\"a | b, \"\"c\"\"\",yes,"
    "maps/attention/maps.csv,y\n",
    NULL};
static const char *const markdown_texts[] = {"| [X1](#X1) | a paper & IJCV | \\|x\\| < 1",
                                             "**Smallest counterexample.** a | b",
                                             "`attnum run attention/maps --quick --seed 1`",
                                             "`attnum claims X1 --seed 1`",
                                             "**Rests on.** proved, certified",
                                             "| fails | 1 |",
                                             "| holds | 0 |",
                                             NULL};
static const char *const page_texts[] = {
    "<tr data-id=\"X1\" data-verdict=\"fails\" data-papers=\"IJCV\"><th scope=\"row\"><a "
    "href=\"#X1\">X1</a>",
    "<section id=\"X1\">",
    "<p>|x| &lt; 1, &quot;always&quot;</p><cite>a paper &amp; IJCV</cite>",
    "<dt>What was done</dt><dd>&lt;script&gt;alert(&#39;<a "
    "href=\"#X1\">X1</a>&#39;)&lt;/script&gt;</dd>",
    "<dt>Measured</dt><dd>1</dd>",
    "<dt>Compared with</dt><dd>2</dd>",
    "<dt>Smallest counterexample</dt><dd>a | b, &quot;c&quot;</dd>",
    "<dt>Certificate</dt><dd>d</dd>",
    "<dt>Corrected</dt><dd>y</dd>",
    "<dt>Proof</dt><dd>z &lt;/section&gt;</dd>",
    "<p>a &amp; b</p>\n</div>",
    ">attnum run attention/maps --quick --seed 1</code>gives <a "
    "href=\"maps/attention/maps.csv\">maps/attention/maps.csv</a>,",
    ">attnum claims X1 --seed 1</code>",
    NULL};
static const char *const without_plot[] = {"<p class=\"soft\">No plot of attention/maps is shown",
                                           NULL};
static const char *const with_plot[] = {
    "<svg viewBox=\"0 0 300 200\" role=\"img\" aria-label=\"Plot of attention/maps\"><use "
    "href=\"#figure-maps\"/></svg>",
    "<image id=\"figure-maps\" width=\"300\" height=\"200\" "
    "href=\"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAASwAAADI\"/>",
    NULL};

Test(claims, reports_quote_what_they_write)
{
    program_options s;
    cr_assert(options_parse_verb(&s, "claims", NULL, claims_verb.options, 0, NULL) == EXIT_PASS &&
              !s.out);
    claim_run run = {.s = &s, .folder = "."};
    judged j = {.claim = &made_up};
    fill(&j.verdict, VERDICT_FAILS);
    free(j.verdict.notes_text); /* what verdict_close left */
    j.verdict.notes_text = must_format("%s", "a & b");
    cr_assert(report_write(&run, &j, 1, EXIT_PASS) == EXIT_PASS);
    expect_text("claims.csv", csv_texts);
    expect_text("claims.md", markdown_texts);
    expect_text("claims.html", page_texts);
    expect_text("claims.html", without_plot);
    expect_text("claims.csv-metadata.json",
                (const char *const[]){"attnum claims", "counterexample", "\"sha256\":", NULL});
    cr_assert(files_make_folder("maps/attention") == EXIT_PASS);
    scratch_write("maps/attention/maps.png", png, sizeof png - 1);
    cr_assert(report_write(&run, &j, 1, EXIT_PASS) == EXIT_PASS);
    expect_text("claims.html", with_plot);
    scratch_write("maps/attention/maps.png", png, sizeof png - 2); /* cut off */
    cr_assert(report_write(&run, &j, 1, EXIT_PASS) == EXIT_PASS);
    expect_text("claims.html", without_plot);
    verdict_free(&j.verdict);
    options_free(&s);
}

/* A program that ends without results is no evidence. */
Test(claims, evidence_that_cannot_be_made_is_an_error)
{
    static const char *const programs[] = {"/bin/false", "/bin/true", "./missing"};
    program_options s;
    cr_assert(options_parse_verb(&s, "claims", NULL, claims_verb.options, 0, NULL) == EXIT_PASS);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        claim_run run = {.s = &s, .folder = "results", .program = programs[i]};
        capture();
        cr_expect(evidence_run(&run, evidence_find("maps")) == EXIT_ENVIRONMENT, "%s", programs[i]);
        cr_expect(strstr(captured(), "attention/maps"), "%s", programs[i]);
        evidence_free(&run);
    }
    options_free(&s);
}
