// Does a search of the audit log find what is asked for, in every file, and nothing else?
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { AuditFilter } from './audit-search.ts'
import { searchAudit } from './audit-search.ts'

const place = mkdtempSync(join(tmpdir(), 'hawser-audit-'))
after(() => rmSync(place, { recursive: true, force: true }))

const line = (id: string, more: object) =>
  `${JSON.stringify({ time: '2026-01-02T00:00:00Z', id, user: 'admin', source: '192.0.2.7', verb: 'get', resource: 'pods', code: 200, ms: 1, ...more })}\n`
const old = { time: '2026-01-01T00:00:00Z' }
const secret = { resource: 'secrets', namespace: 'default', name: 's' }
writeFileSync(join(place, 'audit.log.1'), line('oldest', { ...old, user: 'alice' }))
writeFileSync(
  join(place, 'audit.log'),
  line('secret', secret) +
    line('refused', { ...secret, user: 'bob', code: 403 }) +
    line('as', { impersonatedUser: 'bob' }) +
    line('claim', { resource: 'storageclasses.storage.k8s.io', verb: 'delete', source: '192.0.2.8' }) +
    '{"time":"20',
)
writeFileSync(join(place, 'node-audit.log'), line('exec', { node: 'n1', subresource: 'exec', code: 101 }))

async function found(filter: AuditFilter): Promise<string[]> {
  const ids: string[] = []
  for await (const each of searchAudit(place, filter)) ids.push((each as unknown as { id: string }).id)
  return ids
}

const rows: readonly [AuditFilter, readonly string[]][] = [
  [{}, ['oldest', 'secret', 'refused', 'as', 'claim', 'exec']],
  [{ user: 'bob' }, ['refused', 'as']],
  [{ resource: 'secrets', name: 's' }, ['secret', 'refused']],
  [{ name: 'default/s', outcome: 'ok' }, ['secret']],
  [{ name: 'other/s' }, []],
  [{ resource: 'storageclasses' }, ['claim']],
  [{ verb: 'exec' }, ['exec']],
  [{ verb: 'delete' }, ['claim']],
  [{ outcome: 'refused' }, ['refused']],
  [{ outcome: 'failed' }, ['refused']],
  [{ outcome: '101' }, ['exec']],
  [{ source: '192.0.2.8' }, ['claim']],
  [{ since: Date.parse('2026-01-01T12:00:00Z'), user: 'alice' }, []],
]
for (const [filter, ids] of rows) {
  test(`asked for ${JSON.stringify(filter)}`, async () => assert.deepEqual(await found(filter), ids))
}
