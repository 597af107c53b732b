#include "fail.h"

#include <openssl/err.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"

enum { MESSAGE = 1024 };

/* The library's error message. */
static void add_reasons(char *message) {
    unsigned long code;
    while ((code = ERR_get_error()) != 0) {
        char reason[256];
        ERR_error_string_n(code, reason, sizeof reason);
        const size_t length = strlen(message);
        snprintf(message + length, MESSAGE - length, ": %s", reason);
    }
}

/* Other threads may still run, inside the library too: nothing is cleaned up. */
void fail(const char *fault, const char *format, ...) {
    char message[MESSAGE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (strcmp(fault, FAULT_STACK) == 0)
        add_reasons(message);

    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    json_open("error");
    json_text("fault", fault);
    json_text("message", message);
    json_close();
    fflush(stdout);
    _exit(1);
}

void *must_allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL)
        fail_runner("no memory for %zu times %zu bytes", count, size);
    return memory;
}
