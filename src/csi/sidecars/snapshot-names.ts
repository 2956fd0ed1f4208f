// Which words do snapshots use? Annotations, reserved parameters and secret references (SIDE-45, SIDE-46).
import { annotation } from '../../api/meta.ts'
import type { SecretReference, VolumeSnapshotContent } from '../../api/generated/types.ts'
import type { Strings } from '../values.ts'
import { driverParameters } from './parameters.ts'

export const beingCreated = 'snapshot.storage.kubernetes.io/volumesnapshot-being-created'
export const beingDeleted = 'snapshot.storage.kubernetes.io/volumesnapshot-being-deleted'
export const deletionSecretName = 'snapshot.storage.kubernetes.io/deletion-secret-name'
export const deletionSecretNamespace = 'snapshot.storage.kubernetes.io/deletion-secret-namespace'

export const snapshotParameters = (parameters: Strings | undefined): Strings => driverParameters(parameters)

/** Names may speak of the snapshot and its content. */
export function snapshotSecretOf(
  content: VolumeSnapshotContent,
  parameters: Strings | undefined,
): SecretReference | undefined {
  const name = parameters?.['csi.storage.k8s.io/snapshotter-secret-name']
  const namespace = parameters?.['csi.storage.k8s.io/snapshotter-secret-namespace']
  if (!name || !namespace) return undefined
  const reference = content.spec.volumeSnapshotRef
  const fill = (template: string) =>
    template
      .replaceAll('${volumesnapshotcontent.name}', content.metadata.name)
      .replaceAll('${volumesnapshot.namespace}', reference.namespace ?? '')
      .replaceAll('${volumesnapshot.name}', reference.name ?? '')
  return { name: fill(name), namespace: fill(namespace) }
}

export function deletionSecretOf(content: VolumeSnapshotContent): SecretReference | undefined {
  const name = annotation(content, deletionSecretName)
  const namespace = annotation(content, deletionSecretNamespace)
  return name && namespace ? { name, namespace } : undefined
}
