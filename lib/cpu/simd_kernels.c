/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops over elements, distances and rows, in whole vectors. */
#include <float.h>
#include <string.h>

#include "cpu/simd_set.h"

#if defined(SIMD_AVX512)
#define TOKENS      4 /* 16 sums, 4 rows of landmarks and temporaries, in 32 registers */
#define VECTORS     4
#define DIFFERENCES 2 /* for 4 rows 16 sums, 8 vectors of the rows, temporaries */
#define SINCOS_F32  Sleef_sincosf16_u10avx512f
#define SINCOS_F64  Sleef_sincosd8_u10avx512f
#define ERFC_F64    Sleef_erfcd8_u15avx512f
#elif defined(SIMD_AVX2)
#define TOKENS      4 /* 8 sums in 16 registers */
#define VECTORS     2
#define DIFFERENCES 1 /* half of that, in 16 registers */
#define SINCOS_F32  Sleef_sincosf8_u10avx2
#define SINCOS_F64  Sleef_sincosd4_u10avx2
#define ERFC_F64    Sleef_erfcd4_u15avx2
#else /* without a set's name: any x86-64 processor's; on aarch64 AdvSIMD's */
#define TOKENS      2
#define VECTORS     4
#define DIFFERENCES 1
#define SINCOS_F32  Sleef_sincosf4_u10
#define SINCOS_F64  Sleef_sincosd2_u10
#define ERFC_F64    Sleef_erfcd2_u15
#endif

#ifdef REAL_F32
#define SINCOS SINCOS_F32
#else
#define SINCOS SINCOS_F64
#endif
/* Elements that a tile of distances prefetches for every channel: as many as two groups of tokens
 * have in it. */
enum { PREFETCHED = 2 * TOKENS };
/* Vectors of a row processed together: enough to hide the latency of a subtraction. */
enum { ROW_VECTORS = 4 };

/* exp(c x) is EXP_OF(c LOG_OF_E, x) */
#ifdef REAL_F32
#define LOG_OF_E LOG_OF_E_F32
#define EXP_OF   EXP_OF_F32
#else
#define LOG_OF_E          1
#define EXP_OF(factor, x) EXP((factor) * (x))
#endif

/* c LOG_OF_E as a finite number, so that 0 times it is 0. */
static real rounded_unit(double c)
{
    double most = sizeof(real) < sizeof(double) ? (double)FLT_MAX : DBL_MAX, unit = c * LOG_OF_E;
    return (real)(unit < most ? unit > -most ? unit : -most : most); /* fmin and fmax are calls */
}

static inline __attribute__((always_inline)) lanes exponential(bool scaled, real unit, real shift,
                                                               lanes x)
{
    return scaled ? (lanes)EXP_OF(unit, x - shift) : (lanes)EXP(x);
}

/* The last vector may overlap the one before it, and is loaded before that is stored. */
static inline __attribute__((always_inline)) void
replace_by_exponentials(int64_t count, bool scaled, real unit, real shift, real *x)
{
    lanes last = {0};
    if (count == 0)
        return;
    if (count < LANES) {
        memcpy(&last, x, (size_t)count * sizeof *x);
        last = exponential(scaled, unit, shift, last);
        memcpy(x, &last, (size_t)count * sizeof *x);
        return;
    }
    last = *(const lanes *)(x + count - LANES);
    for (int64_t i = 0; i + LANES <= count; i += LANES) {
        lanes *at = (lanes *)(x + i);
        *at = exponential(scaled, unit, shift, *at);
    }
    if (count % LANES > 0)
        *(lanes *)(x + count - LANES) = exponential(scaled, unit, shift, last);
}

static void exponentials(int64_t count, real *x)
{
    replace_by_exponentials(count, false, 1, 0, x);
}

/* naive, known to the compiler: phi less 1. MAX and MIN are 0 where x is NaN. */
static inline __attribute__((always_inline)) void elu_lanes(bool naive, const real *x, real *slopes,
                                                            real *phi)
{
    const lanes zero = {0};
    lanes all = *(const lanes *)x, slope = (lanes)EXP_BELOW((lanes)MIN(all, zero));
    *(lanes *)slopes = slope;
    if (naive)
        slope -= 1;
    *(lanes *)phi = slope + (lanes)MAX(all, zero);
}

