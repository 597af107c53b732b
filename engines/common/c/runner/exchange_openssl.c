#include "operations.h"

#include "compat.h"

#if !WEIR_BORING

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "fail.h"

struct exchange {
    enum operation operation;
    unsigned char *sent; /* by the other side: a public key or a ciphertext */
    size_t length;
};

#if OPENSSL_VERSION_NUMBER < 0x30000000L
#define EVP_PKEY_get1_encoded_public_key EVP_PKEY_get1_tls_encodedpoint
#define EVP_PKEY_set1_encoded_public_key EVP_PKEY_set1_tls_encodedpoint
#endif

#if OPENSSL_VERSION_NUMBER >= 0x30000000L

static EVP_PKEY *new_key(enum operation operation) {
    const char *const names[] = {[EXCHANGE_X25519] = "X25519", [EXCHANGE_P_256] = "EC",
                                 [HYBRID_CLIENT] = "X25519MLKEM768", [HYBRID_SERVER] = "X25519MLKEM768"};
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, names[operation], NULL);
    if (context == NULL || EVP_PKEY_keygen_init(context) != 1 ||
        (operation == EXCHANGE_P_256 && EVP_PKEY_CTX_set_group_name(context, "P-256") != 1) ||
        EVP_PKEY_keygen(context, &key) != 1)
        fail_stack("a key pair");
    EVP_PKEY_CTX_free(context);
    return key;
}

#else

static EVP_PKEY *new_key(enum operation operation) {
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(operation == EXCHANGE_P_256 ? EVP_PKEY_EC : EVP_PKEY_X25519, NULL);
    if (context == NULL || EVP_PKEY_keygen_init(context) != 1 ||
        (operation == EXCHANGE_P_256 && EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) != 1) ||
        EVP_PKEY_keygen(context, &key) != 1)
        fail_stack("a key pair");
    EVP_PKEY_CTX_free(context);
    return key;
}

#endif

static EVP_PKEY *decode(EVP_PKEY *own, const unsigned char *bytes, size_t length) {
    EVP_PKEY *peer = EVP_PKEY_new();
    if (peer == NULL || EVP_PKEY_copy_parameters(peer, own) != 1 ||
        EVP_PKEY_set1_encoded_public_key(peer, bytes, length) != 1)
        fail_stack("decoding a public key");
    return peer;
}

static void agree(const struct exchange *exchange) {
    EVP_PKEY *own = new_key(exchange->operation);
    EVP_PKEY *peer = decode(own, exchange->sent, exchange->length);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(own, NULL);
    unsigned char secret[64];
    size_t length = sizeof secret;
    if (context == NULL || EVP_PKEY_derive_init(context) != 1 || EVP_PKEY_derive_set_peer(context, peer) != 1 ||
        EVP_PKEY_derive(context, secret, &length) != 1)
        fail_stack("key agreement");
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(peer);
    EVP_PKEY_free(own);
}

#if OPENSSL_VERSION_NUMBER >= 0x30500000L

enum { HYBRID_SECRET = 64 };

static bool has_hybrid(void) {
    return true;
}

/* Returns the ciphertext for the sender of these bytes. */
static unsigned char *encapsulate(EVP_PKEY *peer, size_t *length) {
    unsigned char secret[HYBRID_SECRET];
    size_t secret_length = sizeof secret;
    unsigned char *ciphertext = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, peer, NULL);
    if (context == NULL || EVP_PKEY_encapsulate_init(context, NULL) != 1 ||
        EVP_PKEY_encapsulate(context, NULL, length, NULL, &secret_length) != 1 ||
        (ciphertext = OPENSSL_malloc(*length)) == NULL || secret_length > sizeof secret ||
        EVP_PKEY_encapsulate(context, ciphertext, length, secret, &secret_length) != 1)
        fail_stack("encapsulation");
    EVP_PKEY_CTX_free(context);
    return ciphertext;
}

/* The ciphertext is not for the new key. ML-KEM decapsulates it by the same steps, into another secret. */
static void hybrid_client(const struct exchange *exchange) {
    unsigned char secret[HYBRID_SECRET];
    size_t length = sizeof secret;
    EVP_PKEY *own = new_key(exchange->operation);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, own, NULL);
    if (context == NULL || EVP_PKEY_decapsulate_init(context, NULL) != 1 ||
        EVP_PKEY_decapsulate(context, secret, &length, exchange->sent, exchange->length) != 1)
        fail_stack("decapsulation");
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(own);
}

static void hybrid_server(const struct exchange *exchange) {
    size_t length;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "X25519MLKEM768", NULL);
    EVP_PKEY *template = NULL;
    if (context == NULL || EVP_PKEY_paramgen_init(context) != 1 ||
        EVP_PKEY_CTX_set_group_name(context, "X25519MLKEM768") != 1 ||
        EVP_PKEY_paramgen(context, &template) != 1)
        fail_stack("a public key of X25519MLKEM768");
    EVP_PKEY *peer = decode(template, exchange->sent, exchange->length);
    OPENSSL_free(encapsulate(peer, &length));
    EVP_PKEY_free(peer);
    EVP_PKEY_free(template);
    EVP_PKEY_CTX_free(context);
}

#else

static bool has_hybrid(void) {
    return false;
}

static unsigned char *encapsulate(EVP_PKEY *peer, size_t *length) {
    (void)peer, (void)length;
    return NULL;
}

static void hybrid_client(const struct exchange *exchange) {
    (void)exchange;
}

static void hybrid_server(const struct exchange *exchange) {
    (void)exchange;
}

#endif

struct exchange *exchange_new(enum operation operation) {
    if ((operation == HYBRID_CLIENT || operation == HYBRID_SERVER) && !has_hybrid())
        return NULL;
    struct exchange *exchange = must_allocate(1, sizeof *exchange);
    exchange->operation = operation;
    EVP_PKEY *key = new_key(operation);
    if (operation == HYBRID_CLIENT)
        exchange->sent = encapsulate(key, &exchange->length);
    else
        exchange->length = EVP_PKEY_get1_encoded_public_key(key, &exchange->sent);
    EVP_PKEY_free(key);
    if (exchange->length == 0)
        fail_stack("encoding a public key");
    return exchange;
}

void exchange_free(void *argument) {
    struct exchange *exchange = argument;
    OPENSSL_free(exchange->sent);
    free(exchange);
}

void exchange_run(void *argument) {
    const struct exchange *exchange = argument;
    if (exchange->operation == HYBRID_CLIENT)
        hybrid_client(exchange);
    else if (exchange->operation == HYBRID_SERVER)
        hybrid_server(exchange);
    else
        agree(exchange);
}

#endif
