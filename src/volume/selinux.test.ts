// Labels of files from the options of processes, and who may have them: VM-12, MOUNT-22.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, SELinuxOptions } from '../api/generated/types.ts'
import { contextOption, fileLabel, labelsInPod, shortAccessMode, takesMountLabel } from './selinux.ts'

const policy = 'system_u:object_r:container_file_t:s0'
const volume = (...accessModes: ('ReadWriteOnce' | 'ReadOnlyMany' | 'ReadWriteMany' | 'ReadWriteOncePod')[]) => ({
  metadata: { name: 'v' },
  spec: { accessModes },
})

test('user and level are the process’s, role and type the policy’s (VM-12)', () => {
  const table: readonly [SELinuxOptions, string][] = [
    [{ level: 's0:c10,c0' }, 'system_u:object_r:container_file_t:s0:c10,c0'],
    [{ user: 'u', role: 'r', type: 'container_t', level: 's1' }, 'u:object_r:container_file_t:s1'],
    [{ type: 'spc_t' }, policy],
  ]
  for (const [options, label] of table) assert.equal(fileLabel(policy, options), label)
})

test('every container that mounts the volume counts, its own options before the pod’s (VM-12)', () => {
  const mounts = (name: string, seLinuxOptions?: SELinuxOptions) => ({
    name: 'c',
    volumeMounts: [{ name, mountPath: '/' }],
    ...(seLinuxOptions ? { securityContext: { seLinuxOptions } } : {}),
  })
  const pod = (own: SELinuxOptions | undefined, ...containers: ReturnType<typeof mounts>[]): Pod => ({
    metadata: { name: 'p' },
    spec: { containers, ...(own ? { securityContext: { seLinuxOptions: own } } : {}) },
  })
  const [a, b] = [{ level: 's0:c1' }, { level: 's0:c2' }]
  const labels = (given: Pod) => labelsInPod(given, 'v', policy).map((label) => label.split(':').at(-1))
  assert.deepEqual(labels(pod(a, mounts('v'), mounts('v'))), ['c1'])
  assert.deepEqual(labels(pod(a, mounts('v'), mounts('v', b))), ['c1', 'c2'])
  assert.deepEqual(labels(pod(a, mounts('other'), mounts('v', b))), ['c2'])
  assert.deepEqual(labels(pod(undefined, mounts('v'))), [])
  assert.deepEqual(labels(pod({}, mounts('v'))), [])
})

test('only a volume of one pod is mounted with a label; the widest mode names it (VM-12, MEA-11)', () => {
  assert.equal(takesMountLabel(volume('ReadWriteOncePod')), true)
  assert.equal(takesMountLabel(volume('ReadWriteOncePod', 'ReadWriteOnce')), false)
  assert.equal(takesMountLabel(undefined), false)
  const named = [volume('ReadWriteOnce', 'ReadWriteMany'), volume('ReadWriteOncePod'), undefined].map(shortAccessMode)
  assert.deepEqual(named, ['RWX', 'RWOP', 'inline'])
})

test('the option is quoted, for levels hold commas (MOUNT-22)', () => {
  assert.equal(contextOption('u:r:t:s0:c1,c2'), 'context="u:r:t:s0:c1,c2"')
})
