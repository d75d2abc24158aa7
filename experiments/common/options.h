/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of the command line, parsed and checked. One table (options.c) has a row per option:
 * its name, its argument, its help, its default; a verb or an experiment names the options it uses.
 */
#ifndef EXPERIMENTS_OPTIONS_H
#define EXPERIMENTS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <attnum/attnum.h>

#include "layout.h"
#include "names.h"
#include "sampling.h"
#include "table.h"

enum { SHARDS_MOST = 1000000 };

/* What the help of an option says of it if it is not given. */
#define DEFAULT_SEED          1
#define DEFAULT_HEADS         8 /* of inspect */
#define DEFAULT_EPOCHS        5
#define DEFAULT_PATCH         2
#define DEFAULT_TRAINED_HEADS 2
#define DEFAULT_CASE_HEADS    2
#define DEFAULT_CASE_BATCH    1
#define DEFAULT_CASE_TOKENS   72
#define DEFAULT_CASE_WIDTH    16

typedef enum { EFFORT_QUICK, EFFORT_DEFAULT, EFFORT_FULL, EFFORT_COUNT } effort;

typedef struct {
    int count;
    const char **items;
} text_list;

typedef struct {
    int count;
    int64_t *items;
} integer_list;

/* X(code, name): what `check` compares a result with. */
#define REFERENCE_CHOICE_LIST(X)                                                                   \
    X(REFERENCE_AUTO, "auto")                                                                      \
    X(REFERENCE_EXACT, "exact")                                                                    \
    X(REFERENCE_F64, "f64")

#define REFERENCE_CHOICE_CODE(code, name) code,
typedef enum { REFERENCE_CHOICE_LIST(REFERENCE_CHOICE_CODE) REFERENCE_CHOICES } reference_choice;
#undef REFERENCE_CHOICE_CODE

/* The options of `check`: paths, null if not given. */
typedef struct {
    const char *tokens, *keys, *values, *output, *landmarks, *mask, *query_mask;
    const char *grad_output, *mistakes;
    text_list gradients;  /* NAME=FILE */
    text_list parameters; /* NAME=VALUE */
    reference_choice reference;
} check_arguments;

/* X(code, name): which masks emitted cases have. */
#define CASE_MASK_LIST(X)                                                                          \
    X(CASE_MASK_NONE, "none")                                                                      \
    X(CASE_MASK_PADDING, "padding")                                                                \
    X(CASE_MASK_CAUSAL, "causal")                                                                  \
    X(CASE_MASK_BOTH, "both")
#define CASE_MASK_ENTRY(code, name) code,
typedef enum { CASE_MASK_LIST(CASE_MASK_ENTRY) CASE_MASK_COUNT } case_mask;
#undef CASE_MASK_ENTRY

const char *case_mask_name(case_mask mask);

/* Sizes of emitted cases besides --n, --m, --batch, --heads and --seed; 0: not given. */
typedef struct {
    integer_list widths;
    integer_list masks; /* of case_mask */
    int64_t value_width, key_heads, key_tokens;
} case_sizes;

/* The options of `train`; 0 and null if not given. */
typedef struct {
    int64_t epochs, images, patch, side, heads;
    bool keep_epochs, f16;
    const char *dataset, *start;
    text_list changes; /* not checked */
} train_arguments;

/* The options, in the order of the fingerprint and of --help:
 *
 *   X(ID, name, argument, kind, field, effect, help, ...)
 *
 * ID: OPTION_ID names the row. argument: null for a flag; a LIST may be repeated. kind: how the
 * value is read, written and freed (options.c); field: of program_options. help: a line of --help;
 * after it come the text of the manual page, the range of integers (.least, .most), the value if
 * not given unless that is 0 (.unset), the allowed names (.names), and for `check` whether only
 * judging or only --emit-case takes it (.purpose). Two rows may have one name, if no verb takes
 * both. Parsing, --help, completion, the manual page, the metadata, the fingerprint and the command
 * that repeats a point are all made from this list. */
