//go:build unix

package host

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amux-dev/amux/host/internal/sim"
)

// The flags of make sim.
var (
	simSeed    = flag.Uint64("sim.seed", 1, "the first seed")
	simSeeds   = flag.Int("sim.seeds", 60, "how many seeds are played; 0: no end but that of the time")
	simMinutes = flag.Float64("sim.minutes", 0, "how long they are played; 0: no end but that of the seeds")
	simWorkers = flag.Int("sim.workers", 1, "how many processes play them")
	simTrace   = flag.Bool("sim.trace", false, "print each step")
	simReport  = flag.String("sim.report", "", "the file that a worker writes its report to")
	simStep    = flag.Uint64("sim.step", 1, "from one seed to the next")
)

// simFaults are what a simulator of any worth injects: TestSimulate wants each of them
// when it plays many seeds.
var simFaults = []string{
	"crash of a host", "crash of a host in a step", "crash of a shim", "crash of a shim in a step", "crash of a plugin in a step",
	"hang of a plugin", "slow plugin", "repeated response", "power cut", "lost write", "lost run.json", "torn write", "full disk", "slow read",
	"short read", "short read of output", "full socket", "duplicated wake-up", "delayed wake-up", "retry", "budget", "preview", "death of a host at a budget", "death of a shim at a budget",
	"packed journal", "crash of a packer in a step", "lost rename", "two hosts for a run", "place that cannot be reached", "broken link", "link through which nothing comes", "link that breaks while something is said", "crash of a relay", "crash of a relay in a step", "client: stop on a full disk", "client: approve", "client: deny", "client: send", "client: end", "client: stop", "client: kill", "client: pause", "client: resume", "client: set approve", "approved by a mode that was changed",
}

// seedReport is what came of a seed, or of several.
type seedReport struct {
	Seeds    int
	Virtual  time.Duration
	Faults   map[string]int
	Problems []string
	sum      uint64 // of the course of events
}

func (r *seedReport) add(o seedReport) {
	r.Seeds += o.Seeds
	r.Virtual += o.Virtual
	r.Problems = append(r.Problems, o.Problems...)
	for fault, n := range o.Faults {
		r.Faults[fault] += n
	}
}

// player plays seeds in folders of its own.
type player struct {
	stage  *stage
	folder string
	trace  func(string)
}

// newPlayer keeps everything else from the processor, so that a seed has one course of
// events.
func newPlayer(t *testing.T) *player {
	t.Helper()
	base := "/dev/shm" // files cost little in memory
	if _, err := os.Stat(base); err != nil {
		base = ""
	}
	folder, err := os.MkdirTemp(base, "amux-sim-")
	if err != nil {
		t.Fatal(err)
	}
	stage, err := newStage(filepath.Join(folder, "stage"))
	if err != nil {
		t.Fatal(err)
	}
	processors, percent := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(processors)
		debug.SetGCPercent(percent)
		_ = os.RemoveAll(folder)
	})
	return &player{stage: stage, folder: folder}
}

// play plays a seed.
func (p *player) play(t *testing.T, seed uint64) (out seedReport) {
	folder := filepath.Join(p.folder, "world")
	defer os.RemoveAll(folder)
	defer func() {
		if r := recover(); r != nil { // a goroutine that does not end, for one
			all := make([]byte, 1<<20)
			out.Problems = append(out.Problems, fmt.Sprintf("panic: %v\n%s", r, all[:runtime.Stack(all, true)]))
		}
	}()
	runtime.GC() // now, and not while it is played
	synctest.Test(t, func(t *testing.T) {
		world, err := sim.New(seed, folder, behave)
		if err != nil {
			t.Fatal(err)
		}
		world.Trace = p.trace
		s := &simulation{World: world, rand: world.Rand("scenario"), stage: p.stage}
		s.play()
		out = seedReport{1, s.took, s.Faults(), s.problems, s.Sum()}
	})
	return out
}

// The real host, shim, engine and SDK keep the promises on a machine that breaks wherever
// it can: see check.
func TestSimulate(t *testing.T) {
	if testing.Short() && *simSeeds == 60 {
		*simSeeds = 20
	}
	since := time.Now()
	all := seedReport{Faults: map[string]int{}}
	if *simWorkers > 1 {
		all = simulateBeside(t)
	} else {
		p := newPlayer(t)
		if *simTrace {
			p.trace = func(line string) { fmt.Println(line) }
		}
		for i := 0; *simSeeds == 0 || i < *simSeeds; i++ {
			if *simMinutes > 0 && time.Since(since).Minutes() >= *simMinutes || len(all.Problems) > 0 {
				break
			}
			seed := *simSeed + uint64(i)*(*simStep)
			out := p.play(t, seed)
			for j := range out.Problems {
				out.Problems[j] = fmt.Sprintf("seed %d: %s\nplay it again: make sim SEED=%d", seed, out.Problems[j], seed)
			}
			all.add(out)
		}
	}
	if *simReport != "" {
		data, _ := json.Marshal(all)
		if err := os.WriteFile(*simReport, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, problem := range all.Problems {
		t.Error(problem)
	}
	took := time.Since(since)
	t.Logf("%d seeds in %v: %.0f a second; %.0f times as fast as real time", all.Seeds, took.Round(time.Second),
		float64(all.Seeds)/took.Seconds(), all.Virtual.Seconds()/took.Seconds())
	for _, fault := range slices.Sorted(maps.Keys(all.Faults)) {
		t.Logf("%9d  %s", all.Faults[fault], fault)
	}
	for _, fault := range simFaults {
		if all.Faults[fault] == 0 && all.Seeds >= 2000 {
			t.Errorf("%d seeds, and no %s", all.Seeds, fault)
		}
	}
}

// simulateBeside has several processes play: each has one processor.
func simulateBeside(t *testing.T) seedReport {
	dir := t.TempDir()
	all := seedReport{Faults: map[string]int{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for n := range *simWorkers {
		wg.Go(func() {
			report := filepath.Join(dir, strconv.Itoa(n))
			cmd := exec.Command(os.Args[0], "-test.run=^TestSimulate$", "-test.timeout=0", "-sim.workers=1", "-sim.report="+report,
				fmt.Sprintf("-sim.seed=%d", *simSeed+uint64(n)), fmt.Sprintf("-sim.step=%d", *simWorkers),
				fmt.Sprintf("-sim.seeds=%d", (*simSeeds+*simWorkers-1-n)/(*simWorkers)), fmt.Sprintf("-sim.minutes=%v", *simMinutes))
			cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
			said, err := cmd.CombinedOutput()
			data, readErr := os.ReadFile(report)
			var one seedReport
			mu.Lock()
			defer mu.Unlock()
			if readErr != nil || json.Unmarshal(data, &one) != nil {
				t.Errorf("worker %d: %v\n%s", n, err, said)
				return
			}
			all.add(one)
		})
	}
	wg.Wait()
	return all
}

// A seed has the same course of events each time, whatever else the machine does.
func TestSeedsRepeat(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays seeds twice, which takes long: run it without -short")
	}
	p := newPlayer(t)
	differ := 0
	for i := range min(*simSeeds, 1000) {
		seed := *simSeed + uint64(i)
		first, second := p.play(t, seed), p.play(t, seed)
		if first.sum != second.sum {
			differ++
			t.Logf("seed %d had two courses", seed)
		}
	}
	// A busy machine may take the processor away in the middle of a moment.
	if differ > 1+*simSeeds/500 {
		t.Errorf("%d of %d seeds had two courses", differ, *simSeeds)
	}
}
