/* Reports jobs through timecell.h: reporter TASK COUNT PERIOD_NS. Job k is released at 1000 k + 1, begins 10 later and ends 300
 * later, each tenth 1900 later. Prints the wall time of a report in ns when PERIOD_NS is 0. */
#include "timecell.h"
#include <stdio.h>

int main(int argc, char **argv) {
    struct timecell_client client;
    struct timecell_task task, again;
    int64_t count, period_ns, k, from_ns;
    int error;
    if (argc != 4) return 2;
    count = atoll(argv[2]);
    period_ns = atoll(argv[3]);
    error = timecell_open_from_env(&client);
    if (!error) error = timecell_open_task(&client, argv[1], &task);
    if (error) {
        fprintf(stderr, "%s\n", timecell_error(error));
        return 1;
    }
    printf("attached %d\n", timecell_is_attached(&client));
    if (timecell_is_attached(&client) && timecell_open_task(&client, argv[1], &again) != TIMECELL_ALREADY_OPEN) return 3;
    from_ns = timecell_now_ns();
    for (k = 0; k < count; k++) {
        int64_t release_ns = 1000 * k + 1;
        timecell_begin_at(&task, release_ns, release_ns + 10);
        timecell_end_at(&task, release_ns + (k % 10 == 9 ? 1900 : 300));
        if (period_ns) {
            struct timespec pause = {0, (long)period_ns};
            nanosleep(&pause, NULL);
        }
    }
    if (!period_ns) printf("%.2f ns\n", (double)(timecell_now_ns() - from_ns) / (double)count);
    timecell_begin(&task);
    timecell_heartbeat(&task);
    timecell_heartbeat(&task);
    return 0;
}
