package engine

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/eventlog"
	"github.com/amux-dev/amux/internal/journal"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// mirror is an adapter that makes one delta of each line, at no cost of its own.
type mirror struct{ queue chan *pb.ConverseResponse }

var mirrored = []byte(`{"delta":"` + strings.Repeat("x", 200) + `"}`)

func (m mirror) Send(req *pb.ConverseRequest) error {
	outputs := make([]pb.Output, len(req.Inputs))
	resp := &pb.ConverseResponse{Done: req.FirstN + uint64(len(req.Inputs)) - 1, Outputs: make([]*pb.Output, len(outputs))}
	for i := range outputs {
		out := &outputs[i]
		out.N, out.K, out.Kind, out.Type, out.Data = req.FirstN+uint64(i), 1, pb.OutputKind_OUTPUT_EVENT, "text_delta", mirrored
		resp.Outputs[i] = out
	}
	m.queue <- resp
	return nil
}

func (m mirror) Recv() (*pb.ConverseResponse, error) {
	if resp, ok := <-m.queue; ok {
		return resp, nil
	}
	return nil, io.EOF
}

func (m mirror) Error(err error) error { return err }

// whole is a journal that nobody writes any more.
type whole struct {
	*os.File
	size int64
}

func (w whole) Committed() int64           { return w.size }
func (w whole) Wait(context.Context) error { return io.EOF }
func (w whole) Alone() bool                { return true }

// BenchmarkLines is what a line costs from journal to events, without its adapter.
func BenchmarkLines(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "journal")
	w, err := journal.OpenWriter(path, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	add := func(kind journal.Kind, payload []byte) {
		if err := w.Append(kind, payload); err != nil {
			b.Fatal(err)
		}
	}
	add(journal.KindPlan, journal.Encode(journal.Plan{Spawn: 1, Attempt: 1}))
	const perRecord = 64
	lines := bytes.Repeat([]byte(strings.Repeat("y", 260)+"\n"), perRecord)
	for range 100_000 / perRecord {
		add(journal.KindStdout, lines)
	}
	size := w.Size()
	w.Close()
	b.ReportAllocs()
	b.ResetTimer()
	b.StopTimer()
	done := 0
	for done < b.N {
		file, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		log, err := eventlog.Open(filepath.Join(dir, "events.jsonl"), "01J", "mirror", true)
		if err != nil {
			b.Fatal(err)
		}
		adapter := mirror{make(chan *pb.ConverseResponse, 8)}
		b.StartTimer()
		if err := readAll(whole{file, size}, log, adapter); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		done += int(log.Count())
		log.Close()
		file.Close()
		os.Remove(filepath.Join(dir, "events.jsonl"))
		os.Remove(filepath.Join(dir, "events.sum"))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(done), "ns/line")
}

func readAll(src whole, log *eventlog.Log, adapter mirror) error {
	e := New(Config{Journal: src, Log: log, Limits: Limits{Progress: time.Minute, Volume: 128 << 20, Stdin: 1 << 20}, Start: &pb.Start{}})
	return e.Run(context.Background(), Reading{Conversation: adapter, Leave: sync.OnceFunc(func() { close(adapter.queue) })})
}
