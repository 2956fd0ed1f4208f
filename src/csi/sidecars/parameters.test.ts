// Class parameters: what is the driver's, what is ours (SIDE-9, SIDE-10).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolumeClaim } from '../../api/generated/types.ts'
import { driverParameters, resolveSecret, splitParameters } from './parameters.ts'

const prefix = 'csi.storage.k8s.io/'

test('reserved keys are consumed, deprecated ones are read and passed on (SIDE-9)', () => {
  const split = splitParameters({
    tier: 'fast',
    [`${prefix}fstype`]: 'xfs',
    [`${prefix}node-stage-secret-name`]: 'stage',
    [`${prefix}node-stage-secret-namespace`]: 'ns',
    [`${prefix}secret-name`]: 'all',
    [`${prefix}secret-namespace`]: 'ns',
    csiControllerPublishSecretName: 'old',
    csiControllerPublishSecretNamespace: 'ns',
  })
  assert.deepEqual(split.driver, {
    tier: 'fast',
    csiControllerPublishSecretName: 'old',
    csiControllerPublishSecretNamespace: 'ns',
  })
  assert.equal(split.fsType, 'xfs')
  assert.equal(split.secrets.nodeStage?.name, 'stage')
  assert.equal(split.secrets.controllerPublish?.name, 'old')
  assert.equal(split.secrets.provisioner?.name, 'all')
  assert.equal(splitParameters({ FsType: 'ext4' }).fsType, 'ext4')
})

test('unknown reserved keys, half pairs and both forms at once are refused (SIDE-9)', () => {
  const refused: readonly Record<string, string>[] = [
    { [`${prefix}strange`]: 'x' },
    { [`${prefix}provisioner-secret-name`]: 'x' },
    { [`${prefix}provisioner-secret-name`]: 'x', [`${prefix}provisioner-secret-namespace`]: '' },
    { fstype: 'ext4', [`${prefix}fstype`]: 'ext4' },
    {
      csiNodeStageSecretName: 'a',
      csiNodeStageSecretNamespace: 'b',
      [`${prefix}node-stage-secret-name`]: 'a',
      [`${prefix}node-stage-secret-namespace`]: 'b',
    },
  ]
  for (const parameters of refused) assert.throws(() => splitParameters(parameters), JSON.stringify(parameters))
  assert.deepEqual(driverParameters({ a: 'b', [`${prefix}strange`]: 'x' }), { a: 'b' })
})

test('names may speak of the claim, namespaces may not (SIDE-10)', () => {
  const claim: PersistentVolumeClaim = {
    metadata: { name: 'c', namespace: 'ns', annotations: { team: 'blue' } },
    spec: {},
  }
  const facts = { volumeName: 'pvc-1', claim }
  const resolve = (name: string, namespace = 'kube-system') => resolveSecret({ name, namespace }, facts)
  assert.deepEqual(resolve("${pvc.name}-${pvc.annotations['team']}", '${pvc.namespace}'), {
    name: 'c-blue',
    namespace: 'ns',
  })
  assert.deepEqual(resolve('${pv.name}'), { name: 'pvc-1', namespace: 'kube-system' })
  assert.throws(() => resolve('${pvc.uid}'), /invalid tokens/)
  assert.throws(() => resolve('x', '${pvc.name}'), /invalid tokens/)
  assert.throws(() => resolve('Not_A_Name'), /not a valid secret name/)
  assert.equal(resolveSecret(undefined, facts), undefined)
})
