//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/docker/cli/opts"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/pflag"
)

// flags are what the key args of a place says of its containers, in the words of docker run.
type flags struct {
	container container.Config
	host      container.HostConfig
	networks  map[string]*network.EndpointSettings
	platform  *ocispec.Platform
	pull      string // always, missing, never
}

// refused are flags of docker run that would take from a run what it needs.
var refused = map[string]string{
	"detach": "", "d": "", "rm": "", "name": "", "entrypoint": "", "interactive": "", "i": "", "tty": "", "t": "", "workdir": "", "w": "", "restart": "", "cidfile": "", "attach": "", "a": "",
}

// readFlags reads them. Variables that are named without a value are those of lookup.
func readFlags(args []string, lookup func(string) (string, bool)) (f flags, _ error) {
	set := pflag.NewFlagSet("args", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	texts := func(name, short string) *opts.ListOpts {
		list := opts.NewListOpts(nil)
		set.VarP(&list, name, short, "")
		return &list
	}
	var memory, reserved, shm opts.MemBytes
	var swap opts.MemSwapBytes
	var cpus opts.NanoCPUs
	var mounts opts.MountOpt
	var networks opts.NetworkOpt
	var gpus opts.GpuOpts
	ulimits := opts.NewUlimitOpt(nil)
	sysctls := opts.NewMapOpts(nil, opts.ValidateSysctl)
	resources := &f.host.Resources
	set.VarP(&memory, "memory", "m", "")
	set.Var(&reserved, "memory-reservation", "")
	set.Var(&swap, "memory-swap", "")
	set.Var(&shm, "shm-size", "")
	set.Var(&cpus, "cpus", "")
	set.Int64VarP(&resources.CPUShares, "cpu-shares", "c", 0, "")
	set.StringVar(&resources.CpusetCpus, "cpuset-cpus", "", "")
	set.StringVar(&resources.CpusetMems, "cpuset-mems", "", "")
	set.StringVar(&resources.CgroupParent, "cgroup-parent", "", "")
	pids := set.Int64("pids-limit", 0, "")
	set.Var(ulimits, "ulimit", "")
	set.Var(&gpus, "gpus", "")
	devices := texts("device", "")
	env, labels := texts("env", "e"), texts("label", "l")
	envFiles := texts("env-file", "")
	volumes, from, tmpfs := texts("volume", "v"), texts("volumes-from", ""), texts("tmpfs", "")
	set.Var(&mounts, "mount", "")
	set.Var(&networks, "network", "")
	set.Var(&networks, "net", "")
	dns, search, hosts := texts("dns", ""), texts("dns-search", ""), texts("add-host", "")
	added, dropped, security, groups := texts("cap-add", ""), texts("cap-drop", ""), texts("security-opt", ""), texts("group-add", "")
	set.Var(sysctls, "sysctl", "")
	set.BoolVar(&f.host.Privileged, "privileged", false, "")
	set.BoolVar(&f.host.ReadonlyRootfs, "read-only", false, "")
	set.BoolVar(new(bool), "init", true, "") // always
	set.StringVar(&f.container.Hostname, "hostname", "", "")
	set.StringVarP(&f.container.User, "user", "u", "", "")
	set.StringVar((*string)(&f.host.UsernsMode), "userns", "", "")
	set.StringVar((*string)(&f.host.IpcMode), "ipc", "", "")
	set.StringVar((*string)(&f.host.PidMode), "pid", "", "")
	set.StringVar((*string)(&f.host.UTSMode), "uts", "", "")
	set.StringVar((*string)(&f.host.CgroupnsMode), "cgroupns", "", "")
	set.StringVar(&f.host.Runtime, "runtime", "", "")
	set.StringVar(&f.host.LogConfig.Type, "log-driver", "", "")
	set.StringVar(&f.pull, "pull", "missing", "")
	platform := set.String("platform", "", "")

	if err := set.Parse(args); err != nil {
		return f, argsError(err, set)
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("args: %q is no flag of docker run", set.Arg(0))
	}
	if !slices.Contains([]string{"always", "missing", "never"}, f.pull) {
		return f, fmt.Errorf("args: --pull=%s: always, missing and never are known", f.pull)
	}
	resources.Memory, resources.MemoryReservation, resources.MemorySwap = memory.Value(), reserved.Value(), swap.Value()
	resources.NanoCPUs, resources.Ulimits, resources.DeviceRequests = cpus.Value(), ulimits.GetList(), gpus.Value()
	if set.Changed("pids-limit") {
		resources.PidsLimit = pids
	}
	for _, device := range devices.GetSlice() {
		resources.Devices = append(resources.Devices, deviceOf(device))
	}
	var err error
	if f.container.Env, err = opts.ReadKVEnvStrings(envFiles.GetSlice(), nil); err != nil {
		return f, fmt.Errorf("args: --env-file: %w", err)
	}
	for _, variable := range env.GetSlice() {
		if name, _, given := strings.Cut(variable, "="); !given {
			value, ok := lookup(name)
			if !ok {
				continue // as docker has it
			}
			variable = name + "=" + value
		}
		f.container.Env = append(f.container.Env, variable)
	}
	f.container.Labels = opts.ConvertKVStringsToMap(labels.GetSlice())
	f.host.Binds, f.host.VolumesFrom, f.host.Mounts, f.host.ShmSize = volumes.GetSlice(), from.GetSlice(), mounts.Value(), shm.Value()
	for _, volume := range f.host.Binds {
		if source, _, named := strings.Cut(volume, ":"); !named || strings.HasPrefix(source, ".") || strings.HasPrefix(source, "~") {
			return f, fmt.Errorf("args: --volume=%s: it is /FOLDER:/FOLDER or NAME:/FOLDER", volume)
		}
	}
	f.host.Tmpfs = map[string]string{}
	for _, at := range tmpfs.GetSlice() {
		folder, options, _ := strings.Cut(at, ":")
		f.host.Tmpfs[folder] = options
	}
	f.host.NetworkMode = container.NetworkMode(networks.NetworkMode())
	if f.networks, err = attached(networks.Value()); err != nil {
		return f, err
	}
	for _, server := range dns.GetSlice() {
		address, err := netip.ParseAddr(server)
		if err != nil {
			return f, fmt.Errorf("args: --dns=%s: %w", server, err)
		}
		f.host.DNS = append(f.host.DNS, address)
	}
	f.host.DNSSearch, f.host.ExtraHosts, f.host.GroupAdd = search.GetSlice(), hosts.GetSlice(), groups.GetSlice()
	f.host.CapAdd, f.host.CapDrop, f.host.Sysctls = added.GetSlice(), dropped.GetSlice(), sysctls.GetAll()
	if f.host.SecurityOpt, err = profiles(security.GetSlice()); err != nil {
		return f, err
	}
	if *platform != "" {
		system, rest, _ := strings.Cut(*platform, "/")
		arch, variant, _ := strings.Cut(rest, "/")
		if f.platform = (&ocispec.Platform{OS: system, Architecture: arch, Variant: variant}); arch == "" {
			return f, fmt.Errorf("args: --platform=%s: it is OS/ARCH", *platform)
		}
	}
	return f, nil
}

// argsError says what is wrong with args, and which flags there are.
func argsError(err error, set *pflag.FlagSet) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return fmt.Errorf("args: %w", err)
	}
	flag := "--" + unknown.GetSpecifiedName()
	if len(flag) == len("--x") {
		flag = flag[1:]
	}
	if _, ours := refused[unknown.GetSpecifiedName()]; ours {
		return fmt.Errorf("args: %s cannot be set: amux decides how the container of a run starts and ends", flag)
	}
	var names []string
	set.VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return fmt.Errorf("args: %s is not known; of docker run's flags these are: %s", flag, strings.Join(names, " "))
}

