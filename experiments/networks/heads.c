/* SPDX-License-Identifier: BSD-3-Clause */
#include "networks/heads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/report.h"

/* Adds the heads of a network, or only counts them (w->all is null). */
static void add_points(const input *in, int64_t samples, uint64_t seed, head_sweep *w)
{
    const trained *network = input_network(in);
    head_point p = {.in = in, .seed = seed};
    for (p.sample = 0; p.sample < samples; p.sample++)
        for (p.head = 0; p.head < trained_heads(network); p.head++)
            for (p.block = 0; p.block < trained_depth(network); p.block++, w->points++)
                if (w->all)
                    w->all[w->points] = p;
}

int heads_prepare(const program_options *s, const char *const *usual, int64_t samples,
                  int (*check)(const program_options *s, const input *in), head_sweep *w)
{
    int code = input_set_open_networks(s, usual, &w->networks);
    for (int i = 0; i < w->networks.count && code == EXIT_PASS; i++) {
        int64_t pictures = trained_pictures(input_network(w->networks.items[i]))->count;
        if (samples > pictures) {
            report_error("--samples %" PRId64 ": data/trained has %" PRId64
                         " pictures, expected at most as many",
                         samples, pictures);
            return EXIT_USAGE;
        }
        code = check(s, w->networks.items[i]);
    }
    for (int fill = 0; fill < 2 && code == EXIT_PASS; fill++) {
        w->all = fill ? must_allocate((size_t)w->points, sizeof *w->all) : NULL;
        w->points = 0;
        for (int j = 0; j < s->seeds.count; j++)
            for (int i = 0; i < w->networks.count; i++)
                add_points(w->networks.items[i], samples, (uint64_t)s->seeds.items[j], w);
    }
    return code;
}

void heads_release(head_sweep *w)
{
    input_set_free(&w->networks);
    free(w->all);
}

bool heads_input(const void *state, int index, const char **name, const char **sha256)
{
    return input_set_describe(&((const head_sweep *)state)->networks, index, name, sha256);
}

void heads_describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const head_point *p = heads_point(state, point);
    snprintf(buffer, size, "%s block %" PRId64 " head %" PRId64 " sample %" PRId64 " seed %" PRIu64,
             network_name(p->in), p->block, p->head, p->sample, p->seed);
}

void heads_replay(const void *state, int64_t point, options_point *options)
{
    const head_point *p = heads_point(state, point);
    *options = (options_point){.input = "", .seed = (int64_t)p->seed, .samples = p->sample + 1};
}

const head_point *heads_point(const void *state, int64_t point)
{
    return &((const head_sweep *)state)->all[point];
}

input_draw heads_draw(const head_point *p)
{
    const trained *network = input_network(p->in);
    int64_t side = trained_side(network);
    return (input_draw){.height = side,
                        .width = side,
                        .seed = p->seed,
                        .sample = p->sample * trained_heads(network) + p->head};
}

int heads_open(const head_point *p, trained_head *h)
{
    input_draw draw = heads_draw(p);
    return trained_head_open(input_network(p->in), p->block, &draw, h);
}
