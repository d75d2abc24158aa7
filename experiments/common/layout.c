/* SPDX-License-Identifier: BSD-3-Clause */
#include "layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "report.h"

static const char canonical[] = "bhnd";
enum { BATCH, HEADS, TOKENS, WIDTH, AXES }; /* indices of the axes */

#define AXES_OF(axes, others, description)   axes,
#define OTHERS_OF(axes, others, description) others,
static const char *const names[] = {LAYOUT_LIST(AXES_OF) NULL};
static const char *const other_names[] = {LAYOUT_LIST(OTHERS_OF)};
#undef AXES_OF
#undef OTHERS_OF

/* Whether the word of `length` letters is one of those in `words`, which are separated by blanks.
 */
static bool is_among(const char *words, const char *word, size_t length)
{
    for (; *words; words += strspn(words, " ")) {
        size_t other = strcspn(words, " ");
        if (other == length && memcmp(words, word, length) == 0)
            return true;
        words += other;
    }
    return false;
}

bool layout_is_packed(const layout *l)
{
    return l->axes && !strchr(l->axes, 'h');
}

static bool read_heads(const char *text, int64_t *heads)
{
    size_t digits = strspn(text, "0123456789");
    *heads = digits > 0 && digits < 7 && !text[digits] ? strtoll(text, NULL, 10) : 0;
    return *heads > 0;
}

char *layout_parse(const char *text, layout *l)
{
    size_t length = strcspn(text, ":");
    *l = (layout){NULL, 0};
    for (int i = 0; names[i]; i++)
        if (is_among(names[i], text, length) || is_among(other_names[i], text, length))
            l->axes = names[i];
    if (!l->axes)
        return names_expected(names, text);
    if (!text[length] || (layout_is_packed(l) && read_heads(text + length + 1, &l->heads)))
        return NULL;
    return layout_is_packed(l)
               ? must_format("expected %s:HEADS, such as %s:8", l->axes, l->axes)
               : must_format("expected %s alone: its heads are a dimension", l->axes);
}

char *layout_name(const layout *l)
{
    const char *axes = l->axes ? l->axes : canonical;
    return l->heads > 0 ? must_format("%s:%" PRId64, axes, l->heads) : must_format("%s", axes);
}

static int axis_of(char letter)
{
    return (int)(strchr(canonical, letter) - canonical);
}

int layout_shape(const layout *l, const int64_t bhnd[AXES], int64_t shape[AXES])
{
    const char *axes = l->axes ? l->axes : canonical;
    int count = (int)strlen(axes);
    for (int i = 0; i < count; i++)
        shape[i] = bhnd[axis_of(axes[i])];
    if (layout_is_packed(l))
        shape[count - 1] *= bhnd[HEADS];
    return count;
}

/* The strides along b, h, n, d, in elements. Axes that are missing have length 1. */
static void find_steps(const layout *l, const int64_t bhnd[AXES], int64_t steps[AXES])
{
    const char *axes = l->axes ? l->axes : canonical;
    int64_t step = 1;
    memset(steps, 0, AXES * sizeof *steps);
    for (size_t i = strlen(axes); i-- > 0;) {
        int axis = axis_of(axes[i]);
        steps[axis] = step;
        step *= bhnd[axis];
        if (axis == WIDTH && layout_is_packed(l)) {
            steps[HEADS] = step;
            step *= bhnd[HEADS];
        }
    }
}

/* Copies each element between its place in b x h x n x d and that in the layout. */
static void move(const layout *l, const int64_t bhnd[AXES], bool reading, const double *from,
                 double *to)
{
    int64_t steps[AXES], place = 0;
    find_steps(l, bhnd, steps);
    for (int64_t b = 0; b < bhnd[BATCH]; b++)
        for (int64_t h = 0; h < bhnd[HEADS]; h++)
            for (int64_t n = 0; n < bhnd[TOKENS]; n++)
                for (int64_t d = 0; d < bhnd[WIDTH]; d++, place++) {
                    int64_t there =
                        b * steps[BATCH] + h * steps[HEADS] + n * steps[TOKENS] + d * steps[WIDTH];
                    to[reading ? place : there] = from[reading ? there : place];
                }
}

