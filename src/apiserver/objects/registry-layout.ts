// Where does kube-apiserver keep an object in etcd, and in which form? The same keys and values for the kinds that both serve,
// so that either can go on with what the other wrote: JSON with apiVersion and kind is written, JSON and protobuf are read.
import type { KindInfo } from '../../api/kinds.ts'
import { kindNames, kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import type { EtcdLayout } from '../../store/etcd/layout.ts'
import { decodeProtobuf } from '../protobuf/decode.ts'
import { createStoredObjects, prefixOf } from './stored-objects.ts'

interface Place {
  readonly info: KindInfo
  /** The beginning of the keys in our store, */
  readonly prefix: string
  /** and of the paths in etcd. */
  readonly path: string
  /** How our own values begin. The space after the brace is the sign of ours: other programs write none there. */
  readonly head: string
}

const metadataStart = '{"metadata":{'

export function createRegistryLayout(): EtcdLayout {
  const stored = createStoredObjects()
  return {
    path(key) {
      const place = placeOfKey(key)
      return place.path + key.slice(place.prefix.length)
    },
    key(path) {
      const place = placeOfPath(path)
      if (place === undefined) return undefined
      const rest = path.slice(place.path.length)
      const names = rest.split('/')
      const fits = names.length === (place.info.namespaced ? 2 : 1) && !names.includes('')
      return fits ? place.prefix + rest : undefined
    },
    encode: (key, value) => Buffer.from(placeOfKey(key).head + value.slice(metadataStart.length)),
    decode(key, bytes) {
      const place = placeOfKey(key)
      const value = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      const text = isProtobuf(value) ? undefined : value.toString()
      if (text?.startsWith(place.head)) return metadataStart + text.slice(place.head.length)
      const object = text === undefined ? decodeProtobuf(value).object : (JSON.parse(text) as unknown)
      return stored.encode(place.info, checked(place, key, object))
    },
  }
}

function isProtobuf(value: Buffer): boolean {
  return value[0] === 0x6b && value[1] === 0x38 && value[2] === 0x73 && value[3] === 0
}

/** Of another program: what it says of itself must fit where it lies. */
function checked({ info, prefix }: Place, key: string, value: unknown): KubeObject {
  if (typeof value !== 'object' || value === null) throw new Error('it is no object')
  const { apiVersion, kind, metadata } = value as Readonly<Record<string, unknown>> // checked here
  if (apiVersion !== info.apiVersion || kind !== info.kind) {
    throw new Error(
      `it is ${String(kind)} of ${String(apiVersion)}; this server reads ${info.kind} of ${info.apiVersion}`,
    )
  }
  const { name, namespace } = (metadata ?? {}) as Readonly<Record<string, unknown>> // checked here
  const said = info.namespaced ? `${String(namespace)}/${String(name)}` : String(name)
  if (said !== key.slice(prefix.length)) throw new Error(`it says that it is ${said}`)
  return value as KubeObject // as far as we look; another server has checked the rest
}

function placeOfKey(key: string): Place {
  const third = key.indexOf('/', key.indexOf('/', 1) + 1)
  const place = byPrefix.get(key.slice(0, third + 1))
  if (place === undefined) throw new Error(`no kind keeps its objects below ${key}`)
  return place
}

/** One or two folders: `/minions/`, `/services/specs/`. */
function placeOfPath(path: string): Place | undefined {
  const first = path.indexOf('/', 1)
  const second = path.indexOf('/', first + 1)
  return byPath.get(path.slice(0, second + 1)) ?? byPath.get(path.slice(0, first + 1))
}

/** Groups whose kinds kube-apiserver serves itself; all others come from custom resources. */
export const builtInGroups: readonly string[] = ['', 'coordination.k8s.io', 'storage.k8s.io']

/** What kube-apiserver calls otherwise than in its paths. */
const otherNames: Readonly<Record<string, string>> = {
  nodes: 'minions',
  services: 'services/specs',
  endpoints: 'services/endpoints',
}

function pathOf({ group, plural }: KindInfo): string {
  if (group === 'hawser.dev') return `.hawser/${plural}/`
  if (!builtInGroups.includes(group)) return `/${group}/${plural}/`
  return `/${(group === '' ? otherNames[plural] : undefined) ?? plural}/`
}

const places: readonly Place[] = kindNames
  .map((name) => kinds[name])
  .filter(({ view }) => view === undefined)
  .map((info) => ({
    info,
    prefix: prefixOf(info, undefined),
    path: pathOf(info),
    head: `{ "kind":${JSON.stringify(info.kind)},"apiVersion":${JSON.stringify(info.apiVersion)},"metadata":{`,
  }))
const byPrefix: ReadonlyMap<string, Place> = new Map(places.map((place) => [place.prefix, place]))
const byPath: ReadonlyMap<string, Place> = new Map(places.map((place) => [place.path, place]))
