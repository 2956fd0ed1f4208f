// The plugin `kubernetes.io/nfs`: a directory of a file server. The place to start from for a new plugin.

import { pluginName } from '../../api/names.ts'
import { cleanMountPoint, isAlreadyMounted } from '../../host/clean-mount-point.ts'
import { HostError } from '../../host/host-error.ts'
import { refused } from '../../volume/effect.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import { definePlugin } from '../../volume/plugin.ts'
import { hasSource } from '../../volume/spec.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { translated } from '../shared/errors.ts'
import { mountOptionsOf } from '../shared/mount-options.ts'
import { filesystemUsage } from '../shared/usage.ts'

type Deps = Pick<NodePluginDeps, 'host' | 'clock'>

export default definePlugin({
  name: pluginName('kubernetes.io/nfs'),
  source: 'nfs',
  traits: {
    takesMountOptions: true,
    remountOnPodUpdate: false,
  },
  volumeName: ({ source: { value } }) => `${value.server}/${value.path}`,
  node: (deps: Deps): NodePlugin => ({
    mount: ({ spec, target }, signal) => translated(() => mount(deps, spec, target, signal)),
    // A server that does not answer gets a minute, then it is unmounted by force (NFS-3).
    unmount: ({ target }, signal) => translated(() => cleanMountPoint(deps.host, target, {}, signal)),
    readOnly: (spec) => spec.readOnly,
    // The directory's name is all that is left: enough to unmount, which needs only the path (NFS-4).
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

/** Mounts the export unless it is mounted already; a failed mount leaves no directory behind (NFS-2). */
async function mount({ host }: Deps, spec: VolumeSpec, target: string, signal: AbortSignal): Promise<void> {
  if (await isAlreadyMounted(host, target, signal)) return
  const source = exportOf(spec)
  await host.files.mkdirAll(target, 0o750, signal)
  const options = mountOptionsOf(spec, spec.readOnly ? ['ro'] : [])
  try {
    await host.mounts.mount({ source, target, type: 'nfs', options }, signal)
  } catch (error) {
    // Only if the mount program has ended is it certain that nothing is mounted.
    if (error instanceof HostError && error.certain) {
      await cleanMountPoint(host, target, { forceAfterMs: 10_000 }, new AbortController().signal).catch(() => undefined)
    }
    throw error
  }
}

/** An IPv6 address stands in brackets (NFS-1). */
function exportOf(spec: VolumeSpec): string {
  if (!hasSource(spec, 'nfs')) throw refused('WrongSource', `volume ${spec.name} is no nfs volume`, 'untried')
  const { server, path } = spec.source.value
  return `${server.includes(':') && !server.startsWith('[') ? `[${server}]` : server}:${path}`
}
