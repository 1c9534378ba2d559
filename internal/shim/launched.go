package shim

import (
	"io"
	"sync"
)

// Launched is a shim that this process has started.
type Launched struct {
	*Conn
	// Exited is closed when the shim's process has been waited for.
	Exited <-chan struct{}
	left   chan struct{}
	once   sync.Once
}

// Leave closes the connection and forgets the process: it is to outlive this one.
func (l *Launched) Leave() {
	l.once.Do(func() { close(l.left) })
	_ = l.Close()
}

// Started is the process of a shim that has not been greeted.
type Started struct {
	Conn          io.ReadWriteCloser
	wait, release func() // one of them is called, when the connection has ended
}

// Launch starts the program at path as the shim of the run in dir, and greets it.
func Launch(path, dir string, hello Hello) (*Launched, error) {
	return LaunchIn(path, dir, nil, hello)
}

// LaunchIn is Launch for a program that needs an environment.
func LaunchIn(path, dir string, env []string, hello Hello) (*Launched, error) {
	started, err := Start(path, dir, env)
	if err != nil {
		return nil, err
	}
	return started.Greet(hello)
}

// Greet says hello.
func (s *Started) Greet(hello Hello) (*Launched, error) {
	return Greet(s.Conn, hello, s.wait, s.release)
}

// Greet says hello to a shim whose process was just started. wait waits for that process
// and release forgets it: one of them is called, when the connection has ended.
func Greet(conn io.ReadWriteCloser, hello Hello, wait, release func()) (*Launched, error) {
	c, err := open(conn, hello)
	if err != nil {
		wait()
		return nil, err
	}
	exited := make(chan struct{})
	l := &Launched{Conn: c, Exited: exited, left: make(chan struct{})}
	go func() {
		<-c.Gone() // to wait any longer would take a thread for each run
		if isClosed(l.left) {
			release()
			return
		}
		wait()
		close(exited)
	}()
	return l, nil
}
