// What did an earlier life of this agent leave on disk? Pod directories are read without touching what lies in them, each
// plugin rebuilds a spec, and what cannot be rebuilt becomes an orphan to clean, not an error (RCS-1 … RCS-8).
import { join } from 'node:path/posix'
import type { PluginName, PodUid } from '../../api/names.ts'
import { podUid } from '../../api/names.ts'
import { hasCode } from '../../host/host-error.ts'
import type { Host } from '../../host/host.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { parsePodVolumePath, podDirectory, podsDirectory } from '../../volume/paths.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ActualWorld } from './actual.ts'
import type { DeviceRecord, DeviceRecords } from './device-records.ts'
import { uniqueName } from './unique-name.ts'

/** A directory or link of a pod's volume. */
interface Entry {
  readonly pod: PodUid
  readonly plugin: PluginName
  readonly volumeName: string
  readonly mode: 'Filesystem' | 'Block'
  readonly path: string
}

/** Something of a pod's volume that no plugin could explain. */
export interface Orphan extends Entry {
  readonly error: string
}

export interface Restored {
  /** Pods that have anything on disk, with or without volumes. */
  readonly pods: ReadonlySet<PodUid>
  readonly volumes: number
  readonly orphans: readonly Orphan[]
}

export interface RestoreDeps {
  readonly host: Host
  readonly registry: Registry<NodePlugin>
  readonly actual: ActualWorld
  readonly root: string
  readonly log: Log
  readonly metrics: Metrics
  readonly devices: DeviceRecords
}

export async function restoreVolumes(deps: RestoreDeps, signal: AbortSignal): Promise<Restored> {
  const { host, root, log, metrics } = deps
  const tried = metrics.counter('reconstruct_volume_operations_total', 'Volumes reconstructed after restart')
  const failed = metrics.counter('reconstruct_volume_operations_errors_total', 'Failures of that reconstruction')
  const pods = new Set<PodUid>()
  const orphans: Orphan[] = []
  let volumes = 0
  const records = await deps.devices.list(signal)
  for (const name of await namesIn(host, podsDirectory(root), signal)) {
    const pod = podUid(name)
    if (!(await isPods(deps, pod, signal))) continue
    pods.add(pod)
    for (const entry of await entriesOf(deps, pod, signal)) {
      tried.inc()
      try {
        await restoreEntry(deps, entry, signal)
        volumes++
      } catch (error) {
        if (signal.aborted) throw error
        const text = errorText(error)
        failed.inc()
        const record = records.find((each) => isOf(each, entry))
        if (record) deps.actual.apply({ ...foundAs(record), pod })
        else orphans.push({ ...entry, error: text })
        const explainedBy = record ? 'its device record' : 'nothing'
        log.warn('volume on disk cannot be explained by its plugin', {
          pod,
          path: entry.path,
          explainedBy,
          error: text,
        })
      }
    }
  }
  for (const record of records) {
    // A volume whose pods' directories were found knows of its device already; this adds what only the record knows.
    const found = foundAs(record)
    deps.actual.apply({ ...found, pod: undefined })
    volumes++
    if (record.spec.mode !== 'Block') continue
    // A pod's device node may be all there is: made before its link, or left when the link was gone (BLOCK-2, BLOCK-4). What
    // the plugin gave to the pod comes before both, and goes after both.
    for (const name of new Set([
      ...(await readableNamesIn(deps, record.path, signal)),
      ...(await given(deps, record, signal)),
    ])) {
      pods.add(podUid(name))
      deps.actual.apply({ ...found, pod: podUid(name) })
    }
  }
  return { pods, volumes, orphans }
}

/** A plugin's notes may be damaged; the record of the device tells the same of the volume (WART-6). */
const isOf = ({ plugin, spec }: DeviceRecord, entry: Entry) =>
  plugin === entry.plugin && spec.name === entry.volumeName && spec.mode === entry.mode
const foundAs = ({ volume, plugin, spec, path }: DeviceRecord) =>
  ({ kind: 'foundOnDisk', volume, plugin, spec, devicePath: path }) as const

/** What does not look like one of our directories is somebody else's: it is never cleaned. */
async function isPods(deps: RestoreDeps, pod: PodUid, signal: AbortSignal): Promise<boolean> {
  const path = podDirectory(deps.root, pod)
  const names = await readableNamesIn(deps, path, signal)
  if (names.some((name) => podParts.has(name)) || (names.length === 0 && uidPattern.test(pod))) return true
  deps.log.warn('this is no directory of a pod; it is left alone', { path })
  return false
}
const podParts: ReadonlySet<string> = new Set(['volumes', 'volumeDevices', 'volume-subpaths', 'plugins', 'containers'])
/** One that was made a moment before a crash is empty; then its name tells. */
const uidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Volumes and devices of one pod, by their names alone (LAYOUT-10). */
async function entriesOf(deps: RestoreDeps, pod: PodUid, signal: AbortSignal): Promise<readonly Entry[]> {
  const found: Entry[] = []
  for (const folder of ['volumes', 'volumeDevices']) {
    const directory = join(podDirectory(deps.root, pod), folder)
    for (const plugin of await readableNamesIn(deps, directory, signal)) {
      const directoryOfPlugin = join(directory, plugin)
      for (const name of await readableNamesIn(deps, directoryOfPlugin, signal)) {
        const path = join(directoryOfPlugin, name)
        const location = parsePodVolumePath(deps.root, path)
        if (location)
          found.push({ pod, plugin: location.plugin, volumeName: location.volume, mode: location.mode, path })
      }
    }
  }
  return found
}

/** One directory that cannot be read must not keep the node from starting (RCS-1). */
async function readableNamesIn({ host, log }: RestoreDeps, path: string, signal: AbortSignal) {
  try {
    return await namesIn(host, path, signal)
  } catch (error) {
    if (signal.aborted) throw error
    log.error('volumes on disk cannot be read', { path, error })
    return []
  }
}

/** The pods that the plugin gave a device to. */
async function given({ registry, log }: RestoreDeps, { plugin, spec, path }: DeviceRecord, signal: AbortSignal) {
  try {
    return (await registry.known(plugin)?.plugin.block?.(spec)?.mappedPods?.(spec, signal)) ?? []
  } catch (error) {
    if (signal.aborted) throw error
    log.error('the pods of a raw volume cannot be read', { path, error })
    return []
  }
}

/** The plugin rebuilds the spec; the world hears that something of it was found (RCS-3, RCS-6). */
async function restoreEntry({ registry, actual }: RestoreDeps, entry: Entry, signal: AbortSignal): Promise<void> {
  const { pod, plugin: name, volumeName, mode, path } = entry
  const registered = registry.byName(name)
  const { plugin } = registered
  if (!plugin.restore) throw new Error(`plugin ${name} cannot restore volumes from disk`)
  const request = { volumeName, pod, path, mode }
  const spec = await plugin.restore(request, signal)
  const label = await plugin.restoredLabel?.(request, signal)
  actual.apply({
    kind: 'foundOnDisk',
    volume: uniqueName(registered, spec, pod),
    plugin: name,
    spec,
    pod,
    devicePath: deviceStage(plugin, spec),
    ...(label === undefined ? {} : { label }),
  })
}

function deviceStage(plugin: NodePlugin, spec: VolumeSpec): string | undefined {
  return spec.mode === 'Block' ? plugin.block?.(spec)?.globalMapPath(spec) : plugin.device?.(spec)?.path(spec)
}

/** A directory that is not there holds nothing. */
export async function namesIn(
  { files }: Pick<Host, 'files'>,
  path: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    return (await files.readDir(path, signal)).sort()
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  }
}
