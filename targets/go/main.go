// A pass-through on the standard library's httputil.ReverseProxy, tuned to win: each setting has its reason.
// Usage: proxy [-check] SETTINGS.json, or proxy -version.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

func main() {
	version := flag.Bool("version", false, "print Go's version and exit")
	check := flag.Bool("check", false, "check the settings and exit")
	flag.Parse()
	if *version {
		fmt.Println(runtime.Version())
		return
	}
	settings, err := read(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	server, err := newServer(settings)
	if err != nil {
		log.Fatalf("%s: %v", flag.Arg(0), err)
	}
	if *check {
		return
	}
	// One running Go thread per gateway core. The lab has pinned the process to these cores.
	runtime.GOMAXPROCS(settings.Workers)
	debug.SetGCPercent(settings.GOGC)
	// Runs until TERM ends the process.
	if server.TLSConfig != nil {
		log.Fatal(server.ListenAndServeTLS("", ""))
	}
	log.Fatal(server.ListenAndServe())
}

// settings are the parameters of a run.
type settings struct {
	Listen       string
	Upstream     string
	ClientSide   string `json:"client_side"`
	UpstreamSide string `json:"upstream_side"`
	Workers      int
	Connections  int
	Pool         int
	GOGC         int
	Cert         string
	Key          string
	CA           string
	TLSVersion   string `json:"tls_version"`
	Suite        string
	Group        string
	Tickets      int
}

func read(path string) (*settings, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields()
	var s settings
	if err := decoder.Decode(&s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &s, nil
}

func newServer(s *settings) (*http.Server, error) {
	transport, err := newTransport(s)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Addr:    s.Listen,
		Handler: fullDuplex(newProxy(s, transport)),
		// The mode's version alone; TLS would bring HTTP/2 by default.
		Protocols: protocols(s.ClientSide),
		// As many streams on a connection as the load engine may have. The default is 250.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1024},
		// No timeouts (the default): connections outlive the run, and requests have no timer.
	}
	if isTLS(s.ClientSide) {
		server.TLSConfig, err = pinned(s)
		if err != nil {
			return nil, err
		}
		certificate, err := tls.LoadX509KeyPair(s.Cert, s.Key)
		if err != nil {
			return nil, err
		}
		server.TLSConfig.Certificates = []tls.Certificate{certificate}
		server.TLSConfig.NextProtos = []string{alpn(s.ClientSide)}
		// In TLS 1.3 Go sends one ticket or none, whatever number the experiment sets.
		server.TLSConfig.SessionTicketsDisabled = s.Tickets == 0
	}
	return server, nil
}

func newProxy(s *settings, transport http.RoundTripper) *httputil.ReverseProxy {
	upstream := &url.URL{Scheme: "http", Host: s.Upstream}
	if isTLS(s.UpstreamSide) {
		upstream.Scheme = "https"
	}
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			// The client's authority, as Weir forwards it; SetURL takes the upstream's.
			r.Out.Host = r.In.Host
			// The same headers as Weir adds, so that all targets do the same work.
			r.SetXForwarded()
		},
		// Without a pool each response allocates a 32 KiB buffer, which is most of the garbage.
		BufferPool: &buffers{},
	}
}

func newTransport(s *settings) (*http.Transport, error) {
	transport := &http.Transport{
		Protocols: protocols(s.UpstreamSide),
		// The default of 2 would open and close an upstream connection for almost every request.
		MaxIdleConnsPerHost: s.Pool,
		// No limit over all hosts ...
		MaxIdleConns: 0,
		// ... and no limit on their age.
		IdleConnTimeout: 0,
		// Without this limit a request without an idle connection dials one even if another becomes free meanwhile,
		// so there would be more upstream connections than clients.
		MaxConnsPerHost: s.Connections,
		// By default the transport requests gzip if the client did not, and decompresses the response.
		DisableCompression: true,
		// Sends and receives a head with a small body in one call. The default is 4 KiB.
		WriteBufferSize: 16 << 10,
		ReadBufferSize:  16 << 10,
	}
	if isTLS(s.UpstreamSide) {
		client, err := pinned(s)
		if err != nil {
			return nil, err
		}
		pem, err := os.ReadFile(s.CA)
		if err != nil {
			return nil, err
		}
		client.RootCAs = x509.NewCertPool()
		if !client.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate", s.CA)
		}
		// The name in the certificate, sent and verified as in every target.
		client.ServerName = "localhost"
		// Without a cache no session is resumed.
		client.ClientSessionCache = tls.NewLRUClientSessionCache(s.Connections)
		transport.TLSClientConfig = client
	}
	return transport, nil
}

// pinned returns the TLS settings pinned on both sides. Go cannot set the TLS 1.3 suite: its server accepts the
// client's offer, and its client offers AES-128-GCM first where the processor has AES.
func pinned(s *settings) (*tls.Config, error) {
	version, suite, group := versions[s.TLSVersion], suites12[s.Suite], groups[s.Group]
	if version == 0 || group == 0 || (version == tls.VersionTLS12 && suite == 0) {
		return nil, fmt.Errorf("unknown TLS version %q, suite %q or group %q", s.TLSVersion, s.Suite, s.Group)
	}
	config := &tls.Config{MinVersion: version, MaxVersion: version, CurvePreferences: []tls.CurveID{group}}
	if suite != 0 {
		config.CipherSuites = []uint16{suite}
	}
	return config, nil
}

var versions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

var groups = map[string]tls.CurveID{"x25519": tls.X25519, "p256": tls.CurveP256, "p384": tls.CurveP384}

var suites12 = map[string]uint16{
	"ecdhe-ecdsa-aes128-gcm-sha256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	"ecdhe-ecdsa-aes256-gcm-sha384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	"ecdhe-ecdsa-chacha20-poly1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
}

// fullDuplex lets a response start while its request is still arriving. Otherwise the server first reads the rest of
// the request, for which the upstream waits in vain if the body is large.
func fullDuplex(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			log.Print(err)
		}
		next.ServeHTTP(w, r)
	})
}

func isTLS(side string) bool { return side == "h1" || side == "h2" }

// alpn returns the protocol of a side with TLS.
func alpn(side string) string {
	if side == "h2" {
		return "h2"
	}
	return "http/1.1"
}

// protocols returns the side's only version of HTTP. In cleartext HTTP/2 needs no upgrade.
func protocols(side string) *http.Protocols {
	var protocols http.Protocols
	protocols.SetHTTP1(side == "h1" || side == "h1c")
	protocols.SetHTTP2(side == "h2")
	protocols.SetUnencryptedHTTP2(side == "h2c")
	return &protocols
}

// buffers is the pool of buffers for copying bodies.
type buffers struct{ pool sync.Pool }

type buffer [32 << 10]byte

func (b *buffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*buffer); ok {
		return buffer[:]
	}
	return new(buffer)[:]
}

func (b *buffers) Put(lent []byte) { b.pool.Put((*buffer)(lent)) }
