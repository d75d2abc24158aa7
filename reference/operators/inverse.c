/* SPDX-License-Identifier: BSD-3-Clause */
/* The bottleneck's inverses, from attnum/inverse.h. */
#include "dense.h"
#include "soft.h"

/* |I - alpha A|_1, or |I - alpha A^2|_1; work holds m^2. */
static long double start_norm(int64_t m, bool square, num alpha, const num *a, num *work)
{
    for (int64_t i = 0; i < m * m; i++)
        work[i] = a[i];
    if (square)
        NUM(ref_multiply)(m, m, m, a, a, work);
    for (int64_t i = 0; i < m * m; i++)
        work[i] = (i % (m + 1) == 0) - alpha * work[i];
    return num_value(NUM(ref_norm1)(m, work));
}

/* alpha for `count` matrices that share it, 0 if the search finds none. */
static num start(const atn_inverse_desc *desc, int64_t count, int64_t m, const num *all, num *work)
{
    num norm = 0;
    for (int64_t i = 0; i < count; i++)
        norm = num_max(norm, NUM(ref_norm1)(m, all + i * m * m));
    num alpha = desc->alpha > 0 ? (num)desc->alpha : desc->numerator / (norm * norm);
    for (int halvings = 0; desc->search != ATN_SEARCH_NONE; halvings++) {
        long double worst = 0;
        for (int64_t i = 0; i < count; i++)
            worst = fmaxl(worst, start_norm(m, desc->search == ATN_SEARCH_SQUARE, alpha,
                                            all + i * m * m, work));
        if (worst <= desc->search_limit)
            break;
        if (halvings == desc->search_cap)
            return desc->search_accepts_last ? alpha : 0;
        alpha /= 2;
    }
    return alpha;
}

/* A of every head of the problem. */
static atn_status gather(const problem *p, int64_t m, num *all)
{
    const atn_attention_shape *s = &p->shape;
    num *landmarks = ref_zeros(m * s->dim);
    atn_status status = landmarks ? ATN_OK : ATN_ERR_MEMORY;
    for (int64_t i = 0; status == ATN_OK && i < s->batch * s->heads; i++) {
        ref_head h = NUM(ref_head_of)(p, i / s->heads, i % s->heads);
        status = NUM(ref_landmarks)(&h, landmarks);
        NUM(ref_kernel)(&h, m, m, landmarks, landmarks, all + i * m * m);
    }
    free(landmarks);
    return status;
}

atn_status NUM(ref_soft_bottlenecks)(const problem *p, int64_t m, num *a, num *alpha)
{
    const atn_inverse_desc *desc = &p->desc->inverse;
    int64_t heads = p->shape.batch * p->shape.heads;
    bool shared = desc->scope == ATN_SCOPE_BATCH;
    num *work = ref_zeros(m * m);
    atn_status status = work ? gather(p, m, a) : ATN_ERR_MEMORY;
    for (int64_t i = 0; status == ATN_OK && i < heads; i++)
        alpha[i] = shared ? start(desc, heads, m, a, work) : start(desc, 1, m, a + i * m * m, work);
    free(work);
    return status;
}

/* Eq. 10: X_0 = alpha B, X_{k+1} = 2 X_k - X_k B X_k, B = A + ridge I. work holds 3 m^2. */
static void newton(const atn_inverse_desc *desc, int64_t m, const num *a, num alpha, num *work,
                   num *x)
{
    num *b = work, *xb = work + m * m, *xbx = work + 2 * m * m;
    for (int64_t i = 0; i < m * m; i++) {
        b[i] = a[i] + (i % (m + 1) == 0 ? (long double)desc->ridge : 0);
        x[i] = alpha * b[i];
    }
    for (int k = 0; k < desc->iterations; k++) {
        NUM(ref_multiply)(m, m, m, x, b, xb);
        NUM(ref_multiply)(m, m, m, xb, x, xbx);
        for (int64_t i = 0; i < m * m; i++)
            x[i] = 2 * x[i] - xbx[i];
    }
}

static atn_status newton_raphson(const ref_head *h, int64_t m, const num *a, num *x)
{
    const atn_inverse_desc *desc = &h->desc->inverse;
    bool shared = desc->scope == ATN_SCOPE_BATCH;
    int64_t count = shared ? h->all->shape.batch * h->all->shape.heads : 1;
    num *all = ref_zeros(count * m * m), *work = ref_zeros(3 * m * m);
    atn_status status = all && work ? ATN_OK : ATN_ERR_MEMORY;
    if (status == ATN_OK && shared)
        status = gather(h->all, m, all);
    if (status == ATN_OK)
        newton(desc, m, a, start(desc, count, m, shared ? all : a, work), work, x);
    free(all), free(work);
    return status;
}

