// Does `hawser up --store etcd` work as documented: restart, crash, identity, certificates and passwords?
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { startEtcd } from '../kit/etcd.ts'
import { launcher, runProgram, startServer } from '../kit/server-process.ts'
import type { ServerProcess } from '../kit/server-process.ts'

const etcdArgs = (urls: readonly string[]) => ['--bare', '--store', 'etcd', '--etcd-servers', urls.join(',')]

async function hawser(server: ServerProcess, ...args: readonly string[]) {
  const { code, stdout, stderr } = await runProgram(launcher, [...args, '--kubeconfig', server.kubeconfig])
  assert.equal(code, 0, stderr)
  return stdout
}

const scratchRoot = realpathSync(mkdtempSync(join(tmpdir(), 'hawser-etcd-server-')))
after(() => rmSync(scratchRoot, { recursive: true, force: true }))
const scratch = () => mkdtempSync(join(scratchRoot, 'test-'))

const volumeFile = join(scratchRoot, 'volume.json')
const spec = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/nowhere' } }
writeFileSync(
  volumeFile,
  JSON.stringify({ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'data' }, spec }),
)

test('objects stay in etcd across a stop and a crash, and belong to one data directory at a time', async () => {
  await using etcd = await startEtcd()
  await using server = await startServer(etcdArgs(etcd.urls))
  await hawser(server, 'apply', '-f', volumeFile)
  await server.restart()
  assert.match(await hawser(server, 'get', 'pv'), /data/)
  await server.stop('SIGKILL')
  // The same directory: its lease of before counts as dead, nobody waits for its end.
  const begun = Date.now()
  await server.restart()
  assert.ok(Date.now() - begun < 30_000, `the start took ${Date.now() - begun} ms`)
  assert.match(await hawser(server, 'get', 'pv'), /data/)
  assert.match(etcd.ctl('get', '/registry/persistentvolumes/data'), /"kind":"PersistentVolume"/)

  await server.stop()
  await using elsewhere = await startEtcd()
  const other = await refusal(server.dataDirectory, etcdArgs(elsewhere.urls))
  assert.match(other, /etcd at .* is empty or missing, but .* holds the record of cluster/)
})

test('a server on another data directory goes on with the same tokens and authority', async () => {
  await using etcd = await startEtcd()
  await using first = await startServer(etcdArgs(etcd.urls))
  await hawser(first, 'apply', '-f', volumeFile)
  const account = await hawser(first, 'token', 'alice')
  const key = readFileSync(join(first.dataDirectory, 'ca.key'), 'utf8')
  assert.ok(!(await everything(first)).includes(first.token), 'the API shows the token of the administrator')
  await first.stop()
  await using second = await startServer(etcdArgs(etcd.urls))
  assert.equal(second.token, first.token)
  assert.equal(readFileSync(join(second.dataDirectory, 'ca.key'), 'utf8'), key)
  // A kubeconfig of before trusts the authority, and its token counts.
  const kubeconfig = join(scratch(), 'kubeconfig')
  writeFileSync(kubeconfig, readFileSync(first.kubeconfig, 'utf8').replace(first.url, second.url))
  const seen = await runProgram(launcher, ['get', 'pv', '--kubeconfig', kubeconfig])
  assert.match(seen.stdout, /data/, seen.stderr)
  const asAlice = readFileSync(kubeconfig, 'utf8').replaceAll(first.token, account.trim())
  writeFileSync(kubeconfig, asAlice)
  const aliceSees = await runProgram(launcher, ['get', 'pv', '--kubeconfig', kubeconfig])
  assert.match(aliceSees.stdout, /data/, aliceSees.stderr)
  await second.stop()
  writeFileSync(join(second.dataDirectory, 'ca.key'), 'of another cluster')
  const refused = await refusal(second.dataDirectory, etcdArgs(etcd.urls))
  assert.match(refused, /the keys in .* \(ca\.key\) are not those of the cluster in etcd at/)
})

/** All objects, secrets too, as the API shows them. */
async function everything(server: ServerProcess): Promise<string> {
  const file = join(scratch(), 'all.jsonl')
  const { code, stderr } = await runProgram(launcher, ['backup', file, '--kubeconfig', server.kubeconfig])
  assert.equal(code, 0, stderr)
  return readFileSync(file, 'utf8')
}

