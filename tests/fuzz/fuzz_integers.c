/* SPDX-License-Identifier: BSD-3-Clause */
/* parse_integer_list: the list written out with commas is the same list; a refusal changes none. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "common/report.h"
#include "target.h"

enum { COMPARED = 1000 }; /* longer lists would take the time */

static void check_list(const integer_list *list)
{
    integer_list again = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    target_expect(memory != NULL, "there is memory");
    for (int i = 0; i < list->count; i++)
        fprintf(memory, "%s%" PRId64, i ? "," : "", list->items[i]);
    fclose(memory);
    target_expect(parse_integer_list(text, &again) && again.count == list->count &&
                      memcmp(again.items, list->items, (size_t)list->count * sizeof *list->items) ==
                          0,
                  "the same list, written out");
    target_expect(!parse_integer_list("1:", &again) && again.count == list->count,
                  "a refusal leaves the list as it was");
    free(again.items);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = must_allocate(size + 1, 1);
    if (size > 0)
        memcpy(text, data, size);
    integer_list list = {0};
    bool read = parse_integer_list(text, &list);
    target_expect(read ? list.count >= 1 && list.count <= 1000000 : list.count == 0,
                  "1 to 1e6 items, or none");
    if (read && list.count <= COMPARED)
        check_list(&list);
    free(list.items);
    free(text);
    return 0;
}
