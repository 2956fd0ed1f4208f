// Who changed what? One line per mutating request, without bodies: what is secret never enters it.
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

/** Where the records go. */
export type Audit = (record: AuditRecord) => void

/** `made`: what a creation was called in the end. */
export function auditRecord(
  call: HttpCall,
  where: Route,
  code: number,
  ms: number,
  made: string | undefined,
): AuditRecord {
  const base = { user: call.user.name, verb: call.method.toLowerCase(), code, ms: Math.round(ms) }
  const dryRun = call.query.has('dryRun') ? { dryRun: true as const } : {}
  if (where.kind !== 'resource') {
    return { ...base, resource: where.kind === 'review' ? where.review : where.kind, ...dryRun }
  }
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
