// How are a VolumeSnapshot and its content joined and parted? Pure (SIDE-45).
import { refused } from '../../volume/effect.ts'
import { finalizers } from '../../api/annotations.ts'
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  VolumeSnapshot,
  VolumeSnapshotClass,
  VolumeSnapshotContent,
} from '../../api/generated/types.ts'
import { annotation, hasFinalizer, isDeleting, withAnnotations, withFinalizer } from '../../api/meta.ts'
import { defaultSnapshotClass } from '../../api/snapshot-class.ts'
import { quantityOfBytes } from '../../api/quantity.ts'
import { timestamp } from '../../clock/clock.ts'
import type { VolumeError } from '../../volume/effect.ts'
import { beingDeleted, deletionSecretName, deletionSecretNamespace, snapshotSecretOf } from './snapshot-names.ts'

export type SnapshotStep =
  /** A claim is being made from the snapshot: it must stay. */
  | { readonly kind: 'waitForClaims' }
  | { readonly kind: 'release' }
  /** A content made by hand. */
  | { readonly kind: 'adopt'; readonly contentName: string }
  | { readonly kind: 'bind'; readonly contentName: string }

/** What a snapshot needs next; the content is looked up by the name given here. */
export function planSnapshotStep(snapshot: VolumeSnapshot): SnapshotStep {
  if (isDeleting(snapshot))
    return { kind: hasFinalizer(snapshot, finalizers.snapshotAsSource) ? 'waitForClaims' : 'release' }
  const given = snapshot.spec.source.volumeSnapshotContentName
  return given ? { kind: 'adopt', contentName: given } : { kind: 'bind', contentName: contentNameFor(snapshot) }
}

function contentNameFor(snapshot: VolumeSnapshot): string {
  return `snapcontent-${snapshot.metadata.uid ?? ''}`
}

export function boundContentName(snapshot: VolumeSnapshot): string {
  return snapshot.status?.boundVolumeSnapshotContentName ?? contentNameFor(snapshot)
}

/** What happens to the content of a snapshot that is being deleted. */
export type ContentRelease =
  | { readonly kind: 'leave' }
  /** Mark it; with policy Delete it is deleted, and the snapshot waits until it is gone. */
  | { readonly kind: 'mark'; readonly content: VolumeSnapshotContent; readonly deletes: boolean }

export function planContentRelease(
  snapshot: VolumeSnapshot,
  content: VolumeSnapshotContent | undefined,
): ContentRelease {
  if (content?.spec.volumeSnapshotRef.uid !== snapshot.metadata.uid || !content) return { kind: 'leave' }
  return { kind: 'mark', content, deletes: content.spec.deletionPolicy === 'Delete' }
}

export function markedForDeletion(content: VolumeSnapshotContent): VolumeSnapshotContent {
  return annotation(content, beingDeleted) === 'yes' ? content : withAnnotations(content, { [beingDeleted]: 'yes' })
}

/** A content made by hand must point at this snapshot. */
export function adoptionProblem(snapshot: VolumeSnapshot, content: VolumeSnapshotContent): VolumeError | undefined {
  const ref = content.spec.volumeSnapshotRef
  const same = ref.name === snapshot.metadata.name && ref.namespace === snapshot.metadata.namespace
  if (same && (!ref.uid || ref.uid === snapshot.metadata.uid)) return undefined
  const message = `VolumeSnapshotContent [${content.metadata.name}] is bound to a different snapshot`
  return refused('SnapshotMisbound', message, 'none')
}

/** The snapshot's uid is filled in once. */
export function adopted(content: VolumeSnapshotContent, snapshot: VolumeSnapshot): VolumeSnapshotContent {
  if (content.spec.volumeSnapshotRef.uid && hasFinalizer(content, finalizers.snapshotContentBound)) return content
  const { uid } = snapshot.metadata
  const volumeSnapshotRef = { ...content.spec.volumeSnapshotRef, ...(uid !== undefined && { uid }) }
  return withFinalizer({ ...content, spec: { ...content.spec, volumeSnapshotRef } }, finalizers.snapshotContentBound)
}

/** The class that a snapshot names, or the default class of the driver of its volume. */
export function chooseSnapshotClass(
  snapshot: VolumeSnapshot,
  classes: ReadonlyMap<string, VolumeSnapshotClass>,
  driver: string,
): VolumeSnapshotClass | undefined {
  const name = snapshot.spec.volumeSnapshotClassName
  return name ? classes.get(name) : defaultSnapshotClass(classes.values(), driver)
}

