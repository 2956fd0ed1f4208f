// Does the CSI plugin leave on disk what a kubelet leaves? The recorded layouts of node-conformance that need a CSI
// driver, with a driver that looks like the one they were recorded with.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'
import { startCsiCluster } from '../../kit/real-cluster.ts'

const suite = fileURLToPath(new URL('../../recorded/node-conformance/suite', import.meta.url))
const skip =
  process.getuid?.() !== 0 ? 'needs root' : existsSync(join(suite, 'run.mjs')) ? false : 'the suite is not here'
const driverName = 'hostpath.csi.k8s.io'
/** These wait for a message that says `failed to process volumes` since 1.29; the layouts were recorded from 1.26. */
const newerWording = ['csi-generic-ephemeral-foreign-claim', 'csi-claim-not-found', 'csi-mode-mismatch']

test(
  'the recorded layouts of CSI volumes are ours, to the byte (CSI-4 … CSI-8, CSI-50 … CSI-54)',
  { skip, timeout: 180_000 },
  async () => {
    await using cluster = await startCsiCluster({ mode: 'local', others: startDriver })
    const { client, directory } = cluster
    await client.create('CSIDriver', {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name: driverName },
      spec: {
        attachRequired: true,
        podInfoOnMount: true,
        fsGroupPolicy: 'File',
        volumeLifecycleModes: ['Persistent', 'Ephemeral'],
      },
    })
    await client.create('StorageClass', {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'csi-hostpath' },
      provisioner: driverName,
      reclaimPolicy: 'Delete',
      allowVolumeExpansion: true,
    })
    const runner = [
      ...[
        join(suite, 'run.mjs'),
        '--url',
        cluster.url,
        '--token',
        cluster.token,
        '--node',
        'n1',
        '--root',
        join(directory, 'n1'),
      ],
      ...[
        '--cases',
        join(suite, 'cases'),
        '--compare',
        join(suite, 'expected'),
        '--no-runtime',
        '--scratch',
        join(directory, 'scratch'),
      ],
      ...[
        '--only',
        'csi-*,readonly-claim-fsgroup,life-pod-succeeded,life-deleted-before-attached',
        '--skip',
        newerWording.join(','),
        '--timeout-scale',
        '0.5',
      ],
    ]
    const run = spawn(process.execPath, runner, { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    run.stdout.on('data', (text: Buffer) => void (output += text.toString()))
    await once(run, 'close')
    const summary = /(\d+) passed, (\d+) failed/.exec(output)
    console.log(`# node-conformance with CSI: ${summary?.[0] ?? 'no summary'}`)
    assert.equal(summary?.[2], '0', output)
    assert.ok(Number(summary?.[1]) >= 14, output)
  },
)

function startDriver(directory: string) {
  const socket = join(directory, 'hostpath.sock')
  const argv = [fileURLToPath(new URL('directory-driver.ts', import.meta.url)), socket, join(directory, 'state'), 'n1']
  const driver = spawn(process.execPath, argv, { stdio: 'ignore' })
  return [{ name: driverName, socket, [Symbol.dispose]: () => void driver.kill('SIGKILL') }]
}
