// What lies below a prefix of etcd, as it is? Read at one revision, without becoming the server that may write: also beside one.
import { errorText } from '../../telemetry/error-text.ts'
import type { Revision } from '../store.ts'
import type { EtcdClient } from './client.ts'
import type { EtcdPlace } from './layout.ts'
import { entryKey, ownKey, ownKeyNames, textOf } from './layout.ts'
import { pagesOf } from './pages.ts'

export type FoundKey =
  | { readonly kind: 'entry'; readonly key: string; readonly value: string; readonly revision: Revision }
  | { readonly kind: 'unreadable'; readonly path: string; readonly problem: string }
  /** Of another program, or of a kind that we do not serve. */
  | { readonly kind: 'foreign'; readonly path: string }

export async function* inspectPrefix(
  at: { readonly client: EtcdClient; readonly place: EtcdPlace },
  signal: AbortSignal,
): AsyncGenerator<FoundKey, void, undefined> {
  const { place } = at
  const own = new Set(ownKeyNames.map((name) => textOf(ownKey(place, name))))
  for await (const { kvs } of pagesOf(at, signal)) {
    for (const kv of kvs) {
      const path = textOf(kv.key)
      if (own.has(path)) continue
      const entry = entryKey(place, kv.key)
      if (entry === undefined) yield { kind: 'foreign', path }
      else yield read(place, { path, key: entry, bytes: kv.value, revision: Number(kv.modRevision) })
    }
  }
}

interface Bytes {
  readonly path: string
  readonly key: string
  readonly bytes: Uint8Array
  readonly revision: Revision
}

function read({ layout }: EtcdPlace, { path, key, bytes, revision }: Bytes): FoundKey {
  try {
    return { kind: 'entry', key, value: layout.decode(key, bytes), revision }
  } catch (error) {
    return { kind: 'unreadable', path, problem: errorText(error) }
  }
}
