/* SPDX-License-Identifier: BSD-3-Clause */
#include "landmarks.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "staging.h"
#include "train/trained.h"

/* Photographs are cut into 64 x 64 patches of 4 pixels: a crop of 256 x 256. */
enum { PHOTO_PATCH = 4 };

/* reference/ accepts matrices of at most 2^28 elements. */
enum { MOST_LANDMARKS = 16384 };

/* The numbers of landmarks that a file's tokens are averaged to without --m. */
enum { FEWEST_LANDMARKS = 49, MOST_LANDMARKS_OF_GRID = 4 * FEWEST_LANDMARKS };

/* Half a GiB of points. */
enum { MOST_POINTS = 1 << 22 };

/* SOFT-Tiny, IJCV Tab. 1; the heads give the embedding width of --scale embed. */
static const struct {
    int64_t side, patch, stride, heads;
} soft_tiny[] = {{56, 4, 8, 2}, {28, 8, 4, 4}, {14, 16, 2, 10}};

/* ---- Inputs ---- */

static int refuse_twins(const input_set *set)
{
    for (int i = 0; i < set->count; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(input_name(set->items[i]), input_name(set->items[j])) == 0) {
                report_error("two inputs are named %s, expected different names",
                             input_name(set->items[i]));
                return EXIT_USAGE;
            }
    return EXIT_PASS;
}

int input_set_open(const program_options *s, const char *const *usual, input_set *set)
{
    const char *const *names = s->inputs.count > 0 ? s->inputs.items : usual;
    int count = s->inputs.count;
    while (s->inputs.count == 0 && usual[count])
        count++;
    return input_set_open_names(s, names, count, set);
}

int input_set_open_names(const program_options *s, const char *const *names, int count,
                         input_set *set)
{
    int code = EXIT_PASS;
    set->count = 0;
    set->items = must_allocate((size_t)count, sizeof *set->items);
    for (int i = 0; i < count && code == EXIT_PASS; i++) {
        code = input_open(names[i], s->grid_height, s->grid_width, &set->items[i]);
        set->count += code == EXIT_PASS;
    }
    return code == EXIT_PASS ? refuse_twins(set) : code;
}

int input_set_open_networks(const program_options *s, const char *const *usual, input_set *set)
{
    int count = s->networks.count;
    while (s->networks.count == 0 && usual[count])
        count++;
    char **names = must_allocate((size_t)count, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] =
            must_format(NETWORK_PREFIX "%s", s->networks.count ? s->networks.items[i] : usual[i]);
    int code = input_set_open_names(s, (const char *const *)names, count, set);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return code;
}

const char *network_name(const input *in)
{
    return input_name(in) + sizeof NETWORK_PREFIX - 1;
}

void input_set_free(input_set *set)
{
    for (int i = 0; i < set->count; i++)
        input_free(set->items[i]);
    free(set->items);
}

bool input_set_describe(const input_set *set, int index, const char **name, const char **sha256)
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
    int64_t k = grid->stride;
    return grid->windows ? (grid->height + k - 1) / k : (grid->height / k) * (grid->width / k);
}

int64_t choose_stride(token_grid *grid, int64_t m)
{
    int64_t nearest = 0, chosen = 0;
    bool by_height = grid->windows || grid->height < grid->width;
    for (grid->stride = by_height ? grid->height : grid->width; grid->stride > 0; grid->stride--) {
        int64_t given = grid_landmarks(grid);
        if (given <= MOST_LANDMARKS && (nearest == 0 || llabs(given - m) < llabs(nearest - m))) {
            nearest = given;
            chosen = grid->stride;
        }
    }
    grid->stride = chosen;
    return nearest;
}

bool input_has_own_grid(const input *in)
{
    return input_is_file(in) || input_network(in);
}

token_grid own_grid(const input *in)
{
    int64_t side = input_side(in, 1);
    if (input_network(in))
        return (token_grid){.height = side, .width = side, .patch = PHOTO_PATCH};
    file_shape f = get_file_shape(in);
    return f.height > 0 ? (token_grid){.height = f.height, .width = f.width}
                        : (token_grid){.height = f.tokens, .width = 1, .windows = true};
}

