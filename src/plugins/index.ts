// Which volume types are there? One list for nodes and control plane (MGR-11), CSI beside it, FlexVolume drivers as found.

import type { ClusterPlugin, NodePlugin, PluginDefinition } from '../volume/plugin.ts'
import type { Registered, Registry } from '../volume/registry.ts'
import { inCluster, onNode } from '../volume/registry.ts'
import type { SourceKind } from '../volume/spec.ts'
import { pluginName as flexPluginName } from '../api/names.ts'
import configMap from './config-map/plugin.ts'
import csi from './csi/plugin.ts'
import type { CsiNodeDeps } from './csi/source.ts'
import type { ClusterPluginDeps, NodePluginDeps } from './shared/deps.ts'
import downwardApi from './downward-api/plugin.ts'
import emptyDir from './empty-dir/plugin.ts'
import fc from './fc/plugin.ts'
import type { FlexProber, FlexProberDeps } from './flex-volume/probe.ts'
import { startFlexProber } from './flex-volume/probe.ts'
import { flexPlugin } from './flex-volume/plugin.ts'
import type { FlexClusterDeps, FlexNodeDeps } from './flex-volume/plugin.ts'
import gitRepo from './git-repo/plugin.ts'
import hostPath from './host-path/plugin.ts'
import image from './image/plugin.ts'
import iscsi from './iscsi/plugin.ts'
import local from './local/plugin.ts'
import nfs from './nfs/plugin.ts'
import projected from './projected/plugin.ts'
import secret from './secret/plugin.ts'

/** One line per volume type, in Kubernetes' order (MGR-11). CSI is not here: it needs other deps. */
const builtIns: readonly BuiltIn[] = [
  builtIn(emptyDir),
  builtIn(gitRepo),
  builtIn(hostPath),
  builtIn(nfs),
  builtIn(secret),
  builtIn(iscsi),
  builtIn(downwardApi),
  builtIn(fc),
  builtIn(configMap),
  builtIn(projected),
  builtIn(local),
  builtIn(image),
]

/** Every built-in but CSI. */
export function nodePlugins(deps: NodePluginDeps): readonly Registered<NodePlugin>[] {
  return builtIns.map((each) => each.onNode(deps))
}

/** CSI needs the registered drivers, so it is created apart. */
export function csiNodePlugin(deps: CsiNodeDeps): Registered<NodePlugin> {
  return onNode(csi, deps)
}

/** The control plane must know every type, also those that it has nothing to do for. */
export function clusterPlugins(deps: ClusterPluginDeps): readonly Registered<ClusterPlugin>[] {
  return [...builtIns.map((each) => each.inCluster(deps)), inCluster(csi, deps)]
}

interface BuiltIn {
  readonly onNode: (deps: NodePluginDeps) => Registered<NodePlugin>
  readonly inCluster: (deps: ClusterPluginDeps) => Registered<ClusterPlugin>
}

/** Both halves of a definition, each waiting for its deps. A definition that needs more than these has no place in the list. */
function builtIn<K extends SourceKind, N, C>(definition: PluginDefinition<K, N, C>) {
  return {
    onNode: (deps: N) => onNode(definition, deps),
    inCluster: (deps: C) => inCluster(definition, deps),
  }
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
