package main

import (
	"bufio"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is the bridge and the servers behind it, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "fake-server" {
		serve(os.Args[2])
		return
	}
	if os.Getenv("AMUX_BRIDGE_TEST") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// What a flooding server says.
const (
	floodEvents = 50_000
	hugeBytes   = 128 << 20
)

// serve is a server that behaves as its kind says.
func serve(kind string) {
	switch kind {
	case "dies":
		fmt.Fprintln(os.Stderr, "it cannot find its database")
		os.Exit(3)
	case "never ready":
		fmt.Println("warming up")
		time.Sleep(time.Hour)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "leaves a child":
		// It holds both pipes, as what a shell tool starts does.
		child := exec.Command("sleep", "60")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		child.Start()
		fmt.Printf("child %d\n", child.Process.Pid)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\nlistening on http://%s\nthis goes to stderr\n", strings.Repeat("x", 100<<10), listener.Addr())
	if kind == "deaf" {
		time.Sleep(time.Hour) // it listens, and accepts nothing
		listener.Close()
	}
	http.Serve(listener, handler(kind))
}

func handler(kind string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if kind == "web page" {
			io.WriteString(w, "<!doctype html>")
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		io.WriteString(w, "{\"healthy\":\ntrue}")
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) { events(kind, w, r) })
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "{\"type\":%q,\n\"length\":%d}", r.Header.Get("Content-Type"), len(body))
	})
	mux.HandleFunc("POST /hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("POST /die", func(http.ResponseWriter, *http.Request) {
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(7)
	})
	mux.HandleFunc("POST /big", func(w http.ResponseWriter, _ *http.Request) {
		w.Write(make([]byte, maxAnswer+1))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		password := os.Getenv("FAKE_PASSWORD")
		if kind == "another password" {
			password = "another"
		}
		user, given, _ := r.BasicAuth()
		if user != "agent" || password == "" || subtle.ConstantTimeCompare([]byte(given), []byte(password)) != 1 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func events(kind string, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := bufio.NewWriterSize(w, 1<<20)
	say := func(format string, args ...any) {
		fmt.Fprintf(out, format, args...)
	}
	flush := func() {
		out.Flush()
		w.(http.Flusher).Flush()
	}
	say("data: {\"n\":0}\n\n")
	flush()
	switch kind {
	case "hangs in an event":
		say("data: {\"n\":1,\"text\":\"half")
		flush()
		<-r.Context().Done()
	case "closes its events":
		return
	case "floods":
		for n := range floodEvents {
			say("id: %d\nevent: message\ndata: {\"n\":%d,\"text\":%q}\n\n", n, n+1, strings.Repeat("y", 1000))
		}
	case "one huge event":
		say("data: {\"n\":1,\"text\":\"")
		piece := strings.Repeat("z", 1<<20)
		for range hugeBytes >> 20 {
			say("%s", piece)
		}
		say("\"}\n\n")
	case "garbage":
		say("<html>\n: a comment\r\nnonsense: 1\ndata: not JSON\rat all\n\ndata: {\"n\":\ndata: 1}\r\n\r\ndata:{\"n\":2}\n\n%s\n", strings.Repeat("<", 200<<10))
	}
	say("data: {\"n\":-1}\n\n")
	flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(100 * time.Millisecond):
			say(": beat\n")
			flush()
		}
	}
}
