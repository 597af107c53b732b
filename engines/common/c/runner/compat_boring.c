#include "compat.h"

#if WEIR_BORING

#include <openssl/crypto.h>
#include <string.h>

void compat_begin(void) {
    CRYPTO_library_init();
}

#if defined(OPENSSL_IS_AWSLC)

#include <openssl/service_indicator.h>

void compat_version(char *version, size_t room) {
    /* "AWS-LC 5.12.0" */
    snprintf(version, room, "%s", strrchr(awslc_version_string(), ' ') + 1);
}

#else

/* BoringSSL has no version of its own: what was built is told by the crate that its source came in. */
void compat_version(char *version, size_t room) {
    snprintf(version, room, "%s", WEIR_VERSION);
}

#endif

/* Both honour the mask and do not tell it: this is what their own code asks. */

#if defined(__x86_64__) && defined(OPENSSL_IS_AWSLC)

extern uint32_t OPENSSL_ia32cap_P[4];

bool compat_cpuid(uint32_t words[4]) {
    memcpy(words, OPENSSL_ia32cap_P, sizeof OPENSSL_ia32cap_P);
    return true;
}

#elif defined(__x86_64__)

/* bssl::OPENSSL_get_ia32cap(int), of C++. */
uint32_t bssl_get_ia32cap(int word) __asm__("_ZN4bssl19OPENSSL_get_ia32capEi");

bool compat_cpuid(uint32_t words[4]) {
    for (int word = 0; word < 4; word++)
        words[word] = bssl_get_ia32cap(word);
    return true;
}

#else

bool compat_cpuid(uint32_t words[4]) {
    (void)words;
    return false;
}

#endif

bool compat_set_suite(SSL_CTX *config, enum suite suite) {
#if defined(OPENSSL_IS_AWSLC)
    static const char *const NAMES[] = {
        "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
    };
    return SSL_CTX_set_ciphersuites(config, NAMES[suite]) == 1;
#else
    static const uint16_t NUMBERS[] = {0x1301, 0x1302, 0x1303};
    return SSL_CTX_set1_tls13_ciphers(config, &NUMBERS[suite], NULL, 1) == 1;
#endif
}

bool compat_set_tickets(SSL_CTX *config, unsigned tickets) {
    return SSL_CTX_set_num_tickets(config, tickets) == 1;
}

unsigned compat_tickets_when_resumed(unsigned tickets) {
    return tickets;
}

bool compat_can_send_tickets(void) {
    return true;
}

/* Tickets wait in the buffer for the first write, which may be an empty one. */
int compat_send_tickets(SSL *ssl, unsigned more) {
    (void)more;
    return SSL_write(ssl, "", 0) >= 0;
}

uint16_t compat_group(SSL *ssl) {
    return SSL_get_group_id(ssl);
}

/* A server does not tell with what it signed. */
uint16_t compat_signature(SSL *ssl, bool server) {
    return server ? 0 : SSL_get_peer_signature_algorithm(ssl);
}

/* They are rotated, and so read behind a lock. */
bool compat_ticket_keys_locked(void) {
    return true;
}

#endif
