// Can a driver be used at all? What the history has of its connection: where it listens, and since when it does not answer.
import type { History } from '../client/history.ts'
import type { DriverWaitReason } from '../volume/wait-reasons.ts'
import { CsiError, statusText } from './codes.ts'
import type { Driver } from './drivers.ts'

type Listening = Pick<Driver, 'name' | 'endpoint'>

export interface ConnectionHistory {
  waits(driver: Listening, reason: DriverWaitReason, words?: string): void
  /** The first questions to the driver failed. */
  failed(driver: Listening, error: unknown): void
  works(driver: Listening): void
}

/** `node`: where this driver's process serves only that node. `actor`: who asks the driver, if it is not its jobs. */
export function createConnectionHistory(
  history: History | undefined,
  node: string | undefined,
  actor?: string,
): ConnectionHistory {
  const on = node === undefined ? {} : { node }
  const subject = ({ name, endpoint }: Listening) => ({
    actor: actor ?? `csi ${name}`,
    operation: 'connect',
    key: `${endpoint} ${node ?? ''}`,
    endpoint,
    ...on,
    objects: [{ kind: 'CSIDriver', name }],
  })
  const waits: ConnectionHistory['waits'] = (driver, reason, message) =>
    history?.waits(subject(driver), [{ reason, ...(message === undefined ? {} : { message }), ...on }])
  return {
    waits,
    failed(driver, error) {
      const isAway = error instanceof CsiError && error.code === 'DriverUnreachable'
      if (isAway) waits(driver, 'driverUnreachable', error.details)
      else waits(driver, 'driverRefuses', statusText(error))
    },
    works: (driver) => history?.waits(subject(driver), []),
  }
}
