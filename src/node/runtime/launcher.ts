// How does a process get its own view of the machine? Constant scripts, run with `sh -c <script> <name> <arguments…>`;
// nothing is ever pasted into their text. They need dash or any POSIX shell and util-linux (unshare, mount, setpriv).
//
// supervise  outlives the agent: takes the token of its start, starts the container in a session of its own, waits, writes its
//            exit code. A supervisor whose token is gone comes too late and starts nothing.
// setup      in the new mount namespace: an overlay shows the host's root with a private layer above, the node's own directories
//            are hidden, the old root goes away (pivot_root), the user changes. Only then does the agent attach the volumes, by
//            descriptor (host/linux/attach-calls.ts). Without its agent, setup gives up: nothing has begun until `pid` is written.
// enter      after the change of user: waits for the volumes, sets the container's environment and becomes the command. Commands
//            beside a running container begin with it (host/linux/inside-thread.ts).
//
// A volume may lie where our own tools or their libraries are looked for. So nobody with more rights than the container starts a
// program once volumes are attached: what is needed then runs already, uses what its shell has built in, or asks the supervisor,
// which has never left the host.
//
// A container has its own process ids unless its pod has hostPID. Setup stays as process 1 then: it passes SIGTERM on, collects
// orphans, and when it ends the kernel ends everybody else.

/**
 * Arguments: directory, token, whether it may be spoken to (1 or empty), hidden paths (colon-separated), then the command to
 * supervise. Only the supervisor has paths of the host in its arguments: those of setup are shown inside. Descriptor 3 leads to
 * the agent, 9 and 5 are the way from setup to the supervisor and back. Who may be spoken to reads from a named pipe; a keeper
 * holds that open until a line comes through `detach`.
 *
 * The start counts from the moment when the token is renamed to `begun`: an agent that restarts takes the token away before that,
 * and the container never runs. `pid` follows, always before "started". A setup that gave up has no `pid`, and so no exit code.
 */
export const superviseScript = `
set -u
dir=$1 token=$2
mv "$dir/$token" "$dir/begun-$token" 2>&3 || exit 1
mkfifo -m 600 "$dir/ask" "$dir/answer" 2>&3 || exit 1
# Opened both ways first, each end of a pipe can be opened alone without waiting for the other.
exec 7<>"$dir/ask" && exec 8<"$dir/ask" 9>"$dir/ask"
exec 7<>"$dir/answer" && exec 5<"$dir/answer" 6>"$dir/answer" 7>&-
input=/dev/null keeper=
if [ -n "$3" ]; then
  input=$dir/stdin
  mkfifo -m 600 "$input" "$dir/detach"
  { read -r line <"$dir/detach"; } <>"$input" >/dev/null 2>&1 3>&- 5<&- 6>&- 8<&- 9>&- &
  keeper=$!
fi
printf '%s\\n' "$4" >"$dir/hidden"
shift 4
cd "$dir" 2>&3 || exit 1
setsid "$@" <"$input" 2>&3 6>&- 8<&- &
pid=$!
cd /
exec 5<&- 9>&-
# Setup and the agent may die meanwhile.
trap '' PIPE
if read -r word <&8 && [ "$word" = begin ] && mv "$dir/begun-$token" "$dir/begun" 2>&3; then
  mv "$dir/setup-$token" "$dir/pid"
  echo begun >&6
  echo started >&3
fi 2>/dev/null
exec 3>&- 6>&- 8<&-
wait "$pid"
code=$?
if [ -n "$keeper" ]; then kill "$keeper" 2>/dev/null; fi
if [ ! -e "$dir/pid" ]; then exit 1; fi
# unshare of util-linux 2.38 answers something else when process 1 was killed. Process 1 writes its code, if it lives to do so.
if [ "$code" != 0 ] && [ -e "$dir/code" ] && [ ! -s "$dir/code" ]; then code=137; fi
printf '%s %s\\n' "$code" "$(date +%s%3N)" >"$dir/exit.new"
mv "$dir/exit.new" "$dir/exit"
`

/**
 * Starts in the container's directory, where the file `hidden` is. Arguments: token, flags, working directory, setpriv arguments
 * (space-separated, may be empty), enter script, then the command. Flags are words: `owndev` (a layer above the host's /dev), `basicdev`
 * (a /dev with the harmless devices only), `hostpid`, `hostsys` (the host's /sys as it is). Descriptor 3 is a
 * conversation with the agent: errors and "ready" go out, "go" comes back when the volumes are attached; then 9 asks the supervisor
 * to begin, and 5 answers.
 *
 * It first writes who it is to `setup-TOKEN`, so that the agent finds its namespace. That pid stays the same: it becomes the
 * command (exec), or process 1 above it.
 */
