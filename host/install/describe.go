package install

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
)

const describeFlag = "--amux-describe"

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
func (in *Installer) checkDescription(ctx context.Context, stage, dir string, m *Manifest, run bool) error {
	label := "plugin " + m.Name + " " + m.Version
	data, err := readSmall(filepath.Join(dir, DescribeName))
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s: %s: %w", label, DescribeName, fault.Plain(err))
	}
	shipped, err := ParseDescription(label+": "+DescribeName, data)
	if err != nil {
		return err
	}
	if err := m.Agrees(shipped); err != nil || !run {
		return err
	}
	probe := Probe{Executable: filepath.Join(dir, ExecutableName(m.Name, Platform())), Parent: stage, Supervision: in.opts.Supervision}
	text, err := probe.describe(ctx)
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
			WithHint("the author must package it again: amux plugin package")
	}
	return nil
}

// RunDescribe runs a plugin's executable with --amux-describe, as Probe says.
func RunDescribe(ctx context.Context, executable string, supervision Supervision) ([]byte, error) {
	return Probe{Executable: executable, Supervision: supervision}.describe(ctx)
}
