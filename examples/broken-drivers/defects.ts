// Which broken drivers are there? By the name that `driver.ts --defect NAME` takes.
import type { DriverHandlers } from '../../src/csi/service.ts'
import type { BaseDriver } from './base.ts'
import { controllerDefects } from './controller-defects.ts'
import type { Defect } from './defect.ts'
import { nodeDefects } from './node-defects.ts'

export const defects: Readonly<Record<string, Defect>> = { ...controllerDefects, ...nodeDefects }

export function brokenHandlers(driver: BaseDriver, defect: Defect | undefined): DriverHandlers {
  return defect === undefined ? driver.handlers : { ...driver.handlers, ...defect.apply(driver) }
}
