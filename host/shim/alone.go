package shim

import (
	"os"
	"time"
)

// hostGone is what the run does without a host: a foreground one ends at once,
// a detached one goes on for a while, if it has an agent.
func (k *keeper) hostGone(dead Hello) {
	k.mu.Lock()
	if !k.hello.Detached || k.child == nil || isClosed(k.child.gone) {
		k.mu.Unlock()
		k.endAlone("host_gone")
		k.clearHost(dead)
		k.finish()
		return
	}
	if k.host != nil { // a new one was quicker
		k.mu.Unlock()
		return
	}
	if k.alone == nil {
		k.alone = time.AfterFunc(k.hello.Alone, func() { k.endAlone("host_gone"); k.finish() })
	}
	k.mu.Unlock()
	k.clearHost(dead)
}

// clearHost removes what a host has left that has died.
func (k *keeper) clearHost(dead Hello) {
	if dead.HostDir == "" {
		return
	}
	for range 200 { // its connection ends a moment before its process
		if k.cfg.Tree.Start(dead.HostPID) != dead.HostStart {
			_ = os.RemoveAll(dead.HostDir)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// endAlone ends everything without anybody to tell. The keeper may leave then.
func (k *keeper) endAlone(reason string) {
	k.mu.Lock()
	k.ending = true
	child := k.child
	if k.reason == "" {
		k.reason = reason
	}
	k.mu.Unlock()
	if child != nil {
		child.request(stopRequest{kill: true})
		<-child.gone
	}
	if k.hello.TempDir != "" {
		_ = os.RemoveAll(k.hello.TempDir)
	}
}
