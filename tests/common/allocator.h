/* SPDX-License-Identifier: BSD-3-Clause */
/* An allocator that counts, fails on demand and checks the ends of its blocks. */
#ifndef TESTS_ALLOCATOR_H
#define TESTS_ALLOCATOR_H

#include <stdint.h>

#include <attnum/context.h>

typedef struct {
    int64_t calls;     /* allocations asked for */
    int64_t fail_at;   /* the call that gets null; 0: none */
    int64_t live;      /* blocks not released */
    int64_t overruns;  /* blocks released with a damaged end */
    size_t last_bytes; /* of the latest block */
} allocator_counts;

/* Blocks are filled with bytes 0xff (NaN as f32 and f64), so memory read before it was written
 * shows in the results. */
atn_allocator allocator_counting(allocator_counts *counts);

#endif
