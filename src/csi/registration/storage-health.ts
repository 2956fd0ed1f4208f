// Is the storage behind a driver well, as this node sees it? Asked every minute where a driver can tell; the answers stand
// in CSINode and as a metric (CSI-71, MEA-13). A question that fails leaves what was known.
import type { StorageHealth } from '../../api/generated/types.ts'
import type { Clock } from '../../clock/clock.ts'
import { timestamp } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Drivers } from '../drivers.ts'
import type { StorageHealthEntry } from '../health.ts'
import type { NodeInfoPublisher } from './node-info.ts'

export interface StorageHealthDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly drivers: Drivers
  readonly nodeInfo: Pick<NodeInfoPublisher, 'changeHealth'>
}

const periodMs = 60_000
const mostConditions = 16

export function createStorageHealth({ clock, log, metrics, drivers, nodeInfo }: StorageHealthDeps): AsyncDisposable {
  const told = new Map<string, readonly StorageHealthEntry[]>()
  const labels = ['driver_name', 'status', 'reason'] as const
  metrics.gauge(
    'csi_node_storage_health_status',
    'Health conditions of the storage behind a driver',
    labels,
    (gauge) => {
      gauge.reset()
      for (const [driver, entries] of told)
        for (const { status, reason } of entries) gauge.set({ driver_name: driver, status, reason }, 1)
    },
  )
  const loop = createKeyLoop<string>({
    name: 'storage health',
    clock,
    workers: 4,
    backoff: { firstMs: periodMs, capMs: periodMs },
    async look(name, signal) {
      const driver = drivers.get(name)
      if (!driver) return void told.delete(name)
      if (!(await driver.nodeCapabilities(signal)).has('GET_STORAGE_HEALTH')) return
      const entries = await driver.node.storageHealth(signal)
      if (entries.length > mostConditions)
        throw new Error(`driver ${name} reports ${entries.length} conditions, more than ${mostConditions}`)
      told.set(name, entries)
      await nodeInfo.changeHealth((present) => withStorageHealth(present, name, entries, clock.now()), signal)
      return { again: clock.now() + periodMs }
    },
    onError: (driver, error) => log.warn('storage health unknown', { driver, error }),
  })
  const subscription = drivers.subscribe(({ driver }) => loop.wakeAt(driver.name, clock.now() + 1_000))
  return {
    async [Symbol.asyncDispose]() {
      subscription[Symbol.dispose]()
      await loop[Symbol.asyncDispose]()
    },
  }
}

type Condition = NonNullable<StorageHealth['healthConditions']>[number]

/** The same list if no condition came or went; words alone are no news. A condition that stays keeps its time. */
function withStorageHealth(
  present: readonly StorageHealth[],
  driver: string,
  entries: readonly StorageHealthEntry[],
  now: number,
): readonly StorageHealth[] {
  const before = present.find(({ name }) => name === driver)?.healthConditions ?? []
  const known = new Map(before.map((condition) => [identity(condition), condition]))
  const next = new Map<string, Condition>()
  for (const entry of entries) {
    const key = identity(entry)
    next.set(key, { ...entry, lastTransitionTime: known.get(key)?.lastTransitionTime ?? timestamp(now) })
  }
  if (next.size === known.size && [...next.keys()].every((key) => known.has(key))) return present
  const others = present.filter(({ name }) => name !== driver)
  return [...others, { name: driver, healthConditions: [...next.values()] }]
}

function identity({ status, reason, accessMode, volumeMode }: Omit<Condition, 'message'>): string {
  return JSON.stringify([status, reason, accessMode ?? '', volumeMode ?? ''])
}
