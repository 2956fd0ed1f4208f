// Where do pods come from? The API server, a directory of manifests, and a URL, as a kubelet has (static pods have no
// mirror in the API). Each source says once that its first picture is complete.
import { join } from 'node:path/posix'
import type { NodeName } from '../../api/names.ts'
import type { Pod } from '../../api/generated/types.ts'
import type { Informers } from '../../client/informer.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Clock } from '../../clock/clock.ts'
import { hasCode } from '../../host/host-error.ts'
import { requireTrusted } from '../../host/trusted-path.ts'
import type { Host } from '../../host/host.ts'
import type { Log } from '../../telemetry/log.ts'
import { configHash, parseManifests } from './manifests.ts'

export type SourceName = 'api' | 'file' | 'http'

export interface PodSink {
  put(pod: Pod, source: SourceName): void
  remove(uid: string, source: SourceName): void
  /** The source's first picture has been told completely. */
  ready(source: SourceName): void
}

export interface SourceDeps {
  readonly node: NodeName
  readonly clock: Clock
  readonly log: Log
  readonly host: Pick<Host, 'files'>
  readonly informers: Informers
  /** What the pods of the API need and those of manifests do not; never fails. */
  readonly beforeApiPods?: Promise<unknown> | undefined
  /** What the pods of manifests wait for; never fails. */
  readonly beforeManifests?: Promise<unknown> | undefined
  readonly manifestDirectory?: string | undefined
  /** Fetching is a port: the simulator has no network. */
  readonly manifestUrl?: { readonly url: string; get(url: string, signal: AbortSignal): Promise<string> } | undefined
}

/** Looking again at manifests costs little and heals a lost notification. */
const manifestPeriodMs = 20_000
const settleMs = 200

export function sourceNames(deps: SourceDeps): readonly SourceName[] {
  return ['api', ...(deps.manifestDirectory ? ['file' as const] : []), ...(deps.manifestUrl ? ['http' as const] : [])]
}

/** Runs all sources until the signal aborts. */
export async function runSources(deps: SourceDeps, sink: PodSink, signal: AbortSignal): Promise<void> {
  await Promise.all([followApi(deps, sink, signal), followDirectory(deps, sink, signal), followUrl(deps, sink, signal)])
}

async function followApi(deps: SourceDeps, sink: PodSink, signal: AbortSignal): Promise<void> {
  const { informers, node, beforeApiPods } = deps
  await Promise.race([beforeApiPods, aborted(signal)])
  if (signal.aborted) return
  const informer = informers.of('Pod', { fieldSelector: `spec.nodeName=${node}` })
  // A replaced pod of the same name is one change of the key but two pods.
  using _subscription = informer.subscribe(({ object, previous }) => {
    const before = previous?.metadata.uid
    if (before !== undefined && before !== object?.metadata.uid) sink.remove(before, 'api')
    if (object?.metadata.uid !== undefined && object.spec?.nodeName === node) sink.put(object, 'api')
  })
  await Promise.race([informer.synced, aborted(signal)])
  if (signal.aborted) return
  sink.ready('api')
  await aborted(signal)
}

async function followDirectory(deps: SourceDeps, sink: PodSink, signal: AbortSignal): Promise<void> {
  const { manifestDirectory: directory, host, clock, log } = deps
  if (!directory) return
  await Promise.race([deps.beforeManifests, aborted(signal)])
  if (signal.aborted) return
  let wake = () => {}
  const watch = await host.files
    .watch(directory, () => wake(), signal)
    .catch((error: unknown) => {
      log.warn('manifest directory cannot be watched; it is read every 20 s', { directory, error })
      return undefined
    })
  const known = createKnown(log, sink, 'file')
  const read = createReader(deps, 'file')
  while (!signal.aborted) {
    const changed = new Promise<void>((resolve) => (wake = resolve))
    try {
      const texts = await textsIn(deps, directory, signal)
      known.replace(read(texts))
      sink.ready('file')
    } catch (error) {
      if (!signal.aborted) log.warn('manifests could not be read', { directory, error })
    }
    await Promise.race([changed, clock.sleep(manifestPeriodMs, signal).catch(() => {})])
    // Whoever writes a file empties it first: half of it would be another pod.
    await clock.sleep(settleMs, signal).catch(() => {})
  }
  watch?.[Symbol.dispose]()
}

