package iostreams

import (
	"errors"
	"os"
)

// passKeys is not there: a console edits lines itself, and has a history.
func passKeys(*os.File) (restore func() error, err error) { return nil, errors.ErrUnsupported }
