// The built-in driver in this very process, for `hawser driver serve`; `hawser up` gives it a process of its own.
import type { LocalDriverOptions } from '../drivers/local/serve.ts'
import { serveLocalDriver } from '../drivers/local/serve.ts'
import { UsageError } from '../installation/config.ts'
import { packageVersion } from '../installation/version.ts'

export async function serveBuiltInDriver(options: LocalDriverOptions): Promise<AsyncDisposable> {
  if (process.getuid?.() !== 0) throw new UsageError('the built-in driver mounts filesystems: it needs root', 'sudo')
  return serveLocalDriver({ ...options, version: packageVersion })
}