#define OPTION_LIST(X)                                                                             \
    X(QUICK, "quick", NULL, effort, effort, KEPT, "a small version, for a first look",             \
      .most = EFFORT_QUICK)                                                                        \
    X(FULL, "full", NULL, effort, effort, KEPT, "the papers' scale", .most = EFFORT_FULL)          \
    X(SEED, "seed", "LIST", integers, seeds, RESULT,                                               \
      "seeds of everything drawn at random (default " TEXT_OF(DEFAULT_SEED) ")",                   \
      .most = INT64_MAX, .purpose = FOR_CASES)                                                     \
    X(INPUT, "input", "LIST", inputs, inputs, RESULT,                                              \
      "NAME[:PARAMETER] (see attnum list inputs) or FILE.npy",                                     \
      "Such as iid:0.3, or a file of one's own tokens.")                                           \
    X(NETWORK, "network", "LIST", texts, networks, RESULT,                                         \
      "trained networks: operators, names in data/trained, FILE.npz",                              \
      "Of an operator its usual variant and first seed.")                                          \
    X(GRID, "grid", "HxW", grid, grid_height, RESULT,                                              \
      "the grid that the tokens of FILE.npy are placed on", .most = INT32_MAX,                     \
      .purpose = FOR_JUDGING)                                                                      \
    X(DTYPE, "dtype", "LIST", choices, dtypes, RESULT,                                             \
      "f32, f64; where a device computes in them tf32, bf16, f16",                                 \
      "Of check: the type that the kernel claims, any of these; by default the file's. Of "        \
      "cases: the type whose numbers the inputs are; by default that of the tokens' file, or "     \
      "bf16, whose numbers every type holds. Of inspect: the type that the conclusion is about; "  \
      "by default f32.",                                                                           \
      .names = dtype_names, .count = offsetof(program_options, dtype_count))                       \
    X(DEVICE, "device", "NAME", choice, device, RESULT,                                            \
      "cpu, or cuda: what the library computes runs on the GPU (default cpu)",                     \
      .names = device_names)                                                                       \
    X(ISA, "isa", "NAME", choice, isa, RESULT,                                                     \
      "the CPU's instructions: auto, base, avx2 or avx512 (default what ATTNUM_ISA says, or "      \
      "auto)",                                                                                     \
      "auto is the widest that the processor has. Results differ in their last digits.",           \
      .names = isa_names)                                                                          \
    X(SAMPLES, "samples", "N", integer, samples, RESULT, "samples drawn per input and seed",       \
      .least = 1, .most = 1000000)                                                                 \
    X(ITERATIONS, "iterations", "T", integer, iterations, RESULT, "Newton-Raphson steps",          \
      "Of inspect: those that the conclusion is about; by default 20.", .most = 100000,            \
      .unset = -1)                                                                                 \
    X(VARIANT, "variant", "LIST", texts, variants, RESULT,                                         \
      "inverses, by name (see attnum list inverses)", .names = inverse_names, .check = check_name) \
    X(ALPHA, "alpha", "X", positive, alpha, RESULT, "the start alpha of --variant nr")             \
    X(STAGE, "stage", "LIST", integers, stages, RESULT,                                            \
      "stages 1, 2, 3: patches of 4, 8, 16 pixels", .least = 1, .most = 3)                         \
    X(OPERATOR, "operator", "LIST", texts, operators, RESULT,                                      \
      "NAME[/VARIANT] (see attnum list variants; default all)", .check = check_operator)           \
    X(OP, "op", "LIST", texts, operators, KEPT, "the same as --operator", .check = check_operator) \
    X(N, "n", "LIST", integers, tokens, RESULT, "numbers of tokens", .least = 1, .most = 1000000,  \
      .purpose = FOR_CASES)                                                                        \
    X(M, "m", "LIST", integers, landmarks, RESULT, "numbers of landmarks", .least = 1,             \
      .most = 32768, .purpose = FOR_CASES)                                                         \
    X(BATCH, "batch", "LIST", integers, batches, RESULT,                                           \
      "numbers of sequences, or of matrices, in a call", .least = 1, .most = 1000000,              \
      .purpose = FOR_CASES)                                                                        \
    X(BENCH_THREADS, "threads", "LIST", integers, thread_counts, WHERE_GIVEN,                      \
      "threads of what is timed (default 1 and all processors)", .least = 1, .most = 1024)         \
    X(SUBJECT, "subject", "LIST", texts, subjects, WHERE_GIVEN,                                    \
      "what is timed, as the words before the options name it")                                    \
    X(STORAGE, "storage", "LIST", choices, storages, RESULT,                                       \
      "native: the dtypes themselves; bf16, f16, tf32: f32 with every array rounded to it",        \
      .names = storage_names, .count = offsetof(program_options, storage_count))                   \
    X(SAMPLING, "sampling", "LIST", choices, samplings, RESULT,                                    \
      "how landmarks come from tokens: pool, published, published-centred, trained (see attnum "   \
      "list samplings)",                                                                           \
      "pool: averages; published: the operator of the published SOFT code with random weights; "   \
      "published-centred: the same of tokens less their mean.",                                    \
      .names = sampling_names, .count = offsetof(program_options, sampling_count))                 \
    X(SCALE, "scale", "S", scale, scale, RESULT,                                                   \
      "the kernel's s: head, 1/(2 sqrt(d)); embed, 1/(2 sqrt(heads d)); or a number (default "     \
      "head)")                                                                                     \
    X(DISTANCE, "distance", "NAME", choice, distance, RESULT,                                      \
      "direct, expanded or clamped (default direct)", "How distances are computed.",               \
      .names = distance_names)                                                                     \
    X(QUERY, "query", "ROWxCOL", query, query_row, RESULT,                                         \
      "the patch that attends, from 0x0 (default the centre)", .unset = -1)                        \
    X(CERTIFY, "certify", "M", certify, certify, RESULT,                                           \
      "enclose what f64 cannot resolve of matrices up to M x M (0: of none)",                      \
      "By ball arithmetic.", .most = REF_CERTIFY_MOST, .unset = -1)                                \
    X(HEADS, "heads", "N", integer, heads, RESULT,                                                 \
      "the most heads looked at, evenly spread (default " TEXT_OF(DEFAULT_HEADS) ")", .least = 1,  \
      .most = 1000000)                                                                             \
    X(LAYOUT, "layout", "NAME", layout, layout, WHERE_GIVEN,                                       \
      "the order of dimensions in files (see attnum list layouts; default bhnd, hnd or nd)",       \
      "Of tokens, keys, values, outputs, their gradients and landmarks: bhnd, bnhd, nbhd, hnd, "   \
      "nhd, or, with the heads side by side in the width, bnd, nbd, nd, which may be followed "    \
      "by their number, as in bnd:8. Leading dimensions of bhnd may be missing; where a shape "    \
      "suggests another, a note says so.")                                                         \
    X(SKIP_TOKENS, "skip-tokens", "N", integer, skip_tokens, WHERE_GIVEN,                          \
      "leave out the first N tokens of every head: class tokens", "Before the grid is formed.",    \
      .most = 1000000)                                                                             \
    X(INSPECT_SAMPLING, "sampling", "NAME", text, asked, WHERE_GIVEN,                              \
      "whose safety the conclusion is about: pool, window, random, first, kmeans, leverage, "      \
      "rpcholesky, greedy, given (default the first there is)")                                    \
    X(TOKENS, "tokens", "FILE.npy", text, check.tokens, WHERE_GIVEN,                               \
      "Q, .npy: n x d, or h x n x d, or b x h x n x d")                                            \
    X(KEYS, "keys", "FILE.npy", text, check.keys, WHERE_GIVEN, "K (default: K = Q)",               \
      "Fewer heads than those of Q, in a divisor of their number, are each for as many of them "   \
      "in turn.")                                                                                  \
    X(VALUES, "values", "FILE.npy", text, check.values, WHERE_GIVEN, "V")                          \
    X(OUTPUT, "output", "FILE.npy", text, check.output, WHERE_GIVEN,                               \
      "what your kernel made of it; it may hold NaN", .purpose = FOR_JUDGING)                      \
    X(LANDMARKS, "landmarks", "FILE.npy", text, check.landmarks, WHERE_GIVEN,                      \
      "soft, softpp: L itself, m x d per head, not a sampling", .purpose = FOR_JUDGING)            \
    X(MASK, "mask", "FILE.npy", text, check.mask, WHERE_GIVEN,                                     \
      "which keys are valid: 1 or 0 as f2, f4 or f8, batch x keys")                                \
    X(QUERY_MASK, "query-mask", "FILE.npy", text, check.query_mask, WHERE_GIVEN,                   \
      "the same of queries (default: all, or the keys' if K = Q)")                                 \
    X(GRAD_OUTPUT, "grad-output", "FILE.npy", text, check.grad_output, WHERE_GIVEN,                \
      "dY, which your gradients are for", .purpose = FOR_JUDGING)                                  \
    X(GRADIENT, "gradient", "LIST", texts, check.gradients, WHERE_GIVEN,                           \
      "your gradients, NAME=FILE.npy: tokens, keys, values, or a parameter that has one (gamma, "  \
      "...)",                                                                                      \
      .check = check_named, .purpose = FOR_JUDGING)                                                \
    X(PARAM, "param", "LIST", texts, check.parameters, WHERE_GIVEN,                                \
      "NAME=VALUE, or NAME=FILE.npy (see --operator NAME --help)",                                 \
      "Parameters of the operator. Names, defaults and values: attnum check --operator NAME "      \
      "--help.",                                                                                   \
      .check = check_named)                                                                        \
    X(REFERENCE, "reference", "NAME", choice, check.reference, WHERE_GIVEN,                        \
      "what is right: auto, exact or f64 (default auto: exact where that takes seconds)",          \
      "exact: dense in long double, whatever that takes; f64: the library's own answer, whose "    \
      "rounding the output estimates.",                                                            \
      .names = reference_names, .purpose = FOR_JUDGING)                                            \
    X(MISTAKE, "mistake", "FILE", text, check.mistakes, WHERE_GIVEN,                               \
      "your own mistakes to try, lines NAME: PARAMETER=VALUE ..., scale=NUMBER or "                \
      "output=FILE.npy",                                                                           \
      "They are tried before the known ones, and named if they explain a result that FAILs. A "    \
      "word of a line is a parameter as --param takes it, a scale, or the result that the "        \
      "mistake gives: output=FILE.npy, grad-tokens=FILE.npy, and so on. Empty lines and those "    \
      "that begin with # are passed over.",                                                        \
      .purpose = FOR_JUDGING)                                                                      \
    X(EPOCHS, "epochs", "N", integer, train.epochs, RESULT,                                        \
      "passes over the images (default " TEXT_OF(DEFAULT_EPOCHS) ")", .least = 1, .most = 10000)   \
    X(IMAGES, "images", "N", integer, train.images, RESULT,                                        \
      "train on the first N images of the set (default all)", .least = 1, .most = 1000000)         \
    X(PATCH, "patch", "P", integer, train.patch, RESULT,                                           \
      "the side of a token's patch in pixels (default " TEXT_OF(DEFAULT_PATCH) ")", .least = 1,    \
      .most = 28)                                                                                  \
    X(KEEP_EPOCHS, "keep-epochs", NULL, flag, train.keep_epochs, KEPT,                             \
      "leave the weights of every epoch, too, from the initial ones, epoch 0, on")                 \
    X(F16, "f16", NULL, flag, train.f16, WHERE_GIVEN,                                              \
      "write weights in f16, half as long; they are trained and tested in f32")                    \
    X(SIDE, "side", "S", integer, train.side, RESULT,                                              \
      "enlarge the pictures to S x S pixels, a multiple of 28 (default 28)",                       \
      "Pixels are repeated; patches and the landmarks' windows keep their sizes, so that there "   \
      "are more tokens and, of soft and softpp, more landmarks.",                                  \
      .least = 28, .most = 4096)                                                                   \
    X(TRAIN_HEADS, "heads", "N", integer, train.heads, RESULT,                                     \
      "heads, each 32 wide (default " TEXT_OF(DEFAULT_TRAINED_HEADS) ")",                          \
      "The network is 32 N wide, its MLP 64 N.", .least = 1, .most = 64)                           \
    X(CHANGE, "change", "LIST", texts, train.changes, RESULT,                                      \
      "train networks that differ from the published ones in this (default none)",                 \
      "A change is trained only with the operators that have what it changes.")                    \
    X(START, "start", "WEIGHTS", text, train.start, KEPT,                                          \
      "start from the weights of FILE.npz or of a network in data/trained",                        \
      "Learned positions are interpolated to the pictures' grid.")                                 \
    X(DATASET, "dataset", "FOLDER", text, train.dataset, KEPT,                                     \
      "where Fashion-MNIST is (default that of Debian's package)")                                 \
    X(EMIT_CASE, "emit-case", "FOLDER", text, emit_case, WHERE_GIVEN,                              \
      "write inputs and answers of every variant (or --operator) to FOLDER, and stop",             \
      "With gradients and tolerances, as .npy files with a manifest.json. Answers are exact "      \
      "where that takes half a second or so, and the library's in f64 beyond; the manifest says "  \
      "which.",                                                                                    \
      .purpose = FOR_CASES)                                                                        \
    X(CASE_HEADS, "heads", "N", integer, heads, WHERE_GIVEN,                                       \
      "heads of the tokens of emitted cases (default " TEXT_OF(DEFAULT_CASE_HEADS) ")",            \
      .least = 1, .most = 1000000, .purpose = FOR_CASES)                                           \
    X(KV_HEADS, "kv-heads", "N", integer, cases.key_heads, WHERE_GIVEN,                            \
      "heads of their keys and values, each for heads/N of the tokens' (default all)",             \
      "Of emitted cases.", .least = 1, .most = 1000000, .purpose = FOR_CASES)                      \
    X(D, "d", "LIST", integers, cases.widths, WHERE_GIVEN,                                         \
      "widths of their tokens (default " TEXT_OF(DEFAULT_CASE_WIDTH) ")", "Of emitted cases.",     \
      .least = 1, .most = 4096, .purpose = FOR_CASES)                                              \
    X(VALUE_WIDTH, "value-width", "N", integer, cases.value_width, WHERE_GIVEN,                    \
      "the width of their values (default that of the tokens)", "Of emitted cases.", .least = 1,   \
      .most = 4096, .purpose = FOR_CASES)                                                          \
    X(KEY_TOKENS, "key-tokens", "N", integer, cases.key_tokens, WHERE_GIVEN,                       \
      "the number of their keys (default that of the tokens)", "Of emitted cases.", .least = 1,    \
      .most = 1000000, .purpose = FOR_CASES)                                                       \
    X(MASKS, "masks", "LIST", masks, cases.masks, WHERE_GIVEN,                                     \
      "their masks: none, padding, causal, both (default none); operators without are left out",   \
      "Of emitted cases.", .names = mask_names, .purpose = FOR_CASES)                              \
    X(BASELINE, "baseline", "FILE.csv", text, baseline, KEPT,                                      \
      "the rows that are kept (default golden/accuracy.csv)", "In the folder of data.")            \
    X(AGAINST, "against", "FILE.csv", text, against, KEPT,                                         \
      "another run's regress.csv in place of the baseline")                                        \
    X(UPDATE, "update", "REASON", reason, update, KEPT,                                            \
      "keep this run's rows as the baseline, and why")                                             \
    X(EMIT_TOKENS, "emit-tokens", "FOLDER", text, emit, ASIDE,                                     \
      "write the tokens that are timed to FOLDER as .npy files, and stop")                         \
    X(HTML, "html", "FILE", text, html, ASIDE,                                                     \
      "write a report to FILE, one page that needs nothing else",                                  \
      "That of check has verdicts and bounds, findings, maps of the heads that FAIL, and what "    \
      "was computed how.",                                                                         \
      .purpose = FOR_JUDGING)                                                                      \
    X(FORMAT, "format", "NAME", choice, format, ASIDE,                                             \
      "table, csv or json: readable text, or the published tables alone (default table)",          \
      "What stdout holds; files are written all the same. CSV is that of the files, with an "      \
      "empty line between two tables. JSON is an object per experiment that holds an array of "    \
      "rows per table; list prints one array. Missing values are null; NaN and infinities, "       \
      "which JSON lacks, are the texts nan, inf and -inf.",                                        \
      .names = format_names)                                                                       \
    X(THREADS, "threads", "N", integer, threads, ASIDE,                                            \
      "points run at a time; no result depends on it (default: all processors)", .least = 1,       \
      .most = 1024)                                                                                \
    X(OUT, "out", "FOLDER", text, out, ASIDE,                                                      \
      "where results go (claims: nowhere by default; others: results)")                            \
    X(DRY_RUN, "dry-run", NULL, flag, dry_run, ASIDE, "print the points and stop")                 \
    X(RESUME, "resume", NULL, flag, resume, ASIDE,                                                 \
      "go on where a run of the same options was stopped")                                         \
    X(SHARD, "shard", "I/N", shard, shard, ASIDE,                                                  \
      "run the I-th of N parts of the points; attnum merge joins them", .most = SHARDS_MOST)       \
    X(HELP, "help", NULL, flag, help, ASIDE, "print this and stop", .letter = 'h')

