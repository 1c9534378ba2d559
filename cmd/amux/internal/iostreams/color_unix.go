//go:build unix

package iostreams

import "os"

func enableColor(*os.File) bool { return true }
