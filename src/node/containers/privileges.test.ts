import assert from 'node:assert/strict'
import test from 'node:test'
import type { Container } from '../../api/generated/types.ts'
import { privilegesFor } from './privileges.ts'

const of = (securityContext: Container['securityContext']) =>
  privilegesFor({ name: 'c', image: 'i', ...(securityContext ? { securityContext } : {}) })
const has = (securityContext: Container['securityContext'], ...names: string[]) =>
  names.map((name) => of(securityContext).capabilities?.includes(name))

test('capabilities are the usual ones, less what is dropped, plus what is added; privileged means all (A8)', () => {
  assert.deepEqual(has(undefined, 'chown', 'net_bind_service', 'sys_admin', 'mknod'), [true, true, false, false])
  assert.deepEqual(of({ capabilities: { drop: ['ALL'] } }).capabilities, [])
  assert.deepEqual(of({ capabilities: { drop: ['ALL'], add: ['CAP_NET_ADMIN', 'kill'] } }).capabilities, [
    'kill',
    'net_admin',
  ])
  assert.deepEqual(has({ capabilities: { drop: ['CHOWN'], add: ['SYS_TIME'] } }, 'chown', 'sys_time', 'kill'), [
    false,
    true,
    true,
  ])
  assert.deepEqual(has({ capabilities: { add: ['ALL'], drop: ['KILL'] } }, 'sys_admin', 'kill'), [true, false])
  assert.deepEqual(of({ privileged: true, capabilities: { drop: ['ALL'] } }), {})
  assert.equal(of({ allowPrivilegeEscalation: false }).noNewPrivileges, true)
  assert.throws(() => of({ capabilities: { add: ['FLY'] } }), /container c: unknown capability FLY/)
})
