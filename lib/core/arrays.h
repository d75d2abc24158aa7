/* SPDX-License-Identifier: BSD-3-Clause */
/* The arrays that a description points to. */
#ifndef CORE_ARRAYS_H
#define CORE_ARRAYS_H

#include "core/internal.h"

/* ATN_ERR_VALUE if the device cannot read one of them. */
atn_status core_check_arrays(atn_context *context, const atn_attention_desc *desc,
                             const atn_attention_shape *shape);

/* *desc without the tensors that its operator does not read, which are not checked either: whoever
 * gets the copy cannot take them for given. */
atn_attention_desc core_read_tensors(const atn_attention_desc *desc);

/* ATN_ERR_ALIAS if an output overlaps an array that the description's operator reads. The
 * description has been checked. */
atn_status core_check_arrays_overlap(atn_context *context, const char *out_name,
                                     const atn_tensor *out, const atn_attention_desc *desc,
                                     const atn_attention_shape *shape);

#endif
