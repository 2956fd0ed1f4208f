// What does the server fill in in a pod? Policies, container settings, probes, volumes. What admission adds (service
// account, priority, tolerations) is not here.
import type {
  Container,
  ContainerPort,
  EnvVar,
  HTTPGetAction,
  Lifecycle,
  LifecycleHandler,
  Pod,
  PodSpec,
  Probe,
  ResourceRequirements,
  Toleration,
  Volume,
  VolumeSource,
} from '../generated/types.ts'
import { defaultClaimSpec } from './claim.ts'
import { defaultPodSource, defaultVolumeSource, pullPolicyOf } from './volume-sources.ts'

export function defaultPod(pod: Pod): Pod {
  return { ...pod, spec: defaultPodSpec(pod.spec) }
}

function defaultPodSpec(spec: PodSpec): PodSpec {
  const host = spec.hostNetwork === true
  const account = spec.serviceAccountName || spec.serviceAccount
  return {
    ...spec,
    ...(spec.volumes && { volumes: spec.volumes.map(defaultVolume) }),
    ...(spec.initContainers && { initContainers: spec.initContainers.map((each) => defaultContainer(each, host)) }),
    containers: (spec.containers ?? []).map((each) => defaultContainer(each, host)),
    ...(spec.ephemeralContainers && {
      ephemeralContainers: spec.ephemeralContainers.map((each) => defaultContainer(each, host)),
    }),
    restartPolicy: spec.restartPolicy || 'Always',
    // Less than nothing means as little as possible.
    terminationGracePeriodSeconds:
      (spec.terminationGracePeriodSeconds ?? 30) < 0 ? 1 : (spec.terminationGracePeriodSeconds ?? 30),
    dnsPolicy: spec.dnsPolicy || 'ClusterFirst',
    ...(account && { serviceAccountName: account, serviceAccount: account }),
    securityContext: spec.securityContext ?? {},
    schedulerName: spec.schedulerName || 'default-scheduler',
    enableServiceLinks: spec.enableServiceLinks ?? true,
  }
}

function defaultContainer<T extends Container>(container: T, hostNetwork: boolean): T {
  return {
    ...container,
    ...(container.ports && { ports: container.ports.map((port) => defaultPort(port, hostNetwork)) }),
    ...(container.env && { env: container.env.map(defaultVariable) }),
    resources: defaultResources(container.resources),
    ...(container.livenessProbe && { livenessProbe: defaultProbe(container.livenessProbe) }),
    ...(container.readinessProbe && { readinessProbe: defaultProbe(container.readinessProbe) }),
    ...(container.startupProbe && { startupProbe: defaultProbe(container.startupProbe) }),
    ...(container.lifecycle && { lifecycle: defaultLifecycle(container.lifecycle) }),
    terminationMessagePath: container.terminationMessagePath || '/dev/termination-log',
    terminationMessagePolicy: container.terminationMessagePolicy || 'File',
    imagePullPolicy: container.imagePullPolicy || pullPolicyOf(container.image ?? ''),
  }
}

function defaultPort(port: ContainerPort, hostNetwork: boolean): ContainerPort {
  return {
    ...port,
    ...(hostNetwork && !port.hostPort && { hostPort: port.containerPort }),
    protocol: port.protocol || 'TCP',
  }
}

function defaultVariable(variable: EnvVar): EnvVar {
  const { fieldRef, resourceFieldRef } = variable.valueFrom ?? {}
  if (fieldRef === undefined && resourceFieldRef === undefined) return variable
  return {
    ...variable,
    valueFrom: {
      ...variable.valueFrom,
      ...(fieldRef && { fieldRef: { ...fieldRef, apiVersion: fieldRef.apiVersion || 'v1' } }),
      ...(resourceFieldRef && { resourceFieldRef: { divisor: '0', ...resourceFieldRef } }),
    },
  }
}

/** A limit without a request is also the request. */
function defaultResources(resources: ResourceRequirements | undefined): ResourceRequirements {
  if (resources?.limits === undefined) return resources ?? {}
  return { ...resources, requests: { ...resources.limits, ...resources.requests } }
}

function defaultProbe(probe: Probe): Probe {
  return {
    ...probe,
    ...(probe.httpGet && { httpGet: defaultHttp(probe.httpGet) }),
    ...(probe.grpc && { grpc: { service: '', ...probe.grpc } }),
    timeoutSeconds: probe.timeoutSeconds || 1,
    periodSeconds: probe.periodSeconds || 10,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  }
}

function defaultLifecycle(lifecycle: Lifecycle): Lifecycle {
  return {
    ...lifecycle,
    ...(lifecycle.postStart && { postStart: defaultHandler(lifecycle.postStart) }),
    ...(lifecycle.preStop && { preStop: defaultHandler(lifecycle.preStop) }),
  }
}

function defaultHandler(handler: LifecycleHandler): LifecycleHandler {
  return handler.httpGet ? { ...handler, httpGet: defaultHttp(handler.httpGet) } : handler
}

function defaultHttp(action: HTTPGetAction): HTTPGetAction {
  return { ...action, path: action.path || '/', scheme: action.scheme || 'HTTP' }
}

function defaultVolume(volume: Volume): Volume {
  const { name, ...source } = volume
  if (Object.keys(source).length === 0) return { name, emptyDir: {} }
  const filled: VolumeSource = defaultPodSource(defaultVolumeSource(source))
  const template = filled.ephemeral?.volumeClaimTemplate
  if (template === undefined) return { name, ...filled }
  const spec = defaultClaimSpec(template.spec)
  return { name, ...filled, ephemeral: { ...filled.ephemeral, volumeClaimTemplate: { ...template, spec } } }
}

const failureTaints = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']

/** A pod tolerates a failed node for five minutes, unless it says otherwise. An update cannot remove that. */
export function withNodeFailureTolerations(spec: PodSpec): PodSpec {
  const given = spec.tolerations ?? []
  const missing = failureTaints.filter((key) => !given.some((each) => tolerates(each, key)))
  return missing.length === 0 ? spec : { ...spec, tolerations: [...given, ...missing.map(fiveMinutes)] }
}

function fiveMinutes(key: string): Toleration {
  return { key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }
}

function tolerates({ key, effect }: Toleration, taint: string): boolean {
  return (!key || key === taint) && (!effect || effect === 'NoExecute')
}
