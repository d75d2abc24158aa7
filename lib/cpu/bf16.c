/* SPDX-License-Identifier: BSD-3-Clause */
/* Products, pairs and weights in bf16, in whole vectors. */
#include "cpu/bf16.h"

#include <float.h>
#include <string.h>

#include "cpu/heads.h"
#include "cpu/simd_width.h"

typedef float lanes __attribute__((vector_size(BYTES), aligned(sizeof(float)), may_alias));
typedef int32_t bits __attribute__((vector_size(BYTES), aligned(sizeof(float)), may_alias));
typedef real narrow_lanes __attribute__((vector_size(BYTES / 2), aligned(sizeof(real)), may_alias));
typedef int32_t pair_lanes __attribute__((vector_size(BYTES), aligned(sizeof(real)), may_alias));
enum { LANES = BYTES / sizeof(float) };
_Static_assert(SIMD_COLUMNS % LANES == 0, "rows of sums are whole vectors");

/* A tile of sums in registers. */
#if defined(SIMD_AVX512)
enum { ROWS = 8, VECTORS = 2 };
#else
enum { ROWS = 4, VECTORS = 2 };
#endif

/* ---- Products ---- */

static inline lanes add_pair(lanes sum, bits a, bits b)
{
#ifdef __AVX512BF16__
    return (lanes)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
    const int32_t second = (int32_t)0xffff0000;
    sum += (lanes)(a & second) * (lanes)(b & second);
    return sum + (lanes)(a << 16) * (lanes)(b << 16);
#endif
}

static inline bits broadcast(const real *pair)
{
    int32_t both;
    memcpy(&both, pair, sizeof both);
    return (bits){0} + both;
}

/* rows x vectors, both known to the compiler. */
static inline __attribute__((always_inline)) void tile(int rows, int vectors, const bf16_terms *t,
                                                       const real *a, const bf16_pair *b, float *c)
{
    lanes sums[ROWS][VECTORS] = {{{0}}};
    int64_t pairs = t->pairs, a_row = t->a_row, a_step = t->a_step, b_width = t->b_width,
            c_row = t->c_row; /* what c points to might be *t, as far as the compiler knows */
    for (int i = 0; t->add && i < rows; i++)
        for (int v = 0; v < vectors; v++)
            sums[i][v] = ((const lanes *)(c + i * c_row))[v];
    for (int64_t k = 0; k < pairs; k++, a += a_step, b += b_width)
        for (int i = 0; i < rows; i++) {
            bits factor = broadcast(a + i * a_row);
            for (int v = 0; v < vectors; v++)
                sums[i][v] = add_pair(sums[i][v], factor, ((const bits *)b)[v]);
        }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            ((lanes *)(c + i * c_row))[v] = sums[i][v];
}

static inline __attribute__((always_inline)) void tiles(int rows, const bf16_terms *t, int64_t i)
{
    const real *a = t->a + i * t->a_row;
    float *c = t->c + i * t->c_row;
    int64_t j = 0;
    for (; j + VECTORS * LANES <= t->columns; j += VECTORS * LANES)
        tile(rows, VECTORS, t, a, t->b + j, c + j);
    for (; j < t->columns; j += LANES)
        tile(rows, 1, t, a, t->b + j, c + j);
}

void R(multiply_pairs)(const bf16_terms *t)
{
    int64_t i = 0;
    for (; i + ROWS <= t->rows; i += ROWS)
        tiles(ROWS, t, i);
    for (; i < t->rows; i++)
        tiles(1, t, i);
}

#ifdef SIMD_AMX
/* AMX's registers are tiles of at most 16 rows of 64 bytes. One instruction adds A B to C, which
 * has 16 x 16 numbers of f32, where A and B have 16 x 16 pairs each. It adds up the first products
 * of all pairs, and the second ones, each from 0, then the two sums, then that and C: other bits
 * than multiply_pairs. Subnormal numbers count as 0. */
enum { AMX_ROWS = 16 };

/* What LDTILECFG reads. Of the eight tiles 0 to 3 are for C, 4 and 5 for A, 6 and 7 for B. */
typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_config;
_Static_assert(sizeof(amx_config) == 64 && (int)SIMD_COLUMNS == (int)AMX_ROWS,
               "as the processor has it");

static void configure_amx(int rows, int pairs)
{
    amx_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.rows[i] = (uint8_t)(i < 6 ? rows : pairs);
        config.row_bytes[i] = (uint16_t)(4 * (i == 4 || i == 5 ? pairs : AMX_ROWS));
    }
    /* gcc's intrinsics do not say what they read, LDTILECFG 8 of the 64 bytes, TILELOADD nothing:
     * from here on everything that was stored before is in memory. */
    __asm__ volatile("" ::"r"(&config) : "memory");
    _tile_loadconfig(&config);
}

