// A volume type whose every answer the test chooses: an attachable device that is mounted once per node, then per pod.
// It keeps what a real one would keep (what is mounted where), so that tests assert states, not calls alone.
import { pluginName } from '../../src/api/names.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../src/api/types.ts'
import type { Effect, ErrorTag } from '../../src/volume/effect.ts'
import { VolumeError } from '../../src/volume/effect.ts'
import { definePlugin } from '../../src/volume/plugin.ts'
import type { NodePlugin } from '../../src/volume/plugin.ts'
import { onNode } from '../../src/volume/registry.ts'
import { specOfPersistentVolume } from '../../src/volume/spec.ts'

export type Call = 'mountDevice' | 'unmountDevice' | 'mount' | 'unmount' | 'expand' | 'waitForAttach'
export type Answer = 'ok' | Effect | ErrorTag

export interface DevicePlugin {
  /** What the next calls of each kind answer; then 'ok'. */
  readonly answers: Map<Call, Answer[]>
  readonly calls: Call[]
  readonly devices: Set<string>
  readonly mounts: Set<string>
  readonly waited: string[]
  count(call: Call): number
}

export function createDevicePlugin(options: { readonly attachable?: boolean } = {}) {
  const answers = new Map<Call, Answer[]>()
  const calls: Call[] = []
  const [devices, mounts, waited] = [new Set<string>(), new Set<string>(), [] as string[]]
  const answer = (call: Call, effect: () => void, undo: () => void = () => {}) => {
    calls.push(call)
    const next = answers.get(call)?.shift() ?? 'ok'
    if (next === 'ok') return effect()
    if (next === 'unknown') effect() // it did happen, but nobody heard of it
    if (next === 'none') undo() // a driver that says so has looked
    const isEffect = next === 'none' || next === 'unknown' || next === 'untried'
    throw new VolumeError(
      'Told',
      `${call} was told to fail`,
      isEffect ? { effect: next } : { effect: 'none', tags: [next] },
    )
  }
  const node: NodePlugin = {
    attachable: () => options.attachable ?? true,
    mount: async ({ target }) =>
      answer(
        'mount',
        () => void mounts.add(target),
        () => void mounts.delete(target),
      ),
    unmount: async ({ target }) => answer('unmount', () => void mounts.delete(target)),
    device: (spec) => ({
      path: () => `/global/${spec.name}`,
      async waitForAttach({ devicePath }) {
        waited.push(devicePath)
        answer('waitForAttach', () => {})
        return devicePath
      },
      mount: async ({ path }) =>
        answer(
          'mountDevice',
          () => void devices.add(path),
          () => void devices.delete(path),
        ),
      unmount: async ({ path }) => answer('unmountDevice', () => void devices.delete(path)),
    }),
    restore: async ({ volumeName }) => specOfPersistentVolume(volume(volumeName), false),
    expand: async ({ newBytes }) => (answer('expand', () => {}), newBytes),
  }
  const definition = definePlugin({
    name: pluginName('example.com/device'),
    source: 'fc',
    traits: { mountOptions: true, remountOnPodUpdate: false },
    volumeName: ({ source }) => source.value.wwids?.[0] ?? '',
    node: () => node,
  })
  const plugin: DevicePlugin = {
    answers,
    calls,
    devices,
    mounts,
    waited,
    count: (call) => calls.filter((each) => each === call).length,
  }
  return { plugin, registered: onNode(definition, undefined) }
}

export const volumeName = 'example.com/device/disk'

export function volume(name: string, more: Partial<NonNullable<PersistentVolume['spec']>> = {}): PersistentVolume {
  return {
    metadata: { name },
    spec: {
      capacity: { storage: '10Gi' },
      accessModes: ['ReadWriteMany'],
      volumeMode: 'Filesystem',
      fc: { wwids: ['disk'] },
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'c', uid: '' },
      ...more,
    },
  }
}

export function claim(): PersistentVolumeClaim {
  return {
    metadata: { name: 'c', namespace: 'default' },
    spec: {
      accessModes: ['ReadWriteMany'],
      volumeName: 'pv',
      storageClassName: '',
      resources: { requests: { storage: '10Gi' } },
    },
  }
}
