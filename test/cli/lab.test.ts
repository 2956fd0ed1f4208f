// `hawser lab` as a driver's author runs it: our own driver in both modes, a command as the driver, reports, mistakes.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { removeEverything } from '../../src/cli/demo/proof.ts'
import { parseKeptReport } from '../../src/lab/reports/json.ts'
import { hawser } from '../kit/command-line.ts'
import { launcher, runProgram } from '../kit/server-process.ts'

const root = join(import.meta.dirname, '../..')
const skip = process.getuid?.() === 0 ? false : 'needs root'
if (skip) console.log(`# LOUDLY SKIPPED: hawser lab on real mounts: ${skip}`)

function workplace(t: { after(work: () => unknown): void }): (name: string) => string {
  const work = mkdtempSync(join(tmpdir(), 'hawser-lab-test-'))
  t.after(() => removeEverything(work))
  return (name) => join(work, name)
}

/** Temporary directories lie in the workplace: labs of others on this machine are not looked at. */
const lab = (path: (name: string) => string, ...args: readonly string[]) =>
  runProgram(launcher, ['lab', 'run', ...args], { env: { ...process.env, TMPDIR: path('.') } })

const mountsBelow = (directory: string) =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(`${directory}/`))

for (const mode of ['local', 'shared'] as const)
  test(`lab run tests the built-in driver in mode ${mode}, finds nothing and leaves nothing`, { skip }, async (t) => {
    const path = workplace(t)
    const ran = await lab(path, '--mode', mode, '--report', path('report'))
    assert.equal(ran.code, 0, ran.stdout + ran.stderr)
    const report = parseKeptReport(readFileSync(path('report/report.json'), 'utf8'))
    assert.equal(report.counts.failed, 0)
    assert.ok(report.counts.passed > 160, ran.stdout)
    assert.deepEqual(
      report.checks.flatMap(({ leftovers = [] }) => leftovers),
      [],
    )
    for (const file of ['junit.xml', 'report.md']) assert.ok(existsSync(path(`report/${file}`)))
    assert.deepEqual(mountsBelow(path('.')), [])
    const { stdout: loops } = await runProgram('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE'])
    assert.ok(!loops.includes(path('.')), loops)
  })

test('lab run starts a command as the driver, and stops it', { skip }, async (t) => {
  const path = workplace(t)
  const main = join(root, 'src/drivers/local/main.ts')
  const driver = [process.execPath, main, '--socket', '{socket}', '--data', path('data'), '--node', 'n1']
  const only = 'honesty/create-volume/twice,honesty/publish/mounted'
  const ran = await lab(path, '--only', only, '--verbose', '--', ...driver)
  assert.equal(ran.code, 0, ran.stdout + ran.stderr)
  assert.match(ran.stdout, /passed {2}honesty\/create-volume\/twice/)
  assert.match(ran.stdout, /local\.hawser\.dev 0\.1\.0: 2 checks/)
  const { stdout } = await runProgram('ps', ['-eo', 'args'])
  assert.ok(!stdout.includes(path('data')), 'the driver has ended')
})

test('a broken driver is found on real mounts, told, and known in the next run', { skip }, async (t) => {
  const path = workplace(t)
  const program = join(root, 'examples/broken-drivers/driver.ts')
  const driver = (defect: readonly string[]) => [
    ...['--', process.execPath, program, '--socket', '{socket}', '--data', path('data'), ...defect],
  ]
  const suites = ['--suites', 'honesty,life']
  const good = await lab(path, ...suites, ...driver([]))
  assert.equal(good.code, 0, good.stdout + good.stderr)
  const broken = driver(['--defect', 'unpublish-keeps-directory'])
  const found = await lab(path, ...suites, '--report', path('report'), ...broken)
  assert.equal(found.code, 4, found.stdout + found.stderr)
  assert.match(
    found.stdout,
    /failed {2}honesty\/unpublish\/gone: NodeUnpublishVolume answered OK, and the target path is still/,
  )
  const { checks } = parseKeptReport(readFileSync(path('report/report.json'), 'utf8'))
  const failed = checks.filter(({ verdict }) => verdict === 'failed')
  assert.deepEqual(
    failed.map(({ id }) => id),
    ['honesty/unpublish/gone'],
  )
  assert.ok(failed[0]?.calls?.some(({ rpc }) => rpc === 'NodeUnpublishVolume'))
  const explained = await hawser(['lab', 'explain', 'honesty/unpublish/gone', '--report', path('report')])
  assert.match(explained.out, /NodeUnpublishVolume \{"volumeId":/)
  const again = await lab(path, ...suites, '--baseline', path('report/report.json'), ...broken)
  assert.equal(again.code, 0, again.stdout + again.stderr)
  assert.match(again.stderr, /failed in the baseline already: honesty\/unpublish\/gone/)
  assert.deepEqual(mountsBelow(path('.')), [])
})

test('lab run says what is wrong with the command line or the driver', async (t) => {
  const path = workplace(t)
  writeFileSync(path('baseline.json'), '{}')
  const mistakes: readonly (readonly [readonly string[], number, RegExp])[] = [
    [['--suites', 'nonsense'], 2, /there is no suite "nonsense"; suites: honesty/],
    [['--only', 'honesty/x/y'], 3, /there is no check "honesty\/x\/y"/],
    [['--parameter', 'x'], 2, /"x" is not KEY=VALUE/],
    [['--driver', 'model', '--', 'true'], 2, /a COMMAND is the driver: leave --driver out/],
    [['--driver', 'model', '--baseline', path('baseline.json')], 2, /baseline .* cannot be read: this is no report/],
    [['--driver', path('nothing.sock')], 5, /does not answer as a CSI driver: UNAVAILABLE/],
    [['--', 'false'], 2, /the driver does not run: it ended with exit code 1/],
    [['--', path('no-program')], 2, /the driver does not run: spawn .* ENOENT/],
  ]
  for (const [args, code, text] of mistakes) {
    const ran = await hawser(['lab', 'run', ...args])
    assert.equal(ran.code, code, `${args.join(' ')}: ${ran.err}`)
    assert.match(ran.err, text)
  }
})

test('lab ls lists every check with its call', async () => {
  const listed = await hawser(['lab', 'ls'])
  assert.match(listed.out, /honesty\/create-volume\/twice +CreateVolume +CreateVolume twice gives one volume/)
  const names = await hawser(['lab', 'ls', '-o', 'name', '--suites', 'honesty'])
  assert.ok(names.out.split('\n').length > 100)
  assert.equal((await hawser(['lab', 'ls', '--suites', 'x'])).code, 2)
})

test('lab explain tells what a check asks, and what came back in a run', async (t) => {
  const path = workplace(t)
  const explained = await hawser(['lab', 'explain', 'honesty/create-volume/twice'])
  assert.match(explained.out, /CSI says +CreateVolume: this operation MUST be idempotent/)
  assert.match(explained.out, /needs +a driver that claims CREATE_DELETE_VOLUME/)
  const ran = await hawser(['lab', 'run', '--driver', 'model', '--report', path('report')])
  assert.equal(ran.code, 0, ran.out + ran.err)
  const withRun = await hawser(['lab', 'explain', 'honesty/create-volume/twice', '--report', path('report')])
  assert.match(withRun.out, /that run +passed/)
  const unknown = await hawser(['lab', 'explain', 'honesty/create-volume/thrice'])
  assert.equal(unknown.code, 3)
  assert.match(unknown.err, /there is no check .*; near it: .*honesty\/create-volume\/twice/)
  assert.equal((await hawser(['lab', 'explain', 'honesty/stage/twice', '--report', path('none')])).code, 2)
})
