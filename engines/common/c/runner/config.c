#include "config.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <stdbool.h>
#include <string.h>

#include "clock.h"
#include "compat.h"
#include "fail.h"

static const int VERSIONS[] = {TLS1_2_VERSION, TLS1_3_VERSION};
static const char *const GROUPS[] = {"X25519", "P-256", "X25519MLKEM768"};
static const char *const SIGNATURES[] = {
    "rsa_pss_rsae_sha256", "ecdsa_secp256r1_sha256", "ecdsa_secp384r1_sha384",
};
static const char *const OLD_SUITES[][2] = {
    {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {"ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {"ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-ECDSA-CHACHA20-POLY1305"},
};

/* Settings common to both sides. */
static SSL_CTX *common_config(const struct scenario *scenario) {
    SSL_CTX *config = SSL_CTX_new(TLS_method());
    const int version = VERSIONS[scenario->version];
    if (config == NULL || !SSL_CTX_set_min_proto_version(config, version) ||
        !SSL_CTX_set_max_proto_version(config, version))
        fail_stack("a configuration of TLS %s", scenario->version == TLS_1_2 ? "1.2" : "1.3");
    if (scenario->version == TLS_1_3 ? !compat_set_suite(config, scenario->suite)
                                     : !SSL_CTX_set_cipher_list(
                                           config, OLD_SUITES[scenario->suite][scenario->certificate != RSA_2048]))
        fail_scenario("key `suite` has the value `%s`, which this library does not take", suite_word(scenario->suite));
    if (!SSL_CTX_set1_sigalgs_list(config, SIGNATURES[scenario->certificate]))
        fail_stack("signature algorithm %s", SIGNATURES[scenario->certificate]);
    return config;
}

static void set_groups(SSL_CTX *config, const struct scenario *scenario, const char *more) {
    char groups[64];
    snprintf(groups, sizeof groups, "%s%s", GROUPS[scenario->group], more);
    if (!SSL_CTX_set1_groups_list(config, groups))
        fail_scenario("key `group` has the value `%s`, which this library does not have", group_word(scenario->group));
}

/* TLS 1.2 has one list for the groups of the key exchange and the curves of certificates (RFC 8422, 5.1.1): a client
   must also list the certificate's curve. The server accepts only the scenario's group. */
static const char *certificate_curve(const struct scenario *scenario) {
    if (scenario->version == TLS_1_3)
        return "";
    if (scenario->certificate == ECDSA_P_384)
        return ":P-384";
    return scenario->certificate == ECDSA_P_256 && scenario->group != GROUP_P_256 ? ":P-256" : "";
}

bool is_key_of(EVP_PKEY *key, enum certificate certificate) {
    static const int KINDS[] = {EVP_PKEY_RSA, EVP_PKEY_EC, EVP_PKEY_EC};
    static const int BITS[] = {2048, 256, 384};
    return EVP_PKEY_id(key) == KINDS[certificate] && EVP_PKEY_bits(key) == BITS[certificate];
}

SSL_CTX *server_config(const struct scenario *scenario) {
    SSL_CTX *config = common_config(scenario);
    set_groups(config, scenario, "");
    if (!SSL_CTX_use_certificate_chain_file(config, scenario->chain))
        fail_stack("chain %s", scenario->chain);
    if (!SSL_CTX_use_PrivateKey_file(config, scenario->key, SSL_FILETYPE_PEM) || !SSL_CTX_check_private_key(config))
        fail_stack("key %s", scenario->key);
    if (!is_key_of(SSL_CTX_get0_privatekey(config), scenario->certificate))
        fail_scenario("key `certificate` has another value than the kind of file `%s` of key `key`", scenario->key);

    const bool stores = scenario->resumption == RESUME_ID;
    SSL_CTX_set_session_cache_mode(config, stores ? SSL_SESS_CACHE_SERVER : SSL_SESS_CACHE_OFF);
    if (!SSL_CTX_set_session_id_context(config, (const unsigned char *)"weir", 4))
        fail_stack("session id context");
    if (scenario->version == TLS_1_2 && scenario->tickets == 0)
        SSL_CTX_set_options(config, SSL_OP_NO_TICKET);
    if (scenario->version == TLS_1_3 && !SSL_CTX_set_num_tickets(config, scenario->tickets))
        fail_stack("%u tickets", (unsigned)scenario->tickets);
    /* Reading PEM files leaves end-of-file errors in the queue. */
    ERR_clear_error();
    return config;
}

static int keep_session(SSL *ssl, SSL_SESSION *session) {
    struct store *store = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    SSL_SESSION_free(store->newest);
    store->newest = session;
    store->arrived++;
    return 1;
}

static int verify_chain(X509_STORE_CTX *chain, void *argument) {
    struct span *verify = argument;
    const uint64_t began = now_ns();
    const int verified = X509_verify_cert(chain);
    verify->ns += now_ns() - began;
    verify->count++;
    return verified;
}

void store_empty(struct store *store) {
    SSL_SESSION_free(store->newest);
    store->newest = NULL;
    store->arrived = 0;
}

SSL_CTX *client_config(const struct scenario *scenario, struct store *store, struct span *verify) {
    SSL_CTX *config = common_config(scenario);
    set_groups(config, scenario, certificate_curve(scenario));
    if (!SSL_CTX_load_verify_locations(config, scenario->ca, NULL))
        fail_stack("ca %s", scenario->ca);
    SSL_CTX_set_verify(config, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(config, verify_chain, verify);

    SSL_CTX_set_session_cache_mode(config, SSL_SESS_CACHE_OFF);
    if (store != NULL) {
        SSL_CTX_set_session_cache_mode(config, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
        SSL_CTX_sess_set_new_cb(config, keep_session);
        if (!SSL_CTX_set_app_data(config, store))
            fail_stack("a client's store");
    }
    ERR_clear_error();
    return config;
}
