// Who changed what? One line per mutating request, without bodies: what is secret never enters it.
import type { Log } from '../telemetry/log.ts'
import type { HttpCall } from './http-verbs.ts'
import type { Route } from './router.ts'

export interface AuditRecord {
  readonly user: string
  readonly verb: string
  readonly resource: string
  readonly namespace?: string
  readonly name?: string
  readonly subresource?: string
  readonly code: number
  readonly ms: number
  readonly dryRun?: true
}

const mutating: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

export function isMutating(method: string): boolean {
  return mutating.has(method)
}

export function audit(log: Log, call: HttpCall, where: Route, code: number, ms: number): void {
  log.info('api request', { audit: auditRecord(call, where, code, ms) })
}

function auditRecord(call: HttpCall, where: Route, code: number, ms: number): AuditRecord {
  const base = { user: call.user.name, verb: call.method.toLowerCase(), code, ms: Math.round(ms) }
  const dryRun = call.query.has('dryRun') ? { dryRun: true as const } : {}
  if (where.kind !== 'resource') {
    return { ...base, resource: where.kind === 'review' ? where.review : where.kind, ...dryRun }
  }
  const { info, namespace, name, subresource } = where
  return {
    ...base,
    resource: info.group === '' ? info.plural : `${info.plural}.${info.group}`,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
    ...dryRun,
  }
}
