package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"io"
	"sync/atomic"
	"time"
)

// signer wraps the server's key: the library exposes neither the signature algorithm nor its time.
type signer struct {
	ns, count atomic.Int64
	scheme    atomic.Value // of the last signature, a string; the configuration allows one scheme only
}

func (s *signer) of(key crypto.PrivateKey) crypto.Signer {
	return &watched{key.(crypto.Signer), s}
}

func (s *signer) forget() {
	s.ns.Store(0)
	s.count.Store(0)
}

func (s *signer) report(out *report) {
	if count := s.count.Load(); count > 0 {
		out.line(map[string]any{
			"type": "span", "side": "server", "name": "sign", "ns": s.ns.Load(), "count": count,
		})
	}
}

type watched struct {
	crypto.Signer
	seen *signer
}

func (w *watched) Sign(random io.Reader, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	began := time.Now()
	signature, err := w.Signer.Sign(random, digest, options)
	w.seen.ns.Add(int64(time.Since(began)))
	w.seen.count.Add(1)
	w.seen.scheme.Store(schemeOf(w.Public(), options))
	return signature, err
}

func schemeOf(key crypto.PublicKey, options crypto.SignerOpts) string {
	hash := map[crypto.Hash]string{
		crypto.SHA1: "sha1", crypto.SHA256: "sha256", crypto.SHA384: "sha384", crypto.SHA512: "sha512",
	}[options.HashFunc()]
	if key, is := key.(*ecdsa.PublicKey); is {
		return "ecdsa_secp" + key.Params().Name[len("P-"):] + "r1_" + hash
	}
	if _, is := options.(*rsa.PSSOptions); is {
		return "rsa_pss_rsae_" + hash
	}
	return "rsa_pkcs1_" + hash
}