/* The last vector may overlap the one before it. */
static inline __attribute__((always_inline)) void elu_form(bool naive, int64_t count, const real *x,
                                                           real *slopes, real *phi)
{
    real few[3][LANES] = {{0}};
    size_t bytes = (size_t)count * sizeof *x;
    for (int64_t i = 0; LANES <= count && i < count; i += LANES) {
        int64_t at = i + LANES <= count ? i : count - LANES;
        elu_lanes(naive, x + at, slopes + at, phi + at);
    }
    if (count >= LANES)
        return;
    memcpy(few[0], x, bytes);
    elu_lanes(naive, few[0], few[1], few[2]);
    memcpy(slopes, few[1], bytes);
    memcpy(phi, few[2], bytes);
}

static void elu(int64_t count, bool naive, const real *x, real *slopes, real *phi)
{
    if (naive)
        elu_form(true, count, x, slopes, phi);
    else
        elu_form(false, count, x, slopes, phi);
}

/* `of` where x is above 0, otherwise 0. */
static inline lanes positive(lanes x, lanes of)
{
    const lanes zero = {0};
    return (lanes)((bits)of & (bits)(x > zero));
}

/* Channels of one vector of a row: `bytes` is BYTES, which the compiler knows, except for the last
 * ones; so is count, if it is 2. */
static inline __attribute__((always_inline)) void
relu_lanes(size_t bytes, int64_t count, const real *factors, int64_t d, const real *x, real *phi)
{
    lanes all = load_first(bytes, x), above = positive(all, all);
    for (int64_t f = 0; f < count; f++)
        store_first(bytes, factors[f] * above, phi + f * d);
}

static inline __attribute__((always_inline)) void relu_rows(int64_t rows, int64_t count,
                                                            const real *factors, int64_t d,
                                                            const real *x, int64_t stride,
                                                            real *phi)
{
    for (int64_t i = 0; i < rows; i++, factors += count, x += stride, phi += count * d) {
        int64_t c = 0;
        for (; c + LANES <= d; c += LANES)
            relu_lanes(BYTES, count, factors, d, x + c, phi + c);
        if (c < d)
            relu_lanes((size_t)(d - c) * sizeof *x, count, factors, d, x + c, phi + c);
    }
}

static void relu(int64_t rows, int64_t count, const real *factors, int64_t d, const real *x,
                 int64_t stride, real *phi)
{
    if (count == 2)
        relu_rows(rows, 2, factors, d, x, stride, phi);
    else
        relu_rows(rows, count, factors, d, x, stride, phi);
}

static inline __attribute__((always_inline)) void
relu_backward_lanes(size_t bytes, int64_t count, const real *factors, int64_t d, const real *x,
                    const real *slopes, bool add, real *grad)
{
    lanes sum = {0}, before = {0};
    if (add)
        before = load_first(bytes, grad);
    for (int64_t f = 0; f < count; f++)
        sum += factors[f] * load_first(bytes, slopes + f * d);
    store_first(bytes, before + positive(load_first(bytes, x), sum), grad);
}

static inline __attribute__((always_inline)) void
relu_backward_rows(int64_t rows, int64_t count, const real *factors, int64_t d, const real *x,
                   int64_t stride, const real *slopes, bool add, real *grad, int64_t grad_stride)
{
    for (int64_t i = 0; i < rows;
         i++, factors += count, x += stride, slopes += count * d, grad += grad_stride) {
        int64_t c = 0;
        for (; c + LANES <= d; c += LANES)
            relu_backward_lanes(BYTES, count, factors, d, x + c, slopes + c, add, grad + c);
        if (c < d)
            relu_backward_lanes((size_t)(d - c) * sizeof *x, count, factors, d, x + c, slopes + c,
                                add, grad + c);
    }
}

static void relu_backward(int64_t rows, int64_t count, const real *factors, int64_t d,
                          const real *x, int64_t stride, const real *slopes, bool add, real *grad,
                          int64_t grad_stride)
{
    if (count == 2)
        relu_backward_rows(rows, 2, factors, d, x, stride, slopes, add, grad, grad_stride);
    else
        relu_backward_rows(rows, count, factors, d, x, stride, slopes, add, grad, grad_stride);
}

static void scaled_exponentials(int64_t count, double factor, real shift, real *x)
{
    replace_by_exponentials(count, true, rounded_unit(factor), shift, x);
}

/* A row goes ROW numbers at a time, whatever the width of a vector, so that all sets add in the
 * same order: to sums of at most REAL_TERMS real numbers, which then are terms of sums in double.
 */
enum { ROW = SIMD_COLUMNS, PARTS = ROW / LANES, WIDES = ROW / WIDE, REAL_TERMS = 8 };

