// Which variables does a container see? env and envFrom with their references resolved, and `$(NAME)` expanded.
import { secretTexts } from '../../api/secret-data.ts'
import { isNotFound } from '../../api/status-error.ts'
import { milliValue, parseQuantity, wholeValue } from '../../api/quantity.ts'
import type { Container, EnvVar, Node, Pod } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'

export interface EnvironmentDeps {
  readonly client: Pick<Client, 'get'>
  readonly ownNode: () => Node | undefined
  readonly hostAddress: string
}

/** Later entries win; `env` wins over `envFrom`. Throws with Kubernetes' words when something named is missing. */
export async function environmentOf(
  deps: EnvironmentDeps,
  pod: Pod,
  container: Container,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const found: Record<string, string> = {}
  for (const { prefix = '', configMapRef, secretRef } of container.envFrom ?? []) {
    const entries = configMapRef
      ? await configMapEntries(deps, pod, configMapRef.name ?? '', configMapRef.optional === true, signal)
      : await secretEntries(deps, pod, secretRef?.name ?? '', secretRef?.optional === true, signal)
    for (const [key, value] of Object.entries(entries ?? {})) found[`${prefix}${key}`] = value
  }
  for (const variable of container.env ?? []) {
    const value = await valueOf(deps, pod, container, variable, found, signal)
    if (value !== undefined) found[variable.name] = value
  }
  return found
}

/** `$(NAME)` becomes the variable's value, `$$` a dollar; an unknown name stays as it is written. */
export function expandReferences(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(/\$(\$|\(([^()$]*)\))/g, (whole, inner: string, name: string | undefined) =>
    inner === '$' ? '$' : ((Object.hasOwn(variables, name!) ? variables[name!] : undefined) ?? whole),
  )
}

/** As for subPathExpr, where a name without a value is an error. */
export function expandStrictly(text: string, variables: Readonly<Record<string, string>>): string {
  const names = Array.from(text.replaceAll('$$', '').matchAll(/\$\(([^()$]*)\)/g), ([, name]) => name!)
  const missing = names.filter((name) => !Object.hasOwn(variables, name) || variables[name] === '')
  if (missing.length > 0) throw new Error(`missing value for ${[...new Set(missing)].sort().join(', ')}`)
  return expandReferences(text, variables)
}

/** A field of the pod, as fieldRef names it; undefined for fields that cannot be named. */
function fieldOf(pod: Pod, path: string, hostAddress: string): string | undefined {
  const keyed = /^metadata\.(labels|annotations)\['([^']*)'\]$/.exec(path)
  if (keyed) return pod.metadata[keyed[1] as 'labels' | 'annotations']?.[keyed[2]!] ?? ''
  switch (path) {
    case 'metadata.name':
      return pod.metadata.name
    case 'metadata.namespace':
      return pod.metadata.namespace ?? ''
    case 'metadata.uid':
      return pod.metadata.uid ?? ''
    case 'spec.nodeName':
      return pod.spec?.nodeName ?? ''
    case 'spec.serviceAccountName':
      return pod.spec?.serviceAccountName ?? ''
    case 'status.hostIP':
    case 'status.hostIPs':
    case 'status.podIP':
    case 'status.podIPs':
      return hostAddress
    default:
      return undefined
  }
}

async function valueOf(
  deps: EnvironmentDeps,
  pod: Pod,
  container: Container,
  { name, value, valueFrom }: EnvVar,
  known: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!valueFrom) return expandReferences(value ?? '', known)
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = valueFrom
  if (fieldRef) {
    const text = fieldOf(pod, fieldRef.fieldPath, deps.hostAddress)
    if (text === undefined) throw new Error(`unsupported fieldPath: ${fieldRef.fieldPath}`)
    return text
  }
  if (resourceFieldRef) return resourceOf(pod, container, resourceFieldRef, deps.ownNode())
  if (configMapKeyRef) {
    const { name: map = '', key, optional = false } = configMapKeyRef
    const entries = await configMapEntries(deps, pod, map, optional, signal)
    return pick(entries, key, optional, `couldn't find key ${key} in ConfigMap ${pod.metadata.namespace}/${map}`)
  }
  if (secretKeyRef) {
    const { name: secret = '', key, optional = false } = secretKeyRef
    const entries = await secretEntries(deps, pod, secret, optional, signal)
    return pick(entries, key, optional, `couldn't find key ${key} in Secret ${pod.metadata.namespace}/${secret}`)
  }
  throw new Error(`variable ${name} names a source that this runtime does not know`)
}

function pick(entries: Record<string, string> | undefined, key: string, optional: boolean, missing: string) {
  const value = entries && Object.hasOwn(entries, key) ? entries[key] : undefined
  if (value === undefined && !optional) throw new Error(missing)
  return value
}

async function configMapEntries(deps: EnvironmentDeps, pod: Pod, name: string, optional: boolean, signal: AbortSignal) {
  const ref = { namespace: pod.metadata.namespace ?? '', name }
  const found = await readOptional(
    () => deps.client.get('ConfigMap', ref, signal),
    optional,
    `configmap "${name}" not found`,
  )
  return found && { ...found.data }
}

async function secretEntries(deps: EnvironmentDeps, pod: Pod, name: string, optional: boolean, signal: AbortSignal) {
  const ref = { namespace: pod.metadata.namespace ?? '', name }
  const found = await readOptional(() => deps.client.get('Secret', ref, signal), optional, `secret "${name}" not found`)
  return found && secretTexts(found)
}

async function readOptional<T>(read: () => Promise<T>, optional: boolean, missing: string): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (!isNotFound(error)) throw error
    if (optional) return undefined
    throw new Error(missing, { cause: error })
  }
}

/** A missing limit shows the node's allocatable amount. */
function resourceOf(
  pod: Pod,
  own: Container,
  ref: { readonly containerName?: string; readonly resource: string; readonly divisor?: string },
  node: Node | undefined,
): string {
  const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])]
  const container = ref.containerName ? containers.find(({ name }) => name === ref.containerName) : own
  if (!container) throw new Error(`container ${ref.containerName} not found`)
  const [group, ...rest] = ref.resource.split('.')
  const resource = rest.join('.')
  const given = group === 'limits' ? container.resources?.limits : container.resources?.requests
  const fallback = group === 'limits' ? node?.status?.allocatable?.[resource] : undefined
  const amount = parseQuantity(given?.[resource] ?? fallback ?? '0')
  const divisor = parseQuantity(!ref.divisor || ref.divisor === '0' ? '1' : ref.divisor)
  if (resource === 'cpu') {
    const [value, by] = [milliValue(amount), milliValue(divisor)]
    return String((value + by - 1n) / by)
  }
  const [value, by] = [wholeValue(amount), wholeValue(divisor)]
  return String((value + by - 1n) / by)
}
