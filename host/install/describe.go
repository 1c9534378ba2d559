package install

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/internal/sandbox"
	"github.com/amux-dev/amux/pluginapi"
)

const (
	describeTime = 5 * time.Second
	describeSize = 4 << 20
	describeFlag = "--amux-describe"

	describeMemory = 1 << 30
)

func marshalReceipt(r *Receipt) ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	return append(data, '\n'), err
}

// ParseDescription reads describe.json.
func ParseDescription(place string, data []byte) (*pluginapi.Description, error) {
	d := &pluginapi.Description{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, d); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s: %s", place, strings.ReplaceAll(err.Error(), "\u00a0", " "))
	}
	return d, nil
}

// checkDescription demands that manifest and describe.json agree, and, if run is
// set, that the executable says the same as describe.json. It runs in a folder of
// stage, which is swept if this process is killed.
func checkDescription(ctx context.Context, stage, dir string, m *Manifest, run bool) error {
	label := "plugin " + m.Name + " " + m.Version
	data, err := readSmall(filepath.Join(dir, DescribeName))
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s: %s: %w", label, DescribeName, plain(err))
	}
	shipped, err := ParseDescription(label+": "+DescribeName, data)
	if err != nil {
		return err
	}
	if err := m.Agrees(shipped); err != nil || !run {
		return err
	}
	text, err := runDescribe(ctx, filepath.Join(dir, ExecutableName(m.Name, Platform())), stage)
	if err != nil {
		e := pluginapi.AsError(err)
		return &pluginapi.Error{Code: e.Code, Msg: label + ": " + e.Msg, Hint: e.Hint, Err: e.Err}
	}
	said, err := ParseDescription(label+" "+describeFlag, text)
	if err != nil {
		return err
	}
	if !proto.Equal(said, shipped) {
		return pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s: its %s is not what %s %s prints", label, DescribeName, ExecutableName(m.Name, Platform()), describeFlag).
			WithHint("the author makes it anew: amux plugin package")
	}
	return nil
}

// RunDescribe runs a plugin's executable with --amux-describe: bounded in time
// and output, without stdin, with no environment, in an empty folder, which is where
// it may write.
func RunDescribe(ctx context.Context, executable string) ([]byte, error) {
	return runDescribe(ctx, executable, "")
}

func runDescribe(ctx context.Context, executable, parent string) ([]byte, error) {
	dir, err := os.MkdirTemp(parent, "amux-describe-*")
	if err != nil {
		return nil, writeError(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	for tries := 0; ; tries++ {
		var stdout, stderr head
		cmd := exec.CommandContext(ctx, executable, describeFlag)
		cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &stdout, &stderr, time.Second
		// Interpreters are found by env in PATH; Windows needs its system folder.
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir}
		if runtime.GOOS == "windows" {
			cmd.Env = append(cmd.Env, "SYSTEMROOT="+os.Getenv("SYSTEMROOT"), "TMP="+dir, "TEMP="+dir)
		}
		ownSession(cmd)
		over := make(chan struct{})
		err := sandbox.Start(cmd, sandbox.Holding(describeMemory), over)
		if err == nil {
			err = cmd.Wait()
		}
		close(over)
		if cmd.Process != nil {
			endSession(cmd.Process.Pid)
		}
		// A fork elsewhere may for a moment still have the file that it was written through.
		if isBusy(err) && tries < 100 {
			time.Sleep(2 * time.Millisecond)
			continue
		}
		name := filepath.Base(executable)
		switch {
		case ctx.Err() == context.DeadlineExceeded:
			return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s %s did not end within %v", name, describeFlag, describeTime)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case stdout.full:
			return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s %s prints more than 4 MiB", name, describeFlag)
		case err != nil:
			why := err.Error()
			if line, _, _ := strings.Cut(strings.TrimSpace(stderr.kept.String()), "\n"); line != "" {
				why += ": " + line[:min(len(line), 200)]
			}
			return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s %s failed: %s", name, describeFlag, why)
		}
		return stdout.kept.Bytes(), nil
	}
}

// head keeps the first bytes that are written. It is no bytes.Buffer itself: that
// could be filled past Write.
type head struct {
	kept bytes.Buffer
	full bool
}

func (h *head) Write(b []byte) (int, error) {
	if h.kept.Len()+len(b) > describeSize {
		h.full = true
		return len(b), nil
	}
	return h.kept.Write(b)
}
