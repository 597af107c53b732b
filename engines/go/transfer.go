package main

import (
	"bytes"
	"io"
)

// transfers measures moving bytes from the server to the client over an established connection.
func transfers(s *scenario, out *report) error {
	ends, server, err := newEnds(s)
	if err != nil {
		return err
	}
	hire := func() (worker, error) {
		client, err := ends.client(nil)
		if err != nil {
			return nil, err
		}
		m := &mover{s: s, pair: newPair(), from: pattern(s.bytes + shifts), to: make([]byte, s.bytes)}
		m.connection, err = m.pair.connect(client, server)
		m.forget()
		return m, err
	}
	workers, err := measure(s, out, hire, func() {})
	if err != nil {
		return err
	}
	all := tally{}
	for _, w := range workers {
		all.add(w.(*mover).connection, ends.signer)
	}
	all.report(out)
	return nil
}

type mover struct {
	s                  *scenario
	pair               *pair
	connection         *connection
	from, to           []byte
	units              int
	clientNS, serverNS []int64
	written, read      int
}

// shifts is the number of distinct texts: each unit starts a byte later in the pattern than the
// previous one, so that leftovers of an earlier unit cannot be mistaken for this one's.
const shifts = 251

func (m *mover) unit() (int, error) {
	begin := m.units % shifts
	text := m.from[begin : begin+m.s.bytes]
	m.units++
	m.pair.client.ns, m.pair.server.ns = 0, 0
	m.pair.server.begin(func() error {
		for rest := text; len(rest) > 0; {
			part := rest[:min(m.s.write, len(rest))]
			if _, err := m.connection.server.Write(part); err != nil {
				return err
			}
			rest = rest[len(part):]
		}
		return nil
	})
	m.pair.client.begin(func() error {
		_, err := io.ReadFull(m.connection.client, m.to)
		return err
	})
	if m.pair.server.run(); m.pair.server.err != nil {
		return 0, m.pair.server.err
	}
	if !m.pair.client.run() {
		return 0, broken("the client waits for bytes that the server has not sent")
	}
	if m.pair.client.err != nil {
		return 0, m.pair.client.err
	}
	if !bytes.Equal(m.to, text) {
		return 0, broken("what was read is not what was written")
	}
	m.clientNS = append(m.clientNS, m.pair.client.ns)
	m.serverNS = append(m.serverNS, m.pair.server.ns)
	m.written += len(text)
	m.read += len(m.to)
	return 1, nil
}

func (m *mover) forget() {
	m.clientNS, m.serverNS = make([]int64, 0, 1<<16), make([]int64, 0, 1<<16)
	m.written, m.read = 0, 0
}

func (m *mover) report(thread int, out *report) {
	out.samples(thread, "client", m.clientNS)
	out.samples(thread, "server", m.serverNS)
	out.line(map[string]any{"type": "moved", "thread": thread, "side": "server", "bytes": m.written})
	out.line(map[string]any{"type": "moved", "thread": thread, "side": "client", "bytes": m.read})
}

// pattern has a prime period, so it never repeats at a record boundary.
func pattern(size int) []byte {
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(i % shifts)
	}
	return text
}
