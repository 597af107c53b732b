package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scenario is the run's parameters. Keys that do not apply to `do` are zero.
type scenario struct {
	do, version, resumption, suite, group, certificate string
	chain, key, ca                                     string
	tickets                                            int
	cold                                               bool
	threads, warmup, windowMS, count                   int
	record, write, bytes, sessions                     int
	operation                                          string
}

func readScenario(in io.Reader) (*scenario, error) {
	given, err := pairs(in)
	if err != nil {
		return nil, err
	}
	do := given["do"]
	if do == "" {
		return nil, wrong("do is missing: expected %s", list(rules["do"].allowed))
	}
	if err := rules["do"].check("do", do); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value := given[key]
		rule, known := rules[key]
		if !known {
			return nil, wrong("%s %s: unknown key: expected one of %s", key, value, list(keysOf(do)))
		}
		if !rule.takenBy(do) {
			return nil, wrong("%s %s: not for do %s: expected %s", key, value, do, list(keysOf(do)))
		}
		if err := rule.check(key, value); err != nil {
			return nil, err
		}
	}
	for _, key := range keysOf(do) {
		rule := rules[key]
		if given[key] != "" || rule.optional {
			continue
		}
		if rule.fallback == "" {
			return nil, wrong("%s is missing: expected %s", key, rule.values())
		}
		given[key] = rule.fallback
	}
	if do == "handshake" && given["tickets"] == "" {
		// TLS 1.2 implies the number.
		tickets, implied := map[string]string{"none": "0", "ticket": "1"}[given["resumption"]]
		if !implied || given["version"] == "1.3" {
			return nil, wrong("tickets is missing: expected %s", rules["tickets"].values())
		}
		given["tickets"] = tickets
	}
	s := fill(given)
	return s, s.check()
}

// pairs are the input's lines. No value is empty.
func pairs(in io.Reader) (map[string]string, error) {
	input, err := io.ReadAll(in)
	if err != nil {
		return nil, broken("the input: %v", err)
	}
	given := map[string]string{}
	for line := range strings.Lines(string(input)) {
		line = strings.TrimSuffix(line, "\n")
		key, value, _ := strings.Cut(line, " ")
		if !utf8.ValidString(line) || key == "" || value == "" {
			return nil, wrong("%q: expected a key, one space and a value", line)
		}
		if before, twice := given[key]; twice {
			return nil, wrong("%s %s: repeated, first with %s: expected once", key, value, before)
		}
		given[key] = value
	}
	return given, nil
}

// rule describes the values of a key.
type rule struct {
	tasks    string   // the values of `do` that take it; empty: all
	allowed  []string // its values; nil: a number, or text if max is 0
	min, max int
	fallback string // default; empty: required
	optional bool
}

const (
	connected = "handshake transfer memory"
	measured  = "handshake transfer primitive"
	most      = 1 << 31
)

var rules = map[string]rule{
	"do":          {allowed: []string{"facts", "handshake", "transfer", "memory", "primitive"}},
	"version":     {tasks: connected, allowed: []string{"1.2", "1.3"}},
	"resumption":  {tasks: "handshake", allowed: []string{"none", "ticket", "psk"}},
	"suite":       {tasks: connected, allowed: []string{"aes128-gcm", "aes256-gcm", "chacha20-poly1305"}},
	"group":       {tasks: connected, allowed: []string{"x25519", "p256", "x25519mlkem768"}},
	"certificate": {tasks: connected, allowed: []string{"rsa-2048", "ecdsa-p256", "ecdsa-p384"}},
	"chain":       {tasks: connected},
	"key":         {tasks: connected + " primitive", optional: true},
	"ca":          {tasks: connected},
	"tickets":     {tasks: "handshake", allowed: []string{"0", "1"}, optional: true},
	"config":      {tasks: "handshake", allowed: []string{"warm", "cold"}, fallback: "warm"},
	"threads":     {tasks: measured, min: 1, max: 1024, fallback: "1"},
	"warmup":      {tasks: measured, min: 0, max: most, fallback: "0"},
	"window_ms":   {tasks: measured, min: 1, max: most, optional: true},
	"count":       {tasks: measured, min: 1, max: most, optional: true},
	"record":      {tasks: "transfer primitive", min: 1, max: 16384, optional: true},
	"write":       {tasks: "transfer", min: 1, max: most},
	"bytes":       {tasks: "transfer", min: 1, max: most},
	"sessions":    {tasks: "memory", min: 2, max: most},
	"operation":   {tasks: "primitive", allowed: slices.Sorted(maps.Keys(operations))},
}

