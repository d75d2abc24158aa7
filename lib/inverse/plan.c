/* SPDX-License-Identifier: BSD-3-Clause */
#include "inverse/plan.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/backend.h"
#include "core/timing.h"
#include "inverse/trace.h"

static const core_polynomial polynomials[ATN_INVERSE_COUNT] = {
    [ATN_INVERSE_NEWTON_SCHULZ] = {2, 2, false}, [ATN_INVERSE_HYPERPOWER_3] = {3, 3, false},
    [ATN_INVERSE_HYPERPOWER_7] = {7, 5, false},  [ATN_INVERSE_HYPERPOWER_9] = {9, 5, false},
    [ATN_INVERSE_NYSTROMFORMER] = {3, 4, false}, [ATN_INVERSE_CHEBYSHEV_2] = {2, 2, true},
    [ATN_INVERSE_CHEBYSHEV_3] = {3, 3, true},    [ATN_INVERSE_CHEBYSHEV_9] = {9, 5, true},
};

const core_polynomial *core_polynomial_of(atn_inverse_method method)
{
    return polynomials[method].order > 0 ? &polynomials[method] : NULL;
}

static bool is_iteration(const atn_inverse_desc *desc)
{
    return core_is_newton(desc) || core_polynomial_of(desc->method);
}

double core_inverse_products(const atn_inverse_desc *desc)
{
    const core_polynomial *polynomial = core_polynomial_of(desc->method);
    if (core_is_newton(desc))
        return (desc->stopping == ATN_STOPPING_BEST ? 3.0 : 2.0) * desc->iterations +
               (desc->search == ATN_SEARCH_SQUARE);
    if (!polynomial)
        return 0;
    bool saved = desc->start == ATN_START_IDENTITY && desc->iterations > 0;
    return (double)polynomial->products * desc->iterations - (saved ? 2 : 0);
}

/* The fewest steps whose degree is that of 20 Newton-Raphson steps. */
static int steps_of_order(int order)
{
    int steps = 0;
    for (double degree = 1; degree < 0x1p20; degree *= order)
        steps++;
    return steps;
}

static void set_polynomial_defaults(atn_inverse_desc *desc)
{
    const core_polynomial *polynomial = core_polynomial_of(desc->method);
    if (!polynomial)
        return;
    desc->start = ATN_START_IDENTITY;
    desc->numerator = 1.8;
    desc->iterations = steps_of_order(polynomial->order);
    if (desc->method == ATN_INVERSE_NYSTROMFORMER) {
        desc->start = ATN_START_MATRIX;
        desc->numerator = 1;
        desc->iterations = 6;
    }
}

atn_inverse_desc atn_inverse_defaults(atn_inverse_method method)
{
    atn_inverse_desc desc = {
        .method = method,
        .iterations = 20,
        .numerator = 2,
        .search_limit = 1,
        .search_cap = 10,
        .tolerance = -1,
        .rcond = -1,
        .jitter = -1,
    };
    switch (method) {
    case ATN_INVERSE_NR_ADAPTIVE:
        desc.search = ATN_SEARCH_MATRIX;
        break;
    case ATN_INVERSE_NR_SOFT:
        desc.numerator = 1.8;
        desc.ridge = 0.01;
        break;
    case ATN_INVERSE_NR_SOFTPP:
        desc.search = ATN_SEARCH_SQUARE;
        desc.search_limit = 1.01;
        desc.search_accepts_last = true;
        desc.scope = ATN_SCOPE_BATCH;
        break;
    default:
        if (atn_inverse_name(method))
            set_polynomial_defaults(&desc);
    }
    return desc;
}

static bool in_range(double value, double low, double high)
{
    return value >= low && value <= high; /* false for NaN */
}

