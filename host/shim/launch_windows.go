package shim

import "errors"

// Launched is a keeper that this process has started.
type Launched struct {
	*Conn
	Exited <-chan struct{}
}

// Leave closes the connection.
func (l *Launched) Leave() { _ = l.Close() }

// Launch fails: there is no keeper for Windows yet, so no run can be started.
func Launch(path, dir string, hello Hello) (*Launched, error) {
	return nil, &RemoteError{"SPAWN_ERROR", errors.ErrUnsupported.Error() + ": amux cannot run agents on Windows yet"}
}
