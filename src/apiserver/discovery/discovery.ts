// Which resources does this server have? The same table in the three forms clients ask for:
// legacy lists per group, and the aggregated form in v2 and v2beta1.
import { kindNames, kinds } from '../../api/kinds.ts'

/** One row of discovery: a resource, or a subresource named `pods/status`. */
interface Resource {
  readonly group: string
  readonly version: string
  readonly name: string
  readonly singularName: string
  readonly namespaced: boolean
  readonly kind: string
  /** Where the body's kind comes from, when not from the resource's own group. */
  readonly kindGroup?: string
  readonly kindVersion?: string
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
}

export interface ApiResourceList {
  readonly kind: 'APIResourceList'
  /** The core group leaves it out, as it did before there were groups. */
  readonly apiVersion?: 'v1'
  readonly groupVersion: string
  readonly resources: readonly object[]
}

const resources: readonly Resource[] = [...kindNames.flatMap(kindResources), ...reviews()].toSorted(byName)

/** Groups in the order clients should prefer them; the core group ('') is apart. */
const groups: readonly string[] = [...new Set(resources.map((resource) => resource.group))]
  .filter((group) => group !== '')
  .toSorted()

/** `GET /api`. `host` is the address the client reached us by. */
export function apiVersions(host: string): object {
  return {
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: host }],
  }
}

/** `GET /apis` */
export function apiGroupList(): object {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map((group) => groupEntry(group)) }
}

/** `GET /apis/{group}` */
export function apiGroup(group: string): object | undefined {
  return groups.includes(group) ? { kind: 'APIGroup', apiVersion: 'v1', ...groupEntry(group) } : undefined
}

/** `GET /api/v1` (group '') and `GET /apis/{group}/{version}` */
export function apiResourceList(group: string, version: string): ApiResourceList | undefined {
  const own = resources.filter((resource) => resource.group === group && resource.version === version)
  if (own.length === 0) return undefined
  return {
    kind: 'APIResourceList',
    ...(group === '' ? {} : { apiVersion: 'v1' as const }),
    groupVersion: groupVersion(group, version),
    resources: own.map((resource) => ({
      name: resource.name,
      singularName: resource.singularName,
      namespaced: resource.namespaced,
      ...(resource.kindGroup === undefined ? {} : { group: resource.kindGroup }),
      ...(resource.kindVersion === undefined ? {} : { version: resource.kindVersion }),
      kind: resource.kind,
      verbs: resource.verbs,
      ...named(resource),
    })),
  }
}

export type AggregatedVersion = 'v2' | 'v2beta1'

export function aggregatedContentType(version: AggregatedVersion): string {
  return `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`
}

/** `GET /api` (core) and `GET /apis` (all others) in the aggregated form. */
export function aggregatedDiscovery(root: 'api' | 'apis', version: AggregatedVersion): object {
  const shown = root === 'api' ? [''] : groups
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: shown.map((group) => ({
      metadata: group === '' ? {} : { name: group },
      versions: versionsOf(group).map((own) => ({
        version: own,
        freshness: 'Current',
        resources: aggregatedResources(group, own),
      })),
    })),
  }
}

/** What an Accept header asks for; undefined means the legacy form. */
export function wantedAggregated(accept: string): AggregatedVersion | undefined {
  for (const choice of accept.split(',')) {
    const words = choice.split(';').map((word) => word.trim())
    if (!words.includes('g=apidiscovery.k8s.io') || !words.includes('as=APIGroupDiscoveryList')) continue
    if (words.includes('v=v2')) return 'v2'
    if (words.includes('v=v2beta1')) return 'v2beta1'
  }
  return undefined
}

function aggregatedResources(group: string, version: string): readonly object[] {
  const own = resources.filter((resource) => resource.group === group && resource.version === version)
  const parents = own.filter((resource) => !resource.name.includes('/'))
  return parents.map((parent) => {
    const subresources = own.filter((resource) => resource.name.startsWith(`${parent.name}/`))
    return {
      resource: parent.name,
      responseKind: responseKind(parent),
      scope: parent.namespaced ? 'Namespaced' : 'Cluster',
      singularResource: parent.singularName,
      verbs: parent.verbs,
      ...named(parent),
      ...(subresources.length === 0
        ? {}
        : {
            subresources: subresources.map((resource) => ({
              subresource: resource.name.slice(parent.name.length + 1),
              responseKind: responseKind(resource),
              verbs: resource.verbs,
            })),
          }),
    }
  })
}

/** Group and version are told only where they are not those of the list. */
function responseKind(resource: Resource): object {
  return { group: resource.kindGroup ?? '', version: resource.kindVersion ?? '', kind: resource.kind }
}

function named(resource: Resource): object {
  return {
    ...(resource.shortNames.length === 0 ? {} : { shortNames: resource.shortNames }),
    ...(resource.categories.length === 0 ? {} : { categories: resource.categories }),
  }
}

function groupEntry(group: string): object {
  const versions = versionsOf(group).map((version) => ({ groupVersion: groupVersion(group, version), version }))
  return { name: group, versions, preferredVersion: versions[0] }
}

function versionsOf(group: string): readonly string[] {
  return [...new Set(resources.filter((resource) => resource.group === group).map((resource) => resource.version))]
}

function groupVersion(group: string, version: string): string {
  return group === '' ? version : `${group}/${version}`
}

function kindResources(name: (typeof kindNames)[number]): readonly Resource[] {
  const info = kinds[name]
  const { group, version, namespaced } = info
  return [
    {
      group,
      version,
      name: info.plural,
      singularName: info.singular,
      namespaced,
      kind: info.kind,
      verbs: info.verbs,
      shortNames: info.shortNames,
      categories: info.categories,
    },
    ...info.subresources.map((subresource) => ({
      group,
      version,
      name: `${info.plural}/${subresource.name}`,
      singularName: '',
      namespaced,
      kind: subresource.kind,
      ...(subresource.group === undefined ? {} : { kindGroup: subresource.group }),
      ...(subresource.version === undefined ? {} : { kindVersion: subresource.version }),
      verbs: subresource.verbs,
      shortNames: [],
      categories: [],
    })),
  ]
}

/** Questions that are asked by creating an object which is never stored. */
function reviews(): readonly Resource[] {
  const review = (group: string, kind: string, namespaced = false): Resource => ({
    group,
    version: 'v1',
    name: `${kind.toLowerCase()}s`,
    singularName: kind.toLowerCase(),
    namespaced,
    kind,
    verbs: ['create'],
    shortNames: [],
    categories: [],
  })
  return [
    review('authentication.k8s.io', 'SelfSubjectReview'),
    review('authentication.k8s.io', 'TokenReview'),
    review('authorization.k8s.io', 'LocalSubjectAccessReview', true),
    review('authorization.k8s.io', 'SelfSubjectAccessReview'),
    review('authorization.k8s.io', 'SelfSubjectRulesReview'),
    review('authorization.k8s.io', 'SubjectAccessReview'),
  ]
}

// Kubernetes lists resources by name, each before its subresources; the core group's order is its own.
function byName(left: Resource, right: Resource): number {
  return left.name < right.name ? -1 : left.name > right.name ? 1 : 0
}