atn_status core_check_inverse(atn_context *context, const atn_inverse_desc *desc)
{
    if (!atn_inverse_name(desc->method))
        return core_fail(context, ATN_ERR_VALUE, "inverse: unknown method %d", (int)desc->method);
    const core_polynomial *polynomial = core_polynomial_of(desc->method);
    const double largest = 1.7976931348623157e308;
    bool given = desc->method == ATN_INVERSE_NR, chebyshev = polynomial && polynomial->chebyshev;
    double above = desc->interval_high > 0 ? desc->interval_high : largest;
    const struct {
        const char *name;
        double value, low, high;
    } numbers[] = {
        {"iterations", desc->iterations, 0, INT_MAX - 1},
        {"alpha", desc->alpha, given ? 5e-324 : 0,
         given || (polynomial && !chebyshev) ? largest : 0},
        {"numerator", desc->numerator, 5e-324, largest},
        {"ridge", desc->ridge, 0, largest},
        {"search", desc->search, ATN_SEARCH_NONE, polynomial ? ATN_SEARCH_NONE : ATN_SEARCH_SQUARE},
        {"search_limit", desc->search_limit, 0, INFINITY},
        {"search_cap", desc->search_cap, 0, 2000},
        {"stopping", desc->stopping, ATN_STOPPING_NONE,
         polynomial ? ATN_STOPPING_NONE : ATN_STOPPING_COUNT - 1},
        {"storage", desc->storage, ATN_STORAGE_NATIVE, ATN_STORAGE_COUNT - 1},
        {"scope", desc->scope, ATN_SCOPE_MATRIX, polynomial ? ATN_SCOPE_MATRIX : ATN_SCOPE_BATCH},
        {"start", desc->start, ATN_START_MATRIX,
         polynomial ? ATN_START_IDENTITY : ATN_START_MATRIX},
        {"interval_high", desc->interval_high, 0, chebyshev ? largest : 0},
        {"interval_low", desc->interval_low, 0, chebyshev ? above : 0},
        {"tolerance", desc->tolerance, -INFINITY, INFINITY},
        {"rcond", desc->rcond, -INFINITY, 1},
        {"jitter", desc->jitter, -INFINITY, largest},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!in_range(numbers[i].value, numbers[i].low, numbers[i].high))
            return core_fail(context, ATN_ERR_VALUE, "%s: %s is %g, expected %g to %g",
                             atn_inverse_name(desc->method), numbers[i].name, numbers[i].value,
                             numbers[i].low, numbers[i].high);
    return ATN_OK;
}

atn_status core_check_gradient(atn_context *context, const atn_inverse_desc *desc,
                               atn_gradient gradient)
{
    if (!atn_gradient_name(gradient))
        return core_fail(context, ATN_ERR_VALUE, "gradient: unknown choice %d", (int)gradient);
    bool possible = gradient == ATN_GRADIENT_CLOSED ||
                    (gradient == ATN_GRADIENT_STEPS && core_is_newton(desc)) ||
                    (gradient == ATN_GRADIENT_PSEUDO && desc->method == ATN_INVERSE_EIG);
    if (possible)
        return ATN_OK;
    return core_fail(context, ATN_ERR_UNSUPPORTED,
                     "gradient %s goes with %s, not with inverse %s: set gradient too, to closed "
                     "for instance (SOFT++ comes with steps)",
                     atn_gradient_name(gradient),
                     gradient == ATN_GRADIENT_STEPS ? "the Newton-Raphson inverses" : "eig",
                     atn_inverse_name(desc->method));
}

bool core_inverse_backward_too_large(const atn_inverse_desc *desc, atn_gradient gradient, int64_t m,
                                     int threads)
{
    double kept = gradient == ATN_GRADIENT_STEPS ? (double)desc->iterations : 0;
    return core_too_large((kept + 8) * ((double)m + 8) * ((double)m + 8) * threads);
}

bool core_inverse_too_large(int64_t m, int64_t count, int threads)
{
    double size = (double)m + 8; /* m^2 and the terms in m of every method */
    return core_too_large(8 * size * size * threads) || core_too_large((double)count * size);
}

/* Neighbouring matrices share cache lines of starts and infos, so a thread takes four at a time,
 * unless that leaves threads idle. */
int core_inverse_neighbours(const atn_context *context, int64_t count)
{
    enum { NEIGHBOURS = 4 };
    return count >= NEIGHBOURS * NEIGHBOURS * context->threads ? NEIGHBOURS : 1;
}

