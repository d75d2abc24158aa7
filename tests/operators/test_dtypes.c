/* SPDX-License-Identifier: BSD-3-Clause */
/* The types that only CUDA computes in are refused by all functions on the CPU (test_bf16.c: the
 * operators that it has in bf16), and no array is read or written as one of another type. */
#include <criterion/criterion.h>

#include <string.h>

#include "fixture.h"

/* Three arguments of one dtype; m and d are such that every function below accepts the shapes. */
enum { M = 3 };

typedef struct {
    guarded in, other, out;
} arguments;

static arguments make(atn_dtype dtype)
{
    arguments a = {guarded_make(dtype, GUARDED_DENSE, 1, 1, M, M),
                   guarded_make(dtype, GUARDED_DENSE, 1, 1, M, M),
                   guarded_make(dtype, GUARDED_DENSE, 1, 1, M, M)};
    static const double identity[M * M] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    guarded_set(&a.in, identity);
    guarded_set(&a.other, identity);
    return a;
}

static void drop(arguments *a)
{
    guarded_free(&a->out);
    guarded_free(&a->other);
    guarded_free(&a->in);
}

static atn_status inverse(atn_context *context, arguments *a)
{
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_SOFT);
    return atn_inverse(context, &desc, &a->in.view, &a->out.view, NULL, NULL);
}

static atn_status inverse_backward(atn_context *context, arguments *a)
{
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_SOFT);
    return atn_inverse_backward(context, &desc, ATN_GRADIENT_CLOSED, &a->in.view, &a->other.view,
                                &a->out.view, NULL);
}

static atn_status gaussian_self(atn_context *context, arguments *a)
{
    return atn_gaussian_self(context, ATN_DISTANCE_DIRECT, 1, &a->in.view, &a->out.view);
}

static atn_status gaussian_cross(atn_context *context, arguments *a)
{
    return atn_gaussian_cross(context, ATN_DISTANCE_DIRECT, 1, &a->in.view, &a->other.view,
                              &a->out.view);
}

static atn_status sample(atn_context *context, arguments *a)
{
    atn_sampling first = {.kind = ATN_SAMPLING_FIRST, .count = M};
    return atn_sample(context, &first, &a->in.view, &a->out.view);
}

static atn_status orthogonal(atn_context *context, arguments *a)
{
    return atn_orthogonal_features(context, &a->in.view, NULL, &a->out.view);
}

static const struct {
    const char *name;
    atn_status (*call)(atn_context *context, arguments *a);
} functions[] = {
    {"atn_inverse", inverse},
    {"atn_inverse_backward", inverse_backward},
    {"atn_gaussian_self", gaussian_self},
    {"atn_gaussian_cross", gaussian_cross},
    {"atn_sample", sample},
    {"atn_orthogonal_features", orthogonal},
};

Test(dtypes, functions_refuse_what_they_cannot_compute_in)
{
    atn_context *context;
    cr_assert_eq(atn_context_create(NULL, &context), ATN_OK);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int dtype = 0; dtype < ATN_DTYPE_COUNT; dtype++) {
            arguments a = make((atn_dtype)dtype);
            atn_status status = functions[i].call(context, &a);
            bool narrow = dtype >= ATN_CPU_DTYPE_COUNT;
            cr_expect_eq(status, narrow ? ATN_ERR_DTYPE : ATN_OK, "%s in %s: %s (%s)",
                         functions[i].name, atn_dtype_name((atn_dtype)dtype),
                         atn_status_name(status), atn_last_error(context));
            cr_expect_eq(guarded_unwritten(&a.out), narrow ? M * M : 0, "%s", functions[i].name);
            cr_expect(!narrow ||
                          (strstr(atn_last_error(context), atn_dtype_name((atn_dtype)dtype)) &&
                           strstr(atn_last_error(context), "f32 and f64")),
                      "%s: \"%s\"", functions[i].name, atn_last_error(context));
            drop(&a);
        }
    atn_context_free(context);
}

Test(dtypes, plans_refuse_what_they_cannot_compute_in)
{
    atn_context *context;
    atn_attention_shape shape = {1, 1, 4, 2, 2, 0};
    cr_assert_eq(atn_context_create(NULL, &context), ATN_OK);
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        for (int dtype = ATN_CPU_DTYPE_COUNT; dtype < ATN_DTYPE_COUNT; dtype++) {
            atn_attention_desc desc = atn_attention_defaults((atn_operator)op, (atn_dtype)dtype);
            atn_plan *plan = (atn_plan *)&plan;
            atn_cost cost;
            if (dtype == ATN_BF16 &&
                atn_operator_get((atn_operator)op)->capabilities & ATN_CAN_CPU_BF16)
                continue;
            cr_expect_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_ERR_DTYPE);
            cr_expect_null(plan);
            cr_expect(strstr(atn_last_error(context), atn_dtype_name((atn_dtype)dtype)), "%s",
                      atn_last_error(context));
            cr_expect_eq(atn_attention_cost(context, &desc, &shape, &cost), ATN_ERR_DTYPE);
        }
    atn_context_free(context);
}

/* A call's tensors are of the plan's dtype. */
Test(dtypes, tensors_of_another_type_than_the_plan)
{
    atn_context *context;
    atn_plan *plan;
    atn_attention_shape shape = {1, 1, M, M, M, 0};
    atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F32);
    cr_assert_eq(atn_context_create(NULL, &context), ATN_OK);
    cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK);
    for (int dtype = 0; dtype < ATN_DTYPE_COUNT; dtype++) {
        arguments a = make((atn_dtype)dtype);
        atn_attention_inputs inputs = {.q = &a.in.view, .v = &a.other.view};
        cr_expect_eq(atn_attention_forward(plan, &inputs, &a.out.view, NULL),
                     dtype == ATN_F32 ? ATN_OK : ATN_ERR_DTYPE, "%s",
                     atn_dtype_name((atn_dtype)dtype));
        drop(&a);
    }
    atn_plan_free(plan);
    atn_context_free(context);
}
