package shim

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/amux-dev/amux/internal/rawio"
)

// conn is one connection. Doorbells are written from the goroutine that
// appended if nobody else is writing, else by the connection's own.
type conn struct {
	*rawio.Conn
	write sync.Mutex
	wake  chan struct{}
	host  bool
}

func newConn(c *rawio.Conn) *conn { return &conn{Conn: c, wake: make(chan struct{}, 1)} }

func (k *keeper) serve(c *conn, launch bool) {
	defer c.Close()
	var hello Hello
	if launch {
		c.host = true
	} else {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		t, _, body, err := readFrame(c)
		if err != nil || t != frameHello || json.Unmarshal(body, &hello) != nil || hello.Nonce != k.hello.Nonce {
			_, _ = c.Write(frame(frameWelcome, 0, encode(Welcome{Version: Version, Code: "VALIDATION_ERROR", Error: "wrong nonce"})))
			return
		}
		_ = c.SetReadDeadline(time.Time{})
		c.host = hello.Host
	}
	k.mu.Lock()
	k.conns[c] = true
	if c.host {
		k.host = c
		k.epoch++
		if !launch {
			k.hello.HostDir, k.hello.HostPID, k.hello.HostStart = hello.HostDir, hello.HostPID, hello.HostStart
		}
		if k.alone != nil {
			k.alone.Stop()
			k.alone = nil
		}
	}
	welcome := Welcome{Version: Version, Epoch: k.epoch, Size: k.journal.Size(), PID: k.cfg.Self.PID, Terminals: true}
	k.mu.Unlock()
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-c.wake:
				c.send(k.doorbell())
			case <-stop:
				return
			}
		}
	}()
	c.send(frame(frameWelcome, 0, encode(welcome)))
	for {
		t, id, body, err := readFrame(c)
		if err != nil {
			break
		}
		err = k.command(c, t, body)
		if id != 0 {
			c.send(frame(frameReply, id, replyBody(err)))
		}
	}
	close(stop)
	k.mu.Lock()
	delete(k.conns, c)
	wasHost := k.host == c
	dead := k.hello
	if wasHost {
		k.host = nil
	}
	k.mu.Unlock()
	if wasHost {
		k.hostGone(dead)
	}
}

func replyBody(err error) []byte {
	if err == nil {
		return nil
	}
	remote, ok := errors.AsType[*RemoteError](err)
	if !ok {
		remote = &RemoteError{"INTERNAL", err.Error()}
	}
	return []byte(remote.Code + "\x00" + remote.Msg)
}

func (c *conn) send(b []byte) {
	c.write.Lock()
	defer c.write.Unlock()
	_, _ = c.Write(b)
}

func (k *keeper) doorbell() []byte {
	return frame(frameWake, 0, binary.LittleEndian.AppendUint64(nil, uint64(k.journal.Size())))
}

// ring tells every connection that the journal has grown. It never blocks.
func (k *keeper) ring() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.conns) == 0 {
		return
	}
	bell := k.doorbell()
	for c := range k.conns {
		if c.write.TryLock() {
			n, err := c.TryWrite(bell)
			if 0 < n && n < len(bell) {
				_, err = c.Write(bell[n:])
			}
			c.write.Unlock()
			if n > 0 || err != nil {
				continue
			}
		}
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}
