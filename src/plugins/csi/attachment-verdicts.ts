// What did the driver's attacher do with a VolumeAttachment? Its changes are heard until they settle the question.
import type { VolumeAttachment } from '../../api/generated/types.ts'
import type { Informer } from '../../client/informer.ts'
import { refused } from '../../volume/effect.ts'
import type { VolumeError } from '../../volume/effect.ts'

/** Is it settled: done, failed with this error, or undefined: keep listening. */
type Verdict = (now: VolumeAttachment | undefined, wasSeen: boolean) => 'done' | VolumeError | undefined

/** Resolves when the verdict about the object of this name is done, rejects with its error. */
export type AwaitVerdict = (name: string, verdict: Verdict, signal: AbortSignal) => Promise<void>

/** Not there yet means the cache lags behind our own write; gone after it was there means someone removed it (CSI-21). */
export const attachVerdict: Verdict = (now, wasSeen) => {
  if (!now) return wasSeen ? refused('AttachmentRemoved', 'volume attachment has been deleted', 'unknown') : undefined
  if (now.metadata.deletionTimestamp)
    return refused('AttachmentRemoved', 'volume attachment is being deleted', 'unknown')
  if (now.status?.attached) return 'done'
  const error = now.status?.attachError
  return error ? refused('AttachFailed', error.message ?? '', 'unknown') : undefined
}

/** Detached when the object is gone. An error counts only once the object is being deleted (CSI-22). */
export const detachVerdict: Verdict = (now) => {
  if (!now) return 'done'
  const error = now.metadata.deletionTimestamp ? now.status?.detachError : undefined
  return error ? refused('DetachFailed', error.message ?? '', 'unknown') : undefined
}

/** One subscription for all who wait: a change costs what waits for that object, nothing else. */
export function createVerdicts(attachments: Informer<VolumeAttachment>): AwaitVerdict {
  const listeners = new Map<string, Set<() => void>>()
  attachments.subscribe(({ key }) => {
    for (const listener of [...(listeners.get(key) ?? [])]) listener()
  })
  return (name, verdict, signal) =>
    new Promise((resolve, reject) => {
      let wasSeen = false
      const stop = () => {
        signal.removeEventListener('abort', onAbort)
        const all = listeners.get(name)
        all?.delete(listen)
        if (all?.size === 0) listeners.delete(name)
      }
      const onAbort = () => {
        stop()
        reject(signal.reason)
      }
      const listen = () => {
        const now = attachments.get(name)
        const said = verdict(now, wasSeen)
        wasSeen ||= now !== undefined
        if (!said) return
        stop()
        if (said === 'done') resolve()
        else reject(said)
      }
      if (signal.aborted) return reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      const all = listeners.get(name)
      if (all) all.add(listen)
      else listeners.set(name, new Set([listen]))
      listen()
    })
}
