package process

// WaitAgain has the next look wait for a descriptor, whatever waits before it did.
func WaitAgain() { noWaitBefore.Store(nil) }

// Children are those of a process, dead ones too.
func Children(pid int) []int { return children(pid) }
