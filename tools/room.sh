#!/bin/sh
# Says before anything begins if a disk has less room than the tests need: where it is full midway,
# they fail one by one, for reasons that look like others.
#
#	room.sh WHAT GB FOLDER...
set -eu
what=$1 needed=$2
shift 2
for folder; do
	while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
	free=$(df -Pk "$folder" | awk 'NR == 2 { print int($4 / 1024 / 1024) }')
	if [ "$free" -lt "$needed" ]; then
		echo "$what needs $needed GB of disk or more, and $(cd "$folder" && pwd) has $free GB: make room, or set GOCACHE and TMPDIR to folders of another disk" >&2
		exit 2
	fi
done
