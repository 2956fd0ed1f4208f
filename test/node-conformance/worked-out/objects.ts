// Which objects does a case make? Pods, claims and volumes with what every case needs, so that a case shows only its point.
import type { Action } from './pictures.ts'

type Fields = Readonly<Record<string, unknown>>
const action = (name: string, value: unknown): Action => ({ [name]: value }) as Action // plain JSON by construction

export const create = (object: Fields): Action => action('create', object)
export const configMap = (name: string, values: Fields, more: Fields = {}): Action =>
  create({ kind: 'ConfigMap', metadata: { name }, data: values, ...more })
export const secret = (name: string, values: Fields, more: Fields = {}): Action =>
  create({ kind: 'Secret', metadata: { name }, stringData: values, ...more })

/** One container mounts all its volumes, unless `more` says how. */
export const podWith = (name: string, volumes: readonly Fields[], more: Fields = {}, metadata: Fields = {}): Action =>
  create({ kind: 'Pod', metadata: { name, ...metadata }, spec: { ...more, volumes } })

export const claim = (name: string, more: Fields = {}): Action =>
  create({
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: '${class}',
      resources: { requests: { storage: '1Mi' } },
      ...more,
    },
  })
export const bound = (name: string): Action => action('await', { claim: { name, is: 'Bound' } })

/** A volume of this source and its claim, bound to each other. */
export function volumeFor(claimName: string, source: Fields, more: Fields = {}, claimMore: Fields = {}): Action[] {
  const volume = '${ns}-v'
  return [
    create({
      kind: 'PersistentVolume',
      metadata: { name: volume },
      spec: {
        capacity: { storage: '1Mi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: '',
        claimRef: { namespace: '${ns}', name: claimName },
        ...source,
        ...more,
      },
    }),
    action('await', { field: { kind: 'PersistentVolume', name: volume, path: 'status.phase', is: 'Available' } }),
    claim(claimName, { storageClassName: '', volumeName: volume, ...claimMore }),
    bound(claimName),
  ]
}

/** LOCAL-1: on this node. */
export const localSource = (path: string, more: Fields = {}, node = '${node}'): Fields => ({
  local: { path, ...more },
  nodeAffinity: {
    required: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] }],
    },
  },
})
export const ofClaim = (name: string, claimName: string, more: Fields = {}): Fields => ({
  name,
  persistentVolumeClaim: { claimName, ...more },
})

export const mkdir = (path: string, more: Fields = {}): Action => action('mkdir', { path, ...more })
export const file = (path: string, content: string, more: Fields = {}): Action =>
  action('file', { path, content, ...more })
export const symlink = (path: string, target: string): Action => action('symlink', { path, target })
export const patch = (kind: string, name: string, change: Fields): Action =>
  action('patch', { kind, name, patch: change })
export const remove = (kind: string, name: string, more: Fields = {}): Action =>
  action('delete', { kind, name, ...more })

export const phase = (pod: string, is: string): Action => action('phase', { pod, is })
export const running = (...pods: readonly string[]): Action[] => pods.map((pod) => phase(pod, 'Running'))
export const event = (pod: string, reason: string, match?: string): Action =>
  action('event', { pod, reason, ...(match === undefined ? {} : { match }) })
export const content = (path: string, is: string): Action => action('content', { path, is })
/** A file of a pod's volume, for waiting. */
export const inVolume = (pod: string, plugin: string, path: string): string =>
  `pods/\${uid.${pod}}/volumes/kubernetes.io~${plugin}/${path}`
export const refused = (kind: string, name: string, change: Fields): Action =>
  action('refused', { kind, name, patch: change })
export const loop = (path: string, sizeMi: number, more: Fields = {}): Action =>
  action('loop', { file: path, sizeMi, as: 'x', ...more })
export const grow = (name: string, storage: string): Action =>
  patch('PersistentVolumeClaim', name, { spec: { resources: { requests: { storage } } } })
export const agent = (what: 'stop' | 'start' | 'restart'): Action => action('agent', what)
/** Lets a container that waits for this file end with the code in it. */
export const finish = (pod: string, path: string, code: string): Action => action('finish', { pod, file: path, code })

/** Each volume at a place of its own name. */
export const mounts = (...names: readonly string[]) => names.map((name) => ({ name, mountPath: `/mnt/${name}` }))
/** One of each kind that needs no storage behind it; the objects are `c` and `s`. */
export const several = [
  { name: 'e', emptyDir: {} },
  { name: 'm', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
  { name: 'cm', configMap: { name: 'c' } },
  { name: 's', secret: { secretName: 's' } },
]
