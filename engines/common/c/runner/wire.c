#include "wire.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

static BIO_METHOD *method;

void wire_reserve(struct wire *wire, size_t room) {
    if (room <= wire->room)
        return;
    unsigned char *bytes = realloc(wire->bytes, room);
    if (bytes == NULL)
        fail_runner("no memory for %zu bytes on the wire", room);
    memset(bytes + wire->room, 0xff, room - wire->room);
    wire->bytes = bytes;
    wire->room = room;
}

void wire_free(struct wire *wire) {
    free(wire->bytes);
    memset(wire, 0, sizeof *wire);
}

bool wire_hello_retry(const struct wire *wire) {
    /* The random of a ServerHello that is a HelloRetryRequest: SHA-256 of that name (RFC 8446, 4.1.3). */
    static const unsigned char RANDOM[32] = {
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
        0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
    };
    enum { RECORD_HEADER = 5, MESSAGE_HEADER = 4, VERSION = 2, HANDSHAKE = 22, SERVER_HELLO = 2 };
    const size_t at = RECORD_HEADER + MESSAGE_HEADER + VERSION;
    const unsigned char *bytes = wire->bytes + wire->read;
    return wire->written - wire->read >= at + sizeof RANDOM && bytes[0] == HANDSHAKE &&
           bytes[RECORD_HEADER] == SERVER_HELLO && memcmp(bytes + at, RANDOM, sizeof RANDOM) == 0;
}

static int wires_write(BIO *bio, const char *bytes, int length) {
    struct wire *wire = ((struct wires *)BIO_get_data(bio))->out;
    BIO_clear_retry_flags(bio);
    if (length <= 0)
        return 0;
    const size_t needed = wire->written + (size_t)length;
    if (needed > wire->room)
        wire_reserve(wire, needed > 2 * wire->room ? needed : 2 * wire->room);
    memcpy(wire->bytes + wire->written, bytes, (size_t)length);
    wire->written = needed;
    return length;
}

static int wires_read(BIO *bio, char *bytes, int length) {
    struct wire *wire = ((struct wires *)BIO_get_data(bio))->in;
    BIO_clear_retry_flags(bio);
    if (length <= 0)
        return 0;
    if (!wire_pending(wire)) {
        BIO_set_retry_read(bio);
        return -1;
    }
    size_t some = wire->written - wire->read;
    if (some > (size_t)length)
        some = (size_t)length;
    memcpy(bytes, wire->bytes + wire->read, some);
    wire->read += some;
    if (!wire_pending(wire))
        wire->read = wire->written = 0;
    return (int)some;
}

/* Flushing is a no-op; other controls are unsupported. */
static long wires_control(BIO *bio, int command, long number, void *argument) {
    (void)bio, (void)number, (void)argument;
    return command == BIO_CTRL_FLUSH;
}

static int wires_create(BIO *bio) {
    BIO_set_init(bio, 1);
    return 1;
}

BIO *wires_bio(struct wires *wires) {
    BIO *bio = BIO_new(method);
    if (bio == NULL)
        fail_stack("BIO_new");
    BIO_set_data(bio, wires);
    return bio;
}

void wires_begin(void) {
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wires");
    if (method == NULL || !BIO_meth_set_write(method, wires_write) || !BIO_meth_set_read(method, wires_read) ||
        !BIO_meth_set_ctrl(method, wires_control) || !BIO_meth_set_create(method, wires_create))
        fail_stack("BIO_meth_new");
}

void wires_end(void) {
    BIO_meth_free(method);
}
