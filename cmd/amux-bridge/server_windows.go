package main

import "os"

// signals end the bridge, and the server with it.
var signals = []os.Signal{os.Interrupt}

// terminate is by force: there is no request to end that a server would hear.
func terminate(p *os.Process) { p.Kill() }

func signalCode(os.Signal) int { return 130 }
