#include "compat.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

/* The code that AWS-LC shares with OpenSSL, or with an old version of it. */

#if !WEIR_BORING && OPENSSL_VERSION_NUMBER >= 0x30000000L

bool compat_cpuid(uint32_t words[4]) {
    /* "OPENSSL_ia32cap=0x...:0x..." and more: the active mask, exposed since 3.0. */
    const char *const settings = OPENSSL_info(OPENSSL_INFO_CPU_SETTINGS);
    uint64_t leaf_1, leaf_7;
    if (settings == NULL || sscanf(settings, "OPENSSL_ia32cap=0x%" SCNx64 ":0x%" SCNx64, &leaf_1, &leaf_7) != 2)
        return false;
    words[0] = (uint32_t)leaf_1, words[1] = (uint32_t)(leaf_1 >> 32);
    words[2] = (uint32_t)leaf_7, words[3] = (uint32_t)(leaf_7 >> 32);
    return true;
}

#elif !defined(__x86_64__)

bool compat_cpuid(uint32_t words[4]) {
    (void)words;
    return false;
}

/* The others honour the mask too but do not expose it: read it where their code does. */

#elif defined(OPENSSL_IS_BORINGSSL)

/* bssl::OPENSSL_get_ia32cap(int), of C++. */
uint32_t bssl_get_ia32cap(int word) __asm__("_ZN4bssl19OPENSSL_get_ia32capEi");

bool compat_cpuid(uint32_t words[4]) {
    for (int word = 0; word < 4; word++)
        words[word] = bssl_get_ia32cap(word);
    return true;
}

#else

extern uint32_t OPENSSL_ia32cap_P[4];

bool compat_cpuid(uint32_t words[4]) {
    memcpy(words, OPENSSL_ia32cap_P, sizeof OPENSSL_ia32cap_P);
    return true;
}

#endif

bool compat_set_suite(SSL_CTX *config, enum suite suite) {
#if defined(OPENSSL_IS_BORINGSSL)
    static const uint16_t NUMBERS[] = {0x1301, 0x1302, 0x1303};
    return SSL_CTX_set1_tls13_ciphers(config, &NUMBERS[suite], NULL, 1) == 1;
#else
    static const char *const NAMES[] = {
        "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
    };
    return SSL_CTX_set_ciphersuites(config, NAMES[suite]) == 1;
#endif
}
