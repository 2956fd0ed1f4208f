// What may `hawser doctor --fix` remove? Only what is proven to belong to this installation and to nobody any more: the server that
// answers is that of the directory, no object names it, no process runs with it, and it is not new. All else is kept, with the reason.
import { join } from 'node:path'
import type { DirectoryFacts } from './leftovers.ts'
import { podOf } from './leftovers.ts'
import type { KnownStorage } from './local-volumes.ts'

export type Repair =
  | { readonly kind: 'unmount'; readonly path: string; readonly device: string }
  | { readonly kind: 'removeStaging' | 'removePodDirectory' | 'removeStageRecord'; readonly path: string }
  | { readonly kind: 'detachLoop'; readonly device: string; readonly file: string; readonly deleted: boolean }
  | { readonly kind: 'deleteVolume' | 'deleteSnapshot'; readonly id: string; readonly socket: string }

export interface Plan {
  /** In the order in which they work: mounts before what they lie on. */
  readonly repairs: readonly Repair[]
  /** What looks like an orphan and is not touched. */
  readonly kept: readonly { readonly what: string; readonly why: string }[]
}

/** What the server knows. */
export interface ServerFacts {
  /** The uid of namespace kube-system. */
  readonly cluster: string | undefined
  /** Uids of pods; of static pods also that of their directory. */
  readonly pods: ReadonlySet<string>
  readonly storage: KnownStorage
  /** Uids of claims and snapshots: something may be in the making for them. */
  readonly makers: ReadonlySet<string>
}

export interface RepairChoices {
  /** What changed since is not touched: it may be in the making, or on its way out. */
  readonly olderMs: number
  /** Volumes and snapshots without an object may hold data that somebody kept on purpose. */
  readonly deleteData: boolean
}

export function planRepairs(facts: DirectoryFacts, server: ServerFacts | undefined, choices: RepairChoices): Plan {
  const kept: { what: string; why: string }[] = []
  const keep = (what: string, why: string) => void kept.push({ what, why })
  if (!facts.exists) return { repairs: [], kept }
  const isProven = server !== undefined && facts.cluster !== undefined && facts.cluster === server.cluster
  const proven = isProven ? server : undefined
  if (!proven) keep(facts.path, whyNotProven(facts, server))
  const pods = proven ? podRepairs(facts, proven, choices, keep) : []
  const staging = proven ? stagingRepairs(facts, proven, choices, keep) : []
  const gone = new Set([...pods, ...staging].flatMap((each) => (each.kind === 'unmount' ? [each.path] : [])))
  return {
    repairs: [
      ...[...pods, ...staging].filter(({ kind }) => kind === 'unmount').toSorted(deepestFirst),
      ...[...staging, ...pods].filter(({ kind }) => kind !== 'unmount'),
      ...loopRepairs(facts, gone, choices, keep),
      ...recordRepairs(facts),
      ...(proven ? storedRepairs(facts, proven, choices, keep) : []),
    ],
    kept,
  }
}

type Keep = (what: string, why: string) => void

function whyNotProven({ cluster }: DirectoryFacts, server: ServerFacts | undefined): string {
  if (!server) return 'no server answers: nobody knows which pods and volumes exist'
  if (cluster === undefined) return 'the directory does not say which cluster it belongs to'
  return 'the server that answers is of another cluster than this directory'
}

const deepestFirst = (a: Repair, b: Repair) => ('path' in b ? b.path.length : 0) - ('path' in a ? a.path.length : 0)
const tooNew = 'it changed a short while ago (--older-than)'

