/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT's passes over the tokens on tensor cores.
 *
 * A block computes one chunk of one head; its four warps take tiles of tokens in turn, without
 * waiting for each other. A warp prefetches its next tiles into shared memory while it computes
 * one. The landmarks are there, too, in the order in which the products load their words.
 *
 * U is a product with landmarks as rows, Y one with tokens as rows; in both the first product
 * leaves the kernel's tile in the registers in which the second expects its left factor: a word of
 * that, two neighbouring columns of a narrow type, is two neighbouring sums of the same lane. tf32
 * has one column per word: there a lane's two sums serve as columns t and t + 4, and the rows of
 * the right factor are permuted accordingly.
 *
 * Reproducibility: the order of every sum depends on the shape alone. */
#include "operators/soft/cuda_fused.h"

#include "cuda/device.h"
#include "cuda/launch.cuh"
#include "cuda/mma.cuh"

enum { WARPS = 4, THREADS = 32 * WARPS, GROUP = 16, GROUPS = SOFT_FUSED_MOST / GROUP };

/* Tokens of a warp's tile: each pass keeps 32 rows of a tile. */
enum { SUM_TOKENS = 16, WRITE_TOKENS = 32, TILE_ROWS = 32 };

/* WIDTH: channels and value channels, rounded up. */
template <mma_type TYPE, int WIDTH> struct sizes {
    static const int STEPS = WIDTH / mma_element<TYPE>::INNER;  /* products over the channels */
    static const int COLUMNS = WIDTH / 8;                       /* products per row */
    static const int HALVES = GROUP / mma_element<TYPE>::INNER; /* products over a group */
    static const int ROW = WIDTH * mma_element<TYPE>::SIZE;     /* bytes */
    static const int STRIDE = ROW + 16; /* 16 bytes of each of eight rows are in different banks */
    static const int TILE = TILE_ROWS * STRIDE;
    static const int STAGES = ROW > 128 ? 2 : 3;
    static const int LANDMARK_WORDS = GROUPS * STEPS * 32 * 4;
    static const int WEIGHT_WORDS = GROUPS * HALVES * COLUMNS * 32 * 2;
    static const int TILES = WARPS * STAGES * TILE;
};

/* The arguments of a kernel. u is -s log2(e): K(x, l) = 2^(u |x|^2 + u |l|^2 - 2 u x.l). */
typedef struct {
    soft_fused f;
    atn_tensor q, v, y;
    float u, ceiling;
} fused_call;

/* ---- Rows of the caller's memory ---- */

/* One head's rows; the width of a row in bytes. */
typedef struct {
    char *memory;
    int64_t stride;
    int bytes;
} byte_rows;

template <mma_type TYPE>
static __device__ __forceinline__ byte_rows rows_of(const atn_tensor &t, int64_t piece)
{
    const int size = mma_element<TYPE>::SIZE;
    int64_t at = piece / t.heads * t.batch_stride + piece % t.heads * t.head_stride;
    byte_rows rows = {(char *)t.data + at * size, t.row_stride * size, (int)t.cols * size};
    return rows;
}

/* A warp copies rows first .. first + COUNT - 1; rows and columns beyond the end become 0. */
template <class Z, int COUNT>
static __device__ __forceinline__ void copy_rows(const byte_rows &from, int64_t first, int64_t end,
                                                 char *to)
{
    const int pieces = Z::ROW / 16;
#pragma unroll
    for (int i = 0; i < COUNT * pieces / 32; i++) {
        int e = mma_lane() + 32 * i, row = e / pieces, at = e % pieces * 16;
        bool inside = first + row < end && at < from.bytes;
        mma_copy(to + row * Z::STRIDE + at,
                 from.memory + (inside ? (first + row) * from.stride + at : 0), inside ? 16 : 0);
    }
}

template <class Z, int COUNT>
static __device__ __forceinline__ void store_rows(const byte_rows &to, int64_t first, int64_t end,
                                                  const char *from)
{
    const int pieces = Z::ROW / 16;
#pragma unroll
    for (int i = 0; i < COUNT * pieces / 32; i++) {
        int e = mma_lane() + 32 * i, row = e / pieces, at = e % pieces * 16;
        if (first + row < end && at < to.bytes)
            *cuda_vectors<uint4>(to.memory + (first + row) * to.stride + at) =
                *cuda_vectors<const uint4>(from + row * Z::STRIDE + at);
    }
}

/* ---- A block's shared memory: landmarks, their norms, W ---- */

static __device__ __forceinline__ float entry(const float *a, int64_t rows, int64_t cols, int i,
                                              int j)
{
    return i < rows && j < cols ? a[i * cols + j] : 0;
}

