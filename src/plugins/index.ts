// Which volume types does a node serve, and which does the control plane know? The list (MGR-11), CSI beside it.

import type { ClusterPlugin, NodePlugin } from '../volume/plugin.ts'
import type { Registered, Registry } from '../volume/registry.ts'
import { inCluster, onNode } from '../volume/registry.ts'
import { pluginName as flexPluginName } from '../api/names.ts'
import configMap from './config-map/plugin.ts'
import csi from './csi/plugin.ts'
import type { CsiAttachDeps } from './csi/attach.ts'
import type { CsiNodeDeps } from './csi/source.ts'
import type { NodePluginDeps } from './shared/deps.ts'
import downwardApi from './downward-api/plugin.ts'
import emptyDir from './empty-dir/plugin.ts'
import fc from './fc/plugin.ts'
import type { FlexProber, FlexProberDeps } from './flex-volume/probe.ts'
import { startFlexProber } from './flex-volume/probe.ts'
import { flexPlugin } from './flex-volume/plugin.ts'
import type { FlexClusterDeps, FlexNodeDeps } from './flex-volume/plugin.ts'
import gitRepo from './git-repo/plugin.ts'
import hostPath from './host-path/plugin.ts'
import type { HostPathClusterDeps } from './host-path/plugin.ts'
import image from './image/plugin.ts'
import iscsi from './iscsi/plugin.ts'
import local from './local/plugin.ts'
import nfs from './nfs/plugin.ts'
import projected from './projected/plugin.ts'
import secret from './secret/plugin.ts'

/** Every built-in but CSI, in the order of MGR-11. */
export function nodePlugins(deps: NodePluginDeps): readonly Registered<NodePlugin>[] {
  return [
    onNode(emptyDir, deps),
    onNode(gitRepo, deps),
    onNode(hostPath, deps),
    onNode(nfs, deps),
    onNode(secret, deps),
    onNode(iscsi, deps),
    onNode(downwardApi, deps),
    onNode(fc, deps),
    onNode(configMap, deps),
    onNode(projected, deps),
    onNode(local, deps),
    onNode(image, deps),
  ]
}

/** CSI has needs of its own (registered drivers), so it is made apart. */
export function csiNodePlugin(deps: CsiNodeDeps): Registered<NodePlugin> {
  return onNode(csi, deps)
}

export interface ClusterPluginDeps extends CsiAttachDeps {
  readonly hostPath?: HostPathClusterDeps
}

export function clusterPlugins(deps: ClusterPluginDeps): readonly Registered<ClusterPlugin>[] {
  return [
    inCluster(emptyDir, undefined),
    inCluster(gitRepo, undefined),
    inCluster(hostPath, deps.hostPath ?? {}),
    inCluster(nfs, undefined),
    inCluster(secret, undefined),
    inCluster(iscsi, undefined),
    inCluster(downwardApi, undefined),
    inCluster(fc, undefined),
    inCluster(configMap, undefined),
    inCluster(projected, undefined),
    inCluster(local, undefined),
    inCluster(csi, deps),
    inCluster(image, undefined),
  ]
}

/** FlexVolume drivers come and go while we run: they enter and leave the registry by themselves. */
export function probeFlexDrivers(
  deps: FlexNodeDeps & Pick<FlexProberDeps, 'log' | 'directory'>,
  registry: Pick<Registry<NodePlugin>, 'add' | 'drop'>,
  signal: AbortSignal,
): Promise<FlexProber> {
  const prober: FlexProberDeps = {
    host: deps.host,
    clock: deps.clock,
    log: deps.log,
    directory: deps.directory,
    found: (driver) => registry.add(onNode(flexPlugin(driver), deps)),
    gone: (name) => registry.drop(flexPluginName(name)),
  }
  return startFlexProber(prober, signal)
}

/** The same on the side of the control plane: attach, detach, expand. */
export function probeFlexAttachers(
  deps: FlexClusterDeps & Pick<FlexProberDeps, 'host' | 'clock' | 'log' | 'directory'>,
  registry: Pick<Registry<ClusterPlugin>, 'add' | 'drop'>,
  signal: AbortSignal,
): Promise<FlexProber> {
  const prober: FlexProberDeps = {
    ...deps,
    found: (driver) => registry.add(inCluster(flexPlugin(driver), deps)),
    gone: (name) => registry.drop(flexPluginName(name)),
  }
  return startFlexProber(prober, signal)
}