/* Exponentials of `terms` times ROW numbers. */
static inline __attribute__((always_inline)) void
add_exponentials(int64_t terms, real factor, real shift, const real *x, real *y, lanes sums[PARTS])
{
    for (int64_t term = 0; term < terms; term++, x += ROW, y += ROW)
        for (int part = 0; part < PARTS; part++) {
            lanes of = (lanes)EXP_OF(factor, ((const lanes *)x)[part] - shift);
            ((lanes *)y)[part] = of;
            sums[part] += of;
        }
}

static inline __attribute__((always_inline)) void add_parts(const lanes sums[PARTS],
                                                            wide totals[WIDES])
{
    real each[ROW] __attribute__((aligned(BYTES)));
    memcpy(each, sums, sizeof each);
    for (int w = 0; w < WIDES; w++)
        totals[w] += widened(each + w * WIDE);
}

/* The last ROW numbers of a row; a shorter row is at their end. */
static inline void copy_last(int64_t count, const real *x, lanes last[PARTS])
{
    if (count >= ROW)
        memcpy(last, x + count - ROW, ROW * sizeof *x);
    else
        memcpy((real *)last + ROW - count, x, (size_t)count * sizeof *x);
}

static inline void copy_back(int64_t count, const lanes last[PARTS], real *x)
{
    if (count >= ROW)
        memcpy(x + count - ROW, last, ROW * sizeof *x);
    else
        memcpy(x, (const real *)last + ROW - count, (size_t)count * sizeof *x);
}

/* The lanes of the last ROW numbers of a row of which `left` are in no whole ROW. */
static inline bits left_lanes(int64_t left, int part)
{
    _Static_assert(ROW == 16, "as many masks");
    static const real_bits masks[2 * ROW] = {[ROW] = -1, -1, -1, -1, -1, -1, -1, -1,
                                             -1,         -1, -1, -1, -1, -1, -1, -1};
    return *(const bits *)(masks + left + part * LANES);
}

/* Exponentials of the last ROW numbers of a row. */
static inline void add_last_exponentials(int64_t left, real factor, real shift, lanes last[PARTS],
                                         lanes sums[PARTS])
{
    for (int part = 0; part < PARTS; part++) {
        last[part] = (lanes)EXP_OF(factor, last[part] - shift);
        sums[part] += (lanes)((bits)last[part] & left_lanes(left, part));
    }
}

/* y = exponentials of x, which may be y. Returns the sum in WIDE parts. */
static inline __attribute__((always_inline)) wide
exponential_row(int64_t count, real factor, real shift, const real *x, real *y)
{
    wide totals[WIDES] = {{0}};
    lanes last[PARTS] = {{0}}, sums[PARTS] = {{0}};
    int64_t left = count % ROW, terms = count / ROW;
    real *first = y;
    if (left > 0) /* before numbers that are also in a whole ROW are replaced */
        copy_last(count, x, last);
    for (; terms >= REAL_TERMS; terms -= REAL_TERMS, x += REAL_TERMS * ROW, y += REAL_TERMS * ROW) {
        lanes full[PARTS] = {{0}};
        add_exponentials(REAL_TERMS, factor, shift, x, y, full);
        add_parts(full, totals);
    }
    add_exponentials(terms, factor, shift, x, y, sums);
    if (left > 0) {
        add_last_exponentials(left, factor, shift, last, sums);
        copy_back(count, last, first);
    }
    add_parts(sums, totals);
    return add_vectors(WIDES, totals);
}

/* WIDE rows at a time, whose parts are added across together. */
static void exponential_rows(int64_t rows, const int64_t *counts, double factor, const real *shifts,
                             const real *x, int64_t x_stride, real *y, int64_t y_stride,
                             double *sums)
{
    real unit = rounded_unit(factor);
    wide parts[WIDE] = {{0}};
    for (int64_t i = 0, group; i < rows; i += group) {
        group = rows - i < WIDE ? rows - i : WIDE;
        for (int64_t r = i; r < i + group; r++)
            parts[r - i] =
                exponential_row(counts[r], unit, shifts[r], x + r * x_stride, y + r * y_stride);
        wide totals = add_across_wide(parts);
        memcpy(sums + i, &totals, (size_t)group * sizeof *sums);
    }
}

