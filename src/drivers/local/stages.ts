// Where is a volume staged right now, and was it formatted? Small marker files per volume: the loop device is freed with
// the last stage, and a format that was cut short is begun again, even if the driver was killed in between.
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
  /** What is known of the volume's contents: `begun` may be formatted again, for nobody has used it yet. */
  format(volumeId: string, signal: AbortSignal): Promise<FormatState | undefined>
  setFormat(volumeId: string, state: FormatState, signal: AbortSignal): Promise<void>
  /** Raw use: from now on only the device itself knows what is on it. */
  forgetFormat(volumeId: string, signal: AbortSignal): Promise<void>
}

export interface FormatState {
  readonly kind: 'begun' | 'done'
  readonly type: string
}

export function createStages(files: Files, layout: DiskLayout): Stages {
  const directory = (id: string) => join(layout.volume(id), 'stages')
  const marker = (id: string, path: string) =>
    join(directory(id), createHash('sha256').update(path).digest('hex').slice(0, 32))
  const formatFile = (id: string) => join(layout.volume(id), 'format')
  return {
    async format(id, signal) {
      try {
        const [kind, type] = (await files.readText(formatFile(id), signal)).split(' ')
        return type && (kind === 'begun' || kind === 'done') ? { kind, type } : undefined
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return undefined
        throw error
      }
    },
    setFormat: (id, { kind, type }, signal) =>
      files.writeFile(formatFile(id), `${kind} ${type}`, { mode: 0o600, durable: kind === 'done' }, signal),
    forgetFormat: (id, signal) => files.remove(formatFile(id), signal),
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
