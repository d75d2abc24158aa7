/* SPDX-License-Identifier: BSD-3-Clause */
/* The timing events that atn_timer_inverses asks for. */
#ifndef CORE_TIMING_H
#define CORE_TIMING_H

#include "core/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Set the timing events of atn_timer_inverses, if any: before and after the arithmetic. */
atn_status core_inverses_start(atn_context *context);
atn_status core_inverses_stop(atn_context *context);

#ifdef __cplusplus
}
#endif
#endif
