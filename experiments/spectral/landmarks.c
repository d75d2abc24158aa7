/* SPDX-License-Identifier: BSD-3-Clause */
#include "spectral/landmarks.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <linear_algebra.h>

#include "common/report.h"

/* Photographs are cut into 64 x 64 patches of 4 pixels: a crop of 256 x 256. */
enum { PHOTO_SIDE = 64, PHOTO_PATCH = 4 };

/* reference/ takes matrices of 2^28 elements. */
enum { MOST_LANDMARKS = 16384 };

/* Healthy routes disagree by less (reference/linear_algebra.h). */
static const double most_disagreement = 10;

/* ---- Inputs ---- */

static const char *const usual_inputs[] = {"photos", "smooth",  "smooth:8", "noisy",
                                           "iid",    "iid:0.3", "clusters"};
enum { USUAL_INPUTS = sizeof usual_inputs / sizeof *usual_inputs };

int input_set_open(const settings *s, input_set *set)
{
    bool given = s->inputs.count > 0;
    int wanted = given ? s->inputs.count : USUAL_INPUTS, code = EXIT_PASS;
    set->count = 0;
    set->items = must_allocate((size_t)wanted, sizeof *set->items);
    for (int i = 0; i < wanted && code == EXIT_PASS; i++) {
        const char *name = given ? s->inputs.items[i] : usual_inputs[i];
        code = input_open(name, s->grid_height, s->grid_width, &set->items[i]);
        set->count += code == EXIT_PASS;
    }
    return code;
}

void input_set_free(input_set *set)
{
    for (int i = 0; i < set->count; i++)
        input_free(set->items[i]);
    free(set->items);
}

bool input_set_get(const input_set *set, int index, const char **name, const char **sha256)
{
    if (index < 0 || index >= set->count)
        return false;
    *name = input_name(set->items[index]);
    *sha256 = input_sha256(set->items[index]);
    return true;
}

typedef struct {
    int64_t matrices, tokens, dim, height, width;
} file_shape;

static file_shape get_file_shape(const input *in)
{
    file_shape f;
    input_file_shape(in, &f.matrices, &f.tokens, &f.dim, &f.height, &f.width);
    return f;
}

int input_sample_count(const settings *s, const input *in, int64_t usual, int64_t *count)
{
    *count = s->samples > 0 ? s->samples : usual;
    if (!input_is_file(in))
        return EXIT_PASS;
    int64_t matrices = get_file_shape(in).matrices;
    if (s->samples > matrices) {
        report_error("--samples %" PRId64 ": %s has %" PRId64 " matrices, expected at most as many",
                     s->samples, input_name(in), matrices);
        return EXIT_USAGE;
    }
    *count = *count < matrices ? *count : matrices;
    return EXIT_PASS;
}

int64_t input_dim(const input *in)
{
    return input_is_file(in) ? get_file_shape(in).dim : TOKEN_DIM;
}

/* ---- Grids ---- */

int64_t grid_tokens(const token_grid *grid)
{
    return grid->height * grid->width;
}

int64_t grid_landmarks(const token_grid *grid)
{
    return (grid->height / grid->stride) * (grid->width / grid->stride);
}

int64_t pooling_stride(int64_t height, int64_t width, int64_t m, int64_t *nearest)
{
    *nearest = 0;
    for (int64_t k = height < width ? height : width; k > 0; k--) {
        int64_t given = (height / k) * (width / k);
        if (given == m)
            return k;
        if (*nearest == 0 || llabs(given - m) < llabs(*nearest - m))
            *nearest = given;
    }
    return 0;
}

/* The whole number whose square is nearest to m. */
static int64_t nearest_root(int64_t m)
{
    int64_t p = (int64_t)sqrt((double)m);
    return m - p * p <= (p + 1) * (p + 1) - m ? p : p + 1;
}

/* Synthetic fields have no files. */
static bool reads_photographs(const input *in)
{
    return !input_is_file(in) && *input_sha256(in);
}

bool landmark_grid(const input *in, int64_t m, token_grid *grid, int64_t *nearest)
{
    if (input_is_file(in)) {
        file_shape f = get_file_shape(in);
        *grid = (token_grid){.height = f.height, .width = f.width};
    } else if (reads_photographs(in)) {
        *grid = (token_grid){.height = PHOTO_SIDE, .width = PHOTO_SIDE, .patch = PHOTO_PATCH};
    } else {
        int64_t p = nearest_root(m);
        *grid = (token_grid){.height = p, .width = p, .stride = 1};
        *nearest = p * p;
        return p * p == m;
    }
    grid->stride = pooling_stride(grid->height, grid->width, m, nearest);
    return grid->stride > 0;
}

