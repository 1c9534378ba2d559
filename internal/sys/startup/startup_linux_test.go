package startup

import (
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"testing"
)

// mapped is how much of files is in this process's memory, in kB.
func mapped(t *testing.T) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no RssFile in %s", status)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var written = os.Getenv("HOME") // in the data of the program, which is not the file's any more

// Code that is not needed goes, all that goes on works, and no data is lost.
func TestLetGoOfCode(t *testing.T) {
	before := mapped(t)
	LetGoOfCode()
	after := mapped(t)
	if after > before*2/3 {
		t.Errorf("%d kB of files are mapped, before %d", after, before)
	}
	if written != os.Getenv("HOME") {
		t.Error("data is lost")
	}
	var all []byte
	for range 100 { // other threads run on
		done := make(chan []byte)
		go func() { done <- debug.Stack() }()
		LetGoOfCode()
		all = append(all, <-done...)
	}
	if len(all) == 0 {
		t.Error("nothing ran")
	}
}

func TestParseMapping(t *testing.T) {
	for line, want := range map[string]struct {
		m            mapping
		readOnly, ok bool
	}{
		"00400000-00b68000 r-xp 00000000 fe:00 1234                     /bin/x": {mapping{0x400000, 0xb68000}, true, true},
		"00b68000-0135c000 r--p 00768000 fe:00 1234 /bin/x y":                   {mapping{0xb68000, 0x135c000}, true, true},
		"0135c000-013e6000 rw-p 00f5c000 fe:00 1234 /bin/x":                     {mapping{0x135c000, 0x13e6000}, false, true},
		"7f00-7f10 r--s 00000000 fe:00 1234 /tmp/shared":                        {mapping{0x7f00, 0x7f10}, false, true},
		"7ffd0000-7ffd2000 r-xp 00000000 00:00 0 [vdso]":                        {mapping{0x7ffd0000, 0x7ffd2000}, false, true},
		"Size:               4096 kB":                                           {},
		"VmFlags: rd ex mr mw me sd":                                            {},
		"10-0 r-xp 0 fe:00 1 /x":                                                {},
		"":                                                                      {},
	} {
		m, readOnly, ok := parseMapping([]byte(line))
		if ok != want.ok || ok && (m != want.m || readOnly != want.readOnly) {
			t.Errorf("%q: %x, %v, %v", line, m, readOnly, ok)
		}
	}
}

// The pace is the usual one again after the first collection.
func TestCollectLate(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	CollectLate()
	if pace() != late {
		t.Fatalf("the pace is %d at the start", pace())
	}
	for range 1000 { // cleanups run a little after a collection
		runtime.GC()
		runtime.Gosched()
		if pace() == 100 {
			return
		}
	}
	t.Errorf("the pace is %d after collections", pace())
}

func pace() int {
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(percent)
	return int(percent[0].Value.Uint64())
}
