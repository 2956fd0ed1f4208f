// Who makes etcd forget? Nobody by default: its history would grow until the quota is full. So we do, a little every minute:
// everything but the last minutes. Several servers agree by one key; whoever writes it first does the work.
import type { Clock } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Revision } from '../store.ts'
import type { EtcdClient } from './client.ts'
import { isEtcdFailure } from './errors.ts'
import { Compare_CompareResult, Compare_CompareTarget, KV } from './generated/etcd_pb.ts'
import type { EtcdPlace } from './layout.ts'
import { bytesOf, ownKey } from './layout.ts'

export interface CompactorDeps {
  readonly client: EtcdClient
  readonly place: EtcdPlace
  readonly clock: Clock
  readonly log: Log
  readonly revision: () => Revision
}

const everyMs = 60_000
/** So many rounds of history stay. */
const keptRounds = 5

export async function runCompactor(deps: CompactorDeps, signal: AbortSignal): Promise<void> {
  const { clock, log } = deps
  const seen: Revision[] = []
  let version = 0n
  while (!signal.aborted) {
    await clock.sleep(everyMs, signal).catch(() => {}) // ended by the signal
    if (signal.aborted) return
    seen.push(deps.revision())
    const revision = seen.length > keptRounds ? seen.shift() : undefined
    try {
      const turn = await takeTurn(deps, version, revision ?? 0, signal)
      version = turn.version
      if (turn.mine && revision !== undefined) await compact(deps, revision, signal)
    } catch (error) {
      if (!signal.aborted) log.warn('the history of etcd was not compacted', { error: errorText(error) })
    }
  }
}

/** Forgets everything up to the revision; somebody else may have done so. */
export async function compact(
  { client }: Pick<CompactorDeps, 'client'>,
  before: Revision,
  signal: AbortSignal,
): Promise<void> {
  await client.call(KV.method.compact, { revision: BigInt(before) }, signal).catch((error: unknown) => {
    if (!isEtcdFailure(error, 'compacted')) throw error
  })
}

/** It is ours when nobody has taken one since we last looked. */
async function takeTurn(
  { client, place }: CompactorDeps,
  version: bigint,
  revision: Revision,
  signal: AbortSignal,
): Promise<{ readonly mine: boolean; readonly version: bigint }> {
  const key = ownKey(place, 'compaction')
  const { answer } = await client.call(
    KV.method.txn,
    {
      compare: [
        {
          result: Compare_CompareResult.EQUAL,
          target: Compare_CompareTarget.VERSION,
          key,
          targetUnion: { case: 'version', value: version },
        },
      ],
      success: [{ request: { case: 'requestPut', value: { key, value: bytesOf(JSON.stringify({ revision })) } } }],
      failure: [{ request: { case: 'requestRange', value: { key } } }],
    },
    signal,
  )
  if (answer.succeeded) return { mine: true, version: version + 1n }
  const response = answer.responses[0]?.response
  const found = response?.case === 'responseRange' ? response.value.kvs[0] : undefined
  return { mine: false, version: found?.version ?? 0n }
}
