// The plugin `kubernetes.io/host-path`: a path of the node itself, checked but never changed (HOST-1 … HOST-5).

import { pluginName } from '../../api/names.ts'
import type { PersistentVolume } from '../../api/generated/types.ts'
import type { Random } from '../../clock/random.ts'
import type { Host } from '../../host/host.ts'
import { refused } from '../../volume/effect.ts'
import type { ClusterPlugin, NodePlugin, ProvisionRequest } from '../../volume/plugin.ts'
import { definePlugin } from '../../volume/plugin.ts'
import { hasSource } from '../../volume/spec.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ClusterPluginDeps, NodePluginDeps } from '../shared/deps.ts'
import { translated } from '../shared/errors.ts'
import { checkPathType } from './path-types.ts'

export default definePlugin({
  name: pluginName('kubernetes.io/host-path'),
  source: 'hostPath',
  traits: {
    takesMountOptions: false,
    remountOnPodUpdate: false,
    // Without a type nothing is checked; a missing directory is made when a container starts, as other runtimes do.
    createsMissingDirectory: ({ source }) => !source.value.type,
  },
  volumeName: (spec) => spec.source.value.path,
  node: ({ host }: Pick<NodePluginDeps, 'host'>): NodePlugin => ({
    mount: ({ spec }, signal) =>
      translated(() => {
        const { path, type } = sourceOf(spec)
        return checkPathType(host.files, path, type ?? '', signal)
      }),
    unmount: async () => undefined,
    path: (spec) => sourceOf(spec).path,
    readOnly: (spec) => spec.from === 'persistentVolume' && spec.readOnly,
    restore: async ({ volumeName }) => ({
      name: volumeName,
      from: 'pod',
      mode: 'Filesystem',
      readOnly: false,
      source: { kind: 'hostPath', value: { path: volumeName } },
    }),
  }),
  cluster: ({ hostPathProvisioning }: Pick<ClusterPluginDeps, 'hostPathProvisioning'>): ClusterPlugin => {
    if (hostPathProvisioning === undefined) return {}
    const { host, random } = hostPathProvisioning
    return {
      provision: (request, signal) => translated(() => provision(host, random, request, signal)),
      remove: (spec, signal) =>
        translated(async () => {
          const { path } = sourceOf(spec)
          if (!/^\/tmp\/.+/.test(path) || path.split('/').includes('..')) {
            throw refused(
              'RefusedPath',
              `host_path deleter only supports /tmp/.+ but received provided ${path}`,
              'none',
            )
          }
          await host.files.removeTree(path, signal)
        }),
    }
  },
})

async function provision(
  host: Pick<Host, 'files'>,
  random: Random,
  request: ProvisionRequest,
  signal: AbortSignal,
): Promise<PersistentVolume> {
  const { claim, storageClass, volumeName } = request
  if (claim.spec?.volumeMode === 'Block')
    throw refused('NotSupported', 'kubernetes.io/host-path does not support block volume provisioning', 'none')
  const path = `/tmp/hostpath_pv/${random.uid()}`
  await host.files.mkdirAll(path, 0o750, signal)
  const storage = claim.spec?.resources?.requests?.['storage'] ?? '0'
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: volumeName, annotations: { 'kubernetes.io/createdby': 'hostpath-dynamic-provisioner' } },
    spec: {
      accessModes: claim.spec?.accessModes ?? ['ReadWriteOnce'],
      capacity: { storage },
      hostPath: { path },
      persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? 'Delete',
      volumeMode: 'Filesystem',
    },
  }
}

function sourceOf(spec: VolumeSpec) {
  if (!hasSource(spec, 'hostPath')) throw refused('WrongSource', `volume ${spec.name} is no hostPath`, 'untried')
  return spec.source.value
}
