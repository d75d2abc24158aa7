/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel/plan.h"

#include <math.h>

#include "core/backend.h"

double atn_kernel_scale(atn_scale scale, double value, int64_t heads, int64_t dim)
{
    switch (scale) {
    case ATN_SCALE_HEAD:
        return 1 / (2 * sqrt((double)dim));
    case ATN_SCALE_EMBED:
        return 1 / (2 * sqrt((double)heads * (double)dim));
    default:
        return value;
    }
}

atn_status core_check_kernel(atn_context *context, const atn_attention_desc *desc, double s)
{
    if (!atn_scale_name(desc->scale))
        return core_fail(context, ATN_ERR_VALUE, "scale: unknown choice %d", (int)desc->scale);
    if (!atn_distance_name(desc->distance))
        return core_fail(context, ATN_ERR_VALUE, "distance: unknown choice %d",
                         (int)desc->distance);
    if (!(s > 0 && s <= 1.7976931348623157e308))
        return core_fail(context, ATN_ERR_VALUE, "scale is %g, expected positive and finite", s);
    return ATN_OK;
}

double core_pair_flops(atn_distance distance, double d)
{
    return distance == ATN_DISTANCE_DIRECT ? 3 * d : 2 * d + 3;
}

static atn_status check_choice(atn_context *context, atn_distance distance, double s)
{
    if (!atn_distance_name(distance))
        return core_fail(context, ATN_ERR_VALUE, "distance: unknown choice %d", (int)distance);
    if (!(s > 0 && s < INFINITY))
        return core_fail(context, ATN_ERR_VALUE, "s is %g, expected positive and finite", s);
    return ATN_OK;
}

static atn_status all_heads(atn_context *context, atn_distance distance, double s,
                            const atn_tensor *x, const atn_tensor *y, const atn_tensor *out)
{
    if (out->batch * out->heads == 0 || out->rows == 0 || out->cols == 0)
        return ATN_OK;
    return context->backend->gaussian(context, distance, s, x, y, out);
}

atn_status atn_gaussian_self(atn_context *context, atn_distance distance, double s,
                             const atn_tensor *landmarks, atn_tensor *a)
{
    atn_status status;
    if (!context)
        return ATN_ERR_NULL;
    if ((status = check_choice(context, distance, s)) != ATN_OK ||
        (status = core_check_tensor(context, "landmarks", landmarks, -1, -1, -1, -1, -1)) !=
            ATN_OK ||
        (status = core_check_tensor(context, "a", a, landmarks->dtype, landmarks->batch,
                                    landmarks->heads, landmarks->rows, landmarks->rows)) !=
            ATN_OK ||
        (status = core_check_alias(context, "a", a, "landmarks", landmarks)) != ATN_OK ||
        (status = core_check_device(context, "landmarks", landmarks)) != ATN_OK ||
        (status = core_check_device(context, "a", a)) != ATN_OK)
        return status;
    return all_heads(context, distance, s, landmarks, NULL, a);
}

atn_status atn_gaussian_cross(atn_context *context, atn_distance distance, double s,
                              const atn_tensor *x, const atn_tensor *y, atn_tensor *out)
{
    atn_status status;
    if (!context)
        return ATN_ERR_NULL;
    if ((status = check_choice(context, distance, s)) != ATN_OK ||
        (status = core_check_tensor(context, "x", x, -1, -1, -1, -1, -1)) != ATN_OK ||
        (status = core_check_tensor(context, "y", y, x->dtype, x->batch, x->heads, -1, x->cols)) !=
            ATN_OK ||
        (status = core_check_tensor(context, "out", out, x->dtype, x->batch, x->heads, x->rows,
                                    y->rows)) != ATN_OK ||
        (status = core_check_alias(context, "out", out, "x", x)) != ATN_OK ||
        (status = core_check_alias(context, "out", out, "y", y)) != ATN_OK ||
        (status = core_check_device(context, "x", x)) != ATN_OK ||
        (status = core_check_device(context, "y", y)) != ATN_OK ||
        (status = core_check_device(context, "out", out)) != ATN_OK)
        return status;
    return all_heads(context, distance, s, x, y, out);
}
