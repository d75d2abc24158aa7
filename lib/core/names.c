/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of every choice, from the lists in the public headers. */
#include <attnum/attnum.h>

typedef struct {
    const char *name, *description;
} named;

#define NAMED_ENTRY(code, name, description) {name, description},
static const named isas[] = {ATN_ISA_LIST(NAMED_ENTRY)};
static const named distances[] = {ATN_DISTANCE_LIST(NAMED_ENTRY)};
static const named scales[] = {ATN_SCALE_LIST(NAMED_ENTRY)};
static const named samplings[] = {ATN_SAMPLING_LIST(NAMED_ENTRY)};
static const named inverses[] = {ATN_INVERSE_LIST(NAMED_ENTRY)};
static const named metrics[] = {ATN_METRIC_LIST(NAMED_ENTRY)};
static const named gradients[] = {ATN_GRADIENT_LIST(NAMED_ENTRY)};
static const named stoppings[] = {ATN_STOPPING_LIST(NAMED_ENTRY)};
static const named stops[] = {ATN_STOP_LIST(NAMED_ENTRY)};
static const named storages[] = {ATN_STORAGE_LIST(NAMED_ENTRY)};
static const named soft_passes[] = {ATN_SOFT_PASSES_LIST(NAMED_ENTRY)};
static const named parameters[] = {ATN_PARAMETER_LIST(NAMED_ENTRY)};
#undef NAMED_ENTRY

/* The enumerations are unsigned or int as the compiler likes; one comparison serves both. */
#define IN_RANGE(value, count) ((unsigned)(value) < (unsigned)(count))

const char *atn_isa_name(atn_isa isa)
{
    return IN_RANGE(isa, ATN_ISA_COUNT) ? isas[isa].name : NULL;
}

const char *atn_isa_description(atn_isa isa)
{
    return IN_RANGE(isa, ATN_ISA_COUNT) ? isas[isa].description : NULL;
}

const char *atn_distance_name(atn_distance distance)
{
    return IN_RANGE(distance, ATN_DISTANCE_COUNT) ? distances[distance].name : NULL;
}

const char *atn_scale_name(atn_scale scale)
{
    return IN_RANGE(scale, ATN_SCALE_COUNT) ? scales[scale].name : NULL;
}

const char *atn_soft_passes_name(atn_soft_passes passes)
{
    return IN_RANGE(passes, ATN_SOFT_PASSES_COUNT) ? soft_passes[passes].name : NULL;
}

const char *atn_sampling_name(atn_sampling_kind kind)
{
    return IN_RANGE(kind, ATN_SAMPLING_COUNT) ? samplings[kind].name : NULL;
}

const char *atn_inverse_name(atn_inverse_method method)
{
    return IN_RANGE(method, ATN_INVERSE_COUNT) ? inverses[method].name : NULL;
}

const char *atn_inverse_description(atn_inverse_method method)
{
    return IN_RANGE(method, ATN_INVERSE_COUNT) ? inverses[method].description : NULL;
}

const char *atn_metric_name(atn_metric metric)
{
    return IN_RANGE(metric, ATN_METRIC_COUNT) ? metrics[metric].name : NULL;
}

const char *atn_stop_name(atn_stop stop)
{
    return IN_RANGE(stop, ATN_STOP_COUNT) ? stops[stop].name : NULL;
}

const char *atn_stopping_name(atn_stopping stopping)
{
    return IN_RANGE(stopping, ATN_STOPPING_COUNT) ? stoppings[stopping].name : NULL;
}

const char *atn_gradient_name(atn_gradient gradient)
{
    return IN_RANGE(gradient, ATN_GRADIENT_COUNT) ? gradients[gradient].name : NULL;
}

const char *atn_storage_name(atn_storage storage)
{
    return IN_RANGE(storage, ATN_STORAGE_COUNT) ? storages[storage].name : NULL;
}

const char *atn_parameter_name(atn_parameter parameter)
{
    return IN_RANGE(parameter, ATN_PARAMETER_COUNT) ? parameters[parameter].name : NULL;
}