/* What `terms` times ROW numbers add to the sum of a row, below. */
static inline __attribute__((always_inline)) void
add_weighted(int64_t terms, const real *weights, const real *slopes, real pivot, lanes sums[PARTS])
{
    for (int64_t term = 0; term < terms; term++, weights += ROW, slopes += ROW)
        for (int part = 0; part < PARTS; part++)
            sums[part] += ((const lanes *)weights)[part] * (((const lanes *)slopes)[part] - pivot);
}

/* sum_j weights_j (slopes_j - pivot) in WIDE parts. */
static inline __attribute__((always_inline)) wide weighted_row(int64_t count, const real *weights,
                                                               const real *slopes, real pivot)
{
    wide totals[WIDES] = {{0}};
    lanes sums[PARTS] = {{0}}, last_weights[PARTS] = {{0}}, last_slopes[PARTS] = {{0}};
    int64_t left = count % ROW, terms = count / ROW;
    if (left > 0) {
        copy_last(count, weights, last_weights);
        copy_last(count, slopes, last_slopes);
    }
    for (; terms >= REAL_TERMS;
         terms -= REAL_TERMS, weights += REAL_TERMS * ROW, slopes += REAL_TERMS * ROW) {
        lanes full[PARTS] = {{0}};
        add_weighted(REAL_TERMS, weights, slopes, pivot, full);
        add_parts(full, totals);
    }
    add_weighted(terms, weights, slopes, pivot, sums);
    for (int part = 0; part < PARTS; part++)
        if (left > 0)
            sums[part] += (lanes)((bits)(last_weights[part] * (last_slopes[part] - pivot)) &
                                  left_lanes(left, part));
    add_parts(sums, totals);
    return add_vectors(WIDES, totals);
}

static void weighted_rows(int64_t rows, const int64_t *counts, const real *weights, int64_t stride,
                          const real *slopes, int64_t slope_stride, const real *pivots,
                          double *sums)
{
    wide parts[WIDE] = {{0}};
    for (int64_t i = 0, group; i < rows; i += group) {
        group = rows - i < WIDE ? rows - i : WIDE;
        for (int64_t r = i; r < i + group; r++)
            parts[r - i] =
                weighted_row(counts[r], weights + r * stride, slopes + r * slope_stride, pivots[r]);
        wide totals = add_across_wide(parts);
        memcpy(sums + i, &totals, (size_t)group * sizeof *sums);
    }
}

/* Slopes whose weights are above 1/2, and half of those whose weights are 1/2. */
static inline lanes peaks_among(lanes weights, lanes slopes)
{
    const lanes half = (lanes){0} + (real)0.5;
    return (lanes)((bits)slopes & (bits)(weights > half)) +
           (lanes)((bits)(half * slopes) & (bits)(weights == half));
}

/* Those of a row, in the lanes of their numbers. */
static inline __attribute__((always_inline)) lanes peaks_of(int64_t count, const real *weights,
                                                            const real *slopes)
{
    lanes peaks = {0}, last_weights[PARTS] = {{0}}, last_slopes[PARTS] = {{0}};
    int64_t left = count % ROW;
    for (int64_t j = 0; j + LANES <= count - left; j += LANES)
        peaks += peaks_among(*(const lanes *)(weights + j), *(const lanes *)(slopes + j));
    if (left > 0) {
        copy_last(count, weights, last_weights);
        copy_last(count, slopes, last_slopes);
    }
    for (int part = 0; part < PARTS; part++)
        if (left > 0)
            peaks += (lanes)((bits)peaks_among(last_weights[part], last_slopes[part]) &
                             left_lanes(left, part));
    return peaks;
}

static void softmax_peaks(int64_t rows, int64_t count, const real *weights, int64_t stride,
                          const real *slopes, int64_t slope_stride, real *peaks)
{
    for (int64_t i = 0, group; i < rows; i += group) {
        lanes each[LANES] = {{0}};
        group = rows - i < LANES ? rows - i : LANES;
        for (int64_t r = i; r < i + group; r++)
            each[r - i] = peaks_of(count, weights + r * stride, slopes + r * slope_stride);
        lanes sums = add_across(each);
        memcpy(peaks + i, &sums, (size_t)group * sizeof *peaks);
    }
}

