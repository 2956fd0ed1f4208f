// The layouts recorded from a real kubelet (in test/recorded: suite/ was given, own/ is ours), and those worked out from the rules beside
// them (worked-out/), compared with a real agent on this machine: every case is a test. Between the steps `hawser why` is
// asked about every object of the case: causes.json says what it must name, and whatever is not in it is well.
// The CSI cases need csi-driver-host-path: from the Go module registry, or a binary named by HAWSER_HOSTPATH_PLUGIN.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createHttpClient } from '../../src/client/http.ts'
import type { Causes, WantedCauses } from '../kit/causes-of-play.ts'
import { assertCauses, causesOf, untilCauses } from '../kit/causes-of-play.ts'
import { hostPathPlugin } from '../kit/host-path-plugin.ts'
import { launcher, runProgram, startServer } from '../kit/server-process.ts'
import { mountsBelow, pathWithout } from '../kit/machine.ts'
import { insertPauses, atEachPause } from './pauses.ts'
import type { Pause } from './pauses.ts'
import { apiVolumes } from './worked-out/api-volumes.ts'
import { csiVolumes } from './worked-out/csi-volumes.ts'
import { hostVolumes } from './worked-out/host-volumes.ts'
import { lives } from './worked-out/lives.ts'
import { restarts } from './worked-out/restarts.ts'
import { seen } from './worked-out/seen.ts'

const suite = join(import.meta.dirname, '../recorded/node-conformance/suite')
const recorded = join(import.meta.dirname, '../recorded/node-conformance/own')
const driver = 'hostpath.csi.k8s.io'
const wanted = JSON.parse(readFileSync(join(import.meta.dirname, 'causes.json'), 'utf8')) as Readonly<
  Record<string, Readonly<Record<string, WantedCauses>>>
>
const needsRoot = process.getuid?.() === 0 ? false : 'needs root for real mounts'

const objects = JSON.stringify({
  apiVersion: 'v1',
  kind: 'List',
  items: [
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name: driver },
      spec: {
        attachRequired: true,
        podInfoOnMount: true,
        fsGroupPolicy: 'File',
        volumeLifecycleModes: ['Persistent', 'Ephemeral'],
      },
    },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'csi-hostpath' },
      provisioner: driver,
      volumeBindingMode: 'Immediate',
      reclaimPolicy: 'Delete',
      allowVolumeExpansion: true,
    },
  ],
})

test('recorded layouts of the node', { skip: needsRoot, timeout: 1_500_000 }, async (context) => {
  await using stack = new AsyncDisposableStack()
  const scratch = mkdtempSync(join(tmpdir(), 'hawser-node-conformance-'))
  stack.defer(() => sweep(scratch))
  const plugin = await hostPathPlugin()
  const socket = join(scratch, 'csi.sock')
  const drivers = [
    ...['--volume-plugin-dir', join(scratch, 'flex')],
    ...(plugin.path === undefined ? [] : ['--csi-driver', `${driver}=${socket}`]),
  ]
  const server = stack.use(await startServer(['--bare', ...drivers]))
  if (plugin.path === undefined) console.log(`# LOUDLY SKIPPED: the CSI cases of the node suite: ${plugin.why}`)
  else {
    mkdirSync(join(scratch, 'state'))
    const child = spawn(
      plugin.path,
      [`--drivername=${driver}`, `--endpoint=unix://${socket}`, '--nodeid=nc', `--statedir=${join(scratch, 'state')}`],
      { stdio: 'ignore' },
    )
    stack.defer(() => void child.kill('SIGKILL'))
    const made = await runProgram(launcher, ['apply', '--kubeconfig', server.kubeconfig, '-f', '-'], { input: objects })
    assert.equal(made.code, 0, made.stderr)
  }
  const played = writeCases(scratch, plugin.path !== undefined)
  const agent = agentScripts(scratch, server.kubeconfig, ['--no-csi-jobs', ...drivers])
  stack.defer(async () => void (await runProgram('/bin/sh', [agent.stop])))
  assert.equal((await runProgram('/bin/sh', [agent.start])).code, 0, 'the agent does not start')
  const told = new Map<string, Record<string, Causes>>()
  const client = stack.use(createHttpClient({ url: server.url, token: server.token, insecureSkipTlsVerify: true }))
  const over = new AbortController()
  insertPauses(scratch)
  const looking = atEachPause(
    scratch,
    async ({ name, step, namespace }: Pause) => {
      const play = { namespaces: [namespace], prefix: `${namespace}-` } as const
      const look = () => causesOf(client, play, 'shared')
      told.set(name, { ...told.get(name), [step]: await untilCauses(look, wanted[name]?.[step] ?? {}, 30_000) })
    },
    over.signal,
  )
  const answer = await runProgram(process.execPath, [
    join(suite, 'run.mjs'),
    ...['--url', server.url, '--token', server.token, '--node', 'nc', '--root', join(scratch, 'root')],
    ...['--cases', join(scratch, 'cases'), '--compare', join(scratch, 'expected'), '--scratch', join(scratch, 'work')],
    ...[
      '--events',
      'reason',
      '--parallel',
      '4',
      '--agent-stop',
      `/bin/sh ${agent.stop}`,
      '--agent-start',
      `/bin/sh ${agent.start}`,
    ],
    ...(plugin.path === undefined ? ['--no-csi'] : []),
  ])
  over.abort()
  await looking
  for (const { name, ok, text } of outcomes(answer.stdout))
    await context.test(name, () => {
      assert.ok(ok, text)
      for (const [step, causes] of Object.entries(told.get(name) ?? {}))
        assertCauses(causes, wanted[name]?.[step] ?? {}, `why, after "${step}"`)
      const unasked = Object.keys(wanted[name] ?? {}).filter((step) => told.get(name)?.[step] === undefined)
      assert.deepEqual(unasked, [], 'steps that causes.json names and that nobody played')
    })
  const [, passed = '0', failed = '1'] = /(\d+) passed, (\d+) failed/.exec(answer.stdout) ?? []
  assert.equal(Number(failed), 0, `${passed} passed, ${failed} failed`)
  assert.equal(Number(passed), played)
})

