// `hawser volume inspect`: everything about one volume in one place.
import { buildCommand } from '@stricli/core'
import { claimArgument } from '../../completions.ts'
import type { ConnectFlags } from '../../connect.ts'
import { connect, connectFlags } from '../../connect.ts'
import type { Context } from '../../context.ts'
import type { OutputForm } from '../../output.ts'
import { json, outputFlag, table, yaml } from '../../output.ts'
import type { VolumeFacts } from '../../volume-facts.ts'
import { askAbout } from '../../hints.ts'
import { gatherVolume, withUsage } from '../../volume-facts.ts'
import { gatherUsage, pathsHere } from '../../volume-usage.ts'

export const inspect = buildCommand<ConnectFlags & { readonly output: OutputForm }, [string], Context>({
  docs: {
    brief: 'Show everything about a volume',
    fullDescription: [
      'Also shows where the volume is on this machine, if a pod mounts it here.',
      '',
      'Examples:',
      '  hawser volume inspect data',
      '  hawser volume inspect data -o json',
    ].join('\n'),
  },
  parameters: {
    flags: { ...connectFlags, output: outputFlag },
    aliases: { n: 'namespace', o: 'output' },
    positional: {
      kind: 'tuple',
      parameters: [claimArgument],
    },
  },
  async func(flags, name) {
    using connection = connect(this, flags)
    const found = await gatherVolume(connection.client, connection.namespace, name)
    const facts = withUsage(found, await gatherUsage(connection))
    const paths = facts.volume === undefined ? [] : pathsHere(facts.volume)
    if (flags.output === 'json') return this.print(json({ ...facts, pathsHere: paths }))
    if (flags.output === 'yaml') return this.print(yaml({ ...facts, pathsHere: paths }))
    if (flags.output === 'name') return this.print(`persistentvolumeclaim/${name}`)
    this.print(table([], rows(facts, paths)))
    if (facts.status !== 'Bound' || facts.conditions.length > 0)
      this.note(`to see what it waits for: ${askAbout('PersistentVolumeClaim', facts)}`)
  },
})

function rows(facts: VolumeFacts, paths: readonly string[]): string[][] {
  const line = (title: string, value: string | undefined) => (value ? [[title, value]] : [])
  return [
    ...line('claim', `${facts.namespace}/${facts.name}`),
    ...line('status', facts.status),
    ...line('size', facts.capacity || `(${facts.requested} requested)`),
    ...(facts.capacity !== '' && facts.capacity !== facts.requested ? line('requested', facts.requested) : []),
    ...line('used', facts.used),
    ...line('access modes', facts.accessModes.join(', ')),
    ...line('volume mode', facts.volumeMode),
    ...line('class', facts.class),
    ...line('volume', facts.volume),
    ...line('driver', facts.driver),
    ...line('handle', facts.handle),
    ...line('path', facts.path),
    ...paths.map((path) => ['on this machine', path]),
    ...line('reclaim policy', facts.reclaimPolicy),
    ...line('attached to', facts.attachedTo.join(', ') || 'no node'),
    ...line('used by', facts.usedBy.map((pod) => `pod/${pod}`).join(', ') || 'no pod'),
    ...line('snapshots', facts.snapshots.join(', ')),
    ...facts.conditions.map((condition) => ['condition', condition]),
  ]
}
