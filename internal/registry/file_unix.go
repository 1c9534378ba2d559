//go:build unix

package registry

import "os"

const exeSuffix = ""

func mayExecute(info os.FileInfo) bool { return info.Mode().Perm()&0o111 != 0 }

// replace renames a file over another, which may be running.
func replace(from, to string) error { return os.Rename(from, to) }