bool input_has_side(const input *in, int64_t side)
{
    return input_network(in) ? trained_has_side(input_network(in), side)
                             : !input_is_file(in) || side == own_grid(in).height;
}

int check_side(const input *in, int64_t side)
{
    return input_network(in) ? trained_check_side(input_network(in), side) : EXIT_PASS;
}

int64_t nearest_side(const input *in, int64_t side)
{
    if (!input_has_own_grid(in))
        return side;
    int64_t own = own_grid(in).height, nearest = (side + own / 2) / own * own;
    bool larger = nearest > own && input_has_side(in, nearest);
    return larger ? nearest : own;
}

/* The whole number whose square is nearest to m. */
static int64_t nearest_root(int64_t m)
{
    int64_t p = (int64_t)sqrt((double)m);
    return m - p * p <= (p + 1) * (p + 1) - m ? p : p + 1;
}

int64_t landmark_grid(const input *in, int64_t m, token_grid *grid)
{
    int64_t side = input_side(in, m);
    if (input_is_file(in)) {
        *grid = own_grid(in);
    } else if (side > 0) {
        *grid = (token_grid){.height = side, .width = side, .patch = PHOTO_PATCH};
    } else {
        int64_t p = nearest_root(m);
        *grid = (token_grid){.height = p, .width = p, .stride = 1};
        return p * p;
    }
    return choose_stride(grid, m);
}

bool is_left_out(const program_options *s, const input *in, bool has_it)
{
    return !has_it && s->inputs.count == 0 && input_has_own_grid(in);
}

