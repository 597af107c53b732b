#ifndef WEIR_AEAD_H
#define WEIR_AEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "scenario.h"

/* The cipher of records, by the calls that the library's own TLS makes, with its key set once. */
struct aead;

enum { AEAD_KEY = 32, AEAD_TAG = 16, AEAD_NONCE = 12 };

/* A message, or what is sealed of it, and what belongs to it. */
struct piece {
    const unsigned char *bytes;
    size_t length;
    const unsigned char *nonce;  /* of AEAD_NONCE bytes */
    const unsigned char *header; /* that is authenticated alone */
    size_t header_length;
};

struct aead *aead_new(enum suite suite, const unsigned char key[AEAD_KEY]);
void aead_free(struct aead *aead);

/* Both write to `out`: AEAD_TAG bytes more, or less, than the piece has. False if it failed. */
bool aead_seal(struct aead *aead, unsigned char *out, const struct piece *piece);
bool aead_open(struct aead *aead, unsigned char *out, const struct piece *piece);

#endif
