// How are claims and volumes written? A pair in the order of BND-1; a write that changes nothing is skipped; the first
// error stops. Every answer enters the fresh caches at once; a conflict is thrown and the key comes back.
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'
import type { KindMap } from '../../api/kinds.ts'
import type { Client } from '../../client/client.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import { objectKey } from '../../client/object-loop.ts'
import type { Transition } from '../shared/waiting.ts'
import { claimBound, claimPointed, volumeInPhase, volumeTaken, volumeUnbound } from '../shared/writes.ts'
import type { VolumePhase } from '../shared/writes.ts'

export interface Writer {
  /** The four writes. Answers how many were needed. */
  bind(pair: Pair, signal: AbortSignal): Promise<number>
  unbind(volume: PersistentVolume, signal: AbortSignal): Promise<PersistentVolume>
  /** Answers the volume as written, and whether the phase changed (BND-8). */
  setPhase(
    change: PhaseChange,
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

interface Pair {
  readonly claim: PersistentVolumeClaim
  readonly volume: PersistentVolume
}

interface PhaseChange {
  readonly volume: PersistentVolume
  readonly phase: VolumePhase
  readonly message?: string
}

interface Write {
  readonly what: string
  readonly subresource?: 'status'
}

export interface WriterDeps {
  readonly client: Client
  readonly claims: FreshCache<PersistentVolumeClaim>
  readonly volumes: FreshCache<PersistentVolume>
  onTransition?(transition: Transition): void
}

export function createWriter(deps: WriterDeps): Writer {
  const { client, claims, volumes } = deps
  const put =
    <K extends 'PersistentVolume' | 'PersistentVolumeClaim'>(kind: K, cache: FreshCache<KindMap[K]>) =>
    async (before: KindMap[K], after: KindMap[K], write: Write, signal: AbortSignal): Promise<KindMap[K]> => {
      if (after === before) return before
      const written = await client.update(kind, after, optionsOf(write), signal)
      cache.wrote(written)
      const { uid } = after.metadata
      deps.onTransition?.({ controller: 'binding', object: objectKey(kind, after), uid, what: write.what })
      return written
    }
  const putVolume = put('PersistentVolume', volumes)
  const putClaim = put('PersistentVolumeClaim', claims)
  return {
    putVolume,
    putClaim,
    async bind({ claim, volume }, signal) {
      const taken = await putVolume(volume, volumeTaken(volume, claim), { what: 'point to claim' }, signal)
      const status = { what: 'phase Bound', subresource: 'status' } as const
      const shown = await putVolume(taken, volumeInPhase(taken, 'Bound'), status, signal)
      const pointed = await putClaim(claim, claimPointed(claim, shown), { what: 'point to volume' }, signal)
      const bound = await putClaim(pointed, claimBound(pointed, shown), status, signal)
      return [taken !== volume, shown !== taken, pointed !== claim, bound !== pointed].filter(Boolean).length
    },
    async unbind(volume, signal) {
      const loose = await putVolume(volume, volumeUnbound(volume), { what: 'release from claim' }, signal)
      const status = { what: 'phase Available', subresource: 'status' } as const
      return putVolume(loose, volumeInPhase(loose, 'Available'), status, signal)
    },
    async setPhase({ volume, phase, message }, signal) {
      const write = { what: `phase ${phase}`, subresource: 'status' } as const
      const written = await putVolume(volume, volumeInPhase(volume, phase, message), write, signal)
      return { volume: written, changed: volume.status?.phase !== phase }
    },
  }
}

function optionsOf(write: Write) {
  return write.subresource === undefined ? {} : { subresource: write.subresource }
}
