// A volume type whose every answer the test chooses: an attachable device that is mounted once per node, then per pod.
// It keeps what a real one would keep (what is mounted where), so that tests assert states, not calls alone.
import { pluginName } from '../../src/api/names.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../src/api/generated/types.ts'
import type { Effect, ErrorTag } from '../../src/volume/effect.ts'
import { VolumeError } from '../../src/volume/effect.ts'
import { definePlugin } from '../../src/volume/plugin.ts'
import type { BlockMapper, HealthCondition, MountRequest, NodePlugin } from '../../src/volume/plugin.ts'
import { onNode } from '../../src/volume/registry.ts'
import { specOfPersistentVolume } from '../../src/volume/spec.ts'
import { claimRequest, volumeRequest } from './objects.ts'

export type Call =
  | 'prepare'
  | 'waitForAttach'
  | 'mountDevice'
  | 'unmountDevice'
  | 'mount'
  | 'unmount'
  | 'expand'
  | 'setUpDevice'
  | 'mapPodDevice'
  | 'unmapPodDevice'
  | 'tearDownDevice'
export type Answer = 'ok' | Effect | ErrorTag

interface DevicePlugin {
  /** What the next calls of each kind answer; then 'ok'. */
  readonly answers: Map<Call, Answer[]>
  readonly calls: Call[]
  readonly devices: Set<string>
  readonly mounts: Set<string>
  readonly waited: string[]
  /** What each SetUp was told. */
  readonly requests: MountRequest[]
  /** Sizes the plugin was asked to grow to. */
  readonly asked: bigint[]
  /** Devices of block volumes it was asked to grow. */
  readonly grownAt: string[]
  /** Where the plugin leaves its traces on disk, for those who look for them after a restart. */
  traces: { make(target: string): Promise<void>; remove(target: string): Promise<void> } | undefined
  /** Hears of every call that took effect. */
  onEffect(call: Call, at: string): void
  /** What happens elsewhere while a call is under way. */
  readonly meanwhile: Map<Call, () => Promise<unknown>>
  /** The label that it noted on disk beside a mount, for whoever finds that after a restart. */
  restoredLabel: string | undefined
  /** Names of pods for which every SetUp is refused. */
  readonly refused: Set<string>
  /** Specs for which the node can hold no more volumes. */
  exhausted: boolean
  /** What the storage says of the volume's health; absent: it does not tell. */
  health: readonly HealthCondition[] | 'fails' | undefined
  /** The label that each device was mounted with. */
  readonly labels: (string | undefined)[]
  /** What each question about health was told: path in the pod, path on the node. */
  readonly healthAsked: string[]
  attachable: boolean
  /** Its notes on disk are damaged: it restores nothing, and unmounts only what it is told all about. */
  forgets: boolean
  /** How often two calls about one volume and pod, or about a device and anything, were under way together (INV-10). */
  readonly overlaps: number
  /** Tells the agent that the plugin's answers may have changed. */
  changed(): void
  count(call: Call): number
}

export interface DevicePluginOptions {
  readonly attachable?: boolean
  /** Block volumes are set up by the plugin itself; 'plain' ones come with a device and nothing else. */
  readonly block?: 'custom' | 'plain' | 'none'
  /** Each pod gets a device node of its own, `/dev/published-<pod>`. */
  readonly publishes?: boolean
  readonly mountOptions?: boolean
  /** Volumes can be mounted with a SELinux label. */
  readonly labels?: boolean
  /** SetUp comes again and again, as for contents that change (KA-11). */
  readonly remount?: boolean
}

