// A server on Go's net/http that reports its reading of the request line. It prints its port.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	// A mux would redirect some targets.
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("X-Served", r.Method+" "+r.RequestURI)
	})))
}
