// Package registry is the test that agents of the ACP registry can be added and answer.
//
// testdata/registry.json has facts of the public registry: ids, versions, packages and
// arguments, as npm and PyPI had them on the day that result.txt names. The test adds
// agents from it with the built amux, into a folder that is kept between runs, then runs
// each in a network namespace with loopback alone and a home of its own, and checks that it
// answered the handshake of the protocol. None of them is signed in, so each run fails
// after that.
//
// An ordinary run of the tests takes the three small agents. All of them, and a new
// result.txt:
//
//	AMUX_TEST_REGISTRY=1 go test ./test/registry -update -timeout 30m
package registry
