// Who brings claims and volumes together? One key loop over both; events wake keys, plans decide, carry-out writes.
//
// 1. A claim's or volume's key is looked at by one worker at a time; different keys run side by side.
// 2. A volume is written for one pair at a time (volume-holds.ts), and decisions see our own writes (fresh-cache.ts).
// 3. Between reading the caches, planning and taking the hold there is no await.
// 4. Own writes wake nobody but those whom they concern: the rest of the plan is already being carried out.
import { isDeleting, keyOf } from '../../api/meta.ts'
import type { PersistentVolume, StorageClass } from '../../api/types.ts'
import { createFreshCache } from '../../client/fresh-cache.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import { createPending } from '../../loop/pending.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import { specOfPersistentVolume } from '../../volume/spec.ts'
import type { Controller, ControllerDeps } from '../controller.ts'
import { claimKeysOf, isTerminated } from '../pod-claims.ts'
import { createCarryOut } from './carry-out.ts'
import { createLooks } from './looks.ts'
import { isDefaultClass } from './default-class.ts'
import { createBindingMetrics } from './metrics.ts'
import { createPatience } from './patience.ts'
import { createReclaim } from './reclaim.ts'
import { createTeller } from './teller.ts'
import { createVolumeHolds } from './volume-holds.ts'
import { claimKeyOf, createVolumeIndex, isFree } from './volume-index.ts'
import { createWaitingClaims } from './waiting-claims.ts'
import type { Waiting } from './waiting.ts'
import { createWaitingList } from './waiting.ts'
import { volumeInPhase } from './writes.ts'

export interface BindingOptions {
  /** CTL-10 */
  readonly dynamicProvisioning?: boolean
  readonly hostPathProvisioner?: boolean
  readonly workers?: number
  /** A slow look at everything, as a safety net (W-1). Zero switches it off. */
  readonly auditMs?: number
}

export interface BindingDeps extends ControllerDeps {
  readonly plugins: Registry<ClusterPlugin>
  readonly options?: BindingOptions
}

export const claimKey = (key: string) => `PersistentVolumeClaim/${key}`
export const volumeKey = (name: string) => `PersistentVolume/${name}`

