/* SPDX-License-Identifier: BSD-3-Clause */
/* The process of the program: its set-up, how it ends, and the programs it starts.
 * If memory runs out, even in a library, end_program (report.h) ends it. */
#ifndef EXPERIMENTS_PROCESS_H
#define EXPERIMENTS_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns an exit code; on failure it has reported the reason. */
int process_begin(void);

/* What main returns: code, or EXIT_ENVIRONMENT if stdout could not be written. */
int process_end(int code);

enum { PROCESS_NOT_ENDED = -1, PROCESS_NO_PROGRAM = 127 };

/* Runs argv[0] in a folder (null: this one), with its output redirected to these descriptors (-1:
 * discarded; stderr -1: this program's). It is killed when this program ends. Returns its exit
 * code, or one of those above. While it runs *running is its process id, for signal handlers. */
int process_run(char *const *argv, const char *folder, int to_stdout, int to_stderr,
                volatile int *running);

/* In a child that was just forked: has it killed when its parent's thread ends, or the parent,
 * whose descriptors and so locks it has. False if the parent has ended already. */
bool process_ends_with(pid_t parent);

/* The available memory of the machine in bytes; infinite if it is not known. */
double process_available_memory(void);

#endif
