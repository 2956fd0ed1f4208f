// Who can read the secrets that a plugin hands to a program? Not every process of the machine: the stand-in for the program looks
// at its own /proc/PID/cmdline, as any other process could (A14). Needs root for open-iscsi's records.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import type { Client } from '../../src/client/client.ts'
import { startDriver } from '../../src/plugins/flex-volume/driver-call.ts'
import { mountParameters } from '../../src/plugins/flex-volume/options.ts'
import { writeRecord } from '../../src/plugins/iscsi/records.ts'
import { inline, pod } from '../kit/plugin-fixture.ts'

const signal = new AbortController().signal
const password = Buffer.from('hunter2').toString('base64')

test('the secrets of a FlexVolume come on the stdin of its driver, unless its volume says otherwise', async () => {
  const place = mkdtempSync(join(tmpdir(), 'hawser-flex-'))
  await using host = createLinuxHost()
  try {
    const executable = join(place, 'disk')
    const script = `#!/bin/sh\ntr '\\0' ' ' < /proc/$$/cmdline > ${place}/cmdline\ncat > ${place}/stdin\necho '{"status":"Success"}'\n`
    writeFileSync(executable, script, { mode: 0o755 })
    const driver = await startDriver(host, { name: 'acme/disk', executable }, signal)
    const secret = { metadata: { name: 's' }, type: 'acme/disk', data: { password } }
    const client = { get: async () => secret } as unknown as Client
    const mountWith = async (options: Readonly<Record<string, string>>) => {
      const spec = inline({ flexVolume: { driver: 'acme/disk', secretRef: { name: 's' }, options } })
      const about = { pod: pod(), fsGroup: undefined }
      await driver.call('mount', await mountParameters(client, spec, '/target', about, signal), signal)
      return {
        cmdline: readFileSync(join(place, 'cmdline'), 'utf8'),
        stdin: readFileSync(join(place, 'stdin'), 'utf8'),
      }
    }
    const usual = await mountWith({})
    assert.match(usual.cmdline, /mount \/target \{/)
    assert.ok(!usual.cmdline.includes(password), 'not in /proc/PID/cmdline')
    assert.equal((JSON.parse(usual.stdin) as Record<string, string>)['kubernetes.io/secret/password'], password)
    const asked = await mountWith({ 'hawser.dev/secretsInArguments': 'true' })
    assert.ok(asked.cmdline.includes(password), 'as in Kubernetes')
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
})

const noTool = spawnSync('iscsiadm', ['--version']).status !== 0 && 'iscsiadm is not installed'

test('open-iscsi takes a password from its record as if iscsiadm had written it', { skip: noTool }, async () => {
  const iqn = `iqn.2026-01.dev.hawser:record-${process.pid}`
  const portal = '127.0.0.1:3260'
  const iscsiadm = (...words: string[]) =>
    execFileSync('iscsiadm', ['-m', 'node', '-T', iqn, '-p', portal, ...words], {
      stdio: ['ignore', 'pipe', 'ignore'],
    }).toString()
  await using host = createLinuxHost()
  for (const group of ['', ',1']) {
    execFileSync('iscsiadm', ['-m', 'node', '-o', 'new', '-T', iqn, '-p', `${portal}${group}`, '-I', 'default'], {
      stdio: 'ignore',
    })
    try {
      const settings = { 'node.session.auth.password': 'hunter2 #"x', 'node.session.auth.password_in': 'two' }
      const record = { kind: 'node', portal, iqn, interface: 'default' } as const
      await writeRecord(host.files, record, { 'node.session.auth.password': 'old' }, signal)
      await writeRecord(host.files, record, settings, signal)
      iscsiadm('-o', 'update', '-n', 'node.session.auth.username', '-v', 'user')
      const shown = iscsiadm('-o', 'show', '-S')
      assert.match(shown, /^node\.session\.auth\.password = hunter2 #"x$/m)
      assert.match(shown, /^node\.session\.auth\.password_in = two$/m)
      const path = `/etc/iscsi/nodes/${iqn}/127.0.0.1,3260${group === '' ? '' : ',1/default'}`
      assert.equal(statSync(path).mode & 0o777, 0o600)
    } finally {
      iscsiadm('-o', 'delete')
    }
  }
})
