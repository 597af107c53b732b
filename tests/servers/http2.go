// A server on Go's net/http that speaks HTTP/2 alone. Usage: http2 [CERT KEY]; prints the port that it listens on.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

// pattern sets byte i to i mod 251: a shift by any power of two shows.
type pattern struct{ at, end int64 }

func (p *pattern) Read(buf []byte) (int, error) {
	if p.at == p.end {
		return 0, io.EOF
	}
	n := int(min(int64(len(buf)), p.end-p.at))
	for i := range buf[:n] {
		buf[i] = byte((p.at + int64(i)) % 251)
	}
	p.at += int64(n)
	return n, nil
}

func size(r *http.Request) int64 {
	n, err := strconv.ParseInt(r.PathValue("n"), 10, 64)
	if err != nil || n < 0 {
		panic("a size in bytes is needed")
	}
	return n
}

func main() {
	var connections, abandoned atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /bytes/{n}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", r.PathValue("n"))
		io.Copy(w, &pattern{end: size(r)})
	})
	mux.HandleFunc("GET /chunked/{n}", func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		io.Copy(w, &pattern{end: size(r)})
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		n, _ := io.Copy(w, r.Body)
		// Otherwise a short response has a length, which leaves HTTP/1.1 no place for trailers.
		w.(http.Flusher).Flush()
		w.Header().Set("X-Sum", strconv.FormatInt(n, 10))
	})
	mux.HandleFunc("/request", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s te=%s cookie=%s", r.Proto, r.Host, r.Header.Get("TE"), r.Header.Get("Cookie"))
	})
	mux.HandleFunc("/fields/{n}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", int(size(r))))
		fmt.Fprint(w, len(r.Header.Get("X-Large")))
	})
	mux.HandleFunc("/hints", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "hinted")
	})
	mux.HandleFunc("/204", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/304", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.WriteHeader(http.StatusNotModified)
	})
	// The response is complete before the request: net/http resets the stream with NO_ERROR behind it.
	mux.HandleFunc("/early", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		io.WriteString(w, "too large")
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, "the beginning")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/silent", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	// GOAWAY.
	mux.HandleFunc("/last", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "last")
	})
	// Responds without an end until the client is gone.
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "the beginning")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		abandoned.Add(1)
	})
	mux.HandleFunc("/abandoned", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, abandoned.Load()) })
	mux.HandleFunc("/connections", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, connections.Load())
	})

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	server := &http.Server{
		Handler:   mux,
		Protocols: new(http.Protocols),
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: 20},
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		},
	}
	if len(os.Args) == 3 {
		server.Protocols.SetHTTP2(true)
		log.Fatal(server.ServeTLS(listener, os.Args[1], os.Args[2]))
	}
	server.Protocols.SetUnencryptedHTTP2(true)
	log.Fatal(server.Serve(listener))
}
