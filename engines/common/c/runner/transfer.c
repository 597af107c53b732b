#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "fail.h"
#include "json.h"
#include "measure.h"
#include "pair.h"
#include "timed.h"

/* Per-thread state: a connection, the server's data and the client's buffer. */
struct transfers {
    SSL_CTX *client;
    struct pair pair;
    struct span sessions[2], verify;
    unsigned char *sent, *received;
    size_t bytes, write, arrived;
    uint64_t units, written, read;
};

static void open_transfers(struct worker *worker) {
    const struct scenario *scenario = worker->scenario;
    struct transfers *own = worker->own = must_allocate(1, sizeof *own);
    own->bytes = (size_t)scenario->bytes;
    own->write = (size_t)scenario->write;
    own->sent = must_allocate(own->bytes, 1);
    own->received = must_allocate(own->bytes, 1);
    memset(own->received, 0xff, own->bytes);
    /* Any bytes, but they should not repeat between records. */
    uint64_t state = 0x9e3779b97f4a7c15u + worker->number;
    for (size_t i = 0; i < own->bytes; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        own->sent[i] = (unsigned char)state;
    }

    own->client = client_config(scenario, NULL, &own->verify);
    pair_begin(&own->pair, scenario, own->sessions);
    own->pair.client.config = own->client;
    own->pair.server.config = worker->shared;
    struct times times = {0, 0};
    pair_connect(&own->pair, &times);

    /* A whole unit is on the wire at once: its bytes plus at most this overhead per record. */
    enum { OVERHEAD = 64 };
    const size_t record = own->write < scenario->record ? own->write : (size_t)scenario->record;
    const size_t writes = own->bytes / own->write + 1, records = own->bytes / record + 1;
    wire_reserve(&own->pair.to_client, own->bytes + (writes + records) * OVERHEAD);
}

static void begin(struct worker *worker) {
    struct transfers *own = worker->own;
    own->written = own->read = 0;
}

static void send_all(void *argument) {
    struct transfers *own = argument;
    for (size_t at = 0; at < own->bytes;) {
        const size_t rest = own->bytes - at;
        const size_t some = rest < own->write ? rest : own->write;
        const int result = SSL_write(own->pair.server.ssl, own->sent + at, (int)some);
        peer_check(&own->pair.server, result, "writing");
        if (result != (int)some)
            fail_stack("server: %d of %zu bytes were written", result, some);
        at += some;
    }
}

static void receive_all(void *argument) {
    struct transfers *own = argument;
    for (own->arrived = 0; own->arrived < own->bytes;) {
        const int result = SSL_read(own->pair.client.ssl, own->received + own->arrived,
                                    (int)(own->bytes - own->arrived));
        peer_check(&own->pair.client, result, "reading");
        if (result <= 0)
            return;
        own->arrived += (size_t)result;
    }
}

static uint64_t run(struct worker *worker, uint64_t most) {
    (void)most;
    struct transfers *own = worker->own;
    /* Units differ, so that leftovers of the previous one cannot be mistaken for this one's. */
    own->units++;
    memcpy(own->sent, &own->units, own->bytes < sizeof own->units ? own->bytes : sizeof own->units);

    worker_sample(worker, SERVER, timed_server(send_all, own));
    worker_sample(worker, CLIENT, timed_client(receive_all, own));
    if (own->arrived != own->bytes || memcmp(own->sent, own->received, own->bytes) != 0)
        fail_stack("%zu bytes were read that are not the %zu that were written", own->arrived, own->bytes);
    own->written += own->bytes;
    own->read += own->arrived;
    return 1;
}

static void report_moved(const struct worker *worker, const char *side, uint64_t bytes) {
    json_open("moved");
    json_number("thread", worker->number);
    json_text("side", side);
    json_number("bytes", bytes);
    json_close();
}

static void report(struct worker *workers, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        const struct transfers *own = workers[i].own;
        report_moved(&workers[i], "server", own->written);
        report_moved(&workers[i], "client", own->read);
    }
}

static void close_transfers(struct worker *worker) {
    struct transfers *own = worker->own;
    struct times times = {0, 0};
    pair_drop(&own->pair, &times);
    pair_end(&own->pair);
    SSL_CTX_free(own->client);
    free(own->received);
    free(own->sent);
    free(own);
}

void do_transfer(const struct scenario *scenario) {
    static const struct work WORK = {open_transfers, begin, run, report, close_transfers};
    SSL_CTX *server = server_config(scenario);
    if (!SSL_CTX_set_max_send_fragment(server, (size_t)scenario->record))
        fail_stack("records of %zu bytes", (size_t)scenario->record);
    measure(scenario, &WORK, server);
    SSL_CTX_free(server);
}
