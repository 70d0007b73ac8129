/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Reports the jobs of a real-time application to the supervisor of its cell. Header only, for C11 and C++11 with GCC or
 * Clang on Linux; link nothing. Opening makes system calls; a report is a handful of stores to a mapped page: no system
 * call, no lock, no wait. The layout and its protocol are those of the Rust crate timecell-client, version 1.
 *
 *     struct timecell_client client;
 *     struct timecell_task control;
 *     int error = timecell_open_from_env(&client);
 *     if (!error) error = timecell_open_task(&client, "control", &control);
 *     if (error) { fprintf(stderr, "%s\n", timecell_error(error)); return 1; }
 *     for (;;) {
 *         sleep_until(release_ns);
 *         timecell_begin_released(&control, release_ns);
 *         control_step();
 *         timecell_end(&control);
 *         release_ns += 10000000;
 *     }
 */
#ifndef TIMECELL_H
#define TIMECELL_H

/* For MAP_POPULATE and CLOCK_MONOTONIC with -std=c11: include this header first, or define it yourself. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIMECELL_MAGIC UINT64_C(0x4c4c4543454d4954)
#define TIMECELL_VERSION 1u
#define TIMECELL_RING 32u
#define TIMECELL_BUCKETS 24u
#define TIMECELL_MAX_SLOTS 4096u
#define TIMECELL_NAME_BYTES 256u
#define TIMECELL_VARIABLE "TIMECELL_PAGE"
#define TIMECELL_USUAL_PATH "/cell/page"

/* What timecell_open_* return besides 0 and the operating system's errno values. */
#define TIMECELL_NOT_A_PAGE (-1)      /* the file does not begin like a page, or is cut short */
#define TIMECELL_OTHER_VERSION (-2)   /* the page has a layout that this header does not know */
#define TIMECELL_UNKNOWN_TASK (-3)    /* the mission declares tasks for this cell, but none of this name */
#define TIMECELL_ALREADY_OPEN (-4)    /* this process has already opened the task, which can have only one writer */
#define TIMECELL_NO_SLOT_LEFT (-5)    /* the mission declares no tasks, and the page has no free slot */
#define TIMECELL_BAD_NAME (-6)        /* a name has 1 to 256 bytes and no control characters */

/* The page: one head, then the counters, the identities, the rings and the response times of all slots; the last may be
 * missing. All words are accessed atomically. */
struct timecell_head {
    uint64_t magic;
    uint32_t version;
    uint32_t slots;
    uint64_t generation;
    uint32_t gate; /* 1 while a measurement holds its programs back */
    uint32_t reserved_word;
    uint64_t reserved[4];
};

struct timecell_counters {
    uint64_t begun;             /* number of the last job that was begun, plus one */
    uint64_t ended;             /* number of the last job that is over, plus one */
    uint64_t late;              /* jobs with a response time beyond the deadline */
    uint64_t abandoned;         /* jobs that were begun but never ended */
    int64_t worst_response_ns;
    uint64_t heartbeats;
    uint64_t responses_ns;      /* sum of the response times of the jobs in the buckets */
    uint64_t reserved;
};

struct timecell_identity {
    uint32_t state;             /* 0 free, 1 being claimed, 2 claimed by the application, 3 declared by the mission */
    uint32_t writer;
    int64_t deadline_ns;        /* relative to the release; 0: none */
    uint32_t name_bytes;
    uint32_t thread;            /* id, in the cell, of the thread that begins the jobs; 0: unknown */
    uint32_t reserved[10];
    char name[TIMECELL_NAME_BYTES];
};

struct timecell_job {
    uint64_t number;
    int64_t release_ns;
    int64_t begin_ns;
    int64_t end_ns;             /* 0: it has not ended */
};

struct timecell_ring {
    struct timecell_job jobs[TIMECELL_RING];
};

