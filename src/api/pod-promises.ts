// Which fields of a pod have no effect here? Pods are processes of the node: they have no cgroup and no seccomp profile.
// Kubernetes would honour each of these; whoever wrote one must hear that it has no effect.
import type { Container, Pod } from './generated/types.ts'

/** One sentence per wish, beginning with its field. */
export function unheldWishes(pod: Pod): readonly string[] {
  const { spec } = pod
  if (!spec) return []
  const lists = { initContainers: spec.initContainers ?? [], containers: spec.containers ?? [] }
  const ofContainers = Object.entries(lists).flatMap(([list, containers]) =>
    containers.flatMap((container, index) =>
      ofContainer(container).map((wish) => `spec.${list}[${index}].${wish}${words}`),
    ),
  )
  const { seccompProfile, appArmorProfile, seLinuxOptions, sysctls } = spec.securityContext ?? {}
  const ofPod = [
    isProfile(seccompProfile) && 'securityContext.seccompProfile',
    isProfile(appArmorProfile) && 'securityContext.appArmorProfile',
    seLinuxOptions && 'securityContext.seLinuxOptions',
    (sysctls ?? []).length > 0 && 'securityContext.sysctls',
    spec.hostUsers === false && 'hostUsers',
    spec.shareProcessNamespace === true && 'shareProcessNamespace',
  ]
  return [...ofPod.filter((wish) => typeof wish === 'string').map((wish) => `spec.${wish}${words}`), ...ofContainers]
}

const words = ': has no effect, because pods run as processes of the node'

function ofContainer({ resources, securityContext }: Container): readonly string[] {
  const { seccompProfile, appArmorProfile, procMount } = securityContext ?? {}
  const limits = ['cpu', 'memory'].filter((name) => resources?.limits?.[name] !== undefined)
  const profiles = [
    isProfile(seccompProfile) && 'securityContext.seccompProfile',
    isProfile(appArmorProfile) && 'securityContext.appArmorProfile',
    procMount === 'Unmasked' && 'securityContext.procMount',
  ]
  return [...limits.map((name) => `resources.limits[${name}]`), ...profiles.filter((wish) => typeof wish === 'string')]
}

const isProfile = (profile: { readonly type?: string } | undefined) =>
  profile !== undefined && profile.type !== 'Unconfined'
