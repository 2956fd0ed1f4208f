// How is a FlexVolume driver asked? One run of its program per question, one JSON object as the answer (FLEX-3 … FLEX-5).
// What a driver calls "Not supported" is remembered and never asked again.

import { DeadlineExceeded } from '../../clock/clock.ts'
import type { CommandResult, Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import { requireTrusted } from '../../host/trusted-path.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { refused } from '../../volume/effect.ts'

interface FlexAnswer {
  readonly status: 'Success' | 'Not supported'
  readonly message: string
  readonly device: string
  readonly volumeName: string
  readonly attached: boolean
  readonly volumeNewSize: bigint | undefined
}

interface FlexCapabilities {
  readonly attach: boolean
  readonly selinuxRelabel: boolean
  readonly supportsMetrics: boolean
  readonly fsGroup: boolean
  readonly requiresFSResize: boolean
}

export interface FlexDriver {
  /** `vendor/driver` */
  readonly name: string
  readonly capabilities: FlexCapabilities
  /** Undefined: the driver does not support this command; the caller does what is usual. */
  call(command: string, parameters: FlexParameters, signal: AbortSignal): Promise<FlexAnswer | undefined>
}

export interface FlexParameters {
  readonly words: readonly string[]
  /** What others must not see: arguments are shown to every process of the machine. The program reads it from its stdin. */
  readonly input?: string | undefined
}

export interface FlexProgram {
  readonly name: string
  readonly executable: string
}

/**
 * `waitforattach` may take as long as its operation (FLEX-5, C-10). Other commands may format or copy, so they get as long as
 * mkfs. `init` gets little time, because all other drivers wait for it.
 */
const timeoutsMs: Readonly<Record<string, number>> = { init: 120_000, waitforattach: 600_000 }
const usualTimeoutMs = 30 * 60_000
const defaults: FlexCapabilities = {
  attach: true,
  selinuxRelabel: true,
  supportsMetrics: false,
  fsGroup: true,
  requiresFSResize: true,
}

/** Runs `init`; a driver that fails it is not used. */
export async function startDriver(
  host: Pick<Host, 'run' | 'files'>,
  program: FlexProgram,
  signal: AbortSignal,
): Promise<FlexDriver> {
  const unsupported = new Set<string>()
  const answer = await ask(host, program, 'init', { words: [] }, signal)
  if (answer.status !== 'success')
    throw refused('DriverInit', `FlexVolume driver ${program.name} does not support init`, 'untried')
  return {
    name: program.name,
    capabilities: capabilitiesOf(answer.fields),
    async call(command, parameters, callSignal) {
      if (unsupported.has(command)) return undefined
      const { status, fields } = await ask(host, program, command, parameters, callSignal)
      if (status === 'notSupported') {
        unsupported.add(command)
        return undefined
      }
      return answerOf(fields)
    },
  }
}

type Fields = ReadonlyMap<string, unknown>

async function ask(
  host: Pick<Host, 'run' | 'files'>,
  program: FlexProgram,
  command: string,
  { words, input }: FlexParameters,
  signal: AbortSignal,
): Promise<{ status: 'success' | 'notSupported'; fields: Fields }> {
  const what = `FlexVolume driver ${program.name}: ${command}`
  // Arguments may hold secrets (`mount` gets them as JSON if its volume says so): none is ever shown.
  const secretArguments = words.map((_, index) => index + 2)
  let result: CommandResult
  try {
    await requireTrusted(host.files, program.executable, `the program ${program.executable}`, signal)
    result = await host.run(
      {
        argv: [program.executable, command, ...words],
        ...(input === undefined ? {} : { input }),
        timeoutMs: timeoutsMs[command] ?? usualTimeoutMs,
        secretArguments,
      },
      signal,
    )
  } catch (error) {
    if (hasCode(error, 'NOTTRUSTED'))
      throw refused('DriverNotTrusted', `${what} command failed: ${errorText(error)}`, 'untried')
    if (hasCode(error, 'NOPROGRAM'))
      throw refused(
        'DriverMissing',
        `${what} command failed: the driver's program ${program.executable} is missing`,
        'untried',
      )
    // The operation's own deadline began a moment before the command's and may end first.
    const late = hasCode(error, 'TIMEOUT') || signal.reason instanceof DeadlineExceeded
    if (late) throw refused('DriverTimeout', `${what} command failed: timeout`, 'unknown')
    throw error
  }
  const fields = parseAnswer(result.stdout, what)
  const status = String(fields.get('status') ?? '')
  if (status === 'Not supported') return { status: 'notSupported', fields }
  if (status !== 'Success')
    throw refused(
      'DriverFailed',
      `${what} command failed, status: ${status}, reason: ${String(fields.get('message') ?? '')}`,
      // A driver that reports a failure has left nothing behind: that is the protocol.
      'none',
    )
  if (result.exitCode !== 0)
    throw refused(
      'DriverBug',
      `${what} command failed: exit status ${result.exitCode} with status Success (driver bug)`,
      'unknown',
    )
  return { status: 'success', fields }
}

/** Keys are matched without regard to case, as in Kubernetes. */
function parseAnswer(stdout: string, what: string): Fields {
  let value: unknown
  try {
    value = JSON.parse(stdout)
  } catch (error) {
    throw refused('DriverOutput', `${what} failed to unmarshal output: ${errorText(error)}`, 'unknown')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refused('DriverOutput', `${what} did not answer with one JSON object`, 'unknown')
  return new Map(Object.entries(value).map(([key, field]) => [key.toLowerCase(), field]))
}

function answerOf(fields: Fields): FlexAnswer {
  const size = fields.get('volumenewsize')
  return {
    status: 'Success',
    message: String(fields.get('message') ?? ''),
    device: String(fields.get('device') ?? ''),
    volumeName: String(fields.get('volumename') ?? ''),
    attached: fields.get('attached') === true,
    volumeNewSize: typeof size === 'number' && Number.isSafeInteger(size) ? BigInt(size) : undefined,
  }
}

/** A key in the answer overrides only itself (FLEX-4). */
function capabilitiesOf(fields: Fields): FlexCapabilities {
  const given = fields.get('capabilities')
  if (typeof given !== 'object' || given === null) return defaults
  const flags = new Map(Object.entries(given).map(([key, value]) => [key.toLowerCase(), value as unknown]))
  const flag = (name: keyof FlexCapabilities): boolean => {
    const value = flags.get(name.toLowerCase())
    return typeof value === 'boolean' ? value : defaults[name]
  }
  return {
    attach: flag('attach'),
    selinuxRelabel: flag('selinuxRelabel'),
    supportsMetrics: flag('supportsMetrics'),
    fsGroup: flag('fsGroup'),
    requiresFSResize: flag('requiresFSResize'),
  }
}
