// A TLS engine on Go's crypto/tls: reads a scenario, runs it in memory and reports. See docs/ENGINES.md.
package main

import (
	"bufio"
	"os"
	"runtime"
)

func main() {
	out := &report{bufio.NewWriter(os.Stdout)}
	err := run(out)
	if err == nil {
		out.line(map[string]any{"type": "done"})
	} else {
		out.fail(err)
	}
	// Flush returns the first write error.
	if flushed := out.Flush(); err != nil || flushed != nil {
		os.Exit(1)
	}
}

func run(out *report) error {
	s, err := readScenario(os.Stdin)
	if err != nil {
		return err
	}
	out.line(facts())
	// As many running Go threads as measured ones, so that the time includes the garbage collector.
	runtime.GOMAXPROCS(s.threads)
	return tasks[s.do](s, out)
}

// tasks by the value of `do`.
var tasks = map[string]func(*scenario, *report) error{
	"facts":     func(*scenario, *report) error { return nil },
	"handshake": handshakes,
	"transfer":  transfers,
	"memory":    memory,
	"primitive": primitives,
}

func facts() map[string]any {
	version := "go " + runtime.Version()[len("go"):]
	return map[string]any{
		"type": "facts", "stack": "go", "tls": version, "crypto": version, "compiler": "gc " + runtime.Version(),
		"allocator": "system", "build": "release",
		// Which CPU features the library uses is internal to it.
		"features": []string{},
	}
}