/* Words in the order group, step, lane, word. The four words are a[0 .. 3] of a left factor; a[0],
 * a[2] and a[1], a[3] are also b of a right factor, for the two halves of the group. */
template <mma_type TYPE, class Z>
static __device__ void keep_landmarks(const float *landmarks, int64_t m, int64_t d, uint32_t *words)
{
    const int inner = mma_element<TYPE>::INNER, per_word = inner / 8;
    for (int e = (int)threadIdx.x; e < Z::LANDMARK_WORDS; e += THREADS) {
        int word = e % 4, lane = e / 4 % 32, step = e / 128 % Z::STEPS, group = e / 128 / Z::STEPS;
        int i = GROUP * group + lane / 4 + word % 2 * 8;
        int c = inner * step + word / 2 * inner / 2 + lane % 4 * per_word;
        words[e] = mma_word<TYPE>(entry(landmarks, m, d, i, c), entry(landmarks, m, d, i, c + 1));
    }
}

/* u |l|^2; -infinity beyond the last landmark, so that the kernel is 0 there. */
template <mma_type TYPE>
static __device__ void keep_norms(const float *landmarks, int64_t m, int64_t d, float u,
                                  float *norms)
{
    int i = (int)threadIdx.x;
    if (i >= SOFT_FUSED_MOST)
        return;
    float sum = 0;
    for (int c = 0; i < m && c < d; c++) {
        float rounded = mma_low<TYPE>(mma_word<TYPE>(landmarks[i * d + c], 0));
        sum = fmaf(rounded, rounded, sum);
    }
    norms[i] = i < m ? u * sum : -HUGE_VALF;
}

/* A power of two that brings the largest entry of f16's W to 2^14 .. 2^15; 1 for the other types,
 * which have f32's range. */
template <mma_type TYPE>
static __device__ float scale_of(const float *weights, int64_t count, float *largest)
{
    if (TYPE != MMA_F16)
        return 1;
    float most = 0;
    for (int64_t e = threadIdx.x; e < count; e += THREADS)
        most = fmaxf(most, fabsf(weights[e]));
    for (int away = 16; away > 0; away /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, away));
    if (mma_lane() == 0)
        largest[threadIdx.x / 32] = most;
    __syncthreads();
    for (int w = 0; w < WARPS; w++)
        most = fmaxf(most, largest[w]);
    __syncthreads();
    int power = 14 + 127 - (int)(__float_as_uint(most) >> 23);
    return __uint_as_float((uint32_t)(127 + (power < 120 ? power : 120)) << 23);
}

/* Words in the order group, half, pair of columns, lane, column, word. Rows of a product are
 * landmarks in order for the narrow types; for tf32 rows t and t + 4 are landmarks 2 t and 2 t + 1.
 */
template <mma_type TYPE, class Z>
static __device__ void keep_weights(const float *weights, int64_t m, int64_t dv, float scale,
                                    uint32_t *words)
{
    for (int e = (int)threadIdx.x; e < Z::WEIGHT_WORDS; e += THREADS) {
        int word = e % 2, lane = e / 4 % 32, pairs = e / 128;
        int column = pairs % (Z::COLUMNS / 2) * 2 + e / 2 % 2;
        int half = pairs / (Z::COLUMNS / 2) % Z::HALVES;
        int group = pairs / (Z::COLUMNS / 2) / Z::HALVES;
        int i = GROUP * group + 8 * half + lane % 4 * 2 + (TYPE == MMA_TF32 ? word : 8 * word);
        int c = 8 * column + lane / 4;
        words[e] = mma_word<TYPE>(entry(weights, m, dv, i, c) * scale,
                                  entry(weights, m, dv, i + 1, c) * scale);
    }
}

/* ---- The kernel's tile ---- */

template <mma_type TYPE>
static __device__ __forceinline__ float add_squares(uint32_t word, float sum)
{
    float low = mma_low<TYPE>(word), high = mma_high<TYPE>(word);
    sum = fmaf(low, low, sum);
    return TYPE == MMA_TF32 ? sum : fmaf(high, high, sum);
}

template <mma_type TYPE> static __device__ __forceinline__ bool word_bad(uint32_t word)
{
    return !isfinite(mma_low<TYPE>(word)) || !isfinite(mma_high<TYPE>(word));
}

/* u |x|^2 for a token whose words four neighbouring lanes share: words[step][first],
 * words[step][second]. A sum that is not finite may have overflowed: only then the words are
 * checked for NaN and infinity. */
