// What do users and machines do? Random but sensible: volumes, claims, pods that come, move and go; nodes that are
// lost, reported and repaired the way a cluster's other controllers would.
import { isNotFound } from '../api/status-error.ts'
import type { PersistentVolume, Pod } from '../api/generated/types.ts'
import { outOfServiceTaint } from '../controllers/attachment/nodes.ts'
import type { Cluster } from './cluster.ts'
import type { WantedBy } from './invariants/progress.ts'
import { addNode, setNotReady } from './cluster.ts'
import { modelDriver, modelVolume } from './model/plugin.ts'

export interface Workload {
  /** One thing happens. */
  act(): Promise<void>
  /** Everything that is broken is repaired, at once. */
  repairAll(): Promise<void>
  removeAllPods(): Promise<void>
  volumesOf(pod: Pod): readonly WantedBy[]
}

interface Claim {
  readonly name: string
  readonly handle: string
  readonly exclusive: boolean
  readonly singlePod: boolean
}

interface Outage {
  readonly kind: 'cutOff' | 'dead' | 'deleted'
  readonly end: number
  notReadyAt: number | undefined
  evictAt: number | undefined
  taintAt: number | undefined
}

const namespace = 'default'
const longestStoryMs = 900_000

export function createWorkload(cluster: Cluster): Workload {
  const { random, trace, nodeNames } = cluster
  const claims: Claim[] = []
  const outages = new Map<string, Outage>()
  let pods = 0

  const actions: readonly (readonly [weight: number, act: () => Promise<void> | void])[] = [
    [10, () => (claims.length < nodeNames.length * 3 ? addVolume(cluster, claims) : undefined)],
    [30, () => addPod(random.pick(nodeNames))],
    [20, () => removePod(false)],
    [5, () => removePod(true)],
    [20, movePod],
    [4, () => cluster.crashController()],
    [2, () => cluster.crashAttacher()],
    [4, () => cluster.crashAgent(random.pick(nodeNames))],
    [2, () => (outages.size === 0 ? cluster.powerCycle(random.pick(nodeNames)) : undefined)],
    [5, () => beginOutage(cluster, outages)],
  ]
  const addPod = async (node: string, wanted?: readonly string[]) => {
    if (claims.length === 0) return
    const names = wanted ?? [...new Set([random.pick(claims).name, random.pick(claims).name])]
    const name = `p${++pods}`
    trace.line('pod', { name, node, claims: names.join(',') })
    await cluster.admin.create('Pod', podFor(name, node, names))
  }
  const removePod = async (force: boolean): Promise<Pod | undefined> => {
    const all = (await cluster.admin.list('Pod', { namespace })).items.filter((pod) => !pod.metadata.deletionTimestamp)
    if (all.length === 0) return undefined
    const pod = random.pick(all)
    trace.line('remove pod', { name: pod.metadata.name, force })
    await dropPod(cluster, pod, force)
    return pod
  }
  async function movePod(): Promise<void> {
    const pod = await removePod(false)
    if (!pod) return
    const names = (pod.spec?.volumes ?? []).flatMap((volume) => volume.persistentVolumeClaim?.claimName ?? [])
    await addPod(random.pick(nodeNames), names)
  }
  return {
    async act() {
      await continueOutages(cluster, outages)
      const { host = 0 } = cluster.faults.rates
      if (host > 0 && random.chance(host)) cluster.troubleHost(random.pick(nodeNames), random.chance(0.5))
      const total = actions.reduce((sum, [weight]) => sum + weight, 0)
      let chosen = random.below(total)
      for (const [weight, act] of actions) {
        chosen -= weight
        if (chosen < 0) return act()
      }
    },
    async repairAll() {
      for (const node of [...outages.keys()]) await endOutage(cluster, outages, node)
      for (const node of nodeNames) cluster.troubleHost(node, false)
    },
    async removeAllPods() {
      for (const pod of (await cluster.admin.list('Pod', { namespace })).items) await dropPod(cluster, pod, false)
    },
    volumesOf: (pod) =>
      (pod.spec?.volumes ?? []).flatMap((volume) => {
        const claim = claims.find(({ name }) => name === volume.persistentVolumeClaim?.claimName)
        if (!claim) return []
        const { handle, exclusive, singlePod } = claim
        return [{ volume: modelVolume(handle), handle, exclusive, singlePod }]
      }),
  }
}

async function addVolume(cluster: Cluster, claims: Claim[]): Promise<void> {
  const number = claims.length + 1
  const mode = cluster.random.pick(['ReadWriteOnce', 'ReadWriteOnce', 'ReadWriteOncePod', 'ReadWriteMany'] as const)
  cluster.trace.line('volume', { name: `v${number}`, mode })
  const handle = await addBoundClaim(cluster, String(number), mode)
  claims.push({
    name: `c${number}`,
    handle,
    exclusive: mode !== 'ReadWriteMany',
    singlePod: mode === 'ReadWriteOncePod',
  })
}

