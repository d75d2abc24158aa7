/* SPDX-License-Identifier: BSD-3-Clause */
/* Narrow types, emulated: numbers are kept in f32, and every result that an implementation in the
 * narrow type would store is rounded to it; sums are in f32. */
#ifndef ATTNUM_STORAGE_H
#define ATTNUM_STORAGE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The emulated types. X(code, name, description) */
#define ATN_STORAGE_LIST(X)                                                                        \
    X(ATN_STORAGE_NATIVE, "native", "the tensors' dtype: nothing is rounded further")              \
    X(ATN_STORAGE_BF16, "bf16", "bfloat16: 8 bits of precision, f32's range; u = 2^-8")            \
    X(ATN_STORAGE_F16, "f16", "IEEE half: 11 bits, overflow at 65520; u = 2^-11")                  \
    X(ATN_STORAGE_TF32, "tf32", "11 bits of precision, f32's range; u = 2^-11")

#define ATN_NAMED_ENTRY(code, name, description) code,
typedef enum { ATN_STORAGE_LIST(ATN_NAMED_ENTRY) ATN_STORAGE_COUNT } atn_storage;
#undef ATN_NAMED_ENTRY

const char *atn_storage_name(atn_storage storage); /* null if out of range */
double atn_storage_roundoff(atn_storage storage);  /* u; 0 for native */

/* Rounds to nearest, ties to even, what `storage` cannot hold; overflow gives infinity. */
void atn_storage_round(atn_storage storage, int64_t count, float *values);

#ifdef __cplusplus
}
#endif
#endif
