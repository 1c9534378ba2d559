package rule

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// files are all that a request is about, as it names them.
func (q *Request) files() []string {
	if len(q.Paths) > 0 {
		return q.Paths
	}
	return []string{q.Detail}
}

// allowsFiles demands that each file is matched by a rule, as it is written and as
// it is found when links are followed. A path with .. in it leads elsewhere where a
// link comes before, and one with ~ means two things: neither is allowed.
func allowsFiles(rules []*rule, q *Request) (by string) {
	for _, file := range q.files() {
		if file == "" || strings.ContainsRune(file, 0) || strings.HasPrefix(file, "~") || dotted(file) {
			return ""
		}
		path := absolute(q, file)
		for _, form := range []string{path, q.resolve(path)} {
			i := slices.IndexFunc(rules, func(r *rule) bool { return r.matchesPath(q, form) })
			if i < 0 {
				return ""
			}
			by = rules[i].text
		}
	}
	return by
}

// deniesFiles is enough with one file, in one form.
func (r *rule) deniesFiles(q *Request) (Effect, string) {
	unclear := false
	for _, file := range append([]string{q.Detail}, q.files()...) {
		for _, path := range []string{absolute(q, file), absolute(q, expand(q, file))} {
			for _, form := range []string{path, q.resolve(path)} {
				for _, pattern := range r.pathPatterns(q) {
					if Glob(fold(pattern), fold(form)) {
						return Denied, ""
					}
				}
			}
		}
		unclear = unclear || dotted(file)
	}
	if unclear {
		return Unclear, "a path with .. in it may lead elsewhere"
	}
	return Open, ""
}

// dotted reports whether a path has a .. in it.
func dotted(path string) bool {
	return slices.Contains(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }), "..")
}

func (r *rule) matchesPath(q *Request, path string) bool {
	for _, pattern := range r.pathPatterns(q) {
		if Glob(pattern, path) {
			return true
		}
	}
	return false
}

// pathPatterns are the rule's pattern as an absolute one, and that with the links of
// its folder followed.
func (r *rule) pathPatterns(q *Request) []string {
	pattern := strings.ReplaceAll(r.pattern, "**", "*")
	// What comes before the first * is a path; what is behind it stays as it is.
	fixed, rest, star := strings.Cut(pattern, "*")
	if star {
		rest = "*" + filepath.ToSlash(rest)
		if strings.Contains(rest, "/../") {
			return nil // nothing that is clean has that
		}
	}
	dir, base := fixed, ""
	if star {
		// The last piece may be the beginning of a name.
		cut := strings.LastIndexAny(filepath.ToSlash(fixed), "/") + 1
		dir, base = fixed[:cut], fixed[cut:]
		if dir == "" && strings.HasPrefix(pattern, "*") {
			return []string{rest}
		}
	}
	path := absolute(q, expand(q, dir))
	join := func(dir string) string {
		if !star {
			return dir
		}
		return strings.TrimSuffix(dir, "/") + "/" + base + rest
	}
	return []string{join(path), join(q.resolve(path))}
}

// expand replaces a ~ in front.
func expand(q *Request, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && q.Home != "" {
		return filepath.Join(q.Home, rest)
	}
	return path
}

// absolute makes a path absolute, with slashes and without dots.
func absolute(q *Request, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(q.Cwd, path)
	}
	return filepath.ToSlash(filepath.Clean(path))
}

// resolve follows links as far as the path exists, those to nothing too.
func (q *Request) resolve(path string) string {
	if q.Elsewhere {
		return path
	}
	dir, rest, links := filepath.FromSlash(path), "", 0
	for {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.ToSlash(filepath.Join(real, rest))
		}
		if target, err := os.Readlink(dir); err == nil && links < 40 {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(dir), target)
			}
			dir = filepath.Clean(target)
			links++
			continue
		}
		up := filepath.Dir(dir)
		if up == dir {
			return path
		}
		dir, rest = up, filepath.Join(filepath.Base(dir), rest)
	}
}
