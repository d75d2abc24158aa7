/* SPDX-License-Identifier: BSD-3-Clause */
/* The members of a group: opened, checked, and timed against each other. */
#ifndef EXPERIMENTS_BENCH_GROUP_H
#define EXPERIMENTS_BENCH_GROUP_H

#include "bench/check.h"
#include "bench/rounds.h"
#include "bench/workload.h"

typedef struct {
    const bench_case *c;
    atn_context *context; /* shared with members of the same number of threads */
    workload workload;
    check_result check;
    bool checked, left_out; /* left_out: the device lacks the memory for it, or cannot do it */
    int place;              /* in the rounds; -1: not timed */
} group_member;

typedef struct {
    int count;
    group_member *members;
    workload_store store;
    rounds_result rounds;
} case_group;

/* Settings that all groups of a run share. */
typedef struct {
    rounds_plan plan, rates; /* for the groups, and for the group of rates */
    rounds_meter meter;
    double most_flops; /* the most flops of a forward call; longer calls are left out */
    atn_isa isa;
} group_plan;

/* Returns an exit code; a failure has been reported. The group must be closed in any case. */
int group_run(const group_plan *plan, atn_device device, const bench_case *cases, int64_t count,
              case_group *g);
void group_close(case_group *g);

/* Pairs rows that agree in all keys but one, in which they have the values `value` and `by`; null:
 * any other value. */
typedef struct {
    bench_key key;
    const char *value, *by;
} group_pairing;

/* The pairing by which a's time is divided by b's, or null. */
const group_pairing *group_pair(const group_member *a, const group_member *b);

#endif
