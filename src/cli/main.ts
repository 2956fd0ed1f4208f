// The command line begins here: build the application, run it, turn mistakes into sentences and exit codes.
import { run } from '@stricli/core'
import { createApplication } from './app.ts'
import { createContext } from './context.ts'
import { exitCodes, ownExitCode } from './exit-codes.ts'

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader went away (`hawser get pv | head`): nothing to tell, nobody to tell it to.
  if (error.code === 'EPIPE') process.exit(exitCodes.ok)
  throw error
})
const words = process.argv.slice(2)
await run(await createApplication(words), words, createContext(process))
if (typeof process.exitCode === 'number') process.exitCode = ownExitCode(process.exitCode)