/* Channels of one vector; bytes as in relu_lanes. */
static inline __attribute__((always_inline)) bool
exponential_columns_lanes(size_t bytes, int64_t rows, const real *x, int64_t x_stride,
                          const real *shifts, real most, real *y, int64_t y_stride, double *sums)
{
    const lanes shift = load_first(bytes, shifts), zero = {0};
    wide totals[LANES / WIDE] = {{0}};
    bits good = zero == zero;
    for (int64_t j = 0; j < rows;) {
        lanes partial = zero;
        for (int64_t end = rows - j < REAL_TERMS ? rows : j + REAL_TERMS; j < end; j++) {
            lanes at = load_first(bytes, x + j * x_stride) - shift, of = (lanes)EXP_BELOW(at);
            good &= (bits)(at <= most) & (bits)(at > zero - (real)INFINITY);
            store_first(bytes, of, y + j * y_stride);
            partial += of;
        }
        for (int w = 0; w < LANES / WIDE; w++)
            totals[w] += widened((const real *)&partial + w * WIDE);
    }
    if (sums)
        for (size_t c = 0; c < bytes / sizeof *x; c++)
            sums[c] += ((const double *)totals)[c];
    for (int lane = 1; lane < LANES; lane++)
        good[0] &= good[lane];
    return good[0] != 0;
}

static bool exponential_columns(int64_t rows, int64_t d, const real *x, int64_t x_stride,
                                const real *shifts, real most, real *y, double *sums)
{
    bool good = true;
    int64_t c = 0;
    for (; c + LANES <= d; c += LANES)
        good &= exponential_columns_lanes(BYTES, rows, x + c, x_stride, shifts + c, most, y + c, d,
                                          sums ? sums + c : NULL);
    if (c < d)
        good &= exponential_columns_lanes((size_t)(d - c) * sizeof *x, rows, x + c, x_stride,
                                          shifts + c, most, y + c, d, sums ? sums + c : NULL);
    return good;
}

/* Each lane's partner, whose number differs in one bit. Clang, which has no shuffle by a vector,
 * makes one of the loop; gcc does not. */
static lanes partners(lanes x, bits lane, int half)
{
#ifdef __clang__
    (void)lane;
    lanes y = x;
    for (int i = 0; i < LANES; i++)
        y[i] = x[i ^ half];
    return y;
#else
    return __builtin_shuffle(x, lane ^ half);
#endif
}

/* `tokens` x `vectors` sums in registers, both known to the compiler, as is whether `ahead` is
 * null. Otherwise PREFETCHED d elements are prefetched from there on, a few for every channel: all
 * at once, they can occupy every line fill buffer of the first-level cache, and the loads that
 * follow wait. */
static inline __attribute__((always_inline)) void
distance_tile(int tokens, int vectors, int64_t d, const real *x, int64_t x_stride,
              const real *transposed, int64_t stride, real *out, int64_t out_stride,
              const real *ahead)
{
    lanes sums[TOKENS][VECTORS] = {{{0}}};
    for (int64_t c = 0; c < d; c++) {
        const lanes *row = (const lanes *)(transposed + c * stride);
        if (ahead)
            __builtin_prefetch(ahead + c * PREFETCHED);
        for (int t = 0; t < tokens; t++)
            for (int v = 0; v < vectors; v++) {
                lanes difference = x[t * x_stride + c] - row[v];
                sums[t][v] += difference * difference;
            }
    }
    for (int t = 0; t < tokens; t++)
        for (int v = 0; v < vectors; v++)
            ((lanes *)(out + t * out_stride))[v] = sums[t][v];
}

/* `tokens` rows of squared distances to the first `columns` landmarks. Unless `ahead` is
 * null, every tile prefetches from there on what is in the cache after the first one. */
static inline __attribute__((always_inline)) void
distance_rows(int tokens, const landmark_set *set, int64_t columns, const real *x, int64_t x_stride,
              real *out, int64_t out_stride, const real *ahead)
{
    int64_t j = 0;
    for (; j + VECTORS * LANES <= columns; j += VECTORS * LANES)
        distance_tile(tokens, VECTORS, set->d, x, x_stride, set->transposed + j, set->padded,
                      out + j, out_stride, ahead);
    if (VECTORS == 4 && j + 3 * LANES == columns) /* all but one of 49 landmarks in AVX-512 */
        distance_tile(tokens, 3, set->d, x, x_stride, set->transposed + j, set->padded, out + j,
                      out_stride, ahead);
    else
        for (; j < columns; j += LANES)
            distance_tile(tokens, 1, set->d, x, x_stride, set->transposed + j, set->padded, out + j,
                          out_stride, ahead);
}