export function snapshotClassMissing(
  { spec }: VolumeSnapshot,
  classes: ReadonlyMap<string, VolumeSnapshotClass>,
  driver: string,
): VolumeError {
  const name = spec.volumeSnapshotClassName
  if (name) return refused('ClassMissing', `VolumeSnapshotClass ${name} does not exist`, 'none')
  const own = [...classes.values()].filter((each) => each.driver === driver).map(({ metadata }) => metadata.name)
  const text = `there is no default VolumeSnapshotClass of driver ${driver}; classes of this driver: ${own.join(', ') || 'none'}`
  return refused('ClassMissing', text, 'none')
}

export function sourceUnbound(claim: PersistentVolumeClaim): VolumeError | undefined {
  if (claim.status?.phase === 'Bound' && claim.spec?.volumeName) return undefined
  const message = `the PVC ${claim.metadata.name} is not yet bound to a PV, will not attempt to take a snapshot`
  return refused('SourceUnbound', message, 'none')
}

export function sourceForeign(volume: PersistentVolume, driver: string): VolumeError | undefined {
  if (volume.spec?.csi?.driver === driver) return undefined
  const message = `cannot snapshot volume ${volume.metadata.name}: it is not of driver ${driver}`
  return refused('SnapshotClassForeign', message, 'none')
}

/** May the claim that a snapshot was cut from go? Not while another snapshot of it is still being cut. */
export function isSourceUnused(snapshot: VolumeSnapshot, all: Iterable<VolumeSnapshot>): boolean {
  const name = snapshot.spec.source.persistentVolumeClaimName
  for (const other of all) {
    const same =
      other.spec.source.persistentVolumeClaimName === name && other.metadata.namespace === snapshot.metadata.namespace
    if (same && other.metadata.uid !== snapshot.metadata.uid && other.status?.readyToUse !== true) return false
  }
  return true
}

/** The snapshot's status follows its content's; the same object when nothing changes. */
export function boundTo(snapshot: VolumeSnapshot, { metadata, status }: VolumeSnapshotContent): VolumeSnapshot {
  const created =
    status?.creationTime === undefined ? undefined : timestamp(Math.floor(status.creationTime / 1_000_000))
  const { error: _error, ...kept } = snapshot.status ?? {}
  const next = {
    ...kept,
    boundVolumeSnapshotContentName: metadata.name,
    readyToUse: status?.readyToUse ?? false,
    ...(created !== undefined && { creationTime: created }),
    ...(status?.restoreSize !== undefined && { restoreSize: quantityOfBytes(status.restoreSize) }),
    ...(status?.error && { error: status.error }),
  }
  const isSame = JSON.stringify(sorted(next)) === JSON.stringify(sorted(snapshot.status ?? {}))
  return isSame ? snapshot : { ...snapshot, status: next }
}

function sorted(map: object): object {
  return Object.fromEntries(Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** The content that asks the driver for a snapshot of this volume. */
export function newContent(
  name: string,
  snapshot: VolumeSnapshot,
  snapshotClass: VolumeSnapshotClass,
  volume: PersistentVolume,
): VolumeSnapshotContent {
  const content: VolumeSnapshotContent = {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotContent',
    metadata: { name, finalizers: [finalizers.snapshotContentBound] },
    spec: {
      volumeSnapshotRef: {
        apiVersion: 'snapshot.storage.k8s.io/v1',
        kind: 'VolumeSnapshot',
        name: snapshot.metadata.name,
        ...(snapshot.metadata.namespace !== undefined && { namespace: snapshot.metadata.namespace }),
        ...(snapshot.metadata.uid !== undefined && { uid: snapshot.metadata.uid }),
        ...(snapshot.metadata.resourceVersion !== undefined && { resourceVersion: snapshot.metadata.resourceVersion }),
      },
      deletionPolicy: snapshotClass.deletionPolicy,
      driver: snapshotClass.driver,
      volumeSnapshotClassName: snapshotClass.metadata.name,
      source: { volumeHandle: volume.spec?.csi?.volumeHandle ?? '' },
      sourceVolumeMode: volume.spec?.volumeMode ?? 'Filesystem',
    },
  }
  const secret = snapshotSecretOf(content, snapshotClass.parameters)
  if (!secret?.name) return content
  return withAnnotations(content, {
    [deletionSecretName]: secret.name,
    [deletionSecretNamespace]: secret.namespace ?? '',
  })
}
