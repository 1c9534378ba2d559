// Testcount reads the JSON of go test on stdin and prints the failed and skipped tests, a
// line for each package, the table in the file that AMUX_TEST_REPORT names, and last how
// many tests passed, failed and were skipped. Its exit code is 1 if any failed or
// none was run.
//
//	go test -json FLAGS ./... | testcount FLAGS
//
// Up to five failed tests are run again by themselves, with the same flags, when all
// others have ended: a busy machine makes some of fifteen thousand tests late. A test
// that then passes is reported as unsteady with its first output, and counted as such. A
// data race, a panic, a package that did not build or did not end, and a process that
// outlived its run are never run again.
//
// gotestsum does most of this, and was tried on the cases of TestSecondChance (v1.13.0,
// --rerun-fails=1 --rerun-fails-abort-on-data-race). It decides seven of the ten the
// same way. It also runs again, and then passes, a test that left a process behind and
// one that ended the test program, because it knows nothing of what a failure says; it
// exits 0 when no test was run; and it cannot run again the tests of two modules that it
// counts as one. Its last line counts a test that passed when run again as a failure.
// Working around that takes more than the lines here, and 14 modules.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/amux-dev/amux/"

// again is how many failed tests are run again at most: more have a common cause.
const again = 5

// final are the words of failures that are not run again.
var final = []string{"panic: ", "survived: ", "left behind: "}

// race is printed during any test, also one that passes.
const race = "WARNING: DATA RACE"

type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// result counts the tests of one go test, subtests included.
type result struct {
	passed, failed, skipped int
	tests                   map[string][]string // the failed ones, by package
	final                   bool                // something failed that is not run again
}

func main() {
	r, err := count(os.Stdin)
	unsteady := 0
	if leaves := r.leaves(); len(leaves) > 0 && len(leaves) <= again && !r.final && err == nil {
		var passed bool
		if passed, err = runAgain(leaves, os.Args[1:]); passed {
			r.passed, r.failed, unsteady = r.passed+r.failed, 0, len(leaves)
		}
	}
	if table, err := os.ReadFile(os.Getenv("AMUX_TEST_REPORT")); err == nil {
		os.Stdout.Write(table)
	}
	fmt.Printf("%d passed, %d failed, %d skipped", r.passed, r.failed, r.skipped)
	if unsteady > 0 {
		fmt.Printf(", %d of the passed only when run again", unsteady)
	}
	fmt.Println()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
	}
	if r.failed > 0 || r.passed == 0 || err != nil {
		os.Exit(1)
	}
}

// count prints and counts what go test reports.
func count(from io.Reader) (result, error) {
	r := result{tests: map[string][]string{}}
	output := map[string][]string{}
	begun := map[string]int{} // tests that have not ended, by package
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text()) // the compiler's words
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "run":
			begun[e.Package]++
		case "output", "build-output":
			output[key] = append(output[key], e.Output)
			if e.Action == "build-output" {
				fmt.Print(e.Output)
			}
			r.final = r.final || strings.Contains(e.Output, race)
		case "pass", "skip", "fail":
			if e.Test != "" {
				begun[e.Package]--
			} else if begun[e.Package] > 0 {
				r.final = true // the time ran out, or a test ended the program
			}
			if e.Test == "" {
				fmt.Printf("%-4s %s %.1fs\n", e.Action, strings.TrimPrefix(e.Package, module), e.Elapsed)
			}
			switch {
			case e.Action == "fail":
				said := strings.Join(output[key], "")
				fmt.Print(said)
				r.fail(e)
				r.final = r.final || slices.ContainsFunc(final, func(words string) bool {
					return strings.Contains(said, words)
				})
			case e.Test == "":
			case e.Action == "skip":
				r.skipped++
				fmt.Printf("skip %s %s: %s\n", e.Package, e.Test, reason(output[key]))
			default:
				r.passed++
			}
			delete(output, key)
		}
	}
	return r, lines.Err()
}

func (r *result) fail(e event) {
	switch {
	case e.Test != "":
		r.tests[e.Package] = append(r.tests[e.Package], e.Test)
	case e.FailedBuild == "" && len(r.tests[e.Package]) > 0:
		return // with its tests
	default:
		r.final = true
	}
	r.failed++
}

// leaves are the failed tests that have no failed subtest, as package and name.
func (r *result) leaves() (found [][2]string) {
	for pkg, tests := range r.tests {
		for _, test := range tests {
			if !slices.ContainsFunc(tests, func(t string) bool { return strings.HasPrefix(t, test+"/") }) {
				found = append(found, [2]string{pkg, test})
			}
		}
	}
	return found
}

// runAgain runs each of the tests, and reports whether all of them pass.
func runAgain(leaves [][2]string, flags []string) (bool, error) {
	for _, leaf := range leaves {
		pkg, test := leaf[0], leaf[1]
		levels := strings.Split(test, "/")
		for i, level := range levels {
			levels[i] = "^" + regexp.QuoteMeta(level) + "$"
		}
		fmt.Printf("once more: %s %s\n", strings.TrimPrefix(pkg, module), test)
		cmd := exec.Command("go", append(append([]string{"test", "-json", "-count=1"}, flags...),
			"-run", strings.Join(levels, "/"), pkg)...)
		cmd.Dir = ".."                                      // of the tools, where this is run
		cmd.Env = append(os.Environ(), "AMUX_TEST_REPORT=") // the table stays that of all
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return false, err
		}
		if err := cmd.Start(); err != nil {
			return false, err
		}
		r, err := count(out)
		_ = cmd.Wait() // its failures are counted
		if err != nil || r.failed > 0 || r.passed == 0 {
			return false, err
		}
		fmt.Printf("unsteady: %s %s failed, and passed when it was run again\n", strings.TrimPrefix(pkg, module), test)
	}
	return true, nil
}

// reason is what a test said when it was skipped.
func reason(output []string) string {
	for _, line := range output {
		if _, text, ok := strings.Cut(line, ".go:"); ok {
			_, text, _ = strings.Cut(text, ": ")
			return strings.TrimSpace(text)
		}
	}
	return "no reason given"
}
