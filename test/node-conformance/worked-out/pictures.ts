// How does a node look from outside while a pod has these volumes? The layout rules (LAYOUT-*, ATOMIC-*, EMPTY-*, CSI-4 …)
// as the lines of a record; a case is its steps with the picture each must come to.

/** Sections of a record, as the runner writes them. */
export interface Picture {
  readonly tree?: readonly string[]
  readonly podPlugins?: readonly string[]
  readonly mounts?: readonly string[]
  readonly plugins?: readonly string[]
  readonly loops?: readonly string[]
  readonly node?: readonly string[]
  readonly events?: readonly string[]
  readonly host?: readonly string[]
  readonly api?: readonly string[]
}
type Section = keyof Picture
type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }
export type Action = Readonly<Record<string, Json>>

export interface Step {
  readonly name: string
  readonly do?: readonly Action[]
  readonly wait?: readonly Action[]
  readonly timeout?: number
  readonly settle?: number
  readonly events?: false
  readonly timeouts?: true
  readonly api?: readonly Action[]
  readonly expect: Picture
}

export interface Case {
  readonly name: string
  readonly case: { readonly steps: readonly Omit<Step, 'expect'>[] }
  readonly expected: Readonly<Record<string, Picture>>
}

interface CaseOptions {
  readonly needs?: readonly ('csi' | 'containers' | 'agent')[]
  readonly hostTree?: true
  readonly hostMounts?: true
  readonly block?: readonly string[]
  readonly alsoReasons?: readonly string[]
  readonly ignoreEvents?: readonly string[]
  /** Names that belong to this case although nothing in them tells. */
  readonly own?: readonly string[]
  readonly normalize?: readonly (readonly [string, string])[]
  /** Pods that the last step deletes; all of them must leave nothing. */
  readonly pods: readonly string[]
  /** What stays when the pods are gone, beside events and host paths; and what stays for good. */
  readonly left?: Picture
  readonly kept?: Picture
}

/** A case that ends with its pods deleted; what they left on the host and in the events stays as it was. */
export function define(name: string, about: string, options: CaseOptions, steps: readonly Step[]): Case {
  const { pods, left, kept = {}, ...spec } = options
  const last = steps.at(-1)?.expect ?? {}
  const stays = {
    ...(last.events ? { events: last.events } : {}),
    ...(last.host ? { host: last.host } : {}),
    ...left,
    ...kept,
  }
  const deleted: Step = {
    name: 'deleted',
    do: pods.map((pod) => ({ delete: { kind: 'Pod', name: pod } })),
    wait: [...pods.flatMap((pod) => [{ podGone: pod }, { podDirGone: pod }]), { node: { inUse: 0, attached: 0 } }],
    timeout: 200,
    expect: { tree: absent(...podsOf(steps)), ...stays },
  }
  const all = [...steps, deleted]
  const end = { tree: absent(...podsOf(all)), ...(last.host ? { host: last.host } : {}), ...kept }
  return {
    name,
    case: { ...spec, about, steps: all.map(({ expect: _, ...step }) => step) } as Case['case'],
    expected: {
      ...Object.fromEntries(all.map((step) => [step.name, sorted(step.expect)])),
      end: sorted(end),
    },
  }
}

/** Every pod that a case made, for the runner looks for all of them until the end. */
function podsOf(steps: readonly Step[]): string[] {
  const made = steps.flatMap(({ do: actions = [] }) => actions.map(({ create }) => create as Created | undefined))
  return made.flatMap((each) => (each?.kind === 'Pod' ? [each.metadata.name] : []))
}
type Created = { readonly kind: string; readonly metadata: { readonly name: string } }

const absent = (...pods: readonly string[]): string[] => pods.map((pod) => `<uid:${pod}> absent`)

/** Several pictures at once. */
export function together(...pictures: readonly Picture[]): Picture {
  const merged: Partial<Record<Section, string[]>> = {}
  for (const each of pictures) {
    for (const [section, lines] of Object.entries(each) as [Section, string[]][])
      merged[section] = [...(merged[section] ?? []), ...lines]
  }
  return merged
}

function sorted(picture: Picture): Picture {
  const sections = Object.entries(picture).filter(([, lines]) => (lines as string[]).length > 0)
  return Object.fromEntries(sections.map(([section, lines]) => [section, [...new Set(lines as string[])].toSorted()]))
}

