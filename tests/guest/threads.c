/* A program of four threads that take all the time there is. They have the class of the first one. */
#include <pthread.h>
#include <stddef.h>

static void *spin(void *nothing) {
    for (volatile unsigned long turns = 0;; turns++) {
    }
    return nothing;
}

int main(void) {
    pthread_t thread;
    for (int more = 0; more < 3; more++) {
        if (pthread_create(&thread, NULL, spin, NULL) != 0) {
            return 1;
        }
    }
    spin(NULL);
    return 0;
}
