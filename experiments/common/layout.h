/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of dimensions in a file of tokens. The program works on b x h x n x d, batch,
 * heads, tokens, width, and brings every other order to that when it reads. */
#ifndef EXPERIMENTS_LAYOUT_H
#define EXPERIMENTS_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "npy.h"

/* X(axes, other names, who uses it). The letters are the axes in their order; without h, heads are
 * concatenated in the width, and the name may give their number: bnd:8. */
#define LAYOUT_LIST(X)                                                                             \
    X("bhnd", "bhsd", "PyTorch's scaled_dot_product_attention, Triton's tutorial")                 \
    X("bnhd", "bshd bthd btnh", "FlashAttention, JAX's dot_product_attention (there BTNH)")        \
    X("nbhd", "sbhd", "TransformerEngine's and Megatron's sbhd")                                   \
    X("hnd", "hsd", "one sequence, heads first: FlashInfer's HND")                                 \
    X("nhd", "shd thd", "one sequence, tokens first: FlashInfer's NHD, TransformerEngine's thd")   \
    X("bnd", "bsd btd",                                                                            \
      "heads side by side in the width, bnd:HEADS: PyTorch's "                                     \
      "MultiheadAttention, batch first")                                                           \
    X("nbd", "sbd tbd", "the same, tokens first: PyTorch's MultiheadAttention by default")         \
    X("nd", "sd td", "one sequence, heads side by side in the width, nd:HEADS")

typedef struct {
    const char
        *axes;     /* a row of the list; null: b x h x n x d, the first of which may be missing */
    int64_t heads; /* packed into the width; 0: not given, so one */
} layout;

/* "bnhd", "bshd", "bnd:8". Returns an error message, to be freed, or null. */
char *layout_parse(const char *text, layout *l);
/* "bnhd" or "bnd:8", as layout_parse takes it; "bhnd" where none was given. To be freed. */
char *layout_name(const layout *l);
/* Whether heads are concatenated in the width. */
bool layout_is_packed(const layout *l);

/* Reorders an array from npy_read to b x h x n x d. Returns an exit code; on failure one line on
 * stderr says which dimensions were expected. */
int layout_read(const layout *l, const char *path, npy_array *a);

/* The dimensions that an array of b x h x n x d has in a layout; returns how many. */
int layout_shape(const layout *l, const int64_t bhnd[4], int64_t shape[4]);
/* Copies its elements in that order; the arrays must not overlap. */
void layout_write(const layout *l, const int64_t bhnd[4], const double *from, double *to);

/* The reason to suspect that an array, read as b x h x n x d by default, has another order: more
 * heads than tokens, far more sequences than tokens, a width that no head has. To be freed; null:
 * there is none. */
char *layout_doubt(const char *path, const npy_array *a);

#endif
