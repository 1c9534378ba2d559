package process

// WaitAgain has the next look wait for a descriptor, whatever waits before it did.
func WaitAgain() { noWaitBefore.Store(nil) }
