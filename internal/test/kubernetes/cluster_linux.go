package kubernetes

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/image"
)

const (
	// Image is what the node has: busybox, and a git that makes what it is to clone.
	Image = "amux.test/agent:1"
	pause = "amux.test/pause:1"
	// address is that of the node, on an interface that leads nowhere.
	address = "10.99.0.1"
	token   = "obviously-no-secret"
	// patience is for a slow machine that does much besides.
	patience = 3 * time.Minute
)

// Cluster is a cluster of one node.
type Cluster struct {
	Kubectl string // program
	Config  string // kubeconfig of a user who may do everything

	t     *testing.T
	dir   string
	first int // pid, here, of the first process of its namespaces
	api   *exec.Cmd
}

// Start starts a cluster, or fails the test and says what is missing: make kubernetes asks for one.
// It ends with the test, with all that it runs.
func Start(t *testing.T) *Cluster {
	t.Helper()
	node, err := filepath.Abs("../../.cache/kubernetes/node")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(node); err != nil {
		t.Fatal("the programs of the cluster are not built: make kubernetes")
	}
	if os.Getuid() != 0 {
		t.Fatal("a Kubernetes node needs root")
	}
	for _, program := range []string{"containerd", "ctr", "runc", "etcd", "ip", "unshare", "nsenter", "busybox", "/usr/lib/cni/ptp"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not installed (Debian: containerd, runc, etcd-server, containernetworking-plugins, iproute2, util-linux, busybox-static)", program)
		}
	}
	dir, err := os.MkdirTemp("/tmp", "amux-kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, dir: dir, Kubectl: filepath.Join(dir, "kubectl"), Config: filepath.Join(dir, "admin.conf")}
	t.Cleanup(func() {
		if t.Failed() {
			for _, log := range []string{"kubelet", "kube-apiserver", "containerd", "agent-sandbox"} {
				if data, err := os.ReadFile(c.path(log + ".log")); err == nil {
					t.Logf("the end of what %s said:\n%s", log, data[max(0, len(data)-3000):])
				}
			}
		}
		for range 50 { // it unmounts what it had mounted
			if os.RemoveAll(dir) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	if err := os.Symlink(node, c.Kubectl); err != nil {
		t.Fatal(err)
	}
	c.enter()
	c.configure()
	c.Begin("containerd", "containerd", "--config", c.path("containerd.toml"))
	c.Begin("etcd", "etcd", "--data-dir", c.path("etcd"), "--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls", "http://127.0.0.1:2379",
		"--listen-peer-urls", "http://127.0.0.1:2380", "--unsafe-no-fsync")
	c.startAPI()
	c.until("the API server answers", func() bool { return c.Try("get", "--raw", "/readyz") == nil })
	c.Begin("controllers", node, "kube-controller-manager", "--kubeconfig", c.Config, "--service-account-private-key-file", c.path("key.pem"), "--leader-elect=false",
		"--controllers=*,-nodeipam,-service-lb-controller,-node-route-controller,-cloud-node-lifecycle-controller")
	c.Begin("scheduler", node, "kube-scheduler", "--kubeconfig", c.Config, "--leader-elect=false")
	for name, entry := range map[string][]string{Image: nil, pause: {"/bin/sleep", "2147483647"}} {
		c.load(name, entry)
	}
	c.Begin("kubelet", node, "kubelet", "--config", c.path("kubelet.yaml"), "--kubeconfig", c.Config, "--root-dir", c.path("kubelet"), "--node-ip", address,
		"--hostname-override", "node", "--oom-score-adj=0")
	c.until("the node is ready", func() bool {
		return strings.Contains(c.Get("get", "nodes", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`), "True")
	})
	c.until("accounts are made", func() bool { return c.Try("get", "serviceaccount", "default") == nil })
	return c
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// enter makes the namespaces of the cluster's processes, and the node's address.
func (c *Cluster) enter() {
	c.t.Helper()
	for _, words := range []string{"link add amux0 type veth peer name amux1", "link set amux1 up", "addr add " + address + "/24 dev amux0", "link set amux0 up", "route add default dev amux0"} {
		if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil && !bytes.Contains(out, []byte("File exists")) {
			c.t.Fatalf("ip %s: %v %s", words, err, out)
		}
	}
	// Its own /var, for kubelet and containerd have paths there that no flag names.
	cmd := exec.Command("unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
		"mount -t tmpfs none /var/log && mount -t tmpfs none /run && mkdir -m 1777 /run/kept && mkdir -p /var/lib/kubelet && mount -t tmpfs none /var/lib/kubelet && echo ready && while :; do sleep 3600 & wait; done")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	buf := make([]byte, 16)
	if n, err := stdout.Read(buf); err != nil || string(buf[:n]) != "ready\n" {
		c.t.Fatalf("no namespaces for a node can be made: %q %v", buf[:n], err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	if c.first, err = strconv.Atoi(strings.TrimSpace(string(children))); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = syscall.Kill(c.first, syscall.SIGKILL) // and with it everything in its namespace
		_ = cmd.Wait()
	})
}

// Begin starts a program of the cluster, which ends with it.
func (c *Cluster) Begin(name, program string, args ...string) *exec.Cmd {
	c.t.Helper()
	cmd := exec.Command("nsenter", append([]string{"--target", strconv.Itoa(c.first), "--pid", "--mount", program}, args...)...)
	log, err := os.OpenFile(c.path(name+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	return cmd
}

func (c *Cluster) startAPI() {
	c.t.Helper()
	node, err := filepath.EvalSymlinks(c.Kubectl)
	if err != nil {
		c.t.Fatal(err)
	}
	c.api = c.Begin("kube-apiserver", node, "kube-apiserver", "--etcd-servers", "http://127.0.0.1:2379", "--service-cluster-ip-range", "10.98.0.0/24", "--cert-dir", c.path("certs"),
		"--service-account-issuer", "https://amux.test", "--service-account-key-file", c.path("key.pem"), "--service-account-signing-key-file", c.path("key.pem"),
		"--authorization-mode", "Node,RBAC", "--token-auth-file", c.path("tokens.csv"), "--kubelet-preferred-address-types", "InternalIP", "--advertise-address", address,
		"--allow-privileged=true")
}

// RestartAPI kills the API server, and starts it again after a while.
func (c *Cluster) RestartAPI(after time.Duration) {
	c.t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", c.api.Process.Pid, c.api.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(children))) // nsenter forks for a pid namespace
	if err != nil {
		c.t.Fatal(err)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	time.Sleep(after)
	c.startAPI()
	c.until("the API server answers again", func() bool { return c.Try("get", "--raw", "/readyz") == nil })
}

// load puts an image on the node.
func (c *Cluster) load(name string, entry []string) {
	c.t.Helper()
	archive := image.OCI(c.t, name, entry)
	c.until("containerd answers", func() bool { return c.ctr(nil, "version") == nil })
	if err := c.ctr(archive, "images", "import", "-"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *Cluster) ctr(stdin []byte, words ...string) error {
	cmd := exec.Command("nsenter", append([]string{
		"--target", strconv.Itoa(c.first), "--pid", "--mount", "ctr", "--address", c.path("containerd.sock"), "--namespace", "k8s.io",
	}, words...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ctr %v: %w %s", words, err, out)
	}
	return nil
}

func (c *Cluster) configure() {
	c.t.Helper()
	write := func(name, text string) {
		if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		c.t.Fatal(err)
	}
	write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	write("tokens.csv", token+",admin,admin,system:masters\n")
	write("admin.conf", c.User(token, "default"))
	write("containerd.toml", fmt.Sprintf(`version = 2
root = "%[1]s/containerd"
state = "%[1]s/state"
[grpc]
  address = "%[1]s/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%[2]s"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "%[1]s/cni"
`, c.dir, pause))
	if err := os.Mkdir(c.path("cni"), 0o700); err != nil {
		c.t.Fatal(err)
	}
	write("cni/10-ptp.conflist", `{"cniVersion":"0.4.0","name":"amux","plugins":[{"type":"ptp","ipam":{"type":"host-local","dataDir":"`+c.path("ipam")+`","ranges":[[{"subnet":"10.97.0.0/16"}]]}}]}`)
	write("kubelet.yaml", fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://%[1]s/containerd.sock
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failCgroupV1: false
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
makeIPTablesUtilChains: false
resolvConf: ""
podLogsDir: %[1]s/pods
maxPods: 250
evictionHard: {"nodefs.available": "0%%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
`, c.dir))
}

// User is a kubeconfig for a token and a namespace.
func (c *Cluster) User(token, namespace string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://%s", insecure-skip-tls-verify: true}}]
users: [{name: user, user: {token: %q}}]
contexts: [{name: test, context: {cluster: test, user: user, namespace: %s}}]
current-context: test
`, net.JoinHostPort(address, "6443"), token, namespace)
}

// Get runs a command of kubectl that must not fail, as who may do everything.
func (c *Cluster) Get(words ...string) string {
	c.t.Helper()
	out, err := c.kubectl(nil, words)
	if err != nil {
		c.t.Fatalf("kubectl %v: %v", words, err)
	}
	return out
}

// Output runs a command of kubectl that may fail, and returns what it prints.
func (c *Cluster) Output(words ...string) (string, error) { return c.kubectl(nil, words) }

// Apply applies manifests.
func (c *Cluster) Apply(manifests string) {
	c.t.Helper()
	if _, err := c.kubectl([]byte(manifests), []string{"apply", "-f", "-"}); err != nil {
		c.t.Fatalf("kubectl apply: %v", err)
	}
}

// Create makes what manifests say, also what is too large for Apply.
func (c *Cluster) Create(manifests string) {
	c.t.Helper()
	if _, err := c.kubectl([]byte(manifests), []string{"create", "-f", "-"}); err != nil {
		c.t.Fatalf("kubectl create: %v", err)
	}
}

// Try runs a command of kubectl.
func (c *Cluster) Try(words ...string) error {
	_, err := c.kubectl(nil, words)
	return err
}

func (c *Cluster) kubectl(stdin []byte, words []string) (string, error) {
	cmd := exec.Command(c.Kubectl, words...)
	cmd.Env, cmd.Stdin = []string{"KUBECONFIG=" + c.Config, "HOME=" + c.dir, "PATH=" + os.Getenv("PATH")}, bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), err
}

func (c *Cluster) until(what string, done func() bool) {
	c.t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("never: %s", what)
		}
	}
}
