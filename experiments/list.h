/* SPDX-License-Identifier: BSD-3-Clause */
/* `attnum list`: the contents of the program, by kind: operators, inverses, experiments, inputs,
 * references, and the optional parts this build or machine has or lacks. */
#ifndef EXPERIMENTS_LIST_H
#define EXPERIMENTS_LIST_H

#include "common/verb.h"

extern const verb list_verb;

#endif
