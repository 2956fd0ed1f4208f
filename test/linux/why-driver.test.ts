// Does `why` name a driver that is really dead or really hangs? `hawser up` as a user runs it, with a driver on a socket of
// ours that is not there yet, answers, is killed, comes back, does not answer one call, or answers OK and mounts nothing. Needs root.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createModelStorage, modelDriverName } from '../../src/csi/model/driver.ts'
import { serveOnSocket } from '../../src/csi/serve.ts'
import { csiServices, handleUnary } from '../../src/csi/service.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
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

const podOf = (name: string, claimName: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [
      { name: 'c', image: 'host', command: ['sleep', '600'], volumeMounts: [{ name: 'v', mountPath: '/data' }] },
    ],
    volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }],
  },
})

type Scene = Awaited<ReturnType<typeof commandsOf>>

/** The commands of a user of one server. */
async function commandsOf(kubeconfig: string) {
  const hawser = (args: string[], input = '') => runProgram(launcher, args, { env: { KUBECONFIG: kubeconfig }, input })
  const ask = async (subject: string) =>
    JSON.parse((await hawser(['why', subject, '-o', 'json'])).stdout) as Explanation
  return {
    hawser,
    ask,
    async apply(...objects: object[]) {
      const input = objects.map((object) => JSON.stringify(object)).join('\n---\n')
      const { code, stderr } = await hawser(['apply', '-f', '-'], input)
      assert.equal(code, 0, stderr)
    },
    async cause(subject: string, wanted: string | undefined) {
      let told: Explanation | undefined
      await until(
        () => `${subject} is told as ${wanted}; told: ${JSON.stringify(told)}`,
        async () => (told = await ask(subject)).blocked?.cause === wanted,
        60_000,
      )
    },
  }
}

/** A server, and a driver on a socket that is served when the test says so. */
async function withDriver(act: (scene: Scene & Driver) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-why-'))
  const socket = join(directory, 'csi.sock')
  const clock = createSystemClock()
  const storage = createModelStorage({ clock, attach: false, dataDirectory: join(directory, 'data') })
  await using linux = createLinuxHost()
  // Mounts on a host of its own reach nobody, as those of a driver in a container without mount propagation.
  const services = {
    alone: storage.onNode({ nodeId: 'n', host: createModelHost({ clock }) }),
    real: storage.onNode({ nodeId: 'n', host: linux }),
  }
  const how: Driver['how'] = { mounts: 'real', hung: '' }
  const served: Awaited<ReturnType<typeof serveOnSocket>>[] = []
  const serve = async () => {
    const each = await serveOnSocket(socket, csiServices, (method, bytes, stop) =>
      method.name === how.hung ? new Promise(() => {}) : handleUnary(services[how.mounts], method, bytes, stop),
    )
    served.push(each)
    return each
  }
  try {
    await using server = await startServer(['--csi-driver', `${modelDriverName}=${socket}`])
    await act({ ...(await commandsOf(server.kubeconfig)), socket, serve, how })
  } finally {
    for (const each of served) each.kill()
    rmSync(directory, { recursive: true, force: true })
  }
}

interface Driver {
  readonly socket: string
  serve(): ReturnType<typeof serveOnSocket>
  readonly how: { mounts: 'alone' | 'real'; hung: string }
}

test('a driver that is not there, is killed, comes back, and hangs', { skip, timeout: 120_000 }, () =>
  withDriver(async ({ apply, ask, cause, hawser, socket, serve, how }) => {
    await apply(storageClass, claim('early'))
    await cause('pvc/early', 'driverUnavailable')
    assert.ok((await ask('pvc/early')).blocked?.sentence.includes(socket), 'the socket is named')

    const served = await serve()
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

    await serve()
    await cause('pvc/late', undefined)

    how.hung = 'CreateVolume'
    const hungAt = Date.now()
    await apply(claim('stuck'))
    await cause('pvc/stuck', 'driverTimeout')
    const stuck = (await ask('pvc/stuck')).blocked
    assert.match(stuck?.sentence ?? '', /did not answer CreateVolume in time/)
    assert.ok(Math.abs(Date.parse(stuck?.since ?? '') - hungAt) < 3_000, `since ${stuck?.since}`)
    how.hung = ''
    await cause('pvc/stuck', undefined)
  }),
)

test('a driver that mounts nothing, and one that is away while a pod is deleted', { skip, timeout: 120_000 }, () =>
  withDriver(async ({ apply, ask, cause, hawser, socket, serve, how }) => {
    how.mounts = 'alone'
    const served = await serve()
    await apply(storageClass, claim('data'), podOf('web', 'data'))
    await cause('pod/web', 'callWithoutEffect')
    const idle = (await ask('pod/web')).blocked
    assert.match(idle?.sentence ?? '', /answered OK to NodePublishVolume, but the node sees no effect/)
    assert.match(idle?.error?.message ?? '', /nothing is mounted at .*\/mount/)
    how.mounts = 'real'
    await until('the pod runs', async () => (await ask('pod/web')).verdict === 'healthy', 60_000)

    served.kill()
    rmSync(socket, { force: true })
    assert.equal((await hawser(['delete', 'pod', 'web', '--yes', '--no-wait'])).code, 0)
    await cause('pod/web', 'driverUnavailable')
    // The node's back-off has grown to 16 seconds or more by then.
    await new Promise((resolve) => void setTimeout(resolve, 20_000))
    const isGone = async () => (await hawser(['get', 'pod', 'web'])).code === 3
    assert.equal(await isGone(), false)
    await serve()
    const returnedAt = performance.now()
    await until('the pod is gone', isGone, 20_000)
    const tookMs = performance.now() - returnedAt
    // A second for the driver, and up to two for the question itself on a busy machine.
    assert.ok(tookMs < 3_000, `gone ${tookMs} ms after the driver's return`)
  }),
)
