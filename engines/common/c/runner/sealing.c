#include "operations.h"

#include <stdlib.h>
#include <string.h>

#include "aead.h"
#include "fail.h"

enum { LONGEST = 16384 };

struct sealing {
    struct aead *aead;
    size_t length;
    unsigned char message[LONGEST], sealed[LONGEST + AEAD_TAG], opened[LONGEST];
};

struct sealing *sealing_new(const struct scenario *scenario) {
    static const unsigned char KEY[AEAD_KEY] = {0x57, 0x65, 0x69, 0x72};
    /* Sealing and opening alternate in the list of operations, suite by suite. */
    const enum suite suite = (scenario->operation - AES_128_GCM_SEAL) / 2;
    struct sealing *sealing = must_allocate(1, sizeof *sealing);
    sealing->aead = aead_new(suite, KEY);
    sealing->length = (size_t)scenario->record;
    memset(sealing->message, 0x5a, sealing->length);
    sealing_seal(sealing);
    sealing_open(sealing);
    if (memcmp(sealing->message, sealing->opened, sealing->length) != 0)
        fail_stack("what was opened is not what was sealed");
    return sealing;
}

void sealing_seal(void *argument) {
    struct sealing *sealing = argument;
    if (!aead_seal(sealing->aead, sealing->sealed, sealing->message, sealing->length))
        fail_stack("sealing");
}

void sealing_open(void *argument) {
    struct sealing *sealing = argument;
    if (!aead_open(sealing->aead, sealing->opened, sealing->sealed, sealing->length))
        fail_stack("opening");
}

void sealing_free(void *argument) {
    struct sealing *sealing = argument;
    aead_free(sealing->aead);
    free(sealing);
}