int check_landmarks(const program_options *s, const input *in, int64_t m, int64_t given)
{
    if (m > MOST_LANDMARKS)
        report_error("--m %" PRId64 ": expected at most %d", m, (int)MOST_LANDMARKS);
    else if (given == 0)
        report_error("%s: its grid cannot be pooled to %d landmarks or fewer; expected another "
                     "--grid",
                     input_name(in), (int)MOST_LANDMARKS);
    else if (given == m || (s->landmarks.count == 0 && input_has_own_grid(in)))
        return EXIT_PASS;
    else
        report_error("--m %" PRId64 ": %s cannot give as many landmarks; the nearest it can give "
                     "is %" PRId64,
                     m, input_name(in), given);
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

static atn_sampling windows_of(const token_grid *grid)
{
    return (atn_sampling){.kind = grid->windows ? ATN_SAMPLING_WINDOW : ATN_SAMPLING_POOL,
                          .height = grid->height,
                          .width = grid->width,
                          .stride = grid->stride};
}

int pool_tokens(const token_grid *grid, atn_context *context, int64_t dim, double *tokens,
                double *landmarks)
{
    atn_sampling pool = windows_of(grid);
    atn_tensor from = atn_tensor_dense(tokens, ATN_F64, 1, 1, grid_tokens(grid), dim);
    atn_tensor to = atn_tensor_dense(landmarks, ATN_F64, 1, 1, grid_landmarks(grid), dim);
    return check_status(context, staged_sample(context, &pool, &from, &to), "landmarks");
}

int make_landmarks(const input *in, const token_grid *grid, uint64_t seed, int64_t sample,
                   atn_context *context, double *tokens, double *landmarks)
{
    int64_t dim = input_dim(in), n = grid_tokens(grid);
    double *all = tokens ? tokens : must_allocate((size_t)n, (size_t)dim * sizeof *all);
    int code = input_tokens(in, grid->height, grid->width, grid->patch, seed, sample, all);
    if (code == EXIT_PASS && landmarks)
        code = pool_tokens(grid, context, dim, all, landmarks);
    if (!tokens)
        free(all);
    return code;
}

double kernel_scale(const program_options *s, int64_t dim)
{
    return atn_kernel_scale(s->scale, s->scale_value, 1, dim);
}

double landmark_point_scale(const program_options *s, const landmark_point *point)
{
    const struct trained *network = input_network(point->in);
    int64_t heads = network        ? trained_heads(network)
                    : point->stage ? soft_tiny[point->stage - 1].heads
                                   : 1;
    return atn_kernel_scale(s->scale, s->scale_value, heads, input_dim(point->in));
}

/* ---- Points ---- */

int landmark_sweep_start(const program_options *s, const char *const *usual_inputs, void **state)
{
    landmark_sweep *sweep = must_allocate(1, sizeof *sweep);
    *state = sweep;
    sweep->s = s;
    if (s->scale == ATN_SCALE_EMBED) {
        report_error("--scale embed: an input is one head here; expected head or a number");
        return EXIT_USAGE;
    }
    return input_set_open(s, usual_inputs, &sweep->inputs);
}

void landmark_sweep_add(landmark_sweep *sweep, const landmark_point *point)
{
    if (sweep->count == sweep->capacity) {
        sweep->capacity = sweep->capacity ? 2 * sweep->capacity : 64;
        sweep->points = must_resize(sweep->points, (size_t)sweep->capacity, sizeof *sweep->points);
    }
    sweep->points[sweep->count++] = *point;
}

int check_samples(const program_options *s, const input *in)
{
    if (s->samples <= input_samples(in))
        return EXIT_PASS;
    report_error("--samples %" PRId64 ": %s has %" PRId64 " %s, expected at most as many",
                 s->samples, input_name(in), input_samples(in),
                 input_is_file(in) ? "matrices" : "heads of pictures");
    return EXIT_USAGE;
}

int landmark_sweep_add_samples(landmark_sweep *sweep, landmark_point point, int64_t usual)
{
    const program_options *s = sweep->s;
    int64_t count = s->samples > 0 ? s->samples : usual;
    int code = check_samples(s, point.in);
    if (code != EXIT_PASS)
        return code;
    if (input_is_file(point.in) && point.seed != (uint64_t)s->seeds.items[0])
        return EXIT_PASS;
    count = count < input_samples(point.in) ? count : input_samples(point.in);
    if (count > MOST_POINTS - sweep->count) {
        report_error("--samples, --seed: expected at most %d points", (int)MOST_POINTS);
        return EXIT_USAGE;
    }
    for (point.sample = 0; point.sample < count; point.sample++)
        landmark_sweep_add(sweep, &point);
    return EXIT_PASS;
}

int refuse_large_files(const input_set *inputs, const char *name)
{
    for (int i = 0; i < inputs->count; i++) {
        const input *in = inputs->items[i];
        token_grid grid = input_is_file(in) ? own_grid(in) : (token_grid){0};
        if (grid_tokens(&grid) > MOST_TOKENS) {
            report_error("%s: %s has %" PRId64
                         " tokens a matrix, expected at most %d: n x n matrices are formed",
                         name, input_name(in), grid_tokens(&grid), (int)MOST_TOKENS);
            return EXIT_USAGE;
        }
    }
    return EXIT_PASS;
}

token_grid stage_grid(const input *in, int64_t stage)
{
    if (in && input_is_file(in))
        return own_grid(in);
    int64_t side = soft_tiny[stage - 1].side;
    return (token_grid){.height = side,
                        .width = side,
                        .patch = soft_tiny[stage - 1].patch,
                        .stride = soft_tiny[stage - 1].stride};
}

int landmark_sweep_add_stage(landmark_sweep *sweep, uint64_t seed, const input *in, int64_t stage,
                             int64_t m, int64_t usual)
{
    landmark_point point = {.seed = seed,
                            .in = in,
                            .stage = input_is_file(in) ? 0 : stage,
                            .grid = stage_grid(in, stage)};
    point.m = choose_stride(&point.grid, m);
    int code = check_side(in, point.grid.height);
    if (code == EXIT_PASS)
        code = check_landmarks(sweep->s, in, m, point.m);
    return code == EXIT_PASS ? landmark_sweep_add_samples(sweep, point, usual) : code;
}

/* The points of one input: a list m, ended by 0. */
static int add_points(landmark_sweep *sweep, landmark_point point, const int64_t *m,
                      int64_t (*samples)(const program_options *s, int64_t m))
{
    bool own = sweep->s->landmarks.count == 0 && input_has_own_grid(point.in);
    token_grid grid = own ? own_grid(point.in) : (token_grid){0};
    int64_t taken = 0, n = grid_tokens(&grid);
    int code = EXIT_PASS;
    for (; *m > 0 && code == EXIT_PASS; m++) {
        int64_t wanted = own && *m > n ? n : *m;
        point.m = landmark_grid(point.in, wanted, &point.grid);
        if (is_left_out(sweep->s, point.in, own || point.m == *m))
            continue;
        code = check_landmarks(sweep->s, point.in, *m, point.m);
        if (code == EXIT_PASS && point.m != taken)
            code = landmark_sweep_add_samples(sweep, point, samples(sweep->s, point.m));
        taken = point.m;
    }
    return code;
}

/* The numbers of --m, or `usual`; ended by 0, to be freed. */
static int64_t *list_landmarks(const program_options *s, const int64_t *usual)
{
    int count = s->landmarks.count;
    const int64_t *from = count > 0 ? s->landmarks.items : usual;
    while (s->landmarks.count == 0 && usual[count] > 0)
        count++;
    int64_t *m = must_allocate((size_t)count + 1, sizeof *m);
    memcpy(m, from, (size_t)count * sizeof *m);
    return m;
}

int landmark_sweep_open(const program_options *s, const int64_t *m,
                        int64_t (*samples)(const program_options *s, int64_t m), void **state,
                        int64_t *points)
{
    static const char *const usual_inputs[] = {
        "photos", "trained:soft", "trained:softmax", "smooth",   "smooth:8",
        "noisy",  "iid",          "iid:0.3",         "clusters", NULL};
    return landmark_sweep_open_inputs(s, usual_inputs, m, samples, state, points);
}

int landmark_sweep_open_inputs(const program_options *s, const char *const *usual_inputs,
                               const int64_t *m,
                               int64_t (*samples)(const program_options *s, int64_t m),
                               void **state, int64_t *points)
{
    int code = landmark_sweep_start(s, usual_inputs, state);
    landmark_sweep *sweep = *state;
    int64_t *listed = list_landmarks(s, m);
    for (int i = 0; i < s->seeds.count && code == EXIT_PASS; i++)
        for (int j = 0; j < sweep->inputs.count && code == EXIT_PASS; j++)
            code = add_points(
                sweep,
                (landmark_point){.seed = (uint64_t)s->seeds.items[i], .in = sweep->inputs.items[j]},
                listed, samples);
    free(listed);
    *points = sweep->count;
    return code;
}

void landmark_sweep_describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const landmark_point *p = &((const landmark_sweep *)state)->points[point];
    bool pooled = p->sampling == SAMPLING_POOL;
    char stage[32] = "";
    if (p->stage > 0)
        snprintf(stage, sizeof stage, " stage %" PRId64, p->stage);
    snprintf(buffer, size, "%s%s m=%" PRId64 " sample=%" PRId64 " seed=%" PRIu64 "%s%s",
             input_name(p->in), stage, p->m, p->sample, p->seed, pooled ? "" : " ",
             pooled ? "" : sampling_name(p->sampling));
}

