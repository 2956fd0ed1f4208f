// Does a second machine join by the documented commands, with storage of its own, and come back after a crash and a reboot?
// Network namespaces play the machines: each has its address, its host name, its data directory and its processes. They share the
// mount table, so that everything left behind can be seen. Needs root, iproute2 and util-linux.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { loopsBelow, mountsBelow } from '../kit/machine.ts'
import { repository } from '../kit/server-process.ts'

const id = String(process.pid)
const isPossible = process.getuid?.() === 0 && spawnSync('ip', ['netns', 'list']).status === 0
const skip = !isPossible && 'NOT TESTED: two machines need root and network namespaces (iproute2)'

const pod = (name: string) => `
apiVersion: v1
kind: Pod
metadata: { name: ${name} }
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: c
      image: none
      command: [sh, -c, "echo \${HOSTNAME:-x} >> /data/starts; exec sleep 3600"]
      volumeMounts: [{ name: d, mountPath: /data }]
  volumes: [{ name: d, persistentVolumeClaim: { claimName: ${name} } }]
`

test(
  'a second machine joins, keeps volumes of its own, and survives crashes and reboots of either',
  { skip },
  async () => {
    await using network = await createNetwork()
    const { storage, worker } = network
    const hawser = (...args: string[]) => storage.run(`hawser ${args.join(' ')}`)
    await storage.start('hawser up --listen 0.0.0.0:7443', /Another machine joins/)
    await worker.start(await hawser('token', 'join-command'), /^node worker is up$/m)
    await until('both nodes are ready', async () => (await hawser('get', 'nodes')).match(/ Ready /g)?.length === 2)

    for (const machine of [storage, worker]) {
      await hawser('volume', 'create', machine.name, '--size', '32Mi', '--node', machine.name)
      assert.equal(machine.images(), 1, `the volume for ${machine.name} lies there, and nowhere else`)
      writeFileSync(join(network.directory, `${machine.name}.yaml`), pod(machine.name))
      await hawser('apply', '-f', join(network.directory, `${machine.name}.yaml`))
    }
    const starts = (machine: Machine) => readData(machine, 'starts').length
    const running = async (machine: Machine, count: number) => {
      await until(`pod ${machine.name} runs (start ${count})`, () => starts(machine) === count)
      const isRunning = async () => (await hawser('get', `pod/${machine.name}`)).includes('Running')
      await until(`pod ${machine.name} is told as running`, isRunning)
    }
    for (const machine of [storage, worker]) await running(machine, 1)

    await worker.crash()
    await storage.crash()
    await storage.start('hawser up --listen 0.0.0.0:7443', /Another machine joins/)
    await worker.start('hawser agent', /^node worker is up$/m)
    await hawser('volume', 'create', 'later', '--size', '32Mi', '--node', 'worker')
    assert.deepEqual([storage.images(), worker.images()], [1, 2])
    for (const machine of [storage, worker]) await running(machine, 1)

    await worker.reboot()
    await worker.start('hawser agent', /^node worker is up$/m)
    await running(worker, 2)
    await storage.reboot()
    await storage.start('hawser up --listen 0.0.0.0:7443', /Another machine joins/)
    await running(storage, 2)
    assert.equal(starts(worker), 2, 'the pod of the worker ran on')

    await hawser('delete', 'pods', '--all', '--yes')
    for (const name of ['storage', 'worker', 'later']) await hawser('volume', 'rm', name, '--yes')
    await until('no image is left', () => storage.images() + worker.images() === 0)
    await hawser('node', 'drain', 'worker')
    await hawser('node', 'rm', 'worker', '--yes')
    assert.doesNotMatch(await hawser('get', 'nodes'), /worker/)
    assert.match(
      await worker.run('hawser get nodes --kubeconfig "$HAWSER_DATA_DIR/agent.kubeconfig"; true'),
      /Unauthorized/,
    )
    for (const machine of [storage, worker]) {
      await machine.stop()
      assert.deepEqual(machine.remains(), [], 'nothing is left behind')
    }
  },
)

interface Machine extends AsyncDisposable {
  readonly name: string
  readonly data: string
  /** Runs a command line there to its end; answers what it printed. */
  run(line: string): Promise<string>
  /** Starts it and waits for its word. */
  start(line: string, word: RegExp): Promise<void>
  stop(): Promise<void>
  /** kill -9; pods and mounts stay. */
  crash(): Promise<void>
  /** Every process, mount and loop device is gone. */
  reboot(): Promise<void>
  images(): number
  remains(): readonly string[]
}

interface TwoMachines extends AsyncDisposable {
  readonly directory: string
  readonly storage: Machine
  readonly worker: Machine
}

