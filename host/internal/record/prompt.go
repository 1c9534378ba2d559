package record

import (
	"bufio"
	"encoding/json"
	"io"
	"os"

	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// promptWithin is how many bytes of events are looked through for the first prompt, which
// follows what the agent says at its start.
const promptWithin = 256 << 10

// FirstPrompt is the first prompt that the events have; empty if there is none near their
// beginning.
func FirstPrompt(dir *store.Run) string {
	file, err := os.Open(dir.Path("events.jsonl"))
	if err != nil {
		return "" // the run is being started
	}
	defer file.Close()
	lines := bufio.NewScanner(io.LimitReader(file, promptWithin))
	lines.Buffer(make([]byte, 0, 4<<10), promptWithin)
	for lines.Scan() {
		var m pluginapi.UserMessage
		if IsType(lines.Bytes(), code.EventUserMessage) && json.Unmarshal(lines.Bytes(), &m) == nil && m.ParentID == "" {
			return m.Text
		}
	}
	return ""
}