/** LAYOUT-1, LAYOUT-2: what every pod has, and the volumes in it. */
export function pod(name: string, ...volumes: readonly ((pod: string) => Picture)[]): Picture {
  const own = { tree: [`<uid:${name}>/volumes d 0750 0:0`], podPlugins: [`<uid:${name}>/plugins d 0750 0:0`] }
  return together(own, ...volumes.map((volume) => volume(name)))
}

type Volume = (pod: string) => Picture

/** LAYOUT-1: `pods/<uid>/volumes/<plugin>/<volume>` and what is in it. */
function directory(plugin: string, volume: string, mode: string, lines: readonly string[] = []): Volume {
  const parent = ['csi', 'nfs', 'local-volume'].includes(plugin) ? '0750' : '0755'
  return (name) => {
    const base = `<uid:${name}>/volumes/kubernetes.io~${plugin}`
    return {
      tree: [
        `${base} d ${parent} 0:0`,
        `${base}/${volume} d ${mode}`,
        ...lines.map((line) => `${base}/${volume}/${line}`),
      ],
    }
  }
}

/** EMPTY-2: the marker that a volume of the node's own disk or memory is ready. */
function marker(volume: string): Volume {
  return (name) => {
    const base = `<uid:${name}>/plugins/kubernetes.io~empty-dir`
    return {
      podPlugins: [`${base} d 0750 0:0`, `${base}/${volume} d 0750 0:0`, `${base}/${volume}/ready f 0644 0:0 ""`],
    }
  }
}

function memory(plugin: string, volume: string, size = '<node allocatable>'): Volume {
  return (name) => ({
    mounts: [`pods/<uid:${name}>/volumes/kubernetes.io~${plugin}/${volume} type=tmpfs from=tmpfs opts=rw,size=${size}`],
  })
}

const all =
  (...volumes: readonly Volume[]): Volume =>
  (name) =>
    together(...volumes.map((volume) => volume(name)))

interface FileLook {
  readonly content: string
  readonly mode?: string
  readonly owner?: string
}
export interface DataLook {
  /** Path in the volume → its content, or more about it. */
  readonly files?: Readonly<Record<string, string | FileLook>>
  /** Which timestamped directory: the first, the second, … */
  readonly stamp?: number
  readonly fsGroup?: number
  readonly size?: string
  /** Other lines in the volume, as they are. */
  readonly more?: readonly string[]
}

/** ATOMIC-3, CONF-1, CONF-2: configMap on disk, the others in memory; a fsGroup lifts modes and owns all (FSG-3). */
export function data(
  plugin: 'configmap' | 'secret' | 'downward-api' | 'projected',
  volume: string,
  { files = {}, stamp = 1, fsGroup, size, more = [] }: DataLook = {},
): Volume {
  const inMemory = plugin !== 'configmap'
  const [setGid, gid] = fsGroup === undefined ? [0, 0] : [2, fsGroup]
  const sticky = inMemory ? 1 : 0
  const ts = `..<ts${stamp}>`
  const paths = Object.keys(files)
  const parents = new Set(paths.flatMap((path) => parentsOf(path)))
  const lines = [
    `${ts} d 0${setGid || ''}755 0:${gid}`,
    `..data l 0:${gid} -> ${ts}`,
    ...[...parents].map((path) => `${ts}/${path} d 0${setGid || ''}755 0:${gid}`),
    ...paths.map((path) => {
      const look = files[path] ?? ''
      const { content, mode = '0644', owner = `0:${gid}` } = typeof look === 'string' ? { content: look } : look
      const shown = content.startsWith('token{') || content.startsWith('base64:') ? content : JSON.stringify(content)
      return `${ts}/${path} f ${mode} ${owner} ${shown}`
    }),
    ...[...new Set(paths.map((path) => path.split('/')[0] ?? ''))].map(
      (first) => `${first} l 0:${gid} -> ..data/${first}`,
    ),
    ...more,
  ]
  const mode = `0${setGid + sticky || ''}777 0:${gid}`
  return all(
    directory(plugin, volume, mode, lines),
    marker(`wrapped_${volume}`),
    ...(inMemory ? [memory(plugin, volume, size)] : []),
  )
}

function parentsOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1)
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'))
}