/** All cases in one place, where the runner finds them; answers how many of them it can play. */
function writeCases(scratch: string, csi: boolean): number {
  for (const part of ['cases', 'expected'])
    for (const from of [suite, recorded]) cpSync(join(from, part), join(scratch, part), { recursive: true })
  for (const { name, case: given, expected } of [apiVolumes, csiVolumes, hostVolumes, lives, restarts, seen].flat()) {
    writeFileSync(join(scratch, 'cases', `${name}.json`), JSON.stringify(given))
    writeFileSync(join(scratch, 'expected', `${name}.json`), JSON.stringify(expected))
  }
  const all = readdirSync(join(scratch, 'cases')).map((name) => readFileSync(join(scratch, 'cases', name), 'utf8'))
  return all.filter((text) => csi || !(JSON.parse(text) as { needs?: string[] }).needs?.includes('csi')).length
}

/** The suite stops and starts the agent by shell commands; these are files without a variable part to quote. */
function agentScripts(
  scratch: string,
  kubeconfig: string,
  drivers: readonly string[],
): { start: string; stop: string } {
  const [start, stop, log, pid] = ['start.sh', 'stop.sh', 'agent.log', 'agent.pid'].map((name) =>
    join(scratch, name),
  ) as [string, string, string, string]
  const command = [
    launcher,
    'agent',
    '--kubeconfig',
    kubeconfig,
    '--data-dir',
    join(scratch, 'agent'),
    '--root-dir',
    join(scratch, 'root'),
    '--node-name',
    'nc',
    ...drivers,
  ]
  writeFileSync(
    start,
    [
      `: > ${log}`,
      // The cases were recorded on a machine without iscsiadm.
      `PATH=${pathWithout('iscsiadm', join(scratch, 'programs'))}; export PATH`,
      `setsid ${command.join(' ')} >> ${log} 2>&1 < /dev/null &`,
      `echo $! > ${pid}`,
      `for i in $(seq 200); do grep -q 'node nc is up' ${log} && exit 0; sleep 0.1; done; cat ${log}; exit 1`,
    ].join('\n'),
  )
  writeFileSync(
    stop,
    [
      `[ -f ${pid} ] || exit 0; read p < ${pid}; kill $p 2>/dev/null`,
      // A process that has ended is gone, however long its parent takes to collect it.
      `for i in $(seq 200); do case $(sed 's/.*) //' /proc/$p/stat 2>/dev/null) in ''|Z*) exit 0;; esac; sleep 0.1; done; exit 1`,
    ].join('\n'),
  )
  return { start, stop }
}

/** A failed case may leave containers and mounts; nothing of them may outlive the test. */
function sweep(scratch: string): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      if (Number(pid) !== process.pid && command.includes(`${scratch}/`)) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It has ended meanwhile.
    }
  }
  for (const path of mountsBelow(scratch).toSorted().toReversed()) spawnSync('umount', [path])
  assert.deepEqual(mountsBelow(scratch), [], 'still mounted; nothing is deleted through a mount')
  rmSync(scratch, { recursive: true, force: true })
}

function outcomes(output: string): { name: string; ok: boolean; text: string }[] {
  const blocks = output.split(/^(?=(?:ok|FAIL) )/m).filter((block) => /^(ok|FAIL) /.test(block))
  return blocks.map((block) => ({
    name: /^\w+\s+(\S+)/.exec(block)?.[1] ?? block,
    ok: block.startsWith('ok'),
    text: block,
  }))
}
