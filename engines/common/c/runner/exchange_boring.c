#include "operations.h"

#include "compat.h"

#if WEIR_BORING

#include <openssl/bn.h>
#include <openssl/bytestring.h>
#include <openssl/curve25519.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/nid.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

#if defined(OPENSSL_IS_BORINGSSL)
#include <openssl/mlkem.h>
#endif

enum { ML_KEM_PUBLIC = 1184, ML_KEM_CIPHERTEXT = 1088, ML_KEM_SECRET = 32, POINT = 65, COORDINATE = 32 };

struct exchange {
    enum operation operation;
    unsigned char sent[ML_KEM_PUBLIC + X25519_PUBLIC_VALUE_LEN]; /* by the other side: a public key or a ciphertext */
};

static void agree_x25519(const unsigned char peer[X25519_PUBLIC_VALUE_LEN]) {
    unsigned char own[X25519_PUBLIC_VALUE_LEN], scalar[X25519_PRIVATE_KEY_LEN], secret[X25519_SHARED_KEY_LEN];
    X25519_keypair(own, scalar);
    if (!X25519(secret, scalar, peer))
        fail_stack("X25519");
}

/* Creates a key pair: a number below the group's order, and its point. */
static void p256_key(BIGNUM *secret, unsigned char point[POINT]) {
    const EC_GROUP *const group = EC_group_p256();
    EC_POINT *own = EC_POINT_new(group);
    if (own == NULL || !BN_rand_range_ex(secret, 1, EC_GROUP_get0_order(group)) ||
        !EC_POINT_mul(group, own, secret, NULL, NULL, NULL) ||
        EC_POINT_point2oct(group, own, POINT_CONVERSION_UNCOMPRESSED, point, POINT, NULL) != POINT)
        fail_stack("a key pair of P-256");
    EC_POINT_free(own);
}

static void agree_p256(const unsigned char peer[POINT]) {
    const EC_GROUP *const group = EC_group_p256();
    unsigned char own[POINT], secret[COORDINATE];
    BIGNUM *scalar = BN_new(), *x = BN_new();
    EC_POINT *theirs = EC_POINT_new(group), *shared = EC_POINT_new(group);
    p256_key(scalar, own);
    if (!EC_POINT_oct2point(group, theirs, peer, POINT, NULL) ||
        !EC_POINT_mul(group, shared, NULL, theirs, scalar, NULL) ||
        !EC_POINT_get_affine_coordinates_GFp(group, shared, x, NULL, NULL) ||
        !BN_bn2bin_padded(secret, sizeof secret, x))
        fail_stack("key agreement over P-256");
    EC_POINT_free(shared);
    EC_POINT_free(theirs);
    BN_free(x);
    BN_free(scalar);
}

/* The client's ciphertext is not for its new key. ML-KEM decapsulates it by the same steps, into another secret. */

#if defined(OPENSSL_IS_BORINGSSL)

static void ml_kem_client(const unsigned char ciphertext[ML_KEM_CIPHERTEXT]) {
    unsigned char own[ML_KEM_PUBLIC], secret[ML_KEM_SECRET];
    struct MLKEM768_private_key key;
    MLKEM768_generate_key(own, NULL, &key);
    if (!MLKEM768_decap(secret, ciphertext, ML_KEM_CIPHERTEXT, &key))
        fail_stack("decapsulation");
}

static void encapsulate(unsigned char ciphertext[ML_KEM_CIPHERTEXT], const unsigned char peer[ML_KEM_PUBLIC]) {
    unsigned char secret[ML_KEM_SECRET];
    struct MLKEM768_public_key key;
    CBS bytes;
    CBS_init(&bytes, peer, ML_KEM_PUBLIC);
    if (!MLKEM768_parse_public_key(&key, &bytes))
        fail_stack("a public key of ML-KEM-768");
    MLKEM768_encap(ciphertext, secret, &key);
}

