// `hawser volume resize`: asks for more space and waits until the pods have it.
import { buildCommand } from '@stricli/core'
import type { PersistentVolumeClaim } from '../../../api/generated/types.ts'
import { compareQuantities } from '../../../api/quantity.ts'
import { UsageError } from '../../../installation/config.ts'
import { claimArgument } from '../../completions.ts'
import type { ConnectFlags } from '../../connect.ts'
import { connect, connectFlags } from '../../connect.ts'
import type { Context } from '../../context.ts'
import { gatherVolume } from '../../volume-facts.ts'
import { inNamespace } from '../../hints.ts'
import type { Look } from '../../wait.ts'
import { timeoutFlag, waitFlag, waitUntil } from '../../wait.ts'
import { sizeFrom } from './options.ts'

interface Flags extends ConnectFlags {
  readonly wait: boolean
  readonly timeout: number
}

export const resize = buildCommand<Flags, [string, string], Context>({
  docs: {
    brief: 'Expand a volume',
    fullDescription: [
      'Expands the volume and its filesystem, also while pods use it. Volumes cannot shrink.',
      '',
      'Examples:',
      '  hawser volume resize data 2Gi',
      '  hawser volume resize data 2Gi --timeout 600',
    ].join('\n'),
  },
  parameters: {
    flags: { ...connectFlags, wait: waitFlag, timeout: timeoutFlag },
    aliases: { n: 'namespace' },
    positional: {
      kind: 'tuple',
      parameters: [claimArgument, { parse: sizeFrom, placeholder: 'SIZE', brief: 'The new size' }],
    },
  },
  async func(flags, name, size) {
    using connection = connect(this, flags)
    const { client, namespace } = connection
    const facts = await gatherVolume(client, namespace, name)
    const present = facts.capacity || facts.requested
    // A growth that failed may be taken back, down to what the volume has (as in Kubernetes).
    if (compareQuantities(size, facts.requested) < 0 && compareQuantities(size, present) <= 0)
      throw new UsageError(`volumes cannot shrink: ${name} has ${present}`, `ask for more than ${present}`)
    const ref = { name, namespace }
    const body = { spec: { resources: { requests: { storage: size } } } }
    await client.patch('PersistentVolumeClaim', ref, { type: 'merge', body })
    this.print(`persistentvolumeclaim/${name} asked for ${size}`)
    if (!flags.wait) return
    const wait = { kind: 'PersistentVolumeClaim', ref, timeoutMs: flags.timeout * 1_000 } as const
    const result = await waitUntil(this, client, wait, (claim) => sized(claim, size, facts.usedBy.length > 0))
    if (result.pending) this.note('the filesystem is expanded when a pod uses the volume')
    else this.print(`persistentvolumeclaim/${name} has ${result.capacity}`)
  },
})

/** Grown, or grown as far as it can without a pod: the filesystem is grown where it is mounted. */
export function sized(
  claim: PersistentVolumeClaim | undefined,
  size: string,
  inUse: boolean,
): Look<{ readonly capacity: string; readonly pending: boolean }> {
  if (!claim) return { done: 'failed', message: 'the claim was deleted meanwhile' }
  const capacity = claim.status?.capacity?.['storage']
  if (capacity !== undefined && compareQuantities(String(capacity), size) >= 0)
    return { done: true, value: { capacity: String(capacity), pending: false } }
  // What is said of another size was said before this one was asked for.
  const allocated = claim.status?.allocatedResources?.['storage']
  const isTried = allocated !== undefined && compareQuantities(String(allocated), size) === 0
  const on = (type: string) => claim.status?.conditions?.find((each) => each.type === type && each.status === 'True')
  if (isTried && on('FileSystemResizePending') && !inUse) return { done: true, value: { capacity: '', pending: true } }
  if (claim.status?.phase !== 'Bound') return { done: false, waiting: 'waiting for the claim to have a volume' }
  const failed = on('ControllerResizeError') ?? on('NodeResizeError')
  if (isTried && claim.status?.allocatedResourceStatuses?.['storage'] === 'ControllerResizeInfeasible')
    return {
      done: 'failed',
      message: `${claim.metadata.name} cannot have ${size}: ${failed?.message ?? 'the driver refused'}`,
      hint: `hawser volume resize ${claim.metadata.name} SIZE${inNamespace(claim.metadata.namespace)} (above the ${capacity} that it has)`,
    }
  if (failed) return { done: false, waiting: `resizing fails, it is tried again: ${failed.message ?? failed.type}` }
  return {
    done: false,
    waiting: on('FileSystemResizePending') ? 'growing the filesystem' : `growing the volume to ${size}`,
  }
}