/** Text of each file by name; undefined for one that cannot be read. A directory that is not there holds none. */
async function textsIn({ host: { files }, log }: SourceDeps, directory: string, signal: AbortSignal) {
  const texts = new Map<string, string | undefined>()
  await requireTrusted(files, directory, `the manifest directory ${directory}`, signal)
  const names = await files.readDir(directory, signal).catch((error: unknown) => {
    if (!hasCode(error, 'ENOENT')) throw error
    return []
  })
  for (const name of names.sort()) {
    if (name.startsWith('.')) continue
    const path = join(directory, name)
    try {
      // Reading a pipe or a directory would hang or fail, and is nobody's manifest.
      if ((await files.stat(path, signal)).kind !== 'file') continue
      await requireTrusted(files, path, `the manifest ${path}`, signal)
      texts.set(name, await files.readText(path, signal))
    } catch (error) {
      if (signal.aborted) throw error
      if (hasCode(error, 'ENOENT')) continue
      log.warn('manifest cannot be read', { path, error })
      texts.set(name, undefined)
    }
  }
  return texts
}

async function followUrl(deps: SourceDeps, sink: PodSink, signal: AbortSignal): Promise<void> {
  const { manifestUrl, clock, log } = deps
  if (!manifestUrl) return
  await Promise.race([deps.beforeManifests, aborted(signal)])
  if (signal.aborted) return
  const known = createKnown(log, sink, 'http')
  const read = createReader(deps, 'http')
  while (!signal.aborted) {
    try {
      const text = await manifestUrl.get(manifestUrl.url, signal)
      known.replace(read(text.trim() === '' ? new Map() : new Map([[manifestUrl.url, text]])))
      sink.ready('http')
    } catch (error) {
      if (!signal.aborted) log.warn('manifests could not be fetched', { url: manifestUrl.url, error })
    }
    await clock.sleep(manifestPeriodMs, signal).catch(() => {})
  }
}

/**
 * The pods of all texts. A text that was good and is damaged or empty now stands as it was: a slip of an editor must not
 * end what runs. Only a text that is gone takes its pods along.
 */
function createReader({ node, clock, log }: SourceDeps, source: 'file' | 'http') {
  let before = new Map<string, { readonly text: string | undefined; readonly pods: readonly Pod[] }>()
  return (texts: ReadonlyMap<string, string | undefined>): readonly Pod[] => {
    const now: typeof before = new Map()
    for (const [where, text] of texts) {
      const last = before.get(where)
      if (text === undefined || text === last?.text) {
        now.set(where, { text: last?.text, pods: last?.pods ?? [] })
        continue
      }
      const { pods, problems } = parseManifests(text, { node, source, seen: timestamp(clock.now()) })
      for (const error of problems) log.warn('manifest left out', { where, error })
      const damaged = problems.length > 0 || text.trim() === ''
      now.set(where, { text, pods: damaged && last ? last.pods : pods })
    }
    before = now
    return [...now.values()].flatMap(({ pods }) => pods)
  }
}

/**
 * What a source named last time; the difference is told. To a kubelet an edit is another pod, unless the manifest brings a uid of
 * its own: then it is the same pod. Here what runs stays as it began, and whoever edited it reads so in the log.
 */
function createKnown(log: Log, sink: PodSink, source: SourceName) {
  let before = new Map<string, string | undefined>()
  return {
    replace(pods: readonly Pod[]) {
      const now = new Map(pods.map(({ metadata }) => [metadata.uid ?? '', metadata.annotations?.[configHash]]))
      for (const uid of before.keys()) if (!now.has(uid)) sink.remove(uid, source)
      for (const pod of pods) {
        const { name, uid = '' } = pod.metadata
        if (!before.has(uid)) sink.put(pod, source)
        else if (before.get(uid) !== now.get(uid))
          log.warn('edited manifest keeps its uid: not taken', { pod: name, uid })
      }
      before = now
    },
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
