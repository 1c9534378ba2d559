package shim

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/internal/sys/foreign"
)

// stop ends the agent. What was asked is in the journal before anything is done;
// on a full disk it is done all the same.
func (k *keeper) stop(stop Stop, kill bool) error {
	kind := "stop"
	if kill {
		kind = "kill"
	}
	record := journal.Encode(journal.Input{Kind: kind, By: stop.By, Text: stop.Reason})
	k.mu.Lock()
	child := k.child
	over := child == nil || child.over
	if !over && k.reason == "" {
		k.reason = stop.Reason
	}
	k.mu.Unlock()
	if over && child != nil {
		if !child.spawn.Retry {
			return errNoChild
		}
		<-child.gone // its exit is in the journal already
	}
	if over {
		k.inputs.Lock()
		err := k.giveUp(child, stop.Reason, record)
		k.inputs.Unlock()
		if errors.Is(err, errNext) {
			return k.stop(stop, kill)
		}
		return err
	}
	k.tryAppend(journal.KindInput, record)
	if stop.Grace == 0 {
		stop.Grace = child.spawn.Grace
	}
	child.request(stopRequest{kill: kill, grace: stop.Grace})
	return nil
}

// see sees one child to its end, and all its descendants: it waits for the leader
// or for somebody's wish, ends what is left, drains the output and only then
// writes the exit.
func (k *keeper) see(child *child) {
	left, held := k.endTree(child)
	child.hangUp()
	drained := make(chan struct{})
	go func() { child.outputs.Wait(); close(drained) }()
	select {
	case <-drained:
	case <-time.After(drainTime):
		// Somebody outside the run holds the pipe open; it gets a broken one.
		for _, f := range child.files {
			_ = f.SetReadDeadline(time.Now())
		}
		<-drained
	}
	child.in.close()
	for _, path := range child.spawn.Collect {
		k.append(journal.KindCollected, journal.Encode(collect(path)))
	}
	k.mu.Lock()
	child.over = true // who asks for its end from here on comes too late, and is told so
	for id, t := range k.timers {
		t.Stop()
		delete(k.timers, id)
	}
	for kind, t := range k.limits {
		t.Stop()
		delete(k.limits, kind)
	}
	for id := range k.answers {
		k.forget(id)
	}
	exit := journal.Exit{Spawn: child.spawn.Number, Reason: k.reason, Killed: left, Survivors: strings.Join(held, "; ")}
	exit.Code, exit.Signal = child.ended()
	if exit.Reason == "" && k.signaled != "" && (asksForEnd[k.signaled] || exit.Signal == k.signaled) {
		exit.Reason = "signal"
	}
	k.mu.Unlock()
	record := journal.Encode(exit)
	k.writeExit(record)
	switch {
	case exit.Reason == "host_gone":
		k.tryAppend(journal.KindExit, record) // who comes later reads the file
	case k.append(journal.KindExit, record): // the host waits for it
	case exit.Reason == "":
		exit.Reason = "disk_full"
		k.writeExit(journal.Encode(exit))
	}
	close(child.gone)
	if k.diskFull.Load() {
		k.finish()
	}
	k.mu.Lock()
	alone := k.alone != nil
	k.mu.Unlock()
	if alone { // the journal says all that the next host must know
		k.endAlone("host_gone")
		k.finish()
	}
}

// writeExit writes the file that has its room from the start.
func (k *keeper) writeExit(record []byte) {
	_, _ = k.exit.WriteAt(append(record[:len(record):len(record)], '\n'), 0)
}

// endTree returns when the leader and every descendant are gone. left says how
// many the leader had left behind when it ended by itself, held which could not be
// ended.
func (k *keeper) endTree(child *child) (left int, held []string) {
	var killAt <-chan time.Time
	kill := false
	for leader := true; leader && !kill; {
		select {
		case <-child.exited:
			leader = false
		case r := <-child.stop:
			if kill = r.kill; !kill {
				if !k.terminate(child) {
					kill = true
				} else if killAt == nil {
					killAt = time.After(r.grace)
				}
			}
		case <-killAt:
			kill = true
		}
	}
	if !kill {
		if left = k.signal(); left > 0 && k.terminate(child) {
			deadline := time.NewTimer(leftoverGrace)
			defer deadline.Stop()
			for waiting := true; waiting && k.signal() > 0; {
				select {
				case <-time.After(killPause):
				case <-deadline.C:
					waiting = false
				case r := <-child.stop:
					waiting = !r.kill
				}
			}
		}
	}
	return left, k.killTree(child)
}

// killTree kills until the system says that nothing is left. What cannot be ended it names
// and leaves, after a while: the run is not to wait for it for ever.
func (k *keeper) killTree(child *child) (held []string) {
	k.signal(syscall.SIGKILL) // all at once; what they start meanwhile is hunted
	var stuckSince time.Time
	since := time.Now()
	for pause := killPause; ; {
		gone, lost := k.hunt()
		if gone && isClosed(child.exited) {
			return nil
		}
		if lost {
			pause, stuckSince = killPause, time.Time{}
			if time.Since(since) > lostTime {
				time.Sleep(lostPause)
			}
			continue
		}
		select {
		case <-k.deaths:
			pause = killPause
			continue
		case <-time.After(pause):
		case <-child.stop:
		}
		if pause = min(2*pause, stuckPause); pause < walkPause {
			continue
		}
		k.signal(syscall.SIGKILL) // what is below one that does not die is no child of ours
		if pause < stuckPause {
			continue
		}
		switch held = k.held(); {
		case len(held) == 0:
			stuckSince = time.Time{}
		case stuckSince.IsZero():
			stuckSince = time.Now()
			k.logf("cannot be killed, and the run waits for it: %s", strings.Join(held, "; "))
		case time.Since(stuckSince) > k.cfg.HeldWait:
			k.logf("the run ends without: %s", strings.Join(held, "; "))
			return held
		}
	}
}

func (k *keeper) logf(format string, args ...any) {
	fmt.Fprintf(k.cfg.Log, "%s %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}

// hunt is one round of it. It holds walk: nobody else reaps.
func (k *keeper) hunt() (gone, lost bool) {
	k.walk.Lock()
	defer k.walk.Unlock()
	return k.cfg.Tree.Hunt(k.reaped)
}

func (k *keeper) held() []string {
	k.walk.Lock()
	defer k.walk.Unlock()
	k.walked = true
	return k.cfg.Tree.Held()
}

// terminate asks the tree to end, and reports whether it can be asked.
func (k *keeper) terminate(child *child) bool {
	k.tryAppend(journal.KindSignal, journal.Encode(journal.Signal{Name: "SIGTERM", To: "tree"}))
	k.pausing.Lock()
	defer k.pausing.Unlock()
	return k.askToEnd(child)
}

func collect(path string) journal.Collected {
	f, err := foreign.Open(path, foreign.Rule{}) // the agent may have put a FIFO there
	if err != nil {
		return journal.Collected{Path: path, Absent: true}
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, collectLimit))
	if err != nil {
		return journal.Collected{Path: path, Absent: true}
	}
	return journal.Collected{Path: path, Content: content}
}
