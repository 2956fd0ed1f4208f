// How does a process get its own view of the machine? Four constant scripts, run with `sh -c <script> <name> <arguments…>`;
// nothing is ever pasted into their text. They need dash or any POSIX shell and util-linux (unshare, mount, setpriv).
//
// supervise  outlives the agent: takes the token of its start, starts the container in a session of its own, waits, writes its
//            exit code. A supervisor whose token is gone comes too late and starts nothing.
// setup      in the new mount namespace: an overlay shows the host's root with a private layer above, the node's own directories
//            are hidden, the old root goes away (pivot_root). Only then does the agent attach the volumes, by descriptor
//            (host/linux/attach-calls.ts). Without its agent, setup gives up: nothing has begun until `pid` is written.
// exec       in a running container's namespace: the same user and variables for one more command.
// enter      after the change of user: sets the container's environment and becomes the command.

/**
 * Arguments: directory, token, whether it may be spoken to (1 or empty), then the command to supervise. Descriptor 3 leads to
 * the agent. Who may be spoken to reads from a named pipe; a keeper holds that open until a line comes through `detach`.
 * A setup that gave up has no `pid`, and so no exit code: the container never began.
 */
export const superviseScript = `
set -u
dir=$1
mv "$dir/$2" "$dir/begun-$2" 2>&3 || exit 1
input=/dev/null keeper=
if [ -n "$3" ]; then
  input=$dir/stdin
  mkfifo -m 600 "$input" "$dir/detach"
  { read -r line <"$dir/detach"; } <>"$input" >/dev/null 2>&1 3>&- &
  keeper=$!
fi
shift 3
setsid "$@" <"$input" &
pid=$!
exec 3>&-
wait "$pid"
code=$?
if [ -n "$keeper" ]; then kill "$keeper" 2>/dev/null; fi
if [ ! -e "$dir/pid" ]; then exit 1; fi
printf '%s %s\\n' "$code" "$(date +%s%3N)" >"$dir/exit.new"
mv "$dir/exit.new" "$dir/exit"
`

/**
 * Arguments: directory, token, hidden directories (colon-separated), read-only root (1 or empty), own /dev (1 or empty),
 * working directory, setpriv arguments (space-separated, may be empty), enter script, then the command. Descriptor 3 is a
 * conversation with the agent: errors and "ready" go out, "go" comes back when the volumes are attached, "started" goes out.
 *
 * It first writes who it is to `setup-TOKEN`, so that the agent finds its namespace. The start counts from the moment when the
 * token is renamed to `begun`: an agent that restarts takes the token away before that, and the container never runs. `pid`
 * follows, always before "started". The pid stays the same: all that follows is exec.
 *
 * The container's directory stays the working directory meanwhile: after pivot_root no path leads there.
 */
export const setupScript = `
set -eu
umask 022
trap '' PIPE
exec 4>&2 2>&3
dir=$1 token=$2 hidden=$3 readonly=$4 owndev=$5 workdir=$6 privileges=$7 enter=$8
shift 8
cd "$dir"
start_time() { shift 19; echo "$1"; }
read -r stat </proc/self/stat
printf '%s %s\\n' "\${stat%% *}" "$(start_time \${stat##*) })" >"setup-$token.new"
mv "setup-$token.new" "setup-$token"
base=$dir/fs root=$dir/fs/root
mkdir -p fs
mount -t tmpfs -o mode=0755 tmpfs "$base"
mkdir "$base/upper" "$base/work" "$root"
mount -t overlay -o "lowerdir=/,upperdir=$base/upper,workdir=$base/work" overlay "$root"
mkdir -p "$root/.hawser"
mount --rbind --make-rslave /proc "$root/proc"
mount --rbind --make-rslave /sys "$root/sys"
if [ -n "$owndev" ]; then
  mkdir "$base/devupper" "$base/devwork"
  mount -t overlay -o "lowerdir=/dev,upperdir=$base/devupper,workdir=$base/devwork" overlay "$root/dev"
  for part in pts shm mqueue; do
    if [ -d "/dev/$part" ]; then mount --rbind --make-rslave "/dev/$part" "$root/dev/$part"; fi
  done
else
  mount --rbind --make-rslave /dev "$root/dev"
fi
IFS=:
for path in $hidden; do
  if [ -d "$root$path" ]; then mount -t tmpfs -o ro,mode=0755,size=4k tmpfs "$root$path"; fi
done
unset IFS
# Where people mount things by hand, a container starts with nothing, as it would in an image.
if [ -d "$root/mnt" ]; then mount -t tmpfs -o mode=0755 tmpfs "$root/mnt"; fi
pivot_root "$root" "$root/.hawser"
umount -l /.hawser
rmdir /.hawser
# From here on no path leads to the host's root. The agent attaches the volumes; if it died, nobody would, so give up.
word=
echo ready >&3
read -r word <&3 || exit 1
if [ "$word" != go ]; then exit 1; fi
if [ -n "$readonly" ]; then mount -o remount,bind,ro /; fi
if [ ! -d "$workdir" ]; then mkdir -p "$workdir"; fi
# Fails when this start was given up: its directory is gone, or a later start has made it anew.
mv "begun-$token" begun
mv "setup-$token" pid
cd "$workdir"
# The agent may be dead by now; the container runs all the same.
echo started >&3 2>/dev/null || :
exec 2>&4 3>&- 4>&-
trap - PIPE
if [ -n "$privileges" ]; then
  exec setpriv $privileges -- /bin/sh -c "$enter" enter "$@"
fi
exec /bin/sh -c "$enter" enter "$@"
`

/** Arguments: working directory, setpriv arguments (may be empty), enter script, then the command. */
export const execScript = `
set -u
workdir=$1 privileges=$2 enter=$3
shift 3
cd "$workdir" || exit 126
if [ -n "$privileges" ]; then
  exec setpriv $privileges -- /bin/sh -c "$enter" enter "$@"
fi
exec /bin/sh -c "$enter" enter "$@"
`

/** The container's variables come as HAWSER_E0, HAWSER_E1, … = "name=value", so that none of them touches the tools above. */
export const enterScript = `
hawser_count=$HAWSER_COUNT
unset HAWSER_COUNT PATH PWD OLDPWD
hawser_index=0
hawser_odd=
while [ "$hawser_index" -lt "$hawser_count" ]; do
  eval "hawser_pair=\\$HAWSER_E$hawser_index"
  unset "HAWSER_E$hawser_index"
  hawser_name=\${hawser_pair%%=*}
  case $hawser_name in
    '' | [0-9]* | *[!A-Za-z0-9_]*) set -- "$hawser_pair" "$@"; hawser_odd=1 ;;
    *) export "$hawser_pair" ;;
  esac
  hawser_index=$((hawser_index + 1))
done
unset hawser_count hawser_index hawser_pair hawser_name
if [ -n "$hawser_odd" ]; then unset hawser_odd; exec /usr/bin/env -- "$@"; fi
unset hawser_odd
exec "$@"
`
