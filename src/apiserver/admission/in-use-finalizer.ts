// What keeps storage objects from vanishing under their users? A finalizer that their protection controller lifts (API-10).
import type { KindName } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { withFinalizer } from '../../api/meta.ts'
import type { CreateAttempt } from './chain.ts'

const protections: Partial<Readonly<Record<KindName, string>>> = {
  PersistentVolume: 'kubernetes.io/pv-protection',
  PersistentVolumeClaim: 'kubernetes.io/pvc-protection',
  VolumeAttributesClass: 'kubernetes.io/vac-protection',
}

export async function inUseFinalizer({ info, object }: CreateAttempt): Promise<KubeObject> {
  const finalizer = protections[info.name]
  return finalizer === undefined ? object : withFinalizer(object, finalizer)
}
