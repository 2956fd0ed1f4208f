// How is a node logged in to an iSCSI target, and out again? By iscsiadm and sysfs (ISCSI-5 … ISCSI-8, DVC-3).
// CHAP passwords are written into open-iscsi's records: arguments are seen by every process.

import { basename, dirname, join } from 'node:path/posix'
import type { Clock } from '../../clock/clock.ts'
import type { CommandResult, Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import { asVolumeError, refused, VolumeError } from '../../volume/effect.ts'
import type { DeviceTree } from '../disk/multipath.ts'
import { deleteDisk, flushMultipath, multipathParent, names, pathsOf } from '../disk/multipath.ts'
import type { IscsiRecord } from './records.ts'
import { writeRecord } from './records.ts'
import type { IscsiTarget } from './target.ts'
import { devicePathOf, isCloned } from './target.ts'

export interface SessionDeps {
  readonly host: Pick<Host, 'files' | 'run'>
  readonly clock: Clock
  readonly tree: DeviceTree
}

/** Names and values of open-iscsi, e.g. `node.session.auth.password`. */
type ChapSettings = Readonly<Record<string, string>>
export interface Chap {
  readonly discovery: ChapSettings
  readonly session: ChapSettings
}

const toolTimeoutMs = 60_000
const deviceWaitMs = 30_000
const rounds = 5
/** iscsiadm: no session found, no record found. */
const nothingThere = [2, 21]

/** Logs in to all portals that can be reached; answers the device to use, multipath if there is one. */
export async function login(deps: SessionDeps, target: IscsiTarget, chap: Chap, signal: AbortSignal): Promise<string> {
  if (target.interface !== target.initialInterface) await cloneInterface(deps, target, signal)
  const found = new Map<string, string>()
  const problems: VolumeError[] = []
  for (let round = 1; round <= rounds; round += 1) {
    for (const portal of target.portals.filter((one) => !found.has(one))) {
      try {
        found.set(portal, await loginPortal(deps, target, portal, chap, signal))
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof VolumeError && error.code === 'NOPROGRAM') throw error
        problems.push(asVolumeError(error))
      }
    }
    if (found.size === 0) {
      if (target.interface !== target.initialInterface) await deleteInterface(deps, target.interface, signal)
      const last = problems.at(-1)?.message ?? ''
      // A portal that was logged in to and showed no disk keeps its session.
      const effect = problems.every((problem) => problem.effect === 'none') ? 'none' : 'unknown'
      throw refused('LoginFailed', `failed to get any path for iscsi disk, last err seen:\n${last}`, effect)
    }
    if (found.size === target.portals.length || (round >= 2 && found.size >= 2)) break
  }
  const [device = ''] = found.values()
  return (await waitForMultipath(deps, device, target.portals.length > 1 ? 10_000 : 0, signal)) || device
}

async function loginPortal(
  deps: SessionDeps,
  target: IscsiTarget,
  portal: string,
  chap: Chap,
  signal: AbortSignal,
): Promise<string> {
  const { iqn, interface: face } = target
  let hosts = await sessionHosts(deps, iqn, signal)
  if (!hosts.has(portal)) {
    const discovery = ['-m', 'discoverydb', '-t', 'sendtargets', '-p', portal, '-I', face]
    const node = ['-m', 'node', '-p', portal, '-T', iqn, '-I', face]
    await iscsiadm(deps, [...discovery, '-o', 'new'], signal)
    const record = { portal, iqn, interface: face }
    await setAll(deps, discovery, chap.discovery, { ...record, kind: 'discovery' }, signal)
    const discovered = await iscsiadm(deps, [...discovery, '--discover'], signal)
    if (discovered.exitCode !== 0) {
      await iscsiadm(deps, [...discovery, '-o', 'delete'], signal)
      throw refused(
        'DiscoveryFailed',
        `iscsi: failed to sendtargets to portal ${portal}: ${outputOf(discovered)}`,
        'none',
      )
    }
    await iscsiadm(deps, [...node, '-o', 'update', '-n', 'node.session.scan', '-v', 'manual'], signal)
    await setAll(deps, node, chap.session, { ...record, kind: 'node' }, signal)
    const loggedIn = await iscsiadm(deps, [...node, '--login'], signal)
    if (loggedIn.exitCode !== 0) {
      await iscsiadm(deps, [...node, '-o', 'delete'], signal)
      throw refused('LoginFailed', `iscsi: failed to attach disk: ${outputOf(loggedIn)}`, 'none')
    }
    await iscsiadm(deps, [...node, '-o', 'update', '-n', 'node.startup', '-v', 'manual'], signal)
    hosts = await sessionHosts(deps, iqn, signal)
  }
  const host = hosts.get(portal)
  if (host === undefined)
    throw refused('SessionMissing', `could not get SCSI host number for portal ${portal}`, 'unknown')
  const scan = join(deps.tree.sys, 'class', 'scsi_host', `host${host}`, 'scan')
  await deps.host.files.writeFile(scan, `0 0 ${target.lun}`, { mode: 0o200 }, signal)
  return waitForDevice(deps, portal, target, signal)
}

