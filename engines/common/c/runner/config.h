#ifndef WEIR_CONFIG_H
#define WEIR_CONFIG_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "scenario.h"

/* A timed part: its total time and count. */
struct span {
    uint64_t ns, count;
};

/* A client's session store: only the newest session. */
struct store {
    SSL_SESSION *newest;
    unsigned arrived; /* sessions since this was last set to zero */
};

void store_empty(struct store *store);

/* Whether a private key is of the certificate's kind. */
bool is_key_of(EVP_PKEY *key, enum certificate certificate);

/* The server's configuration, for all threads. */
SSL_CTX *server_config(const struct scenario *scenario);

/* A client's configuration: without a store it keeps no sessions. Adds the time of verifying the chain to `verify`. */
SSL_CTX *client_config(const struct scenario *scenario, struct store *store, struct span *verify);

#endif
