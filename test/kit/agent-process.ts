// A node agent in a process of its own, so that tests can kill it: node agent-process.ts URL TOKEN DATA_DIRECTORY ROOT NAME [process|none]
// It says "agent ready" when its first pod list is worked in. Also used as the agent of the node conformance runner.
import { randomBytes } from 'node:crypto'
import { createHttpClient } from '../../src/client/http.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import { killPoints } from './kill-points.ts'
import { openNodeIdentity } from '../../src/installation/node-identity.ts'
import { startNode } from '../../src/main/node.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { createPinoLog } from '../../src/telemetry/pino-log.ts'

const [url = '', token = '', dataDirectory = '', root = '', name = '', runtime = 'process'] = process.argv.slice(2)
const client = createHttpClient({ url, token, insecureSkipTlsVerify: true })
const linux = createLinuxHost()
const { host, observer } = killPoints(linux, root, process.env)
const node = { name, root }
const identity = await openNodeIdentity({ dataDirectory, node, host: linux }, new AbortController().signal)
const started = await startNode({
  config: { dataDirectory, runtime: runtime === 'none' ? 'none' : 'process' },
  node,
  identity,
  client,
  clock: createSystemClock(),
  random: createRandom(randomBytes(32)),
  log: createPinoLog({ level: process.env['HAWSER_TEST_LOG'] === 'info' ? 'info' : 'warn' }),
  metrics: createMetrics(),
  host,
  ...(observer ? { observer } : {}),
  version: 'test',
  csiDrivers: [],
})
await started.agent.ready
console.log('agent ready')
process.once('SIGTERM', () => void started[Symbol.asyncDispose]().then(() => process.exit(0)))
