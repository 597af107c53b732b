package main

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	_ "unsafe" // for linkname
)

// ends creates the configurations of both sides.
type ends struct {
	s                *scenario
	chain, key, root []byte
	signer           *signer
}

// newEnds also creates the shared server configuration.
func newEnds(s *scenario) (*ends, *tls.Config, error) {
	e := &ends{s: s, signer: &signer{}}
	for _, file := range []struct {
		key, path string
		bytes     *[]byte
	}{{"chain", s.chain, &e.chain}, {"key", s.key, &e.key}, {"ca", s.ca, &e.root}} {
		bytes, err := os.ReadFile(file.path)
		if err != nil {
			return nil, nil, wrong("%s %s: %v: expected a PEM file", file.key, file.path, err)
		}
		*file.bytes = bytes
	}
	if s.version == "1.3" {
		offered13 = []uint16{suites13[s.suite]}
		offered13WithoutAES = offered13
	}
	server, err := e.server()
	return e, server, err
}

func (e *ends) server() (*tls.Config, error) {
	certificate, err := tls.X509KeyPair(e.chain, e.key)
	if err != nil {
		return nil, wrong("chain %s, key %s: %v: expected a PEM chain and its key", e.s.chain, e.s.key, err)
	}
	if is := kindOf(certificate.Leaf); is != e.s.certificate {
		return nil, wrong("certificate %s: the chain's is %s", e.s.certificate, is)
	}
	certificate.SupportedSignatureAlgorithms = []tls.SignatureScheme{signatures[e.s.certificate]}
	certificate.PrivateKey = e.signer.of(certificate.PrivateKey)
	config := e.both()
	config.Certificates = []tls.Certificate{certificate}
	config.SessionTicketsDisabled = e.s.tickets == 0
	return config, nil
}

func (e *ends) client(store tls.ClientSessionCache) (*tls.Config, error) {
	config := e.both()
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(e.root) {
		return nil, wrong("ca %s: expected a PEM certificate", e.s.ca)
	}
	config.ServerName = "localhost"
	config.ClientSessionCache = store
	return config, nil
}

func (e *ends) both() *tls.Config {
	version := versions[e.s.version]
	return &tls.Config{
		MinVersion: version, MaxVersion: version,
		CurvePreferences: []tls.CurveID{groups[e.s.group]},
		CipherSuites:     []uint16{suite12(e.s.suite, e.s.certificate)},
		// Full records from the first one on.
		DynamicRecordSizingDisabled: true,
	}
}

// crypto/tls cannot set the TLS 1.3 suites: it offers all, and prefers AES-128-GCM if the CPU has AES.
// Its own lists, which it keeps linkable for such uses, set the offer; the negotiated suite is checked as always.
//
//go:linkname offered13 crypto/tls.defaultCipherSuitesTLS13
var offered13 []uint16

//go:linkname offered13WithoutAES crypto/tls.defaultCipherSuitesTLS13NoAES
var offered13WithoutAES []uint16

var (
	versions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
	groups   = map[string]tls.CurveID{
		"x25519": tls.X25519, "p256": tls.CurveP256, "x25519mlkem768": tls.X25519MLKEM768,
	}
	suites13 = map[string]uint16{
		"aes128-gcm": tls.TLS_AES_128_GCM_SHA256, "aes256-gcm": tls.TLS_AES_256_GCM_SHA384,
		"chacha20-poly1305": tls.TLS_CHACHA20_POLY1305_SHA256,
	}
	suites12RSA = map[string]uint16{
		"aes128-gcm":        tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		"aes256-gcm":        tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		"chacha20-poly1305": tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
	suites12ECDSA = map[string]uint16{
		"aes128-gcm":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		"aes256-gcm":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		"chacha20-poly1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	}
	signatures = map[string]tls.SignatureScheme{
		"rsa-2048": tls.PSSWithSHA256, "ecdsa-p256": tls.ECDSAWithP256AndSHA256, "ecdsa-p384": tls.ECDSAWithP384AndSHA384,
	}
)

func suite12(suite, certificate string) uint16 {
	if certificate == "rsa-2048" {
		return suites12RSA[suite]
	}
	return suites12ECDSA[suite]
}

// kindOf is the scenario's name of a certificate's kind.
func kindOf(leaf *x509.Certificate) string {
	switch key := leaf.PublicKey.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("rsa-%d", key.N.BitLen())
	case *ecdsa.PublicKey:
		return fmt.Sprintf("ecdsa-p%d", key.Curve.Params().BitSize)
	}
	return leaf.PublicKeyAlgorithm.String()
}
