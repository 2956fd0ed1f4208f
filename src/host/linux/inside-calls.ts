// How does one thread take on the rights and the place of a container? Linux keeps users, capabilities and namespaces for each
// thread; libc's own functions would change all threads of the process, so users and groups go through system calls.
import { closeSync, openSync, readFileSync, readlinkSync } from 'node:fs'
import { getSystemErrorName } from 'node:util'
import koffi from 'koffi'
import { HostError } from '../host-error.ts'
import type { ProcessIdentity, ProcessRights } from '../processes.ts'
import { parseStat } from './proc.ts'

const CLONE_FS = 0x200
const CLONE_NEWNS = 0x20000
const CLONE_NEWPID = 0x20000000
const PR_SET_DUMPABLE = 4
const PR_CAPBSET_DROP = 24
const PR_SET_NO_NEW_PRIVS = 38
const PR_CAP_AMBIENT = 47
const PR_CAP_AMBIENT_CLEAR_ALL = 4
const capabilityVersion = 0x20080522
const numbers =
  process.arch === 'arm64'
    ? { setresuid: 147, setresgid: 149, setgroups: 159 }
    : { setresuid: 117, setresgid: 119, setgroups: 116 }

/** By their numbers. */
const capabilityNames = [
  ...['chown', 'dac_override', 'dac_read_search', 'fowner', 'fsetid', 'kill', 'setgid', 'setuid', 'setpcap'],
  ...['linux_immutable', 'net_bind_service', 'net_broadcast', 'net_admin', 'net_raw', 'ipc_lock', 'ipc_owner'],
  ...['sys_module', 'sys_rawio', 'sys_chroot', 'sys_ptrace', 'sys_pacct', 'sys_admin', 'sys_boot', 'sys_nice'],
  ...['sys_resource', 'sys_time', 'sys_tty_config', 'mknod', 'lease', 'audit_write', 'audit_control', 'setfcap'],
  ...['mac_override', 'mac_admin', 'syslog', 'wake_alarm', 'block_suspend', 'audit_read', 'perfmon', 'bpf'],
  'checkpoint_restore',
]

const libc = koffi.load('libc.so.6')
const natives = {
  unshare: libc.func('unshare', 'int', ['int']),
  setns: libc.func('setns', 'int', ['int', 'int']),
  umask: libc.func('umask', 'unsigned int', ['unsigned int']),
  prctl: libc.func('prctl', 'int', ['int', 'unsigned long', 'unsigned long', 'unsigned long', 'unsigned long']),
  capget: libc.func('capget', 'int', ['void*', 'void*']),
  capset: libc.func('capset', 'int', ['void*', 'void*']),
  setIds: libc.func('syscall', 'long', ['long', 'unsigned int', 'unsigned int', 'unsigned int']),
  setGroups: libc.func('syscall', 'long', ['long', 'unsigned long', 'void*']),
}

/** What this thread starts from now on has these capabilities at most. There is no way back. */
export function limitThread({
  capabilities,
  noNewPrivileges,
}: Pick<ProcessRights, 'capabilities' | 'noNewPrivileges'>): void {
  check(natives.unshare(CLONE_FS) as number, 'unshare')
  natives.umask(0o022)
  // Between its fork and its program, a new process is a copy of us in the container's sight.
  prctl(PR_SET_DUMPABLE, 0)
  if (capabilities) {
    const unknown = capabilities.filter((name) => !capabilityNames.includes(name))
    if (unknown.length > 0) throw new HostError('EINVAL', `unknown capabilities: ${unknown.join(', ')}`)
    for (const number of dropped(capabilities)) prctl(PR_CAPBSET_DROP, number)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    clearInheritable()
  }
  if (noNewPrivileges === true) prctl(PR_SET_NO_NEW_PRIVS, 1)
}

/** Also those that are newer than our list, as far as this kernel has them. */
function dropped(kept: readonly string[]): readonly number[] {
  const last = Number(readFileSync('/proc/sys/kernel/cap_last_cap', 'utf8'))
  const all = Array.from({ length: last + 1 }, (_, number) => number)
  return all.filter((number) => !kept.includes(capabilityNames[number] ?? ''))
}

/** Header: version and pid (0: this thread). Then twice, for 32 capabilities each: effective, permitted, inheritable. */
function clearInheritable(): void {
  const [header, data] = [Buffer.alloc(8), Buffer.alloc(24)]
  header.writeUInt32LE(capabilityVersion, 0)
  check(natives.capget(header, data) as number, 'capget')
  data.writeUInt32LE(0, 8)
  data.writeUInt32LE(0, 20)
  check(natives.capset(header, data) as number, 'capset')
}

/**
 * Calls `work` as the container's user, in its mount namespace; what it starts has its process ids, too. A thread that cannot come
 * back must do nothing else: `lost` is called.
 */
export function asContainer<T>(process: ProcessIdentity, rights: ProcessRights, work: () => T, lost: () => void): T {
  const opened: number[] = []
  const open = (path: string) => {
    const descriptor = openSync(path, 'r')
    opened.push(descriptor)
    return descriptor
  }
  try {
    const own = { mounts: open('/proc/thread-self/ns/mnt'), pids: open('/proc/thread-self/ns/pid') }
    const theirs = { mounts: open(`/proc/${process.pid}/ns/mnt`), pids: open(`/proc/${process.pid}/ns/pid`) }
    // Only now is it certain that the pid meant this process when its files were opened.
    if (parseStat(readFileSync(`/proc/${process.pid}/stat`, 'utf8')).startTime !== process.startTime)
      throw new HostError('ESRCH', `process ${process.pid} is gone`)
    if (readlinkSync(`/proc/self/fd/${own.mounts}`) === readlinkSync(`/proc/self/fd/${theirs.mounts}`))
      throw new HostError('EINVAL', `process ${process.pid} has no mount namespace of its own`)
    try {
      check(natives.setns(theirs.pids, CLONE_NEWPID) as number, 'setns')
      check(natives.setns(theirs.mounts, CLONE_NEWNS) as number, 'setns')
      become(rights)
      return work()
    } finally {
      comeBack(own, lost)
    }
  } finally {
    opened.forEach(closeSync)
  }
}

/** The saved user stays root, so that this thread can come back; a new program does not inherit it. */
function become({ user = 0, group = 0, groups }: ProcessRights): void {
  const list = Buffer.alloc(Math.max(4, groups.length * 4))
  groups.forEach((one, index) => list.writeUInt32LE(one, index * 4))
  check(Number(natives.setGroups(numbers.setgroups, groups.length, list)), 'setgroups')
  check(Number(natives.setIds(numbers.setresgid, group, group, 0)), 'setresgid')
  check(Number(natives.setIds(numbers.setresuid, user, user, 0)), 'setresuid')
}

function comeBack(own: { readonly mounts: number; readonly pids: number }, lost: () => void): void {
  try {
    check(Number(natives.setIds(numbers.setresuid, 0, 0, 0)), 'setresuid')
    check(Number(natives.setIds(numbers.setresgid, 0, 0, 0)), 'setresgid')
    check(natives.setns(own.mounts, CLONE_NEWNS) as number, 'setns')
    check(natives.setns(own.pids, CLONE_NEWPID) as number, 'setns')
  } catch {
    lost()
  }
}

function prctl(option: number, argument: number): void {
  check(natives.prctl(option, argument, 0, 0, 0) as number, `prctl ${option}`)
}

function check(result: number, call: string): void {
  if (result >= 0) return
  const code = getSystemErrorName(-koffi.errno())
  throw new HostError(code, `${call}: ${code}`)
}
