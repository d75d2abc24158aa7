/* SPDX-License-Identifier: BSD-3-Clause */
/* metadata_matches: metadata from anywhere are those of a CSV and a run, or not; a machine is the
 * same as itself. */
#include <stdlib.h>
#include <string.h>

#include "common/metadata.h"
#include "common/report.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int code = -1;
    const char *path = target_file(data, size);
    /* an empty file and the fingerprint "f": corpus/metadata has metadata of both */
    bool same = metadata_matches(path, target_empty_file(), "f", &code);
    target_expect(same ? code == EXIT_PASS || code == EXIT_CHECK || code == EXIT_SKIPPED
                       : code == -1,
                  "the exit code of a run that has published, or none");
    char *text = must_allocate(size + 1, 1);
    if (size > 0)
        memcpy(text, data, size);
    free(metadata_machine_difference(
        text, "{\"cpu\": \"a\", \"isa\": null, \"gpu\": {\"name\": \"b\"}}"));
    free(metadata_machine_difference(text, text));
    free(text);
    return 0;
}
