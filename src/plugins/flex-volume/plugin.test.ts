// Do FlexVolume drivers come, answer and go as their users are used to? FLEX-1 … FLEX-12, TP-25 … TP-27.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createModelPluginFixture, inline, mounting, pod, root, signal } from '../../../test/kit/plugin-fixture.ts'
import type { ModelPluginFixture } from '../../../test/kit/plugin-fixture.ts'
import { pluginName, podUid } from '../../api/names.ts'
import { DeadlineExceeded } from '../../clock/clock.ts'
import type { CommandResult } from '../../host/host.ts'
import { HostError } from '../../host/host-error.ts'
import { silentLog } from '../../telemetry/log.ts'
import { createRegistry } from '../../volume/registry.ts'
import { probeFlexDrivers } from '../index.ts'
import { startDriver } from './driver-call.ts'
import { flexPlugin } from './plugin.ts'

const directory = '/opt/flex'
const program = `${directory}/acme~disk/disk`
type Answer = object | ((words: readonly string[], input?: string) => Promise<object> | object)

/** Installs a driver whose answers are given by command; others are "Not supported" (with exit code 1). */
async function install(
  bench: ModelPluginFixture,
  answers: Readonly<Record<string, Answer>>,
  path = program,
): Promise<string[]> {
  const calls: string[] = []
  bench.host.programs.set(path, async ({ argv, input }): Promise<CommandResult> => {
    const [, command = '', ...words] = argv
    calls.push([command, ...words].join(' '))
    const answer = answers[command] ?? (command === 'init' ? { status: 'Success' } : undefined)
    if (answer === undefined) return { exitCode: 1, stdout: '{"status":"Not supported"}', stderr: 'noise' }
    const given = typeof answer === 'function' ? await answer(words, input) : answer
    return { exitCode: 0, stdout: JSON.stringify(given), stderr: 'noise on stderr' }
  })
  await bench.host.files.mkdirAll(path.slice(0, path.lastIndexOf('/')), 0o755, signal)
  await bench.host.files.writeFile(path, '#!', { mode: 0o755 }, signal)
  return calls
}

const start = (bench: ModelPluginFixture) => startDriver(bench.host, { name: 'acme/disk', executable: program }, signal)
const spec = inline({ flexVolume: { driver: 'acme/disk', fsType: 'ext4', options: { own: '1' } } })

test('a capability in the answer overrides only itself (TP-25, FLEX-4)', async () => {
  const bench = await createModelPluginFixture()
  await install(bench, { init: { Status: 'Success', Capabilities: { ATTACH: false } } })
  const { capabilities } = await start(bench)
  assert.deepEqual(capabilities, {
    attach: false,
    selinuxRelabel: true,
    supportsMetrics: false,
    fsGroup: true,
    requiresFSResize: true,
  })
  await bench.close()
})

test('what is not supported is asked once; failures, bad output and driver bugs are told (TP-26, FLEX-5)', async () => {
  const bench = await createModelPluginFixture()
  const calls = await install(bench, { attach: { status: 'Failure', message: 'no disk' } })
  const driver = await start(bench)
  assert.equal(await driver.call('mount', { words: ['/x', '{}'] }, signal), undefined)
  assert.equal(await driver.call('mount', { words: ['/x', '{}'] }, signal), undefined)
  assert.deepEqual(calls, ['init', 'mount /x {}'])
  await assert.rejects(driver.call('attach', { words: ['{}', 'n'] }, signal), /status: Failure, reason: no disk/)
  bench.host.programs.set(program, () => ({ exitCode: 1, stdout: '{"status":"Success"}', stderr: '' }))
  await assert.rejects(driver.call('detach', { words: ['v', 'n'] }, signal), /driver bug/)
  bench.host.programs.set(program, () => ({ exitCode: 0, stdout: 'hello', stderr: '' }))
  await assert.rejects(driver.call('detach', { words: ['v', 'n'] }, signal), {
    code: 'DriverOutput',
    effect: 'unknown',
  })
  bench.host.programs.set(program, () => ({
    exitCode: 0,
    stdout: '{"STATUS":"Success","Device":"/dev/x"}',
    stderr: 'noise',
  }))
  assert.equal((await driver.call('detach', { words: ['v', 'n'] }, signal))?.device, '/dev/x', 'FLEX-3, WART-23')
  bench.host.programs.set(program, () => ({ exitCode: 0, stdout: '[]', stderr: '' }))
  await assert.rejects(driver.call('detach', { words: ['v', 'n'] }, signal), { code: 'DriverOutput' })
  await bench.close()
})

