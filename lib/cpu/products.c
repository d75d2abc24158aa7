/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of matrices, small ones first: C = A B + C or C = A B, a tile of C in registers at a
 * time (after Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, its
 * inner kernel). B is read in place where its rows are whole vectors, and packed where they are
 * not; A is never packed: a tile reads single elements of it. A few columns of C that do not fill a
 * vector may be computed as rows of C^T = B^T A^T. Every entry of C is a sum over the shared index
 * in order, DEPTH terms at a time, whatever the instruction set and the entry's place in C. */
#include <string.h>

#include "cpu/simd_set.h"

#ifdef SIMD_AVX512
enum { VECTORS = 4 };
#else
enum { VECTORS = 2 };
#endif
/* Of at most FEW_ROWS rows, tiles have up to MOST_VECTORS vectors: VECTORS would be so few sums
 * that each addition waits for the one before it. */
enum { FEW_ROWS = 2, MOST_VECTORS = 4 };
/* Terms of a sum before it is added to C: a packed panel of B stays in the second-level cache. */
enum { DEPTH = 256, MOST_ROWS = 8 };
/* Leaves a sum of a large tile in its register: gcc 12 would keep some in others in the loop than
 * after it, and move them in each round, up to eleven next to sixteen multiply-adds. Where a tile
 * has fewer than LARGE_TILE sums, it would move more of them with HOLD than without. */
#if (defined(SIMD_AVX512) || defined(SIMD_AVX2)) && !defined(__clang__)
#define HOLD(sum) __asm__("" : "+v"(sum))
#else
#define HOLD(sum) (void)(sum)
#endif
enum { LARGE_TILE = 12 };
/* From PREFETCHING_ROWS rows of a tile on, prefetching a line for each term costs less than it
 * gains. */
enum { PREFETCHING_ROWS = 4 };
/* From ROWS_PACKED rows of C on, packing B costs less than the cache misses of rows FAR apart. */
enum { ROWS_PACKED = 256, FAR = 512 };
/* Up to FLIPPED columns that do not fill a vector cost less as rows of C^T, if C has at least
 * FLIPPED_FROM columns. */
enum { FLIPPED = LANES < 8 ? 1 : LANES / 4, FLIPPED_FROM = 2 * LANES };

/* A block of the shared index and of C's columns. */
typedef struct {
    const product_terms *product; /* rows and strides of A and C; copies, stored one by one and
                                loaded in pairs, would stall */
    int64_t columns, depth;
    const real *a;
    const real *b; /* depth x whole vectors */
    int64_t b_step;
    int64_t last; /* where the last vector begins, which may overlap the one before it */
    bool add;
    real *c;
    /* What is prefetched, a line for every term of a tile: where the next tile begins, how far it
     * is from tile to tile, and where tiles begin anew after before_second of them (0: nowhere). */
    const char *ahead, *second_ahead;
    int64_t ahead_step, before_second;
} panel;

/* Stores the sums of a tile whose last vector is not full. Not inlined, because gcc would compute
 * the bounds of its loops in every call of a tile. */
static __attribute__((noinline)) void store_edge(int64_t columns, bool add, int rows, int width,
                                                 const real *sums, real *c, int64_t c_row)
{
    for (int i = 0; i < rows; i++, c += c_row)
        for (int64_t j = 0; j < columns; j++)
            c[j] = add ? c[j] + sums[i * width + j] : sums[i * width + j];
}

/* Where a tile begins to prefetch. The processor's own prefetchers stop at the end of a page and
 * run only as far ahead as loads have come, which wait for the multiply-adds. */
static inline const char *take_ahead(panel *p)
{
    const char *ahead = p->ahead;
    p->ahead = --p->before_second == 0 ? p->second_ahead : ahead + p->ahead_step;
    return ahead;
}

/* `count` tiles, one below the other from `row` on, of `rows` x `vectors` sums in registers, both
 * known to the compiler. What a tile needs is loaded once for all of them: next to a sum of 32
 * terms it costs a sixth. */
