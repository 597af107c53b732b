#ifndef WEIR_JSON_H
#define WEIR_JSON_H

#include <stddef.h>
#include <stdint.h>

/* JSON objects, one per line of standard output: open, add keys, close. */

void json_open(const char *type);
void json_close(void);

/* NULL is written as null. */
void json_text(const char *key, const char *value);
void json_number(const char *key, uint64_t value);
void json_numbers(const char *key, const uint64_t *values, size_t count);
void json_texts(const char *key, const char *const *values, size_t count);

#endif
