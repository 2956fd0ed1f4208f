// The plugin `kubernetes.io/nfs`: a directory of a file server. The place to start from for a new plugin.

import { pluginName } from '../../api/names.ts'
import { cleanMountPoint, isAlreadyMounted } from '../../host/clean-mount-point.ts'
import { HostError } from '../../host/host-error.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import { definePlugin } from '../../volume/plugin.ts'
import { hasSource } from '../../volume/spec.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { refuse, translated } from '../shared/errors.ts'
import { mountOptionsOf } from '../shared/mount-options.ts'
import { filesystemUsage } from '../shared/usage.ts'

type Deps = Pick<NodePluginDeps, 'host' | 'clock'>

export default definePlugin({
  name: pluginName('kubernetes.io/nfs'),
  source: 'nfs',
  traits: {
    mountOptions: true,
    remountOnPodUpdate: false,
    accessModes: ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany'],
  },
  volumeName: ({ source: { value } }) => `${value.server}/${value.path}`,
  node: (deps: Deps): NodePlugin => ({
    mount: ({ spec, target }, signal) => translated(() => mount(deps, spec, target, signal)),
    // NFS-3: a server that does not answer gets a minute, then the mount is taken off by force.
    unmount: ({ target }, signal) =>
      translated(() => cleanMountPoint(deps.host, target, { patienceMs: 60_000 }, signal)),
    readOnly: (spec) => spec.readOnly,
    restore: async ({ volumeName }) => ({
      name: volumeName,
      from: 'pod',
      mode: 'Filesystem',
      readOnly: false,
      source: { kind: 'nfs', value: { server: '', path: volumeName } },
    }),
    usage: ({ path }, signal) => translated(() => filesystemUsage(deps, path, signal)),
  }),
})

/** NFS-2 */
async function mount({ host }: Deps, spec: VolumeSpec, target: string, signal: AbortSignal): Promise<void> {
  if (await isAlreadyMounted(host, target, signal)) return
  await host.files.mkdirAll(target, 0o750, signal)
  const options = mountOptionsOf(spec, spec.readOnly ? ['ro'] : [])
  try {
    await host.mounts.mount({ source: exportOf(spec), target, type: 'nfs', options }, signal)
  } catch (error) {
    // Only a mount program that has ended leaves nothing behind for certain.
    if (error instanceof HostError && error.certain) {
      await cleanMountPoint(host, target, { patienceMs: 10_000 }, new AbortController().signal).catch(() => undefined)
    }
    throw error
  }
}

/** NFS-1: an IPv6 address stands in brackets. */
function exportOf(spec: VolumeSpec): string {
  if (!hasSource(spec, 'nfs')) throw refuse('WrongSource', `volume ${spec.name} is no nfs volume`, 'untried')
  const { server, path } = spec.source.value
  return `${server.includes(':') && !server.startsWith('[') ? `[${server}]` : server}:${path}`
}
