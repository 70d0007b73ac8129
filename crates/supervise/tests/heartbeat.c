/* Beats twice through timecell.h: heartbeat MEMORY ADDRESS; the file MEMORY stands for /dev/mem. */
#define _GNU_SOURCE
#include <fcntl.h>
static const char *memory;
#define open(path, flags) open(((void)(path), memory), flags)
#include "timecell.h"
#include <stdio.h>

int main(int argc, char **argv) {
    volatile uint64_t *number;
    int error;
    if (argc != 3) return 2;
    memory = argv[1];
    error = timecell_open_heartbeat(&number, strtoull(argv[2], NULL, 0));
    if (error) {
        fprintf(stderr, "%s\n", timecell_error(error));
        return number ? 3 : 1;
    }
    timecell_beat(number);
    timecell_beat(number);
    return 0;
}