/* exp(unit |x - l|^2) for one landmark, a column of `out`. */
static void gaussian_column(int64_t d, const real *l, real unit, int64_t p, const real *x,
                            int64_t x_stride, real *out, int64_t out_stride)
{
    for (int64_t i = 0; i < p; i += LANES) {
        lanes sums[LANES], values;
#pragma GCC unroll 16
        for (int t = 0; t < LANES; t++) {
            const real *token = x + (i + t < p ? i + t : p - 1) * x_stride;
            lanes parts[PARTS] = {{0}};
            for (int64_t c = 0; c < d; c += ROW)
                for (int part = 0; part < PARTS; part++) {
                    lanes difference =
                        ((const lanes *)(token + c))[part] - ((const lanes *)(l + c))[part];
                    parts[part] += difference * difference;
                }
            for (int half = PARTS / 2; half > 0; half /= 2)
                for (int part = 0; part < half; part++)
                    parts[part] += parts[part + half];
            sums[t] = parts[0];
        }
        values = exponential(true, unit, 0, add_across(sums));
        for (int t = 0; t < LANES && i + t < p; t++)
            out[(i + t) * out_stride] = values[t];
    }
}

/* Where the group of TOKENS tokens from i on prefetches. Even groups take the first array, odd ones
 * the second, each as many elements as two groups have; without an array the set, which is in a
 * cache. */
static const real *ahead_of(const landmark_set *set, const real *const *ahead, int64_t i)
{
    int64_t group = i / TOKENS;
    const real *array = ahead[group % 2];
    return array ? array + group / 2 * PREFETCHED * set->d : set->transposed;
}

static void gaussian(const landmark_set *set, double factor, int64_t p, const real *x,
                     int64_t x_stride, real *out, int64_t out_stride, const real *const *ahead)
{
    int64_t i = 0, d = set->d, left = set->count % ROW;
    bool few = left <= SIMD_FEW_COLUMNS && set->count > ROW && d % ROW == 0;
    int64_t columns = few ? set->count - left : set->padded;
    for (; ahead && i + TOKENS <= p; i += TOKENS)
        distance_rows(TOKENS, set, columns, x + i * x_stride, x_stride, out + i * out_stride,
                      out_stride, ahead_of(set, ahead, i));
    for (; i + TOKENS <= p; i += TOKENS)
        distance_rows(TOKENS, set, columns, x + i * x_stride, x_stride, out + i * out_stride,
                      out_stride, NULL);
    for (; i < p; i++)
        distance_rows(1, set, columns, x + i * x_stride, x_stride, out + i * out_stride, out_stride,
                      NULL);
    bool dense = out_stride == columns; /* one row of all */
    real unit = rounded_unit(factor);
    for (i = 0; i < (dense ? 1 : p); i++)
        replace_by_exponentials(dense ? p * columns : columns, true, unit, 0, out + i * out_stride);
    for (int64_t j = columns; j < set->count; j++)
        gaussian_column(d, set->rows + j * d, unit, p, x, x_stride, out + j, out_stride);
}

/* Sines and cosines in vectors of one type. */
#define SINCOS_LOOP(name, element, vector, sincos)                                                 \
    static void name(int64_t count, element *x, element *sines)                                    \
    {                                                                                              \
        enum { WIDTH = sizeof(vector) / sizeof(element) };                                         \
        int64_t i = 0;                                                                             \
        for (; i + WIDTH <= count; i += WIDTH) {                                                   \
            __typeof__(sincos((vector){0})) both = sincos(*(const vector *)(x + i));               \
            *(vector *)(sines + i) = (vector)both.x;                                               \
            *(vector *)(x + i) = (vector)both.y;                                                   \
        }                                                                                          \
        if (i == count)                                                                            \
            return;                                                                                \
        size_t rest = (size_t)(count - i) * sizeof *x;                                             \
        vector last = {0};                                                                         \
        memcpy(&last, x + i, rest);                                                                \
        __typeof__(sincos(last)) both = sincos(last);                                              \
        memcpy(sines + i, &both.x, rest);                                                          \
        memcpy(x + i, &both.y, rest);                                                              \
    }

SINCOS_LOOP(sincos_real, real, lanes, SINCOS)
SINCOS_LOOP(sincos_f64, double, wide, SINCOS_F64)

/* x Phi(x), and the derivative Phi(x) + x phi(x), which costs an exponential, where it is asked
 * for. Phi(x) = erfc(-x / sqrt(2)) / 2 keeps its digits where it is small. */