function podRepairs(facts: DirectoryFacts, { pods }: ServerFacts, { olderMs }: RepairChoices, keep: Keep): Repair[] {
  return facts.roots.flatMap(({ root, pods: found }) =>
    found
      .filter(({ uid }) => !pods.has(uid))
      .flatMap(({ uid, ageMs }): Repair[] => {
        const path = join(root, 'pods', uid)
        const why = !uidPattern.test(uid)
          ? 'its name is not the uid of a pod'
          : facts.running.has(uid)
            ? 'a process of that pod still runs'
            : ageMs < olderMs
              ? tooNew
              : undefined
        if (why !== undefined) return (keep(path, why), [])
        const mounts = facts.mounts.filter(({ mountPoint }) => mountPoint.startsWith(`${path}/`))
        const stranger = mounts.find(({ mountPoint }) => podOf(mountPoint) !== uid)
        if (stranger) return (keep(path, `${stranger.mountPoint} is no mount that a node makes`), [])
        return [
          ...mounts.map(({ mountPoint, device }) => ({ kind: 'unmount' as const, path: mountPoint, device })),
          { kind: 'removePodDirectory', path },
        ]
      }),
  )
}
const uidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function stagingRepairs(facts: DirectoryFacts, server: ServerFacts, { olderMs }: RepairChoices, keep: Keep): Repair[] {
  return facts.staging
    .filter(({ driver, handle }) => server.storage.volumes.get(driver)?.has(handle) !== true)
    .flatMap(({ path, ageMs }): Repair[] => {
      if (ageMs < olderMs) return (keep(path, tooNew), [])
      const own = facts.mounts.filter(({ mountPoint }) => mountPoint === `${path}/globalmount`)
      const deeper = facts.mounts.find(({ mountPoint }) => mountPoint.startsWith(`${path}/globalmount/`))
      if (deeper) return (keep(path, `${deeper.mountPoint} is mounted in it`), [])
      const user = facts.mounts.find(
        ({ device, mountPoint }) =>
          own.some((each) => each.device === device && each.mountPoint !== mountPoint) &&
          server.pods.has(podOf(mountPoint) ?? ''),
      )
      if (user) return (keep(path, `a pod uses it at ${user.mountPoint}`), [])
      return [
        ...own.map(({ mountPoint, device }) => ({ kind: 'unmount' as const, path: mountPoint, device })),
        { kind: 'removeStaging', path },
      ]
    })
}

/** Only loop devices of the driver's own images. Whether one is open is asked of the kernel when it is detached. */
function loopRepairs(
  facts: DirectoryFacts,
  gone: ReadonlySet<string>,
  { olderMs }: RepairChoices,
  keep: Keep,
): Repair[] {
  const held = new Map(facts.held.map((each) => [`${each.path}/image`, each]))
  return facts.loops.flatMap(({ device, file, deleted }): Repair[] => {
    if (!imagePattern.test(file.slice(facts.path.length))) return []
    if (facts.mounts.some(({ source, mountPoint }) => source === device && !gone.has(mountPoint))) return []
    const volume = held.get(file)
    if (volume && volume.marks.length > 0) return []
    if (!deleted && (volume?.ageMs ?? 0) < olderMs) return (keep(device, tooNew), [])
    return [{ kind: 'detachLoop', device, file, deleted }]
  })
}
const imagePattern = /^\/volumes\/(volumes|snapshots|inline)\/[^/]+\/image$/

/** A driver that runs keeps its records itself. */
function recordRepairs({ holder, held, mounts, loops }: DirectoryFacts): Repair[] {
  if (holder !== undefined) return []
  const mounted = new Set(mounts.map(({ mountPoint }) => mountPoint))
  const bound = new Set(loops.map(({ file }) => file))
  return held.flatMap(({ path, marks }) =>
    marks
      .filter((mark) => !mounted.has(mark.at) && !bound.has(`${path}/image`))
      .map((mark) => ({ kind: 'removeStageRecord' as const, path: mark.file })),
  )
}

function storedRepairs(facts: DirectoryFacts, server: ServerFacts, choices: RepairChoices, keep: Keep): Repair[] {
  const socket = facts.sockets.find((each) => each.includes('/local.hawser.dev/'))
  return facts.held.flatMap(({ kind, id, path, hasRecord, hasImage, inline, ageMs, marks, madeFor }): Repair[] => {
    if (inline || server.storage[`${kind}s`].get('local.hawser.dev')?.has(id) === true) return []
    const why =
      !hasRecord && hasImage
        ? 'the driver has no record of it: look at it yourself'
        : ageMs < choices.olderMs
          ? tooNew
          : marks.length > 0
            ? 'it is staged'
            : server.makers.has(madeFor ?? '')
              ? 'the claim or snapshot that it is made for exists'
              : socket === undefined || facts.holder === undefined
                ? 'its driver does not run'
                : !choices.deleteData
                  ? 'it may hold data that was kept on purpose (--delete-data deletes it)'
                  : undefined
    if (why !== undefined) return (keep(path, why), [])
    return [{ kind: kind === 'volume' ? 'deleteVolume' : 'deleteSnapshot', id, socket: socket! }]
  })
}

export function describeRepair(repair: Repair): string {
  switch (repair.kind) {
    case 'unmount':
      return `unmount ${repair.path}`
    case 'removeStaging':
      return `remove the staging directory ${repair.path}`
    case 'removePodDirectory':
      return `remove the pod directory ${repair.path} with all files in it`
    case 'removeStageRecord':
      return `remove the record ${repair.path}`
    case 'detachLoop':
      return `detach ${repair.device} from ${repair.file}`
    case 'deleteVolume':
      return `delete volume ${repair.id} and its data`
    case 'deleteSnapshot':
      return `delete snapshot ${repair.id} and its data`
    default:
      return repair satisfies never
  }
}
