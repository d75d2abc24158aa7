/* SPDX-License-Identifier: BSD-3-Clause */
#include "staged.h"

#include <stdio.h>
#include <stdlib.h>

/* A context that has failed returns the failure from every call, for the test to see. */
static void demand(const staged *s, atn_status status)
{
    if (status == ATN_OK || status == ATN_ERR_DEVICE)
        return;
    fprintf(stderr, "staging: %s: %s\n", atn_status_message(status), atn_last_error(s->context));
    abort();
}

staged staged_open(atn_context *context)
{
    return (staged){.context = context};
}

static bool on_host(const staged *s)
{
    return atn_context_device(s->context) == ATN_CPU;
}

const void *staged_bytes(staged *s, const void *host, size_t bytes)
{
    void *memory;
    if (!host || on_host(s))
        return host;
    if (s->count == STAGED_MOST)
        abort();
    demand(s, atn_allocate(s->context, bytes, &memory));
    demand(s, atn_upload(s->context, memory, host, bytes));
    return s->owned[s->count++] = memory;
}

/* The view of the copy. */
static atn_tensor *copied(staged *s, const guarded *t, atn_tensor *view)
{
    size_t size = atn_dtype_size(t->view.dtype);
    *view = t->view;
    if (on_host(s))
        return view;
    const char *memory = staged_bytes(s, t->memory, (size_t)t->elements * size);
    view->data = memory ? (char *)memory + (size_t)t->first * size : NULL;
    return view;
}

const atn_tensor *staged_input(staged *s, const guarded *t, atn_tensor *view)
{
    return t && t->memory ? copied(s, t, view) : NULL;
}

atn_tensor *staged_output(staged *s, guarded *t, atn_tensor *view)
{
    if (!t || !t->memory)
        return NULL;
    copied(s, t, view);
    if (s->output_count == STAGED_MOST)
        abort();
    s->outputs[s->output_count].tensor = t;
    s->outputs[s->output_count++].view = *view;
    return view;
}

/* Bytes from a view's first element to its last. */
static size_t bytes_of(const atn_tensor *t)
{
    if (!t->data || atn_tensor_check(t) != ATN_OK || t->batch * t->heads * t->rows * t->cols == 0)
        return 0;
    return (size_t)((t->batch - 1) * t->batch_stride + (t->heads - 1) * t->head_stride +
                    (t->rows - 1) * t->row_stride + t->cols) *
           atn_dtype_size(t->dtype);
}

atn_tensor staged_view(staged *s, const atn_tensor *view)
{
    atn_tensor copy = *view;
    if (bytes_of(view) > 0)
        copy.data = (void *)staged_bytes(s, view->data, bytes_of(view));
    return copy;
}

void staged_fetch(staged *s, const atn_tensor *view, const atn_tensor *copy)
{
    if (!on_host(s) && bytes_of(view) > 0)
        demand(s, atn_download(s->context, view->data, copy->data, bytes_of(view)));
}

atn_attention_desc staged_desc(staged *s, const atn_attention_desc *desc,
                               const atn_attention_shape *shape)
{
    atn_attention_desc device = *desc;
    void *memory = NULL;
    if (on_host(s))
        return device;
    demand(s, atn_attention_upload(s->context, desc, shape, &device, &memory));
    s->owned[s->count++] = memory;
    return device;
}

void staged_close(staged *s)
{
    for (int i = 0; i < s->output_count && !on_host(s); i++) {
        guarded *t = s->outputs[i].tensor;
        size_t size = atn_dtype_size(t->view.dtype);
        const char *memory = s->outputs[i].view.data;
        demand(s, atn_download(s->context, t->memory, memory - (size_t)t->first * size,
                               (size_t)t->elements * size));
    }
    for (int i = 0; i < s->count; i++)
        atn_release(s->context, s->owned[i]);
    s->count = s->output_count = 0;
}