export const setupScript = `
set -eu
umask 022
trap '' PIPE
exec 4>&1 2>&3
dir=$PWD token=$1 flags=" $2 " workdir=$3 privileges=$4 enter=$5
shift 5
IFS= read -r hidden <hidden
has() { case $flags in *" $1 "*) ;; *) return 1 ;; esac; }
# The agent may be the last process that the kernel should end; a container is not.
echo 0 >/proc/self/oom_score_adj || :
start_time() { shift 19; echo "$1"; }
read -r stat </proc/self/stat
printf '%s %s\\n' "\${stat%% *}" "$(start_time \${stat##*) })" >"setup-$token.new"
mv "setup-$token.new" "setup-$token"
base=$dir/fs root=$dir/fs/root
mkdir -p fs
mount -t tmpfs -o mode=0755 tmpfs "$base"
mkdir "$base/upper" "$base/work" "$root"
mount -t overlay -o "nodev,lowerdir=/,upperdir=$base/upper,workdir=$base/work" overlay "$root"
mkdir -p "$root/.hawser"
if has hostpid; then
  mount --rbind --make-rslave /proc "$root/proc"
else
  mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
fi
if has hostsys; then
  mount --rbind --make-rslave /sys "$root/sys"
else
  mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$root/sys"
fi
if has basicdev; then
  mount -t tmpfs -o mode=0755,nosuid,size=64k tmpfs "$root/dev"
  cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx "$root/dev/"
  ln -s /proc/self/fd "$root/dev/fd"
  ln -s /proc/self/fd/0 "$root/dev/stdin"
  ln -s /proc/self/fd/1 "$root/dev/stdout"
  ln -s /proc/self/fd/2 "$root/dev/stderr"
  mkdir "$root/dev/pts" "$root/dev/shm"
  mount --rbind --make-rslave /dev/pts "$root/dev/pts"
  mount -t tmpfs -o mode=1777,nosuid,nodev,size=64m tmpfs "$root/dev/shm"
elif has owndev; then
  mkdir "$base/devupper" "$base/devwork"
  mount -t overlay -o "lowerdir=/dev,upperdir=$base/devupper,workdir=$base/devwork" overlay "$root/dev"
  for part in pts shm mqueue; do
    if [ -d "/dev/$part" ]; then mount --rbind --make-rslave "/dev/$part" "$root/dev/$part"; fi
  done
else
  mount --rbind --make-rslave /dev "$root/dev"
fi
# Programs may lie on filesystems of their own, which the overlay does not show.
while read -r part part part part place part; do
  case $place in
    /usr | /usr/local | /opt | /nix | /nix/store | /gnu/store)
      if [ -d "$root$place" ]; then
        mount --bind "$place" "$root$place"
        mount -o remount,bind,ro,nodev "$root$place"
      fi
      ;;
  esac
done </proc/self/mountinfo
IFS=:
for path in $hidden; do
  if [ -d "$root$path" ]; then
    mount -t tmpfs -o ro,mode=0755,size=4k tmpfs "$root$path"
  elif [ -e "$root$path" ]; then
    mount --bind /dev/null "$root$path"
  fi
done
unset IFS
# A link into /run leads nowhere where that is a filesystem of its own.
if [ -h /etc/resolv.conf ] && [ -r /etc/resolv.conf ]; then
  rm -f "$root/etc/resolv.conf"
  cat /etc/resolv.conf >"$root/etc/resolv.conf"
fi
# Where people mount things by hand, a container starts with nothing, as it would in an image.
if [ -d "$root/mnt" ]; then mount -t tmpfs -o mode=0755 tmpfs "$root/mnt"; fi
pivot_root "$root" "$root/.hawser"
umount -l /.hawser
rmdir /.hawser
# From here on no path leads to the host's root; nor does a link to /proc/self/cwd, once the container's directory is left.
if ! has hostpid; then exec 7>code; fi
cd /
set -- /bin/sh -c "$enter" enter "$workdir" "$@"
if [ -n "$privileges" ]; then set -- setpriv $privileges -- "$@"; fi
trap - PIPE
if has hostpid; then exec "$@"; fi
set +e
# A shell gives /dev/null to what runs beside it; 6 is the real input.
exec 6<&0
# It leads its own group before it says "ready", so no signal to it is lost.
trap 'kill -TERM "-$!" || kill -TERM "$!"' TERM
setsid "$@" <&6 6<&- 7>&- &
child=$!
exec </dev/null >/dev/null 2>/dev/null 3>&- 4>&- 5<&- 6<&- 9>&-
# A signal ends the waiting early; the command is gone when it can no longer be signalled.
while :; do
  wait "$child"
  code=$?
  if ! kill -0 "$child"; then
    # A signal may have ended the waiting just when the command ended: then its code is still to be had, once (127: it was told).
    wait "$child"
    again=$?
    if [ "$again" != 127 ]; then code=$again; fi
    echo "$code" >&7
    exit "$code"
  fi
done
`

/**
 * A new container does this before the enter script, as its own user already. If its agent died, nobody attaches the volumes; if the
 * supervisor does not answer, the token is gone.
 */
export const awaitVolumesScript = `
echo ready >&3
read -r hawser_word <&3 || exit 1
[ "$hawser_word" = go ] || exit 1
echo begin >&9
exec 3>&- 9>&-
read -r hawser_word <&5 || exit 1
unset hawser_word
exec 2>&4 4>&- 5<&-
`

/**
 * Arguments: the directory to go to as this user (empty: stay), then the command.
 * The container's variables come as HAWSER_E0, HAWSER_E1, … = "name=value", so that none of them touches the tools above.
 */
export const enterScript = `
if [ -n "$1" ]; then cd "$1" || exit 126; fi
shift
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
