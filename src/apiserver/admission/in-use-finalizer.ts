// What keeps storage objects while somebody uses them? A finalizer that their protection controller removes (API-10).
import type { KubeObject } from '../../api/meta.ts'
import { withFinalizer } from '../../api/meta.ts'
import type { CreateAttempt } from './chain.ts'

export async function inUseFinalizer({ info, object }: CreateAttempt): Promise<KubeObject> {
  const { protectionFinalizer } = info.strategy
  return protectionFinalizer === undefined ? object : withFinalizer(object, protectionFinalizer)
}
