/* An inmate for tests of cells of Jailhouse on 64-bit ARM: beats, and then fails or measures its timer as it is told. It is loaded to address 0 of its 64 KiB of memory. */
#include "timecell_inmate.h"

/* At 0x1000, written by the test. */
struct told {
    enum { NEVER, WRITES_OUTSIDE, BEATS_NO_MORE, SAYS_ENDED, SAYS_FAILED, TICKS } failure;
    uint64_t after_beats, ticks_between, heartbeat;
};

__asm__(".section .text.startup, \"ax\"\n.globl _start\n_start: mov sp, #0x10000\nb work");

static uint64_t ticks(void)
{
    uint64_t now;
    __asm__ volatile("isb\nmrs %0, cntvct_el0" : "=r"(now));
    return now;
}

static void print(const char *text)
{
    for (; *text; text++) {
        register uint64_t call __asm__("x0") = 8, letter __asm__("x1") = (unsigned char)*text;
        __asm__ volatile("hvc #0x4a48" : "+r"(call) : "r"(letter) : "memory");
    }
}

static void print_ns(const char *name, uint64_t ticks, uint64_t hz)
{
    char digits[24];
    char *first = digits + sizeof(digits);
    uint64_t ns = ticks * 1000000000 / hz;
    *--first = 0;
    do
        *--first = (char)('0' + ns % 10);
    while (ns /= 10);
    print(name);
    print(first);
    print(" ns");
}

#define AT(type, address) (*(volatile type *)(address))

/* How late interrupts of the timer come. The GIC, of version 2, is where the communication region says. */
static void measure(const volatile struct told *told)
{
    const uintptr_t gicd = AT(uint64_t, 0x80000048), gicc = AT(uint64_t, 0x80000050);
    const uint32_t timer = 27;
    uint64_t hz, least = ~0ull, most = 0, at = ticks();
    __asm__("mrs %0, cntfrq_el0" : "=r"(hz));
    AT(uint32_t, gicc) = 1;
    AT(uint32_t, gicc + 4) = 0xff;
    AT(uint32_t, gicd + 0x100) = 1u << timer;
    for (unsigned number = 1;; number++) {
        uint32_t interrupt;
        at += told->ticks_between;
        __asm__ volatile("msr cntv_cval_el0, %0\nmsr cntv_ctl_el0, %1\nisb" : : "r"(at), "r"(1ull));
        do {
            /* The interrupt is masked: it ends the wait, and nothing else. */
            __asm__ volatile("wfi" : : : "memory");
            interrupt = AT(uint32_t, gicc + 0xc);
        } while ((interrupt & 1023) != timer);
        const uint64_t late = ticks() - at;
        __asm__ volatile("msr cntv_ctl_el0, xzr\nisb");
        AT(uint32_t, gicc + 0x10) = interrupt;
        timecell_inmate_beat(told->heartbeat);
        least = late < least ? late : least;
        most = late > most ? late : most;
        if (number % 10 == 0) {
            print_ns("jitter: ", late, hz);
            print_ns(", min: ", least, hz);
            print_ns(", max: ", most, hz);
            print("\n");
            at = ticks();
        }
    }
}

void work(void)
{
    const volatile struct told *told = (const volatile struct told *)0x1000;
    if (told->failure == TICKS)
        measure(told);
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