template <mma_type TYPE, int STEPS, int WORDS>
static __device__ __forceinline__ float token_norm(const uint32_t (&words)[STEPS][WORDS], int first,
                                                   int second, float u, bool *bad)
{
    float sum = 0;
#pragma unroll
    for (int k = 0; k < STEPS; k++)
        sum = add_squares<TYPE>(words[k][second], add_squares<TYPE>(words[k][first], sum));
    if (!(sum < HUGE_VALF))
#pragma unroll
        for (int k = 0; k < STEPS; k++)
            *bad |= word_bad<TYPE>(words[k][first]) || word_bad<TYPE>(words[k][second]);
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    return u * sum;
}

/* K(x, l) from x.l. The exponent's error is a few ulps of its larger terms. */
static __device__ __forceinline__ float kernel_of(const fused_call &c, float product, float x_norm,
                                                  float l_norm)
{
    return mma_exp2(mma_min(fmaf(-2 * c.u, product, x_norm + l_norm), c.ceiling));
}

/* Two neighbouring products of the tile, as left factor `half` of the next product. */
template <mma_type TYPE>
static __device__ __forceinline__ void as_factor(const float (&p)[2][4], int half, uint32_t (&a)[4])
{
    if (TYPE == MMA_TF32) {
        a[0] = mma_word<TYPE>(p[half][0], 0);
        a[1] = mma_word<TYPE>(p[half][2], 0);
        a[2] = mma_word<TYPE>(p[half][1], 0);
        a[3] = mma_word<TYPE>(p[half][3], 0);
    } else {
        a[0] = mma_word<TYPE>(p[0][0], p[0][1]);
        a[1] = mma_word<TYPE>(p[0][2], p[0][3]);
        a[2] = mma_word<TYPE>(p[1][0], p[1][1]);
        a[3] = mma_word<TYPE>(p[1][2], p[1][3]);
    }
}

/* A word of memory as a word of a factor: f32 is rounded to tf32, narrow words are unchanged. */
template <mma_type TYPE> static __device__ __forceinline__ uint32_t as_word(uint32_t memory)
{
    return TYPE == MMA_TF32 ? mma_word<TYPE>(__uint_as_float(memory), 0) : memory;
}

/* ---- U ---- */

/* The tile's 16 tokens as columns: the lane's words of tokens g and g + 8. */
template <mma_type TYPE, class Z>
static __device__ __forceinline__ void load_columns(const char *tile, uint32_t (&x)[2][Z::STEPS][2])
{
    int lane = mma_lane();
    const char *row = tile + (lane / 16 * 8 + lane % 8) * Z::STRIDE + lane / 8 % 2 * 16;
#pragma unroll
    for (int k = 0; k < Z::STEPS; k++) {
        uint32_t words[4];
        mma_load(words, row + 32 * k);
        x[0][k][0] = as_word<TYPE>(words[0]);
        x[0][k][1] = as_word<TYPE>(words[1]);
        x[1][k][0] = as_word<TYPE>(words[2]);
        x[1][k][1] = as_word<TYPE>(words[3]);
    }
}

/* The values of 16 tokens as right factor: narrow types load two columns at a time; tf32 loads
 * single words, where rows t and t + 4 of a half are tokens 2 t and 2 t + 1. */
template <mma_type TYPE, class Z>
static __device__ __forceinline__ void load_values(const char *tile, int half, int pair,
                                                   uint32_t (&b)[2][2])
{
    int lane = mma_lane();
    if (TYPE == MMA_TF32) {
        const char *row = tile + (8 * half + lane % 4 * 2) * Z::STRIDE + (16 * pair + lane / 4) * 4;
        for (int column = 0; column < 2; column++)
            for (int i = 0; i < 2; i++) {
                uint32_t word = *(const uint32_t *)(row + i * Z::STRIDE + column * 32);
                b[column][i] = as_word<TYPE>(word);
            }
    } else {
        uint32_t words[4];
        mma_load_transposed(words, tile + lane % 16 * Z::STRIDE + 32 * pair + lane / 16 * 16);
        b[0][0] = words[0];
        b[0][1] = words[1];
        b[1][0] = words[2];
        b[1][1] = words[3];
    }
}

/* Norms of the tokens that are columns 2 t and 2 t + 1 of the tile's two products. */
template <mma_type TYPE, class Z>
static __device__ __forceinline__ void column_norms(const uint32_t (&x)[2][Z::STEPS][2], float u,
                                                    float (&norms)[2][2], bool *bad)
{
#pragma unroll
    for (int side = 0; side < 2; side++) {
        float mine = token_norm<TYPE, Z::STEPS, 2>(x[side], 0, 1, u, bad);
        norms[side][0] = __shfl_sync(0xffffffffu, mine, mma_lane() % 4 * 8);
        norms[side][1] = __shfl_sync(0xffffffffu, mine, mma_lane() % 4 * 8 + 4);
    }
}

