#include "operations.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdbool.h>
#include <stdlib.h>

#include "config.h"
#include "fail.h"

enum { DIGEST = 32, LONGEST = 256 };

struct signature {
    EVP_PKEY *key;
    EVP_PKEY_CTX *sign, *verify;
    unsigned char digest[DIGEST], made[LONGEST];
    size_t length;
};

static EVP_PKEY *read_key(const struct scenario *scenario);

/* RSA as in TLS 1.3: PSS over SHA-256, with a salt as long as the digest. */
static bool set_padding(EVP_PKEY_CTX *context) {
    return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) > 0 &&
           EVP_PKEY_CTX_set_signature_md(context, EVP_sha256()) > 0 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(context, -1) > 0;
}

struct signature *signature_new(const struct scenario *scenario) {
    struct signature *signature = must_allocate(1, sizeof *signature);
    for (size_t i = 0; i < DIGEST; i++)
        signature->digest[i] = (unsigned char)(0xa5 ^ i);
    signature->key = read_key(scenario);
    signature->sign = EVP_PKEY_CTX_new(signature->key, NULL);
    signature->verify = EVP_PKEY_CTX_new(signature->key, NULL);
    const bool rsa = EVP_PKEY_id(signature->key) == EVP_PKEY_RSA;
    if (signature->sign == NULL || EVP_PKEY_sign_init(signature->sign) <= 0 ||
        signature->verify == NULL || EVP_PKEY_verify_init(signature->verify) <= 0 ||
        (rsa && (!set_padding(signature->sign) || !set_padding(signature->verify))))
        fail_stack("preparing signatures");
    signature_sign(signature);
    return signature;
}

void signature_sign(void *argument) {
    struct signature *signature = argument;
    signature->length = sizeof signature->made;
    if (EVP_PKEY_sign(signature->sign, signature->made, &signature->length, signature->digest, DIGEST) <= 0)
        fail_stack("signing");
}

void signature_verify(void *argument) {
    struct signature *signature = argument;
    if (EVP_PKEY_verify(signature->verify, signature->made, signature->length, signature->digest, DIGEST) != 1)
        fail_stack("verifying");
}

void signature_free(void *argument) {
    struct signature *signature = argument;
    EVP_PKEY_CTX_free(signature->sign);
    EVP_PKEY_CTX_free(signature->verify);
    EVP_PKEY_free(signature->key);
    free(signature);
}

static EVP_PKEY *read_key(const struct scenario *scenario) {
    BIO *file = BIO_new_file(scenario->key, "r");
    EVP_PKEY *key = file == NULL ? NULL : PEM_read_bio_PrivateKey(file, NULL, NULL, NULL);
    if (key == NULL)
        fail_stack("key %s", scenario->key);
    BIO_free(file);
    /* Signing and verifying alternate in the list of operations, certificate by certificate. */
    if (!is_key_of(key, scenario->operation / 2))
        fail_scenario("key `operation` has the value `%s`, and file `%s` of key `key` is of another kind",
                      operation_word(scenario->operation), scenario->key);
    ERR_clear_error();
    return key;
}
