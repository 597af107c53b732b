#ifndef WEIR_MEASURE_H
#define WEIR_MEASURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "scenario.h"

/* The loop shared by all timed work: threads warm up, start together, and measure until their window is over or their
   units are done. */

enum side { CLIENT, SERVER, OPERATION, SIDES };

struct samples {
    uint64_t *ns;
    size_t length, room;
};

struct worker {
    const struct scenario *scenario;
    unsigned number;
    void *shared; /* by all threads */
    void *own;    /* the work's state for this thread */
    struct samples samples[SIDES];
    uint64_t units, wall_ns, cpu_ns, voluntary_switches;
    pthread_t thread;
    pthread_barrier_t *barrier;
};

/* A kind of work. `begin` and `report` may be NULL. */
struct work {
    void (*open)(struct worker *worker);  /* creates a thread's state, in that thread */
    void (*begin)(struct worker *worker); /* discards the warm-up's results */
    /* Does one unit, or a batch of `most` at most; returns how many. */
    uint64_t (*run)(struct worker *worker, uint64_t most);
    void (*report)(struct worker *workers, unsigned count); /* writes this work's own results */
    void (*close)(struct worker *worker);
};

void measure(const struct scenario *scenario, const struct work *work, void *shared);

void worker_sample(struct worker *worker, enum side side, uint64_t ns);

#endif
