// What happened between "I want a volume" and "my program runs with it", and when? Seen from outside: API and kernel.
import { readFileSync } from 'node:fs'
import type { KindMap, KindName } from '../../api/kinds.ts'
import type { Client } from '../../client/client.ts'
import { parseMountinfo } from '../../host/linux/mountinfo.ts'

export interface Milestone {
  readonly phase: Phase
  /** Since the start was asked for. */
  readonly atMs: number
  /** Since the milestone before. */
  readonly tookMs: number
  readonly detail: string
}

/** In the order in which they must happen. */
const phases = ['provision', 'bind', 'place', 'attach', 'stage', 'publish', 'run', 'exit'] as const

type Phase = (typeof phases)[number]

interface Wanted {
  readonly namespace: string
  readonly claim: string
  readonly pod: string
  readonly node: string
  /** Mounts below here are ours to watch. */
  readonly directory: string
}

/** Watches from now on; `finish` answers what was seen, in order. What is true already is no news and left out. */
export async function watchMilestones(client: Client, wanted: Wanted): Promise<{ finish(): Milestone[] }> {
  const stop = new AbortController()
  const seen = new Map<Phase, { readonly at: number; readonly detail: string }>()
  const state: { volume?: string; podUid?: string } = {}
  const reached = (phase: Phase, detail: string) => {
    if (!seen.has(phase)) seen.set(phase, { at: performance.now(), detail })
  }
  const listeners = listenersFor(wanted, state, reached)
  await Promise.all(
    listeners.map(async ({ kind, onObject }) => {
      const { items, resourceVersion } = await client.list(kind)
      for (const item of items) onObject(item)
      void follow(client, kind, resourceVersion, onObject, stop.signal)
    }),
  )
  const known = new Set(seen.keys())
  const start = performance.now()
  // The kernel announces mounts to nobody over a file, so we look often; a look costs some ten microseconds.
  const timer = setInterval(() => lookAtMounts(wanted, state, reached), 4)
  return {
    finish() {
      stop.abort()
      clearInterval(timer)
      let later = performance.now()
      // Each kind is watched on a connection of its own, so news may overtake each other: what must have come before a
      // phase came no later than it.
      const times = phases.toReversed().flatMap((phase) => {
        const mark = seen.get(phase)
        if (!mark || known.has(phase)) return []
        later = Math.min(later, mark.at)
        return [{ phase, at: later, detail: mark.detail }]
      })
      let before = start
      return times.toReversed().map(({ phase, at, detail }) => {
        const tookMs = at - before
        before = at
        return { phase, atMs: at - start, tookMs, detail }
      })
    },
  }
}

interface Listener {
  readonly kind: KindName
  onObject(object: unknown): void
}

function listenersFor(
  { namespace, claim, pod, node }: Wanted,
  state: { volume?: string; podUid?: string },
  reached: (phase: Phase, detail: string) => void,
): readonly Listener[] {
  const on = <K extends KindName>(kind: K, onObject: (object: KindMap[K]) => void): Listener => ({
    kind,
    onObject: (object) => onObject(object as KindMap[K]),
  })
  return [
    on('PersistentVolume', ({ metadata, spec }) => {
      if (spec?.claimRef?.name !== claim || spec.claimRef.namespace !== namespace) return
      state.volume = metadata.name
      reached('provision', `${metadata.name} (${spec.capacity?.['storage']}) by ${spec.csi?.driver}`)
    }),
    on('PersistentVolumeClaim', ({ metadata, spec, status }) => {
      if (metadata.name === claim && metadata.namespace === namespace && status?.phase === 'Bound') {
        state.volume = spec?.volumeName ?? ''
        reached('bind', `claim ${claim} ↔ its volume`)
      }
    }),
    on('VolumeAttachment', ({ spec, status }) => {
      if (spec.source.persistentVolumeName !== state.volume || status?.attached !== true) return
      if (spec.nodeName === node) reached('attach', `to node ${node}`)
    }),
    on('Pod', ({ metadata, spec, status }) => {
      if (metadata.name !== pod || metadata.namespace !== namespace) return
      state.podUid = metadata.uid ?? ''
      if (spec?.nodeName) reached('place', `pod ${pod} on node ${spec.nodeName}`)
      const container = status?.containerStatuses?.[0]?.state
      if (container?.running || container?.terminated) reached('run', `process started in its own mount namespace`)
      if (container?.terminated) reached('exit', `exit code ${container.terminated.exitCode}`)
    }),
  ]
}

function lookAtMounts(
  { directory }: Wanted,
  state: { readonly volume?: string; readonly podUid?: string },
  reached: (phase: Phase, detail: string) => void,
): void {
  if (state.podUid === undefined || state.volume === undefined) return
  const mounts = parseMountinfo(readFileSync('/proc/self/mountinfo', 'utf8')).filter(({ mountPoint }) =>
    mountPoint.startsWith(directory),
  )
  const published = mounts.find(
    ({ mountPoint }) => mountPoint.includes(`/pods/${state.podUid}/`) && mountPoint.includes(state.volume!),
  )
  const staged =
    published === undefined
      ? mounts.find(({ mountPoint, source }) => mountPoint.endsWith('/globalmount') && source.startsWith('/dev/'))
      : mounts.find(({ mountPoint, source }) => mountPoint.endsWith('/globalmount') && source === published.source)
  if (staged) reached('stage', `${staged.source} (${staged.type}) mounted once for the node`)
  if (published) reached('publish', 'bind-mounted for the pod')
}

async function follow(
  client: Client,
  kind: KindName,
  resourceVersion: string,
  onObject: (object: unknown) => void,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const event of client.watch(kind, { resourceVersion }, signal))
      if (event.type === 'added' || event.type === 'modified') onObject(event.object)
  } catch {
    // The timeline is for show: a watch that ends early costs a line, not the story.
  }
}
