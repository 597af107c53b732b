#include "aead.h"

#include "compat.h"

#if !WEIR_BORING

#include <openssl/evp.h>
#include <stdlib.h>

#include "fail.h"

/* A context for each direction, as records have. */
struct aead {
    EVP_CIPHER_CTX *seal, *open;
};

struct aead *aead_new(enum suite suite, const unsigned char key[AEAD_KEY]) {
    const EVP_CIPHER *const ciphers[] = {EVP_aes_128_gcm(), EVP_aes_256_gcm(), EVP_chacha20_poly1305()};
    struct aead *aead = must_allocate(1, sizeof *aead);
    aead->seal = EVP_CIPHER_CTX_new();
    aead->open = EVP_CIPHER_CTX_new();
    if (aead->seal == NULL || aead->open == NULL ||
        !EVP_EncryptInit_ex(aead->seal, ciphers[suite], NULL, key, NULL) ||
        !EVP_DecryptInit_ex(aead->open, ciphers[suite], NULL, key, NULL))
        fail_stack("a context of %s", suite_word(suite));
    return aead;
}

void aead_free(struct aead *aead) {
    EVP_CIPHER_CTX_free(aead->seal);
    EVP_CIPHER_CTX_free(aead->open);
    free(aead);
}

bool aead_seal(struct aead *aead, unsigned char *sealed, const unsigned char *message, size_t length) {
    int some;
    return EVP_EncryptInit_ex(aead->seal, NULL, NULL, NULL, NONCE) &&
           EVP_EncryptUpdate(aead->seal, NULL, &some, HEADER, AEAD_HEADER) &&
           EVP_EncryptUpdate(aead->seal, sealed, &some, message, (int)length) &&
           EVP_EncryptFinal_ex(aead->seal, sealed + some, &some) &&
           EVP_CIPHER_CTX_ctrl(aead->seal, EVP_CTRL_AEAD_GET_TAG, AEAD_TAG, sealed + length);
}

bool aead_open(struct aead *aead, unsigned char *message, const unsigned char *sealed, size_t length) {
    int some;
    return EVP_DecryptInit_ex(aead->open, NULL, NULL, NULL, NONCE) &&
           EVP_CIPHER_CTX_ctrl(aead->open, EVP_CTRL_AEAD_SET_TAG, AEAD_TAG, (void *)(sealed + length)) &&
           EVP_DecryptUpdate(aead->open, NULL, &some, HEADER, AEAD_HEADER) &&
           EVP_DecryptUpdate(aead->open, message, &some, sealed, (int)length) &&
           EVP_DecryptFinal_ex(aead->open, message + some, &some) > 0;
}

#endif
