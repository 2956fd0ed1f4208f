// Which containers did an earlier agent process leave? Each directory of a container is read: it still runs, it has ended, or it
// never quite began.
import { join } from 'node:path/posix'
import { podUid } from '../../api/names.ts'
import type { PodUid } from '../../api/names.ts'
import { hasCode } from '../../host/host-error.ts'
import { readIfThere } from '../../host/read-if-there.ts'
import type { ProcessRuntimeState } from './live-containers.ts'
import { addContainer, listDirectory, readIdentity } from './live-containers.ts'
import type { ContainerRecord } from './port.ts'
import { containerId, latestAttempts, lostExit, parseExit, parseRecord, tokenOf } from './records.ts'
import type { SavedRecord } from './records.ts'

/** The directory of a pod that is being removed has this before its name. */
export const removalPrefix = '.going-'
/** How long a setup may take from the token's last name to its pid: two renames. */
const beginMs = 5_000

export async function restoreContainers(
  state: ProcessRuntimeState,
  signal: AbortSignal,
): Promise<readonly ContainerRecord[]> {
  const { files } = state.host
  const found: ContainerRecord[] = []
  for (const pod of await listDirectory(files, state.directory, signal)) {
    if (pod.startsWith(removalPrefix)) {
      await finishRemoval(state, join(state.directory, pod), signal)
      continue
    }
    for (const name of await listDirectory(files, join(state.directory, pod), signal)) {
      for (const attempt of latestAttempts(await listDirectory(files, join(state.directory, pod, name), signal))) {
        const record = await adopt(state, podUid(pod), name, attempt, signal)
        if (record) found.push(record)
      }
    }
  }
  return found
}

async function adopt(state: ProcessRuntimeState, pod: PodUid, name: string, attempt: number, signal: AbortSignal) {
  const { host, processes, clock } = state
  const directory = join(state.directory, pod, name, String(attempt))
  const text = await readIfThere(host.files, join(directory, 'record.json'), signal)
  const saved = parseRecord(text) ?? (await recordOfLiving(state, directory, signal))
  if (!saved || saved.pause || (await neverBegan(state, directory, saved, signal))) {
    // The agent died before the container began, or it never had a process; its next start uses the same attempt.
    await host.files.removeTree(directory, signal)
    return undefined
  }
  const process = await readIdentity(host.files, directory, signal)
  const written = parseExit(await readIfThere(host.files, join(directory, 'exit'), signal))
  const { pause: _pause, ...rest } = saved
  const record: ContainerRecord = { pod, name, attempt, id: containerId(pod, name, attempt), ...rest }
  if (written || !process) {
    const ended = { ...record, exit: written ?? lostExit(clock.now()) }
    return addContainer(state, { record: ended, directory, process: process ?? 'unknown' })
  }
  return addContainer(state, { record, directory, process, namespace: await processes.mountNamespace(process) })
}

/** A directory that cannot be removed now does not keep the agent from starting; the next restart tries again. */
async function finishRemoval({ host, log }: ProcessRuntimeState, path: string, signal: AbortSignal): Promise<void> {
  await host.files.removeTree(path, signal).catch((error: unknown) => {
    signal.throwIfAborted()
    log.warn('what is left of a container could not be removed', { path, error })
  })
}

/** A process that lives must not be started a second time, even if its record is lost. */
async function recordOfLiving(
  { host, processes, clock }: ProcessRuntimeState,
  directory: string,
  signal: AbortSignal,
): Promise<SavedRecord | undefined> {
  const process = await readIdentity(host.files, directory, signal)
  return process && (await processes.isAlive(process)) ? { startedAt: clock.now() } : undefined
}

/**
 * Takes the token away from a supervisor or a setup that has not begun: without an agent it never would. One that has renamed the
 * token to `begun` writes its pid in a moment.
 */
async function neverBegan(
  { host: { files }, clock }: ProcessRuntimeState,
  directory: string,
  saved: SavedRecord,
  signal: AbortSignal,
): Promise<boolean> {
  const hasBegun = async () =>
    (await readIdentity(files, directory, signal)) !== undefined ||
    (await files.exists(join(directory, 'exit'), signal))
  if (await hasBegun()) return false
  const token = tokenOf(saved)
  const takeAway = (name: string) =>
    files.rename(join(directory, name), join(directory, `${token}.void`), signal).then(
      () => true,
      (error: unknown) => {
        if (hasCode(error, 'ENOENT')) return false
        throw error
      },
    )
  // In the order in which its names change: it cannot slip past.
  const taken = !(await takeAway(token)) && !(await takeAway(`begun-${token}`))
  for (let waited = 0; taken && waited < beginMs; waited += 50) {
    if (await hasBegun()) return false
    await clock.sleep(50, signal)
  }
  return true
}
