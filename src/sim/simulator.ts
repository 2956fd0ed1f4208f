// Does the whole hold together? First chaos, in which nothing forbidden may happen; then calm, in which everything
// must come to rest. A seed reproduces a run exactly.
import type { Cluster, ClusterOptions } from './cluster.ts'
import { createCluster } from './cluster.ts'
import { sharedVolumes, unboundClaims } from './invariants/binding.ts'
import { unsettled } from './invariants/progress.ts'
import type { Workload } from './workload.ts'
import { createWorkload } from './workload.ts'

export interface SimulationOptions extends Omit<ClusterOptions, 'nodes'> {
  readonly steps?: number
  readonly nodes?: number
}

export interface SimulationResult {
  readonly seed: string | number
  /** The hash over the whole trace: equal for equal seeds. */
  readonly hash: string
  readonly lines: number
  readonly virtualSeconds: number
  /** What must not happen and did, or must come true and did not. Empty when all is well. */
  readonly violations: readonly string[]
  /** The last lines of the trace. */
  readonly trace: readonly string[]
}

const restMs = 30 * 60_000

export async function runSimulation(options: SimulationOptions): Promise<SimulationResult> {
  const cluster = await createCluster({ nodes: 3, ...options })
  const workload = createWorkload(cluster)
  const start = cluster.clock.now()
  const problems: string[] = []
  try {
    await cluster.start()
    problems.push(...(await safetyPhase(cluster, workload, options.steps ?? 60)))
    if (cluster.violations.length + problems.length === 0) problems.push(...(await livenessPhase(cluster, workload)))
  } catch (error) {
    problems.push(
      `the simulation itself failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    )
  }
  const result: SimulationResult = {
    seed: options.seed,
    hash: cluster.trace.hash(),
    lines: cluster.trace.count,
    virtualSeconds: (cluster.clock.now() - start) / 1000,
    violations: [...cluster.violations, ...problems],
    trace: cluster.trace.tail(),
  }
  await cluster[Symbol.asyncDispose]()
  return result
}

/** Users act, parts die, calls get lost; the invariants watch every single event. */
async function safetyPhase(cluster: Cluster, workload: Workload, steps: number): Promise<readonly string[]> {
  const problems: string[] = []
  const { clock, random } = cluster
  for (let step = 0; step < steps && cluster.violations.length + problems.length === 0; step++) {
    await workload.act()
    problems.push(...sharedVolumes((await cluster.admin.list('PersistentVolumeClaim')).items))
    const long = random.chance(0.08)
    await clock.advance(long ? random.below(8 * 60_000) : random.below(4_000))
  }
  return problems
}

/** Faults stop, nodes are repaired, time passes: all comes to rest. Then the last pod goes, and nothing may stay. */
async function livenessPhase(cluster: Cluster, workload: Workload): Promise<readonly string[]> {
  cluster.faults.calm = true
  cluster.trace.line('calm')
  await workload.repairAll()
  await cluster.clock.advance(restMs)
  const running = await look(cluster, workload)
  if (running.length > 0) return running.map((problem) => `after ${restMs / 60_000} calm minutes: ${problem}`)
  cluster.trace.line('remove all pods')
  await workload.removeAllPods()
  await cluster.clock.advance(restMs)
  const left = (await cluster.leftMounts()).map((path) => `${path} is still mounted`)
  return [...(await look(cluster, workload)), ...left].map((problem) => `after all pods went: ${problem}`)
}

async function look(cluster: Cluster, workload: Workload): Promise<readonly string[]> {
  const { admin, machines, storage } = cluster
  const [pods, nodes, attachments] = [
    (await admin.list('Pod')).items,
    (await admin.list('Node')).items,
    (await admin.list('VolumeAttachment')).items,
  ]
  const { waiting } = cluster.controller()
  const claims = (await admin.list('PersistentVolumeClaim')).items
  const volumes = (await admin.list('PersistentVolume')).items
  const unbound = cluster.cast === 'real' ? unboundClaims(claims, volumes) : []
  const unrest = unsettled({ pods, nodes, attachments, machines, storage, waiting, volumesOf: workload.volumesOf })
  return [...unbound, ...unrest]
}
