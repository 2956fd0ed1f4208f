// Which container's log is asked for, and how much of it? Refused in Kubernetes' words before anyone looks for a file.
import { forbidden, invalid, invalidObject } from '../../api/field-errors.ts'
import type { FieldError } from '../../api/field-errors.ts'
import { badRequest } from '../../api/status-error.ts'
import type { Pod } from '../../api/generated/types.ts'
import { parseWhole } from './options.ts'

export interface LogRequest {
  readonly container: string
  readonly previous: boolean
  readonly follow: boolean
  readonly tailLines: number | undefined
  readonly limitBytes: number | undefined
}

export function logRequest(pod: Pod, query: URLSearchParams): LogRequest {
  const tailLines = parseWhole(query.get('tailLines'))
  const limitBytes = parseWhole(query.get('limitBytes'))
  const since = parseWhole(query.get('sinceSeconds'))
  const errors: FieldError[] = []
  if (tailLines !== undefined && tailLines < 0) {
    errors.push(invalid('tailLines', tailLines, 'must be greater than or equal to 0'))
  }
  if (limitBytes !== undefined && limitBytes < 1)
    errors.push(invalid('limitBytes', limitBytes, 'must be greater than 0'))
  if (since !== undefined && query.has('sinceTime')) {
    errors.push(forbidden('', 'at most one of `sinceTime` or `sinceSeconds` may be specified'))
  } else if (since !== undefined && since < 1) errors.push(invalid('sinceSeconds', since, 'must be greater than 0'))
  if (errors.length > 0) throw invalidObject({ group: '', kind: 'PodLogOptions' }, pod.metadata.name, errors)
  return {
    container: containerOf(pod, query.get('container')),
    previous: query.get('previous') === 'true',
    follow: query.get('follow') === 'true',
    tailLines,
    limitBytes,
  }
}

/** Logs are kept as containers wrote them, without times. Who asks for something that needs them is told. */
export function logWarnings(query: URLSearchParams): readonly string[] {
  const unheeded = ['sinceSeconds', 'sinceTime'].filter((name) => query.has(name))
  if (query.get('timestamps') === 'true') unheeded.push('timestamps')
  return unheeded.map((name) => `logs are kept without times: ${name} has no effect`)
}

export function containerOf(pod: Pod, asked: string | null): string {
  const { name } = pod.metadata
  const { initContainers = [], containers = [], ephemeralContainers = [] } = pod.spec
  const initial = initContainers.map((container) => container.name)
  const regular = containers.map((container) => container.name)
  if (asked) {
    const known = [...initial, ...regular, ...ephemeralContainers.map((container) => container.name)]
    if (!known.includes(asked)) throw badRequest(`container ${asked} is not valid for pod ${name}`)
    return asked
  }
  const [only = '', ...others] = regular
  if (others.length === 0) return only
  const init = initial.length > 0 ? ` or one of the init containers: [${initial.join(' ')}]` : ''
  throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${regular.join(' ')}]${init}`)
}
