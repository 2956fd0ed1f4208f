// Does `hawser why` name the right cause on a real node? Pods and claims that cannot work, one command each, exit code 4.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cause } from '../../src/why/causes.ts'
import { launcher, runProgram, startServer } from '../kit/server-process.ts'

const container = (more: object) => ({ name: 'c', image: 'none', command: ['sleep', '100'], ...more })
const mounts = { volumeMounts: [{ name: 'v', mountPath: '/v' }] }
const pod = (name: string, spec: object) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec })
const claim = (name: string, storageClassName: string | undefined) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '64Mi' } }, storageClassName },
})
const withVolume = (name: string, volume: object, more: object = {}) =>
  pod(name, { containers: [container(mounts)], volumes: [{ name: 'v', ...volume }], ...more })

const objects = [
  claim('delayed', undefined),
  claim('unmade', 'nowhere'),
  claim('static', ''),
  withVolume('no-claim', { persistentVolumeClaim: { claimName: 'nothing' } }),
  withVolume('no-config', { configMap: { name: 'nothing' } }),
  withVolume('no-secret', { secret: { secretName: 'nothing' } }),
  withVolume('no-place', { persistentVolumeClaim: { claimName: 'delayed' } }, { nodeSelector: { disk: 'ssd' } }),
  withVolume('no-path', { hostPath: { path: '/does/not/exist', type: 'Directory' } }),
  pod('gated', { containers: [container({})], schedulingGates: [{ name: 'example.com/wait' }] }),
  pod('crashing', { containers: [container({ command: ['false'] })] }),
  pod('failing', { restartPolicy: 'Never', containers: [container({ command: ['false'] })] }),
  pod('elsewhere', { nodeName: 'nowhere', containers: [container({})] }),
]

const expected: Readonly<Record<string, Cause>> = {
  'pvc/delayed': 'noNodeFits',
  'pvc/unmade': 'classMissing',
  'pvc/static': 'noVolumeFits',
  'pod/no-claim': 'claimMissing',
  'pod/no-config': 'configMissing',
  'pod/no-secret': 'configMissing',
  'pod/no-place': 'noNodeFits',
  'pod/no-path': 'pathUnfit',
  'pod/gated': 'schedulingGated',
  'pod/crashing': 'crashLoop',
  'pod/failing': 'podFailed',
  'pod/elsewhere': 'nodeGone',
}

test(
  'each pod and claim that cannot work is explained',
  { skip: process.getuid?.() !== 0, timeout: 120_000 },
  async () => {
    await using server = await startServer([])
    const env = { KUBECONFIG: server.kubeconfig }
    const hawser = (...args: string[]) => runProgram(launcher, args, { env })
    const input = objects.map((object) => JSON.stringify(object)).join('\n---\n')
    const applied = await runProgram(launcher, ['apply', '-f', '-'], { env, input })
    assert.equal(applied.code, 0, applied.stderr)
    await new Promise((resolve) => setTimeout(resolve, 6_000)) // two crashes, and the history's own pace
    const found: Record<string, string> = {}
    for (const subject of Object.keys(expected)) {
      const { stdout, stderr, code } = await hawser('why', subject, '-o', 'json')
      assert.equal(code, 4, `${subject}: ${stdout}${stderr}`)
      found[subject] = (JSON.parse(stdout) as { blocked: { cause: string } }).blocked.cause
    }
    assert.deepEqual(found, expected)
    // The pod of a node that does not exist has nobody to end it, and nothing that runs.
    const ours = objects.filter(({ kind, metadata }) => kind === 'Pod' && metadata.name !== 'elsewhere')
    await hawser('delete', 'pods', ...ours.map(({ metadata }) => metadata.name), '--yes')
  },
)

test('why refuses what it cannot explain, and says what is missing', { skip: process.getuid?.() !== 0 }, async () => {
  await using server = await startServer(['--bare'])
  const env = { KUBECONFIG: server.kubeconfig }
  const missing = await runProgram(launcher, ['why', 'pvc/nothing'], { env })
  assert.deepEqual([missing.code, missing.stdout], [3, ''])
  assert.match(missing.stderr, /persistentvolumeclaims "nothing" not found/)
  const wrong = await runProgram(launcher, ['why', 'secret/key'], { env })
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /why explains pods, claims, volumes, attachments, snapshots, attributes classes and nodes/)
})
