// What is a pod? Its rules and defaults are long and stand in validation/pod.ts and defaults/pod.ts.
import { withConditionTimes } from '../defaults/absent.ts'
import { defaultPod, withNodeFailureTolerations } from '../defaults/pod.ts'
import type { Pod } from '../generated/types.ts'
import { validateEphemeralContainersUpdate } from '../validation/ephemeral-containers.ts'
import { validateNewPod, validatePod, validatePodStatusUpdate, validatePodUpdate } from '../validation/pod.ts'
import { podWarnings } from '../validation/warnings.ts'
import { age } from './age.ts'
import { defineKind, reading, statusOf, statusVerbs } from './define-kind.ts'
import type { Verb } from './define-kind.ts'
import { gracePeriodOf, initialPodStatus } from './pod-lifecycle.ts'
import { summarizePod } from './pod-status.ts'
import { ageColumn, column, nameColumn, wideColumn } from './printer.ts'

const streamVerbs: readonly Verb[] = ['create', 'get']

export const podKind = defineKind<Pod>({
  kind: 'Pod',
  group: '',
  plural: 'pods',
  scope: 'Namespaced',
  shortNames: ['po'],
  categories: ['all'],
  subresources: [
    { name: 'attach', kind: 'PodAttachOptions', verbs: streamVerbs, answeredByNode: 'stream' },
    { name: 'binding', kind: 'Binding', verbs: ['create'] },
    { name: 'ephemeralcontainers', kind: 'Pod', verbs: statusVerbs },
    { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
    { name: 'exec', kind: 'PodExecOptions', verbs: streamVerbs, answeredByNode: 'stream' },
    { name: 'log', kind: 'Pod', verbs: ['get'], answeredByNode: 'document' },
    { name: 'portforward', kind: 'PodPortForwardOptions', verbs: streamVerbs, answeredByNode: 'stream' },
    statusOf('Pod'),
  ],
  message: 'core.Pod',
  description: 'Containers that run together on one node and share volumes.',
  fieldDescriptions: {
    PodSpec: 'What the pod runs, where, and which volumes it uses.',
    'PodSpec.volumes': 'The volumes that containers of this pod can mount.',
    'PodSpec.containers': 'The containers; there must be at least one.',
    'PodSpec.initContainers': 'Containers that run one after the other before the others start.',
    'PodSpec.nodeName': 'The node that the pod is bound to.',
    Container: 'One program of a pod and what it mounts.',
    'Container.volumeMounts': 'Which volumes appear where inside the container.',
    'Container.volumeDevices': 'Which block volumes appear as devices inside the container.',
    Volume: 'A named volume of a pod; exactly one source must be set.',
    VolumeMount: 'Where a volume of the pod appears inside a container.',
    'VolumeMount.mountPath': 'The path inside the container.',
    'VolumeMount.subPath': 'A path inside the volume to mount instead of its root.',
    'VolumeMount.name': 'The name of a volume of the pod.',
  },
  selectableFields: {
    'spec.nodeName': {},
    'spec.host': { path: 'spec.nodeName' },
    'spec.restartPolicy': {},
    'spec.schedulerName': {},
    'spec.serviceAccountName': {},
    'spec.hostNetwork': { absent: 'false' },
    'status.phase': {},
    'status.podIP': {},
    'status.podIPs': {},
    'status.nominatedNodeName': {},
  },
  defaults: (pod) => withConditionTimes(defaultPod(pod), ['lastProbeTime', 'lastTransitionTime']),
  validation: {
    whole: validatePod,
    created: validateNewPod,
    change: validatePodUpdate,
    status: validatePodStatusUpdate,
    through: (subresource, next, previous) =>
      subresource === 'ephemeralcontainers' ? validateEphemeralContainersUpdate(next, previous) : [],
  },
  warnings: podWarnings,
  strategy: {
    generation: 'fromCreate',
    deleteAnswersObject: true,
    statusKeepsOwners: true,
    initialStatus: initialPodStatus,
    mainWrite: (next) => ({ ...next, spec: withNodeFailureTolerations(next.spec) }),
    statusWrite: (status, before) => ({
      ...(before?.['qosClass'] === undefined ? {} : { qosClass: before['qosClass'] }),
      ...status,
    }),
    graceSeconds: gracePeriodOf,
  },
  access: {
    controllers: { verbs: [...reading, 'delete'], subresources: { binding: ['create'], status: statusVerbs } },
    nodes: { may: 'ownPods' },
  },
  table: {
    columns: [
      nameColumn,
      column('Ready', 'Ready containers of all containers.'),
      column('Status', 'The phase of the pod, or what holds it back.'),
      column('Restarts', 'How often containers were restarted, and when last.'),
      ageColumn,
      wideColumn('IP', 'The address of the pod.'),
      wideColumn('Node', 'The node the pod is bound to.'),
      wideColumn('Nominated Node', 'The node the pod may get after preemption.'),
      wideColumn('Readiness Gates', 'True readiness gates of all readiness gates.'),
    ],
    cells(pod, now) {
      const summary = summarizePod(pod)
      return [
        pod.metadata.name,
        `${summary.ready}/${summary.total}`,
        summary.status,
        restartsCell(summary.restarts, summary.lastRestart, now),
        age(pod.metadata.creationTimestamp, now),
        pod.status?.podIPs?.[0]?.ip || pod.status?.podIP || '<none>',
        pod.spec?.nodeName || '<none>',
        pod.status?.nominatedNodeName || '<none>',
        readinessGatesCell(pod),
      ]
    },
    conditions(pod) {
      switch (pod.status?.phase) {
        case 'Succeeded':
          return [
            { type: 'Completed', status: 'True', reason: 'Succeeded', message: 'The pod has completed successfully.' },
          ]
        case 'Failed':
          return [{ type: 'Completed', status: 'True', reason: 'Failed', message: 'The pod failed.' }]
        default:
          return []
      }
    },
  },
})

function restartsCell(restarts: number, lastRestart: string | undefined, now: number): string {
  return restarts !== 0 && lastRestart !== undefined ? `${restarts} (${age(lastRestart, now)} ago)` : `${restarts}`
}

function readinessGatesCell(pod: Pod): string {
  const gates = pod.spec?.readinessGates ?? []
  if (gates.length === 0) return '<none>'
  const met = gates.filter((gate) =>
    pod.status?.conditions?.some((condition) => condition.type === gate.conditionType && condition.status === 'True'),
  )
  return `${met.length}/${gates.length}`
}
