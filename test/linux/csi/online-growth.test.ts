// A volume grows under a running pod: xfs, because growing ext4 online needs a capability that test machines lack.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { launcher, runProgram, startServer } from '../../kit/server-process.ts'

const skip =
  process.getuid?.() !== 0
    ? 'needs root'
    : existsSync('/usr/sbin/mkfs.xfs') || existsSync('/sbin/mkfs.xfs')
      ? false
      : 'mkfs.xfs is missing'
if (skip) console.log(`# LOUDLY SKIPPED: online growth on xfs: ${skip}`)

const manifests = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: xfs}
provisioner: local.hawser.dev
volumeBindingMode: Immediate
allowVolumeExpansion: true
parameters: {csi.storage.k8s.io/fstype: xfs}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: xfs, resources: {requests: {storage: 320Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  restartPolicy: Never
  containers:
    - name: c
      image: none
      command: [sh, -c, 'echo kept > /data/file; while true; do df -m /data | tail -1; sleep 0.2; done']
      volumeMounts: [{name: d, mountPath: /data}]
  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]
`

test('a claim grows while its pod runs, and the pod sees it (NEX-1, EXN-3)', { skip, timeout: 120_000 }, async () => {
  await using server = await startServer(['--node-name', 'n1'])
  const hawser = async (args: readonly string[], input = '') => {
    const answer = await runProgram(launcher, args, { env: { KUBECONFIG: server.kubeconfig }, input })
    assert.equal(answer.code, 0, `${args.join(' ')}: ${answer.stderr}`)
    return answer.stdout
  }
  const megabytes = async () =>
    Number(/(\d+)/.exec((await hawser(['logs', 'writer'])).trim().split('\n').at(-1)!.replace(/^\S+/, ''))?.[1])
  await hawser(['apply', '-f', '-'], manifests)
  const small = await eventually(async () =>
    (await hawser(['get', 'pods'])).includes('Running') ? megabytes() : undefined,
  )
  assert.ok(small < 320, `${small}`)
  await hawser(['volume', 'resize', 'data', '512Mi'])
  const large = await eventually(async () => ((await megabytes()) > 400 ? megabytes() : undefined))
  assert.ok(large > 400 && large <= 512, `${large}`)
  await hawser(['delete', 'pod', 'writer'])
  await hawser(['delete', 'pvc', 'data', '--yes'])
  await eventually(async () =>
    readFileSync('/proc/self/mountinfo', 'utf8').includes(`${server.dataDirectory}/node/p`) ? undefined : true,
  )
})

async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (const end = performance.now() + 30_000; performance.now() < end; await sleep(200)) {
    const answer = await ask().catch(() => undefined)
    if (answer !== undefined && !Number.isNaN(answer)) return answer
  }
  throw new Error('not within 30 s')
}