/* K(L, Q) of a group of landmarks and 16 tokens. */
template <mma_type TYPE, class Z>
static __device__ __forceinline__ void
landmark_rows(const fused_call &c, const uint4 *landmarks, const float *l_norms, int group,
              const uint32_t (&x)[2][Z::STEPS][2], const float (&x_norms)[2][2], float (&p)[2][4])
{
#pragma unroll
    for (int e = 0; e < 8; e++)
        p[e / 4][e % 4] = 0;
#pragma unroll
    for (int k = 0; k < Z::STEPS; k++) {
        uint4 words = landmarks[(group * Z::STEPS + k) * 32 + mma_lane()];
        uint32_t a[4] = {words.x, words.y, words.z, words.w};
        mma_add<TYPE>(p[0], a, x[0][k]);
        mma_add<TYPE>(p[1], a, x[1][k]);
    }
    float above = l_norms[GROUP * group + mma_lane() / 4];
    float below = l_norms[GROUP * group + mma_lane() / 4 + 8];
#pragma unroll
    for (int e = 0; e < 8; e++)
        p[e / 4][e % 4] =
            kernel_of(c, p[e / 4][e % 4], x_norms[e / 4][e % 2], e % 4 < 2 ? above : below);
}

/* Adds a tile's 16 tokens to a warp's sums: all landmarks by all value channels. */
template <mma_type TYPE, class Z>
static __device__ __forceinline__ void add_tile(const fused_call &c, const char *tile,
                                                const uint4 *landmarks, const float *l_norms,
                                                float (&sums)[GROUPS][Z::COLUMNS][4], bool *bad)
{
    uint32_t x[2][Z::STEPS][2];
    float x_norms[2][2];
    load_columns<TYPE, Z>(tile, x);
    column_norms<TYPE, Z>(x, c.u, x_norms, bad);
    const char *values = tile + SUM_TOKENS * Z::STRIDE;
#pragma unroll
    for (int group = 0; group < GROUPS; group++) {
        if (GROUP * group >= c.f.m)
            break;
        float p[2][4];
        landmark_rows<TYPE, Z>(c, landmarks, l_norms, group, x, x_norms, p);
#pragma unroll
        for (int half = 0; half < Z::HALVES; half++) {
            uint32_t a[4], b[2][2];
            as_factor<TYPE>(p, half, a);
#pragma unroll
            for (int pair = 0; pair < Z::COLUMNS / 2; pair++) {
                load_values<TYPE, Z>(values, half, pair, b);
                mma_add<TYPE>(sums[group][2 * pair], a, b[0]);
                mma_add<TYPE>(sums[group][2 * pair + 1], a, b[1]);
            }
        }
    }
}

/* Adds up the warps' sums, in order, for the chunk. A value that was not finite has made a whole
 * column of them not finite. */
template <class Z>
static __device__ void finish_sums(const fused_call &c, const float (&sums)[GROUPS][Z::COLUMNS][4],
                                   float *total, float *partial, bool *bad)
{
    const int stride = Z::COLUMNS * 8;
    int lane = mma_lane();
    for (int warp = 0; warp < WARPS; warp++) {
        __syncthreads();
        if ((int)threadIdx.x / 32 != warp)
            continue;
#pragma unroll
        for (int e = 0; e < GROUPS * Z::COLUMNS * 4; e++) {
            int group = e / 4 / Z::COLUMNS, column = e / 4 % Z::COLUMNS, i = e % 4;
            float *at = total + (GROUP * group + lane / 4 + i / 2 * 8) * stride + 8 * column +
                        lane % 4 * 2 + i % 2;
            *at = (warp ? *at : 0) + sums[group][column][i];
        }
    }
    __syncthreads();
    int dv = (int)c.v.cols, count = (int)c.f.m * dv;
    for (int e = (int)threadIdx.x; e < count; e += THREADS) {
        float sum = total[e / dv * stride + e % dv];
        *bad |= !isfinite(sum);
        partial[e] = sum;
    }
}

