/* SPDX-License-Identifier: BSD-3-Clause */
#include "convergence/cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"

enum { FEWEST_LANDMARKS = 49, MOST_LANDMARKS = 4 * FEWEST_LANDMARKS };

/* SOFT-Tiny, IJCV Tab. 1; the heads give the embedding width of --scale embed. */
static const struct {
    int64_t side, patch, stride, heads;
} soft_tiny[] = {{56, 4, 8, 2}, {28, 8, 4, 4}, {14, 16, 2, 10}};

static void plan_stage(bottleneck_plan *plan, int64_t stage)
{
    int64_t side = soft_tiny[stage - 1].side, stride = soft_tiny[stage - 1].stride;
    plan->stage = stage;
    plan->height = plan->width = side;
    plan->patch = soft_tiny[stage - 1].patch;
    plan->tokens = side * side;
    plan->dim = TOKEN_DIM;
    plan->landmarks = (side / stride) * (side / stride);
    plan->windows =
        (atn_sampling){.kind = ATN_SAMPLING_POOL, .height = side, .width = side, .stride = stride};
}

/* The largest k with floor(height / k) floor(width / k) >= the fewest landmarks; at least 1. */
static int64_t pool_stride(int64_t height, int64_t width)
{
    int64_t k = 1;
    while ((height / (k + 1)) * (width / (k + 1)) >= FEWEST_LANDMARKS)
        k++;
    return k;
}

static void plan_file(bottleneck_plan *plan, const input *in)
{
    int64_t matrices, height, width;
    input_file_shape(in, &matrices, &plan->tokens, &plan->dim, &height, &width);
    int64_t stride = pool_stride(height, width);
    plan->landmarks = (height / stride) * (width / stride);
    if (height > 0 && plan->landmarks <= MOST_LANDMARKS) {
        plan->height = height;
        plan->width = width;
        plan->windows = (atn_sampling){
            .kind = ATN_SAMPLING_POOL, .height = height, .width = width, .stride = stride};
        return;
    }
    stride = plan->tokens > FEWEST_LANDMARKS ? plan->tokens / FEWEST_LANDMARKS : 1;
    plan->height = plan->tokens;
    plan->width = 1;
    plan->landmarks = (plan->tokens + stride - 1) / stride;
    plan->windows = (atn_sampling){.kind = ATN_SAMPLING_WINDOW, .stride = stride};
}

static int make_plan(const program_options *s, const input *in, int64_t stage,
                     bottleneck_plan *plan)
{
    *plan = (bottleneck_plan){.distance = s->distance};
    if (!input_is_file(in))
        plan_stage(plan, stage);
    else if (s->scale == ATN_SCALE_EMBED) {
        report_error("--scale embed: %s does not say how wide its embedding is; expected head or a "
                     "number",
                     input_name(in));
        return EXIT_USAGE;
    } else
        plan_file(plan, in);
    int64_t heads = plan->stage ? soft_tiny[plan->stage - 1].heads : 1;
    plan->scale = atn_kernel_scale(s->scale, s->scale_value, heads, plan->dim);
    return EXIT_PASS;
}

/* A file cannot give more samples than it has matrices; that is an error only if they were asked
 * for. */
static int count_file_samples(const program_options *s, const input *in, int64_t *samples)
{
    int64_t matrices, tokens, dim, height, width;
    input_file_shape(in, &matrices, &tokens, &dim, &height, &width);
    *samples = s->samples ? s->samples : matrices;
    if (*samples <= matrices)
        return EXIT_PASS;
    report_error("--samples %" PRId64 ": %s has %" PRId64 " matrices, expected at most as many",
                 *samples, input_name(in), matrices);
    return EXIT_USAGE;
}

/* Adds a case that is planned but for its sampling. */
static int add_case(case_list *list, const input_case *like, sampling_kind sampling)
{
    input_case *c = &list->items[list->count];
    int64_t points;
    *c = *like;
    c->plan.sampling = sampling;
    c->first_point = list->points;
    if (__builtin_mul_overflow(c->samples, c->seeds, &points) ||
        __builtin_add_overflow(list->points, points, &list->points)) {
        report_error("--samples, --seed: too many points");
        return EXIT_USAGE;
    }
    list->count++;
    return EXIT_PASS;
}

/* A case for every sampling: of --sampling, else of the defaults those that are possible. */
static int add_cases(case_list *list, const input *in, const char *text, int64_t stage,
                     int64_t samples, bool all)
{
    const program_options *s = list->s;
    input_case c = {in, text, .samples = samples, .seeds = s->seeds.count};
    int code = make_plan(s, in, stage, &c.plan);
    if (code == EXIT_PASS && input_is_file(in)) {
        c.seeds = 1;
        code = count_file_samples(s, in, &c.samples);
    }
    sampling_kind kinds[SAMPLING_COUNT];
    if (code != EXIT_PASS)
        return code;
    int count = sampling_choose(s->sampling_count, s->samplings, all, input_name(in),
                                &c.plan.windows, c.plan.dim, kinds);
    for (int i = 0; i < count && code == EXIT_PASS; i++)
        code = add_case(list, &c, kinds[i]);
    return count > 0 ? code : EXIT_USAGE;
}