static inline __attribute__((always_inline)) void
multiply_tiles(int rows, int vectors, bool prefetches, panel *p, int64_t row, int64_t count)
{
    int64_t a_row = p->product->a_row, a_step = p->product->a_step, c_row = p->product->c_row,
            b_step = p->b_step, depth = p->depth, columns = p->columns, last = p->last;
    bool add = p->add;
    const real *from = p->a + row * a_row, *panel_b = p->b;
    real *c = p->c + row * c_row;
    for (; count > 0; count--, from += rows * a_row, c += rows * c_row) {
        lanes sums[MOST_ROWS][MOST_VECTORS];
        const real *a = from, *b = panel_b;
        const char *ahead = prefetches ? take_ahead(p) : NULL;
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sums[i][v] = (lanes){0};
        int64_t at = 0; /* the one counter: another's additions would take a port from these */
        do {            /* depth > 0, which lets the compiler keep the sums in registers */
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++)
                    sums[i][v] +=
                        a[i * a_row] * *(const lanes *)(b + (v < vectors - 1 ? v * LANES : last));
            if (rows * vectors >= LARGE_TILE)
#pragma GCC unroll 8
                for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
                    for (int v = 0; v < vectors; v++)
                        HOLD(sums[i][v]);
            a += a_step;
            b += b_step;
            if (prefetches)
                __builtin_prefetch(ahead + at);
        } while ((at += LINE) < depth * LINE);
        if (columns < last + LANES) {
            real edge[MOST_ROWS * MOST_VECTORS * LANES];
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++)
                    ((lanes *)edge)[i * vectors + v] = sums[i][v];
            store_edge(columns, add, rows, vectors * LANES, edge, c, c_row);
            continue;
        }
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
                real *first = c + i * c_row;
                lanes *to = v < vectors - 1 ? (lanes *)first + v : (lanes *)(first + last);
                if (add)
                    *to += sums[i][v];
                else
                    *to = sums[i][v];
            }
    }
}

/* One function per tile: in a single function gcc keeps fewer sums in registers. Prefetching takes
 * a load of the eleven or so of a round, so there are tiles that do and tiles that do not. */
#define TILE(rows, vectors)                                                                        \
    static void tile_##rows##_##vectors(panel *p, int64_t row, int64_t count)                      \
    {                                                                                              \
        multiply_tiles(rows, vectors, false, p, row, count);                                       \
    }                                                                                              \
    static void ahead_##rows##_##vectors(panel *p, int64_t row, int64_t count)                     \
    {                                                                                              \
        multiply_tiles(rows, vectors, rows >= PREFETCHING_ROWS, p, row, count);                    \
    }
#define NAME(rows, vectors)  tile_##rows##_##vectors,
#define AHEAD(rows, vectors) ahead_##rows##_##vectors,
#define TO_2(X, vectors)     X(1, vectors) X(2, vectors)
#define TO_6(X, vectors)     TO_2(X, vectors) X(3, vectors) X(4, vectors) X(5, vectors) X(6, vectors)
#define TO_8(X, vectors)     TO_6(X, vectors) X(7, vectors) X(8, vectors)

TO_8(TILE, 1)
#ifdef SIMD_AVX512
TO_8(TILE, 2)
TO_8(TILE, 3)
TO_6(TILE, 4)
#else
TO_6(TILE, 2)
TO_2(TILE, 3)
TO_2(TILE, 4)
#endif

typedef void tile_function(panel *p, int64_t row, int64_t count);

/* By vectors and rows. A tile has as many sums as fit into the registers together with a row of B
 * and an element of A, and at least the eight that keep two multiply-adds per cycle of four cycles'
 * latency busy. */