/** Claim `c<number>` and volume `v<number>`, made for each other; bound by us where no binding controller runs. Answers the handle. */
export async function addBoundClaim(cluster: Cluster, number: string, mode: Mode = 'ReadWriteOnce'): Promise<string> {
  const { admin } = cluster
  const [name, volumeName] = [`c${number}`, `v${number}`]
  const exclusive = mode !== 'ReadWriteMany'
  const handle = await cluster.createHandle(`h${number}`, exclusive)
  if (exclusive) cluster.exclusive.add(handle)
  const capacity = { storage: '1Gi' }
  const claim = await admin.create('PersistentVolumeClaim', {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace },
    spec: { accessModes: [mode], resources: { requests: capacity }, volumeName, storageClassName: '' },
  })
  const uid = cluster.cast === 'real' ? {} : { uid: claim.metadata.uid! }
  await admin.create('PersistentVolume', volumeFor(volumeName, handle, mode, { namespace, name, ...uid }))
  if (cluster.cast === 'real') return handle // the binding controller does the rest
  const bound = { type: 'merge', body: { status: { phase: 'Bound', accessModes: [mode], capacity } } } as const
  await admin.patch('PersistentVolumeClaim', { namespace, name }, bound, { subresource: 'status' })
  return handle
}

type Mode = 'ReadWriteOnce' | 'ReadWriteOncePod' | 'ReadWriteMany'

function volumeFor(
  name: string,
  volumeHandle: string,
  mode: Mode,
  claimRef: { readonly namespace: string; readonly name: string; readonly uid?: string },
): PersistentVolume {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: [mode],
      persistentVolumeReclaimPolicy: 'Retain',
      volumeMode: 'Filesystem',
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...claimRef },
      csi: { driver: modelDriver, volumeHandle },
    },
  }
}

export function podFor(name: string, node: string, claimNames: readonly string[]): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: {
      nodeName: node,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      containers: [{ name: 'c', image: 'x', command: ['run'], volumeMounts: claimNames.map(mountAt) }],
      volumes: claimNames.map((claimName, index) => ({ name: `v${index}`, persistentVolumeClaim: { claimName } })),
    },
  }
}

function mountAt(_claim: string, index: number) {
  return { name: `v${index}`, mountPath: `/mnt/v${index}` }
}

async function dropPod({ admin }: Cluster, pod: Pod, force: boolean): Promise<void> {
  const ref = { namespace, name: pod.metadata.name }
  try {
    await admin.remove('Pod', ref, force ? { gracePeriodSeconds: 0 } : {})
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}

function beginOutage(cluster: Cluster, outages: Map<string, Outage>): void {
  const { random, clock, trace } = cluster
  const node = random.pick(cluster.nodeNames)
  if (outages.has(node)) return
  const kind = random.pick(['cutOff', 'dead', 'deleted'] as const)
  const now = clock.now()
  const later = () => now + random.below(longestStoryMs)
  trace.line('outage', { node, kind })
  cluster.trouble.set(node, Infinity)
  cluster.cutOff(node, true)
  if (kind === 'dead') cluster.powerCycle(node)
  outages.set(node, {
    kind,
    end: later(),
    notReadyAt: now + 40_000,
    evictAt: later(),
    taintAt: random.chance(0.5) ? later() : undefined,
  })
}

/** What the node controller, the pod collector and an operator would do by now. */
async function continueOutages(cluster: Cluster, outages: Map<string, Outage>): Promise<void> {
  const now = cluster.clock.now()
  for (const [node, outage] of [...outages]) {
    if (outage.notReadyAt !== undefined && now >= outage.notReadyAt) {
      outage.notReadyAt = undefined
      cluster.trace.line('node lost', { node, kind: outage.kind })
      if (outage.kind === 'deleted') await cluster.admin.remove('Node', { name: node })
      else await setNotReady(cluster.admin, node)
    }
    if (outage.evictAt !== undefined && now >= outage.evictAt && outage.notReadyAt === undefined) {
      outage.evictAt = undefined
      const pods = (await cluster.admin.list('Pod', { fieldSelector: `spec.nodeName=${node}` })).items
      cluster.trace.line('evict', { node, pods: pods.length })
      for (const pod of pods) await dropPod(cluster, pod, true)
    }
    // Only a machine that is off may be called out of service: that is what the operator promises (FD-4).
    if (
      outage.taintAt !== undefined &&
      now >= outage.taintAt &&
      outage.kind === 'dead' &&
      outage.notReadyAt === undefined
    ) {
      outage.taintAt = undefined
      await setTaint(cluster, node, true)
    }
    if (now >= outage.end && outage.notReadyAt === undefined) await endOutage(cluster, outages, node)
  }
}

async function endOutage(cluster: Cluster, outages: Map<string, Outage>, node: string): Promise<void> {
  const outage = outages.get(node)
  outages.delete(node)
  if (outage?.kind === 'dead') {
    await setTaint(cluster, node, false)
    cluster.powerCycle(node)
  }
  if (outage?.kind === 'deleted' && outage.notReadyAt === undefined) await addNode(cluster.admin, node)
  cluster.trouble.set(node, cluster.clock.now())
  cluster.cutOff(node, false)
}

async function setTaint({ admin, trace }: Cluster, node: string, present: boolean): Promise<void> {
  trace.line(present ? 'taint' : 'untaint', { node })
  const taints = present ? [{ key: outOfServiceTaint, value: 'nodeshutdown', effect: 'NoExecute' }] : null
  await admin.patch('Node', { name: node }, { type: 'merge', body: { spec: { taints } } })
}
