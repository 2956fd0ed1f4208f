// What lies in the data directory that nobody owns any more? Pod directories, mounts, loop devices and sockets.
import { existsSync, readdirSync, readFileSync, realpathSync, statfsSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fullness } from '../../csi/kit/space.ts'
import { parseMountinfo } from '../../host/linux/mountinfo.ts'
import type { MountInfo } from '../../host/host.ts'
import { lockHolder } from '../../installation/data-directory.ts'
import { directoryRecordName, nodeRecordName } from '../../installation/outer-root.ts'
import { readDirectoryRecord, readNodeRecord } from '../../installation/records.ts'
import type { Finding } from './finding.ts'
import { ok, problem, warn } from './finding.ts'
import type { HeldVolume, KnownStorage, StagingDirectory } from './local-volumes.ts'
import {
  judgeHeldVolumes,
  judgeMarks,
  judgeStagingDirectories,
  readHeldVolumes,
  readStagingDirectories,
} from './local-volumes.ts'

interface LoopFacts {
  readonly device: string
  readonly file: string
  /** Its file was deleted under it. */
  readonly deleted: boolean
}

interface PodDirectory {
  readonly uid: string
  /** Since it changed. */
  readonly ageMs: number
}

export interface DirectoryFacts {
  readonly path: string
  readonly exists: boolean
  readonly mode: number
  readonly freeBytes: number
  /** Of the disk that holds the directory. */
  readonly diskBytes: number
  /** The process that holds the directory now. */
  readonly holder: string | undefined
  readonly mounts: readonly MountInfo[]
  /** The mount that holds the directory itself. */
  readonly under: MountInfo | undefined
  readonly loops: readonly LoopFacts[]
  /** Node roots in it, with the uids of the pods that have a directory. */
  readonly roots: readonly { readonly root: string; readonly pods: readonly PodDirectory[] }[]
  /** The cluster that the directory or a node root in it remembers. */
  readonly cluster: string | undefined
  /** Uids of pods of which a process runs. */
  readonly running: ReadonlySet<string>
  readonly sockets: readonly string[]
  /** What the built-in driver holds. */
  readonly held: readonly HeldVolume[]
  readonly staging: readonly StagingDirectory[]
  /** Files that hold secrets and can be read by others. */
  readonly open: readonly string[]
}

const secretFiles = ['admin.token', 'token.key', 'kubeconfig', 'ca.key', 'server.key', 'admin.key', 'store.db']

export function readDirectory(given: string): DirectoryFacts {
  const exists = existsSync(given)
  const path = exists ? realpathSync(given) : given
  const all = parseMountinfo(readFileSync('/proc/self/mountinfo', 'utf8'))
  const roots = exists ? nodeRoots(path) : []
  const now = Date.now()
  const space = exists ? statfsSync(path) : undefined
  return {
    path,
    exists,
    mode: exists ? statSync(path).mode & 0o7777 : 0,
    freeBytes: space ? space.bavail * space.bsize : 0,
    diskBytes: space ? space.blocks * space.bsize : 0,
    holder: exists ? lockHolder(path) : undefined,
    mounts: all.filter(({ mountPoint }) => mountPoint.startsWith(`${path}/`)),
    under: all
      .filter(({ mountPoint }) => `${path}/`.startsWith(mountPoint === '/' ? '/' : `${mountPoint}/`))
      .toSorted((a, b) => b.mountPoint.length - a.mountPoint.length)[0],
    loops: loopDevices().filter(({ file }) => file.startsWith(`${path}/`)),
    roots: roots.map((root) => ({ root, pods: podDirectories(join(root, 'pods'), now) })),
    cluster: exists ? clusterOf(path, roots) : undefined,
    running: runningPods(join(path, 'containers')),
    sockets: roots.flatMap((root) => socketsOf(root)),
    held: readHeldVolumes(path, now),
    staging: readStagingDirectories(roots, now),
    open: secretFiles
      .map((name) => join(path, name))
      .filter((file) => existsSync(file) && (statSync(file).mode & 0o077) !== 0),
  }
}

