// Where does a pod's directory come from? To make one may take as long as a disk: ext4 looks for a place with room and reads
// the maps of that place first (2 to 70 ms, seen here). So some are made ahead while no pod comes, and a pod's is a rename.
import { join } from 'node:path/posix'
import type { PodUid } from '../api/names.ts'
import type { Clock } from '../clock/clock.ts'
import type { Files } from '../host/host.ts'
import { createKeyLoop } from '../loop/key-loop.ts'
import type { Log } from '../telemetry/log.ts'
import { podDirectory, sparesDirectory } from '../volume/paths.ts'

export interface PodDirectories extends AsyncDisposable {
  /** From now on there are spares. */
  begin(): void
  /** The pod's directory with what is in every pod's. What exists stays as it is. */
  make(pod: PodUid, signal: AbortSignal): Promise<void>
}

export interface PodDirectoriesDeps {
  readonly clock: Clock
  readonly log: Log
  readonly files: Files
  readonly root: string
}

const wanted = 64
/** No pod has come for so long: nobody waits for what is made ahead. */
const quietMs = 200
const mode = 0o750
const folders = ['volumes', 'plugins']

export function createPodDirectories({ clock, log, files, root }: PodDirectoriesDeps): PodDirectories {
  const base = sparesDirectory(root)
  const ready: string[] = []
  /** Of an earlier life, or taken and not used: perhaps half made. */
  const doubtful = new Set<string>()
  /** The first number that was never used as a name. */
  let next: number | undefined
  let quietAt = -Infinity

  const loop = createKeyLoop<'spares'>({
    name: 'spare pod directories',
    clock,
    workers: 1,
    backoff: { firstMs: 1_000, capMs: 60_000 },
    look: (_, signal) => fill(signal),
    onError: (_, error) => log.debug('no pod directories could be made ahead', { error }),
  })
  const fill = async (signal: AbortSignal) => {
    next ??= await takeOver(signal)
    while (ready.length < wanted) {
      if (clock.now() < quietAt) return { again: quietAt }
      const [name = String(next++)] = doubtful
      doubtful.add(name)
      await files.mkdirEach(join(base, name), folders, mode, signal)
      doubtful.delete(name)
      ready.push(name)
    }
    return undefined
  }
  const takeOver = async (signal: AbortSignal) => {
    await files.mkdirAll(base, mode, signal)
    // Room for each of them is looked for elsewhere, and not among thousands of entries that were deleted a moment ago.
    await files.spread(base, signal)
    const found = (await files.readDir(base, signal)).filter((name) => /^\d+$/.test(name))
    for (const name of found) doubtful.add(name)
    return Math.max(-1, ...found.map(Number)) + 1
  }
  const takeSpare = async (target: string, signal: AbortSignal) => {
    const name = ready.pop()
    if (name === undefined) return false
    try {
      await files.rename(join(base, name), target, signal)
      return true
    } catch {
      // The pod has one already, or the disk is ill: the long way finds out, and says it.
      doubtful.add(name)
      return false
    }
  }
  return {
    begin: () => loop.wake('spares'),
    async make(pod, signal) {
      quietAt = clock.now() + quietMs
      loop.wakeAt('spares', quietAt)
      const target = podDirectory(root, pod)
      if (!(await takeSpare(target, signal))) await files.mkdirEach(target, folders, mode, signal)
    },
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  }
}