double landmark_sweep_weight(const void *state, int64_t point)
{
    double m = (double)((const landmark_sweep *)state)->points[point].m;
    return m * m * m;
}

bool landmark_sweep_input(const void *state, int index, const char **name, const char **sha256)
{
    return input_set_describe(&((const landmark_sweep *)state)->inputs, index, name, sha256);
}

void landmark_sweep_close(landmark_sweep *sweep)
{
    input_set_free(&sweep->inputs);
    free(sweep->points);
}

void landmark_sweep_release(void *state)
{
    landmark_sweep_close(state);
    free(state);
}

/* How a point's landmarks are sampled, see sampling_choose. */
static int choose_samplings(const program_options *s, const landmark_point *p, bool all,
                            sampling_kind chosen[SAMPLING_COUNT])
{
    atn_sampling windows = windows_of(&p->grid);
    return sampling_choose(s->sampling_count, s->samplings, all, p->in, &windows, input_dim(p->in),
                           chosen);
}

/* Adds those of `count` points that can be sampled this way. Returns an exit code. */
static int add_sampled(landmark_sweep *sweep, sampling_kind kind, int64_t count,
                       const landmark_point *points)
{
    for (int64_t i = 0; i < count; i++) {
        landmark_point point = points[i];
        sampling_kind kinds[SAMPLING_COUNT];
        int chosen = choose_samplings(sweep->s, &point, true, kinds);
        if (chosen == 0)
            return EXIT_USAGE;
        point.sampling = kind;
        for (int j = 0; j < chosen; j++)
            if (kinds[j] == kind)
                landmark_sweep_add(sweep, &point);
    }
    return EXIT_PASS;
}

