// Where is etcd, and who are we there? The flags of `--store etcd`, checked before anything is touched.
import { resolve } from 'node:path'
import type { EtcdConfig } from '../installation/config.ts'
import { UsageError } from '../installation/config.ts'

export interface EtcdFlags {
  readonly etcdServers?: string
  readonly etcdPrefix?: string
  readonly etcdCafile?: string
  readonly etcdCertfile?: string
  readonly etcdKeyfile?: string
  readonly etcdUser?: string
  readonly etcdPasswordFile?: string
  readonly etcdAdopt: boolean
}

/** Of a server, which may stand by. */
export interface EtcdServerFlags extends EtcdFlags {
  readonly standby: boolean
  readonly etcdLeaseSeconds?: number
}

const text = (placeholder: string, brief: string) =>
  ({ kind: 'parsed', parse: String, optional: true, placeholder, brief }) as const

/** Everything but where etcd is. */
export const etcdAccessFlags = {
  etcdPrefix: text('PREFIX', 'Where the objects lie in etcd (default: /registry, as kube-apiserver has it)'),
  etcdCafile: text('FILE', 'Authority of the certificates of etcd (PEM)'),
  etcdCertfile: text('FILE', 'Our certificate for etcd (PEM)'),
  etcdKeyfile: text('FILE', 'Key of our certificate for etcd (PEM)'),
  etcdUser: text('NAME', 'User of etcd; its password is read from --etcd-password-file'),
  etcdPasswordFile: text('FILE', 'File with the password of the etcd user'),
} as const

export const etcdFlags = {
  etcdServers: text('URL,URL', 'Members of etcd, for --store etcd: https://10.0.0.1:2379,https://10.0.0.2:2379'),
  ...etcdAccessFlags,
  etcdAdopt: {
    kind: 'boolean',
    default: false,
    brief: 'Take over objects that another program (a stopped kube-apiserver) keeps below the prefix',
  },
  standby: {
    kind: 'boolean',
    default: false,
    brief: 'With --store etcd: while another server uses the objects, wait for its end and take its place',
  },
  etcdLeaseSeconds: {
    kind: 'parsed',
    parse: Number,
    optional: true,
    placeholder: 'N',
    brief: 'A server that cannot reach etcd for so long loses its place (default: 60; with --standby 15)',
  },
} as const

const defaultPrefix = '/registry'
const example = '--store etcd --etcd-servers https://10.0.0.1:2379'

/** Undefined for other stores, which take none of these flags. */
export function etcdFrom(store: string, flags: EtcdServerFlags): EtcdConfig | undefined {
  const { etcdServers } = flags
  if (store !== 'etcd') {
    if (etcdServers !== undefined) throw new UsageError('--etcd-servers is of use with --store etcd only', example)
    if (flags.standby) throw new UsageError('--standby needs objects that several servers reach: etcd', example)
    return undefined
  }
  if (etcdServers === undefined) throw new UsageError('--store etcd needs to know where etcd is', example)
  return { ...etcdAt(etcdServers, flags, '--etcd-servers'), ...leaseFrom(flags) }
}

/** `what` names the word on the command line that says where etcd is. */
export function etcdAt(urls: string, flags: EtcdFlags, what: string): EtcdConfig {
  const { etcdAdopt, etcdPrefix = defaultPrefix, ...others } = flags
  const servers = urls.split(',').map((url) => parseServer(url, what))
  if (!/^(\/[\w.-]+)+$/.test(etcdPrefix)) {
    throw new UsageError(
      `--etcd-prefix takes a path without a slash at its end, not "${etcdPrefix}"`,
      '--etcd-prefix /registry',
    )
  }
  if ((others.etcdCertfile === undefined) !== (others.etcdKeyfile === undefined)) {
    throw new UsageError('--etcd-certfile and --etcd-keyfile belong together', 'name both')
  }
  if (others.etcdPasswordFile !== undefined && others.etcdUser === undefined) {
    throw new UsageError('--etcd-password-file needs the name of the user', '--etcd-user NAME')
  }
  return {
    servers,
    prefix: etcdPrefix,
    adopt: etcdAdopt,
    ...(others.etcdCafile === undefined ? {} : { authorityFile: resolve(others.etcdCafile) }),
    ...(others.etcdCertfile === undefined ? {} : { certificateFile: resolve(others.etcdCertfile) }),
    ...(others.etcdKeyfile === undefined ? {} : { keyFile: resolve(others.etcdKeyfile) }),
    ...(others.etcdUser === undefined ? {} : { user: others.etcdUser }),
    ...(others.etcdPasswordFile === undefined ? {} : { passwordFile: resolve(others.etcdPasswordFile) }),
  }
}

function leaseFrom({ standby, etcdLeaseSeconds }: EtcdServerFlags): Pick<EtcdConfig, 'standby' | 'leaseSeconds'> {
  const seconds = etcdLeaseSeconds ?? (standby ? standbyLeaseSeconds : undefined)
  if (seconds !== undefined && !(Number.isSafeInteger(seconds) && seconds >= 5 && seconds <= 600))
    throw new UsageError('--etcd-lease-seconds takes a whole number from 5 to 600', '--etcd-lease-seconds 15')
  return { standby, ...(seconds === undefined ? {} : { leaseSeconds: seconds }) }
}

/** As long as Kubernetes waits for a controller manager that is silent. */
const standbyLeaseSeconds = 15

function parseServer(url: string, what: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const isBare = parsed?.pathname === '/' && parsed.search === '' && parsed.username === '' && parsed.password === ''
  if (parsed && isBare && /^https?:$/.test(parsed.protocol)) return `${parsed.protocol}//${parsed.host}`
  throw new UsageError(`${what} takes addresses like https://10.0.0.1:2379, not "${url}"`, example)
}
