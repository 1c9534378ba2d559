// Testcount reads the JSON of go test on stdin, prints what failed and was
// skipped, a line for each package, the table in the file that AMUX_TEST_REPORT
// names, and last how many tests passed, failed and were skipped. Its exit code is 1 if any failed or none was run.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

func main() {
	var passed, failed, skipped int
	output := map[string][]string{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text()) // the compiler's words
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			output[key] = append(output[key], e.Output)
			if e.Action == "build-output" {
				fmt.Print(e.Output)
			}
		case "pass", "skip", "fail":
			if e.Test == "" {
				fmt.Printf("%-4s %s %.1fs\n", e.Action, strings.TrimPrefix(e.Package, "github.com/amux-dev/amux/"), e.Elapsed)
			}
			switch {
			case e.Action == "fail":
				if e.Test != "" {
					failed++
				} else if e.FailedBuild != "" || failed == 0 {
					failed++
				}
				fmt.Print(strings.Join(output[key], ""))
			case e.Test == "":
			case e.Action == "skip":
				skipped++
				fmt.Printf("skip %s %s: %s\n", e.Package, e.Test, reason(output[key]))
			default:
				passed++
			}
			delete(output, key)
		}
	}
	if table, err := os.ReadFile(os.Getenv("AMUX_TEST_REPORT")); err == nil {
		os.Stdout.Write(table)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 || passed == 0 || lines.Err() != nil {
		os.Exit(1)
	}
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
