package main

import (
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/interop"
	testing "google.golang.org/grpc/interop/grpc_testing"
)

func serve(identity []string) {
	var options []grpc.ServerOption
	if len(identity) == 2 {
		tls, err := credentials.NewServerTLSFromFile(identity[0], identity[1])
		check(err)
		options = append(options, grpc.Creds(tls))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	server := grpc.NewServer(options...)
	testing.RegisterTestServiceServer(server, interop.NewTestServer())
	check(server.Serve(listener))
}
