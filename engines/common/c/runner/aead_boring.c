#include "aead.h"

#include "compat.h"

#if WEIR_BORING

#include <openssl/aead.h>
#include <stdlib.h>

#include "fail.h"

struct aead {
    EVP_AEAD_CTX context;
};

struct aead *aead_new(enum suite suite, const unsigned char key[AEAD_KEY]) {
    const EVP_AEAD *const ciphers[] = {EVP_aead_aes_128_gcm(), EVP_aead_aes_256_gcm(), EVP_aead_chacha20_poly1305()};
    struct aead *aead = must_allocate(1, sizeof *aead);
    if (!EVP_AEAD_CTX_init(&aead->context, ciphers[suite], key, EVP_AEAD_key_length(ciphers[suite]), AEAD_TAG, NULL))
        fail_stack("a context of %s", suite_word(suite));
    return aead;
}

void aead_free(struct aead *aead) {
    EVP_AEAD_CTX_cleanup(&aead->context);
    free(aead);
}

bool aead_seal(struct aead *aead, unsigned char *sealed, const unsigned char *message, size_t length) {
    size_t written;
    return EVP_AEAD_CTX_seal(&aead->context, sealed, &written, length + AEAD_TAG, NONCE, AEAD_NONCE, message, length,
                             HEADER, AEAD_HEADER);
}

bool aead_open(struct aead *aead, unsigned char *message, const unsigned char *sealed, size_t length) {
    size_t written;
    return EVP_AEAD_CTX_open(&aead->context, message, &written, length, NONCE, AEAD_NONCE, sealed, length + AEAD_TAG,
                             HEADER, AEAD_HEADER);
}

#endif
