#ifndef WEIR_LOCK_WATCH_H
#define WEIR_LOCK_WATCH_H

#include "locks.h"

/* Both are NULL in a program that does not watch locks. */

/* The calling thread's use of the lock that is watched. */
__attribute__((weak)) struct lock_use *lock_watch_use(void);

/* Watches the lock that the calling thread took last for writing. */
__attribute__((weak)) void lock_watch_last(void);

#endif
