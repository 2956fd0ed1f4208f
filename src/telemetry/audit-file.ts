// Where can one read who did what? In a file of JSON lines, handed to the system before the answer goes out, so that even a
// killed server has told of everything it answered. Lines that a full disk refuses are kept and written when it takes them.
import { closeSync, existsSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'
import { timestamp } from '../clock/clock.ts'
import type { Clock } from '../clock/clock.ts'
import type { Audit, AuditFailure } from './audit.ts'
import type { Log } from './log.ts'

export type AuditFile = Audit & Disposable

export interface AuditFileDeps {
  readonly path: string
  readonly clock: Clock
  readonly log: Log
  readonly onFailure?: AuditFailure | undefined
  /** A file of this size becomes `audit.log.1`, that one `audit.log.2`, and so on. */
  readonly largestBytes?: number
  /** How many files there are at most, with the one that is being written. */
  readonly files?: number
}

/** As many bytes of lines wait for a disk that is full. */
const mostWaitingBytes = 1024 * 1024

export function openAuditFile(deps: AuditFileDeps): AuditFile {
  const { path, clock, log, onFailure = 'refuse' } = deps
  const file = openRotated(deps)
  let waiting = Buffer.alloc(0)
  let lines = ''
  let failure: Error | undefined
  let batch: PromiseWithResolvers<void> | undefined

  const flush = (): void => {
    const written = batch
    batch = undefined
    const text = Buffer.from(lines)
    lines = ''
    waiting = waiting.length + text.length > mostWaitingBytes ? waiting : Buffer.concat([waiting, text])
    try {
      if (waiting.length > 0) file.prepare(waiting.length)
      while (waiting.length > 0) waiting = waiting.subarray(file.write(waiting))
      failure = undefined
      written?.resolve()
    } catch (error) {
      // Saying so once is enough.
      if (failure === undefined) log.error('the audit log cannot be written', { path, error })
      failure = error as Error // what file calls throw
      if (onFailure === 'refuse') written?.reject(failure)
      else written?.resolve()
    }
  }
  return {
    refusal() {
      if (failure === undefined || onFailure === 'continue') return undefined
      flush()
      return failure === undefined ? undefined : `the audit log ${path} cannot be written: ${failure.message}`
    },
    write(record) {
      // Those that one commit of the store has finished are written together, and before any of them is answered.
      if (batch === undefined) {
        batch = Promise.withResolvers()
        queueMicrotask(flush)
      }
      lines += `${JSON.stringify({ time: timestamp(clock.now()), ...record })}\n`
      return batch.promise
    },
    [Symbol.dispose]() {
      flush()
      file.close()
    },
  }
}

/** A file that makes room for so many bytes under older names, and begins anew when somebody moved it away (logrotate). */
function openRotated({ path, largestBytes = 64 * 1024 * 1024, files = 5 }: AuditFileDeps) {
  const open = () => openSync(path, 'a', 0o600)
  let file = open()
  let size = fstatSync(file).size
  const rotate = (): void => {
    for (let index = files - 1; index > 0; index--) {
      const older = index === 1 ? path : `${path}.${index - 1}`
      if (existsSync(older)) renameSync(older, `${path}.${index}`)
    }
  }
  return {
    prepare(bytes: number): void {
      if (size > 0 && size + bytes > largestBytes) rotate()
      if (existsSync(path)) return
      const next = open()
      closeSync(file)
      file = next
      size = fstatSync(file).size
    },
    /** How many bytes were taken. */
    write(bytes: Uint8Array): number {
      const count = writeSync(file, bytes)
      size += count
      return count
    },
    close: () => closeSync(file),
  }
}
