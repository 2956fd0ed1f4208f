// Whose objects lie below the prefix? Ours where our mark says so; nobody's where there is none. Anything else belongs to
// another program, and is only taken over on purpose.
import { StoreError } from '../store.ts'
import type { EtcdClient } from './client.ts'
import type { KeyValue } from './generated/etcd_pb.ts'
import { Compare_CompareResult, Compare_CompareTarget, KV } from './generated/etcd_pb.ts'
import type { EtcdPlace } from './layout.ts'
import { bytesOf, objectRange, ownKey, textOf } from './layout.ts'

const format = 1

export interface ClaimDeps {
  readonly client: EtcdClient
  readonly place: EtcdPlace
  readonly adopt: boolean
}

/** Throws `unavailable` where the prefix cannot be ours. Marks it otherwise. */
export async function claimPrefix(deps: ClaimDeps, signal: AbortSignal): Promise<void> {
  const { client, place, adopt } = deps
  const key = ownKey(place, 'format')
  const mark = (await client.call(KV.method.range, { key }, signal)).answer.kvs[0]
  if (mark !== undefined) return checkFormat(deps, mark)
  const found = await client.call(KV.method.range, { ...objectRange(place), limit: 1n, keysOnly: true }, signal)
  const first = found.answer.kvs[0]
  if (first !== undefined && !adopt) {
    throw new StoreError(
      'unavailable',
      `etcd at ${client.where} holds ${found.answer.count} keys of another program below ${place.prefix}/ (${textOf(first.key)}): ` +
        'choose another --etcd-prefix, or take them over with --etcd-adopt once that program (kube-apiserver) has stopped',
    )
  }
  const absent = {
    result: Compare_CompareResult.EQUAL,
    target: Compare_CompareTarget.CREATE,
    key,
    targetUnion: { case: 'createRevision', value: 0n },
  } as const
  const value = bytesOf(JSON.stringify({ program: 'hawser', format }))
  // Two servers may begin at the same time: both write the same.
  await client.call(
    KV.method.txn,
    { compare: [absent], success: [{ request: { case: 'requestPut', value: { key, value } } }] },
    signal,
  )
}

function checkFormat({ client, place }: ClaimDeps, mark: KeyValue): void {
  const found = formatOf(mark)
  if (found === format) return
  const text =
    found > format
      ? `was written by a newer version of Hawser (format ${found}, this one reads up to ${format}): start the newer version`
      : 'has a mark that cannot be read: choose another --etcd-prefix'
  throw new StoreError('unavailable', `${place.prefix} in etcd at ${client.where} ${text}`)
}

/** 0 where the mark is not ours. */
function formatOf({ value }: KeyValue): number {
  try {
    const read = JSON.parse(textOf(value)) as { readonly program?: unknown; readonly format?: unknown } // checked here
    return read.program === 'hawser' && typeof read.format === 'number' ? read.format : 0
  } catch {
    return 0
  }
}