// deviceOf reads HERE[:THERE[:RIGHTS]].
func deviceOf(text string) container.DeviceMapping {
	d := container.DeviceMapping{CgroupPermissions: "rwm"}
	words := strings.Split(text, ":")
	d.PathOnHost, d.PathInContainer = words[0], words[0]
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "/") {
			d.PathInContainer = word
		} else {
			d.CgroupPermissions = word
		}
	}
	return d
}

// attached are the networks that a container is in.
func attached(networks []opts.NetworkAttachmentOpts) (map[string]*network.EndpointSettings, error) {
	var at map[string]*network.EndpointSettings
	for _, n := range networks {
		if !container.NetworkMode(n.Target).IsUserDefined() {
			if len(networks) > 1 {
				return nil, fmt.Errorf("args: --network=%s goes with no other network", n.Target)
			}
			continue // the mode says it
		}
		s := &network.EndpointSettings{Aliases: n.Aliases, DriverOpts: n.DriverOpts, GwPriority: n.GwPriority}
		if n.IPv4Address.IsValid() || n.IPv6Address.IsValid() {
			s.IPAMConfig = &network.EndpointIPAMConfig{IPv4Address: n.IPv4Address, IPv6Address: n.IPv6Address}
		}
		if at == nil {
			at = map[string]*network.EndpointSettings{}
		}
		at[n.Target] = s
	}
	return at, nil
}

// mostProfile is how long a seccomp profile may be.
const mostProfile = 1 << 20

// profiles puts the content of seccomp profiles in the place of their paths.
func profiles(security []string) ([]string, error) {
	for i, option := range security {
		path, ok := strings.CutPrefix(option, "seccomp=")
		if !ok || path == "unconfined" || path == "builtin" {
			continue
		}
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("args: --security-opt: %w", err)
		}
		text, err := io.ReadAll(io.LimitReader(file, mostProfile))
		_ = file.Close()
		var compact bytes.Buffer
		if err == nil {
			err = json.Compact(&compact, text)
		}
		if err != nil {
			return nil, fmt.Errorf("args: --security-opt: %s: %w", path, err)
		}
		security[i] = "seccomp=" + compact.String()
	}
	return security, nil
}

// made are the parts of a container of a run: what every run has, and what args say.
func (p place) made(run, folder, user string, userns container.UsernsMode) (*container.Config, *container.HostConfig) {
	config, host := p.flags.container, p.flags.host
	config.Image, config.WorkingDir = p.image, folder
	config.Entrypoint, config.Cmd = []string{"sleep"}, []string{forever}
	config.Env = append([]string{"HOME=" + boxHome}, config.Env...)
	config.Labels = map[string]string{}
	for name, value := range p.flags.container.Labels {
		config.Labels[name] = value
	}
	config.Labels[runLabel], config.Labels[ownerLabel] = run, p.owner
	init := true
	host.Init = &init
	host.Tmpfs = map[string]string{boxHome: "exec,mode=1777"}
	for at, options := range p.flags.host.Tmpfs {
		host.Tmpfs[at] = options
	}
	if folder != "" {
		host.Mounts = append([]mount.Mount{{Type: mount.TypeBind, Source: folder, Target: folder}}, host.Mounts...)
	}
	if config.User == "" {
		config.User = user
	}
	if host.UsernsMode == "" {
		host.UsernsMode = userns
	}
	return &config, &host
}
