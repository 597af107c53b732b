#ifndef WEIR_LOCKS_H
#define WEIR_LOCKS_H

#include <openssl/ssl.h>
#include <stdint.h>

#include "scenario.h"

/* The lock in a server's configuration that guards its session store, and in some libraries its ticket keys: how often
   it was taken, and how long it was held.

   The libraries lend no hand, so the calls of the threads library are watched on their way (lock_watch.c). That costs
   each lock a little, so it is in a program of its own, `engine-locks`, which lies beside the engine. */

struct lock_use {
    uint64_t operations, held_ns;
};

/* Returns if this program watches locks; else runs the one that does, with the same scenario. */
void locks_enter(const char *scenario);

/* From now on the lock of this configuration is watched. Ends the run if nothing that is shared is behind it. */
void locks_watch(SSL_CTX *server, enum resumption resumption);

/* The calling thread's use since `locks_begin`. */
void locks_begin(void);
struct lock_use locks_used(void);

void locks_report(const struct lock_use *use, enum resumption resumption);

/* Of lock_watch.c, both NULL in a program that does not watch locks: the calling thread's use of the lock that is
   watched; and has the lock watched that the calling thread took last for writing. */
__attribute__((weak)) struct lock_use *lock_watch_use(void);
__attribute__((weak)) void lock_watch_last(void);

#endif
