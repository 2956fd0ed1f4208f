// Where can one read who changed what? In `<data-dir>/audit.log`: one JSON line per changing request, handed to the
// system before the answer goes out, so that even a killed server has told of everything it answered.
import { closeSync, existsSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'
import type { AuditRecord } from './audit.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Log } from '../../telemetry/log.ts'

export interface AuditFile extends Disposable {
  write(record: AuditRecord): void
}

export interface AuditFileDeps {
  readonly path: string
  readonly clock: Clock
  readonly log: Log
  /** A file of this size becomes `audit.log.1`; the one before it goes. */
  readonly largestBytes?: number
}

export function openAuditFile({ path, clock, log, largestBytes = 64 * 1024 * 1024 }: AuditFileDeps): AuditFile {
  const open = () => openSync(path, 'a', 0o600)
  let file = open()
  let size = fstatSync(file).size
  let lines = ''
  let isFailing = false

  const flush = (): void => {
    const text = lines
    lines = ''
    if (text === '') return
    try {
      if (size > 0 && size + text.length > largestBytes) rotate()
      // Renamed or deleted by somebody else (logrotate): begin a new one.
      else if (!existsSync(path)) reopen()
      size += writeSync(file, text)
      isFailing = false
    } catch (error) {
      // A full disk refuses writes by itself; saying so once is enough.
      if (!isFailing) log.error('the audit log cannot be written', { path, error })
      isFailing = true
    }
  }
  const rotate = (): void => {
    renameSync(path, `${path}.1`)
    reopen()
  }
  const reopen = (): void => {
    const next = open()
    closeSync(file)
    file = next
    size = fstatSync(file).size
  }

  return {
    write(record) {
      // Those that one commit of the store has finished are written together, and before any of them is answered.
      if (lines === '') queueMicrotask(flush)
      lines += `${JSON.stringify({ time: timestamp(clock.now()), ...record })}\n`
    },
    [Symbol.dispose]() {
      flush()
      closeSync(file)
    },
  }
}
