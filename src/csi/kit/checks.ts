// What must a driver refuse before doing anything? Missing arguments, impossible capabilities, two operations on one
// volume at the same time.
import { CsiError } from '../codes.ts'
import type { StatusName } from '../codes.ts'
import { VolumeCapability_AccessMode_Mode as Mode } from '../generated/csi_pb.ts'
import type { CapacityRange, VolumeCapability } from '../generated/csi_pb.ts'

export function fail(status: StatusName, details: string): CsiError {
  return new CsiError(status, details)
}

export function requireText(value: string, name: string): void {
  if (value === '') throw fail('INVALID_ARGUMENT', `${name} missing in request`)
}

export function requireCapability(
  capability: VolumeCapability | undefined,
  allowedModes: ReadonlySet<number>,
): VolumeCapability {
  if (!capability) throw fail('INVALID_ARGUMENT', 'volume capability missing in request')
  const problem = capabilityProblem(capability, allowedModes)
  if (problem) throw fail('INVALID_ARGUMENT', problem)
  return capability
}

export function capabilityProblem(capability: VolumeCapability, allowedModes: ReadonlySet<number>): string | undefined {
  if (capability.accessType.case === undefined) return 'neither block nor mount access requested'
  const mode = capability.accessMode?.mode ?? 0
  if (!allowedModes.has(mode)) return `access mode ${mode} is not supported`
  return undefined
}

export const singleNodeModes: ReadonlySet<number> = new Set([
  Mode.SINGLE_NODE_WRITER,
  Mode.SINGLE_NODE_READER_ONLY,
  Mode.SINGLE_NODE_SINGLE_WRITER,
  Mode.SINGLE_NODE_MULTI_WRITER,
])

export const allModes: ReadonlySet<number> = new Set([
  ...singleNodeModes,
  Mode.MULTI_NODE_READER_ONLY,
  Mode.MULTI_NODE_SINGLE_WRITER,
  Mode.MULTI_NODE_MULTI_WRITER,
])

export function isMultiNode(capability: VolumeCapability): boolean {
  return !singleNodeModes.has(capability.accessMode?.mode ?? 0)
}

export interface SizeLimits {
  readonly minimumBytes: bigint
  readonly maximumBytes: bigint
}

/** The size to make: what is required, or the least a volume can be; never above the caller's limit or ours. */
export function chooseSize(range: CapacityRange | undefined, limits: SizeLimits): bigint {
  const required = range?.requiredBytes ?? 0n
  const limit = range?.limitBytes ?? 0n
  if (required < 0n || limit < 0n) throw fail('INVALID_ARGUMENT', 'sizes must not be negative')
  if (limit > 0n && required > limit) throw fail('INVALID_ARGUMENT', 'required bytes exceed limit bytes')
  if (required > limits.maximumBytes) {
    throw fail('OUT_OF_RANGE', `${sizeText(required)} requested, at most ${sizeText(limits.maximumBytes)} are possible`)
  }
  const size = required > limits.minimumBytes ? required : limits.minimumBytes
  if (limit > 0n && size > limit) throw fail('OUT_OF_RANGE', `the smallest volume has ${size} bytes`)
  return size
}

/** For people: one digit behind the point, never more than there is. */
export function sizeText(bytes: bigint): string {
  const units = ['Ki', 'Mi', 'Gi', 'Ti']
  if (bytes < 1024n) return `${bytes} bytes`
  let [tenths, unit] = [(bytes * 10n) / 1024n, 0]
  while (tenths >= 10_240n && unit < units.length - 1) [tenths, unit] = [tenths / 1024n, unit + 1]
  return `${tenths / 10n}${tenths % 10n === 0n ? '' : `.${tenths % 10n}`}${units[unit]}`
}

/** More callers than this are told to come back (WIRE-3: ABORTED); the others wait their turn. */
const longestQueue = 8

/** At most one call at work per key, across all services of the driver. */
export function createExclusive() {
  const queues = new Map<string, { last: Promise<unknown>; length: number }>()
  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const queue = queues.getOrInsertComputed(key, () => ({ last: Promise.resolve(), length: 0 }))
    if (queue.length >= longestQueue) throw fail('ABORTED', `an operation on ${key} is already in progress`)
    queue.length++
    const turn = queue.last
    const mine = Promise.withResolvers<void>()
    queue.last = mine.promise
    await turn
    try {
      return await work()
    } finally {
      queue.length--
      if (queue.length === 0) queues.delete(key)
      mine.resolve()
    }
  }
}

export type Exclusive = ReturnType<typeof createExclusive>

/** One after the other, in the order of asking: what is counted and then promised is not promised twice. */
export function createTurns() {
  let last: Promise<unknown> = Promise.resolve()
  return <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work)
    last = next.catch(() => {})
    return next
  }
}

/** One page of a list; tokens are positions. */
export function pageOf<T>(
  items: readonly T[],
  maxEntries: number,
  startingToken: string,
): { page: readonly T[]; nextToken: string } {
  if (maxEntries < 0) throw fail('INVALID_ARGUMENT', 'max_entries must not be negative')
  const start = startingToken === '' ? 0 : Number(startingToken)
  if (!Number.isInteger(start) || start < 0 || start > items.length) {
    throw fail('ABORTED', `starting token ${JSON.stringify(startingToken)} is not valid`)
  }
  const end = maxEntries === 0 ? items.length : Math.min(items.length, start + maxEntries)
  return { page: items.slice(start, end), nextToken: end < items.length ? String(end) : '' }
}