/** The directory and, in memory, the tmpfs of an emptyDir (EMPTY-2, EMPTY-5, EMPTY-6). */
export function emptyDir(
  volume: string,
  { size, fsGroup, more = [] }: { size?: string; fsGroup?: number; more?: readonly string[] } = {},
): Volume {
  const bits = (size === undefined ? 0 : 1) + (fsGroup === undefined ? 0 : 2)
  const look = `0${bits || ''}777 0:${fsGroup ?? 0}`
  const parts = [directory('empty-dir', volume, look, more), marker(volume)]
  return all(...parts, ...(size === undefined ? [] : [memory('empty-dir', volume, size)]))
}

export interface ClaimLook {
  /** Mode and owner of the volume's root. */
  readonly look?: string
  readonly options?: string
  readonly more?: readonly string[]
}

/** CSI-5, CSI-7: published into the pod from the driver's own directory. */
export function csiClaim(claim: string, { look = '0755 0:0', options = 'rw', more = [] }: ClaimLook = {}): Volume {
  const saved = {
    attachmentID: `<attachment:${claim}>`,
    driverName: '<driver>',
    nodeName: '<node>',
    specVolID: `<pv:${claim}>`,
    volumeHandle: `<handle:${claim}>`,
    volumeLifecycleMode: 'Persistent',
  }
  const lines = [
    `mount d ${look}`,
    `vol_data.json f 0644 0:0 ${JSON.stringify(saved)}`,
    ...more.map((line) => `mount/${line}`),
  ]
  const at = `volumes/kubernetes.io~csi/<pv:${claim}>/mount`
  const bind: Volume = (name) => ({
    mounts: [`pods/<uid:${name}>/${at} type=<host> from=<driver state>/<handle:${claim}> opts=${options}`],
  })
  return all(directory('csi', `<pv:${claim}>`, '0750 0:0', lines), bind)
}

/** CSI-43: the same for a volume of the pod itself, which has no claim and is not staged. */
export function csiInline(volume: string, { look = '0755 0:0', options = 'rw', more = [] }: ClaimLook = {}): Volume {
  return (name) => {
    const saved = {
      attachmentID: `<attachment:${name}/${volume}>`,
      driverName: '<driver>',
      nodeName: '<node>',
      specVolID: volume,
      volumeHandle: `<inline:${name}/${volume}>`,
      volumeLifecycleMode: 'Ephemeral',
    }
    const lines = [
      `mount d ${look}`,
      `vol_data.json f 0644 0:0 ${JSON.stringify(saved)}`,
      ...more.map((line) => `mount/${line}`),
    ]
    const from = `<driver state>/<inline:${name}/${volume}>`
    const mounts = [
      `pods/<uid:${name}>/volumes/kubernetes.io~csi/${volume}/mount type=<host> from=${from} opts=${options}`,
    ]
    return together(directory('csi', volume, '0750 0:0', lines)(name), { mounts })
  }
}

/** CSI-4, CSINODE-8: the node's part of a claim that some pod uses. */
export function staged(...claims: readonly string[]): Picture {
  return together(
    ...claims.map((claim) => {
      const base = `kubernetes.io/csi/<driver>/<sha256 of handle:${claim}>`
      const saved = JSON.stringify({ driverName: '<driver>', volumeHandle: `<handle:${claim}>` })
      return together(attached(`kubernetes.io/csi/<driver>^<handle:${claim}>`), {
        plugins: [`${base} d 0750 0:0`, `${base}/globalmount d 0750 0:0`, `${base}/vol_data.json f 0644 0:0 ${saved}`],
      })
    }),
  )
}

export const attached = (name: string): Picture => ({ node: [`attached: ${name} devicePath=`, `in use: ${name}`] })

/** The event of a successful attach (EVT-1). */
export const attachedFor = (name: string, volume: string): string =>
  `Pod/${name} Normal SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume "${volume}"`