export function createDevicePlugin(options: DevicePluginOptions = {}) {
  const answers = new Map<Call, Answer[]>()
  const calls: Call[] = []
  const [devices, mounts, waited] = [new Set<string>(), new Set<string>(), [] as string[]]
  const listeners = new Set<() => void>()
  const [requests, asked]: [MountRequest[], bigint[]] = [[], []]
  const answer = (call: Call, effect: () => void, undo: () => void = () => {}) => {
    calls.push(call)
    const next = answers.get(call)?.shift() ?? 'ok'
    if (next === 'ok') return effect()
    if (next === 'unknown') effect() // it did happen, but nobody heard of it
    if (next === 'none') undo() // a driver that says so has looked
    const isEffect = next === 'none' || next === 'unknown' || next === 'untried'
    throw new VolumeError(
      'UnknownMountError',
      `${call} was told to fail`,
      isEffect ? { effect: next } : { effect: 'none', tags: [next] },
    )
  }
  let overlaps = 0
  const running: (string | undefined)[] = []
  /** `scope` is a pod's target, or undefined for what concerns the whole volume. */
  const alone = async (scope: string | undefined, call: () => void): Promise<void> => {
    if (running.some((other) => other === undefined || scope === undefined || other === scope)) overlaps++
    running.push(scope)
    for (let turn = 0; turn < 5; turn++) await Promise.resolve()
    try {
      call()
    } finally {
      running.splice(running.indexOf(scope), 1)
    }
  }
  const there = (call: Call, set: Set<string>, at: string) => {
    set.add(at)
    plugin.onEffect(call, at)
  }
  const gone = (call: Call, set: Set<string>, at: string) => {
    set.delete(at)
    plugin.onEffect(call, at)
  }
  const waitForAttach = async ({ devicePath }: { readonly devicePath: string }) => {
    waited.push(devicePath)
    await alone(undefined, () => answer('waitForAttach', () => {}))
    return devicePath
  }
  const mapper: BlockMapper = {
    globalMapPath: (spec) => globalMap(spec.name),
    waitForAttach,
    ...(options.block === 'plain' ? { devicePath: () => '/dev/disk' } : {}),
    ...(options.block === 'custom'
      ? {
          setUpDevice: async ({ spec }) => (
            answer(
              'setUpDevice',
              () => there('setUpDevice', devices, spec.name),
              () => void devices.delete(spec.name),
            ),
            ''
          ),
          mapPodDevice: async ({ pod }) => {
            answer('mapPodDevice', () => plugin.onEffect('mapPodDevice', pod.metadata.name))
            return options.publishes ? `/dev/published-${pod.metadata.name}` : ''
          },
          unmapPodDevice: async () => answer('unmapPodDevice', () => {}),
          tearDownDevice: async ({ spec }) =>
            answer('tearDownDevice', () => gone('tearDownDevice', devices, spec.name)),
        }
      : {}),
  }
  const node: NodePlugin = {
    attachable: () => plugin.attachable,
    watch(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    prepare: async () => {
      if (answers.has('prepare')) answer('prepare', () => {})
    },
    exhausted: async () => plugin.exhausted,
    seLinuxMount: () => options.labels === true,
    mount: async (request) => {
      const { target } = request
      requests.push(request)
      await plugin.traces?.make(target)
      await plugin.meanwhile.get('mount')?.()
      const { name } = request.pod.metadata
      if (plugin.refused.has(name)) throw new VolumeError('UnknownMountError', `refused to ${name}`, { effect: 'none' })
      await alone(undefined, () =>
        answer(
          'mount',
          () => there('mount', mounts, target),
          () => void mounts.delete(target),
        ),
      )
    },
    async unmount({ target, spec }) {
      if (plugin.forgets && !spec) throw damaged()
      await alone(target, () => answer('unmount', () => gone('unmount', mounts, target)))
      await plugin.traces?.remove(target)
    },
    device: (spec) =>
      spec.mode === 'Block'
        ? undefined
        : {
            path: () => `/global/${spec.name}`,
            waitForAttach,
            mount: ({ path, seLinuxLabel }) => {
              plugin.labels.push(seLinuxLabel)
              return alone(undefined, () =>
                answer(
                  'mountDevice',
                  () => there('mountDevice', devices, path),
                  () => void devices.delete(path),
                ),
              )
            },
            unmount: ({ path }) =>
              alone(undefined, () => answer('unmountDevice', () => gone('unmountDevice', devices, path))),
          },
    ...(options.block === 'none' || options.block === undefined
      ? {}
      : { block: ({ mode }) => (mode === 'Block' ? mapper : undefined) }),
    restore: async ({ volumeName, mode }) => {
      if (plugin.forgets) throw damaged()
      return specOfPersistentVolume(volume(volumeName, { volumeMode: mode }), false)
    },
    restoredLabel: async () => plugin.restoredLabel,
    async health({ path, stagingPath }) {
      if (plugin.health === undefined) return undefined
      plugin.healthAsked.push(`${path} ${stagingPath}`)
      if (plugin.health === 'fails') throw new VolumeError('UnknownMountError', 'told to fail', { effect: 'none' })
      return plugin.health
    },
    expand: async ({ newBytes, devicePath, spec }) => {
      asked.push(newBytes)
      if (spec.mode === 'Block') plugin.grownAt.push(devicePath ?? '')
      answer('expand', () => {})
      return newBytes
    },
  }
  const definition = definePlugin({
    name: pluginName('example.com/device'),
    source: 'fc',
    traits: { takesMountOptions: options.mountOptions ?? true, remountOnPodUpdate: options.remount ?? false },
    volumeName: ({ source }) => source.value.wwids?.[0] ?? '',
    node: () => node,
  })
  const plugin: DevicePlugin = {
    answers,
    calls,
    devices,
    mounts,
    waited,
    requests,
    asked,
    grownAt: [],
    traces: undefined,
    onEffect() {},
    meanwhile: new Map(),
    refused: new Set(),
    restoredLabel: undefined,
    exhausted: false,
    health: undefined,
    healthAsked: [],
    labels: [],
    attachable: options.attachable ?? true,
    forgets: false,
    get overlaps() {
      return overlaps
    },
    changed() {
      for (const listener of listeners) listener()
    },
    count: (call) => calls.filter((each) => each === call).length,
  }
  return { plugin, registered: onNode(definition, undefined) }
}

const damaged = () => new VolumeError('UnknownMountError', 'its notes are damaged', { effect: 'untried' })

export const globalMap = (name: string) => `/global-map/${name}`
export const volumeName = 'example.com/device/disk'

export function volume(name: string, more: Partial<NonNullable<PersistentVolume['spec']>> = {}): PersistentVolume {
  return volumeRequest(name, {
    capacity: { storage: '10Gi' },
    accessModes: ['ReadWriteMany'],
    volumeMode: 'Filesystem',
    fc: { wwids: ['disk'] },
    claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'c', uid: '' },
    ...more,
  })
}

export function claim(request = '10Gi'): PersistentVolumeClaim {
  return claimRequest('c', {
    accessModes: ['ReadWriteMany'],
    volumeName: 'pv',
    storageClassName: '',
    resources: { requests: { storage: request } },
  })
}
