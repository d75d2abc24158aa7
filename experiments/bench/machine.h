/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns of tables of times that describe the machine: the device, the build, and other
 * processes. */
#ifndef EXPERIMENTS_BENCH_MACHINE_H
#define EXPERIMENTS_BENCH_MACHINE_H

#include "bench/rounds.h"
#include "common/table.h"

#define BENCH_DEVICE_ROW(X)                                                                        \
    X(TEXT, device, "", "cpu or cuda", atn_device_name(device))                                    \
    X(TEXT, device_name, "", "as the device says it", info.name)                                   \
    X(INTEGER_IF, capability, "", "CUDA: 10 major + minor", info.capability > 0, info.capability)  \
    X(INTEGER_IF, driver, "", "CUDA version of the driver: 1000 major + 10 minor",                 \
      info.driver > 0, info.driver)                                                                \
    X(INTEGER_IF, runtime, "", "of the runtime this build is linked with", info.runtime > 0,       \
      info.runtime)                                                                                \
    X(INTEGER_IF, clock_khz, "kHz", "largest clock of the processors, as the device says",         \
      info.clock_khz > 0, info.clock_khz)                                                          \
    X(INTEGER_IF, memory_clock_khz, "kHz", "largest clock of its memory",                          \
      info.memory_clock_khz > 0, info.memory_clock_khz)                                            \
    X(TEXT, version, "", "of attnum", ATN_VERSION)                                                 \
    X(TEXT, commit, "", "of its sources, -dirty if they were changed; unknown without git",        \
      BUILD_COMMIT)                                                                                \
    X(TEXT, compiler, "", "its name and version", BUILD_COMPILER)                                  \
    X(TEXT, isa, "", "the instruction set that the library's own code ran in (--isa)",             \
      atn_isa_name(atn_context_isa(context)))                                                      \
    X(TEXT, blas, "", "OpenBLAS and its version", blas_name)                                       \
    X(TEXT_IF, blas_core, "", "the processor whose kernels it chose", blas.core, blas.core)

#define BENCH_TICK_ROW(X)                                                                          \
    X(INTEGER_IF, idle_ticks, "", "of the machine's processors, in the group's rounds", known,     \
      r->idle)                                                                                     \
    X(INTEGER_IF, steal_ticks, "", "that another virtual machine took", known, r->steal)           \
    X(INTEGER_IF, dirty, "",                                                                       \
      "1: others had more than a tenth of all ticks, or more than a fiftieth was stolen", known,   \
      r->dirty)                                                                                    \
    X(INTEGER_IF, repeated, "", "how often the rounds were done again for that", timed, r->repeated)

/* Each function fills the columns of its list. */
void bench_add_device(table *to, const atn_context *context);
void bench_add_ticks(table *to, const rounds_result *r, bool timed);

#endif
