// What does a user hear while a volume's group is being changed? Nothing if it is quick; after half a minute a warning, then
// once a minute how far it has come (FSG-4).

import type { Clock } from '../../clock/clock.ts'
import type { Files } from '../../host/host.ts'
import { applyOwnership } from '../../host/ownership.ts'
import { eventReasons } from '../../volume/messages.ts'
import type { Notify, Ownership } from '../../volume/plugin.ts'

export interface NoticedOwnership {
  readonly root: string
  readonly volumeName: string
  readonly ownership: Ownership
  readonly notify: Notify
}

const firstNoticeMs = 30_000
const nextNoticeMs = 60_000

export async function ownWithNotice(
  deps: { readonly files: Pick<Files, 'stat' | 'setGroup'>; readonly clock: Clock },
  { root, volumeName, ownership, notify }: NoticedOwnership,
  signal: AbortSignal,
): Promise<void> {
  const { clock, files } = deps
  let done = 0
  const tell = (message: string) => notify({ type: 'Warning', reason: eventReasons.permissionsChanging, message })
  const progress = (): void => {
    tell(`Setting volume ownership for volume ${volumeName} is still going on: ${done} files are done.`)
    timer = clock.at(clock.now() + nextNoticeMs, progress)
  }
  let timer = clock.at(clock.now() + firstNoticeMs, () => {
    const advice = 'consider using OnRootMismatch as fsGroupChangePolicy'
    tell(`Setting volume ownership for volume ${volumeName} is taking longer than expected, ${advice}.`)
    timer = clock.at(clock.now() + nextNoticeMs, progress)
  })
  try {
    const onProgress = (count: number): void => {
      done = count
    }
    const { fsGroup: gid, changePolicy: policy } = ownership
    await applyOwnership(files, { root, gid, policy, readOnly: false, onProgress }, signal)
  } finally {
    timer[Symbol.dispose]()
  }
}
