// What if nobody runs containers? Pods get their volumes, and every container counts as running until it is stopped.
import type { PodUid } from '../../api/names.ts'
import type { Clock } from '../../clock/clock.ts'
import { createListeners } from '../../loop/listeners.ts'
import type { ContainerRecord, Runtime } from './port.ts'

export function createNoRuntime({ clock }: { readonly clock: Clock }): Runtime {
  const records = new Map<string, ContainerRecord>()
  const listeners = createListeners<[ContainerRecord]>()
  const notify = (record: ContainerRecord) => {
    records.set(`${record.pod}/${record.name}`, record)
    listeners.tell(record)
  }
  return {
    version: 'hawser-none://1',
    unheldWishes: () => ['this node only mounts volumes (--runtime none): no container has a process'],
    // Nothing outlives the agent, so there is nothing to find: containers are "started" anew.
    restore: () => Promise.resolve([]),
    start({ pod, name, attempt }) {
      const record = { pod, name, attempt, id: `none://${pod}/${name}/${attempt}`, startedAt: clock.now() }
      notify(record)
      return Promise.resolve(record)
    },
    stop({ pod, name }) {
      const record = records.get(`${pod}/${name}`)
      if (record && !record.exit) notify({ ...record, exit: { code: 0, at: clock.now(), reason: 'Completed' } })
      return Promise.resolve()
    },
    // Nothing runs, so nothing can be unwell.
    exec: () => Promise.resolve({ exitCode: 0, output: '' }),
    runInteractive: ({ name }) =>
      Promise.reject(new Error(`container ${name} has no process: this node runs volumes only`)),
    writeStdin: ({ name }) =>
      Promise.reject(new Error(`container ${name} has no process: this node runs volumes only`)),
    removePod(pod: PodUid) {
      for (const [key, record] of records) if (record.pod === pod) records.delete(key)
      return Promise.resolve()
    },
    subscribe: listeners.listen,
  }
}