func (r rule) takenBy(do string) bool {
	return r.tasks == "" || slices.Contains(strings.Fields(r.tasks), do)
}

func (r rule) check(key, value string) error {
	switch {
	case r.allowed != nil && slices.Contains(r.allowed, value), r.allowed == nil && r.max == 0:
		return nil
	case r.allowed == nil:
		// Digits only: neither sign nor leading zeros.
		number, err := strconv.Atoi(value)
		if err == nil && strconv.Itoa(number) == value && number >= r.min && number <= r.max {
			return nil
		}
	}
	return wrong("%s %s: expected %s", key, value, r.values())
}

func (r rule) values() string {
	switch {
	case r.allowed != nil:
		return list(r.allowed)
	case r.max == 0:
		return "the path of a file"
	}
	return fmt.Sprintf("a number from %d to %d", r.min, r.max)
}

func keysOf(do string) []string {
	var keys []string
	for key, rule := range rules {
		if rule.takenBy(do) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func fill(given map[string]string) *scenario {
	number := func(key string) int {
		value, _ := strconv.Atoi(given[key])
		return value
	}
	return &scenario{
		do: given["do"], version: given["version"], resumption: given["resumption"], suite: given["suite"],
		group: given["group"], certificate: given["certificate"],
		chain: given["chain"], key: given["key"], ca: given["ca"],
		tickets: number("tickets"), cold: given["config"] == "cold",
		threads: max(number("threads"), 1), warmup: number("warmup"),
		windowMS: number("window_ms"), count: number("count"),
		record: number("record"), write: number("write"), bytes: number("bytes"), sessions: number("sessions"),
		operation: given["operation"],
	}
}

// check checks the combination of values.
func (s *scenario) check() error {
	resumed := map[string]string{"ticket": "1.2", "psk": "1.3"}[s.resumption]
	switch {
	case slices.Contains(strings.Fields(measured), s.do) && (s.windowMS == 0) == (s.count == 0):
		return wrong("window_ms, count: expected exactly one of them")
	case slices.Contains(strings.Fields(connected), s.do) && s.key == "":
		return wrong("key is missing: expected the path of a file")
	case resumed != "" && resumed != s.version:
		return wrong("resumption %s: with version %s expected none, %s", s.resumption, s.version,
			map[string]string{"1.2": "ticket", "1.3": "psk"}[s.version])
	case resumed != "" && s.cold:
		return wrong("config cold: expected warm with resumption %s: a new configuration has no session", s.resumption)
	case resumed != "" && s.tickets == 0:
		return wrong("tickets 0: expected 1 with resumption %s", s.resumption)
	case s.group == "x25519mlkem768" && s.version == "1.2":
		return wrong("group x25519mlkem768: expected x25519, p256 with version 1.2")
	case s.do == "transfer" && s.record < 512:
		return wrong("record %d: expected a number from 512 to 16384", s.record)
	case s.do == "transfer" && s.record < 16384 && s.write > s.record:
		// It cannot be set: a record takes the rest of a call's bytes, up to 16384.
		return wrong("record %d: expected 16384 with write %d", s.record, s.write)
	case s.sessions%2 == 1:
		return wrong("sessions %d: expected an even number", s.sessions)
	case s.do == "primitive":
		return s.checkOperation()
	}
	return nil
}

func list(values []string) string {
	return strings.Join(values, ", ")
}
