// Does the program take code and settings only from where nobody else can write (docs/safety.md)? As a user starts it.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import { openDataDirectory } from '../../src/installation/data-directory.ts'
import { openNodeIdentity } from '../../src/installation/node-identity.ts'
import { requireTrustedUrl } from '../../src/installation/trusted.ts'
import { hawser, isRoot } from '../kit/command-line.ts'
import { launcher } from '../kit/server-process.ts'

const stranger = 65_533
const { signal } = new AbortController()
let place = ''
before(() => void (place = mkdtempSync(join(tmpdir(), 'hawser-trust-'))))
after(() => rmSync(place, { recursive: true, force: true }))

/** A new directory; `mode` is what others may do there. */
function makeDirectory(name: string, mode = 0o755): string {
  const path = join(place, name)
  mkdirSync(path, { recursive: true })
  chmodSync(path, mode)
  return path
}

function makeFile(path: string, text: string, mode = 0o600): string {
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

const refusal = (path: string, mode: string) =>
  new RegExp(`is not used, for others could change it: ${path} belongs to user \\d+ and has mode ${mode}`)

test('a data directory in which others can write is refused before anything is made in it', () => {
  const open = makeDirectory('data-open', 0o777)
  assert.throws(() => openDataDirectory(open, { store: 'memory' }), refusal(open, '0777'))
  assert.equal(existsSync(join(open, 'admin.token')), false)
  const below = join(makeDirectory('data-parent', 0o775), 'data')
  assert.throws(() => openDataDirectory(below, { store: 'memory' }), refusal(join(place, 'data-parent'), '0775'))
})

test('a key or a store that others can write to is not used', () => {
  for (const name of ['token.key', 'admin.token', 'store.db', 'layout-version']) {
    const data = makeDirectory(`data-${name}`, 0o711)
    makeFile(join(data, name), '1', 0o666)
    assert.throws(() => openDataDirectory(data, { store: 'memory' }), refusal(join(data, name), '0666'), name)
  }
})

test('a node root in which others can write is refused', async () => {
  await using host = createLinuxHost()
  const root = makeDirectory('root-open', 0o777)
  const opening = openNodeIdentity({ dataDirectory: makeDirectory('data'), node: { name: 'n', root }, host }, signal)
  await assert.rejects(opening, refusal(root, '0777'))
})

test('a kubeconfig, and a file that it names, is not used if others can write it', async () => {
  const directory = makeDirectory('kube')
  const file = makeFile(join(directory, 'open'), 'x', 0o646)
  const answer = await hawser(['get', 'pods', '--kubeconfig', file])
  assert.match(answer.err, refusal(file, '0646'))
  assert.match(answer.err, /chmod go-w /)
  assert.notEqual(answer.code, 0)
  const authority = makeFile(join(directory, 'ca.crt'), 'x', 0o666)
  const text = JSON.stringify({
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
    clusters: [{ name: 'k', cluster: { server: 'https://127.0.0.1:1', 'certificate-authority': 'ca.crt' } }],
  })
  const named = await hawser(['get', 'pods', '--kubeconfig', makeFile(join(directory, 'named'), text)])
  assert.match(named.err, refusal(authority, '0666'))
})

test('a token file is not used if others can write it', async () => {
  const file = makeFile(join(makeDirectory('tokens', 0o777), 'token'), 'abcdef.0123456789abcdef')
  const join_ = ['--join', 'https://127.0.0.1:1', '--token-file', file, '--ca-hash', 'sha256:00']
  const answer = await hawser(['agent', '--data-dir', makeDirectory('agent'), ...join_])
  assert.match(answer.err, refusal(join(place, 'tokens'), '0777'))
})

test(
  "somebody else's file and somebody else's link are not used",
  { skip: !isRoot && 'needs root to give files away' },
  async () => {
    const directory = makeDirectory('strangers', 0o1777)
    const file = makeFile(join(directory, 'theirs'), 'x')
    chownSync(file, stranger, stranger)
    assert.match((await hawser(['get', 'pods', '--kubeconfig', file])).err, /theirs belongs to user 65533/)
    const link = join(directory, 'link')
    symlinkSync(makeFile(join(makeDirectory('kube-good'), 'config'), 'x'), link)
    spawnSync('chown', ['-h', `${stranger}`, link])
    assert.match((await hawser(['get', 'pods', '--kubeconfig', link])).err, /link belongs to user 65533/)
  },
)

test('a manifest URL is fetched over https, or from this machine', () => {
  for (const url of ['https://example.com/pod', 'http://127.0.0.1:80/pod', 'http://localhost/pod', 'http://[::1]:1/p'])
    requireTrustedUrl(url)
  for (const url of ['http://example.com/pod', 'http://10.0.0.1/pod', 'ftp://example.com/pod'])
    assert.throws(() => requireTrustedUrl(url), /it is not https/, url)
})

test('programs are not looked for where others could put them', async () => {
  const open = makeDirectory('tools', 0o777)
  const good = makeDirectory('good-tools')
  for (const directory of [open, good]) makeFile(join(directory, 'mount'), `#!/bin/sh\necho ${directory}\n`, 0o755)
  const searchPath = `.::${open}:tools:${good}:/usr/bin:/bin`
  await using host = createLinuxHost({ searchPath })
  const { stdout } = await host.run({ argv: ['mount'], timeoutMs: 10_000 }, signal)
  assert.equal(stdout.trim(), good)
  const { stdout: path } = await host.run({ argv: ['/bin/sh', '-c', 'echo $PATH'], timeoutMs: 10_000 }, signal)
  assert.equal(path.trim(), `${good}:/usr/bin:/bin`, 'what our programs start is looked for there, too')
})

test('nothing is loaded into the program from the environment', () => {
  const proof = join(makeDirectory('environment'), 'proof')
  const script = makeFile(
    join(place, 'environment/inject.cjs'),
    `require('fs').writeFileSync(${JSON.stringify(proof)}, '')`,
  )
  const settings = {
    NODE_OPTIONS: `--require=${script}`,
    NODE_PATH: place,
    NODE_EXTRA_CA_CERTS: join(place, 'environment/nothing'),
    NODE_TLS_REJECT_UNAUTHORIZED: '0',
    OPENSSL_CONF: join(place, 'environment/nothing'),
    LD_LIBRARY_PATH: place,
  }
  const { status, stderr } = spawnSync(launcher, ['--version'], {
    env: { ...process.env, ...settings },
    encoding: 'utf8',
  })
  assert.deepEqual({ status, stderr, loaded: existsSync(proof) }, { status: 0, stderr: '', loaded: false })
})