atn_status core_inverse_end(atn_context *context, atn_status worst)
{
    return worst == ATN_ERR_LIBRARY ? core_fail(context, worst, "LAPACK failed on a finite matrix")
                                    : worst;
}

/* Memory, where there is any, must be the device's. */
static atn_status check_memory(atn_context *context, const char *name, const atn_tensor *t)
{
    bool empty = t->batch * t->heads == 0 || t->rows == 0;
    return empty ? ATN_OK : context->backend->check_memory(context, name, t->data);
}

static atn_status check_dtype(atn_context *context, const atn_tensor *a)
{
    if ((int)a->dtype < context->backend->dtypes)
        return ATN_OK;
    return core_fail(context, ATN_ERR_DTYPE, "a is %s, which the %s does not compute in",
                     atn_dtype_name(a->dtype), atn_device_name(context->kind));
}

/* Checks a single matrix's properties besides the shape. */
static atn_status check_single(atn_context *context, const atn_tensor *a)
{
    atn_status status;
    int64_t bad;
    if ((status = check_dtype(context, a)) != ATN_OK ||
        (status = check_memory(context, "a", a)) != ATN_OK)
        return status;
    if (a->rows > INT_MAX / 8)
        return core_fail(context, ATN_ERR_SHAPE, "a has %" PRId64 " rows, expected at most %d",
                         a->rows, INT_MAX / 8);
    if (a->rows > 1 && a->row_stride != a->rows)
        return core_fail(context, ATN_ERR_STRIDE, "a: rows must lie side by side");
    if ((status = context->backend->find_asymmetric(context, a, &bad)) != ATN_OK || bad < 0)
        return status;
    return core_fail(context, ATN_ERR_VALUE,
                     "a: matrix (%" PRId64 ", %" PRId64 ") is not symmetric", bad / a->heads,
                     bad % a->heads);
}

static atn_status check_matrices(atn_context *context, const atn_tensor *a, const char *name,
                                 const atn_tensor *x)
{
    atn_status status;
    if ((status = core_check_tensor(context, "a", a, -1, -1, -1, -1, a ? a->rows : -1)) != ATN_OK ||
        (status = core_check_tensor(context, name, x, a->dtype, a->batch, a->heads, a->rows,
                                    a->rows)) != ATN_OK ||
        (status = core_check_alias(context, name, x, "a", a)) != ATN_OK ||
        (status = check_memory(context, name, x)) != ATN_OK)
        return status;
    if (a->rows > 1 && x->row_stride != a->rows)
        return core_fail(context, ATN_ERR_STRIDE, "%s: rows must lie side by side", name);
    return check_single(context, a);
}

static atn_status check_storage(atn_context *context, const atn_inverse_desc *desc,
                                const atn_tensor *a)
{
    if (desc->storage == ATN_STORAGE_NATIVE)
        return ATN_OK;
    const char *name = atn_storage_name(desc->storage);
    if (a->dtype != ATN_F32)
        return core_fail(context, ATN_ERR_DTYPE, "storage %s needs dtype f32", name);
    int64_t bad;
    atn_status status = context->backend->find_unstored(context, desc->storage, a, &bad);
    if (status != ATN_OK || bad < 0)
        return status;
    return core_fail(context, ATN_ERR_VALUE,
                     "a: matrix (%" PRId64 ", %" PRId64 ") holds numbers that are not %s",
                     bad / a->heads, bad % a->heads, name);
}

static atn_status check_traces(atn_context *context, const atn_inverse_desc *desc,
                               const atn_tensor *x, atn_trace *traces)
{
    bool iterates = is_iteration(desc);
    for (int64_t i = 0; traces && i < x->batch * x->heads; i++) {
        traces[i].length = 0;
        atn_status status =
            core_trace_check(context, &traces[i], iterates ? desc->iterations + 1 : 1, x);
        if (status != ATN_OK)
            return status;
    }
    return ATN_OK;
}

