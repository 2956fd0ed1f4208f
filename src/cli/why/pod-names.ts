// How is a pod named in records, sentences and commands?
import type { Pod } from '../../api/types.ts'
import type { CauseNames } from './causes.ts'

export const podTarget = ({ metadata }: Pod) => ({ kind: 'Pod', namespace: metadata.namespace, name: metadata.name })

export function podNames(pod: Pod): CauseNames {
  return {
    pod: pod.metadata.name ?? '',
    ...(pod.metadata.namespace === undefined ? {} : { namespace: pod.metadata.namespace }),
    ...(pod.spec?.nodeName ? { node: pod.spec.nodeName } : {}),
  }
}
