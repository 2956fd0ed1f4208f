// When is something worth telling the user again? On change, or when some minutes have passed (W-6); texts stay
// those that users' tools know.
import type { KubeObject } from '../../api/meta.ts'
import type { KindName } from '../../api/kinds.ts'
import type { Recorder } from '../../client/recorder.ts'
import type { Clock } from '../../clock/clock.ts'
import type { PlannedEvent } from './claim-plan.ts'

const repeatMs = 300_000

export interface Teller {
  tell(kind: KindName, object: KubeObject, event: PlannedEvent): void
  /** The object is gone; what was said about it need not be remembered. */
  forget(uid: string | undefined): void
}

export function createTeller(recorder: Recorder, clock: Clock): Teller {
  const last = new Map<string, { readonly text: string; readonly at: number }>()
  return {
    tell(kind, object, event) {
      const uid = object.metadata.uid ?? ''
      const text = `${event.type} ${event.reason} ${event.message}`
      const said = last.get(uid)
      if (said?.text === text && clock.now() - said.at < repeatMs) return
      last.set(uid, { text, at: clock.now() })
      recorder.event({ kind, object }, event.type, event.reason, event.message)
    },
    forget(uid) {
      last.delete(uid ?? '')
    },
  }
}