/* C of one or two tiles of rows by one or two of columns (constants for the compiler). Tiles have
 * `rows` rows of A and tile_pairs pairs. */
static inline __attribute__((always_inline)) void
multiply_amx_tiles(bool two_rows, bool two_columns, const bf16_terms *t, const real *a, int rows,
                   int tile_pairs, const bf16_pair *b, float *c)
{
    int64_t a_bytes = t->a_row * (int64_t)sizeof *a, b_bytes = t->b_width * (int64_t)sizeof *b,
            c_bytes = t->c_row * (int64_t)sizeof *c, pairs = t->pairs;
    const real *a_below = two_rows ? a + rows * t->a_row : a;
    float *c_below = two_rows ? c + rows * t->c_row : c;
    if (t->add) {
        _tile_loadd(0, c, c_bytes);
        if (two_columns)
            _tile_loadd(1, c + AMX_ROWS, c_bytes);
        if (two_rows)
            _tile_loadd(2, c_below, c_bytes);
        if (two_rows && two_columns)
            _tile_loadd(3, c_below + AMX_ROWS, c_bytes);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t k = 0; k < pairs; k += tile_pairs) {
        const bf16_pair *b_rows = b + k * t->b_width;
        _tile_loadd(4, a + 2 * k, a_bytes);
        _tile_loadd(6, b_rows, b_bytes);
        _tile_dpbf16ps(0, 4, 6);
        if (two_columns) {
            _tile_loadd(7, b_rows + AMX_ROWS, b_bytes);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (two_rows) {
            _tile_loadd(5, a_below + 2 * k, a_bytes);
            _tile_dpbf16ps(2, 5, 6);
        }
        if (two_rows && two_columns)
            _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, c_bytes);
    if (two_columns)
        _tile_stored(1, c + AMX_ROWS, c_bytes);
    if (two_rows)
        _tile_stored(2, c_below, c_bytes);
    if (two_rows && two_columns)
        _tile_stored(3, c_below + AMX_ROWS, c_bytes);
}

/* By tiles of `rows` rows of A and `pairs` pairs, at most AMX_ROWS, which divide those of the
 * terms. */
static void multiply_in_tiles(const bf16_terms *t, int rows, int pairs)
{
    if (t->rows == 0 || t->pairs == 0)
        return;
    configure_amx(rows, pairs);
    for (int64_t i = 0; i < t->rows; i += 2 * rows)
        for (int64_t j = 0; j < t->columns; j += 2 * AMX_ROWS) {
            bool two_rows = i + rows < t->rows, two_columns = j + AMX_ROWS < t->columns;
            const real *a = t->a + i * t->a_row;
            const bf16_pair *b = t->b + j;
            float *c = t->c + i * t->c_row + j;
            if (two_rows && two_columns)
                multiply_amx_tiles(true, true, t, a, rows, pairs, b, c);
            else if (two_rows)
                multiply_amx_tiles(true, false, t, a, rows, pairs, b, c);
            else if (two_columns)
                multiply_amx_tiles(false, true, t, a, rows, pairs, b, c);
            else
                multiply_amx_tiles(false, false, t, a, rows, pairs, b, c);
        }
}

/* Whole tiles first, then the pairs that do not fill one; then the same for the rows that do not.
 */
static void multiply_by_amx(const bf16_terms *t)
{
    int64_t whole_rows = t->rows - t->rows % AMX_ROWS, whole = t->pairs - t->pairs % AMX_ROWS;
    for (int last = 0; last < 2; last++) {
        bf16_terms part = *t, rest;
        part.rows = last ? t->rows - whole_rows : whole_rows;
        if (part.rows == 0)
            continue;
        int rows = last ? (int)part.rows : AMX_ROWS;
        part.a += last ? whole_rows * t->a_row : 0;
        part.c += last ? whole_rows * t->c_row : 0;
        part.pairs = whole;
        multiply_in_tiles(&part, rows, AMX_ROWS);
        rest = part;
        rest.pairs = t->pairs - whole;
        rest.a += 2 * whole;
        rest.b += whole * t->b_width;
        rest.add = t->add || whole > 0;
        multiply_in_tiles(&rest, rows, (int)rest.pairs);
    }
    _tile_release();
}
#endif

void R(multiply_pairs_any_order)(const bf16_terms *t)
{
#ifdef SIMD_AMX
    multiply_by_amx(t);
#else
    R(multiply_pairs)(t);
#endif
}

/* ---- Pairs ---- */

/* Transposes LANES x LANES words: halves of rows change places, then halves of these, and so on. */
static inline __attribute__((always_inline)) void transpose_words(bits rows[LANES])
{
#pragma GCC unroll 4
    for (int size = LANES / 2; size > 0; size /= 2) {
        bits upper = {0}, lower = {0};
#pragma GCC unroll 16
        for (int lane = 0; lane < LANES; lane++) {
            upper[lane] = lane & size ? LANES + lane - size : lane;
            lower[lane] = lane & size ? LANES + lane : lane + size;
        }
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            if (!(i & size)) {
                bits first = rows[i], second = rows[i + size];
                INTERLEAVE(LANES, rows[i], first, second, upper);
                INTERLEAVE(LANES, rows[i + size], first, second, lower);
            }
    }
}

void R(pair_rows)(int64_t rows, int64_t columns, const real *x, int64_t stride, bf16_pair *to,
                  int64_t width)
{
    for (int64_t r = 0; r < rows; r += 2, x += 2 * stride, to += width) {
        const real *second = x + stride;
        if (r + 1 < rows)
            for (int64_t c = 0; c < columns; c++)
                to[c] = (bf16_pair)x[c] | (bf16_pair)second[c] << 16;
        else
            for (int64_t c = 0; c < columns; c++)
                to[c] = x[c];
        if (width > columns)
            memset(to + columns, 0, (size_t)(width - columns) * sizeof *to);
    }
}

/* LANES pairs of LANES rows. */
static void pair_block(const real *x, int64_t stride, bf16_pair *to, int64_t width)
{
    bits rows[LANES];
    for (int i = 0; i < LANES; i++)
        rows[i] = (bits) * (const pair_lanes *)(x + i * stride);
    transpose_words(rows);
    for (int i = 0; i < LANES; i++)
        *(bits *)(to + i * width) = rows[i];
}

void R(pair_columns)(int64_t rows, int64_t columns, const real *x, int64_t stride, bf16_pair *to,
                     int64_t width)
{
    int64_t whole = columns / 2, blocks = whole - whole % LANES;
    for (int64_t p = 0; p < bf16_pairs(columns); p++)
        memset(to + p * width + rows, 0, (size_t)(whole_vectors(rows) - rows) * sizeof *to);
    for (int64_t first = 0; first < rows; first += LANES) {
        int64_t end = head_smaller(first + LANES, rows), p = 0;
        for (; end - first == LANES && p < blocks; p += LANES)
            pair_block(x + first * stride + 2 * p, stride, to + p * width + first, width);
        for (; p < whole; p++)
            for (int64_t r = first; r < end; r++)
                memcpy(to + p * width + r, x + r * stride + 2 * p, sizeof *to);
        for (int64_t r = first; columns % 2 && r < end; r++)
            to[whole * width + r] = x[r * stride + columns - 1];
    }
}

/* ---- Rounding ---- */

static narrow_lanes round_lanes(lanes x)
{
#ifdef __AVX512BF16__
    return (narrow_lanes)_mm512_cvtneps_pbh((__m512)x);
#else
    const int32_t quiet = 0x7fc0;
    bits stored = (bits)x, nan = (bits)(x != x);
    stored = (stored + 0x7fff + ((stored >> 16) & 1)) >> 16;
    return __builtin_convertvector((stored & ~nan) | (nan & quiet), narrow_lanes);
#endif
}

static lanes widen_lanes(narrow_lanes x)
{
#ifdef __AVX512BF16__ /* gcc 12 makes two halves of the conversion */
    return (lanes)((bits)_mm512_cvtepu16_epi32((__m256i)x) << 16);
#else
    return (lanes)(__builtin_convertvector(x, bits) << 16);
#endif
}

void R(narrow)(int64_t count, const float *x, real *out)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        *(narrow_lanes *)(out + i) = round_lanes(*(const lanes *)(x + i));
    if (i == count)
        return;
    lanes last = {0};
    memcpy(&last, x + i, (size_t)(count - i) * sizeof *x);
    narrow_lanes rounded = round_lanes(last);
    memcpy(out + i, &rounded, (size_t)(count - i) * sizeof *out);
}

