#include "json.h"

#include <inttypes.h>
#include <stdio.h>

static void put_text(const char *text) {
    putchar('"');
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        /* Escape bytes above ASCII, so that the line is valid whatever a path contains. */
        if (byte < 0x20 || byte > 0x7e)
            printf("\\u%04x", byte);
        else if (byte == '"' || byte == '\\')
            printf("\\%c", byte);
        else
            putchar(byte);
    }
    putchar('"');
}

static void put_key(const char *key) {
    putchar(',');
    put_text(key);
    putchar(':');
}

void json_open(const char *type) {
    fputs("{\"type\":", stdout);
    put_text(type);
}

void json_close(void) {
    fputs("}\n", stdout);
}

void json_text(const char *key, const char *value) {
    put_key(key);
    if (value == NULL)
        fputs("null", stdout);
    else
        put_text(value);
}

void json_number(const char *key, uint64_t value) {
    put_key(key);
    printf("%" PRIu64, value);
}

void json_numbers(const char *key, const uint64_t *values, size_t count) {
    put_key(key);
    for (size_t i = 0; i < count; i++)
        printf("%s%" PRIu64, i == 0 ? "[" : ",", values[i]);
    fputs(count == 0 ? "[]" : "]", stdout);
}

void json_texts(const char *key, const char *const *values, size_t count) {
    put_key(key);
    putchar('[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            putchar(',');
        put_text(values[i]);
    }
    putchar(']');
}
