/* SPDX-License-Identifier: BSD-3-Clause */
/* The configurations that the four papers tabulate, and the numbers printed for them. */
#ifndef EXPERIMENTS_NETWORKS_CONFIGURATIONS_H
#define EXPERIMENTS_NETWORKS_CONFIGURATIONS_H

#include "networks/network.h"

/* A row of a paper's table; several readings of one row where it can be read differently. */
typedef struct {
    const char *paper, *table;
    const char *name; /* as printed */
    const network *network;
    const char *parameters_m; /* millions, with the printed digits; null: not printed */
    const char *gflops;
    change change;
    const char *reading;     /* which network was counted */
    const char *explanation; /* why a count may differ; "" if there is no reason */
} printed_row;

extern const printed_row printed_rows[];
extern const int printed_row_count;

/* The first row of that name in a table; there must be one. */
const printed_row *printed_row_find(const char *paper, const char *number, const char *name);

/* "agrees" if `counted`, rounded to the printed digits, is what is printed; else "within 2 %" of
 * it, or "disagrees". */
const char *printed_verdict(double counted, const char *printed);

#endif
