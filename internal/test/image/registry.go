package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
)

// Registry is a registry that has one image by every name, for one user.
type Registry struct {
	Host string // HOST:PORT
	// Pulled is how often somebody has asked for the image and was let in, and Refused how often
	// somebody was not.
	Pulled, Refused atomic.Int64
}

// NewRegistry starts a registry on loopback. What asks has to be the user with the password.
func NewRegistry(t *testing.T, user, password string) *Registry {
	t.Helper()
	r := &Registry{}
	blobs := map[string][]byte{}
	var index struct {
		Manifests []struct{ MediaType, Digest string }
	}
	for archive := tar.NewReader(bytes.NewReader(OCI(t, "any", nil))); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		blobs["sha256:"+path.Base(header.Name)] = data
		if header.Name == "index.json" {
			if err := json.Unmarshal(data, &index); err != nil {
				t.Fatal(err)
			}
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, asked *http.Request) {
		if u, p, _ := asked.BasicAuth(); u != user || p != password {
			r.Refused.Add(1)
			w.Header().Set("Www-Authenticate", `Basic realm="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"who are you?"}]}`, http.StatusUnauthorized)
			return
		}
		name := path.Base(asked.URL.Path)
		if strings.Contains(asked.URL.Path, "/manifests/") {
			r.Pulled.Add(1)
			if !strings.HasPrefix(name, "sha256:") {
				name = index.Manifests[0].Digest
			}
			w.Header().Set("Content-Type", index.Manifests[0].MediaType)
			w.Header().Set("Docker-Content-Digest", name)
		}
		data, ok := blobs[name]
		if !ok && asked.URL.Path != "/v2/" {
			http.NotFound(w, asked)
			return
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(server.Close)
	r.Host = server.Listener.Addr().String()
	return r
}
