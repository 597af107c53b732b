#ifndef WEIR_WIRE_H
#define WEIR_WIRE_H

#include <openssl/bio.h>
#include <stdbool.h>
#include <stddef.h>

/* Bytes in transit between the sides, and a BIO that writes to one wire and reads from another.

   The libraries' own memory BIOs are not used: some move all remaining bytes at each read, which makes reading a
   megabyte in records quadratic, and bytes would have to be copied between two of them. Here one side reads where the
   other wrote. */
struct wire {
    unsigned char *bytes;
    size_t read, written, room;
};

/* Allocates and touches this many bytes, so that page faults are not measured. */
void wire_reserve(struct wire *wire, size_t room);
void wire_free(struct wire *wire);

static inline bool wire_pending(const struct wire *wire) {
    return wire->read < wire->written;
}

/* Whether what is pending begins with a HelloRetryRequest, which is sent in cleartext. */
bool wire_hello_retry(const struct wire *wire);

struct wires {
    struct wire *in, *out;
};

/* A BIO over `wires`, which must outlive it. */
BIO *wires_bio(struct wires *wires);

/* Call once, before the first BIO is created. */
void wires_begin(void);
void wires_end(void);

#endif
