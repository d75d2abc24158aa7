/* SPDX-License-Identifier: BSD-3-Clause */
/* The marks that atn_timer_inverses sets. */
#ifndef CORE_TIMING_H
#define CORE_TIMING_H

#include "core/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the marks of atn_timer_inverses, if there are any: before and after the arithmetic. */
atn_status core_inverses_start(atn_context *context);
atn_status core_inverses_stop(atn_context *context);

#ifdef __cplusplus
}
#endif
#endif
