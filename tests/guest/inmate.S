/* An inmate for tests of cells of Jailhouse on 64-bit ARM: beats, and then fails as it is told. It is loaded to address 0 of its memory, and at
 * 0x1000 are four numbers of 64 bits: how it fails (0: never, 1: it writes where it has no memory, 2: it beats no more, 3: it says in its communication
 * region that it has ended, 4: that it has failed), after how many heartbeats, ticks of the system counter between two of them, and the address of
 * the heartbeat. */
        .global _start
_start: mov     x0, #0x1000
        ldp     x1, x2, [x0]
        ldp     x3, x4, [x0, #16]
        mov     x5, #0
beat:   add     x5, x5, #1
        str     x5, [x4]
        dsb     sy
        cbz     x1, wait
        cmp     x5, x2
        b.hs    fail
wait:   mrs     x6, cntvct_el0
        add     x6, x6, x3
until:  isb
        mrs     x7, cntvct_el0
        cmp     x7, x6
        b.lo    until
        b       beat
fail:   cmp     x1, #3
        b.hs    says
        cmp     x1, #1
        b.ne    .
        movz    x6, #0x6000, lsl #16
        str     x5, [x6]
        b       .
says:   sub     x5, x1, #1
        mov     x6, #0x80000000
        str     w5, [x6, #8]
        b       .
