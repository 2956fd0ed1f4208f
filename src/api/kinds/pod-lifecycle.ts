// How does a pod's status begin, and how long does a deleted pod get to stop?
import type { Pod } from '../generated/types.ts'
import { hasEnded } from '../pod-claims.ts'
import type { Part } from './define-kind.ts'

export function initialPodStatus(pod: Pod, now: string): Part {
  return { phase: 'Pending', ...gatedCondition(pod, now), qosClass: qosClass(pod) }
}

/** Pods that run on a node get time to stop; others are removed at once. */
export function gracePeriodOf(pod: Pod, askedSeconds: number | undefined): number {
  const { spec } = pod
  if (!spec?.nodeName || hasEnded(pod)) return 0
  const asked = askedSeconds ?? spec.terminationGracePeriodSeconds ?? 30
  return asked < 0 ? 1 : asked
}

/** A pod with scheduling gates gets no node before they are removed; its first status says so. */
function gatedCondition({ spec }: Pod, now: string): Part {
  if ((spec?.schedulingGates?.length ?? 0) === 0) return {}
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    lastProbeTime: null,
    lastTransitionTime: now,
    reason: 'SchedulingGated',
    message: 'Scheduling is blocked due to non-empty scheduling gates',
  }
  return { conditions: [condition] }
}

interface ResourceLists {
  readonly requests?: Readonly<Record<string, string>>
  readonly limits?: Readonly<Record<string, string>>
}

/** Guaranteed: every container limits cpu and memory to what it requests; BestEffort: nobody asks for anything. */
export function qosClass({ spec }: Pod): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const ofContainers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])].map(
    ({ resources }): ResourceLists => resources ?? {},
  )
  // The resources of the whole pod, if set, count instead of those of its containers.
  const lists: readonly ResourceLists[] = spec?.resources === undefined ? ofContainers : [spec.resources]
  const names = ['cpu', 'memory'] as const
  const any = lists.some(({ requests, limits }) => names.some((name) => requests?.[name] ?? limits?.[name]))
  if (!any) return 'BestEffort'
  const guaranteed = lists.every(({ requests, limits }) =>
    names.every((name) => limits?.[name] !== undefined && (requests?.[name] ?? limits[name]) === limits[name]),
  )
  return guaranteed ? 'Guaranteed' : 'Burstable'
}
