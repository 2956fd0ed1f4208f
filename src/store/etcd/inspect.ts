// What lies below a prefix of etcd, as it is? Read at one revision, without becoming the server that may write: also beside one.
import { errorText } from '../../telemetry/error-text.ts'
import type { Revision } from '../store.ts'
import type { EtcdClient } from './client.ts'
import { KV } from './generated/etcd_pb.ts'
import type { EtcdPlace } from './layout.ts'
import { entryKey, ownKey, ownKeyNames, textOf, watchedRange } from './layout.ts'

export type FoundKey =
  | { readonly kind: 'entry'; readonly key: string; readonly value: string; readonly revision: Revision }
  | { readonly kind: 'unreadable'; readonly path: string; readonly problem: string }
  /** Of another program, or of a kind that we do not serve. */
  | { readonly kind: 'foreign'; readonly path: string }

const pageSize = 500

export async function* inspectPrefix(
  { client, place }: { readonly client: EtcdClient; readonly place: EtcdPlace },
  signal: AbortSignal,
): AsyncGenerator<FoundKey, void, undefined> {
  const own = new Set(ownKeyNames.map((name) => textOf(ownKey(place, name))))
  const { key: first, rangeEnd } = watchedRange(place)
  let key = first
  let revision = 0n
  for (;;) {
    const { answer } = await client.call(KV.method.range, { key, rangeEnd, limit: BigInt(pageSize), revision }, signal)
    if (revision === 0n) revision = answer.header?.revision ?? 0n
    for (const kv of answer.kvs) {
      const path = textOf(kv.key)
      if (own.has(path)) continue
      const entry = entryKey(place, kv.key)
      if (entry === undefined) yield { kind: 'foreign', path }
      else yield read(place, { path, key: entry, bytes: kv.value, revision: Number(kv.modRevision) })
    }
    const last = answer.kvs.at(-1)
    if (!answer.more || last === undefined) return
    // The smallest key after the last one.
    key = Buffer.concat([last.key, Buffer.of(0)])
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
