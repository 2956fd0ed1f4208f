// Is a volume ill? Drivers say so in their lists, or of each volume alone, in the words of the older protocol or the newer
// one; the claim's user hears of it as an event, and again when it is well (SIDE-51). The history has it for whoever asks why.
import { objectKey, referenceTo } from '../../client/object-loop.ts'
import type { CSINode, PersistentVolume } from '../../api/generated/types.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { ControllerWaitReason } from '../../volume/wait-reasons.ts'
import type { ListedVolume } from '../controller.ts'
import { timeouts } from '../deadline.ts'
import type { HealthEntry } from '../health.ts'
import { jobBackoff } from './job.ts'
import type { JobDeps } from './job.ts'

const listMs = 300_000
const eachMs = 60_000

type Condition = ListedVolume['condition']

export function createHealthMonitor(deps: JobDeps): AsyncDisposable {
  const { clock, log, driver, informers } = deps
  const volumes = informers.of('PersistentVolume')
  const abnormal = new Set<string>()
  const controller = driver.controller(timeouts.health)
  const newer = deps.controller.has('LIST_VOLUME_HEALTH') || deps.controller.has('GET_VOLUME_HEALTH')
  const lists = deps.controller.has(newer ? 'LIST_VOLUME_HEALTH' : 'LIST_VOLUMES')
  const pollMs = lists ? listMs : eachMs

  const compare = async (signal: AbortSignal) => {
    const listed = lists ? await listedConditions(signal) : undefined
    const owns = deps.owns()
    const ours = [...volumes.items.values()].filter(
      (each) => each.spec?.csi?.driver === driver.name && each.status?.phase === 'Bound' && owns.volume(each),
    )
    for (const volume of ours) {
      const handle = volume.spec?.csi?.volumeHandle ?? ''
      const condition = listed ? (listed.get(handle) ?? absent) : await conditionOf(handle, signal)
      if (condition) tell(deps, volume, condition, abnormal)
    }
    for (const name of abnormal) if (!volumes.get(name)) abnormal.delete(name)
  }
  // Who lists ill volumes only says by silence that the others are well.
  const absent = newer ? conditionFrom([]) : undefined
  const listedConditions = async (signal: AbortSignal): Promise<ReadonlyMap<string, Condition>> => {
    if (newer)
      return new Map([...(await controller.listHealth(signal))].map(([id, entries]) => [id, conditionFrom(entries)]))
    return new Map((await controller.listVolumes(signal)).map((each) => [each.volume.volumeId, each.condition]))
  }
  /** One volume that cannot be asked for does not keep the others from being told of. */
  const conditionOf = async (handle: string, signal: AbortSignal): Promise<Condition> => {
    try {
      if (newer) return conditionFrom(await controller.getHealth(handle, signal))
      return (await controller.getVolume(handle, signal)).condition
    } catch (error) {
      signal.throwIfAborted()
      log.warn('volume health unknown', { driver: driver.name, volume: handle, error })
      return undefined
    }
  }
  const loop = createKeyLoop<'poll'>({
    name: `health ${driver.name}`,
    clock,
    workers: 1,
    backoff: jobBackoff,
    async look(_key, signal) {
      if (deps.active()) await compare(signal)
      return { again: clock.now() + pollMs }
    },
    onError: (_key, error) => log.warn('volume health unknown', { driver: driver.name, error }),
  })
  loop.wakeAt('poll', clock.now() + pollMs)
  // What ails the storage of a node ails its volumes: they are not asked about minutes later.
  const healthIn = (node: CSINode | undefined) =>
    JSON.stringify(node?.status?.storageHealth?.find(({ name }) => name === driver.name)?.healthConditions ?? [])
  const nodes = informers.of('CSINode').subscribe(({ object, previous }) => {
    if (healthIn(object) !== healthIn(previous)) loop.wake('poll')
  })
  return {
    async [Symbol.asyncDispose]() {
      nodes[Symbol.dispose]()
      await loop[Symbol.asyncDispose]()
    },
  }
}

function conditionFrom(entries: readonly HealthEntry[]): NonNullable<Condition> {
  const message = entries.map(({ status, reason, message: text }) => `${status} (${reason}): ${text}`).join('; ')
  return { abnormal: entries.length > 0, message }
}

function tell(
  { informers, recorder, history, driver }: JobDeps,
  volume: PersistentVolume,
  condition: NonNullable<Condition>,
  abnormal: Set<string>,
): void {
  const { name } = volume.metadata
  const ref = volume.spec?.claimRef
  const object = informers.of('PersistentVolumeClaim').get(`${ref?.namespace ?? ''}/${ref?.name ?? ''}`)
  if (!object) return
  const objects = [
    referenceTo(objectKey('PersistentVolumeClaim', object)),
    referenceTo({ kind: 'PersistentVolume', name }),
  ]
  const about = { actor: `csi ${driver.name}`, operation: 'health', key: name, objects }
  const reason: ControllerWaitReason = 'volumeAbnormal'
  if (condition.abnormal || abnormal.has(name))
    history?.waits(about, condition.abnormal ? [{ reason, message: condition.message }] : [])
  if (condition.abnormal) {
    abnormal.add(name)
    recorder.event({ kind: 'PersistentVolumeClaim', object }, 'Warning', 'VolumeConditionAbnormal', condition.message)
  } else if (abnormal.delete(name)) {
    const text = 'The Volume returns to the healthy state'
    recorder.event({ kind: 'PersistentVolumeClaim', object }, 'Normal', 'VolumeConditionNormal', text)
  }
}
