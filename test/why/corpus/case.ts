// What is one breakage? How it is made, what is asked, what must be said, and what mends it: data for corpus.test.ts.
import type { Cause } from '../../../src/why/causes.ts'
import type { Explanation } from '../../../src/why/explain.ts'
import type { WholeCluster, WholeClusterOptions } from '../../kit/whole-cluster.ts'

export interface Case {
  /** Unique; `driver/hung/NodeStageVolume`. */
  readonly id: string
  readonly cluster?: WholeClusterOptions
  /** What is in order before the breakage. */
  readonly before?: (cluster: WholeCluster) => Promise<unknown>
  /** The breakage; its beginning is the time that `why` must tell. A time that is returned counts instead. */
  readonly make: (cluster: WholeCluster) => Promise<unknown>
  /** How long after the breakage somebody asks; 13 s unless told. */
  readonly afterMs?: number
  /** `pod/web`, `pvc/data`, … */
  readonly ask: string | ((cluster: WholeCluster) => Promise<string>)
  readonly cause: Cause
  /** `working` for what will end by itself. */
  readonly verdict?: 'waiting' | 'working'
  /** Must be in what is printed, and must not. */
  readonly says?: RegExp
  readonly saysNot?: RegExp
  /** False where the breakage has no beginning that anybody could know. */
  readonly since?: false
  readonly also?: (explanation: Explanation) => void
  /** What ends it; a case without one says that nothing does. */
  readonly mend?: Mend | 'nothing'
  /** How long the mend may take. */
  readonly mendsWithinMs?: number
  /** After the mend `why` says that all is well, or that the object is gone; other causes are named here. */
  readonly afterwards?: Cause
}

export type Mend =
  /** Commands as a user types them. One of them, without its flags, is among the commands that `why` names. */
  | { readonly run: readonly string[]; readonly files?: Readonly<Record<string, object>>; readonly unhinted?: true }
  /** Something outside of the cluster must happen. */
  | { readonly outside: string; act(cluster: WholeCluster): unknown }
