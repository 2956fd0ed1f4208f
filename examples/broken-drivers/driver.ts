// A CSI driver with one defect, as a program: `node driver.ts --socket PATH --data DIR [--defect NAME]`; `--list` names all.
// Without --defect it is a good driver. It mounts, so it needs root.
import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { serveOnSocket } from '../../src/csi/serve.ts'
import { csiServices, handleUnary } from '../../src/csi/service.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import { createDirectoryDriver } from '../../src/csi/model/directory-driver.ts'
import { brokenHandlers, defects } from './defects.ts'

const { values } = parseArgs({
  options: {
    socket: { type: 'string' },
    data: { type: 'string' },
    defect: { type: 'string' },
    list: { type: 'boolean', default: false },
  },
})
if (values.list) {
  for (const [name, { what }] of Object.entries(defects)) console.log(`${name.padEnd(28)}${what}`)
  process.exit(0)
}
const defect = values.defect === undefined ? undefined : defects[values.defect]
if (!values.socket || !values.data || (values.defect !== undefined && defect === undefined)) {
  console.error('usage: --socket PATH --data DIRECTORY [--defect NAME]; names: --list')
  process.exit(2)
}
const identity = { name: 'broken.example.com', nodeId: 'lab-node' }
const dataDirectory = resolve(values.data)
const host = createLinuxHost()
await host.files.mkdirAll(dataDirectory, 0o700, new AbortController().signal)
const handlers = brokenHandlers(
  createDirectoryDriver({ host, clock: createSystemClock(), dataDirectory, ...identity }),
  defect,
)
rmSync(values.socket, { force: true })
await serveOnSocket(values.socket, csiServices, (method, bytes, signal) => handleUnary(handlers, method, bytes, signal))
console.log(`serving on ${values.socket}`)
for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => process.exit(0))
