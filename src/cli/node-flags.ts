// Which flags do `up` and `agent` share? Everything about a node and its drivers, told once.
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { mayMount, readMachine } from './doctor/machine.ts'
import type { HawserConfig, NodeConfig } from '../installation/config.ts'
import type { AuditFailure } from '../telemetry/audit.ts'
import { UsageError } from '../installation/config.ts'
import { nameOfRoot } from '../installation/node-identity.ts'
import { parseImageEntrypoints } from './image-entrypoints.ts'

export interface NodeFlags {
  readonly nodeName?: string
  readonly rootDir?: string
  readonly csiDriver?: readonly string[]
  readonly leaveToSidecars?: readonly string[]
  readonly imageRoot?: readonly string[]
  readonly imageEntrypoint?: readonly string[]
  readonly volumePluginDir?: string
  readonly runtime: 'process' | 'none'
  readonly manifests?: string
  readonly manifestUrl?: string
  readonly auditFailure: AuditFailure
  readonly logLevel: 'error' | 'warn' | 'info' | 'debug'
}

const text = { kind: 'parsed', parse: String, optional: true } as const

export const nodeFlags = {
  nodeName: {
    ...text,
    placeholder: 'NAME',
    brief: 'Name of this node (default: the name it had before; on the first start the host name)',
  },
  rootDir: {
    ...text,
    placeholder: 'DIR',
    brief: 'Root directory of the node, with the layout of a kubelet (default: <data-dir>/node)',
  },
  csiDriver: {
    ...text,
    variadic: true,
    placeholder: 'NAME=SOCKET',
    brief: 'Use the CSI driver behind this socket; for a driver that does not register itself',
  },
  leaveToSidecars: {
    ...text,
    variadic: true,
    placeholder: 'DRIVER',
    brief: 'Do not provision, attach, resize or snapshot for this driver: its own sidecars do',
  },
  imageRoot: {
    ...text,
    variadic: true,
    placeholder: 'REFERENCE=DIR',
    brief: 'Directory with an unpacked image, for image volumes',
  },
  imageEntrypoint: {
    ...text,
    variadic: true,
    placeholder: 'IMAGE=PATH',
    brief: 'Program that an image stands for, for containers without a command: IMAGE="PATH DEFAULT-ARGS"',
  },
  volumePluginDir: {
    ...text,
    placeholder: 'DIR',
    brief: 'Directory of FlexVolume drivers (default: that of a kubelet)',
  },
  runtime: {
    kind: 'enum',
    values: ['process', 'none'],
    default: 'process',
    brief: 'process: run pods as processes; none: only mount their volumes',
  },
  manifests: { ...text, placeholder: 'DIR', brief: 'Directory of static pod manifests' },
  manifestUrl: { ...text, placeholder: 'URL', brief: 'URL of static pod manifests' },
  auditFailure: {
    kind: 'enum',
    values: ['refuse', 'continue'],
    default: 'refuse',
    brief: 'What to do with a request when the audit log cannot be written',
  },
  logLevel: {
    kind: 'enum',
    values: ['error', 'warn', 'info', 'debug'],
    default: 'warn',
    brief: 'Log level (the log goes to stderr)',
  },
} as const

/** For who runs the built-in driver. */
export const overcommitFlag = {
  kind: 'parsed',
  parse: ratioFrom,
  optional: true,
  placeholder: 'RATIO',
  brief:
    'How much thin volumes may promise together: RATIO times the size of the disk (default: 2; with 1 all of them fit)',
} as const

function ratioFrom(given: string): number {
  const ratio = Number(given)
  if (!(ratio >= 0.01 && ratio <= 1000))
    throw new SyntaxError(`"${given}" is not a ratio from 0.01 to 1000; examples: 1, 1.5, 10`)
  return ratio
}

/** Told before anything is started: the kernel's own word (EPERM) helps nobody. */
export function requireMountRights(env: Readonly<Partial<Record<string, string>>>, hint: string): void {
  if (!mayMount(readMachine(env))) throw new UsageError('a node must mount filesystems, and this user may not', hint)
}

/** This node, its name checked. Without a flag it keeps the name that it had: the one it joined with, or that of its root. */
export function nodeFrom(flags: NodeFlags, dataDirectory: string, joinedAs?: string): NodeConfig {
  const root = resolve(flags.rootDir ?? join(dataDirectory, 'node'))
  const name = flags.nodeName ?? joinedAs ?? nameOfRoot(root) ?? hostname().toLowerCase()
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name))
    throw new UsageError(`"${name}" is not a valid node name`, 'choose one with --node-name')
  return { name, root }
}

export function driversFrom(
  flags: NodeFlags,
): Pick<
  HawserConfig,
  | 'csiDrivers'
  | 'leaveToSidecars'
  | 'imageRoots'
  | 'imageEntrypoints'
  | 'volumePluginDirectory'
  | 'runtime'
  | 'manifests'
  | 'manifestUrl'
  | 'auditFailure'
> {
  return {
    csiDrivers: (flags.csiDriver ?? []).map(parseDriver),
    leaveToSidecars: flags.leaveToSidecars ?? [],
    imageRoots: (flags.imageRoot ?? []).map(parseImageRoot),
    imageEntrypoints: parseImageEntrypoints(flags.imageEntrypoint ?? []),
    runtime: flags.runtime,
    auditFailure: flags.auditFailure,
    ...(flags.volumePluginDir === undefined ? {} : { volumePluginDirectory: resolve(flags.volumePluginDir) }),
    ...(flags.manifests === undefined ? {} : { manifests: resolve(flags.manifests) }),
    ...(flags.manifestUrl === undefined ? {} : { manifestUrl: flags.manifestUrl }),
  }
}

/** At the last "=": a reference may hold one, in a digest or a tag, and a directory seldom does. */
function parseImageRoot(given: string): { reference: string; directory: string } {
  const cut = given.lastIndexOf('=')
  if (cut <= 0 || cut === given.length - 1)
    throw new UsageError(
      `--image-root takes REFERENCE=DIR, not "${given}"`,
      '--image-root models/small:1=/srv/images/small',
    )
  return { reference: given.slice(0, cut), directory: resolve(given.slice(cut + 1)) }
}

function parseDriver(given: string): { name: string; socket: string } {
  const cut = given.indexOf('=')
  if (cut <= 0)
    throw new UsageError(
      `--csi-driver takes NAME=SOCKET, not "${given}"`,
      '--csi-driver hostpath.csi.k8s.io=/run/csi.sock',
    )
  return { name: given.slice(0, cut), socket: resolve(given.slice(cut + 1)) }
}
