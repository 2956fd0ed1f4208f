// What does a node do with volumes? The node's half of the safety protocol in miniature (rules NSP-2, NSP-3, NSP-8, DES-6):
// report in use, read what is attached, mount, run; stop, unmount, report again. The machine outlives its agent.
import { uniqueCsiVolumeName } from '../../api/names.ts'
import { conditionIsTrue } from '../../api/meta.ts'
import { ignoreNotFound } from '../../api/status-error.ts'
import type { Node, Pod } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import type { Informer } from '../../client/informer.ts'
import { createInformers } from '../../client/informer.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Random } from '../../clock/random.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import { isTerminated } from '../../api/pod-claims.ts'

/** What stays when the agent dies, and goes when the power fails. */
export interface Machine {
  readonly mounted: Set<string>
  /** Pods whose containers run. */
  readonly running: Map<string, readonly string[]>
}

interface MachineObserver {
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

/** What one life of the agent knows. */
interface Agent {
  readonly deps: ModelNodeDeps
  readonly pods: Informer<Pod>
  readonly self: Informer<Node>
  /** Names of a pod's volumes, by its uid. */
  readonly volumesOf: Map<string, readonly string[]>
  /** What was last reported as in use; undefined when the server may not know it. */
  reported: string | undefined
}

/** One life of the agent. */
export function createModelNode(deps: ModelNodeDeps): AsyncDisposable {
  const { name, clock } = deps
  const informers = createInformers(deps)
  const pods = informers.of('Pod', { fieldSelector: `spec.nodeName=${name}` })
  const self = informers.of('Node', { fieldSelector: `metadata.name=${name}` })
  const agent: Agent = { deps, pods, self, volumesOf: new Map(), reported: undefined }
  const loop = createKeyLoop<'sync'>({
    name: `model-node-${name}`,
    clock,
    workers: 1,
    backoff: { firstMs: 500, capMs: 10_000 },
    look: async (_key, signal) => ((await syncOnce(agent, signal)) ? { again: clock.now() } : undefined),
  })
  pods.subscribe(() => loop.wake('sync'))
  self.subscribe(({ kind }) => {
    if (kind === 'added') agent.reported = undefined // a new Node object holds nothing of what the old one was told
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

/** Whether anything was done. */
async function syncOnce(agent: Agent, signal: AbortSignal): Promise<boolean> {
  const { deps, pods, self, volumesOf } = agent
  // After a restart nothing is reported, mounted or unmounted before the pods are known (NSP-8).
  await pods.synced
  await self.synced
  await resolveAll(deps, pods.items.values(), volumesOf, signal)
  const stopped = stopLeaving(deps.machine, pods.items)
  await reportInUse(agent, signal)
  const mounted = await mountWanted(agent, signal)
  const unmounted = await unmountUnwanted(agent, signal)
  const started = await startReady(deps, pods.items.values(), volumesOf, signal)
  await finishLeaving(deps, pods.items.values(), volumesOf, wantedNow(agent), signal)
  return stopped || mounted || unmounted || started
}

function wantedNow({ deps, pods, volumesOf }: Agent): Set<string> {
  const { running } = deps.machine
  const wanted = new Set<string>()
  for (const pod of pods.items.values()) {
    const uid = pod.metadata.uid ?? ''
    if (pod.metadata.deletionTimestamp ? !running.has(uid) : isTerminated(pod)) continue
    for (const volume of volumesOf.get(uid) ?? []) wanted.add(volume)
  }
  for (const volumes of running.values()) for (const volume of volumes) wanted.add(volume)
  return wanted
}

async function reportInUse(agent: Agent, signal: AbortSignal): Promise<void> {
  const { name, client, machine } = agent.deps
  const volumesInUse = [...wantedNow(agent).union(machine.mounted)].toSorted()
  const text = volumesInUse.join(' ')
  const known = agent.self.get(name)
  if (!known) return
  const ready = conditionIsTrue(known.status?.conditions, 'Ready')
  if (text === agent.reported && ready) return
  agent.reported = undefined
  // Readiness and the volumes in use are one write: nobody sees the one without the other.
  const conditions = [{ type: 'Ready', status: 'True' }]
  const patch = { type: 'merge', body: { status: { conditions, volumesInUse } } } as const
  await client.patch('Node', { name }, patch, { subresource: 'status' }, signal)
  agent.reported = text
}

async function mountWanted(agent: Agent, signal: AbortSignal): Promise<boolean> {
  const { name, client, clock, random, machine, observer } = agent.deps
  const missing = [...wantedNow(agent)].filter((volume) => !machine.mounted.has(volume))
  if (missing.length === 0) return false
  const live = await client.get('Node', { name }, signal)
  const attached = new Set((live.status?.volumesAttached ?? []).map((entry) => entry.name))
  const inUse = new Set(live.status?.volumesInUse ?? [])
  const ready = missing.filter((volume) => attached.has(volume) && inUse.has(volume))
  for (const volume of ready) {
    await clock.sleep(random.below(200), signal)
    observer.onMount(name, volume)
    machine.mounted.add(volume)
  }
  return ready.length > 0
}

async function unmountUnwanted(agent: Agent, signal: AbortSignal): Promise<boolean> {
  const { name, clock, random, machine, observer } = agent.deps
  const unwanted = [...machine.mounted].filter((volume) => !wantedNow(agent).has(volume))
  for (const volume of unwanted) {
    await clock.sleep(random.below(500), signal)
    if (wantedNow(agent).has(volume)) continue
    observer.onUnmount(name, volume)
    machine.mounted.delete(volume)
  }
  return unwanted.length > 0
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
      if (source) names.push(uniqueCsiVolumeName(source))
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
    await client.remove('Pod', ref, { gracePeriodSeconds: 0, uid }, signal).catch(ignoreNotFound)
    volumesOf.delete(uid)
  }
}

function containerStatus(state: object) {
  return { name: 'c', image: 'x', imageID: '', ready: 'running' in state, restartCount: 0, state }
}

async function reportPod(client: Client, pod: Pod, status: object, signal: AbortSignal): Promise<void> {
  const ref = refIn(pod, pod.metadata.name)
  const patch = { type: 'merge', body: { metadata: { uid: pod.metadata.uid }, status } } as const
  await client.patch('Pod', ref, patch, { subresource: 'status' }, signal).catch(ignoreNotFound)
}

function refIn(pod: Pod, name: string) {
  return { namespace: pod.metadata.namespace ?? '', name }
}
