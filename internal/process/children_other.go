//go:build !linux

package process

// Starting calls start, which starts a child of this process and gives its pid.
func Starting(start func() (pid int, err error)) error {
	_, err := start()
	return err
}

// Orphans is empty: nothing is adopted here.
func Orphans() []ID { return nil }
