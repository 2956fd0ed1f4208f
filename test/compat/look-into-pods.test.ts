// Can people look into their pods with kubectl, whichever process the node runs in? exec, attach, cp, port-forward, logs -f and a
// node's statistics, with every kubectl at hand (HAWSER_KUBECTL, else the one in PATH), in both languages kubectl speaks.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after, before } from 'node:test'
import { kubectlBinaries } from '../kit/kubectl.ts'
import { launcher, nobodyTypes, runProgram, startServer } from '../kit/server-process.ts'
import type { ServerProcess } from '../kit/server-process.ts'

const binaries = kubectlBinaries()
const skip = process.getuid?.() !== 0 ? 'needs root' : binaries.length === 0 ? 'no kubectl at hand' : false
const base = mkdtempSync(join(tmpdir(), 'hawser-look-'))
/** Every kubectl, and the newer ones once more without their WebSockets. */
const ways = binaries.flatMap((binary) => [
  { name: binary, binary, env: {} },
  {
    name: `${binary}, SPDY only`,
    binary,
    env: { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false', KUBECTL_PORT_FORWARD_WEBSOCKETS: 'false' },
  },
])
const mark = `look-${process.pid}`
let server: ServerProcess
let agent: ChildProcess

const podOn = (node: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `on-${node}` },
  spec: {
    nodeName: node,
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'main',
        image: 'none',
        command: ['sh', '-c', 'echo started; while :; do echo tick; sleep 0.2; done'],
        env: [{ name: 'FLAVOUR', value: 'sour' }],
        workingDir: '/data',
        securityContext: { runAsUser: 65534, runAsGroup: 65534 },
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
      },
    ],
    securityContext: { fsGroup: 65534 },
    volumes: [{ name: 'data', emptyDir: {} }],
  },
})

before(async () => {
  if (skip) return
  server = await startServer(['--node-name', 'inside', '--log-level', 'error'])
  const words = ['agent', '--kubeconfig', server.kubeconfig, '--node-name', 'apart', '--data-dir', join(base, 'agent')]
  agent = spawn(launcher, [...words, '--node-listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(agent.stdout!, 'data')
  const manifest = join(base, 'pods.json')
  writeFileSync(manifest, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [podOn('inside'), podOn('apart')] }))
  const first = kubectl(ways[0]!)
  await first('apply', '-f', manifest)
  await first('wait', '--for=condition=Ready', '--timeout=60s', 'pod/on-inside', 'pod/on-apart')
})

after(async () => {
  if (skip) return
  await kubectl(ways[0]!)('delete', 'pods', '--all', '--wait', '--timeout=60s')
  agent.kill('SIGTERM')
  if (agent.exitCode === null) await once(agent, 'exit')
  await server[Symbol.asyncDispose]()
  rmSync(base, { recursive: true, force: true })
})

type Way = (typeof ways)[number]

const environment = (way: Way) => ({ ...process.env, ...way.env, KUBECONFIG: server.kubeconfig })

/** Must succeed; answers what it printed. */
function kubectl(way: Way) {
  return async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runProgram(way.binary, words, { env: environment(way) })
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    return stdout
  }
}

