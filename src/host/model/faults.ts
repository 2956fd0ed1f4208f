// What can go wrong on a host? Faults that a test or the simulator plants; each names the calls it strikes.
// A fault may strike before the call takes effect, after it (the answer is lost), or hang until the caller gives up or the
// call's own deadline passes.

import type { Clock } from '../../clock/clock.ts'
import type { Host } from '../host.ts'
import { HostError } from '../host-error.ts'

export interface Fault {
  /** "mounts.mount", "files.writeFile", "run", …, or several of them; "*" strikes everything. */
  readonly call: string | ReadonlySet<string>
  /** Strikes only calls whose first argument names this path or something below it. */
  readonly below?: string
  readonly kind: 'fails' | 'failsAfter' | 'hangs' | 'hangsAfter' | 'slow'
  /** Error code of the failure (default EIO). */
  readonly code?: string
  /** How late a slow call begins, or when one that hangs ends with TIMEOUT; without it a hang ends only by its signal. */
  readonly delayMs?: number
  /** How many calls that fit are let through first. */
  after?: number
  /** How often it strikes (default: until removed). */
  times?: number
  /** Hears of each strike: of one that hangs or fails after its effect, when that has happened. */
  readonly onStrike?: (call: string) => void
}

export interface Faults {
  plant(fault: Fault): Disposable
  clear(): void
  /** How often any fault has struck so far. */
  readonly struck: number
}

export interface PlantedFaults extends Faults {
  /** The fault that strikes this call, if any; counts it. */
  take(name: string, path: string): Fault | undefined
}

export function createFaults(): PlantedFaults {
  const planted = new Set<Fault>()
  let struck = 0
  return {
    plant(fault) {
      const own = { ...fault }
      planted.add(own)
      return { [Symbol.dispose]: () => void planted.delete(own) }
    },
    clear: () => planted.clear(),
    get struck() {
      return struck
    },
    take(name, path) {
      const fault = find(planted, name, path)
      if (fault !== undefined) struck += 1
      return fault
    },
  }
}

type AnyCall = (...parameters: unknown[]) => Promise<unknown>

/** The same host, but every call first asks the planted faults. */
export function withFaults(host: Host, faults: PlantedFaults, clock: Clock): Host {
  const wrapAll = <T extends object>(prefix: string, part: T): T => {
    const wrapped: Record<string, AnyCall> = {}
    for (const [name, call] of Object.entries(part) as [string, AnyCall][])
      wrapped[name] = wrap(`${prefix}.${name}`, call)
    return wrapped as unknown as T
  }
  const wrap =
    (name: string, call: AnyCall): AnyCall =>
    async (...parameters) => {
      const path = pathIn(parameters)
      const fault = faults.take(name, path)
      if (fault === undefined) return call(...parameters)
      const signal = parameters.at(-1) as AbortSignal
      try {
        if (fault.kind === 'failsAfter' || fault.kind === 'hangsAfter') await call(...parameters)
      } finally {
        fault.onStrike?.(`${name} ${path}`)
      }
      if (fault.kind === 'hangs' || fault.kind === 'hangsAfter') return hang(name, path, clock, fault.delayMs, signal)
      if (fault.kind === 'slow') await clock.sleep(fault.delayMs ?? 1000, signal)
      if (fault.kind === 'slow') return call(...parameters)
      throw new HostError(fault.code ?? 'EIO', `${name} ${path}: ${fault.code ?? 'EIO'} (planted)`, {
        path,
        certain: fault.kind === 'fails',
      })
    }
  return {
    files: wrapAll('files', host.files),
    mounts: wrapAll('mounts', host.mounts),
    devices: wrapAll('devices', host.devices),
    filesystems: wrapAll('filesystems', host.filesystems),
    run: wrap('run', host.run as AnyCall) as Host['run'],
  }
}

function find(planted: Set<Fault>, name: string, path: string): Fault | undefined {
  for (const fault of planted) {
    if (!strikes(fault, name)) continue
    if (fault.below !== undefined && path !== fault.below && !path.startsWith(`${fault.below}/`)) continue
    if (fault.after !== undefined && fault.after > 0) {
      fault.after -= 1
      continue
    }
    if (fault.times !== undefined && --fault.times <= 0) planted.delete(fault)
    return fault
  }
  return undefined
}

const strikes = ({ call }: Fault, name: string) =>
  typeof call === 'string' ? call === '*' || call === name : call.has(name)

async function hang(name: string, path: string, clock: Clock, endsAfterMs = 0, signal: AbortSignal): Promise<never> {
  const ended = endsAfterMs === 0 ? aborted(signal) : clock.sleep(endsAfterMs, signal).catch(() => {})
  await ended
  const [code, text] = signal.aborted
    ? ['ABORTED', 'given up while it hung']
    : ['TIMEOUT', `no answer in ${endsAfterMs} ms`]
  throw new HostError(code, `${name} ${path}: ${text}`, { path, certain: false })
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function pathIn(parameters: readonly unknown[]): string {
  const first = parameters[0]
  if (typeof first === 'string') return first
  const { target, root, file, device } = first as Readonly<Record<string, unknown>>
  return [target, root, file, device].find((value) => typeof value === 'string') ?? ''
}