/* Rounds the transpose of LANES rows. */
static inline __attribute__((always_inline)) void
narrow_block(bits words[LANES], int64_t count, int64_t width, real *out, int64_t out_stride)
{
    transpose_words(words);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) {
        narrow_lanes rounded = round_lanes((lanes)words[i]);
        if (i < count)
            memcpy(out + i * out_stride, &rounded, (size_t)width * sizeof *out);
    }
}

void R(narrow_transposed)(int64_t rows, int64_t columns, const float *x, int64_t stride, real *out,
                          int64_t out_stride)
{
    bits words[LANES];
    for (int64_t column = 0; column < columns; column += LANES, x += LANES * stride, out += LANES)
        for (int64_t row = 0; row < rows; row += LANES) {
            int64_t count = head_smaller(LANES, rows - row),
                    width = head_smaller(LANES, columns - column);
            real *to = out + row * out_stride;
            for (int j = 0; j < LANES; j++)
                words[j] = j < width ? *(const bits *)(x + j * stride + row) : (bits){0};
            if (count == LANES && width == LANES)
                narrow_block(words, LANES, LANES, to, out_stride);
            else
                narrow_block(words, count, width, to, out_stride);
        }
}

/* ---- The Gaussian kernel ---- */

static lanes first_of(bits pair)
{
    return (lanes)(pair << 16);
}

