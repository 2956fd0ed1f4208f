// Which other objects does a pod use? Names only, all in the pod's own namespace. Pure.
import type { Pod } from '../../api/generated/types.ts'
import { claimNameOf } from '../../api/pod-claims.ts'

export interface PodUses {
  readonly secrets: ReadonlySet<string>
  readonly configMaps: ReadonlySet<string>
  readonly claims: ReadonlySet<string>
  readonly serviceAccounts: ReadonlySet<string>
}

export function namesUsedBy(pod: Pod): PodUses {
  const secrets = new Set<string>()
  const configMaps = new Set<string>()
  const claims = new Set<string>()
  const add = (set: Set<string>, name: string | undefined): void => {
    if (name) set.add(name)
  }
  for (const volume of pod.spec?.volumes ?? []) {
    add(secrets, volume.secret?.secretName)
    add(configMaps, volume.configMap?.name)
    add(claims, claimNameOf(pod, volume))
    for (const source of volume.projected?.sources ?? []) {
      add(secrets, source.secret?.name)
      add(configMaps, source.configMap?.name)
    }
    add(secrets, volume.csi?.nodePublishSecretRef?.name)
    add(secrets, volume.iscsi?.secretRef?.name)
    add(secrets, volume.flexVolume?.secretRef?.name)
  }
  for (const container of [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])]) {
    for (const { valueFrom } of container.env ?? []) {
      add(secrets, valueFrom?.secretKeyRef?.name)
      add(configMaps, valueFrom?.configMapKeyRef?.name)
    }
    for (const source of container.envFrom ?? []) {
      add(secrets, source.secretRef?.name)
      add(configMaps, source.configMapRef?.name)
    }
  }
  for (const pull of pod.spec?.imagePullSecrets ?? []) add(secrets, pull.name)
  return { secrets, configMaps, claims, serviceAccounts: new Set([pod.spec?.serviceAccountName || 'default']) }
}
