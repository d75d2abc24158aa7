/* SPDX-License-Identifier: BSD-3-Clause */
#include "utf8.h"

#include <stdbool.h>

size_t utf8_length(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = bytes[0] < 0x80                       ? 1
                    : bytes[0] >= 0xc2 && bytes[0] < 0xe0 ? 2
                    : bytes[0] >= 0xe0 && bytes[0] < 0xf0 ? 3
                    : bytes[0] >= 0xf0 && bytes[0] < 0xf5 ? 4
                                                          : 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (bytes[0] == 0xe0 && bytes[1] < 0xa0) || (bytes[0] == 0xf0 && bytes[1] < 0x90);
    bool outside = (bytes[0] == 0xed && bytes[1] > 0x9f) || (bytes[0] == 0xf4 && bytes[1] > 0x8f);
    return overlong || outside ? 0 : length;
}