test('slow commands are left alone; waitforattach ends with its operation and says `timeout` (FLEX-5, C-10)', async () => {
  const bench = await createModelPluginFixture()
  const limits: Record<string, number> = {}
  bench.host.programs.set(program, ({ argv, timeoutMs }) => {
    limits[argv[1] ?? ''] = timeoutMs / 60_000
    return { exitCode: 0, stdout: '{"status":"Success"}', stderr: '' }
  })
  const driver = await start(bench)
  for (const command of ['waitforattach', 'mountdevice', 'unmount']) await driver.call(command, { words: [] }, signal)
  assert.deepEqual(limits, { init: 2, waitforattach: 10, mountdevice: 30, unmount: 30 })
  const operation = new AbortController()
  bench.host.programs.set(program, () => {
    operation.abort(new DeadlineExceeded(600_000))
    throw new HostError('ABORTED', 'given up while it was running', { certain: false })
  })
  const late = { code: 'DriverTimeout', message: /waitforattach command failed: timeout$/, effect: 'unknown' }
  await assert.rejects(driver.call('waitforattach', { words: [] }, operation.signal), late)
  await bench.close()
})

test('a secret of another type is refused, and the driver is not asked (FLEX-7)', async () => {
  const bench = await createModelPluginFixture()
  const calls = await install(bench, { init: { status: 'Success', capabilities: { attach: false } } })
  await bench.client.create('Secret', { metadata: { name: 's', namespace: 'default' }, type: 'Opaque', data: {} })
  const plugin = flexPlugin(await start(bench)).node(bench.deps)
  const request = {
    spec: inline({ flexVolume: { driver: 'acme/disk', secretRef: { name: 's' } } }),
    pod: pod(),
    target: `${root}/pods/uid-1/volumes/acme~disk/v`,
    ownership: {},
    foundOnDisk: false,
    remount: false,
    notify: () => undefined,
  }
  await assert.rejects(plugin.mount(request, signal), { code: 'SecretType', effect: 'untried' })
  assert.deepEqual(calls, ['init'])
  assert.equal(await bench.host.files.exists(request.target, signal), false)
  await bench.close()
})

test('what is mounted stays usable although its secret is gone (FLEX-10)', async () => {
  const bench = await createModelPluginFixture()
  const calls = await install(bench, { init: { status: 'Success', capabilities: { attach: false } } })
  const target = `${root}/pods/uid-1/volumes/acme~disk/v`
  await bench.host.files.mkdirAll(target, 0o750, signal)
  await bench.host.mounts.mount({ source: 'tmpfs', target, type: 'tmpfs', options: [] }, signal)
  const plugin = flexPlugin(await start(bench)).node(bench.deps)
  const withSecret = inline({ flexVolume: { driver: 'acme/disk', secretRef: { name: 'gone' } } })
  const request = { spec: withSecret, pod: pod(), target, ownership: { fsGroup: 5 }, notify: () => undefined }
  await plugin.mount({ ...request, foundOnDisk: true, remount: false }, signal)
  assert.deepEqual([calls, (await bench.host.files.stat(target, signal)).gid], [['init'], 5])
  await bench.close()
})

test('mount is told everything, secrets on its stdin only; other commands less (FLEX-6 … FLEX-10, A14)', async () => {
  const bench = await createModelPluginFixture()
  const told: Record<string, string>[] = []
  await install(bench, {
    init: { status: 'Success', capabilities: { attach: false } },
    mount: async ([target = '', json = ''], input) => {
      assert.doesNotMatch(json, /secret/)
      told.push(JSON.parse(input ?? json) as Record<string, string>)
      await bench.host.mounts.mount({ source: 'tmpfs', target, type: 'tmpfs', options: [] }, signal)
      return { status: 'Success' }
    },
    unmount: async ([target = '']) => {
      await bench.host.mounts.unmount(target, {}, signal)
      return { status: 'Success' }
    },
  })
  const data = { key: Buffer.from('hush').toString('base64') }
  await bench.client.create('Secret', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's', namespace: 'default' },
    type: 'acme/disk',
    data,
  })
  const withSecret = inline({
    flexVolume: { driver: 'acme/disk', secretRef: { name: 's' }, options: { 'kubernetes.io/fsType': 'mine' } },
  })
  const plugin = flexPlugin(await start(bench)).node(bench.deps)
  const target = `${root}/pods/uid-1/volumes/acme~disk/v`
  const request = {
    spec: withSecret,
    pod: pod(),
    target,
    ownership: { fsGroup: 5 },
    foundOnDisk: false,
    remount: false,
    notify: () => undefined,
  }
  await plugin.mount(request, signal)
  await plugin.mount(request, signal)
  assert.deepEqual(told, [
    {
      'kubernetes.io/fsType': 'mine',
      'kubernetes.io/readwrite': 'rw',
      'kubernetes.io/pvOrVolumeName': 'v',
      'kubernetes.io/pod.name': 'p',
      'kubernetes.io/pod.namespace': 'default',
      'kubernetes.io/pod.uid': 'uid-1',
      'kubernetes.io/serviceAccount.name': '',
      'kubernetes.io/mounterArgs.FsGroup': '5',
      'kubernetes.io/fsGroup': '5',
      'kubernetes.io/secret/key': data.key,
    },
  ])
  assert.equal((await bench.host.files.stat(target, signal)).gid, 5)
  assert.equal(plugin.device?.(withSecret), undefined)
  await plugin.unmount({ volumeName: 'v', pod: podUid('uid-1'), target }, signal)
  await plugin.unmount({ volumeName: 'v', pod: podUid('uid-1'), target }, signal)
  assert.equal(await bench.host.files.exists(target, signal), false)
  await bench.close()
})