async function setAll(
  deps: SessionDeps,
  prefix: readonly string[],
  settings: ChapSettings,
  record: IscsiRecord,
  signal: AbortSignal,
): Promise<void> {
  const isSecret = (name: string) => /\.password(_in)?$/.test(name)
  const secrets = Object.entries(settings).filter(([name]) => isSecret(name))
  for (const [name, value] of Object.entries(settings)) {
    if (isSecret(name)) continue
    const result = await iscsiadm(deps, [...prefix, '-o', 'update', '-n', name, '-v', value], signal)
    if (result.exitCode !== 0)
      throw refused(
        'ChapFailed',
        `iscsi: failed to update ${name} with CHAP: exit status ${result.exitCode}`,
        'unknown',
      )
  }
  if (secrets.length > 0) await writeRecord(deps.host.files, record, Object.fromEntries(secrets), signal)
}

/** Removes the disk from the kernel; the session ends only when no other disk of it is in use here (ISCSI-8). */
export async function logout(
  deps: SessionDeps,
  target: IscsiTarget,
  device: string,
  lastUser: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { files } = deps.host
  for (const path of await devicesOf(deps, target, device, signal)) {
    if (basename(path).startsWith('dm-')) await flushMultipath(deps.host, path, signal)
    for (const disk of await pathsOf(files, deps.tree, path, signal)) await deleteDisk(files, deps.tree, disk, signal)
  }
  if (!lastUser) return
  const sessions = await sessionsOf(deps, target.iqn, signal)
  const clones = new Set(isCloned(target, target.interface) ? [target.interface] : [])
  for (const portal of target.portals) {
    const face = interfaceOf(sessions, portal, target)
    const words = ['-m', 'node', '-p', portal, '-T', target.iqn, ...(face === '' ? [] : ['-I', face])]
    for (const action of [['--logout'], ['-o', 'delete']]) {
      const result = await iscsiadm(deps, [...words, ...action], signal)
      if (result.exitCode !== 0 && !nothingThere.includes(result.exitCode)) {
        throw refused('LogoutFailed', `iscsi: failed to detach disk: ${outputOf(result)}`, 'unknown')
      }
    }
    if (isCloned(target, face)) clones.add(face)
  }
  for (const clone of clones) await deleteInterface(deps, clone, signal)
}

/** A session is shared: it may have been made by another disk of the target, with that disk's interface. */
function interfaceOf(sessions: readonly Session[], portal: string, target: IscsiTarget): string {
  const faces = sessions.flatMap((one) => (one.portals.includes(portal) && one.interface !== '' ? [one.interface] : []))
  return faces.find((face) => face === target.interface) ?? faces[0] ?? target.interface
}

async function devicesOf(
  deps: SessionDeps,
  target: IscsiTarget,
  device: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { files } = deps.host
  const found = new Set<string>()
  if (device !== '' && (await files.exists(device, signal))) found.add(await files.realpath(device, signal))
  for (const portal of target.portals) {
    const path = await findDevice(deps, portal, target, signal)
    if (path === undefined) continue
    const disk = await files.realpath(path, signal)
    found.add((await multipathParent(files, deps.tree, disk, signal)) || disk)
  }
  return [...found]
}

/** Portal → number of the SCSI host that holds its session with this target (DVC-3). */
export async function sessionHosts(
  deps: Pick<SessionDeps, 'host' | 'tree'>,
  iqn: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const sessions = await sessionsOf(deps, iqn, signal)
  return new Map(sessions.flatMap(({ portals, host }) => portals.map((portal) => [portal, host] as const)))
}

interface Session {
  /** A portal may be known by two addresses. */
  readonly portals: readonly string[]
  readonly host: number
  /** The interface it was made with; '' if the kernel does not say. */
  readonly interface: string
}

async function sessionsOf(
  { host, tree }: Pick<SessionDeps, 'host' | 'tree'>,
  iqn: string,
  signal: AbortSignal,
): Promise<readonly Session[]> {
  const { files } = host
  const result: Session[] = []
  const base = join(tree.sys, 'class', 'iscsi_host')
  for (const hostName of await names(files, base, signal)) {
    const number = Number(/^host(\d+)$/.exec(hostName)?.[1] ?? Number.NaN)
    if (Number.isNaN(number)) continue
    const device = join(base, hostName, 'device')
    for (const session of (await names(files, device, signal)).filter((name) => name.startsWith('session'))) {
      const facts = join(device, session, 'iscsi_session', session)
      if ((await textOf(files, join(facts, 'targetname'), signal)) !== iqn) continue
      const portals = await portalsOf(files, join(device, session), signal)
      result.push({ portals, host: number, interface: await textOf(files, join(facts, 'ifacename'), signal) })
    }
  }
  return result
}