/* Jobs by their response times: the first bucket ends at 1,024 ns, each other one at twice that; the last has no end. */
struct timecell_responses {
    uint64_t buckets[TIMECELL_BUCKETS];
};

/* The application's end of the page; all zero: it reports to nobody. */
struct timecell_client {
    struct timecell_head *head;
    uint32_t slots;
    int has_responses;
};

/* A task, whose jobs are reported by one thread. All zero: its reports do nothing. */
struct timecell_task {
    struct timecell_counters *counters;
    struct timecell_identity *identity;
    struct timecell_ring *ring;
    struct timecell_responses *responses; /* NULL: the page has no room for them */
    uint64_t next;              /* number of the next job */
    int runs;                   /* whether job next - 1 runs */
    int has_thread;             /* whether the page says which thread begins the jobs */
    int64_t release_ns;
    int64_t deadline_ns;
    uint64_t late;
    int64_t worst_response_ns;
    uint64_t heartbeats;
};

/* One for the whole program, however many files include this header. */
__attribute__((weak)) uint32_t timecell_program_number_ = 0;

/* CLOCK_MONOTONIC in ns, the clock for all times in the page; no system call on most machines. */
static inline int64_t timecell_now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

/* A sentence for the return value of a function of this header. */
static inline const char *timecell_error(int error) {
    switch (error) {
    case 0: return "no error";
    case TIMECELL_NOT_A_PAGE: return "the file named by TIMECELL_PAGE is not a timecell page, or is cut short";
    case TIMECELL_OTHER_VERSION:
        return "the timecell page has a layout that this application does not know; build it with the timecell.h of the "
               "timecell that runs it";
    case TIMECELL_UNKNOWN_TASK: return "the mission declares no task of this name for this cell";
    case TIMECELL_ALREADY_OPEN: return "this process has already opened the task, which can have only one writer";
    case TIMECELL_NO_SLOT_LEFT: return "the page has no free slot; declare the cell's tasks in the mission";
    case TIMECELL_BAD_NAME: return "a task's name has 1 to 256 bytes and no control characters";
    default: return strerror(error);
    }
}

/* With response times of `responses` bytes in each slot; 0: the least length. */
static inline size_t timecell_page_bytes_(size_t slots, size_t responses) {
    size_t slot = sizeof(struct timecell_counters) + sizeof(struct timecell_identity) + sizeof(struct timecell_ring)
                  + responses;
    return (sizeof(struct timecell_head) + slots * slot + 4095) / 4096 * 4096;
}

static inline struct timecell_counters *timecell_counters_(const struct timecell_client *client, uint32_t slot) {
    return (struct timecell_counters *)(client->head + 1) + slot;
}

static inline struct timecell_identity *timecell_identity_(const struct timecell_client *client, uint32_t slot) {
    return (struct timecell_identity *)timecell_counters_(client, client->slots) + slot;
}

static inline struct timecell_ring *timecell_ring_(const struct timecell_client *client, uint32_t slot) {
    return (struct timecell_ring *)timecell_identity_(client, client->slots) + slot;
}

static inline struct timecell_responses *timecell_responses_(const struct timecell_client *client, uint32_t slot) {
    return (struct timecell_responses *)timecell_ring_(client, client->slots) + slot;
}

