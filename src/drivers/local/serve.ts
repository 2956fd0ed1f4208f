// How is the built-in driver started? The driver of one data directory behind one CSI socket.
import { rm, truncate } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createSystemClock } from '../../clock/system-clock.ts'
import { serveOnSocket } from '../../csi/serve.ts'
import { csiServices, handleUnary } from '../../csi/service.ts'
import { createLinuxHost } from '../../host/linux/linux-host.ts'
import { createLocalDriver } from './driver.ts'
import type { StorageOptions } from './driver.ts'
import { watchSpace } from './guard.ts'
import { errorText } from '../../telemetry/error-text.ts'

export interface LocalDriverOptions extends StorageOptions {
  readonly socket: string
}

export async function serveLocalDriver(options: LocalDriverOptions): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack()
  // Only the local disk is used here; a fixed number of threads is enough.
  const host = stack.use(createLinuxHost({ threads: 4, maximumThreads: 8 }))
  const signal = new AbortController().signal
  const setSize = (path: string, sizeBytes: bigint) => truncate(path, Number(sizeBytes))
  const clock = createSystemClock()
  const { handlers, guard } = await createLocalDriver({ host, clock, setSize }, options, signal)
  stack.use(watchSpace(guard, clock, (error) => console.error(`looking at the disk failed: ${errorText(error)}`)))
  await host.files.mkdirAll(dirname(options.socket), 0o750, signal)
  await rm(options.socket, { force: true })
  stack.use(
    await serveOnSocket(options.socket, csiServices, (method, bytes, stop) =>
      handleUnary(handlers, method, bytes, stop),
    ),
  )
  const owned = stack.move()
  return { [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
