// What does the built-in driver hold that no object names? Images, marks of stages and loop devices of its data directory, and
// the directories that nodes keep for volumes. Facts are read once, then judged purely.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonObject } from '../../api/json.ts'
import { parseJsonObject } from '../../api/json.ts'
import type { Finding } from './finding.ts'
import { ok, problem, warn } from './finding.ts'

export interface HeldVolume {
  readonly kind: 'volume' | 'snapshot'
  readonly id: string
  readonly path: string
  readonly hasRecord: boolean
  readonly hasImage: boolean
  /** Made for one pod, without a PersistentVolume. */
  readonly inline: boolean
  readonly ageMs: number
  /** The name it was asked for by: `pvc-` or `snapshot-` and the uid of a claim or snapshot. */
  readonly madeFor?: string | undefined
  /** Where it was asked to be staged. */
  readonly marks: readonly StageMark[]
}

interface StageMark {
  readonly at: string
  /** Where that is written down. */
  readonly file: string
}

/** A directory of a node for one volume of any CSI driver. */
export interface StagingDirectory {
  readonly path: string
  readonly driver: string
  readonly handle: string
  readonly ageMs: number
}

/** What the server knows; undefined when it did not answer. */
export interface KnownStorage {
  /** Volume handles of PersistentVolumes, by driver. */
  readonly volumes: ReadonlyMap<string, ReadonlySet<string>>
  readonly snapshots: ReadonlyMap<string, ReadonlySet<string>>
}

const driver = 'local.hawser.dev'
/** A volume is younger than its object: it is made first. */
const makingMs = 600_000

export function readHeldVolumes(data: string, now: number): HeldVolume[] {
  return (['volume', 'snapshot'] as const).flatMap((kind) => {
    const parent = join(data, 'volumes', `${kind}s`)
    return names(parent).map((id) => {
      const path = join(parent, id)
      const record = parsed(join(path, 'record.json'))
      const stages = join(path, 'stages')
      return {
        kind,
        id,
        path,
        hasRecord: record !== undefined,
        hasImage: existsSync(join(path, 'image')),
        inline: record?.['ephemeral'] === true,
        ageMs: now - statSync(path).mtimeMs,
        madeFor: uidIn(record?.['name']),
        marks: names(stages).map((name) => {
          const file = join(stages, name)
          return { at: readFileSync(file, 'utf8').replace(/^(mount|block) /, ''), file }
        }),
      }
    })
  })
}

const uidIn = (name: unknown) =>
  typeof name === 'string' ? /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.exec(name)?.[0] : undefined

export function readStagingDirectories(roots: readonly string[], now: number): StagingDirectory[] {
  return roots.flatMap((root) => {
    const plugins = join(root, 'plugins', 'kubernetes.io', 'csi')
    return names(plugins).flatMap((name) =>
      names(join(plugins, name)).flatMap((hash) => {
        const path = join(plugins, name, hash)
        const handle = parsed(join(path, 'vol_data.json'))?.['volumeHandle']
        return typeof handle === 'string' ? [{ path, driver: name, handle, ageMs: now - statSync(path).mtimeMs }] : []
      }),
    )
  })
}

export function judgeHeldVolumes(
  held: readonly HeldVolume[],
  known: KnownStorage | undefined,
  socket: string | undefined,
): Finding[] {
  if (held.length === 0) return []
  const bare = held.filter(({ hasRecord, hasImage }) => hasImage && !hasRecord)
  const findings = bare.map(({ path }) =>
    warn('volumes', `${path}/image has no record: the driver does not know it`, `ls -l ${path}`),
  )
  if (!known) return findings
  const orphans = held.filter(
    ({ kind, id, hasRecord, inline, ageMs }) =>
      hasRecord && !inline && ageMs > makingMs && known[`${kind}s`].get(driver)?.has(id) !== true,
  )
  for (const { kind, id, path } of orphans) {
    const object = kind === 'volume' ? 'PersistentVolume' : 'VolumeSnapshotContent'
    findings.push(
      problem('volumes', `${path} belongs to no ${object}; its data is still there`, removal(kind, id, socket)),
    )
  }
  return findings.length > 0 ? findings : [ok('volumes', `${held.length}, all with an object`)]
}

/** The driver refuses while the volume is in use; no file is removed by hand. */
function removal(kind: HeldVolume['kind'], id: string, socket: string | undefined): string {
  const [call, field] = kind === 'volume' ? ['DeleteVolume', 'volumeId'] : ['DeleteSnapshot', 'snapshotId']
  const command = `hawser driver rpc ${socket ?? 'SOCKET'} Controller/${call} '{"${field}": "${id}"}'`
  return `${command} (deletes the data; the driver refuses while it is in use)`
}

export function judgeStagingDirectories(
  found: readonly StagingDirectory[],
  mounted: ReadonlySet<string>,
  known: KnownStorage | undefined,
): Finding[] {
  if (!known) return []
  return found
    .filter(({ driver: name, handle }) => known.volumes.get(name)?.has(handle) !== true)
    .map(({ path, handle }) => {
      const text = `${path} is kept for volume ${handle}, which no PersistentVolume names`
      return mounted.has(`${path}/globalmount`)
        ? problem('staging directories', text, `umount ${path}/globalmount`)
        : warn('staging directories', text, `rmdir ${path}/globalmount; rm ${path}/vol_data.json; rmdir ${path}`)
    })
}

/** Marks of stages that are none: the driver forgets them when it starts, and ignores them when it deletes. */
export function judgeMarks(
  held: readonly HeldVolume[],
  mounted: ReadonlySet<string>,
  bound: ReadonlySet<string>,
): Finding[] {
  return held.flatMap(({ id, path, marks }) =>
    marks
      .filter(({ at }) => !mounted.has(at) && !bound.has(`${path}/image`))
      .map(({ at }) =>
        warn(
          'stage records',
          `volume ${id} is not staged at ${at}, but a record says so`,
          'restart hawser up: its driver removes such records',
        ),
      ),
  )
}

/** Undefined when there is no such file or it is damaged: the caller judges. */
function parsed(path: string): JsonObject | undefined {
  try {
    return parseJsonObject(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

function names(directory: string): string[] {
  try {
    return readdirSync(directory).toSorted()
  } catch {
    return []
  }
}
