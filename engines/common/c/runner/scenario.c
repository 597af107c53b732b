#include "scenario.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fail.h"

static const char *const TASKS[] = {"facts", "handshake", "transfer", "memory", "primitive", NULL};
static const char *const VERSIONS[] = {"1.2", "1.3", NULL};
static const char *const RESUMPTIONS[] = {"none", "id", "ticket", "psk", NULL};
static const char *const SUITES[] = {"aes128-gcm", "aes256-gcm", "chacha20-poly1305", NULL};
static const char *const GROUPS[] = {"x25519", "p256", "x25519mlkem768", NULL};
static const char *const CERTIFICATES[] = {"rsa-2048", "ecdsa-p256", "ecdsa-p384", NULL};
static const char *const CONFIGS[] = {"warm", "cold", NULL};
static const char *const LOCKS[] = {"time", NULL};
static const char *const OPERATIONS[] = {
    "rsa-2048-sign", "rsa-2048-verify",
    "ecdsa-p256-sign", "ecdsa-p256-verify",
    "ecdsa-p384-sign", "ecdsa-p384-verify",
    "x25519", "p256",
    "x25519mlkem768-client", "x25519mlkem768-server",
    "aes128-gcm-seal", "aes128-gcm-open",
    "aes256-gcm-seal", "aes256-gcm-open",
    "chacha20-poly1305-seal", "chacha20-poly1305-open",
    NULL,
};

enum {
    FACTS = 1 << TASK_FACTS,
    HANDSHAKE = 1 << TASK_HANDSHAKE,
    TRANSFER = 1 << TASK_TRANSFER,
    MEMORY = 1 << TASK_MEMORY,
    PRIMITIVE = 1 << TASK_PRIMITIVE,
    CONNECTS = HANDSHAKE | TRANSFER | MEMORY,
    MEASURES = HANDSHAKE | TRANSFER | PRIMITIVE,
};

/* A scenario key: one of some words, a number in a range, or text. */
struct key {
    const char *name;
    size_t field;
    int tasks, required;
    const char *const *words;
    uint64_t least, most;
};

#define IN(field) offsetof(struct scenario, field)

static const struct key KEYS[] = {
    {"do", IN(task), FACTS | CONNECTS | PRIMITIVE, FACTS | CONNECTS | PRIMITIVE, TASKS, 0, 0},
    {"version", IN(version), CONNECTS, CONNECTS, VERSIONS, 0, 0},
    {"resumption", IN(resumption), HANDSHAKE, 0, RESUMPTIONS, 0, 0},
    {"suite", IN(suite), CONNECTS, CONNECTS, SUITES, 0, 0},
    {"group", IN(group), CONNECTS, CONNECTS, GROUPS, 0, 0},
    {"certificate", IN(certificate), CONNECTS, CONNECTS, CERTIFICATES, 0, 0},
    {"chain", IN(chain), CONNECTS, CONNECTS, NULL, 0, 0},
    {"key", IN(key), CONNECTS | PRIMITIVE, CONNECTS, NULL, 0, 0},
    {"ca", IN(ca), CONNECTS, CONNECTS, NULL, 0, 0},
    {"tickets", IN(tickets), HANDSHAKE, 0, NULL, 0, 4},
    {"config", IN(cold), HANDSHAKE, 0, CONFIGS, 0, 0},
    {"threads", IN(threads), MEASURES, 0, NULL, 1, 1024},
    {"warmup", IN(warmup), MEASURES, 0, NULL, 0, 1000000000},
    {"window_ms", IN(window_ms), MEASURES, 0, NULL, 1, 3600000},
    {"count", IN(count), MEASURES, 0, NULL, 1, 1000000000},
    {"record", IN(record), TRANSFER | PRIMITIVE, TRANSFER, NULL, 1, 16384},
    {"write", IN(write), TRANSFER, TRANSFER, NULL, 1, 1 << 30},
    {"bytes", IN(bytes), TRANSFER, TRANSFER, NULL, 1, 1 << 30},
    {"sessions", IN(sessions), MEMORY, MEMORY, NULL, 2, 1000000},
    {"operation", IN(operation), PRIMITIVE, PRIMITIVE, OPERATIONS, 0, 0},
    {"locks", IN(locks), HANDSHAKE, 0, LOCKS, 0, 0},
};
enum { KEY_COUNT = sizeof KEYS / sizeof KEYS[0] };

void scenario_free(struct scenario *scenario) {
    free(scenario->lines);
    free(scenario->text);
}

