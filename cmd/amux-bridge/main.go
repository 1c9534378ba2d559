// Amux-bridge makes of an agent that is an HTTP server one that speaks lines. It is
// a run's leader: it starts the server as its child and waits until it is healthy,
// prints each of its server-sent events as a line, and answers each request line
// from stdin by a response line. When stdin ends it ends the server; when the server
// ends or hangs it says so on stderr and exits with code 1. It knows no agent: what
// there is to know are its flags.
//
//	amux-bridge --ready 'listening on (http://127\.0\.0\.1:\d+)' --health /health \
//		--events /event --user agent --password-env AGENT_PASSWORD -- agent serve
//
// With --url the server is somebody else's: it is neither started nor ended.
//
// Lines on stdin, done one after the other:
//
//	{"id":"1","method":"POST","path":"/session","body":{}}
//
// Lines on stdout, one of:
//
//	{"type":"ready","health":{…}}
//	{"type":"event","event":{…}}
//	{"type":"response","id":"1","status":200,"body":{…}}
//	{"type":"response","id":"1","status":404,"text":"what is no JSON"}
//	{"type":"response","id":"1","error":"it was not answered: …"}
//
// An event is passed on as it comes: one that is not JSON makes a line that is not JSON
// either. What the server itself prints goes to stderr.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// config is the command line.
type config struct {
	ready       *regexp.Regexp // on the server's stdout; its group is the URL
	url         string         // of a server that runs already
	health      string         // paths
	events      string
	user        string
	passwordEnv string
	argv        []string

	startTime, answerTime, silence time.Duration
}

func main() {
	c, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "amux-bridge:", err)
		os.Exit(2)
	}
	code, err := run(c, os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "amux-bridge:", err)
	}
	os.Exit(code)
}

func parse(args []string) (config, error) {
	var c config
	flags := flag.NewFlagSet("amux-bridge", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	ready := flags.String("ready", "", "`pattern` of the line that has the server's URL in a group")
	flags.StringVar(&c.url, "url", "", "a server that runs already, instead of starting one")
	flags.StringVar(&c.health, "health", "", "`path` that answers with JSON when the server is well")
	flags.StringVar(&c.events, "events", "", "`path` of the server-sent events")
	flags.StringVar(&c.user, "user", "", "name for basic authentication")
	flags.StringVar(&c.passwordEnv, "password-env", "", "`variable` with the server's password; a server that is started gets a random one")
	flags.DurationVar(&c.startTime, "start-time", 2*time.Minute, "longest start of the server")
	flags.DurationVar(&c.answerTime, "answer-time", 2*time.Minute, "longest wait for a response")
	flags.DurationVar(&c.silence, "silence", 2*time.Minute, "longest silence of the events")
	if err := flags.Parse(args); err != nil {
		return c, fmt.Errorf("%w; it is started by amux, see: amux --help", err)
	}
	c.argv = flags.Args()
	var err error
	if c.ready, err = regexp.Compile(*ready); err != nil {
		return c, fmt.Errorf("--ready: %w", err)
	}
	switch {
	case (c.url == "") == (len(c.argv) == 0):
		return c, errors.New("either --url or the command of a server is needed")
	case c.url == "" && c.ready.NumSubexp() != 1:
		return c, errors.New("--ready needs one group, the server's URL")
	case !strings.HasPrefix(c.health, "/") || !strings.HasPrefix(c.events, "/"):
		return c, errors.New("--health and --events are paths that begin with /")
	case min(c.startTime, c.answerTime, c.silence) < time.Millisecond:
		return c, errors.New("a limit of time is below a millisecond")
	}
	if c.url != "" {
		u, err := url.Parse(c.url)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return c, errors.New("--url is not like http://127.0.0.1:4096, without a password in it")
		}
		c.url = strings.TrimSuffix(c.url, "/")
	}
	return c, nil
}
