/* SPDX-License-Identifier: BSD-3-Clause */
/* options_parse: a line of words is a command, or refused; what a run keeps of its options gives
 * the same options to `attnum merge`. The first byte says which options there are. */
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "common/report.h"
#include "target.h"

enum { MOST_WORDS = 16 };

static char *fingerprint(const program_options *s)
{
    char *text;
    size_t size;
    FILE *memory = must_open_text(&text, &size);
    options_fingerprint(s, memory);
    must_close_text(memory, &text, &size);
    return text;
}

/* Splits text at line feeds, in place. */
static int split(char *text, char *words[MOST_WORDS + 1])
{
    int count = 0;
    for (char *word = text; word && count < MOST_WORDS; count++) {
        words[count] = word;
        word = strchr(word, '\n');
        if (word)
            *word++ = '\0';
    }
    words[count] = NULL;
    return count;
}

static void check_kept(const program_options *s, const option_id *taken)
{
    program_options again;
    char *before = fingerprint(s), *after;
    target_expect(options_parse_kept(&again, "out", taken, s->kept.count, (char **)s->kept.items) ==
                      EXIT_PASS,
                  "what is kept can be read");
    after = fingerprint(&again);
    target_expect(strcmp(before, after) == 0, "what is kept are the same options");
    free(after);
    free(before);
    options_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const option_id *const taken[] = {
        every_option, NULL, run_options,
        OPTIONS(OPTION_SUBJECT, OPTION_EMIT_CASE, OPTION_N, OPTION_OUTPUT)};
    if (size == 0)
        return 0;
    program_options s;
    char *text = must_allocate(size, 1), *words[MOST_WORDS + 1];
    const char *names[MOST_WORDS + 1];
    memcpy(text, data + 1, size - 1);
    int count = split(text, words);
    int found = options_names(count, words, names);
    target_expect(found >= -1 && found <= count, "so many words");
    option_id all[OPTION_COUNT + 1] = {OPTION_END};
    options_add(all, taken[data[0] & 3]);
    if (!(data[0] & 4))
        options_add(all, run_options);
    int code = data[0] & 4 ? options_parse_verb(&s, "verb", "out", taken[data[0] & 3], count, words)
                           : options_parse(&s, taken[data[0] & 3], count, words);
    target_expect(code == EXIT_PASS || code == EXIT_USAGE || code == EXIT_ENVIRONMENT,
                  "an exit code");
    if (code == EXIT_PASS) {
        if (!s.help)
            check_kept(&s, all);
        options_free(&s);
    }
    free(text);
    return 0;
}
