package ask

import (
	"context"
	"os"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// Borrow gives the terminal to a program of the user's, such as a pager or an editor, until
// do returns or a signal cancels its context, which is returned. Ctrl-C and Ctrl-Z are the
// program's.
func Borrow(sigs <-chan os.Signal, do func(ctx context.Context)) (caught os.Signal) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(ctx)
	}()
	for {
		select {
		case <-done:
			return caught
		case sig := <-sigs:
			switch {
			case app.IsSuspend(sig):
				app.Suspend()
			case sig != os.Interrupt:
				caught = sig
				cancel()
			}
		}
	}
}
