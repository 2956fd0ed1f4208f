// `hawser volume rm`: deletes claims with their data, after saying what that means.
import { buildCommand } from '@stricli/core'
import { confirm, yesFlag } from '../../confirm.ts'
import { namesOf } from '../../completions.ts'
import type { ConnectFlags } from '../../connect.ts'
import { connect, connectFlags } from '../../connect.ts'
import type { Context } from '../../context.ts'
import type { VolumeFacts } from '../../volume-facts.ts'
import { gatherVolume } from '../../volume-facts.ts'
import { stillDeleted, timeoutFlag, waitFlag, waitUntil } from '../../wait.ts'

interface Flags extends ConnectFlags {
  readonly yes: boolean
  readonly wait: boolean
  readonly timeout: number
}

export const rm = buildCommand<Flags, string[], Context>({
  docs: {
    brief: 'Delete volumes',
    fullDescription: [
      'Deletes claims and waits until their volumes are deleted. Shows first what will be lost.',
      '',
      'Examples:',
      '  hawser volume rm data',
      '  hawser volume rm data old --yes',
    ].join('\n'),
  },
  parameters: {
    flags: { ...connectFlags, yes: yesFlag, wait: waitFlag, timeout: timeoutFlag },
    aliases: { n: 'namespace', y: 'yes' },
    positional: {
      kind: 'array',
      parameter: {
        parse: String,
        placeholder: 'NAME',
        proposeCompletions: namesOf('PersistentVolumeClaim'),
        brief: 'Names of the claims',
      },
      minimum: 1,
    },
  },
  async func(flags, ...names) {
    using connection = connect(this, flags)
    const { client, namespace } = connection
    const all = await Promise.all(names.map((name) => gatherVolume(client, namespace, name)))
    await confirm(this, all.flatMap(planOf), flags.yes)
    for (const { name } of all) {
      await client.remove('PersistentVolumeClaim', { name, namespace })
      this.print(`persistentvolumeclaim/${name} deleted`)
    }
    if (!flags.wait) return
    for (const facts of all) await untilGone(this, connection.client, facts, flags.timeout * 1_000)
  },
})

export function planOf(facts: VolumeFacts): string[] {
  const { name, volume, reclaimPolicy, capacity, usedBy, snapshots } = facts
  const fate = !volume
    ? 'it has no volume yet'
    : reclaimPolicy === 'Delete'
      ? `its volume ${volume} (${capacity}) and all data on it will be deleted`
      : `its volume ${volume} (${capacity}) stays, with its data (reclaim policy ${reclaimPolicy})`
  return [
    `delete claim ${name}: ${fate}`,
    ...(usedBy.length > 0 ? [`  used by ${usedBy.join(', ')}: nothing is deleted before these pods are gone`] : []),
    ...(snapshots.length > 0 ? [`  its snapshots stay: ${snapshots.join(', ')}`] : []),
  ]
}

async function untilGone(
  context: Context,
  client: Parameters<typeof waitUntil>[1],
  { name, namespace, volume, reclaimPolicy, usedBy }: VolumeFacts,
  timeoutMs: number,
): Promise<void> {
  const holding = usedBy.length > 0 ? `pods use it: ${usedBy.join(', ')}` : 'protection'
  const deleted = { kind: 'PersistentVolumeClaim', ref: { name, namespace } } as const
  await waitUntil(context, client, { ...deleted, timeoutMs, left: stillDeleted(deleted) }, (claim) =>
    claim ? { done: false, waiting: `claim ${name} is held: ${holding}` } : { done: true, value: undefined },
  )
  if (!volume || reclaimPolicy !== 'Delete') return
  const behind = { kind: 'PersistentVolume', ref: { name: volume } } as const
  await waitUntil(context, client, { ...behind, timeoutMs, left: stillDeleted(behind) }, (object) => {
    if (!object) return { done: true, value: undefined }
    const { phase, message } = object.status ?? {}
    if (phase === 'Failed') return { done: false, waiting: `deleting ${volume} fails, it is tried again: ${message}` }
    return { done: false, waiting: `deleting volume ${volume}` }
  })
  context.print(`persistentvolume/${volume} deleted`)
}
