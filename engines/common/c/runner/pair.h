#ifndef WEIR_PAIR_H
#define WEIR_PAIR_H

#include <stdbool.h>

#include "config.h"
#include "wire.h"

/* One side of a connection. */
struct peer {
    SSL_CTX *config;
    SSL *ssl; /* NULL until its first step */
    struct wires wires;
    SSL_SESSION *resume; /* of a client: may be NULL */
    unsigned tickets;    /* of a server: total number sent */
    bool server, finished;
    struct span *session; /* adds the time of creating the object */
};

/* A client and a server connected by wires. */
struct pair {
    struct peer client, server;
    struct wire to_client, to_server;
    bool retried; /* a HelloRetryRequest was sent */
};

/* The time of each side's calls. */
struct times {
    uint64_t client, server;
};

void pair_begin(struct pair *pair, const struct scenario *scenario, struct span sessions[2]);

/* Exchanges bytes until neither side has any left: a handshake and its tickets. */
void pair_connect(struct pair *pair, struct times *times);

/* Drops both sides. The wires are reused. */
void pair_drop(struct pair *pair, struct times *times);

void pair_end(struct pair *pair);

/* Fails the run if the library failed for another reason than missing input. */
void peer_check(struct peer *peer, int result, const char *doing);

#endif
