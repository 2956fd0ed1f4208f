// May this server still ask a driver to make, attach or delete something? Asked immediately before each call: a server that was
// paused, and whose place another may have taken meanwhile, calls nobody. What a call that is under way does, nobody can stop.
import type { Connect } from '../csi/drivers.ts'
import { CsiError } from '../csi/codes.ts'
import { Controller, GroupController } from '../csi/generated/csi_pb.ts'
import { errorText } from '../telemetry/error-text.ts'

/** `requireActive` throws where another server may act. Calls for this machine alone (mounts) are not its concern. */
export function fenced(connect: Connect, requireActive: () => void): Connect {
  return (endpoint) => {
    const connection = connect(endpoint)
    return {
      ...connection,
      async transport(method, request, options) {
        if (concernsAll.has(method.parent.typeName)) {
          try {
            requireActive()
          } catch (error) {
            throw new CsiError('UNAVAILABLE', errorText(error), { rpc: method.name, cause: error, effect: 'untried' })
          }
        }
        return connection.transport(method, request, options)
      },
    }
  }
}

const concernsAll: ReadonlySet<string> = new Set([Controller.typeName, GroupController.typeName])
