// What does every pod have, though nobody said so? An identity, a priority, and patience with nodes that are away.
// Unlike Kubernetes we mount no token into pods that do not ask for one.
import type { KubeObject } from '../../api/meta.ts'
import type { Pod, PodSpec, Toleration } from '../../api/types.ts'
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
      ...withPatience(spec),
      serviceAccountName: name,
      serviceAccount: name,
      priority: spec.priority ?? systemPriorities[spec.priorityClassName ?? ''] ?? 0,
      preemptionPolicy: spec.preemptionPolicy ?? 'PreemptLowerPriority',
    },
  } as KubeObject
}

const awayTaints = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']
/** The two classes that exist everywhere. */
const systemPriorities: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
}

/** A node that is away may come back: five minutes, unless the pod says otherwise. Updates cannot take that back. */
export function withPatience(spec: PodSpec): PodSpec {
  const given = spec.tolerations ?? []
  const missing = awayTaints.filter((key) => !given.some((each) => tolerates(each, key)))
  return missing.length === 0 ? spec : { ...spec, tolerations: [...given, ...missing.map(fiveMinutes)] }
}

function fiveMinutes(key: string): Toleration {
  return { key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }
}

function tolerates({ key, effect }: Toleration, taint: string): boolean {
  return (!key || key === taint) && (!effect || effect === 'NoExecute')
}
