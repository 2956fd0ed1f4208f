// What is a defect? A change to some handlers of a good driver, and the checks of the lab that must find it, no others.
import { CsiError } from '../../src/csi/codes.ts'
import type { StatusName } from '../../src/csi/codes.ts'
import type { Controller, Identity, Node } from '../../src/csi/generated/csi_pb.ts'
import type { DriverHandlers, UnaryHandlers } from '../../src/csi/service.ts'
import type { DirectoryDriver } from '../../src/csi/model/directory-driver.ts'

export interface Defect {
  /** What the driver does wrong. */
  readonly what: string
  readonly foundBy: readonly string[]
  apply(driver: DirectoryDriver): Partial<DriverHandlers>
}

type All<S extends typeof Controller | typeof Identity | typeof Node> = Required<UnaryHandlers<S>>

const controller = ({ handlers }: DirectoryDriver) => handlers.controller as All<typeof Controller>
const node = ({ handlers }: DirectoryDriver) => handlers.node as All<typeof Node>

/** The driver's controller with some calls changed. */
export function inController(
  change: (good: All<typeof Controller>, driver: DirectoryDriver) => UnaryHandlers<typeof Controller>,
): Defect['apply'] {
  return (driver) => ({ controller: { ...driver.handlers.controller, ...change(controller(driver), driver) } })
}

export function inNode(
  change: (good: All<typeof Node>, driver: DirectoryDriver) => UnaryHandlers<typeof Node>,
): Defect['apply'] {
  return (driver) => ({ node: { ...driver.handlers.node, ...change(node(driver), driver) } })
}

export function inIdentity(change: UnaryHandlers<typeof Identity>): Defect['apply'] {
  return ({ handlers }) => ({ identity: { ...handlers.identity, ...change } })
}

export const fail = (status: StatusName, details: string) => new CsiError(status, details)

/** If the good driver refuses with this status, do this instead. */
export async function insteadOf<T>(status: StatusName, call: Promise<T>, otherwise: () => T | Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    if (error instanceof CsiError && error.status === status) return otherwise()
    throw error
  }
}
