// A node in memory, with its own server and a container that runs: whoever looks into pods looks into this one.
import { podUid } from '../../src/api/names.ts'
import type { Pod } from '../../src/api/generated/types.ts'
import type { Clock } from '../../src/clock/clock.ts'
import { createModelNetwork } from '../../src/host/model/network.ts'
import type { PodView } from '../../src/node/pods/pods.ts'
import { createModelMachine, createModelRuntime } from '../../src/node/runtime/model.ts'
import { createNodeServer } from '../../src/node/server/handle.ts'
import type { NodeServer } from '../../src/streams/node-server.ts'

export async function modelNode(
  clock: Clock,
): Promise<{ readonly nodeServer: NodeServer; put(pod: Pod): Promise<void> }> {
  const views: PodView[] = []
  const script = () => ({ exec: (argv: readonly string[]) => Number(argv[1] ?? 0) })
  const runtime = createModelRuntime({ clock, machine: createModelMachine(), script })
  const network = createModelNetwork({ answer: ({ port }) => (port === 81 ? false : 200) })
  const usage = { time: clock.now(), usedBytes: 5n, capacityBytes: 10n, availableBytes: 4n, inodes: 3n }
  const nodeServer = createNodeServer({
    clock,
    node: 'n1',
    startedAt: clock.now(),
    runtime,
    pods: () => views,
    metrics: { text: async () => 'kubelet_volume_stats_used_bytes 5\n' },
    stats: { ofPod: async () => new Map([['data', usage]]), refreshClaims: async () => {} },
    machine: async () => ({ cpu: { usageCoreNanoSeconds: 7 } }),
    settings: async () => ({ env: {}, workingDirectory: '/', groups: [] }),
    dialDriver: () => undefined,
    dial: (port, signal) => network.open({ host: '127.0.0.1', port }, signal),
    async logs({ previous, tailLines, container }) {
      if (previous || container === 'quiet') return undefined
      const lines = ['one\n', 'two\n'].slice(tailLines === undefined ? 0 : 2 - tailLines)
      return (async function* () {
        for (const line of lines) yield Buffer.from(line)
      })()
    },
  })
  return {
    nodeServer,
    async put(pod) {
      const uid = podUid(pod.metadata.uid ?? '')
      const names = { pod: uid, podName: pod.metadata.name, namespace: 'default', name: 'c', attempt: 0 }
      const rest = {
        env: {},
        workingDirectory: '/',
        groups: [],
        graceMs: 30_000,
        readOnlyRoot: false,
        mounts: [],
        devices: [],
        argv: ['x'],
      }
      const record = await runtime.start({ ...names, ...rest }, new AbortController().signal)
      const ended = { ...record, name: 'over', exit: { code: 0, at: 0, reason: 'Completed' } }
      views.push({
        pod,
        uid,
        containers: new Map([
          ['c', { record }],
          ['over', { record: ended }],
        ]),
        settings: new Map(),
      })
    },
  }
}