enum { HIGHEST_ORDER = 9 };

/* The factor of X in a step: q[0] + q[1] E + ... + q[p - 1] E^(p - 1), E = I - B X. */
typedef struct {
    int order;
    bool chebyshev;
    long double q[HIGHEST_ORDER];
} step_polynomial;

/* (1 - r(e)) / (1 - e) for r(e) = T_p(e / d) / T_p(1 / d) = sum r_j e^j: q_i is the sum of r_j over
 * j > i. Returns the next d, 1 / T_p(1 / d). */
static long double chebyshev_step(int p, long double d, long double *q)
{
    long double before[HIGHEST_ORDER + 2] = {1}, now[HIGHEST_ORDER + 2] = {0, 1}, sum = 0;
    for (int n = 2; n <= p; n++)
        for (int j = p; j >= 0; j--) { /* T_n = 2 x T_{n-1} - T_{n-2} */
            long double next = 2 * (j > 0 ? now[j - 1] : 0) - before[j];
            before[j] = now[j];
            now[j] = next;
        }
    for (int j = 0; j <= p; j++) {
        now[j] *= powl(d, p - j);
        sum += now[j];
    }
    for (int i = p - 1; i >= 0; i--)
        q[i] = (i + 1 < p ? q[i + 1] : 0) + now[i + 1] / sum;
    return powl(d, p) / sum;
}