/* Rows tell inputs apart by name, and a file's name is without its folders. */
static int check_name(const case_list *list, const char *text)
{
    const char *name = input_name(list->inputs[list->input_count - 1]);
    for (int i = 0; i < list->input_count - 1; i++)
        if (strcmp(input_name(list->inputs[i]), name) == 0) {
            report_error("--input %s: another input is called %s too; expected names that differ",
                         text, name);
            return EXIT_USAGE;
        }
    return EXIT_PASS;
}

static int add_input(case_list *list, const char *name, const int64_t *stages, int stage_count,
                     int64_t samples, bool samplings)
{
    input *in;
    int code = input_open(name, list->s->grid_height, list->s->grid_width, &in);
    if (code != EXIT_PASS)
        return code;
    list->inputs[list->input_count++] = in;
    code = check_name(list, name);
    if (input_is_file(in))
        stage_count = 1;
    for (int i = 0; i < stage_count && code == EXIT_PASS; i++)
        code = add_cases(list, in, name, stages[i], samples, samplings);
    return code;
}

int case_list_open(const program_options *s, const case_defaults *defaults, case_list *list)
{
    bool given = s->inputs.count > 0;
    const int64_t *stages = s->stages.count ? s->stages.items : defaults->stages;
    int count = s->inputs.count, stage_count = s->stages.count, code = EXIT_PASS;
    while (!given && defaults->inputs[count].input)
        count++;
    while (!s->stages.count && defaults->stages[stage_count])
        stage_count++;
    *list = (case_list){.s = s};
    list->inputs = must_allocate((size_t)count, sizeof *list->inputs);
    list->items =
        must_allocate((size_t)count * (size_t)stage_count * SAMPLING_COUNT, sizeof *list->items);
    for (int i = 0; i < count && code == EXIT_PASS; i++)
        code = add_input(
            list, given ? s->inputs.items[i] : defaults->inputs[i].input, stages, stage_count,
            s->samples ? s->samples : defaults->inputs[given ? 0 : i].samples, defaults->samplings);
    return code;
}

void case_list_free(case_list *list)
{
    for (int i = 0; i < list->input_count; i++)
        input_free(list->inputs[i]);
    free(list->inputs);
    free(list->items);
}

bool case_sweep_input(const void *state, int index, const char **name, const char **sha256)
{
    const case_list *list = state;
    if (index < 0 || index >= list->input_count)
        return false;
    *name = input_name(list->inputs[index]);
    *sha256 = input_sha256(list->inputs[index]);
    return true;
}

case_draw case_list_draw(const case_list *list, int64_t point)
{
    int i = list->count - 1;
    while (list->items[i].first_point > point)
        i--;
    const input_case *c = &list->items[i];
    int64_t offset = point - c->first_point;
    return (case_draw){c, (uint64_t)list->s->seeds.items[offset / c->samples], offset % c->samples};
}

void case_draw_describe(const case_draw *draw, char *buffer, size_t size)
{
    const bottleneck_plan *plan = &draw->c->plan;
    bool pooled = plan->sampling == SAMPLING_POOL;
    snprintf(buffer, size, "%s stage %" PRId64 " seed %" PRIu64 " sample %" PRId64 "%s%s",
             input_name(draw->c->in), plan->stage, draw->seed, draw->sample, pooled ? "" : " ",
             pooled ? "" : sampling_name(plan->sampling));
}

options_point case_list_replay(const case_list *list, int64_t point)
{
    case_draw draw = case_list_draw(list, point);
    return (options_point){.input = draw.c->text,
                           .stage = draw.c->plan.stage,
                           .sampling = sampling_name(draw.c->plan.sampling),
                           .seed = (int64_t)draw.seed,
                           .samples = draw.sample + 1};
}

int case_draw_tokens(const case_draw *draw, double **tokens)
{
    const bottleneck_plan *plan = &draw->c->plan;
    *tokens = must_allocate((size_t)plan->tokens, (size_t)plan->dim * sizeof **tokens);
    int code = input_tokens(draw->c->in, plan->height, plan->width, plan->patch, draw->seed,
                            draw->sample, *tokens);
    sampling_prepare(plan->sampling, plan->tokens, plan->dim, plan->scale, *tokens);
    return code;
}

void case_sweep_describe(const void *state, int64_t point, char *buffer, size_t size)
{
    case_draw draw = case_list_draw(state, point);
    case_draw_describe(&draw, buffer, size);
}

void case_sweep_replay(const void *state, int64_t point, options_point *options)
{
    *options = case_list_replay(state, point);
}

double case_sweep_weight(const void *state, int64_t point)
{
    double m = (double)case_list_draw(state, point).c->plan.landmarks;
    return m * m * m;
}

void case_sweep_release(void *state)
{
    case_list_free(state);
    free(state);
}
