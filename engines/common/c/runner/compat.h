#ifndef WEIR_COMPAT_H
#define WEIR_COMPAT_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#include "scenario.h"

/* The differences between OpenSSL, BoringSSL and AWS-LC: files named _openssl.c are for the first, those named
   _boring.c for the other two, and compat.c groups them otherwise. All other code in this directory is common. */

#if defined(OPENSSL_IS_BORINGSSL) || defined(OPENSSL_IS_AWSLC)
#define WEIR_BORING 1
#else
#define WEIR_BORING 0
#endif

/* Call first. Reads no configuration file of the machine, which could affect the measurement. */
void compat_begin(void);

/* The library's version, without its name: "3.5.5". */
void compat_version(char *version, size_t room);

/* The processor's features as the library sees them after OPENSSL_ia32cap: EDX and ECX of CPUID leaf 1, then EBX and
   ECX of leaf 7. False if unknown. */
bool compat_cpuid(uint32_t words[4]);

/* Offers, or accepts, only this TLS 1.3 suite. */
bool compat_set_suite(SSL_CTX *config, enum suite suite);

/* How many of `tickets` are sent by default after a resumed handshake. */
unsigned compat_tickets_when_resumed(unsigned tickets);

/* Whether a server can be made to send more than that. */
bool compat_can_send_tickets(void);

/* Makes a server send buffered tickets, and `more` new ones. */
int compat_send_tickets(SSL *ssl, unsigned more);

/* The registered number of the group of the key exchange; 0 if unknown. */
uint16_t compat_group(SSL *ssl);

/* The registered number of the algorithm of the server's signature; 0 if unknown. */
uint16_t compat_signature(SSL *ssl, bool server);

/* Whether the library's own ticket keys are protected by its session store's lock. */
bool compat_ticket_keys_locked(void);

#endif
