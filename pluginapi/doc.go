// Package pluginapi is the contract between the amux host and adapter plugins:
// the protocol's Go names, the events, the error codes and the handshake. Both
// the host and the sdk are built on it; it knows neither. What a plugin MUST do
// stands in README.md beside this file, the wire itself in
// amuxplugin1/amuxplugin1.proto.
package pluginapi
