// What did a container print? Read from the log files of this machine's nodes, following them when asked.
import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../clock/clock.ts'
import type { ContainerLogs } from './logs.ts'

export interface ContainerLogsDeps {
  readonly clock: Clock
  /** `<directory>/<namespace>_<pod>_<uid>/<container>/<attempt>.log` */
  readonly directory: string
}

/** How often a followed file is looked at: log files of processes announce nothing. */
const followMs = 200
const chunkBytes = 64 * 1024

export function createContainerLogs({ clock, directory }: ContainerLogsDeps): ContainerLogs {
  return async ({ namespace, pod, uid, container, previous, follow: following, tailLines, limitBytes }, signal) => {
    const folder = join(directory, `${namespace}_${pod}_${uid}`, container)
    const file = newest(folder, previous)
    if (file === undefined) return undefined
    const start = await startOf(file, tailLines, signal)
    const end = limitBytes === undefined ? Infinity : start + limitBytes
    if (following) return follow(file, { start, end }, signal, following.ended, clock)
    return createReadStream(file, { start, end: end - 1, signal }) as AsyncIterable<Buffer>
  }
}

/** The file of the newest attempt, or of the one before. */
function newest(folder: string, previous: boolean): string | undefined {
  if (!existsSync(folder)) return undefined
  const attempts = readdirSync(folder).flatMap((name) => (/^\d+\.log$/.test(name) ? [Number.parseInt(name, 10)] : []))
  const attempt = attempts.toSorted((a, b) => b - a)[previous ? 1 : 0]
  return attempt === undefined ? undefined : join(folder, `${attempt}.log`)
}

/** Where the last lines begin: read backwards in chunks, never the whole file. */
async function startOf(file: string, lines: number | undefined, signal: AbortSignal): Promise<number> {
  const { size } = statSync(file)
  if (lines === undefined) return 0
  let missing = lines
  if (missing === 0) return size
  await using handle = await open(file)
  for (let end = size; end > 0; end -= chunkBytes) {
    // A container may write one line without end.
    signal.throwIfAborted()
    const from = Math.max(0, end - chunkBytes)
    const { buffer } = await handle.read(Buffer.alloc(end - from), 0, end - from, from)
    for (let index = buffer.length - 1; index >= 0; index--) {
      // The newline that ends the last line begins no line of its own.
      if (buffer[index] === 10 && from + index !== size - 1 && --missing === 0) return from + index + 1
    }
  }
  return 0
}

async function* follow(
  file: string,
  { start, end }: { readonly start: number; readonly end: number },
  signal: AbortSignal,
  ended: () => boolean,
  clock: Clock,
): AsyncGenerator<Buffer> {
  await using handle = await open(file)
  for (let position = start; !signal.aborted;) {
    // Asked before reading: whatever was written before the end is then read for sure.
    const last = ended()
    while (!signal.aborted) {
      const wanted = Math.min(chunkBytes, end - position)
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(wanted), 0, wanted, position)
      if (bytesRead === 0) break
      position += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
    if (last || position === end) return
    await clock.sleep(followMs, signal).catch(() => {})
  }
}
