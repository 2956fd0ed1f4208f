// Which broken drivers are there? By the name that `driver.ts --defect NAME` takes.
import type { DriverHandlers } from '../../src/csi/service.ts'
import type { DirectoryDriver } from '../../src/csi/model/directory-driver.ts'
import { controllerDefects } from './controller-defects.ts'
import type { Defect } from './defect.ts'
import { dataDefects } from './data-defects.ts'
import { faultDefects } from './fault-defects.ts'
import { nodeDefects } from './node-defects.ts'

export const defects: Readonly<Record<string, Defect>> = {
  ...controllerDefects,
  ...nodeDefects,
  ...dataDefects,
  ...faultDefects,
}

export function brokenHandlers(driver: DirectoryDriver, defect: Defect | undefined): DriverHandlers {
  return defect === undefined ? driver.handlers : { ...driver.handlers, ...defect.apply(driver) }
}
