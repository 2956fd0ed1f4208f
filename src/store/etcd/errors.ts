// What went wrong at etcd? gRPC's status and etcd's own words become one of a few kinds, each with a sentence that names
// the servers and what to do. etcd gives different failures the same status, so its words are read here and nowhere else.
import { status } from '@grpc/grpc-js'

export type EtcdFailure =
  /** Nobody answers, or the connection broke. */
  | 'unreachable'
  /** A member answers, but no majority of the members can be reached. */
  | 'noQuorum'
  /** The certificate of etcd or ours is not accepted. */
  | 'certificate'
  /** Something answers that is not etcd, or not the etcd of before. */
  | 'notOurEtcd'
  | 'authRefused'
  /** The token has ended; a new one helps. */
  | 'tokenEnded'
  /** The quota is used up: no writes until somebody makes room. */
  | 'noSpace'
  | 'tooLarge'
  | 'compacted'
  | 'leaseGone'
  | 'failed'

export class EtcdError extends Error {
  override readonly name = 'EtcdError'
  readonly failure: EtcdFailure

  constructor(failure: EtcdFailure, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.failure = failure
  }
}

export function isEtcdFailure(error: unknown, failure: EtcdFailure): error is EtcdError {
  return error instanceof EtcdError && error.failure === failure
}

interface Answer {
  readonly code: number
  readonly details: string
}

/** etcd's words for what the status alone does not tell. */
const words: readonly (readonly [RegExp, EtcdFailure])[] = [
  [/database space exceeded/, 'noSpace'],
  [/required revision has been compacted/, 'compacted'],
  [/invalid auth token|revision of auth store is old|revision in header is old/, 'tokenEnded'],
  [/user name is empty|invalid user ID or password|permission denied|user name not found/, 'authRefused'],
  [/authentication is not enabled/, 'authRefused'],
  [/no leader|request timed out|not capable|leader changed|too many requests/, 'noQuorum'],
  [/request is too large|larger than max/, 'tooLarge'],
  [/requested lease not found/, 'leaseGone'],
  [/cluster ID mismatch/, 'notOurEtcd'],
  [/certificate|self[- ]signed|ERR_TLS|SSL alert|bad certificate|unable to verify/i, 'certificate'],
  [/wrong version number|Protocol error|ERR_HTTP2|EPROTO/i, 'notOurEtcd'],
]

export function failureOf({ code, details }: Answer): EtcdFailure {
  const found = words.find(([pattern]) => pattern.test(details))
  if (found !== undefined) return found[1]
  if (code === status.UNAVAILABLE || code === status.DEADLINE_EXCEEDED || code === status.CANCELLED)
    return 'unreachable'
  if (code === status.UNIMPLEMENTED) return 'notOurEtcd'
  if (code === status.UNAUTHENTICATED) return 'tokenEnded'
  if (code === status.PERMISSION_DENIED) return 'authRefused'
  return 'failed'
}

/** After these nobody knows whether the request took effect; another member may be able to answer. */
export function mayTryElsewhere(failure: EtcdFailure): boolean {
  return failure === 'unreachable' || failure === 'noQuorum'
}

/** What happened and what to do, for the log, `hawser up` and clients of the API. */
export function sentence(failure: EtcdFailure, where: string, details: string): string {
  const said = details === '' ? '' : ` (${details})`
  switch (failure) {
    case 'unreachable':
      return `etcd at ${where} does not answer${said}: start it, or correct --etcd-servers`
    case 'noQuorum':
      return `etcd at ${where} has no quorum${said}: start the missing members`
    case 'certificate':
      return `etcd at ${where}: a certificate is not accepted${said}: renew it, or correct --etcd-cafile, --etcd-certfile and --etcd-keyfile`
    case 'notOurEtcd':
      return `${where} does not answer as the etcd that is meant${said}: correct --etcd-servers (http or https, the client port)`
    case 'authRefused':
    case 'tokenEnded':
      return `etcd at ${where} refuses us${said}: correct --etcd-user and --etcd-password-file, and grant the user's role the keys of the prefix`
    case 'noSpace':
      return `etcd at ${where} is full${said}: reads go on, writes wait until you compact and defragment it and clear the alarm (etcdctl alarm disarm)`
    case 'tooLarge':
      return `etcd at ${where} refuses the object${said}: it is larger than etcd's --max-request-bytes`
    case 'compacted':
      return `etcd at ${where} no longer has that revision${said}`
    case 'leaseGone':
      return `etcd at ${where} has ended our lease${said}`
    case 'failed':
      return `etcd at ${where} failed${said}`
    default:
      return failure satisfies never
  }
}