/** BLOCK-2, CSI-6: a device in a pod: link, bind, and the loop device that holds it. */
export function csiDevice(name: string, claim: string): Picture {
  const base = `plugins/kubernetes.io/csi/volumeDevices`
  const [published, mapped] = [`${base}/publish/<pv:${claim}>`, `${base}/<pv:${claim}>`]
  const saved = JSON.stringify({
    attachmentID: `<attachment:${claim}>`,
    driverName: '<driver>',
    nodeName: '<node>',
    specVolID: `<pv:${claim}>`,
    volumeHandle: `<handle:${claim}>`,
  })
  const shows = `type=devtmpfs from=loop(<driver state>/<handle:${claim}>) opts=rw`
  const own = (path: string) => path.replace('plugins/', '')
  return together(attached(`kubernetes.io/csi/<driver>^<handle:${claim}>`), {
    tree: [
      `<uid:${name}>/volumeDevices d 0750 0:0`,
      `<uid:${name}>/volumeDevices/kubernetes.io~csi d 0750 0:0`,
      `<uid:${name}>/volumeDevices/kubernetes.io~csi/<pv:${claim}> l 0:0 -> <root>/${published}/<uid:${name}>`,
    ],
    mounts: [`${mapped}/dev/<uid:${name}> ${shows}`, `${published}/<uid:${name}> ${shows}`],
    plugins: [
      `${own(mapped)} d 0750 0:0`,
      `${own(mapped)}/data d 0750 0:0`,
      `${own(mapped)}/data/vol_data.json f 0644 0:0 ${saved}`,
      `${own(mapped)}/dev d 0750 0:0`,
      `${own(mapped)}/dev/<uid:${name}> b 0600 0:0`,
      `${own(published)} d 0750 0:0`,
      `${own(published)}/<uid:${name}> b 0600 0:0`,
      `${own(base)}/staging/<pv:${claim}> d 0750 0:0`,
    ],
    loops: [`loop(<driver state>/<handle:${claim}>)`, `loop(<root>/${mapped}/dev/<uid:${name}>)`],
  })
}

/** The global and the pod's links of a local block volume (LAYOUT-6, LOCAL-8). */
export function localDevice(name: string, volume: string, disk: string): Picture {
  const base = `plugins/kubernetes.io~local-volume/volumeDevices/${volume}`
  return {
    tree: [
      `<uid:${name}>/volumeDevices d 0750 0:0`,
      `<uid:${name}>/volumeDevices/kubernetes.io~local-volume d 0750 0:0`,
      `<uid:${name}>/volumeDevices/kubernetes.io~local-volume/${volume} l 0:0 -> loop(${disk})`,
    ],
    mounts: [`${base}/<uid:${name}> type=devtmpfs from=loop(${disk}) opts=rw`],
    plugins: [`${base.slice(8)} d 0750 0:0`, `${base.slice(8)}/<uid:${name}> b 0600 0:0`],
    loops: [`loop(<root>/${base}/<uid:${name}>)`],
  }
}

/** The two events of a mapped block volume (MAP-9). */
export function mappedEvents(name: string, volume: string, globalMap: string, plugin: string): string[] {
  const text = `Pod/${name} Normal SuccessfulMountVolume: MapVolume.MapPodDevice succeeded for volume "${volume}"`
  return [
    `${text} globalMapPath "<root>/plugins/${globalMap}"`,
    `${text} volumeMapPath "<root>/pods/<uid:${name}>/volumeDevices/${plugin}"`,
  ]
}

/** LOCAL-4: bound, or mounted from its device, into the pod. */
export function local(
  volume: string,
  look: string,
  from: string,
  options = 'rw',
  more: readonly string[] = [],
  type = '<host>',
): Volume {
  const at = `volumes/kubernetes.io~local-volume/${volume}`
  const bind: Volume = (name) => ({ mounts: [`pods/<uid:${name}>/${at} type=${type} from=${from} opts=${options}`] })
  return all(directory('local-volume', volume, look, more), bind)
}

/** SUBPATH-7: what a container's volumeMount with a subPath shows. */
export function subPath(
  volume: string,
  container: string,
  index: number,
  look: string,
  mount: string,
  more: readonly string[] = [],
): Volume {
  return (name) => {
    const base = `<uid:${name}>/volume-subpaths`
    const leaf = `${base}/${volume}/${container}/${index}`
    return {
      tree: [
        `${base} d 0750 0:0`,
        `${base}/${volume} d 0750 0:0`,
        `${base}/${volume}/${container} d 0750 0:0`,
        `${leaf} ${look}`,
        ...more.map((line) => `${leaf}/${line}`),
      ],
      mounts: [`pods/${leaf} ${mount}`],
    }
  }
}

/** How `several` of objects.ts look. */
export const severalShown = [
  emptyDir('e'),
  emptyDir('m', { size: '1024k' }),
  data('configmap', 'cm', { files: { k: 'v' } }),
  data('secret', 's', { files: { k: 'v' } }),
]
