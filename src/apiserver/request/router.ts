// What does a path mean? Kind, namespace, name and subresource; a review; or one of the server's own documents.
import type { KindInfo } from '../../api/kinds.ts'
import { hasGroupVersion, kindByResource } from '../../api/kinds.ts'

export interface ResourceRoute {
  readonly kind: 'resource'
  readonly info: KindInfo
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly subresource: string | undefined
  /** The old `/api/v1/watch/…` form. */
  readonly watch: boolean
  /** Behind `nodes/<name>/proxy`. */
  readonly rest?: string
}

export type ReviewName =
  | 'tokenreviews'
  | 'selfsubjectreviews'
  | 'subjectaccessreviews'
  | 'localsubjectaccessreviews'
  | 'selfsubjectaccessreviews'
  | 'selfsubjectrulesreviews'
  | 'nodecertificates'

export interface ReviewRoute {
  readonly kind: 'review'
  readonly review: ReviewName
  readonly namespace: string | undefined
}

interface DocumentRoute {
  readonly kind: 'document'
  readonly path: string
}

/** `known`: the group and version exist, the resource does not, which Kubernetes answers in other words. */
interface NoRoute {
  readonly kind: 'none'
  readonly known: boolean
}

export type Route = ResourceRoute | ReviewRoute | DocumentRoute | NoRoute

const reviews: Readonly<Record<string, readonly ReviewName[]>> = {
  'authentication.k8s.io/v1': ['tokenreviews', 'selfsubjectreviews'],
  'authorization.k8s.io/v1': [
    'subjectaccessreviews',
    'localsubjectaccessreviews',
    'selfsubjectaccessreviews',
    'selfsubjectrulesreviews',
  ],
  'hawser.dev/v1': ['nodecertificates'],
}

export function route(path: string): Route {
  const segments = decodeSegments(path)
  if (segments === undefined) return { kind: 'none', known: false }
  const [root, ...rest] = segments
  if (root === 'api') {
    const [version, ...tail] = rest
    if (tail.length === 0) return { kind: 'document', path: `/${segments.join('/')}` }
    return version === 'v1' ? resourceRoute('', 'v1', tail) : { kind: 'none', known: false }
  }
  if (root === 'apis') {
    const [group = '', version = '', ...tail] = rest
    if (tail.length === 0) return { kind: 'document', path: `/${segments.join('/')}` }
    return resourceRoute(group, version, tail)
  }
  return { kind: 'document', path: `/${segments.join('/')}` }
}

/** Exec, attach and port-forward: they need `create`, whatever the method is. */
export function isStream(where: Route): boolean {
  if (where.kind !== 'resource' || where.subresource === undefined) return false
  const { info, subresource } = where
  return info.subresources.some((each) => each.name === subresource && each.answeredByNode === 'stream')
}

/** Percent-decoded segments; a name may not smuggle in a slash or a dot path. */
function decodeSegments(path: string): readonly string[] | undefined {
  const raw = path.split('/').slice(1)
  if (raw.at(-1) === '') raw.pop()
  const segments: string[] = []
  const isPlain = !path.includes('%')
  for (const text of raw) {
    let segment = text
    try {
      if (!isPlain) segment = decodeURIComponent(text)
    } catch {
      return undefined
    }
    if (segment === '' || segment === '.' || segment === '..' || segment.includes('/') || segment.includes('\u0000'))
      return undefined
    segments.push(segment)
  }
  return segments
}

function resourceRoute(group: string, version: string, tail: readonly string[]): Route {
  const watch = tail[0] === 'watch' && tail.length > 1
  const rest = watch ? tail.slice(1) : tail
  const known = reviews[`${group}/${version}`] !== undefined || hasGroupVersion(group, version)
  if (rest[0] === 'namespaces' && rest.length >= 3) {
    const [, namespace = '', plural = '', name, subresource, ...more] = rest
    const review = reviewOf(group, version, plural)
    if (review !== undefined && name === undefined) return { kind: 'review', review, namespace }
    const info = kindByResource(group, version, plural)
    if (info?.namespaced && more.length === 0) {
      return { kind: 'resource', info, namespace, name, subresource, watch }
    }
    if (group !== '' || info !== undefined) return { kind: 'none', known }
    // `/api/v1/namespaces/x/status` is about the namespace itself.
  }
  const [plural = '', name, subresource, ...more] = rest
  const review = reviewOf(group, version, plural)
  if (review !== undefined && name === undefined) return { kind: 'review', review, namespace: undefined }
  const info = kindByResource(group, version, plural)
  const takesPath = info?.subresources.some((each) => each.name === subresource && each.takesPath) === true
  if (info !== undefined && takesPath && !watch) {
    return { kind: 'resource', info, namespace: undefined, name, subresource, watch, rest: `/${more.join('/')}` }
  }
  if (info === undefined || more.length > 0 || (info.namespaced && name !== undefined)) return { kind: 'none', known }
  return { kind: 'resource', info, namespace: undefined, name, subresource, watch }
}

function reviewOf(group: string, version: string, plural: string): ReviewName | undefined {
  return reviews[`${group}/${version}`]?.find((review) => review === plural)
}
