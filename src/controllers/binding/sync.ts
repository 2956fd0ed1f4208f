// What does one sync of a claim or a volume do? Gather the facts, plan, and hand the plan to carry-out.
//
// 1. Between reading the caches, planning and taking the hold on a volume there is no await.
// 2. A repair that fails stops the sync (CLM-1, VOL-1).
import type { PersistentVolumeClaim } from '../../api/generated/types.ts'
import { keyOf, refKey } from '../../api/meta.ts'
import { chooseDefaultClass, classOf } from '../../api/storage-class.ts'
import type { Client } from '../../client/client.ts'
import { keyText } from '../../client/object-loop.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import { findVolume } from '../shared/match.ts'
import { claimMigration, volumeMigration } from '../shared/migration.ts'
import { claimKeyOf } from '../shared/volume-index.ts'
import type { Waiting } from '../shared/waiting.ts'
import type { CarryOut } from './carry-out.ts'
import { planClaim } from './claim-plan.ts'
import type { ClaimFacts } from './claim-plan.ts'
import { readClaim } from './reclaim.ts'
import type { BindingKey, BindingState } from './state.ts'
import type { VolumeHolds } from './volume-holds.ts'
import { planVolume } from './volume-plan.ts'
import type { Writer } from './writer.ts'

export interface SyncDeps {
  readonly client: Client
  readonly plugins: Registry<ClusterPlugin>
  readonly state: BindingState
  readonly holds: VolumeHolds
  readonly writer: Writer
  readonly carryOut: CarryOut
  readonly provisioningEnabled: boolean
}

/** Answers what the object waits for. */
export function sync(deps: SyncDeps, key: BindingKey, signal: AbortSignal): Promise<readonly Waiting[]> {
  return key.kind === 'PersistentVolumeClaim' ? syncClaim(deps, key, signal) : syncVolume(deps, key, signal)
}

async function syncClaim(deps: SyncDeps, key: BindingKey, signal: AbortSignal): Promise<readonly Waiting[]> {
  const cached = deps.state.claims.get(refKey(key))
  if (cached === undefined) return []
  const repair = { what: 'migration annotation' }
  const claim = await deps.writer.putClaim(cached, claimMigration(cached), repair, signal)
  return deps.carryOut.claim({ key, claim, beforeRepair: cached }, planClaim(factsOf(deps, key, claim)), signal)
}

async function syncVolume(deps: SyncDeps, key: BindingKey, signal: AbortSignal): Promise<readonly Waiting[]> {
  const { client, state, holds, writer, carryOut } = deps
  const { name } = key
  if (holds.holder(name) !== undefined) {
    holds.waitFor(name, key)
    return [{ reason: 'volumeBusy' }]
  }
  const cached = state.volumes.get(name)
  if (cached === undefined) return []
  using _hold = holds.hold(name, key)
  const repair = { what: 'migration annotation and finalizers' }
  const volume = await writer.putVolume(cached, volumeMigration(cached), repair, signal)
  const claim = claimKeyOf(volume)
  const known = claim === undefined ? undefined : state.claims.get(claim)
  let plan = planVolume({ volume, claim: known, live: false })
  if (plan.action.kind === 'askServer') {
    const live = await readClaim(client, volume.spec.claimRef ?? {}, signal)
    plan = planVolume({ volume, claim: live, live: true })
  }
  return await carryOut.volume({ key, volume, claim: known }, plan, signal)
}

function factsOf(deps: SyncDeps, key: BindingKey, claim: PersistentVolumeClaim): ClaimFacts {
  const { holds, plugins } = deps
  const { index, classes, volumes, usersOf } = deps.state
  const own = keyText(key)
  return {
    claim,
    storageClass: classes.get(classOf(claim)),
    namedVolume: claim.spec.volumeName ? volumes.get(claim.spec.volumeName) : undefined,
    get defaultClass() {
      return chooseDefaultClass(classes.items.values())
    },
    provisioningEnabled: deps.provisioningEnabled,
    findVolume: (delayed) =>
      findVolume(index, {
        claim,
        delayed,
        // A volume that another claim is taking counts as taken. One that is only being synced is waited for.
        excluded(name) {
          const holder = holds.holder(name)
          return holder?.kind === 'PersistentVolumeClaim' && keyText(holder) !== own
        },
      }),
    isBusy: (name) => holds.holder(name) !== undefined,
    unscheduledPods: () => usersOf(keyOf(claim)).filter((pod) => !pod.spec?.nodeName),
    canProvision: (name) => plugins.all().some((each) => each.name === name && each.plugin.provision !== undefined),
  }
}
