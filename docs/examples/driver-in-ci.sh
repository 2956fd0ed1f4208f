#!/bin/sh
# Takes a CSI driver through the life of a volume on this machine, without a cluster. Exits with 0 if everything worked.
# Start your driver first, then: driver-in-ci.sh NAME SOCKET. Needs root.
set -eu
name=$1
socket=$2
work=$(mktemp -d)
export HAWSER_DATA_DIR="$work/data" KUBECONFIG="$work/data/kubeconfig"

hawser driver check "$socket"
hawser up --listen 127.0.0.1:0 --node-name ci --csi-driver "$name=$socket" >"$work/log" 2>&1 &
trap 'hawser stop --pods --yes || true; cat "$work/log"; rm -rf --one-file-system "$work"' EXIT
until hawser get nodes >/dev/null 2>&1; do sleep 0.2; done

hawser apply -f - <<CLASS
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: { name: tested }
provisioner: $name
volumeBindingMode: WaitForFirstConsumer
allowVolumeExpansion: true
CLASS
hawser volume create data --size 64Mi --class tested --node ci
hawser run --claim data:/data -- sh -c 'echo written > /data/file'
hawser volume resize data 96Mi
test "$(hawser run --claim data:/data -- cat /data/file)" = written
hawser volume rm data --yes
test -z "$(hawser get pv -o name)" # nothing is left
