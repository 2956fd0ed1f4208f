// What did a container print? Read from the node's log files for `kubectl logs`, following them when asked.
import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { badRequest } from '../api/status-error.ts'
import type { ObjectRef } from '../api/meta.ts'
import type { Pod } from '../api/types.ts'
import type { PodLogs } from '../apiserver/http-verbs.ts'
import type { Clock } from '../clock/clock.ts'

export interface PodLogsDeps {
  readonly clock: Clock
  /** `<directory>/<node>/pods/<namespace>_<pod>_<uid>/<container>/<attempt>.log` */
  readonly directory: string
  pod(ref: ObjectRef): Promise<Pod>
}

/** How often a followed file is looked at: log files of processes announce nothing. */
const followMs = 200
const chunkBytes = 64 * 1024

export function createPodLogs({ clock, directory, pod: getPod }: PodLogsDeps): PodLogs {
  return async (pod, { container, previous, follow: following, tailLines, limitBytes }, signal) => {
    const { namespace, name, uid } = pod.metadata
    const folder = join(directory, pod.spec.nodeName ?? '', 'pods', `${namespace}_${name}_${uid}`, container)
    const file = newest(folder, previous)
    if (file === undefined) {
      if (previous) throw badRequest(`previous terminated container "${container}" in pod "${name}" not found`)
      return Buffer.alloc(0)
    }
    const start = await startOf(file, tailLines)
    const ref = namespace === undefined ? { name } : { namespace, name }
    if (following) {
      return follow(file, start, signal, async () => !isRunning(await getPod(ref).catch(() => undefined)), clock)
    }
    const end = limitBytes === undefined ? {} : { end: start + limitBytes - 1 }
    return createReadStream(file, { start, ...end, signal }) as AsyncIterable<Buffer>
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
async function startOf(file: string, lines: number | undefined): Promise<number> {
  const { size } = statSync(file)
  if (lines === undefined) return 0
  let missing = lines
  if (missing === 0) return size
  await using handle = await open(file)
  for (let end = size; end > 0; end -= chunkBytes) {
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
  start: number,
  signal: AbortSignal,
  ended: () => Promise<boolean>,
  clock: Clock,
): AsyncGenerator<Buffer> {
  await using handle = await open(file)
  for (let position = start; !signal.aborted;) {
    // Asked before reading: whatever was written before the end is then read for sure.
    const last = await ended()
    for (;;) {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(chunkBytes), 0, chunkBytes, position)
      if (bytesRead === 0) break
      position += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
    if (last) return
    await clock.sleep(followMs, signal).catch(() => {})
  }
}

function isRunning(pod: Pod | undefined): boolean {
  const phase = pod?.status?.phase
  return pod !== undefined && phase !== 'Succeeded' && phase !== 'Failed'
}
