// How is a driver taken through the checks? One after the other, each with a deadline, its own names and its own undoing.
// A driver that stops answering is started again where that is possible; else the rest is skipped and says so.
import type { Clock } from '../clock/clock.ts'
import { CsiError, statusText } from '../csi/codes.ts'
import type { SeenCall } from '../csi/observed.ts'
import { observed } from '../csi/observed.ts'
import { createIdentityCalls } from '../csi/identity.ts'
import { createWire } from '../csi/service.ts'
import type { Transport } from '../csi/service.ts'
import { HostError } from '../host/host-error.ts'
import { VolumeError } from '../volume/effect.ts'
import type { Check } from './check.ts'
import { lackOf } from './check.ts'
import type { DriverFacts } from './driver-report.ts'
import { inspectDriver } from './driver-report.ts'
import { Finding, NotPossible } from './finding.ts'
import type { Lab, LabHost, VolumeRecipe } from './lab.ts'
import { boundCalls } from './lab.ts'
import type { LabReport, Result, Verdict } from './report.ts'
import { latenciesOf } from './report.ts'
import type { Strikes } from './strikes.ts'
import { createStrikes } from './strikes.ts'

export interface LabDeps {
  readonly clock: Clock
  /** To the driver, by whatever way. */
  readonly transport: Transport
  /** Where the driver mounts, and a directory there for the lab; or why nothing can be mounted. */
  readonly place:
    | {
        readonly host: LabHost
        readonly directory: string
        /** Why a mounted filesystem cannot grow on this machine. */
        readonly growthLack?: string
      }
    | { readonly why: string }
  /** Brings a driver back that has ended; absent: somebody else runs it. */
  readonly restart?: (signal: AbortSignal) => Promise<void>
  /** Ends the driver at once, as a crash would; only with `restart`. */
  readonly kill?: () => Promise<void>
  /** When a caller gives up or the driver is killed: so long after the call was sent. */
  readonly duringMs?: number
}

export interface LabOptions {
  readonly checks: readonly Check[]
  readonly recipe: VolumeRecipe
  /** A word that no other run uses: names of volumes begin with it. */
  readonly run: string
  readonly callTimeoutMs?: number
  readonly checkTimeoutMs?: number
}

export interface LabListener {
  started?(check: Check, index: number, total: number): void
  ended?(result: Result): void
}

const defaultCallMs = 30_000
const defaultCheckMs = 120_000
const undoMs = 60_000
const keptCalls = 60

export async function runLab(
  deps: LabDeps,
  options: LabOptions,
  listener: LabListener,
  signal: AbortSignal,
): Promise<LabReport> {
  const { clock } = deps
  const startedAt = clock.now()
  const begun = clock.steady()
  const facts = await inspectDriver({ transport: deps.transport, clock }, signal)
  const all: SeenCall[] = []
  const results: Result[] = []
  let silent: string | undefined
  const machine = {
    mountLack: 'why' in deps.place ? deps.place.why : undefined,
    growthLack: 'why' in deps.place ? deps.place.why : deps.place.growthLack,
    killLack: deps.kill && deps.restart ? undefined : 'the lab does not run this driver, and cannot kill it',
  }
  for (const [index, check] of options.checks.entries()) {
    signal.throwIfAborted()
    const lack = silent ?? lackOf(check.needs, facts, machine)
    if (lack === undefined) listener.started?.(check, index, options.checks.length)
    const result =
      lack === undefined
        ? await runCheck(deps, options, facts, check, signal)
        : { check, verdict: { kind: 'skipped', reason: lack } as const, ms: 0, calls: [], leftovers: [] }
    all.push(...result.calls)
    results.push({ ...result, calls: result.calls.slice(-keptCalls) })
    listener.ended?.(result)
    if (result.verdict.kind === 'failed') silent = await backAgain(deps, check, signal)
  }
  return { driver: facts, startedAt, ms: clock.steady() - begun, results, latencies: latenciesOf(all) }
}