template <mma_type TYPE, class Z>
static __device__ void sum_chunk(const fused_call &c, int64_t piece, int64_t chunk)
{
    uint32_t *words = cuda_shared<uint32_t>();
    float *norms = (float *)(words + Z::LANDMARK_WORDS);
    char *tiles = (char *)(norms + SOFT_FUSED_MOST);
    int warp = (int)threadIdx.x / 32;
    char *mine = tiles + warp * Z::STAGES * Z::TILE;
    byte_rows q = rows_of<TYPE>(c.q, piece), v = rows_of<TYPE>(c.v, piece);
    int64_t end = chunk * c.f.chunk + c.f.chunk, next = chunk * c.f.chunk + warp * SUM_TOKENS;
    end = end < c.q.rows ? end : c.q.rows;
    float sums[GROUPS][Z::COLUMNS][4] = {};
    bool bad = false;

    auto fetch = [&](int stage) {
        if (next < end) {
            copy_rows<Z, SUM_TOKENS>(q, next, end, mine + stage * Z::TILE);
            copy_rows<Z, SUM_TOKENS>(v, next, end, mine + stage * Z::TILE + SUM_TOKENS * Z::STRIDE);
        }
        next += WARPS * SUM_TOKENS;
        mma_copy_group();
    };
    int64_t first = next;
    for (int stage = 0; stage < Z::STAGES - 1; stage++)
        fetch(stage);
    const float *landmarks = c.f.landmarks + piece * c.f.head_stride;
    keep_landmarks<TYPE, Z>(landmarks, c.f.m, c.q.cols, words);
    keep_norms<TYPE>(landmarks, c.f.m, c.q.cols, c.u, norms);
    __syncthreads();
    int stage = 0;
    for (int64_t i = first; i < end; i += WARPS * SUM_TOKENS) {
        mma_copy_wait<Z::STAGES - 2>();
        __syncwarp();
        fetch((stage + Z::STAGES - 1) % Z::STAGES);
        add_tile<TYPE, Z>(c, mine + stage * Z::TILE, cuda_vectors<const uint4>(words), norms, sums,
                          &bad);
        stage = (stage + 1) % Z::STAGES;
    }
    mma_copy_wait<0>();
    finish_sums<Z>(c, sums, (float *)tiles,
                   c.f.partials + (piece * c.f.chunks + chunk) * c.f.partial_stride, &bad);
    if (__syncthreads_or(bad) && threadIdx.x == 0)
        c.f.nonfinite[piece] = 1;
}

template <mma_type TYPE, int WIDTH>
static __global__ void __launch_bounds__(THREADS, WIDTH > 32 ? 2 : 3)
    sum_tokens(const __grid_constant__ fused_call c)
{
    int64_t count = c.q.batch * c.q.heads * c.f.chunks;
    for (int64_t i = blockIdx.x; i < count; i += gridDim.x)
        sum_chunk<TYPE, sizes<TYPE, WIDTH>>(c, i / c.f.chunks, i % c.f.chunks);
}

/* ---- Y ---- */

/* 16 tokens as rows. */
template <mma_type TYPE, class Z>
static __device__ __forceinline__ void load_left(const char *tile, uint32_t (&x)[Z::STEPS][4])
{
    const char *row = tile + mma_lane() % 16 * Z::STRIDE + mma_lane() / 16 * 16;
#pragma unroll
    for (int k = 0; k < Z::STEPS; k++) {
        mma_load(x[k], row + 32 * k);
#pragma unroll
        for (int i = 0; i < 4; i++)
            x[k][i] = as_word<TYPE>(x[k][i]);
    }
}

/* K(Q, L) of two times 16 tokens and a group of landmarks. */
template <mma_type TYPE, class Z>
static __device__ __forceinline__ void
token_rows(const fused_call &c, const uint4 *landmarks, const float *l_norms, int group,
           const uint32_t (&x)[2][Z::STEPS][4], const float (&x_norms)[2][2], float (&p)[2][2][4])
{
#pragma unroll
    for (int e = 0; e < 16; e++)
        p[e / 8][e / 4 % 2][e % 4] = 0;
#pragma unroll
    for (int k = 0; k < Z::STEPS; k++) {
        uint4 words = landmarks[(group * Z::STEPS + k) * 32 + mma_lane()];
        uint32_t left[2] = {words.x, words.z}, right[2] = {words.y, words.w};
#pragma unroll
        for (int side = 0; side < 2; side++) {
            mma_add<TYPE>(p[side][0], x[side][k], left);
            mma_add<TYPE>(p[side][1], x[side][k], right);
        }
    }
#pragma unroll
    for (int e = 0; e < 16; e++) {
        int side = e / 8, column = e / 4 % 2, i = e % 4;
        float l_norm = l_norms[GROUP * group + 8 * column + mma_lane() % 4 * 2 + i % 2];
        p[side][column][i] = kernel_of(c, p[side][column][i], x_norms[side][i / 2], l_norm);
    }
}

/* Larger values are stored as infinity. */
template <mma_type TYPE> static __device__ __forceinline__ float storable(void)
{
    return TYPE == MMA_F16 ? 65520.0F : TYPE == MMA_BF16 ? 0x1.ffp127F : HUGE_VALF;
}

