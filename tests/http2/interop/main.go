// gRPC's interoperability tests, on grpc-go.
//
//	interop server [CERT KEY]                prints the port that it listens on
//	interop client ADDRESS CA COUNT CASE..   runs each case COUNT times at once on one connection; in cleartext if CA is empty
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	switch args := os.Args[2:]; os.Args[1] {
	case "server":
		serve(args)
	case "client":
		count, err := strconv.Atoi(args[2])
		check(err)
		run(args[0], args[1], count, args[3:])
	default:
		check(fmt.Errorf("no such side: %s", os.Args[1]))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