static inline wide gelu_lanes(wide x, wide *slope)
{
    static const double root_half = 0.70710678118654752, over_root_two_pi = 0.39894228040143268;
    wide phi = 0.5 * (wide)ERFC_F64(-root_half * x);
    if (slope)
        *slope = phi + x * (wide)EXP_F64(-0.5 * x * x) * over_root_two_pi;
    return x * phi;
}

static void gelu(int64_t count, double *x, double *slopes)
{
    enum { WIDTH = sizeof(wide) / sizeof *x };
    int64_t i = 0;
    for (; i + WIDTH <= count; i += WIDTH)
        *(wide *)(x + i) = gelu_lanes(*(wide *)(x + i), slopes ? (wide *)(slopes + i) : NULL);
    if (i == count)
        return;
    size_t rest = (size_t)(count - i) * sizeof *x;
    wide last = {0}, slope;
    memcpy(&last, x + i, rest);
    last = gelu_lanes(last, slopes ? &slope : NULL);
    memcpy(x + i, &last, rest);
    if (slopes)
        memcpy(slopes + i, &slope, rest);
}

/* Compares lanes pairwise, halving their distance each time. */
static real largest_lane(lanes most)
{
    static const real_bits numbers[16]
        __attribute__((aligned(BYTES))) = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    bits lane = *(const bits *)numbers;
#pragma GCC unroll 4
    for (int half = LANES / 2; half > 0; half /= 2)
        most = (lanes)MAX(most, partners(most, lane, half));
    return most[0];
}

static inline __attribute__((always_inline)) real largest_of(int64_t count, const real *x,
                                                             real least)
{
    lanes most = (lanes){0} + least, second = most;
    int64_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        most = (lanes)MAX(*(const lanes *)(x + i), most);
        second = (lanes)MAX(*(const lanes *)(x + i + LANES), second);
    }
    if (i + LANES <= count)
        most = (lanes)MAX(*(const lanes *)(x + i), most);
    if (count >= LANES) { /* the last vector may include elements seen before */
        second = (lanes)MAX(*(const lanes *)(x + count - LANES), second);
        return largest_lane((lanes)MAX(most, second));
    }
    for (; i < count; i++)
        least = x[i] > least ? x[i] : least;
    return least;
}

static real largest(int64_t count, const real *x, real least)
{
    return largest_of(count, x, least);
}

static void largest_of_rows(int64_t rows, const int64_t *counts, const real *x, int64_t stride,
                            real *most)
{
    for (int64_t i = 0; i < rows; i++)
        most[i] = largest_of(counts[i], x + i * stride, most[i]);
}

/* `vectors` of the row in registers, known to the compiler. */
static inline __attribute__((always_inline)) void
eliminate_tile(int vectors, int64_t count, const real *factors, int64_t factor_stride,
               const real *rows, int64_t stride, real *row)
{
    lanes left[ROW_VECTORS];
    for (int v = 0; v < vectors; v++)
        left[v] = ((const lanes *)row)[v];
    for (int64_t k = 0; k < count; k++) {
        real factor = factors[k * factor_stride];
        const lanes *other = (const lanes *)(rows + k * stride);
        for (int v = 0; v < vectors; v++)
            left[v] -= factor * other[v];
    }
    for (int v = 0; v < vectors; v++)
        ((lanes *)row)[v] = left[v];
}

static void eliminate(int64_t count, const real *factors, int64_t factor_stride, const real *rows,
                      int64_t stride, int64_t columns, real *row)
{
    int64_t j = 0;
    for (; j + ROW_VECTORS * LANES <= columns; j += ROW_VECTORS * LANES)
        eliminate_tile(ROW_VECTORS, count, factors, factor_stride, rows + j, stride, row + j);
    for (; j + 2 * LANES <= columns; j += 2 * LANES)
        eliminate_tile(2, count, factors, factor_stride, rows + j, stride, row + j);
    for (; j < columns; j += LANES)
        eliminate_tile(1, count, factors, factor_stride, rows + j, stride, row + j);
}

static void scale_and_downdate(int64_t columns, real divisor, real *row, real *rest)
{
    for (int64_t j = 0; j < columns; j += LANES) {
        lanes *at = (lanes *)(row + j);
        *at /= divisor;
        *(lanes *)(rest + j) -= *at * *at;
    }
}

enum { GROUP = 4, SUMS = 2 }; /* of weighted_pairs: i in a partial sum, partial sums over j */

