// The built-in driver on a model host: its calls, and the machine below it.
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import { createControllerCalls } from '../../src/csi/controller.ts'
import { createNodeCalls } from '../../src/csi/node.ts'
import { createWire, directTransport } from '../../src/csi/service.ts'
import { createLocalDriver } from '../../src/drivers/local/driver.ts'
import type { StorageOptions } from '../../src/drivers/local/driver.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'

/** The driver's data directory. */
export const driverData = '/var/driver'
const never = new AbortController().signal
const fine = { exitCode: 0, stdout: '', stderr: '' }

export type DriverMachine = Awaited<ReturnType<typeof startDriverMachine>>

/** A model host with the driver on it. */
export async function startDriverMachine(chosen: Partial<StorageOptions> = {}) {
  const clock = createVirtualClock()
  const host = createModelHost({ clock })
  const { quiet } = host
  host.programs.set('mkfs.ext4', async ({ argv }, signal) => {
    const device = argv.at(-1) ?? ''
    if ((await quiet.filesystems.detect(device, signal)).kind === 'blank')
      await quiet.filesystems.make({ device, type: 'ext4' }, signal)
    return fine
  })
  host.programs.set('dumpe2fs', () => ({ ...fine, stdout: 'Block count: 1048576\nBlock size: 4096\n' }))
  host.programs.set('fsfreeze', () => fine)
  host.programs.set('fallocate', () => fine)
  host.programs.set('cp', ({ argv }) => {
    host.makeDiskFile(argv.at(-1) ?? '', 1n << 24n)
    return fine
  })
  const setSize = async (path: string, bytes: bigint) => host.makeDiskFile(path, bytes)
  const start = async () => {
    const options = { dataDirectory: driverData, nodeId: 'n1', mode: 'local' as const, ...chosen }
    const { handlers, guard } = await createLocalDriver({ host, clock, setSize }, options, never)
    const transport = directTransport(handlers)
    const wire = createWire(transport)
    return {
      transport,
      node: createNodeCalls({ wire, clock }),
      controller: createControllerCalls({ wire, clock }),
      guard,
    }
  }
  let driver = await start()
  return {
    host,
    get transport() {
      return driver.transport
    },
    get node() {
      return driver.node
    },
    get controller() {
      return driver.controller
    },
    get guard() {
      return driver.guard
    },
    clock,
    async restart() {
      host.faults.clear()
      driver = await start()
    },
  }
}
