// Whose objects lie below the prefix, and may they be used? Ours where our mark says so; nobody's where there is none. Anything
// else belongs to another program, and is only taken over on purpose. While objects are moved in, and after they were moved
// away, the mark keeps servers out.
import type { MessageInitShape } from '@bufbuild/protobuf'
import { StoreError } from '../store.ts'
import type { EtcdClient } from './client.ts'
import type { CompareSchema, KeyValue } from './generated/etcd_pb.ts'
import { Compare_CompareResult, Compare_CompareTarget, KV } from './generated/etcd_pb.ts'
import type { EtcdPlace } from './layout.ts'
import { bytesOf, ownKey, ownKeyNames, textOf, watchedRange } from './layout.ts'

const format = 1
/** Of a prefix that no server may use now; versions that do not know moves refuse it, too. */
const closedFormat = 2

/** What is done with the prefix. */
export type PrefixUse =
  /** Take over objects that another program keeps there? */
  | { readonly kind: 'serve'; readonly adopt: boolean }
  | { readonly kind: 'moveIn'; readonly move: MoveIn }
  /** Where to, in words. A move that was interrupted may go on to the same place only. */
  | { readonly kind: 'moveOut'; readonly to: string }

interface MoveIn {
  /** The cluster whose objects come, */
  readonly cluster: string
  /** in which epoch they begin here, */
  readonly epoch: number
  /** and from where, in words. */
  readonly from: string
}

export type PrefixMark =
  | { readonly kind: 'open' }
  | ({ readonly kind: 'movingIn' } & MoveIn)
  | { readonly kind: 'movedOut'; readonly to: string; readonly epoch: number }

type FoundMark =
  | PrefixMark
  | { readonly kind: 'none' }
  | { readonly kind: 'unreadable' }
  | { readonly kind: 'newer'; readonly format: number }

export interface ClaimDeps {
  readonly client: EtcdClient
  readonly place: EtcdPlace
  readonly use: PrefixUse
}

/** Throws `unavailable` where the prefix cannot be used so. Marks it otherwise, and answers the mark. */
export async function claimPrefix(deps: ClaimDeps, signal: AbortSignal): Promise<PrefixMark> {
  const { client, place, use } = deps
  const key = ownKey(place, 'format')
  const kv = (await client.call(KV.method.range, { key }, signal)).answer.kvs[0]
  const mark = kv === undefined ? ({ kind: 'none' } as const) : readMark(kv)
  const claim = decideClaim(mark, use, await keysBelow(deps, mark, signal), { prefix: place.prefix, at: client.where })
  if (claim.kind === 'refuse') throw new StoreError('unavailable', claim.sentence)
  if (claim.kind === 'use') return claim.mark
  const written = await putMark(client, place, claim.mark, unchangedSince(key, kv), signal)
  // Two servers may begin at the same time: both write the same. Anything else is looked at again.
  return written ? claim.mark : claimPrefix(deps, signal)
}

/** Another mark from now on, if the comparison holds. */
export async function putMark(
  client: EtcdClient,
  place: EtcdPlace,
  mark: PrefixMark,
  compare: MessageInitShape<typeof CompareSchema>,
  signal: AbortSignal,
): Promise<boolean> {
  const value = bytesOf(markText(mark))
  const key = ownKey(place, 'format')
  const { answer } = await client.call(
    KV.method.txn,
    { compare: [compare], success: [{ request: { case: 'requestPut', value: { key, value } } }] },
    signal,
  )
  return answer.succeeded
}

interface Where {
  readonly prefix: string
  readonly at: string
}

interface Found {
  readonly count: number
  readonly first: string
}

type Claim =
  | { readonly kind: 'use' | 'write'; readonly mark: PrefixMark }
  | { readonly kind: 'refuse'; readonly sentence: string }

/** Pure: from what was found below the prefix, to use it, to mark it first, or to refuse with what to do. */
export function decideClaim(mark: FoundMark, use: PrefixUse, found: Found, { prefix, at }: Where): Claim {
  const here = `${prefix} in etcd at ${at}`
  const refuse = (sentence: string): Claim => ({ kind: 'refuse', sentence })
  switch (mark.kind) {
    case 'unreadable':
      return refuse(`${here} has a mark that cannot be read: choose another --etcd-prefix`)
    case 'newer':
      return refuse(
        `${here} was written by a newer version of Hawser (format ${mark.format}, this one reads up to ${closedFormat}): start the newer version`,
      )
    case 'movingIn':
      if (use.kind === 'moveIn' && use.move.cluster === mark.cluster) return { kind: 'use', mark }
      return refuse(
        `${here} holds a part of the objects of ${mark.from} (cluster ${mark.cluster}): their move is not finished. ` +
          `Give the command that moves them again, or empty the prefix: ${emptying(prefix)}`,
      )
    case 'movedOut':
      if (use.kind === 'moveOut' && use.to === mark.to) return { kind: 'use', mark }
      return refuse(
        `the objects of ${here} were moved to ${mark.to}: start Hawser there, or empty the prefix: ${emptying(prefix)}`,
      )
    case 'open':
    case 'none':
      return claimFree(mark, use, found, { prefix, at })
    default:
      return mark satisfies never
  }
}