/* The public half of a new key pair. */
static void ml_kem_public(unsigned char own[ML_KEM_PUBLIC]) {
    struct MLKEM768_private_key key;
    MLKEM768_generate_key(own, NULL, &key);
}

#else

static EVP_PKEY *ml_kem_key(unsigned char own[ML_KEM_PUBLIC]) {
    EVP_PKEY *key = NULL;
    size_t length = ML_KEM_PUBLIC;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_KEM, NULL);
    if (context == NULL || !EVP_PKEY_CTX_kem_set_params(context, NID_MLKEM768) || !EVP_PKEY_keygen_init(context) ||
        !EVP_PKEY_keygen(context, &key) || !EVP_PKEY_get_raw_public_key(key, own, &length))
        fail_stack("a key pair of ML-KEM-768");
    EVP_PKEY_CTX_free(context);
    return key;
}

static void ml_kem_client(const unsigned char ciphertext[ML_KEM_CIPHERTEXT]) {
    unsigned char own[ML_KEM_PUBLIC], secret[ML_KEM_SECRET];
    size_t length = sizeof secret;
    EVP_PKEY *key = ml_kem_key(own);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key, NULL);
    if (context == NULL || !EVP_PKEY_decapsulate(context, secret, &length, ciphertext, ML_KEM_CIPHERTEXT))
        fail_stack("decapsulation");
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(key);
}

static void encapsulate(unsigned char ciphertext[ML_KEM_CIPHERTEXT], const unsigned char peer[ML_KEM_PUBLIC]) {
    unsigned char secret[ML_KEM_SECRET];
    size_t length = ML_KEM_CIPHERTEXT, secret_length = sizeof secret;
    EVP_PKEY *key = EVP_PKEY_kem_new_raw_public_key(NID_MLKEM768, peer, ML_KEM_PUBLIC);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key, NULL);
    if (context == NULL || !EVP_PKEY_encapsulate(context, ciphertext, &length, secret, &secret_length))
        fail_stack("encapsulation");
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(key);
}

static void ml_kem_public(unsigned char own[ML_KEM_PUBLIC]) {
    EVP_PKEY_free(ml_kem_key(own));
}

#endif

static void ml_kem_server(const unsigned char peer[ML_KEM_PUBLIC]) {
    unsigned char ciphertext[ML_KEM_CIPHERTEXT];
    encapsulate(ciphertext, peer);
}

struct exchange *exchange_new(enum operation operation) {
    struct exchange *exchange = must_allocate(1, sizeof *exchange);
    exchange->operation = operation;
    unsigned char secret[X25519_PRIVATE_KEY_LEN];
    size_t before = 0;
    if (operation == EXCHANGE_P_256) {
        BIGNUM *scalar = BN_new();
        p256_key(scalar, exchange->sent);
        BN_free(scalar);
        return exchange;
    }
    if (operation == HYBRID_CLIENT || operation == HYBRID_SERVER) {
        unsigned char own[ML_KEM_PUBLIC];
        ml_kem_public(own);
        if (operation == HYBRID_CLIENT)
            encapsulate(exchange->sent, own);
        else
            memcpy(exchange->sent, own, sizeof own);
        before = operation == HYBRID_CLIENT ? ML_KEM_CIPHERTEXT : ML_KEM_PUBLIC;
    }
    X25519_keypair(exchange->sent + before, secret);
    return exchange;
}

void exchange_free(void *exchange) {
    free(exchange);
}

void exchange_run(void *argument) {
    const struct exchange *exchange = argument;
    switch (exchange->operation) {
    case EXCHANGE_P_256:
        agree_p256(exchange->sent);
        break;
    case HYBRID_CLIENT:
        ml_kem_client(exchange->sent);
        agree_x25519(exchange->sent + ML_KEM_CIPHERTEXT);
        break;
    case HYBRID_SERVER:
        ml_kem_server(exchange->sent);
        agree_x25519(exchange->sent + ML_KEM_PUBLIC);
        break;
    default:
        agree_x25519(exchange->sent);
    }
}

#endif
