// Are the options of an embedded cluster right? Each mistake is told at once, with what was found and what is allowed.
import { isJsonObject } from '../api/json.ts'
import { CsiError, statusCodes } from '../csi/codes.ts'
import type { ChooseFault, Fault } from '../csi/faults.ts'
import { UsageError } from '../installation/config.ts'
import { shown } from './checked-client.ts'
import type { EmbeddedOptions } from './embedded.ts'

/** What each option must be; the record makes the compiler name an option that is forgotten here. */
const checks: { readonly [Name in keyof Required<EmbeddedOptions>]: (value: unknown) => string | undefined } = {
  nodes: nodeNames,
  modelNodes: nodeNames,
  driverFault: (value) => (typeof value === 'function' ? undefined : 'must be a function'),
  csiDrivers: drivers,
  dataDirectory: (value) => (typeof value === 'string' && value !== '' ? undefined : 'must be a path'),
  store: (value) => (value === 'memory' || value === 'embedded' ? undefined : 'must be "memory" or "embedded"'),
  listen: listenAddress,
  log: (value) =>
    isJsonObject(value) && typeof value['error'] === 'function' ? undefined : 'must be a log (createLog)',
}

/** Callers without types get here, too: nothing is believed. */
export function checkOptions(options: EmbeddedOptions): void {
  if (typeof options !== 'object' || options === null)
    throw new UsageError(`startHawser takes an object of options, not ${shown(options)}`)
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(checks, name))
      throw new UsageError(`startHawser has no option "${name}"`, `options are: ${Object.keys(checks).join(', ')}`)
    const problem = value === undefined ? undefined : checks[name as keyof EmbeddedOptions](value)
    if (problem !== undefined) throw new UsageError(`option ${name} ${problem}, not ${shown(value)}`)
  }
  const both = (options.nodes ?? []).length > 0 && (options.modelNodes ?? []).length > 0
  if (both) throw new UsageError('nodes and modelNodes cannot be mixed in one cluster', 'choose one of them')
  if (options.driverFault !== undefined && (options.modelNodes ?? []).length === 0)
    throw new UsageError('driverFault is for the model driver, and there is none', "add modelNodes: ['a']")
}

/** What each kind of fault has beside its kind. */
const faults: { readonly [Kind in Fault['kind']]: (fault: Readonly<Record<string, unknown>>) => boolean } = {
  refused: hasStatus,
  answerLost: hasStatus,
  twice: () => true,
  late: ({ ms }) => typeof ms === 'number' && ms >= 0,
  silent: () => true,
  ignored: () => true,
  lost: () => true,
  cut: ({ when }) => when === 'before' || when === 'after',
}

function hasStatus({ status }: Readonly<Record<string, unknown>>): boolean {
  return typeof status === 'string' && Object.hasOwn(statusCodes, status)
}

/** A wrong answer fails the call that it was for, with what is right: `why` shows it. */
export function checkedFault(choose: ChooseFault): ChooseFault {
  return (rpc, earlier) => {
    const fault: unknown = choose(rpc, earlier)
    if (fault === undefined) return undefined
    const kind = isJsonObject(fault) ? fault['kind'] : undefined
    const isFault = typeof kind === 'string' && Object.hasOwn(faults, kind)
    if (isFault && isJsonObject(fault) && faults[kind as Fault['kind']](fault)) return fault as unknown as Fault
    const right = `{ kind: ${Object.keys(faults).join(' | ')} }, with status, ms or when where the kind has one`
    throw new CsiError('INVALID_ARGUMENT', `driverFault answered ${shown(fault)}, which is no fault: ${right}`)
  }
}

const nodeName = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

function nodeNames(value: unknown): string | undefined {
  if (!Array.isArray(value)) return 'must be a list of names'
  const wrong: unknown = value.find((name) => typeof name !== 'string' || !nodeName.test(name))
  if (wrong !== undefined)
    return `has ${shown(wrong)}, which is no node name: lower-case letters, digits, "-" and "." only`
  return new Set(value).size === value.length ? undefined : 'names a node twice'
}

function drivers(value: unknown): string | undefined {
  const isDriver = (each: unknown) =>
    isJsonObject(each) && typeof each['name'] === 'string' && typeof each['socket'] === 'string'
  return Array.isArray(value) && value.every(isDriver) ? undefined : 'must be a list of { name, socket }'
}

function listenAddress(value: unknown): string | undefined {
  if (!isJsonObject(value) || typeof value['host'] !== 'string') return 'must be { host, port }'
  const { port } = value
  const isPort = Number.isInteger(port) && Number(port) >= 0 && Number(port) <= 65_535
  return isPort ? undefined : 'needs a port between 0 and 65535'
}
