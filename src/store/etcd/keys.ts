// What do all servers of a cluster share that is no object? One text below the prefix. No watch and no list of objects shows it.
import type { MessageInitShape } from '@bufbuild/protobuf'
import { EtcdError } from './errors.ts'
import { StoreError } from '../store.ts'
import type { EtcdClient } from './client.ts'
import type { CompareSchema } from './generated/etcd_pb.ts'
import { Compare_CompareResult, Compare_CompareTarget, KV } from './generated/etcd_pb.ts'
import type { EtcdPlace } from './layout.ts'
import { bytesOf, ownKey, textOf } from './layout.ts'

export interface KeysDeps {
  readonly client: EtcdClient
  readonly place: EtcdPlace
  readonly permit: () => MessageInitShape<typeof CompareSchema>
}

export function keysIn({ client, place, permit }: KeysDeps, signal: AbortSignal) {
  const key = ownKey(place, 'keys')
  const readKeys = async (): Promise<string | undefined> => {
    const { answer } = await told(client.call(KV.method.range, { key }, signal))
    return answer.kvs[0] && textOf(answer.kvs[0].value)
  }
  return {
    readKeys,
    async keepKeys(text: string): Promise<string> {
      const absent: MessageInitShape<typeof CompareSchema> = {
        result: Compare_CompareResult.EQUAL,
        target: Compare_CompareTarget.CREATE,
        key,
        targetUnion: { case: 'createRevision', value: 0n },
      }
      const put = { request: { case: 'requestPut', value: { key, value: bytesOf(text) } } } as const
      await told(client.call(KV.method.txn, { compare: [absent, permit()], success: [put] }, signal))
      // Whoever put it there: this is what counts.
      const kept = await readKeys()
      if (kept === undefined)
        throw new StoreError('unavailable', `this server may not write to etcd at ${client.where}`)
      return kept
    },
  }
}

async function told<T>(call: Promise<T>): Promise<T> {
  return call.catch((error: unknown) => {
    throw error instanceof EtcdError ? new StoreError('unavailable', error.message, { cause: error }) : error
  })
}
