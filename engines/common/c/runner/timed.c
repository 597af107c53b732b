#include "timed.h"

#include <stdbool.h>

#include "clock.h"

static _Thread_local bool measures;

/* The empty statement prevents a tail call, which would leave the function before its work is done. */

__attribute__((noinline)) void weir_engine_client(call call, void *argument) {
    call(argument);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void weir_engine_server(call call, void *argument) {
    call(argument);
    __asm__ volatile("" ::: "memory");
}

void timed_begin(void) {
    measures = true;
}

static uint64_t timed(void (*through)(call, void *), call call, void *argument) {
    const uint64_t began = now_ns();
    if (measures)
        through(call, argument);
    else
        call(argument);
    return now_ns() - began;
}

uint64_t timed_client(call call, void *argument) {
    return timed(weir_engine_client, call, argument);
}

uint64_t timed_server(call call, void *argument) {
    return timed(weir_engine_server, call, argument);
}