/** Addresses of a range for documentation, which exist in these two namespaces only. */
async function createNetwork(): Promise<TwoMachines> {
  await using stack = new AsyncDisposableStack()
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'hawser-two-')))
  stack.defer(() => rmSync(directory, { recursive: true, force: true }))
  const [storage, worker] = (['storage', 'worker'] as const).map((name) => {
    command('ip', 'netns', 'add', spaceOf(name))
    stack.defer(() => void spawnSync('ip', ['netns', 'delete', spaceOf(name)]))
    command('ip', '-n', spaceOf(name), 'link', 'set', 'lo', 'up')
    return stack.use(createMachine(name, join(directory, name)))
  })
  command(
    'ip',
    'link',
    'add',
    `hs${id}`,
    'netns',
    spaceOf('storage'),
    'type',
    'veth',
    'peer',
    `hw${id}`,
    'netns',
    spaceOf('worker'),
  )
  for (const [name, link, address] of [
    ['storage', `hs${id}`, '198.51.100.1/24'],
    ['worker', `hw${id}`, '198.51.100.2/24'],
  ] as const) {
    command('ip', '-n', spaceOf(name), 'address', 'add', address, 'dev', link)
    command('ip', '-n', spaceOf(name), 'link', 'set', link, 'up')
  }
  const kept = stack.move()
  return { directory, storage: storage!, worker: worker!, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

const spaceOf = (name: string) => `hawser-${name}-${id}`

function createMachine(name: string, data: string): Machine {
  mkdirSync(data)
  const space = spaceOf(name)
  const env = {
    ...process.env,
    PATH: `${join(repository, 'bin')}${delimiter}${process.env['PATH']}`,
    HAWSER_DATA_DIR: data,
    KUBECONFIG: undefined,
    NO_COLOR: '1',
  }
  const words = (line: string) => {
    const named = `echo ${name} > /proc/sys/kernel/hostname; ${line}`
    return [`--net=/run/netns/${space}`, 'unshare', '--uts', 'sh', '-c', named]
  }
  let child: ChildProcess | undefined
  const end = async (signal: NodeJS.Signals) => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
  const below = () => mountsBelow(data)
  const powerOff = async () => {
    const processes = () => command('ip', 'netns', 'pids', space).split('\n').filter(Boolean)
    for (const pid of processes()) spawnSync('kill', ['-9', pid])
    await until(`the processes of ${name} have ended`, () => processes().length === 0)
    for (const path of below().toReversed()) command('umount', '-l', path)
    for (const device of loopsBelow(data)) command('losetup', '-d', device)
    await until(`nothing of ${name} is mounted`, () => below().length + loopsBelow(data).length === 0)
  }
  return {
    name,
    data,
    async run(line) {
      const running = spawn('nsenter', words(line), { env, stdio: ['ignore', 'pipe', 'pipe'] })
      let text = ''
      for (const stream of [running.stdout, running.stderr])
        stream.on('data', (piece: Buffer) => (text += piece.toString()))
      const [code] = (await once(running, 'close')) as [number | null]
      assert.equal(code, 0, `${line}\n${text}`)
      return text.trim()
    },
    async start(line, word) {
      child = spawn(
        'nsenter',
        words(line.replace(/\bhawser (up|agent)\b/, 'exec hawser $1').replace(/^(\w+=\S+) exec /, 'export $1; exec ')),
        {
          env,
          stdio: ['ignore', 'pipe', 'pipe'],
        },
      )
      let text = ''
      for (const stream of [child.stdout!, child.stderr!])
        stream.on('data', (piece: Buffer) => (text += piece.toString()))
      await until(
        `${name} says ${word}`,
        () => word.test(text),
        () => text,
      )
    },
    stop: () => end('SIGTERM'),
    crash: () => end('SIGKILL'),
    reboot: powerOff,
    images: () => globSync(join(data, 'volumes/volumes/*')).length,
    remains: () => [...below(), ...loopsBelow(data), ...globSync(join(data, 'node/pods/*'))],
    [Symbol.asyncDispose]: powerOff,
  }
}

/** What the pod wrote into its volume, read where it is mounted. */
function readData(machine: Machine, file: string): readonly string[] {
  const [path] = globSync(join(machine.data, `node/pods/*/volumes/kubernetes.io~csi/*/mount/${file}`))
  return path === undefined ? [] : readFileSync(path, 'utf8').split('\n').filter(Boolean)
}

function command(program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  assert.equal(status, 0, `${program} ${args.join(' ')}: ${stderr}`)
  return stdout
}

/** For 40 seconds at most. */
async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  told: () => string = () => '',
): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (await isSo()) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.fail(`not so: ${what}\n${told()}`)
}
