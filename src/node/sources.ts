// Where do pods come from? The API server, a directory of manifests, and a URL, as a kubelet has (static pods have no
// mirror in the API). Each source says once that its first picture is complete.
import { createHash } from 'node:crypto'
import { join } from 'node:path/posix'
import { parseAllDocuments } from 'yaml'
import type { NodeName } from '../api/names.ts'
import type { Pod } from '../api/types.ts'
import type { Informers } from '../client/informer.ts'
import { timestamp } from '../clock/clock.ts'
import type { Clock } from '../clock/clock.ts'
import type { Host } from '../host/host.ts'
import type { Log } from '../telemetry/log.ts'

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
  readonly manifestDirectory?: string | undefined
  /** Fetching is a port: the simulator has no network. */
  readonly manifestUrl?: { readonly url: string; get(url: string, signal: AbortSignal): Promise<string> } | undefined
}

/** Looking again at manifests costs little and heals a lost notification. */
const manifestPeriodMs = 20_000

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
  let wake = () => {}
  const watch = await host.files
    .watch(directory, () => wake(), signal)
    .catch((error: unknown) => {
      log.warn('manifest directory cannot be watched; it is read every 20 s', { directory, error })
      return undefined
    })
  const known = createKnown(sink, 'file')
  while (!signal.aborted) {
    const changed = new Promise<void>((resolve) => (wake = resolve))
    try {
      const pods: Pod[] = []
      for (const name of (await host.files.readDir(directory, signal)).sort()) {
        if (name.startsWith('.')) continue
        const text = await host.files.readText(join(directory, name), signal)
        pods.push(...parsePods(deps, text, `file ${name}`, 'file'))
      }
      known.replace(pods)
      sink.ready('file')
    } catch (error) {
      if (!signal.aborted) log.warn('manifests could not be read', { directory, error })
    }
    await Promise.race([changed, clock.sleep(manifestPeriodMs, signal).catch(() => {})])
  }
  watch?.[Symbol.dispose]()
}

async function followUrl(deps: SourceDeps, sink: PodSink, signal: AbortSignal): Promise<void> {
  const { manifestUrl, clock, log } = deps
  if (!manifestUrl) return
  const known = createKnown(sink, 'http')
  while (!signal.aborted) {
    try {
      const text = await manifestUrl.get(manifestUrl.url, signal)
      known.replace(parsePods(deps, text, manifestUrl.url, 'http'))
      sink.ready('http')
    } catch (error) {
      if (!signal.aborted) log.warn('manifests could not be fetched', { url: manifestUrl.url, error })
    }
    await clock.sleep(manifestPeriodMs, signal).catch(() => {})
  }
}

/** What a source named last time; the difference is told. */
function createKnown(sink: PodSink, source: SourceName) {
  let before = new Set<string>()
  return {
    replace(pods: readonly Pod[]) {
      const now = new Set(pods.map(({ metadata }) => metadata.uid ?? ''))
      for (const uid of before) if (!now.has(uid)) sink.remove(uid, source)
      for (const pod of pods) if (!before.has(pod.metadata.uid ?? '')) sink.put(pod, source)
      before = now
    },
  }
}

/** Pods and lists of pods, YAML or JSON. One bad document is told and left out; the others count. */
export function parsePods(
  { node, clock, log }: Pick<SourceDeps, 'node' | 'clock' | 'log'>,
  text: string,
  where: string,
  source: SourceName,
): Pod[] {
  const pods: Pod[] = []
  for (const document of parseAllDocuments(text, { version: '1.1' })) {
    try {
      if (document.errors[0]) throw document.errors[0]
      const value = document.toJS() as { kind?: string; items?: unknown[] } | null // checked field by field below
      const items = value?.kind === 'PodList' || value?.kind === 'List' ? (value.items ?? []) : value ? [value] : []
      for (const item of items) pods.push(staticPod(item, node, source, timestamp(clock.now())))
    } catch (error) {
      log.warn('manifest left out', { where, error })
    }
  }
  return pods
}

/** As a kubelet makes them: named after the node, with a uid that changes with the contents. */
function staticPod(value: unknown, node: NodeName, source: SourceName, seen: string): Pod {
  const pod = value as Pod // its parts are checked here; volumes and containers where they are used
  if (pod?.kind !== 'Pod' || typeof pod.metadata?.name !== 'string' || !Array.isArray(pod.spec?.containers)) {
    throw new Error('not a Pod with a name and containers')
  }
  const namespace = pod.metadata.namespace ?? 'default'
  const hash = createHash('md5')
    .update(JSON.stringify([node, source, namespace, pod]))
    .digest('hex')
  const annotations = {
    ...pod.metadata.annotations,
    'kubernetes.io/config.hash': hash,
    'kubernetes.io/config.seen': seen,
    'kubernetes.io/config.source': source,
  }
  const uid = pod.metadata.uid ?? hash.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return {
    ...pod,
    metadata: { ...pod.metadata, namespace, name: `${pod.metadata.name}-${node}`, uid, annotations },
    spec: { ...pod.spec!, nodeName: node },
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
