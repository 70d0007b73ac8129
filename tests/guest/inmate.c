/* An inmate for tests of cells of Jailhouse on 64-bit ARM: beats, and then fails as it is told. It is loaded to address 0 of its 64 KiB of memory. */
#include "timecell_inmate.h"

/* At 0x1000, written by the test. */
struct told {
    enum { NEVER, WRITES_OUTSIDE, BEATS_NO_MORE, SAYS_ENDED, SAYS_FAILED } failure;
    uint64_t after_beats, ticks_between, heartbeat;
};

__asm__(".section .text.startup, \"ax\"\n.globl _start\n_start: mov sp, #0x10000\nb work");

static uint64_t ticks(void)
{
    uint64_t now;
    __asm__ volatile("isb\nmrs %0, cntvct_el0" : "=r"(now));
    return now;
}

void work(void)
{
    const volatile struct told *told = (const volatile struct told *)0x1000;
    for (uint64_t beats = 1;; beats++) {
        timecell_inmate_beat(told->heartbeat);
        if (told->failure != NEVER && beats >= told->after_beats)
            break;
        const uint64_t began = ticks();
        while (ticks() - began < told->ticks_between)
            ;
    }
    if (told->failure == WRITES_OUTSIDE)
        *(volatile uint64_t *)0x60000000 = 1;
    if (told->failure == SAYS_FAILED || told->failure == SAYS_ENDED)
        timecell_inmate_end(told->failure == SAYS_FAILED);
    for (;;)
        ;
}