/* Lists of options end with OPTION_END. An experiment and a verb have one each; --help is always
 * there, and `attnum run` adds run_options for all experiments. */
#define OPTION_ID(id, ...) OPTION_##id,
typedef enum { OPTION_LIST(OPTION_ID) OPTION_COUNT, OPTION_END = OPTION_COUNT } option_id;
#undef OPTION_ID
#define OPTIONS(...) ((const option_id[]){__VA_ARGS__, OPTION_END})
extern const option_id every_option[], run_options[];

/* Whether a list, or null for none, has the option. */
bool options_include(const option_id *list, option_id id);
/* Appends those of `more` that the list lacks; there is always room. */
void options_add(option_id list[OPTION_COUNT + 1], const option_id *more);

/* Options that are not given have empty lists (count 0) and numbers 0: the experiment then uses its
 * default for the effort. */
typedef struct {
    effort effort;
    bool dry_run, resume, help;
    int64_t shard, shards;      /* --shard I/N, from 1; 0 where not given */
    int64_t threads;            /* always > 0 after parsing */
    integer_list thread_counts; /* bench: --threads as a list */
    const char *out;
    integer_list seeds; /* default: 1 */
    text_list inputs;
    text_list networks;
    int64_t grid_height, grid_width;
    int dtype_count; /* default: f32 and f64, in the order given */
    bool dtypes_given;
    atn_dtype dtypes[ATN_DTYPE_COUNT];
    atn_device device;
    atn_isa isa; /* as given, by ATTNUM_ISA too; atn_isa_choose resolves `auto` */
    int64_t samples;
    int64_t iterations; /* -1 where not given */
    text_list variants; /* checked: each is an atn_inverse_name */
    double alpha;       /* 0 where not given */
    integer_list stages;
    integer_list landmarks;
    atn_scale scale;
    double scale_value;
    atn_distance distance;
    int64_t query_row, query_col; /* from 0; -1 where not given */
    text_list operators;          /* checked: each is an operator's name, or one and a variant's */
    int storage_count;
    atn_storage storages[ATN_STORAGE_COUNT];
    int sampling_count;
    sampling_kind samplings[SAMPLING_COUNT];
    integer_list tokens;
    int64_t certify; /* -1 where not given */
    integer_list batches;
    const char *emit;   /* null where not given */
    text_list subjects; /* bench: --subject, and words that are no options; not checked */
    int64_t heads;      /* 0 where not given */
    const char *html;   /* null where not given */
    table_format format;
    const char *baseline, *against, *update; /* null where not given */
    check_arguments check;
    train_arguments train;
    layout layout;         /* its axes are null where not given */
    int64_t skip_tokens;   /* inspect */
    const char *asked;     /* inspect: --sampling, not checked; null where not given */
    const char *emit_case; /* null where not given */
    case_sizes cases;
    char *command;  /* the whole command line, quoted for a shell */
    text_list kept; /* as given, "--name=value" each: the options that a result may depend on */
    bool given[OPTION_COUNT];
} program_options;

