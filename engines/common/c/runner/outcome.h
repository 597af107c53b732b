#ifndef WEIR_OUTCOME_H
#define WEIR_OUTCOME_H

#include "pair.h"

/* Outcomes of handshakes, per side. */
struct outcome {
    uint16_t version, suite, group, signature; /* registered numbers; 0 if unknown */
    bool resumed, retried;
};

enum { OUTCOMES = 16 };

struct tally {
    struct outcome outcomes[OUTCOMES];
    uint64_t counts[OUTCOMES];
    size_t kinds;
};

struct outcome outcome_of(const struct pair *pair, const struct peer *peer);
void tally_add(struct tally *tally, const struct outcome *outcome, uint64_t count);

/* Writes a `negotiated` line for each outcome. */
void tally_report(const struct tally *tally, const char *side);

#endif
