#ifndef WEIR_AEAD_H
#define WEIR_AEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "scenario.h"

/* The record cipher, with the calls of the library's own TLS, with its key set once. */
struct aead;

enum { AEAD_KEY = 32, AEAD_TAG = 16, AEAD_NONCE = 12, AEAD_HEADER = 5 };

/* The same nonce for all: no secret is at stake, and the work is the same. */
static const unsigned char NONCE[AEAD_NONCE] = {0};

/* The header of a TLS 1.3 record: authenticated, not encrypted. */
static const unsigned char HEADER[AEAD_HEADER] = {0x17, 0x03, 0x03, 0x40, 0x11};

struct aead *aead_new(enum suite suite, const unsigned char key[AEAD_KEY]);
void aead_free(struct aead *aead);

/* Between a message of `length` bytes and its sealed form, AEAD_TAG bytes longer. Returns false on failure. */
bool aead_seal(struct aead *aead, unsigned char *sealed, const unsigned char *message, size_t length);
bool aead_open(struct aead *aead, unsigned char *message, const unsigned char *sealed, size_t length);

#endif