/** `pods` are the uids the server knows, `storage` its volumes; undefined when no server answered. */
export function judgeDirectory(
  facts: DirectoryFacts,
  pods: ReadonlySet<string> | undefined,
  storage?: KnownStorage,
): Finding[] {
  const mounted = new Set(facts.mounts.map(({ mountPoint }) => mountPoint))
  const bound = new Set(facts.loops.map(({ file }) => file))
  const socket = facts.sockets.find((each) => each.includes('/local.hawser.dev/'))
  if (!facts.exists) return [warn('data directory', `${facts.path} does not exist yet`, 'hawser up')]
  return [
    judgeSpace(facts),
    ...facts.open.map((file) => problem('secrets', `others can read ${file}`, `chmod 600 ${file}`)),
    facts.holder ? ok('lock', `in use by process ${facts.holder}`) : ok('lock', 'no process uses the data directory'),
    ...judgePropagation(facts),
    ...judgePods(facts, pods),
    ...judgeMounts(facts, pods),
    ...judgeLoops(facts),
    ...judgeHeldVolumes(facts.held, storage, socket),
    ...judgeMarks(facts.held, mounted, bound),
    ...judgeStagingDirectories(facts.staging, mounted, storage),
  ]
}

/** The built-in driver lets writers wait when its disk is full. */
function judgeSpace({ path, freeBytes, diskBytes }: DirectoryFacts): Finding {
  const free = `${path} has ${(freeBytes / 2 ** 30).toFixed(1)} GiB free`
  const fix = `free space on the disk of ${path}, or enlarge it`
  const level = fullness({ capacityBytes: BigInt(diskBytes), availableBytes: BigInt(freeBytes) })
  switch (level) {
    case 'out':
      return problem('data directory', `${free}: writers of thin volumes wait, and no volume is made`, fix)
    case 'low':
      return warn('data directory', `${free}: soon writers of thin volumes will wait`, fix)
    case 'plenty':
      return ok('data directory', free)
    default:
      return level satisfies never
  }
}

function judgePropagation({ under, roots, mounts }: DirectoryFacts): Finding[] {
  const shared = roots.filter(({ root }) =>
    mounts.some((each) => each.mountPoint === root && each.propagation === 'shared'),
  )
  if (roots.length > 0 && shared.length === roots.length)
    return [ok('mount propagation', 'the node roots are shared mounts')]
  if (under?.propagation === 'shared') return [ok('mount propagation', `${under.mountPoint} is a shared mount`)]
  return [ok('mount propagation', 'private here; the node agent makes its root a shared mount when it starts')]
}

function judgePods({ roots }: DirectoryFacts, known: ReadonlySet<string> | undefined): Finding[] {
  const all = roots.flatMap(({ root, pods }) => pods.map(({ uid }) => ({ uid, path: join(root, 'pods', uid) })))
  if (!known) return all.length === 0 ? [] : [ok('pod directories', `${all.length} (no server to compare with)`)]
  const orphans = all.filter(({ uid }) => !known.has(uid))
  if (orphans.length === 0) return [ok('pod directories', `${all.length}, all of pods that exist`)]
  return orphans.map(({ path }) =>
    warn(
      'pod directories',
      `${path} belongs to no pod; the agent removes it once nothing is mounted there`,
      `findmnt -R ${path}`,
    ),
  )
}

function judgeMounts({ mounts, path, holder }: DirectoryFacts, known: ReadonlySet<string> | undefined): Finding[] {
  const own = mounts.filter(({ mountPoint }) => podOf(mountPoint) !== undefined)
  if (!known && !holder && own.length > 0) {
    return [
      warn(
        'mounts',
        `${own.length} mounts of pods stay under ${path} while nothing runs`,
        `hawser up --data-dir ${path} (takes them over again and cleans up after deleted pods)`,
      ),
    ]
  }
  if (!known) return []
  const stale = own.filter(({ mountPoint }) => !known.has(podOf(mountPoint)!))
  if (stale.length === 0) return [ok('mounts', `${own.length} under pod directories, all of pods that exist`)]
  // Deepest first, so that the commands work in the order they are printed.
  return stale
    .toSorted((a, b) => b.mountPoint.length - a.mountPoint.length)
    .map(({ mountPoint }) => problem('mounts', `${mountPoint} belongs to no pod`, `umount ${mountPoint}`))
}

