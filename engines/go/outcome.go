package main

import "crypto/tls"

// outcome is the negotiated parameters of one side.
type outcome struct {
	side, version, kind, suite, group, signature string
}

func newOutcome(side string, state tls.ConnectionState, signature string) outcome {
	o := outcome{side, nameOf(state.Version, tls.VersionName(state.Version), versions), "full",
		nameOf(state.CipherSuite, tls.CipherSuiteName(state.CipherSuite), suites13, suites12RSA, suites12ECDSA),
		"", signature}
	if state.CurveID != 0 {
		o.group = nameOf(state.CurveID, state.CurveID.String(), groups)
	}
	if state.HelloRetryRequest {
		o.kind = "full-with-hello-retry"
	}
	if state.DidResume {
		o.kind, o.signature = "resumed", ""
		if state.Version == tls.VersionTLS12 {
			// The library reports the session's; there was no key exchange.
			o.group = ""
		}
	}
	return o
}

// nameOf is the scenario's name of a value, else the library's.
func nameOf[T comparable](value T, library string, names ...map[string]T) string {
	for _, names := range names {
		for name, is := range names {
			if is == value {
				return name
			}
		}
	}
	return library
}

// tally counts the outcomes of connections per side.
type tally map[outcome]int

func (t tally) add(c *connection, signer *signer) {
	signature, _ := signer.scheme.Load().(string)
	// The library does not expose the signature verified by the client.
	t[newOutcome("client", c.client.ConnectionState(), "")]++
	t[newOutcome("server", c.server.ConnectionState(), signature)]++
}

func (t tally) merge(other tally) {
	for outcome, count := range other {
		t[outcome] += count
	}
}

func (t tally) report(out *report) {
	for outcome, count := range t {
		out.line(outcome.line(count))
	}
}

func (o outcome) line(count int) map[string]any {
	return map[string]any{
		"type": "negotiated", "side": o.side, "version": o.version, "kind": o.kind, "suite": o.suite,
		"group": known(o.group), "signature": known(o.signature), "count": count,
	}
}

// known is null if unknown.
func known(value string) any {
	if value == "" {
		return nil
	}
	return value
}
