package enclosure

import (
	"os"
	"path/filepath"
	"strings"
)

// support is what a program needs to run that may be in the home: itself, what its links
// lead to, the packages of Node.js or Python that it is part of, and what runs it.
func support(program, path string, depth int) (paths []string) {
	if program == "" || depth > 3 {
		return nil
	}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return nil
	}
	paths = append(paths, program, real)
	for _, p := range []string{program, real} {
		const packages = "/node_modules/"
		if i := strings.Index(p, packages); i >= 0 {
			paths = append(paths, p[:i+len(packages)-1])
		}
		dir := filepath.Dir(p)
		if beside := filepath.Join(filepath.Dir(dir), "lib", "node_modules"); filepath.Base(dir) == "bin" && isDir(beside) {
			paths = append(paths, beside)
		}
		if venv := filepath.Dir(dir); fileIn(venv, "pyvenv.cfg") {
			paths = append(paths, venv)
			if python, err := filepath.EvalSymlinks(filepath.Join(venv, "bin", "python")); err == nil {
				paths = append(paths, filepath.Dir(filepath.Dir(python)))
			}
		}
	}
	if interpreter := shebang(real); interpreter != "" {
		if !filepath.IsAbs(interpreter) {
			interpreter = look(interpreter, path)
		}
		paths = append(paths, support(interpreter, path, depth+1)...)
	}
	return paths
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func fileIn(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// shebang is the interpreter that a script names; a bare name is looked up.
func shebang(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	head := make([]byte, 256)
	n, _ := file.Read(head)
	line, ok := strings.CutPrefix(string(head[:n]), "#!")
	if !ok {
		return ""
	}
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) == "env" {
		for _, word := range words[1:] {
			if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
				return word
			}
		}
	}
	return words[0]
}

// look finds a program.
func look(name, path string) string {
	for dir := range strings.SplitSeq(path, ":") {
		found := filepath.Join(dir, name)
		if info, err := os.Stat(found); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return found
		}
	}
	return ""
}
