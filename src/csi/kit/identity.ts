// Who am I, and what do I offer? The Identity service and the capability lists of the other two.
import {
  ControllerServiceCapability_RPC_Type as ControllerRpc,
  NodeServiceCapability_RPC_Type as NodeRpc,
  PluginCapability_Service_Type as Service,
  PluginCapability_VolumeExpansion_Type as Expansion,
} from '../generated/csi_pb.ts'
import type { Identity } from '../generated/csi_pb.ts'
import type { UnaryHandlers } from '../service.ts'
import type { KitDeps } from './driver.ts'

export function identityHandlers({ settings }: KitDeps): UnaryHandlers<typeof Identity> {
  const services = settings.topologyKey
    ? [Service.CONTROLLER_SERVICE, Service.VOLUME_ACCESSIBILITY_CONSTRAINTS]
    : [Service.CONTROLLER_SERVICE]
  return {
    getPluginInfo: async () => ({ name: settings.name, vendorVersion: settings.version }),
    getPluginCapabilities: async () => ({
      capabilities: [
        ...services.map((type) => ({ type: { case: 'service' as const, value: { type } } })),
        { type: { case: 'volumeExpansion' as const, value: { type: Expansion.ONLINE } } },
      ],
    }),
    probe: async () => ({ ready: true }),
  }
}

export function controllerCapabilities({ settings, storage }: Pick<KitDeps, 'settings' | 'storage'>) {
  const types = [
    ControllerRpc.CREATE_DELETE_VOLUME,
    ControllerRpc.LIST_VOLUMES,
    ControllerRpc.GET_CAPACITY,
    ControllerRpc.CREATE_DELETE_SNAPSHOT,
    ControllerRpc.LIST_SNAPSHOTS,
    ControllerRpc.GET_SNAPSHOT,
    ControllerRpc.CLONE_VOLUME,
    ControllerRpc.EXPAND_VOLUME,
    ControllerRpc.GET_VOLUME,
    ControllerRpc.SINGLE_NODE_MULTI_WRITER,
    ...(settings.attach
      ? [
          ControllerRpc.PUBLISH_UNPUBLISH_VOLUME,
          ControllerRpc.PUBLISH_READONLY,
          ControllerRpc.LIST_VOLUMES_PUBLISHED_NODES,
        ]
      : []),
    ...(storage.modify ? [ControllerRpc.MODIFY_VOLUME] : []),
    ...(storage.condition ? [ControllerRpc.VOLUME_CONDITION] : []),
  ]
  return { capabilities: types.map((type) => ({ type: { case: 'rpc' as const, value: { type } } })) }
}

export function nodeCapabilities({ node }: Pick<KitDeps, 'node'>) {
  const types = [
    NodeRpc.STAGE_UNSTAGE_VOLUME,
    NodeRpc.GET_VOLUME_STATS,
    NodeRpc.EXPAND_VOLUME,
    NodeRpc.SINGLE_NODE_MULTI_WRITER,
    ...(node.health ? [NodeRpc.GET_STORAGE_HEALTH] : []),
  ]
  return { capabilities: types.map((type) => ({ type: { case: 'rpc' as const, value: { type } } })) }
}
