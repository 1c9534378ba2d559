// Package schema has an agent's answer validated against a JSON schema, by the program
// amux-schema. The same schema and answer always have the same result.
package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Name is the program's name; it stands beside amux-shim.
const Name = "amux-schema"

// maxTime is for a very slow machine: the program counts its own steps, which take it about a
// second at most.
const maxTime = 30 * time.Second

// Program is the path of amux-schema. It is safe for concurrent use.
type Program string

// ErrUnavailable is wrapped by the errors of a validation that could not be done.
var ErrUnavailable = errors.New("it was not validated")

// Validate returns nil if text is a JSON schema that Check can use, and otherwise an
// error of one line that says where it is wrong: a line, or a JSON pointer.
func (p Program) Validate(text string) error {
	return p.ask(request{Schema: text})
}

// Check returns nil if answer is one JSON document that matches the schema, and
// otherwise an error of one line that names the JSON pointer that does not match. It
// returns nil for a schema that Validate refuses: an earlier build let it pass.
func (p Program) Check(schema, answer string) error {
	return p.ask(request{schema, &answer})
}

type request struct {
	Schema string  `json:"schema"`
	Answer *string `json:"answer,omitempty"`
}

func (p Program) ask(r request) error {
	if info, err := os.Stat(string(p)); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is missing, which belongs beside the amux program", ErrUnavailable, string(p))
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	in, err := json.Marshal(r)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, string(p))
	cmd.Env, cmd.Stdin, cmd.WaitDelay = []string{}, bytes.NewReader(in), time.Second
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it took more than %v", maxTime)
		}
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, string(p), err)
	}
	var response struct{ Error string }
	if err := json.Unmarshal(out, &response); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, string(p), err)
	}
	if response.Error != "" {
		return errors.New(response.Error)
	}
	return nil
}