static lanes second_of(bits pair)
{
    return (lanes)(pair & (int32_t)0xffff0000);
}

float R(pair_norms)(int64_t count, int64_t pairs, const bf16_pair *x, int64_t width, float *norms)
{
    lanes all = {0};
    float each[LANES], total = 0;
    for (int64_t i = 0; i < count; i += LANES) {
        lanes sum = {0};
        for (int64_t p = 0; p < pairs; p++) {
            bits pair = *(const bits *)(x + p * width + i);
            sum += second_of(pair) * second_of(pair);
            sum += first_of(pair) * first_of(pair);
        }
        *(lanes *)(norms + i) = sum;
        all += sum;
    }
    memcpy(each, &all, sizeof each);
    for (int lane = 0; lane < LANES; lane++)
        total += each[lane];
    return total < INFINITY ? R(largest_logit)(count, norms, 0) : NAN;
}

void R(pair_distances)(int64_t count, int64_t pairs, const bf16_pair *x, int64_t width,
                       const real *l, float *out)
{
    for (int64_t i = 0; i < count; i += SIMD_COLUMNS) {
        lanes sums[SIMD_COLUMNS / LANES] = {{0}};
        for (int64_t p = 0; p < pairs; p++) {
            float first = core_bf16_value(l[2 * p]), second = core_bf16_value(l[2 * p + 1]);
            for (int v = 0; v < SIMD_COLUMNS / LANES; v++) {
                bits pair = *(const bits *)(x + p * width + i + v * LANES);
                lanes a = first_of(pair) - first, b = second_of(pair) - second;
                sums[v] += a * a;
                sums[v] += b * b;
            }
        }
        memcpy(out + i, sums, sizeof sums);
    }
}

void R(expand_distances)(int64_t count, const float *norms, float norm, bool clamp, const float *x,
                         float *out)
{
    for (int64_t i = 0; i < count; i += LANES) {
        lanes squared = (*(const lanes *)(norms + i) + norm) - 2 * *(const lanes *)(x + i);
        lanes least = clamp ? (lanes){0} : squared;
        *(lanes *)(out + i) = (lanes)MAX_F32(least, squared);
    }
}

void R(gaussian_weights)(int64_t count, double s, const float *x, real *out)
{
    float unit = (float)-fmin(s * LOG_OF_E_F32, FLT_MAX);
    for (int64_t i = 0; i < count; i += LANES)
        *(narrow_lanes *)(out + i) = round_lanes((lanes)EXP_OF_F32(unit, *(const lanes *)(x + i)));
}

/* ---- Softmax ---- */

float R(largest_logit)(int64_t count, const float *x, float least)
{
    lanes most = (lanes){0} + least, second = most;
    int64_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        most = (lanes)MAX_F32(*(const lanes *)(x + i), most);
        second = (lanes)MAX_F32(*(const lanes *)(x + i + LANES), second);
    }
    most = (lanes)MAX_F32(second, most);
    float each[LANES];
    memcpy(each, &most, sizeof each);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; lane++)
            each[lane] = each[lane + half] > each[lane] ? each[lane + half] : each[lane];
    least = each[0];
    for (; i < count; i++)
        least = x[i] > least ? x[i] : least;
    return least;
}

