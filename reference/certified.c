/* SPDX-License-Identifier: BSD-3-Clause */
/* Norms of inverses and outputs of SOFT, certified by an approximate inverse and its residual. */
#include "certified.h"

#include <gmp.h>
#include <math.h>
#include <stdlib.h>

#include "balls.h"
#include "routes.h"

/* The widths that certified.h promises, relative to the answer and to the largest output. */
static const double spectrum_width = 1e-6, output_width = 1e-9;

/* A limit of n m, because n m kernel entries of 64 bytes or more are in memory at a time. */
static const int64_t most_entries = INT64_C(1) << 24;

const char *ref_certify_library(void)
{
    return BALLS_LIBRARY;
}

static void *(*allocate_elements)(size_t count, size_t size);
static void *(*resize_elements)(void *memory, size_t count, size_t size);

static void *allocate_bytes(size_t size)
{
    return allocate_elements(size, 1);
}

static void *resize_bytes(void *memory, size_t size)
{
    return resize_elements(memory, size, 1);
}

static void *resize_limbs(void *memory, size_t old_size, size_t size)
{
    return resize_elements(memory, size, 1);
}

static void free_limbs(void *memory, size_t size)
{
    free(memory);
}

void ref_certify_memory(void *(*allocate)(size_t count, size_t size),
                        void *(*resize)(void *memory, size_t count, size_t size))
{
    allocate_elements = allocate;
    resize_elements = resize;
    __flint_set_memory_functions(allocate_bytes, allocate, resize_bytes, free);
    mp_set_memory_functions(allocate_bytes, resize_limbs, free_limbs);
}

static bool tokens_coincide(int64_t m, int64_t d, const double *tokens)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < i; j++) {
            int64_t k = 0;
            while (k < d && tokens[i * d + k] == tokens[j * d + k])
                k++;
            if (k == d)
                return true;
        }
    return false;
}

/* ---- A matrix and its approximate inverse ---- */

/* At one precision. root_i = sqrt(d_i), inverse_root its inverse, d the row sums of A. */
typedef struct {
    slong m, bits;
    arb_mat_t a, x, r; /* X approximates A^-1, R = I - X A */
    arb_ptr root, inverse_root;
} work;

static void work_open(work *w, const ref_exact_matrix *a, slong bits)
{
    *w = (work){.m = a->m, .bits = bits};
    arb_mat_init(w->a, a->m, a->m);
    arb_mat_init(w->x, a->m, a->m);
    arb_mat_init(w->r, a->m, a->m);
    w->root = _arb_vec_init(a->m);
    w->inverse_root = _arb_vec_init(a->m);
    balls_matrix(w->a, a, bits);
    balls_row_sums(w->root, w->a, bits);
    for (slong i = 0; i < w->m; i++) {
        arb_sqrt(w->root + i, w->root + i, bits);
        arb_inv(w->inverse_root + i, w->root + i, bits);
    }
}

static void work_close(work *w)
{
    _arb_vec_clear(w->inverse_root, w->m);
    _arb_vec_clear(w->root, w->m);
    arb_mat_clear(w->r);
    arb_mat_clear(w->x);
    arb_mat_clear(w->a);
}

/* ---- Spectra ---- */

/* X and R are overwritten. Results are not finite if a row sum may be negative. */
static atn_status enclose_inverses(work *w, bool kernel, ref_certified_spectrum *s)
{
    arb_t norm;
    arb_init(norm);
    atn_status status = balls_inverse_norm(norm, w->x, w->r);
    if (status == ATN_OK) {
        s->inverse_norm = balls_enclosure(norm, spectrum_width, w->bits);
        if (s->inverse_norm.certified && (kernel || balls_positive_definite(w->a, norm, w->bits))) {
            arb_inv(norm, norm, REF_CERTIFY_BITS);
            s->lambda_min = balls_enclosure(norm, spectrum_width, w->bits);
        }
        balls_normalise(w->x, w->r, w->root, w->inverse_root, w->bits);
        status = balls_inverse_norm(norm, w->x, w->r);
    }
    if (status == ATN_OK)
        s->normalised_norm = balls_enclosure(norm, spectrum_width, w->bits);
    arb_clear(norm);
    return status;
}

/* Everything at one precision; singular: A is known to be. */
static atn_status try_spectrum(const ref_exact_matrix *a, slong bits, bool singular,
                               ref_certified_spectrum *s)
{
    work w;
    arb_t largest;
    ref_enclosure nothing = balls_nothing(bits);
    *s = (ref_certified_spectrum){nothing, nothing, nothing, nothing};
    arb_init(largest);
    work_open(&w, a, bits);
    atn_status status = balls_top(largest, BALLS_LARGEST_EIGENVALUE, w.a);
    if (status == ATN_OK)
        s->lambda_max = balls_enclosure(largest, spectrum_width, bits);
    if (status == ATN_OK && singular)
        s->lambda_min = (ref_enclosure){0, 0, (int)bits, true};
    else if (status == ATN_OK && balls_inverse(w.x, w.r, w.a, bits))
        status = enclose_inverses(&w, !a->matrix, s);
    work_close(&w);
    arb_clear(largest);
    if (status == ATN_OK && singular)
        return ATN_SINGULAR;
    if (status == ATN_OK && !(s->lambda_min.certified && s->lambda_max.certified &&
                              s->inverse_norm.certified && s->normalised_norm.certified))
        return ATN_BELOW_FLOOR;
    return status;
}

static slong first_bits(int max_bits)
{
    return max_bits < REF_CERTIFY_BITS ? max_bits : REF_CERTIFY_BITS;
}

