package main

import "crypto/tls"

// pair is two sides, reconnected repeatedly with the same coroutines and buffers.
type pair struct {
	client, server     *side
	toClient, toServer buffer
}

// connection is the state after a handshake.
type connection struct {
	client, server *tls.Conn
}

func newPair() *pair {
	return &pair{client: newSide(), server: newSide()}
}

// connect opens a connection and runs it until neither side has anything left to send.
func (p *pair) connect(client, server *tls.Config) (*connection, error) {
	p.toClient.clear()
	p.toServer.clear()
	c := &connection{}
	p.client.begin(func() error {
		c.client = tls.Client(&line{p.client, &p.toClient, &p.toServer}, client)
		return c.client.Handshake()
	})
	p.server.begin(func() error {
		c.server = tls.Server(&line{p.server, &p.toServer, &p.toClient}, server)
		return c.server.Handshake()
	})
	if err := p.exchange(); err != nil {
		return nil, err
	}
	// Process the tickets after the handshake, which may already be in the connection's own buffer.
	if err := settle(p.client, c.client); err != nil {
		return nil, err
	}
	if !p.toServer.empty() {
		if err := settle(p.server, c.server); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// exchange runs both sides in turns until both are done.
func (p *pair) exchange() error {
	clientEnded, serverEnded := false, false
	for turn := 0; !clientEnded || !serverEnded; turn++ {
		if turn > 0 && (clientEnded || p.toClient.empty()) && (serverEnded || p.toServer.empty()) {
			return broken("an end waits for bytes that the other does not send")
		}
		if !clientEnded {
			if clientEnded = p.client.run(); clientEnded && p.client.err != nil {
				return p.client.err
			}
		}
		if !serverEnded {
			if serverEnded = p.server.run(); serverEnded && p.server.err != nil {
				return p.server.err
			}
		}
	}
	return nil
}

// settle lets a side read its input, which contains no application data.
func settle(s *side, conn *tls.Conn) error {
	s.begin(func() error {
		var none [1]byte
		_, err := conn.Read(none[:])
		return err
	})
	s.patient = false
	if s.run(); s.err != (nothing{}) {
		return broken("after the handshake: %v", s.err)
	}
	return nil
}
