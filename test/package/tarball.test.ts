// Does the published package work where nothing else is? Packed, installed without scripts in an empty directory, run.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, test } from 'node:test'

const root = join(import.meta.dirname, '../..')
const place = mkdtempSync(join(tmpdir(), 'hawser-package-'))
const installed = join(place, 'node_modules/hawser')
let tarball = ''
const hawser = join(place, 'node_modules/.bin/hawser')
// npm itself may be older than the pinned runtime: scripts must find the pinned one.
const env = {
  ...process.env,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`,
  npm_config_fund: 'false',
  npm_config_audit: 'false',
  npm_config_update_notifier: 'false',
}

before(() => {
  const answer = execFileSync('npm', ['pack', '--json', '--pack-destination', place], { cwd: root, env, stdio: 'pipe' })
  const found = /"filename":\s*"([^"]+)"/.exec(answer.toString())
  assert.ok(found, 'npm pack names its file')
  writeFileSync(join(place, 'package.json'), '{ "private": true, "type": "module" }')
  tarball = join(place, found[1]!)
  const argv = ['install', '--ignore-scripts', '--prefer-offline', '--no-package-lock', tarball]
  execFileSync('npm', argv, { cwd: place, env, stdio: 'pipe' })
})

after(() => rmSync(place, { recursive: true, force: true }))

test('the command tells its version', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  assert.equal(execFileSync(hawser, ['--version'], { cwd: place }).toString().trim(), version)
})

test('a project starts as the page on embedding says', () => {
  const page = readFileSync(join(root, 'docs/embedding.md'), 'utf8')
  const [, section = ''] = /## Start a project\n([^]*?)\n## /.exec(page) ?? []
  const [source = ''] = [...section.matchAll(/^```ts\n([^]*?)^```/gm)].map(([, text = '']) => text)
  const commands = [...section.matchAll(/^```text\n([^]*?)^```/gm)].flatMap(([, text = '']) => text.trim().split('\n'))
  // The package is made above.
  assert.deepEqual(commands.slice(0, 2), ['npm ci', 'npm pack'])
  const project = mkdtempSync(join(place, 'project-'))
  copyFileSync(tarball, join(project, 'hawser-0.1.0.tgz'))
  writeFileSync(join(project, 'claim.test.ts'), source)
  // A test runner that finds itself inside another one reports to that one.
  const { NODE_TEST_CONTEXT: _, ...own } = env as NodeJS.ProcessEnv
  for (const command of commands.slice(2)) {
    const offline = command.startsWith('npm install') ? `${command} --prefer-offline --ignore-scripts` : command
    const { status, stdout, stderr } = spawnSync('bash', ['-c', offline], { cwd: project, env: own, encoding: 'utf8' })
    assert.equal(status, 0, `${command}: ${stdout}${stderr}`)
    if (command === 'npm test') assert.match(stdout, /a claim gets a volume/)
  }
})

test('no source, test or tool is in the package', () => {
  const listed = execFileSync('ls', [installed]).toString().trim().split('\n')
  for (const name of ['src', 'test', 'tools']) assert.ok(!listed.includes(name), name)
  const wanted = ['bin', 'dist', 'packaging', 'LICENSE', 'SECURITY.md', 'npm-shrinkwrap.json']
  for (const name of wanted) assert.ok(listed.includes(name), name)
})

test('npm installs the versions of our lock by the shrinkwrap, and the bill of materials names them', () => {
  // npm follows the shrinkwrap of a package from a registry, not of one from a file: so inside the package, as a registry's would.
  const unpacked = join(place, 'unpacked')
  mkdirSync(unpacked)
  execFileSync('tar', ['-xzf', tarball, '-C', unpacked, '--strip-components=1'])
  const { devDependencies: _, ...manifest } = JSON.parse(
    readFileSync(join(unpacked, 'package.json'), 'utf8'),
  ) as Record<string, unknown>
  // Nobody who installs a package gets these.
  writeFileSync(join(unpacked, 'package.json'), JSON.stringify(manifest))
  execFileSync('npm', ['ci', '--ignore-scripts', '--prefer-offline', '--omit=dev'], {
    cwd: unpacked,
    env,
    stdio: 'pipe',
  })
  const read = (path: string) => JSON.parse(readFileSync(join(path), 'utf8')) as Record<string, unknown>
  const locked = read(join(root, 'package-lock.json'))['packages'] as Record<
    string,
    { version: string; optional?: boolean }
  >
  const wrapped = read(join(unpacked, 'npm-shrinkwrap.json'))['packages'] as typeof locked
  const versions = new Set<string>()
  for (const [path, { version, optional }] of Object.entries(wrapped)) {
    if (path === '') continue
    assert.equal(version, locked[path]?.version, path)
    versions.add(`${path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)} ${version}`)
    const found = join(unpacked, path, 'package.json')
    if (existsSync(found)) assert.equal(read(found)['version'], version, path)
    else assert.equal(optional, true, `${path} is not for other machines, and is not installed`)
  }
  const bill = read(join(unpacked, 'dist/bom.cdx.json')) as { components: { name: string; version: string }[] }
  assert.ok(bill.components.length > 10)
  for (const { name, version } of bill.components) assert.ok(versions.has(`${name} ${version}`), name)
  assert.ok(!existsSync(join(unpacked, 'node_modules/typescript')))
})

test('the demo on models runs to its end', () => {
  const { status, stdout, stderr } = spawnSync(hawser, ['demo', '--model'], { cwd: place, timeout: 60_000 })
  assert.equal(status, 0, stderr.toString())
  assert.match(stdout.toString(), /Done in/)
})

test('the library starts an embedded cluster', () => {
  const script = [
    "import { startHawser, kinds } from 'hawser'",
    'await using hawser = await startHawser()',
    "const { items } = await hawser.client.list('Namespace')",
    "console.log(items.some(({ metadata }) => metadata.name === 'default'), kinds.Pod.plural)",
  ]
  writeFileSync(join(place, 'use.js'), script.join('\n'))
  const printed = execFileSync(process.execPath, ['use.js'], { cwd: place, timeout: 60_000 }).toString()
  assert.equal(printed.trim(), 'true pods')
})

test('its types are complete', () => {
  mkdirSync(join(place, 'types'), { recursive: true })
  const script = [
    "import { startHawser } from 'hawser'",
    "import type { Client, PersistentVolumeClaim } from 'hawser'",
    'export async function phases(client: Client): Promise<(string | undefined)[]> {',
    "  const { items } = await client.list('PersistentVolumeClaim')",
    '  return items.map((claim: PersistentVolumeClaim) => claim.status?.phase)',
    '}',
    '// @ts-expect-error nodes are names',
    'void startHawser({ nodes: [1] })',
  ]
  writeFileSync(join(place, 'types/use.ts'), script.join('\n'))
  const argv = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'esnext', '--lib', 'esnext', 'types/use.ts']
  const typeRoots = ['--typeRoots', join(root, 'node_modules/@types'), '--types', 'node', '--ignoreConfig']
  const result = spawnSync(join(root, 'node_modules/.bin/tsc'), [...argv, ...typeRoots], { cwd: place })
  assert.equal(result.status, 0, result.stdout.toString())
})

test('the built-in driver starts from the package', { skip: process.getuid?.() !== 0 && 'needs root' }, () => {
  const { status, stdout, stderr } = spawnSync(hawser, ['demo'], { cwd: place, timeout: 120_000 })
  assert.equal(status, 0, stderr.toString() + stdout.toString())
  assert.match(stdout.toString(), /volume mounts: 0, loop devices: 0, image files: 0/)
})
