// Who must hear when this one object changes? One shared watch per object, kept while somebody asks for it.
// A node watches only the objects its pods name, never a whole kind.
import type { KindName } from '../../api/kinds.ts'
import type { ObjectRef } from '../../api/meta.ts'
import { refKey } from '../../api/meta.ts'
import type { Client } from '../../client/client.ts'
import { createInformer } from '../../client/informer.ts'
import { reflect } from '../../client/reflector.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Random } from '../../clock/random.ts'
import type { Listeners } from '../../loop/listeners.ts'
import { createListeners } from '../../loop/listeners.ts'
import type { Log } from '../../telemetry/log.ts'

export interface ObjectWatches extends AsyncDisposable {
  /** Calls back on every change after the first picture of the object; `synced` resolves with that picture. */
  watch(kind: WatchedKind, ref: ObjectRef, listener: () => void): ObjectWatch
}

export interface ObjectWatch extends Disposable {
  readonly synced: Promise<void>
}

type WatchedKind = Extract<KindName, 'PersistentVolumeClaim' | 'ConfigMap' | 'Secret'>

interface Shared {
  readonly listeners: Listeners<[]>
  readonly stop: AbortController
  readonly done: Promise<void>
  readonly synced: Promise<void>
}

export function createObjectWatches(deps: {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}): ObjectWatches {
  const shared = new Map<string, Shared>()
  const begin = (kind: WatchedKind, ref: ObjectRef): Shared => {
    const listeners = createListeners<[]>()
    const stop = new AbortController()
    const informer = createInformer()
    const namespace = ref.namespace ?? ''
    const done = reflect(deps, { kind, namespace, fieldSelector: `metadata.name=${ref.name}` }, informer, stop.signal)
    const synced = informer.synced.then(() => {
      let first = true
      informer.subscribe(() => {
        if (!first) listeners.tell()
      })
      first = false
    })
    return { listeners, stop, done, synced }
  }
  return {
    watch(kind, ref, listener) {
      const name = `${kind}/${refKey(ref)}`
      const entry = shared.get(name) ?? begin(kind, ref)
      shared.set(name, entry)
      const subscription = entry.listeners.listen(() => listener())
      return {
        synced: entry.synced,
        [Symbol.dispose]() {
          subscription[Symbol.dispose]()
          if (entry.listeners.size > 0 || shared.get(name) !== entry) return
          shared.delete(name)
          entry.stop.abort(new Error('nobody asks for it any more'))
        },
      }
    },
    async [Symbol.asyncDispose]() {
      const all = [...shared.values()]
      shared.clear()
      for (const { stop } of all) stop.abort(new Error('the agent is stopping'))
      await Promise.all(all.map(({ done }) => done))
    },
  }
}