atn_status ref_certify_spectrum(const ref_exact_matrix *a, int max_bits,
                                ref_certified_spectrum *spectrum)
{
    if (!spectrum)
        return ATN_ERR_NULL;
    if (!balls_bits_allowed(max_bits))
        return ATN_ERR_VALUE;
    atn_status status = balls_check(a);
    if (status == ATN_NONFINITE) {
        ref_enclosure nothing = balls_nothing(0);
        *spectrum = (ref_certified_spectrum){nothing, nothing, nothing, nothing};
    }
    if (status != ATN_OK)
        return status;
    bool singular = !a->matrix && tokens_coincide(a->m, a->d, a->tokens);
    ref_certified_spectrum s;
    slong bits = first_bits(max_bits);
    do
        status = try_spectrum(a, bits, singular, &s);
    while (status == ATN_BELOW_FLOOR && (bits *= 2) <= max_bits);
    if (status >= 0)
        *spectrum = s;
    flint_cleanup();
    return status;
}

/* ---- Outputs ---- */

/* out = P^T A^-1 P V, with pt = P^T = K(Q, L), by way of inner = P V, or D^-1/2 P V. */
static void enclose_output(work *w, const ref_certified_soft *p, const arb_mat_t pt, arb_mat_t out)
{
    arb_srcptr scaling = p->normalise ? w->inverse_root : NULL;
    arb_mat_t cross, values, inner, solved;
    arb_mat_init(cross, p->m, p->n);
    arb_mat_init(values, p->n, p->dv);
    arb_mat_init(inner, p->m, p->dv);
    arb_mat_init(solved, p->m, p->dv);
    arb_mat_transpose(cross, pt);
    balls_doubles(values, p->values);
    arb_mat_mul(inner, cross, values, w->bits);
    balls_scale_rows_columns(inner, scaling, NULL, w->bits);
    balls_solve(solved, w->x, w->r, inner, w->bits);
    balls_scale_rows_columns(solved, scaling, NULL, w->bits);
    arb_mat_mul(out, pt, solved, w->bits);
    arb_mat_clear(solved);
    arb_mat_clear(inner);
    arb_mat_clear(values);
    arb_mat_clear(cross);
}

/* Writes the bounds; false if some are not finite or too far apart. */
static bool write_output(const arb_mat_t out, double *lower, double *upper)
{
    slong cols = arb_mat_ncols(out);
    double largest = 0, widest = 0;
    for (slong i = 0; i < arb_mat_nrows(out); i++)
        for (slong j = 0; j < cols; j++) {
            double *low = lower + i * cols + j, *high = upper + i * cols + j;
            balls_bounds(arb_mat_entry(out, i, j), low, high);
            if (!isfinite(*low) || !isfinite(*high))
                return false;
            largest = fmax(largest, fmin(fabs(*low), fabs(*high)));
            widest = fmax(widest, *high - *low);
        }
    return widest <= output_width * largest;
}

static bool try_soft(const ref_certified_soft *p, slong bits, double *lower, double *upper)
{
    ref_exact_matrix a = {.m = p->m, .d = p->d, .tokens = p->landmarks, .scale = p->scale};
    work w;
    arb_t s;
    arb_mat_t pt, out;
    work_open(&w, &a, bits);
    bool found = balls_inverse(w.x, w.r, w.a, bits);
    if (found) {
        arb_init(s);
        arb_mat_init(pt, p->n, p->m);
        arb_mat_init(out, p->n, p->dv);
        balls_scale(s, p->scale, p->d, bits);
        balls_kernel(pt, p->d, p->tokens, p->landmarks, s, bits);
        enclose_output(&w, p, pt, out);
        found = write_output(out, lower, upper);
        arb_mat_clear(out);
        arb_mat_clear(pt);
        arb_clear(s);
    }
    work_close(&w);
    return found;
}

static atn_status check_soft(const ref_certified_soft *p, int max_bits)
{
    int64_t entries, tokens, values;
    if (!p->tokens || !p->landmarks || !p->values)
        return ATN_ERR_NULL;
    if (p->n < 1 || p->dv < 1 || p->m < 1 || p->d < 1 ||
        __builtin_mul_overflow(p->n, p->m, &entries) || entries > most_entries ||
        __builtin_mul_overflow(p->n, p->d, &tokens) ||
        __builtin_mul_overflow(p->n, p->dv, &values) || values > most_entries)
        return ATN_ERR_SHAPE;
    if (!balls_bits_allowed(max_bits))
        return ATN_ERR_VALUE;
    ref_exact_matrix a = {.m = p->m, .d = p->d, .tokens = p->landmarks, .scale = p->scale};
    atn_status status = balls_check(&a);
    if (status == ATN_OK &&
        !(ref_all_finite(tokens, p->tokens) && ref_all_finite(values, p->values)))
        status = ATN_NONFINITE;
    return status;
}

atn_status ref_certify_soft(const ref_certified_soft *problem, int max_bits, double *lower,
                            double *upper, int *bits)
{
    if (!problem || !lower || !upper)
        return ATN_ERR_NULL;
    atn_status status = check_soft(problem, max_bits);
    if (status < 0)
        return status;
    slong tried = 0;
    if (status == ATN_OK && tokens_coincide(problem->m, problem->d, problem->landmarks))
        status = ATN_SINGULAR;
    for (slong next = first_bits(max_bits); status == ATN_OK && next <= max_bits; next *= 2) {
        tried = next;
        if (try_soft(problem, next, lower, upper))
            break;
        if (2 * next > max_bits)
            status = ATN_BELOW_FLOOR;
    }
    if (status != ATN_OK) {
        ref_fill(problem->n * problem->dv, NAN, lower);
        ref_fill(problem->n * problem->dv, NAN, upper);
    }
    if (bits)
        *bits = (int)tried;
    flint_cleanup();
    return status;
}
