#ifndef WEIR_OPERATIONS_H
#define WEIR_OPERATIONS_H

#include "scenario.h"

/* The operations of the library's crypto backend, each prepared once and then repeated. */

/* Signing and verifying a digest with the scenario's key, as the handshake does: RSA with PSS. */
struct signature *signature_new(const struct scenario *scenario);
void signature_sign(void *signature);
void signature_verify(void *signature);
void signature_free(void *signature);

/* One side's part of a key exchange, with the calls of the library's own TLS: the peer's part is bytes
   that are decoded each time. NULL where the library has no such group. */
struct exchange *exchange_new(enum operation operation);
void exchange_run(void *exchange);
void exchange_free(void *exchange);

/* Sealing and opening one record's message. */
struct sealing *sealing_new(const struct scenario *scenario);
void sealing_seal(void *sealing);
void sealing_open(void *sealing);
void sealing_free(void *sealing);

#endif
