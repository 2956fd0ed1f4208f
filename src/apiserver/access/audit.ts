// Who did what, from where, and what became of it? One line per change, per read of a secret or through a node's proxy, per refusal
// and per stream into a pod; without bodies: what is secret never enters it.
import type { AuditRecord } from '../../telemetry/audit.ts'
import type { HttpCall } from '../request/http-verbs.ts'
import type { Route } from '../request/router.ts'
import { isStream } from '../request/router.ts'

const mutating: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

export const isRefusal = (code: number) => code === 401 || code === 403

/** Whatever becomes of it. */
export function mustBeAudited(method: string, where: Route): boolean {
  if (mutating.has(method) || isStream(where)) return true
  if (where.kind !== 'resource') return false
  const { info, subresource } = where
  return (
    info.access.confidential === true || info.subresources.some((each) => each.name === subresource && each.takesPath)
  )
}

/** Who asked, and what became of it. */
export interface Outcome {
  readonly user: string
  readonly impersonatedUser: string | undefined
  readonly source: string | undefined
  readonly code: number
  readonly ms: number
  /** What a creation was called in the end. */
  readonly made: string | undefined
}

export function auditRecord(call: HttpCall, where: Route, outcome: Outcome): AuditRecord {
  const { user, impersonatedUser, source, code, made } = outcome
  const base = {
    user,
    ...(impersonatedUser === undefined ? {} : { impersonatedUser }),
    ...(source === undefined ? {} : { source }),
    verb: call.method.toLowerCase(),
    code,
    ms: Math.round(outcome.ms),
  }
  const dryRun = call.query.has('dryRun') ? { dryRun: true as const } : {}
  if (where.kind === 'review') return { ...base, resource: where.review, ...dryRun }
  if (where.kind === 'document') return { ...base, resource: where.kind, path: where.path, ...dryRun }
  if (where.kind === 'none') return { ...base, resource: where.kind, ...dryRun }
  const { info, namespace, name = made, subresource } = where
  return {
    ...base,
    resource: info.group === '' ? info.plural : `${info.plural}.${info.group}`,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
    ...dryRun,
  }
}
