// `hawser volume snapshot` and `hawser volume restore`: keep a moment of a volume, and begin a new volume there.
import { buildCommand } from '@stricli/core'
import { getIfExists } from '../../../client/get-if-exists.ts'
import type { PersistentVolumeClaim, VolumeSnapshot } from '../../../api/generated/types.ts'
import { defaultSnapshotClass } from '../../../api/snapshot-class.ts'
import { classDecisionOf } from '../../../api/storage-class.ts'
import type { Client } from '../../../client/client.ts'
import { UsageError } from '../../../installation/config.ts'
import { claimArgument, namesOf, storageClassFlag } from '../../completions.ts'
import type { ConnectFlags } from '../../connect.ts'
import { connect, connectFlags } from '../../connect.ts'
import type { Context } from '../../context.ts'
import { Missing } from '../../errors.ts'
import { askAbout } from '../../hints.ts'
import type { Look } from '../../wait.ts'
import { timeoutFlag, waitFlag, waitUntil } from '../../wait.ts'
import type { AccessMode } from '../../../api/access-modes.ts'
import type { NewClaim } from './options.ts'
import { createClaim, modeFrom, nodeFlag, sizeFrom } from './options.ts'

interface SnapshotFlags extends ConnectFlags {
  readonly as?: string
  readonly class?: string
  readonly wait: boolean
  readonly timeout: number
}

export const snapshot = buildCommand<SnapshotFlags, [string], Context>({
  docs: {
    brief: 'Take a snapshot of a volume',
    fullDescription: [
      'Creates a VolumeSnapshot and waits until it is ready. List them with: hawser get volumesnapshots',
      'Without --class: the default VolumeSnapshotClass of the driver of the volume.',
      '',
      'Examples:',
      '  hawser volume snapshot data',
      '  hawser volume snapshot data --as before-upgrade',
      '  hawser delete volumesnapshot/before-upgrade',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      as: { kind: 'parsed', parse: String, optional: true, placeholder: 'NAME', brief: 'Name (default: CLAIM-TIME)' },
      class: { kind: 'parsed', parse: String, optional: true, placeholder: 'NAME', brief: 'Volume snapshot class' },
      wait: waitFlag,
      timeout: timeoutFlag,
    },
    aliases: { n: 'namespace' },
    positional: {
      kind: 'tuple',
      parameters: [claimArgument],
    },
  },
  async func(flags, claimName) {
    using connection = connect(this, flags)
    const { client, namespace } = connection
    const claim = await client.get('PersistentVolumeClaim', { name: claimName, namespace })
    if (claim.status?.phase !== 'Bound')
      throw new UsageError(
        `claim ${claimName} has no volume yet`,
        askAbout('PersistentVolumeClaim', { name: claimName, namespace }),
      )
    await requireClass(client, claim, flags.class)
    const name = flags.as ?? `${claimName}-${timeName(Date.now())}`
    await client.create('VolumeSnapshot', {
      metadata: { name, namespace },
      spec: {
        source: { persistentVolumeClaimName: claimName },
        ...(flags.class === undefined ? {} : { volumeSnapshotClassName: flags.class }),
      },
    })
    this.print(`volumesnapshot/${name} created`)
    if (!flags.wait) return
    const wait = { kind: 'VolumeSnapshot', ref: { name, namespace }, timeoutMs: flags.timeout * 1_000 } as const
    const size = await waitUntil(this, client, wait, readyToUse)
    this.print(`volumesnapshot/${name} is ready${size ? ` (${size})` : ''}`)
  },
})

/** A snapshot without a class that fits would wait for ever. */
async function requireClass(client: Client, claim: PersistentVolumeClaim, named: string | undefined): Promise<void> {
  const volume = await getIfExists(client, 'PersistentVolume', { name: claim.spec?.volumeName ?? '' })
  // Who may not see volumes or classes is told by the snapshot itself.
  const driver = volume?.spec?.csi?.driver
  if (driver === undefined) return
  const { items } = await client.list('VolumeSnapshotClass')
  const found = items.find(({ metadata }) => metadata.name === named)
  if (named === undefined ? defaultSnapshotClass(items, driver) : found?.driver === driver) return
  const own = items.filter((each) => each.driver === driver).map(({ metadata }) => metadata.name)
  const choice = own.length === 0 ? 'hawser get volumesnapshotclass' : `choose one: --class ${own.join(', --class ')}`
  if (own.length === 0 && named === undefined)
    throw new Missing(`there is no VolumeSnapshotClass of driver ${driver}`, choice)
  if (named === undefined) throw new Missing(`driver ${driver} has no default VolumeSnapshotClass`, choice)
  if (found === undefined) throw new Missing(`there is no VolumeSnapshotClass "${named}"`, choice)
  throw new Missing(`${named} is a class of driver ${found.driver}, the volume is of ${driver}`, choice)
}

