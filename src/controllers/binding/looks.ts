// What does one look at a claim or a volume do? Gather facts, plan, take the hold, carry out; answer why it waits.
import type { PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../../api/types.ts'
import type { Client } from '../../client/client.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import type { Cache } from '../../client/informer.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Pending } from '../../loop/pending.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { CarryOut } from './carry-out.ts'
import { planClaim } from './claim-plan.ts'
import type { ClaimPlan } from './claim-plan.ts'
import type { BindingOptions } from './controller.ts'
import { chooseDefaultClass, classOf } from './default-class.ts'
import { findVolume } from './match.ts'
import type { BindingMetrics } from './metrics.ts'
import { claimMigration, volumeMigration } from './migration.ts'
import { askFor, provision } from './provision.ts'
import { readClaim } from './reclaim.ts'
import type { Reclaim } from './reclaim.ts'
import type { Teller } from './teller.ts'
import type { VolumeHolds } from './volume-holds.ts'
import { claimKeyOf } from './volume-index.ts'
import type { VolumeIndex } from './volume-index.ts'
import { isLetGo, planVolume } from './volume-plan.ts'
import type { Waiting } from './waiting.ts'
import { claimLost, claimPending } from './writes.ts'

export interface LooksDeps {
  readonly client: Client
  readonly clock: Clock
  readonly plugins: Registry<ClusterPlugin>
  readonly classes: Cache<StorageClass>
  readonly claims: FreshCache<PersistentVolumeClaim>
  readonly volumes: FreshCache<PersistentVolume>
  readonly index: VolumeIndex
  readonly pending: Pending
  readonly teller: Teller
  readonly metrics: BindingMetrics
  readonly carryOut: CarryOut
  readonly reclaim: Reclaim
  readonly holds: VolumeHolds
  readonly options: BindingOptions
  usersOf(claimKey: string): readonly Pod[]
  wake(key: string): void
}

export interface Looks extends AsyncDisposable {
  claim(key: string, signal: AbortSignal): Promise<readonly Waiting[]>
  volume(name: string, signal: AbortSignal): Promise<readonly Waiting[]>
  /** An operation under this name is over: whose was it, and did that key ask for it again meanwhile? */
  operationOver(whole: string): { readonly key: string; readonly askedAgain: boolean } | undefined
}

export function createLooks(deps: LooksDeps): Looks {
  const { claims, volumes, holds, carryOut, teller } = deps
  // Slow work outlives the look that starts it; it stops with the controller, not with the look.
  const slow = new AbortController()
  const operations = new Map<string, { readonly key: string; readonly askedAgain: boolean }>()
  // A look that finds its operation running has seen something new that the operation may have missed.
  const expect = (whole: string, key: string) =>
    void operations.set(whole, { key, askedAgain: deps.pending.isPending([whole]) })

  const lookAtClaim = async (key: string, signal: AbortSignal): Promise<readonly Waiting[]> => {
    const cached = claims.get(key)
    if (cached === undefined) return []
    // CLM-1: a failing repair stops here.
    const repair = { rule: 'MIG-1', what: 'migration annotation' }
    const claim = await carryOut.putClaim(cached, claimMigration(cached), repair, signal)
    const own = `PersistentVolumeClaim/${key}`
    const plan = planClaim(factsOf(deps, claim, own))
    const { action } = plan
    if (action.kind === 'waitForVolume') {
      holds.waitFor(action.volume.metadata.name, own)
      return plan.waiting
    }
    if (action.kind === 'bind') {
      using _hold = holds.hold(action.volume.metadata.name, own)
      await carryOut.bind({ claim, volume: action.volume }, plan.rule, signal)
      deps.metrics.claimBound(claim)
      return []
    }
    // The recorded outcome of 1.35: asking right after a repair still carries the version from before it, so the first
    // attempt ends in a conflict that users see as an event. Kept on purpose (conformance 158); the retry succeeds.
    const judged = action.kind === 'askProvisioner' ? cached : claim
    return followClaimPlan(deps, judged, plan, signal, (run) => {
      const whole = `claim ${claim.metadata.uid}`
      expect(whole, own)
      return deps.pending.start([whole], 'volume_provision', () => run(slow.signal))
    })
  }

  const lookAtVolume = async (name: string, signal: AbortSignal): Promise<readonly Waiting[]> => {
    const own = `PersistentVolume/${name}`
    if (holds.holder(name) !== undefined) {
      holds.waitFor(name, own)
      return [{ reason: 'volumeBusy', rule: 'W-17' }]
    }
    const cached = volumes.get(name)
    if (cached === undefined) return []
    using _hold = holds.hold(name, own)
    // VOL-1
    const repair = { rule: 'MIG-3', what: 'migration annotation and finalizers' }
    const volume = await carryOut.putVolume(cached, volumeMigration(cached), repair, signal)
    const claimKey = claimKeyOf(volume)
    const known = claimKey === undefined ? undefined : claims.get(claimKey)
    let plan = planVolume({ volume, claim: known, live: false })
    if (plan.action.kind === 'askServer') {
      const live = await readClaim(deps.client, volume.spec.claimRef ?? {}, signal)
      plan = planVolume({ volume, claim: live, live: true })
    }
    for (const { on, event } of plan.events) {
      if (on === 'volume') teller.tell('PersistentVolume', volume, event)
      else if (known !== undefined) teller.tell('PersistentVolumeClaim', known, event)
    }
    switch (plan.action.kind) {
      case 'leave':
      case 'askServer':
        return plan.waiting
      case 'wakeClaim':
        // T-25: nothing is written here; the claim's own look binds the pair as soon as the hold is gone.
        if (claimKey !== undefined) deps.wake(`PersistentVolumeClaim/${claimKey}`)
        return plan.waiting
      case 'markAvailable':
        await carryOut.setPhase({ volume, phase: 'Available' }, plan.rule, signal)
        return plan.waiting
      case 'markBound':
        await carryOut.setPhase({ volume, phase: 'Bound' }, plan.rule, signal)
        return plan.waiting
      case 'unbind':
        await carryOut.unbind(volume, plan.rule, signal)
        return plan.waiting
      case 'release': {
        const released = isLetGo(volume)
          ? volume
          : (await carryOut.setPhase({ volume, phase: 'Released' }, plan.rule, signal)).volume
        expect(`volume ${volume.metadata.uid}`, own)
        return deps.reclaim.look(released, slow.signal)
      }
      default:
        return plan.action satisfies never
    }
  }
  return {
    claim: lookAtClaim,
    volume: lookAtVolume,
    operationOver(whole) {
      const expected = operations.get(whole)
      operations.delete(whole)
      return expected
    },
    async [Symbol.asyncDispose]() {
      slow.abort(new Error('binding is stopping'))
      await deps.pending.idle()
    },
  }
}

