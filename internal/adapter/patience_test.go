package adapter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Calls of one chain share their time, and what the host does between them is free.
func TestPatienceIsSharedByCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPatience(10 * time.Second)
		call := func(takes time.Duration) (bool, time.Duration) {
			since := time.Now()
			late, _ := p.during(t.Context(), 0, func(ctx context.Context) error {
				select {
				case <-ctx.Done():
				case <-time.After(takes):
				}
				return ctx.Err()
			})
			return late, time.Since(since)
		}
		for range 3 {
			if late, _ := call(3 * time.Second); late {
				t.Error("a call was ended early")
			}
			time.Sleep(time.Hour)
		}
		if late, took := call(time.Hour); !late || took != time.Second {
			t.Errorf("the last call: late %v, after %v; want to be ended after 1s", late, took)
		}
		if !p.Over() {
			t.Error("there is patience left")
		}
		p = NewPatience(10 * time.Second)
		p.Spend(time.Minute)
		if late, took := call(time.Hour); !late || took != time.Second {
			t.Errorf("the call behind a slow start: late %v, after %v", late, took)
		}
	})
}