export function readyToUse(object: VolumeSnapshot | undefined): Look<string> {
  if (!object) return { done: 'failed', message: 'the snapshot was deleted meanwhile' }
  if (object.status?.readyToUse === true) return { done: true, value: String(object.status.restoreSize ?? '') }
  const error = object.status?.error?.message
  return { done: false, waiting: error ? `the snapshot fails, it is tried again: ${error}` : 'taking the snapshot' }
}

interface RestoreFlags extends ConnectFlags {
  readonly as: string
  readonly size?: string
  readonly class?: string
  readonly mode?: AccessMode
  readonly node?: string
  readonly wait: boolean
  readonly timeout: number
}

export const restore = buildCommand<RestoreFlags, [string], Context>({
  docs: {
    brief: 'Create a volume from a snapshot',
    fullDescription: [
      'Size, class and access modes are those of the source of the snapshot, unless you choose others.',
      '',
      'Examples:',
      '  hawser volume restore before-upgrade --as data-old',
      '  hawser volume restore before-upgrade --as data-old --size 2Gi --node n2',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      as: { kind: 'parsed', parse: String, placeholder: 'NAME', brief: 'Name of the new claim' },
      size: {
        kind: 'parsed',
        parse: sizeFrom,
        optional: true,
        placeholder: 'SIZE',
        brief: 'Size (at least that of the snapshot)',
      },
      class: storageClassFlag,
      mode: { kind: 'parsed', parse: modeFrom, optional: true, placeholder: 'MODE', brief: 'RWO, ROX, RWX or RWOP' },
      node: nodeFlag,
      wait: waitFlag,
      timeout: timeoutFlag,
    },
    aliases: { n: 'namespace' },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: String,
          placeholder: 'SNAPSHOT',
          proposeCompletions: namesOf('VolumeSnapshot'),
          brief: 'Name of the snapshot',
        },
      ],
    },
  },
  async func(flags, name) {
    using connection = connect(this, flags)
    const { client, namespace } = connection
    const found = await client.get('VolumeSnapshot', { name, namespace })
    if (found.status?.readyToUse !== true)
      throw new UsageError(`snapshot ${name} is not ready`, askAbout('VolumeSnapshot', { name, namespace }))
    const source = await sourceOf(client, found, namespace)
    await createClaim(this, connection, requestToRestore(found, source, flags), flags)
  },
})

/** A claim like the one the snapshot was taken of, where the flags do not say otherwise. */
export function requestToRestore(
  { metadata: { name }, status }: VolumeSnapshot,
  source: PersistentVolumeClaim | undefined,
  flags: Pick<RestoreFlags, 'as' | 'size' | 'class' | 'mode' | 'node'>,
): NewClaim {
  const size = flags.size ?? String(status?.restoreSize ?? source?.spec?.resources?.requests?.['storage'] ?? '')
  if (size === '') throw new UsageError(`the size of snapshot ${name} is unknown`, 'choose one: --size SIZE')
  const storageClass = flags.class ?? (source && classDecisionOf(source))
  return {
    name: flags.as,
    size,
    mode: flags.mode ?? modeFrom(source?.spec?.accessModes?.[0] ?? 'RWO'),
    block: source?.spec?.volumeMode === 'Block',
    from: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name },
    ...(storageClass === undefined ? {} : { class: storageClass }),
    ...(flags.node === undefined ? {} : { node: flags.node }),
  }
}

/** The claim the snapshot was taken of, if it is still there. */
async function sourceOf(
  client: Client,
  { spec }: VolumeSnapshot,
  namespace: string,
): Promise<PersistentVolumeClaim | undefined> {
  const name = spec.source.persistentVolumeClaimName
  if (name === undefined) return undefined
  return getIfExists(client, 'PersistentVolumeClaim', { name, namespace })
}

/** 20260102-030405: sorts by time and is a valid end of a name. */
function timeName(ms: number): string {
  const [date = '', time = ''] = new Date(ms).toISOString().split('T')
  return `${date.replaceAll('-', '')}-${time.slice(0, 8).replaceAll(':', '')}`
}
