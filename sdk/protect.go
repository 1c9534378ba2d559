package sdk

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// protect calls an adapter and turns a panic into PLUGIN_CRASHED, so that a
// mistake in one run does not end the others. op names the call; input n is
// named instead if op is empty. The whole stack goes to stacks.
func protect(stacks io.Writer, op string, n uint64, call func() error) (err error) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		doing := op
		if doing == "" {
			doing = fmt.Sprintf("while handling input %d", n)
		}
		if stacks != nil {
			fmt.Fprintf(stacks, "panic %s: %s\n", doing, debug.Stack())
		}
		err = pluginapi.Errorf(pluginapi.CodePluginCrashed, "%s: panic: %s (%s)", doing, panicText(value), panicFrame())
	}()
	return call()
}

// isCrash reports whether err comes from protect, and so names the input already.
func isCrash(err error) bool {
	e, ok := err.(*pluginapi.Error)
	return ok && e.Code == pluginapi.CodePluginCrashed
}

// panicText is the panic's value, short enough for one line.
func panicText(value any) string {
	text := strings.ToValidUTF8(fmt.Sprint(value), "\ufffd")
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "…"
	}
	return text
}

// panicFrame names the innermost function outside the standard library at the
// time of the panic: where its author should look. Call it from the deferred
// function that recovers.
func panicFrame() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	panicking, first := false, ""
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panicking = true
		case !panicking || strings.HasPrefix(frame.Function, "runtime."):
		default:
			where := fmt.Sprintf("%s %s:%d", frame.Function, frame.File[strings.LastIndexByte(frame.File, '/')+1:], frame.Line)
			if !isStandard(frame.Function) {
				return where
			}
			if first == "" {
				first = where
			}
		}
		if !more {
			return first
		}
	}
}

// isStandard guesses whether function is one of the standard library's: those
// packages have no dot in the first element of their path.
func isStandard(function string) bool {
	root, _, nested := strings.Cut(function, "/")
	if nested {
		return !strings.Contains(root, ".")
	}
	return !strings.HasPrefix(function, "main.")
}
