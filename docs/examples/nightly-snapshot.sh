#!/bin/sh
# Takes a snapshot of a claim and deletes the oldest of its nightly snapshots. For cron or a systemd timer:
#   30 2 * * *  root  /usr/local/bin/nightly-snapshot.sh database 7
# Usage: nightly-snapshot.sh CLAIM [KEEP]
set -eu
claim=$1
keep=${2:-7}
hawser volume snapshot "$claim" --as "$claim-nightly-$(date -u +%Y%m%d-%H%M%S)"
# Names sort by time. All but the newest go.
hawser get volumesnapshots -o name | sed 's#.*/##' | grep "^$claim-nightly-" | sort | head -n "-$keep" |
  while read -r old; do hawser delete "volumesnapshot/$old" --yes; done
