// How is everything below a prefix read? Page by page, all at the revision of the first one.
import type { EtcdClient } from './client.ts'
import { KV } from './generated/etcd_pb.ts'
import type { KeyValue } from './generated/etcd_pb.ts'
import type { EtcdPlace } from './layout.ts'
import { watchedRange } from './layout.ts'

export interface Page {
  readonly kvs: readonly KeyValue[]
  readonly revision: bigint
}

const pageSize = 500

export async function* pagesOf(
  { client, place }: { readonly client: EtcdClient; readonly place: EtcdPlace },
  signal: AbortSignal,
): AsyncGenerator<Page, void, undefined> {
  const { key: first, rangeEnd } = watchedRange(place)
  let key = first
  let revision = 0n
  for (;;) {
    const { answer } = await client.call(KV.method.range, { key, rangeEnd, limit: BigInt(pageSize), revision }, signal)
    if (revision === 0n) revision = answer.header?.revision ?? 0n
    yield { kvs: answer.kvs, revision }
    const last = answer.kvs.at(-1)
    if (!answer.more || last === undefined) return
    // The smallest key after the last one.
    key = Buffer.concat([last.key, Buffer.of(0)])
  }
}