static const struct {
    int most;
    tile_function *of_rows[MOST_ROWS], *ahead_of_rows[MOST_ROWS];
} tiles[] = {
    {8, {TO_8(NAME, 1)}, {TO_8(AHEAD, 1)}},
#ifdef SIMD_AVX512
    {8, {TO_8(NAME, 2)}, {TO_8(AHEAD, 2)}},
    {8, {TO_8(NAME, 3)}, {TO_8(AHEAD, 3)}},
    {6, {TO_6(NAME, 4)}, {TO_6(AHEAD, 4)}},
#else
    {6, {TO_6(NAME, 2)}, {TO_6(AHEAD, 2)}},
    {FEW_ROWS, {TO_2(NAME, 3)}, {TO_2(AHEAD, 3)}},
    {FEW_ROWS, {TO_2(NAME, 4)}, {TO_2(AHEAD, 4)}},
#endif
};

/* Tiles whose numbers of rows differ by at most one: a tile of few rows waits for its own sums. */
static void multiply_rows(int vectors, panel *p)
{
    int64_t rows = p->product->rows, most = tiles[vectors - 1].most, least = rows, larger = 0,
            count = 1;
    tile_function *const *of_rows =
        p->ahead ? tiles[vectors - 1].ahead_of_rows : tiles[vectors - 1].of_rows;
    if (rows == 0)
        return;
    if (rows > most) {
        count = (rows + most - 1) / most;
        least = rows / count;
        larger = rows % count;
    }
    p->before_second = p->second_ahead ? (count + 1) / 2 : 0;
    if (larger > 0)
        of_rows[least](p, 0, larger);
    of_rows[least - 1](p, larger * (least + 1), count - larger);
}

/* ---- Packing ---- */

/* to, QUAD rows `width` apart, is the transpose of QUAD rows `stride` apart. */
static inline void transpose_quad(const real *from, int64_t stride, real *to, int64_t width)
{
    quad rows[QUAD];
#pragma GCC unroll 4
    for (int i = 0; i < QUAD; i++)
        rows[i] = *(const quad *)(from + i * stride);
    transpose_quads(rows);
#pragma GCC unroll 4
    for (int i = 0; i < QUAD; i++)
        *(quad *)(to + i * width) = rows[i];
}

/* `columns` of B unchanged, and zeros up to `width`. */
static void pack_rows(int64_t depth, int64_t columns, int64_t width, const real *from,
                      int64_t stride, real *to)
{
    for (int64_t k = 0; k < depth; k++, from += stride, to += width) {
        int64_t j = 0;
        for (; j + LANES <= columns; j += LANES)
            *(lanes *)(to + j) = *(const lanes *)(from + j);
        if (j < width)
            *(lanes *)(to + j) = (lanes){0};
        for (; j < columns; j++)
            to[j] = from[j];
    }
}

/* Columns of B that are rows in memory, `stride` apart. */
static void pack_columns(int64_t depth, int64_t columns, int64_t width, const real *from,
                         int64_t stride, real *to)
{
    int64_t j = 0;
    for (; j + QUAD <= columns; j += QUAD) {
        const real *rows = from + j * stride;
        int64_t k = 0;
        for (; k + QUAD <= depth; k += QUAD)
            transpose_quad(rows + k, stride, to + k * width + j, width);
        for (; k < depth; k++)
            for (int i = 0; i < QUAD; i++)
                to[k * width + j + i] = rows[i * stride + k];
    }
    for (; j < width; j++)
        for (int64_t k = 0; k < depth; k++)
            to[k * width + j] = j < columns ? from[j * stride + k] : 0;
}

void R(transpose_padded)(int64_t rows, int64_t columns, const real *from, int64_t stride, real *to,
                         int64_t width)
{
    pack_columns(columns, rows, width, from, stride, to);
}

/* ---- Blocks ---- */

/* The number of vectors for the rest of a row. If the last one is not full it may overlap the
 * vector before it, whose columns are then computed twice with the same result; not where sums are
 * added to C. */
static int choose_vectors(int64_t rows, int64_t left, bool may_overlap)
{
    int most = rows <= FEW_ROWS ? MOST_VECTORS : VECTORS;
    if (left >= most * LANES)
        return most;
    if (left < LANES)
        return 1;
    return (int)(may_overlap ? (left + LANES - 1) / LANES : left / LANES);
}

