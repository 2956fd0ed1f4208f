// What do users and operators hear of attaching? The multi-attach sentences (MA-4, MA-5), metrics (MEA-4 … MEA-6),
// and each reason to wait in words.
import type { NodeName } from '../../api/names.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { volumeLabel } from '../../volume/identity.ts'
import type { ActualWorld } from './actual.ts'
import type { DesiredVolume, DesiredWorld, PodReference } from './desired.ts'
import type { AttachmentWaiting, Force } from './plan.ts'

/** The sentence for one waiting pod. It never names pods of other namespaces (INV-12). */
export function multiAttachText(
  desired: DesiredVolume,
  waits: { readonly node: NodeName; readonly pod: PodReference },
  holders: readonly NodeName[],
): string {
  const { pod } = waits
  const prefix = `Multi-Attach error for volume "${(desired.nodes.get(waits.node) ?? desired).spec.name}"`
  const users = holders.flatMap((node) => [...(desired.nodes.get(node)?.pods.values() ?? [])])
  if (users.length === 0) {
    return `${prefix} Volume is already exclusively attached to one node and can't be attached to another`
  }
  const own = users.filter(({ namespace }) => namespace === pod.namespace).map(({ name }) => name)
  const foreign = users.length - own.length
  const elsewhere = `${foreign} pod(s) in different namespaces`
  if (own.length === 0) return `${prefix} Volume is already used by ${elsewhere}`
  return `${prefix} Volume is already used by pod(s) ${own.join(', ')}${foreign > 0 ? ` and ${elsewhere}` : ''}`
}

/** A reason to wait, spoken. */
export function waitingText({ reason, node, holder, until, detail }: AttachmentWaiting): string {
  const at = until === undefined ? '' : ` until ${timestamp(until)}`
  switch (reason) {
    case 'inUse':
      return `node ${node} still uses the volume; it is detached as soon as the node reports it unmounted`
    case 'inUseOnUnhealthyNode':
      return `node ${node} is not healthy and last reported the volume in use; waiting${at} before taking it by force`
    case 'forceDetachDisabled':
      return `node ${node} is not healthy and last reported the volume in use; forced detach on timeout is switched off`
    case 'attachedElsewhere':
      return `the volume is attached to node ${holder} and may be attached to one node only; node ${node} waits`
    case 'maybeAttachedElsewhere':
      return `the volume may still be attached to node ${holder}; node ${node} waits until that is certain`
    case 'anotherNodeFirst':
      return `node ${holder} asked for the volume first; node ${node} waits`
    case 'busy':
      return `${detail ?? 'another operation'} is running for this volume; node ${node} waits`
    case 'backingOff':
      return `the last try for node ${node} failed (${detail ?? 'no reason given'}); the next one comes${at.replace('until', 'at')}`
    default:
      return reason satisfies never
  }
}

export interface AttachmentMetrics {
  forcedDetach(reason: Force): void
}

export function createAttachmentMetrics(
  metrics: Metrics,
  { desired, actual }: { readonly desired: DesiredWorld; readonly actual: ActualWorld },
): AttachmentMetrics {
  const forced = metrics.counter(
    'attach_detach_controller_attachdetach_controller_forced_detaches',
    'Number of times the A/D Controller performed a forced detach',
    ['reason'] as const,
  )
  metrics.gauge(
    'attachdetach_controller_total_volumes',
    'Number of volumes in A/D Controller',
    ['plugin_name', 'state'] as const,
    (gauge) => {
      gauge.reset()
      for (const { volume, spec, nodes } of desired.items.values()) {
        gauge.inc({ plugin_name: volumeLabel(volume, spec), state: 'desired_state_of_world' }, nodes.size)
      }
      for (const { volume, identity, nodes } of actual.items.values()) {
        if (identity.kind === 'seen') continue
        gauge.inc({ plugin_name: volumeLabel(volume, identity.spec), state: 'actual_state_of_world' }, nodes.size)
      }
    },
  )
  metrics.gauge(
    'storage_count_attachable_volumes_in_use',
    'Measure number of volumes in use',
    ['node', 'volume_plugin'] as const,
    (gauge) => {
      gauge.reset()
      for (const { volume, spec, nodes } of desired.items.values()) {
        for (const [node, { pods }] of nodes) gauge.inc({ node, volume_plugin: volumeLabel(volume, spec) }, pods.size)
      }
    },
  )
  return {
    forcedDetach: (reason) => forced.inc({ reason: reason === 'timeout' ? 'timeout' : 'out-of-service' }),
  }
}