/** Starts at once; events wait until both caches are complete (CTL-2). */
export function createBindingController(deps: BindingDeps): Controller {
  const { client, informers, clock, plugins } = deps
  const options = deps.options ?? {}
  const stack = new AsyncDisposableStack()
  const classes = informers.of('StorageClass')
  const pods = informers.of('Pod')
  const podsByClaim = pods.index(claimKeysOf)
  const claims = stack.use(createFreshCache(informers.of('PersistentVolumeClaim')))
  const volumes = stack.use(createFreshCache(informers.of('PersistentVolume')))
  const claimsByVolume = claims.index((claim) => (claim.spec.volumeName ? [claim.spec.volumeName] : []))
  const index = createVolumeIndex()
  const unbound = createWaitingClaims()
  const patience = createPatience(clock)
  const waiting = createWaitingList((key, list) => deps.onWaiting?.('binding', key, list))
  const pending = createPending(clock)
  /** Keys that are being looked at, and what is to be said of them if their operation ended meanwhile. */
  const looking = new Map<string, readonly Waiting[] | undefined>()
  const teller = createTeller(deps.recorder('persistentvolume-controller'), clock)
  const metrics = createBindingMetrics(deps.metrics, clock, {
    claims,
    volumes,
    pluginOf: (volume) => pluginLabel(plugins, volume),
  })
  const carryOut = createCarryOut({
    client,
    claims,
    volumes,
    ...(deps.onTransition === undefined ? {} : { onTransition: deps.onTransition }),
  })
  const usersOf = (key: string) => Array.from(podsByClaim.get(key)).filter((pod) => !isTerminated(pod))
  const reclaim = createReclaim({
    client,
    clock,
    plugins,
    volumes,
    claims,
    carryOut,
    teller,
    pending,
    metrics,
    usersOf,
  })
  const offers = new Map<string, Set<string>>()
  let ready = false

  const looks = createLooks({
    ...{
      client,
      clock,
      plugins,
      classes,
      claims,
      volumes,
      index,
      pending,
      teller,
      metrics,
      carryOut,
      usersOf,
      reclaim,
    },
    options,
    holds: createVolumeHolds(
      (key) => loop.wake(key),
      (name) => offer(name),
    ),
    wake: (key) => loop.wake(key),
  })
  const loop = createKeyLoop<string>({
    name: 'binding',
    clock,
    // In process a look costs microseconds and waits for the store's group commit: many at once make large commits.
    workers: options.workers ?? 128,
    async look(key, signal) {
      const isClaim = key.startsWith('PersistentVolumeClaim/')
      const name = key.slice(key.indexOf('/') + 1)
      try {
        looking.set(key, undefined)
        const answer = await (isClaim ? looks.claim(name, signal) : looks.volume(name, signal))
        const isGone = (isClaim ? claims : volumes).get(name) === undefined
        // W-24: what left meanwhile waits for nothing. An operation that is over before its look knows better.
        const reasons = isGone ? [] : (looking.get(key) ?? answer)
        waiting.set(key, reasons)
        // An operation that backs off named its time; a look in between must not make us forget it.
        const times = reasons.flatMap(({ until }) => until ?? [])
        return times.length === 0 ? {} : { again: Math.min(...times) }
      } finally {
        looking.delete(key)
        if (isClaim) settleOffers(name)
      }
    },
    onError(key, error, until) {
      const message = error instanceof Error ? error.message : String(error)
      waiting.set(key, [{ reason: 'retrying', rule: 'CTL-7', message, until }])
      deps.log.debug('binding will be tried again', { key, error: message })
    },
  })
  const wakeClaim = (key: string) => {
    if (ready && claims.get(key) !== undefined) loop.wake(claimKey(key))
  }
  const wakeVolume = (name: string) => {
    if (ready && volumes.get(name) !== undefined) loop.wake(volumeKey(name))
  }
  /** It was made for a claim, or some claim would take it if it were available. */
  const isWanted = (volume: PersistentVolume) =>
    volume.spec.claimRef !== undefined || unbound.bestFor(volumeInPhase(volume, 'Available'), () => false) !== undefined
  /** A free volume is offered to the oldest waiting claim that fits, and to nobody else until that one has looked. */
  const offer = (name: string) => {
    const volume = volumes.get(name)
    if (!ready || volume === undefined || !isFree(volume)) return
    const isTaken = (key: string) => offers.has(key) || loop.failing.has(claimKey(key))
    const best = unbound.bestFor(volume, isTaken)
    if (best === undefined) return
    offers.set(best, new Set([name]))
    unbound.step(best, 'out')
    loop.wake(claimKey(best))
  }
  const settleOffers = (key: string) => {
    const offered = offers.get(key)
    offers.delete(key)
    // The claim took another volume, or is gone: the next in line may have this one.
    if (unbound.has(key)) unbound.step(key, 'back')
    else for (const name of offered ?? []) offer(name)
  }

  stack.use(
    volumes.subscribe(({ key: name, object, previous }) => {
      if (previous !== undefined) patience.forget(previous)
      if (object === undefined) {
        index.remove(name)
        metrics.volumeGone(previous!)
        teller.forget(previous!.metadata.uid)
        pending.forget(`volume ${previous!.metadata.uid}`)
        waiting.set(volumeKey(name), [])
        loop.forget(volumeKey(name))
      } else index.put(object)
      const partner = object === undefined ? undefined : claimKeyOf(object)
      // Whoever names this volume hears of it, but the claim for which we are writing it knows already. A volume that
      // begins to go is no news: it is gone in a moment, or held, and either way nothing can be done with it.
      const isLeaving = object !== undefined && previous !== undefined && isDeleting(object) && !isDeleting(previous)
      for (const claim of isLeaving ? [] : claimsByVolume.get(name))
        if (!volumes.isOwnWrite || keyOf(claim) !== partner) wakeClaim(keyOf(claim))
      if (!volumes.isOwnWrite) {
        const isNew = ready && object !== undefined && previous === undefined
        const until = isNew ? patience.until(object, () => isWanted(object)) : undefined
        if (until === undefined) wakeVolume(name)
        else loop.wakeAt(volumeKey(name), until)
        for (const each of [object, previous]) if (each && claimKeyOf(each) !== undefined) wakeClaim(claimKeyOf(each)!)
      }
      if (object !== undefined && isFree(object) && !(previous && isFree(previous))) offer(name)
    }),
  )
  stack.use(
    claims.subscribe(({ key, object, previous }) => {
      if (object === undefined) {
        unbound.remove(key)
        metrics.claimGone(previous!)
        teller.forget(previous!.metadata.uid)
        pending.forget(`claim ${previous!.metadata.uid}`)
        waiting.set(claimKey(key), [])
        loop.forget(claimKey(key))
      } else {
        unbound.put(object)
        if (unbound.has(key)) for (const volume of patience.end(object)) wakeVolume(volume)
      }
      if (!claims.isOwnWrite) wakeClaim(key)
      const isNewPointer = object?.spec.volumeName !== previous?.spec.volumeName
      if (object !== undefined && previous !== undefined && !isNewPointer) return
      // Added, gone, or it points elsewhere now: every volume that names this claim must think again (VOL-9 … VOL-11).
      for (const volume of index.namedFor(key)) {
        const isPartner = volume.metadata.name === object?.spec.volumeName
        if (!isPartner || !claims.isOwnWrite) wakeVolume(volume.metadata.name)
      }
      if (previous?.spec.volumeName) wakeVolume(previous.spec.volumeName)
    }),
  )
  stack.use(
    classes.subscribe(({ key: name, object, previous }) => {
      for (const key of unbound.ofClass(name)) wakeClaim(key)
      if (isDefault(object) || isDefault(previous)) for (const key of unbound.withoutClass()) wakeClaim(key)
    }),
  )
  stack.use(
    pods.subscribe(({ object, previous }) => {
      for (const key of new Set([...namesIn(object), ...namesIn(previous)])) {
        if (unbound.has(key)) wakeClaim(key)
        // REC-7: a volume that waits for pods to go.
        for (const volume of index.namedFor(key))
          if (volume.spec.persistentVolumeReclaimPolicy === 'Recycle') wakeVolume(volume.metadata.name)
      }
    }),
  )
  stack.use(
    pending.onRelease(([whole], retryAt, message) => {
      const over = looks.operationOver(whole)
      if (over === undefined) return
      // A claim's new volume is our own write, so nobody else calls the claim; a reclaimed volume speaks for itself.
      const isClaim = over.key.startsWith('PersistentVolumeClaim/')
      const isGone = (isClaim ? claims : volumes).get(over.key.slice(over.key.indexOf('/') + 1)) === undefined
      const reason = isClaim ? 'provisioningFailed' : 'reclaimFailed'
      const said = message === undefined ? {} : { message }
      const answer: readonly Waiting[] =
        retryAt === undefined || isGone ? [] : [{ reason, rule: 'CTL-9', ...said, until: retryAt }]
      if (looking.has(over.key)) looking.set(over.key, answer)
      waiting.set(over.key, answer)
      if (retryAt !== undefined) loop.wakeAt(over.key, retryAt)
      else if (over.askedAgain || isClaim) loop.wake(over.key)
    }),
  )
  const everything = () => {
    for (const key of claims.items.keys()) wakeClaim(key)
    for (const name of volumes.items.keys()) wakeVolume(name)
  }
  let audit: Disposable | undefined
  const startAudit = (everyMs: number) => {
    if (everyMs <= 0 || stack.disposed) return
    audit = clock.at(clock.now() + everyMs, () => {
      everything()
      startAudit(everyMs)
    })
  }
  const started = Promise.all([claims.synced, volumes.synced, classes.synced, pods.synced]).then(() => {
    ready = true
    everything()
    startAudit(options.auditMs ?? 600_000)
  })
  return {
    name: 'binding',
    waiting: () => waiting.all,
    async idle() {
      await started
      do {
        await loop.idle()
        await pending.idle()
      } while (loop.depth + loop.running > 0)
    },
    async [Symbol.asyncDispose]() {
      audit?.[Symbol.dispose]()
      ready = false
      await loop[Symbol.asyncDispose]()
      await looks[Symbol.asyncDispose]()
      await stack.disposeAsync()
    },
  }
}

function namesIn(pod: Parameters<typeof claimKeysOf>[0] | undefined): readonly string[] {
  return pod === undefined ? [] : claimKeysOf(pod)
}

function isDefault(storageClass: StorageClass | undefined): boolean {
  return storageClass !== undefined && isDefaultClass(storageClass)
}

/** MET-1 */
function pluginLabel(plugins: Registry<ClusterPlugin>, volume: PersistentVolume): string {
  const driver = volume.spec.csi?.driver
  if (driver !== undefined) return `kubernetes.io/csi:${driver}`
  try {
    return plugins.find(specOfPersistentVolume(volume, false)).name
  } catch {
    return 'N/A'
  }
}
