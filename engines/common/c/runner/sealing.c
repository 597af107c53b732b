#include "operations.h"

#include <stdlib.h>
#include <string.h>

#include "aead.h"
#include "fail.h"

enum { HEADER = 5, LONGEST = 16384 };

struct sealing {
    struct aead *aead;
    size_t length;
    unsigned char nonce[AEAD_NONCE], header[HEADER];
    unsigned char message[LONGEST], sealed[LONGEST + AEAD_TAG], opened[LONGEST];
};

struct sealing *sealing_new(const struct scenario *scenario) {
    static const unsigned char KEY[AEAD_KEY] = {0x57, 0x65, 0x69, 0x72};
    /* Sealing and opening take turns in the list of operations, suite by suite. */
    const enum suite suite = (scenario->operation - AES_128_GCM_SEAL) / 2;
    struct sealing *sealing = must_allocate(1, sizeof *sealing);
    sealing->aead = aead_new(suite, KEY);
    sealing->length = (size_t)scenario->record;
    /* The header of a TLS 1.3 record. */
    memcpy(sealing->header, "\x17\x03\x03\x40\x11", HEADER);
    memset(sealing->message, 0x5a, sealing->length);
    sealing_seal(sealing);
    sealing_open(sealing);
    if (memcmp(sealing->message, sealing->opened, sealing->length) != 0)
        fail_stack("what was opened is not what was sealed");
    return sealing;
}

/* One nonce for all: no secret is at stake, and the work is the same. */
void sealing_seal(void *argument) {
    struct sealing *sealing = argument;
    const struct piece piece = {sealing->message, sealing->length, sealing->nonce, sealing->header, HEADER};
    if (!aead_seal(sealing->aead, sealing->sealed, &piece))
        fail_stack("sealing");
}

void sealing_open(void *argument) {
    struct sealing *sealing = argument;
    const struct piece piece = {sealing->sealed, sealing->length + AEAD_TAG, sealing->nonce, sealing->header, HEADER};
    if (!aead_open(sealing->aead, sealing->opened, &piece))
        fail_stack("opening");
}

void sealing_free(void *argument) {
    struct sealing *sealing = argument;
    aead_free(sealing->aead);
    free(sealing);
}
