// How does the process runtime start a container? Its directory and record first, then the supervisor (launcher.ts). A start that
// fails or hangs leaves no process and no directory behind.
import { join } from 'node:path/posix'
import type { Files } from '../../host/host.ts'
import { enterScript, setupScript, superviseScript } from './launcher.ts'
import type { ProcessRuntimeState } from './live-containers.ts'
import { addContainer, readIdentity } from './live-containers.ts'
import type { ContainerMount, ContainerRecord, ContainerRequest } from './port.ts'
import { privilegesOf, variablesOf } from './process-command.ts'
import { containerId, tokenOf } from './records.ts'

/** One start of a container: its record, its files, and the token that its supervisor takes. */
interface Start {
  readonly request: ContainerRequest
  readonly record: ContainerRecord
  readonly directory: string
  readonly token: string
  readonly outputFile: string
}

const startTimeoutMs = 60_000
const killMs = 2_000

export async function startContainer(
  state: ProcessRuntimeState,
  request: ContainerRequest,
  signal: AbortSignal,
): Promise<ContainerRecord> {
  const { files } = state.host
  const { pod, name, attempt, graceMs } = request
  const directory = join(state.directory, pod, name, String(attempt))
  const owner = `${request.namespace}/${request.podName}`
  const startedAt = state.clock.now()
  const record: ContainerRecord = {
    pod,
    name,
    attempt,
    id: containerId(pod, name, attempt),
    startedAt,
    owner,
    graceMs,
  }
  const saved = { startedAt, pause: request.argv.length === 0, owner, graceMs }
  const token = tokenOf(saved)
  await files.mkdirAll(directory, 0o700, signal)
  await files.writeFile(join(directory, token), '', { mode: 0o600 }, signal)
  await files.writeFile(join(directory, 'record.json'), JSON.stringify(saved), { mode: 0o600 }, signal)
  if (saved.pause) return addContainer(state, { record, directory })
  const logs = join(state.logDirectory, `${request.namespace}_${request.podName}_${pod}`, name)
  await files.mkdirAll(logs, 0o755, signal)
  const start: Start = { request, record, directory, token, outputFile: join(logs, `${attempt}.log`) }
  return await launchSupervisor(state, start, signal)
}

async function launchSupervisor(
  state: ProcessRuntimeState,
  start: Start,
  signal: AbortSignal,
): Promise<ContainerRecord> {
  const { host, processes } = state
  const { record, directory } = start
  const launched = await launch(state, start, signal).catch(async (error: unknown) => {
    await killUnfinishedStart(state, directory)
    throw error
  })
  if (!launched.message.startsWith('started\n')) {
    await launched.exited
    await host.files.removeTree(directory, signal)
    throw new Error(launched.message.trim() || 'the container could not be set up')
  }
  const supervisorGone = launched.exited
  // The supervisor's pid is never taken for the container's: exec would run in the host's mount namespace.
  // The container runs from here on: whatever fails now, it is entered, so that no second copy is started beside it.
  const unseen = (error: unknown) => void state.log.warn('started container not seen', { container: record.id, error })
  const process = await readIdentity(host.files, directory, signal).catch(unseen)
  const namespace = process ? await processes.mountNamespace(process).catch(unseen) : undefined
  return addContainer(state, { record, directory, process: process ?? 'unknown', namespace, supervisorGone })
}

async function launch(state: ProcessRuntimeState, start: Start, signal: AbortSignal) {
  const { request, outputFile } = start
  const argv = await supervisorCommand(state, start, signal)
  return await state.processes.launch(
    { argv, env: variablesOf(request), outputFile, timeoutMs: startTimeoutMs },
    signal,
  )
}

/** Kills what a failed start left: its container must not come to life when nobody knows of it any more. */
async function killUnfinishedStart({ host, processes, clock }: ProcessRuntimeState, directory: string): Promise<void> {
  using deadline = clock.deadline(killMs, new AbortController().signal)
  const process = await readIdentity(host.files, directory, deadline.signal)
  if (process) {
    await using namespace = await processes.mountNamespace(process)
    await processes.signalGroup(process, 'SIGKILL')
    await namespace?.killAll()
    await processes.gone(process, deadline.signal).catch(() => {})
  }
  await host.files.removeTree(directory, deadline.signal)
}

/** The whole command line: supervise → unshare → setup → (setpriv) → enter → the container's command. */
async function supervisorCommand(
  { host: { files }, hidden }: ProcessRuntimeState,
  { request, directory, token }: Start,
  signal: AbortSignal,
): Promise<[string, ...string[]]> {
  const binds = await Promise.all(
    [...request.mounts]
      .sort((a, b) => depth(a.target) - depth(b.target))
      .map((mount) => bindArguments(files, mount, signal)),
  )
  for (const { source, target } of request.devices) binds.push([await files.realpath(source, signal), target, 'device'])
  const unchanged = request.mounts.some(({ propagation }) => propagation === 'Bidirectional')
  const ownDev = request.devices.length > 0 || request.mounts.some(({ target }) => target.startsWith('/dev/'))
  const argv: [string, ...string[]] = ['/bin/sh', '-c', superviseScript, 'hawser-supervise', directory, token]
  argv.push(request.stdin ? '1' : '')
  argv.push('unshare', '--mount', '--propagation', unchanged ? 'unchanged' : 'slave', '--')
  argv.push('/bin/sh', '-c', setupScript, 'hawser-setup', directory, token, hidden.join(':'))
  argv.push(request.readOnlyRoot ? '1' : '', ownDev ? '1' : '', request.workingDirectory)
  argv.push(privilegesOf(request), enterScript, String(binds.length), ...binds.flat(), ...request.argv)
  return argv
}

async function bindArguments(files: Files, mount: ContainerMount, signal: AbortSignal): Promise<string[]> {
  const propagation = { None: 'rprivate', HostToContainer: 'rslave', Bidirectional: 'rshared' }[mount.propagation]
  const readOnly = !mount.readOnly ? '' : mount.recursiveReadOnly ? ',rro' : ',ro'
  return [await files.realpath(mount.source, signal), mount.target, `${propagation}${readOnly}`]
}

const depth = (path: string) => path.split('/').filter(Boolean).length
