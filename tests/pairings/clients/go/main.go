// A client on Go's net/http and coder/websocket. Usage: main BASE CA SERVICE LENGTH; prints the transcript.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
)

var (
	base   string
	length int64
	client *http.Client
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

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

func patterned(length int64) []byte {
	all, err := io.ReadAll(&pattern{end: length})
	check(err)
	return all
}

func digest(body io.Reader) string {
	sum := sha256.New()
	n, err := io.Copy(sum, body)
	check(err)
	return fmt.Sprintf("%d %x", n, sum.Sum(nil))
}

// open sends a request; a length of -1 is unknown.
func open(method, path string, fields map[string]string, body io.Reader, length int64) *http.Response {
	request, err := http.NewRequest(method, base+path, body)
	check(err)
	if body != nil && length >= 0 {
		request.ContentLength = length
	}
	for name, value := range fields {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	check(err)
	return response
}

func ask(method, path string, fields map[string]string, body []byte) (*http.Response, []byte) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	response := open(method, path, fields, reader, int64(len(body)))
	return response, whole(response)
}

func whole(response *http.Response) []byte {
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	check(err)
	return content
}

func site() {
	for _, path := range []string{"/", "/style.css", "/picture.png"} {
		response, content := ask("GET", path, nil, nil)
		fmt.Println("GET", path, response.StatusCode, response.Header.Get("Content-Type"), digest(bytes.NewReader(content)))
	}
	picture, _ := ask("GET", "/picture.png", nil, nil)
	for _, pair := range [][2]string{{"etag", "If-None-Match"}, {"last-modified", "If-Modified-Since"}} {
		response, content := ask("GET", "/picture.png", map[string]string{pair[1]: picture.Header.Get(pair[0])}, nil)
		fmt.Println(pair[0], response.StatusCode, len(content))
	}
	part, content := ask("GET", "/picture.png", map[string]string{"Range": "bytes=10-19"}, nil)
	fmt.Println("range", part.StatusCode, part.Header.Get("Content-Range"), digest(bytes.NewReader(content)))
	head, content := ask("HEAD", "/picture.png", nil, nil)
	fmt.Println("HEAD", head.StatusCode, head.Header.Get("Content-Length"), len(content))
	missing, _ := ask("GET", "/missing", nil, nil)
	fmt.Println("missing", missing.StatusCode)
}

func api() {
	for _, step := range [][3]string{
		{"POST", "/api/items", `{"name":"Zoë"}`},
		{"GET", "/api/items/1", ""},
		{"PUT", "/api/items/1", `{"name":"Ada"}`},
		{"DELETE", "/api/items/1", ""},
		{"GET", "/api/items/1", ""},
		{"POST", "/api/items", `{"name":`},
	} {
		fields, body := map[string]string{}, []byte(nil)
		if step[2] != "" {
			fields["Content-Type"], body = "application/json", []byte(step[2])
		}
		response, content := ask(step[0], step[1], fields, body)
		line := []string{step[0], strconv.Itoa(response.StatusCode)}
		for _, word := range []string{response.Header.Get("Location"), string(content)} {
			if word != "" {
				line = append(line, word)
			}
		}
		fmt.Println(strings.Join(line, " "))
	}
	// With a field of its own, net/http leaves decoding to its user.
	zipped, content := ask("GET", "/api/gzip", map[string]string{"Accept-Encoding": "gzip"}, nil)
	plain, err := gzip.NewReader(bytes.NewReader(content))
	check(err)
	fmt.Println("gzip", zipped.StatusCode, zipped.Header.Get("Content-Encoding"), digest(plain))
	echo, content := ask("POST", "/api/echo", nil, patterned(300000))
	fmt.Println("echo", echo.StatusCode, echo.Header.Get("X-Framing"), digest(bytes.NewReader(content)))
}

func chunked() {
	echo := open("POST", "/api/echo", nil, &pattern{end: 300000}, -1)
	fmt.Println("echo", echo.StatusCode, echo.Header.Get("X-Framing"), digest(echo.Body))
}

func expect(name string) {
	response, content := ask("PUT", "/api/"+name, map[string]string{"Expect": "100-continue"}, patterned(300000))
	fmt.Println(name, response.StatusCode, string(content))
}

func continued() { expect("continued") }

func refused() { expect("refused") }

func chat() {
	options := &websocket.DialOptions{
		HTTPClient:      client,
		Subprotocols:    []string{"echo"},
		CompressionMode: websocket.CompressionContextTakeover,
	}
	socket, _, err := websocket.Dial(context.Background(), base+"/websocket", options)
	check(err)
	socket.SetReadLimit(-1)
	fmt.Println("open", socket.Subprotocol())
	for _, said := range []any{"Zoë €", "", patterned(5), patterned(70000), patterned(1000000)} {
		kind, message := websocket.MessageBinary, []byte(nil)
		switch said := said.(type) {
		case string:
			kind, message = websocket.MessageText, []byte(said)
		case []byte:
			message = said
		}
		check(socket.Write(context.Background(), kind, message))
		kind, message, err := socket.Read(context.Background())
		check(err)
		if kind == websocket.MessageText {
			fmt.Println("text", string(message))
		} else {
			fmt.Println("binary", digest(bytes.NewReader(message)))
		}
	}
	// An error unless the peer answers with the same code.
	check(socket.Close(websocket.StatusNormalClosure, ""))
	fmt.Println("close", int(websocket.StatusNormalClosure))
}

func events() {
	path := fmt.Sprintf("/events/%d", rand.Int())
	number := 0
	lines := bufio.NewScanner(open("GET", path, nil, nil, 0).Body)
	for lines.Scan() {
		if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
			number++
			confirmed, _ := ask("POST", fmt.Sprintf("%s/%d", path, number), nil, nil)
			fmt.Println(data, confirmed.StatusCode)
		}
	}
	check(lines.Err())
}

func upload() {
	response := open("PUT", "/bulk", nil, &pattern{end: length}, length)
	var answer struct {
		Bytes  int64
		Sha256 string
	}
	check(json.Unmarshal(whole(response), &answer))
	fmt.Println("upload", answer.Bytes, answer.Sha256)
}

func download() {
	fmt.Println("download", digest(open("GET", fmt.Sprintf("/bulk/%d", length), nil, nil, 0).Body))
}

func slow() {
	for _, name := range []string{"late", "trickle", "never"} {
		response, content := ask("GET", "/slow/"+name, nil, nil)
		fmt.Println(name, response.StatusCode, strings.TrimSpace(string(content)))
	}
}

func main() {
	base = os.Args[1]
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(os.Args[2])
	check(err)
	roots.AppendCertsFromPEM(pem)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	// Only the service's consent sends the body.
	transport.ExpectContinueTimeout = time.Hour
	client = &http.Client{Transport: transport}
	length, err = strconv.ParseInt(os.Args[4], 10, 64)
	check(err)
	services := map[string]func(){
		"site": site, "api": api, "chunked": chunked, "continued": continued, "refused": refused,
		"websocket": chat, "events": events, "upload": upload, "download": download, "slow": slow,
	}
	services[os.Args[3]]()
}
