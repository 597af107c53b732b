#ifndef WEIR_EXCHANGE_H
#define WEIR_EXCHANGE_H

#include "scenario.h"

/* One end's part of a key exchange, by the calls that the library's own TLS makes: what the other end sent is bytes
   that are decoded each time. */
struct exchange;

/* NULL where the library has no such group. */
struct exchange *exchange_new(enum operation operation);
void exchange_run(void *exchange);
void exchange_free(void *exchange);

#endif
