// Who did what? Reads the audit files of a data directory, oldest line first, and keeps the lines that are asked for.
import { createReadStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { AuditRecord } from '../telemetry/audit.ts'
import { auditFileName, nodeAuditFileName } from './config.ts'

export interface AuditLine extends AuditRecord {
  readonly time: string
}

export interface AuditFilter {
  readonly user?: string | undefined
  readonly source?: string | undefined
  /** The plural of a kind, with its group or without. */
  readonly resource?: string | undefined
  /** `NAME` or `NAMESPACE/NAME`. */
  readonly name?: string | undefined
  readonly verb?: string | undefined
  /** A code, or `ok`, `refused` (401 and 403) or `failed` (400 and above). */
  readonly outcome?: string | undefined
  /** Milliseconds since 1970. */
  readonly since?: number | undefined
}

/** As many rotated files are looked for. */
const mostFiles = 100

export async function* searchAudit(directory: string, filter: AuditFilter): AsyncGenerator<AuditLine, void, undefined> {
  for (const name of [auditFileName, nodeAuditFileName]) {
    for (const path of filesOf(join(directory, name))) {
      for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
        const line = parseLine(text)
        if (line !== undefined && matches(line, filter)) yield line
      }
    }
  }
}

export function hasAudit(directory: string): boolean {
  return [auditFileName, nodeAuditFileName].some((name) => existsSync(join(directory, name)))
}

/** The oldest first. */
function filesOf(path: string): string[] {
  const rotated = Array.from({ length: mostFiles }, (_, index) => `${path}.${mostFiles - index}`)
  return [...rotated, path].filter((each) => existsSync(each))
}

/** A server that was killed may have left half a line. */
function parseLine(text: string): AuditLine | undefined {
  try {
    const line = JSON.parse(text) as Partial<AuditLine> | null
    const whole = typeof line?.time === 'string' && typeof line.user === 'string' && typeof line.code === 'number'
    return whole ? (line as AuditLine) : undefined
  } catch {
    return undefined
  }
}

function matches(line: AuditLine, filter: AuditFilter): boolean {
  const { user, source, resource, name, verb, outcome, since } = filter
  if (user !== undefined && line.user !== user && line.impersonatedUser !== user) return false
  if (source !== undefined && line.source !== source) return false
  if (resource !== undefined && line.resource !== resource && line.resource.split('.')[0] !== resource) return false
  if (name !== undefined && name !== line.name && name !== `${line.namespace}/${line.name}`) return false
  if (verb !== undefined && line.verb !== verb && line.subresource !== verb) return false
  if (since !== undefined && Date.parse(line.time) < since) return false
  return outcome === undefined || isOutcome(line.code, outcome)
}

function isOutcome(code: number, outcome: string): boolean {
  if (outcome === 'ok') return code < 400
  if (outcome === 'failed') return code >= 400
  if (outcome === 'refused') return code === 401 || code === 403
  return String(code) === outcome
}
