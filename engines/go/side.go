package main

import (
	"iter"
	"net"
	"time"
)

// side is one side of a connection, as a coroutine with a clock.
//
// crypto/tls blocks: its Handshake and Read call the connection's Read and come back when all is done. So that each
// end's time can be separated, each end's calls run on a coroutine of their own (iter.Pull: the runtime hands the
// thread over from one goroutine to the other without its scheduler), and a Read with nothing there to be read hands
// the thread back to the driver. One thread so runs the driver, the client and the server in turns, never two of them;
// crypto/tls starts no goroutine of its own in Handshake, Read and Write. What passes between entering an end and its
// handing back is therefore that end's time: its work, two hand-overs (together about 0.2 µs), and what the garbage
// collector takes meanwhile. The coroutines outlive connections, so that neither their making nor the growth of their
// stacks is in the time. Instruction counters do not follow them from one end to the other, and would count one for the
// other: so there are no functions here that these would find.
type side struct {
	resume  func() (ended, valid bool)
	yield   func(ended bool) bool
	job     func() error
	err     error
	patient bool // whether a Read waits for bytes or says that there are none
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

// line is a side's connection: it reads what was written to the other's.
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

// nothing is there to be read. It is temporary: crypto/tls keeps using the connection.
type nothing struct{}

func (nothing) Error() string   { return "nothing to read" }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }

// buffer holds what one side has written and the other has not read.
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
