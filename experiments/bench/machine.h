/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns of tables of times that describe the machine: the device, the build, and other
 * processes. */
#ifndef EXPERIMENTS_BENCH_MACHINE_H
#define EXPERIMENTS_BENCH_MACHINE_H

#include "bench/rounds.h"
#include "common/table.h"

#define BENCH_DEVICE_COLUMNS                                                                       \
    {"device", COLUMN_TEXT, "", "cpu or cuda"},                                                    \
        {"device_name", COLUMN_TEXT, "", "as the device says it"},                                 \
        {"capability", COLUMN_INTEGER, "", "CUDA: 10 major + minor"},                              \
        {"driver", COLUMN_INTEGER, "", "CUDA version of the driver: 1000 major + 10 minor"},       \
        {"runtime", COLUMN_INTEGER, "", "of the runtime this build is linked with"},               \
        {"clock_khz", COLUMN_INTEGER, "kHz",                                                       \
         "largest clock of the processors, as the device says"},                                   \
        {"memory_clock_khz", COLUMN_INTEGER, "kHz", "largest clock of its memory"},                \
        {"version", COLUMN_TEXT, "", "of attnum"},                                                 \
        {"commit", COLUMN_TEXT, "",                                                                \
         "of its sources, -dirty if they were changed; unknown without git"},                      \
        {"compiler", COLUMN_TEXT, "", "its name and version"},                                     \
        {"isa", COLUMN_TEXT, "",                                                                   \
         "the instruction set that the library's own code ran in (--isa)"},                        \
        {"blas", COLUMN_TEXT, "", "OpenBLAS and its version"},                                     \
    {                                                                                              \
        "blas_core", COLUMN_TEXT, "", "the processor whose kernels it chose"                       \
    }

#define BENCH_TICK_COLUMNS                                                                         \
    {"idle_ticks", COLUMN_INTEGER, "", "of the machine's processors, in the group's rounds"},      \
        {"steal_ticks", COLUMN_INTEGER, "", "that another virtual machine took"},                  \
        {"dirty", COLUMN_INTEGER, "",                                                              \
         "1: others had more than a tenth of all ticks, or more than a fiftieth was stolen"},      \
    {                                                                                              \
        "repeated", COLUMN_INTEGER, "", "how often the rounds were done again for that"            \
    }

/* Each function fills the columns of its list. */
void bench_add_device(table *t, const atn_context *context);
void bench_add_ticks(table *t, const rounds_result *rounds, bool timed);

/* Adds a number, or a missing cell. */
void bench_add_integer_if(table *t, bool known, int64_t value);

#endif
