/* SPDX-License-Identifier: BSD-3-Clause */
/* The size of a result's error in blocks of rows and columns, and in heads. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "check/check.h"
#include "common/report.h"

/* The smallest power of 2, like the tiles of kernels, for which there are at most `most` blocks. */
static int64_t block_of(int64_t count, int64_t most)
{
    int64_t block = 1;
    while ((count + block - 1) / block > most)
        block *= 2;
    return block;
}

static error_map map_of(int64_t rows, int64_t cols, int64_t most_rows, int64_t most_cols)
{
    error_map m = {.rows = rows,
                   .cols = cols,
                   .block_rows = block_of(rows, most_rows),
                   .block_cols = block_of(cols, most_cols)};
    m.down = (rows + m.block_rows - 1) / m.block_rows;
    m.across = (cols + m.block_cols - 1) / m.block_cols;
    m.cells = must_allocate((size_t)(m.down * m.across), sizeof *m.cells);
    return m;
}

void map_free(error_map *m)
{
    free(m->cells);
    *m = (error_map){.cells = NULL};
}

int64_t map_last_row(const error_map *m, int64_t down)
{
    int64_t next = (down + 1) * m->block_rows;
    return (next < m->rows ? next : m->rows) - 1;
}

int64_t map_last_col(const error_map *m, int64_t across)
{
    int64_t next = (across + 1) * m->block_cols;
    return (next < m->cols ? next : m->cols) - 1;
}

/* Judges a block with the bound of STATISTIC_ROW, in proportion to the root of its number of
 * elements. */
static map_cell block_cell(const yardstick *y, const bounds *b, const double *got,
                           const error_map *m, int64_t down, int64_t across)
{
    double error = 0, square = 0, norm = 0, count = 0;
    for (int64_t i = down * m->block_rows; i <= map_last_row(m, down); i++)
        for (int64_t j = across * m->block_cols; j <= map_last_col(m, across); j++, count++) {
            double have = got[i * y->cols + j], want = y->want[i * y->cols + j];
            error += (have - want) * (have - want);
            square += have * have;
            norm += want * want;
        }
    double mean = b->norm * b->norm * count / (double)(y->rows * y->cols);
    double size = sqrt(error * (mean > 0 ? mean / fmax(norm, mean) : 1));
    double allowed = b->bound[STATISTIC_ROW] * sqrt(count / (double)y->cols);
    if (!isfinite(square))
        return (map_cell){CELL_NONFINITE, INFINITY};
    map_cell cell = {CELL_PASSES, size > 0 ? size / allowed : 0};
    if (!(size <= allowed))
        cell.state = square == 0 ? CELL_ZERO : CELL_OVER;
    return cell;
}

error_map map_head(const subject *s, result_kind kind, const result_verdict *v, int64_t head,
                   int64_t most_rows, int64_t most_cols)
{
    yardstick y = head_yardstick(s, kind, v, head);
    error_map m = map_of(y.rows, y.cols, most_rows, most_cols);
    const double *got = s->results[kind] + head * y.rows * y.cols;
    for (int64_t i = 0; i < m.down; i++)
        for (int64_t j = 0; j < m.across; j++)
            m.cells[i * m.across + j] = block_cell(&y, &v->bounds[head], got, &m, i, j);
    return m;
}

static map_cell head_cell(const judgement *j)
{
    if (j->verdict == REF_SKIPPED)
        return (map_cell){CELL_UNKNOWN, 0};
    if (!isfinite(j->ratio))
        return (map_cell){CELL_NONFINITE, INFINITY};
    return (map_cell){j->ratio > 1 ? CELL_OVER : CELL_PASSES, j->ratio};
}

error_map map_heads(const subject *s, result_kind kind, const result_verdict *v, int64_t most_rows,
                    int64_t most_cols)
{
    int64_t heads = result_heads(&s->judged, kind);
    int64_t batch = kind >= RESULT_PARAMETERS ? 1 : s->judged.shape.batch;
    error_map m = map_of(batch, heads / batch, most_rows, most_cols);
    for (int64_t i = 0; i < heads; i++) { /* a cell shows the gravest of its heads */
        map_cell *to = &m.cells[i / m.cols / m.block_rows * m.across + i % m.cols / m.block_cols];
        map_cell cell = head_cell(&v->heads[i]);
        if (cell.state > to->state || (cell.state == to->state && cell.over > to->over))
            *to = cell;
    }
    return m;
}

/* ---- Levels ---- */

static double largest(const error_map *m)
{
    double most = 0;
    for (int64_t i = 0; i < m->down * m->across; i++)
        if (isfinite(m->cells[i].over) && m->cells[i].state != CELL_PASSES)
            most = fmax(most, m->cells[i].over);
    return most;
}

/* Rounded down to one digit. */
static double one_digit(double x)
{
    double power = pow(10, floor(log10(x)));
    return floor(x / power * (1 + DBL_EPSILON)) * power;
}

map_levels map_levels_of(const error_map *m, int most)
{
    map_levels levels = {.count = 1, .over = {1}};
    for (int i = most - 1; i > 0; i--) {
        double over = largest(m) / pow(10, i);
        if (over >= 2)
            levels.over[levels.count++] = one_digit(over);
    }
    return levels;
}

int map_level(const map_levels *levels, double over)
{
    int level = 0;
    while (level + 1 < levels->count && over > levels->over[level + 1])
        level++;
    return level;
}

bool map_is_uniform(const error_map *m)
{
    double least = largest(m) / 100;
    for (int64_t i = 0; i < m->down * m->across; i++)
        if (m->cells[i].state != m->cells[0].state ||
            (m->cells[i].state == CELL_OVER && m->cells[i].over < least))
            return false;
    return true;
}
