#include <stdlib.h>

#include "clock.h"
#include "engine.h"
#include "fail.h"
#include "measure.h"
#include "operations.h"
#include "timed.h"

/* Per-thread state: an operation, its data and the batch size. */
struct operations {
    call run, free;
    void *on;
    uint64_t batch, some;
};

static void choose(struct operations *own, const struct scenario *scenario) {
    const enum operation operation = scenario->operation;
    if (operation <= ECDSA_P_384_VERIFY) {
        own->run = operation % 2 == 0 ? signature_sign : signature_verify;
        own->free = signature_free;
        own->on = signature_new(scenario);
    } else if (operation <= HYBRID_SERVER) {
        own->run = exchange_run;
        own->free = exchange_free;
        own->on = exchange_new(operation);
    } else {
        own->run = (operation - AES_128_GCM_SEAL) % 2 == 0 ? sealing_seal : sealing_open;
        own->free = sealing_free;
        own->on = sealing_new(scenario);
    }
    if (own->on == NULL)
        fail_scenario("key `operation` has the value `%s`, which this library does not have",
                      operation_word(operation));
}

static void run_some(void *argument) {
    const struct operations *own = argument;
    for (uint64_t i = 0; i < own->some; i++)
        own->run(own->on);
}

/* Enough for a tenth of a millisecond: long compared to reading the clock, short compared to a scheduler's slice. */
static uint64_t batch_of(struct operations *own) {
    enum { BATCH_NS = 100000, TRIAL_NS = 2000000 };
    const uint64_t began = now_ns();
    uint64_t tried = 0, passed = 0;
    for (; passed < TRIAL_NS; passed = now_ns() - began, tried++)
        own->run(own->on);
    const uint64_t each = passed / tried + 1;
    return each < BATCH_NS ? BATCH_NS / each : 1;
}

static void open_operations(struct worker *worker) {
    struct operations *own = worker->own = must_allocate(1, sizeof *own);
    choose(own, worker->scenario);
    own->batch = batch_of(own);
}

/* An operation has no sides; it runs through the server's function, so that its instructions can be counted. */
static uint64_t run(struct worker *worker, uint64_t most) {
    struct operations *own = worker->own;
    own->some = own->batch < most ? own->batch : most;
    worker_sample(worker, OPERATION, timed_server(run_some, own) / own->some);
    return own->some;
}

static void close_operations(struct worker *worker) {
    struct operations *own = worker->own;
    own->free(own->on);
    free(own);
}

void do_primitive(const struct scenario *scenario) {
    static const struct work WORK = {open_operations, NULL, run, NULL, close_operations};
    measure(scenario, &WORK, NULL);
}
