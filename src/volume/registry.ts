// Which plugin serves this volume? Built-ins and probed plugins, found by spec or by name (MGR-2 … MGR-7).
import type { PluginName } from '../api/names.ts'
import { VolumeError } from './effect.ts'
import type { ClusterPlugin, NodePlugin, PluginDefinition, PluginTraits } from './plugin.ts'
import type { SourceKind, VolumeSpec } from './spec.ts'
import { createListeners } from '../loop/listeners.ts'

/** A plugin as one side sees it: P is NodePlugin on a node, ClusterPlugin in the control plane. */
export interface Registered<P> {
  readonly name: PluginName
  readonly traits: PluginTraits
  volumeName(spec: VolumeSpec): string
  supports(spec: VolumeSpec): boolean
  readonly plugin: P
}

export interface Registry<P> {
  /** Exactly one plugin must support the spec. */
  find(spec: VolumeSpec): Registered<P>
  /** The first plugin that supports the spec, or undefined. */
  supporting(spec: VolumeSpec): Registered<P> | undefined
  byName(name: PluginName): Registered<P>
  /** The same, or undefined: a FlexVolume driver may be gone while its volumes are still there. */
  known(name: PluginName): Registered<P> | undefined
  all(): readonly Registered<P>[]
  /** Adds a dynamic plugin; it replaces the dynamic plugin of the same name. */
  add(plugin: Registered<P>): void
  drop(name: PluginName): void
  /** Calls back when a plugin was added or dropped. */
  subscribe(listener: () => void): Disposable
}

export function createRegistry<P>(builtIns: readonly Registered<P>[]): Registry<P> {
  const fixed = new Map<string, Registered<P>>()
  const problems: string[] = []
  for (const plugin of builtIns) {
    if (!isQualifiedName(plugin.name)) problems.push(`volume plugin has invalid name: "${plugin.name}"`)
    else if (fixed.has(plugin.name)) problems.push(`volume plugin "${plugin.name}" was registered more than once`)
    else fixed.set(plugin.name, plugin)
  }
  if (problems.length > 0) throw new VolumeError('PluginsInvalid', problems.join('; '), { effect: 'untried' })
  const probed = new Map<string, Registered<P>>()
  const all = () => [...fixed.values(), ...probed.values()]
  const listeners = createListeners<[]>()

  return {
    all,
    supporting: (spec) => all().find((plugin) => plugin.supports(spec)),
    find(spec) {
      const matches = all().filter((plugin) => plugin.supports(spec))
      const [first, ...others] = matches
      if (!first) throw new VolumeError('NoPluginMatched', 'no volume plugin matched', { effect: 'untried' })
      if (others.length > 0) {
        const names = matches.map(({ name }) => name).join(',')
        throw new VolumeError('PluginAmbiguous', `multiple volume plugins matched: ${names}`, { effect: 'untried' })
      }
      return first
    },
    byName(name) {
      const [built, dynamic] = [fixed.get(name), probed.get(name)]
      if (built && dynamic) {
        const names = `${built.name},${dynamic.name}`
        throw new VolumeError('PluginAmbiguous', `multiple volume plugins matched: ${names}`, { effect: 'untried' })
      }
      const found = built ?? dynamic
      if (!found) {
        throw new VolumeError('NoPluginMatched', `no volume plugin matched name: ${name}`, { effect: 'untried' })
      }
      return found
    },
    known: (name) => fixed.get(name) ?? probed.get(name),
    add(plugin) {
      probed.set(plugin.name, plugin)
      listeners.tell()
    },
    drop(name) {
      if (probed.delete(name)) listeners.tell()
    },
    subscribe: (listener) => listeners.listen(listener),
  }
}

type Common<K extends SourceKind> = Omit<PluginDefinition<K, never>, 'node' | 'cluster'>
type NodeHalf<K extends SourceKind, D> = Common<K> & { node(deps: D): NodePlugin }
type ClusterHalf<K extends SourceKind, D> = Common<K> & { cluster?(deps: D): ClusterPlugin }

/** A definition with its node half made from deps. */
export function onNode<K extends SourceKind, D>(definition: NodeHalf<K, D>, deps: D): Registered<NodePlugin> {
  return registered(definition, definition.node(deps))
}

/** A definition with its cluster half made from deps; plugins without one offer no capability there. */
export function inCluster<K extends SourceKind, D>(definition: ClusterHalf<K, D>, deps: D): Registered<ClusterPlugin> {
  return registered(definition, definition.cluster?.(deps) ?? {})
}

function registered<K extends SourceKind, P>(definition: Common<K>, plugin: P): Registered<P> {
  const { name, traits, source } = definition
  // The source's kind was compared first, so the narrower spec type holds. Traits, too, are asked only about specs that the
  // plugin supports.
  const narrow = (spec: VolumeSpec) => spec as unknown as VolumeSpec<K>
  return {
    name,
    traits: traits as unknown as PluginTraits,
    plugin,
    supports: (spec) => spec.source.kind === source && (definition.supports?.(narrow(spec)) ?? true),
    volumeName: (spec) => definition.volumeName(narrow(spec)),
  }
}

/** `domain/name`, as Kubernetes' qualified names (MGR-2). */
function isQualifiedName(name: string): boolean {
  const [domain, local, ...rest] = name.split('/')
  if (!domain || !local || rest.length > 0) return false
  return /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(domain) && /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/.test(local)
}
