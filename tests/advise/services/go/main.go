// An HTTPS service with one switchable fault. Usage: main FAULT CERT KEY [UPSTREAM]; prints its port.
package main

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

var large = bytes.Repeat([]byte("x"), 100_000)

// slowly accepts connections with Nagle's algorithm on, which Go turns off.
type slowly struct{ net.Listener }

func (l slowly) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if tcp, ok := connection.(*net.TCPConn); ok {
		tcp.SetNoDelay(false)
	}
	return connection, err
}

func answer(fault string, upstream string) http.HandlerFunc {
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(0)},
		MaxIdleConnsPerHost: 64,
		// The default of 2 closes connections as soon as there are more requests at once.
		DisableKeepAlives: fault == "upstream-without-keep-alive",
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if upstream != "" {
			response, err := (&http.Client{Transport: transport}).Get(upstream + r.URL.Path)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			defer response.Body.Close()
			io.Copy(w, response.Body)
			return
		}
		body := []byte("hello")
		if r.URL.Path == "/large" {
			body = large
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if fault == "nagle" {
			w.(http.Flusher).Flush()
		}
		w.Write(body)
	}
}

func settings(fault string, identity tls.Certificate) *tls.Config {
	config := &tls.Config{Certificates: []tls.Certificate{identity}}
	switch fault {
	case "resumption-off":
		config.SessionTicketsDisabled = true
	case "hello-retry":
		config.CurvePreferences = []tls.CurveID{tls.CurveP384}
	case "tls-1.2-only":
		config.MaxVersion = tls.VersionTLS12
	case "ticket-keys-change":
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			own := config.Clone()
			var key [32]byte
			rand.Read(key[:])
			own.SetSessionTicketKeys([][32]byte{key})
			return own, nil
		}
	}
	return config
}

func main() {
	fault, cert, key, upstream := os.Args[1], os.Args[2], os.Args[3], ""
	if len(os.Args) > 4 {
		upstream = os.Args[4]
	}
	identity, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	if fault == "nagle" {
		listener = slowly{listener}
	}
	server := &http.Server{
		Handler:     answer(fault, upstream),
		TLSConfig:   settings(fault, identity),
		IdleTimeout: 75 * time.Second,
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	if fault == "keep-alive-too-short" {
		server.IdleTimeout = time.Second
	}
	server.SetKeepAlivesEnabled(fault != "keep-alive-off")
	log.Fatal(server.ServeTLS(listener, "", ""))
}
