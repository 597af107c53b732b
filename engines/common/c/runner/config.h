#ifndef WEIR_CONFIG_H
#define WEIR_CONFIG_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "scenario.h"

/* A part of what is timed: how long, and how often. */
struct span {
    uint64_t ns, count;
};

/* Where a client keeps what it can resume: the newest session alone. */
struct store {
    SSL_SESSION *newest;
    unsigned arrived; /* sessions since this was last set to zero */
};

void store_empty(struct store *store);

/* Whether a private key is of the certificate's kind. */
bool is_key_of(EVP_PKEY *key, enum certificate certificate);

/* The server's configuration, for all threads. */
SSL_CTX *server_config(const struct scenario *scenario);

/* One for a client: without a store it keeps no sessions. What verifying the chain takes is added to `verify`. */
SSL_CTX *client_config(const struct scenario *scenario, struct store *store, struct span *verify);

#endif
