// What does admission add to every pod? A service account, a priority, and tolerations for nodes that fail.
import type { KubeObject } from '../../api/meta.ts'
import { withNodeFailureTolerations } from '../../api/defaults/pod.ts'
import type { Pod } from '../../api/generated/types.ts'
import type { CreateAttempt } from './chain.ts'

export async function podDefaults({ info, object }: CreateAttempt): Promise<KubeObject> {
  if (info.name !== 'Pod') return object
  const pod = object as Pod
  if (pod.spec === undefined) return object
  const { spec } = pod
  const name = spec.serviceAccountName || spec.serviceAccount || 'default'
  return {
    ...pod,
    spec: {
      ...withNodeFailureTolerations(spec),
      serviceAccountName: name,
      serviceAccount: name,
      priority: spec.priority ?? systemPriorities[spec.priorityClassName ?? ''] ?? 0,
      preemptionPolicy: spec.preemptionPolicy ?? 'PreemptLowerPriority',
    },
  } as KubeObject
}

/** The two classes that exist everywhere. */
const systemPriorities: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
}