/* Opens the page at `path`. Returns 0, an errno value or a TIMECELL_ constant. It stays mapped until the process ends. */
static inline int timecell_open(struct timecell_client *client, const char *path) {
    struct stat stat;
    void *at = MAP_FAILED;
    int error = 0;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    memset(client, 0, sizeof *client);
    if (fd < 0) return errno;
    if (fstat(fd, &stat) != 0) error = errno;
    if (!error && (stat.st_size < (off_t)timecell_page_bytes_(1, 0)
                   || stat.st_size
                          > (off_t)timecell_page_bytes_(TIMECELL_MAX_SLOTS, sizeof(struct timecell_responses))))
        error = TIMECELL_NOT_A_PAGE;
    if (!error) {
        /* Populated, so that no report faults. */
        at = mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        if (at == MAP_FAILED) error = errno;
    }
    close(fd);
    if (error) return error;
    client->head = (struct timecell_head *)at;
    client->slots = __atomic_load_n(&client->head->slots, __ATOMIC_RELAXED);
    if (__atomic_load_n(&client->head->magic, __ATOMIC_RELAXED) != TIMECELL_MAGIC)
        error = TIMECELL_NOT_A_PAGE;
    else if (__atomic_load_n(&client->head->version, __ATOMIC_RELAXED) != TIMECELL_VERSION)
        error = TIMECELL_OTHER_VERSION;
    else if (client->slots < 1 || client->slots > TIMECELL_MAX_SLOTS
             || stat.st_size < (off_t)timecell_page_bytes_(client->slots, 0))
        error = TIMECELL_NOT_A_PAGE;
    client->has_responses = !error
        && stat.st_size >= (off_t)timecell_page_bytes_(client->slots, sizeof(struct timecell_responses));
    if (error) {
        munmap(at, (size_t)stat.st_size);
        memset(client, 0, sizeof *client);
    }
    return error;
}

/* Opens the page of this cell: the file that TIMECELL_PAGE names, else /cell/page. If neither exists, the program does
 * not run in a cell: returns 0, and reports go nowhere. */
static inline int timecell_open_from_env(struct timecell_client *client) {
    const char *named = getenv(TIMECELL_VARIABLE);
    int error = timecell_open(client, named ? named : TIMECELL_USUAL_PATH);
    return !named && (error == ENOENT || error == ENOTDIR) ? 0 : error;
}

/* Whether there is a page, which the supervisor reads. */
static inline int timecell_is_attached(const struct timecell_client *client) {
    return client->head != NULL;
}