double R(weigh_logits)(int64_t count, double c, float largest, const float *x, real *weights)
{
    enum { STEP = 2 * LANES };
    float unit = (float)fmin(c * LOG_OF_E_F32, FLT_MAX), last[STEP] = {0}, each[LANES];
    lanes sums[2] = {{0}};
    for (int64_t i = 0; i < count; i += STEP) {
        narrow_lanes *to = (narrow_lanes *)(weights + i);
        bool whole = i + STEP <= count;
        if (!whole)
            memcpy(last, x + i, (size_t)(count - i) * sizeof *x);
        const lanes *from = (const lanes *)(whole ? x + i : last);
        for (int v = 0; v < 2; v++)
            to[v] = round_lanes((lanes)EXP_OF_F32(unit, from[v] - largest));
        if (!whole)
            memset(weights + count, 0, (size_t)(i + STEP - count) * sizeof *weights);
        for (int v = 0; v < 2; v++)
            sums[v] += widen_lanes(to[v]);
    }
    sums[0] += sums[1];
    memcpy(each, sums, sizeof each);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; lane++)
            each[lane] += each[lane + half];
    return (double)each[0];
}

/* ---- Norms ---- */

/* add_magnitudes for any numbers: no square of a bf16 number overflows or underflows in double. */
static void add_magnitudes_wide(bool l1, int64_t rows, int64_t columns, const real *x,
                                int64_t stride, double *sums)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = 0; e < columns; e++) {
            double value = (double)core_bf16_value(x[i * stride + e]);
            sums[e] += l1 ? fabs(value) : value * value;
        }
}

static lanes magnitudes_of(const real *x)
{
    const int32_t size = 0x7fffffff;
    return (lanes)((bits)widen_lanes(*(const narrow_lanes *)x) & size);
}

/* sums += |x| of at most HEAD_BLOCK rows and `groups` times SIMD_COLUMNS columns, at most two,
 * known to the compiler: in f32, in four partial sums, unless a group's are too large for it. */
static inline __attribute__((always_inline)) void
add_columns(int groups, int64_t rows, const real *x, int64_t stride, double *sums)
{
    enum { VECTORS_OF_GROUP = SIMD_COLUMNS / LANES };
    lanes parts[4][2 * VECTORS_OF_GROUP] = {{{0}}};
    int vectors = groups * VECTORS_OF_GROUP;
    for (int64_t r = 0; r + 4 <= rows; r += 4)
        for (int k = 0; k < 4; k++)
            for (int v = 0; v < vectors; v++)
                parts[k][v] += magnitudes_of(x + (r + k) * stride + v * LANES);
    for (int64_t r = rows - rows % 4; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            parts[0][v] += magnitudes_of(x + r * stride + v * LANES);
    for (int g = 0; g < groups; g++) {
        float some[SIMD_COLUMNS], all = 0;
        for (int v = 0; v < VECTORS_OF_GROUP; v++) {
            int at = g * VECTORS_OF_GROUP + v;
            lanes sum = (parts[0][at] + parts[1][at]) + (parts[2][at] + parts[3][at]);
            memcpy(some + v * LANES, &sum, sizeof sum);
        }
        for (int e = 0; e < SIMD_COLUMNS; e++)
            all += some[e];
        if (!(all < INFINITY))
            add_magnitudes_wide(true, rows, SIMD_COLUMNS, x + g * SIMD_COLUMNS, stride,
                                sums + g * SIMD_COLUMNS);
        for (int e = 0; all < INFINITY && e < SIMD_COLUMNS; e++)
            sums[g * SIMD_COLUMNS + e] += (double)some[e];
    }
}

void R(add_magnitudes)(bool l1, int64_t rows, int64_t columns, const real *x, int64_t stride,
                       double *sums)
{
    for (int64_t i = 0; i < rows; i += HEAD_BLOCK, x += HEAD_BLOCK * stride) {
        int64_t count = head_smaller(HEAD_BLOCK, rows - i), e = 0;
        for (; l1 && e + 2 * SIMD_COLUMNS <= columns; e += 2 * SIMD_COLUMNS)
            add_columns(2, count, x + e, stride, sums + e);
        for (; l1 && e + SIMD_COLUMNS <= columns; e += SIMD_COLUMNS)
            add_columns(1, count, x + e, stride, sums + e);
        add_magnitudes_wide(l1, count, columns - e, x + e, stride, sums + e);
    }
}

bool R(all_finite)(int64_t rows, int64_t cols, const real *a, int64_t stride)
{
    real bad = 0;
    if (stride == cols) { /* one long row */
        cols *= rows;
        rows = 1;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            bad |= (real)((a[i * stride + j] & 0x7fff) + 0x0080);
    return !(bad & 0x8000);
}