const char *suite_word(enum suite suite) {
    return SUITES[suite];
}

const char *group_word(enum group group) {
    return GROUPS[group];
}

const char *operation_word(enum operation operation) {
    return OPERATIONS[operation];
}

static char *read_all(FILE *input) {
    enum { MOST = 1 << 20 };
    char *text = must_allocate(MOST + 1, 1);
    size_t length = fread(text, 1, MOST, input);
    if (ferror(input))
        fail_runner("the scenario cannot be read: %s", strerror(errno));
    if (length == MOST)
        fail_scenario("the scenario is longer than %d bytes", MOST - 1);
    if (strlen(text) != length)
        fail_scenario("the scenario contains a zero byte: expected UTF-8 lines of a key, one space and a value");
    return text;
}

/* Writes the expected values of a key as text. */
static void describe(const struct key *key, char *out, size_t room) {
    size_t at = 0;
    if (key->words == NULL && key->most == 0)
        snprintf(out, room, "the path of a file");
    else if (key->words == NULL)
        snprintf(out, room, "a number from %" PRIu64 " to %" PRIu64, key->least, key->most);
    else
        for (size_t i = 0; key->words[i] != NULL && at < room; i++)
            at += (size_t)snprintf(out + at, room - at, "%s%s", i == 0 ? "" : ", ", key->words[i]);
}

/* The same for the keys of these tasks. */
static void describe_keys(int tasks, char *out, size_t room) {
    size_t at = 0;
    for (size_t i = 0; i < KEY_COUNT && at < room; i++)
        if (KEYS[i].tasks & tasks)
            at += (size_t)snprintf(out + at, room - at, "%s%s", at == 0 ? "" : ", ", KEYS[i].name);
}

static void read_value(struct scenario *scenario, const struct key *key, const char *value) {
    char *field = (char *)scenario + key->field;
    if (key->words != NULL) {
        for (uint64_t i = 0; key->words[i] != NULL; i++) {
            if (strcmp(key->words[i], value) == 0) {
                *(uint64_t *)field = i;
                return;
            }
        }
    } else if (key->most != 0) {
        char *end;
        errno = 0;
        unsigned long long number = strtoull(value, &end, 10);
        /* strtoull takes signs and blanks, and wraps negative numbers. */
        bool plain = value[0] >= '0' && value[0] <= '9' && *end == '\0' && errno == 0;
        if (plain && number >= key->least && number <= key->most) {
            *(uint64_t *)field = number;
            return;
        }
    } else {
        if (access(value, R_OK) != 0)
            fail_scenario("key `%s` has the value `%s`, which cannot be read: %s: expected the path of a file",
                          key->name, value, strerror(errno));
        *(const char **)field = value;
        return;
    }
    char expected[512];
    describe(key, expected, sizeof expected);
    fail_scenario("key `%s` has the value `%s`: expected %s", key->name, value, expected);
}

static void read_line(struct scenario *scenario, bool *given, char *line, size_t number) {
    char *space = strchr(line, ' ');
    if (space == NULL)
        fail_scenario("line %zu, `%s`, is not a key, one space and a value", number, line);
    *space = '\0';
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (strcmp(KEYS[i].name, line) != 0)
            continue;
        if (given[i])
            fail_scenario("duplicate key `%s`, the second time with the value `%s`: expected once", line,
                          space + 1);
        given[i] = true;
        read_value(scenario, &KEYS[i], space + 1);
        return;
    }
    char expected[512];
    describe_keys(FACTS | CONNECTS | PRIMITIVE, expected, sizeof expected);
    fail_scenario("unknown key `%s` with the value `%s`: expected one of %s", line, space + 1, expected);
}

static bool is_given(const bool *given, const char *name) {
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (strcmp(KEYS[i].name, name) == 0)
            return given[i];
    return false;
}

/* Defaults: one thread, no warm-up, warm configurations, and as few tickets as the resumption needs. */
static void set_defaults(struct scenario *scenario, const bool *given) {
    if (!is_given(given, "threads"))
        scenario->threads = 1;
    if (!is_given(given, "tickets"))
        scenario->tickets = scenario->resumption == RESUME_TICKET || scenario->resumption == RESUME_PSK;
    scenario->locks = is_given(given, "locks");
}

