/* SPDX-License-Identifier: BSD-3-Clause */
#include "drawn_case.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/report.h"
#include "registry.h"
#include "runs.h"

void draw_case(drawn_case *c, const char *options)
{
    static const int64_t stages[] = {3, 0};
    const stage_defaults defaults = {NULL, stages, true};
    cr_assert_eq(parse_options(&c->s, &convergence_curves, options), EXIT_PASS);
    cr_assert_eq(landmark_sweep_open_stages(&c->draws, &c->s, &defaults), EXIT_PASS);
    const landmark_point *p = &c->draws.points[0];
    c->b = bottleneck_create(ATN_F64, M);
    c->raw = must_allocate(N * D, sizeof *c->raw);
    c->cross = must_allocate(M * N, sizeof *c->cross);
    cr_assert_eq(input_tokens(p->in, SIDE, SIDE, 16, 1, 0, c->raw), EXIT_PASS);
    cr_assert_eq(landmark_sweep_tokens(&c->draws, p, &c->tokens), EXIT_PASS);
    atn_context *context = make_context();
    cr_assert_eq(bottleneck_from_tokens(&c->b, &c->draws, p, context, c->tokens, c->cross),
                 EXIT_PASS);
    atn_context_free(context);
}

void free_case(drawn_case *c)
{
    free(c->cross);
    free(c->tokens);
    free(c->raw);
    bottleneck_free(&c->b);
    landmark_sweep_close(&c->draws);
    options_free(&c->s);
}
