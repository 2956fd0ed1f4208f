// What can be chosen when Hawser starts? One readonly record, resolved once; nothing reads the environment later.
import type { AuditFailure } from '../telemetry/audit.ts'

import type { Advertised } from './addresses.ts'

type StoreChoice = 'memory' | 'embedded' | 'etcd'

export interface HawserConfig {
  /** Everything durable lies here: store, keys, tokens, kubeconfig, the node's root. */
  readonly dataDirectory: string
  readonly listen: ListenAddress
  /** Listen there, too. */
  readonly alsoListen?: readonly ListenAddress[]
  /** What other machines reach the server by; the first is what they are told. Absent: what the machine has. */
  readonly advertise?: readonly Advertised[]
  readonly store: StoreChoice
  /** Where etcd is, for the store of that name. */
  readonly etcd?: EtcdConfig
  /** Go on with a store that is older than the one last used in the data directory. */
  readonly acceptStore?: boolean
  /** API and controllers only: no node agent, no built-in driver, no default objects, no placement. */
  readonly bare: boolean
  readonly nodes: readonly NodeConfig[]
  /** Drivers that no registrar announces. */
  readonly csiDrivers: readonly { readonly name: string; readonly socket: string }[]
  /** Drivers whose sidecar jobs are left to upstream's sidecars. */
  readonly leaveToSidecars: readonly string[]
  /** Where images lie unpacked, for image volumes; nothing is pulled. */
  readonly imageRoots?: readonly { readonly reference: string; readonly directory: string }[]
  /** Programs that images stand for, for containers without a command. */
  readonly imageEntrypoints?: readonly ImageEntrypoint[]
  /** Where FlexVolume drivers lie; without it, where a kubelet looks for them. */
  readonly volumePluginDirectory?: string
  /** How many bytes of thin volumes the built-in driver promises for each byte of its disk. */
  readonly overcommit?: number
  readonly manifests?: string
  readonly manifestUrl?: string
  readonly runtime: 'process' | 'none'
  readonly forceDetachOnTimeout: boolean
  /** Leave pods alone that set spec.nodeName: their claims are not bound. */
  readonly strictScheduling?: boolean
  /** As Kubernetes: every pod gets the token of its account, which must exist. */
  readonly mountTokens?: boolean
  /** When the audit log cannot be written: refuse what belongs into it (default), or go on without. */
  readonly auditFailure?: AuditFailure
}

export interface EtcdConfig {
  /** `http://host:2379` or `https://…`. */
  readonly servers: readonly string[]
  /** Objects lie below it, as kube-apiserver keeps them. */
  readonly prefix: string
  readonly authorityFile?: string
  readonly certificateFile?: string
  readonly keyFile?: string
  readonly user?: string
  readonly passwordFile?: string
  /** Take over objects that another program wrote below the prefix. */
  readonly adopt: boolean
  /** Wait for the end of the server that uses the objects, and take its place. */
  readonly standby?: boolean
  /** A server that could not renew its right to write for so long has lost it. */
  readonly leaseSeconds?: number
}

/** As Kubernetes reads an image: its entrypoint, and the words after it that a container's args replace. */
export interface ImageEntrypoint {
  /** A reference; without a tag or digest it stands for all of them. */
  readonly image: string
  readonly program: string
  readonly defaultArgs: readonly string[]
}

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** Where the API server writes who did what, below the data directory. */
export const auditFileName = 'audit.log'
/** The same for a node's own server: several may share a data directory with the API server. */
export const nodeAuditFileName = 'node-audit.log'

export interface NodeConfig {
  readonly name: string
  /** Laid out as a kubelet's root directory. */
  readonly root: string
}

const defaultListen = { host: '127.0.0.1', port: 7443 } as const
export const builtInDriver = 'local.hawser.dev'
export const defaultClassName = 'hawser-local'

/** A mistake of the user, told in one sentence without a stack trace. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  /** The command or change that helps, if there is one. */
  readonly hint: string | undefined
  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}

/** `host:port`, `:port`, `port` or `host`. */
export function parseListen(text: string): ListenAddress {
  const match = /^(?:\[([^\]]+)\]|([^:]*))?(?::?(\d+))?$/.exec(/^\d+$/.test(text) ? `:${text}` : text)
  const port = match?.[3] === undefined ? defaultListen.port : Number(match[3])
  if (!match || port > 65_535)
    throw new UsageError(`--listen takes HOST:PORT, not "${text}"`, '--listen 127.0.0.1:7443')
  return { host: match[1] ?? (match[2] || defaultListen.host), port }
}
