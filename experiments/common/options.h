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
#include "sampling.h"
#include "table.h"

/* Bits of experiment::options and verb::options. --help is always there; `attnum run` adds USES_RUN
 * for all experiments. */
enum {
    USES_INPUT = 1 << 0,      /* --input NAME[:PARAMETER]|FILE.npy,... */
    USES_GRID = 1 << 1,       /* --grid HxW, for FILE.npy */
    USES_DTYPE = 1 << 2,      /* --dtype f32,f64 */
    USES_DEVICE = 1 << 3,     /* --device cpu */
    USES_SAMPLES = 1 << 4,    /* --samples N: drawn per input and seed */
    USES_ITERATIONS = 1 << 5, /* --iterations T */
    USES_VARIANT = 1 << 6,    /* --variant nr-paper,nr-soft,...: atn_inverse_name */
    USES_ALPHA = 1 << 7,      /* --alpha X, for --variant nr */
    USES_STAGE = 1 << 8,      /* --stage 1,2,3 */
    USES_LANDMARKS = 1 << 9,  /* --m 4,16,64 or 4:64:x2 */
    USES_SCALE = 1 << 10,     /* --scale head|embed|NUMBER */
    USES_DISTANCE = 1 << 11,  /* --distance direct|expanded|clamped */
    USES_QUERY = 1 << 12,     /* --query ROWxCOL: one patch of a photograph */
    USES_OPERATOR = 1 << 13,  /* --operator NAME[/VARIANT],... */
    USES_STORAGE = 1 << 14,   /* --storage native,bf16,...: atn_storage_name */
    USES_TOKENS = 1 << 15,    /* --n 196,784 */
    USES_CERTIFY = 1 << 16,   /* --certify M */
    USES_BATCH = 1 << 17,     /* --batch 1,64 */
    USES_BENCH = 1 << 18,  /* --subject LIST, --emit-tokens FOLDER, --threads LIST, --op, --isa */
    USES_FORMAT = 1 << 19, /* --format table|csv|json */
    USES_KEPT = 1 << 20,   /* --baseline FILE, --against FILE, --update REASON */
    USES_SHARD = 1 << 21,  /* --shard I/N */
    USES_CHECK = 1 << 22,  /* --tokens FILE.npy, --output FILE.npy, ..., --param NAME=VALUE */
    USES_EMIT_CASE = 1 << 23, /* --emit-case FOLDER, and --n, --d, ... of what it writes */
    USES_INSPECT = 1 << 24,   /* --heads N, --html FILE, --skip-tokens N, ... */
    USES_SAMPLING = 1 << 25,  /* --sampling pool,published,...: sampling_name */
    USES_SEED = 1 << 26,      /* --seed 1:5 */
    USES_THREADS = 1 << 27,   /* --threads N, --isa NAME */
    USES_OUT = 1 << 28,       /* --out FOLDER */
    USES_DRY_RUN = 1 << 29,   /* --dry-run */
    USES_SWEEP = 1 << 30,     /* --quick --full --resume */
    USES_RUN =
        USES_SEED | USES_THREADS | USES_OUT | USES_DRY_RUN | USES_SWEEP | USES_SHARD | USES_FORMAT,
};

enum { SHARDS_MOST = 1000000 };
typedef enum { EFFORT_QUICK, EFFORT_DEFAULT, EFFORT_FULL, EFFORT_COUNT } effort;

typedef struct {
    int count;
    const char **items;
} text_list;

typedef struct {
    int count;
    int64_t *items;
} integer_list;

/* X(code, name): what `check` holds a result against. */
#define REFERENCE_CHOICE_LIST(X)                                                                   \
    X(REFERENCE_AUTO, "auto")                                                                      \
    X(REFERENCE_EXACT, "exact")                                                                    \
    X(REFERENCE_F64, "f64")

#define REFERENCE_CHOICE_CODE(code, name) code,
typedef enum { REFERENCE_CHOICE_LIST(REFERENCE_CHOICE_CODE) REFERENCE_CHOICES } reference_choice;
#undef REFERENCE_CHOICE_CODE

/* What `check` is given: paths, null where not given. */
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

