package place

import (
	"fmt"
	"os"
	"testing"

	"github.com/amux-dev/amux/internal/test/netns"
	"github.com/amux-dev/amux/internal/test/sshd"
)

func TestMain(m *testing.M) {
	if nodes := os.Getenv(crowdNodes); nodes != "" { // in the network of the test that started it
		serveCrowd(nodes)
		return
	}
	if !netns.Inside() {
		code, err := netns.Rerun()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}
	if err := netns.Up(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	sshd.Clean()
	os.Exit(code)
}