for (const way of ways) {
  for (const node of ['inside', 'apart']) {
    const pod = `on-${node}`
    const run = (words: readonly string[], input?: string) =>
      runProgram(way.binary, words, { env: environment(way), ...(input === undefined ? {} : { input }) })

    test(`${way.name} on ${node}: exec with its streams and its exit code`, { skip, timeout: 60_000 }, async () => {
      const text = 'echo out; echo err >&2; id -u; pwd; echo $FLAVOUR; exit 7'
      const { code, stdout, stderr } = await run(['exec', pod, '--', 'sh', '-c', text])
      assert.deepEqual([code, stdout], [7, 'out\n65534\n/data\nsour\n'])
      assert.match(stderr, /^err\n[^]*command terminated with exit code 7/)
      const piped = await run(['exec', '-i', pod, '--', 'sh', '-c', 'wc -c; exit 3'], 'x'.repeat(300_000))
      assert.deepEqual([piped.code, piped.stdout.trim()], [3, '300000'])
      const wrong = await run(['exec', pod, '--', 'no-such-program'])
      assert.equal(wrong.code, 127)
      const nowhere = await run(['exec', pod, '-c', 'nope', '--', 'true'])
      assert.match(nowhere.stderr, /container nope is not valid for pod/)
    })

    test(`${way.name} on ${node}: a terminal`, { skip, timeout: 60_000 }, async () => {
      const inside = `${way.binary} exec -it ${pod} -- sh -c 'test -t 0 && test -t 1 && tty; stty size; exit 9'`
      const words = ['-qec', `stty rows 33 cols 77; ${inside}`, '/dev/null']
      const { code, stdout } = await runProgram('script', words, { env: environment(way), input: nobodyTypes })
      assert.equal(code, 9, stdout)
      assert.match(stdout, /\/dev\/pts\/\d+\r\n33 77\r\n/)
    })

    test(`${way.name} on ${node}: five megabytes there and back`, { skip, timeout: 60_000 }, async () => {
      const [here, back] = [join(base, 'here'), join(base, 'back')]
      const bytes = randomBytes(5_000_000)
      writeFileSync(here, bytes)
      await kubectl(way)('cp', here, `${pod}:/data/copy`)
      await kubectl(way)('cp', `${pod}:/data/copy`, back)
      assert.equal(digest(readFileSync(back)), digest(bytes))
      rmSync(back)
    })

    test(`${way.name} on ${node}: ports are forwarded`, { skip, timeout: 60_000 }, async () => {
      const echo = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket))
      echo.listen(0, '127.0.0.1')
      await once(echo, 'listening')
      const { port } = echo.address() as AddressInfo
      const child = spawn(way.binary, ['port-forward', pod, `0:${port}`], { env: environment(way) })
      const [line] = (await once(child.stdout, 'data')) as [Buffer]
      const local = Number(/127\.0\.0\.1:(\d+)/.exec(line.toString())?.[1])
      const sizes = [5, 100_000, 1_000_000]
      assert.deepEqual(await Promise.all(sizes.map((size) => throughPort(local, size))), sizes)
      child.kill()
      await once(child, 'exit')
      echo.close()
    })

    test(`${way.name} on ${node}: logs and attach follow the container`, { skip, timeout: 60_000 }, async () => {
      assert.match(await kubectl(way)('logs', pod), /^started\ntick\n/)
      assert.match(await firstWords(way, ['logs', '-f', '--tail=1', pod], 3), /^(tick\n){3}/)
      assert.equal(await kubectl(way)('logs', '-f', '--limit-bytes=10', pod), 'started\nti')
      assert.match(await firstWords(way, ['attach', pod], 3), /^(tick\n){3}/)
    })

    test(
      `${way.name} on ${node}: a client that is killed leaves nothing behind`,
      { skip, timeout: 60_000 },
      async () => {
        const child = spawn(way.binary, ['exec', pod, '--', 'sh', '-c', `echo up; sleep 600; : ${mark}`], {
          env: environment(way),
        })
        await once(child.stdout, 'data')
        assert.ok(running().length > 0)
        child.kill('SIGKILL')
        for (let tries = 0; tries < 100 && running().length > 0; tries++) await pause(50)
        assert.deepEqual(running(), [])
      },
    )
  }
}

test('a container made to be spoken to is spoken to, on both nodes', { skip, timeout: 120_000 }, async () => {
  for (const [index, way] of ways.entries()) {
    const [name, node] = [`spoken-${index}`, index % 2 ? 'inside' : 'apart']
    const command = ['sh', '-c', 'while read -r line; do echo "heard $line"; done; echo end']
    const container = { name: 'main', image: 'none', command, stdin: true, stdinOnce: true }
    const spec = { nodeName: node, restartPolicy: 'Never', terminationGracePeriodSeconds: 0, containers: [container] }
    const manifest = join(base, `${name}.json`)
    writeFileSync(manifest, JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec }))
    await kubectl(way)('apply', '-f', manifest)
    await kubectl(way)('wait', '--for=condition=Ready', '--timeout=60s', `pod/${name}`)
    const { code, stdout } = await runProgram(way.binary, ['attach', '-i', name], {
      env: environment(way),
      input: 'one\ntwo\n',
    })
    assert.deepEqual([code, stdout], [0, 'heard one\nheard two\nend\n'], way.name)
  }
})

