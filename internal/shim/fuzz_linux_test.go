package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

// noProcesses has no process to look at, and none to end.
type noProcesses struct{ Tree }

func (noProcesses) Start(int) uint64 { return 0 }

// frames are some that a host sends, one after the other.
func frames(all ...[]byte) []byte { return bytes.Join(all, nil) }

// A run's shim reads what every process of the user may write: whatever comes, it answers
// or hangs up, and its journal stays whole.
func FuzzFrames(f *testing.F) {
	input := append([]byte{byte(journal.KindInput)}, journal.Encode(journal.Input{Kind: "prompt", ID: "p", Text: "hi"})...)
	f.Add(frames(frame(frameAppend, 1, input), frame(frameStop, 2, encode(Stop{Reason: "stopped", By: "x"}))))
	f.Add(frames(frame(frameSpawn, 1, []byte("{")), frame(frameLimit, 2, encode(Limit{Kind: "run", After: time.Hour})), frame(frameRelease, 3)))
	f.Add(frames(frame(frameTimer, 1, EffectID{1, 2}.append(nil), make([]byte, 8), []byte("t")), frame(frameWrite, 2, EffectID{2, 0}.append(nil), []byte("x"))))
	f.Add(frames(frame(frameResize, 1, encode(Size{80, 24})), frame(frameKeys, 2, []byte("x")), frame(frameLease, 3, encode(Lease{Holder: "me", For: time.Second}))))
	f.Add(frames(frame(framePause, 1, []byte("me")), frame(frameResume, 2), frame(frameAsk, 3, []byte("INT")), frame(frameSignal, 4, EffectID{3, 0}.append(nil), []byte("TERM"))))
	f.Add(frame(frameKill, 7, encode(Stop{}))[:6])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 'H', 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(strings.ToLower(string(data)), "program") {
			t.Skip("this input names a program, which would be started")
		}
		dir := t.TempDir()
		s := newSupervisor(Config{Dir: dir, Tree: noProcesses{}, DiskWait: time.Millisecond}, Hello{Nonce: "n", RunID: "run"})
		var err error
		if s.recorder.journal, err = journal.OpenWriter(filepath.Join(dir, "journal"), time.Now); err != nil {
			t.Fatal(err)
		}
		s.clients.size = s.recorder.journal.Size
		if s.exit.File, err = os.OpenFile(filepath.Join(dir, "exit"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			t.Fatal(err)
		}
		defer s.exit.Close()
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := rawio.NewConn(fds[0])
		if err != nil {
			t.Fatal(err)
		}
		host := os.NewFile(uintptr(fds[1]), "host")
		ended := make(chan struct{})
		go func() { s.serve(newConn(conn), true); close(ended) }()
		go func() {
			_, _ = host.Write(data)
			_ = syscall.Shutdown(fds[1], syscall.SHUT_WR)
		}()
		defer time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("it hangs on %q", data)) }).Stop()
		for {
			kind, _, body, err := readFrame(host)
			if err != nil {
				if errors.Is(err, errFrame) {
					t.Errorf("it sent nonsense: %v", err)
				}
				break
			}
			if kind == frameReply && parseReply(body) != nil && parseReply(body).Error() == "" {
				t.Errorf("it refused without a word: %q", body)
			}
		}
		<-ended
		host.Close()
		if err := s.recorder.journal.Close(); err != nil {
			t.Error(err)
		}
		file, err := os.Open(filepath.Join(dir, "journal"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		r, err := journal.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		for r.Offset() < info.Size() {
			if _, err := r.Next(info.Size()); err != nil {
				t.Fatalf("the journal is damaged: %v", err)
			}
		}
	})
}

// answers is a shim that has said all that it will say.
type answers struct{ io.Reader }

func (answers) Write(b []byte) (int, error) { return len(b), nil }
func (answers) Close() error                { return nil }

// A host reads what calls itself the shim of a run.
func FuzzAnswers(f *testing.F) {
	welcome := frame(frameWelcome, 0, encode(Welcome{Version: Version, Epoch: 1, Size: 8, PID: 1}))
	f.Add(frames(frame(frameWake, 0, make([]byte, 8)), welcome, frame(frameWake, 0, make([]byte, 8)), frame(frameReply, 1, []byte("INTERNAL\x00no\x00hint"))))
	f.Add(frames(frame(frameWelcome, 0, encode(Welcome{Code: "DISK_FULL", Error: "full", Hint: "free"}))))
	f.Add(frames(welcome, frame(frameReply, 1), frame(frameReply, 1), frame(frameWake, 9, []byte("short"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := open(answers{bytes.NewReader(data)}, Hello{Nonce: "n"})
		if err != nil {
			return
		}
		<-c.Gone()
		if err := c.Stop(Stop{}); !errors.Is(err, ErrGone) {
			t.Errorf("a shim that is gone says %v", err)
		}
		var again Welcome
		if json.Unmarshal(encode(c.Welcome), &again) != nil || again != c.Welcome {
			t.Errorf("%+v", c.Welcome)
		}
	})
}