/* Lists are empty (count 0) and numbers 0 where the command line says nothing: the experiment then
 * takes its own default for the effort. */
typedef struct {
    effort effort;
    bool dry_run, resume, help;
    int64_t shard, shards;      /* --shard I/N, from 1; 0 where not given */
    int threads;                /* always > 0 after parsing */
    integer_list thread_counts; /* bench: --threads as a list */
    const char *out;
    integer_list seeds; /* default: 1 */
    text_list inputs;
    int64_t grid_height, grid_width;
    int dtype_count; /* default: f32 and f64, in the order given */
    bool dtypes_given;
    atn_dtype dtypes[ATN_DTYPE_COUNT];
    atn_device device;
    atn_isa isa; /* as given; atn_isa_choose says what it comes to */
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
    layout layout;         /* its axes are null where not given */
    int64_t skip_tokens;   /* inspect */
    const char *asked;     /* inspect: --sampling, not checked; null where not given */
    const char *emit_case; /* null where not given */
    case_sizes cases;
    char *command;  /* the whole command line, quoted for a shell */
    text_list kept; /* as given, "--name=value" each: the options that a result may depend on */
} program_options;

/* The words of argv (what follows `run`) that are neither options nor their values, into names
 * (room for argc). Returns their number; -1 for an unknown option, with one line on stderr. */
int options_names(int argc, char **argv, const char **names);

/* Parses the options of argv into s; other words are passed over. used: the union of the options
 * that may appear. On a bad, unknown or unused option: one line on stderr that names the option,
 * what it was given and what it expects, and EXIT_USAGE; EXIT_ENVIRONMENT for a device or an
 * instruction set that is not here; otherwise EXIT_PASS. After a failure s needs no options_free.
 * s keeps pointers into argv. An item given twice in a list is an error, and so is an option given
 * twice that takes no list. */
int options_parse(program_options *s, unsigned used, int argc, char **argv);
/* The same for the options of another verb than `run`, whose --out is `out` where not given. */
int options_parse_verb(program_options *s, const char *verb, const char *out, unsigned used,
                       int argc, char **argv);
/* The same for the options that another run kept, and for no others, on any machine: neither
 * device nor instruction set needs to be here. */
int options_parse_kept(program_options *s, const char *out, int argc, char **argv);
void options_free(program_options *s);

/* Whether an item of --input names a file. */
bool options_names_file(const char *input);

/* Whether --operator names a variant of an operator, or its operator, or was not given. */
bool options_take_variant(const program_options *s, const atn_operator_info *info, int variant);

/* Prints the options in `used`, with defaults and help, for --help. */
void options_help(unsigned used);

/* Writes all that a result may depend on as " name=value ...": not --threads, --out, --resume,
 * --shard; of files of tokens the name without its folders. */
void options_fingerprint(const program_options *s, FILE *file);

/* What picks one point of a sweep over inputs. */
typedef struct {
    const char *input; /* as --input takes it; "": none */
    int64_t stage;     /* 0: none */
    int64_t seed;
    int64_t samples;                   /* so many that the point's own is the last of them */
    int64_t landmarks;                 /* --m; 0: none */
    int64_t tokens;                    /* --n; 0: none */
    const char *sampling;              /* --sampling; null: none */
    const atn_operator_info *operator; /* --operator, with variant; null: none */
    int variant;
    bool by_effort; /* --quick and --full decide whether it is there */
} options_point;

/* The command that runs a point of an experiment with options `used` again, all else as in s but
 * --out. To be freed. */
char *options_replay(const program_options *s, const char *experiment, unsigned used,
                     const options_point *point);

/* The command that makes a shard of a run like s, or goes on with it: `attnum VERB ...`, with
 * results in `out`. To be freed. */
char *options_shard_command(const program_options *s, const char *verb, int64_t shard,
                            int64_t shards, const char *out);

/* Appends a list in TestSweeper's grammar: "a,b", "start:end", "start:end:step" (the step may be
 * negative), "start:end:xfactor", and mixtures by commas. False, and the list as before, on
 * anything else, overflow, a range that holds nothing, or more than 1e6 items. */
bool parse_integer_list(const char *text, integer_list *list);

#endif