static inline uint32_t timecell_this_program_(void) {
    uint32_t drawn = 0, number = (uint32_t)timecell_now_ns() | 1;
    if (__atomic_compare_exchange_n(&timecell_program_number_, &drawn, number, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return number;
    return drawn;
}

static inline void timecell_abandon_(struct timecell_task *task) {
    uint64_t abandoned = __atomic_load_n(&task->counters->abandoned, __ATOMIC_RELAXED);
    __atomic_store_n(&task->counters->abandoned, abandoned + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&task->counters->ended, task->next, __ATOMIC_RELEASE);
    task->runs = 0;
}

/* Sleeps while the gate is closed. */
static inline void timecell_pass_(const uint32_t *gate) {
    while (__atomic_load_n(gate, __ATOMIC_ACQUIRE) == 1)
        syscall(SYS_futex, gate, 0 /* FUTEX_WAIT */, 1, (void *)0);
}

/* The task of this name. If the mission declares tasks for this cell, it must be one of them; if it declares none, any name
 * is accepted while there are free slots. Returns 0 or a TIMECELL_ constant. Returns immediately in a mission's cell; in a
 * measurement, which starts programs together, blocks until they may start: open tasks right before the loop of their jobs. */
static inline int timecell_open_task(const struct timecell_client *client, const char *name, struct timecell_task *task) {
    struct timecell_identity *identity;
    size_t length = strlen(name), i;
    uint32_t slot, declared = 0, found = UINT32_MAX, me;
    memset(task, 0, sizeof *task);
    if (length < 1 || length > TIMECELL_NAME_BYTES) return TIMECELL_BAD_NAME;
    for (i = 0; i < length; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 127) return TIMECELL_BAD_NAME;
    if (!client->head) return 0;
    for (slot = 0; slot < client->slots && found == UINT32_MAX; slot++) {
        uint32_t state;
        identity = timecell_identity_(client, slot);
        state = __atomic_load_n(&identity->state, __ATOMIC_ACQUIRE);
        declared += state == 3;
        if (state >= 2 && __atomic_load_n(&identity->name_bytes, __ATOMIC_RELAXED) == length
            && memcmp(identity->name, name, length) == 0)
            found = slot;
    }
    if (found == UINT32_MAX && declared) return TIMECELL_UNKNOWN_TASK;
    for (slot = 0; slot < client->slots && found == UINT32_MAX; slot++) {
        uint32_t nobody = 0;
        identity = timecell_identity_(client, slot);
        if (!__atomic_compare_exchange_n(&identity->state, &nobody, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
        memcpy(identity->name, name, length);
        __atomic_store_n(&identity->name_bytes, (uint32_t)length, __ATOMIC_RELAXED);
        __atomic_store_n(&identity->state, 2, __ATOMIC_RELEASE);
        found = slot;
    }
    if (found == UINT32_MAX) return TIMECELL_NO_SLOT_LEFT;
    identity = timecell_identity_(client, found);
    me = timecell_this_program_();
    if (__atomic_exchange_n(&identity->writer, me, __ATOMIC_ACQ_REL) == me) return TIMECELL_ALREADY_OPEN;
    timecell_pass_(&client->head->gate);
    __atomic_store_n(&identity->thread, 0, __ATOMIC_RELAXED);
    task->identity = identity;
    task->counters = timecell_counters_(client, found);
    task->ring = timecell_ring_(client, found);
    task->responses = client->has_responses ? timecell_responses_(client, found) : NULL;
    task->next = __atomic_load_n(&task->counters->begun, __ATOMIC_ACQUIRE);
    task->deadline_ns = __atomic_load_n(&identity->deadline_ns, __ATOMIC_RELAXED);
    task->late = __atomic_load_n(&task->counters->late, __ATOMIC_RELAXED);
    task->worst_response_ns = __atomic_load_n(&task->counters->worst_response_ns, __ATOMIC_RELAXED);
    task->heartbeats = __atomic_load_n(&task->counters->heartbeats, __ATOMIC_RELAXED);
    if (__atomic_load_n(&task->counters->ended, __ATOMIC_RELAXED) != task->next) {
        struct timecell_job *job = &task->ring->jobs[(task->next - 1) % TIMECELL_RING];
        if (__atomic_load_n(&job->number, __ATOMIC_RELAXED) == task->next - 1
            && __atomic_load_n(&job->end_ns, __ATOMIC_RELAXED) != 0)
            /* The last writer was killed between the end of the job and the count. */
            __atomic_store_n(&task->counters->ended, task->next, __ATOMIC_RELEASE);
        else
            timecell_abandon_(task);
    }
    return 0;
}

/* Gives the task back, so that another thread of this process may open it. */
static inline void timecell_close_task(struct timecell_task *task) {
    uint32_t me = timecell_this_program_();
    if (task->identity) {
        __atomic_store_n(&task->identity->thread, 0, __ATOMIC_RELAXED);
        __atomic_compare_exchange_n(&task->identity->writer, &me, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    memset(task, 0, sizeof *task);
}

/* Begins, at `now_ns`, a job that was released at `release_ns`, from which its deadline and response time count. A job that was
 * begun but not ended is abandoned, and counted as such. */
static inline void timecell_begin_at(struct timecell_task *task, int64_t release_ns, int64_t now_ns) {
    struct timecell_job *job;
    if (!task->counters) return;
    if (!task->has_thread) {
        task->has_thread = 1;
        __atomic_store_n(&task->identity->thread, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
    }
    if (task->runs) timecell_abandon_(task);
    job = &task->ring->jobs[task->next % TIMECELL_RING];
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&job->number, task->next, __ATOMIC_RELAXED);
    __atomic_store_n(&job->release_ns, release_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&job->begin_ns, now_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&job->end_ns, 0, __ATOMIC_RELAXED);
    task->next++;
    __atomic_store_n(&task->counters->begun, task->next, __ATOMIC_RELEASE);
    task->release_ns = release_ns;
    task->runs = 1;
}

/* Begins a job that was released at `release_ns`. */
static inline void timecell_begin_released(struct timecell_task *task, int64_t release_ns) {
    timecell_begin_at(task, release_ns, timecell_now_ns());
}

/* Begins a job that is released now. */
static inline void timecell_begin(struct timecell_task *task) {
    int64_t now_ns = timecell_now_ns();
    timecell_begin_at(task, now_ns, now_ns);
}

/* The bucket of a response time. */
static inline unsigned timecell_bucket_(int64_t response_ns) {
    uint64_t above = response_ns > 0 ? ((uint64_t)response_ns - 1) >> 10 : 0;
    unsigned bucket = above ? 64u - (unsigned)__builtin_clzll(above) : 0;
    return bucket < TIMECELL_BUCKETS ? bucket : TIMECELL_BUCKETS - 1;
}

/* Ends the job that was begun, at `now_ns`. Without one, does nothing. */
static inline void timecell_end_at(struct timecell_task *task, int64_t now_ns) {
    int64_t response_ns;
    if (!task->counters || !task->runs) return;
    __atomic_store_n(&task->ring->jobs[(task->next - 1) % TIMECELL_RING].end_ns, now_ns, __ATOMIC_RELAXED);
    response_ns = (int64_t)((uint64_t)now_ns - (uint64_t)task->release_ns);
    if (task->deadline_ns > 0 && response_ns > task->deadline_ns)
        __atomic_store_n(&task->counters->late, ++task->late, __ATOMIC_RELAXED);
    if (response_ns > task->worst_response_ns) {
        task->worst_response_ns = response_ns;
        __atomic_store_n(&task->counters->worst_response_ns, response_ns, __ATOMIC_RELAXED);
    }
    if (task->responses) {
        uint64_t *bucket = &task->responses->buckets[timecell_bucket_(response_ns)];
        uint64_t *sum_ns = &task->counters->responses_ns;
        uint64_t more_ns = response_ns > 0 ? (uint64_t)response_ns : 0;
        __atomic_store_n(bucket, __atomic_load_n(bucket, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
        __atomic_store_n(sum_ns, __atomic_load_n(sum_ns, __ATOMIC_RELAXED) + more_ns, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&task->counters->ended, task->next, __ATOMIC_RELEASE);
    task->runs = 0;
}

/* Ends the job that was begun. */
static inline void timecell_end(struct timecell_task *task) {
    timecell_end_at(task, timecell_now_ns());
}

/* Sends a heartbeat, outside of jobs or within a long one. */
static inline void timecell_heartbeat(struct timecell_task *task) {
    if (task->counters) __atomic_store_n(&task->counters->heartbeats, ++task->heartbeats, __ATOMIC_RELEASE);
}

/* For a Linux that is itself a partition beside another one: maps the number at a physical address, a multiple of 8, which is
 * `heartbeat` of the partition in its mission. Needs root, and a kernel that maps the page from /dev/mem: STRICT_DEVMEM spares
 * only the kernel's own memory. Returns 0 or an errno value. It stays mapped until the process ends. */
static inline int timecell_open_heartbeat(volatile uint64_t **number, uint64_t address) {
    void *at;
    const off_t offset = (off_t)(address / 4096 * 4096);
    int error = 0, fd;
    *number = NULL;
    /* Where off_t has 32 bits, another page would be mapped. */
    if (address % 8 || offset < 0 || (uint64_t)offset != address / 4096 * 4096) return EINVAL;
    fd = open("/dev/mem", O_RDWR | O_SYNC | O_CLOEXEC);
    if (fd < 0) return errno;
    at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    if (at == MAP_FAILED) error = errno;
    close(fd);
    if (!error) *number = (volatile uint64_t *)((char *)at + address % 4096);
    return error;
}

/* Sends a heartbeat of this partition; several times within the time that the mission's health rule gives. */
static inline void timecell_beat(volatile uint64_t *number) {
    *number = *number + 1;
}

#ifdef __cplusplus
}
#endif

#endif
