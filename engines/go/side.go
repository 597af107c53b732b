package main

import (
	"iter"
	"net"
	"time"
)

// side is one side of a connection, as a coroutine with a clock.
//
// crypto/tls blocks: its Handshake and Read call the connection's Read and return when done. To separate the sides'
// times, each side's calls run on their own coroutine (iter.Pull: the runtime switches the thread between goroutines
// without its scheduler), and a Read without input switches back to the driver. So one thread runs the driver, the
// client and the server in turns, never two at a time; crypto/tls starts no goroutine in Handshake, Read and Write. A
// side's time is therefore the time from switching to it until it switches back: its work, two switches (together about
// 0.2 µs) and any garbage collection. The coroutines outlive connections, so the time includes neither their creation
// nor the growth of their stacks. Instruction counters do not follow a switch and would count one side for the other:
// so this engine lacks the functions that they look for.
type side struct {
	resume  func() (ended, valid bool)
	yield   func(ended bool) bool
	job     func() error
	err     error
	patient bool // whether a Read waits for bytes or reports that there are none
	ns      int64
}

func newSide() *side {
	s := &side{}
	s.resume, _ = iter.Pull(func(yield func(bool) bool) {
		s.yield = yield
		for yield(true) {
			s.err = s.job()
		}
	})
	s.resume()
	return s
}

// begin gives the side a task; it starts at the next run.
func (s *side) begin(job func() error) {
	s.job, s.patient = job, true
}

// run lets the side continue until its task is done, or it waits for bytes.
func (s *side) run() (ended bool) {
	began := time.Now()
	ended, _ = s.resume()
	s.ns += int64(time.Since(began))
	return ended
}

// line is a side's connection: it reads the bytes written to the other's.
type line struct {
	side    *side
	in, out *buffer
}

func (l *line) Read(into []byte) (int, error) {
	for l.in.empty() {
		if !l.side.patient {
			return 0, nothing{}
		}
		l.side.yield(false)
	}
	return l.in.read(into), nil
}

func (l *line) Write(bytes []byte) (int, error) {
	l.out.write(bytes)
	return len(bytes), nil
}

func (l *line) Close() error                     { return nil }
func (l *line) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (l *line) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (l *line) SetDeadline(time.Time) error      { return nil }
func (l *line) SetReadDeadline(time.Time) error  { return nil }
func (l *line) SetWriteDeadline(time.Time) error { return nil }

// nothing is the error of a Read without input. It is temporary: crypto/tls keeps using the connection.
type nothing struct{}

func (nothing) Error() string   { return "nothing to read" }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }

// buffer holds the bytes written by one side and not yet read by the other.
type buffer struct {
	bytes []byte
	begin int
}

func (b *buffer) empty() bool {
	return b.begin == len(b.bytes)
}

func (b *buffer) write(bytes []byte) {
	if b.empty() {
		b.clear()
	}
	b.bytes = append(b.bytes, bytes...)
}

func (b *buffer) read(into []byte) int {
	n := copy(into, b.bytes[b.begin:])
	b.begin += n
	return n
}

func (b *buffer) clear() {
	b.bytes, b.begin = b.bytes[:0], 0
}
