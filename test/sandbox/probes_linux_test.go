package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// world is what a probe is told of what is outside.
type world struct {
	Home, Dir string // of the user; the work folder
	Secret    string // file in the home
	Temp      string // file in the folder that all share for their temp files
	Record    string // folder of amux's records
	Outside   string // folder beside the work folder
	Socket    string // of the user's session
	Amux      string // folder of amux's sockets
	Abstract  string // name of a socket without a file
	Victim    int    // process of the user
	Open      int    // port of this machine that the sandbox lets through
	Closed    int    // port of this machine that it does not
}

// probe tries one way out. It returns nil if it has got out.
type probe struct {
	name string
	// guarded is what a user should not be able to do outside of a sandbox either, though
	// root is: it is never tried there.
	guarded bool
	try     func(w world) error
}

// errHeld says that nothing came of it.
var errHeld = errors.New("held")

func write(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString("x")
	return err
}

func read(path string) error {
	data, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(data), "secret") {
		return errHeld
	}
	return err
}

func dial(network, address string) error {
	conn, err := net.DialTimeout(network, address, 3*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
	// What is outside says so; a listener of the sandbox's own does not.
	data, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.Contains(data, "outside") {
		return errHeld
	}
	return err
}

// connect asks the way out for a tunnel.
func connect(target string) error {
	proxy, err := url.Parse(os.Getenv("HTTPS_PROXY"))
	if err != nil || proxy.Host == "" {
		return errors.New("there is no proxy")
	}
	conn, err := net.DialTimeout("tcp", proxy.Host, 3*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	in := bufio.NewReader(conn)
	status, err := in.ReadString('\n')
	if err != nil || !strings.Contains(status, " 200 ") {
		return errors.Join(err, errHeld, errors.New(status))
	}
	return nil
}

// get asks the way out for a page.
func get(address string) error {
	proxy, _ := url.Parse(os.Getenv("HTTP_PROXY"))
	if proxy == nil || proxy.Host == "" {
		return errors.New("there is no proxy")
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	response, err := client.Get(address)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(io.LimitReader(response.Body, 1000)); !strings.Contains(string(body), "outside") {
		return errHeld
	}
	return nil
}

func local(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

func sys(trap uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, err := syscall.RawSyscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5]); err != 0 {
		return err
	}
	return nil
}

var probes = []probe{
	// Files.
	{"write into the home", false, func(w world) error { return errors.Join(write(filepath.Join(w.Home, "escaped")), read(w.Secret)) }},
	{"write into a shell's start-up file", false, func(w world) error { return errors.Join(write(filepath.Join(w.Home, ".bashrc")), read(w.Secret)) }},
	{"write beside the work folder", false, func(w world) error { return write(filepath.Join(w.Outside, "escaped")) }},
	{"write by a path with dots", false, func(w world) error { return write(w.Dir + "/../" + filepath.Base(w.Outside) + "/escaped") }},
	{"append to a file of the temp folder", false, func(w world) error { return errors.Join(write(w.Temp), read(w.Temp)) }},
	{"write into the system", true, func(w world) error { return write("/usr/local/escaped-of-amux") }},
	{"read a key of the home", false, func(w world) error { return read(w.Secret) }},
	{"read the temp folder", false, func(w world) error { return read(w.Temp) }},
	{"list the home", false, func(w world) error {
		entries, err := os.ReadDir(w.Home)
		for _, e := range entries {
			if e.Name() == ".ssh" {
				return nil
			}
		}
		return errors.Join(err, errHeld)
	}},
	{"read amux's records", false, func(w world) error {
		_, err := os.ReadDir(w.Record)
		return err
	}},
	{"read by a link in the work folder", false, func(w world) error {
		link := filepath.Join(w.Dir, "link")
		defer os.Remove(link)
		return errors.Join(os.Symlink(w.Secret, link), read(link))
	}},
	{"write by a link in the work folder", false, func(w world) error {
		link := filepath.Join(w.Dir, "linked")
		defer os.Remove(link)
		return errors.Join(os.Symlink(w.Outside, link), write(filepath.Join(link, "escaped")))
	}},
	{"a hard link to a file of the home", false, func(w world) error {
		link := filepath.Join(w.Dir, "hard")
		defer os.Remove(link)
		return errors.Join(os.Link(w.Secret, link), read(link))
	}},
	{"the root of the first process", false, func(w world) error { return read(fmt.Sprintf("/proc/%d/root%s", w.Victim, w.Secret)) }},
	{"the root of the sandbox's first process", true, func(w world) error { return read("/proc/1/root" + w.Secret) }},
	{"descriptors that were left open", true, func(w world) error {
		for fd := 3; fd < 256; fd++ {
			to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
			if err == nil && strings.HasPrefix(to, "/") && !strings.HasPrefix(to, w.Dir) && !strings.HasPrefix(to, "/dev/") && !strings.HasPrefix(to, "/proc/") && !strings.HasPrefix(to, "/sys/") {
				var at unix.Stat_t
				if unix.Fstat(fd, &at) == nil && at.Mode&unix.S_IFMT == unix.S_IFDIR {
					return nil
				}
			}
		}
		return errHeld
	}},
	{"a hook for git", false, func(w world) error { return write(filepath.Join(w.Dir, ".git", "hooks", "post-checkout")) }},
	{"a setting for git", false, func(w world) error { return write(filepath.Join(w.Dir, ".git", "config")) }},
	{"another repository in its place", false, func(w world) error {
		moved := filepath.Join(w.Dir, "moved")
		if err := os.Rename(filepath.Join(w.Dir, ".git"), moved); err != nil {
			return err
		}
		return os.Rename(moved, filepath.Join(w.Dir, ".git"))
	}},
	// Mounts and namespaces.
	{"unmount what hides the home", true, func(w world) error {
		return errors.Join(unix.Unmount(w.Home, unix.MNT_DETACH), read(w.Secret))
	}},
	{"mount a folder elsewhere", true, func(w world) error {
		return unix.Mount(w.Dir, "/mnt", "", unix.MS_BIND, "")
	}},
	{"make the system writable", true, func(w world) error {
		return unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, "")
	}},
	{"a user namespace of its own", true, func(w world) error {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}
		return cmd.Run()
	}},
	{"change the root", true, func(w world) error { return unix.Chroot(w.Dir) }},
	{"the namespaces of another process", false, func(w world) error {
		ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", w.Victim))
		if err == nil {
			ns.Close()
		}
		return err
	}},
	{"a device of a disk", true, func(w world) error {
		path := filepath.Join(w.Dir, "disk")
		defer os.Remove(path)
		return unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0)))
	}},
	{"the kernel's memory and log", true, func(w world) error {
		for _, path := range []string{"/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/fuse", "/dev/kvm"} {
			if file, err := os.Open(path); err == nil {
				file.Close()
				return nil
			}
		}
		return errHeld
	}},
	{"a setting of the kernel", true, func(w world) error {
		const path = "/proc/sys/kernel/core_pattern" // which names a program that the kernel starts
		was, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, was, 0o600)
	}},
	{"a helper of the kernel", true, func(w world) error { return write("/sys/kernel/uevent_helper") }},
	{"a group of processes with a release agent", true, func(w world) error {
		path := "/sys/fs/cgroup/escaped-of-amux"
		defer os.Remove(path)
		return os.Mkdir(path, 0o700)
	}},
	{"a module of the kernel", true, func(w world) error {
		return sys(unix.SYS_DELETE_MODULE, uintptr(unsafe.Pointer(&[]byte("amux\x00")[0])), 0)
	}},
	{"open by a handle", true, func(w world) error {
		handle := unix.NewFileHandle(1, make([]byte, 8))
		fd, err := unix.OpenByHandleAt(unix.AT_FDCWD, handle, unix.O_RDONLY)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}},
	// Processes.
	{"a signal to a process of the user", false, func(w world) error { return syscall.Kill(w.Victim, 0) }},
	{"the files of a process in /proc", false, func(w world) error {
		_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", w.Victim))
		return err
	}},
	{"trace a process", false, func(w world) error {
		err := syscall.PtraceAttach(w.Victim)
		if err == nil {
			_ = syscall.PtraceDetach(w.Victim)
		}
		return err
	}},
	{"the memory of a process", false, func(w world) error {
		file, err := os.Open(fmt.Sprintf("/proc/%d/mem", w.Victim))
		if err == nil {
			file.Close()
		}
		return err
	}},
	{"a descriptor of a process", false, func(w world) error {
		fd, err := unix.PidfdOpen(w.Victim, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}},
	{"the priority of a process", false, func(w world) error { return syscall.Setpriority(syscall.PRIO_PROCESS, w.Victim, 1) }},
	{"more rights by a program of root's", true, func(w world) error {
		flag, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		if err != nil || flag == 1 {
			return errors.Join(err, errHeld)
		}
		return nil
	}},
	// Sockets.
	{"a socket of the user's session", false, func(w world) error { return dial("unix", w.Socket) }},
	{"a socket without a file", false, func(w world) error { return dial("unix", "@"+w.Abstract) }},
	{"amux's own sockets", false, func(w world) error {
		_, err := os.ReadDir(w.Amux)
		return err
	}},
	{"sockets of the system", true, func(w world) error {
		for _, path := range []string{"/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock", "/run/dbus/system_bus_socket", "/run/containerd/containerd.sock", "/tmp/.X11-unix/X0"} {
			if _, err := os.Stat(path); err == nil {
				return nil
			}
		}
		return errHeld
	}},
	{"variables that name sockets", true, func(w world) error {
		for _, name := range []string{"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "XDG_RUNTIME_DIR"} {
			if os.Getenv(name) != "" {
				return nil
			}
		}
		return errHeld
	}},
	// The network.
	{"a server of this machine", false, func(w world) error { return dial("tcp", local(w.Closed)) }},
	{"past the proxy", false, func(w world) error { return dial("tcp4", "127.0.0.2:"+strconv.Itoa(w.Closed)) }},
	{"another machine", true, func(w world) error { return dial("tcp", "192.0.2.1:443") }},
	{"the cloud's metadata", true, func(w world) error { return dial("tcp", "169.254.169.254:80") }},
	{"a name server", true, func(w world) error {
		conn, err := net.Dial("udp", "8.8.8.8:53")
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("x"))
		return err
	}},
	{"a raw socket", true, func(w world) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}},
	{"packets of the link", true, func(w world) error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}},
	{"another port by the proxy", true, func(w world) error { return connect("localhost:" + strconv.Itoa(w.Closed)) }},
	{"the metadata by the proxy", true, func(w world) error { return errors.Join(connect("169.254.169.254:80")) }},
	{"the metadata by its name", true, func(w world) error { return connect("metadata.google.internal:80") }},
	{"a name that nobody allowed", true, func(w world) error { return connect("example.com:443") }},
	{"an address in other words", true, func(w world) error {
		for _, host := range []string{"127.0.0.1", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "LOCALHOST.", "localhost%00.example.com", "localhost@127.0.0.1"} {
			if connect(host+":"+strconv.Itoa(w.Closed)) == nil {
				return nil
			}
		}
		return errHeld
	}},
	{"a port in other words", true, func(w world) error {
		for _, port := range []string{"+" + strconv.Itoa(w.Closed), "0" + strconv.Itoa(w.Closed), strconv.Itoa(w.Closed + 65536), strconv.Itoa(w.Open) + ":" + strconv.Itoa(w.Closed)} {
			if connect("localhost:"+port) == nil {
				return nil
			}
		}
		return errHeld
	}},
	{"a page of another port by the proxy", true, func(w world) error { return get("http://localhost:" + strconv.Itoa(w.Closed) + "/") }},
	{"a redirection by the proxy", true, func(w world) error {
		return get("http://localhost:" + strconv.Itoa(w.Open) + "/to/" + strconv.Itoa(w.Closed))
	}},
}

// runProbe runs the probe that the environment names, and says how it went.
func runProbe() {
	var w world
	if err := json.Unmarshal([]byte(os.Getenv("AMUX_PROBE_WORLD")), &w); err != nil {
		fmt.Println("broken:", err)
		return
	}
	for _, p := range probes {
		if p.guarded && os.Getenv("AMUX_PROBE") == "open" {
			continue // it might do harm
		}
		if os.Getenv("AMUX_PROBE") == "daemon" {
			break
		}
		if err := p.try(w); err != nil {
			fmt.Printf("held: %s: %.200q\n", p.name, err)
		} else {
			fmt.Printf("escaped: %s\n", p.name)
		}
	}
	if os.Getenv("AMUX_PROBE") == "daemon" {
		daemon()
	}
}

// daemon leaves a process behind that has left everything it can leave, and then lives on.
func daemon() {
	cmd := exec.Command("/bin/sh", "-c", "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM HUP INT; (setsid sleep 987 &) ; sleep 987' & sleep 987")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Println("broken:", err)
		return
	}
	fmt.Println("daemon is there")
	if os.Getenv("AMUX_PROBE_WAIT") != "" {
		_ = cmd.Wait()
	}
}
