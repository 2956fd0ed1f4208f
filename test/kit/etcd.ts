// A real etcd for tests: one or several members in a directory of their own, on free ports; nothing is left when it is disposed.
// It needs Debian's etcd-server (`.ci/run` installs it); without it the test fails and says so.
import type { ChildProcess } from 'node:child_process'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

interface EtcdMember {
  readonly url: string
  /** Starts it again after `kill`, on the same address and with the same data. */
  start(): Promise<void>
  kill(signal?: NodeJS.Signals): Promise<void>
}

export interface Etcd extends AsyncDisposable {
  readonly urls: readonly string[]
  readonly members: readonly EtcdMember[]
  readonly directory: string
  /** Runs etcdctl against all members; throws when it fails. */
  ctl(...args: readonly string[]): string
}

export interface EtcdOptions {
  readonly members?: number
  /** More arguments for each member. */
  readonly args?: readonly string[]
  /** More arguments of etcdctl: certificates, a user. */
  readonly ctlArgs?: readonly string[]
  readonly scheme?: 'http' | 'https'
}

export async function startEtcd(options: EtcdOptions = {}): Promise<Etcd> {
  if (spawnSync('etcd', ['--version']).status !== 0)
    throw new Error('etcd is not installed: apt-get install etcd-server')
  const { members: count = 1, scheme = 'http' } = options
  const directory = mkdtempSync(join(tmpdir(), 'hawser-etcd-'))
  const ports = await freePorts(count * 2)
  const names = Array.from({ length: count }, (_, index) => `m${index}`)
  const peerUrl = (index: number) => `http://127.0.0.1:${ports[count + index]}`
  const cluster = names.map((name, index) => `${name}=${peerUrl(index)}`).join(',')
  const members = names.map((name, index) => {
    const url = `${scheme}://127.0.0.1:${ports[index]}`
    const peer = peerUrl(index)
    return createMember(url, [
      ...['--name', name, '--data-dir', join(directory, name), '--initial-cluster', cluster, '--logger', 'zap'],
      ...['--listen-client-urls', url, '--advertise-client-urls', url, '--unsafe-no-fsync'],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--log-level', 'info'],
      ...(options.args ?? []),
    ])
  })
  const stop = async () => {
    await Promise.all(members.map((member) => member.kill('SIGKILL')))
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    await Promise.all(members.map((member) => member.start()))
  } catch (error) {
    await stop()
    throw error
  }
  const urls = members.map((member) => member.url)
  return {
    urls,
    members,
    directory,
    ctl(...args) {
      const all = ['--endpoints', urls.join(','), ...(options.ctlArgs ?? []), ...args]
      const result = spawnSync('etcdctl', all, { encoding: 'utf8', env: { ...process.env, ETCDCTL_API: '3' } })
      if (result.status !== 0) throw new Error(`etcdctl ${args.join(' ')}: ${result.stderr}${result.stdout}`)
      return result.stdout
    },
    [Symbol.asyncDispose]: stop,
  }
}

function createMember(url: string, args: readonly string[]): EtcdMember {
  let child: ChildProcess | undefined
  return {
    url,
    async start() {
      child = spawn('etcd', args, { stdio: ['ignore', 'ignore', 'pipe'] })
      const ready = Promise.withResolvers<void>()
      let output = ''
      child.stderr!.on('data', (chunk: Buffer) => {
        if (output.length < 100_000) output += chunk.toString()
        if (output.includes('serving client traffic')) ready.resolve()
      })
      child.once('exit', (code) => ready.reject(new Error(`etcd ended with ${code}:\n${output}`)))
      await ready.promise
    },
    async kill(signal = 'SIGKILL') {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill(signal)
      await ended
    },
  }
}

/** Ports that nobody listens on now; they stay the same when a member is started again. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      return server
    }),
  )
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}
