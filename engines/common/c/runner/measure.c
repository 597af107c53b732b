#include "measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clock.h"
#include "fail.h"
#include "json.h"
#include "timed.h"

struct run {
    struct worker *worker;
    const struct work *work;
};

void worker_sample(struct worker *worker, enum side side, uint64_t ns) {
    enum { ROOM = 1 << 14 };
    struct samples *samples = &worker->samples[side];
    if (samples->length == samples->room) {
        samples->room = samples->room == 0 ? ROOM : 2 * samples->room;
        samples->ns = realloc(samples->ns, samples->room * sizeof *samples->ns);
        if (samples->ns == NULL)
            fail_runner("no memory for %zu samples", samples->room);
    }
    samples->ns[samples->length++] = ns;
}

static uint64_t voluntary_switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)usage.ru_nvcsw;
}

static void *run(void *argument) {
    const struct work *work = ((struct run *)argument)->work;
    struct worker *worker = ((struct run *)argument)->worker;
    const struct scenario *scenario = worker->scenario;

    work->open(worker);
    for (uint64_t done = 0; done < scenario->warmup;)
        done += work->run(worker, scenario->warmup - done);
    for (enum side side = 0; side < SIDES; side++)
        worker->samples[side].length = 0;
    if (work->begin != NULL)
        work->begin(worker);
    timed_begin();

    pthread_barrier_wait(worker->barrier);
    const uint64_t switches = voluntary_switches();
    const uint64_t cpu = clock_read(CLOCK_THREAD_CPUTIME_ID);
    const uint64_t began = now_ns();
    if (scenario->count > 0) {
        while (worker->units < scenario->count)
            worker->units += work->run(worker, scenario->count - worker->units);
    } else {
        const uint64_t end = began + scenario->window_ms * 1000000;
        while (now_ns() < end)
            worker->units += work->run(worker, UINT64_MAX);
    }
    worker->wall_ns = now_ns() - began;
    worker->cpu_ns = clock_read(CLOCK_THREAD_CPUTIME_ID) - cpu;
    worker->voluntary_switches = voluntary_switches() - switches;
    return NULL;
}

static void report_samples(const struct worker *worker, enum side side) {
    static const char *const NAMES[] = {"client", "server", "operation"};
    enum { LINE = 1000 };
    const struct samples *samples = &worker->samples[side];
    for (size_t at = 0; at < samples->length; at += LINE) {
        const size_t rest = samples->length - at;
        json_open("samples");
        json_number("thread", worker->number);
        json_text("side", NAMES[side]);
        json_numbers("ns", samples->ns + at, rest < LINE ? rest : LINE);
        json_close();
    }
}

static void report(const struct worker *worker) {
    for (enum side side = 0; side < SIDES; side++)
        report_samples(worker, side);
    json_open("thread");
    json_number("thread", worker->number);
    json_number("units", worker->units);
    json_number("wall_ns", worker->wall_ns);
    json_number("cpu_ns", worker->cpu_ns);
    json_number("voluntary_switches", worker->voluntary_switches);
    json_close();
}

void measure(const struct scenario *scenario, const struct work *work, void *shared) {
    const unsigned threads = (unsigned)scenario->threads;
    struct worker *workers = must_allocate(threads, sizeof *workers);
    struct run *runs = must_allocate(threads, sizeof *runs);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, threads);

    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (struct worker){.scenario = scenario, .number = i, .shared = shared, .barrier = &barrier};
        runs[i] = (struct run){&workers[i], work};
        const int error = pthread_create(&workers[i].thread, NULL, run, &runs[i]);
        if (error != 0)
            fail_runner("thread %u cannot be started: %s", i, strerror(error));
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);

    for (unsigned i = 0; i < threads; i++)
        report(&workers[i]);
    if (work->report != NULL)
        work->report(workers, threads);

    for (unsigned i = 0; i < threads; i++) {
        work->close(&workers[i]);
        for (enum side side = 0; side < SIDES; side++)
            free(workers[i].samples[side].ns);
    }
    pthread_barrier_destroy(&barrier);
    free(runs);
    free(workers);
}
