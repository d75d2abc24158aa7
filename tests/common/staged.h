/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on a device with separate memory: guarded tensors and descriptions are copied to it with
 * their margins, and back. On the CPU everything stays where it is. A device that fails ends the
 * program. */
#ifndef TESTS_STAGED_H
#define TESTS_STAGED_H

#include <attnum/attnum.h>

#include "guarded.h"

enum { STAGED_MOST = 24 };

/* What one call has on the device. */
typedef struct {
    atn_context *context;
    void *owned[STAGED_MOST];
    int count;
    struct {
        guarded *tensor;
        atn_tensor view;
    } outputs[STAGED_MOST];
    int output_count;
} staged;

staged staged_open(atn_context *context);

/* The tensor's copy; null stays null. staged_close copies an output back. */
const atn_tensor *staged_input(staged *s, const guarded *tensor, atn_tensor *view);
atn_tensor *staged_output(staged *s, guarded *tensor, atn_tensor *view);

/* A copy of a view's memory including gaps; what cannot be copied (null, not a valid view) stays as
 * it is. staged_fetch copies it back. */
atn_tensor staged_view(staged *s, const atn_tensor *view);
void staged_fetch(staged *s, const atn_tensor *view, const atn_tensor *copy);

/* A copy of bytes; null stays null. */
const void *staged_bytes(staged *s, const void *host, size_t bytes);

/* The description with its arrays on the device. */
atn_attention_desc staged_desc(staged *s, const atn_attention_desc *desc,
                               const atn_attention_shape *shape);

/* Copies outputs back and frees the copies. */
void staged_close(staged *s);

#endif
