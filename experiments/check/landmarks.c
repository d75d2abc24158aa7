/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ with other landmarks, another normalisation or no inverse. */
#include <math.h>

#include "check/hypotheses.h"
#include "common/report.h"

static bool run_dense(trial *t, normaliser normalise)
{
    t->dense = true;
    t->form.normalise = normalise;
    return true;
}

bool set_normalisation(trial *t, int value)
{
    atn_attention_desc *desc = &t->s.c.reference;
    const normaliser kinds[] = {NORMALISE_NOT,   NORMALISE_ROOT,  NORMALISE_FULL,
                                NORMALISE_INNER, NORMALISE_TIMES, NORMALISE_BY_TOKENS};
    if (t->dense || kinds[value] == (desc->op == ATN_SOFTPP ? NORMALISE_ROOT : NORMALISE_NOT))
        return false;
    if (value > 1)
        return run_dense(t, kinds[value]);
    desc->op = t->s.c.choice.op = value ? ATN_SOFTPP : ATN_SOFT;
    return true;
}

const char *const normalisation_texts[] = {"no normalisation by D",
                                           "normalised: D^-1/2 A+ D^-1/2",
                                           "D^-1 A+ D^-1: no square root of D",
                                           "(D^-1/2 A D^-1/2)+: normalised before it is inverted",
                                           "D^1/2 A+ D^1/2: multiplied by D, not divided",
                                           "D of the sums of K(L, Q), not of A",
                                           NULL};

/* The published code divides Q by d^(1/4) and leaves the landmarks as they are. */
bool leave_landmarks(trial *t, int value)
{
    if (t->dense)
        return false;
    t->form.landmark_factor = pow((double)t->s.c.shape.dim, 0.25);
    return run_dense(t, t->s.c.choice.op == ATN_SOFTPP ? NORMALISE_ROOT : NORMALISE_NOT);
}

const char *const inverse_texts[] = {"A+ left out: no inverse", "A+ left out, and so is D", NULL};

bool leave_inverse_out(trial *t, int value)
{
    if (t->dense || (value && t->s.c.reference.op != ATN_SOFTPP))
        return false;
    t->form.inverse_missing = true;
    return run_dense(t, value ? NORMALISE_NOT : t->form.normalise);
}

const char *const distance_texts[] = {"distance |q|^2 + |l|^2 - q.l: the 2 missing",
                                      "distance |q|^2 - 2 q.l: the norms of L (of K) missing",
                                      "distance |l|^2 - 2 q.l: the norms of Q missing",
                                      "distance -2 q.l: both norms missing",
                                      "the distance itself, not squared",
                                      NULL};

bool set_distance(trial *t, int value)
{
    bool fits = !t->form.distance && !t->kept && !t->missing;
    t->form.distance = (distance_form)(value + 1);
    return fits && run_dense(t, t->form.normalise);
}

const char *const landmark_texts[] = {"landmarks: averages of n/m consecutive tokens, uneven",
                                      "landmarks: the largest numbers of n/m tokens, not means",
                                      "landmarks: the last of every n/m tokens",
                                      "landmarks: averages that leave out the last token",
                                      "landmarks: averages of every m-th token",
                                      NULL};

bool set_landmarks(trial *t, int value)
{
    bool fits = !t->form.landmarks && !t->kept && !t->missing && !trial_has_landmarks(t);
    t->form.landmarks = (landmark_form)(value + 1);
    return fits && run_dense(t, t->form.normalise);
}

const char *const landmark_count_texts[] = {"half as many landmarks", "twice as many landmarks",
                                            NULL};

bool set_landmark_count(trial *t, int value)
{
    atn_attention_desc *desc = &t->s.c.reference;
    bool nystrom = desc->op == ATN_NYSTROMFORMER, more = value == 1;
    const int64_t n = t->s.c.shape.tokens;
    int64_t *number = nystrom ? &desc->nystromformer.landmarks : &desc->sampling.stride;
    bool windows = nystrom || desc->sampling.kind == ATN_SAMPLING_WINDOW;
    bool even = more == nystrom || *number % 2 == 0;
    bool fits = windows && even && !trial_has_landmarks(t);
    *number = more == nystrom ? 2 * *number : *number / 2;
    return fits && *number > 0 && *number <= n && *number <= t->s.c.shape.key_tokens;
}

/* Landmarks are sums of tokens instead of means. */
bool sum_landmarks(trial *t, int value)
{
    int64_t m = subject_landmarks(&t->s);
    if (t->dense || trial_has_landmarks(t) || m < 1)
        return false;
    t->form.landmark_factor = (double)t->s.c.shape.tokens / (double)m;
    return run_dense(t, t->form.normalise);
}

const char *const sampling_texts[] = {
    "landmarks: averages over the grid", "landmarks: averages of consecutive tokens",
    "landmarks: the first tokens", "landmarks: every n/m-th token", NULL};

bool set_sampling(trial *t, int value)
{
    atn_sampling *s = &t->s.c.reference.sampling;
    int64_t n = t->s.c.shape.tokens, m = subject_landmarks(&t->s);
    static const atn_sampling_kind kinds[] = {ATN_SAMPLING_POOL, ATN_SAMPLING_WINDOW,
                                              ATN_SAMPLING_FIRST, ATN_SAMPLING_INDICES};
    if (trial_has_landmarks(t) || m < 1 || m > n || (value < 3 && s->kind == kinds[value]))
        return false;
    if (value == 0) {
        s->stride = (int64_t)llround(sqrt((double)n / (double)m));
        if (s->height < 1 || s->stride < 1)
            return false;
    } else if (value == 1)
        s->stride = (n + m - 1) / m;
    else if (value == 3) {
        int64_t *indices = must_allocate((size_t)m, sizeof *indices);
        trial_keep(t, indices);
        for (int64_t i = 0; i < m; i++)
            indices[i] = i * n / m;
        s->indices = indices;
    }
    s->count = m;
    s->kind = kinds[value];
    return true;
}