int report_no_landmarks(const input *in, int64_t m, int64_t nearest)
{
    if (nearest == 0)
        report_error("%s: its tokens stand on no known grid to pool; expected --grid HxW",
                     input_name(in));
    else
        report_error("--m %" PRId64 ": %s cannot give as many landmarks; the nearest it can give "
                     "is %" PRId64,
                     m, input_name(in), nearest);
    return EXIT_USAGE;
}

/* ---- Matrices ---- */

int check_status(const atn_context *context, atn_status status, const char *what)
{
    if (status >= 0)
        return EXIT_PASS;
    const char *detail = atn_last_error(context);
    report_error("%s: %s", what, *detail ? detail : atn_status_message(status));
    return EXIT_ENVIRONMENT;
}

static atn_tensor matrix_view(double *data, int64_t rows, int64_t cols)
{
    return atn_tensor_dense(data, ATN_F64, 1, 1, rows, cols);
}

int make_landmarks(const input *in, const token_grid *grid, uint64_t seed, int64_t sample,
                   atn_context *context, double *tokens, double *landmarks)
{
    int64_t dim = input_dim(in), n = grid_tokens(grid);
    double *all = tokens ? tokens : must_allocate((size_t)n, (size_t)dim * sizeof *all);
    int code = input_tokens(in, grid->height, grid->width, grid->patch, seed, sample, all);
    if (code == EXIT_PASS && landmarks) {
        atn_sampling pool = {.kind = ATN_SAMPLING_POOL,
                             .height = grid->height,
                             .width = grid->width,
                             .stride = grid->stride};
        atn_tensor from = matrix_view(all, n, dim);
        atn_tensor to = matrix_view(landmarks, grid_landmarks(grid), dim);
        code = check_status(context, atn_sample(context, &pool, &from, &to), input_name(in));
    }
    if (!tokens)
        free(all);
    return code;
}

static double kernel_scale(const settings *s, int64_t dim)
{
    return atn_kernel_scale(s->scale, s->scale_value, 1, dim);
}

int make_kernel(const settings *s, atn_context *context, int64_t count, int64_t dim, double *tokens,
                double *kernel)
{
    atn_tensor from = matrix_view(tokens, count, dim), to = matrix_view(kernel, count, count);
    atn_status status = atn_gaussian_self(context, s->distance, kernel_scale(s, dim), &from, &to);
    return check_status(context, status, "kernel matrix");
}

int make_cross_kernel(const settings *s, atn_context *context, int64_t rows, int64_t cols,
                      int64_t dim, double *x, double *y, double *kernel)
{
    atn_tensor left = matrix_view(x, rows, dim), right = matrix_view(y, cols, dim);
    atn_tensor to = matrix_view(kernel, rows, cols);
    atn_status status =
        atn_gaussian_cross(context, s->distance, kernel_scale(s, dim), &left, &right, &to);
    return check_status(context, status, "cross kernel");
}

int make_iterate(atn_context *context, int64_t m, double *a, double *x)
{
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    atn_tensor from = matrix_view(a, m, m), to = matrix_view(x, m, m);
    desc.iterations = PAPER_STEPS;
    return check_status(context, atn_inverse(context, &desc, &from, &to, NULL, NULL), "nr-paper");
}

int check_disagreement(double disagreement, const char *what, int64_t n)
{
    if (disagreement < most_disagreement)
        return EXIT_PASS;
    report_error("%s of a %" PRId64 "x%" PRId64
                 " matrix: two routes are %.3g rounding errors apart, "
                 "expected less than %g",
                 what, n, n, disagreement, most_disagreement);
    return EXIT_CHECK;
}

int checked_eigenvalues(int64_t n, const double *a, double *lambda, double *w)
{
    double disagreement = 0;
    atn_status status = ref_eigenvalues(n, a, lambda, w, &disagreement);
    if (status != ATN_OK) {
        report_error("eigenvalues of a %" PRId64 "x%" PRId64 " matrix: %s", n, n,
                     atn_status_message(status));
        return EXIT_ENVIRONMENT;
    }
    return check_disagreement(disagreement, "eigenvalues", n);
}

int checked_norm(int64_t n, const double *a, double *norm)
{
    double *lambda = must_allocate((size_t)n, sizeof *lambda);
    int code = checked_eigenvalues(n, a, lambda, NULL);
    *norm = fmax(fabs(lambda[0]), fabs(lambda[n - 1]));
    free(lambda);
    return code;
}

/* ---- Points ---- */

static void add_point(landmark_sweep *sweep, const landmark_point *point)
{
    if (sweep->count == sweep->capacity) {
        sweep->capacity = sweep->capacity ? 2 * sweep->capacity : 64;
        sweep->points = must_resize(sweep->points, (size_t)sweep->capacity, sizeof *sweep->points);
    }
    sweep->points[sweep->count++] = *point;
}

