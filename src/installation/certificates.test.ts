// Do certificates count whatever happens to the clock? Each is asked at the time of the server's clock, and at the right time.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { loadNodeCertificate, loadServerCertificates } from './certificates.ts'

const right = Date.parse('2026-11-18T12:00:00Z')
const hour = 3_600_000
const day = 24 * hour
const jumps: readonly (readonly [string, number])[] = [
  ['an hour ahead', right + hour],
  ['an hour behind', right - hour],
  ['ten years ahead', right + 3_652 * day],
  ['in 1970', 60_000],
]

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'hawser-certificates-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** What a client sees: every certificate of the server and the administrator, and the authority. */
async function load(path: string, now: number) {
  const { certificate, authority } = await loadServerCertificates(path, ['localhost'], now)
  const admin = readFileSync(join(path, 'admin.crt'), 'utf8')
  return {
    server: new X509Certificate(certificate),
    admin: new X509Certificate(admin),
    authority: new X509Certificate(authority),
  }
}

function assertGood({ server, admin, authority }: Awaited<ReturnType<typeof load>>, time: number): void {
  for (const each of [server, admin, authority]) {
    const when = `${each.subject} counts from ${each.validFrom} to ${each.validTo}, asked for ${new Date(time).toISOString()}`
    assert.ok(each.validFromDate.getTime() <= time && time < each.validToDate.getTime(), when)
    assert.ok(each.checkIssued(authority) && each.verify(authority.publicKey))
  }
}

for (const [name, wrong] of jumps) {
  test(`made at the right time, then the clock is ${name}: good for the server and for machines with the right time`, async (t) => {
    const path = directory(t)
    await load(path, right)
    const jumped = await load(path, wrong)
    assertGood(jumped, wrong)
    assertGood(jumped, right)
    assertGood(await load(path, right), right)
  })

  test(`made while the clock is ${name}: good once it is right, and the authority has the same key`, async (t) => {
    const path = directory(t)
    const first = await load(path, wrong)
    assertGood(first, wrong)
    const corrected = await load(path, right)
    assertGood(corrected, right)
    assert.ok(corrected.authority.publicKey.equals(first.authority.publicKey))
    assertGood({ ...corrected, authority: first.authority }, right)
  })

  test(`a node's own certificate is good when the clock is ${name}`, async (t) => {
    const path = directory(t)
    await loadNodeCertificate(path, ['n1'], right)
    const { certificate } = await loadNodeCertificate(path, ['n1'], wrong)
    const { validFromDate, validToDate } = new X509Certificate(certificate)
    assert.ok(validFromDate.getTime() <= wrong && wrong < validToDate.getTime())
  })
}

test('a certificate is made anew when less than half of its time is left, or its names change, and not before', async (t) => {
  const path = directory(t)
  const { server } = await load(path, right)
  const again = async (now: number) => (await load(path, now)).server.fingerprint256 !== server.fingerprint256
  assert.deepEqual([await again(right + 180 * day), await again(right + 184 * day)], [false, true])
  const named = await loadServerCertificates(path, ['localhost', 'other'], right + 184 * day)
  assert.match(new X509Certificate(named.certificate).subjectAltName ?? '', /DNS:other/)
})
