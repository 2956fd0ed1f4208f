// How does a decision become writes? In the order of BND-1, each skipped when nothing changes, the first error stops.
// Every answer enters the fresh caches at once; a conflict is simply thrown and the key comes back.
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/types.ts'
import { keyOf } from '../../api/meta.ts'
import type { Client } from '../../client/client.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import type { Transition } from './waiting.ts'
import { claimBound, claimPointed, volumeInPhase, volumeTaken, volumeUnbound } from './writes.ts'
import type { VolumePhase } from './writes.ts'

export interface CarryOut {
  /** The four writes. Answers how many were needed. */
  bind(pair: Pair, rule: string, signal: AbortSignal): Promise<number>
  unbind(volume: PersistentVolume, rule: string, signal: AbortSignal): Promise<PersistentVolume>
  /** Answers the volume as written, and whether the phase changed (BND-8). */
  setPhase(
    change: PhaseChange,
    rule: string,
    signal: AbortSignal,
  ): Promise<{ readonly volume: PersistentVolume; readonly changed: boolean }>
  putVolume(
    before: PersistentVolume,
    after: PersistentVolume,
    write: Write,
    signal: AbortSignal,
  ): Promise<PersistentVolume>
  putClaim(
    before: PersistentVolumeClaim,
    after: PersistentVolumeClaim,
    write: Write,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim>
}

export interface Pair {
  readonly claim: PersistentVolumeClaim
  readonly volume: PersistentVolume
}

export interface PhaseChange {
  readonly volume: PersistentVolume
  readonly phase: VolumePhase
  readonly message?: string
}

export interface Write {
  readonly rule: string
  readonly what: string
  readonly subresource?: 'status'
}

export interface CarryOutDeps {
  readonly client: Client
  readonly claims: FreshCache<PersistentVolumeClaim>
  readonly volumes: FreshCache<PersistentVolume>
  onTransition?(transition: Transition): void
}

export function createCarryOut(deps: CarryOutDeps): CarryOut {
  const { client, claims, volumes } = deps
  const told = (object: string, { rule, what }: Write) =>
    deps.onTransition?.({ controller: 'binding', object, rule, what })

  const putVolume: CarryOut['putVolume'] = async (before, after, write, signal) => {
    if (after === before) return before
    const written = await client.update('PersistentVolume', after, optionsOf(write), signal)
    volumes.wrote(written)
    told(`PersistentVolume/${after.metadata.name}`, write)
    return written
  }
  const putClaim: CarryOut['putClaim'] = async (before, after, write, signal) => {
    if (after === before) return before
    const written = await client.update('PersistentVolumeClaim', after, optionsOf(write), signal)
    claims.wrote(written)
    told(`PersistentVolumeClaim/${keyOf(after)}`, write)
    return written
  }
  return {
    putVolume,
    putClaim,
    async bind({ claim, volume }, rule, signal) {
      const taken = await putVolume(volume, volumeTaken(volume, claim), { rule, what: 'point to claim' }, signal)
      const status = { rule, what: 'phase Bound', subresource: 'status' } as const
      const shown = await putVolume(taken, volumeInPhase(taken, 'Bound'), status, signal)
      const pointed = await putClaim(claim, claimPointed(claim, shown), { rule, what: 'point to volume' }, signal)
      const bound = await putClaim(pointed, claimBound(pointed, shown), status, signal)
      return [taken !== volume, shown !== taken, pointed !== claim, bound !== pointed].filter(Boolean).length
    },
    async unbind(volume, rule, signal) {
      const loose = await putVolume(volume, volumeUnbound(volume), { rule, what: 'release from claim' }, signal)
      const status = { rule, what: 'phase Available', subresource: 'status' } as const
      return putVolume(loose, volumeInPhase(loose, 'Available'), status, signal)
    },
    async setPhase({ volume, phase, message }, rule, signal) {
      const write = { rule, what: `phase ${phase}`, subresource: 'status' } as const
      const written = await putVolume(volume, volumeInPhase(volume, phase, message), write, signal)
      return { volume: written, changed: volume.status?.phase !== phase }
    },
  }
}

function optionsOf(write: Write) {
  return write.subresource === undefined ? {} : { subresource: write.subresource }
}
