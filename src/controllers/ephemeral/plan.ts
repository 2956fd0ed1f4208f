// Which claims does a pod's generic ephemeral volumes need, and may it have them (EPH-1 … EPH-5)? Pure.
import { isControlledBy, isDeleting, keyFor, keyOf } from '../../api/meta.ts'
import type { PersistentVolumeClaim, Pod, Volume } from '../../api/generated/types.ts'
import { claimNameOf } from '../../api/pod-claims.ts'

export type EphemeralAction =
  | { readonly kind: 'create'; readonly claim: PersistentVolumeClaim }
  /** A claim of that name belongs to someone else; later volumes of the pod are not processed (EPH-3). */
  | { readonly kind: 'foreign'; readonly volume: string; readonly message: string; readonly claimKey: string }

export function planEphemeral(
  pod: Pod,
  claimOf: (key: string) => PersistentVolumeClaim | undefined,
): readonly EphemeralAction[] {
  if (isDeleting(pod)) return []
  const actions: EphemeralAction[] = []
  for (const volume of pod.spec?.volumes ?? []) {
    const name = volume.ephemeral && claimNameOf(pod, volume)
    if (name === undefined) continue
    const claimKey = keyFor(pod.metadata.namespace, name)
    const claim = claimOf(claimKey)
    if (claim === undefined) actions.push({ kind: 'create', claim: claimFor(pod, volume, name) })
    else if (!isControlledBy(claim, pod)) {
      const message = `PVC ${claimKey} was not created for pod ${keyOf(pod)} (pod is not owner)`
      return [...actions, { kind: 'foreign', volume: volume.name, message, claimKey }]
    }
  }
  return actions
}

/** The claim from the pod's template; the pod owns it and takes it along when it goes (EPH-2). */
function claimFor(pod: Pod, volume: Volume, claimName: string): PersistentVolumeClaim {
  const template = volume.ephemeral?.volumeClaimTemplate
  const { labels, annotations } = template?.metadata ?? {}
  const { name, namespace, uid } = pod.metadata
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: claimName,
      ...(namespace === undefined ? {} : { namespace }),
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Pod', name, uid: uid ?? '', controller: true, blockOwnerDeletion: true },
      ],
    },
    spec: template?.spec ?? {},
  }
}
