// `hawser audit`: who did what, from where, and what became of it; read from the files of this machine.
import { resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import type { AuditLine } from '../../installation/audit-search.ts'
import { UsageError } from '../../installation/config.ts'
import { kinds } from '../../api/kinds.ts'
import type { Context } from '../context.ts'
import { dataDirFlag, defaultDataDirectory } from '../defaults.ts'
import { table } from '../output.ts'
import { kindFrom, slashed } from '../resources.ts'

interface Flags {
  readonly dataDir?: string
  readonly user?: string
  readonly object?: string
  readonly kind?: string
  readonly verb?: string
  readonly outcome?: string
  readonly source?: string
  readonly since?: number
  readonly output: 'table' | 'json'
}

const text = { kind: 'parsed', parse: String, optional: true } as const

export const audit = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'Search the audit log of this machine',
    fullDescription: [
      'Shows who changed something, read a secret, was refused, or opened a stream into a pod, oldest first. The API server writes',
      'DIR/audit.log, an agent DIR/node-audit.log; each with four older files. Reading them needs the rights of their owner.',
      '',
      'Examples:',
      '  hawser audit --since 1h',
      '  hawser audit --user alice --outcome refused',
      '  hawser audit --object secret/password -o json',
      '  hawser audit --verb exec --source 192.0.2.7',
    ].join('\n'),
  },
  parameters: {
    flags: {
      dataDir: dataDirFlag,
      user: { ...text, placeholder: 'NAME', brief: 'Only what this user did, also as somebody else' },
      object: { ...text, placeholder: 'TYPE/NAME', brief: 'Only what was done to this object' },
      kind: { ...text, placeholder: 'TYPE', brief: 'Only what was done to objects of this type' },
      verb: { ...text, placeholder: 'VERB', brief: 'get, post, put, patch, delete, exec, attach, portforward' },
      outcome: { ...text, placeholder: 'CODE', brief: 'ok, failed, refused, or an HTTP code' },
      source: { ...text, placeholder: 'ADDRESS', brief: 'Only what came from this address' },
      since: {
        kind: 'parsed',
        parse: parseSince,
        optional: true,
        placeholder: 'TIME',
        brief: 'Only what is newer: 30m, 12h, 7d, or a date',
      },
      output: {
        kind: 'enum',
        values: ['table', 'json'],
        default: 'table',
        brief: 'Output format (json: one line each)',
      },
    },
    aliases: { o: 'output' },
  },
  async func(flags) {
    const { hasAudit, searchAudit } = await import('../../installation/audit-search.ts')
    const directory = resolve(flags.dataDir ?? defaultDataDirectory(this.process.env))
    if (!hasAudit(directory))
      throw new UsageError(
        `${directory} has no audit log`,
        'name the data directory of a server or agent: --data-dir DIR',
      )
    const { user, verb, outcome, source } = flags
    const about = flags.object === undefined ? undefined : slashed(flags.object)
    const kind = about?.kind ?? (flags.kind === undefined ? undefined : kindFrom(flags.kind))
    const resource = kind === undefined ? undefined : kinds[kind].plural
    const filter = { user, verb: verb?.toLowerCase(), outcome, source, since: flags.since, resource, name: about?.name }
    const rows: string[][] = []
    for await (const line of searchAudit(directory, filter)) {
      if (flags.output === 'json') this.print(JSON.stringify(line))
      else rows.push(rowOf(line))
    }
    if (flags.output === 'json') return
    if (rows.length === 0) return this.note('nothing of this kind is in the audit log')
    this.print(table(['TIME', 'USER', 'SOURCE', 'VERB', 'OBJECT', 'CODE'], rows))
  },
})

/** A time ago, or a date. */
function parseSince(given: string): number {
  const [, count, unit] = /^(\d+)(s|m|h|d)$/.exec(given) ?? []
  if (count !== undefined)
    return Date.now() - Number(count) * { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit as 's']
  const time = Date.parse(given)
  if (Number.isNaN(time))
    throw new UsageError(`--since takes a time like 30m, 12h, 7d or a date, not "${given}"`, '--since 1h')
  return time
}

function rowOf(line: AuditLine): string[] {
  const { subresource, namespace, name, path, node, impersonatedUser } = line
  const place = [namespace, name].filter((word) => word !== undefined).join('/')
  const what = path ?? [line.resource, place, subresource].filter((word) => word !== undefined && word !== '').join(' ')
  const who = impersonatedUser === undefined ? line.user : `${line.user} as ${impersonatedUser}`
  return [
    line.time,
    who,
    line.source ?? '',
    line.verb,
    node === undefined ? what : `${what} at node ${node}`,
    String(line.code),
  ]
}
