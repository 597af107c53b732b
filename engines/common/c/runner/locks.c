#include "locks.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "compat.h"
#include "fail.h"
#include "json.h"

void locks_enter(const char *scenario) {
    if (lock_watch_use != NULL)
        return;
    char program[PATH_MAX];
    const char suffix[] = "-locks";
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - sizeof suffix);
    if (length < 0)
        fail_runner("/proc/self/exe cannot be read: %s", strerror(errno));
    memcpy(program + length, suffix, sizeof suffix);

    const int input = memfd_create("scenario", 0);
    const size_t left = strlen(scenario);
    if (input < 0 || write(input, scenario, left) != (ssize_t)left || lseek(input, 0, SEEK_SET) != 0 ||
        dup2(input, STDIN_FILENO) < 0)
        fail_runner("the scenario cannot be handed on: %s", strerror(errno));
    execl(program, program, (char *)NULL);
    fail_runner("cannot run %s: %s", program, strerror(errno));
}

void locks_watch(SSL_CTX *server, enum resumption resumption) {
    if (resumption != RESUME_ID && !compat_ticket_keys_locked())
        fail_scenario("key `locks` has the value `time`, which cannot be timed: this library's own ticket keys are "
                      "not behind a lock: expected with id");
    /* Flushing expired sessions takes the lock: it is the last one taken for writing. */
    SSL_CTX_flush_sessions(server, time(NULL));
    lock_watch_last();
}

void locks_begin(void) {
    if (lock_watch_use != NULL)
        *lock_watch_use() = (struct lock_use){0, 0};
}

struct lock_use locks_used(void) {
    return lock_watch_use == NULL ? (struct lock_use){0, 0} : *lock_watch_use();
}

void locks_report(const struct lock_use *use, enum resumption resumption) {
    json_open("lock");
    json_text("name", resumption == RESUME_ID ? "session-store" : "ticket-keys");
    json_number("operations", use->operations);
    json_number("held_ns", use->held_ns);
    json_close();
}
