// An upstream server on Go's net/http. Usage: main [CERT KEY]; prints the port that it listens on.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path"
	"strconv"
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

func size(w http.ResponseWriter, r *http.Request) (int64, bool) {
	n, err := strconv.ParseInt(r.PathValue("n"), 10, 64)
	if err != nil || n < 0 {
		http.Error(w, "a size in bytes is needed", http.StatusBadRequest)
		return 0, false
	}
	return n, true
}

func hijack(w http.ResponseWriter, head string) {
	connection, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		log.Fatal(err)
	}
	buffered.WriteString(head)
	buffered.Flush()
	connection.Close()
}

func main() {
	var connections atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /bytes/{n}", func(w http.ResponseWriter, r *http.Request) {
		if n, ok := size(w, r); ok {
			w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
			io.Copy(w, &pattern{end: n})
		}
	})
	mux.HandleFunc("GET /chunked/{n}", func(w http.ResponseWriter, r *http.Request) {
		if n, ok := size(w, r); ok {
			w.(http.Flusher).Flush()
			io.Copy(w, &pattern{end: n})
		}
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		// Otherwise net/http stops reading the request once the response has begun.
		http.NewResponseController(w).EnableFullDuplex()
		if r.ContentLength >= 0 {
			w.Header().Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
		} else {
			w.(http.Flusher).Flush()
		}
		io.Copy(w, r.Body)
	})
	mux.HandleFunc("/204", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/304", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.WriteHeader(http.StatusNotModified)
	})
	mux.HandleFunc("/connections", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, connections.Load())
	})
	mux.HandleFunc("/last", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "last")
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nthe beginning")
	})
	mux.HandleFunc("/silent", func(w http.ResponseWriter, r *http.Request) { hijack(w, "") })

	// Of a request with this field, the path as http.FileServer and most routers read it.
	reader := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Read-Path") == "" {
			mux.ServeHTTP(w, r)
			return
		}
		io.WriteString(w, path.Clean(r.URL.Path))
	})

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	server := &http.Server{Handler: reader, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}}
	if len(os.Args) == 3 {
		server.TLSConfig = &tls.Config{NextProtos: []string{"http/1.1"}}
		log.Fatal(server.ServeTLS(listener, os.Args[1], os.Args[2]))
	}
	log.Fatal(server.Serve(listener))
}
