package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/amux-dev/amux/internal/lines"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
)

const flood200k = 200_000

// throughput is how many delta lines a second come from the agent's write to the
// reader of amux's stdout; the floor is one process that parses and prints.
func throughput(w *world, t *table) error {
	env := agentEnv{"lines": flood200k}
	floor, floorCPU, err := w.rate(w.role("floor", env))
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	measured, measuredCPU, err := w.rate(w.run(env))
	if err != nil {
		return err
	}
	t.add("throughput, 261-byte deltas", floor, measured)
	t.add("CPU for 200,000 lines", floorCPU, measuredCPU)
	return nil
}

// rate runs a command that prints 200,000 deltas.
func (w *world) rate(cmd *exec.Cmd) (perSecond, cpuSeconds float64, err error) {
	out, err := start(cmd)
	if err != nil {
		return 0, 0, err
	}
	count, first := 0, int64(0)
	var last time.Time
	err = out.lines(func(line []byte, at time.Time) bool {
		if bytes.HasPrefix(line, []byte(`{"type":"text_delta"`)) {
			if count == 0 {
				first = stamp(line)
			}
			count++
			last = at
		}
		return true
	})
	if err != nil {
		return 0, 0, err
	}
	if err := out.end(); err != nil {
		return 0, 0, err
	}
	if count != flood200k {
		return 0, 0, fmt.Errorf("%d of %d lines came", count, flood200k)
	}
	seconds := float64(last.UnixNano()-first) / 1e9
	return flood200k / seconds, cpu(cmd.ProcessState), nil
}

// latency is from the agent's write of a line to its event on amux's stdout; the
// floor is a pipe.
func latency(w *world, t *table) error {
	for _, rate := range []int{1_000, 10_000} {
		env := agentEnv{"lines": rate * 3 / 2, "rate": rate}
		direct, end, err := w.direct(env)
		if err != nil {
			return err
		}
		floor, err := w.delays(direct, end)
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		measured, err := w.delays(w.run(env), func() {})
		if err != nil {
			return err
		}
		name := "latency at 1,000 lines/s"
		if rate == 10_000 {
			name = "latency at 10,000 lines/s"
		}
		t.add(name+", p50", median(floor), median(measured))
		t.add(name+", p99", quantile(floor, 0.99), quantile(measured, 0.99))
	}
	return nil
}

// delays are the delays of all deltas, in microseconds.
func (w *world) delays(cmd *exec.Cmd, end func()) ([]float64, error) {
	out, err := start(cmd)
	if err != nil {
		return nil, err
	}
	var delays []float64
	err = out.lines(func(line []byte, at time.Time) bool {
		if sent := stamp(line); sent > 0 {
			delays = append(delays, float64(at.UnixNano()-sent)/1e3)
		}
		if bytes.HasPrefix(line, []byte(`{"type":"result"`)) {
			end() // of the agent without amux
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if len(delays) == 0 {
		return nil, fmt.Errorf("no line came")
	}
	return delays[len(delays)/6:], out.end() // without the first ones, which wait for a start
}

// playFloor is an in-process design: it reads the agent's lines, parses them and
// prints events.
func playFloor() error {
	agent := exec.Command("claude")
	agent.Env, agent.Stderr = os.Environ(), os.Stderr
	in, err := agent.StdinPipe()
	if err != nil {
		return err
	}
	out, err := start(agent)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(in, prompt); err != nil {
		return err
	}
	splitter := lines.Splitter{Piece: pluginapi.PieceSize, Limit: pluginapi.MaxLine}
	seq, events := uint64(0), []byte(nil)
	line := func(l lines.Line) {
		doc, err := jsonl.ParseObject(l.Data)
		if err != nil {
			return
		}
		defer doc.Release()
		event := pluginapi.Payload(pluginapi.Log{Source: "stdout", Line: string(l.Data)})
		switch string(doc.Bytes("type")) {
		case "stream_event":
			if string(doc.Bytes("event", "type")) == "content_block_delta" {
				event = pluginapi.TextDelta{Delta: doc.Text("event", "delta", "text")}
			}
		case "result":
			in.Close()
		}
		seq++
		events = append(events, `{"type":"`...)
		events = append(events, event.EventType()...)
		events = append(events, `","run_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","seq":`...)
		events = strconv.AppendUint(events, seq, 10)
		events = append(events, `,"time":"`...)
		events = time.Now().UTC().AppendFormat(events, "2006-01-02T15:04:05.000000Z")
		events = append(events, `","agent":"claude",`...)
		from := len(events)
		if events, err = pluginapi.AppendPayload(events, event); err != nil {
			panic(err)
		}
		events = append(append(events[:from], events[from+1:]...), '\n') // without its {
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := out.pipe.Read(buf)
		splitter.Feed(buf[:n], line)
		if len(events) > 0 {
			if _, err := os.Stdout.Write(events); err != nil {
				return err
			}
			events = events[:0]
		}
		if err == io.EOF {
			return out.end()
		}
		if err != nil {
			return err
		}
	}
}
