package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// probe measures one or more rows at once.
type probe struct {
	name string
	// share of -count that it is run: some take long and vary little.
	share float64
	run   func(*world, *table) error
}

var probes = []probe{
	{"start", 2, startUp},
	{"launch", 2, launch},
	{"verify", 1, verify},
	{"throughput", 1, throughput},
	{"latency", 1, latency},
	{"sync", 1, synced},
	{"memory", 0.5, memory},
	{"idle", 0.3, idleRuns},
	{"many", 0.3, manyRuns},
	{"thousand", 0.1, thousandRuns},
	{"hundred", 0.3, hundredRuns},
	{"flood", 0.3, flood},
	{"plugin-kill", 1, pluginKill},
	{"long-line", 0.3, longLines},
	{"stall", 0.2, stall},
	{"host-kill", 1, hostKill},
	{"binary", 0.1, binary},
	{"answer", 0.1, answers},
	{"million", 0.1, longRuns},
	{"ended", 0.1, endedRuns},
	{"live", 0.1, liveRuns},
	{"sessions", 0.1, storedSessions},
}

func main() {
	if role := os.Getenv("AMUX_BENCH_ROLE"); role != "" {
		os.Exit(play(role))
	}
	bin := flag.String("bin", "bin", "folder of the built programs")
	count := flag.Int("count", 10, "samples of each row")
	only := flag.String("only", "", "probes whose name matches this regular expression")
	keep := flag.Bool("keep", false, "keep the temporary folder")
	verbose := flag.Bool("v", false, "say on stderr what is measured")
	flag.Parse()
	over, err := measure(*bin, *count, *only, *keep, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if over {
		os.Exit(1)
	}
}

func measure(bin string, count int, only string, keep, verbose bool) (over bool, err error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return false, err
	}
	w, err := newWorld(bin)
	if err != nil {
		return false, err
	}
	if !keep {
		defer w.remove()
	} else {
		fmt.Fprintln(os.Stderr, "in", w.dir)
	}
	var chosen []probe
	for _, p := range probes {
		if pattern.MatchString(p.name) {
			chosen = append(chosen, p)
		}
	}
	still, err := watchPauses()
	if err != nil {
		return false, err
	}
	t := newTable()
	begin := time.Now()
	// All probes take turns, so that what the machine does meanwhile falls on all
	// of them alike.
	for round := range 2 * count {
		for _, p := range chosen {
			if times := max(1, int(p.share*float64(count))); round >= times {
				continue
			}
			if err := w.calibrate(t); err != nil {
				return false, err
			}
			since := time.Now()
			if err := p.run(w, t); err != nil {
				return false, fmt.Errorf("%s: %w", p.name, err)
			}
			// Files are not removed between launches: before ext4 makes one it looks at each that was removed in the
			// last minutes, which has taken a launch 4 ms.
			if p.name != "launch" {
				w.tidy()
			}
			if verbose {
				fmt.Fprintf(os.Stderr, "%d %s %v\n", round+1, p.name, time.Since(since).Round(time.Millisecond))
			}
		}
	}
	over = t.print(os.Stdout)
	fmt.Println(still)
	fmt.Printf("%d samples in %v; %s\n", count, time.Since(begin).Round(time.Second), machine())
	return over, nil
}

// machine says in general words what was measured on.
func machine() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	cpus := strings.Count(string(data), "processor\t")
	mem, _ := os.ReadFile("/proc/meminfo")
	line, _, _ := strings.Cut(string(mem), "\n")
	load, _ := os.ReadFile("/proc/loadavg")
	return fmt.Sprintf("%d CPUs, %s, load %s", cpus, strings.Join(strings.Fields(line), " "), strings.Join(strings.Fields(string(load))[:3], " "))
}
