// Do the systemd units keep their directories closed, and does systemd understand them?
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

const directory = join(import.meta.dirname, '../../packaging/systemd')
const units = readdirSync(directory).filter((name) => name.endsWith('.service'))
const loaders = ['NODE_OPTIONS', 'NODE_PATH', 'NODE_EXTRA_CA_CERTS', 'LD_PRELOAD', 'LD_LIBRARY_PATH', 'LD_AUDIT']

function settingsOf(unit: string): ReadonlyMap<string, string> {
  const lines = readFileSync(join(directory, unit), 'utf8').split('\n')
  return new Map(
    lines.flatMap((line) => {
      const [, name, value] = /^(\w+)=(.*)$/.exec(line) ?? []
      return name === undefined || value === undefined ? [] : [[name, value]]
    }),
  )
}

test('there are units', () => assert.ok(units.length >= 3))

for (const unit of units) {
  const settings = settingsOf(unit)
  test(`${unit}: every directory that it makes has a mode, and none is writable by others`, () => {
    const made = [...settings.keys()].filter((name) => /^(State|Cache|Runtime|Logs|Configuration)Directory$/.test(name))
    assert.ok(made.includes('CacheDirectory'))
    for (const name of made) {
      const mode = settings.get(`${name}Mode`)
      assert.ok(mode !== undefined, `${name}Mode is set`)
      assert.equal(Number.parseInt(mode, 8) & 0o022, 0, name)
    }
    assert.equal(settings.get('CacheDirectoryMode'), '0700')
    assert.equal(settings.get('Environment'), `NODE_COMPILE_CACHE=/var/cache/${settings.get('CacheDirectory')}`)
    assert.equal(settings.get('UMask'), '0022')
  })
  test(`${unit}: nothing is loaded into the program from the environment`, () => {
    const unset = settings.get('UnsetEnvironment')?.split(' ') ?? []
    assert.deepEqual(
      loaders.filter((name) => !unset.includes(name)),
      [],
    )
  })
}

const isThere = spawnSync('systemd-analyze', ['--version']).status === 0
const skip =
  !isThere && 'THE UNITS ARE NOT VERIFIED: this machine has no systemd-analyze (Debian: apt-get install systemd)'
if (skip) console.error(skip)

test('systemd understands every line of every unit', { skip }, () => {
  const place = mkdtempSync(join(tmpdir(), 'hawser-units-'))
  try {
    const program = join(place, 'usr/local/bin/hawser')
    mkdirSync(join(place, 'usr/local/bin'), { recursive: true })
    writeFileSync(program, '#!/bin/sh\n')
    chmodSync(program, 0o755)
    for (const unit of units) {
      // A template is verified as one of its instances; the program need not be installed here.
      const file = join(place, unit.replace('@.', '@srv-volumes.'))
      writeFileSync(file, readFileSync(join(directory, unit), 'utf8').replaceAll('/usr/local/bin/hawser', program))
      const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' })
      const about = stderr.split('\n').filter((line) => line.includes('hawser'))
      assert.deepEqual({ status, about }, { status: 0, about: [] }, unit)
    }
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
})