/* Stores 16 rows of Y in the tile of their tokens. */
template <mma_type TYPE, class Z>
static __device__ __forceinline__ void keep_rows(const float (&sums)[Z::COLUMNS][4], float unit,
                                                 char *tile, bool *bad)
{
    char *row = tile + mma_lane() / 4 * Z::STRIDE + mma_lane() % 4 * 2 * mma_element<TYPE>::SIZE;
#pragma unroll
    for (int e = 0; e < Z::COLUMNS * 2; e++) {
        float x = sums[e / 2][e % 2 * 2] * unit, y = sums[e / 2][e % 2 * 2 + 1] * unit;
        char *at = row + e % 2 * 8 * Z::STRIDE + e / 2 * 8 * mma_element<TYPE>::SIZE;
        *bad |= !(fabsf(x) < storable<TYPE>()) || !(fabsf(y) < storable<TYPE>());
        if (TYPE == MMA_TF32)
            *cuda_vectors<float2>(at) = make_float2(x, y);
        else
            *(uint32_t *)at = mma_word<TYPE>(x, y);
    }
}

/* Computes a tile's 32 rows of Y, in the place of its tokens. */
template <mma_type TYPE, class Z>
static __device__ __forceinline__ void multiply_tile(const fused_call &c, char *tile,
                                                     const uint4 *landmarks, const float *l_norms,
                                                     const uint4 *weights, float unit, bool *bad)
{
    uint32_t x[2][Z::STEPS][4];
    float x_norms[2][2], sums[2][Z::COLUMNS][4] = {};
    bool input_bad = false; /* the first pass has checked the input */
#pragma unroll
    for (int side = 0; side < 2; side++) {
        load_left<TYPE, Z>(tile + side * 16 * Z::STRIDE, x[side]);
        x_norms[side][0] = token_norm<TYPE, Z::STEPS, 4>(x[side], 0, 2, c.u, &input_bad);
        x_norms[side][1] = token_norm<TYPE, Z::STEPS, 4>(x[side], 1, 3, c.u, &input_bad);
    }
#pragma unroll
    for (int group = 0; group < GROUPS; group++) {
        if (GROUP * group >= c.f.m)
            break;
        float p[2][2][4];
        token_rows<TYPE, Z>(c, landmarks, l_norms, group, x, x_norms, p);
#pragma unroll
        for (int half = 0; half < Z::HALVES; half++) {
            uint32_t a[2][4];
            as_factor<TYPE>(p[0], half, a[0]);
            as_factor<TYPE>(p[1], half, a[1]);
#pragma unroll
            for (int pair = 0; pair < Z::COLUMNS / 2; pair++) {
                int at = (group * Z::HALVES + half) * (Z::COLUMNS / 2) + pair;
                uint4 words = weights[at * 32 + mma_lane()];
                uint32_t left[2] = {words.x, words.y}, right[2] = {words.z, words.w};
#pragma unroll
                for (int side = 0; side < 2; side++) {
                    mma_add<TYPE>(sums[side][2 * pair], a[side], left);
                    mma_add<TYPE>(sums[side][2 * pair + 1], a[side], right);
                }
            }
        }
    }
    __syncwarp(); /* all lanes have read the tokens */
    keep_rows<TYPE, Z>(sums[0], unit, tile, bad);
    keep_rows<TYPE, Z>(sums[1], unit, tile + 16 * Z::STRIDE, bad);
    __syncwarp();
}

template <mma_type TYPE, class Z>
static __device__ void write_chunk(const fused_call &c, int64_t piece, int64_t chunk)
{
    uint32_t *words = cuda_shared<uint32_t>(), *weights = words + Z::LANDMARK_WORDS;
    float *norms = (float *)(weights + Z::WEIGHT_WORDS);
    int warp = (int)threadIdx.x / 32;
    char *mine = (char *)(norms + SOFT_FUSED_MOST) + warp * Z::STAGES * Z::TILE;
    byte_rows q = rows_of<TYPE>(c.q, piece), y = rows_of<TYPE>(c.y, piece);
    int64_t end = chunk * c.f.chunk + c.f.chunk, next = chunk * c.f.chunk + warp * WRITE_TOKENS;
    end = end < c.q.rows ? end : c.q.rows;
    bool bad = false;

    auto fetch = [&](int stage) {
        if (next < end)
            copy_rows<Z, WRITE_TOKENS>(q, next, end, mine + stage * Z::TILE);
        next += WARPS * WRITE_TOKENS;
        mma_copy_group();
    };
    int64_t first = next;
    for (int stage = 0; stage < Z::STAGES - 1; stage++)
        fetch(stage);
    const float *landmarks = c.f.landmarks + piece * c.f.head_stride;
    const float *w = c.f.weights + piece * c.f.head_stride;
    float scale = scale_of<TYPE>(w, c.f.m * c.y.cols, norms);
    keep_landmarks<TYPE, Z>(landmarks, c.f.m, c.q.cols, words);
    keep_norms<TYPE>(landmarks, c.f.m, c.q.cols, c.u, norms);
    keep_weights<TYPE, Z>(w, c.f.m, c.y.cols, scale, weights);
    __syncthreads();
    int stage = 0;
    for (int64_t i = first; i < end; i += WARPS * WRITE_TOKENS) {
        mma_copy_wait<Z::STAGES - 2>();
        __syncwarp();
        fetch((stage + Z::STAGES - 1) % Z::STAGES);
        char *tile = mine + stage * Z::TILE;
        multiply_tile<TYPE, Z>(c, tile, cuda_vectors<const uint4>(words), norms,
                               cuda_vectors<const uint4>(weights), 1 / scale, &bad);
        store_rows<Z, WRITE_TOKENS>(y, i, end, tile);
        stage = (stage + 1) % Z::STAGES;
    }
    mma_copy_wait<0>();
    if (__syncthreads_or(bad) && threadIdx.x == 0)
        c.f.nonfinite[piece] = 1;
}

