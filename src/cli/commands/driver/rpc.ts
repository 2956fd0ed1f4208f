// `hawser driver rpc`: one call to a CSI driver, JSON in and JSON out.
import { fromJsonString, fromBinary, toBinary, toJson } from '@bufbuild/protobuf'
import type { DescMethod } from '@bufbuild/protobuf'
import { buildCommand } from '@stricli/core'
import { createSystemClock } from '../../../clock/system-clock.ts'
import { CsiError, statusText } from '../../../csi/codes.ts'
import { csiServices } from '../../../csi/service.ts'
import { UsageError } from '../../../installation/config.ts'
import { errorText } from '../../../telemetry/error-text.ts'
import type { Context } from '../../context.ts'
import { exitCodes } from '../../exit-codes.ts'
import { json } from '../../output.ts'
import { secondsFrom } from '../../wait.ts'
import { isUnanswered, openSocket } from './socket.ts'

export const rpc = buildCommand<{ readonly timeout: number }, [string, string, string?], Context>({
  docs: {
    brief: 'Call one RPC of a CSI driver',
    fullDescription: [
      'The request is protobuf JSON (camelCase or snake_case, 64-bit numbers as strings).',
      'Careful: this can create and delete volumes. Exit code: 1 the driver answers an error, 3 there is no socket, 5 it does not answer.',
      '',
      'Examples:',
      '  hawser driver rpc /run/csi.sock Identity/GetPluginInfo',
      '  hawser driver rpc /run/csi.sock Controller/ListVolumes \'{"maxEntries": 10}\'',
    ].join('\n'),
  },
  parameters: {
    flags: {
      timeout: { kind: 'parsed', parse: secondsFrom, default: '30', placeholder: 'SECONDS', brief: 'Deadline' },
    },
    positional: {
      kind: 'tuple',
      parameters: [
        { parse: String, placeholder: 'SOCKET', brief: 'Unix socket of the driver' },
        { parse: String, placeholder: 'SERVICE/METHOD', brief: 'Service and method' },
        { parse: String, placeholder: 'JSON', brief: 'The request', optional: true },
      ],
    },
  },
  async func({ timeout }, socket, name, text = '{}') {
    const method = methodFrom(name)
    const request = requestFrom(method, text)
    using channel = openSocket(socket)
    using deadline = createSystemClock().deadline(timeout * 1_000, new AbortController().signal)
    try {
      const bytes = toBinary(method.input, request)
      const answer = await channel.transport(method, bytes, { signal: deadline.signal, timeoutMs: timeout * 1_000 })
      this.print(json(toJson(method.output, fromBinary(method.output, answer))))
    } catch (error) {
      if (!(error instanceof CsiError)) throw error
      this.note(`hawser: ${method.name}: ${statusText(error)}`)
      this.fail(isUnanswered(error) ? exitCodes.unreachable : exitCodes.failed)
    }
  },
})

/** `Node/NodeGetInfo`, `csi.v1.Node/NodeGetInfo` or just `NodeGetInfo`, in any case. */
export function methodFrom(text: string): DescMethod {
  const cut = text.lastIndexOf('/')
  const service = text.slice(0, Math.max(cut, 0)).toLowerCase()
  const name = text.slice(cut + 1).toLowerCase()
  const all = csiServices
    .filter(({ typeName }) => service === '' || `.${typeName.toLowerCase()}`.endsWith(`.${service}`))
    .flatMap(({ methods }) => methods)
  const found = all.find((method) => method.name.toLowerCase() === name)
  if (found) return found
  const near = all.map((method) => `${method.parent.name}/${method.name}`)
  throw new UsageError(
    `there is no CSI call "${text}"`,
    near.length > 0 ? `one of: ${near.join(', ')}` : `services: ${csiServices.map((each) => each.name).join(', ')}`,
  )
}

function requestFrom(method: DescMethod, text: string) {
  try {
    return fromJsonString(method.input, text)
  } catch (error) {
    const cause = errorText(error)
    const fields = method.input.fields.map((field) => field.jsonName).join(', ')
    throw new UsageError(
      `this is not a request for ${method.name}: ${cause}`,
      fields ? `its fields: ${fields}` : 'it takes no fields: {}',
    )
  }
}
