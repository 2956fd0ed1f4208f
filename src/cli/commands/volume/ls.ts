// `hawser volume ls`: claims with what belongs to them on one line each.
import { buildCommand } from '@stricli/core'
import type { ConnectFlags } from '../../connect.ts'
import { connect, connectFlags } from '../../connect.ts'
import type { Context } from '../../context.ts'
import type { OutputForm } from '../../output.ts'
import { json, outputFlag, table, yaml } from '../../output.ts'
import { gatherUsage } from '../../volume-usage.ts'
import type { VolumeFacts } from '../../volume-facts.ts'
import { gatherVolumes, shortMode, withUsage } from '../../volume-facts.ts'

interface Flags extends ConnectFlags {
  readonly allNamespaces: boolean
  readonly output: OutputForm
}

export const ls = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'List volumes',
    fullDescription: [
      'USED is what the node says that mounts the volume; "-" while no pod uses it.',
      '',
      'Examples:',
      '  hawser volume ls',
      '  hawser volume ls -A -o wide',
      '  hawser volume ls -o json',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      allNamespaces: { kind: 'boolean', default: false, brief: 'All namespaces' },
      output: outputFlag,
    },
    aliases: { n: 'namespace', A: 'allNamespaces', o: 'output' },
  },
  async func(flags) {
    using connection = connect(this, flags)
    const namespace = flags.allNamespaces ? undefined : connection.namespace
    const [found, usage] = await Promise.all([gatherVolumes(connection.client, namespace), gatherUsage(connection)])
    const all = found.map((facts) => withUsage(facts, usage))
    if (flags.output === 'json') return this.print(json(all))
    if (flags.output === 'yaml') return this.print(yaml(all))
    if (flags.output === 'name') return all.forEach(({ name }) => this.print(`persistentvolumeclaim/${name}`))
    if (all.length === 0) return this.note('no volumes; create one: hawser volume create data --size 1Gi')
    const wide = flags.output === 'wide'
    const space = (text: string) => (flags.allNamespaces ? [text] : [])
    const headers = ['NAME', 'STATUS', 'SIZE', 'USED', 'MODE', 'CLASS', 'USED BY', 'ATTACHED TO']
    this.print(
      table(
        [...space('NAMESPACE'), ...headers, ...(wide ? ['VOLUME', 'DRIVER', 'RECLAIM', 'SNAPSHOTS'] : [])],
        all.map((facts) => [...space(facts.namespace), ...cells(facts), ...(wide ? wideCells(facts) : [])]),
      ),
    )
  },
})

const listed = (names: readonly string[]) => names.join(',') || '-'

function cells(facts: VolumeFacts): string[] {
  const size = facts.capacity === '' ? `(${facts.requested})` : facts.capacity
  const mode = facts.accessModes.map(shortMode).join(',') + (facts.volumeMode === 'Block' ? ' block' : '')
  return [
    facts.name,
    facts.status,
    size,
    facts.used ?? '-',
    mode,
    facts.class || '-',
    listed(facts.usedBy),
    listed(facts.attachedTo),
  ]
}

function wideCells(facts: VolumeFacts): string[] {
  return [facts.volume ?? '-', facts.driver ?? '-', facts.reclaimPolicy ?? '-', listed(facts.snapshots)]
}