test('without the driver’s help the usual actions are done: format, mount, bind (FLEX-8)', async () => {
  const bench = await createModelPluginFixture()
  bench.host.addDisk('/dev/sdf')
  await install(bench, {})
  const plugin = flexPlugin(await start(bench)).node(bench.deps)
  const device = plugin.device?.(spec)
  assert.ok(device)
  const path = device.path(spec)
  assert.equal(path, `${root}/plugins/kubernetes.io/flexvolume/acme/disk/mounts/v`)
  const devicePath = (await device.waitForAttach?.({ spec, devicePath: '/dev/sdf', pod: pod() }, signal)) ?? ''
  await device.mount({ spec, pod: pod(), devicePath, path }, signal)
  const target = `${root}/pods/uid-1/volumes/acme~disk/v`
  await plugin.mount(
    { spec, pod: pod(), target, ownership: {}, foundOnDisk: false, remount: false, notify: () => undefined },
    signal,
  )
  assert.equal((await bench.host.mounts.info(target, signal)).source, '/dev/sdf')
  await plugin.unmount({ volumeName: 'v', pod: podUid('uid-1'), target }, signal)
  await device.unmount({ path }, signal)
  assert.equal((await bench.host.mounts.list(signal)).length, 1)
  await bench.close()
})

test('expandvolume is told where the only node has the volume, or as much of it as is known (FLEX-8, FLEX-9)', async () => {
  const bench = await createModelPluginFixture()
  const calls = await install(bench, { expandvolume: { status: 'Success', volumeNewSize: 5 } })
  const definition = flexPlugin(await start(bench))
  const request = { spec, newBytes: 4n, oldBytes: 2n }
  assert.equal(await definition.cluster?.({ root }).expand?.(request, signal), 5n)
  await definition.cluster?.({}).expand?.(request, signal)
  assert.deepEqual(
    calls.slice(1).map((call) => call.slice(call.lastIndexOf('}') + 2)),
    [`${root}/plugins/kubernetes.io/flexvolume/acme/disk/mounts/v 4 2`, 'acme/disk/mounts/v 4 2'],
  )
  await bench.close()
})

test('drivers appear and vanish while we run; a broken one hides no good one (TP-27, FLEX-2)', async () => {
  const bench = await createModelPluginFixture()
  const registry = createRegistry(bench.registry().all())
  const builtIn = new Set(registry.all().map(({ name }) => name))
  await using prober = await probeFlexDrivers({ ...bench.deps, directory, log: silentLog }, registry, signal)
  assert.throws(() => registry.find(spec), /no volume plugin matched/)
  bench.host.programs.set(`${directory}/bad~one/one`, () => ({ exitCode: 1, stdout: '', stderr: '' }))
  await bench.host.files.mkdirAll(`${directory}/bad~one`, 0o755, signal)
  await bench.host.files.writeFile(`${directory}/bad~one/one`, '', { mode: 0o755 }, signal)
  await install(bench, {})
  await install(bench, {}, `${directory}/.hidden~x/x`)
  await prober.probe()
  assert.equal(registry.find(spec).name, 'acme/disk')
  assert.equal(mounting({ ...bench, registry: () => registry }, spec).plugin.name, 'acme/disk')
  assert.deepEqual(
    registry
      .all()
      .filter(({ name }) => !builtIn.has(name))
      .map(({ name }) => name),
    ['acme/disk'],
  )
  await bench.host.files.unlink(program, signal)
  await prober.probe()
  assert.throws(() => registry.find(spec), /no volume plugin matched/)
  await install(bench, {})
  await prober.probe()
  assert.equal(registry.find(spec).name, 'acme/disk')
  await bench.host.files.removeTree(directory, signal)
  await prober.probe()
  assert.throws(() => registry.find(spec), /no volume plugin matched/)
  await bench.close()
})

async function probing(bench: ModelPluginFixture) {
  const registry = createRegistry(bench.registry().all())
  const prober = await probeFlexDrivers({ ...bench.deps, directory, log: silentLog }, registry, signal)
  const after = async (ms: number) => {
    await bench.clock.advance(ms)
    await prober.probe()
    await prober.probe()
  }
  return { registry, prober, after, isThere: () => registry.known(pluginName('acme/disk')) !== undefined }
}

