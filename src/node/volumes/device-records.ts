// Which devices did we begin to mount on this node? A file per volume, written before the first call and removed after the
// last: pods' directories alone cannot tell, once a pod's part is undone and the device's is not (WA-9, decision 8).
import { createHash } from 'node:crypto'
import { join } from 'node:path/posix'
import type { PluginName, UniqueVolumeName } from '../../api/names.ts'
import type { Host } from '../../host/host.ts'
import type { Log } from '../../telemetry/log.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { namesIn } from './restore.ts'

export interface DeviceRecord {
  readonly volume: UniqueVolumeName
  readonly plugin: PluginName
  readonly spec: VolumeSpec
  /** The staging or global map path. */
  readonly path: string
}

export interface DeviceRecords {
  save(record: DeviceRecord, signal: AbortSignal): Promise<void>
  drop(volume: UniqueVolumeName, signal: AbortSignal): Promise<void>
  list(signal: AbortSignal): Promise<readonly DeviceRecord[]>
}

export function createDeviceRecords(deps: {
  readonly host: Pick<Host, 'files'>
  readonly root: string
  readonly log: Log
}): DeviceRecords {
  const { files } = deps.host
  const directory = join(deps.root, 'hawser-devices')
  const fileOf = (volume: UniqueVolumeName) =>
    join(directory, `${createHash('sha256').update(volume).digest('hex')}.json`)
  return {
    async save(record, signal) {
      const file = fileOf(record.volume)
      if (await files.exists(file, signal)) return
      await files.mkdirAll(directory, 0o750, signal)
      await files.writeFile(file, JSON.stringify(record), { mode: 0o600, durable: true }, signal)
    },
    drop: (volume, signal) => files.remove(fileOf(volume), signal),
    async list(signal) {
      const found: DeviceRecord[] = []
      for (const name of await namesIn(deps.host, directory, signal)) {
        if (!name.endsWith('.json')) continue
        try {
          found.push(parseRecord(await files.readText(join(directory, name), signal)))
        } catch (error) {
          if (signal.aborted) throw error
          deps.log.warn('device record cannot be read', { file: name, error })
        }
      }
      return found
    },
  }
}

/** Written by us alone, whole or not at all; but disks decay, and one bad record must not hide the others. */
function parseRecord(text: string): DeviceRecord {
  const { volume, plugin, path, spec } = (JSON.parse(text) ?? {}) as Partial<DeviceRecord> // checked in the next lines
  const { name, mode, source } = spec ?? {}
  const words = [volume, plugin, path, name, mode, source?.kind]
  if (!words.every((word) => typeof word === 'string') || typeof source?.value !== 'object')
    throw new Error('it describes no device')
  return { volume: volume!, plugin: plugin!, path: path!, spec: spec! }
}
