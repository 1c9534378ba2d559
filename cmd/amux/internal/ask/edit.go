package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/internal/sys/foreign"
)

// unchangeable is why e does not work.
const unchangeable = "this request cannot be changed: y allows it as it is, n REASON tells the agent what to do instead"

// maxEdited is the largest input that an editor may leave.
const maxEdited = 1 << 20

// edit opens what the agent wants to do in the user's editor, and returns the input that
// takes its place: of a tool that runs a command the command, else all arguments as JSON.
func (d *Dialog) edit() (json.RawMessage, error) {
	var request struct {
		Input map[string]json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(d.open.Event, &request); err != nil || !d.open.Editable || len(request.Input) == 0 {
		return nil, errors.New(unchangeable)
	}
	name, before := "input.json", ""
	key, command := render.Command(request.Input)
	if key != "" {
		name, before = "command.sh", command+"\n"
	} else {
		indented, err := json.MarshalIndent(request.Input, "", "  ")
		if err != nil {
			return nil, err
		}
		before = string(indented) + "\n"
	}
	after, err := d.editText(name, before)
	switch {
	case err != nil:
		return nil, fmt.Errorf("nothing was answered: %w", err)
	case strings.TrimSpace(after) == "" || after == before:
		return nil, errors.New("nothing was answered: the text is unchanged or empty")
	case key == "":
		input := json.RawMessage(after)
		if err := json.Unmarshal(input, &request.Input); err != nil {
			return nil, fmt.Errorf("nothing was answered: your text is not a JSON object: %w", err)
		}
		return input, nil
	}
	if request.Input[key], err = json.Marshal(strings.TrimRight(after, "\n")); err != nil {
		return nil, err
	}
	return json.Marshal(request.Input)
}

// editText opens a text in the user's editor. It is in a folder of the user's own
// meanwhile, for it may have secrets.
func (d *Dialog) editText(name, text string) (after string, err error) {
	dir, err := os.MkdirTemp("", "amux-edit-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	d.Keyboard.Lend(func() { d.Borrow(func(ctx context.Context) { err = d.Process.Edit(ctx, file) }) })
	if err != nil {
		return "", err
	}
	data, err := foreign.Read(file, foreign.Rule{Limit: maxEdited, Private: true})
	return string(bytes.ToValidUTF8(data, []byte("\uFFFD"))), err
}
