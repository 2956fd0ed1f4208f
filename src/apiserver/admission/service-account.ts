// Which account does a pod run as, and what of it does it see? As Kubernetes: the account must exist, and unless pod or account
// say no, each container gets its token, the server's authority and the namespace at one path.
import { kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { forbidden } from '../../api/status-error.ts'
import type { Container, Pod, ServiceAccount, Volume } from '../../api/generated/types.ts'
import { findObject } from '../objects/context.ts'
import type { CreateAttempt } from './chain.ts'

export async function serviceAccount({ context, info, object }: CreateAttempt): Promise<KubeObject> {
  const pod = object as Pod
  if (info.name !== 'Pod' || context.mountsTokens !== true || pod.spec === undefined) return object
  const { namespace = 'default', name: podName = '' } = pod.metadata
  const name = pod.spec.serviceAccountName || 'default'
  const account = (await findObject(context, kinds.ServiceAccount, { namespace, name })) as ServiceAccount | undefined
  // The default account of a namespace that was just made is on its way.
  if (account === undefined && name !== 'default') {
    const why = `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`
    throw forbidden(info, podName, why)
  }
  const mounts = pod.spec.automountServiceAccountToken ?? account?.automountServiceAccountToken ?? true
  return { ...pod, spec: mounts ? withToken(pod.spec, () => context.random.suffix()) : pod.spec } as KubeObject
}

const mountPath = '/var/run/secrets/kubernetes.io/serviceaccount'
const volumePrefix = 'kube-api-access-'
/** An hour, and a little that tells tokens of this volume from others: as Kubernetes. */
const tokenSeconds = 3_607

/** A container that mounts something of its own there keeps it; if all do, there is no volume. */
function withToken(spec: NonNullable<Pod['spec']>, suffix: () => string): NonNullable<Pod['spec']> {
  const { containers = [], initContainers = [], volumes = [] } = spec
  const isServed = ({ volumeMounts = [] }: Container) => volumeMounts.some((each) => each.mountPath === mountPath)
  if ([...initContainers, ...containers].every(isServed)) return spec
  const found = volumes.find((each) => each.name.startsWith(volumePrefix))
  const name = found?.name ?? volumePrefix + suffix()
  const serve = (container: Container): Container =>
    isServed(container)
      ? container
      : { ...container, volumeMounts: [...(container.volumeMounts ?? []), { name, readOnly: true, mountPath }] }
  return {
    ...spec,
    volumes: found ? volumes : [...volumes, tokenVolume(name)],
    ...(initContainers.length > 0 ? { initContainers: initContainers.map(serve) } : {}),
    containers: containers.map(serve),
  }
}

function tokenVolume(name: string): Volume {
  const namespaceFile = { path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }
  return {
    name,
    projected: {
      defaultMode: 0o644,
      sources: [
        { serviceAccountToken: { expirationSeconds: tokenSeconds, path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        { downwardAPI: { items: [namespaceFile] } },
      ],
    },
  }
}
