#include "outcome.h"

#include <stdio.h>

#include "compat.h"
#include "fail.h"
#include "json.h"

struct outcome outcome_of(const struct pair *pair, const struct peer *peer) {
    SSL *const ssl = peer->ssl;
    const bool resumed = SSL_session_reused(ssl);
    const int version = SSL_version(ssl);
    /* A resumed handshake has no signature, and in TLS 1.2 no key exchange, although its session may store one. */
    return (struct outcome){
        .version = (uint16_t)version,
        .suite = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(ssl)),
        .group = resumed && version == TLS1_2_VERSION ? 0 : compat_group(ssl),
        .signature = resumed ? 0 : compat_signature(ssl, peer->server),
        .resumed = resumed,
        .retried = pair->retried,
    };
}

static bool same(const struct outcome *a, const struct outcome *b) {
    return a->version == b->version && a->suite == b->suite && a->group == b->group && a->signature == b->signature &&
           a->resumed == b->resumed && a->retried == b->retried;
}

void tally_add(struct tally *tally, const struct outcome *outcome, uint64_t count) {
    size_t i = 0;
    while (i < tally->kinds && !same(&tally->outcomes[i], outcome))
        i++;
    if (i == OUTCOMES)
        fail_stack("handshakes came out in more than %d ways", OUTCOMES);
    if (i == tally->kinds) {
        tally->outcomes[i] = *outcome;
        tally->counts[i] = 0;
        tally->kinds++;
    }
    tally->counts[i] += count;
}

struct name {
    uint16_t number;
    const char *name;
};

static const struct name VERSIONS[] = {{TLS1_2_VERSION, "1.2"}, {TLS1_3_VERSION, "1.3"}, {0, NULL}};
static const struct name SUITES[] = {
    {0x1301, "aes128-gcm"}, {0x1302, "aes256-gcm"}, {0x1303, "chacha20-poly1305"},
    {0xc02b, "aes128-gcm"}, {0xc02c, "aes256-gcm"}, {0xcca9, "chacha20-poly1305"},
    {0xc02f, "aes128-gcm"}, {0xc030, "aes256-gcm"}, {0xcca8, "chacha20-poly1305"},
    {0, NULL},
};
static const struct name GROUPS[] = {{23, "p256"}, {24, "p384"}, {29, "x25519"}, {0x11ec, "x25519mlkem768"}, {0, NULL}};
static const struct name SIGNATURES[] = {
    {0x0804, "rsa_pss_rsae_sha256"}, {0x0403, "ecdsa_secp256r1_sha256"}, {0x0503, "ecdsa_secp384r1_sha384"}, {0, NULL},
};

static void put_name(const char *key, uint16_t number, const struct name *names) {
    char other[8];
    if (number == 0) {
        json_text(key, NULL);
        return;
    }
    while (names->name != NULL && names->number != number)
        names++;
    snprintf(other, sizeof other, "0x%04x", number);
    json_text(key, names->name != NULL ? names->name : other);
}

void tally_report(const struct tally *tally, const char *side) {
    for (size_t i = 0; i < tally->kinds; i++) {
        const struct outcome *outcome = &tally->outcomes[i];
        json_open("negotiated");
        json_text("side", side);
        put_name("version", outcome->version, VERSIONS);
        json_text("kind", outcome->resumed ? "resumed" : outcome->retried ? "full-with-hello-retry" : "full");
        put_name("suite", outcome->suite, SUITES);
        put_name("group", outcome->group, GROUPS);
        put_name("signature", outcome->signature, SIGNATURES);
        json_number("count", tally->counts[i]);
        json_close();
    }
}