int landmark_sweep_vary_sampling(landmark_sweep *sweep)
{
    const program_options *s = sweep->s;
    int64_t count = sweep->count, last;
    bool given = s->sampling_count > 0;
    int kinds = given ? s->sampling_count : SAMPLING_COUNT, code = EXIT_PASS;
    landmark_point *points = sweep->points;
    sweep->points = NULL;
    sweep->count = sweep->capacity = 0;
    for (int64_t first = 0; first < count && code == EXIT_PASS; first = last) {
        for (last = first; last < count && points[last].in == points[first].in &&
                           points[last].seed == points[first].seed;)
            last++;
        for (int i = 0; i < kinds && code == EXIT_PASS; i++) {
            sampling_kind kind = given ? s->samplings[i] : (sampling_kind)i;
            if (given || kind != SAMPLING_TRAINED)
                code = add_sampled(sweep, kind, last - first, points + first);
        }
    }
    free(points);
    return code;
}

/* Averages the tokens of an input's own grid with the largest stride that leaves enough landmarks;
 * in windows if there is no grid, or if it is so narrow that too many are left. */
static void choose_own_stride(token_grid *grid)
{
    int64_t n = grid_tokens(grid), k = 1;
    while ((grid->height / (k + 1)) * (grid->width / (k + 1)) >= FEWEST_LANDMARKS)
        k++;
    grid->stride = k;
    if (grid->windows || grid_landmarks(grid) > MOST_LANDMARKS_OF_GRID)
        *grid = (token_grid){.height = n,
                             .width = 1,
                             .stride = n > FEWEST_LANDMARKS ? n / FEWEST_LANDMARKS : 1,
                             .windows = true};
}

/* The points of an input at a stage, or on its own grid at stage 0. Returns an exit code. */
static int add_stage(landmark_sweep *sweep, const input *in, int64_t stage, int64_t samples,
                     bool all)
{
    const program_options *s = sweep->s;
    bool file = input_is_file(in);
    landmark_point point = {
        .in = in, .stage = stage, .grid = stage ? stage_grid(in, stage) : own_grid(in)};
    sampling_kind kinds[SAMPLING_COUNT];
    if (stage == 0)
        choose_own_stride(&point.grid);
    else if (check_side(in, point.grid.height) != EXIT_PASS)
        return EXIT_USAGE;
    point.m = grid_landmarks(&point.grid);
    int count = choose_samplings(s, &point, all, kinds), code = count ? EXIT_PASS : EXIT_USAGE;
    for (int i = 0; i < count; i++, sweep->series++)
        for (int j = 0; j < s->seeds.count && code == EXIT_PASS; j++) {
            point.sampling = kinds[i];
            point.series = sweep->series;
            point.seed = (uint64_t)s->seeds.items[j];
            code = landmark_sweep_add_samples(sweep, point, file ? INT64_MAX : samples);
        }
    return code;
}

