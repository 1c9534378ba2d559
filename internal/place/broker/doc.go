// Package broker lets many processes share one helper program of a place. It is started by the
// first that needs it, and does for each of them what it does with words on its command line:
// the same words, the same stdin, stdout, stderr and exit code, over a socket instead of in a
// process of its own. It ends when nobody has needed it for a while.
//
// Each side writes frames: a type (1 byte), a length (4 bytes, little endian), and so many bytes.
package broker
