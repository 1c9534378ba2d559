package namedpipe_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/amux-dev/amux/internal/sys/namedpipe"
	"github.com/amux-dev/amux/internal/test/wine"
)

func listen(t *testing.T) (*namedpipe.Listener, string) {
	t.Helper()
	name := namedpipe.Name(rand.Text())
	l, err := namedpipe.Listen(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, name
}

func TestConnections(t *testing.T) {
	l, name := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, struct{ io.Reader }{c}); c.Close() }()
		}
	}()
	for i := range 20 {
		c, err := namedpipe.Dial(t.Context(), name)
		if err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		defer c.Close() // all at a time
		want := bytes.Repeat([]byte{byte(i)}, 10_000)
		if _, err := c.Write(want); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("client %d: %v", i, err)
		}
	}
}

func TestNameIsTaken(t *testing.T) {
	wine.Cannot(t, "it ignores FILE_FLAG_FIRST_PIPE_INSTANCE")
	_, name := listen(t)
	if other, err := namedpipe.Listen(name); err == nil {
		other.Close()
		t.Error("two listen on one name")
	}
}

// When a listener is gone nobody is there, and the next may come.
func TestNames(t *testing.T) {
	l, name := listen(t)
	accepted := make(chan error, 1)
	go func() { _, err := l.Accept(); accepted <- err }()
	time.Sleep(10 * time.Millisecond) // it may wait already, or not
	l.Close()
	if err := <-accepted; !errors.Is(err, os.ErrClosed) {
		t.Errorf("accept ends with %v", err)
	}
	if _, err := namedpipe.Dial(t.Context(), name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	again, err := namedpipe.Listen(name)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// A listener that accepts nobody: the first client is let in by the system, others
// wait for as long as they like.
func TestBusy(t *testing.T) {
	_, name := listen(t)
	first, err := namedpipe.Dial(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := namedpipe.Dial(ctx, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestPrivate(t *testing.T) {
	_, name := listen(t)
	c, err := namedpipe.Dial(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	descriptor, err := windows.GetSecurityInfo(windows.Handle(c.Fd()), windows.SE_KERNEL_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		t.Fatal(err)
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		t.Fatal(err)
	}
	acl, _, err := descriptor.DACL()
	if err != nil || acl == nil || acl.AceCount != 1 {
		t.Fatalf("its access list: %v, %v", acl, err)
	}
	var entry *windows.ACCESS_ALLOWED_ACE
	if err := windows.GetAce(acl, 0, &entry); err != nil {
		t.Fatal(err)
	}
	if who := sidOf(entry); entry.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE || !who.Equals(user.User.Sid) {
		t.Errorf("%v is let in: %s", who, descriptor)
	}
}

func TestDeadlineAndClose(t *testing.T) {
	l, name := listen(t)
	accepted := make(chan *os.File, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	c, err := namedpipe.Dial(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	server := <-accepted
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	_ = c.SetReadDeadline(time.Time{})
	if _, err := server.WriteString("last words"); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if got, err := io.ReadAll(c); err != nil || string(got) != "last words" {
		t.Errorf("%q, %v", got, err)
	}
	c.Close()
}

// Another program's stdin and stdout, and nothing else.
func TestPair(t *testing.T) {
	const child = "AMUX_TEST_PAIR"
	if os.Getenv(child) != "" {
		_, _ = io.Copy(os.Stdout, os.Stdin)
		os.Exit(0)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, theirIn, err := namedpipe.Pair(namedpipe.Out)
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := namedpipe.Pair(namedpipe.In)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestPair$")
	cmd.Env = append(os.Environ(), child+"=1")
	stdin, stdout := os.NewFile(uintptr(theirIn), "stdin"), os.NewFile(uintptr(theirOut), "stdout")
	cmd.Stdin, cmd.Stdout, cmd.SysProcAttr = stdin, stdout, &syscall.SysProcAttr{HideWindow: true}
	err = cmd.Start()
	stdin.Close()
	stdout.Close()
	if err != nil {
		t.Fatal(err)
	}
	sent := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	go func() { _, _ = in.Write(sent); in.Close() }()
	got, err := io.ReadAll(out)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes: %v", len(got), len(sent), err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func sidOf(entry *windows.ACCESS_ALLOWED_ACE) *windows.SID {
	return (*windows.SID)(unsafe.Pointer(&entry.SidStart))
}
