package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// held is what processes hold.
type held struct {
	memory         float64 // MB that are theirs alone
	files, threads int
}

// sample is how things are at one time.
type sample struct {
	at              time.Duration
	server, plugins held
	processes       int     // all of the user
	entries         int     // files in the folders of amux
	disk            float64 // MB that they take
}

// running is a process of the user.
type running struct {
	pid, parent int
	command     string
}

// processesOf are the processes whose environment has the home.
func processesOf(home string) (all []running) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !strings.Contains("\x00"+string(env), "\x00HOME="+home+"\x00") {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		words := strings.Fields(rest)
		if len(words) < 2 || words[0] == "Z" {
			continue
		}
		p := running{command: strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))}
		p.pid, _ = strconv.Atoi(filepath.Base(dir))
		p.parent, _ = strconv.Atoi(words[1])
		all = append(all, p)
	}
	return all
}

// look looks at the server, its plugins and the user's files.
func look(server int, home string) sample {
	s := sample{server: hold(server)}
	for _, p := range processesOf(home) {
		s.processes++
		if p.parent == server && strings.Contains(p.command, "amux-plugin-") {
			h := hold(p.pid)
			s.plugins.memory += h.memory
			s.plugins.files += h.files
			s.plugins.threads += h.threads
		}
	}
	_ = filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is gone
		}
		if info, err := e.Info(); err == nil && !e.IsDir() {
			s.entries++
			s.disk += float64(info.Size()) / (1 << 20)
		}
		return nil
	})
	return s
}

func hold(pid int) (h held) {
	dir := fmt.Sprintf("/proc/%d", pid)
	rollup, _ := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
	for line := range strings.SplitSeq(string(rollup), "\n") {
		var kb float64
		if strings.HasPrefix(line, "Private_") {
			if _, err := fmt.Sscan(strings.Fields(line)[1], &kb); err == nil {
				h.memory += kb / 1024
			}
		}
	}
	files, _ := os.ReadDir(filepath.Join(dir, "fd"))
	threads, _ := os.ReadDir(filepath.Join(dir, "task"))
	h.files, h.threads = len(files), len(threads)
	return h
}