/* The words of argv (what follows `run`) that are neither options nor their values, into names
 * (room for argc). Returns their number; -1 for an unknown option, with one line on stderr. */
int options_names(int argc, char **argv, const char **names);

/* Parses the options of argv into s; other words are skipped. taken: the options that may appear.
 * On a bad, unknown or unused option: one line on stderr that names the option, its value and what
 * was expected, and EXIT_USAGE; EXIT_ENVIRONMENT for a device or an instruction set that this
 * machine lacks; otherwise EXIT_PASS. After a failure s needs no options_free. s keeps pointers
 * into argv. An item given twice in a list is an error, and so is an option given twice that takes
 * no list. */
int options_parse(program_options *s, const option_id *taken, int argc, char **argv);
/* The same for the options of another verb than `run`, whose --out is `out` where not given. */
int options_parse_verb(program_options *s, const char *verb, const char *out,
                       const option_id *taken, int argc, char **argv);
/* The same for one of several experiments of a command, whose options are `all`: those that the
 * experiment does not take are skipped. */
int options_parse_part(program_options *s, const option_id *taken, const option_id *all, int argc,
                       char **argv);
/* The same for the options that another run of an experiment or verb that takes `taken` kept, and
 * no others; this machine may lack the device and the instruction set. */
int options_parse_kept(program_options *s, const char *out, const option_id *taken, int argc,
                       char **argv);
