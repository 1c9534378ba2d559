#!/bin/sh
# Runs the main job: a prompt, with the first agent that is installed and signed
# in, or else with the demo agent, which needs nothing.
set -eu
agent=$(bin/amux agents list --json | awk -F'"' '
	/"agent":/           { name = $4; installed = signed = demo = 0 }
	/"installed": true/  { installed = 1 }
	/"signed_in": true/  { signed = 1 }
	/"demo": true/       { demo = 1 }
	/^  }/               { if (installed && signed && !demo) { print name; exit } }')
set -x
exec bin/amux run "${agent:-demo}" "$1"
