#ifndef WEIR_MEASURE_H
#define WEIR_MEASURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "scenario.h"

/* The loop that all timed work has in common: threads that warm up, begin together, and measure until their window is
   over or their units are done. */

enum side { CLIENT, SERVER, OPERATION, SIDES };

struct samples {
    uint64_t *ns;
    size_t length, room;
};

struct worker {
    const struct scenario *scenario;
    unsigned number;
    void *shared; /* by all threads */
    void *own;    /* what the work keeps for this thread */
    struct samples samples[SIDES];
    uint64_t units, wall_ns, cpu_ns, voluntary_switches;
    pthread_t thread;
    pthread_barrier_t *barrier;
};

/* A kind of work. Where there is nothing to forget or to write, `begin` and `report` are NULL. */
struct work {
    void (*open)(struct worker *worker);  /* makes what one thread keeps, in that thread */
    void (*begin)(struct worker *worker); /* forgets what the warm-up left behind */
    /* Does one unit, or a batch of `most` at most; returns how many. */
    uint64_t (*run)(struct worker *worker, uint64_t most);
    void (*report)(struct worker *workers, unsigned count); /* writes what is this work's alone */
    void (*close)(struct worker *worker);
};

void measure(const struct scenario *scenario, const struct work *work, void *shared);

void worker_sample(struct worker *worker, enum side side, uint64_t ns);

#endif
