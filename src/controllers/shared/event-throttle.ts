// Is this event worth repeating? An event is recorded when its text changes, or when five minutes have passed (WC-6).
import type { KubeObject } from '../../api/meta.ts'
import type { KindName } from '../../api/kinds.ts'
import type { Recorder } from '../../client/recorder.ts'
import type { Clock } from '../../clock/clock.ts'

const repeatMs = 300_000

export interface PlannedEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

export interface EventThrottle {
  record(kind: KindName, object: KubeObject, event: PlannedEvent): void
  /** The object is gone: its last event need not be remembered. */
  forget(uid: string | undefined): void
}

export function createEventThrottle(recorder: Recorder, clock: Clock): EventThrottle {
  const last = new Map<string, { readonly text: string; readonly at: number }>()
  return {
    record(kind, object, event) {
      const uid = object.metadata.uid ?? ''
      const text = `${event.type} ${event.reason} ${event.message}`
      const before = last.get(uid)
      if (before?.text === text && clock.steady() - before.at < repeatMs) return
      last.set(uid, { text, at: clock.steady() })
      recorder.event({ kind, object }, event.type, event.reason, event.message)
    },
    forget(uid) {
      last.delete(uid ?? '')
    },
  }
}
