package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Start returns the start time of a live process; ok is false if there is none.
func Start(pid int) (start uint64, ok bool) {
	st, ok := readStat(pid)
	return st.start, ok && st.state != 'Z' && st.state != 'X'
}

// Alive reports whether exactly that process is still running.
func Alive(id ID) bool {
	start, ok := Start(id.PID)
	return ok && id.Start != 0 && start == id.Start
}

// BootID tells one boot of the machine from another.
func BootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

type stat struct {
	state byte
	ppid  int
	start uint64
}

// readStat reads /proc/PID/stat. The second field is the name in parentheses and
// may hold anything, so the rest is found from the last parenthesis.
func readStat(pid int) (stat, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, false
	}
	i := bytes.LastIndexByte(data, ')')
	if i < 0 {
		return stat{}, false
	}
	fields := bytes.Fields(data[i+1:])
	if len(fields) < 20 {
		return stat{}, false
	}
	ppid, err1 := strconv.Atoi(string(fields[1]))
	start, err2 := strconv.ParseUint(string(fields[19]), 10, 64)
	return stat{state: fields[0][0], ppid: ppid, start: start}, err1 == nil && err2 == nil
}

// childless reports that the calling process, which adopts orphans, has no child
// left, dead or alive, and so no descendant: one system call instead of a walk.
func childless() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	return errors.Is(err, unix.ECHILD)
}

func stateOf(pid int) state {
	st, ok := readStat(pid)
	switch {
	case !ok, st.state == 'Z', st.state == 'X', st.state == 'D':
		return asleep
	case st.state == 'T', st.state == 't':
		return stopped
	}
	return active
}

// Descendants returns every live process below root, parents first. Zombies are
// passed through: their children count, they do not.
func Descendants(root int) []ID { return below(root, nil) }

// below is Descendants without some processes and what is below those.
func below(root int, without map[int]bool) []ID {
	var found []ID
	seen := map[int]bool{root: true}
	queue := []int{root}
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		for _, child := range children(pid) {
			if seen[child] || without[child] {
				continue
			}
			seen[child] = true
			queue = append(queue, child)
			if st, ok := readStat(child); ok && st.state != 'Z' && st.state != 'X' {
				found = append(found, ID{child, st.start})
			}
		}
	}
	return found
}

func children(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var pids []int
	for _, task := range tasks {
		data, err := os.ReadFile(dir + "/" + task.Name() + "/children")
		if err != nil {
			continue
		}
		for _, field := range bytes.Fields(data) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// Marked returns the live processes of this user whose RunEnv ends with runID.
// It does not see processes that were started with an empty environment.
func Marked(runID string) []ID {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	prefix := []byte(RunEnv + "=")
	var found []ID
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		st, ok := readStat(pid)
		if !ok || st.state == 'Z' {
			continue
		}
		env, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
		if err != nil {
			continue
		}
		for _, variable := range bytes.Split(env, []byte{0}) {
			list, ok := bytes.CutPrefix(variable, prefix)
			if ok && (string(list) == runID || bytes.HasSuffix(list, []byte(":"+runID))) {
				found = append(found, ID{pid, st.start})
				break
			}
		}
	}
	return found
}

// Signal sends sig to exactly that process. It reports false if the process is
// gone, also when another has its pid now: the pidfd is opened first and the
// start time compared after, so that there is no moment in between.
func Signal(id ID, sig unix.Signal) (bool, error) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	if err != nil {
		// Kernels before 5.3 have no pidfd; the window is then a few
		// microseconds between the check and the kill.
		if !Alive(id) {
			return false, nil
		}
		return sent(unix.Kill(id.PID, sig))
	}
	defer unix.Close(fd)
	if st, ok := readStat(id.PID); !ok || st.start != id.Start {
		return false, nil
	}
	return sent(unix.PidfdSendSignal(fd, sig, nil, 0))
}

func sent(err error) (bool, error) {
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	return err == nil, err
}

// AdoptOrphans makes the calling process the parent of every descendant whose
// own parent dies, so that none leaves the tree.
func AdoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
