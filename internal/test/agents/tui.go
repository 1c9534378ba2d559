//go:build unix

package agents

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"
)

// quietTerminal keeps a terminal from printing what the adapter writes; pipes
// never do.
func quietTerminal() {
	if !term.IsTerminal(0) {
		return
	}
	cmd := exec.Command("stty", "-echo")
	cmd.Stdin = os.Stdin
	_ = cmd.Run()
}

// tui is a program that has the screen to itself: it draws a frame with the size
// of the terminal, what was typed, and how the terminal has answered its
// questions, and draws it again when the size changes. It returns what was typed
// before q.
func (a *agent) tui() string {
	before, err := term.MakeRaw(0)
	if err != nil {
		return err.Error()
	}
	defer func() {
		fmt.Print("\x1b[?2004l\x1b[?1l\x1b[?25h\x1b[?1049l")
		_ = term.Restore(0, before)
	}()
	var mu sync.Mutex
	var typed, answers strings.Builder
	draw := func() {
		mu.Lock()
		defer mu.Unlock()
		cols, rows, _ := term.GetSize(1)
		fmt.Printf("\x1b[2J\x1b[1;1H\x1b[1;32m┌ size %dx%d\x1b[0m\x1b[2;1H│ typed %q\x1b[3;1H│ answers %q\x1b[%d;1H└ 世界 \x1b[7mstatus\x1b[0m\x1b[5;3H",
			cols, rows, typed.String(), answers.String(), rows)
	}
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	defer signal.Stop(changes)
	defer close(changes)
	go func() {
		for range changes {
			draw()
		}
	}()
	fmt.Print("\x1b[?1049h\x1b[?1h\x1b[?2004h\x1b[5;7H\x1b[6n\x1b[c\x1b]11;?\a")
	draw()
	buf := make([]byte, 256)
	for {
		n, err := a.in.Read(buf)
		if err != nil {
			return err.Error()
		}
		mu.Lock()
		text := string(buf[:n])
		if strings.HasPrefix(text, "\x1b[") && strings.ContainsAny(text, "Rc") || strings.HasPrefix(text, "\x1b]") {
			answers.WriteString(text)
		} else {
			typed.WriteString(text)
		}
		done := strings.Contains(typed.String(), "q")
		mu.Unlock()
		if done {
			return strings.TrimSuffix(typed.String(), "q")
		}
		draw()
	}
}
