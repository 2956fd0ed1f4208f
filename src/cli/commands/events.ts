// `hawser events`: what the system told users, oldest first.
import { buildCommand } from '@stricli/core'
import type { Event } from '../../api/generated/types.ts'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import type { OutputForm } from '../output.ts'
import { duration, json, outputFlag, table, yaml } from '../output.ts'
import { slashed } from '../resources.ts'

interface Flags extends ConnectFlags {
  readonly for?: string
  readonly allNamespaces: boolean
  readonly output: OutputForm
}

export const events = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'Show Kubernetes events',
    fullDescription: [
      'Examples:',
      '  hawser events',
      '  hawser events --for pod/web',
      '  hawser events -A -o json',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      for: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'TYPE/NAME',
        brief: 'Only events about this object',
      },
      allNamespaces: { kind: 'boolean', default: false, brief: 'All namespaces' },
      output: outputFlag,
    },
    aliases: { o: 'output', A: 'allNamespaces', n: 'namespace' },
  },
  async func(flags) {
    const about = flags.for === undefined ? undefined : slashed(flags.for)
    using connection = connect(this, flags)
    const fieldSelector = about && `involvedObject.kind=${about.kind},involvedObject.name=${about.name}`
    const list = await connection.client.list('Event', {
      ...(flags.allNamespaces || about ? {} : { namespace: connection.namespace }),
      ...(fieldSelector ? { fieldSelector } : {}),
    })
    const sorted = list.items.toSorted((a, b) => timeOf(a) - timeOf(b))
    if (flags.output === 'json') return this.print(json(sorted))
    if (flags.output === 'yaml') return this.print(yaml(sorted))
    if (flags.output === 'name') return sorted.forEach(({ metadata }) => this.print(`event/${metadata.name}`))
    if (sorted.length === 0) return this.note('no events')
    const now = Date.now()
    this.print(
      table(
        ['AGO', 'TYPE', 'REASON', 'OBJECT', 'COUNT', 'MESSAGE'],
        sorted.map((event) => [
          duration(Math.max(0, now - timeOf(event))),
          event.type ?? '',
          event.reason ?? '',
          `${(event.involvedObject.kind ?? '').toLowerCase()}/${event.involvedObject.name ?? ''}`,
          String(event.count ?? event.series?.count ?? 1),
          (event.message ?? '').trim(),
        ]),
      ),
    )
  },
})

function timeOf(event: Event): number {
  const text =
    event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp
  return text ? Date.parse(text) : 0
}
