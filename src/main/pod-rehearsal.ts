// How does a node practise? As a second node beside the real one, with the same agent and plugins, but on a host that is
// only a model: pods come, get volumes in its memory, run and go, and nothing of it reaches this machine.
import { nodeName } from '../api/names.ts'
import type { Pod } from '../api/types.ts'
import type { Client } from '../client/client.ts'
import { createHistory } from '../client/history.ts'
import { createInformers } from '../client/informer.ts'
import type { Clock } from '../clock/clock.ts'
import type { Random } from '../clock/random.ts'
import { createDrivers } from '../csi/drivers.ts'
import { createModelHost } from '../host/model/model-host.ts'
import { createModelNetwork } from '../host/model/network.ts'
import { createAgent } from '../node/agent.ts'
import { createModelMachine, createModelRuntime } from '../node/runtime/model.ts'
import { csiNodePlugin, nodePlugins } from '../plugins/index.ts'
import { silentLog } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createRegistry } from '../volume/registry.ts'
import { describeMachine } from './machine.ts'
import type { InTurns, Stage } from './rehearsal.ts'

export interface PodRehearsalDeps {
  readonly stages: readonly Stage[]
  readonly clock: Clock
  readonly random: Random
  readonly pods: number
  readonly inTurns: InTurns
}

const name = 'rehearsal'
const root = '/var/rehearsal'
const namespace = 'default'

/** How many pods have come, run and gone: all of them. */
export async function rehearsePods(deps: PodRehearsalDeps, signal: AbortSignal): Promise<number> {
  await using stack = new AsyncDisposableStack()
  const { stages, pods, inTurns } = deps
  for (const stage of stages) stack.use(await startModelNode(deps, stage, signal))
  const usersFor = (index: number) => stages[index % stages.length]!.users
  const running = stages.map(() => Promise.withResolvers<void>())
  const comeAndGo = async () => {
    await inTurns(pods, (index) => usersFor(index).create('Pod', pod(index), {}, signal))
    await Promise.all(running.map(({ promise }) => promise))
    await inTurns(pods, (index) => usersFor(index).remove('Pod', { namespace, name: podName(index) }, {}, signal))
  }
  const [gone] = await Promise.all([
    Promise.all(stages.map(({ users }, index) => followPods(users, pods / stages.length, running[index]!, signal))),
    comeAndGo(),
  ])
  return gone.reduce((sum, each) => sum + each, 0)
}

async function startModelNode(
  { clock, random }: PodRehearsalDeps,
  { inProcess: client }: Stage,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack()
  const log = silentLog
  const host = createModelHost({ clock })
  const informers = stack.use(createInformers({ client, clock, random, log }))
  const description = describeMachine(name, '')
  const allocatable = () => description.allocatable
  const csi = { drivers: createDrivers(), csiDrivers: informers.of('CSIDriver') }
  const plugins = { host, client, clock, random, log, root, nodeName: name, allocatable, ...csi }
  const agent = stack.use(
    createAgent({
      ...{ node: nodeName(name), root, client, clock, random, log, metrics: createMetrics(), host },
      network: createModelNetwork(),
      runtime: createModelRuntime({ clock, machine: createModelMachine() }),
      registry: createRegistry([...nodePlugins(plugins), csiNodePlugin(plugins)]),
      history: stack.use(createHistory({ client, clock, log, owns: () => false })),
      description,
      hostAddress: '',
    }),
  )
  await informers.synced()
  await agent.start(signal)
  return stack.move()
}

/** How many are gone, once all are; says before when all of them run. */
async function followPods(
  users: Client,
  pods: number,
  running: PromiseWithResolvers<void>,
  signal: AbortSignal,
): Promise<number> {
  const started = new Set<string>()
  let gone = 0
  try {
    for await (const event of users.watch('Pod', { resourceVersion: '0' }, signal)) {
      if (event.type === 'deleted') gone++
      else if (event.type !== 'bookmark' && event.object.status?.phase === 'Running')
        started.add(event.object.metadata.name)
      if (started.size >= pods) running.resolve()
      if (gone >= pods) break
    }
  } finally {
    running.resolve()
  }
  return gone
}

const podName = (index: number) => `p${index}`
const volumes = ['v0', 'v1', 'v2']

const pod = (index: number): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: podName(index), namespace },
  spec: {
    nodeName: name,
    hostNetwork: true,
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 0,
    tolerations: [{ operator: 'Exists' }],
    containers: [
      {
        name: 'c',
        image: 'local/none:1',
        imagePullPolicy: 'Never',
        command: ['/bin/sleep', '3600'],
        volumeMounts: volumes.map((volume) => ({ name: volume, mountPath: `/${volume}` })),
      },
    ],
    volumes: volumes.map((volume) => ({ name: volume, emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } })),
  },
})