/* Multiplies one panel; returns its number of columns. */
static int64_t multiply_panel(const product_terms *p, int64_t k, int64_t column, int64_t end,
                              real *packed)
{
    int64_t left = end - column;
    bool may_overlap = !p->add && p->inner <= DEPTH && p->b_column == 1;
    int vectors = choose_vectors(p->rows, left, may_overlap);
    int64_t width = vectors * LANES, columns = left < width ? left : width;
    bool overlaps = may_overlap && columns >= LANES;
    panel q = {.product = p,
               .columns = columns,
               .depth = p->inner - k < DEPTH ? p->inner - k : DEPTH,
               .a = p->a + k * p->a_step,
               .b = p->b + k * p->b_step + column * p->b_column,
               .b_step = p->b_step,
               .last = (overlaps ? columns : width) - LANES,
               .add = p->add || k > 0,
               .c = p->c + column};
    bool far = p->rows >= ROWS_PACKED && p->b_step >= FAR && columns == width;
    bool packs = p->b_column != 1 || far || (columns < width && !overlaps);
    if (packs) {
        if (p->b_column != 1)
            pack_columns(q.depth, columns, width, q.b, p->b_column, packed);
        else
            pack_rows(q.depth, columns, width, q.b, p->b_step, packed);
        q.b = packed;
        q.b_step = width;
    }
    if (k == 0 && column == 0 && (p->ahead[0] || p->ahead[1])) {
        q.ahead = (const char *)(p->ahead[0] ? p->ahead[0] : p->ahead[1]);
        q.second_ahead = (const char *)(p->ahead[0] ? p->ahead[1] : NULL);
        q.ahead_step = q.depth * LINE;
    }
    multiply_rows(vectors, &q);
    return columns;
}

/* The first `columns` of C. */
static void multiply_columns(const product_terms *p, int64_t columns, real *packed)
{
    for (int64_t k = 0; k < p->inner; k += DEPTH)
        for (int64_t column = 0; column < columns;)
            column += multiply_panel(p, k, column, columns, packed);
}

/* Columns of C from `first` on, for a transposed A, as rows of C^T = B^T A^T: a vector then holds
 * entries of a column of C. */
static void multiply_flipped(const product_terms *p, int64_t first, real *packed)
{
    enum { ROWS = 256 };
    real rows[FLIPPED * ROWS];
    for (int64_t row = 0; row < p->rows; row += ROWS) {
        int64_t count = p->rows - row < ROWS ? p->rows - row : ROWS;
        real *c = p->c + row * p->c_row + first;
        product_terms flipped = {.rows = p->columns - first,
                                 .inner = p->inner,
                                 .a = p->b + first * p->b_column,
                                 .a_row = p->b_column,
                                 .a_step = p->b_step,
                                 .b = p->a + row,
                                 .b_step = p->a_step,
                                 .b_column = 1,
                                 .add = p->add,
                                 .c = rows,
                                 .c_row = ROWS};
        for (int64_t j = 0; p->add && j < flipped.rows; j++)
            for (int64_t i = 0; i < count; i++)
                rows[j * ROWS + i] = c[i * p->c_row + j];
        multiply_columns(&flipped, count, packed);
        for (int64_t j = 0; j < flipped.rows; j++)
            for (int64_t i = 0; i < count; i++)
                c[i * p->c_row + j] = rows[j * ROWS + i];
    }
}

static void clear(const product_terms *p)
{
    for (int64_t i = 0; i < p->rows; i++)
        memset(p->c + i * p->c_row, 0, (size_t)p->columns * sizeof(real));
}

void R(multiply)(const product_terms *p)
{
    real packed[DEPTH * MOST_VECTORS * LANES] __attribute__((aligned(BYTES)));
    int64_t rest = p->columns % LANES, whole = p->columns - rest;
    bool flips =
        p->a_row == 1 && rest > 0 && rest <= FLIPPED && p->rows >= FLIPPED_FROM && p->inner > 0;
    if (p->inner == 0 && !p->add)
        clear(p);
    multiply_columns(p, flips ? whole : p->columns, packed);
    if (flips)
        multiply_flipped(p, whole, packed);
}
