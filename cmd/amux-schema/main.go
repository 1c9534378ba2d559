// Amux-schema validates an agent's answer against a JSON schema. The host starts it for
// each validation and writes one JSON object to its stdin:
//
//	{"schema": "…"}                 is this a schema that can be used?
//	{"schema": "…", "answer": "…"}  does the answer match it?
//
// It prints one JSON object: {} for yes, {"error": "…"} with one line that says where
// and why not.
//
// It is a program of its own for two reasons: the library builds its own schemas at
// start, which made every command of amux 4 ms slower, and what schema and answer make
// it do stays outside the process that hosts the runs. Both come from outside, so both
// are bounded: size, nesting, and the work of one validation, counted in steps so that
// the same input always has the same result. Nothing is ever fetched: a schema that
// refers to another document is invalid.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// maxRequest is above a schema and an answer of their full length, each byte escaped.
const maxRequest = 6*(maxSchema+maxAnswer) + 64<<10

func main() {
	if len(os.Args) != 1 {
		fmt.Fprintln(os.Stderr, "amux-schema validates answers for amux and is started by it; see: amux --help")
		os.Exit(2)
	}
	if err := respond(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "amux-schema:", err)
		os.Exit(1)
	}
}

func respond(in io.Reader, out io.Writer) error {
	var request struct {
		Schema string
		Answer *string
	}
	var response struct {
		Error string `json:"error,omitempty"`
	}
	limited := &io.LimitedReader{R: in, N: maxRequest}
	err := json.NewDecoder(limited).Decode(&request)
	if err != nil && limited.N > 0 {
		return fmt.Errorf("read the request: %w", err)
	}
	if err != nil {
		err = fmt.Errorf("the answer is longer than %d MiB and was not validated", maxAnswer>>20)
	} else if request.Answer == nil {
		err = validate(request.Schema)
	} else {
		err = check(request.Schema, *request.Answer)
	}
	if err != nil {
		response.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(response)
}
