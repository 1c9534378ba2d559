package host

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/pluginapi"
)

// archive is what is recorded of runs, and what they leave outside their folders.
type archive struct {
	opts  *Options
	store *store.Store
	log   hclog.Logger
}

// find resolves what a user calls a run: its id, its name, or a unique start or
// end of the id of at least four characters.
func (a *archive) find(ref string) (*store.Run, error) {
	found := a.store.Find(ref)
	if len(found) == 0 {
		var newest time.Time
		for _, id := range a.store.List() {
			meta, err := a.store.Run(id).ReadMeta()
			if err == nil && meta.Name == ref && (found == nil || meta.Created.After(newest)) {
				found, newest = []string{id}, meta.Created
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, record.NoRun(ref)
	case 1:
		return a.store.Run(found[0]), nil
	}
	return nil, invalid("%q names %d runs", ref, len(found)).WithHint("give more of the id: %s", strings.Join(found[:min(3, len(found))], ", "))
}

// index adds a run that has ended to the user's index, and to that of its project if
// the user wants one there.
func (a *archive) index(meta store.Meta, end pluginapi.RunEnd, ended time.Time) {
	project := ""
	if slices.Contains(a.opts.IndexProjects, meta.Project) {
		project = meta.Project
	}
	line, err := json.Marshal(struct {
		Version   int              `json:"v"`
		RunID     string           `json:"run_id"`
		Name      string           `json:"name,omitempty"`
		Agent     string           `json:"agent"`
		SessionID string           `json:"session_id,omitempty"`
		State     string           `json:"state"`
		Code      pluginapi.Code   `json:"code,omitempty"`
		Cwd       string           `json:"cwd"`
		Project   string           `json:"project,omitempty"`
		Tags      []string         `json:"tags,omitempty"`
		Created   time.Time        `json:"created"`
		Ended     time.Time        `json:"ended"`
		Turns     int              `json:"turns"`
		Tokens    pluginapi.Tokens `json:"tokens"`
		Cost      *pluginapi.Money `json:"cost"`
	}{1, meta.RunID, meta.Name, meta.Agent, end.SessionID, end.State, end.Code, meta.Cwd, meta.Project, meta.Tags,
		meta.Created, ended.UTC(), end.Turns, end.Tokens, end.Cost})
	if err == nil {
		err = store.AppendIndex(a.opts.ConfigDir, project, line)
	}
	if err != nil {
		a.log.Named("index").Warn("run is not in the index", "run_id", meta.RunID, "project", project, "error", err)
	}
}
