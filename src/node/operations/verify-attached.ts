// Is the volume on this node, according to the control plane? VCA-1 … VCA-7. It must stand in both lists
// of the live Node, read after we reported it in use (DES-6). Volumes that nobody attaches are not asked about.
import { refused } from '../../volume/effect.ts'
import { pluginLabel } from '../../volume/identity.ts'
import type { Operation } from '../../volume/operation.ts'
import type { ActualEvent } from '../volumes/actual.ts'
import type { MountWork, OperationDeps } from './steps.ts'
import { mountSubject } from './steps.ts'

export const verifyAttached: Operation<MountWork, OperationDeps, ActualEvent> = {
  name: 'verify_controller_attached_volume',
  label: 'VerifyControllerAttachedVolume',
  key: ({ desired }) => [desired.volume],
  subject: mountSubject,
  plugin: ({ desired, mount }) => pluginLabel(desired.plugin, mount.spec),
  async run({ desired, mount }, { registry, client, node }, { step }, signal) {
    const { volume } = desired
    const { name: plugin } = await step('FindPluginBySpec', () => registry.find(mount.spec))
    const entered = (devicePath: string): ActualEvent => ({
      kind: 'attached',
      volume,
      plugin,
      spec: mount.spec,
      attachable: true,
      devicePath,
      sizeBytes: mount.claimBytes,
    })
    const live = await step('fetching node', () => client.get('Node', { name: node }, signal), {
      prefix: 'VerifyControllerAttachedVolume failed fetching node from API server',
    })
    const inUse = () => {
      if (!live.status?.volumesInUse?.includes(volume))
        throw refused('NotReported', 'the node does not report it in use', 'untried')
    }
    await step('VolumesInUse', inUse, {
      prefix: "Volume has not been added to the list of VolumesInUse in the node's volume status",
    })
    const find = () => {
      const found = live.status?.volumesAttached?.find(({ name }) => name === volume)
      if (!found) throw refused('NotAttached', 'the control plane does not list it', 'untried')
      return found.devicePath
    }
    await step('VolumesAttached', find, { done: entered, prefix: 'Volume not attached according to node status' })
  },
}
