// What do the controllers tell the history? Changes they made, and what objects wait for.
import type { History } from '../../client/history.ts'
import { keyText, referenceTo } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Transition, Waiting } from './waiting.ts'

export interface ControllerHistory {
  onTransition(transition: Transition): void
  onWaiting(controller: string, object: ObjectKey, waiting: readonly Waiting[]): void
}

/** Half of what happens to a pair: the record of the claim has it already. */
const toldByPartner: ReadonlySet<string> = new Set(['point to claim', 'point to volume', 'phase Pending'])

const operationNames: Readonly<Record<string, string>> = {
  binding: 'bind',
  expansion: 'expand',
  protection: 'protect',
  ephemeral: 'claim',
  placement: 'place',
}

export function createControllerHistory(history: History, clock: Clock): ControllerHistory {
  return {
    onTransition({ controller, object, uid, what }) {
      if (toldByPartner.has(what) || (what === 'phase Bound' && object.kind === 'PersistentVolume')) return
      const now = clock.now()
      const operation = operationNames[controller] ?? controller
      const about = { actor: controller, operation, key: keyText(object), objects: [referenceTo(object, uid)] }
      history.tell({ ...about, phase: 'Succeeded', step: what, startedAt: now, finishedAt: now })
    },
    onWaiting(controller, object, waiting) {
      history.waits(
        { actor: controller, operation: 'wait', key: keyText(object), objects: [referenceTo(object)] },
        waiting.map(({ reason, message, until }) => ({
          reason,
          ...(message === undefined ? {} : { message }),
          ...(until === undefined ? {} : { until }),
        })),
      )
    },
  }
}
