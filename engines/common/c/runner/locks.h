#ifndef WEIR_LOCKS_H
#define WEIR_LOCKS_H

#include <openssl/ssl.h>
#include <stdint.h>

#include "scenario.h"

/* The lock in a server's configuration that guards its session store, and in some libraries its ticket keys: how often
   it was taken, and how long it was held.

   The libraries do not expose it, so calls to the threads library are intercepted (lock_watch.c). That makes each lock
   slightly slower, so it is in a separate program, `engine-locks`, next to the engine. */

struct lock_use {
    uint64_t operations, held_ns;
};

/* Returns if this program watches locks; otherwise runs the one that does, with the same scenario. */
void locks_enter(const char *scenario);

/* Watches the lock of this configuration from now on. Ends the run if the lock guards no shared state. */
void locks_watch(SSL_CTX *server, enum resumption resumption);

/* The calling thread's use since `locks_begin`. */
void locks_begin(void);
struct lock_use locks_used(void);

void locks_report(const struct lock_use *use, enum resumption resumption);

/* In lock_watch.c, both NULL in a program that does not watch locks. The first returns the calling thread's use of the
   watched lock; the second starts watching the lock that the calling thread last took for writing. */
__attribute__((weak)) struct lock_use *lock_watch_use(void);
__attribute__((weak)) void lock_watch_last(void);

#endif
