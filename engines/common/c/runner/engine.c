#include "engine.h"

#include <stdio.h>

#include "compat.h"
#include "json.h"
#include "locks.h"
#include "wire.h"

int engine_main(void) {
    enum { OUTPUT = 1 << 16 };
    static char output[OUTPUT];
    setvbuf(stdout, output, _IOFBF, sizeof output);

    struct scenario scenario;
    scenario_read(&scenario, stdin);
    if (scenario.locks)
        locks_enter(scenario.text);
    compat_begin();
    wires_begin();
    report_facts();
    switch (scenario.task) {
    case TASK_HANDSHAKE:
        do_handshake(&scenario);
        break;
    case TASK_TRANSFER:
        do_transfer(&scenario);
        break;
    case TASK_MEMORY:
        do_memory(&scenario);
        break;
    case TASK_PRIMITIVE:
        do_primitive(&scenario);
        break;
    default:
        break;
    }
    json_open("done");
    json_close();
    wires_end();
    scenario_free(&scenario);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
