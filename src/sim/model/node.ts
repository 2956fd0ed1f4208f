// What does a node do with volumes? The node's half of the safety protocol in miniature (rules NSP-2, NSP-3, NSP-8, DES-6):
// report in use, read what is attached, mount, run; stop, unmount, report again. The machine outlives its agent.
import { conditionIsTrue } from '../../api/meta.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { Pod } from '../../api/types.ts'
import type { Client } from '../../client/client.ts'
import { createInformers } from '../../client/informer.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Random } from '../../clock/random.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import { isTerminated } from '../../controllers/attachment/populate.ts'

/** What stays when the agent dies, and goes when the power fails. */
export interface Machine {
  readonly mounted: Set<string>
  /** Pods whose containers run. */
  readonly running: Map<string, readonly string[]>
}

export interface MachineObserver {
  onMount(node: string, volume: string): void
  onUnmount(node: string, volume: string): void
}

export interface ModelNodeDeps {
  readonly name: string
  readonly machine: Machine
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly observer: MachineObserver
}

export function createMachine(): Machine {
  return { mounted: new Set(), running: new Map() }
}

/** One life of the agent. */
export function createModelNode(deps: ModelNodeDeps): AsyncDisposable {
  const { name, clock, machine } = deps
  const informers = createInformers(deps)
  const pods = informers.of('Pod', { fieldSelector: `spec.nodeName=${name}` })
  const self = informers.of('Node', { fieldSelector: `metadata.name=${name}` })
  const volumesOf = new Map<string, readonly string[]>()
  let reported: string | undefined

  const wantedNow = () => {
    const wanted = new Set<string>()
    for (const pod of pods.items.values()) {
      const uid = pod.metadata.uid ?? ''
      if (pod.metadata.deletionTimestamp ? !machine.running.has(uid) : isTerminated(pod)) continue
      for (const volume of volumesOf.get(uid) ?? []) wanted.add(volume)
    }
    for (const volumes of machine.running.values()) for (const volume of volumes) wanted.add(volume)
    return wanted
  }
  const loop = createKeyLoop<'sync'>({
    name: `model-node-${name}`,
    clock,
    workers: 1,
    backoff: { firstMs: 500, capMs: 10_000 },
    async look(_key, signal) {
      // After a restart nothing is reported, mounted or unmounted before the pods are known (NSP-8).
      await pods.synced
      await self.synced
      await resolveAll(deps, pods.items.values(), volumesOf, signal)
      const stopped = stopLeaving(machine, pods.items)
      await report(signal)
      const mounted = await mountWanted(signal)
      const unmounted = await unmountUnwanted(signal)
      const started = await startReady(deps, pods.items.values(), volumesOf, signal)
      await finishLeaving(deps, pods.items.values(), volumesOf, wantedNow(), signal)
      return stopped || mounted || unmounted || started ? { again: clock.now() } : undefined
    },
  })
  const report = async (signal: AbortSignal) => {
    const volumesInUse = [...wantedNow().union(machine.mounted)].toSorted()
    const text = volumesInUse.join(' ')
    const known = self.get(name)
    if (!known) return
    const ready = conditionIsTrue(known.status?.conditions, 'Ready')
    if (text === reported && ready) return
    reported = undefined
    // Whether it is well and what it uses are told in one breath: who hears the one has heard the other.
    const conditions = [{ type: 'Ready', status: 'True' }]
    const patch = { type: 'merge', body: { status: { conditions, volumesInUse } } } as const
    await deps.client.patch('Node', { name }, patch, { subresource: 'status' }, signal)
    reported = text
  }
  const mountWanted = async (signal: AbortSignal): Promise<boolean> => {
    const missing = [...wantedNow()].filter((volume) => !machine.mounted.has(volume))
    if (missing.length === 0) return false
    const live = await deps.client.get('Node', { name }, signal)
    const attached = new Set((live.status?.volumesAttached ?? []).map((entry) => entry.name))
    const inUse = new Set(live.status?.volumesInUse ?? [])
    const ready = missing.filter((volume) => attached.has(volume) && inUse.has(volume))
    for (const volume of ready) {
      await clock.sleep(deps.random.below(200), signal)
      deps.observer.onMount(name, volume)
      machine.mounted.add(volume)
    }
    return ready.length > 0
  }
  const unmountUnwanted = async (signal: AbortSignal): Promise<boolean> => {
    const unwanted = [...machine.mounted].filter((volume) => !wantedNow().has(volume))
    for (const volume of unwanted) {
      await clock.sleep(deps.random.below(500), signal)
      if (wantedNow().has(volume)) continue
      deps.observer.onUnmount(name, volume)
      machine.mounted.delete(volume)
    }
    return unwanted.length > 0
  }
  pods.subscribe(() => loop.wake('sync'))
  self.subscribe(({ kind }) => {
    if (kind === 'added') reported = undefined // a new Node object knows nothing of what the old one was told
    loop.wake('sync')
  })
  loop.wake('sync')
  return {
    async [Symbol.asyncDispose]() {
      await loop[Symbol.asyncDispose]()
      await informers[Symbol.asyncDispose]()
    },
  }
}