void layout_write(const layout *l, const int64_t bhnd[AXES], const double *from, double *to)
{
    move(l, bhnd, false, from, to);
}

int layout_read(const layout *l, const char *path, npy_array *a)
{
    const int64_t sizes[AXES] = {a->batch, a->heads, a->rows, a->cols};
    int64_t bhnd[AXES] = {1, 1, 1, 1};
    if (!l->axes)
        return EXIT_PASS;
    int count = (int)strlen(l->axes);
    if (a->dimensions != count) {
        report_error("%s: shape: %d dimensions, expected the %d of --layout %s", path,
                     a->dimensions, count, l->axes);
        return EXIT_ENVIRONMENT;
    }
    for (int i = 0; i < count; i++)
        bhnd[axis_of(l->axes[i])] = sizes[AXES - count + i];
    if (l->heads > 0) {
        bhnd[HEADS] = l->heads;
        bhnd[WIDTH] /= l->heads;
    }
    if (bhnd[WIDTH] * bhnd[HEADS] != a->cols && layout_is_packed(l)) {
        report_error("%s: shape: a width of %" PRId64 ", expected a multiple of the %" PRId64
                     " heads of --layout %s:%" PRId64,
                     path, a->cols, l->heads, l->axes, l->heads);
        return EXIT_ENVIRONMENT;
    }
    size_t elements = (size_t)(a->batch * a->heads * a->rows * a->cols);
    double *data = must_allocate(elements, sizeof *data);
    move(l, bhnd, true, a->data, data);
    free(a->data);
    a->data = data;
    a->batch = bhnd[BATCH], a->heads = bhnd[HEADS], a->rows = bhnd[TOKENS], a->cols = bhnd[WIDTH];
    return EXIT_PASS;
}

/* ---- Doubts ---- */

/* The widest heads that kernels support (FlashAttention: 256); and a number of tokens that is
 * unusually small: windows of images have 49 or more, so the axis is probably that of heads. */
enum { WIDEST_HEAD = 256, FEW_TOKENS = 32, MANY_TIMES = 4 };

static bool has_many_heads(const npy_array *a)
{
    return a->heads > a->rows;
}

static bool has_many_sequences(const npy_array *a)
{
    return a->rows <= FEW_TOKENS && a->batch > MANY_TIMES * a->rows;
}

static bool is_wide(const npy_array *a)
{
    return a->cols > WIDEST_HEAD;
}

static const struct {
    int dimensions; /* of the file */
    bool (*applies)(const npy_array *a);
    const char *what, *order, *name;
} doubts[] = {
    {4, has_many_heads, "more heads than tokens", "b x n x h x d", "bnhd"},
    {3, has_many_heads, "more heads than tokens", "n x h x d", "nhd"},
    {4, has_many_sequences, "many sequences of few tokens", "n x b x h x d", "nbhd"},
    {3, is_wide, "a wider head than kernels take", "b x n x (h d)", "bnd:HEADS"},
    {2, is_wide, "a wider head than kernels take", "n x (h d)", "nd:HEADS"},
};

char *layout_doubt(const char *path, const npy_array *a)
{
    for (size_t i = 0; i < sizeof doubts / sizeof *doubts; i++)
        if (a->dimensions == doubts[i].dimensions && doubts[i].applies(a))
            return must_format("%s: %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64
                               " is taken for b x h x n x d, %s; if it is %s, say --layout %s, if "
                               "not, --layout %s",
                               path, a->batch, a->heads, a->rows, a->cols, doubts[i].what,
                               doubts[i].order, doubts[i].name, canonical + AXES - a->dimensions);
    return NULL;
}
