package record

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// asking are the types of events that ask, answer, or end what was asked.
var asking = []pluginapi.Type{
	code.EventApprovalRequest, code.EventInputRequired, code.EventApprovalGranted, code.EventApprovalDenied, code.EventInputAnswered, code.EventRetry,
}

// Questions reads what the agent has asked: what waits for an answer, and what has
// got one.
func Questions(dir *store.Run) (*engine.Questions, error) {
	questions := &engine.Questions{Answered: map[string]bool{}}
	file, err := os.Open(dir.Path("events.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return questions, nil // the run is being started
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "events of run %s: %w", dir.ID, fault.Plain(err))
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, 256<<10)
	for {
		line, long, err := wantedLine(lines)
		if err != nil {
			return questions, nil // the end, or a line that is being written
		}
		if i := slices.IndexFunc(asking, func(t pluginapi.Type) bool { return IsType(line, string(t)) }); i >= 0 && !long {
			questions.Learn(asking[i], line)
		}
	}
}

// Standing is what people have decided for the rest of the run, by its journal.
func Standing(path string) (decided engine.Standing) {
	src, err := Open(path)
	if err != nil {
		return decided
	}
	defer src.Close()
	reader, err := journal.NewReader(src)
	for err == nil {
		var rec journal.Record
		if rec, err = reader.Next(src.Committed()); err == nil && rec.Kind == journal.KindInput {
			var in journal.Input
			if rec.Decode(&in) == nil {
				decided.Learn(in)
			}
		}
	}
	return decided // up to the end, or a torn tail
}

// wantedLine reads a line. Of one that is longer than the buffer and asks nothing
// only the beginning is kept.
func wantedLine(r *bufio.Reader) (line []byte, cut bool, err error) {
	line, err = r.ReadSlice('\n')
	if err == nil || !errors.Is(err, bufio.ErrBufferFull) {
		return line, false, err
	}
	if IsType(line, code.EventApprovalRequest) || IsType(line, code.EventInputRequired) {
		whole := bytes.Clone(line)
		rest, err := r.ReadBytes('\n')
		return append(whole, rest...), false, err
	}
	line = bytes.Clone(line[:64])
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return line, true, err
}

// Question finds the question that an answer of this kind is for, by the events;
// an empty id is the only one that waits.
func Question(dir *store.Run, kind, id string) (string, error) {
	if info, err := Read(dir); err != nil || info.End != nil {
		return "", NotActive(dir.ID)
	}
	questions, err := Questions(dir)
	if err != nil {
		return "", err
	}
	open := questions.Open()
	fits := func(q *engine.Question) bool {
		return kind == code.InputDeny || q.Approval == (kind == code.InputApprove)
	}
	if id == "" {
		fitting := slices.DeleteFunc(slices.Clone(open), func(q *engine.Question) bool { return !fits(q) })
		switch {
		case len(fitting) == 1:
			return fitting[0].ID, nil
		case len(fitting) > 1:
			var ids []string
			for _, q := range fitting {
				ids = append(ids, q.ID)
			}
			return "", pluginapi.Errorf(pluginapi.CodeValidation, "run %s waits for %d answers", dir.ID, len(ids)).
				WithHint("name one by its interaction id: %s", strings.Join(ids, ", "))
		case len(open) == 0:
			return "", pluginapi.Errorf(pluginapi.CodeNoPendingInteraction, "run %s waits for no answer", dir.ID)
		}
		id = open[0].ID
	}
	for _, q := range open {
		switch {
		case q.ID != id:
		case fits(q):
			return id, nil
		case q.Approval:
			return "", pluginapi.Errorf(pluginapi.CodeValidation, "%s of run %s asks for leave, not for an answer", id, dir.ID).WithHint("use amux approve or amux deny")
		default:
			return "", pluginapi.Errorf(pluginapi.CodeValidation, "%s of run %s is a question", id, dir.ID).WithHint("use amux answer or amux deny")
		}
	}
	if questions.Answered[id] {
		return "", pluginapi.Errorf(pluginapi.CodeAlreadyAnswered, "somebody else has answered %s", id)
	}
	return "", pluginapi.Errorf(pluginapi.CodeInteractionNotFound, "run %s has asked no question with the id %q", dir.ID, id)
}
