// Where is a volume staged right now? A small marker file per volume and path: the loop device is freed with the last
// one, even if the driver was killed in between or several node processes share the volume.
import { createHash } from 'node:crypto'
import { join } from 'node:path/posix'
import type { Files } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import type { DiskLayout } from './records.ts'

export interface Stages {
  add(volumeId: string, path: string, signal: AbortSignal): Promise<void>
  remove(volumeId: string, path: string, signal: AbortSignal): Promise<void>
  /** The paths where the volume is staged. */
  of(volumeId: string, signal: AbortSignal): Promise<readonly string[]>
}

export function createStages(files: Files, layout: DiskLayout): Stages {
  const directory = (id: string) => join(layout.volume(id), 'stages')
  const marker = (id: string, path: string) =>
    join(directory(id), createHash('sha256').update(path).digest('hex').slice(0, 32))
  return {
    async add(id, path, signal) {
      await files.mkdirAll(directory(id), 0o700, signal)
      await files.writeFile(marker(id, path), path, { mode: 0o600 }, signal)
    },
    remove: (id, path, signal) => files.remove(marker(id, path), signal),
    async of(id, signal) {
      try {
        const names = await files.readDir(directory(id), signal)
        return await Promise.all(names.map((name) => files.readText(join(directory(id), name), signal)))
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return []
        throw error
      }
    },
  }
}
