package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// memory measures the memory of open sessions.
func memory(s *scenario, out *report) error {
	ends, server, err := newEnds(s)
	if err != nil {
		return err
	}
	client, err := ends.client(nil)
	if err != nil {
		return err
	}
	pair := newPair()
	// Provoke one-time allocations of the runtime and the library before the first session.
	const before = 100
	for range before {
		if _, err := pair.connect(client, server); err != nil {
			return err
		}
	}
	beforeKiB, err := resident()
	if err != nil {
		return err
	}
	connections := make([]*connection, s.sessions/2)
	outcomes := tally{}
	for i := range connections {
		if connections[i], err = pair.connect(client, server); err != nil {
			return err
		}
		outcomes.add(connections[i], ends.signer)
	}
	afterKiB, err := resident()
	if err != nil {
		return err
	}
	runtime.KeepAlive(connections)
	outcomes.report(out)
	out.line(map[string]any{
		"type": "memory", "sessions": s.sessions, "before_kib": beforeKiB, "after_kib": afterKiB,
	})
	return nil
}

// resident collects garbage first.
func resident() (int, error) {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, broken("%v", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		return 0, broken("%v", err)
	}
	return pages * os.Getpagesize() / 1024, nil
}
