/* A program of class SCHED_DEADLINE with 60 % of a cpu, that nobody is told of and that never runs. */
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

int main(void) {
    struct attr attr = {.size = sizeof attr, .policy = 6, .runtime = 600000000, .deadline = 1000000000, .period = 1000000000};
    if (syscall(SYS_sched_setattr, 0, &attr, 0) != 0) {
        perror("sched_setattr");
        return 1;
    }
    puts("has its class");
    fflush(stdout);
    pause();
    return 0;
}
