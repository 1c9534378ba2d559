// Package slowlock has a mutex for what is held while a disk or another process is waited
// for. Who waits for it waits as for a channel, so that the clock of testing/synctest goes
// on meanwhile; for a sync.Mutex it stands still.
package slowlock

// Lock is such a mutex, made by New.
type Lock chan struct{}

// New returns a lock that nobody holds.
func New() Lock { return make(Lock, 1) }

// Lock takes the lock.
func (l Lock) Lock() { l <- struct{}{} }

// Unlock gives it back.
func (l Lock) Unlock() { <-l }
