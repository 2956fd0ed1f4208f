// Which identity does a pod have that names none? The namespace's default service account.
// Unlike Kubernetes we mount no token into pods that do not ask for one.
import type { KubeObject } from '../../api/meta.ts'
import type { Pod } from '../../api/types.ts'
import type { CreateAttempt } from './chain.ts'

export async function podDefaults({ info, object }: CreateAttempt): Promise<KubeObject> {
  if (info.name !== 'Pod') return object
  const pod = object as Pod
  const name = pod.spec?.serviceAccountName || pod.spec?.serviceAccount || 'default'
  if (pod.spec === undefined || (pod.spec.serviceAccountName === name && pod.spec.serviceAccount === name))
    return object
  return { ...pod, spec: { ...pod.spec, serviceAccountName: name, serviceAccount: name } } as KubeObject
}
