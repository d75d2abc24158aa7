/* SPDX-License-Identifier: BSD-3-Clause */
/* What every function returns.
 *
 *   0         success
 *   negative  the caller or the machine is at fault; outputs are untouched unless stated otherwise
 *   positive  a numerical outcome; outputs are defined as documented by the function
 *
 * The context keeps one line of detail about the last negative status (atn_last_error). */
#ifndef ATTNUM_STATUS_H
#define ATTNUM_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* One list makes the codes, their names and their messages: X(code, value, message). */
#define ATN_STATUS_LIST(X)                                                                         \
    X(ATN_OK, 0, "success")                                                                        \
    X(ATN_ERR_NULL, -1, "a required pointer is null")                                              \
    X(ATN_ERR_SHAPE, -2, "a shape does not fit")                                                   \
    X(ATN_ERR_STRIDE, -3, "a stride does not fit")                                                 \
    X(ATN_ERR_ALIAS, -4, "an output overlaps another argument")                                    \
    X(ATN_ERR_DTYPE, -5, "an element type does not fit")                                           \
    X(ATN_ERR_VALUE, -6, "a parameter is outside its range")                                       \
    X(ATN_ERR_UNSUPPORTED, -7, "the operator cannot do this")                                      \
    X(ATN_ERR_MEMORY, -8, "out of memory")                                                         \
    X(ATN_ERR_DEVICE, -9, "the device is not available")                                           \
    X(ATN_ERR_LIBRARY, -10, "a library below reported a failure")                                  \
    X(ATN_NOT_CONVERGED, 1, "not converged")                                                       \
    X(ATN_STAGNATED, 2, "rounding ended the iteration above the tolerance")                        \
    X(ATN_SINGULAR, 3, "the matrix is singular to working precision")                              \
    X(ATN_BELOW_FLOOR, 4, "the answer lies below what this precision resolves")                    \
    X(ATN_NONFINITE, 5, "NaN or infinity in the input, or overflow")

typedef enum {
#define ATN_STATUS_ENTRY(code, value, message) code = value,
    ATN_STATUS_LIST(ATN_STATUS_ENTRY)
#undef ATN_STATUS_ENTRY
} atn_status;

/* The message of a code, in English. Never null; unknown codes give "unknown status". */
const char *atn_status_message(atn_status status);

/* The name of a code, for logs: "ATN_OK", "ATN_NOT_CONVERGED", ... Never null. */
const char *atn_status_name(atn_status status);

#ifdef __cplusplus
}
#endif
#endif