void options_free(program_options *s);

/* Whether an item of --input names a file. */
bool options_names_file(const char *input);

/* Whether --operator names a variant of an operator, or its operator, or was not given. */
bool options_include_variant(const program_options *s, const atn_operator_info *info, int variant);

/* Prints the options taken, with defaults and help, for --help. */
void options_help(const option_id *taken);

/* For the manual page, as mdoc: the names of the options taken, and every option by name with its
 * help and what else there is to say. */
void options_manual_list(const option_id *taken, FILE *file);
void options_manual(FILE *file);

/* Writes every option that a result can depend on as " name=value ...": not --threads, --out,
 * --resume, --shard; files of tokens without their folders. */
void options_fingerprint(const program_options *s, FILE *file);

/* The options that select one point of a sweep over inputs. */
typedef struct {
    const char *input; /* as --input takes it; "": none */
    int64_t stage;     /* 0: none */
    int64_t seed;
    int64_t samples;                   /* a number for which the point's sample is the last */
    int64_t landmarks;                 /* --m; 0: none */
    int64_t tokens;                    /* --n; 0: none */
    const char *sampling;              /* --sampling; null: none */
    const atn_operator_info *operator; /* --operator, with variant; null: none */
    int variant;
    bool by_effort; /* the point exists only with the run's effort (--quick, --full) */
} options_point;

/* Appends a word, quoted for a shell. Frees the command; the longer one is to be freed. */
char *options_add_word(char *command, const char *word);

/* The command that runs a point of an experiment that takes `taken` again, all else as in s but
 * --out. To be freed. */
char *options_replay(const program_options *s, const char *experiment, const option_id *taken,
                     const options_point *point);

/* The command that computes a shard of a run like s, or continues it: `attnum VERB ...`, with
 * results in `out`. To be freed. */
char *options_shard_command(const program_options *s, const char *verb, int64_t shard,
                            int64_t shards, const char *out);

/* Appends a list in TestSweeper's grammar: "a,b", "start:end", "start:end:step" (the step may be
 * negative), "start:end:xfactor", and mixtures by commas. False, and the list unchanged, on
 * anything else, overflow, an empty range, or more than 1e6 items. */
bool parse_integer_list(const char *text, integer_list *list);

#endif
