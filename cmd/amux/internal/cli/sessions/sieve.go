package sessions

import (
	"bytes"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/foreign"
)

// sieve finds the sessions that may have a text, by a look at the files they are stored in. To read
// one through its adapter costs as much as to look at a megabyte or two.
type sieve struct {
	// piece is the longest part of the text that every file of JSON has as it is, but for upper case;
	// empty: there is none, and any session may have the text.
	piece []byte
}

// shortest is how long a piece is that is worth looking for.
const shortest = 3

func newSieve(text string) sieve {
	piece := ""
	for _, part := range strings.FieldsFunc(text, variable) {
		if len(part) > len(piece) {
			piece = part
		}
	}
	if len(piece) < shortest {
		return sieve{}
	}
	return sieve{bytes.ToLower([]byte(piece))}
}

// variable reports whether JSON may write a character in more than one way, or whether one that is
// not ASCII is the same but for upper and lower case, as K (of kelvin) is to k.
func variable(r rune) bool {
	return r < ' ' || r > '~' || strings.ContainsRune(`"\/<>&'kKsS`, r)
}

// keep is for each session whether it may have the text.
func (s sieve) keep(sessions []host.Session) []bool {
	kept := make([]bool, len(sessions))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			buf := make([]byte, 256<<10)
			for i := range next {
				kept[i] = s.may(sessions[i].Path, buf)
			}
		})
	}
	for i := range sessions {
		next <- i
	}
	close(next)
	wg.Wait()
	return kept
}

// may reports whether a file may have the text. One that is not a file of lines, or that cannot be
// read, is left to the adapter.
func (s sieve) may(path string, buf []byte) bool {
	if len(s.piece) == 0 || len(s.piece) > len(buf)/2 || filepath.Ext(path) != ".jsonl" || !filepath.IsAbs(path) {
		return true
	}
	file, err := foreign.Open(path, foreign.Rule{})
	if err != nil {
		return true
	}
	defer file.Close()
	return s.in(file, buf)
}

// in reports whether a reader has the piece, and whether it cannot be read.
func (s sieve) in(r io.Reader, buf []byte) bool {
	held := 0
	for {
		n, err := io.ReadFull(r, buf[held:])
		for i, c := range buf[held : held+n] {
			if 'A' <= c && c <= 'Z' {
				buf[held+i] = c + 'a' - 'A'
			}
		}
		held += n
		if bytes.Contains(buf[:held], s.piece) {
			return true
		}
		if err != nil {
			return err != io.EOF && err != io.ErrUnexpectedEOF
		}
		held = copy(buf, buf[held-len(s.piece)+1:held])
	}
}
