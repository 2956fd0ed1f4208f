#!/bin/sh
# Builds hawser_VERSION_ARCH.deb from the published package: packed and installed by npm into a private directory, the pinned
# Node without its headers, the systemd units, examples. Needs npm and dpkg-deb; changes nothing outside the output directory.
# Usage: packaging/deb/build.sh [OUTPUT-DIRECTORY]
set -eu
umask 022
source=$(cd "$(dirname "$0")/../.." && pwd)
output=$(mkdir -p "${1:-.}" && cd "${1:-.}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$source/package.json")
case $(uname -m) in
  x86_64) arch=amd64 ;;
  aarch64) arch=arm64 ;;
  *) echo "build.sh: there is no pinned Node for $(uname -m)" >&2; exit 1 ;;
esac

# The same files that npm users get.
export PATH="$source/node_modules/.bin:$PATH"
(cd "$source" && npm pack --silent --pack-destination "$work" >/dev/null)
root=$work/root
mkdir -p "$root/usr/lib/hawser" "$root/usr/bin" "$root/lib/systemd/system" "$root/DEBIAN"
echo '{ "private": true }' >"$root/usr/lib/hawser/package.json"
(cd "$root/usr/lib/hawser" && npm install --silent --ignore-scripts --prefer-offline --no-package-lock --no-audit --no-fund "$work"/hawser-*.tgz >/dev/null)
# A third of the Node package is headers for compilers.
rm -rf "$root"/usr/lib/hawser/node_modules/node-linux-*/include "$root"/usr/lib/hawser/node_modules/node-linux-*/share

ln -s ../lib/hawser/node_modules/hawser/bin/hawser "$root/usr/bin/hawser"
for unit in "$source"/packaging/systemd/*.service; do
  sed 's#/usr/local/bin/hawser#/usr/bin/hawser#' "$unit" >"$root/lib/systemd/system/$(basename "$unit")"
done

cat >"$root/DEBIAN/control" <<CONTROL
Package: hawser
Version: $version
Architecture: $arch
Maintainer: Hawser
Section: admin
Priority: optional
Installed-Size: $(du -sk "$root" | cut -f1)
Depends: libc6, util-linux, mount, e2fsprogs
Recommends: xfsprogs, btrfs-progs
Description: Kubernetes volumes without the cluster
 Claims, storage classes, provisioning, attach, mount, expansion, snapshots
 and CSI drivers on one machine or a few. Pods run as processes.
CONTROL
# Units are neither started nor stopped by the package: pods and mounts outlive an upgrade, and the administrator decides when.
cat >"$root/DEBIAN/postinst" <<'SCRIPT'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
SCRIPT
cat >"$root/DEBIAN/prerm" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --now hawser.service hawser-agent.service 2>/dev/null || true
fi
SCRIPT
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm"
dpkg-deb --root-owner-group -Zgzip -z6 --build "$root" "$output/hawser_${version}_$arch.deb" >/dev/null
echo "$output/hawser_${version}_$arch.deb"
