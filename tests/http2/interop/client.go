package main

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	testing "google.golang.org/grpc/interop/grpc_testing"
)

// run runs each case count times at once, and prints its name. A case that fails logs why and ends the program.
func run(address, ca string, count int, cases []string) {
	creds := insecure.NewCredentials()
	if ca != "" {
		var err error
		creds, err = credentials.NewClientTLSFromFile(ca, "localhost")
		check(err)
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	check(err)
	defer connection.Close()
	for _, name := range cases {
		done := make(chan struct{})
		for range count {
			go func() {
				runCase(connection, name)
				done <- struct{}{}
			}()
		}
		for range count {
			<-done
		}
		fmt.Println(name)
	}
}

func runCase(connection *grpc.ClientConn, name string) {
	// A response that never comes fails the case.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := testing.NewTestServiceClient(connection)
	switch name {
	case "empty_unary":
		interop.DoEmptyUnaryCall(ctx, client)
	case "large_unary":
		interop.DoLargeUnaryCall(ctx, client)
	case "client_streaming":
		interop.DoClientStreaming(ctx, client)
	case "server_streaming":
		interop.DoServerStreaming(ctx, client)
	case "ping_pong":
		interop.DoPingPong(ctx, client)
	case "empty_stream":
		interop.DoEmptyStream(ctx, client)
	case "cancel_after_begin":
		interop.DoCancelAfterBegin(ctx, client)
	case "cancel_after_first_response":
		interop.DoCancelAfterFirstResponse(ctx, client)
	case "status_code_and_message":
		interop.DoStatusCodeAndMessage(ctx, client)
	case "special_status_message":
		interop.DoSpecialStatusMessage(ctx, client)
	case "timeout_on_sleeping_server":
		interop.DoTimeoutOnSleepingServer(ctx, client)
	case "custom_metadata":
		interop.DoCustomMetadata(ctx, client)
	case "unimplemented_method":
		interop.DoUnimplementedMethod(ctx, connection)
	case "unimplemented_service":
		interop.DoUnimplementedService(ctx, testing.NewUnimplementedServiceClient(connection))
	default:
		check(fmt.Errorf("no such case: %s", name))
	}
}
