//! Programs that set themselves up for real time, in C, and a set of threads for rt-app.

/// A graph of three threads that wake each other over eventfds, as an audio server and its clients do, and then a control loop of 1 kHz
/// with a thread beside. The exit status counts the calls that failed; with the argument `inherits` the mutexes have that protocol.
pub const GRAPH_AND_LOOP: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static int failed, graph[3];
static volatile int over;
static pthread_mutex_t lock;
static void check(const char *what, int error) {
    if (error) { printf("%s: %s\n", what, strerror(error)); failed++; }
}
static void use(void) { check("lock", pthread_mutex_lock(&lock)); check("unlock", pthread_mutex_unlock(&lock)); }
static void *client(void *of) {
    intptr_t place = (intptr_t)of;
    uint64_t one = 1, number;
    while (read(graph[place], &number, 8) == 8) { use(); if (write(graph[(place + 1) % 3], &one, 8) != 8) break; }
    return 0;
}
static void *beside(void *of) { while (!over) { use(); usleep(2000); } return of; }
static void sleep_until(struct timespec *next, long ns) {
    next->tv_nsec += ns;
    if (next->tv_nsec >= 1000000000) { next->tv_nsec -= 1000000000; next->tv_sec++; }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, 0);
}
int main(int count, char **words) {
    struct timespec next;
    struct sched_param p = {.sched_priority = 50};
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_mutexattr_t protocol;
    uint64_t one = 1;
    setlinebuf(stdout);
    check("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE) ? errno : 0);
    check("sched_setscheduler", sched_setscheduler(0, SCHED_FIFO, &p) ? errno : 0);
    pthread_mutexattr_init(&protocol);
    check("protocol", pthread_mutexattr_setprotocol(&protocol, count > 1 && !strcmp(words[1], "inherits") ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE));
    check("mutex", pthread_mutex_init(&lock, &protocol));
    pthread_attr_init(&attributes);
    check("inheritance", pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED));
    check("policy", pthread_attr_setschedpolicy(&attributes, SCHED_FIFO));
    for (int place = 0; place < 3; place++) graph[place] = eventfd(0, 0);
    for (intptr_t place = 1; place < 3; place++) {
        p.sched_priority = 70 - place;
        check("parameters", pthread_attr_setschedparam(&attributes, &p));
        check("client", pthread_create(&thread, &attributes, client, (void *)place));
    }
    p.sched_priority = 75;
    check("pthread_setschedparam", pthread_setschedparam(pthread_self(), SCHED_FIFO, &p));
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int cycle = 0; cycle < 50; cycle++) {
        sleep_until(&next, 5333333);
        if (write(graph[1], &one, 8) != 8 || read(graph[0], &one, 8) != 8) return 1;
        one = 1;
    }
    check("thread", pthread_create(&thread, 0, beside, 0));
    for (int cycle = 0; cycle < 300; cycle++) { sleep_until(&next, 1000000); use(); }
    over = 1;
    pthread_join(thread, 0);
    printf("%d calls failed\n", failed);
    return failed;
}
"#;

pub const RT_APP: &str = r#"{"tasks": {
 "loop": {"policy": "SCHED_FIFO", "priority": 40, "loop": 30, "run": 500, "timer": {"ref": "unique", "period": 10000}},
 "second": {"policy": "SCHED_RR", "priority": 30, "loop": 15, "run": 300, "timer": {"ref": "unique", "period": 20000}}},
 "global": {"duration": 1, "calibration": 100, "default_policy": "SCHED_OTHER", "lock_pages": true, "pi_enabled": true, "logdir": "/dev/shm"}}"#;

/// A thread of the lowest priority holds a mutex for which one of the highest waits while one between them computes: with a protocol
/// that works, the highest has it before that is done.
pub const INVERSION: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock;
static sem_t held, wanted, computes, over;
static void spin(long ms) {
    struct timespec now;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
}
static void *low(void *of) {
    pthread_mutex_lock(&lock);
    sem_post(&held);
    spin(20);
    pthread_mutex_unlock(&lock);
    return of;
}
static void *middle(void *of) { sem_wait(&computes); spin(200); puts("middle"); sem_post(&over); return of; }
static void *high(void *of) { sem_wait(&wanted); pthread_mutex_lock(&lock); puts("high"); pthread_mutex_unlock(&lock); sem_post(&over); return of; }
static void start(int priority, void *(*run)(void *)) {
    pthread_attr_t attributes;
    pthread_t thread;
    struct sched_param p = {.sched_priority = priority};
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 17);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &p);
    if (pthread_create(&thread, &attributes, run, 0)) exit(1);
}
int main(int count, char **words) {
    struct sched_param p = {.sched_priority = 63};
    pthread_mutexattr_t protocol;
    setlinebuf(stdout);
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
    pthread_mutexattr_init(&protocol);
    if (count < 2) return 1;
    pthread_mutexattr_setprotocol(&protocol, words[1][0] == 'i' ? PTHREAD_PRIO_INHERIT : words[1][0] == 'c' ? PTHREAD_PRIO_PROTECT : PTHREAD_PRIO_NONE);
    pthread_mutexattr_setprioceiling(&protocol, 63);
    int error = pthread_mutex_init(&lock, &protocol);
    if (error) puts(strerror(error));
    else {
        start(62, high);
        start(61, middle);
        usleep(100000);
        start(60, low);
        sem_wait(&held);
        sem_post(&wanted);
        sem_post(&computes);
        sem_wait(&over);
        sem_wait(&over);
    }
    puts("over");
    for (;;) pause();
}
"#;

/// Two threads that compute at the priority with which the program was started.
pub const TURNS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static void *compute(void *of) {
    struct timespec now;
    puts("begins");
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); while (now.tv_nsec < 300000000 && now.tv_sec == 0);
    puts("ends");
    return of;
}
int main(void) {
    pthread_t threads[2];
    setlinebuf(stdout);
    for (int at = 0; at < 2; at++) pthread_create(&threads[at], 0, compute, 0);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], 0);
    return 0;
}
"#;