int landmark_sweep_open_stages(landmark_sweep *sweep, const program_options *s,
                               const stage_defaults *usual)
{
    const char *names[MOST_USUAL_INPUTS + 1] = {NULL};
    bool given = s->inputs.count > 0;
    for (int i = 0; !given && usual->inputs[i].name; i++)
        names[i] = usual->inputs[i].name;
    *sweep = (landmark_sweep){.s = s};
    int code = input_set_open(s, names, &sweep->inputs);
    for (int i = 0; i < sweep->inputs.count && code == EXIT_PASS; i++) {
        const input *in = sweep->inputs.items[i];
        const int64_t *stages = s->stages.count ? s->stages.items : usual->stages;
        int count = s->stages.count;
        while (!s->stages.count && stages[count])
            count++;
        if (input_is_file(in) && s->scale == ATN_SCALE_EMBED) {
            report_error("--scale embed: %s does not say how wide its embedding is; expected head "
                         "or a number",
                         input_name(in));
            return EXIT_USAGE;
        }
        bool own = input_is_file(in) || (input_network(in) && !s->stages.count);
        for (int j = 0; j < (own ? 1 : count) && code == EXIT_PASS; j++)
            code = add_stage(sweep, in, own ? 0 : stages[j],
                             s->samples ? s->samples : usual->inputs[given ? 0 : i].samples,
                             usual->samplings);
    }
    return code;
}

int landmark_sweep_tokens(const landmark_sweep *sweep, const landmark_point *point, double **tokens)
{
    int64_t dim = input_dim(point->in), n = grid_tokens(&point->grid);
    *tokens = must_allocate((size_t)n, (size_t)dim * sizeof **tokens);
    int code = input_tokens(point->in, point->grid.height, point->grid.width, point->grid.patch,
                            point->seed, point->sample, *tokens);
    sampling_prepare(point->sampling, n, dim, landmark_point_scale(sweep->s, point), *tokens);
    return code;
}

int landmark_point_sample(const landmark_point *point, atn_context *context,
                          const atn_tensor *tokens, atn_tensor *landmarks)
{
    atn_sampling windows = windows_of(&point->grid);
    return sampling_take(point->sampling, context, point->in, &windows, point->seed, point->sample,
                         tokens, landmarks);
}

int landmark_sweep_landmarks(const landmark_sweep *sweep, const landmark_point *point,
                             atn_context *context, double **landmarks, double *scale)
{
    int64_t dim = input_dim(point->in);
    double *tokens;
    int code = landmark_sweep_tokens(sweep, point, &tokens);
    atn_tensor from = atn_tensor_dense(tokens, ATN_F64, 1, 1, grid_tokens(&point->grid), dim);
    *landmarks = must_allocate((size_t)point->m, (size_t)dim * sizeof **landmarks);
    atn_tensor to = atn_tensor_dense(*landmarks, ATN_F64, 1, 1, point->m, dim);
    *scale = sampling_kernel_scale(point->sampling, landmark_point_scale(sweep->s, point));
    if (code == EXIT_PASS)
        code = landmark_point_sample(point, context, &from, &to);
    free(tokens);
    if (code == EXIT_PASS)
        return code;
    free(*landmarks);
    *landmarks = NULL;
    return code;
}

/* An input as on the command line: a file with its folders. Without an input any name will do. */
static const char *input_text(const landmark_sweep *sweep, const input *in)
{
    for (int i = 0; in && i < sweep->s->inputs.count; i++)
        if (sweep->inputs.items[i] == in)
            return sweep->s->inputs.items[i];
    return in ? input_name(in) : "iid";
}

void landmark_sweep_replay(const void *state, int64_t point, options_point *options)
{
    const landmark_sweep *sweep = state;
    const landmark_point *p = &sweep->points[point];
    *options = (options_point){.input = input_text(sweep, p->in),
                               .stage = p->stage,
                               .landmarks = p->in ? p->m : 0,
                               .sampling = sampling_name(p->sampling),
                               .seed = (int64_t)p->seed,
                               .samples = p->sample + 1};
}
