import { boundYoungGeneration, EXIT, processIo } from './compose/index.ts'
import { main } from './cli/commands/index.ts'

/** Unread output must not keep a stopped server alive; its reader has this long to take the rest. */
const LAST_OUTPUT_MS = 1000

// SIGUSR1 would open Node's debugger, which has no password; the launcher ignores it as well.
process.on('SIGUSR1', () => undefined)
boundYoungGeneration([...process.execArgv, process.env['NODE_OPTIONS']].join(' '))
const io = processIo()
main(process.argv.slice(2), io)
  .then(
    // What could not be printed has made it a failure already.
    (code) => (process.exitCode ||= code),
    (error: unknown) => {
      // Anything that arrives here is a bug; its text may quote input, so only its name and place are shown.
      const { name, stack } = error instanceof Error ? error : { name: typeof error, stack: '' }
      io.stderr(`extauth: unexpected ${name}\n${(stack ?? '').split('\n').slice(1).join('\n')}\n`)
      process.exitCode = EXIT.failed
    },
  )
  // Counted from here and not from the signal: what is drained until here has a time of its own.
  .finally(() => void io.stopped.then(() => setTimeout(() => process.exit(), LAST_OUTPUT_MS).unref()))
