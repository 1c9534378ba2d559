package plugins

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Who asks gets what begins after that; those who ask meanwhile share the next.
func TestJoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var j joint
		var mu sync.Mutex
		begun, running := 0, 0
		f := func() {
			mu.Lock()
			begun++
			if running++; running > 1 {
				t.Error("two at once")
			}
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
		}
		for range 3 { // rounds: in each, one at work and a hundred behind it
			begun = 0
			var done sync.WaitGroup
			done.Go(func() { j.do(f) })
			synctest.Wait()
			at := time.Now()
			for range 100 {
				done.Go(func() {
					j.do(f)
					if time.Since(at) < 2*time.Second {
						t.Error("who asked while it was done got what had begun before")
					}
				})
			}
			done.Wait()
			synctest.Wait()
			if begun != 2 {
				t.Errorf("it was done %d times for 101 who asked", begun)
			}
		}
	})
}
