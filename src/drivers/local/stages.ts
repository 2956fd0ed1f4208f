// Where was a volume asked to be staged, and was it formatted? Small marker files per volume, written before anything is
// done: what a killed driver began is found again. Whether a volume *is* staged there is asked of the kernel (staged.ts).
import { createHash } from 'node:crypto'
import { join } from 'node:path/posix'
import type { Files } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import type { DiskLayout } from './records.ts'

export interface StageMark {
  readonly path: string
  /** Older versions did not write it down. */
  readonly access: 'mount' | 'block' | 'unknown'
}

export interface Stages {
  add(volumeId: string, mark: StageMark, signal: AbortSignal): Promise<void>
  remove(volumeId: string, path: string, signal: AbortSignal): Promise<void>
  /** The paths where the volume was asked to be staged. */
  of(volumeId: string, signal: AbortSignal): Promise<readonly StageMark[]>
  /** What is known of the volume's contents: `begun` may be formatted again, for nobody has used it yet. */
  format(volumeId: string, signal: AbortSignal): Promise<FormatState | undefined>
  setFormat(volumeId: string, state: FormatState, signal: AbortSignal): Promise<void>
  /** The device is used raw: from now on our records say nothing about its contents. */
  forgetFormat(volumeId: string, signal: AbortSignal): Promise<void>
}

interface FormatState {
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
    async add(id, { path, access }, signal) {
      await files.mkdirAll(directory(id), 0o700, signal)
      await files.writeFile(marker(id, path), `${access} ${path}`, { mode: 0o600 }, signal)
    },
    remove: (id, path, signal) => files.remove(marker(id, path), signal),
    async of(id, signal) {
      try {
        const names = await files.readDir(directory(id), signal)
        const texts = await Promise.all(names.map((name) => files.readText(join(directory(id), name), signal)))
        return texts.flatMap(parseMark)
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return []
        throw error
      }
    },
  }
}

/** A driver that was killed while it wrote the mark had done nothing else yet: no text, no stage. */
export function parseMark(text: string): StageMark[] {
  if (text.startsWith('/')) return [{ path: text, access: 'unknown' }]
  const [, access, path] = /^(mount|block) (\/.*)$/s.exec(text) ?? []
  return path !== undefined && (access === 'mount' || access === 'block') ? [{ path, access }] : []
}
