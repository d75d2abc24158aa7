/* SPDX-License-Identifier: BSD-3-Clause */
#include <attnum/status.h>

const char *atn_status_message(atn_status status)
{
    switch (status) {
#define ATN_STATUS_ENTRY(code, value, message)                                                     \
    case code:                                                                                     \
        return message;
        ATN_STATUS_LIST(ATN_STATUS_ENTRY)
#undef ATN_STATUS_ENTRY
    }
    return "unknown status";
}

const char *atn_status_name(atn_status status)
{
    switch (status) {
#define ATN_STATUS_ENTRY(code, value, message)                                                     \
    case code:                                                                                     \
        return #code;
        ATN_STATUS_LIST(ATN_STATUS_ENTRY)
#undef ATN_STATUS_ENTRY
    }
    return "unknown status";
}
