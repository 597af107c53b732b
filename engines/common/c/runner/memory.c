#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine.h"
#include "fail.h"
#include "json.h"
#include "pair.h"

static uint64_t resident_kib(void) {
    unsigned long all, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &all, &resident) != 2)
        fail_runner("/proc/self/statm does not tell the resident memory");
    fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* Connections are opened one after the other and held. They share their wires, so that all memory is the library's. */
void do_memory(const struct scenario *scenario) {
    const size_t pairs = (size_t)scenario->sessions / 2;
    SSL **held = must_allocate(2 * pairs, sizeof *held);
    for (size_t i = 0; i < 2 * pairs; i++)
        ((SSL *volatile *)held)[i] = NULL; /* so that its pages are there before */
    struct span sessions[2] = {{0, 0}, {0, 0}}, verify = {0, 0};
    struct times times = {0, 0};
    SSL_CTX *server = server_config(scenario);
    SSL_CTX *client = client_config(scenario, NULL, &verify);
    struct pair pair;
    pair_begin(&pair, scenario, sessions);
    pair.client.config = client;
    pair.server.config = server;

    const uint64_t before = resident_kib();
    for (size_t i = 0; i < pairs; i++) {
        pair_connect(&pair, &times);
        held[2 * i] = pair.client.ssl;
        held[2 * i + 1] = pair.server.ssl;
        pair.client.ssl = pair.server.ssl = NULL;
        pair.client.finished = pair.server.finished = false;
    }
    const uint64_t after = resident_kib();

    json_open("memory");
    json_number("sessions", scenario->sessions);
    json_number("before_kib", before);
    json_number("after_kib", after);
    json_close();

    for (size_t i = 0; i < 2 * pairs; i++)
        SSL_free(held[i]);
    pair_end(&pair);
    SSL_CTX_free(client);
    SSL_CTX_free(server);
    free(held);
}