test('a driver that does not start is tried again, seldom, until it does (FLEX-2)', async () => {
  const bench = await createModelPluginFixture()
  let answer: object = { status: 'Failure', message: 'too early' }
  const calls = await install(bench, { init: () => answer })
  const { prober, after, isThere } = await probing(bench)
  await using _ = prober
  for (let second = 0; second < 120; second += 1) await after(1000)
  assert.ok(calls.length > 4 && calls.length < 15, `${calls.length} times`)
  assert.equal(isThere(), false)
  answer = { status: 'Success' }
  await after(30_001)
  assert.equal(isThere(), true)
  const { length } = calls
  await after(3_600_000)
  assert.equal(calls.length, length)
  await bench.close()
})

test('a change of another file in its directory starts a driver anew, but not for ever (FLEX-2)', async () => {
  const bench = await createModelPluginFixture()
  const write = (name: string, text: string) =>
    bench.host.files.writeFile(`${directory}/acme~disk/${name}`, text, { mode: 0o644 }, signal)
  // Its log lies beside it: were its own lines a change, it would never come to rest.
  const init = async () => {
    await write('log', 'started\n'.repeat(calls.length))
    return { status: 'Success' }
  }
  const calls: string[] = await install(bench, { init })
  const { prober, after } = await probing(bench)
  await using _ = prober
  await after(60_000)
  assert.equal(calls.length, 1)
  await write('common.sh', 'x')
  await after(0)
  assert.equal(calls.length, 2)
  await write('common.sh', 'xyz')
  await write('.hidden', 'x')
  await after(1000)
  assert.equal(calls.length, 2, 'it has its rest')
  await after(60_000)
  assert.equal(calls.length, 3)
  await write('.hidden', 'xyz')
  await after(60_000)
  assert.equal(calls.length, 3)
  await bench.close()
})

test('a driver whose update does not start stays as it was, and goes with its program (FLEX-2)', async () => {
  const bench = await createModelPluginFixture()
  let answer: object = { status: 'Success' }
  await install(bench, { init: () => answer })
  const { prober, after, isThere } = await probing(bench)
  await using _ = prober
  answer = { status: 'Failure' }
  await bench.host.files.writeFile(program, '#! new', { mode: 0o755 }, signal)
  await after(1000)
  assert.equal(isThere(), true)
  await bench.host.files.unlink(program, signal)
  await after(0)
  assert.equal(isThere(), false)
  await bench.close()
})

test('a mount that has died is there: the driver is asked to unmount it (MOUNT-12, FLEX-11)', async () => {
  const bench = await createModelPluginFixture()
  const calls = await install(bench, { unmount: { status: 'Success' } })
  const plugin = flexPlugin(await start(bench)).node({ ...bench.deps, root })
  const target = `${root}/pods/uid-1/volumes/acme~disk/v`
  await bench.host.files.mkdirAll(target, 0o750, signal)
  for (const call of ['files.exists', 'files.lstat'])
    bench.host.faults.plant({ call, below: target, kind: 'fails', code: 'ENOTCONN', times: 1 })
  await plugin.unmount({ volumeName: 'v', pod: podUid('uid-1'), target }, signal)
  bench.host.faults.clear()
  assert.deepEqual(calls.at(-1), `unmount ${target}`)
  assert.equal(await bench.host.files.exists(target, signal), false)
  await bench.close()
})

test('a driver that others could have written is not run, and no longer run once others can change it', async () => {
  const bench = await createModelPluginFixture()
  const calls = await install(bench, { getvolumename: { status: 'Success', volumeName: 'x' } })
  const driver = await start(bench)
  const { files } = bench.host
  const ask = () => driver.call('getvolumename', { words: [] }, signal)
  const wrongs = [
    [() => files.chmod(program, 0o775, signal), () => files.chmod(program, 0o755, signal)],
    [
      () => files.chmod(`${directory}/acme~disk`, 0o777, signal),
      () => files.chmod(`${directory}/acme~disk`, 0o755, signal),
    ],
    [() => files.chmod(directory, 0o775, signal), () => files.chmod(directory, 0o755, signal)],
    [() => files.lchown(program, 7, 7, signal), () => files.lchown(program, 0, 0, signal)],
  ] as const
  for (const [spoil, mend] of wrongs) {
    await spoil()
    await assert.rejects(ask(), { code: 'DriverNotTrusted', effect: 'untried' })
    await assert.rejects(start(bench), { code: 'DriverNotTrusted' })
    await mend()
  }
  assert.deepEqual(calls, ['init'])
  assert.equal((await ask())?.volumeName, 'x')
  await bench.close()
})
