// A client of net/http over HTTP/2 that sends requests at the same time on one connection: `client BASE CA COUNT` sends
// COUNT bodies to /echo and checks that each comes back, with the trailer of the response.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
)

func main() {
	pem, err := os.ReadFile(os.Args[2])
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true,
	}}
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	done := make(chan error)
	for number := range count {
		go func() { done <- echo(client, number) }()
	}
	for range count {
		check(<-done)
	}
	fmt.Println("ok")
}

// echo sends a body of unknown length for odd numbers.
func echo(client *http.Client, number int) error {
	body := bytes.Repeat([]byte{byte(number)}, number*10_000)
	var reader io.Reader = bytes.NewReader(body)
	if number%2 == 1 {
		reader = io.MultiReader(reader)
	}
	response, err := client.Post(os.Args[1]+"/echo", "text/plain", reader)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	received, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.ProtoMajor != 2 || response.StatusCode != 200 || !bytes.Equal(received, body) {
		return fmt.Errorf("%d: %s %s, %d bytes", number, response.Proto, response.Status, len(received))
	}
	if sum := response.Trailer.Get("X-Sum"); sum != strconv.Itoa(len(body)) {
		return fmt.Errorf("%d: trailer %q", number, sum)
	}
	return nil
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
