/* SPDX-License-Identifier: BSD-3-Clause */
#include "networks/changed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "common/report.h"

/* Whether a change can be made in a network that was trained with another: the attention of such a
 * network stays as it is. With the published code's kernel it can be changed, but for the
 * landmarks: tokens, which are divided by d^(1/4), and their averages are none of that kernel. */
static bool can_join(const change *c, const change *with)
{
    return !change_is_of_attention(c) || with == &changes[CHANGE_NONE] ||
           (with->code_kernel && change_convolves(c));
}

bool change_applies(const change *c, const model_shape *shape)
{
    const change *with = shape->change;
    return c->after && change_suits(c, shape->attention, shape->variant) && can_join(c, with) &&
           (!c->factor || (shape->side == FASHION_SIDE && !change_has_drawn_landmarks(with))) &&
           (!c->same_m || change_convolves(with));
}

static void draw_landmarks(changed_network *n, uint64_t seed, int64_t sample)
{
    int64_t m = n->descs[0].sampling.count, depth = n->m.shape.depth;
    n->indices = change_draw_landmarks(seed, sample, depth, n->m.tokens, m);
    for (int64_t i = 0; i < depth; i++)
        n->descs[i].sampling.indices = n->indices + i * m;
}

/* An attention in a narrow type takes parameters in that type. */
static void round_parameters(changed_network *n)
{
    for (int64_t i = 0; i < n->m.parameter_count; i++) {
        const model_parameter *p = &n->m.parameters[i];
        if (strstr(p->name, ".attention."))
            atn_storage_round(n->descs[0].storage, p->count, n->data + p->offset);
    }
}

int changed_network_open(const trained *t, const change *c, uint64_t seed, int64_t sample,
                         changed_network *n)
{
    *n = (changed_network){0};
    const model_shape *own = trained_shape(t);
    model_shape shape = model_resized(own, own->side * (c->factor ? c->factor : 1));
    if (c->same_m)
        shape.landmarks = own->landmarks;
    double *data;
    int code = trained_network(t, &shape, &n->m, &data);
    if (code == EXIT_PASS) {
        n->data = must_allocate((size_t)n->m.size, sizeof *n->data);
        n->descs = must_allocate((size_t)shape.depth, sizeof *n->descs);
        for (int64_t i = 0; i < n->m.size; i++)
            n->data[i] = (float)data[i];
        for (int64_t i = 0; i < shape.depth; i++) {
            n->descs[i] = model_attention(&n->m, i, ATN_F32, n->data);
            if (c->edit)
                c->edit(c, &n->descs[i]);
        }
        if (change_has_drawn_landmarks(c))
            draw_landmarks(n, seed, sample);
        round_parameters(n);
    }
    free(data);
    return code;
}

void changed_network_free(changed_network *n)
{
    free(n->indices);
    free(n->descs);
    free(n->data);
    model_free(&n->m);
}

void changed_picture(const change *c, const fashion_set *set, int64_t picture, int64_t side,
                     uint64_t seed, int64_t sample, float *pixels)
{
    fashion_image(set, picture, FASHION_WHOLE, side, pixels);
    if (c->noise == 0)
        return;
    char *purpose = must_format("noise %" PRId64, sample);
    random_stream *r = random_create(seed, purpose, (uint64_t)picture);
    for (int64_t i = 0; i < side * side; i++)
        pixels[i] += (float)(c->noise * random_normal(r));
    random_free(r);
    free(purpose);
}
