// Do our errors read like Kubernetes'? Texts and details of every constructor, and the round trip over the wire.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from './kinds.ts'
import {
  alreadyExists,
  badRequest,
  conflict,
  expired,
  forbidden,
  generateNameConflict,
  invalid,
  isConflict,
  isNotFound,
  isTooOld,
  methodNotSupported,
  notFound,
  StatusError,
  tooManyRequests,
  unauthorized,
} from './status-error.ts'

const table: readonly (readonly [StatusError, number, string, string])[] = [
  [notFound(kinds.PersistentVolumeClaim, 'x'), 404, 'NotFound', 'persistentvolumeclaims "x" not found'],
  [notFound(kinds.StorageClass, 'x'), 404, 'NotFound', 'storageclasses.storage.k8s.io "x" not found'],
  [alreadyExists(kinds.Pod, 'x'), 409, 'AlreadyExists', 'pods "x" already exists'],
  [
    generateNameConflict(kinds.Pod, 'x'),
    409,
    'AlreadyExists',
    'pods "x" already exists, the server was not able to generate a unique name for the object',
  ],
  [
    conflict(kinds.PersistentVolume, 'x'),
    409,
    'Conflict',
    'Operation cannot be fulfilled on persistentvolumes "x": the object has been modified; please apply your changes to the latest version and try again',
  ],
  [forbidden(kinds.Secret, 'x', 'no'), 403, 'Forbidden', 'secrets "x" is forbidden: no'],
  [forbidden(kinds.Secret, '', 'no'), 403, 'Forbidden', 'secrets is forbidden: no'],
  [forbidden({ group: '', plural: '' }, '', 'no'), 403, 'Forbidden', 'forbidden: no'],
  [unauthorized(), 401, 'Unauthorized', 'Unauthorized'],
  [badRequest('what'), 400, 'BadRequest', 'what'],
  [expired('too old'), 410, 'Expired', 'too old'],
  [tooManyRequests('wait', 3), 429, 'TooManyRequests', 'Too many requests: wait'],
  [
    methodNotSupported(kinds.Namespace, 'deletecollection'),
    405,
    'MethodNotAllowed',
    'deletecollection is not supported on resources of kind "namespaces"',
  ],
  [
    invalid(kinds.StorageClass, 'x', [], 'provisioner: Required value'),
    422,
    'Invalid',
    'StorageClass.storage.k8s.io "x" is invalid: provisioner: Required value',
  ],
]

for (const [error, code, reason, message] of table) {
  test(`${code} ${message}`, () => {
    assert.deepEqual([error.code, error.reason, error.message], [code, reason, message])
  })
}

test('details name the resource, its group and the object', () => {
  assert.deepEqual(notFound(kinds.StorageClass, 'x').toStatus(), {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'storageclasses.storage.k8s.io "x" not found',
    reason: 'NotFound',
    details: { name: 'x', group: 'storage.k8s.io', kind: 'storageclasses' },
    code: 404,
  })
})

test('a status read from the wire is the same error again', () => {
  const read = StatusError.fromStatus(conflict(kinds.Pod, 'x').toStatus(), 409)
  assert.equal(isConflict(read), true)
  assert.deepEqual(read.toStatus(), conflict(kinds.Pod, 'x').toStatus())
})

test('an answer without a reason is judged by its code', () => {
  assert.equal(isNotFound(StatusError.fromStatus({}, 404)), true)
  assert.equal(isTooOld(StatusError.fromStatus({}, 410)), true)
  assert.equal(isNotFound(new Error('not found')), false)
})
