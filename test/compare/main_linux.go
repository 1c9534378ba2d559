package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// probe measures one or more rows of one host.
type probe struct {
	name string
	run  func(*world, *host, *table) error
}

var probes = []probe{
	{"help", startUp},
	{"launch", launch},
	{"rate", rate},
	{"memory", memory},
	{"latency", latency},
	{"kill", hostKill},
}

func main() {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	bin := flag.String("bin", "bin", "folder of the built programs")
	count := flag.Int("count", 5, "samples of each row")
	only := flag.String("only", "", "probes whose name matches this regular expression")
	agentMux := flag.String("agent-mux", "", "the amux.js of an agent-mux that you have")
	verbose := flag.Bool("v", false, "print to stderr what is measured")
	flag.Parse()
	if err := compare(*bin, *count, *only, *agentMux, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func compare(bin string, count int, only, agentMux string, verbose bool) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	p, err := findPeers(agentMux)
	if err != nil {
		return err
	}
	w, err := newWorld(bin, p)
	if err != nil {
		return err
	}
	defer w.remove()
	if err := w.warm(); err != nil {
		return err
	}
	t := newTable()
	begin := time.Now()
	for round := range count {
		for _, p := range probes {
			if !pattern.MatchString(p.name) {
				continue
			}
			for i := range w.hosts {
				// Another one begins each round: what comes after a rest takes longer.
				h := w.hosts[(i+round)%len(w.hosts)]
				since := time.Now()
				if err := p.run(w, h, t); err != nil {
					return fmt.Errorf("%s of %s: %w", p.name, h.id, err)
				}
				w.tidy()
				if verbose {
					fmt.Fprintf(os.Stderr, "%d %s %s %v\n", round+1, p.name, h.id, time.Since(since).Round(time.Millisecond))
				}
			}
		}
	}
	t.print(os.Stdout, w.hosts)
	for _, note := range p.notes {
		fmt.Println(note)
	}
	fmt.Printf("%s%d samples in %v; %s\n", p.versions, count, time.Since(begin).Round(time.Second), machine())
	return nil
}

// machine describes in general words what was measured on.
func machine() string {
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	meminfo, _ := os.ReadFile("/proc/meminfo")
	load, _ := os.ReadFile("/proc/loadavg")
	memory, _, _ := strings.Cut(string(meminfo), "\n")
	return fmt.Sprintf("%d CPUs, %s, load %s", strings.Count(string(cpuinfo), "processor\t"),
		strings.Join(strings.Fields(memory), " "), strings.Join(strings.Fields(string(load))[:3], " "))
}