/** Claims are read live, as an agent does; what is not bound yet is tried again with the pod's next change or retry. */
async function resolveAll(
  { client }: ModelNodeDeps,
  pods: Iterable<Pod>,
  volumesOf: Map<string, readonly string[]>,
  signal: AbortSignal,
): Promise<void> {
  for (const pod of [...pods]) {
    const uid = pod.metadata.uid ?? ''
    if (volumesOf.has(uid)) continue
    const names: string[] = []
    for (const volume of pod.spec?.volumes ?? []) {
      const claimName = volume.persistentVolumeClaim?.claimName
      if (claimName === undefined) continue
      const claim = await client.get('PersistentVolumeClaim', refIn(pod, claimName), signal)
      const source = (await client.get('PersistentVolume', { name: claim.spec?.volumeName ?? '' }, signal)).spec?.csi
      if (source) names.push(`kubernetes.io/csi/${source.driver}^${source.volumeHandle}`)
    }
    volumesOf.set(uid, names)
  }
}

/** Containers of pods that are leaving, or gone, stop at once. */
function stopLeaving(machine: Machine, pods: ReadonlyMap<string, Pod>): boolean {
  const staying = new Set<string>()
  for (const pod of pods.values()) if (!pod.metadata.deletionTimestamp) staying.add(pod.metadata.uid ?? '')
  let stopped = false
  for (const uid of [...machine.running.keys()]) if (!staying.has(uid)) stopped = machine.running.delete(uid) || stopped
  return stopped
}

async function startReady(
  { client, clock, machine }: ModelNodeDeps,
  pods: Iterable<Pod>,
  volumesOf: ReadonlyMap<string, readonly string[]>,
  signal: AbortSignal,
): Promise<boolean> {
  let started = false
  for (const pod of [...pods]) {
    const uid = pod.metadata.uid ?? ''
    const volumes = volumesOf.get(uid)
    if (pod.metadata.deletionTimestamp || isTerminated(pod) || machine.running.has(uid) || !volumes) continue
    if (!volumes.every((volume) => machine.mounted.has(volume))) continue
    machine.running.set(uid, volumes)
    started = true
    const state = { running: { startedAt: timestamp(clock.now()) } }
    await reportPod(client, pod, { phase: 'Running', containerStatuses: [containerStatus(state)] }, signal)
  }
  return started
}

/** A deleted pod whose containers stopped and whose own volumes are gone is removed for good. */
async function finishLeaving(
  { client, clock, machine }: ModelNodeDeps,
  pods: Iterable<Pod>,
  volumesOf: Map<string, readonly string[]>,
  wanted: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  for (const pod of [...pods]) {
    const uid = pod.metadata.uid ?? ''
    if (!pod.metadata.deletionTimestamp || machine.running.has(uid)) continue
    const own = (volumesOf.get(uid) ?? []).filter((volume) => !wanted.has(volume))
    if (own.some((volume) => machine.mounted.has(volume))) continue
    const finishedAt = timestamp(clock.now())
    const state = { terminated: { exitCode: 0, reason: 'Completed', startedAt: finishedAt, finishedAt } }
    await reportPod(client, pod, { containerStatuses: [containerStatus(state)] }, signal)
    const ref = { namespace: pod.metadata.namespace ?? '', name: pod.metadata.name }
    await client.remove('Pod', ref, { gracePeriodSeconds: 0, uid }, signal).catch(ignoreMissing)
    volumesOf.delete(uid)
  }
}

function containerStatus(state: object) {
  return { name: 'c', image: 'x', imageID: '', ready: 'running' in state, restartCount: 0, state }
}

async function reportPod(client: Client, pod: Pod, status: object, signal: AbortSignal): Promise<void> {
  const ref = refIn(pod, pod.metadata.name)
  const patch = { type: 'merge', body: { metadata: { uid: pod.metadata.uid }, status } } as const
  await client.patch('Pod', ref, patch, { subresource: 'status' }, signal).catch(ignoreMissing)
}

function refIn(pod: Pod, name: string) {
  return { namespace: pod.metadata.namespace ?? '', name }
}

function ignoreMissing(error: unknown): void {
  if (!isNotFound(error)) throw error
}
