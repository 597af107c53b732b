#ifndef WEIR_SIGNATURE_H
#define WEIR_SIGNATURE_H

#include "scenario.h"

/* Signing and verifying a digest with the scenario's key, as the handshake does: RSA with PSS. */
struct signature;

struct signature *signature_new(const struct scenario *scenario);
void signature_sign(void *signature);
void signature_verify(void *signature);
void signature_free(void *signature);

#endif