function judgeLoops({ loops, mounts, holder, held, roots }: DirectoryFacts): Finding[] {
  const pods = new Set(roots.flatMap((each) => each.pods.map(({ uid }) => uid)))
  const marked = new Set(held.filter(({ marks }) => marks.length > 0).map(({ path }) => `${path}/image`))
  const bad = loops.flatMap(({ device, file, deleted }): Finding[] => {
    if (deleted) return [problem('loop devices', `${device} holds the deleted file ${file}`, `losetup -d ${device}`)]
    // The node holds the raw device of a pod open by a loop device on a file of the pod's uid.
    if (pods.has(basename(file))) return []
    // Between staging and unstaging a loop device without a mount is normal: then the driver has a record of it.
    const mounted = mounts.some(({ source }) => source === device)
    return mounted || (holder !== undefined && marked.has(file))
      ? []
      : [warn('loop devices', `${device} holds ${file}, and nothing has it mounted`, `losetup -d ${device}`)]
  })
  return bad.length > 0 ? bad : [ok('loop devices', `${loops.length} hold images of the data directory`)]
}

/** The uid of the pod whose directory a path lies in. */
export function podOf(path: string): string | undefined {
  return /\/pods\/([^/]+)\/(?:volumes|volumeDevices|volume-subpaths|plugins)(?:\/|$)/.exec(path)?.[1]
}

function podDirectories(directory: string, now: number): PodDirectory[] {
  return names(directory).flatMap((uid) => {
    const stat = statSync(join(directory, uid), { throwIfNoEntry: false })
    return stat ? [{ uid, ageMs: now - stat.mtimeMs }] : []
  })
}

/** Undefined also where two records disagree. */
function clusterOf(path: string, roots: readonly string[]): string | undefined {
  const own = readDirectoryRecord(join(path, directoryRecordName))
  const nodes = roots.map((root) => readNodeRecord(join(root, nodeRecordName)))
  const marks = [
    ...(own.kind === 'read' && own.record.store === 'durable' ? [own.record.seen] : []),
    ...nodes.flatMap((each) => (each.kind === 'read' && each.record.seen ? [each.record.seen] : [])),
  ]
  const clusters = new Set(marks.map(({ cluster }) => cluster))
  return clusters.size === 1 ? [...clusters][0] : undefined
}

/** By the pid files of the process runtime. A pid that another program has by now counts, too: rather keep than remove. */
function runningPods(containers: string): ReadonlySet<string> {
  const running = new Set<string>()
  for (const node of names(containers)) {
    for (const uid of names(join(containers, node))) {
      const pod = join(containers, node, uid)
      for (const container of names(pod)) {
        for (const attempt of names(join(pod, container))) {
          const pid = readOrNothing(join(pod, container, attempt, 'pid'))?.split(' ')[0]
          if (pid !== undefined && existsSync(`/proc/${pid}`)) running.add(uid)
        }
      }
    }
  }
  return running
}

/** Where the nodes of a data directory keep their files. */
export function nodeRoots(path: string): string[] {
  const roots = [join(path, 'node'), ...names(join(path, 'nodes')).map((name) => join(path, 'nodes', name))]
  return roots.filter((root) => existsSync(root))
}

function socketsOf(root: string): string[] {
  const drivers = names(join(root, 'plugins')).map((name) => join(root, 'plugins', name, 'csi.sock'))
  const registrars = names(join(root, 'plugins_registry')).map((name) => join(root, 'plugins_registry', name))
  return [...drivers, ...registrars].filter((path) => existsSync(path) && statSync(path).isSocket())
}

function loopDevices(): LoopFacts[] {
  return names('/sys/block')
    .filter((name) => name.startsWith('loop'))
    .flatMap((name) => {
      const file = readOrNothing(`/sys/block/${name}/loop/backing_file`)?.trim()
      if (!file) return []
      const deleted = file.endsWith(' (deleted)')
      return [{ device: `/dev/${name}`, file: deleted ? file.slice(0, -' (deleted)'.length) : file, deleted }]
    })
}

function names(directory: string): string[] {
  try {
    return readdirSync(directory).toSorted()
  } catch {
    return []
  }
}

function readOrNothing(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
