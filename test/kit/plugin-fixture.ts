// How are plugins tested without a node? On a host (model or real), with a real API server in memory and virtual time.

import { podUid } from '../../src/api/names.ts'
import type { Pod, Volume } from '../../src/api/generated/types.ts'
import type { VirtualClock } from '../../src/clock/virtual-clock.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import type { Client } from '../../src/client/client.ts'
import type { Host } from '../../src/host/host.ts'
import type { ModelHost } from '../../src/host/model/model-host.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { podVolumePath } from '../../src/volume/paths.ts'
import type { MountRequest, NodePlugin, Ownership } from '../../src/volume/plugin.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import type { Registered, Registry } from '../../src/volume/registry.ts'
import { specOfPodVolume } from '../../src/volume/spec.ts'
import type { VolumeSpec } from '../../src/volume/spec.ts'
import type { NodePluginDeps } from '../../src/plugins/shared/deps.ts'
import { nodePlugins } from '../../src/plugins/index.ts'
import { createTestApi } from './api.ts'
import { podRequest } from './objects.ts'

export const { signal } = new AbortController()

export interface PluginFixture {
  readonly host: Host
  readonly client: Client
  readonly clock: VirtualClock
  readonly root: string
  readonly deps: NodePluginDeps
  registry(): Registry<NodePlugin>
  close(): Promise<void>
}

export async function createPluginFixture(
  host: Host,
  root: string,
  more: Partial<NodePluginDeps> = {},
): Promise<PluginFixture> {
  const clock = createVirtualClock()
  const random = createRandom(7)
  const api = await createTestApi({ clock, random })
  const { client } = api
  const allocatable = () => ({ cpu: '2', memory: '8Gi', 'ephemeral-storage': '10Gi' })
  const deps: NodePluginDeps = { host, client, clock, random, log: silentLog, root, allocatable, ...more }
  return {
    host,
    client,
    clock,
    root,
    deps,
    registry: () => createRegistry(nodePlugins(deps)),
    close: async () => api[Symbol.asyncDispose](),
  }
}

/** Where a node's directories lie on the model host. */
export const root = '/var/lib/kubelet'

export interface ModelPluginFixture extends PluginFixture {
  readonly host: ModelHost
}

export async function createModelPluginFixture(more: Partial<NodePluginDeps> = {}): Promise<ModelPluginFixture> {
  const host = createModelHost({ clock: createVirtualClock() })
  for (const uid of ['uid-1', 'uid-2']) {
    for (const folder of ['volumes', 'plugins'])
      await host.files.mkdirAll(`${root}/pods/${uid}/${folder}`, 0o750, signal)
  }
  await host.files.mkdirAll(`${root}/plugins`, 0o750, signal)
  return { ...(await createPluginFixture(host, root, more)), host }
}

/** Moves time by seconds until the work is over: waits inside it end. */
export async function inTime<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  let over = false
  const done = work.finally(() => {
    over = true
  })
  done.catch(() => undefined)
  while (!over) {
    await clock.settle()
    if (!over) await clock.advance(1000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return done
}

export interface PodFacts {
  readonly uid?: string
  readonly volumes?: readonly Volume[]
  readonly spec?: Partial<Pod['spec']>
  readonly metadata?: Partial<Pod['metadata']>
}

export function pod(facts: PodFacts = {}): Pod {
  const metadata = { namespace: 'default', uid: facts.uid ?? 'uid-1', ...facts.metadata }
  return podRequest('p', { volumes: facts.volumes ?? [], ...facts.spec }, metadata)
}

export interface Mounting {
  readonly request: MountRequest
  readonly plugin: Registered<NodePlugin>
  readonly events: string[]
}

/** A mount request as the node's operation makes it. */
export function mounting(
  bench: PluginFixture,
  spec: VolumeSpec,
  facts: { pod?: Pod; ownership?: Ownership; remount?: boolean } = {},
): Mounting {
  const own = facts.pod ?? pod()
  const plugin = bench.registry().find(spec)
  const events: string[] = []
  const device = plugin.plugin.device?.(spec)
  const request: MountRequest = {
    spec,
    pod: own,
    target: podVolumePath(bench.root, podUid(own.metadata.uid ?? ''), plugin.name, spec.name),
    ...(device === undefined ? {} : { deviceMountPath: device.path(spec) }),
    ownership: facts.ownership ?? {},
    foundOnDisk: false,
    remount: facts.remount ?? false,
    notify: ({ reason, message }) => void events.push(`${reason}: ${message}`),
  }
  return { request, plugin, events }
}

export const inline = (volume: Omit<Volume, 'name'>, name = 'v'): VolumeSpec => specOfPodVolume({ name, ...volume })

/** Everything below a directory, one line per entry: path, kind, mode, owner, contents or target. */
export async function picture(host: Host, root: string): Promise<string[]> {
  const lines: string[] = []
  const visit = async (path: string): Promise<void> => {
    for (const name of (await host.files.readDir(path, signal)).sort()) {
      const entry = `${path}/${name}`
      const stat = await host.files.lstat(entry, signal)
      const shown = entry.slice(root.length + 1).replace(/\.\.\d{4}(_\d\d){5}\.\d+/g, '..ts')
      const owner = `${stat.uid}:${stat.gid}`
      if (stat.kind === 'symlink')
        lines.push(
          `${shown} l ${owner} -> ${(await host.files.readlink(entry, signal)).replace(/^\.\.\d{4}(_\d\d){5}\.\d+$/, '..ts')}`,
        )
      else if (stat.kind === 'directory') lines.push(`${shown} d 0${stat.mode.toString(8)} ${owner}`)
      else if (stat.kind === 'file')
        lines.push(
          `${shown} f 0${stat.mode.toString(8)} ${owner} ${JSON.stringify(await host.files.readText(entry, signal))}`,
        )
      else lines.push(`${shown} ${stat.kind}`)
      if (stat.kind === 'directory') await visit(entry)
    }
  }
  await visit(root)
  return lines
}

export async function mountPoints(host: Host, below: string): Promise<string[]> {
  return (await host.mounts.list(signal))
    .map(({ mountPoint }) => mountPoint)
    .filter((path) => path.startsWith(`${below}/`))
}
