#ifndef WEIR_PAIR_H
#define WEIR_PAIR_H

#include <stdbool.h>

#include "config.h"
#include "wire.h"

/* One end of a connection. */
struct peer {
    SSL_CTX *config;
    SSL *ssl; /* NULL until its first step */
    struct wires wires;
    SSL_SESSION *resume; /* of a client: may be NULL */
    unsigned tickets;    /* of a server: how many it sends, over all */
    bool server, finished;
    struct span *session; /* what making the object takes is added here */
};

/* A client and a server with wires between them. */
struct pair {
    struct peer client, server;
    struct wire to_client, to_server;
    bool retried; /* a HelloRetryRequest was sent */
};

/* What the calls of each end took. */
struct times {
    uint64_t client, server;
};

void pair_begin(struct pair *pair, const struct scenario *scenario, struct span sessions[2]);

/* Has both hand each other bytes until neither has any left to give: a handshake, and the tickets after it. */
void pair_connect(struct pair *pair, struct times *times);

/* Drops both ends. The wires stay for the next connection. */
void pair_drop(struct pair *pair, struct times *times);

void pair_end(struct pair *pair);

/* Ends the run if the library failed, other than for want of bytes. */
void peer_check(struct peer *peer, int result, const char *doing);

#endif