static void check_keys(const struct scenario *scenario, const bool *given) {
    const int task = 1 << scenario->task;
    if (!is_given(given, "do"))
        fail_scenario("missing key `do`: expected one of facts, handshake, transfer, memory, primitive");
    for (size_t i = 0; i < KEY_COUNT; i++) {
        char expected[512];
        if (given[i] && !(KEYS[i].tasks & task)) {
            describe_keys(task, expected, sizeof expected);
            fail_scenario("key `%s` does not apply to `do %s`: expected one of %s", KEYS[i].name, TASKS[scenario->task], expected);
        }
        if (!given[i] && (KEYS[i].required & task)) {
            describe(&KEYS[i], expected, sizeof expected);
            fail_scenario("missing key `%s`: expected %s", KEYS[i].name, expected);
        }
    }
    if ((task & MEASURES) && is_given(given, "window_ms") == is_given(given, "count"))
        fail_scenario("keys `window_ms` and `count`: expected exactly one of them");
}

static void check_resumption(const struct scenario *scenario) {
    const char *const word = RESUMPTIONS[scenario->resumption];
    const bool old = scenario->resumption == RESUME_ID || scenario->resumption == RESUME_TICKET;
    if (old && scenario->version != TLS_1_2)
        fail_scenario("key `resumption` has the value `%s`, which is of TLS 1.2: with 1.3 expected none, psk", word);
    if (scenario->resumption == RESUME_PSK && scenario->version != TLS_1_3)
        fail_scenario("key `resumption` has the value `psk`, which is of TLS 1.3: with 1.2 expected none, id, ticket");
    if (scenario->resumption != RESUME_NONE && scenario->cold)
        fail_scenario("key `config` has the value `cold`: a new configuration has no session: with "
                      "`resumption %s` expected warm", word);
    if (scenario->version == TLS_1_2 && scenario->tickets > 1)
        fail_scenario("key `tickets` has the value `%" PRIu64 "`: with 1.2 expected 0, 1", scenario->tickets);
    if (scenario->resumption == RESUME_ID && scenario->tickets != 0)
        fail_scenario("key `tickets` has the value `%" PRIu64 "`: with `resumption id` expected 0", scenario->tickets);
    const bool needs_ticket = scenario->resumption == RESUME_TICKET || scenario->resumption == RESUME_PSK;
    if (needs_ticket && scenario->tickets == 0)
        fail_scenario("key `tickets` has the value `0`: with `resumption %s` expected at least 1", word);
    if (scenario->locks && scenario->resumption == RESUME_NONE)
        fail_scenario("key `locks` has the value `time`: `resumption none` uses no shared state: expected with "
                      "id, ticket, psk");
}

static void check_values(const struct scenario *scenario, const bool *given) {
    const int task = 1 << scenario->task;
    if ((task & CONNECTS) && scenario->version == TLS_1_2 && scenario->group == GROUP_X25519_MLKEM_768)
        fail_scenario("key `group` has the value `x25519mlkem768`, which is of TLS 1.3: with 1.2 expected x25519, "
                      "p256");
    if (task & HANDSHAKE)
        check_resumption(scenario);
    if ((task & TRANSFER) && scenario->record < 512)
        fail_scenario("key `record` has the value `%" PRIu64 "`: for `do transfer` expected a number from 512 to 16384",
                      scenario->record);
    if ((task & MEMORY) && scenario->sessions % 2 != 0)
        fail_scenario("key `sessions` has the value `%" PRIu64 "`: expected an even number, half of them clients",
                      scenario->sessions);
    if (task & PRIMITIVE) {
        const char *const word = OPERATIONS[scenario->operation];
        const bool seals = scenario->operation >= AES_128_GCM_SEAL;
        if (seals != is_given(given, "record"))
            fail_scenario("key `record` is %s for `operation %s`: expected only with operations that seal and open",
                          seals ? "missing" : "not", word);
        if (scenario->operation <= ECDSA_P_384_VERIFY && !is_given(given, "key"))
            fail_scenario("missing key `key`: for `operation %s` expected the path of a file", word);
    }
}

void scenario_read(struct scenario *scenario, FILE *input) {
    bool given[KEY_COUNT] = {false};
    memset(scenario, 0, sizeof *scenario);
    scenario->text = read_all(input);
    scenario->lines = strdup(scenario->text);
    if (scenario->lines == NULL)
        fail_runner("no memory for the scenario");

    char *line = scenario->lines;
    for (size_t number = 1; *line != '\0'; number++) {
        char *rest = line + strcspn(line, "\n");
        if (*rest != '\0')
            *rest++ = '\0';
        read_line(scenario, given, line, number);
        line = rest;
    }
    check_keys(scenario, given);
    set_defaults(scenario, given);
    check_values(scenario, given);
}
