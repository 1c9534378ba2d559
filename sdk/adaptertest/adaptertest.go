// Package adaptertest checks an adapter against the contract of
// pluginapi/README.md. One call does it all, over real gRPC in this process:
//
//	func TestAdapter(t *testing.T) {
//		adaptertest.Run(t, adaptertest.Config{Adapter: adapter{}})
//	}
//
//	func FuzzConversation(f *testing.F) { adaptertest.Fuzz(f, adapter{}) }
//
// It reads every *.txtar file of a directory. A file is a transcript (what an
// agent said and what must come of it) or holds plan cases (what was asked for
// and the command that must come of it).
//
// # Transcripts
//
// The sections of a transcript:
//
//	inputs         what happens, in order, one input a line (below)
//	stdout         recorded output of the agent, raw, one line an input
//	start.json     fields of pluginapi.Start as protojson; may be absent
//	expect.json    what must come of it, see Expect; always written by hand
//	events.ndjson  all outputs, compared byte for byte; -update rewrites it
//
// INPUT_START comes first by itself. Lines of inputs:
//
//	out TEXT              a line of stdout        outq "GO STRING"   the same, quoted
//	err TEXT              a line of stderr        errq "GO STRING"   the same, quoted
//	stdout [N]            the next N lines of the section stdout; all that are left
//	in prompt ID TEXT     in approve ID [JSON]    in deny ID REASON
//	in answer ID TEXT     in interrupt            in model NAME       in end
//	timer ID              timeout run|inactivity  stop
//	spawn-failed REASON   collected PATH TEXT     start [ATTEMPT]
//	exit CODE|SIGNAL [asked]
//	# a comment
//
// Lines of stdout that inputs does not place come before it; without a section
// inputs, "exit 0" follows them.
//
// Each transcript is run with every input as a batch of its own (twice), all in
// one batch, at random splits and many times at once: the outputs must be the
// same, byte for byte. Then it is run with grease: garbage, huge and torn lines,
// unknown types and fields, which must change nothing but the log.
//
// # Plan cases
//
// A case is three sections: request.json (a PlanRequest as protojson; what is
// absent gets a plausible value), plan.json (rewritten by -update) and
// expect.json (PlanExpect, written by hand). NAME/request.json and so on hold
// several cases in one file.
package adaptertest

import (
	"context"
	"flag"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
)

var update = flag.Bool("update", false, "adaptertest: rewrite events.ndjson, plan.json and stored sessions")

// Config says what Run tests.
type Config struct {
	Adapter sdk.Adapter
	// Dir holds the *.txtar files; default "testdata".
	Dir string
	// Plain says that the agent's stdout is text for people: any line may be an
	// event, so garbage need not go to the log.
	Plain bool
}

// Run tests an adapter. A directory without a transcript fails.
func Run(t *testing.T, config Config) {
	t.Helper()
	if config.Dir == "" {
		config.Dir = "testdata"
	}
	files, err := filepath.Glob(filepath.Join(config.Dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no *.txtar in %s", config.Dir)
	}
	client := connect(t, config.Adapter)
	kit := &kit{config: config, client: client}
	resp, err := client.Describe(context.Background(), &pb.DescribeRequest{})
	if err != nil {
		t.Fatalf("describe: %v", pluginapi.FromStatus(err))
	}
	kit.agent = resp.Agents[0]
	t.Run("describe", kit.describe)
	transcripts := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		archive := txtar.Parse(content)
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if cases := planCases(archive); len(cases) > 0 {
			t.Run(name, func(t *testing.T) { kit.plans(t, file, archive, cases) })
			continue
		}
		transcripts++
		t.Run(name, func(t *testing.T) { kit.transcript(t, file, archive) })
	}
	if transcripts == 0 {
		t.Errorf("no transcript in %s", config.Dir)
	}
}

// kit is one Run.
type kit struct {
	config Config
	client pb.AdapterClient
	agent  *pluginapi.Agent
	// sawHuge: a transcript has been run with lines of 10 MiB.
	sawHuge bool
}