atn_status atn_inverse(atn_context *context, const atn_inverse_desc *desc, const atn_tensor *a,
                       atn_tensor *x, atn_inverse_info *infos, atn_trace *traces)
{
    atn_status status;
    if (!context || !desc)
        return core_fail(context, ATN_ERR_NULL, "desc is null");
    if ((status = core_check_inverse(context, desc)) != ATN_OK ||
        (status = check_matrices(context, a, "x", x)) != ATN_OK ||
        (status = check_storage(context, desc, a)) != ATN_OK)
        return status;
    if ((status = check_traces(context, desc, x, traces)) != ATN_OK)
        return status;
    int64_t count = a->batch * a->heads;
    if (count == 0 || a->rows == 0) {
        if (infos)
            memset(infos, 0, (size_t)count * sizeof *infos);
        return ATN_OK;
    }
    return context->backend->inverse(context, desc, a, x, infos, traces);
}

/* ---- X W ---- */

static atn_status check_apply(atn_context *context, const atn_tensor *a, const atn_tensor *w,
                              const atn_tensor *y)
{
    atn_status status;
    if ((status = core_check_tensor(context, "a", a, -1, -1, -1, -1, a ? a->rows : -1)) != ATN_OK ||
        (status = core_check_tensor(context, "w", w, a->dtype, a->batch, a->heads, a->rows, -1)) !=
            ATN_OK ||
        (status = core_check_tensor(context, "y", y, a->dtype, a->batch, a->heads, a->rows,
                                    w->cols)) != ATN_OK ||
        (status = core_check_alias(context, "y", y, "a", a)) != ATN_OK ||
        (status = core_check_alias(context, "y", y, "w", w)) != ATN_OK)
        return status;
    return check_single(context, a);
}

atn_status atn_inverse_apply(atn_context *context, const atn_inverse_desc *desc,
                             const atn_tensor *a, const atn_tensor *w, atn_tensor *y,
                             atn_inverse_info *infos)
{
    atn_status status;
    if (!context || !desc)
        return core_fail(context, ATN_ERR_NULL, "desc is null");
    if (!context->backend->inverse_apply)
        return core_fail(context, ATN_ERR_UNSUPPORTED, "atn_inverse_apply is the CPU's only");
    if ((status = core_check_inverse(context, desc)) != ATN_OK ||
        (status = check_apply(context, a, w, y)) != ATN_OK ||
        (status = check_storage(context, desc, a)) != ATN_OK)
        return status;
    int64_t count = a->batch * a->heads;
    if (count > 0 && a->rows > 0)
        return context->backend->inverse_apply(context, desc, a, w, y, infos);
    if (infos)
        memset(infos, 0, (size_t)count * sizeof *infos);
    return ATN_OK;
}

/* ---- Backward ---- */

atn_status atn_inverse_backward(atn_context *context, const atn_inverse_desc *desc,
                                atn_gradient gradient, const atn_tensor *a, const atn_tensor *dx,
                                atn_tensor *da, atn_inverse_info *infos)
{
    atn_status status;
    if (!context || !desc)
        return core_fail(context, ATN_ERR_NULL, "desc is null");
    if ((status = core_check_inverse(context, desc)) != ATN_OK ||
        (status = core_check_gradient(context, desc, gradient)) != ATN_OK ||
        (status = check_matrices(context, a, "da", da)) != ATN_OK ||
        (status = core_check_tensor(context, "dx", dx, (int)a->dtype, a->batch, a->heads, a->rows,
                                    a->rows)) != ATN_OK ||
        (status = core_check_alias(context, "da", da, "dx", dx)) != ATN_OK ||
        (status = check_memory(context, "dx", dx)) != ATN_OK)
        return status;
    if (a->rows > 1 && dx->row_stride != a->rows)
        return core_fail(context, ATN_ERR_STRIDE, "dx: rows must lie side by side");
    if (desc->storage != ATN_STORAGE_NATIVE)
        return core_fail(context, ATN_ERR_UNSUPPORTED,
                         "backward in storage %s: only forward calls emulate narrow types",
                         atn_storage_name(desc->storage));
    int64_t count = a->batch * a->heads;
    if (count == 0 || a->rows == 0) {
        if (infos)
            memset(infos, 0, (size_t)count * sizeof *infos);
        return ATN_OK;
    }
    return context->backend->inverse_backward(context, desc, gradient, a, dx, da, infos);
}
