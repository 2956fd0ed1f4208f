// Which class parameters are the driver's, and which are ours? Reserved keys name the filesystem and the secrets of
// each operation; secret names may be templates (SIDE-9, SIDE-10, SIDE-11).
import { refused } from '../../volume/effect.ts'
import type { PersistentVolumeClaim, SecretReference } from '../../api/generated/types.ts'
import type { Strings } from '../values.ts'

const secretUses = [
  'provisioner',
  'controllerPublish',
  'nodeStage',
  'nodePublish',
  'controllerExpand',
  'nodeExpand',
  'controllerModify',
] as const
export type SecretUse = (typeof secretUses)[number]

export interface SplitParameters {
  /** What the driver gets. */
  readonly driver: Strings
  readonly fsType: string | undefined
  readonly secrets: Readonly<Partial<Record<SecretUse, SecretTemplate>>>
}

export interface SecretTemplate {
  readonly name: string
  readonly namespace: string
}

const reservedPrefix = 'csi.storage.k8s.io/'

const modernNames: Readonly<Record<SecretUse, string>> = {
  provisioner: 'provisioner-secret',
  controllerPublish: 'controller-publish-secret',
  nodeStage: 'node-stage-secret',
  nodePublish: 'node-publish-secret',
  controllerExpand: 'controller-expand-secret',
  nodeExpand: 'node-expand-secret',
  controllerModify: 'controller-modify-secret',
}
const deprecatedNames: Readonly<Partial<Record<SecretUse, string>>> = {
  provisioner: 'csiProvisionerSecret',
  controllerPublish: 'csiControllerPublishSecret',
  nodeStage: 'csiNodeStageSecret',
  nodePublish: 'csiNodePublishSecret',
}
const defaultSecret = 'secret'

export function splitParameters(parameters: Strings | undefined): SplitParameters {
  const driver: Record<string, string> = {}
  const reserved = new Map<string, string>()
  for (const [key, value] of Object.entries(parameters ?? {})) {
    if (key.startsWith(reservedPrefix)) reserved.set(key.slice(reservedPrefix.length), value)
    else driver[key] = value
  }
  const fsType = chooseFsType(reserved, driver)
  reserved.delete('fstype')
  const fallback = takePair(reserved, `${defaultSecret}-name`, `${defaultSecret}-namespace`)
  const secrets: Partial<Record<SecretUse, SecretTemplate>> = {}
  for (const use of secretUses) {
    const modern = takePair(reserved, `${modernNames[use]}-name`, `${modernNames[use]}-namespace`)
    const old = deprecatedPair(driver, deprecatedNames[use])
    if (modern && old)
      throw refused('ParametersInvalid', `both ${modernNames[use]} and its deprecated form are set`, 'none')
    const chosen = modern ?? old ?? fallback
    if (chosen) secrets[use] = chosen
  }
  const unknown = [...reserved.keys()][0]
  if (unknown !== undefined) {
    throw refused(
      'ParametersInvalid',
      `found unknown parameter key "${reservedPrefix}${unknown}" with reserved namespace csi.storage.k8s.io`,
      'none',
    )
  }
  return { driver, fsType, secrets }
}

/** The same cut for calls that must not fail on a strange key (GetCapacity, WART-21). */
export function driverParameters(parameters: Strings | undefined): Strings {
  return Object.fromEntries(Object.entries(parameters ?? {}).filter(([key]) => !key.startsWith(reservedPrefix)))
}

/** SIDE-10: names may speak of the claim, namespaces only of things no user controls. */
export function resolveSecret(
  template: SecretTemplate | undefined,
  facts: { readonly volumeName: string; readonly claim: PersistentVolumeClaim | undefined },
): SecretReference | undefined {
  if (!template) return undefined
  const { claim, volumeName } = facts
  const basic = new Map([['pv.name', volumeName]])
  if (claim) basic.set('pvc.namespace', claim.metadata.namespace ?? '')
  const full = new Map(basic)
  if (claim) full.set('pvc.name', claim.metadata.name)
  for (const [key, value] of Object.entries(claim?.metadata.annotations ?? {}))
    full.set(`pvc.annotations['${key}']`, value)
  const name = fill(template.name, full)
  const namespace = fill(template.namespace, basic)
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name) || name.length > 253) {
    throw refused(
      'SecretNameInvalid',
      `"${template.name}" resolved to "${name}" which is not a valid secret name`,
      'none',
    )
  }
  if (!/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(namespace) || namespace.length > 63) {
    throw refused(
      'SecretNameInvalid',
      `"${template.namespace}" resolved to "${namespace}" which is not a valid namespace name`,
      'none',
    )
  }
  return { name, namespace }
}

function chooseFsType(reserved: Map<string, string>, driver: Strings): string | undefined {
  const modern = reserved.get('fstype')
  const old = Object.entries(driver).filter(([key]) => key.toLowerCase() === 'fstype')
  if (old.length + (modern === undefined ? 0 : 1) > 1) {
    throw refused(
      'ParametersInvalid',
      'fstype specified in parameters with both "fstype" and "csi.storage.k8s.io/fstype" keys',
      'none',
    )
  }
  return modern ?? old[0]?.[1]
}

function takePair(from: Map<string, string>, nameKey: string, namespaceKey: string): SecretTemplate | undefined {
  const name = from.get(nameKey)
  const namespace = from.get(namespaceKey)
  from.delete(nameKey)
  from.delete(namespaceKey)
  return pair(nameKey, name, namespace)
}

function deprecatedPair(driver: Strings, prefix: string | undefined): SecretTemplate | undefined {
  return prefix === undefined ? undefined : pair(prefix, driver[`${prefix}Name`], driver[`${prefix}Namespace`])
}

function pair(label: string, name: string | undefined, namespace: string | undefined): SecretTemplate | undefined {
  if (name === undefined && namespace === undefined) return undefined
  if (!name || !namespace)
    throw refused(
      'ParametersInvalid',
      `either name and namespace for ${label} secrets specified, both must be specified`,
      'none',
    )
  return { name, namespace }
}

function fill(template: string, values: ReadonlyMap<string, string>): string {
  return template.replace(/\$\{([^}]*)\}/g, (_whole, token: string) => {
    const value = values.get(token)
    if (value === undefined)
      throw refused('SecretNameInvalid', `error resolving value "${template}": invalid tokens: ["${token}"]`, 'none')
    return value
  })
}
