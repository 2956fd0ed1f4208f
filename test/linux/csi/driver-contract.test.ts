// The model driver and the built-in driver, over function calls and over a real socket, under one contract.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSystemClock } from '../../../src/clock/system-clock.ts'
import { openChannel } from '../../../src/csi/channel.ts'
import { createModelStorage, modelConnection } from '../../../src/csi/model/driver.ts'
import { serveOnSocket } from '../../../src/csi/serve.ts'
import { csiServices, handleUnary } from '../../../src/csi/service.ts'
import { serveLocalDriver } from '../../../src/drivers/local/serve.ts'
import { createLinuxHost } from '../../../src/host/linux/linux-host.ts'
import { createModelHost } from '../../../src/host/model/model-host.ts'
import { csiDriverContract } from '../../contracts/csi-driver.ts'

const signal = new AbortController().signal
const clock = createSystemClock()

function model() {
  const host = createModelHost({ clock })
  const handlers = createModelStorage({ clock }).onNode({ nodeId: 'n1', host })
  const common = {
    clock,
    nodeId: 'n1',
    directory: '/test',
    makeDirectory: (path: string) => host.files.mkdirAll(path, 0o750, signal),
    isMounted: (path: string) => host.mounts.isMountPoint(path, signal).catch(() => false),
  }
  return { handlers, common }
}

csiDriverContract('model', async () => {
  const { handlers, common } = model()
  return {
    ...common,
    endpoint: 'model',
    connect: () => modelConnection(handlers),
    [Symbol.asyncDispose]: async () => {},
  }
})

csiDriverContract('model over a socket', async () => {
  const { handlers, common } = model()
  const directory = mkdtempSync(join(tmpdir(), 'hawser-model-'))
  const endpoint = join(directory, 'csi.sock')
  const served = await serveOnSocket(endpoint, csiServices, (method, bytes, stop) =>
    handleUnary(handlers, method, bytes, stop),
  )
  return {
    ...common,
    endpoint,
    connect: openChannel,
    async [Symbol.asyncDispose]() {
      await served[Symbol.asyncDispose]()
      rmSync(directory, { recursive: true, force: true })
    },
  }
})

for (const mode of ['local', 'shared'] as const) {
  const skip = process.getuid?.() === 0 ? {} : { skip: 'needs root for mounts and loop devices' }
  csiDriverContract(
    `built-in, ${mode}`,
    async () => {
      const directory = mkdtempSync(join(tmpdir(), 'hawser-driver-'))
      const host = createLinuxHost()
      const endpoint = join(directory, 'csi.sock')
      const served = await serveLocalDriver({
        socket: endpoint,
        dataDirectory: join(directory, 'data'),
        nodeId: 'n1',
        mode,
      })
      return {
        clock,
        nodeId: 'n1',
        directory,
        endpoint,
        connect: openChannel,
        makeDirectory: (path) => host.files.mkdirAll(path, 0o750, signal),
        isMounted: (path) => host.mounts.isMountPoint(path, signal).catch(() => false),
        async [Symbol.asyncDispose]() {
          for (const path of [`${directory}/target`, `${directory}/stage`]) spawnSync('umount', [path])
          await served[Symbol.asyncDispose]()
          await host[Symbol.asyncDispose]()
          rmSync(directory, { recursive: true, force: true })
        },
      }
    },
    skip,
  )
}
