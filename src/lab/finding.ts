// What is wrong with the driver? A sentence for its author, thrown by a check; and the questions that end in one.
import { CsiError, statusText } from '../csi/codes.ts'
import type { StatusName } from '../csi/codes.ts'

/** The driver does not do what it must. */
export class Finding extends Error {
  override readonly name = 'Finding'
}

/** The check cannot be made with this driver or on this machine; not the driver's fault. */
export class NotPossible extends Error {
  override readonly name = 'NotPossible'
}

/** The call must fail, with one of these statuses. `what` says what was asked: "CreateVolume without a name". */
export async function refused(
  what: string,
  call: Promise<unknown>,
  ...statuses: readonly [StatusName, ...StatusName[]]
): Promise<void> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  const expected = statuses.join(' or ')
  if (error === undefined) throw new Finding(`${what} must be refused with ${expected}; the driver answered OK`)
  if (!(error instanceof CsiError)) throw error
  if (statuses.includes(error.status)) return
  throw new Finding(`${what} must be refused with ${expected}; the driver answered ${statusText(error)}`)
}

/** The call must succeed; a status becomes a sentence about what was asked. */
export async function answered<T>(what: string, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    if (!(error instanceof CsiError)) throw error
    throw new Finding(`${what} must succeed; the driver answered ${statusText(error)}`, { cause: error })
  }
}

export function must(holds: boolean, sentence: string): asserts holds {
  if (!holds) throw new Finding(sentence)
}
