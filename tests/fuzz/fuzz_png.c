/* SPDX-License-Identifier: BSD-3-Clause */
/* image_read_png: the values it returns are in [0, 1]. libpng decodes; this tests the code around
 * it. */
#include <stdlib.h>

#include "common/image.h"
#include "common/report.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    image img;
    bool read = image_read_png(target_file(data, size), &img) == EXIT_PASS;
    target_expect(read == (img.rgb != NULL), "nothing is left after a refusal");
    for (int64_t i = 0; read && i < 3 * img.height * img.width; i++)
        target_expect(img.rgb[i] >= 0 && img.rgb[i] <= 1, "every value is in [0, 1]");
    free(img.rgb);
    return 0;
}