// connect serves the adapter on a connection in memory.
func connect(t testing.TB, adapter sdk.Adapter) pb.AdapterClient {
	t.Helper()
	service, err := sdk.NewServer("adaptertest", "0.0.0", adapter)
	if err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(sdk.ServerOptions()...)
	pb.RegisterAdapterServer(server, service)
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(listener)
	}()
	conn, err := grpc.NewClient("passthrough:///adaptertest",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(pluginapi.MaxMessage), grpc.MaxCallSendMsgSize(pluginapi.MaxMessage)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		<-served
	})
	return pb.NewAdapterClient(conn)
}

// describe checks what the adapter says of itself.
func (k *kit) describe(t *testing.T) {
	agent := k.agent
	if agent.DisplayName == "" || agent.Summary == "" {
		t.Error("display_name and summary must not be empty")
	}
	if strings.ContainsAny(agent.Summary, "\r\n") {
		t.Error("summary must be one line")
	}
	types := pluginapi.Types()
	for _, name := range agent.EventTypes {
		if !slices.Contains(types, pluginapi.Type(name)) {
			t.Errorf("event_types: %q is no event type of protocol %d.%d", name, pluginapi.ProtocolMajor, pluginapi.ProtocolMinor)
		}
		if pluginapi.HostOnly(pluginapi.Type(name)) {
			t.Errorf("event_types: %s is written by the host alone", name)
		}
	}
	for _, effort := range agent.Efforts {
		if !slices.Contains([]string{"low", "medium", "high", "max"}, effort.Level) {
			t.Errorf("efforts: unknown level %q", effort.Level)
		}
	}
	for i, probe := range agent.AuthProbes {
		if probe.Method == "" || probe.Env == "" && probe.File == "" {
			t.Errorf("auth_probes[%d]: needs a method, and env or file", i)
		}
		if probe.Env != "" && !slices.ContainsFunc(agent.CallerEnv, func(glob string) bool {
			ok, _ := filepath.Match(glob, probe.Env)
			return ok
		}) {
			t.Errorf("auth_probes[%d]: caller_env does not ask for %s", i, probe.Env)
		}
	}
	capabilities := agent.GetCapabilities()
	if _, ok := k.config.Adapter.(sdk.SessionLister); ok != capabilities.GetListSessions() {
		t.Errorf("capability list_sessions is %v, and SessionLister implemented: %v", !ok, ok)
	}
	if _, ok := k.config.Adapter.(sdk.SessionReader); ok != capabilities.GetReadSession() {
		t.Errorf("capability read_session is %v, and SessionReader implemented: %v", !ok, ok)
	}
	if _, ok := k.config.Adapter.(sdk.PluginLister); ok != capabilities.GetListPlugins() {
		t.Errorf("capability list_plugins is %v, and PluginLister implemented: %v", !ok, ok)
	}
	if _, ok := k.config.Adapter.(sdk.ModelLister); ok != capabilities.GetListModels() {
		t.Errorf("capability list_models is %v, and ModelLister implemented: %v", !ok, ok)
	}
	if _, ok := k.config.Adapter.(sdk.PluginChanger); ok != capabilities.GetChangePlugins() {
		t.Errorf("capability change_plugins is %v, and PluginChanger implemented: %v", !ok, ok)
	}
	if _, ok := k.config.Adapter.(sdk.McpConfigurer); ok != capabilities.GetMcpSettings() || ok != (len(agent.McpFiles) > 0) {
		t.Errorf("capability mcp_settings is %v, McpConfigurer implemented: %v, mcp_files: %d", capabilities.GetMcpSettings(), ok, len(agent.McpFiles))
	}
	for _, place := range slices.Concat(agent.McpFiles, agent.SkillFolders) {
		if path := place.GetPath(); place.GetScope() == "" || !strings.HasPrefix(path, "~/") && !strings.HasPrefix(path, "$") && !filepath.IsLocal(path) {
			t.Errorf("location %q of scope %q: needs a scope, and a path below ~, a variable or the project", path, place.GetScope())
		}
	}
	for _, path := range agent.HomePaths {
		if !strings.HasPrefix(path, "~/") && !strings.HasPrefix(path, "$") || path == "~/" {
			t.Errorf("home path %q: needs a path below ~, or one that begins with a variable", path)
		}
	}
}
