// How many bytes of request bodies may be in memory at once? In total and for each user, so that many large requests
// wait their turn instead of filling the memory of the server.
import type { StatusError } from '../../api/status-error.ts'
import { serviceUnavailable, tooManyRequests } from '../../api/status-error.ts'

export interface ByteLimits {
  readonly total: number
  readonly perUser: number
}

export interface ByteBudget {
  /** Opens an account for one request; its bytes are given back when it is disposed of. */
  open(user: string): ByteAccount
}

export interface ByteAccount extends Disposable {
  /** Takes so many bytes more, or says why not. */
  take(bytes: number): StatusError | undefined
}

export function createByteBudget(limits: ByteLimits): ByteBudget {
  let total = 0
  const users = new Map<string, number>()
  const add = (user: string, bytes: number): void => {
    total += bytes
    const used = (users.get(user) ?? 0) + bytes
    if (used === 0) users.delete(user)
    else users.set(user, used)
  }
  return {
    open(user) {
      let taken = 0
      return {
        take(bytes) {
          if ((users.get(user) ?? 0) + bytes > limits.perUser) {
            return tooManyRequests('the bodies of your requests are too large together, please try again later.', 1)
          }
          if (total + bytes > limits.total) {
            return serviceUnavailable('too many large requests are being read, please try again later.')
          }
          taken += bytes
          add(user, bytes)
          return undefined
        },
        [Symbol.dispose]() {
          add(user, -taken)
          taken = 0
        },
      }
    },
  }
}
