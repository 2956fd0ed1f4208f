// From what is a new volume filled? A snapshot or another claim, checked and protected before the driver is asked
// (SIDE-13, SIDE-14, XPR-12).
import { getIfExists } from '../../client/get-if-exists.ts'
import { refused } from '../../volume/effect.ts'
import { annotation, hasFinalizer, isDeleting, refKey } from '../../api/meta.ts'
import { finalizers } from '../../api/annotations.ts'
import { bytesOfQuantity } from '../../api/quantity.ts'
import type { PersistentVolumeClaim } from '../../api/generated/types.ts'
import { classOf } from '../../api/storage-class.ts'
import { createObjectLoop, keyText, objectKey } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import type { ContentSource } from '../values.ts'
import { addFinalizer, dropFinalizer, jobBackoff } from './job.ts'
import type { JobDeps } from './job.ts'
import type { Needed } from './needed-objects.ts'

export type FoundSource =
  | { readonly kind: 'none' }
  /** Another kind of source: some populator makes the volume (XPR-4). */
  | { readonly kind: 'foreign' }
  | { readonly kind: 'source'; readonly source: ContentSource }

const allowModeChange = 'snapshot.storage.kubernetes.io/allow-volume-mode-change'

export async function findSource(
  deps: JobDeps,
  claim: PersistentVolumeClaim,
  provisioner: string,
  signal: AbortSignal,
): Promise<FoundSource> {
  const reference = sourceReference(claim)
  if (!reference) return { kind: 'none' }
  if (reference.kind === 'PersistentVolumeClaim' && !reference.apiGroup) {
    return { kind: 'source', source: await cloneSource(deps, claim, reference.name, signal) }
  }
  if (reference.kind === 'VolumeSnapshot' && reference.apiGroup === 'snapshot.storage.k8s.io') {
    return { kind: 'source', source: await snapshotSource(deps, claim, reference.name, provisioner, signal) }
  }
  return { kind: 'foreign' }
}

function sourceReference(claim: PersistentVolumeClaim) {
  return claim.spec?.dataSource ?? claim.spec?.dataSourceRef
}

async function cloneSource(
  deps: JobDeps,
  claim: PersistentVolumeClaim,
  name: string,
  signal: AbortSignal,
): Promise<ContentSource> {
  if (!deps.controller.has('CLONE_VOLUME'))
    throw refused('NotSupported', `driver ${deps.driver.name} cannot clone volumes`, 'none')
  const namespace = claim.metadata.namespace ?? ''
  const source = await getIfExists(deps.client, 'PersistentVolumeClaim', { namespace, name }, signal)
  if (!source) throw refused('SourceMissing', `the claim ${name} to clone does not exist`, 'untried')
  if (isDeleting(source)) throw refused('SourceDeleting', `the claim ${name} to clone is being deleted`, 'none')
  if (source.status?.phase !== 'Bound' || !source.spec?.volumeName)
    throw refused('SourceUnbound', `the claim ${name} to clone is not bound`, 'none')
  if (classOf(source) === '')
    throw refused('SourceWithoutClass', `the claim ${name} to clone has no storage class`, 'none')
  if (requested(claim) < requested(source)) {
    throw refused(
      'SourceTooLarge',
      `error, new PVC request must be greater than or equal in size to the specified PVC data source, requested ${requested(claim)} but source is ${requested(source)}`,
      'none',
    )
  }
  const volume = await deps.client.get('PersistentVolume', { name: source.spec.volumeName }, signal)
  const csi = volume.spec?.csi
  if (csi?.driver !== deps.driver.name)
    throw refused(
      'SourceForeign',
      `the source volume ${volume.metadata.name} is not of driver ${deps.driver.name}`,
      'none',
    )
  if (volume.spec?.claimRef?.uid !== source.metadata.uid || volume.status?.phase !== 'Bound') {
    throw refused('SourceUnbound', `the source volume ${volume.metadata.name} is not bound to ${name}`, 'none')
  }
  if ((claim.spec?.volumeMode ?? 'Filesystem') !== (volume.spec?.volumeMode ?? 'Filesystem')) {
    throw refused('SourceModeDiffers', `the source volume ${volume.metadata.name} has another volumeMode`, 'none')
  }
  if (!(await addFinalizer(deps.client, 'PersistentVolumeClaim', source, finalizers.cloningProtection, signal))) {
    throw refused('SourceDeleting', `the claim ${name} to clone is being deleted`, 'none')
  }
  return { kind: 'volume', volumeId: csi.volumeHandle }
}