function claimFree(
  mark: { readonly kind: 'open' } | { readonly kind: 'none' },
  use: PrefixUse,
  { count, first }: Found,
  { prefix, at }: Where,
): Claim {
  const here = `${prefix} in etcd at ${at}`
  const refuse = (sentence: string): Claim => ({ kind: 'refuse', sentence })
  const open = { kind: 'open' } as const
  if (use.kind === 'moveIn') {
    if (count === 0) return { kind: 'write', mark: { ...use.move, kind: 'movingIn' } }
    return refuse(
      `${here} is not empty (${count} keys, the first is ${first}): nothing is ever overwritten. ` +
        `Choose another --etcd-prefix, or empty this one: ${emptying(prefix)}`,
    )
  }
  if (mark.kind === 'open') return { kind: 'use', mark: open }
  if (use.kind === 'moveOut') return refuse(`${here} holds no objects of Hawser: correct --etcd-prefix or the address`)
  if (count === 0 || use.adopt) return { kind: 'write', mark: open }
  return refuse(
    `etcd at ${at} holds ${count} keys of another program below ${prefix}/ (${first}): choose another --etcd-prefix, ` +
      'or take them over with --etcd-adopt once that program (kube-apiserver) has stopped',
  )
}

/** Our own keys and the objects lie side by side. */
function emptying(prefix: string): string {
  return `etcdctl del ${prefix}.hawser/ ${prefix}0`
}

/** Keys beside those that the store itself needs. Counted where it matters only. */
async function keysBelow({ client, place, use }: ClaimDeps, mark: FoundMark, signal: AbortSignal): Promise<Found> {
  if (mark.kind !== 'none' && !(mark.kind === 'open' && use.kind === 'moveIn')) return { count: 0, first: '' }
  const own = new Set(ownKeyNames.map((name) => textOf(ownKey(place, name))))
  const limit = BigInt(own.size + 1)
  const { answer } = await client.call(KV.method.range, { ...watchedRange(place), limit, keysOnly: true }, signal)
  const names = answer.kvs.map((kv) => textOf(kv.key))
  const first = names.find((name) => !own.has(name))
  if (first === undefined) return { count: 0, first: '' }
  return { count: Number(answer.count) - names.filter((name) => own.has(name)).length, first }
}

function unchangedSince(key: Uint8Array, kv: KeyValue | undefined): MessageInitShape<typeof CompareSchema> {
  return {
    result: Compare_CompareResult.EQUAL,
    target: Compare_CompareTarget.MOD,
    key,
    targetUnion: { case: 'modRevision', value: kv?.modRevision ?? 0n },
  }
}

function markText(mark: PrefixMark): string {
  if (mark.kind === 'open') return JSON.stringify({ program: 'hawser', format })
  const { kind, ...rest } = mark
  return JSON.stringify({ program: 'hawser', format: closedFormat, [kind]: rest })
}

function readMark({ value }: KeyValue): FoundMark {
  let fields: Readonly<Record<string, unknown>>
  try {
    fields = JSON.parse(textOf(value)) as typeof fields // checked below
  } catch {
    return { kind: 'unreadable' }
  }
  if (fields?.['program'] !== 'hawser' || typeof fields['format'] !== 'number') return { kind: 'unreadable' }
  if (fields['format'] > closedFormat) return { kind: 'newer', format: fields['format'] }
  if (fields['format'] === format) return { kind: 'open' }
  return readMovingIn(fields['movingIn']) ?? readMovedOut(fields['movedOut']) ?? { kind: 'unreadable' }
}

function readMovingIn(value: unknown): PrefixMark | undefined {
  const { cluster, epoch, from } = (value ?? {}) as Partial<MoveIn> // checked here
  if (typeof cluster !== 'string' || typeof epoch !== 'number' || typeof from !== 'string') return undefined
  return { kind: 'movingIn', cluster, epoch, from }
}

function readMovedOut(value: unknown): PrefixMark | undefined {
  const { to, epoch } = (value ?? {}) as { readonly to?: unknown; readonly epoch?: unknown } // checked here
  return typeof to === 'string' && typeof epoch === 'number' ? { kind: 'movedOut', to, epoch } : undefined
}
