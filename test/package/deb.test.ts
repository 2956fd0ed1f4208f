// Does the Debian package work? Built by its script, listed, unpacked into a private root, run from there.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

const repository = join(import.meta.dirname, '../..')
const place = mkdtempSync(join(tmpdir(), 'hawser-deb-'))
const root = join(place, 'root')
const skip = !existsSync('/usr/bin/dpkg-deb') && 'needs dpkg-deb'
const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: 'pipe' }).toString()
let file = ''

before(() => {
  if (skip) return
  file = run(join(repository, 'packaging/deb/build.sh'), place).trim()
  run('dpkg-deb', '-x', file, root)
})
after(() => rmSync(place, { recursive: true, force: true }))

test('the package names its version and what it needs', { skip }, () => {
  const { version } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { version: string }
  assert.equal(run('dpkg-deb', '-f', file, 'Version').trim(), version)
  assert.match(run('dpkg-deb', '-f', file, 'Depends'), /util-linux/)
})

test('it holds the program, its Node without headers, and every unit', { skip }, () => {
  const listed = run('dpkg-deb', '-c', file)
  assert.match(listed, /\.\/usr\/bin\/hawser -> /)
  assert.doesNotMatch(listed, /node-linux-[^/]+\/include\//)
  assert.ok(
    listed.split('\n').every((line) => line === '' || / root\/root /.test(line)),
    'all files are of root',
  )
  const units = readdirSync(join(repository, 'packaging/systemd')).filter((name) => name.endsWith('.service'))
  assert.ok(units.length >= 3, units.join(', '))
  for (const unit of units) {
    const text = readFileSync(join(root, 'lib/systemd/system', unit), 'utf8')
    assert.match(text, /^ExecStart=\/usr\/bin\/hawser /m, unit)
  }
})

test('it runs from where it was unpacked', { skip }, () => {
  const hawser = join(root, 'usr/bin/hawser')
  assert.match(run(hawser, '--version'), /^\d+\.\d+\.\d+/)
  const { status, stdout, stderr } = spawnSync(hawser, ['demo', '--model'], { timeout: 60_000 })
  assert.equal(status, 0, stderr.toString())
  assert.match(stdout.toString(), /Done in/)
})
