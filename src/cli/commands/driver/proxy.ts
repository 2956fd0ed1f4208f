// `hawser driver proxy` and `hawser driver trace`: a socket before a driver's own that shows every call, or fails some on purpose.
import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import { createRandom } from '../../../clock/random.ts'
import { createSystemClock } from '../../../clock/system-clock.ts'
import { statusText } from '../../../csi/codes.ts'
import type { FaultRule } from '../../../csi/fault-rules.ts'
import { faultFor, faultForms, faultRuleFrom } from '../../../csi/fault-rules.ts'
import { createIdentityCalls } from '../../../csi/identity.ts'
import type { SeenCall } from '../../../csi/observed.ts'
import { startProxy } from '../../../csi/proxy.ts'
import { serveOnSocket } from '../../../csi/serve.ts'
import { createWire, csiServices } from '../../../csi/service.ts'
import type { Context } from '../../context.ts'
import { json, paint, table } from '../../output.ts'
import { duration } from '../../output.ts'
import { openSocket, refuseIfInUse } from './socket.ts'

interface TraceFlags {
  readonly socket: string
  readonly output: 'text' | 'json'
}

interface ProxyFlags extends TraceFlags {
  readonly fault?: readonly FaultRule[]
  readonly seed?: number
  readonly quiet: boolean
}

const rpcs = csiServices.flatMap(({ methods }) => methods.map(({ name }) => name))

const shared = {
  socket: { kind: 'parsed', parse: String, placeholder: 'PATH', brief: 'Socket to listen on; give it to the callers' },
  output: { kind: 'enum', values: ['text', 'json'], default: 'text', brief: 'One line per call, or one JSON object' },
} as const

const positional = {
  kind: 'tuple',
  parameters: [{ parse: String, placeholder: 'DRIVER', brief: 'Unix socket of the driver' }],
} as const

export const trace = buildCommand<TraceFlags, [string], Context>({
  docs: {
    brief: 'Show every call to a CSI driver',
    fullDescription: [
      'Listens on a socket of its own and passes each call on to the driver, until SIGINT or SIGTERM.',
      'Values of secrets are never shown.',
      '',
      'Examples:',
      '  hawser driver trace /run/csi/csi.sock --socket /run/csi/traced.sock',
      '  hawser up --csi-driver my.example.com=/run/csi/traced.sock',
    ].join('\n'),
  },
  parameters: { flags: shared, aliases: { o: 'output' }, positional },
  async func(flags, driver) {
    await proxyUntilStopped(this, driver, { ...flags, quiet: false })
  },
})

export const proxy = buildCommand<ProxyFlags, [string], Context>({
  docs: {
    brief: 'Fail calls to a CSI driver on purpose',
    fullDescription: [
      'Listens on a socket of its own and passes each call on to the driver, but for those that a fault is meant for.',
      'Runs until SIGINT or SIGTERM. A fault is CALL=FAULT, with @N for the Nth call of that name only, or %P for P in a',
      'hundred calls. * in CALL stands for any characters. The first fault that applies decides.',
      '',
      table(
        [],
        faultForms.map(([form, meaning]) => [`  ${form}`, meaning]),
      ),
      '',
      'Examples:',
      '  hawser driver proxy /run/csi/csi.sock --socket /run/csi/faulty.sock --fault CreateVolume=answer-lost@1',
      "  hawser driver proxy /run/csi/csi.sock --socket /run/csi/faulty.sock --fault 'Node*=late:5s' --fault '*=UNAVAILABLE%10'",
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...shared,
      fault: {
        kind: 'parsed',
        parse: (text: string) => faultRuleFrom(text, rpcs),
        optional: true,
        variadic: true,
        placeholder: 'CALL=FAULT',
        brief: 'What fails, and how (may be repeated)',
      },
      seed: {
        kind: 'parsed',
        parse: Number,
        optional: true,
        placeholder: 'NUMBER',
        brief: 'Makes the same choices for faults by chance (default: by the time)',
      },
      quiet: { kind: 'boolean', default: false, brief: 'Do not show the calls' },
    },
    aliases: { o: 'output' },
    positional,
  },
  async func(flags, driver) {
    await proxyUntilStopped(this, driver, flags)
  },
})

async function proxyUntilStopped(context: Context, driverSocket: string, flags: ProxyFlags): Promise<void> {
  const clock = createSystemClock()
  const socket = resolve(flags.socket)
  const random = createRandom(flags.seed ?? clock.now())
  await refuseIfInUse(socket)
  using driver = openSocket(driverSocket)
  const identity = createIdentityCalls({ wire: createWire(driver.transport), clock, timeoutMs: 5_000 })
  const found = await identity.info(new AbortController().signal).catch((error: unknown) => {
    context.note(`the driver does not answer yet: ${statusText(error)}`)
    return undefined
  })
  const stop = Promise.withResolvers<void>()
  process.once('SIGINT', () => stop.resolve()).once('SIGTERM', () => stop.resolve())
  await using _proxy = await startProxy({
    clock,
    driver: driver.transport,
    listen: (answer) => {
      rmSync(socket, { force: true })
      return serveOnSocket(socket, csiServices, answer)
    },
    choose: (rpc, earlier) => faultFor(flags.fault ?? [], rpc, earlier, () => random.next()),
    seen: (call) => {
      if (!flags.quiet) context.print(flags.output === 'json' ? JSON.stringify(call) : lineOf(context, call))
    },
  })
  context.note(`${found?.name ?? 'the driver'} is also served on ${socket}`)
  await stop.promise
}

/** `12:00:01.123  CreateVolume  35 ms  OK  {"name":"x"} → {"volume":…}` */
function lineOf(context: Context, call: SeenCall): string {
  const time = new Date(call.startedAt).toISOString().slice(11, 23)
  const outcome = call.error === undefined ? paint(context, 'green', 'OK') : paint(context, 'red', call.error.status)
  const words = call.error === undefined ? JSON.stringify(call.answer) : call.error.details
  const fault =
    call.fault === undefined ? '' : paint(context, 'yellow', `  [fault: ${json(call.fault).replace(/\s+/g, ' ')}]`)
  return `${time}  ${call.rpc}  ${duration(call.ms)}  ${outcome}${fault}  ${JSON.stringify(call.request)} → ${words}`
}