template <mma_type TYPE, int WIDTH>
static __global__ void __launch_bounds__(THREADS, WIDTH > 32 ? 2 : 3)
    write_tokens(const __grid_constant__ fused_call c)
{
    int64_t count = c.q.batch * c.q.heads * c.f.chunks;
    for (int64_t i = blockIdx.x; i < count; i += gridDim.x)
        write_chunk<TYPE, sizes<TYPE, WIDTH>>(c, i / c.f.chunks, i % c.f.chunks);
}

template <class T> static __device__ void fill_head(const atn_tensor &t, int64_t piece, T value)
{
    int64_t head = piece / t.heads * t.batch_stride + piece % t.heads * t.head_stride;
    for (int64_t e = threadIdx.x; e < t.rows * t.cols; e += THREADS)
        ((T *)t.data)[head + e / t.cols * t.row_stride + e % t.cols] = value;
}

static __global__ void __launch_bounds__(THREADS) finish_heads(const __grid_constant__ fused_call c)
{
    for (int64_t piece = blockIdx.x; piece < c.y.batch * c.y.heads; piece += gridDim.x) {
        if (!c.f.nonfinite[piece])
            continue;
        if (c.y.dtype == ATN_TF32 || c.y.dtype == ATN_F32)
            fill_head(c.y, piece, (float)NAN);
        else /* the one NaN that devices make, of both types */
            fill_head(c.y, piece, (unsigned short)0x7fff);
    }
}

/* ---- Calls ---- */

typedef struct {
    void (*kernel)(fused_call);
    size_t shared;
} fused_kernel;

template <mma_type TYPE, int WIDTH> static fused_kernel sum_kernel(void)
{
    typedef sizes<TYPE, WIDTH> z;
    return {sum_tokens<TYPE, WIDTH>, (z::LANDMARK_WORDS + SOFT_FUSED_MOST) * 4 + z::TILES};
}

template <mma_type TYPE, int WIDTH> static fused_kernel write_kernel(void)
{
    typedef sizes<TYPE, WIDTH> z;
    return {write_tokens<TYPE, WIDTH>,
            (z::LANDMARK_WORDS + z::WEIGHT_WORDS + SOFT_FUSED_MOST) * 4 + z::TILES};
}

/* By type, and by whether 32 channels are enough. */
enum { WIDE = 64, NARROW = 32 };
#define FUSED_KERNELS(name)                                                                        \
    {                                                                                              \
        {name<MMA_BF16, WIDE>(), name<MMA_BF16, NARROW>()},                                        \
            {name<MMA_F16, WIDE>(), name<MMA_F16, NARROW>()},                                      \
        {                                                                                          \
            name<MMA_TF32, WIDE>(), name<MMA_TF32, NARROW>()                                       \
        }                                                                                          \
    }

static int type_of(atn_dtype dtype)
{
    return dtype == ATN_BF16 ? MMA_BF16 : dtype == ATN_F16 ? MMA_F16 : MMA_TF32;
}

typedef fused_kernel kernel_table[MMA_TYPES][2];
static const kernel_table sum_kernels = FUSED_KERNELS(sum_kernel);
static const kernel_table write_kernels = FUSED_KERNELS(write_kernel);

static const fused_kernel *kernel_for(const kernel_table table, atn_dtype dtype, int64_t d,
                                      int64_t dv)
{
    return &table[type_of(dtype)][d <= NARROW && dv <= NARROW];
}

static fused_call open_call(const soft_fused *fused)
{
    fused_call c = {};
    c.f = *fused;
    c.u = (float)(-fused->s * 1.4426950408889634);
    c.ceiling = fused->clamp ? 0 : HUGE_VALF;
    return c;
}

