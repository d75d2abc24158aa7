/* SPDX-License-Identifier: BSD-3-Clause */
/* Reformer's LSH attention (Kitaev et al. 2020) as defined in attnum/operators.h: the tokens of all
 * rounds in one sequence ordered by (round, bucket, token), cut into chunks whose queries see the
 * keys of their own chunk and of the chunk before. Padded tokens are not in the sequence. */
#include "../lsh_buckets.h"

#include "dense.h"

/* An entry of the sequence. */
typedef struct {
    int64_t round, bucket, token;
} lsh_entry;

static int compare(const void *left, const void *right)
{
    const lsh_entry *a = left, *b = right;
    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    if (a->bucket != b->bucket)
        return a->bucket < b->bucket ? -1 : 1;
    return (a->token > b->token) - (a->token < b->token);
}

static int64_t rounds_of(const ref_head *h)
{
    const atn_lsh_options *o = &h->desc->lsh;
    return o->buckets ? o->rounds : o->rotations.heads;
}

/* x holds d. */
static int64_t bucket_of(const ref_head *h, int64_t round, int64_t token, double *x)
{
    const atn_lsh_options *o = &h->desc->lsh;
    int64_t head = h->batch * h->all->shape.heads + h->head, half = o->rotations.cols;
    if (o->buckets)
        return o->buckets[(head * o->rounds + round) * h->n + token];
    for (int64_t c = 0; c < h->d; c++)
        x[c] = (double)num_value(h->q[token * h->d + c]);
    return ref_lsh_bucket(h->d, half, x, (const double *)o->rotations.data + round * h->d * half,
                          NULL);
}

/* Fills the sequence; returns its length. */
static int64_t arrange(const ref_head *h, double *x, lsh_entry *sequence)
{
    int64_t count = 0;
    for (int64_t round = 0; round < rounds_of(h); round++)
        for (int64_t token = 0; token < h->n; token++)
            if (ref_query(h, token))
                sequence[count++] = (lsh_entry){round, bucket_of(h, round, token, x), token};
    qsort(sequence, (size_t)count, sizeof *sequence, compare);
    return count;
}

/* k_j = q_j / max(|q_j|, 1e-12). The root of 0 has no derivative, but 1e-12 is larger there. */
static void normalise(const ref_head *h, num *keys)
{
    for (int64_t j = 0; j < h->n; j++) {
        const num *q = h->q + j * h->d;
        num squared = NUM(ref_dot)(h->d, q, q);
        num norm = num_max(num_value(squared) > 0 ? num_sqrt(squared) : 0, 1e-12);
        for (int64_t c = 0; c < h->d; c++)
            keys[j * h->d + c] = q[c] / norm;
    }
}

/* The l-th key that query `at` sees, l < 2 chunk: its own chunk, then the one before. */
static int64_t seen_from(int64_t at, int64_t l, int64_t chunk, int64_t count)
{
    int64_t first = at / chunk * chunk;
    return l < chunk ? first + l : (first + count - chunk) % count + l - chunk;
}

/* Attention of one entry: adds to row (dv), returns log sum exp. weights holds 2 chunk. */
static num attend(const ref_head *h, int64_t count, const lsh_entry *sequence, int64_t at,
                  const num *keys, num *weights, num *row)
{
    const atn_lsh_options *o = &h->desc->lsh;
    int64_t token = sequence[at].token;
    long double scale = NUM(ref_logit_scale)(h);
    for (int64_t l = 0; l < 2 * o->chunk; l++) {
        int64_t other = sequence[seen_from(at, l, o->chunk, count)].token;
        num product = NUM(ref_dot)(h->d, h->q + token * h->d, keys + other * h->d);
        weights[l] = other == token ? (num)o->self_logit : scale * product;
    }
    num log_sum = NUM(ref_softmax_row)(2 * o->chunk, weights);
    for (int64_t l = 0; l < 2 * o->chunk; l++) {
        int64_t other = sequence[seen_from(at, l, o->chunk, count)].token;
        for (int64_t c = 0; c < h->dv; c++)
            row[c] += weights[l] * h->v[other * h->dv + c];
    }
    return log_sum;
}

/* Y_i = sum_r w_r Y_i^r; y is rounds x n x dv, log_sums n x rounds. */
static void join(const ref_head *h, const num *y, num *log_sums, num *out)
{
    int64_t rounds = rounds_of(h);
    for (int64_t i = 0; i < h->n; i++) {
        num *weights = log_sums + i * rounds;
        NUM(ref_softmax_row)(rounds, weights);
        for (int64_t r = 0; ref_query(h, i) && r < rounds; r++)
            for (int64_t c = 0; c < h->dv; c++)
                out[i * h->dv + c] += weights[r] * y[(r * h->n + i) * h->dv + c];
    }
}

/* work holds n d + 2 chunk + rounds n (dv + 1). */
static atn_status attention(const ref_head *h, double *x, lsh_entry *sequence, num *work, num *out)
{
    int64_t chunk = h->desc->lsh.chunk, rounds = rounds_of(h);
    num *keys = work, *weights = keys + h->n * h->d, *y = weights + 2 * chunk;
    num *log_sums = y + rounds * h->n * h->dv;
    int64_t count = arrange(h, x, sequence);
    if (count / rounds % chunk != 0)
        return ATN_ERR_SHAPE;
    normalise(h, keys);
    for (int64_t at = 0; at < count; at++) {
        int64_t round = sequence[at].round, token = sequence[at].token;
        log_sums[token * rounds + round] =
            attend(h, count, sequence, at, keys, weights, y + (round * h->n + token) * h->dv);
    }
    join(h, y, log_sums, out);
    return ATN_OK;
}

atn_status NUM(ref_lsh)(const ref_head *h, num *out)
{
    const atn_lsh_options *o = &h->desc->lsh;
    const atn_tensor *r = &o->rotations;
    int64_t rounds = rounds_of(h);
    bool hashed = o->buckets || (r->data && r->rows == h->d && r->cols > 0);
    if (!hashed || rounds < 1 || o->chunk < 1 || o->chunk > h->n || ref_has_keys(h) ||
        h->desc->causal)
        return ATN_ERR_VALUE;
    double *x = ref_take((size_t)h->d + 1, sizeof *x);
    lsh_entry *sequence = ref_take((size_t)(rounds * h->n), sizeof *sequence);
    num *work = ref_zeros(h->n * h->d + 2 * o->chunk + rounds * h->n * (h->dv + 1));
    bool room = x && sequence && work;
    atn_status status = room ? attention(h, x, sequence, work, out) : ATN_ERR_MEMORY;
    free(x), free(sequence), free(work);
    return status;
}
