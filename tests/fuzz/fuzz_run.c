/* SPDX-License-Identifier: BSD-3-Clause */
/* What `attnum merge` reads in the JSON of a shard: experiment, version and options, or a refusal.
 */
#include "merge/command.c"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    shard_run r = {0};
    char path[] = "shard", *text = must_allocate(size + 1, 1);
    if (size > 0)
        memcpy(text, data, size);
    if (open_run(&r, &(shard_file){.path = path, .run = text}) == EXIT_PASS) {
        program_options s;
        char **words;
        target_expect(r.e != NULL, "there is an experiment");
        if (parse_run(&r, &s, "out", &words) == EXIT_PASS) {
            char *command = options_shard_command(&s, "run", 1, 2, "out");
            target_expect(command && *command, "a shard can be asked for");
            free(command);
            options_free(&s);
        }
        free(words);
    }
    cJSON_Delete(r.run);
    free(text);
    return 0;
}
