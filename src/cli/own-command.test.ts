import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ownCommand } from './own-command.ts'

const place = realpathSync(mkdtempSync(join(tmpdir(), 'hawser-command-')))
after(() => rmSync(place, { recursive: true, force: true }))
const clone = join(place, 'clone')
const launcher = join(clone, 'bin/hawser')
mkdirSync(join(clone, 'bin'), { recursive: true })
mkdirSync(join(place, 'path'))
writeFileSync(launcher, '')

test('in a clone it is called by its path, short where one stands in it', () => {
  assert.equal(ownCommand('/nowhere:/usr/bin', clone, launcher), './bin/hawser')
  assert.equal(ownCommand('/nowhere:/usr/bin', place, launcher), './clone/bin/hawser')
  assert.equal(ownCommand('/nowhere:/usr/bin', '/elsewhere', launcher), launcher)
})

test('where it is installed it is called by its name; another program of that name is not it', () => {
  const path = `/nowhere:${join(place, 'path')}`
  symlinkSync('/bin/sh', join(place, 'path/hawser'))
  assert.equal(ownCommand(path, clone, launcher), './bin/hawser')
  rmSync(join(place, 'path/hawser'))
  symlinkSync(launcher, join(place, 'path/hawser'))
  assert.equal(ownCommand(path, clone, launcher), 'hawser')
})