async function portalsOf(
  files: SessionDeps['host']['files'],
  session: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const portals: string[] = []
  for (const connection of (await names(files, session, signal)).filter((name) => name.startsWith('connection'))) {
    const at = join(session, connection, 'iscsi_connection', connection)
    for (const prefix of ['', 'persistent_']) {
      const address = await textOf(files, join(at, `${prefix}address`), signal)
      const port = await textOf(files, join(at, `${prefix}port`), signal)
      if (address !== '' && port !== '') portals.push(`${address.includes(':') ? `[${address}]` : address}:${port}`)
    }
  }
  return portals
}

async function textOf(files: SessionDeps['host']['files'], path: string, signal: AbortSignal): Promise<string> {
  try {
    return (await files.readText(path, signal)).trim()
  } catch (error) {
    if (hasCode(error, 'ABORTED')) throw error
    return ''
  }
}

/** An interface of our own carries the initiator's name (ISCSI-2). */
async function cloneInterface(deps: SessionDeps, target: IscsiTarget, signal: AbortSignal): Promise<void> {
  const shown = await iscsiadm(deps, ['-m', 'iface', '-I', target.initialInterface, '-o', 'show'], signal)
  if (shown.exitCode !== 0)
    throw refused('InterfaceMissing', `iscsi: failed to show iface records: ${outputOf(shown)}`, 'none')
  const settings = shown.stdout
    .split('\n')
    .map((line) => /^(iface\.[^ ]+) = (.*)$/.exec(line.trim()))
    .flatMap((match) =>
      match === null || match[2] === '<empty>' || match[1] === 'iface.iscsi_ifacename'
        ? []
        : [[match[1] ?? '', match[2] ?? ''] as const],
    )
  await iscsiadm(deps, ['-m', 'iface', '-I', target.interface, '-o', 'new'], signal)
  const all = new Map([...settings, ['iface.initiatorname', target.initiatorName] as const])
  for (const [name, value] of all) {
    const result = await iscsiadm(
      deps,
      ['-m', 'iface', '-I', target.interface, '-o', 'update', '-n', name, '-v', value],
      signal,
    )
    if (result.exitCode === 0) continue
    await deleteInterface(deps, target.interface, signal)
    throw refused('InterfaceFailed', `iscsi: failed to update iface records: ${outputOf(result)}`, 'unknown')
  }
}

async function deleteInterface(deps: SessionDeps, name: string, signal: AbortSignal): Promise<void> {
  await iscsiadm(deps, ['-m', 'iface', '-I', name, '-o', 'delete'], signal)
}

async function iscsiadm({ host }: SessionDeps, words: readonly string[], signal: AbortSignal): Promise<CommandResult> {
  try {
    return await host.run({ argv: ['iscsiadm', ...words], timeoutMs: toolTimeoutMs }, signal)
  } catch (error) {
    if (!hasCode(error, 'NOPROGRAM')) throw error
    // The kubelet's message; the cause names the program.
    throw new VolumeError('NOPROGRAM', 'executable file not found in $PATH', { effect: 'none', cause: error })
  }
}

function outputOf(result: CommandResult): string {
  return `${result.stdout}${result.stderr}`.trim() || `exit status ${result.exitCode}`
}

async function waitForDevice(
  deps: SessionDeps,
  portal: string,
  target: IscsiTarget,
  signal: AbortSignal,
): Promise<string> {
  for (let waited = 0; ; waited += 1000) {
    const found = await findDevice(deps, portal, target, signal)
    if (found !== undefined) return found
    const path = devicePathOf(deps.tree.dev, portal, target)
    if (waited >= deviceWaitMs)
      throw refused(
        'DeviceMissing',
        `Timed out waiting for device at path ${path} after ${deviceWaitMs / 1000}s`,
        'unknown',
      )
    await deps.clock.sleep(1000, signal)
  }
}

/** With a hardware adapter the name begins with the adapter's PCI address (ISCSI-5). */
async function findDevice(
  { host, tree }: SessionDeps,
  portal: string,
  target: IscsiTarget,
  signal: AbortSignal,
): Promise<string | undefined> {
  const plain = devicePathOf(tree.dev, portal, target)
  if (await host.files.exists(plain, signal)) return plain
  const folder = dirname(plain)
  const entry = (await names(host.files, folder, signal)).find(
    (name) => name.startsWith('pci-') && name.endsWith(`-${basename(plain)}`),
  )
  return entry === undefined ? undefined : join(folder, entry)
}

async function waitForMultipath(
  deps: SessionDeps,
  device: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string> {
  for (let waited = 0; ; waited += 1000) {
    const parent = await multipathParent(deps.host.files, deps.tree, device, signal)
    if (parent !== '' || waited >= timeoutMs) return parent
    await deps.clock.sleep(1000, signal)
  }
}