static atn_status launch(atn_context *context, const kernel_table table, const fused_call *c,
                         const atn_tensor *other, const char *name)
{
    int64_t count = c->q.batch * c->q.heads * c->f.chunks;
    if (count == 0)
        return ATN_OK;
    const fused_kernel *k = kernel_for(table, c->q.dtype, c->q.cols, other->cols);
    unsigned blocks = (unsigned)(count < INT32_MAX ? count : INT32_MAX);
    return device_result(context,
                         cuda_launch(k->kernel, dim3(blocks), dim3(THREADS), k->shared,
                                     (cudaStream_t)device_stream(context), *c),
                         name);
}

atn_status soft_fused_sum(atn_context *context, const soft_fused *fused, const atn_tensor *q,
                          const atn_tensor *v)
{
    fused_call c = open_call(fused);
    c.q = *q;
    c.v = *v;
    return launch(context, sum_kernels, &c, v, "SOFT's sum over tokens");
}

atn_status soft_fused_write(atn_context *context, const soft_fused *fused, const atn_tensor *q,
                            const atn_tensor *y)
{
    fused_call c = open_call(fused);
    c.q = *q;
    c.y = *y;
    return launch(context, write_kernels, &c, y, "SOFT's output");
}

atn_status soft_fused_finish(atn_context *context, const soft_fused *fused, const atn_tensor *y)
{
    fused_call c = open_call(fused);
    int64_t count = y->batch * y->heads;
    c.y = *y;
    if (count == 0)
        return ATN_OK;
    unsigned blocks = (unsigned)(count < INT32_MAX ? count : INT32_MAX);
    return device_result(context,
                         cuda_launch(finish_heads, dim3(blocks), dim3(THREADS), 0,
                                     (cudaStream_t)device_stream(context), c),
                         "the end of a call");
}

/* ---- Plans ---- */

static bool width_fits(int64_t width, atn_dtype dtype)
{
    return width >= 1 && width <= SOFT_FUSED_MOST &&
           width * (int64_t)atn_dtype_size(dtype) % 16 == 0;
}

static bool shared_fits(atn_dtype type, const atn_attention_shape *shape, size_t shared)
{
    return kernel_for(sum_kernels, type, shape->dim, shape->value_dim)->shared <= shared &&
           kernel_for(write_kernels, type, shape->dim, shape->value_dim)->shared <= shared;
}

bool soft_fused_fits(const atn_attention_desc *desc, const atn_attention_shape *shape, int64_t m,
                     size_t shared, const char **reason)
{
    atn_dtype type = desc->dtype;
    double s = atn_kernel_scale(desc->scale, desc->scale_value, shape->heads, shape->dim);
    const char *against = NULL;
    if (type != ATN_BF16 && type != ATN_F16 && type != ATN_TF32)
        against = "the dtype";
    else if (desc->distance == ATN_DISTANCE_DIRECT)
        against = "distance direct";
    else if (desc->inverse.method == ATN_INVERSE_PIVOTED_CHOLESKY)
        against = "the inverse in factor form";
    else if (desc->residual.data)
        against = "the residual";
    else if (m < 1 || m > SOFT_FUSED_MOST)
        against = "the number of landmarks";
    else if (!width_fits(shape->dim, type) || !width_fits(shape->value_dim, type))
        against = "dim or value_dim";
    else if (!shared_fits(type, shape, shared))
        against = "the device's shared memory";
    else if (!(s > 1e-30 && s < 1e30))
        against = "the scale";
    if (reason)
        *reason = against ? against : "";
    return !against;
}

bool soft_fused_aligned(const atn_tensor *t)
{
    int64_t each = 16 / (int64_t)atn_dtype_size(t->dtype);
    return (uintptr_t)t->data % 16 == 0 && (t->rows <= 1 || t->row_stride % each == 0) &&
           (t->heads <= 1 || t->head_stride % each == 0) &&
           (t->batch <= 1 || t->batch_stride % each == 0);
}

/* 512 blocks of four warps are three to four per multiprocessor of current devices; a chunk's sum
 * of 64 x 64 is written and read once, a few percent more for 2048 tokens or more. */
void soft_fused_chunks(const atn_attention_shape *shape, int64_t *chunk, int64_t *chunks)
{
    const int64_t BLOCKS = 512, LEAST = 256, MOST = 4096, MULTIPLE = 64;
    double each =
        (double)shape->batch * (double)shape->heads * (double)shape->tokens / (double)BLOCKS;
    int64_t most = each < (double)LEAST ? LEAST : each > (double)MOST ? MOST : (int64_t)each;
    int64_t count = (shape->tokens + most - 1) / most;
    int64_t even = count ? (shape->tokens + count - 1) / count : 0;
    *chunk = (even + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    *chunk = *chunk < LEAST ? LEAST : *chunk;
    *chunks = (shape->tokens + *chunk - 1) / *chunk;
}