/* The differences of y_j and `rows` rows x_i, in `vectors` vectors of `bytes` from `column` on. */
static inline __attribute__((always_inline)) void
add_row_differences(int rows, int vectors, size_t bytes, weighted_pairs q, int64_t i, int64_t j,
                    int64_t column, lanes x[GROUP][DIFFERENCES], lanes sums[GROUP][DIFFERENCES])
{
    const real *weights = q.weights + i * q.weight_row + j, *y = q.y + j * q.y_row + column;
    real *grad_y = q.grad_y + j * q.grad_y_row + column;
    lanes sum[DIFFERENCES] = {{0}};
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            lanes difference = load_first(bytes, y + v * LANES) - x[r][v];
            sums[r][v] = (lanes)FMA(weights[r * q.weight_row], difference, sums[r][v]);
            sum[v] = (lanes)FMA(weights[r * q.weight_row], difference, sum[v]);
        }
    for (int v = 0; v < vectors; v++)
        store_first(bytes, load_first(bytes, grad_y + v * LANES) - sum[v], grad_y + v * LANES);
}

/* All y_j and `rows` rows x_i, which stay in registers. */
static inline __attribute__((always_inline)) void
difference_tile(int rows, int vectors, size_t bytes, weighted_pairs q, int64_t i, int64_t column)
{
    lanes x[GROUP][DIFFERENCES], sums[SUMS][GROUP][DIFFERENCES] = {{{{0}}}};
    int64_t j = 0;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            x[r][v] = load_first(bytes, q.x + (i + r) * q.x_row + column + v * LANES);
    for (; j + SUMS <= q.count; j += SUMS)
        for (int sum = 0; sum < SUMS; sum++)
            add_row_differences(rows, vectors, bytes, q, i, j + sum, column, x, sums[sum]);
    for (; j < q.count; j++)
        add_row_differences(rows, vectors, bytes, q, i, j, column, x, sums[0]);
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            real *grad_x = q.grad_x + (i + r) * q.grad_x_row + column + v * LANES;
            store_first(bytes, load_first(bytes, grad_x) + (sums[0][r][v] + sums[1][r][v]), grad_x);
        }
}

static inline __attribute__((always_inline)) void difference_columns(int rows, weighted_pairs q,
                                                                     int64_t i)
{
    int64_t c = 0;
    for (; c + DIFFERENCES * LANES <= q.d; c += DIFFERENCES * LANES)
        difference_tile(rows, DIFFERENCES, BYTES, q, i, c);
    for (; DIFFERENCES > 1 && c + LANES <= q.d; c += LANES)
        difference_tile(rows, 1, BYTES, q, i, c);
    if (c < q.d)
        difference_tile(rows, 1, (size_t)(q.d - c) * sizeof(real), q, i, c);
}

static void add_differences(const weighted_pairs *pairs)
{
    int64_t i = 0;
    for (; i + GROUP <= pairs->p; i += GROUP)
        difference_columns(GROUP, *pairs, i);
    for (; i < pairs->p; i++)
        difference_columns(1, *pairs, i);
}

/* Enough chains to hide the latency at two operations per cycle; they fit the registers. */
static int multiply_adds(int64_t steps, real *sum)
{
    enum { CHAINS = 12 };
    lanes sums[CHAINS];
    const lanes factor = (lanes){0} + (real)0.5, addend = (lanes){0} + *sum + 1;
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++)
        sums[i] = addend + (real)i; /* so that no two chains are the same computation */
    for (int64_t step = 0; step < steps; step++)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            sums[i] = sums[i] * factor + addend;
    for (int i = 1; i < CHAINS; i++)
        sums[0] += sums[i];
    *sum = sums[0][0];
    return CHAINS * LANES;
}

const simd R(simd) = {
    .gaussian = gaussian,
    .exponentials = exponentials,
    .elu = elu,
    .relu = relu,
    .relu_backward = relu_backward,
    .scaled_exponentials = scaled_exponentials,
    .exponential_rows = exponential_rows,
    .exponential_columns = exponential_columns,
    .weighted_rows = weighted_rows,
    .softmax_peaks = softmax_peaks,
    .sincos = sincos_real,
    .sincos_f64 = sincos_f64,
    .gelu = gelu,
    .transpose = R(transpose_padded),
    .largest = largest,
    .largest_of_rows = largest_of_rows,
    .eliminate = eliminate,
    .scale_and_downdate = scale_and_downdate,
    .add_differences = add_differences,
    .multiply_adds = multiply_adds,
    .smallest_eigenvalue = R(smallest_eigenvalue),
    .product = R(multiply),
    .solve = R(solve),
};
