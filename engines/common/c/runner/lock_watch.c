/* Interposes on the threads library's reader-writer locks, and watches one of them.

   The program's functions take precedence over the C library's, whether the TLS library is static or shared. The time a
   lock is held includes one reading of the clock, some tens of nanoseconds. */

#include "locks.h"

#include <dlfcn.h>
#include <pthread.h>

#include "clock.h"

typedef int (*lock_call)(pthread_rwlock_t *lock);

static pthread_rwlock_t *watched;
static _Thread_local pthread_rwlock_t *last;
static _Thread_local struct lock_use use;
static _Thread_local uint64_t since;

struct lock_use *lock_watch_use(void) {
    return &use;
}

void lock_watch_last(void) {
    watched = last;
}

/* The C library's function of this name. */
static lock_call find(lock_call *known, const char *name) {
    lock_call found = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (found == NULL) {
        *(void **)&found = dlsym(RTLD_NEXT, name);
        __atomic_store_n(known, found, __ATOMIC_RELAXED);
    }
    return found;
}

static void taken(pthread_rwlock_t *lock) {
    if (lock == watched)
        since = now_ns();
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    static lock_call known;
    const int result = find(&known, "pthread_rwlock_rdlock")(lock);
    taken(lock);
    return result;
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    static lock_call known;
    const int result = find(&known, "pthread_rwlock_wrlock")(lock);
    last = lock;
    taken(lock);
    return result;
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    static lock_call known;
    const lock_call real = find(&known, "pthread_rwlock_unlock");
    if (lock == watched) {
        use.held_ns += now_ns() - since;
        use.operations++;
    }
    return real(lock);
}