async function snapshotSource(
  deps: JobDeps,
  claim: PersistentVolumeClaim,
  name: string,
  provisioner: string,
  signal: AbortSignal,
): Promise<ContentSource> {
  if (!deps.controller.has('CREATE_DELETE_SNAPSHOT'))
    throw refused('NotSupported', `driver ${deps.driver.name} has no snapshots`, 'none')
  const namespace = claim.metadata.namespace ?? ''
  const snapshot = await getIfExists(deps.client, 'VolumeSnapshot', { namespace, name }, signal)
  if (!snapshot) throw refused('SnapshotMissing', `snapshot ${name} does not exist`, 'untried')
  const contentName = snapshot.status?.boundVolumeSnapshotContentName
  if (!contentName) throw refused('SnapshotNotReady', `snapshot ${name} not bound`, 'none')
  const content = await deps.client.get('VolumeSnapshotContent', { name: contentName }, signal)
  const back = content.spec.volumeSnapshotRef
  if (back.uid !== snapshot.metadata.uid || back.name !== name || back.namespace !== namespace) {
    throw refused(
      'SnapshotNotReady',
      `snapshotcontent ${contentName} for snapshot ${namespace}/${name} is bound to a different snapshot`,
      'none',
    )
  }
  if (content.spec.driver !== provisioner) {
    throw refused(
      'SnapshotForeign',
      `requested volume type is ${provisioner} but the snapshot is from ${content.spec.driver}`,
      'none',
    )
  }
  if (snapshot.status?.readyToUse !== true) throw refused('SnapshotNotReady', `snapshot ${name} is not Ready`, 'none')
  const handle = content.status?.snapshotHandle
  if (!handle) throw refused('SnapshotNotReady', `snapshot handle of ${name} is not available`, 'none')
  const restoreSize = snapshot.status.restoreSize
  if (restoreSize !== undefined && requested(claim) < bytesOfQuantity(restoreSize)) {
    throw refused(
      'SourceTooLarge',
      `requested volume size ${requested(claim)} is less than the size ${bytesOfQuantity(restoreSize)} for the source snapshot ${name}`,
      'none',
    )
  }
  const mode = content.spec.sourceVolumeMode
  if (mode && mode !== (claim.spec?.volumeMode ?? 'Filesystem') && annotation(content, allowModeChange) !== 'true') {
    throw refused(
      'SourceModeDiffers',
      `requested volume modifies the mode of the source volume but does not have permission to do so`,
      'none',
    )
  }
  const mine = await addFinalizer(deps.client, 'VolumeSnapshot', snapshot, finalizers.snapshotAsSource, signal)
  if (!mine) throw refused('SourceDeleting', `snapshot ${name} is being deleted`, 'none')
  return { kind: 'snapshot', snapshotId: handle }
}

/** What must be there and ready before the claim's source can be used. */
export function neededSource(
  { informers }: Pick<JobDeps, 'informers'>,
  claim: PersistentVolumeClaim,
): readonly Needed[] {
  const source = sourceKey(claim)
  if (!source) return []
  if (source.kind === 'PersistentVolumeClaim') {
    const volume = informers.of('PersistentVolumeClaim').get(refKey(source))?.spec?.volumeName
    return [source, ...(volume ? [{ kind: 'PersistentVolume' as const, name: volume }] : [])]
  }
  const content = informers.of('VolumeSnapshot').get(refKey(source))?.status?.boundVolumeSnapshotContentName
  return [source, ...(content ? [{ kind: 'VolumeSnapshotContent' as const, name: content }] : [])]
}

/** Once no pending claim of the namespace refers to it, a source may go again. */
export async function releaseSource(deps: JobDeps, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void> {
  const source = sourceKey(claim)
  if (source) await releaseUnused(deps, source, claim.metadata.uid, signal)
}

/**
 * Sources whose claims went before anything was asked of the driver, here or in an earlier life of this process: a
 * protection that nobody needs any more would keep them for ever.
 */
export function createSourceReleaser(deps: JobDeps): AsyncDisposable {
  const { clock, driver, informers, log } = deps
  const stack = new AsyncDisposableStack()
  const loop = stack.use(
    createObjectLoop<SourceKey>({
      name: `sources ${driver.name}`,
      clock,
      workers: 2,
      backoff: jobBackoff,
      look: (key, signal) => (deps.active() ? releaseUnused(deps, key, undefined, signal) : Promise.resolve()),
      onError: (key, error) => log.warn('source still protected', { driver: driver.name, source: keyText(key), error }),
    }),
  )
  stack.use(
    informers.of('PersistentVolumeClaim').subscribe(({ object, previous }) => {
      const left = object ? undefined : sourceKey(previous)
      if (left) loop.wake(left)
      if (object && isDeleting(object) && hasFinalizer(object, finalizers.cloningProtection))
        loop.wake(objectKey('PersistentVolumeClaim', object))
    }),
  )
  stack.use(
    informers.of('VolumeSnapshot').subscribe(({ object }) => {
      if (object && isDeleting(object) && hasFinalizer(object, finalizers.snapshotAsSource))
        loop.wake(objectKey('VolumeSnapshot', object))
    }),
  )
  return stack
}

type SourceKey = ObjectKey<'PersistentVolumeClaim' | 'VolumeSnapshot'>

function sourceKey(claim: PersistentVolumeClaim): SourceKey | undefined {
  const reference = sourceReference(claim)
  const kind = reference?.kind
  if (kind !== 'PersistentVolumeClaim' && kind !== 'VolumeSnapshot') return undefined
  return { kind, namespace: claim.metadata.namespace ?? '', name: reference!.name }
}

async function releaseUnused(
  { client, informers }: JobDeps,
  source: SourceKey,
  except: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const claims = informers.of('PersistentVolumeClaim')
  for (const other of claims.items.values()) {
    if ((other.status?.phase ?? 'Pending') !== 'Pending' || other.metadata.uid === except) continue
    const used = sourceKey(other)
    if (used && keyText(used) === keyText(source)) return
  }
  if (source.kind === 'PersistentVolumeClaim') {
    const claim = claims.get(refKey(source))
    if (claim) await dropFinalizer(client, 'PersistentVolumeClaim', claim, finalizers.cloningProtection, signal)
    return
  }
  const snapshot = informers.of('VolumeSnapshot').get(refKey(source))
  if (snapshot) await dropFinalizer(client, 'VolumeSnapshot', snapshot, finalizers.snapshotAsSource, signal)
}

function requested(claim: PersistentVolumeClaim): bigint {
  return bytesOfQuantity(claim.spec?.resources?.requests?.['storage'] ?? '0')
}
