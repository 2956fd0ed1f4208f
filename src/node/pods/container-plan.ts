// What should happen to a pod's containers now? A pure decision over the pod and what its containers did so far.
// Volumes first, then init containers one by one, then all others; restarts back off; an end releases the volumes.
import type { Container, Pod } from '../../api/generated/types.ts'
import type { ErrorCode } from '../../volume/error-codes.ts'
import type { ContainerRecord } from '../runtime/port.ts'

export interface ContainerView {
  /** The latest start, if there was one. */
  readonly record: ContainerRecord | undefined
  /** A start that could not be made: when to try again, and what to tell. */
  readonly startError?: {
    readonly reason: string
    readonly message: string
    /** What was wrong with a volume, if it was that. */
    readonly code?: ErrorCode
    readonly retryAt: number
    readonly failures: number
  }
  /** Absent until the first look at a container with probes. */
  readonly health?: ContainerHealth
}

/** What probes found out about the container that runs now. */
export interface ContainerHealth {
  readonly started: boolean
  readonly ready: boolean
  /** It failed its startup or liveness probe and is being killed. */
  readonly failed: boolean
}

export interface PodView {
  readonly pod: Pod
  readonly containers: ReadonlyMap<string, ContainerView>
  readonly volumesReady: boolean
  /** Deleted, gone from its source, or failed by us: nothing may start any more. */
  readonly terminating: boolean
  readonly now: number
}

/** A container that should run and is tried again only later: its start failed, or it ended again and again. */
export interface HeldContainer {
  readonly container: string
  readonly kind: 'start' | 'restart'
  readonly message: string
  readonly code?: ErrorCode
  readonly until: number
}

export interface ContainersPlan {
  readonly start: readonly { readonly container: Container; readonly attempt: number }[]
  readonly stop: readonly string[]
  /** No container runs and none will: volumes may go. */
  readonly released: boolean
  /** All has been done that this pod asked for. */
  readonly ended: 'Succeeded' | 'Failed' | undefined
  readonly held: readonly HeldContainer[]
  readonly again: number | undefined
}

/** 10 s doubling to 5 min; the first restart comes at once; ten good minutes make everything forgotten. */
const restartBackoff = { firstMs: 10_000, capMs: 300_000, forgetMs: 600_000 } as const

export function planContainers(view: PodView): ContainersPlan {
  const running = runningNames(view)
  if (view.terminating) return { ...idle, stop: running, released: running.length === 0 }
  const ended = endOf(view)
  if (ended) return { ...idle, stop: running, released: running.length === 0, ended }
  if (!view.volumesReady) return idle
  const wanted = startable(view)
  const due = wanted.map((container) => ({ container, ...dueOf(view, container) }))
  const later = due.filter(({ at }) => at > view.now).map(({ at }) => at)
  const now = due.filter(({ at }) => at <= view.now).map(({ container, attempt }) => ({ container, attempt }))
  const held = wanted.flatMap((container) => heldOf(view, container) ?? [])
  return { ...idle, start: now, held, again: later.length > 0 ? Math.min(...later) : undefined }
}

const idle: ContainersPlan = { start: [], stop: [], released: false, ended: undefined, held: [], again: undefined }

/** As a kubelet's messages name a pod. */
export const fullNameOf = ({ metadata: { name, namespace, uid } }: Pod) => `${name}_${namespace}(${uid})`

export const isRunning = (view: ContainerView | undefined) =>
  view?.record !== undefined && view.record.exit === undefined
export const isSidecar = (container: Container) => container.restartPolicy === 'Always'

/** Runs, and its startup probe, if it has one, was content. */
export const isStarted = (container: Container, view: ContainerView | undefined) =>
  isRunning(view) && (container.startupProbe === undefined || view?.health?.started === true)

/** Started, and its readiness probe, if it has one, is content. */
export const isReady = (container: Container, view: ContainerView | undefined) =>
  isStarted(container, view) && (container.readinessProbe === undefined || view?.health?.ready === true)

