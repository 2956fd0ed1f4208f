// The plugin `kubernetes.io/csi`: volumes whose storage a CSI driver serves. The parts lie beside this file; here they
// become one definition (CSI-1 … CSI-3, CSI-10).
import type { CSIPersistentVolumeSource, CSIVolumeSource, PersistentVolume } from '../../api/generated/types.ts'
import { csiVolumeName } from '../../api/names.ts'
import type { Driver } from '../../csi/drivers.ts'
import { VolumeError } from '../../volume/effect.ts'
import { definePlugin } from '../../volume/plugin.ts'
import type { NodePlugin, RestoreRequest } from '../../volume/plugin.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { createCsiAttachment } from './attach.ts'
import type { CsiAttachDeps } from './attach.ts'
import { createBlockMapper } from './block.ts'
import { createExpander } from './expand.ts'
import { createDeviceMounter, createPublisher, mountPathOf } from './mount.ts'
import { requireData } from './saved-data.ts'
import { attachRequired, blockPaths, csiPluginName, isExhausted, sourceOf } from './source.ts'
import type { CsiNodeDeps } from './source.ts'

export default definePlugin({
  name: csiPluginName,
  source: 'csi',
  // Only drivers that ask for it are mounted again (`remountRequired` below); what they publish may change at any time.
  traits: { takesMountOptions: true, remountOnPodUpdate: false, changesByTime: () => true },
  volumeName(spec) {
    const { value } = spec.source
    if ('volumeHandle' in value) return csiVolumeName(value)
    throw new VolumeError('InlineVolume', 'an inline CSI volume has no name of its own', { effect: 'untried' })
  },
  node: createCsiNodePlugin,
  cluster: (deps: CsiAttachDeps) => createCsiAttachment(deps),
})

export function createCsiNodePlugin(deps: CsiNodeDeps): NodePlugin {
  const device = createDeviceMounter(deps)
  const mapper = createBlockMapper(deps)
  const { subscribe } = deps.csiDrivers
  const isPersistent = (spec: VolumeSpec) => sourceOf(spec).lifecycle === 'Persistent'
  return {
    ...createPublisher(deps),
    ...createExpander(deps),
    path: (_spec, target) => mountPathOf(target),
    readOnly: (spec) => spec.readOnly,
    attachable: (spec) => attachRequired(deps, spec),
    ...(subscribe ? { watch: (listener) => subscribe(() => listener()) } : {}),
    onReturn: (listener) => onReturn(deps, listener),
    exhausted: (spec, signal) => isExhausted(deps, spec, signal),
    device: (spec) => (isPersistent(spec) && spec.mode === 'Filesystem' ? device : undefined),
    block: (spec) => (isPersistent(spec) && spec.mode === 'Block' ? mapper : undefined),
    remountRequired: (spec) => deps.csiDrivers.get(sourceOf(spec).value.driver)?.spec?.requiresRepublish === true,
    restore: (request, signal) => restore(deps, request, signal),
    seLinuxMount: (spec) => deps.csiDrivers.get(sourceOf(spec).value.driver)?.spec?.seLinuxMount === true,
    async restoredLabel({ path, mode }, signal) {
      if (mode === 'Block') return undefined
      return (await requireData(deps.host.files, dataDirectory(path), signal)).seLinuxMountContext
    },
  }
}

/** A driver has come back when its connection is made again, and when it registers again. */
function onReturn({ drivers }: CsiNodeDeps, listener: (serves: (spec: VolumeSpec) => boolean) => void): Disposable {
  const connections = new Map<Driver, Disposable>()
  const stack = new DisposableStack()
  stack.defer(() => connections.forEach((connection) => connection[Symbol.dispose]()))
  stack.use(
    drivers.subscribe(({ kind, driver }) => {
      connections.get(driver)?.[Symbol.dispose]()
      connections.delete(driver)
      if (kind === 'removed') return
      const tell = () => listener((spec) => sourceOf(spec).value.driver === driver.name)
      connections.set(driver, driver.onReady(tell))
      tell()
    }),
  )
  return stack
}

const dataDirectory = (path: string) => path.replace(/\/mount$/, '')

/** Rebuilds the spec from the metadata on disk alone (CSI-10). */
async function restore({ host, root }: CsiNodeDeps, request: RestoreRequest, signal: AbortSignal): Promise<VolumeSpec> {
  const { volumeName, path, mode } = request
  const directory = mode === 'Block' ? blockPaths(root, volumeName).data : dataDirectory(path)
  const data = await requireData(host.files, directory, signal)
  if (data.volumeLifecycleMode === 'Ephemeral') {
    const value: CSIVolumeSource = { driver: data.driverName }
    return { name: volumeName, from: 'pod', mode, readOnly: false, source: { kind: 'csi', value } }
  }
  const value: CSIPersistentVolumeSource = { driver: data.driverName, volumeHandle: data.volumeHandle }
  const name = data.specVolID ?? volumeName
  const persistentVolume: PersistentVolume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: { csi: value, volumeMode: mode },
  }
  return { name, from: 'persistentVolume', mode, readOnly: false, source: { kind: 'csi', value }, persistentVolume }
}
