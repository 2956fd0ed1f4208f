// How does the process runtime start a container? Its directory and record first, then the supervisor (launcher.ts). A start that
// fails or hangs leaves no process and no directory behind.
import { join } from 'node:path/posix'
import type { MountInside } from '../../host/processes.ts'
import { awaitVolumesScript, enterScript, setupScript, superviseScript } from './launcher.ts'
import type { ProcessRuntimeState } from './live-containers.ts'
import { addContainer, readIdentity } from './live-containers.ts'
import type { ContainerRecord, ContainerRequest } from './port.ts'
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
const cleanUpMs = 20_000

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
  const saved = { startedAt, owner, graceMs }
  const token = tokenOf(saved)
  await files.mkdirAll(directory, 0o700, signal)
  await files.writeFile(join(directory, token), '', { mode: 0o600 }, signal)
  await files.writeFile(join(directory, 'record.json'), JSON.stringify(saved), { mode: 0o600 }, signal)
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
    await killUnfinishedStart(state, start)
    throw error
  })
  if (!/^started$/m.test(launched.message)) {
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
  const argv = supervisorCommand(state, start)
  const prepare = () => attachMounts(state, start, signal)
  const env = variablesOf(request)
  return await state.processes.launch({ argv, env, outputFile, timeoutMs: startTimeoutMs, prepare }, signal)
}

/** Setup has dropped the host's root and waits. */
async function attachMounts(
  { host, processes }: ProcessRuntimeState,
  { request, directory, token }: Start,
  signal: AbortSignal,
): Promise<void> {
  const { workingDirectory, readOnlyRoot } = request
  const protectedPaths = request.capabilities ? kernelPaths : { readOnly: [], masked: [] }
  const inside = { mounts: mountsInside(request), protectedPaths, workingDirectory, readOnlyRoot }
  const setup = await readIdentity(host.files, directory, signal, `setup-${token}`)
  await using namespace = setup && (await processes.mountNamespace(setup))
  if (!namespace) throw new Error('the process that sets the container up is gone')
  await namespace.attach(inside, signal)
}

/** Kills what a failed start left: its container must not come to life when nobody knows of it any more. */
async function killUnfinishedStart(state: ProcessRuntimeState, { record, directory, token }: Start): Promise<void> {
  const { host, processes, clock, log } = state
  const { files } = host
  using deadline = clock.deadline(cleanUpMs, new AbortController().signal)
  const { signal } = deadline
  try {
    // The token first: without it the setup gives up, whatever it does now.
    for (const name of [token, `begun-${token}`])
      await files.rename(join(directory, name), join(directory, `${token}.void`), signal).catch(() => {})
    const process =
      (await readIdentity(files, directory, signal)) ?? (await readIdentity(files, directory, signal, `setup-${token}`))
    if (process) {
      await using namespace = await processes.mountNamespace(process)
      await processes.signalGroup(process, 'SIGKILL')
      await namespace?.killAll()
      for (let waited = 0; waited < killMs && (await processes.isAlive(process)); waited += 20)
        await clock.sleep(20, signal)
    }
    await files.removeTree(directory, signal)
  } catch (error) {
    // Whoever asked gets the cause of the failed start, not this.
    log.warn('what is left of a failed start could not be removed', { container: record.id, error })
  }
}

/** The whole command line: supervise → unshare → setup → (setpriv) → enter → the container's command. */
function supervisorCommand(
  { realHidden }: ProcessRuntimeState,
  { request, directory, token }: Start,
): [string, ...string[]] {
  const argv: [string, ...string[]] = ['/bin/sh', '-c', superviseScript, 'hawser-supervise', directory, token]
  argv.push(request.stdin ? '1' : '', realHidden.join(':'))
  argv.push('unshare', '--mount', '--propagation', 'slave')
  // Process 1 leads a group of its own, so that it can be signalled; if unshare is killed, it ends too.
  argv.push(...(request.hostPid ? ['--'] : ['--pid', '--fork', '--kill-child', '--', 'setsid']))
  argv.push('/bin/sh', '-c', setupScript, 'hawser-setup', token)
  argv.push(flagsOf(request), request.workingDirectory)
  argv.push(privilegesOf(request), awaitVolumesScript + enterScript, ...request.argv)
  return argv
}

function flagsOf({ hostPid, capabilities, devices, mounts }: ContainerRequest): string {
  const ownDev = devices.length > 0 || mounts.some(({ target }) => target.startsWith('/dev/'))
  const flags = [hostPid && 'hostpid', !capabilities && 'hostsys']
  return [...flags, capabilities ? 'basicdev' : ownDev && 'owndev'].filter(Boolean).join(' ')
}

/** Through these, root without any capability could still change the machine. */
const kernelPaths = {
  readOnly: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
  masked: ['/proc/kcore', '/proc/keys', '/proc/latency_stats', '/proc/sched_debug', '/proc/timer_list'],
}

/** Outer mounts come before those inside them. */
function mountsInside({ mounts, devices, capabilities }: ContainerRequest): readonly MountInside[] {
  const propagations = { None: 'private', HostToContainer: 'slave', Bidirectional: 'shared' } as const
  const noDevices = capabilities !== undefined
  const volumes = mounts.map((mount) => ({ ...mount, noDevices, propagation: propagations[mount.propagation] }))
  const plain = { noDevices: false, readOnly: false, recursiveReadOnly: false, propagation: 'private' } as const
  return [
    ...volumes.sort((a, b) => depth(a.target) - depth(b.target)),
    ...devices.map((device) => ({ ...device, ...plain })),
  ]
}

const depth = (path: string) => path.split('/').filter(Boolean).length
