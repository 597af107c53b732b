#ifndef WEIR_SCENARIO_H
#define WEIR_SCENARIO_H

#include <stdint.h>
#include <stdio.h>

/* The scenario from standard input. Words are stored as indices into their lists. */

enum task { TASK_FACTS, TASK_HANDSHAKE, TASK_TRANSFER, TASK_MEMORY, TASK_PRIMITIVE };
enum version { TLS_1_2, TLS_1_3 };
enum resumption { RESUME_NONE, RESUME_ID, RESUME_TICKET, RESUME_PSK };
enum suite { AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305 };
enum group { GROUP_X25519, GROUP_P_256, GROUP_X25519_MLKEM_768 };
enum certificate { RSA_2048, ECDSA_P_256, ECDSA_P_384 };
enum operation {
    RSA_2048_SIGN, RSA_2048_VERIFY,
    ECDSA_P_256_SIGN, ECDSA_P_256_VERIFY,
    ECDSA_P_384_SIGN, ECDSA_P_384_VERIFY,
    EXCHANGE_X25519, EXCHANGE_P_256,
    HYBRID_CLIENT, HYBRID_SERVER,
    AES_128_GCM_SEAL, AES_128_GCM_OPEN,
    AES_256_GCM_SEAL, AES_256_GCM_OPEN,
    CHACHA20_POLY1305_SEAL, CHACHA20_POLY1305_OPEN,
};

struct scenario {
    uint64_t task, version, resumption, suite, group, certificate, operation;
    const char *chain, *key, *ca;
    uint64_t tickets, cold, threads, warmup, window_ms, count;
    uint64_t record, write, bytes, sessions;
    uint64_t locks;
    char *text;  /* the whole input */
    char *lines; /* a copy that is cut into the texts above */
};

/* Reads a scenario to the end of the input; an invalid or unsupported one ends the run. */
void scenario_read(struct scenario *scenario, FILE *input);

void scenario_free(struct scenario *scenario);

/* Their words in a scenario. */
const char *suite_word(enum suite suite);
const char *group_word(enum group group);
const char *operation_word(enum operation operation);

#endif
