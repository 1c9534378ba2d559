package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/danielgtaylor/huma/v2"
	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// screenLine is a text message on the socket of a screen. From the server, type is size
// (cols and rows; opened: the screen is empty), current (all there is has been sent), error,
// or holder; from the client resize, take (with steal) or give, for the keyboard. Binary
// messages are output and keys.
type screenLine struct {
	Type    string `json:"type"`
	Cols    int    `json:"cols,omitempty"`
	Rows    int    `json:"rows,omitempty"`
	Opened  bool   `json:"opened,omitempty"`
	Steal   bool   `json:"steal,omitempty"`
	Held    bool   `json:"held,omitempty"` // the keyboard is this client's
	Message string `json:"message,omitempty"`
}

const (
	maxKeys = 64 << 10
	maxSide = 1000 // columns or rows
)

// addScreen adds the terminal of a run, as a WebSocket.
func (s *api) addScreen(mux *http.ServeMux, doc *huma.OpenAPI) {
	const path = "/v1/runs/{run}/screen"
	op := &huma.Operation{
		OperationID: "openScreen", Method: http.MethodGet, Path: path, Summary: "Show the terminal of a run, and type on it", Tags: []string{"runs"},
		Description: "A WebSocket. Binary messages are what the agent prints and what is typed. Text messages are JSON with `type`: the server sends `size`, `current`, `holder` and `error`; the client sends `resize`, `take` (the keyboard; `steal` takes it from another one) and `give`.",
		Parameters:  []*huma.Param{{Name: "run", In: "path", Required: true, Description: "id, name, or the last characters of the id", Schema: &huma.Schema{Type: "string"}}},
		Responses:   map[string]*huma.Response{"101": {Description: "the socket is open"}},
	}
	for status, text := range map[string]string{"400": "no WebSocket", "401": "no token", "403": "another origin", "404": "no such run", "409": "it has no terminal", "421": "another host name", "426": "no WebSocket"} {
		op.Responses[status] = &huma.Response{Description: text, Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}}}}
	}
	doc.AddOperation(op)
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		run, err := s.open(r.Context(), r.PathValue("run"))
		if err != nil {
			p := problemOf(err)
			writeProblem(w, p.status, p.Code, p.Message, p.Hint)
			return
		}
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			writeProblem(w, http.StatusUpgradeRequired, pluginapi.CodeValidation, "this address is a WebSocket", "")
			return
		}
		socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{screenProtocol}, OriginPatterns: []string{r.Host}, CompressionMode: websocket.CompressionDisabled})
		if err != nil {
			return // it has answered
		}
		socket.SetReadLimit(maxKeys)
		s.screen(r.Context(), socket, run)
	})
}

// screen sends what is printed, and types what is sent, until either side leaves.
func (s *api) screen(ctx context.Context, socket *websocket.Conn, run app.Recorded) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer socket.CloseNow()
	say := func(line screenLine) error {
		data, err := json.Marshal(line)
		if err != nil {
			return err
		}
		return write(ctx, socket, websocket.MessageText, data)
	}
	go func() {
		defer cancel()
		s.keys(ctx, socket, run, say)
	}()
	for piece, err := range run.Terminal(ctx, true) {
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			_ = say(screenLine{Type: "error", Message: problemOf(err).Message})
			_ = socket.Close(websocket.StatusNormalClosure, "")
			return
		case len(piece.Output) > 0:
			err = write(ctx, socket, websocket.MessageBinary, piece.Output)
		case piece.Cols > 0:
			err = say(screenLine{Type: "size", Cols: piece.Cols, Rows: piece.Rows, Opened: piece.Opened})
		case piece.Current:
			err = say(screenLine{Type: "current"})
		}
		if err != nil {
			return
		}
	}
	_ = socket.Close(websocket.StatusNormalClosure, "the run has ended")
}

// write writes a message; a client that takes nothing for writeTime is left.
func write(ctx context.Context, socket *websocket.Conn, kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	return socket.Write(ctx, kind, data)
}

// keys types and resizes. Only who holds the keyboard may.
func (s *api) keys(ctx context.Context, socket *websocket.Conn, run app.Recorded, say func(screenLine) error) {
	holder, held, asked := ulid.Make().String(), false, time.Time{}
	defer func() {
		if held {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = run.GiveBack(ctx, holder) // else it lapses
		}
	}()
	for {
		kind, data, err := socket.Read(ctx)
		if err != nil {
			return
		}
		var line screenLine
		if kind == websocket.MessageText {
			if err := json.Unmarshal(data, &line); err != nil {
				_ = say(screenLine{Type: "error", Message: "a text message is no JSON"})
				continue
			}
		}
		steal := line.Type == "take" && line.Steal
		if line.Type == "give" {
			if held {
				_ = run.GiveBack(ctx, holder) // else it lapses
			}
			held = false
			_ = say(screenLine{Type: "holder"})
			continue
		}
		if !held || steal || time.Since(asked) > host.LeaseTime/3 {
			err := run.Lease(ctx, holder, steal)
			if held = err == nil; !held {
				_ = say(screenLine{Type: "error", Message: problemOf(err).Message})
				continue
			}
			asked = time.Now()
			_ = say(screenLine{Type: "holder", Held: true})
		}
		switch {
		case kind == websocket.MessageBinary:
			err = run.Keys(ctx, data)
		case line.Type == "resize" && line.Cols > 0 && line.Rows > 0 && line.Cols <= maxSide && line.Rows <= maxSide:
			err = run.Resize(ctx, line.Cols, line.Rows)
		case line.Type == "resize":
			err = app.Usagef("invalid size")
		case line.Type != "take":
			err = app.Usagef("unknown type of message")
		}
		if err != nil {
			_ = say(screenLine{Type: "error", Message: problemOf(err).Message})
		}
	}
}