/* EXIT_PASS if all inputs can give m landmarks. Silent for m out of an experiment's own list. */
static int check_landmarks(const landmark_sweep *sweep, int64_t m, bool silent)
{
    token_grid grid;
    int64_t nearest;
    if (m > MOST_LANDMARKS) {
        report_error("--m %" PRId64 ": expected at most %d", m, (int)MOST_LANDMARKS);
        return EXIT_USAGE;
    }
    for (int i = 0; i < sweep->inputs.count; i++)
        if (!landmark_grid(sweep->inputs.items[i], m, &grid, &nearest))
            return silent ? EXIT_USAGE : report_no_landmarks(sweep->inputs.items[i], m, nearest);
    return EXIT_PASS;
}

/* The numbers of landmarks to take, ended by 0, to be freed; or null, the reason reported. */
static int64_t *choose_landmarks(const landmark_sweep *sweep, const int64_t *usual)
{
    const integer_list *given = &sweep->s->landmarks;
    int count = 0, chosen = 0;
    while (given->count == 0 && usual[count] > 0)
        count++;
    count = given->count > 0 ? given->count : count;
    int64_t *m = must_allocate((size_t)count + 1, sizeof *m);
    for (int i = 0; i < count; i++) {
        int64_t next = given->count > 0 ? given->items[i] : usual[i];
        int code = check_landmarks(sweep, next, given->count == 0);
        if (code == EXIT_PASS) {
            m[chosen++] = next;
        } else if (given->count > 0) {
            free(m);
            return NULL;
        }
    }
    if (chosen > 0)
        return m;
    check_landmarks(sweep, usual[0], false);
    free(m);
    return NULL;
}

static int add_points(landmark_sweep *sweep, const int64_t *m, uint64_t seed, const input *in,
                      int64_t (*samples)(const settings *s, int64_t m))
{
    for (; *m > 0; m++) {
        landmark_point point = {.seed = seed, .in = in, .m = *m};
        int64_t count, nearest;
        int code = input_sample_count(sweep->s, in, samples(sweep->s, *m), &count);
        if (code != EXIT_PASS)
            return code;
        landmark_grid(in, *m, &point.grid, &nearest);
        for (; point.sample < count; point.sample++)
            add_point(sweep, &point);
    }
    return EXIT_PASS;
}

int landmark_sweep_open(const settings *s, const int64_t *m,
                        int64_t (*samples)(const settings *s, int64_t m), void **state,
                        int64_t *points)
{
    landmark_sweep *sweep = must_allocate(1, sizeof *sweep);
    *state = sweep;
    sweep->s = s;
    int code = input_set_open(s, &sweep->inputs);
    int64_t *chosen = code == EXIT_PASS ? choose_landmarks(sweep, m) : NULL;
    if (code == EXIT_PASS && !chosen)
        code = EXIT_USAGE;
    for (int i = 0; i < s->seeds.count && code == EXIT_PASS; i++)
        for (int j = 0; j < sweep->inputs.count && code == EXIT_PASS; j++)
            code = add_points(sweep, chosen, (uint64_t)s->seeds.items[i], sweep->inputs.items[j],
                              samples);
    free(chosen);
    *points = sweep->count;
    return code;
}

void landmark_sweep_describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const landmark_point *p = &((const landmark_sweep *)state)->points[point];
    snprintf(buffer, size, "%s m=%" PRId64 " sample=%" PRId64 " seed=%" PRIu64, input_name(p->in),
             p->m, p->sample, p->seed);
}

double landmark_sweep_weight(const void *state, int64_t point)
{
    double m = (double)((const landmark_sweep *)state)->points[point].m;
    return m * m * m;
}

bool landmark_sweep_input(const void *state, int index, const char **name, const char **sha256)
{
    return input_set_get(&((const landmark_sweep *)state)->inputs, index, name, sha256);
}

void landmark_sweep_release(void *state)
{
    landmark_sweep *sweep = state;
    input_set_free(&sweep->inputs);
    free(sweep->points);
    free(sweep);
}

int landmark_sweep_matrix(const landmark_sweep *sweep, const landmark_point *point,
                          atn_context *context, double **a)
{
    int64_t dim = input_dim(point->in), m = point->m;
    double *landmarks = must_allocate((size_t)m, (size_t)dim * sizeof *landmarks);
    *a = must_allocate((size_t)m, (size_t)m * sizeof **a);
    int code = make_landmarks(point->in, &point->grid, point->seed, point->sample, context, NULL,
                              landmarks);
    if (code == EXIT_PASS)
        code = make_kernel(sweep->s, context, m, dim, landmarks, *a);
    free(landmarks);
    if (code == EXIT_PASS)
        return code;
    free(*a);
    *a = NULL;
    return code;
}
