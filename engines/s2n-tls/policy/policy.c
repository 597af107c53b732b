/* A security policy of one suite, group and signature. s2n-tls offers only named policies, each with several of all;
   its own benchmarks and tests fill its structures as this file does. */

#include <stdbool.h>
#include <stdint.h>

#include "tls/s2n_cipher_preferences.h"
#include "tls/s2n_cipher_suites.h"
#include "tls/s2n_ecc_preferences.h"
#include "tls/s2n_kem_preferences.h"
#include "tls/s2n_security_policies.h"
#include "tls/s2n_signature_scheme.h"

/* In no header. */
int s2n_config_set_security_policy(struct s2n_config *config, const struct s2n_security_policy *policy);

enum { TLS_1_3_SUITES = 0x13, X25519_ML_KEM_768 = 0x11ec };

static struct s2n_cipher_suite *suites[1];
static const struct s2n_signature_scheme *schemes[1];
static const struct s2n_ecc_named_curve *curves[2];
static const struct s2n_kem_group *hybrids[1] = {&s2n_x25519_mlkem_768};

static struct s2n_cipher_preferences suite_preference = {.count = 1, .suites = suites};
static const struct s2n_signature_preferences scheme_preference = {.count = 1, .signature_schemes = schemes};
static struct s2n_ecc_preferences curve_preferences[2] = {{.ecc_curves = curves}, {.ecc_curves = curves}};
static const struct s2n_kem_preferences no_hybrid = {.kem_count = 0};
static const struct s2n_kem_preferences hybrid = {.tls13_kem_group_count = 1, .tls13_kem_groups = hybrids};
static struct s2n_security_policy policies[2];

static bool find_suite(uint16_t suite) {
    const struct s2n_cipher_preferences *all = &cipher_preferences_test_all;
    for (int i = 0; i < all->count; i++) {
        const uint8_t *number = all->suites[i]->iana_value;
        if ((number[0] << 8 | number[1]) == suite)
            suites[0] = all->suites[i];
    }
    return suites[0] != NULL;
}

static bool find_scheme(uint16_t scheme) {
    const struct s2n_signature_preferences *all = &s2n_signature_preferences_all;
    for (int i = 0; i < all->count; i++)
        if (all->signature_schemes[i]->iana_value == scheme)
            schemes[0] = all->signature_schemes[i];
    return schemes[0] != NULL;
}

static const struct s2n_ecc_named_curve *find_curve(uint16_t number) {
    const struct s2n_ecc_named_curve *all[] = {
        &s2n_ecc_curve_x25519, &s2n_ecc_curve_secp256r1, &s2n_ecc_curve_secp384r1,
    };
    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]->iana_id == number)
            return all[i];
    return NULL;
}

/* Call once, after s2n_init. `certificate_curve` is an additional curve offered by a client, or 0. */
bool weir_s2n_choose(uint16_t suite, uint16_t group, uint16_t certificate_curve, uint16_t scheme);
bool weir_s2n_choose(uint16_t suite, uint16_t group, uint16_t certificate_curve, uint16_t scheme) {
    if (!find_suite(suite) || !find_scheme(scheme))
        return false;
    const bool pure = group != X25519_ML_KEM_768;
    curves[0] = pure ? find_curve(group) : NULL;
    curves[1] = find_curve(certificate_curve);
    if (pure && curves[0] == NULL)
        return false;
    for (int client = 0; client < 2; client++) {
        curve_preferences[client].count = (uint8_t)(pure + (client && curves[1] != NULL));
        policies[client] = (struct s2n_security_policy){
            .minimum_protocol_version = suite >> 8 == TLS_1_3_SUITES ? S2N_TLS13 : S2N_TLS12,
            .cipher_preferences = &suite_preference,
            .kem_preferences = pure ? &no_hybrid : &hybrid,
            .signature_preferences = &scheme_preference,
            .ecc_preferences = &curve_preferences[client],
        };
    }
    return true;
}

int weir_s2n_apply(struct s2n_config *config, bool client);
int weir_s2n_apply(struct s2n_config *config, bool client) {
    return s2n_config_set_security_policy(config, &policies[client]);
}
