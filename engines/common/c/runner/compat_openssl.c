#include "compat.h"

#if !WEIR_BORING

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "fail.h"

void compat_begin(void) {
    if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL))
        fail_stack("OPENSSL_init_ssl");
}

void compat_version(char *version, size_t room) {
    /* "OpenSSL 3.5.5 27 Jan 2026" */
    version[0] = '\0';
    char word[32];
    if (sscanf(OpenSSL_version(OPENSSL_VERSION), "OpenSSL %31s", word) == 1)
        snprintf(version, room, "%s", word);
}

/* Whatever number is set, one ticket follows a resumption. */
unsigned compat_tickets_when_resumed(unsigned tickets) {
    return tickets < 1 ? tickets : 1;
}

#if OPENSSL_VERSION_NUMBER >= 0x30000000L

bool compat_can_send_tickets(void) {
    return true;
}

int compat_send_tickets(SSL *ssl, unsigned more) {
    if (more == 0)
        return 1;
    for (unsigned i = 0; i < more; i++)
        if (SSL_new_session_ticket(ssl) != 1)
            return 0;
    return SSL_do_handshake(ssl);
}

#else

bool compat_can_send_tickets(void) {
    return false;
}

int compat_send_tickets(SSL *ssl, unsigned more) {
    (void)ssl;
    return more == 0;
}

#endif

static uint16_t group_of_nid(int nid) {
    switch (nid) {
    case NID_X9_62_prime256v1:
        return 23;
    case NID_secp384r1:
        return 24;
    case NID_X25519:
        return 29;
    default:
        return 0;
    }
}

#if OPENSSL_VERSION_NUMBER >= 0x30000000L

uint16_t compat_group(SSL *ssl) {
    /* A group without a NID is represented by its registered number with a high bit set. */
    enum { REGISTERED = 1 << 24 };
    const long nid = SSL_get_negotiated_group(ssl);
    return nid & REGISTERED ? (uint16_t)nid : group_of_nid((int)nid);
}

#else

uint16_t compat_group(SSL *ssl) {
    EVP_PKEY *key;
    if (!SSL_get_peer_tmp_key(ssl, &key))
        return 0;
    int nid = EVP_PKEY_id(key);
    if (nid == EVP_PKEY_EC)
        nid = EC_GROUP_get_curve_name(EC_KEY_get0_group(EVP_PKEY_get0_EC_KEY(key)));
    EVP_PKEY_free(key);
    return group_of_nid(nid);
}

#endif

uint16_t compat_signature(SSL *ssl, bool server) {
    int key, hash;
    const int known = server ? SSL_get_signature_type_nid(ssl, &key) && SSL_get_signature_nid(ssl, &hash)
                            : SSL_get_peer_signature_type_nid(ssl, &key) && SSL_get_peer_signature_nid(ssl, &hash);
    if (!known)
        return 0;
    if (key == EVP_PKEY_RSA_PSS && hash == NID_sha256)
        return 0x0804;
    if (key == EVP_PKEY_EC && hash == NID_sha256)
        return 0x0403;
    if (key == EVP_PKEY_EC && hash == NID_sha384)
        return 0x0503;
    return 0xffff;
}

/* They are created with the configuration and never change. */
bool compat_ticket_keys_locked(void) {
    return false;
}

#endif
