// What does a pod say about itself in files? Field and resource references, rendered as the downward API does (CONF-7).

import { parseQuantity, milliValue, wholeValue } from '../../api/quantity.ts'
import type { Container, DownwardAPIVolumeFile, Pod, ResourceFieldSelector } from '../../api/generated/types.ts'
import type { Payload, PayloadFile } from '../../host/atomic-files.ts'
import { cleanPath } from '../../host/clean-path.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { refused } from '../../volume/effect.ts'
import { aggregate } from './errors.ts'

export interface DownwardFacts {
  readonly pod: Pod
  readonly defaultMode: number
  /** Stands in for limits that a container does not have. */
  readonly allocatable: Readonly<Record<string, string>>
}

export function downwardPayload(items: readonly DownwardAPIVolumeFile[], facts: DownwardFacts): Payload {
  const payload = new Map<string, PayloadFile>()
  const problems: string[] = []
  for (const item of items) {
    try {
      const text = valueOf(item, facts)
      payload.set(cleanPath(item.path), { bytes: new TextEncoder().encode(text), mode: item.mode ?? facts.defaultMode })
    } catch (error) {
      problems.push(errorText(error))
    }
  }
  if (problems.length > 0) throw refused('DownwardAPI', aggregate(problems), 'untried')
  return payload
}

function valueOf(item: DownwardAPIVolumeFile, facts: DownwardFacts): string {
  if (item.fieldRef !== undefined) return fieldValue(item.fieldRef.fieldPath, facts.pod)
  if (item.resourceFieldRef !== undefined) return resourceValue(item.resourceFieldRef, facts)
  return ''
}

export function fieldValue(fieldPath: string, pod: Pod): string {
  const { metadata } = pod
  const subscript = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(fieldPath)
  if (subscript !== null) {
    const map = subscript[1] === 'labels' ? metadata.labels : metadata.annotations
    return map?.[subscript[2] ?? ''] ?? ''
  }
  switch (fieldPath) {
    case 'metadata.name':
      return metadata.name ?? ''
    case 'metadata.namespace':
      return metadata.namespace ?? ''
    case 'metadata.uid':
      return metadata.uid ?? ''
    case 'metadata.labels':
      return formatMap(metadata.labels ?? {})
    case 'metadata.annotations':
      return formatMap(metadata.annotations ?? {})
    default:
      throw refused('UnknownField', `unsupported fieldPath: ${fieldPath}`, 'untried')
  }
}

/** Sorted `key="value"` lines without a last line break. */
export function formatMap(map: Readonly<Record<string, string>>): string {
  return Object.keys(map)
    .sort()
    .map((key) => `${key}=${quoted(map[key] ?? '')}`)
    .join('\n')
}

const escapes: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
}

/** A string literal as Go writes it: programs that read these files expect that form. */
function quoted(text: string): string {
  let result = ''
  for (const letter of text) {
    const code = letter.codePointAt(0) ?? 0
    const escape = escapes[letter]
    if (escape !== undefined) result += escape
    else if (code < 0x20 || code === 0x7f) result += `\\x${code.toString(16).padStart(2, '0')}`
    else if (/[\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.test(letter)) result += letter
    else
      result += code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
  }
  return `"${result}"`
}

function resourceValue(selector: ResourceFieldSelector, facts: DownwardFacts): string {
  const { containerName = '', resource, divisor } = selector
  const container = [...facts.pod.spec.containers, ...(facts.pod.spec.initContainers ?? [])].find(
    ({ name }) => name === containerName,
  )
  if (container === undefined) throw refused('ContainerMissing', `container ${containerName} not found`, 'untried')
  const [kind, name = ''] = splitAtDot(resource)
  if ((kind !== 'limits' && kind !== 'requests') || name === '') {
    throw refused('UnknownResource', `unsupported container resource : ${resource}`, 'untried')
  }
  const quantity = parseQuantity(quantityText(container, kind, name, facts.allocatable))
  const unit = parseQuantity(divisor === undefined || divisor === '' || divisor === '0' ? '1' : divisor)
  return name === 'cpu'
    ? dividedUp(milliValue(quantity), milliValue(unit))
    : dividedUp(wholeValue(quantity), wholeValue(unit))
}

function quantityText(
  container: Container,
  kind: 'limits' | 'requests',
  name: string,
  allocatable: Readonly<Record<string, string>>,
): string {
  const own = container.resources?.[kind]?.[name] ?? '0'
  // A limit of zero is no limit: the node's allocatable amount is used instead.
  if (kind === 'requests' || wholeValue(parseQuantity(own)) !== 0n) return own
  return ['cpu', 'memory', 'ephemeral-storage'].includes(name) ? (allocatable[name] ?? '0') : '0'
}

function splitAtDot(text: string): [string, string?] {
  const dot = text.indexOf('.')
  return dot === -1 ? [text] : [text.slice(0, dot), text.slice(dot + 1)]
}

function dividedUp(value: bigint, divisor: bigint): string {
  return String((value + divisor - 1n) / divisor)
}
