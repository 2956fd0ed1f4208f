// The driver's own process: `node main.ts --socket PATH --data DIR --node ID [--mode local|shared] [--name NAME]
// [--capacity BYTES] [--overcommit RATIO]`. Ends on SIGTERM or SIGINT, leaving every mount as it is.
import { parseArgs } from 'node:util'
import { serveLocalDriver } from './serve.ts'

const { values } = parseArgs({
  options: {
    socket: { type: 'string' },
    data: { type: 'string' },
    node: { type: 'string' },
    mode: { type: 'string', default: 'local' },
    name: { type: 'string' },
    capacity: { type: 'string' },
    overcommit: { type: 'string' },
    'max-volumes': { type: 'string' },
  },
})
const { socket, data, node, mode, name, capacity, overcommit } = values
if (!socket || !data || !node || (mode !== 'local' && mode !== 'shared')) {
  console.error(
    'usage: --socket PATH --data DIRECTORY --node ID [--mode local|shared] [--name NAME] [--capacity BYTES]',
  )
  process.exit(2)
}
const maxVolumes = values['max-volumes']
const served = await serveLocalDriver({
  socket,
  dataDirectory: data,
  nodeId: node,
  mode,
  ...(name !== undefined && { name }),
  ...(capacity !== undefined && { capacityBytes: BigInt(capacity) }),
  ...(overcommit !== undefined && { overcommit: Number(overcommit) }),
  ...(maxVolumes !== undefined && { maxVolumesPerNode: BigInt(maxVolumes) }),
})
console.log(`serving on ${socket}`)
for (const name of ['SIGTERM', 'SIGINT'] as const) {
  process.once(name, () => void served[Symbol.asyncDispose]().then(() => process.exit(0)))
}
// The parent process has gone: nobody else would stop this one.
process.once('disconnect', () => process.exit(0))
