package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Memory and time of a start grow with a program. What makes one suddenly bigger is mostly
// one call that has the linker keep each method of each type (text/template, net/rpc).
func TestSizeOfPrograms(t *testing.T) {
	t.Parallel()
	for program, most := range map[string]int64{"amux": 16 << 20, "amux-shim": 3 << 20, "plugins/claude/amux-plugin-claude": 11 << 20} {
		info, err := os.Stat("../../bin/" + program)
		if err != nil {
			t.Fatal("bin is not there: make build")
		}
		if info.Size() > most {
			t.Errorf("%s has %.1f MB, more than %.1f", program, float64(info.Size())/(1<<20), float64(most)/(1<<20))
		}
	}
}

// What registers gRPC's reflection links protobuf's descriptors, which are unpacked at each
// start, and semver compiles six regular expressions then: tools/modules.sh changes both.
func TestProgramsLinkCopiesOfModules(t *testing.T) {
	t.Parallel()
	plugins, err := filepath.Glob("../../bin/plugins/*/amux-plugin-*")
	if err != nil || len(plugins) < 5 {
		t.Fatalf("bin has the plugins %q (%v): make build", plugins, err)
	}
	for _, path := range append(plugins, "../../bin/amux", "../../bin/amux-api") {
		program, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(program, []byte("grpc.health.v1.Health")) {
			t.Errorf("%s does not link go-plugin's server: this test sees nothing", path)
		}
		for _, has := range []string{"grpc.reflection.v1.ServerReflection", "protobuf/types/descriptorpb"} {
			if bytes.Contains(program, []byte(has)) {
				t.Errorf("%s links %s", path, has)
			}
		}
		if versions := []byte("Masterminds/semver/v3."); bytes.Contains(program, versions) && !bytes.Contains(program, append(versions, "(*whenUsed)."...)) {
			t.Errorf("%s links semver as it is published", path)
		}
	}
}
