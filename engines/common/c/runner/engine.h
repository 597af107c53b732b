#ifndef WEIR_ENGINE_H
#define WEIR_ENGINE_H

/* Runs the scenario on standard input; returns the status to end with. */
int engine_main(void);

#endif
