#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "compat.h"
#include "engine.h"
#include "fail.h"
#include "json.h"
#include "locks.h"
#include "measure.h"
#include "outcome.h"

/* Per-thread state: the client's configuration and store, and the outcomes. */
struct handshakes {
    SSL_CTX *client, *server; /* NULL while `config` is cold */
    struct store store;
    struct pair pair;
    struct span sessions[2], verify;
    struct tally seen_by[2];
    struct lock_use locks;
};

static void connect_once(struct handshakes *own, struct times *times, struct outcome outcomes[2]) {
    struct pair *pair = &own->pair;
    pair->client.config = own->client;
    pair->server.config = own->server;
    own->store.arrived = 0;
    pair_connect(pair, times);
    outcomes[CLIENT] = outcome_of(pair, &pair->client);
    outcomes[SERVER] = outcome_of(pair, &pair->server);
    pair_drop(pair, times);
}

/* The first handshake always has a store, whose sessions show how many tickets were sent. */
static void check_tickets(const struct scenario *scenario, SSL_CTX *server) {
    struct handshakes once = {.server = server};
    struct times times = {0, 0};
    struct outcome outcomes[2];
    once.client = client_config(scenario, &once.store, &once.verify);
    pair_begin(&once.pair, scenario, once.sessions);
    connect_once(&once, &times, outcomes);

    unsigned tickets = once.store.arrived;
    /* In TLS 1.2 every handshake yields a session, possibly with a ticket. */
    if (scenario->version == TLS_1_2)
        tickets = once.store.newest != NULL && SSL_SESSION_has_ticket(once.store.newest);
    if (tickets != scenario->tickets)
        fail_stack("the server sent %u tickets, not %" PRIu64, tickets, scenario->tickets);
    store_empty(&once.store);
    pair_end(&once.pair);
    SSL_CTX_free(once.client);
}

static void open_handshakes(struct worker *worker) {
    const struct scenario *scenario = worker->scenario;
    struct handshakes *own = worker->own = must_allocate(1, sizeof *own);
    const bool resumes = scenario->resumption != RESUME_NONE;
    pair_begin(&own->pair, scenario, own->sessions);
    if (scenario->cold)
        return;
    own->server = worker->shared;
    own->client = client_config(scenario, resumes ? &own->store : NULL, &own->verify);
    if (resumes) {
        struct times times = {0, 0};
        struct outcome outcomes[2];
        connect_once(own, &times, outcomes);
    }
}

static void begin(struct worker *worker) {
    struct handshakes *own = worker->own;
    memset(own->sessions, 0, sizeof own->sessions);
    memset(own->seen_by, 0, sizeof own->seen_by);
    own->verify = (struct span){0, 0};
    locks_begin();
}

static uint64_t run(struct worker *worker, uint64_t most) {
    (void)most;
    const struct scenario *scenario = worker->scenario;
    struct handshakes *own = worker->own;
    struct times times = {0, 0};
    struct outcome outcomes[2];
    if (scenario->cold) {
        own->server = server_config(scenario);
        own->client = client_config(scenario, NULL, &own->verify);
    }
    if (scenario->resumption != RESUME_NONE) {
        if (own->store.newest == NULL)
            fail_stack("the client's store is empty: nothing to resume");
        own->pair.client.resume = own->store.newest;
        /* The library holds the resumed session; the store may replace it meanwhile. */
        SSL_SESSION_up_ref(own->pair.client.resume);
    }
    connect_once(own, &times, outcomes);
    SSL_SESSION_free(own->pair.client.resume);
    own->pair.client.resume = NULL;
    if (scenario->resumption == RESUME_PSK && own->store.arrived != scenario->tickets)
        fail_stack("the server sent %u tickets, not %" PRIu64, own->store.arrived, scenario->tickets);
    if (scenario->cold) {
        SSL_CTX_free(own->client);
        SSL_CTX_free(own->server);
    }
    for (enum side side = CLIENT; side <= SERVER; side++)
        tally_add(&own->seen_by[side], &outcomes[side], 1);
    worker_sample(worker, CLIENT, times.client);
    worker_sample(worker, SERVER, times.server);
    own->locks = locks_used(); /* each thread can only read its own */
    return 1;
}

static void report_span(const char *side, const char *name, const struct span *span) {
    if (span->count == 0)
        return;
    json_open("span");
    json_text("side", side);
    json_text("name", name);
    json_number("ns", span->ns);
    json_number("count", span->count);
    json_close();
}

static void add(struct span *sum, const struct span *span) {
    sum->ns += span->ns;
    sum->count += span->count;
}

static void report(struct worker *workers, unsigned count) {
    static const char *const SIDE_NAMES[] = {"client", "server"};
    struct span sessions[2] = {{0, 0}, {0, 0}}, verify = {0, 0};
    struct tally tallies[2] = {{.kinds = 0}, {.kinds = 0}};
    struct lock_use locks = {0, 0};
    for (unsigned i = 0; i < count; i++) {
        const struct handshakes *own = workers[i].own;
        for (enum side side = CLIENT; side <= SERVER; side++) {
            add(&sessions[side], &own->sessions[side]);
            for (size_t kind = 0; kind < own->seen_by[side].kinds; kind++)
                tally_add(&tallies[side], &own->seen_by[side].outcomes[kind], own->seen_by[side].counts[kind]);
        }
        add(&verify, &own->verify);
        locks.operations += own->locks.operations;
        locks.held_ns += own->locks.held_ns;
    }
    for (enum side side = CLIENT; side <= SERVER; side++) {
        tally_report(&tallies[side], SIDE_NAMES[side]);
        report_span(SIDE_NAMES[side], "session", &sessions[side]);
    }
    report_span("client", "verify", &verify);
    if (workers[0].scenario->locks)
        locks_report(&locks, workers[0].scenario->resumption);
}

static void close_handshakes(struct worker *worker) {
    struct handshakes *own = worker->own;
    store_empty(&own->store);
    pair_end(&own->pair);
    if (!worker->scenario->cold)
        SSL_CTX_free(own->client);
    free(own);
}

void do_handshake(const struct scenario *scenario) {
    static const struct work WORK = {open_handshakes, begin, run, report, close_handshakes};
    const bool few = scenario->resumption == RESUME_PSK && !compat_can_send_tickets();
    const unsigned most = compat_tickets_when_resumed((unsigned)scenario->tickets);
    if (few && scenario->tickets > most)
        fail_scenario("key `tickets` has the value `%" PRIu64 "`: this library sends no more than %u after a resumed "
                      "handshake", scenario->tickets, most);
    SSL_CTX *server = server_config(scenario);
    if (scenario->locks)
        locks_watch(server, scenario->resumption);
    check_tickets(scenario, server);
    measure(scenario, &WORK, server);
    SSL_CTX_free(server);
}
