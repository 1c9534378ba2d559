package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/amux-dev/amux/pluginapi"
)

// githubSource is the releases of a repository. A release's tag is its version,
// with or without a v; its assets are what amux plugin package makes.
type githubSource struct {
	all  *Sources
	repo string // owner/name
	tags map[string]*githubRelease
}

var _ Source = (*githubSource)(nil)

type githubRelease struct {
	Tag    string `json:"tag_name"`
	Draft  bool   `json:"draft"`
	Assets []struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	} `json:"assets"`
}

func (s *Sources) github(repo string) *githubSource {
	return &githubSource{all: s, repo: repo}
}

func (s *githubSource) String() string { return "gh:" + s.repo }

// Name follows the custom that a repository is named as its executable.
func (s *githubSource) Name() string {
	_, repo, _ := strings.Cut(s.repo, "/")
	name, ok := strings.CutPrefix(repo, prefix)
	if !ok || CheckName(name) != nil {
		return ""
	}
	return name
}

const (
	pageSize = 100
	maxPages = 10
	maxPage  = 16 << 20
)

func (s *githubSource) Versions(ctx context.Context) ([]string, error) {
	s.tags = map[string]*githubRelease{}
	var versions []string
	for page := 1; page <= maxPages; page++ {
		var releases []*githubRelease
		address := fmt.Sprintf("%s/repos/%s/releases?per_page=%d&page=%d", s.all.api, s.repo, pageSize, page)
		body, err := s.all.get(ctx, address, s.header("application/vnd.github+json"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "gh:%s: there is no such repository", s.repo).
				WithHint("check owner and name; for a private one set GH_TOKEN")
		}
		if err != nil {
			return nil, err
		}
		err = json.NewDecoder(io.LimitReader(body, maxPage)).Decode(&releases)
		_ = body.Close()
		if err != nil {
			return nil, pluginapi.Errorf(pluginapi.CodePlugin, "gh:%s: the answer of the releases API cannot be read: %v", s.repo, err)
		}
		for _, release := range releases {
			version := strings.TrimPrefix(release.Tag, "v")
			if _, err := semver.StrictNewVersion(version); err == nil && !release.Draft && s.tags[version] == nil {
				s.tags[version] = release
				versions = append(versions, version)
			}
		}
		if len(releases) < pageSize {
			break
		}
	}
	return versions, nil
}

func (s *githubSource) Open(ctx context.Context, version, file string) (io.ReadCloser, error) {
	release := s.tags[version]
	if release == nil {
		return nil, fs.ErrNotExist
	}
	for _, asset := range release.Assets {
		if asset.Name != file {
			continue
		}
		// The token is for the API alone, whatever address the answer names.
		header := s.header("application/octet-stream")
		if !sameHost(asset.URL, s.all.api) {
			return nil, pluginapi.Errorf(pluginapi.CodePlugin, "gh:%s: the asset %s lies at another host than the API", s.repo, file)
		}
		return s.all.get(ctx, asset.URL, header)
	}
	return nil, fs.ErrNotExist
}

func (s *githubSource) header(accept string) http.Header {
	header := http.Header{"Accept": {accept}, "X-Github-Api-Version": {"2022-11-28"}}
	if s.all.token != "" {
		header.Set("Authorization", "Bearer "+s.all.token)
	}
	return header
}

func sameHost(a, b string) bool {
	ua, err1 := url.Parse(a)
	ub, err2 := url.Parse(b)
	return err1 == nil && err2 == nil && ua.Scheme == ub.Scheme && ua.Host == ub.Host
}
