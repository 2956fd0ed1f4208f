// Is it the driver itself? It is away, silent or not ready, or has not answered a call for long: told before all else about it.
import type { OperationRecord } from '../api/generated/types.ts'
import type { Cause, CauseNames } from './causes.ts'
import { speak } from './causes.ts'
import type { Facts } from './facts.ts'
import { parse } from './facts.ts'
import type { Block, Link } from './link.ts'
import { blocked, waitFacts } from './link.ts'
import { causeOfDriver } from './reasons.ts'

/** A call that takes longer than this hangs, as far as a person is concerned. */
const slowMs = 10_000

/** The step as the driver's own trouble, if it has one. Without `node` any process of the driver counts. */
export function driverTrouble(
  facts: Facts,
  title: string,
  driver: string | undefined,
  names: CauseNames,
  node?: string,
): Link | undefined {
  const found = driver === undefined ? undefined : connectionOf(facts, driver, node)
  const [wait] = found?.status?.waiting ?? []
  const cause = causeOfDriver(wait?.reason)
  if (found === undefined || wait === undefined || cause === undefined) return undefined
  const actor = found.spec.actor
  const { endpoint: socket = '' } = found.spec
  const { message } = wait
  const told = { ...names, driver: driver!, socket, ...(message === undefined ? {} : { detail: message }) }
  const words = message === undefined ? {} : { error: { message } }
  return blocked(title, actor, cause, told, { ...waitFacts({ ...wait, actor }), ...words })
}

export interface DriverTrouble {
  readonly driver: string
  /** Where its process serves one node only. */
  readonly node?: string
  readonly socket: string
  readonly cause: Cause
  readonly sentence: string
  readonly since?: string
}

/** Every driver that cannot be used now, for those who list drivers. */
export function driversInTrouble(operations: readonly OperationRecord[]): readonly DriverTrouble[] {
  return operations.flatMap(({ spec, status }) => {
    const [wait] = status?.phase === 'Waiting' && spec.operation === 'connect' ? (status.waiting ?? []) : []
    const cause = causeOfDriver(wait?.reason)
    const driver = (spec.objects ?? []).find(({ kind }) => kind === 'CSIDriver')?.name
    if (wait === undefined || cause === undefined || driver === undefined) return []
    const { endpoint: socket = '', node } = spec
    const { message, since } = wait
    const names = { driver, socket, ...(message === undefined ? {} : { detail: message }) }
    return [
      {
        ...{ driver, socket, cause, sentence: speak(cause, names).sentence },
        ...(node === undefined ? {} : { node }),
        ...(since === undefined ? {} : { since }),
      },
    ]
  })
}

function connectionOf({ operations }: Facts, driver: string, node: string | undefined): OperationRecord | undefined {
  return operations.find(
    ({ spec, status }) =>
      spec.operation === 'connect' &&
      status?.phase === 'Waiting' &&
      (spec.objects ?? []).some(({ kind, name }) => kind === 'CSIDriver' && name === driver) &&
      (node === undefined || spec.node === undefined || spec.node === node),
  )
}

/** Where the driver listens, as far as its connection has been spoken of. */
function socketOf({ operations }: Facts, driver: string | undefined): CauseNames {
  const found = operations.find(
    ({ spec }) => spec.operation === 'connect' && (spec.objects ?? []).some(({ name }) => name === driver),
  )
  return found?.spec.endpoint === undefined ? {} : { socket: found.spec.endpoint }
}

/** Work that runs: `usual` while it is young; later the call that hangs, since when, and what was said before. */
export function runningLink(
  facts: Facts,
  title: string,
  record: OperationRecord,
  usual: Cause,
  names: CauseNames,
): Link {
  const { actor } = record.spec
  const { startedAt, failingSince, step, error, attempts } = record.status ?? {}
  const begun = parse(startedAt)
  // A call that was repeated, or cut off by the end of its process, has had no answer since the first try.
  const since = parse(failingSince) ?? begun
  const told: Omit<Block, 'cause' | 'names'> = {
    ...(since === undefined ? {} : { since }),
    ...(step === undefined ? {} : { step }),
    ...(error === undefined ? {} : { error }),
    ...(attempts === undefined ? {} : { attempts }),
  }
  if (begun === undefined || facts.now - begun < slowMs)
    return blocked(title, actor, usual, names, { ...told, transient: true })
  const hung = { ...names, ...callNamed(step, names.driver), ...socketOf(facts, names.driver) }
  return blocked(title, actor, names.driver === undefined ? 'workHangs' : 'callHangs', hung, told)
}

/** What the steps of our operations ask of a CSI driver. */
const calls: Readonly<Record<string, string>> = {
  Attach: 'ControllerPublishVolume',
  Detach: 'ControllerUnpublishVolume',
  MountDevice: 'NodeStageVolume',
  SetUp: 'NodePublishVolume',
  SetUpDevice: 'NodeStageVolume',
  MapPodDevice: 'NodePublishVolume',
  NodeExpand: 'NodeExpandVolume',
  TearDown: 'NodeUnpublishVolume',
  UnmountDevice: 'NodeUnstageVolume',
  TearDownDevice: 'NodeUnstageVolume',
}

/** The call behind a step; a step of another kind of volume goes by its own name. */
export function callNamed(step: string | undefined, driver: string | undefined): CauseNames {
  if (step === undefined) return {}
  return { call: driver === undefined ? step : (calls[step] ?? step) }
}
