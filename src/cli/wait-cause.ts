// What holds up what we wait for? `why` is asked every second; a cause that no waiting mends ends the wait.
import type { KindName } from '../api/kinds.ts'
import type { ObjectRef } from '../api/meta.ts'
import type { Client } from '../client/client.ts'
import { explain } from '../why/explain.ts'
import type { ExplainedBlock } from '../why/explain.ts'
import { gatherFacts } from '../why/gather.ts'
import { isHopeless } from '../why/hopeless.ts'
import { StillWaiting } from './errors.ts'
import { isSubjectKind } from '../why/facts.ts'
import { askAbout } from './hints.ts'

const askMs = 1_000

export interface CauseWatch extends Disposable {
  /** Aborted with the error to tell when waiting is in vain. */
  readonly inVain: AbortSignal
}

/** `say` hears the cause as soon as there is one. */
export function watchCause(client: Client, kind: KindName, ref: ObjectRef, say: (text: string) => void): CauseWatch {
  const inVain = new AbortController()
  let before: ExplainedBlock | undefined
  let isAsking = false
  const ask = async () => {
    if (!isSubjectKind(kind) || isAsking) return
    isAsking = true
    try {
      const { verdict, blocked } = explain(await gatherFacts(client, { kind, ...ref }, Date.now()))
      if (verdict !== 'waiting' || blocked === undefined) return void (before = undefined)
      say(blocked.sentence)
      // Asked twice: what is missing may just be on its way.
      if (isHopeless(blocked.cause) && before?.cause === blocked.cause)
        inVain.abort(new StillWaiting(`waiting does not help: ${blocked.sentence}`, askAbout(kind, ref)))
      before = blocked
    } catch {
      // The wait itself tells when the server cannot be reached.
    } finally {
      isAsking = false
    }
  }
  const timer = setInterval(() => void ask(), askMs)
  return { inVain: inVain.signal, [Symbol.dispose]: () => clearInterval(timer) }
}
