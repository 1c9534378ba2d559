// Package export makes OpenTelemetry traces and metrics of runs and sends them by OTLP. It
// is the work of amux-api telemetry, a process that package telemetry starts.
//
// It reads the ids of runs from stdin, one a line, and follows each run's events in its
// record, whoever hosts the run, also after the host has died. Spans are a function of the
// record: their times are those of events, their ids are hashes of the run's id and the
// number of the event that they begin with. It ends when stdin is closed, its runs have
// ended, and what they gave is sent, for which it takes five seconds at most.
//
// Nothing waits for it. What it keeps is bounded: runs at a time, spans of a run that are
// open, spans that wait to be sent. What is over a limit is dropped and counted. Texts
// (prompts, answers, arguments and results of tools) are left out unless asked for.
package export

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/pluginapi"
)

const (
	// flushTime is how long an exporter stays after the end of its runs.
	flushTime = 5 * time.Second
	// mostRuns is how many runs are followed at a time.
	mostRuns = 512
)

// Exporter follows runs.
type Exporter struct {
	Host    app.Host
	Env     []string // of the process
	Version string
	// ConfigDir has the log.
	ConfigDir string
}

// Serve exports the runs whose ids come from in, and returns when it has ended and they
// have too.
func (x *Exporter) Serve(in io.Reader) error {
	log := newLog(x.ConfigDir, x.Env)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.printf("%v", err) }))
	p, err := open(context.Background(), x.Env, x.Version, log)
	if err != nil {
		log.printf("nothing is sent: %v", err)
		return err
	}
	var following sync.WaitGroup
	places := make(chan struct{}, mostRuns)
	skipped := 0
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 4096)
	for lines.Scan() {
		id := lines.Text()
		if _, err := ulid.ParseStrict(id); err != nil {
			log.printf("got a line that is no id of a run")
			continue
		}
		select {
		case places <- struct{}{}:
			following.Go(func() {
				x.follow(p, id)
				<-places
			})
		default:
			skipped++
		}
	}
	following.Wait()
	if skipped > 0 {
		log.printf("%d runs were not exported: there were %d at a time", skipped, mostRuns)
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	p.close(ctx)
	return nil
}

// recoverTime is how long the end of a run whose host has died is waited for.
const recoverTime = 3 * time.Second

// follow exports one run.
func (x *Exporter) follow(p *pipeline, id string) {
	defer func() {
		if r := recover(); r != nil {
			p.log.printf("run %s: panic: %v", id, r)
		}
	}()
	var spans *run
	var patience app.Patience
	for seen := uint64(0); ; {
		recorded, err := x.Host.Open(context.Background(), id)
		if err != nil {
			p.log.printf("run %s is not exported: %v", id, err)
			break
		}
		info := recorded.Info()
		if spans == nil {
			spans = p.recorder.Run(info)
		}
		for event, failed := range recorded.Events(context.Background(), seen+1) {
			if err = failed; err != nil {
				break
			}
			seen = event.Seq
			spans.Event(event)
		}
		if err == nil {
			return
		}
		if !errors.Is(err, pluginapi.CodeHostGone) || !patience.Again(recorded.Info(), seen) {
			p.log.printf("run %s has no end: %v", id, err)
			break
		}
		// The rest is rebuilt from the journal, without a gap and without a repeat.
		ctx, cancel := context.WithTimeout(context.Background(), recoverTime)
		_, _ = x.Host.RecoverRun(ctx, id) // if it cannot, patience ends
		cancel()
	}
	if spans != nil {
		spans.End()
	}
}
