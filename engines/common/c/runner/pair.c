#include "pair.h"

#include <openssl/x509v3.h>
#include <string.h>

#include "clock.h"
#include "compat.h"
#include "fail.h"
#include "timed.h"

enum { WIRE = 32 * 1024 };

void peer_check(struct peer *peer, int result, const char *doing) {
    if (result > 0)
        return;
    const int error = SSL_get_error(peer->ssl, result);
    if (error == SSL_ERROR_WANT_READ)
        return;
    const char *const side = peer->server ? "server" : "client";
    const long verified = SSL_get_verify_result(peer->ssl);
    if (verified != X509_V_OK)
        fail_stack("%s, %s, error %d, %s", side, doing, error, X509_verify_cert_error_string(verified));
    fail_stack("%s, %s, error %d", side, doing, error);
}

static void make(struct peer *peer) {
    const uint64_t began = now_ns();
    peer->ssl = SSL_new(peer->config);
    if (peer->ssl == NULL)
        fail_stack("SSL_new");
    BIO *bio = wires_bio(&peer->wires);
    SSL_set_bio(peer->ssl, bio, bio);
    if (peer->server) {
        SSL_set_accept_state(peer->ssl);
    } else {
        SSL_set_connect_state(peer->ssl);
        if (!SSL_set_tlsext_host_name(peer->ssl, "localhost") || !SSL_set1_host(peer->ssl, "localhost"))
            fail_stack("the server's name");
        if (peer->resume != NULL && !SSL_set_session(peer->ssl, peer->resume))
            fail_stack("SSL_set_session");
    }
    peer->session->ns += now_ns() - began;
    peer->session->count++;
}

static void send_tickets(struct peer *peer) {
    const unsigned sent = SSL_session_reused(peer->ssl) ? compat_tickets_when_resumed(peer->tickets) : peer->tickets;
    peer_check(peer, compat_send_tickets(peer->ssl, peer->tickets - sent), "sending tickets");
}

/* Processes the available bytes of one side; never waits. */
static void step(void *argument) {
    struct peer *peer = argument;
    if (peer->ssl == NULL)
        make(peer);
    if (!peer->finished) {
        const int result = SSL_do_handshake(peer->ssl);
        peer_check(peer, result, "handshake");
        peer->finished = result > 0;
        if (peer->finished && peer->server && peer->tickets > 0)
            send_tickets(peer);
    }
    /* Reading processes what follows the handshake: a client's tickets. */
    if (peer->finished && wire_pending(peer->wires.in)) {
        unsigned char byte;
        const int result = SSL_read(peer->ssl, &byte, 1);
        peer_check(peer, result, "reading after the handshake");
        if (result > 0)
            fail_stack("%s: unexpected application data", peer->server ? "server" : "client");
    }
}

/* A connection dropped without close_notify loses its session, so both sides are marked as having sent it:
   the cost of a close is not part of a handshake. */
static void drop(void *argument) {
    struct peer *peer = argument;
    SSL_set_shutdown(peer->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(peer->ssl);
    peer->ssl = NULL;
    peer->finished = false;
}

void pair_begin(struct pair *pair, const struct scenario *scenario, struct span sessions[2]) {
    memset(pair, 0, sizeof *pair);
    wire_reserve(&pair->to_client, WIRE);
    wire_reserve(&pair->to_server, WIRE);
    pair->client.wires = (struct wires){&pair->to_client, &pair->to_server};
    pair->server.wires = (struct wires){&pair->to_server, &pair->to_client};
    pair->server.server = true;
    pair->server.tickets = scenario->version == TLS_1_3 ? (unsigned)scenario->tickets : 0;
    pair->client.session = &sessions[0];
    pair->server.session = &sessions[1];
}

void pair_connect(struct pair *pair, struct times *times) {
    pair->retried = false;
    times->client += timed_client(step, &pair->client);
    while (wire_pending(&pair->to_server) || wire_pending(&pair->to_client)) {
        if (wire_pending(&pair->to_server))
            times->server += timed_server(step, &pair->server);
        if (wire_hello_retry(&pair->to_client))
            pair->retried = true;
        if (wire_pending(&pair->to_client))
            times->client += timed_client(step, &pair->client);
    }
    if (!pair->client.finished || !pair->server.finished)
        fail_stack("the handshake stopped before its end on the %s's side",
                   pair->client.finished ? "server" : "client");
}

void pair_drop(struct pair *pair, struct times *times) {
    times->client += timed_client(drop, &pair->client);
    times->server += timed_server(drop, &pair->server);
}

void pair_end(struct pair *pair) {
    wire_free(&pair->to_client);
    wire_free(&pair->to_server);
}

