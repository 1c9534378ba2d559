package sdk

import (
	"runtime"
	"testing"
)

func TestOneProcessorForOneRun(t *testing.T) {
	before := runtime.GOMAXPROCS(3)
	defer runtime.GOMAXPROCS(before)
	p := processors{all: 3}
	for i, step := range []struct {
		do   func()
		want int
	}{{p.begin, 1}, {p.begin, 3}, {p.begin, 3}, {p.end, 3}, {p.end, 1}, {p.end, 3}, {p.begin, 1}, {p.end, 3}} {
		if step.do(); runtime.GOMAXPROCS(0) != step.want {
			t.Errorf("step %d: %d processors, not %d", i, runtime.GOMAXPROCS(0), step.want)
		}
	}
	var others processors // of a program that is no plugin of its own
	if others.begin(); runtime.GOMAXPROCS(0) != 3 {
		t.Error("it has chosen for a program that did not ask")
	}
}

func TestProcessorsOfTheUser(t *testing.T) {
	t.Setenv("GOMAXPROCS", "2")
	var p processors
	if p.own(); p.all != 0 {
		t.Error("the user's choice is taken over")
	}
}
