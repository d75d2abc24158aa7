/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether AMX can be used. Linux keeps its registers from a process until that asks for them. */
#define _DEFAULT_SOURCE /* syscall */
#include "cpu/table.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool granted;

static void request(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM of asm/prctl.h */
    const unsigned tiles = 1u << 24, bf16 = 1u << 22;
    unsigned a, b, c, d;
    granted = __builtin_cpu_supports("avx512bf16") && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
              (d & tiles) && (d & bf16) &&
              syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

bool cpu_has_amx(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, request); /* another answer later would be other bits */
    return granted;
}
#else
bool cpu_has_amx(void)
{
    return false;
}
#endif
