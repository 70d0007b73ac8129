/* Keeps a file locked for some seconds, as another timecell may that changes what belongs to the whole machine. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

int main(int count, char **words) {
    int file = count == 3 ? open(words[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0 || flock(file, LOCK_EX) != 0) {
        perror("lock FILE SECONDS");
        return 1;
    }
    sleep((unsigned)atoi(words[2]));
    return 0;
}