/** Has every init container done its part? A sidecar has once it has started; what came after it is never taken back. */
export function isInitialized({ pod, containers }: Pick<PodView, 'pod' | 'containers'>): boolean {
  if (hasBegun({ pod, containers })) return true
  return (pod.spec?.initContainers ?? []).every((container) => {
    const view = containers.get(container.name)
    return isSidecar(container) ? isStarted(container, view) : view?.record?.exit?.code === 0
  })
}

function hasBegun({ pod, containers }: Pick<PodView, 'pod' | 'containers'>): boolean {
  return (pod.spec?.containers ?? []).some(({ name }) => containers.get(name)?.record !== undefined)
}

function runningNames({ containers }: PodView): string[] {
  return [...containers].filter(([, view]) => isRunning(view)).map(([name]) => name)
}

/** Containers that do not run and should: an unfinished init container, or all that are due after them. */
function startable(view: PodView): Container[] {
  // Ephemeral containers serve to look at a pod, also at one that does not come up; each begins once, and never again.
  const start: Container[] = (view.pod.spec?.ephemeralContainers ?? []).filter(
    ({ name }) => view.containers.get(name)?.record === undefined,
  )
  for (const container of view.pod.spec?.initContainers ?? []) {
    const state = view.containers.get(container.name)
    if (isSidecar(container)) {
      if (!isRunning(state)) start.push(container)
      if (!isStarted(container, state) && !hasBegun(view)) return start
      continue
    }
    if (state?.record?.exit?.code === 0 || hasBegun(view)) continue
    if (!isRunning(state)) start.push(container)
    return start
  }
  for (const container of view.pod.spec?.containers ?? []) {
    const state = view.containers.get(container.name)
    if (!isRunning(state) && mayRun(view.pod, state)) start.push(container)
  }
  return start
}

function mayRun(pod: Pod, state: ContainerView | undefined): boolean {
  const exit = state?.record?.exit
  if (!exit) return true
  const policy = pod.spec?.restartPolicy ?? 'Always'
  return policy === 'Always' || (policy === 'OnFailure' && exit.code !== 0)
}

function dueOf({ containers }: PodView, container: Container): { at: number; attempt: number } {
  const state = containers.get(container.name)
  const { record, startError } = state ?? {}
  const attempt = record ? record.attempt + (record.exit ? 1 : 0) : 0
  if (startError) return { at: startError.retryAt, attempt }
  if (!record?.exit) return { at: 0, attempt }
  return { at: record.exit.at + restartDelay(record), attempt }
}

/** It stays held while it is tried again; only one that runs has made it. */
function heldOf({ containers }: PodView, { name: container }: Container): HeldContainer | undefined {
  const { record, startError } = containers.get(container) ?? {}
  if (startError) {
    const { message, code, retryAt } = startError
    return { container, kind: 'start', message, ...(code === undefined ? {} : { code }), until: retryAt }
  }
  const delayMs = record ? restartDelay(record) : 0
  if (!record?.exit || delayMs === 0) return undefined
  const message = `it ended with code ${record.exit.code}`
  return { container, kind: 'restart', message, until: record.exit.at + delayMs }
}

/** How long after its end a container waits for its next start. */
export function restartDelay(record: ContainerRecord): number {
  if (!record.exit || record.attempt === 0) return 0
  if (record.exit.at - record.startedAt >= restartBackoff.forgetMs) return 0
  return Math.min(restartBackoff.capMs, restartBackoff.firstMs * 2 ** Math.min(record.attempt - 1, 20))
}

function endOf(view: PodView): 'Succeeded' | 'Failed' | undefined {
  const { pod, containers } = view
  const policy = pod.spec?.restartPolicy ?? 'Always'
  if (policy === 'Never') {
    for (const container of pod.spec?.initContainers ?? []) {
      const exit = containers.get(container.name)?.record?.exit
      if (exit && exit.code !== 0 && !isSidecar(container)) return 'Failed'
    }
  }
  if (policy === 'Always') return undefined
  const mains = (pod.spec?.containers ?? []).map(({ name }) => containers.get(name))
  if (mains.length === 0 || mains.some((state) => !state?.record?.exit || mayRun(pod, state))) return undefined
  return mains.every((state) => state!.record!.exit!.code === 0) ? 'Succeeded' : 'Failed'
}
