// Do our own drivers pass the honesty suite? The model driver and the built-in one, in memory, attached and local.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createModelStorage } from '../../src/csi/model/driver.ts'
import { directTransport } from '../../src/csi/service.ts'
import type { Transport } from '../../src/csi/service.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import { checksOf } from '../../src/lab/catalogue.ts'
import { runLab } from '../../src/lab/run.ts'
import { startDriverMachine } from '../kit/local-driver.ts'

const clock = createSystemClock()
const signal = new AbortController().signal
const recipe = { sizeBytes: 1n << 24n, fsType: '', parameters: {}, secrets: {} }

async function failures(transport: Transport, host: ReturnType<typeof createModelHost>) {
  const place = { host, directory: '/lab' }
  const report = await runLab(
    { clock, transport, place },
    { checks: checksOf(['honesty']), recipe, run: 'lab' },
    {},
    signal,
  )
  return report.results.flatMap(({ check, verdict, leftovers }) => [
    ...(verdict.kind === 'failed' ? [`${check.id}: ${verdict.finding}`] : []),
    ...leftovers.map((left) => `${check.id} left ${left}`),
  ])
}

for (const attach of [true, false]) {
  test(`the model driver is honest ${attach ? 'with' : 'without'} attaching`, async () => {
    const host = createModelHost({ clock })
    const storage = createModelStorage({ clock, attach })
    const transport = directTransport(storage.onNode({ nodeId: 'n1', host }))
    assert.deepEqual(await failures(transport, host), [])
    assert.deepEqual([...storage.records.volumeMap.keys(), ...storage.records.snapshotMap.keys()], [])
  })
}

for (const mode of ['local', 'shared'] as const) {
  test(`the built-in driver is honest in mode ${mode}`, async () => {
    const { transport, host } = await startDriverMachine({ mode })
    assert.deepEqual(await failures(transport, host), [])
  })
}
