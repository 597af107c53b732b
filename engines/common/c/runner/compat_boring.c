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

/* BoringSSL has no version of its own: it is identified by the crate of its source. */
void compat_version(char *version, size_t room) {
    snprintf(version, room, "%s", WEIR_VERSION);
}

#endif

unsigned compat_tickets_when_resumed(unsigned tickets) {
    return tickets;
}

bool compat_can_send_tickets(void) {
    return true;
}

/* Tickets are buffered until the first write, which may be empty. */
int compat_send_tickets(SSL *ssl, unsigned more) {
    (void)more;
    return SSL_write(ssl, "", 0) >= 0;
}

uint16_t compat_group(SSL *ssl) {
    return SSL_get_group_id(ssl);
}

/* A server does not expose its signature algorithm. */
uint16_t compat_signature(SSL *ssl, bool server) {
    return server ? 0 : SSL_get_peer_signature_algorithm(ssl);
}

/* They are rotated, and so read behind a lock. */
bool compat_ticket_keys_locked(void) {
    return true;
}

#endif