function factsOf(deps: LooksDeps, claim: PersistentVolumeClaim, own: string): Parameters<typeof planClaim>[0] {
  const { holds, index, classes, volumes, plugins, options } = deps
  const claimOf = (name: string) => holds.holder(name)
  return {
    claim,
    storageClass: classes.get(classOf(claim)),
    namedVolume: claim.spec.volumeName ? volumes.get(claim.spec.volumeName) : undefined,
    get defaultClass() {
      return chooseDefaultClass(classes.items.values())
    },
    provisioningEnabled: options.dynamicProvisioning ?? true,
    findVolume: (delayed) =>
      findVolume(index, {
        claim,
        delayed,
        // In flight for another claim: as good as taken. (A volume that is only being looked at is waited for.)
        excluded: (name) => claimOf(name)?.startsWith('PersistentVolumeClaim/') === true && claimOf(name) !== own,
      }),
    isBusy: (name) => claimOf(name) !== undefined,
    unscheduledPods: () => deps.usersOf(own.slice(own.indexOf('/') + 1)).filter((pod) => !pod.spec?.nodeName),
    canProvision: (name) => plugins.all().some((each) => each.name === name && each.plugin.provision !== undefined),
  }
}

type StartSlow = (run: (signal: AbortSignal) => Promise<void>) => ReturnType<Pending['start']>

async function followClaimPlan(
  deps: LooksDeps,
  claim: PersistentVolumeClaim,
  plan: ClaimPlan,
  signal: AbortSignal,
  startSlow: StartSlow,
): Promise<readonly Waiting[]> {
  const { carryOut, teller, metrics } = deps
  const { rule, action, event, waiting } = plan
  const tell = () => {
    if (event !== undefined) teller.tell('PersistentVolumeClaim', claim, event)
  }
  switch (action.kind) {
    case 'markPending':
      tell()
      await carryOut.putClaim(
        claim,
        claimPending(claim),
        { rule, what: 'phase Pending', subresource: 'status' },
        signal,
      )
      return waiting
    case 'markLost': {
      const write = { rule, what: 'phase Lost', subresource: 'status' } as const
      await carryOut.putClaim(claim, claimLost(claim), write, signal)
      if (claim.status?.phase !== 'Lost') tell() // CLM-21
      return waiting
    }
    case 'assignClass':
      metrics.retroactiveClass('tried')
      try {
        const spec = { ...claim.spec, storageClassName: action.className }
        await carryOut.putClaim(claim, { ...claim, spec }, { rule, what: `class ${action.className}` }, signal)
      } catch (error) {
        metrics.retroactiveClass('failed')
        throw error
      }
      // CLM-7: what follows is decided on the claim as it is now.
      deps.wake(`PersistentVolumeClaim/${claim.metadata.namespace}/${claim.metadata.name}`)
      return waiting
    case 'askProvisioner':
      metrics.provisionStarted(claim, action.provisioner)
      await askFor(carryOut, teller, claim, action.provisioner, signal)
      tell()
      return waiting
    case 'provision': {
      const { storageClass, plugin } = action
      const begun = startSlow((until) => provision(deps, { claim, storageClass, plugin }, until))
      if (begun.kind !== 'backingOff') return waiting
      return [{ reason: 'provisioningFailed', rule: 'CTL-9', message: begun.error, until: begun.until }]
    }
    case 'fail':
      tell()
      throw new Error(action.message)
    case 'leave':
      tell()
      return waiting
    case 'bind':
    case 'waitForVolume':
      throw new Error(`${action.kind} is carried out under the volume's hold`)
    default:
      return action satisfies never
  }
}
