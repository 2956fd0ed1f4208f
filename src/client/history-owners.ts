// Which records of the history are whose? Several processes write them: the server, and an agent per node, which may run the jobs of
// the same driver. Each takes over only what an earlier life of itself has written; the records of another are never touched.
import type { History, HistorySubject } from './history.ts'

/** The agent of a node tells of its volumes and pods under this name. */
const nodeActor = (node: string) => `node ${node}`

const jobsOf = (node: string) => ` on ${node}`

/** What the jobs of drivers tell in an agent: with the node's name behind the driver's. */
export function historyOfJobs(history: History, node: string): History {
  const named = <S extends HistorySubject>(subject: S): S => ({ ...subject, actor: subject.actor + jobsOf(node) })
  return {
    tell: (entry) => history.tell(named(entry)),
    waits: (subject, waiting) => history.waits(named(subject), waiting),
    recovered: (subject) => history.recovered(named(subject)),
    idle: () => history.idle(),
    [Symbol.asyncDispose]: () => history[Symbol.asyncDispose](),
  }
}

export const ownedByJobs = (node: string) => (actor: string) => actor.startsWith('csi ') && actor.endsWith(jobsOf(node))

export const ownedByNode = (node: string) => (actor: string) => actor === nodeActor(node)

export const ownedByServer = (actor: string) => !actor.startsWith('node ') && !/^csi \S+ on /.test(actor)
