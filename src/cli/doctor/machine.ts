// Is this machine fit for volumes? Kernel, rights, tools, loop devices, FUSE: facts are read once, then judged purely.
import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { release } from 'node:os'
import { join } from 'node:path'
import type { Finding } from './finding.ts'
import { ok, problem, warn } from './finding.ts'

export interface MachineFacts {
  readonly platform: string
  readonly kernel: string
  readonly uid: number
  /** The effective capabilities, as a bit set. */
  readonly capabilities: bigint
  /** Tools that were found on the PATH. */
  readonly tools: ReadonlySet<string>
  readonly loopControl: boolean
  readonly fuse: boolean
}

interface Tool {
  readonly name: string
  readonly package: string
  readonly need: 'always' | 'some'
  readonly for: string
}

const tools: readonly Tool[] = [
  { name: 'mount', package: 'mount', need: 'always', for: 'filesystems with a helper' },
  { name: 'mkfs.ext4', package: 'e2fsprogs', need: 'always', for: 'new ext4 volumes' },
  { name: 'e2fsck', package: 'e2fsprogs', need: 'always', for: 'checking ext4' },
  { name: 'resize2fs', package: 'e2fsprogs', need: 'always', for: 'growing ext4' },
  { name: 'dumpe2fs', package: 'e2fsprogs', need: 'always', for: 'reading ext4 sizes' },
  { name: 'blkid', package: 'util-linux', need: 'always', for: 'recognising filesystems' },
  { name: 'fsck', package: 'util-linux', need: 'always', for: 'checking before mounting' },
  { name: 'fsfreeze', package: 'util-linux', need: 'always', for: 'consistent snapshots' },
  { name: 'mkfs.xfs', package: 'xfsprogs', need: 'some', for: 'xfs volumes' },
  { name: 'xfs_growfs', package: 'xfsprogs', need: 'some', for: 'growing xfs' },
  { name: 'mkfs.btrfs', package: 'btrfs-progs', need: 'some', for: 'btrfs volumes' },
  { name: 'btrfs', package: 'btrfs-progs', need: 'some', for: 'growing btrfs' },
  { name: 'mount.nfs', package: 'nfs-common', need: 'some', for: 'nfs volumes' },
  { name: 'iscsiadm', package: 'open-iscsi', need: 'some', for: 'iscsi volumes' },
]

/** The one capability that can be done without. */
const resource = 24n

const capabilities: readonly (readonly [bit: bigint, name: string, need: string])[] = [
  [21n, 'CAP_SYS_ADMIN', 'mounting and loop devices'],
  [resource, 'CAP_SYS_RESOURCE', 'growing ext4 while it is mounted; without it ext4 grows at the next mount'],
  [27n, 'CAP_MKNOD', 'block volumes'],
  [0n, 'CAP_CHOWN', 'fsGroup'],
  [1n, 'CAP_DAC_OVERRIDE', "other users' files"],
]

export function readMachine(env: Readonly<Partial<Record<string, string>>>): MachineFacts {
  const status = readOr('/proc/self/status', '')
  const path = `${env['PATH'] ?? ''}:/usr/sbin:/sbin:/usr/bin:/bin`.split(':').filter((part) => part !== '')
  return {
    platform: process.platform,
    kernel: release(),
    uid: process.getuid?.() ?? -1,
    capabilities: BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0'}`),
    tools: new Set(tools.filter(({ name }) => path.some((part) => canRun(join(part, name)))).map(({ name }) => name)),
    loopControl: existsSync('/dev/loop-control'),
    fuse: existsSync('/dev/fuse'),
  }
}

/** CAP_SYS_ADMIN in our own user namespace; the kernel has the last word. */
export const mayMount = ({ capabilities: held }: MachineFacts): boolean => ((held >> 21n) & 1n) === 1n

export function judgeMachine(facts: MachineFacts): Finding[] {
  if (facts.platform !== 'linux') return [problem('system', `volumes need Linux, this is ${facts.platform}`)]
  return [...judgeKernel(facts), ...judgeRights(facts), ...judgeTools(facts), ...judgeDevices(facts)]
}

/** openat2 with RESOLVE_IN_ROOT (5.6) and statx mount attributes (5.8) are used for safety, not for speed. */
const oldestKernel = [5, 8] as const

function judgeKernel({ kernel }: MachineFacts): Finding[] {
  const [major = 0, minor = 0] = kernel.split('.').map(Number)
  const old = major < oldestKernel[0] || (major === oldestKernel[0] && minor < oldestKernel[1])
  if (old) return [problem('kernel', `${kernel} is older than ${oldestKernel.join('.')}`, 'use a newer kernel')]
  return [ok('kernel', `Linux ${kernel}`)]
}

function judgeRights({ uid, capabilities: held }: MachineFacts): Finding[] {
  const missing = capabilities.filter(([bit]) => ((held >> bit) & 1n) === 0n)
  if (missing.length === 0) return [ok('rights', `user ${uid} has the capabilities that mounts need`)]
  if (uid !== 0)
    return [
      problem(
        'rights',
        `user ${uid} cannot mount (no ${missing.map(([, name]) => name).join(', ')})`,
        'sudo hawser up',
      ),
    ]
  return missing.map(([bit, name, need]) =>
    (bit === resource ? warn : problem)(
      'rights',
      `root without ${name}: needed for ${need}`,
      `run with that capability (docker run --cap-add ${name.slice(4)})`,
    ),
  )
}

function judgeTools({ tools: found }: MachineFacts): Finding[] {
  const missing = tools.filter(({ name }) => !found.has(name))
  const present = tools.filter(({ name }) => found.has(name)).map(({ name }) => name)
  return [
    ok('tools', present.join(' ') || 'none'),
    ...missing.map((tool) =>
      (tool.need === 'always' ? problem : warn)(
        'tools',
        `${tool.name} is missing: ${tool.for}`,
        `apt-get install ${tool.package}`,
      ),
    ),
  ]
}

function judgeDevices({ loopControl, fuse }: MachineFacts): Finding[] {
  return [
    loopControl
      ? ok('loop devices', '/dev/loop-control is there')
      : problem(
          'loop devices',
          '/dev/loop-control is missing: the built-in driver needs loop devices',
          'modprobe loop',
        ),
    fuse
      ? ok('fuse', '/dev/fuse is there')
      : warn('fuse', '/dev/fuse is missing: FUSE drivers cannot work', 'modprobe fuse'),
  ]
}

function canRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return otherwise
  }
}
