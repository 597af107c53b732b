#include "timed.h"

#include "clock.h"

/* The empty statement keeps the call from becoming a jump: the function would be left before its work is done. */

__attribute__((noinline)) void weir_engine_client(call call, void *argument) {
    call(argument);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void weir_engine_server(call call, void *argument) {
    call(argument);
    __asm__ volatile("" ::: "memory");
}

uint64_t timed_client(call call, void *argument) {
    const uint64_t began = now_ns();
    weir_engine_client(call, argument);
    return now_ns() - began;
}

uint64_t timed_server(call call, void *argument) {
    const uint64_t began = now_ns();
    weir_engine_server(call, argument);
    return now_ns() - began;
}
