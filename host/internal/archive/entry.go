package archive

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/pluginapi"
)

// entryReader reads lines of the index, a hundred thousand in a fraction of a second:
// encoding/json takes ten times as long. What it does not expect is left to that.
type entryReader struct {
	entry Entry
	words map[string]string // agents, folders and tags, which come again and again
	tags  []string
}

// read reads a line. The entry is valid until the next one.
func (r *entryReader) read(line []byte) (*Entry, bool) {
	if r.words == nil {
		r.words = map[string]string{}
	}
	r.entry, r.tags = Entry{}, r.tags[:0]
	if r.fast(line) {
		return &r.entry, true
	}
	r.entry = Entry{}
	return &r.entry, json.Unmarshal(line, &r.entry) == nil
}

// word is a text of which there are few.
func (r *entryReader) word(text []byte) string {
	word, ok := r.words[string(text)]
	if !ok {
		word = string(text)
		if len(r.words) < 10_000 {
			r.words[word] = word
		}
	}
	return word
}

// fast reads a line as this package writes it, and reports whether it is one.
func (r *entryReader) fast(line []byte) bool {
	e := &r.entry
	rest, ok := object(line, func(key, value []byte) bool {
		text, isText := plain(value)
		switch string(key) {
		case "v", "turns":
			n, err := strconv.Atoi(string(value))
			if string(key) == "v" {
				e.Version = n
			} else {
				e.Turns = n
			}
			return err == nil
		case "bytes":
			var err error
			e.Bytes, err = strconv.ParseInt(string(value), 10, 64)
			return err == nil
		case "tokens":
			return tokens(value, &e.Tokens)
		case "cost":
			return cost(value, &e.Cost)
		case "models":
			return r.models(value)
		case "tags":
			return r.tagList(value)
		}
		if !isText {
			return false
		}
		var err error
		switch string(key) {
		case "run_id":
			e.RunID = string(text)
		case "name":
			e.Name = string(text)
		case "session_id":
			e.SessionID = string(text)
		case "agent":
			e.Agent = r.word(text)
		case "state":
			e.State = r.word(text)
		case "reason":
			e.Reason = r.word(text)
		case "code":
			e.Code = pluginapi.Code(r.word(text))
		case "cwd":
			e.Cwd = r.word(text)
		case "project":
			e.Project = r.word(text)
		case "created":
			e.Created, err = time.Parse(time.RFC3339Nano, string(text))
		case "ended":
			e.Ended, err = time.Parse(time.RFC3339Nano, string(text))
		default:
			return false
		}
		return err == nil
	})
	return ok && len(bytes.TrimSpace(rest)) == 0
}

func (r *entryReader) tagList(value []byte) bool {
	ok := array(value, func(item []byte) bool {
		text, ok := plain(item)
		r.tags = append(r.tags, r.word(text))
		return ok
	})
	r.entry.Tags = r.tags
	return ok
}

func (r *entryReader) models(value []byte) bool {
	return array(value, func(item []byte) bool {
		var m engine.ModelTokens
		_, ok := object(item, func(key, value []byte) bool {
			if string(key) == "tokens" {
				return tokens(value, &m.Tokens)
			}
			text, ok := plain(value)
			m.Model = r.word(text)
			return ok && string(key) == "model"
		})
		r.entry.Models = append(r.entry.Models, m)
		return ok
	})
}

func tokens(value []byte, to *pluginapi.Tokens) bool {
	_, ok := object(value, func(key, value []byte) bool {
		if string(value) == "null" {
			return true
		}
		n, err := strconv.ParseInt(string(value), 10, 64)
		switch string(key) {
		case "input":
			to.Input = &n
		case "output":
			to.Output = &n
		case "thinking":
			to.Thinking = &n
		case "cache_read":
			to.CacheRead = &n
		case "cache_write":
			to.CacheWrite = &n
		default:
			return false
		}
		return err == nil
	})
	return ok
}

func cost(value []byte, to **pluginapi.Money) bool {
	if string(value) == "null" {
		return true
	}
	_, ok := object(value, func(key, value []byte) bool {
		usd, err := strconv.ParseFloat(string(value), 64)
		*to = &pluginapi.Money{USD: usd}
		return err == nil && string(key) == "usd"
	})
	return ok
}

// object calls f with the keys and the raw values of an object, until it returns false,
// and returns what follows the object. It knows JSON without spaces and without keys that
// have escapes.
func object(data []byte, f func(key, value []byte) bool) (rest []byte, ok bool) {
	if len(data) == 0 || data[0] != '{' {
		return nil, false
	}
	for data = data[1:]; ; data = data[1:] {
		if len(data) > 0 && data[0] == '}' {
			return data[1:], true
		}
		end := valueEnd(data)
		if end < 2 || data[0] != '"' || end >= len(data) || data[end] != ':' {
			return nil, false
		}
		key := data[1 : end-1]
		data = data[end+1:]
		if end = valueEnd(data); end <= 0 || end >= len(data) || !f(key, data[:end]) {
			return nil, false
		}
		switch data = data[end:]; data[0] {
		case ',':
		case '}':
			return data[1:], true
		default:
			return nil, false
		}
	}
}

// array calls f with the raw items of an array, until it returns false.
func array(data []byte, f func(item []byte) bool) bool {
	if len(data) < 2 || data[0] != '[' {
		return false
	}
	if data[1] == ']' {
		return true
	}
	for data = data[1:]; ; data = data[1:] {
		end := valueEnd(data)
		if end <= 0 || end >= len(data) || !f(data[:end]) {
			return false
		}
		switch data = data[end:]; data[0] {
		case ',':
		case ']':
			return true
		default:
			return false
		}
	}
}

// valueEnd is the length of the value with which data begins, if that is JSON.
func valueEnd(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return min(i+1, len(data))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':':
			if depth == 0 {
				return i
			}
		}
	}
	return len(data)
}

// plain is the text of a string that has no escapes.
func plain(value []byte) (text []byte, ok bool) {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return nil, false
	}
	return value[1 : len(value)-1], true
}
