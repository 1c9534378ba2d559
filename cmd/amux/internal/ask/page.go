package ask

import (
	"context"
	"os"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// Page shows a text in the user's pager, until that ends or a signal ends it, which is
// returned. Ctrl-C and Ctrl-Z are the pager's.
func Page(p *app.Process, sigs <-chan os.Signal, text string) (caught os.Signal) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Page(ctx, text)
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