static step_polynomial polynomial_of(atn_inverse_method method)
{
    static const step_polynomial polynomials[ATN_INVERSE_COUNT] = {
        [ATN_INVERSE_NEWTON_SCHULZ] = {2, false, {1, 1}},
        [ATN_INVERSE_HYPERPOWER_3] = {3, false, {1, 1, 1}},
        [ATN_INVERSE_HYPERPOWER_7] = {7, false, {1, 1, 1, 1, 1, 1, 1}},
        [ATN_INVERSE_HYPERPOWER_9] = {9, false, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
        [ATN_INVERSE_NYSTROMFORMER] = {4, false, {1, 1, 1, 0.25L}},
        [ATN_INVERSE_CHEBYSHEV_2] = {2, true, {0}},
        [ATN_INVERSE_CHEBYSHEV_3] = {3, true, {0}},
        [ATN_INVERSE_CHEBYSHEV_9] = {9, true, {0}},
    };
    return polynomials[method];
}

/* x = x (q[0] + E (q[1] + E (...))); work holds 3 m^2. */
static void polynomial_step(const step_polynomial *p, int64_t m, const num *b, num *work, num *x)
{
    num *e = work, *sum = work + m * m, *product = work + 2 * m * m;
    NUM(ref_multiply)(m, m, m, b, x, e);
    for (int64_t i = 0; i < m * m; i++) {
        e[i] = (i % (m + 1) == 0) - e[i];
        sum[i] = (i % (m + 1) == 0) * p->q[p->order - 1];
    }
    for (int j = p->order - 2; j >= 0; j--) {
        NUM(ref_multiply)(m, m, m, e, sum, product);
        for (int64_t i = 0; i < m * m; i++)
            sum[i] = product[i] + (i % (m + 1) == 0) * p->q[j];
    }
    NUM(ref_multiply)(m, m, m, x, sum, product);
    for (int64_t i = 0; i < m * m; i++)
        x[i] = product[i];
}

/* From alpha I or alpha B; Chebyshev's interval must be given. */
static atn_status polynomial(const ref_head *h, int64_t m, const num *a, num *x)
{
    const atn_inverse_desc *desc = &h->desc->inverse;
    step_polynomial p = polynomial_of(desc->method);
    bool identity = desc->start == ATN_START_IDENTITY;
    long double low = desc->interval_low, high = desc->interval_high;
    if (p.chebyshev && !(low > 0 && high >= low))
        return ATN_ERR_UNSUPPORTED;
    num *b = ref_zeros(m * m), *work = ref_zeros(3 * m * m);
    for (int64_t i = 0; b && i < m * m; i++)
        b[i] = a[i] + (i % (m + 1) == 0 ? (long double)desc->ridge : 0);
    if (b && work) {
        num norm = NUM(ref_norm1)(m, b), alpha = desc->numerator / norm;
        if (!identity)
            alpha /= norm, low *= low, high *= high;
        if (p.chebyshev)
            alpha = 2 / (low + high);
        else if (desc->alpha > 0)
            alpha = desc->alpha;
        long double d = p.chebyshev ? (high - low) / (high + low) : 0;
        for (int64_t i = 0; i < m * m; i++)
            x[i] = alpha * (identity ? (i % (m + 1) == 0) : b[i]);
        for (int k = 0; k < desc->iterations; k++) {
            if (p.chebyshev)
                d = chebyshev_step(p.order, d, p.q);
            polynomial_step(&p, m, b, work, x);
        }
    }
    atn_status status = b && work ? ATN_OK : ATN_ERR_MEMORY;
    free(b), free(work);
    return status;
}

/* The inverse of A, for eig its pseudo-inverse; cholesky: of A + jitter |A|_1 I where given. */
static atn_status exact(const ref_head *h, int64_t m, const num *a, num *x)
{
    const atn_inverse_desc *desc = &h->desc->inverse;
    bool eig = desc->method == ATN_INVERSE_EIG;
    bool shifted = desc->method == ATN_INVERSE_CHOLESKY && desc->jitter > 0;
    long double shift = shifted ? desc->jitter * num_value(NUM(ref_norm1)(m, a)) : 0;
    int64_t rank;
    num *b = ref_zeros(m * m);
    for (int64_t i = 0; b && i < m * m; i++)
        b[i] = a[i] + (i % (m + 1) == 0 ? shift : 0);
    atn_status status =
        b ? NUM(ref_pseudo_inverse)(m, b, eig ? desc->rcond : -1, x, &rank) : ATN_ERR_MEMORY;
    free(b);
    return status != ATN_OK ? status : rank < m && !eig ? ATN_SINGULAR : ATN_OK;
}

atn_status NUM(ref_bottleneck_inverse)(const ref_head *h, int64_t m, const num *a, num *x)
{
    enum {
        CLOSED = 1 << ATN_GRADIENT_CLOSED,
        STEPS = 1 << ATN_GRADIENT_STEPS,
        PSEUDO = 1 << ATN_GRADIENT_PSEUDO
    };
    static const struct {
        atn_status (*invert)(const ref_head *h, int64_t m, const num *a, num *x);
        unsigned gradients; /* bit g: has atn_gradient g */
    } methods[ATN_INVERSE_COUNT] = {
        [ATN_INVERSE_NR] = {newton_raphson, CLOSED | STEPS},
        [ATN_INVERSE_NR_PAPER] = {newton_raphson, CLOSED | STEPS},
        [ATN_INVERSE_NR_ADAPTIVE] = {newton_raphson, CLOSED | STEPS},
        [ATN_INVERSE_NR_SOFT] = {newton_raphson, CLOSED | STEPS},
        [ATN_INVERSE_NR_SOFTPP] = {newton_raphson, CLOSED | STEPS},
        [ATN_INVERSE_NEWTON_SCHULZ] = {polynomial, CLOSED},
        [ATN_INVERSE_HYPERPOWER_3] = {polynomial, CLOSED},
        [ATN_INVERSE_HYPERPOWER_7] = {polynomial, CLOSED},
        [ATN_INVERSE_HYPERPOWER_9] = {polynomial, CLOSED},
        [ATN_INVERSE_NYSTROMFORMER] = {polynomial, CLOSED},
        [ATN_INVERSE_CHEBYSHEV_2] = {polynomial, CLOSED},
        [ATN_INVERSE_CHEBYSHEV_3] = {polynomial, CLOSED},
        [ATN_INVERSE_CHEBYSHEV_9] = {polynomial, CLOSED},
        [ATN_INVERSE_EIG] = {exact, CLOSED | PSEUDO},
        [ATN_INVERSE_CHOLESKY] = {exact, CLOSED},
        [ATN_INVERSE_PIVOTED_CHOLESKY] = {exact, CLOSED},
    };
    atn_inverse_method method = h->desc->inverse.method;
    atn_gradient gradient = h->desc->gradient;
    bool known = (unsigned)gradient < ATN_GRADIENT_COUNT && (unsigned)method < ATN_INVERSE_COUNT;
    /* the gradient matters only where a derivative is computed */
    if (!known || (num_has_slope && !(methods[method].gradients & 1u << gradient)))
        return ATN_ERR_VALUE;
    atn_status status = methods[method].invert(h, m, a, x);
    if (status == ATN_OK && gradient == ATN_GRADIENT_CLOSED)
        status = NUM(ref_inverse_slope)(m, a, false, x);
    return status;
}