const everywhere = ways.flatMap((way) => ['on-inside', 'on-apart'].map((pod) => ({ way, pod })))

test('whoever begins to read long after the end still gets all of it', { skip, timeout: 120_000 }, async () => {
  const size = 8_000_000
  const ends = everywhere.map(async ({ way, pod }) => {
    const child = spawn(way.binary, ['exec', pod, '--', 'head', '-c', String(size), '/dev/zero'], {
      env: environment(way),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    // Longer than the pings of kubectl are apart: what it sends must not close the connection it has not read.
    await pause(13_000)
    let got = 0
    child.stdout.on('data', (bytes: Buffer) => (got += bytes.length))
    const [code] = (await once(child, 'close')) as [number]
    return { name: way.name, pod, code, got }
  })
  assert.deepEqual(
    await Promise.all(ends),
    everywhere.map(({ way, pod }) => ({ name: way.name, pod, code: 0, got: size })),
  )
})

test('a client that is killed while nobody reads its input is missed, too', { skip, timeout: 120_000 }, async () => {
  const clients = everywhere.map(({ way, pod }) => {
    const child = spawn(way.binary, ['exec', '-i', pod, '--', 'sh', '-c', `sleep 600; : ${mark}`], {
      env: environment(way),
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    child.stdin.on('error', () => {})
    child.stdin.write(Buffer.alloc(20_000_000))
    return child
  })
  // A shell that has just forked is there twice for a moment.
  for (let tries = 0; tries < 400 && running().length !== clients.length; tries++) await pause(50)
  await pause(2_000) // until every buffer between here and there is full
  assert.equal(running().length, clients.length)
  for (const client of clients) client.kill('SIGKILL')
  for (let tries = 0; tries < 600 && running().length > 0; tries++) await pause(50)
  assert.deepEqual(running(), [])
})

test(
  'a client that is killed in the middle of its input leaves no half under a whole name',
  { skip, timeout: 120_000 },
  async () => {
    for (const [index, { way, pod }] of everywhere.entries()) {
      const script = `echo up; cat >/data/part-${index}; mv /data/part-${index} /data/whole-${index}`
      const child = spawn(way.binary, ['exec', '-i', pod, '--', 'sh', '-c', script], {
        env: environment(way),
        stdio: ['pipe', 'pipe', 'ignore'],
      })
      child.stdin.write('half')
      await once(child.stdout, 'data')
      child.kill('SIGKILL')
    }
    await pause(1_000)
    for (const pod of ['on-inside', 'on-apart']) {
      const names = await kubectl(ways[0]!)('exec', pod, '--', 'ls', '/data')
      assert.match(names, /^part-/m)
      assert.doesNotMatch(names, /^whole-/m)
    }
  },
)

test('two hundred megabytes through a slow reader fill no memory', { skip, timeout: 180_000 }, async () => {
  const size = 200_000_000
  for (const way of ways.slice(0, 2)) {
    const before = [resident(server.pid), resident(agent.pid!)]
    let most = [0, 0]
    const read = async (pod: string) => {
      const child = spawn(way.binary, ['exec', pod, '--', 'head', '-c', String(size), '/dev/zero'], {
        env: environment(way),
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let [got, next] = [0, 0]
      for await (const bytes of child.stdout) {
        got += (bytes as Buffer).length
        if (got < next) continue
        next += 5_000_000
        most = [Math.max(most[0]!, resident(server.pid)), Math.max(most[1]!, resident(agent.pid!))]
        await pause(100)
      }
      return got
    }
    assert.deepEqual(await Promise.all([read('on-inside'), read('on-apart')]), [size, size])
    const grown = most.map((bytes, index) => Math.round((bytes - before[index]!) / 1e6))
    assert.ok(Math.max(...grown) < 130, `server and agent grew by ${grown.join(' and ')} MB`)
  }
})

test('twenty commands at once, on both nodes', { skip, timeout: 120_000 }, async () => {
  const way = ways[0]!
  const ends = Array.from({ length: 20 }, async (_, index) => {
    const pod = index % 2 ? 'on-inside' : 'on-apart'
    const words = ['exec', '-i', pod, '--', 'sh', '-c', `cat; exit ${index}`]
    const { code, stdout } = await runProgram(way.binary, words, { env: environment(way), input: `in ${index}` })
    return [code, stdout]
  })
  assert.deepEqual(
    await Promise.all(ends),
    ends.map((_, index) => [index, `in ${index}`]),
  )
})

test('a node tells what it uses, wherever it runs', { skip }, async () => {
  for (const node of ['inside', 'apart']) {
    const read = (path: string) => kubectl(ways[0]!)('get', '--raw', `/api/v1/nodes/${node}/proxy/${path}`)
    const summary = JSON.parse(await read('stats/summary')) as {
      node: { nodeName: string; fs: { capacityBytes: number } }
      pods: { podRef: { name: string }; volume: { name: string; usedBytes: number; capacityBytes: number }[] }[]
    }
    assert.equal(summary.node.nodeName, node)
    assert.ok(summary.node.fs.capacityBytes > 0)
    const { volume } = summary.pods.find(({ podRef }) => podRef.name === `on-${node}`)!
    assert.deepEqual([volume[0]?.name, Number(volume[0]?.capacityBytes) > 0], ['data', true])
    assert.match(await read('metrics'), /volume_manager_total_volumes/)
    assert.equal(await read('healthz'), 'ok')
  }
})

test('whoever may only read may not look into pods', { skip }, async () => {
  const { stdout } = await runProgram(launcher, ['token', 'rita', '--as-kubeconfig', '--kubeconfig', server.kubeconfig])
  const file = join(base, 'rita')
  writeFileSync(file, stdout)
  const asRita = { env: { ...process.env, KUBECONFIG: file } }
  for (const way of ways) {
    for (const words of [
      ['exec', 'on-apart', '--', 'true'],
      ['port-forward', 'on-apart', '0:1'],
      ['attach', 'on-apart'],
    ]) {
      const { code, stderr } = await runProgram(way.binary, words, { env: { ...asRita.env, ...way.env } })
      assert.equal(code, 1)
      assert.match(stderr, /User "system:serviceaccount:kube-system:rita" cannot create resource "pods\/\w+"/)
    }
    const logs = await runProgram(way.binary, ['logs', 'on-apart', '--tail=1'], asRita)
    assert.equal(logs.code, 0)
  }
})

/** Bytes of memory a process holds. */
function resident(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

async function throughPort(port: number, size: number): Promise<number> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let got = 0
  socket.on('data', (bytes: Buffer) => (got += bytes.length))
  socket.end(Buffer.alloc(size, 'x'))
  await once(socket, 'end')
  socket.destroy()
  return got
}

/** What a command that does not end says first. */
async function firstWords(way: Way, words: readonly string[], lines: number): Promise<string> {
  const child = spawn(way.binary, words, { env: environment(way), stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  child.stdout.on('data', (bytes: Buffer) => (text += bytes.toString()))
  while (text.split('\n').length <= lines) await once(child.stdout, 'data')
  child.kill()
  await once(child, 'exit')
  return text
}

/** Processes of ours in the pods; kubectl itself carries the mark too. */
function running(): readonly string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8')
      return /^\d+$/.test(name) && words.includes(mark) && !words.includes('kubectl')
    } catch {
      return false // gone while we looked
    }
  })
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
