#ifndef WEIR_SEALING_H
#define WEIR_SEALING_H

#include "scenario.h"

/* Sealing and opening one record's message, again and again. */
struct sealing;

struct sealing *sealing_new(const struct scenario *scenario);
void sealing_seal(void *sealing);
void sealing_open(void *sealing);
void sealing_free(void *sealing);

#endif
