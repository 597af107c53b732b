package main

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // the hashes of the signatures
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"os"
	"strings"
)

// operations by name: each returns the function to repeat.
var operations = map[string]func(*scenario) (func() error, error){
	"rsa-2048-sign":         sign,
	"rsa-2048-verify":       verify,
	"ecdsa-p256-sign":       sign,
	"ecdsa-p256-verify":     verify,
	"ecdsa-p384-sign":       sign,
	"ecdsa-p384-verify":     verify,
	"x25519":                agree(ecdh.X25519()),
	"p256":                  agree(ecdh.P256()),
	"x25519mlkem768-client": hybrid(decapsulate),
	"x25519mlkem768-server": hybrid(encapsulate),
	"aes128-gcm-seal":       seal,
	"aes128-gcm-open":       open,
	"aes256-gcm-seal":       seal,
	"aes256-gcm-open":       open,
}

// checkOperation checks that the scenario has exactly the keys of the operation.
func (s *scenario) checkOperation() error {
	ciphers := strings.Contains(s.operation, "gcm")
	signs := strings.HasSuffix(s.operation, "-sign") || strings.HasSuffix(s.operation, "-verify")
	switch {
	case ciphers && s.record == 0:
		return wrong("record is missing: expected a number from 1 to 16384")
	case !ciphers && s.record != 0 && !(signs && s.record == len(message)):
		return wrong("record %d: expected none with operation %s", s.record, s.operation)
	case signs != (s.key != ""):
		return wrong("key %s: expected a file only for rsa and ecdsa operations", s.key)
	}
	return nil
}

// The message is hashed in the operation, as in a handshake.
var message = make([]byte, 32)

func sign(s *scenario) (func() error, error) {
	key, hash, options, err := signingKey(s)
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := key.Sign(rand.Reader, digest(hash), options)
		return err
	}, nil
}

func verify(s *scenario) (func() error, error) {
	key, hash, options, err := signingKey(s)
	if err != nil {
		return nil, err
	}
	signature, err := key.Sign(rand.Reader, digest(hash), options)
	if err != nil {
		return nil, err
	}
	switch public := key.Public().(type) {
	case *rsa.PublicKey:
		return func() error {
			return rsa.VerifyPSS(public, hash, digest(hash), signature, options.(*rsa.PSSOptions))
		}, nil
	case *ecdsa.PublicKey:
		return func() error {
			if !ecdsa.VerifyASN1(public, digest(hash), signature) {
				return errors.New("a signature of the key itself is not valid")
			}
			return nil
		}, nil
	}
	return nil, broken("key %s: it has no kind", s.key)
}

func digest(hash crypto.Hash) []byte {
	h := hash.New()
	h.Write(message)
	return h.Sum(nil)
}

// signingKey is the scenario's key, of the operation's kind, with the signature algorithm of a handshake.
func signingKey(s *scenario) (crypto.Signer, crypto.Hash, crypto.SignerOpts, error) {
	refuse := func(found any) error {
		return wrong("key %s: %v: expected a PEM file with a PKCS #8 key of operation %s", s.key, found, s.operation)
	}
	text, err := os.ReadFile(s.key)
	if err != nil {
		return nil, 0, nil, refuse(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, 0, nil, refuse("it is no PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, 0, nil, refuse(err)
	}
	key, is := parsed.(crypto.Signer)
	if !is {
		return nil, 0, nil, refuse("it cannot sign")
	}
	kind := kindOf(&x509.Certificate{PublicKey: key.Public()})
	if !strings.HasPrefix(s.operation, kind+"-") {
		return nil, 0, nil, refuse(kind)
	}
	hash := crypto.SHA256
	switch kind {
	case "rsa-2048":
		return key, hash, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}, nil
	case "ecdsa-p384":
		hash = crypto.SHA384
	}
	return key, hash, hash, nil
}

// agree is one side's part: its key pair and the shared secret.
func agree(curve ecdh.Curve) func(*scenario) (func() error, error) {
	return func(*scenario) (func() error, error) {
		other, err := curve.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		return func() error {
			own, err := curve.GenerateKey(rand.Reader)
			if err == nil {
				_, err = own.ECDH(other.PublicKey())
			}
			return err
		}, nil
	}
}

// hybrid adds the classical part, the same on both sides, to one side's part of ML-KEM with a new key.
func hybrid(part func(*mlkem.DecapsulationKey768) func() error) func(*scenario) (func() error, error) {
	return func(s *scenario) (func() error, error) {
		classical, err := agree(ecdh.X25519())(s)
		if err != nil {
			return nil, err
		}
		key, err := mlkem.GenerateKey768()
		if err != nil {
			return nil, err
		}
		lattice := part(key)
		return func() error {
			if err := lattice(); err != nil {
				return err
			}
			return classical()
		}, nil
	}
}

// decapsulate is the client's part. The server's ciphertext is for another key pair; ML-KEM decapsulates it in the same
// time, into another secret.
func decapsulate(other *mlkem.DecapsulationKey768) func() error {
	_, sent := other.EncapsulationKey().Encapsulate()
	return func() error {
		key, err := mlkem.GenerateKey768()
		if err != nil {
			return err
		}
		// The client's message.
		_ = key.EncapsulationKey().Bytes()
		_, err = key.Decapsulate(sent)
		return err
	}
}

// encapsulate is the server's part: from the client's bytes to the secret.
func encapsulate(client *mlkem.DecapsulationKey768) func() error {
	sent := client.EncapsulationKey().Bytes()
	return func() error {
		key, err := mlkem.NewEncapsulationKey768(sent)
		if err == nil {
			key.Encapsulate()
		}
		return err
	}
}

// header replaces a record's, which is authenticated.
var header = make([]byte, 5)

func seal(s *scenario) (func() error, error) {
	aead, err := newAEAD(s)
	if err != nil {
		return nil, err
	}
	plain, nonce, count := make([]byte, s.record), make([]byte, aead.NonceSize()), uint64(0)
	sealed := make([]byte, 0, s.record+aead.Overhead())
	return func() error {
		count++
		binary.BigEndian.PutUint64(nonce[4:], count)
		sealed = aead.Seal(sealed[:0], nonce, plain, header)
		return nil
	}, nil
}

func open(s *scenario) (func() error, error) {
	aead, err := newAEAD(s)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	sealed := aead.Seal(nil, nonce, make([]byte, s.record), header)
	plain := make([]byte, 0, s.record)
	return func() error {
		_, err := aead.Open(plain, nonce, sealed, header)
		return err
	}, nil
}

// newAEAD returns a cipher of the operation's suite with its own key.
func newAEAD(s *scenario) (cipher.AEAD, error) {
	key := make([]byte, 32)
	if strings.HasPrefix(s.operation, "aes128") {
		key = key[:16]
	}
	rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
