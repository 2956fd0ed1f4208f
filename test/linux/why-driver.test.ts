// Does `why` name a driver that is really dead or really hangs? `hawser up` as a user runs it, with a driver on a socket of
// ours that is not there yet, answers, is killed, comes back, and then does not answer one call. Needs root.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createModelStorage, modelDriverName } from '../../src/csi/model/driver.ts'
import { serveOnSocket } from '../../src/csi/serve.ts'
import { csiServices, handleUnary } from '../../src/csi/service.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import type { Explanation } from '../../src/why/explain.ts'
import { launcher, runProgram, startServer } from '../kit/server-process.ts'
import { needsRoot as skip, until } from '../kit/machine.ts'

const storageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'model' },
  provisioner: modelDriverName,
}
const claim = (name: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '64Mi' } },
    storageClassName: 'model',
  },
})

test('a driver that is not there, is killed, comes back, and hangs', { skip, timeout: 120_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-why-'))
  const socket = join(directory, 'csi.sock')
  const clock = createSystemClock()
  const storage = createModelStorage({ clock, attach: false })
  const handlers = storage.onNode({ nodeId: 'n', host: createModelHost({ clock }) })
  let hung = ''
  const serve = () =>
    serveOnSocket(socket, csiServices, (method, bytes, stop) =>
      method.name === hung ? new Promise(() => {}) : handleUnary(handlers, method, bytes, stop),
    )
  try {
    await using server = await startServer(['--csi-driver', `${modelDriverName}=${socket}`])
    const env = { KUBECONFIG: server.kubeconfig }
    const hawser = (args: string[], input = '') => runProgram(launcher, args, { env, input })
    const apply = async (...objects: object[]) => {
      const input = objects.map((object) => JSON.stringify(object)).join('\n---\n')
      const { code, stderr } = await hawser(['apply', '-f', '-'], input)
      assert.equal(code, 0, stderr)
    }
    const ask = async (subject: string) =>
      JSON.parse((await hawser(['why', subject, '-o', 'json'])).stdout) as Explanation
    const cause = (subject: string, wanted: string | undefined) =>
      until(`${subject} is told as ${wanted}`, async () => (await ask(subject)).blocked?.cause === wanted, 60_000)

    await apply(storageClass, claim('early'))
    await cause('pvc/early', 'driverUnavailable')
    assert.ok((await ask('pvc/early')).blocked?.sentence.includes(socket), 'the socket is named')

    let served = await serve()
    await cause('pvc/early', undefined)

    const killedAt = Date.now()
    served.kill()
    rmSync(socket, { force: true })
    await apply(claim('late'))
    await cause('pvc/late', 'driverUnavailable')
    const { blocked } = await ask('pvc/late')
    assert.ok(blocked?.sentence.includes(socket) === true, blocked?.sentence ?? 'nothing is told')
    assert.ok(Math.abs(Date.parse(blocked?.since ?? '') - killedAt) < 3_000, `since ${blocked?.since}`)
    assert.match((await hawser(['why'])).stdout, /does not answer at .*csi\.sock/)

    served = await serve()
    await cause('pvc/late', undefined)

    hung = 'CreateVolume'
    const hungAt = Date.now()
    await apply(claim('stuck'))
    await cause('pvc/stuck', 'driverTimeout')
    const stuck = (await ask('pvc/stuck')).blocked
    assert.match(stuck?.sentence ?? '', /did not answer CreateVolume in time/)
    assert.ok(Math.abs(Date.parse(stuck?.since ?? '') - hungAt) < 3_000, `since ${stuck?.since}`)
    hung = ''
    await cause('pvc/stuck', undefined)
    served.kill()
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
