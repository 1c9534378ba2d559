#!/bin/sh
# Makes the plugin, one file with everything but gRPC itself. PYTHON is the one to
# run it with: its packages are those of requirements.txt.
set -eu
: "${PYTHON:=python3}"
cd "$(dirname "$0")"
out=${1:-.}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cp __main__.py "$build"
"$PYTHON" -m grpc_tools.protoc -I ../../pluginapi/amuxplugin1 --python_out="$build" --grpc_python_out="$build" amuxplugin1.proto
"$PYTHON" -m zipapp "$build" -p "$(command -v "$PYTHON")" -o "$out/amux-plugin-whisper"
cp amux-plugin.toml "$out/" 2>/dev/null || true
"$out/amux-plugin-whisper" --amux-describe > "$out/describe.json"
