/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Signs of life of a program without an operating system in a cell of Jailhouse. C99 or C++11; link nothing. */
#ifndef TIMECELL_INMATE_H
#define TIMECELL_INMATE_H

#include <stdint.h>

/* Beats once: several times within the timeout of the rule `heartbeat`, by one cpu. Takes the address of the mission's key `heartbeat`. */
static inline void timecell_inmate_beat(uintptr_t heartbeat)
{
    volatile uint64_t *beats = (volatile uint64_t *)heartbeat;
    *beats = *beats + 1;
    __sync_synchronize();
}

/* Says in the communication region that the cell has ended (status 0) or failed (any other), and waits for its restart or end. */
static inline void timecell_inmate_end(int status)
{
#if defined(__x86_64__) || defined(__i386__)
    const uintptr_t region = 0x100000;
#else
    const uintptr_t region = 0x80000000;
#endif
    *(volatile uint32_t *)(region + 8) = status == 0 ? 2 : 3;
    for (;;)
        __sync_synchronize();
}

#endif
