package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/amux-dev/amux/internal/sys/startup"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// DescribeFlag makes a plugin print its description and exit: the content of
// describe.json.
const DescribeFlag = "--amux-describe"

// Serve is the main function of a plugin. It returns when the host ends the
// plugin, or exits the process: after DescribeFlag, when run by hand, and when
// the host is gone. While the plugin converses about one run only, the process uses one
// processor, unless GOMAXPROCS is set.
func Serve(name, version string, adapters ...Adapter) {
	// A Ctrl-C in the terminal is for the host, which ends its runs in order.
	signal.Ignore(os.Interrupt)
	s, err := newServer(name, version, os.Stderr, adapters)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	if len(os.Args) == 2 && os.Args[1] == DescribeFlag {
		os.Exit(describe(s, os.Stdout, os.Stderr))
	}
	if os.Getenv(pluginapi.Handshake.MagicCookieKey) != pluginapi.Handshake.MagicCookieValue {
		fmt.Fprintf(os.Stderr, "%s %s is a plugin of amux for %s. It is started by amux, not by hand.\nTo see what it can do: %s %s\n",
			name, version, strings.Join(s.ids(), ", "), os.Args[0], DescribeFlag)
		os.Exit(1)
	}
	if os.Getenv("GOGC") == "" {
		s.memory.own()
		startup.GiveBackSoon()
	}
	s.processors.own()
	if fd := os.Getenv(pluginapi.LifelineEnv); fd != "" {
		go exitWithHost(fd)
	}
	go learn() // until the host has connected
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: pluginapi.Handshake,
		VersionedPlugins: map[int]plugin.PluginSet{
			pluginapi.ProtocolMajor: {pluginapi.AdapterService: &GRPCPlugin{Service: s}},
		},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			if os.Getenv(clientCert) == "" { // else TLS is asked for, and opts say so
				opts = append(opts, grpc.Creds(pluginapi.Credentials()))
			}
			return grpc.NewServer(append(opts, ServerOptions()...)...)
		},
		Logger: hclog.New(&hclog.LoggerOptions{
			Name: name, Level: hclog.Warn, Output: os.Stderr, JSONFormat: true,
		}),
	})
}

// clientCert is how go-plugin's host asks for TLS.
const clientCert = "PLUGIN_CLIENT_CERT"

// ServerOptions are the gRPC options that every server of the protocol needs.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(pluginapi.MaxMessage),
		grpc.MaxSendMsgSize(pluginapi.MaxMessage),
		grpc.StaticStreamWindowSize(pluginapi.StreamWindow),
		grpc.StaticConnWindowSize(pluginapi.ConnWindow),
		grpc.ForceServerCodecV2(pb.Codec{}),
	}
}

// exitWithHost ends the process when the host's end of the lifeline is closed,
// however the host died. An unusable lifeline counts as closed: better no plugin
// than one that nobody ends.
func exitWithHost(fd string) {
	if number, err := strconv.ParseUint(fd, 10, 64); err == nil {
		if lifeline := os.NewFile(uintptr(number), "lifeline"); lifeline != nil {
			io.Copy(io.Discard, lifeline)
		}
	}
	removeSockets(os.Getenv(plugin.EnvUnixSocketDir))
	os.Exit(0)
}

// removeSockets removes the sockets that go-plugin leaves behind, and the folder
// that its client made for this process. The variable could name any folder: one
// that is not go-plugin's, or holds anything else, stays.
func removeSockets(dir string) {
	if !strings.HasPrefix(filepath.Base(dir), "plugin-dir") {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.Type() == os.ModeSocket {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
	if os.Remove(dir) == nil {
		_ = os.Remove(filepath.Dir(dir)) // the host's, once the last plugin has left it
	}
}

// describe prints the description and returns the exit code.
func describe(s *server, stdout, stderr io.Writer) int {
	text, err := DescribeJSON(s.description)
	if err = errors.Join(s.broken, err); err == nil {
		_, err = stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", s.description.Plugin, err)
		return 1
	}
	return 0
}

// DescribeJSON is the text of describe.json. protojson varies its white space
// from build to build on purpose, so that is made regular here.
func DescribeJSON(description *pluginapi.Description) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(description)
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

// GRPCPlugin is the plugin's half of what go-plugin wants; the host has its own.
type GRPCPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	Service pb.AdapterServer
}

var _ plugin.GRPCPlugin = (*GRPCPlugin)(nil)

// GRPCServer registers the adapter service.
func (p *GRPCPlugin) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	pb.RegisterAdapterServer(server, p.Service)
	return nil
}

// GRPCClient is not for a plugin.
func (p *GRPCPlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("sdk.GRPCPlugin has no client side")
}
