// What may a container's processes do beyond their files? A securityContext turned into Linux capabilities. Pure.
import type { Container } from '../../api/generated/types.ts'

export interface Privileges {
  /** Lower case, without `cap_`. Absent: all that this machine has (privileged). */
  readonly capabilities?: readonly string[]
  /** Programs with the setuid bit give nothing. */
  readonly noNewPrivileges?: boolean
}

/**
 * As container engines have it, but for `mknod`: engines keep a container from using the devices it makes by a device cgroup, and we
 * have none.
 */
const usual = [
  ...['audit_write', 'chown', 'dac_override', 'fowner', 'fsetid', 'kill', 'net_bind_service', 'net_raw', 'setfcap'],
  ...['setgid', 'setpcap', 'setuid', 'sys_chroot'],
]

const known: ReadonlySet<string> = new Set([
  ...usual,
  ...['audit_control', 'audit_read', 'block_suspend', 'bpf', 'checkpoint_restore', 'dac_read_search', 'ipc_lock'],
  ...['ipc_owner', 'lease', 'linux_immutable', 'mac_admin', 'mac_override', 'mknod', 'net_admin', 'net_broadcast'],
  ...['perfmon', 'sys_admin', 'sys_boot', 'sys_module', 'sys_nice', 'sys_pacct', 'sys_ptrace', 'sys_rawio'],
  ...['sys_resource', 'sys_time', 'sys_tty_config', 'syslog', 'wake_alarm'],
])

export function privilegesFor({ name, securityContext }: Container): Privileges {
  const { privileged, allowPrivilegeEscalation, capabilities } = securityContext ?? {}
  if (privileged === true) return {}
  const read = (words: readonly string[] | undefined) => (words ?? []).map((word) => capabilityName(name, word))
  const [add, drop] = [read(capabilities?.add), read(capabilities?.drop)]
  const kept = drop.includes('all') ? [] : usual.filter((one) => !drop.includes(one))
  const all = add.includes('all') ? [...known].filter((one) => !drop.includes(one)) : [...kept, ...add]
  return {
    capabilities: [...new Set(all)].sort(),
    ...(allowPrivilegeEscalation === false ? { noNewPrivileges: true } : {}),
  }
}

function capabilityName(container: string, word: string): string {
  const name = word.toLowerCase().replace(/^cap_/, '')
  if (name === 'all' || known.has(name)) return name
  throw new Error(`container ${container}: unknown capability ${word}`)
}