async function runCheck(
  deps: LabDeps,
  options: LabOptions,
  facts: DriverFacts,
  check: Check,
  signal: AbortSignal,
): Promise<Result> {
  const { clock, place } = deps
  const begun = clock.steady()
  const calls: SeenCall[] = []
  const undos: Undo[] = []
  const timeoutMs = options.callTimeoutMs ?? defaultCallMs
  const seen = (call: SeenCall) => void calls.push(call)
  const strikes = strikesOf(deps)
  const transport = observed({ transport: strikes.transport, clock, choose: () => undefined, seen })
  const sceneUnder = (during: AbortSignal): Lab => ({
    ...boundCalls({ transport, clock, timeoutMs }, during),
    ...{ facts, clock, recipe: options.recipe, signal: during },
    get host(): LabHost {
      if ('why' in place) throw new Error(`${check.id} uses mounts without saying that it needs them`)
      return place.host
    },
    directory: () => directoryOf(place, check, during),
    named: (word) => `${options.run}-${check.id.split('/').slice(1).join('-')}-${word}`,
    undo: (what, work) => void undos.push({ what, work }),
    ...{ strike: strikes.strike, hasStruck: strikes.hasStruck },
  })
  const verdict = await verdictOf(clock, check, sceneUnder, options.checkTimeoutMs ?? defaultCheckMs, signal)
  using undoing = clock.deadline(undoMs, new AbortController().signal)
  const leftovers = await undoAll(undos, sceneUnder(undoing.signal))
  if (!('why' in place)) leftovers.push(...(await sweep(place, check, undoing.signal)))
  return { check, verdict, ms: clock.steady() - begun, calls, leftovers }
}

const defaultDuringMs = 5

function strikesOf({ transport, clock, kill, restart, duringMs = defaultDuringMs }: LabDeps): Strikes {
  if (!kill || !restart) return createStrikes({ transport, clock, duringMs })
  const killAndRestart = async (signal: AbortSignal) => {
    await kill()
    await restart(signal)
  }
  return createStrikes({ transport, clock, duringMs, killAndRestart })
}

async function verdictOf(
  clock: Clock,
  check: Check,
  sceneUnder: (during: AbortSignal) => Lab,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Verdict> {
  using deadline = clock.deadline(timeoutMs, signal)
  try {
    await check.run(sceneUnder(deadline.signal))
    return { kind: 'passed' }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof NotPossible) return { kind: 'skipped', reason: error.message }
    if (deadline.signal.aborted) return { kind: 'failed', finding: `not done after ${timeoutMs / 1_000} s` }
    if (error instanceof Finding) return { kind: 'failed', finding: error.message }
    if (error instanceof CsiError) return { kind: 'failed', finding: `${error.rpc || 'a call'}: ${statusText(error)}` }
    if (error instanceof HostError || error instanceof VolumeError) return { kind: 'failed', finding: error.message }
    throw error
  }
}

interface Undo {
  readonly what: string
  readonly work: (lab: Lab) => Promise<unknown>
}

/** The last first. One that fails does not keep the others from being done; it is told. */
async function undoAll(undos: readonly Undo[], lab: Lab): Promise<string[]> {
  const left: string[] = []
  for (const { what, work } of undos.toReversed()) {
    try {
      await work(lab)
    } catch (error) {
      // A driver without that call did nothing that it could undo.
      if (error instanceof CsiError && error.status === 'UNIMPLEMENTED') continue
      left.push(`${what}: ${statusText(error)}`)
    }
  }
  return left
}

type Place = Extract<LabDeps['place'], { readonly host: LabHost }>

const pathOf = ({ directory }: Place, check: Check) => `${directory}/${check.id.replaceAll('/', '-')}`

async function directoryOf(place: LabDeps['place'], check: Check, signal: AbortSignal): Promise<string> {
  if ('why' in place) throw new Error(`${check.id} uses paths without saying that it needs mounts`)
  const path = pathOf(place, check)
  await place.host.files.mkdirAll(path, 0o750, signal)
  return path
}

/** What a driver left mounted is unmounted for it, so that the next check and the machine are not burdened. */
async function sweep(place: Place, check: Check, signal: AbortSignal): Promise<string[]> {
  const { files, mounts } = place.host
  const path = pathOf(place, check)
  const left: string[] = []
  try {
    if (!(await files.exists(path, signal))) return []
    const below = (await mounts.list(signal))
      .map(({ mountPoint }) => mountPoint)
      .filter((each) => each.startsWith(`${path}/`))
    for (const each of below.toReversed()) {
      left.push(`${each} was still mounted`)
      await mounts.unmount(each, { lazy: true }, signal)
    }
    await files.removeTree(path, signal)
  } catch (error) {
    left.push(`${path}: ${statusText(error)}`)
  }
  return left
}

const probeMs = 5_000

/** After a failure: does the driver still answer? Undefined when it does, or does again; else why the rest is skipped. */
async function backAgain(deps: LabDeps, failed: Check, signal: AbortSignal): Promise<string | undefined> {
  const identity = createIdentityCalls({ wire: createWire(deps.transport), clock: deps.clock, timeoutMs: probeMs })
  const answers = () =>
    identity.probe(signal).then(
      () => true,
      (error: unknown) =>
        error instanceof CsiError && error.status !== 'UNAVAILABLE' && error.status !== 'DEADLINE_EXCEEDED',
    )
  if (await answers()) return undefined
  await deps.restart?.(signal)
  if (deps.restart && (await answers())) return undefined
  return `the driver does not answer any more since ${failed.id}`
}