test('certificates and a user with a password', async () => {
  const directory = scratch()
  const authority = makeAuthority(directory, 'ca')
  const strangers = makeAuthority(directory, 'strangers')
  const serving = makeCertificate(directory, 'etcd', authority, 365)
  const ours = makeCertificate(directory, 'hawser', authority, 365)
  const tls = ['--cacert', authority.certificate, '--cert', ours.certificate, '--key', ours.key]
  await using etcd = await startEtcd({
    scheme: 'https',
    args: [
      ...['--cert-file', serving.certificate, '--key-file', serving.key, '--client-cert-auth'],
      ...['--trusted-ca-file', authority.certificate],
    ],
    ctlArgs: [...tls, '--user', 'root:admin'],
  })
  for (const command of [
    'user add root:admin',
    'user add keeper:secret-word',
    'role add keeper',
    'role grant-permission keeper readwrite /registry.hawser/ /registry0',
    'user grant-role keeper keeper',
    'role add root',
    'user grant-role root root',
    'auth enable',
  ])
    etcd.ctl(...command.split(' '))
  const password = join(directory, 'password')
  writeFileSync(password, 'secret-word\n', { mode: 0o600 })
  const files = (authorityFile: string, { certificate, key }: Pair) => [
    ...['--etcd-cafile', authorityFile, '--etcd-certfile', certificate, '--etcd-keyfile', key],
  ]
  const user = ['--etcd-user', 'keeper', '--etcd-password-file', password]
  const good = [...etcdArgs(etcd.urls), ...files(authority.certificate, ours)]
  {
    await using server = await startServer([...good, ...user])
    await hawser(server, 'apply', '-f', volumeFile)
    assert.match(await hawser(server, 'get', 'pv'), /data/)
    assert.ok(!server.output().includes('secret-word'))
    assert.ok(!readFileSync(`/proc/${server.pid}/cmdline`, 'utf8').includes('secret-word'))
  }
  const wrong = join(directory, 'wrong')
  writeFileSync(wrong, 'another\n')
  const fresh = join(directory, 'data')
  const refused = [
    [[...good, '--etcd-user', 'keeper', '--etcd-password-file', wrong], /refuses us .*--etcd-user/],
    [good, /refuses us .*--etcd-user/],
    [
      [...etcdArgs(etcd.urls), ...files(strangers.certificate, ours), ...user],
      /a certificate is not accepted .*--etcd-cafile/,
    ],
    [
      [...good, '--etcd-user', 'keeper', '--etcd-password-file', '/nowhere'],
      /--etcd-password-file \/nowhere cannot be read/,
    ],
    [[...good, ...user, '--etcd-prefix', '/other'], /refuses us .*grant the user's role the keys of the prefix/],
  ] as const
  for (const [args, sentence] of refused) assert.match(await refusal(fresh, args), sentence)
})

test('an expired certificate of etcd is named', async () => {
  const directory = scratch()
  const authority = makeAuthority(directory, 'ca')
  const serving = makeCertificate(directory, 'etcd', authority, -1)
  await using etcd = await startEtcd({
    scheme: 'https',
    args: ['--cert-file', serving.certificate, '--key-file', serving.key],
  })
  const args = [...etcdArgs(etcd.urls), '--etcd-cafile', authority.certificate]
  assert.match(await refusal(join(directory, 'data'), args), /a certificate is not accepted .*expired.*renew it/)
})

/** What `hawser up` says when it does not start. */
async function refusal(dataDirectory: string, args: readonly string[]): Promise<string> {
  const all = ['up', '--data-dir', dataDirectory, '--listen', '127.0.0.1:0', ...args]
  const { code, stderr } = await runProgram(launcher, all)
  assert.notEqual(code, 0, stderr)
  return stderr
}

interface Pair {
  readonly certificate: string
  readonly key: string
}

function makeAuthority(directory: string, name: string): Pair {
  const pair = { certificate: join(directory, `${name}.crt`), key: join(directory, `${name}.key`) }
  openssl(
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '365',
    ...[...['-subj', `/CN=${name}`, '-keyout', pair.key, '-out', pair.certificate]],
  )
  return pair
}

function makeCertificate(directory: string, name: string, authority: Pair, days: number): Pair {
  const pair = { certificate: join(directory, `${name}.crt`), key: join(directory, `${name}.key`) }
  const request = join(directory, `${name}.csr`)
  const extensions = join(directory, `${name}.ext`)
  writeFileSync(extensions, 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n')
  openssl(
    'req',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    ...[...['-subj', `/CN=${name}`, '-keyout', pair.key, '-out', request]],
  )
  openssl(
    'x509',
    '-req',
    '-in',
    request,
    '-CA',
    authority.certificate,
    '-CAkey',
    authority.key,
    '-CAcreateserial',
    ...[...['-days', String(days), '-extfile', extensions, '-out', pair.certificate]],
  )
  return pair
}

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' })
}
