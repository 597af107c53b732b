package main

import (
	"crypto/tls"
	"errors"
)

// handshakes measures connections from start to end.
func handshakes(s *scenario, out *report) error {
	ends, server, err := newEnds(s)
	if err != nil {
		return err
	}
	hire := func() (worker, error) { return newHandshaker(s, ends, server) }
	workers, err := measure(s, out, hire, ends.signer.forget)
	if err != nil {
		return err
	}
	ends.signer.report(out)
	all := tally{}
	for _, w := range workers {
		all.merge(w.(*handshaker).outcomes)
	}
	all.report(out)
	return nil
}

type handshaker struct {
	s              *scenario
	ends           *ends
	pair           *pair
	store          *store
	client, server *tls.Config

	clientNS, serverNS []int64
	outcomes           tally
}

// newHandshaker creates the session for the first handshake to resume, if needed.
func newHandshaker(s *scenario, ends *ends, server *tls.Config) (*handshaker, error) {
	h := &handshaker{s: s, ends: ends, pair: newPair(), store: &store{keeps: s.resumption != "none"}, server: server}
	h.forget()
	var err error
	if h.client, err = ends.client(h.store); err != nil {
		return nil, err
	}
	if h.store.keeps {
		if _, err := h.pair.connect(h.client, h.server); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (h *handshaker) unit() (int, error) {
	if h.s.cold {
		if err := h.configure(); err != nil {
			return 0, err
		}
	}
	if h.store.keeps && h.store.session == nil {
		return 0, errors.New("the client's store is empty: the server has sent no ticket that it keeps")
	}
	h.pair.client.ns, h.pair.server.ns = 0, 0
	connection, err := h.pair.connect(h.client, h.server)
	if err != nil {
		return 0, err
	}
	h.clientNS = append(h.clientNS, h.pair.client.ns)
	h.serverNS = append(h.serverNS, h.pair.server.ns)
	h.outcomes.add(connection, h.ends.signer)
	return 1, nil
}

// configure recreates both configurations, outside the timed part.
func (h *handshaker) configure() error {
	var err error
	if h.client, err = h.ends.client(h.store); err != nil {
		return err
	}
	h.server, err = h.ends.server()
	return err
}

func (h *handshaker) forget() {
	h.clientNS, h.serverNS = make([]int64, 0, 1<<16), make([]int64, 0, 1<<16)
	h.outcomes = tally{}
}

func (h *handshaker) report(thread int, out *report) {
	out.samples(thread, "client", h.clientNS)
	out.samples(thread, "server", h.serverNS)
}

// store is a client's store of one session: all connections are to one server. Without a store crypto/tls would not ask
// for tickets, and the server would send none; so without resumption there is a store that keeps nothing.
type store struct {
	keeps   bool
	session *tls.ClientSessionState
}

func (s *store) Get(string) (*tls.ClientSessionState, bool) {
	return s.session, s.session != nil
}

func (s *store) Put(_ string, session *tls.ClientSessionState) {
	if s.keeps {
		s.session = session
	}
}
