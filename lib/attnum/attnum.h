/* SPDX-License-Identifier: BSD-3-Clause */
/* attnum: the numerics of softmax-free attention. This is the header to include.
 *
 * Conventions
 *   layout    row-major, last dimension contiguous, strides in elements            tensor.h
 *   sizes     int64_t; bytes are size_t
 *   status    0 ok, negative the caller's or the machine's fault, positive a       status.h
 *             numerical outcome with defined output
 *   order     context or plan first, then the description of the task, inputs, outputs
 *   aliasing  an output's memory, from its first element to its last, must not overlap that of any
 *             other argument; interleaved views count as overlapping
 *   threads   a context serves one thread at a time; there is no global state      context.h
 *   names     every choice has a name (atn_*_name), the same in C, on the command line and in CSV
 *
 * The library never prints, exits, reads files or draws random numbers. */
#ifndef ATTNUM_ATTNUM_H
#define ATTNUM_ATTNUM_H

#include <attnum/attention.h>
#include <attnum/context.h>
#include <attnum/inverse.h>
#include <attnum/kernel.h>
#include <attnum/operators.h>
#include <attnum/sampling.h>
#include <attnum/status.h>
#include <attnum/storage.h>
#include <attnum/tensor.h>
#include <attnum/timing.h>
#include <attnum/version.h>

#endif
