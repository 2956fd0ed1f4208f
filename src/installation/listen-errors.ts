// Why can we not listen on an address, in words that help the user?
import { UsageError } from './config.ts'

/** The system's refusal to listen on this address as a mistake of the user; other errors stay what they are. */
export function explainListenError(
  error: unknown,
  addresses: readonly { readonly host: string; readonly port: number }[],
): unknown {
  const { address } = error as { address?: string }
  const { host, port } = addresses.find((each) => each.host === address) ?? addresses[0]!
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EADDRINUSE':
      return new UsageError(`the address ${host}:${port} is in use`, `choose another one with --listen ${host}:PORT`)
    case 'EACCES':
      return new UsageError(`this user may not listen on ${host}:${port}`, 'choose a port above 1023 with --listen')
    case 'EADDRNOTAVAIL':
      return new UsageError(`this machine has no address ${host}`, 'choose another one with --listen')
    default:
      return error
  }
}
