// Does the simulator's runtime keep the contract of interactive commands? Real processes take the same test in test/linux.
import { podUid } from '../../src/api/names.ts'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import { createModelMachine, createModelRuntime } from '../../src/node/runtime/model.ts'
import { interactiveContract } from './runtime.ts'

interactiveContract('model', async () => {
  const script = () => ({ exec: (argv: readonly string[]) => (argv[0] === 'false' ? 1 : 0) })
  const runtime = createModelRuntime({ clock: createVirtualClock(), machine: createModelMachine(), script })
  const pod = podUid('11111111-2222-3333-4444-555555555555')
  const request = { pod, podName: 'p', namespace: 'default', name: 'c', attempt: 0, argv: ['sleep'], env: {} }
  const rest = { workingDirectory: '/', groups: [], graceMs: 30_000, readOnlyRoot: false, mounts: [], devices: [] }
  await runtime.start({ ...request, ...rest }, new AbortController().signal)
  return { runtime, pod, name: 'c', [Symbol.asyncDispose]: () => Promise.resolve() }
})
