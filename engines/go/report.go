package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
)

// report writes JSON objects, one per line.
type report struct {
	*bufio.Writer
}

func (r *report) line(object map[string]any) {
	text, err := json.Marshal(object)
	if err != nil {
		text, _ = json.Marshal(map[string]any{"type": "error", "fault": "runner", "message": err.Error()})
	}
	r.Write(append(text, '\n'))
}

// samples are one per unit, in order.
func (r *report) samples(thread int, side string, ns []int64) {
	const most = 1000
	for len(ns) > 0 {
		part := ns[:min(most, len(ns))]
		r.line(map[string]any{"type": "samples", "thread": thread, "side": side, "ns": part})
		ns = ns[len(part):]
	}
}

// fail reports an error; any that is not the scenario's or the runner's is the stack's.
func (r *report) fail(err error) {
	kind := "stack"
	var known *fault
	if errors.As(err, &known) {
		kind = known.kind
	}
	r.line(map[string]any{"type": "error", "fault": kind, "message": err.Error()})
}

// fault is an error other than the stack's.
type fault struct {
	kind, message string
}

func (f *fault) Error() string {
	return f.message
}

func wrong(format string, values ...any) error {
	return &fault{"scenario", fmt.Sprintf(format, values...)}
}

func broken(format string, values ...any) error {
	return &fault{"runner", fmt.Sprintf(format, values...)}
}
